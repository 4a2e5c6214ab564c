//! One value for every setting, and where it comes from.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::extract;
use crate::history::HistoryLimit;
use crate::index::BuildOptions;
use crate::index::dense::Quantisation;
use crate::ingest::CollectOptions;
use crate::query::parse_moment;
use crate::remote::{EmbedderOptions, EndpointError, SparseOptions};

use super::embedding::EmbeddingConfig;
use super::env::Environment;
use super::file::{self, FileError, Settings};
use super::qdrant::QdrantConfig;
use super::rerank::RerankConfig;
use super::sparse::SparseConfig;
use super::trust::Trusted;

/// Files with more bytes are left out by default: what is larger is data, seldom code.
const DEFAULT_MAX_BLOB_BYTES: u64 = 1 << 20;
const DEFAULT_LIMIT: usize = 10;
/// What git itself keeps of entries that no ref reaches any more.
const DEFAULT_REFLOG_DAYS: u32 = 30;
/// Copying the rest is worth it when a tenth of what is stored is of no use.
const DEFAULT_DEAD_PERCENT: u32 = 10;
const DEFAULT_DELETED_FILES: usize = 10_000;
/// A segment covers so much text: large enough for few segments, small enough for a build in a quarter of a gigabyte.
const MAX_SEGMENT_BYTES: usize = 96 << 20;
/// Raised when rules outside `extract` change what is indexed or stored: 1, the first.
const RULES_VERSION: u32 = 1;

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Nobody set it.
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
    /// What it is.
    pub value: T,
    /// Who said so.
    pub origin: Origin,
}

/// What the command line sets.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// `--limit`
    pub limit: Option<usize>,
    /// Where the sidecar is, in place of everything else.
    pub sidecar: Option<PathBuf>,
}

/// Settings files that lie with a repository.
#[derive(Clone, Debug, Default)]
pub struct RepositoryFiles {
    /// `config.toml` in its sidecar.
    pub machine: Option<PathBuf>,
    /// `.codescout.toml` in its work tree.
    pub committed: Option<PathBuf>,
    /// Whether the repository lies inside another one, and so may have come with that one.
    pub is_inside_another: bool,
}

/// Every setting, resolved.
#[derive(Clone, Debug)]
pub struct Config {
    /// `index.max_blob_bytes`
    pub max_blob_bytes: Setting<u64>,
    /// `embedding.model`: a Model2Vec folder, or the name of a server's model; `None` for the built-in model.
    pub model: Setting<Option<PathBuf>>,
    /// The rest of `embedding`.
    pub embedding: EmbeddingConfig,
    /// `sparse`
    pub sparse: SparseConfig,
    /// `rerank`
    pub rerank: RerankConfig,
    /// `qdrant`
    pub qdrant: QdrantConfig,
    /// `search.limit`
    pub limit: Setting<usize>,
    /// `gc.auto`: whether garbage is collected unasked.
    pub gc_auto: Setting<bool>,
    /// `gc.reflog_days`
    pub gc_reflog_days: Setting<u32>,
    /// `gc.max_bytes`: 0 for no limit.
    pub gc_max_bytes: Setting<u64>,
    /// `gc.dead_percent`
    pub gc_dead_percent: Setting<u32>,
    /// `gc.deleted_files`: of how many deleted files the last version is indexed and kept.
    pub gc_deleted_files: Setting<usize>,
    /// `serve.roots`: folders in which a server may be asked about repositories.
    pub roots: Setting<Vec<PathBuf>>,
    /// `history.max_commits`: 0 for all.
    pub history_max_commits: Setting<usize>,
    /// `history.since`: a moment as people write it, relative ones too.
    pub history_since: Setting<String>,
}

