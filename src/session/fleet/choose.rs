//! Chooses the files that may answer a question, on the Qdrant server.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use super::super::workspace::Workspace;
use super::Fleet;
use super::points::id_of_repository;
use crate::config::Link;
use crate::embed::Embedder;
use crate::index::lexical::bm25::idf;
use crate::model::{RepoPath, chain, without_placeholders};
use crate::query::{Sought, Statistics, term_number};
use crate::remote::{PointQuery, PointVector, RemoteError};

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

/// When the repositories on the server were last compared with the records, and what was missing.
pub(super) type Known = Option<(Instant, Vec<String>)>;

/// The files that may answer a question.
#[derive(Clone, Debug, Default)]
pub(in crate::session) struct Chosen {
    /// The paths by repository, ascending.
    pub(in crate::session) files: BTreeMap<String, Vec<RepoPath>>,
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
        let statistics = self.statistics(&all);
        let words = PointVector::Words(weighted(&sought.terms, statistics.as_deref()));
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
        let meaning = Some(&sought.text).filter(|text| !text.is_empty());
        if let Some(Ok(embedding)) = meaning.map(|text| workspace.models.own().embed_query(text, interrupt))
            && embedding.weight > 0.0
        {
            queries.push(query(&PointVector::Meaning(embedding.vector), MAX_POINTS));
        }
        let lists = if queries.is_empty() {
            Vec::new()
        } else {
            self.collection.query(&queries, interrupt)?
        };
        let mut scores: HashMap<(String, String), f32> = HashMap::new();
        for list in lists {
            let mut ranked: Vec<(String, String)> = Vec::new();
            for point in list {
                let repository = point.payload.get("repository").and_then(|name| name.as_str());
                let paths = point.payload.get("path").and_then(|paths| paths.as_array());
                for path in paths.into_iter().flatten().filter_map(|path| path.as_str()) {
                    let file = (repository.unwrap_or_default().to_owned(), path.to_owned());
                    if !ranked.contains(&file) {
                        ranked.push(file);
                    }
                }
            }
            for (rank, file) in ranked.into_iter().enumerate() {
                *scores.entry(file).or_default() += 1.0 / (RRF + 1.0 + rank as f32);
            }
        }
        // The server is not believed: only repositories that were asked for count.
        let names: HashSet<&str> = links.iter().map(|link| link.name.as_str()).collect();
        scores.retain(|(repository, _), _| names.contains(repository.as_str()));
        let n_found = scores.len();
        let mut ranked: Vec<((String, String), f32)> = scores.into_iter().collect();
        ranked.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        ranked.truncate(MAX_CHOSEN);
        let mut chosen = Chosen::default();
        let n_chosen = ranked.len();
        for ((repository, path), _) in ranked {
            let path = RepoPath::new(without_placeholders(&path).into_owned());
            chosen.files.entry(repository).or_default().push(path);
        }
        chosen.files.values_mut().for_each(|paths| paths.sort_unstable());
        chosen.incomplete = self.missing(links, interrupt)?;
        let n_files: u64 = statistics.map_or(0, |statistics| statistics.n_files);
        if n_found > n_chosen || n_files > n_chosen as u64 {
            chosen.incomplete.push(format!(
                "the {n_chosen} files that fit best were chosen from {n_files}; codescout fleet grep reads all"
            ));
        }
        Ok(chosen)
    }

    /// Returns what the server lacks of the repositories, as far as their own points show.
    fn missing(&self, links: &[Link], interrupt: &AtomicBool) -> Result<Vec<String>, RemoteError> {
        let mut known = self.known.lock();
        if let Some((at, missing)) = known.as_ref()
            && at.elapsed() < KNOWN_FOR
        {
            return Ok(missing.clone());
        }
        let recorded: Vec<(&Link, String)> = links
            .iter()
            .filter_map(|link| Some((link, self.recorded(&link.name)?.commit)))
            .collect();
        let ids: Vec<_> = recorded.iter().map(|(link, _)| id_of_repository(&link.name)).collect();
        let found = self.collection.payloads(&ids, interrupt)?;
        let is_there = |(link, commit): &(&Link, String)| {
            found.iter().any(|payload| {
                let field = |name: &str| payload.get(name).and_then(|value| value.as_str());
                field("repository") == Some(&link.name) && field("commit") == Some(commit)
            })
        };
        let lost = recorded.iter().filter(|repository| !is_there(repository));
        let lost: Vec<String> = lost
            .map(|(link, _)| {
                format!(
                    "Qdrant has lost {0}: run codescout fleet verify --repair {0}",
                    link.name
                )
            })
            .collect();
        *known = Some((Instant::now(), lost.clone()));
        Ok(lost)
    }

    /// Describes why the server could not choose files.
    pub(in crate::session) fn why_not(&self, error: &RemoteError) -> String {
        format!(
            "Qdrant does not choose files ({}); every file on this machine is searched",
            chain(error)
        )
    }
}

/// Returns the words of a query, weighted by how rare they are.
fn weighted(terms: &[String], statistics: Option<&Statistics>) -> Vec<(u32, f32)> {
    let weight = |term: &String| {
        let (n_files, n_all) = statistics.map_or((0, 1), |known| (known.of(term).1, known.n_files as usize));
        (term_number(term), idf(n_files, n_all))
    };
    let mut words: Vec<(u32, f32)> = terms.iter().map(weight).collect();
    words.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    words.truncate(MAX_TERMS);
    words.sort_unstable_by_key(|(term, _)| *term);
    words.dedup_by_key(|(term, _)| *term);
    words
}
