#![expect(clippy::unwrap_used, reason = "tests")]

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn entry() -> Entry {
    object(json!({"command": "x", "args": ["serve"]}), "entry").unwrap()
}

fn put_in(text: &str) -> Result<Edited, TextError> {
    put(text, &["s"], "me", &entry(), &Entry::new())
}

#[track_caller]
fn expect_put(before: &str, after: &str) {
    let edited = put_in(before).unwrap();
    assert_eq!(edited.text, after);
    assert_eq!(put_in(after).unwrap().text, after, "a second time changes nothing");
}

/// Adds the entry, compares the text with `after`, and removes the entry again, which must restore `before`.
#[track_caller]
fn expect_round(before: &str, after: &str) {
    expect_put(before, after);
    let made_section = put_in(before).unwrap().made_section;
    assert_eq!(take(after, &["s"], "me", made_section).unwrap().unwrap(), before);
}

#[test]
fn a_new_file_is_written_out() {
    let whole = "{\n  \"s\": {\n    \"me\": {\n      \"command\": \"x\",\n      \"args\": [\"serve\"]\n    }\n  }\n}\n";
    expect_put("", whole);
    expect_put(" \n", whole);
    expect_put("\u{feff}", &format!("\u{feff}{whole}"));
    expect_put(
        "// nothing\n",
        "{\n  \"s\": {\n    \"me\": {\n      \"command\": \"x\",\n      \"args\": [\"serve\"]\n    }\n  }\n}\n",
    );
}

#[test]
fn other_servers_stay_as_they_are() {
    expect_round(
        "{\n  \"s\": {\n    \"a\": {\"command\":  \"b\"}\n  },\n  \"z\": [1,\n 2]\n}",
        "{\n  \"s\": {\n    \"a\": {\"command\":  \"b\"},\n    \"me\": {\n      \"command\": \"x\",\n      \"args\": [\"serve\"]\n    }\n  },\n  \"z\": [1,\n 2]\n}",
    );
}

#[test]
fn a_section_is_made_and_goes_again() {
    expect_round(
        "{\n    \"a\": 1\n}\n",
        "{\n    \"a\": 1,\n    \"s\": {\n        \"me\": {\n            \"command\": \"x\",\n            \"args\": [\"serve\"]\n        }\n    }\n}\n",
    );
    expect_round(
        "{}",
        "{\n  \"s\": {\n    \"me\": {\n      \"command\": \"x\",\n      \"args\": [\"serve\"]\n    }\n  }\n}",
    );
}

#[test]
fn comments_commas_tabs_and_line_ends_stay() {
    expect_round(
        "{\r\n\t// first\r\n\t\"s\": {\r\n\t\t\"a\": {}, // beside\r\n\t\t/* below */\r\n\t},\r\n}\r\n",
        "{\r\n\t// first\r\n\t\"s\": {\r\n\t\t\"a\": {}, // beside\r\n\t\t\"me\": {\r\n\t\t\t\"command\": \"x\",\r\n\t\t\t\"args\": [\"serve\"]\r\n\t\t},\r\n\t\t/* below */\r\n\t},\r\n}\r\n",
    );
    expect_round(
        "{\n  \"s\": {\n    \"a\": {} // beside\n    // \"b\": {}\n  }\n}\n",
        "{\n  \"s\": {\n    \"a\": {}, // beside\n    \"me\": {\n      \"command\": \"x\",\n      \"args\": [\"serve\"]\n    }\n    // \"b\": {}\n  }\n}\n",
    );
    expect_round(
        "{\n  \"s\": {\n    // none yet\n  }\n}\n",
        "{\n  \"s\": {\n    // none yet\n    \"me\": {\n      \"command\": \"x\",\n      \"args\": [\"serve\"]\n    }\n  }\n}\n",
    );
}

