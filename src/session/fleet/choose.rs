//! Chooses the files that may answer a question, on the Qdrant server.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use super::super::workspace::Workspace;
use super::Fleet;
use super::points::{MAX_PATHS, id_of_repository};
use crate::config::Link;
use crate::embed::Embedder;
use crate::index::lexical::bm25::idf;
use crate::model::{RepoPath, chain, without_placeholders};
use crate::query::{Sought, WholeStatistics, term_number};
use crate::remote::{Payload, PointQuery, PointVector, RemoteError};

/// Maximum number of chosen files.
const MAX_CHOSEN: usize = 100;
/// Number of points from each search.
const MAX_POINTS: usize = 300;
/// Number of files that define a sought name.
const MAX_DEFINING: usize = 100;
/// Maximum number of words of a query, the rarest ones.
const MAX_TERMS: usize = 64;
/// The constant of reciprocal rank fusion: the first of a list has 1 / 61.
const RRF: f32 = 60.0;
/// Time for which the server is known to have the recorded repositories.
const KNOWN_FOR: Duration = Duration::from_secs(30);

/// When the repositories on the server were last compared with the records, and which it lacked.
pub(super) type Known = Option<(Instant, Vec<String>)>;

/// The files that may answer a question.
#[derive(Clone, Debug, Default)]
pub(in crate::session) struct Chosen {
    /// The paths by repository, ascending.
    pub(in crate::session) files: BTreeMap<String, Vec<RepoPath>>,
    /// Repositories that the server has lost. Every file of them may answer.
    pub(in crate::session) lost: Vec<String>,
    /// Reasons why other files may answer it too.
    pub(in crate::session) incomplete: Vec<String>,
}

impl Fleet {
    /// Chooses files of these repositories. Fails if the server does not answer.
    pub(in crate::session) fn choose(
        &self,
        workspace: &Workspace,
        sought: &Sought,
        links: &[Link],
        interrupt: &AtomicBool,
    ) -> Result<Chosen, RemoteError> {
        let mut filter = Vec::new();
        let all = workspace.config.links.all();
        if links.len() < all.len() {
            filter.push(("repository", links.iter().map(|link| link.name.clone()).collect()));
        } else if !self.groups.is_empty() {
            filter.push(("group", self.groups.clone()));
        }
        if !sought.langs.is_empty() {
            filter.push(("lang", sought.langs.clone()));
        }
        let (statistics, mut incomplete) = self.statistics(&all);
        let words = PointVector::Words(weighted(&sought.terms, &statistics));
        let query = |vector: &PointVector, limit| PointQuery {
            vector: vector.clone(),
            filter: filter.clone(),
            limit,
        };
        let mut queries = Vec::new();
        if !sought.names.is_empty() {
            let mut defining = query(&words, MAX_DEFINING);
            defining.filter.push(("names", sought.names.clone()));
            queries.push(defining);
        }
        if !sought.terms.is_empty() {
            queries.push(query(&words, MAX_POINTS));
        }
        if !sought.text.is_empty() {
            match workspace.models.own().embed_query(&sought.text, interrupt) {
                Ok(embedding) if embedding.weight > 0.0 => {
                    queries.push(query(&PointVector::Meaning(embedding.vector), MAX_POINTS));
                }
                Ok(_) => {}
                Err(error) => incomplete.push(format!("files are not chosen by meaning: {}", chain(&error))),
            }
        }
        let lists = if queries.is_empty() {
            Vec::new()
        } else {
            self.collection.query(&queries, interrupt)?
        };
        // The server may answer with anything: only files of the selected repositories count.
        let names: HashSet<&str> = links.iter().map(|link| link.name.as_str()).collect();
        let mut scores: HashMap<(String, String), f32> = HashMap::new();
        for list in lists {
            let mut ranked: HashSet<(String, String)> = HashSet::new();
            for payload in list {
                let repository = payload.get("repository").and_then(|name| name.as_str());
                let paths = payload.get("path").and_then(|paths| paths.as_array());
                let paths = paths.into_iter().flatten().take(MAX_PATHS);
                for path in paths.filter_map(|path| path.as_str()) {
                    let repository = repository.unwrap_or_default();
                    let file = (repository.to_owned(), path.to_owned());
                    if names.contains(repository) && ranked.insert(file.clone()) {
                        *scores.entry(file).or_default() += 1.0 / (RRF + ranked.len() as f32);
                    }
                }
            }
        }
        let mut ranked: Vec<((String, String), f32)> = scores.into_iter().collect();
        ranked.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        ranked.truncate(MAX_CHOSEN);
        let mut chosen = Chosen::default();
        for ((repository, path), _) in ranked {
            let path = RepoPath::new(without_placeholders(&path).into_owned());
            chosen.files.entry(repository).or_default().push(path);
        }
        chosen.files.values_mut().for_each(|paths| paths.sort_unstable());
        let mut lost = self.lost(&all, false, interrupt)?;
        lost.retain(|name| names.contains(name.as_str()));
        if !lost.is_empty() {
            chosen.files.retain(|name, _| !lost.contains(name));
            incomplete.push(format!(
                "Qdrant lacks the points of {}; every file of it was read instead; codescout fleet index stores them again",
                some_of(&lost)
            ));
        }
        let records = self.records.all();
        let chosen_from = links.iter().filter(|link| !lost.contains(&link.name));
        let recorded = chosen_from.filter_map(|link| records.get(&link.name));
        let n_files: u64 = recorded.map(|recorded| u64::from(recorded.n_files)).sum();
        let n_chosen: usize = chosen.files.values().map(Vec::len).sum();
        if n_files > n_chosen as u64 {
            incomplete.push(format!(
                "only the {n_chosen} files that fit best of {n_files} were read; grep (over MCP: mode regex) reads all"
            ));
        }
        Ok(Chosen {
            lost,
            incomplete,
            ..chosen
        })
    }

