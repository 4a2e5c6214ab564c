#![expect(clippy::unwrap_used, reason = "tests")]
use serde_json::json;

use super::*;

const SECTION: &str = "extensions:\n";
const SERVER: &str = "  me:\n    enabled: true\n    type: stdio\n    cmd: \"/x y\"\n    args:\n      - serve\n";

fn put_in(text: &str) -> Result<Edited, TextError> {
    let (Value::Object(entry), Value::Object(required)) = (
        json!({"type": "stdio", "cmd": "/x y", "args": ["serve"]}),
        json!({"enabled": true}),
    ) else {
        panic!("these are objects");
    };
    put(text, "extensions", "me", &entry, &required)
}

fn taken(edited: &Edited) -> String {
    take(&edited.text, "extensions", "me", edited.made_section)
        .unwrap()
        .unwrap()
}

/// `@` is where the server comes, `%` the section that it needs.
#[test]
fn the_server_is_inserted_and_nothing_else() {
    for layout in [
        "%@",
        "---\nkeep: 1\n%@",
        "\u{feff}# mine\n\nkeep: \"a: b # c\" # one\n%@",
        "extensions:\n  a:\n    cmd: 'it''s: x'\n    args:\n    - \"-y\"\n    - run # it\n    envs: {}\n@keep: [a, b]\n",
        "keep:\n- name: x\n  text: |\n    extensions:\n      \"open\n\n  more: {\"a\": \"}\"}\nextensions: # all\n  a:\n    text: |+\n      x\n\n@# end\n",
        "\"extensions\":\n  'a': # mine\n    url: http://x:1/y#z\n    none: ~\n@  # last\nkeep: it's\n",
    ] {
        let before = layout.replace(['%', '@'], "");
        let expected = layout.replace('%', SECTION).replace('@', SERVER);
        for newline in ["\n", "\r\n"] {
            let [before, expected] = [&before, &expected].map(|text| text.replace('\n', newline));
            // A text of no lines has no line endings to follow.
            let expected = if before.contains('\n') {
                expected
            } else {
                expected.replace("\r\n", "\n")
            };
            let edited = put_in(&before).unwrap();
            assert_eq!(edited.text, expected);
            assert_eq!(edited.made_section, layout.contains('%'));
            assert_eq!(put_in(&expected).unwrap().text, expected);
            assert_eq!(taken(&edited), before);
        }
    }
    let indented = put_in("extensions:\n    a:\n        cmd: x").unwrap();
    assert!(indented.text.contains("\n    me:\n      enabled: true\n") && indented.text.ends_with("- serve"));
    assert_eq!(taken(&indented), "extensions:\n    a:\n        cmd: x");
    let empty = put_in("extensions: {} # none\nkeep: 1").unwrap();
    assert_eq!(empty.text, format!("extensions: # none\n{SERVER}keep: 1"));
    assert_eq!(taken(&empty), "extensions: {} # none\nkeep: 1");
    for null in ["extensions:\nkeep: 1", "extensions: ~\nkeep: 1"] {
        assert_eq!(put_in(null).unwrap().text, format!("extensions:\n{SERVER}keep: 1"));
    }
    assert_eq!(take("keep: 1\n", "extensions", "me", true).unwrap(), None);
    assert_eq!(take("extensions:\n  a: {}\n", "extensions", "me", true).unwrap(), None);
}

#[test]
fn an_entry_keeps_its_other_fields_and_comments() {
    let before = "extensions:\n  me: # here\n    # off\n    enabled: false\n    args: [a, b] # old\n    uri: 'x'\n    \
                  tools:\n    - search\n    type: sse # kind\nkeep: 1\n";
    let after = "extensions:\n  me: # here\n    # off\n    enabled: false\n    args: # old\n      - serve\n    tools:\n    \
                 - search\n    type: stdio # kind\n    cmd: \"/x y\"\nkeep: 1\n";
    assert_eq!(put_in(before).unwrap().text, after);
}

#[test]
fn what_may_mean_something_else_is_refused() {
    for text in [
        "a: &a 1\n",
        "a: *b\n",
        "a: !t x\n",
        "<<: {}\n",
        "? a\n: b\n",
        "a: \"open\nextensions:\n\"\n",
        "a: 'open\nextensions:\n'\n",
        "a: [b,\nextensions:\n]\n",
        "a: [a'b, \"c', d]\nextensions:\n\"]\n",
        "a: {a:\"}\"}\n",
        "a: plain\n  goes on\n",
        "a:\n  plain\n",
        "a: 1\n---\nb: 1\n",
        "a: 1\n...\n",
        "%YAML 1.2\n",
        "a:\tb\n",
        "\ta: b\n",
        " a: 1\nb: 1\n",
        "a:\n    b: 1\n  c: 1\n",
        "a: 1\na: 2\n",
        "extensions: {}\n'extensions': {}\n",
        "\"\\x65xtensions\": {}\n",
        "# a\rextensions: {}\n",
        "a: b\u{2028}extensions: {}\n",
        "- a\n",
        "text\n",
        "a: b: c\n",
        "a: 1\n- b\n",
        "a: [\n",
        "a: |\n  text",
    ] {
        assert!(matches!(put_in(text), Err(TextError::Broken { .. })), "{text:?}");
    }
    for text in ["extensions: 1\n", "extensions:\n- a\n", "extensions:\n  me: x\n"] {
        assert!(matches!(put_in(text), Err(TextError::OtherShape { .. })), "{text:?}");
    }
    let deep: String = (0..100).map(|depth| format!("{}a:\n", " ".repeat(depth))).collect();
    assert!(matches!(put_in(&deep), Err(TextError::Broken { .. })));
    for text in ["extensions: {\"a\": {}}\n", "extensions:\n  me: {\"cmd\": \"x\"}\n"] {
        assert!(matches!(put_in(text), Err(TextError::NotEditable { .. })), "{text:?}");
    }
}
