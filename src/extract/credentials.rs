//! Recognises files that contain secrets by their paths.

/// Names of files that contain secrets.
const NAMES: &[&str] = &[
    ".envrc",
    ".netrc",
    "_netrc",
    ".npmrc",
    ".yarnrc",
    ".pypirc",
    ".pgpass",
    ".my.cnf",
    ".htpasswd",
    ".git-credentials",
    ".dockercfg",
    ".dockerconfigjson",
    ".vault-token",
    "id_dsa",
    "id_ecdsa",
    "application_default_credentials.json",
    "kubeconfig",
    "client_secret.json",
    "service-account.json",
    "master.key",
    ".terraformrc",
];
/// Names of data files that contain secrets, without the extension, and the extensions.
const STEMS: &[&str] = &["credentials", "secrets", "secret"];
const DATA: &[&str] = &["json", "yml", "yaml", "toml", "ini", "properties", "xml", "env", "txt"];
/// Path suffixes of files that contain secrets: a directory and a file name.
const BELOW: &[&str] = &[
    ".aws/credentials",
    ".aws/config",
    ".docker/config.json",
    ".kube/config",
    ".gem/credentials",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".config/gh/hosts.yml",
    ".m2/settings.xml",
    ".composer/auth.json",
];
/// Extensions of key files.
const ENDINGS: &[&str] = &[
    ".pem",
    ".p12",
    ".pfx",
    ".jks",
    ".keystore",
    ".kdbx",
    ".ppk",
    ".key",
    ".tfvars",
    ".tfstate",
    ".ovpn",
];
/// Suffixes of backup copies, which are removed before the name is checked.
const COPIES: &[&str] = &[
    "~", ".bak", ".backup", ".old", ".orig", ".save", ".swp", ".tmp", ".copy",
];
/// Words that mark a file `.env.…` or `….env` as a template without secrets.
const SAMPLES: &[&str] = &["example", "sample", "template", "dist", "defaults", "schema", "md"];

/// Returns true if the path suggests that the file contains secrets.
pub fn is_credential(path: &[u8]) -> bool {
    is_known(&original(path))
}

/// Like [`is_credential`], for a tree that may be a folder of a repository: the beginning of the path may be missing.
pub fn is_credential_of_tree(path: &[u8]) -> bool {
    let path = original(path);
    let may_be_below = |known: &&str| known.strip_suffix(&path).is_some_and(|before| before.ends_with('/'));
    is_known(&path) || BELOW.iter().any(may_be_below)
}

/// Returns the path in lower case, without what marks a copy.
fn original(path: &[u8]) -> String {
    let mut path = String::from_utf8_lossy(path).to_ascii_lowercase();
    while let Some(copy) = COPIES.iter().find(|copy| path.ends_with(**copy)) {
        path.truncate(path.len() - copy.len());
    }
    path
}

fn is_known(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let is_named = NAMES.contains(&name) || ENDINGS.iter().any(|ending| name.ends_with(ending));
    let is_data = name
        .split_once('.')
        .is_some_and(|(stem, ending)| STEMS.contains(&stem) && DATA.contains(&ending));
    let is_sample = |part: &str| {
        let last = part.rsplit(['.', '-', '_']).next();
        last.is_some_and(|last| SAMPLES.contains(&last))
    };
    let env = name.strip_prefix(".env.").or_else(|| name.strip_suffix(".env"));
    let is_env = env.is_some_and(|rest| !is_sample(rest));
    let is_key = !name.contains('.') && (name.starts_with("id_ed25519") || name.starts_with("id_rsa"))
        || name.starts_with("authkey_") && name.ends_with(".p8");
    let is_below = |known: &str| {
        path.strip_suffix(known)
            .is_some_and(|before| before.is_empty() || before.ends_with('/'))
    };
    is_named || is_data || is_env || is_key || path == "auth.json" || BELOW.iter().any(|known| is_below(known))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_of_a_tree_can_be_a_folder() {
        for path in ["credentials", "config.json", "gh/hosts.yml", "config.old"] {
            assert!(is_credential_of_tree(path.as_bytes()), "{path}");
        }
        assert!(!is_credential_of_tree(b"src/config.json") && !is_credential_of_tree(b"json"));
    }

    #[test]
    fn credential_files_are_recognised_by_name() {
        for path in [
            ".env",
            "a/.env.production",
            "x/ID_RSA",
            "certs/server.pem",
            "home/.aws/credentials",
            ".npmrc",
            ".envrc",
            "id_rsa.bak",
            ".env.local.bak~",
            "home/.kube/config.old",
            "deploy/kubeconfig",
            "vpn/home.ovpn",
            "credentials.json",
            "config/secrets.toml.bak",
            "deploy/prod.env",
            ".env.cmd",
            "AuthKey_A1.p8",
            "keys/id_ed25519_deploy",
            "auth.json",
        ] {
            assert!(is_credential(path.as_bytes()), "{path}");
        }
        for path in [
            ".env.example",
            "src/env.rs",
            "docs/keys.md",
            "aws/credentials.md",
            "src/credentials.py",
            "docs/secrets.md",
            "a.aws/credentials",
            "config.json",
            "docker/example.env",
            "keys/id_rsa.pub",
            "src/id_rsa_test.go",
            "locales/auth.json",
            "src/authkey_service.py",
            "key.rs",
            "notes.bak",
        ] {
            assert!(!is_credential(path.as_bytes()), "{path}");
        }
    }
}