    /// Returns the repositories whose points the server does not have, as far as their own points show. The answer may be
    /// half a minute old, unless it must be new.
    pub(crate) fn lost(
        &self,
        links: &[Link],
        is_new: bool,
        interrupt: &AtomicBool,
    ) -> Result<Vec<String>, RemoteError> {
        let mut known = self.known.lock();
        if let Some((at, lost)) = known.as_ref()
            && !is_new
            && at.elapsed() < KNOWN_FOR
        {
            return Ok(lost.clone());
        }
        let before = self.records.all();
        let ids: Vec<_> = links.iter().map(|link| id_of_repository(&link.name)).collect();
        let found = match self.collection.payloads(&ids, interrupt) {
            Err(error) if error.status() == Some(404) && is_new => Vec::new(),
            found => found?,
        };
        let text =
            |payload: &Payload, name: &str| payload.get(name).and_then(|value| value.as_str()).map(str::to_owned);
        let found: HashSet<_> = found
            .iter()
            .filter_map(|payload| Some((text(payload, "repository")?, text(payload, "commit")?)))
            .collect();
        // A feeder may have stored another commit meanwhile.
        let after = self.records.all();
        let is_lost = |link: &&Link| {
            let recorded = [&before, &after].map(|records| records.get(&link.name));
            let mut recorded = recorded
                .into_iter()
                .flatten()
                .filter(|recorded| recorded.is_whole)
                .peekable();
            recorded.peek().is_some()
                && !recorded.any(|recorded| found.contains(&(link.name.clone(), recorded.commit.clone())))
        };
        let lost: Vec<String> = links.iter().filter(is_lost).map(|link| link.name.clone()).collect();
        if !is_new {
            *known = Some((Instant::now(), lost.clone()));
        }
        Ok(lost)
    }

    /// Describes why the server could not choose files.
    pub(in crate::session) fn why_not(&self, error: &RemoteError) -> String {
        format!(
            "Qdrant is not available ({}); every file of the repositories is read instead",
            chain(error)
        )
    }
}

/// Names a few of many repositories.
pub(in crate::session) fn some_of(names: &[impl AsRef<str>]) -> String {
    const MAX_NAMED: usize = 8;
    let named: Vec<&str> = names.iter().take(MAX_NAMED).map(AsRef::as_ref).collect();
    let named = named.join(", ");
    match names.len().saturating_sub(MAX_NAMED) {
        0 => named,
        n_more => format!("{named} and {n_more} more"),
    }
}

/// Returns the words of a query, weighted by how rare they are.
fn weighted(terms: &[String], statistics: &WholeStatistics) -> Vec<(u32, f32)> {
    let n_files = statistics.n_files() as usize;
    let weight = |term: &String| (term_number(term), idf(statistics.of(term).1, n_files));
    let mut words: Vec<(u32, f32)> = terms.iter().map(weight).collect();
    words.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    words.truncate(MAX_TERMS);
    words.sort_unstable_by_key(|(term, _)| *term);
    words.dedup_by_key(|(term, _)| *term);
    words
}
