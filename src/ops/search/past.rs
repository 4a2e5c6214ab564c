//! Searches the indexed files of all recorded commits, and finds the commits between which each text existed.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde::Serialize;

use super::super::ask::Ask;
use crate::artifact::ArtifactKey;
use crate::extract;
use crate::git::{BlobContent, MAX_OBJECT_BYTES, ObjectReader};
use crate::history::{SymbolChangeCache, SymbolKey, SymbolTracer, text_lifetime, versions};
use crate::model::{BlobId, Ctx, Oid, RepoPath};
use crate::query::{Gaps, Hit, timestamp};
use crate::session::{CallCtx, OpenedHistory, Result, Session, ViewRequest, bail};
use crate::snapshot::{Documents, FileEntry, FileId, FileStatus, View};

/// Maximum size in bytes of a file version in which a text is searched.
const MAX_VERSION_BYTES: u64 = 8 << 20;
/// The note for an index that contains no past versions of files.
const NOT_INDEXED_NOTE: &str =
    "only indexed deleted code was searched; run codescout index --history to add the last versions of deleted code";

/// The indexed files of all commits reachable from a revision.
pub(crate) struct Past {
    /// All indexed versions of the files. A path can occur several times.
    pub(crate) view: View,
    /// The files of the revision.
    now: View,
    documents: Documents,
    opened: OpenedHistory,
    /// The settings for tracing definitions, if all commits are traced.
    traced: Option<Tracing>,
    /// Number of file versions in the reachable commits.
    n_versions: usize,
    n_indexed: usize,
}

/// The settings for tracing definitions.
struct Tracing {
    recipe: u64,
    max_bytes: u64,
}

/// The commits between which a text existed.
#[derive(Debug, Serialize)]
pub(crate) struct LifeOut {
    /// True if the revision contains the text.
    pub(crate) present: bool,
    /// The first commit with the text; null if it is uncommitted.
    pub(crate) first: Option<MomentOut>,
    /// The last commit with the text; null if the revision contains it.
    pub(crate) last: Option<MomentOut>,
    /// The commit that removed the text; null if the revision contains it.
    pub(crate) gone_in: Option<MomentOut>,
    /// All paths at which the text existed.
    pub(crate) paths: Vec<String>,
    /// The commits between which the text's definition existed; null if unknown.
    pub(crate) definition: Option<DefinitionLifeOut>,
}

/// The commits between which a definition existed in any form.
#[derive(Debug, Serialize)]
pub(crate) struct DefinitionLifeOut {
    /// The commit that added it.
    pub(crate) added_in: MomentOut,
    /// The commit that removed it; null if the revision has it.
    pub(crate) removed_in: Option<MomentOut>,
}

impl LifeOut {
    /// Describes the lifetime in one line.
    pub(crate) fn to_text(&self) -> String {
        let moment = |moment: &MomentOut| {
            let day = moment.date.split('T').next().unwrap_or_default();
            format!("{} {day}", &moment.commit[..moment.commit.len().min(10)])
        };
        let first = self.first.as_ref().map_or("uncommitted".to_owned(), moment);
        let text = match &self.gone_in {
            Some(gone) => format!("from {first}, deleted in {} {}", moment(gone), gone.subject),
            None if self.present => format!("from {first}, still present"),
            None => format!("from {first}"),
        };
        match &self.definition {
            Some(DefinitionLifeOut { added_in, removed_in }) => {
                let removed = removed_in
                    .as_ref()
                    .map(|removed| format!(", removed in {}", moment(removed)));
                format!(
                    "{text}; the definition was added in {}{}",
                    moment(added_in),
                    removed.unwrap_or_default()
                )
            }
            None => text,
        }
    }
}

/// A commit in the lifetime of a text or definition.
#[derive(Debug, Serialize)]
pub(crate) struct MomentOut {
    pub(crate) commit: String,
    pub(crate) date: String,
    pub(crate) subject: String,
}

