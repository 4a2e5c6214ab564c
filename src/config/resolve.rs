//! Resolves each setting to one value and the origin of that value.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use crate::model::{Explain, Explanation};
use crate::remote::EndpointError;

use super::env::Environment;
use super::file::{self, FileError, Settings};
use super::settings::{Config, InvalidValue, NAMED, SETTINGS, Scope, SettingInfo};
use super::trust::Trusted;
use super::value::Value;

/// The origin of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The value is the default.
    Default,
    /// A settings file.
    File(PathBuf),
    /// An environment variable.
    Environment(&'static str),
    /// The command line.
    Flag(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Environment(name) => f.write_str(name),
            Self::Flag(name) => f.write_str(name),
        }
    }
}

/// A value with its origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting<T> {
    /// The key, such as `search.limit`.
    pub key: &'static str,
    /// The value.
    pub value: T,
    /// The origin of the value.
    pub origin: Origin,
}

/// Settings from the command line.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// The value of the option `--limit`.
    pub limit: Option<usize>,
    /// The folder of the sidecar.
    pub sidecar: Option<PathBuf>,
}

/// The settings files of a repository.
#[derive(Clone, Debug, Default)]
pub struct RepositoryFiles {
    /// The path of `config.toml` in the sidecar.
    pub machine: Option<PathBuf>,
    /// The path of `.codescout.toml` in the worktree.
    pub committed: Option<PathBuf>,
    /// True if the repository is nested in another one. It may have been created by checking out the outer repository.
    pub is_inside_another: bool,
}

