//! Checks `docs/mcp.md`, `.mcp.json` and `server.json` against the program.

use serde_json::{Value, json};

use super::{Client, project};

const DOCS: &str = include_str!("../../../docs/mcp.md");

fn tools() -> Vec<Value> {
    let repo = project();
    let mut client = Client::legacy(&repo, &["--profile", "write,memory,docs,run"]);
    let listed = client.request("tools/list", json!({}));
    listed["result"]["tools"].as_array().unwrap().clone()
}

#[test]
fn every_tool_and_parameter_is_described() {
    let common = DOCS
        .split("\n## ")
        .find(|part| part.starts_with("Parameters of every question"));
    let common = common.unwrap_or_default();
    let mut missing = Vec::new();
    for tool in tools() {
        let name = tool["name"].as_str().unwrap();
        let own = DOCS
            .split("\n### ")
            .find(|part| part.starts_with(&format!("`{name}`")))
            .unwrap_or_default();
        let own = own.split("\n## ").next().unwrap_or_default();
        if own.is_empty() {
            missing.push(name.to_owned());
        }
        for (parameter, schema) in tool["inputSchema"]["properties"].as_object().unwrap() {
            let written = format!("| `{parameter}` |");
            if !own.contains(&written) && !common.contains(&written) {
                missing.push(format!("{name} {parameter}"));
            }
            let choices = schema["enum"].as_array().or(schema["items"]["enum"].as_array());
            for choice in choices.into_iter().flatten().filter_map(Value::as_str) {
                if !own.contains(&format!("`{choice}`")) && !common.contains(&format!("`{choice}`")) {
                    missing.push(format!("{name} {parameter} {choice}"));
                }
            }
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
}

#[test]
fn every_described_tool_is_there() {
    let names: Vec<String> = tools()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect();
    let described = DOCS.split("\n### `").skip(1).filter_map(|part| part.split('`').next());
    let unknown: Vec<&str> = described
        .filter(|name| !names.iter().any(|known| known == name))
        .collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}

#[test]
fn limits_resources_and_prompts_are_described() {
    for limit in [
        "2,000",
        "40,000",
        "64 KiB",
        "1 MiB",
        "8 MiB",
        "512",
        "10 seconds",
        "100 seconds",
    ] {
        assert!(DOCS.contains(limit), "{limit}");
    }
    let repo = project();
    let mut client = Client::legacy(&repo, &[]);
    for (method, list, field) in [
        ("resources/list", "resources", "uri"),
        ("resources/templates/list", "resourceTemplates", "uriTemplate"),
        ("prompts/list", "prompts", "name"),
    ] {
        let answer = client.request(method, json!({}));
        for entry in answer["result"][list].as_array().unwrap() {
            let name = entry[field].as_str().unwrap();
            assert!(DOCS.contains(&format!("`{name}`")), "{name}");
        }
    }
}

#[test]
fn files_for_clients_and_registries_are_sound() {
    let project: Value = serde_json::from_str(include_str!("../../../.mcp.json")).unwrap();
    assert_eq!(project["mcpServers"]["codescout"]["command"], "codescout");
    assert_eq!(project["mcpServers"]["codescout"]["args"], json!(["serve"]));
    let registry: Value = serde_json::from_str(include_str!("../../../server.json")).unwrap();
    assert_eq!(registry["version"], env!("CARGO_PKG_VERSION"));
    assert!(registry["description"].as_str().unwrap().len() <= 100);
}