impl Past {
    /// Opens the files of all commits reachable from the revision. Depending on `documents`, includes all files or only
    /// those that the revision no longer has.
    pub(crate) fn open(ask: &Ask<'_>, documents: Documents) -> Result<Self> {
        let (session, reference) = (ask.session, &ask.common.reference);
        let workspace = &session.workspace;
        let opened = workspace.records().history(reference, ask.call.ctx)?;
        // A cached view may lack versions that were indexed after it was opened.
        let uncached = Session::for_command(Arc::clone(workspace));
        let call = CallCtx::unlimited(ask.call.ctx);
        let now = uncached.view(ViewRequest::of(reference), &call)?.0.view.clone();
        let segments = now.segments();
        let indexed: HashSet<Oid> = segments
            .iter()
            .flat_map(|segment| (0..segment.artifacts.n_blobs()).filter_map(|blob| segment.artifacts.key(blob)))
            .map(|key| key.blob.0)
            .collect();
        let mut files: BTreeSet<(RepoPath, Oid)> = BTreeSet::new();
        let mut entries: Vec<FileEntry> = Vec::new();
        for (_, file) in now.files().filter(|(_, file)| file.blob.is_some()) {
            let entry = file.entry();
            files.insert((entry.path.clone(), entry.oid));
            entries.push(entry);
        }
        let contents: RefCell<HashSet<Oid>> = RefCell::default();
        let recorded = versions(&opened.history, &opened.reached, &|path, entry| {
            let is_searched = entry.is_file() && !extract::is_vendored(path) && !extract::is_lock_file(path);
            if is_searched {
                contents.borrow_mut().insert(entry.oid);
            }
            is_searched && indexed.contains(&entry.oid)
        })?;
        let contents = contents.into_inner();
        let n_indexed = contents.intersection(&indexed).count();
        for ((path, oid), mode) in recorded {
            let key = ArtifactKey {
                blob: BlobId(oid),
                lang: extract::lang_of_path(&path),
            };
            let Some(blob) = segments.find_blob(key) else { continue };
            if files.insert((path.clone(), oid)) {
                entries.push(FileEntry {
                    path,
                    mode,
                    oid,
                    lang: key.lang,
                    status: FileStatus::Indexed { blob },
                });
            }
        }
        entries.retain(|entry| !session.visibility.hides(entry.path.as_bytes()));
        entries.sort_by(|a, b| (&a.path, a.oid).cmp(&(&b.path, b.oid)));
        Ok(Past {
            traced: (opened.history.n_traced(workspace.records().symbol_recipe()) == opened.history.n_commits()).then(
                || Tracing {
                    recipe: workspace.records().symbol_recipe(),
                    max_bytes: workspace.build_options().max_blob_bytes,
                },
            ),
            view: now.with_files(&entries, documents)?,
            now,
            documents,
            opened,
            n_versions: contents.len(),
            n_indexed,
        })
    }
}

impl Past {
    /// Returns the reasons why answers are incomplete.
    pub(super) fn notes(&self) -> Result<Vec<String>> {
        let mut notes = self.opened.notes.clone();
        notes.extend(Gaps::of(&self.opened.history, &self.opened.reached)?.sentences());
        if self.opened.entries.iter().any(|entry| entry.lines.is_none()) {
            notes.push(NOT_INDEXED_NOTE.to_owned());
        }
        if !self.is_whole() {
            notes.push(format!(
                "searched {} of {} recorded file versions; run codescout index --history=all to index every \
                 version, or search --in diffs to find the commits that added or removed a line",
                self.n_indexed, self.n_versions
            ));
        }
        Ok(notes)
    }

    /// Returns true if every version of every file is indexed.
    pub(crate) fn is_whole(&self) -> bool {
        self.n_indexed == self.n_versions
    }

    /// Returns true if the search is limited to deleted code.
    pub(crate) fn is_of_gone(&self) -> bool {
        self.documents == Documents::Gone
    }