#[test]
fn one_line_stays_one_line() {
    expect_round(
        "{\"a\":1,\"s\":{\"b\":{}}}",
        "{\"a\":1,\"s\":{\"b\":{},\"me\":{\"command\":\"x\",\"args\":[\"serve\"]}}}",
    );
    expect_round(
        "{ \"s\": {} }\n",
        "{ \"s\": {\"me\": {\"command\": \"x\", \"args\": [\"serve\"]}} }\n",
    );
}

#[test]
fn the_first_of_several_goes_without_a_trace() {
    let text = "{\n  \"s\": {\n    \"me\": {},\n    \"b\": 1 // kept\n  }\n}";
    let taken = take(text, &["s"], "me", true).unwrap().unwrap();
    assert_eq!(taken, "{\n  \"s\": {\n    \"b\": 1 // kept\n  }\n}");
    let text = "{\"s\": {\"b\": 1, // kept\n \"me\": {}, \"c\": 2}}";
    let taken = take(text, &["s"], "me", true).unwrap().unwrap();
    assert_eq!(taken, "{\"s\": {\"b\": 1, // kept\n \"c\": 2}}");
}

#[test]
fn fields_that_are_not_ours_stay() {
    let text = "{\"s\": {\"me\": {\n  \"type\": \"http\",\n  \"url\": \"u\", // old\n  \"timeout\": 5,\n  \"command\": \"y\"\n}}}";
    expect_put(
        text,
        "{\"s\": {\"me\": {\n  // old\n  \"timeout\": 5,\n  \"command\": \"x\",\n  \"args\": [\"serve\"]\n}}}",
    );
}

#[test]
fn broken_texts_are_refused_with_their_line() {
    for (text, line) in [
        ("{\n\"a\": }", 2),
        ("{\"a\": 1", 1),
        ("{\"a\": 1}\n}", 2),
        ("{\"a\" 1}", 1),
        ("{'a': 1}", 1),
        ("{\"a\": \"\n\"}", 1),
        ("{\"a\": 1 \"b\": 2}", 1),
        ("{\n/* no end", 2),
        ("{\"a\": nul}", 1),
        ("{\"a\": \"\\", 1),
    ] {
        match put_in(text) {
            Err(TextError::Broken { line: found, .. }) => assert_eq!(found, line, "{text}"),
            other => panic!("{text}: {other:?}"),
        }
    }
    assert!(put_in(&"[".repeat(1_000_000)).is_err());
}

#[test]
fn other_shapes_are_refused() {
    for text in ["[]", "{\"s\": []}", "{\"s\": null}", "{\"s\": {\"me\": 1}}"] {
        assert!(matches!(put_in(text), Err(TextError::OtherShape { .. })), "{text}");
    }
    // Removing the last of several equal keys would make the first one effective.
    let twice = "{\"s\": {\"me\": {}, \"me\": {}}}";
    assert!(matches!(
        take(twice, &["s"], "me", true),
        Err(TextError::NotEditable { .. })
    ));
}

/// Programs differ in which of two values they use.
#[test]
fn repeated_keys_on_the_way_are_refused() {
    let entry = "{\"me\": {\"command\": \"x\", \"args\": [\"serve\"]}}";
    for text in [
        format!("{{\"s\": {{}},\n\"s\": {entry}}}"),
        format!("{{\"s\": {entry},\n\"s\": {{}}}}"),
        "{\"s\": {\"me\": {},\n\"me\": {}}}".to_owned(),
        "{\"s\": {\"me\": {\"command\": \"./x\",\n\"command\": \"x\"}}}".to_owned(),
        "{\"s\": {\"me\": {\"env\": {\"A\": 1,\n\"\\u0041\": 2}}}}".to_owned(),
    ] {
        match put_in(&text) {
            Err(TextError::Broken { message, .. }) => assert!(message.contains("twice"), "{text}: {message}"),
            other => panic!("{text}: {other:?}"),
        }
    }
    assert!(put_in("{\"a\": 1, \"a\": 2, \"s\": {\"other\": {\"b\": 1, \"b\": 2}}}").is_ok());
}