/// An error from resolving settings.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A settings file has an error.
    #[error(transparent)]
    File(#[from] FileError),
    /// A setting has an invalid value.
    #[error("{origin}: {invalid}")]
    Value {
        /// The origin of the value.
        origin: Origin,
        /// The value.
        invalid: InvalidValue,
    },
    /// The address, proxy or key of a server is invalid.
    #[error("{origin}: {key}: {source}")]
    Server {
        /// The origin of the value.
        origin: Origin,
        /// The setting.
        key: &'static str,
        /// The cause.
        #[source]
        source: EndpointError,
    },
    /// `.codescout.toml` sets a key that only the user may set.
    #[error("{}: {key} can only be set by codescout config or the environment", .path.display())]
    NotForRepositories {
        /// The file.
        path: PathBuf,
        /// The key.
        key: String,
    },
    /// A `.codescout/config.toml` names a server, a key or a root, but is not recorded as written by this user.
    #[error("{} sets {key} and is not recorded as written by this user", .path.display())]
    NotTrusted {
        /// The file.
        path: PathBuf,
        /// The key.
        key: String,
    },
    /// The file cannot be recorded as written by this user.
    #[error("cannot record that {} is this user's", .path.display())]
    NotRecorded {
        /// The settings file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
}

impl Explain for ConfigError {
    fn explain(&self) -> Explanation {
        Explanation::hinting(match self {
            Self::Server {
                key,
                origin: Origin::File(_),
                ..
            } => format!("run codescout config set {key} VALUE, or codescout config unset {key}"),
            Self::NotTrusted { path, .. } => format!(
                "if you wrote the file, run codescout config trust; otherwise delete {}, which may have come with \
                 the repository",
                path.display()
            ),
            Self::NotForRepositories { .. } => {
                "remove the setting from the file; to set it on this machine only: codescout config set KEY VALUE \
                 (--user for all your repositories)"
                    .to_owned()
            }
            Self::NotRecorded { .. } => {
                "set it for all your repositories: codescout config set --user KEY VALUE".to_owned()
            }
            _ => return Explanation::default(),
        })
    }
}

impl Config {
    /// Resolves every setting.
    pub fn resolve(
        overrides: &Overrides,
        environment: &Environment,
        files: &RepositoryFiles,
    ) -> Result<Self, ConfigError> {
        Self::from_sources(&Sources::read(overrides, environment, files)?)
    }
}

/// The values of settings as text, with their origins. If a key occurs several times, its first value is used.
pub(super) struct Sources(Vec<(String, OsString, Origin)>);

impl Sources {
    fn read(overrides: &Overrides, environment: &Environment, files: &RepositoryFiles) -> Result<Self, ConfigError> {
        let mut sources = Vec::new();
        if let Some(limit) = overrides.limit {
            sources.push((
                "search.limit".to_owned(),
                limit.to_string().into(),
                Origin::Flag("--limit"),
            ));
        }
        for setting in SETTINGS {
            if let Some((name, value)) = setting.variable.and_then(|name| environment.setting(name)) {
                sources.push((setting.key.to_owned(), value.clone(), Origin::Environment(name)));
            }
        }
        for (path, settings) in layers(environment, files)? {
            let origin = Origin::File(path);
            sources.extend(settings.into_iter().map(|(_, key, text)| (key, text, origin.clone())));
        }
        Ok(Self(sources))
    }

    pub(super) fn setting<T: Value>(&self, key: &'static str, default: T) -> Result<Setting<T>, ConfigError> {
        let (value, origin) = match self.0.iter().find(|(known, _, _)| known == key) {
            None => (default, Origin::Default),
            Some((_, text, origin)) => match T::parse(text) {
                Some(value) => (value, origin.clone()),
                None => {
                    let invalid = InvalidValue {
                        key,
                        value: format!("{:?}", text.to_string_lossy()),
                        expected: T::EXPECTED,
                    };
                    let origin = origin.clone();
                    return Err(ConfigError::Value { origin, invalid });
                }
            },
        };
        Ok(Setting { key, value, origin })
    }

    /// Returns the values of a section in which the user chooses the names, by name.
    pub(super) fn named(&self, section: &str) -> BTreeMap<String, (String, Origin)> {
        let mut found = BTreeMap::new();
        for (key, text, origin) in &self.0 {
            if let Some((_, name)) = key.split_once('.').filter(|(of, _)| *of == section) {
                let value = || (text.to_string_lossy().into_owned(), origin.clone());
                found.entry(name.to_owned()).or_insert_with(value);
            }
        }
        found
    }
}

/// Returns the settings of all files that apply, in order of precedence.
fn layers(environment: &Environment, files: &RepositoryFiles) -> Result<Vec<(PathBuf, Settings)>, ConfigError> {
    let mut layers = Vec::new();
    if let Some(path) = &files.machine
        && !file::is_of_another_user(path)
        && let Some((settings, text)) = file::read_if_allowed(path)?
    {
        let is_trusted = Trusted::new(environment).contains(path, &text);
        match first_key(&settings, |scope| scope == Scope::User) {
            _ if is_trusted => layers.push((path.clone(), settings)),
            _ if files.is_inside_another => passed_over(path),
            Some(key) => {
                let path = path.clone();
                return Err(ConfigError::NotTrusted { path, key });
            }
            None => layers.push((path.clone(), settings)),
        }
    }
    if let Some(path) = &files.committed
        && let Some((settings, _)) = file::read(path)?
    {
        match first_key(&settings, |scope| scope != Scope::Repository) {
            _ if files.is_inside_another => passed_over(path),
            Some(key) => {
                let path = path.clone();
                return Err(ConfigError::NotForRepositories { path, key });
            }
            None => layers.push((path.clone(), settings)),
        }
    }
    if let Some(path) = &environment.user_file
        && let Some((settings, _)) = file::read_linked(path)?
    {
        layers.push((path.clone(), settings));
    }
    Ok(layers)
}

fn passed_over(path: &Path) {
    tracing::warn!(
        "ignoring {}: the settings of a repository nested in another one are not used",
        path.display()
    );
}

/// Returns the first key in a file, in the order of the table, whose scope `is_wanted` selects.
pub(super) fn first_key(settings: &Settings, is_wanted: impl Fn(Scope) -> bool) -> Option<String> {
    let mut rows = SETTINGS.iter().chain(NAMED).filter(|row| is_wanted(row.scope));
    let key_of = |row: &SettingInfo| settings.iter().find(|(setting, _, _)| setting.key == row.key);
    rows.find_map(key_of).map(|(_, key, _)| key.clone())
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::config::{trust, trust_text, untrusted_key};

    #[test]
    fn nearer_wins_and_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let machine = folder.path().join("config.toml");
        let repository = folder.path().join(".codescout.toml");
        std::fs::write(&machine, "[index]\nmax_blob_bytes = 10").unwrap();
        std::fs::write(&repository, "[index]\nmax_blob_bytes = 20\n[search]\nlimit = 3").unwrap();
        let resolve = |overrides: &Overrides, environment: &Environment| {
            let files = RepositoryFiles {
                machine: Some(machine.clone()),
                committed: Some(repository.clone()),
                is_inside_another: false,
            };
            Config::resolve(overrides, environment, &files).unwrap()
        };
        let config = resolve(&Overrides::default(), &Environment::default());
        assert_eq!((config.index.max_blob_bytes.value, config.search.limit.value), (10, 3));
        assert_eq!(config.search.limit.origin, Origin::File(repository.clone()));

        let environment = Environment::with_settings(&[("CODESCOUT_MAX_BLOB_BYTES", "30")]);
        let config = resolve(
            &Overrides {
                limit: Some(7),
                ..Overrides::default()
            },
            &environment,
        );
        assert_eq!((config.index.max_blob_bytes.value, config.search.limit.value), (30, 7));
        assert_ne!(config.build_options().recipe, 0);
    }

    #[test]
    fn settings_of_the_collector_are_numbers_and_a_switch() {
        let resolve = |environment: &Environment| {
            Config::resolve(&Overrides::default(), environment, &RepositoryFiles::default())
        };
        let config = resolve(&Environment::default()).unwrap();
        let options = config.collect_options();
        assert_eq!(
            (options.reflog_days, options.max_bytes, options.dead_percent),
            (30, None, 10)
        );
        let environment = Environment::with_settings(&[
            ("CODESCOUT_GC_MAX_BYTES", "9000000000"),
            ("CODESCOUT_GC_REFLOG_DAYS", "0"),
            ("CODESCOUT_GC_AUTO", "false"),
        ]);
        let config = resolve(&environment).unwrap();
        let options = config.collect_options();
        assert_eq!((options.reflog_days, options.max_bytes), (0, Some(9_000_000_000)));
        assert!(!config.gc.auto.value);
        let wrong = Environment::with_settings(&[("CODESCOUT_GC_AUTO", "perhaps")]);
        assert_eq!(
            resolve(&wrong).unwrap_err().to_string(),
            "CODESCOUT_GC_AUTO: invalid value \"perhaps\" for gc.auto: expected true or false"
        );
    }

    #[test]
    fn a_repository_cannot_name_a_model_or_have_its_own_garbage_collected() {
        let folder = tempfile::tempdir().unwrap();
        let repository = folder.path().join(".codescout.toml");
        for text in [
            "[embedding]\nmodel = '/tmp/evil'",
            "[embedding]\nserver = 'https://evil.example'",
            "[embedding]\nkey_file = '/etc/passwd'",
            "[embedding]\nkey_variable = 'AWS_SECRET_ACCESS_KEY'",
            "[embedding]\nproxy = 'http://evil.example'",
            "[sparse]\nserver = 'https://evil.example'",
            "[sparse]\nweight_percent = 0",
            "[rerank]\nserver = 'https://evil.example'",
            "[rerank]\nmodel = 'm'",
            "[rerank]\ncandidates = 1",
            "[qdrant]\nserver = 'https://evil.example'",
            "[qdrant]\nprefix = 'theirs'",
            "[gc]\nmax_bytes = 1",
            "[serve]\nroots = '/'",
            "[run]\ntest = 'touch /tmp/evil'",
            "[linked]\nsdk = '/srv/other'",
            "[scopes]\nall = 'sdk'",
            "[readers]\nme = '* 0000000000000000000000000000000000000000000000000000000000000000'",
        ] {
            std::fs::write(&repository, text).unwrap();
            let files = RepositoryFiles {
                committed: Some(repository.clone()),
                ..RepositoryFiles::default()
            };
            let resolved = Config::resolve(&Overrides::default(), &Environment::default(), &files);
            assert!(matches!(resolved, Err(ConfigError::NotForRepositories { .. })));
        }
    }

    #[test]
    fn a_file_in_a_sidecar_names_servers_if_the_user_wrote_just_that() {
        let folder = tempfile::tempdir().unwrap();
        let machine = folder.path().join("config.toml");
        let environment = Environment {
            trusted: Some(folder.path().join("state/trusted")),
            ..Environment::default()
        };
        let untrusted = || untrusted_key(&machine, &std::fs::read_to_string(&machine).unwrap(), &environment).unwrap();
        let resolve = |environment: &Environment, is_inside_another| {
            let files = RepositoryFiles {
                machine: Some(machine.clone()),
                committed: None,
                is_inside_another,
            };
            Config::resolve(&Overrides::default(), environment, &files)
        };
        for text in [
            "[embedding]\nserver = 'https://evil.example'",
            "[rerank]\nkey_file = '/etc/passwd'",
            "[sparse]\nkey_variable = 'AWS_SECRET_ACCESS_KEY'",
            "[qdrant]\nproxy = 'http://evil.example'",
            "[serve]\nroots = '/'",
            "[run]\ntest = 'touch /tmp/evil'",
            "[linked]\nsdk = '/srv/other'",
        ] {
            std::fs::write(&machine, format!("{text}\n[search]\nlimit = 3\n")).unwrap();
            assert!(
                matches!(resolve(&environment, false), Err(ConfigError::NotTrusted { .. })),
                "{text}"
            );
            assert_eq!(resolve(&environment, true).unwrap().search.limit.value, 10, "{text}");
            assert!(untrusted().is_some(), "{text}");
            trust(&machine, &environment).unwrap();
            assert_eq!(resolve(&environment, false).unwrap().search.limit.value, 3, "{text}");
            assert_eq!(resolve(&environment, true).unwrap().search.limit.value, 3, "{text}");
            assert!(resolve(&Environment::default(), false).is_err(), "{text}");
        }
        // What was approved is the text, not what is in the file by then.
        std::fs::write(&machine, "[run]\ntest = 'touch /tmp/evil'\n").unwrap();
        trust_text(&machine, "[search]\nlimit = 4\n", &environment).unwrap();
        assert!(untrusted().is_some());
        // Without servers the file needs no record, unless somebody else may have put it there.
        std::fs::write(&machine, "[search]\nlimit = 3\n").unwrap();
        assert_eq!(resolve(&environment, false).unwrap().search.limit.value, 3);
        assert_eq!(resolve(&environment, true).unwrap().search.limit.value, 10);
    }

    #[test]
    fn the_users_own_file_comes_after_those_of_the_repository() {
        let folder = tempfile::tempdir().unwrap();
        let [real, link, committed] =
            ["real.toml", "link.toml", ".codescout.toml"].map(|name| folder.path().join(name));
        std::fs::write(&real, "[search]\nlimit = 4\n[rerank]\nserver = 'http://localhost:1'\n").unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        let environment = Environment {
            user_file: Some(link.clone()),
            ..Environment::default()
        };
        let files = RepositoryFiles {
            committed: Some(committed.clone()),
            ..RepositoryFiles::default()
        };
        let limit = || {
            Config::resolve(&Overrides::default(), &environment, &files)
                .unwrap()
                .search
                .limit
        };
        assert_eq!((limit().value, limit().origin), (4, Origin::File(link)));
        std::fs::write(&committed, "[search]\nlimit = 5\n").unwrap();
        assert_eq!(limit().value, 5);
    }
}
