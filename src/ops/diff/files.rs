//! The files and definitions that differ, as they are shown.

use serde::Serialize;

use crate::extract;
use crate::git::FileMode;
use crate::history::{Change, Entry, SymbolDelta, SymbolKey};
use crate::model::{RepoPath, typed, without_placeholders};
use crate::ops::drift::DriftOut;
use crate::ops::sink::{Sink, Style};
use crate::query::{FileChangeKind, kind_name};

/// A file that differs.
#[derive(Debug, Serialize)]
pub(crate) struct FileOut {
    pub(crate) kind: &'static str,
    pub(crate) path: String,
    pub(crate) from_path: Option<String>,
    pub(super) similarity: Option<u8>,
    pub(crate) old_blob: Option<String>,
    pub(super) new_blob: Option<String>,
    /// True for a submodule, whose blobs are commits of another repository.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_submodule: bool,
    /// Number of added lines; null if one version is not text.
    pub(crate) added_lines: Option<u32>,
    pub(crate) removed_lines: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) symbols: Option<Vec<SymbolOut>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) diff: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) drift: Option<Option<DriftOut>>,
    /// The sizes of both versions in bytes, if one is too large to compare.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) old_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) new_bytes: Option<u64>,
    /// True if the contents were not read, so it is unknown if the file is text.
    #[serde(skip)]
    pub(crate) is_unread: bool,
    /// Added and changed lines of the new version, 1-based. Where lines were only removed, the lines before
    /// and after them.
    #[serde(skip)]
    pub(crate) lines: Vec<(u32, u32)>,
    /// The lines of each difference in the old and in the new version, 1-based.
    #[serde(skip)]
    pub(super) hunks: Vec<Hunk>,
}

/// The first and last lines of a difference in both versions; `None` where it has none.
#[derive(Debug)]
pub(super) struct Hunk {
    pub(super) old: Option<(u32, u32)>,
    pub(super) new: Option<(u32, u32)>,
}

/// A definition that differs.
#[derive(Debug, Serialize)]
pub(crate) struct SymbolOut {
    pub(crate) id: String,
    pub(crate) kind: &'static str,
    pub(crate) events: Vec<&'static str>,
    pub(crate) from: Option<String>,
    pub(super) confidence: f64,
    pub(crate) old_lines: Option<(u32, u32)>,
    pub(crate) new_lines: Option<(u32, u32)>,
    /// The outer value is missing if drift was not requested, the inner one if one of the versions has no vector.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) drift: Option<Option<DriftOut>>,
    /// The changed lines, if they were requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) diff: Option<String>,
}

impl FileOut {
    /// Returns true if the change can have effects that no changed definition has: of imports and other code outside of
    /// definitions, of data, or of another path. Prose has none.
    pub(crate) fn has_other_effects(&self) -> bool {
        let path = RepoPath::new(without_placeholders(&typed(&self.path)));
        // Plain text may be data, such as a list of requirements.
        let language = extract::language(extract::lang_of_path(&path));
        if language.is_some_and(|language| language.is_prose() && language.name != "plaintext") {
            return false;
        }
        let symbols = self.symbols.iter().flatten();
        let symbols: Vec<&SymbolOut> = symbols.filter(|symbol| symbol.kind != "key").collect();
        let is_inside = |lines: &Option<(u32, u32)>, of: fn(&SymbolOut) -> Option<(u32, u32)>| {
            let mut known = symbols.iter().filter_map(|symbol| of(symbol));
            lines.is_some_and(|lines| known.any(|(first, last)| first <= lines.1 && lines.0 <= last))
        };
        let is_outside = |hunk: &Hunk| {
            !is_inside(&hunk.old, |symbol| symbol.old_lines) && !is_inside(&hunk.new, |symbol| symbol.new_lines)
        };
        self.from_path.is_some() || self.added_lines.is_none() || self.hunks.iter().any(is_outside)
    }

    /// Returns true if a line, 1-based, of the old or the new version differs.
    pub(crate) fn differs_at(&self, line: u32, is_old: bool) -> bool {
        let side = |hunk: &Hunk| if is_old { hunk.old } else { hunk.new };
        let mut hunks = self.hunks.iter().filter_map(side);
        hunks.any(|(first, last)| first <= line && line <= last)
    }

