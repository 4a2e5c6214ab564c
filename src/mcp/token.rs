//! The bearer tokens of the HTTP server: its own, and those of the readers of a fleet.

use std::collections::HashMap;
use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use super::hub::{Hub, Mark};
use crate::config::{Environment, is_trusted, trust_text};
use crate::mcp::HttpOptions;
use crate::model::random_token;
use crate::session::{Context as _, FleetFolder, Result, bail, check_output_from};

/// Minimum length of a token. Shorter tokens are too easy to guess.
const MIN_TOKEN_BYTES: usize = 16;
const MAX_TOKEN_BYTES: usize = 1024;

/// The authorization that requests need.
#[derive(Clone)]
pub(super) enum Access {
    /// None. Every client that can reach the address may make calls.
    Open,
    /// The token with this hash must be sent.
    Token(blake3::Hash),
    /// The token of a reader of a fleet must be sent, or the server's own.
    Readers(Arc<Readers>),
}

/// The tokens of a fleet: those of its readers, as its settings name them now, and the server's own.
pub(super) struct Readers {
    folder: FleetFolder,
    own: Own,
    known: Mutex<Option<(Mark, Arc<Admitted>)>>,
}

/// The server's own access, which shows everything.
enum Own {
    /// The token that the user gave.
    Given(blake3::Hash),
    /// A generated token, which counts as long as there are no readers.
    Generated(blake3::Hash),
    /// No token is needed as long as there are no readers.
    Open,
    /// There is none.
    Nothing,
}

/// The groups that each token shows. Readers without an existing group are left out.
struct Admitted {
    has_readers: bool,
    groups: HashMap<blake3::Hash, Vec<String>>,
}

impl Readers {
    /// Returns the groups that a token shows; none for everything.
    fn groups(&self, token: Option<blake3::Hash>) -> Option<Vec<String>> {
        let admitted = self.current()?;
        let is_own = match self.own {
            Own::Given(own) => token == Some(own),
            Own::Generated(own) => token == Some(own) && !admitted.has_readers,
            Own::Open => !admitted.has_readers,
            Own::Nothing => false,
        };
        if is_own {
            return Some(Vec::new());
        }
        admitted.groups.get(&token?).cloned()
    }

    /// Returns the readers; `None` if the settings cannot be read.
    fn current(&self) -> Option<Arc<Admitted>> {
        let mark = Mark::of(self.folder.settings());
        let mut known = self.known.lock();
        if let Some((_, admitted)) = known.as_ref().filter(|(read, _)| *read == mark) {
            return Some(Arc::clone(admitted));
        }
        let admitted = Admitted::of(&self.folder)
            .inspect_err(|error| tracing::warn!("no token is accepted: {error:#}"))
            .ok()?;
        let admitted = Arc::new(admitted);
        *known = Some((mark, Arc::clone(&admitted)));
        Some(admitted)
    }
}

impl Admitted {
    fn of(folder: &FleetFolder) -> Result<Self> {
        let links = folder.config()?.links;
        let readers = links.readers();
        let has_readers = !readers.is_empty();
        let groups = readers.into_iter().filter_map(|(name, reader)| {
            let (mut groups, _) = links.groups_of(&reader);
            groups.sort_unstable();
            groups.dedup();
            if groups.is_empty() && !reader.groups.is_empty() {
                tracing::warn!("the groups of reader {name} do not exist");
                return None;
            }
            Some((reader.token, groups))
        });
        let groups = groups.collect();
        Ok(Self { has_readers, groups })
    }
}

impl Access {
    fn of(token: &str) -> Self {
        Self::Token(blake3::hash(token.as_bytes()))
    }

    /// Returns true if everything is shown without a token.
    pub(super) fn is_open(&self) -> bool {
        match self {
            Self::Open => true,
            Self::Token(_) => false,
            Self::Readers(readers) => matches!(readers.own, Own::Open),
        }
    }

    /// Returns the groups of a fleet that a request with this `Authorization` header may see; none for everything that
    /// the server shows. Returns `None` if the request is not authorized. Compares hashes in constant time.
    pub(super) fn groups(&self, header: Option<&[u8]>) -> Option<Vec<String>> {
        let given = header.and_then(|header| {
            let (scheme, token) = header.split_at_checked(7)?;
            let is_bearer = scheme.eq_ignore_ascii_case(b"bearer ");
            is_bearer.then(|| blake3::hash(token.trim_ascii()))
        });
        match self {
            Self::Open => Some(Vec::new()),
            Self::Token(expected) => (given? == *expected).then(Vec::new),
            Self::Readers(readers) => readers.groups(given),
        }
    }
}

