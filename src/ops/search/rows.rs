//! The rows of an answer.

use std::sync::Arc;

use serde::Serialize;

use super::asked::Facts;
use super::commits::{self, DiffOut, MessageOut};
use super::pack::{self, PackOut};
use super::past::LifeOut;
use super::ranked::Facets;
use crate::extract::DefinitionKind;
use crate::link::DefId;
use crate::ops::ask::Detail;
use crate::ops::op::Row;
use crate::ops::sink::{Sink, Style, Whole};
use crate::query::Marks;

/// The fields of the answer other than its rows.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum SearchFacts {
    Code(Facts),
    Commits(commits::Facts),
    Pack(pack::Facts),
}

impl SearchFacts {
    /// Returns what a search for code can be narrowed to.
    pub(crate) fn facets(&self) -> Option<&Facets> {
        match self {
            Self::Code(facts) => Some(&facts.facets),
            _ => None,
        }
    }
}

/// A result.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum SearchRow {
    Code(Box<ResultOut>),
    Message(MessageOut),
    Diff(DiffOut),
    Pack(Box<PackOut>),
}

/// A search result.
#[derive(Debug, Serialize)]
pub(crate) struct ResultOut {
    pub(crate) path: String,
    pub(crate) start_line: u32,
    pub(crate) end_line: u32,
    pub(crate) score: f32,
    pub(crate) language: &'static str,
    pub(crate) kind: String,
    /// How the result matches: `path`, `name`, `exact_text`, `all_words`, `some_words` or `meaning`.
    #[serde(rename = "match", skip_serializing_if = "Option::is_none")]
    pub(crate) matched_by: Option<&'static str>,
    pub(crate) symbol: Option<String>,
    /// Number of sure calls of the definition.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) callers: Option<usize>,
    /// The definition at the first place, if it is a function that the query names.
    #[serde(skip)]
    pub(crate) function: Option<(DefId, DefinitionKind)>,
    pub(crate) blob: String,
    /// Further parts of the file that match, then other locations of the same text.
    pub(crate) places: Vec<PlaceOut>,
    /// Number of further parts that are omitted from `places`.
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) more_places: usize,
    /// The locations of the text in each revision, if several were searched.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) refs: Vec<RefPlacesOut>,
    /// The commits between which the text existed, if all history was searched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) life: Option<LifeOut>,
    /// The signature on one line, if it is not in the snippet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) signature: Option<String>,
    /// The first line of the signature.
    #[serde(skip)]
    pub(crate) signature_line: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) snippet: Option<String>,
    pub(crate) snippet_start_line: u32,
    /// The parts of the snippet that are highlighted.
    #[serde(skip)]
    pub(crate) marks: Option<Arc<Marks>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) features: Option<serde_json::Map<String, serde_json::Value>>,
}

/// Another part of the file that matches, or another location of the same text.
#[derive(Debug, Serialize)]
pub(crate) struct PlaceOut {
    pub(crate) path: String,
    pub(crate) start_line: u32,
    pub(crate) end_line: u32,
    /// The definition, if the part differs from the result's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) symbol: Option<String>,
    /// The best lines of a part of the same file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) snippet: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) snippet_start_line: Option<u32>,
    /// True for a part of the same file.
    #[serde(skip)]
    pub(crate) is_part: bool,
}

/// The locations of a text in one of several revisions.
#[derive(Debug, Serialize)]
pub(crate) struct RefPlacesOut {
    #[serde(rename = "ref")]
    pub(crate) reference: String,
    pub(crate) places: Vec<PlaceOut>,
}

impl Row for SearchRow {
    const IS_SPACED: bool = true;

    fn is_apart(&self) -> bool {
        match self {
            Self::Pack(item) => item.is_first,
            _ => Self::IS_SPACED,
        }
    }

    fn render(&self, out: &mut dyn Sink) {
        match self {
            Self::Code(result) => result.render(out),
            Self::Message(message) => message.render(out),
            Self::Diff(diff) => diff.render(out),
            Self::Pack(item) => item.render(out),
        }
    }

    fn bodies(&mut self) -> Vec<&mut Option<String>> {
        match self {
            Self::Code(result) => vec![&mut result.snippet],
            Self::Pack(item) => vec![&mut item.text],
            Self::Message(_) | Self::Diff(_) => Vec::new(),
        }
    }
}

