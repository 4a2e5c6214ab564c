//! Converts between paths and `file:` URIs.

use std::ffi::OsString;
use std::fmt::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use lsp_types::Uri;

/// Returns the URI of an absolute path. All bytes but unreserved ones (RFC 3986, section 2.3) are percent-encoded.
pub(super) fn uri_of(path: &Path) -> Uri {
    let mut text = "file://".to_owned();
    for &byte in path.as_os_str().as_bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte) {
            text.push(byte.into());
        } else {
            write!(text, "%{byte:02X}").expect("strings can be written");
        }
    }
    Uri::from_str(&text).expect("only unreserved and encoded bytes")
}

/// Returns the path of a `file:` URI of this machine, and `None` for other URIs.
pub(super) fn path_of(uri: &Uri) -> Option<PathBuf> {
    let (scheme, rest) = uri.as_str().split_once(':')?;
    let path = rest.strip_prefix("//").map_or(Some(rest), |rest| {
        let start = rest.find('/')?;
        matches!(&rest[..start], "" | "localhost").then_some(&rest[start..])
    })?;
    let bytes = decoded(path.split(['?', '#']).next()?)?;
    let is_path = scheme.eq_ignore_ascii_case("file") && bytes.starts_with(b"/") && !bytes.contains(&0);
    is_path.then(|| OsString::from_vec(bytes).into())
}

fn decoded(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        if *first != b'%' {
            bytes.push(*first);
            rest = after;
            continue;
        }
        let digits = std::str::from_utf8(after.get(..2)?).ok()?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = &after[2..];
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn paths_survive_the_round_trip() {
        for path in ["/a/b.py", "/with space/ä#?%20[x]/😀.ts", "/c++/a:b@c.rs"] {
            assert_eq!(path_of(&uri_of(Path::new(path))), Some(PathBuf::from(path)));
        }
        let odd = PathBuf::from(OsString::from_vec(b"/not \xff utf-8".to_vec()));
        assert_eq!(path_of(&uri_of(&odd)), Some(odd));
    }

    #[test]
    fn only_files_of_this_machine_have_paths() {
        let path = |text| path_of(&Uri::from_str(text).unwrap());
        assert_eq!(path("file:///a%2Bb"), Some("/a+b".into()));
        assert_eq!(path("file://localhost/a"), Some("/a".into()));
        for other in [
            "file://elsewhere/a",
            "http://localhost/a",
            "untitled:a",
            "file:///a%00b",
        ] {
            assert_eq!(path(other), None, "{other}");
        }
    }
}