/// Generates random JSON with comments in random layouts.
fn layouts() -> impl Strategy<Value = String> {
    let blank = prop::sample::select(vec!["", " ", "\n  ", "\n\t", "\r\n    ", " // c\n", "/* c */", "\n\n"]);
    let leaf = prop::sample::select(vec![
        "1",
        "-2.5e3",
        "true",
        "null",
        "\"a\\\"b{\"",
        "\"# é\"",
        "[]",
        "{}",
    ])
    .prop_map(str::to_owned);
    let value = leaf.prop_recursive(3, 16, 4, {
        let blank = blank.clone();
        move |inner| {
            let field = (blank.clone(), 0..4_u8, blank.clone(), inner.clone(), blank.clone());
            let fields = prop::collection::vec(field, 0..4);
            (fields, any::<bool>(), blank.clone()).prop_map(|(fields, has_comma, end)| {
                let n_fields = fields.len();
                let fields = fields
                    .into_iter()
                    .enumerate()
                    .map(|(n, (before, key, gap, value, after))| {
                        let comma = if n + 1 < n_fields || has_comma { "," } else { "" };
                        format!("{before}\"{key}{n}\"{gap}:{value}{after}{comma}")
                    });
                format!("{{{}{end}}}", fields.collect::<String>())
            })
        }
    });
    (value, blank, any::<bool>()).prop_map(|(value, blank, is_section)| {
        if is_section {
            format!("{blank}{{\"s\":{value},\"t\": 1}}{blank}")
        } else {
            format!("{blank}{value}{blank}")
        }
    })
}

proptest! {
    #![proptest_config(crate::support::properties(2_000))]

    /// In any layout, existing fields are unchanged, the entry is correct, a second edit changes nothing, and the entry
    /// can be removed.
    #[test]
    fn any_layout_can_be_edited(text in layouts()) {
        let Ok(Some(Value::Object(before))) = value(&text) else { return Ok(()) };
        if before.get("s").is_some_and(|section| !section.is_object()) {
            prop_assert!(put_in(&text).is_err());
            return Ok(());
        }
        let edited = put_in(&text).unwrap();
        prop_assert_eq!(&put_in(&edited.text).unwrap().text, &edited.text);
        let taken = take(&edited.text, &["s"], "me", edited.made_section).unwrap().unwrap();
        let left = value(&taken).unwrap().unwrap();
        prop_assert_eq!(left, Value::Object(before));
        // Comments are counted together with their text, because `*/` followed by `/*` is not a comment.
        let comments = |text: &str| (text.matches("/* c").count(), text.matches("// c").count());
        prop_assert_eq!(comments(&taken), comments(&text));
    }
}

#[test]
fn a_section_may_be_inside_another() {
    let path = ["o", "s"];
    for (before, after) in [
        ("{}", r#"{ "o": {"s": {"me": {"command": "x", "args": ["serve"]}}}}"#),
        (
            r#"{"o":{"a":1}}"#,
            r#"{"o":{"a":1,"s":{"me":{"command":"x","args":["serve"]}}}}"#,
        ),
        (
            r#"{"o":{"s":{"b":{}}}}"#,
            r#"{"o":{"s":{"b":{},"me":{"command":"x","args":["serve"]}}}}"#,
        ),
    ] {
        let edited = put(before, &path, "me", &entry(), &Entry::new()).unwrap();
        assert_eq!(value(&edited.text).unwrap(), value(after).unwrap());
        assert_eq!(edited.made_section, !before.contains('s'));
        let again = put(&edited.text, &path, "me", &entry(), &Entry::new()).unwrap();
        assert_eq!(again.text, edited.text);
        let taken = take(&edited.text, &path, "me", edited.made_section).unwrap().unwrap();
        assert_eq!(taken, before);
    }
    assert!(put(r#"{"o": {"s": 1}}"#, &path, "me", &entry(), &Entry::new()).is_err());
    assert_eq!(take(r#"{"o": 1}"#, &path, "me", true).unwrap(), None);
}