/// Why there is no configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A settings file.
    #[error(transparent)]
    File(#[from] FileError),
    /// A value is not of its kind.
    #[error("{origin}: {value:?} is not {expected}")]
    Value {
        /// Where it was set.
        origin: Origin,
        /// What it says.
        value: String,
        /// What it should be.
        expected: &'static str,
    },
    /// A server's address, proxy or key.
    #[error("{origin}: {key}: {source}")]
    Server {
        /// Where it was set.
        origin: Origin,
        /// The setting.
        key: &'static str,
        /// What is wrong.
        #[source]
        source: EndpointError,
    },
    /// A repository's own file sets what only the user may.
    #[error("{}: {key} can only be set by codescout config or the environment", .path.display())]
    NotForRepositories {
        /// The file.
        path: PathBuf,
        /// The key.
        key: &'static str,
    },
    /// A file in a sidecar names a server, a key or a root, and may have come with the repository.
    #[error("{} sets {key} and is not recorded as written by this user", .path.display())]
    NotTrusted {
        /// The file.
        path: PathBuf,
        /// The key.
        key: &'static str,
    },
    /// The record of the user's files cannot be written.
    #[error("cannot record that {} is this user's", .path.display())]
    NotRecorded {
        /// The settings file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
}

impl Config {
    /// How many results an answer has, if nothing else is said.
    pub fn max_results(&self) -> usize {
        match self.limit.value {
            0 => usize::MAX,
            limit => limit,
        }
    }

    /// Resolves every setting.
    pub fn resolve(
        overrides: &Overrides,
        environment: &Environment,
        files: &RepositoryFiles,
    ) -> Result<Self, ConfigError> {
        let layers = layers(environment, files)?;
        let bytes = "a number of bytes";
        let max_blob_bytes = from_variable("CODESCOUT_MAX_BLOB_BYTES", environment.max_blob_bytes.as_ref(), bytes)?
            .or_else(|| from_files(&layers, |settings| settings.index.max_blob_bytes));
        let gc_max_bytes = from_variable("CODESCOUT_GC_MAX_BYTES", environment.gc_max_bytes.as_ref(), bytes)?
            .or_else(|| from_files(&layers, |settings| settings.gc.max_bytes));
        let days = environment.gc_reflog_days.as_ref();
        let gc_reflog_days = from_variable("CODESCOUT_GC_REFLOG_DAYS", days, "a number of days")?
            .or_else(|| from_files(&layers, |settings| settings.gc.reflog_days));
        let gc_auto = from_variable("CODESCOUT_GC_AUTO", environment.gc_auto.as_ref(), "true or false")?
            .or_else(|| from_files(&layers, |settings| settings.gc.auto));
        let history_since = from_files(&layers, |settings| settings.history.since.clone());
        if let Some(Setting { value, origin }) = history_since.as_ref().filter(|since| since_of(since, 0).is_none()) {
            return Err(ConfigError::Value {
                origin: origin.clone(),
                value: value.clone(),
                expected: "a date for history.since: 2024-02-29, or 12h, 30d, 2w, 6m, 1y",
            });
        }
        let gc_dead_percent = from_files(&layers, |settings| settings.gc.dead_percent);
        let gc_deleted_files = from_files(&layers, |settings| settings.gc.deleted_files);
        let model = match &environment.model {
            Some(folder) => Some(Setting {
                value: PathBuf::from(folder),
                origin: Origin::Environment("CODESCOUT_MODEL"),
            }),
            None => from_files(&layers, |settings| settings.embedding.model.clone()),
        };
        let limit = match overrides.limit {
            Some(value) => Some(Setting {
                value,
                origin: Origin::Flag("--limit"),
            }),
            None => from_files(&layers, |settings| settings.search.limit),
        };
        Ok(Self {
            max_blob_bytes: or_default(max_blob_bytes, DEFAULT_MAX_BLOB_BYTES),
            model: maybe(model),
            embedding: EmbeddingConfig::resolve(environment, &layers)?,
            sparse: SparseConfig::resolve(environment, &layers)?,
            rerank: RerankConfig::resolve(environment, &layers)?,
            qdrant: QdrantConfig::resolve(environment, &layers)?,
            limit: or_default(limit, DEFAULT_LIMIT),
            gc_auto: or_default(gc_auto, true),
            gc_reflog_days: or_default(gc_reflog_days, DEFAULT_REFLOG_DAYS),
            gc_max_bytes: or_default(gc_max_bytes, 0),
            gc_dead_percent: or_default(gc_dead_percent, DEFAULT_DEAD_PERCENT),
            gc_deleted_files: or_default(gc_deleted_files, DEFAULT_DELETED_FILES),
            roots: or_default(
                from_files(&layers, |settings| {
                    let roots = settings.serve.roots.as_ref()?;
                    Some(std::env::split_paths(roots).collect())
                }),
                Vec::new(),
            ),
            history_max_commits: or_default(from_files(&layers, |settings| settings.history.max_commits), 0),
            history_since: or_default(history_since, "always".to_owned()),
        })
    }

    /// Every setting as key, value and origin, for people.
    pub fn entries(&self) -> Vec<(&'static str, String, String)> {
        let model = self.model.value.as_ref();
        let mut entries = vec![
            shown("index.max_blob_bytes", &self.max_blob_bytes),
            (
                "embedding.model",
                model.map_or_else(|| "built-in".to_owned(), |folder| folder.display().to_string()),
                self.model.origin.to_string(),
            ),
        ];
        entries.extend(self.embedding.entries());
        entries.extend(self.sparse.entries());
        entries.extend(self.rerank.entries());
        entries.extend(self.qdrant.entries());
        entries.extend([
            shown("search.limit", &self.limit),
            ("serve.roots", self.roots_text(), self.roots.origin.to_string()),
            shown("gc.auto", &self.gc_auto),
            shown("gc.reflog_days", &self.gc_reflog_days),
            shown("gc.max_bytes", &self.gc_max_bytes),
            shown("gc.dead_percent", &self.gc_dead_percent),
            shown("gc.deleted_files", &self.gc_deleted_files),
            shown("history.max_commits", &self.history_max_commits),
            shown("history.since", &self.history_since),
        ]);
        entries
    }

    /// How an embedder elsewhere is asked, if one is set. Reads its key.
    pub fn remote_embedder(&self) -> Result<Option<EmbedderOptions>, ConfigError> {
        let model = self.model.value.as_deref().unwrap_or(Path::new(""));
        self.embedding.embedder_options(&model.to_string_lossy())
    }

    /// How a server for sparse vectors is asked, if one is set. Reads its key.
    pub fn remote_sparse(&self) -> Result<Option<SparseOptions>, ConfigError> {
        self.sparse.options()
    }

    /// What garbage is.
    pub fn collect_options(&self) -> CollectOptions {
        CollectOptions {
            reflog_days: self.gc_reflog_days.value,
            max_bytes: Some(self.gc_max_bytes.value).filter(|&max_bytes| max_bytes > 0),
            dead_percent: self.gc_dead_percent.value,
            deleted_files: self.gc_deleted_files.value,
        }
    }

    /// Which commits are recorded, at a moment in seconds since 1970.
    pub fn history_limit(&self, now: i64) -> HistoryLimit {
        HistoryLimit {
            max_commits: self.history_max_commits.value,
            since: since_of(&self.history_since, now).flatten(),
        }
    }

    fn roots_text(&self) -> String {
        let roots: Vec<String> = self.roots.value.iter().map(|root| root.display().to_string()).collect();
        if roots.is_empty() {
            "none".to_owned()
        } else {
            roots.join(":")
        }
    }

    /// What segments are made with.
    pub fn build_options(&self) -> BuildOptions {
        // Larger chunks than the room's own default: what finds the right lines best (docs/evaluation.md).
        let extract = extract::Options {
            target_bytes: 1_500,
            small_bytes: 500,
            max_bytes: 3_000,
            ..extract::Options::default()
        };
        let mut hasher = blake3::Hasher::new();
        let chunking = [
            extract.target_bytes,
            extract.small_bytes,
            extract.max_bytes,
            extract.overlap_lines,
        ];
        for number in chunking.into_iter().chain([extract::RECIPE_VERSION, RULES_VERSION]) {
            hasher.update(&number.to_le_bytes());
        }
        hasher.update(&self.max_blob_bytes.value.to_le_bytes());
        let recipe = u64::from_le_bytes(hasher.finalize().as_bytes()[..8].try_into().expect("eight bytes"));
        BuildOptions {
            extract,
            max_blob_bytes: self.max_blob_bytes.value,
            recipe,
            quantisation: Quantisation::default(),
            max_segment_bytes: MAX_SEGMENT_BYTES,
        }
    }
}

/// What the files say, the one that decides first.
fn layers(environment: &Environment, files: &RepositoryFiles) -> Result<Vec<(PathBuf, Settings)>, ConfigError> {
    let mut layers = Vec::new();
    if let Some(path) = &files.machine
        && let Some((settings, text)) = file::read(path)?
    {
        let is_trusted = Trusted::new(environment).contains(path, &text);
        match names_servers(&settings) {
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
        match not_for_repositories(&settings) {
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
        "{} is passed over: a repository inside another one does not configure itself",
        path.display()
    );
}

/// What a file sets that a repository may not: what is run, and what becomes of this machine's disk.
fn not_for_repositories(settings: &Settings) -> Option<&'static str> {
    names_servers(settings).or_else(|| (settings.gc != file::GcSettings::default()).then_some("gc"))
}

/// The first key of a file that is about servers, keys, models or roots.
pub(super) fn names_servers(settings: &Settings) -> Option<&'static str> {
    let servers = [
        settings.embedding.first_set(),
        settings.sparse.first_set(),
        settings.rerank.first_set(),
        settings.qdrant.first_set(),
    ];
    let roots = settings.serve.roots.as_ref().map(|_| "serve.roots");
    servers.into_iter().flatten().next().or(roots)
}

/// `Some(None)` for always; `None` for what is no moment.
fn since_of(since: &Setting<String>, now: i64) -> Option<Option<i64>> {
    match since.value.as_str() {
        "always" => Some(None),
        text => parse_moment(text, now).map(Some),
    }
}

/// A setting as key, value and origin.
pub(super) fn shown<T: ToString>(key: &'static str, setting: &Setting<T>) -> (&'static str, String, String) {
    (key, setting.value.to_string(), setting.origin.to_string())
}

/// [`shown`] for what need not be set.
pub(super) fn shown_or<T: ToString>(
    key: &'static str,
    setting: &Setting<Option<T>>,
    none: &str,
) -> (&'static str, String, String) {
    let value = setting.value.as_ref();
    let value = value.map_or_else(|| none.to_owned(), ToString::to_string);
    (key, value, setting.origin.to_string())
}

/// The value of an environment variable, if it is set.
pub(super) fn from_variable<T: FromStr>(
    name: &'static str,
    value: Option<&OsString>,
    expected: &'static str,
) -> Result<Option<Setting<T>>, ConfigError> {
    let Some(text) = value else {
        return Ok(None);
    };
    let origin = Origin::Environment(name);
    match text.to_str().and_then(|text| text.parse().ok()) {
        Some(value) => Ok(Some(Setting { value, origin })),
        None => Err(ConfigError::Value {
            origin,
            value: text.to_string_lossy().into_owned(),
            expected,
        }),
    }
}

pub(super) fn from_files<T>(
    layers: &[(PathBuf, Settings)],
    pick: impl Fn(&Settings) -> Option<T>,
) -> Option<Setting<T>> {
    layers.iter().find_map(|(path, settings)| {
        Some(Setting {
            value: pick(settings)?,
            origin: Origin::File(path.clone()),
        })
    })
}

/// One section of the settings files, the nearest first.
pub(super) struct Section<'a, S> {
    layers: &'a [(PathBuf, Settings)],
    of: fn(&Settings) -> &S,
}

