#![expect(clippy::unwrap_used, reason = "tests")]

use serde_json::json;

use super::*;

const TABLE: &str = "[m.me]\ncommand = \"x\"\nargs = [\"serve\"]\n";

fn entry() -> Entry {
    match json!({"command": "x", "args": ["serve"]}) {
        Value::Object(fields) => fields,
        _ => Entry::new(),
    }
}

fn put_in(text: &str) -> Result<Edited, TextError> {
    put(text, "m", "me", &entry())
}

#[track_caller]
fn expect_put(before: &str, after: &str) {
    assert_eq!(put_in(before).unwrap().text, after);
    assert_eq!(put_in(after).unwrap().text, after, "a second time changes nothing");
}

#[track_caller]
fn expect_round(before: &str, after: &str) {
    expect_put(before, after);
    assert_eq!(take(after, "m", "me").unwrap().unwrap(), before);
}

#[test]
fn a_table_is_put_at_the_end() {
    expect_round("", TABLE);
    expect_round("a = 1 # one\n", &format!("a = 1 # one\n\n{TABLE}"));
    expect_round("[t]\na = 1\n# the end\n", &format!("[t]\na = 1\n# the end\n\n{TABLE}"));
    expect_put("a = 1", &format!("a = 1\n\n{TABLE}"));
    expect_round("a = 1\r\n", &format!("a = 1\n\n{TABLE}").replace('\n', "\r\n"));
}

#[test]
fn beside_the_other_servers_where_there_are_some() {
    let other = "[m.a]\ncommand = \"\"\"\n[m.z]\n\"\"\"\nargs = [\n  \"]\", # ]\n]\n[m.a.env]\nK = '[x]'\n";
    expect_round(
        &format!("{other}\n# about t\n[t]\nb = 2\n"),
        &format!("{other}\n{TABLE}\n# about t\n[t]\nb = 2\n"),
    );
}

#[test]
fn fields_that_are_not_ours_stay() {
    expect_put(
        "[m.me]\nurl = \"u\" # old\ncommand = \"y\" # mine\nenabled_tools = [\"a\"]\n\n[m.me.env]\nA = \"b\"\n",
        "[m.me]\ncommand = \"x\" # mine\nenabled_tools = [\"a\"]\nargs = [\"serve\"]\n\n[m.me.env]\nA = \"b\"\n",
    );
}

#[test]
fn tables_in_other_forms_are_found() {
    for text in [
        "[m]\nme = { command = \"y\", env = { A = \"b\" } }\nother = { command = \"z\" }\n",
        "[m]\nme.command = \"y\"\nme.env.A = \"b\"\nother.command = \"z\"\n",
        "[m.\"me\"]\ncommand = 'y'\nenv = { A = \"b\" }\n[m.other]\ncommand = \"z\"\n",
    ] {
        let edited = put_in(text).unwrap().text;
        let found = value(&edited).unwrap().unwrap();
        let expected = json!({"command": "x", "args": ["serve"], "env": {"A": "b"}});
        assert_eq!(found["m"]["me"], expected, "{edited}");
        assert_eq!(put_in(&edited).unwrap().text, edited);
        let taken = value(&take(text, "m", "me").unwrap().unwrap()).unwrap().unwrap();
        assert_eq!(Value::Object(taken), json!({"m": {"other": {"command": "z"}}}));
    }
}

#[test]
fn what_cannot_be_edited_is_refused() {
    assert!(matches!(put_in("a = \n"), Err(TextError::Broken { line: 1, .. })));
    assert!(matches!(put_in("a = 1\n[b\n"), Err(TextError::Broken { line: 2, .. })));
    assert!(matches!(put_in("m = 1\n"), Err(TextError::OtherShape { .. })));
    assert!(matches!(
        put_in("m = { a = { b = 1 } }\n"),
        Err(TextError::NotEditable { .. })
    ));
}

#[test]
fn a_mark_at_the_beginning_stays() {
    expect_round("\u{feff}a = 1\n", &format!("\u{feff}a = 1\n\n{TABLE}"));
}

#[test]
fn what_is_not_there_cannot_be_taken() {
    assert_eq!(take("[m.a]\nb = 1\n", "m", "me").unwrap(), None);
    assert_eq!(take("", "m", "me").unwrap(), None);
}