    /// Says why the contents were not compared; `None` if they were.
    pub(crate) fn why_unread(&self) -> Option<String> {
        let sizes = [self.old_bytes, self.new_bytes].into_iter().flatten();
        let sizes: Vec<String> = sizes.map(|size| size.to_string()).collect();
        let why = match sizes.join(" -> ") {
            sizes if sizes.is_empty() => "not read".to_owned(),
            sizes => format!("too large to compare: {sizes} bytes"),
        };
        self.is_unread.then_some(why)
    }

    pub(super) fn render(&self, out: &mut dyn Sink) {
        let commit = |blob: &Option<String>| blob.as_deref().map_or("nothing", |oid| &oid[..10]).to_owned();
        let lines = match (self.added_lines, self.removed_lines) {
            _ if self.is_submodule => {
                format!("submodule {} -> {}", commit(&self.old_blob), commit(&self.new_blob))
            }
            (Some(added), Some(removed)) => format!("+{added} -{removed}"),
            _ => self.why_unread().unwrap_or_else(|| "binary".to_owned()),
        };
        out.plain(&format!("{} ", self.kind));
        out.span(Style::Path, &self.path);
        if let Some(from) = &self.from_path {
            out.plain(" from ");
            out.span(Style::Path, from);
        }
        // A change of a few lines moves a long file by nothing that is left when rounded.
        let drift = self.drift.filter(|drift| !drift.is_some_and(DriftOut::is_zero));
        out.span(Style::Fact, &format!(" {lines}{}", drift_text(drift)));
        out.end();
        for symbol in self.symbols.iter().flatten() {
            let name = name_in(&symbol.id, &self.path);
            out.plain(&format!("    {}: {} {name}", symbol.events.join(", "), symbol.kind));
            if let Some(from) = &symbol.from {
                out.plain(" from ");
                out.span(Style::Path, from);
            }
            out.span(Style::Fact, &drift_text(symbol.drift));
            out.end();
        }
        if let Some(diff) = &self.diff {
            out.diff(diff);
        }
    }
}

/// Describes the drift after other text, if it was requested.
fn drift_text(drift: Option<Option<DriftOut>>) -> String {
    drift.map_or_else(String::new, |drift| format!(" {}", DriftOut::to_text(drift)))
}

/// Returns the name part of a definition's id. `path` is needed because a path may contain `#`.
pub(crate) fn name_in<'id>(id: &'id str, path: &str) -> &'id str {
    let of_file = id.strip_prefix(path).and_then(|rest| rest.strip_prefix('#'));
    let of_another = || id.split_once('#').map_or(id, |(_, name)| name);
    of_file.unwrap_or_else(of_another)
}

pub(super) fn file_out(change: &Change) -> FileOut {
    let is_submodule = |entry: Option<Entry>| entry.is_some_and(|entry| entry.mode == FileMode::Submodule);
    let blob = |entry: Option<Entry>| entry.and_then(|entry| entry.known_oid()).map(|oid| oid.to_string());
    FileOut {
        kind: FileChangeKind::between(change.old, change.new, change.origin.is_some()).name(),
        path: change.path.to_string(),
        from_path: change.origin.as_ref().map(|origin| origin.path.to_string()),
        similarity: change.origin.as_ref().map(|origin| origin.similarity),
        old_blob: blob(change.old),
        new_blob: blob(change.new),
        is_submodule: is_submodule(change.old) || is_submodule(change.new),
        added_lines: None,
        removed_lines: None,
        symbols: None,
        diff: None,
        drift: None,
        old_bytes: None,
        new_bytes: None,
        is_unread: true,
        lines: Vec::new(),
        hunks: Vec::new(),
    }
}

pub(super) fn symbol_out(delta: &SymbolDelta) -> SymbolOut {
    SymbolOut {
        id: delta.key.id(),
        kind: kind_name(delta.kind),
        events: delta.events.names(),
        from: delta.from.as_ref().map(SymbolKey::id),
        confidence: delta.confidence,
        old_lines: delta.old_lines,
        new_lines: delta.new_lines,
        drift: None,
        diff: None,
    }
}