impl<'a, S> Section<'a, S> {
    pub(super) fn new(layers: &'a [(PathBuf, Settings)], of: fn(&Settings) -> &S) -> Self {
        Self { layers, of }
    }

    pub(super) fn get<T>(&self, pick: impl Fn(&S) -> Option<T>) -> Option<Setting<T>> {
        from_files(self.layers, |settings| pick((self.of)(settings)))
    }

    pub(super) fn or<T>(&self, pick: impl Fn(&S) -> Option<T>, default: T) -> Setting<T> {
        or_default(self.get(pick), default)
    }

    pub(super) fn maybe<T>(&self, pick: impl Fn(&S) -> Option<T>) -> Setting<Option<T>> {
        maybe(self.get(pick))
    }
}

/// A setting that need not be set.
pub(super) fn maybe<T>(setting: Option<Setting<T>>) -> Setting<Option<T>> {
    let set = setting.map(|Setting { value, origin }| Setting {
        value: Some(value),
        origin,
    });
    or_default(set, None)
}

/// What a setting chooses by name.
pub(super) fn one_of<T: Copy>(
    setting: &Setting<String>,
    choices: &[(&str, T)],
    expected: &'static str,
) -> Result<T, ConfigError> {
    let found = choices.iter().find(|(name, _)| *name == setting.value);
    found.map(|(_, choice)| *choice).ok_or_else(|| ConfigError::Value {
        origin: setting.origin.clone(),
        value: setting.value.clone(),
        expected,
    })
}

