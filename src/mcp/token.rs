//! The bearer tokens of the HTTP server: its own, and those of the readers of a fleet.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use super::hub::{Hub, Mark};
use crate::config::{Environment, Reader, is_trusted, trust_text};
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

/// The readers of a fleet, as its settings name them now.
pub(super) struct Readers {
    folder: FleetFolder,
    /// The token that shows everything, if the server has one.
    own: Option<blake3::Hash>,
    known: Mutex<Option<(Mark, Arc<Vec<Reader>>)>>,
}

impl Readers {
    /// Returns the groups that a token shows.
    fn groups(&self, token: blake3::Hash) -> Option<Vec<String>> {
        if self.own == Some(token) {
            return Some(Vec::new());
        }
        let readers = self.current();
        let reader = readers.iter().find(|reader| reader.token == token)?;
        Some(reader.groups.clone())
    }

    /// Returns the readers. There are none if the settings cannot be read.
    fn current(&self) -> Arc<Vec<Reader>> {
        let mark = Mark::of(self.folder.settings());
        let mut known = self.known.lock();
        if let Some((_, readers)) = known.as_ref().filter(|(read, _)| *read == mark) {
            return Arc::clone(readers);
        }
        let readers = readers(&self.folder).unwrap_or_else(|error| {
            tracing::warn!("no reader is admitted: {error:#}");
            Vec::new()
        });
        let readers = Arc::new(readers);
        *known = Some((mark, Arc::clone(&readers)));
        readers
    }
}

fn readers(folder: &FleetFolder) -> Result<Vec<Reader>> {
    Ok(folder.config()?.links.readers().into_values().collect())
}

impl Access {
    fn of(token: &str) -> Self {
        Self::Token(blake3::hash(token.as_bytes()))
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
            Self::Readers(readers) => readers.groups(given?),
        }
    }
}

/// Chooses who is admitted to a server for all groups of a fleet: its readers, and who has the server's own token. If
/// there are readers, the server has a token of its own only if the user gave one.
pub(super) fn choose_of_fleet(
    options: &HttpOptions,
    default_file: Option<PathBuf>,
    folder: &FleetFolder,
) -> Result<Access> {
    let has_readers = !readers(folder)?.is_empty();
    if has_readers && options.no_token {
        bail!("the readers in fleet.toml need tokens; leave out --no-token");
    }
    let has_own = options.token_file.is_some() || Environment::read().token.is_some();
    let own = match (!has_readers || has_own)
        .then(|| choose(options, default_file))
        .transpose()?
    {
        Some(Access::Token(own)) => Some(own),
        Some(other) => return Ok(other),
        None => None,
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
