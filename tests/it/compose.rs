//! Checks that the services in `docker-compose.yml` match `docs/remote.md`. `tests/peers/schemas.sh` validates the file
//! against the schema of compose files, because that requires a YAML parser and the schema.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

fn read(path: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

/// Returns the text without comments.
fn compose() -> String {
    let text = read("docker-compose.yml");
    let lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns the blocks of lines that are indented more than their head, by head. `depth` is the indentation of the
/// heads.
fn blocks(text: &str, depth: usize) -> BTreeMap<&str, Vec<&str>> {
    let mut found: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut head = None;
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let indent = line.len() - line.trim_start().len();
        if indent == depth {
            head = line.trim().split_once(':').map(|(name, _)| name);
            found.entry(head.unwrap()).or_default();
        } else if let Some(head) = head.filter(|_| indent > depth) {
            found.get_mut(head).unwrap().push(line);
        }
    }
    found
}

/// Returns all services with their lines, including lines inherited with `<<: *name`.
fn services() -> BTreeMap<String, String> {
    let text = compose();
    let top = blocks(&text, 0);
    let taken = |line: &str| {
        let name = line.trim().strip_prefix("<<: *")?.to_owned();
        Some(top[format!("x-{name}").as_str()].join("\n"))
    };
    let services = top["services"].join("\n");
    let mut found = BTreeMap::new();
    for (name, lines) in blocks(&services, 2) {
        let mut lines: Vec<String> = lines.into_iter().map(str::to_owned).collect();
        let mut at = 0;
        while at < lines.len() {
            let more: Vec<String> = taken(&lines[at])
                .iter()
                .flat_map(|text| text.lines())
                .map(str::to_owned)
                .collect();
            lines.extend(more);
            at += 1;
        }
        found.insert(name.to_owned(), lines.join("\n"));
    }
    found
}

/// Returns the value of `key`.
fn value<'a>(service: &'a str, key: &str) -> Option<&'a str> {
    service
        .lines()
        .find_map(|line| line.trim().strip_prefix(key))
        .map(str::trim)
}

/// Returns the ports of this machine that are mapped to a service.
fn ports(service: &str) -> Vec<&str> {
    let items = service.lines().filter_map(|line| line.trim().strip_prefix("- \""));
    let published = items
        .filter_map(|item| item.strip_suffix('"'))
        .filter(|item| item.contains(':'));
    published.collect()
}

fn profiles(service: &str) -> Vec<String> {
    let list = value(service, "profiles:").unwrap().trim_matches(['[', ']']);
    list.split(',').map(|name| name.trim().to_owned()).collect()
}

/// Returns the services that start with the given profiles.
fn with_profiles(wanted: &[&str]) -> Vec<(String, String)> {
    let all = services().into_iter();
    all.filter(|(_, service)| profiles(service).iter().any(|name| wanted.contains(&name.as_str())))
        .collect()
}

#[test]
fn every_service_is_pinned_watched_and_open_to_this_machine_alone() {
    let services = services();
    assert!(services.len() >= 6, "{:?}", services.keys());
    for (name, service) in &services {
        let (_, version) = value(service, "image:").unwrap().rsplit_once(':').expect(name);
        assert!(
            version.bytes().filter(|&byte| byte == b'.').count() == 2,
            "{name}: {version}"
        );
        assert!(!version.contains("latest"), "{name}: {version}");
        assert!(
            service.contains("healthcheck:") && service.contains("test: ["),
            "{name} is not watched"
        );
        assert!(service.contains("restart: unless-stopped"), "{name}");
        let ports = ports(service);
        assert!(!ports.is_empty(), "{name} cannot be reached");
        for port in ports {
            assert!(port.starts_with("127.0.0.1:"), "{name} is open to others at {port}");
        }
        assert!(service.contains("API_KEY: ${CODESCOUT_"), "{name} lets everybody in");
    }
}

#[test]
fn keys_have_no_defaults_and_volumes_have_names() {
    let text = compose();
    let variables: Vec<&str> = text
        .split("${")
        .skip(1)
        .filter_map(|rest| rest.split('}').next())
        .collect();
    assert!(!variables.is_empty());
    for variable in variables {
        assert!(variable.contains(":?"), "{variable} need not be set");
    }
    let volumes = blocks(&text, 0)["volumes"].join("\n");
    let named = blocks(&volumes, 2);
    for (name, service) in services() {
        let from = service.split("volumes:").nth(1).unwrap().lines().nth(1).unwrap();
        let volume = from.trim().trim_start_matches("- ").split(':').next().unwrap();
        assert!(named.contains_key(volume), "{name}: {volume}");
    }
}

#[test]
fn each_kind_of_machine_gets_everything_and_no_port_is_taken_twice() {
    for profile in ["cpu", "gpu"] {
        let found = with_profiles(&[profile, "sparse"]);
        for wanted in ["embedder", "reranker", "sparse"] {
            let n_found = found
                .iter()
                .filter(|(name, _)| name.trim_end_matches("-gpu") == wanted)
                .count();
            assert_eq!(n_found, 1, "{wanted} with the profile {profile}");
        }
        let all: Vec<&str> = found.iter().flat_map(|(_, service)| ports(service)).collect();
        assert_eq!(
            all.iter().collect::<BTreeSet<_>>().len(),
            all.len(),
            "{profile}: {all:?}"
        );
    }
    let on_gpu = with_profiles(&["gpu"]);
    let has_gpu = |(_, service): &(String, String)| service.contains("deploy: *gpu");
    assert!(on_gpu.iter().all(has_gpu));
    // An image tag without a prefix is built for one generation of GPUs. This image contains binaries for all
    // generations and selects one at startup.
    for (name, service) in &on_gpu {
        let image = value(service, "image:").unwrap();
        assert!(
            image.contains(":cuda-"),
            "{name}: {image} runs on one generation of GPUs"
        );
    }
}

#[test]
fn the_document_names_what_is_there() {
    let document = read("docs/remote.md");
    let text = compose();
    let blocks = document.split("```").skip(1).step_by(2);
    let stacks: Vec<&str> = blocks.filter(|block| block.contains("docker compose")).collect();
    assert!(stacks.len() >= 2);
    for stack in &stacks {
        let started = stack.lines().find(|line| line.starts_with("docker compose")).unwrap();
        let wanted: Vec<&str> = started
            .split("--profile ")
            .skip(1)
            .filter_map(|rest| rest.split(' ').next())
            .collect();
        let up = with_profiles(&wanted);
        for port in stack.split("127.0.0.1:").skip(1) {
            let digits: String = port.chars().take_while(char::is_ascii_digit).collect();
            let published = format!("127.0.0.1:{digits}:");
            let is_there = up
                .iter()
                .any(|(_, service)| ports(service).iter().any(|port| port.starts_with(&published)));
            assert!(is_there, "nothing of {wanted:?} is at {digits}");
        }
    }
    // The document mentions every variable of the file.
    for variable in text.split("${").skip(1).filter_map(|rest| rest.split(':').next()) {
        assert!(
            document.contains(&format!("{variable}=")),
            "{variable} is not documented"
        );
    }
}