pub(super) fn or_default<T>(setting: Option<Setting<T>>, default: T) -> Setting<T> {
    setting.unwrap_or(Setting {
        value: default,
        origin: Origin::Default,
    })
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::config::{trust, untrusted_key};

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
        assert_eq!((config.max_blob_bytes.value, config.limit.value), (10, 3));
        assert_eq!(config.limit.origin, Origin::File(repository.clone()));

        let environment = Environment {
            max_blob_bytes: Some("30".into()),
            ..Environment::default()
        };
        let config = resolve(
            &Overrides {
                limit: Some(7),
                ..Overrides::default()
            },
            &environment,
        );
        assert_eq!((config.max_blob_bytes.value, config.limit.value), (30, 7));
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
        let environment = Environment {
            gc_max_bytes: Some("9000000000".into()),
            gc_reflog_days: Some("0".into()),
            gc_auto: Some("false".into()),
            ..Environment::default()
        };
        let config = resolve(&environment).unwrap();
        let options = config.collect_options();
        assert_eq!((options.reflog_days, options.max_bytes), (0, Some(9_000_000_000)));
        assert!(!config.gc_auto.value);
        let wrong = Environment {
            gc_auto: Some("perhaps".into()),
            ..Environment::default()
        };
        assert!(matches!(resolve(&wrong), Err(ConfigError::Value { .. })));
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
            "[qdrant]\nrepository = 'theirs'",
            "[gc]\nmax_bytes = 1",
            "[serve]\nroots = '/'",
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
        ] {
            std::fs::write(&machine, format!("{text}\n[search]\nlimit = 3\n")).unwrap();
            assert!(
                matches!(resolve(&environment, false), Err(ConfigError::NotTrusted { .. })),
                "{text}"
            );
            assert_eq!(
                resolve(&environment, true).unwrap().limit.value,
                DEFAULT_LIMIT,
                "{text}"
            );
            assert!(untrusted_key(&machine, &environment).unwrap().is_some(), "{text}");
            trust(&machine, &environment).unwrap();
            assert_eq!(resolve(&environment, false).unwrap().limit.value, 3, "{text}");
            assert_eq!(resolve(&environment, true).unwrap().limit.value, 3, "{text}");
            assert!(resolve(&Environment::default(), false).is_err(), "{text}");
        }
        // Without servers it needs no record, but not where somebody else may have put it.
        std::fs::write(&machine, "[search]\nlimit = 3\n").unwrap();
        assert_eq!(resolve(&environment, false).unwrap().limit.value, 3);
        assert_eq!(resolve(&environment, true).unwrap().limit.value, DEFAULT_LIMIT);
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
                .limit
        };
        assert_eq!((limit().value, limit().origin), (4, Origin::File(link)));
        std::fs::write(&committed, "[search]\nlimit = 5\n").unwrap();
        assert_eq!(limit().value, 5);
    }
}
