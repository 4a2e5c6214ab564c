//! Reads a query for a store that chooses the files which may answer it.

use super::reading::read;
use crate::extract::{by_name, language};
use crate::index::lexical::{for_each_term, normal_name};

/// What a query looks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sought {
    /// The text to compare by meaning. Empty for a name alone.
    pub text: String,
    /// The terms, each once.
    pub terms: Vec<String>,
    /// Names that definitions may have, in [normal form](crate::index::lexical::normal_name).
    pub names: Vec<String>,
    /// Names of languages, one of which a file must have. Empty for all.
    pub langs: Vec<String>,
}

impl Sought {
    /// Reads a query of a search.
    pub fn by_query(query: &str) -> Self {
        let reading = read(query);
        let mut sought = Self {
            terms: reading.analysis.terms,
            names: reading.analysis.names.into_iter().map(|name| name.name).collect(),
            text: reading.text,
            ..Self::default()
        };
        for place in &reading.places {
            for_each_term(&place.path, |term| sought.terms.push(term.to_owned()));
        }
        for name in reading.names.iter().flatten() {
            sought.names.push(normal_name(name));
        }
        sought.sorted()
    }

    /// Looks for the definitions of a name and the files that contain it.
    pub fn by_name(name: &str) -> Self {
        let bare = name.rsplit(['#', ':', '.', '/']).next().unwrap_or(name);
        let mut sought = Self {
            names: vec![normal_name(bare)],
            ..Self::default()
        };
        for_each_term(bare, |term| sought.terms.push(term.to_owned()));
        sought.sorted()
    }

    /// Wants only files in these languages, as typed. Without effect if one of them is unknown.
    pub fn in_langs(mut self, typed: &[String]) -> Self {
        let known = typed.iter().map(|name| Some(language(by_name(name)?)?.name.to_owned()));
        self.langs = known.collect::<Option<_>>().unwrap_or_default();
        self
    }

    fn sorted(mut self) -> Self {
        for list in [&mut self.terms, &mut self.names] {
            list.retain(|text| !text.is_empty());
            list.sort_unstable();
            list.dedup();
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_places_are_sought() {
        let sought = Sought::by_query("where does src/upload.rs:10 call retry_upload");
        assert!(sought.names.contains(&normal_name("retry_upload")), "{sought:?}");
        assert!(sought.terms.contains(&"upload".to_owned()), "{sought:?}");
        assert_eq!(Sought::by_name("Queue::push").names, [normal_name("push")]);
    }
}
