//! Reads the symbols of SCIP: `scheme manager package version descriptors`.

use std::borrow::Cow;

/// The parts of a global symbol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Symbol<'a> {
    /// Scheme, manager and package, each followed by a space. A package is the same in all of its versions.
    pub(super) package: &'a str,
    /// The path of the definition in the package.
    pub(super) descriptors: &'a str,
    /// The name of the last descriptor.
    pub(super) name: Cow<'a, str>,
    /// The name of the descriptor before it, or an empty text.
    pub(super) outer: Cow<'a, str>,
    /// The last character, which names the kind of the last descriptor.
    pub(super) suffix: u8,
}

impl<'a> Symbol<'a> {
    /// Splits a symbol. Returns `None` for local and malformed ones.
    pub(super) fn parse(raw: &'a str) -> Option<Self> {
        if raw.starts_with("local ") {
            return None;
        }
        let (package, rest) = raw.split_at_checked(end_of_package(raw)?)?;
        Self::of_parts(package, &rest[end_of_field(rest)?..])
    }

    /// Splits a symbol without the version of its package.
    pub(super) fn of_key(key: &'a str) -> Option<Self> {
        let (package, descriptors) = key.split_at_checked(end_of_package(key)?)?;
        Self::of_parts(package, descriptors)
    }

    fn of_parts(package: &'a str, descriptors: &'a str) -> Option<Self> {
        let (mut name, mut outer) = (Cow::Borrowed(""), Cow::Borrowed(""));
        let mut left = descriptors;
        while !left.is_empty() {
            let (next, after) = descriptor(left)?;
            outer = std::mem::replace(&mut name, next);
            left = after;
        }
        if name.is_empty() {
            return None;
        }
        Some(Self {
            package,
            descriptors,
            name,
            outer,
            suffix: *descriptors.as_bytes().last()?,
        })
    }

    /// Returns the symbol without the version of its package, so that facts of several versions fit together.
    pub(super) fn key(&self) -> String {
        [self.package, self.descriptors].concat()
    }
}

/// Returns the length of the scheme, the manager and the package, each with its space.
pub(super) fn end_of_package(key: &str) -> Option<usize> {
    (0..3).try_fold(0, |start, _| Some(start + end_of_field(&key[start..])?))
}

/// Returns the length of the first field with its space. A space in a field is doubled.
fn end_of_field(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = 0;
    loop {
        at += bytes.get(at..)?.iter().position(|&byte| byte == b' ')? + 1;
        if bytes.get(at) != Some(&b' ') {
            return Some(at);
        }
        at += 1;
    }
}

/// Returns the name of the first descriptor, and what follows the descriptor.
fn descriptor(text: &str) -> Option<(Cow<'_, str>, &str)> {
    for (open, close) in [('[', ']'), ('(', ')')] {
        if let Some(inner) = text.strip_prefix(open) {
            let (name, rest) = name(inner)?;
            return Some((name, rest.strip_prefix(close)?));
        }
    }
    let (name, rest) = name(text)?;
    if let Some(disambiguator) = rest.strip_prefix('(') {
        let end = disambiguator.find(").")?;
        return Some((name, &disambiguator[end + 2..]));
    }
    let rest = rest.strip_prefix(['/', '#', '.', ':', '!'])?;
    Some((name, rest))
}

fn name(text: &str) -> Option<(Cow<'_, str>, &str)> {
    let Some(quoted) = text.strip_prefix('`') else {
        let end = text.find(['/', '#', '.', ':', '!', '(', ')', '[', ']', '`'])?;
        return Some((Cow::Borrowed(&text[..end]), &text[end..]));
    };
    let mut end = 0;
    loop {
        end += quoted[end..].find('`')?;
        if !quoted[end + 1..].starts_with('`') {
            break;
        }
        end += 2;
    }
    let name = &quoted[..end];
    let name = if name.contains("``") {
        Cow::Owned(name.replace("``", "`"))
    } else {
        Cow::Borrowed(name)
    };
    Some((name, &quoted[end + 1..]))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn parts(raw: &str) -> Option<(String, String, String)> {
        let symbol = Symbol::parse(raw)?;
        assert_eq!(Symbol::of_key(&symbol.key()), Some(symbol.clone()));
        Some((symbol.key(), symbol.name.into_owned(), symbol.outer.into_owned()))
    }

    #[test]
    fn a_symbol_loses_the_version_of_its_package() {
        let (key, name, outer) = parts("scip-python python flask 3.1 `flask.app`/Flask#run().").unwrap();
        assert_eq!(key, "scip-python python flask `flask.app`/Flask#run().");
        assert_eq!((name.as_str(), outer.as_str()), ("run", "Flask"));
        let (key, name, _) = parts("rust-analyzer cargo a  b 1.0 x/impl#[T][`A``B`]new().(y)").unwrap();
        assert_eq!(
            (key.as_str(), name.as_str()),
            ("rust-analyzer cargo a  b x/impl#[T][`A``B`]new().(y)", "y")
        );
        assert_eq!(&key[..end_of_package(&key).unwrap()], "rust-analyzer cargo a  b ");
    }

    #[test]
    fn local_and_malformed_symbols_are_left_out() {
        for raw in [
            "local 3",
            "",
            "a b c d",
            "a b c d ",
            "a b c d `x",
            "a b c d x",
            "a b c d x(",
            " ",
            "a b c d []",
        ] {
            assert_eq!(parts(raw), None, "{raw}");
        }
    }
}
