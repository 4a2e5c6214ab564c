//! Corrects names and email addresses with the mailmap of a repository.
//!
//! Source: git's `gitmailmap` manual page. The mailmap is applied when records are read, so that changing it also
//! affects recorded commits.

use std::collections::HashMap;

use bstr::{BString, ByteSlice};

use super::record::Who;

/// The entries of a mailmap.
#[derive(Clone, Debug, Default)]
pub struct Mailmap {
    /// Maps an address in lower case, and a name in lower case if the entry has one, to the correct name and address.
    entries: HashMap<(Vec<u8>, Option<Vec<u8>>), Proper>,
}

#[derive(Clone, Debug, Default)]
struct Proper {
    name: Option<BString>,
    email: Option<BString>,
}

impl Mailmap {
    /// Parses a mailmap. Skips invalid lines. Later lines take precedence.
    pub fn parse(text: &[u8]) -> Self {
        let mut mailmap = Self::default();
        for line in text.lines() {
            mailmap.add(line);
        }
        mailmap
    }

    fn add(&mut self, line: &[u8]) -> Option<()> {
        if line.trim().starts_with(b"#") {
            return None;
        }
        let (name, email, rest) = name_and_email(line)?;
        let given = |text: &[u8]| (!text.is_empty()).then(|| BString::from(text));
        match name_and_email(rest) {
            Some((old_name, old_email, _)) => {
                let old_name = (!old_name.is_empty()).then(|| old_name.to_lowercase());
                let entry = self.entries.entry((old_email.to_lowercase(), old_name)).or_default();
                entry.name = given(name).or(entry.name.take());
                entry.email = given(email).or(entry.email.take());
            }
            None => {
                let entry = self.entries.entry((email.to_lowercase(), None)).or_default();
                entry.name = given(name).or(entry.name.take());
            }
        }
        Some(())
    }

    /// Returns the correct name and address of a person.
    pub fn resolve(&self, who: &Who) -> Who {
        let email = who.email.to_lowercase();
        let named = self.entries.get(&(email.clone(), Some(who.name.to_lowercase())));
        let Some(proper) = named.or_else(|| self.entries.get(&(email, None))) else {
            return who.clone();
        };
        Who {
            name: proper.name.clone().unwrap_or_else(|| who.name.clone()),
            email: proper.email.clone().unwrap_or_else(|| who.email.clone()),
        }
    }
}

/// Splits `name <address> rest` into its three parts.
fn name_and_email(text: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let open = text.find_byte(b'<')?;
    let close = open + text[open..].find_byte(b'>')?;
    Some((text[..open].trim(), text[open + 1..close].trim(), &text[close + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn who(name: &str, email: &str) -> Who {
        Who {
            name: name.into(),
            email: email.into(),
        }
    }

    #[test]
    fn the_four_forms_of_a_line() {
        let mailmap = Mailmap::parse(
            b"# comment\nProper One <one@x>\n<two@proper> <two@x>\nProper Three <three@proper> <three@x>\n\
              Proper Four <four@proper> Nick <shared@x>\nnot a line\n",
        );
        assert_eq!(mailmap.resolve(&who("o", "ONE@x")), who("Proper One", "ONE@x"));
        assert_eq!(mailmap.resolve(&who("t", "two@x")), who("t", "two@proper"));
        assert_eq!(
            mailmap.resolve(&who("t", "three@x")),
            who("Proper Three", "three@proper")
        );
        assert_eq!(
            mailmap.resolve(&who("nick", "shared@x")),
            who("Proper Four", "four@proper")
        );
        assert_eq!(mailmap.resolve(&who("other", "shared@x")), who("other", "shared@x"));
    }
}