/// Chooses the tokens that a server for all groups of a fleet accepts: those of its readers and its own.
pub(super) fn choose_of_fleet(
    options: &HttpOptions,
    default_file: Option<PathBuf>,
    folder: &FleetFolder,
) -> Result<Access> {
    let has_readers = Admitted::of(folder)?.has_readers;
    if has_readers && options.no_token {
        bail!("the readers in fleet.toml need tokens; leave out --no-token");
    }
    let is_given = options.token_file.is_some() || Environment::read().token.is_some();
    let own = if has_readers && !is_given {
        Own::Nothing
    } else {
        match choose(options, default_file)? {
            Access::Token(own) if is_given => Own::Given(own),
            Access::Token(own) => Own::Generated(own),
            _ => Own::Open,
        }
    };
    Ok(Access::Readers(Arc::new(Readers {
        folder: folder.clone(),
        own,
        known: Mutex::default(),
    })))
}

/// Chooses the token: from the environment variable, or else from the token file, or else a new token. A new token is
/// written to a file and printed to standard error.
pub(super) fn choose(options: &HttpOptions, default_file: Option<PathBuf>) -> Result<Access> {
    if options.no_token {
        return Ok(Access::Open);
    }
    let environment = Environment::read();
    if let Some(token) = &environment.token {
        return checked(token, "CODESCOUT_TOKEN").map(|token| Access::of(&token));
    }
    match &options.token_file {
        Some(file) if file.exists() => read(file).map(|token| Access::of(&token)),
        Some(file) => {
            check_output_from(Path::new("."), file)?;
            generate(&random_token()?, Some(file.clone()))
        }
        // Reuses a valid token of the last run, so that clients still work after a restart of the server. The maker of
        // an archive knows the token in it, so it must be recorded.
        None => match default_file
            .as_deref()
            .filter(|file| is_trusted(file, &environment))
            .map(|file| (file, read(file)))
        {
            Some((file, Ok(token))) => {
                print_token_file(file);
                Ok(Access::of(&token))
            }
            _ => {
                let token = random_token()?;
                let access = generate(&token, default_file.clone())?;
                let text = format!("{token}\n");
                if let Some(error) = default_file.and_then(|file| trust_text(&file, &text, &environment).err()) {
                    tracing::warn!("the next start makes another token: {error}");
                }
                Ok(access)
            }
        },
    }
}

fn print_token_file(file: &Path) {
    // Continues if standard error is closed, because the token file is in the sidecar.
    let _ = writeln!(std::io::stderr(), "codescout: the token is in {}", file.display());
}

/// Returns the path of the token file in the sidecar of the default repository, if the sidecar exists.
pub(super) fn default_file(hub: &Hub) -> Option<PathBuf> {
    let session = hub.session(None).ok()?;
    let root = session.workspace.storage.root().to_owned();
    root.is_dir().then(|| root.join("serve-token"))
}

fn checked(token: &str, origin: &str) -> Result<String> {
    let token = token.trim();
    if !(MIN_TOKEN_BYTES..=MAX_TOKEN_BYTES).contains(&token.len()) || !token.bytes().all(|byte| byte.is_ascii_graphic())
    {
        bail!("{origin}: a token must have {MIN_TOKEN_BYTES} to {MAX_TOKEN_BYTES} visible ASCII characters");
    }
    Ok(token.to_owned())
}

fn read(file: &Path) -> Result<String> {
    let metadata = fs::metadata(file).with_context(|| format!("cannot read {}", file.display()))?;
    if metadata.mode() & 0o077 != 0 {
        bail!("{0} is readable by other users; run: chmod 600 {0}", file.display());
    }
    if metadata.len() > 2 * MAX_TOKEN_BYTES as u64 {
        bail!("{} is too large for a token file", file.display());
    }
    let text = fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    checked(&text, &file.display().to_string())
}

fn generate(token: &str, file: Option<PathBuf>) -> Result<Access> {
    let mut text = format!("codescout: token {token}\n");
    if let Some(file) = file {
        // The file is replaced, not overwritten, because an existing file may have wider permissions.
        let _ = fs::remove_file(&file);
        fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&file)
            .and_then(|mut kept| writeln!(kept, "{token}"))
            .with_context(|| format!("cannot write {}", file.display()))?;
        text.push_str(&format!("codescout: the token is in {}\n", file.display()));
    }
    // Continues if standard error is closed, because the token is in the file.
    let _ = std::io::stderr().write_all(text.as_bytes());
    Ok(Access::of(token))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_token_is_authorized() {
        let access = Access::of("0123456789abcdef");
        let allows = |header| access.groups(header).is_some();
        assert!(allows(Some(b"Bearer 0123456789abcdef")));
        assert!(allows(Some(b"bearer  0123456789abcdef ")));
        for wrong in [
            "",
            "Bearer",
            "Bearer ",
            "Bearer 0123456789abcdeF",
            "Basic 0123456789abcdef",
            "0123456789abcdef",
        ] {
            assert!(!allows(Some(wrong.as_bytes())), "{wrong:?}");
        }
        assert!(!allows(None));
        assert!(Access::Open.groups(None).is_some());
    }

    #[test]
    fn short_tokens_are_refused() {
        assert!(checked("short", "x").is_err());
        assert!(checked("with space 0123456789", "x").is_err());
        assert_eq!(
            checked(" 0123456789abcdef\n", "x").ok().as_deref(),
            Some("0123456789abcdef")
        );
    }
}
