//! Tests `codescout install goose`, whose servers are in a YAML file with other settings.

use serde_json::json;

use crate::install::User;

const FILE: &str = ".xdg/goose/config.yaml";

/// As Goose writes it, with a comment of the user. `@` is where the entry comes.
const WRITTEN: &str = "GOOSE_PROVIDER: openai # mine
extensions:
  developer:
    enabled: true
    type: builtin
    name: developer
    description: 'Write and edit files: it''s built in'
    display_name: Developer
    timeout: 300
    bundled: true
    available_tools: []
  other:
    enabled: true
    type: stdio
    name: other
    cmd: npx
    args:
    - -y
    - other
    envs: {}
    env_keys: []
@slash_commands: []
";

fn entry() -> String {
    let program = std::fs::canonicalize(env!("CARGO_BIN_EXE_codescout")).unwrap();
    format!(
        "  codescout:\n    enabled: true\n    name: codescout\n    type: stdio\n    cmd: {}\n    args:\n      - serve\n",
        program.display()
    )
}

#[test]
fn only_the_entry_is_added_and_goes_again() {
    let user = User::new();
    for layout in [
        WRITTEN.to_owned(),
        WRITTEN.replace('\n', "\r\n"),
        "keep: 1\nextensions:\n@".to_owned(),
    ] {
        let newline = if layout.contains('\r') { "\r\n" } else { "\n" };
        let before = layout.replace("extensions:\n@", "").replace('@', "");
        user.write(FILE, &before);
        let all = user.everything();
        assert_eq!(user.install(&["goose"])["files"][0]["act"], "edit");
        assert_eq!(user.read(FILE), layout.replace('@', &entry().replace('\n', newline)));
        assert_eq!(user.install(&["goose"])["changed"], false);
        let listed = user.call(&["install", "--list"]).expect(0).stdout;
        assert!(listed.contains("Goose          installed in "), "{listed}");
        user.uninstall(&["goose"]);
        assert_eq!(user.everything(), all);

        let answer = user.install(&["goose", "--with", "skill,hooks", "--instructions"]);
        let text = user.read(".xdg/goose/skills/codescout/SKILL.md");
        assert!(text.starts_with("---\nname: codescout\n"), "{text}");
        assert!(answer["next"].to_string().contains("no hooks of Goose"), "{answer}");
        user.uninstall(&["goose"]);
        assert_eq!(user.everything(), all);

        // What others write meanwhile stays.
        user.install(&["goose"]);
        let changed = format!("{}more: 1{newline}", user.read(FILE));
        user.write(FILE, &changed);
        user.uninstall(&["goose"]);
        assert_eq!(user.read(FILE), format!("{before}more: 1{newline}"));
    }
    let called = user
        .call(&["install", "goose", "--scope", "project", "--yes"])
        .expect(2);
    assert!(
        called.stderr.contains("no configuration with scope project"),
        "{}",
        called.stderr
    );
}

#[test]
fn an_entry_of_the_user_keeps_its_own_fields() {
    let user = User::new();
    let before = "extensions:\n  codescout:\n    enabled: false # for now\n    type: sse\n    uri: http://old\n    timeout: 60\n";
    user.write(FILE, before);
    user.install(&["goose"]);
    let text = user.read(FILE);
    for kept in [
        "enabled: false # for now",
        "timeout: 60",
        "type: stdio",
        "cmd: ",
        "name: codescout",
    ] {
        assert!(text.contains(kept), "{text}");
    }
    assert!(!text.contains("uri"), "{text}");
    user.install(&["goose", "--http", "http://127.0.0.1:1/mcp"]);
    let http = user.read(FILE);
    let token =
        "headers:\n      Authorization: \"Bearer ${CODESCOUT_TOKEN}\"\n    env_keys:\n      - CODESCOUT_TOKEN\n";
    assert!(http.contains(token) && !http.contains("cmd"), "{http}");
    // Goose starts no server that lacks one of these variables.
    user.install(&["goose"]);
    assert!(!user.read(FILE).contains("env_keys"));
    user.uninstall(&["goose"]);
    assert_eq!(user.read(FILE), before);
    // Variables of the user stay.
    let own = format!("{before}    env_keys:\n    - MINE\n");
    user.write(FILE, &own);
    user.install(&["goose"]);
    assert!(user.read(FILE).contains("env_keys:\n    - MINE\n"));
}

#[test]
fn yaml_that_is_not_understood_is_left_with_what_to_add_by_hand() {
    let user = User::new();
    user.write(FILE, "defaults: &defaults\n  enabled: true\nextensions: {}\n");
    let before = user.everything();
    let install = user.call(&["install", "goose", "--yes"]).expect(2);
    let uninstall = user.call(&["uninstall", "goose", "--yes"]).expect(2);
    for refused in [&install.stderr, &uninstall.stderr] {
        assert!(
            refused.contains("config.yaml") && refused.contains("line 1"),
            "{refused}"
        );
    }
    let by_hand = format!("add this by hand:\nextensions:\n{}", entry());
    assert!(install.stderr.contains(&by_hand), "{}", install.stderr);
    let answer = user.call(&["install", "--list", "--json"]).expect(0).json();
    let listed = answer["clients"]
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["client"] == "goose");
    assert_eq!(listed.unwrap()["installed"], json!([]));
    assert_eq!(user.everything(), before);
}
