//! Recognises files that contain secrets by their paths.

/// Names of files that contain secrets.
const NAMES: &[&str] = &[
    ".env",
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
    "id_rsa",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
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
/// Endings of file names that start with `.env.` but are templates without secrets.
const SAMPLES: &[&str] = &["example", "sample", "template", "dist", "defaults", "schema", "md"];

/// Returns true if the path suggests that the file contains secrets.
pub fn is_credential(path: &[u8]) -> bool {
    let path = String::from_utf8_lossy(path).to_ascii_lowercase();
    let mut path = path.as_str();
    while let Some(original) = COPIES.iter().find_map(|copy| path.strip_suffix(copy)) {
        path = original;
    }
    let name = path.rsplit('/').next().unwrap_or(path);
    let is_named = NAMES.contains(&name) || ENDINGS.iter().any(|ending| name.ends_with(ending));
    let is_data = name
        .split_once('.')
        .is_some_and(|(stem, ending)| STEMS.contains(&stem) && DATA.contains(&ending));
    let is_env = name
        .strip_prefix(".env.")
        .is_some_and(|rest| !SAMPLES.iter().any(|sample| rest.ends_with(sample)));
    let is_below = |known: &str| {
        path.strip_suffix(known)
            .is_some_and(|before| before.is_empty() || before.ends_with('/'))
    };
    is_named || is_data || is_env || BELOW.iter().any(|known| is_below(known))
}

#[cfg(test)]
mod tests {
    use super::*;

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
            "key.rs",
            "notes.bak",
        ] {
            assert!(!is_credential(path.as_bytes()), "{path}");
        }
    }
}