impl ResultOut {
    /// Shortens matching lines according to `detail`.
    pub(super) fn cut_lines(&mut self, detail: Detail) {
        match detail {
            Detail::Ids => self.snippet = None,
            Detail::Outline => {
                if let Some(snippet) = &mut self.snippet {
                    snippet.truncate(first_lines(snippet, 1).len());
                }
            }
            Detail::Preview | Detail::Full | Detail::Pack => {}
        }
    }

    fn render(&self, out: &mut dyn Sink) {
        out.span(Style::Path, &format!("{}:{}", self.path, self.start_line));
        if self.kind != "line" {
            out.span(Style::Fact, &format!("-{} {}", self.end_line, self.kind));
            if let Some(symbol) = &self.symbol {
                out.span(Style::Name, &format!(" {symbol}"));
            }
            if let Some(callers) = self.callers {
                out.span(Style::Fact, &format!(" called by {callers}"));
            }
            if let Some(matched_by) = self.matched_by {
                out.span(Style::Fact, &format!(" · {}", matched_by.replace('_', " ")));
            }
        }
        let (further, copies): (Vec<_>, Vec<_>) = self.places.iter().partition(|place| place.is_part);
        for place in copies {
            out.span(Style::Fact, &format!(" also {}:{}", place.path, place.start_line));
        }
        out.end();
        let mut shown: Vec<(u32, &str)> = Vec::new();
        shown.extend(
            self.signature
                .as_deref()
                .map(|signature| (self.signature_line, signature)),
        );
        shown.extend(
            self.snippet
                .as_deref()
                .map(|snippet| (self.snippet_start_line, snippet)),
        );
        shown.sort_by_key(|(line, _)| *line);
        for (line, text) in shown {
            render_preview(line, text, self.language, self.marks.as_deref(), out);
        }
        let fact = |text: String, out: &mut dyn Sink| {
            out.span(Style::Fact, &format!("       {text}"));
            out.end();
        };
        let (shown, listed): (Vec<_>, Vec<_>) = further.into_iter().partition(|part| part.snippet.is_some());
        for part in shown {
            fact(format!("also {}", part.to_part()), out);
            let snippet = part.snippet.as_deref().unwrap_or_default();
            render_preview(
                part.snippet_start_line.unwrap_or_default(),
                snippet,
                self.language,
                self.marks.as_deref(),
                out,
            );
        }
        let mut listed: Vec<String> = listed.into_iter().map(PlaceOut::to_part).collect();
        listed.extend((self.more_places > 0).then(|| format!("{} more", self.more_places)));
        if !listed.is_empty() {
            fact(format!("also {}", listed.join(", ")), out);
        }
        if let Some(life) = &self.life {
            fact(life.to_text(), out);
        }
        for found in &self.refs {
            let places = found.places.iter();
            let places: Vec<String> = places
                .map(|place| format!("{}:{}", place.path, place.start_line))
                .collect();
            fact(format!("in {}: {}", found.reference, places.join(", ")), out);
        }
        if let Some(features) = &self.features {
            let features = features.iter();
            let features: Vec<String> = features.map(|(name, value)| format!("{name}={value:.3}")).collect();
            let scores = format!("score={:.3} {}", self.score, features.join(" "));
            fact(scores, &mut Whole(out));
        }
    }
}

impl PlaceOut {
    /// Returns the lines and the definition, without the path.
    fn to_part(&self) -> String {
        let symbol = self.symbol.as_ref().map(|symbol| format!(" {symbol}"));
        format!("{}-{}{}", self.start_line, self.end_line, symbol.unwrap_or_default())
    }
}

/// Writes the lines of a text with their numbers, and with its marked parts as matches.
pub(super) fn render_preview(first: u32, text: &str, language: &str, marks: Option<&Marks>, out: &mut dyn Sink) {
    out.code(first, text, language, |line| {
        marks.map(|marks| marks.spans(line)).unwrap_or_default()
    });
}

/// Returns the first lines of a text, without the last line break.
fn first_lines(text: &str, n_lines: usize) -> &str {
    let end = text.match_indices('\n').nth(n_lines.saturating_sub(1));
    end.map_or(text, |(at, _)| &text[..at])
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}
