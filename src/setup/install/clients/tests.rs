#![expect(clippy::unwrap_used, reason = "tests")]
use super::super::places::Platform;
use super::super::{Plan, Request};
use super::*;

fn files(platform: Platform, variables: &[(&str, &str)]) -> Vec<String> {
    let variable = |name: &str| {
        let found = variables.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| value.into())
    };
    let places = Places::new(platform, None, Vec::new(), variable).unwrap();
    let files = CLIENTS
        .iter()
        .filter_map(|client| client.files(Scope::User, "codescout", &places).into_iter().next());
    files
        .map(|file| file.display().to_string().replace('\\', "/"))
        .collect()
}

#[test]
fn files_of_a_user_stand_where_each_platform_has_them() {
    let linux = files(Platform::Linux, &[("HOME", "/u")]);
    assert_eq!(linux[0], "/u/.claude.json");
    assert_eq!(linux[1], "/u/.codex/config.toml");
    assert_eq!(linux[3], "/u/.config/Code/User/mcp.json");
    assert_eq!(linux[5], "/u/.config/zed/settings.json");
    assert_eq!(linux[9], "/u/.continue/mcpServers/codescout.yaml");
    assert_eq!(
        linux[13..],
        [
            "/u/.copilot/mcp-config.json",
            "/u/.openclaw/openclaw.json",
            "/u/.config/goose/config.yaml"
        ]
    );
    let mac = files(Platform::MacOs, &[("HOME", "/u")]);
    assert_eq!(mac[3], "/u/Library/Application Support/Code/User/mcp.json");
    assert_eq!(mac[5], "/u/.config/zed/settings.json");
    assert_eq!(
        mac[16],
        "/u/Library/Application Support/Claude/claude_desktop_config.json"
    );
    assert_eq!(mac[15], "/u/.config/goose/config.yaml");
    let windows = files(Platform::Windows, &[("USERPROFILE", "/u"), ("APPDATA", "/u/roaming")]);
    assert_eq!(windows[3], "/u/roaming/Code/User/mcp.json");
    assert_eq!(windows[5], "/u/roaming/Zed/settings.json");
    assert_eq!(windows[6], "/u/.config/opencode/opencode.json");
    assert_eq!(windows[15], "/u/roaming/Block/goose/config/config.yaml");
    assert_eq!(windows[16], "/u/roaming/Claude/claude_desktop_config.json");
}

#[test]
fn variables_of_the_clients_move_their_folders_and_relative_ones_do_not() {
    let moved = files(
        Platform::Linux,
        &[
            ("HOME", "/u"),
            ("XDG_CONFIG_HOME", "/x"),
            ("CODEX_HOME", "/c"),
            ("CLAUDE_CONFIG_DIR", "/d"),
            ("COPILOT_HOME", "/p"),
            ("OPENCLAW_STATE_DIR", "/o"),
        ],
    );
    assert_eq!(moved[0], "/d/.claude.json");
    assert_eq!(moved[1], "/c/config.toml");
    assert_eq!(moved[3], "/x/Code/User/mcp.json");
    assert_eq!(
        moved[13..],
        ["/p/mcp-config.json", "/o/openclaw.json", "/x/goose/config.yaml"]
    );
    let relative = files(Platform::Linux, &[("HOME", "/u"), ("XDG_CONFIG_HOME", "x")]);
    assert_eq!(relative[3], "/u/.config/Code/User/mcp.json");
}

#[test]
fn claude_desktop_takes_the_entry_on_its_platforms_and_gives_it_back() {
    let client = Client::by_name("claude-desktop").unwrap();
    let program = client.stdio(Scope::User, "/bin/codescout", &["--root".to_owned(), "/src".to_owned()]);
    let request = Request {
        name: "codescout".to_owned(),
        ..Request::default()
    };
    for platform in [Platform::MacOs, Platform::Windows] {
        let home = tempfile::tempdir().unwrap();
        let variable = |name: &str| ["HOME", "USERPROFILE"].contains(&name).then(|| home.path().into());
        let places = Places::new(platform, None, Vec::new(), variable).unwrap();
        let file = client.files(Scope::User, "codescout", &places).remove(0);
        let change = |server: Option<&Server>| {
            let plan = match server {
                Some(server) => Plan::install(client, server, &request, &places),
                None => Plan::uninstall(client, &request, &places),
            };
            plan.and_then(|plan| plan.apply())
        };
        change(Some(&program)).unwrap();
        let entry = r#"{"mcpServers":{"codescout":{"command":"/bin/codescout","args":["serve","--root","/src"]}}}"#;
        let written: serde_json::Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        assert_eq!(written.to_string(), entry);
        change(None).unwrap();
        assert!(!file.parent().unwrap().exists());

        let before = "{ \"globalShortcut\": \"\",\r\n  \"mcpServers\": {}}";
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, before).unwrap();
        change(Some(&program)).unwrap();
        assert!(client.trace(&places).is_some());
        change(None).unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), before);

        let url = "https://example.org/mcp".to_owned();
        let error = change(Some(&Server::Http { url })).unwrap_err();
        assert!(error.to_string().contains("takes no address"), "{error}");
    }
}

#[test]
fn names_are_distinct() {
    let mut names: Vec<&str> = CLIENTS
        .iter()
        .flat_map(|client| client.aliases.iter().copied().chain([client.id]))
        .collect();
    let n_names = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), n_names);
}