    /// Returns true if the hit's definition still exists at the same path, so that it was changed and not deleted.
    pub(crate) fn is_still_defined(&self, hit: &Hit) -> Result<bool> {
        let Some(symbol) = &hit.symbol else { return Ok(false) };
        for place in &hit.places {
            let Some(file) = self.now.find(self.view.file(place.file).path) else {
                continue;
            };
            let Some(extraction) = self.now.extraction(file).transpose()? else {
                continue;
            };
            let name = symbol.qualified_name.rsplit('.').next().unwrap_or_default();
            if extraction.definitions.iter().any(|definition| definition.name == name) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the commits between which the hit's text existed at any of its locations. Reads file versions.
    pub(crate) fn life(&self, reader: &mut ObjectReader, hit: &Hit) -> Result<LifeOut> {
        let history = &self.opened.history;
        let seen_from = (self.opened.tip.unwrap_or_default(), &self.opened.reached);
        let (mut first, mut gone) = (None, None);
        let (mut present, mut paths) = (false, BTreeSet::new());
        let Some(place) = hit.places.first() else {
            bail!("a hit without a place")
        };
        let content = self.view.read(place.file, reader, MAX_OBJECT_BYTES)?;
        let text = match &content {
            BlobContent::Content(bytes) => {
                let range = hit.lines(bytes).map_or(place.range, |(_, _, range)| range);
                bytes.get(range.as_usize()).unwrap_or_default()
            }
            BlobContent::TooLarge { .. } | BlobContent::Missing | BlobContent::Damaged => &[],
        };
        // Searches only for the text of the hit, because lines around it may come from other commits.
        let finder = memchr::memmem::Finder::new(text.trim_ascii());
        for file in hit.places.iter().map(|place| place.file).collect::<BTreeSet<FileId>>() {
            let entry = self.view.file(file).entry();
            let mut has_text = |oid: Oid| -> Result<bool> {
                let content = reader.blob(BlobId(oid), MAX_VERSION_BYTES)?;
                Ok(matches!(content, BlobContent::Content(bytes) if finder.find(&bytes).is_some()))
            };
            let own = text_lifetime(history, seen_from, (&entry.path, entry.oid), &mut has_text)?;
            let order = |commit: &u32| history.order_of(*commit);
            first = first.into_iter().chain(own.first).min_by_key(order);
            gone = (gone.into_iter().chain(own.gone.map(|gone| (gone, own.last)))).max_by_key(|(gone, _)| order(gone));
            let there = self.now.find(entry.path.as_bytes());
            present |= match there.map(|there| self.now.file(there).entry().oid) {
                Some(there) => there == entry.oid || has_text(there)?,
                None => false,
            };
            paths.extend(own.paths.iter().map(RepoPath::to_string));
            paths.insert(entry.path.to_string());
        }
        let gone = gone.filter(|_| !present);
        let last = gone.and_then(|(_, last)| last);
        Ok(LifeOut {
            present,
            first: self.moment(first)?,
            last: self.moment(last)?,
            gone_in: self.moment(gone.map(|(gone, _)| gone))?,
            paths: paths.into_iter().collect(),
            definition: self.definition_life(reader, hit)?,
        })
    }

    /// Returns the commits between which the hit's definition existed. `None` if its file has several definitions of
    /// that name, or if the definition was moved to another location.
    fn definition_life(&self, reader: &mut ObjectReader, hit: &Hit) -> Result<Option<DefinitionLifeOut>> {
        let history = &self.opened.history;
        let (Some(traced), Some(symbol), Some(place)) = (&self.traced, &hit.symbol, hit.places.first()) else {
            return Ok(None);
        };
        let key = SymbolKey {
            path: self.view.file(place.file).entry().path,
            name: symbol.qualified_name.clone(),
            nth: 1,
        };
        let changes = history.traced_changes(&key.path, Some(&key.name), traced.recipe)?;
        let mut records = changes.values().flat_map(|change| &change.records);
        let Some(tip) = self
            .opened
            .tip
            .filter(|_| records.all(|record| record.nth == 1 && !record.goes_on))
        else {
            return Ok(None);
        };
        let mut known = SymbolChangeCache::new(None, traced.recipe);
        let interrupt = AtomicBool::new(false);
        let ctx = Ctx::silent(&interrupt);
        let reached = &self.opened.reached;
        let life = SymbolTracer::new(history, reached, reader, traced.max_bytes, &mut known, ctx).of(tip, &key)?;
        let added = life.changes.last().filter(|change| change.events.added);
        let removed = life
            .changes
            .first()
            .filter(|change| change.events.removed && !life.is_there);
        if removed.is_none() && !life.is_there {
            return Ok(None);
        }
        let removed_in = self.moment(removed.map(|change| change.commit))?;
        let added_in = self.moment(added.map(|change| change.commit))?;
        Ok(added_in.map(|added_in| DefinitionLifeOut { added_in, removed_in }))
    }

    fn moment(&self, number: Option<u32>) -> Result<Option<MomentOut>> {
        let Some(number) = number else { return Ok(None) };
        let heads = self.opened.history.heads(&[number])?;
        Ok(heads.get(&number).map(|head| MomentOut {
            commit: head.id.to_string(),
            date: timestamp(head.commit_time, 0),
            subject: head.subject.clone(),
        }))
    }
}
