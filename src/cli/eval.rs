//! `codescout eval`

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use rustix::fs::OFlags;
use serde::Serialize;

use super::args::{EvalArgs, Global, IdsArg};
use super::progress::CliProgress;
use super::render::{Output, note, one_line};
use super::{Found, INTERRUPTED};
use crate::config::Overrides;
use crate::evaluate::{
    Category, HistoryOptions, Interval, Judged, Judgements, Measures, Ranked, bootstrap_mean, measure,
    paired_difference, read_folder, sample_history,
};
use crate::git::{BlobContent, MAX_OBJECT_BYTES, ObjectReader};
use crate::ops::SearchMode;
use crate::query::{FileFilter, Hit, Request, Searcher, Sources, Tests};
use crate::session::{CallCtx, Context as _, Result, Session, ViewRequest, Workspace, bail, check_output_from};
use crate::snapshot::View;

/// Number of results per query. The metrics use ten.
const N_RESULTS: usize = 10;

#[derive(Debug, Serialize)]
struct EvalOut {
    queries: usize,
    repositories: usize,
    complete: bool,
    not_evaluated: Vec<NotEvaluatedOut>,
    settings: Vec<SettingOut>,
    differences: Vec<DifferenceOut>,
}

/// A judged repository that could not be evaluated.
#[derive(Debug, Serialize)]
struct NotEvaluatedOut {
    repository: String,
    reason: String,
}

#[derive(Debug, Serialize)]
struct SettingOut {
    setting: String,
    median_ms: f64,
    /// Number of incomplete answers, for which a server did not respond or chunks had no vector.
    incomplete: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    incomplete_because: Option<String>,
    all: MeasuresOut,
    by_category: BTreeMap<String, MeasuresOut>,
    by_language: BTreeMap<String, MeasuresOut>,
}

#[derive(Debug, Serialize)]
struct DifferenceOut {
    from: String,
    to: String,
    ndcg_file: [f64; 3],
    ndcg_lines: [f64; 3],
    ndcg_places: [f64; 3],
}

/// Means of the metrics with 95 % intervals, each as mean, lower and upper bound.
#[derive(Debug, Serialize)]
struct MeasuresOut {
    queries: usize,
    /// Number of queries without results.
    empty: usize,
    ndcg_file: [f64; 3],
    ndcg_lines: [f64; 3],
    ndcg_places: [f64; 3],
    /// Mean number of lines of the results and their further places.
    lines_shown: f64,
    recall_file_1: f64,
    recall_file_5: f64,
    recall_file_10: f64,
    mrr_file: f64,
}

/// The metrics of one query in each setting.
struct Row {
    repository: String,
    language: String,
    category: Category,
    by_setting: Vec<Measures>,
    took_ms: Vec<f64>,
    notes: Vec<Vec<String>>,
}

/// A search mode to measure.
#[derive(Clone, Copy)]
struct Setting {
    mode: SearchMode,
    /// True to use only the built-in model, without configured models, servers and reranker.
    is_alone: bool,
}

impl Setting {
    /// Returns all settings to evaluate, in order. The last is compared with each of the others.
    fn all(args: &EvalArgs) -> Vec<Self> {
        let of = |is_alone| args.settings.iter().map(move |&mode| Self { mode, is_alone });
        let alone = args.against_built_in.then(|| of(true)).into_iter().flatten();
        alone.chain(of(false)).collect()
    }

    fn name(self) -> String {
        let mode = format!("{:?}", self.mode).to_lowercase();
        if self.is_alone {
            format!("{mode} (built-in alone)")
        } else {
            mode
        }
    }
}

pub(super) fn run(global: &Global, args: &EvalArgs, output: &mut Output) -> Result<Found> {
    if args.settings.iter().any(|setting| matches!(setting, SearchMode::Regex)) {
        bail!("mode regex does not rank its results and cannot be measured");
    }
    if let Some(path) = &args.features {
        check_output_from(&global.repo, path)?;
    }
    let mut features = match &args.features {
        Some(path) => Some(BufWriter::new(
            // A link may come from the repository.
            File::options()
                .write(true)
                .create(true)
                .truncate(true)
                .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
                .open(path)
                .with_context(|| format!("cannot write {}", path.display()))?,
        )),
        None => None,
    };
    let mut missing = Vec::new();
    let rows = match &args.judgements {
        Some(folder) => judged_rows(global, args, folder, &mut features, &mut missing)?,
        None => history_rows(global, args, &mut features)?,
    };
    let is_partial = !missing.is_empty();
    if let Some(mut file) = features {
        file.flush()?;
    }
    if rows.is_empty() && is_partial {
        bail!("none of the judged repositories could be evaluated");
    }
    if rows.is_empty() {
        return Ok(Found::Nothing);
    }
    let answer = summarise(args, &rows, missing);
    if output.json {
        output.json(&answer)?;
    } else {
        show(&answer, output)?;
    }
    Ok(if is_partial { Found::Nothing } else { Found::Something })
}

fn judged_rows(
    global: &Global,
    args: &EvalArgs,
    folder: &Path,
    features: &mut Option<BufWriter<File>>,
    missing: &mut Vec<NotEvaluatedOut>,
) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for judgements in read_folder(folder)? {
        let (workspace, view) = match opened(global, args, &judgements) {
            Err(error) if !INTERRUPTED.load(Ordering::Relaxed) => {
                let repository = judgements.repository.clone();
                let reason = format!("{error:#}");
                note(&format!("skipping {repository}: {}", one_line(&reason)));
                missing.push(NotEvaluatedOut { repository, reason });
                continue;
            }
            opened => opened?,
        };
        let mut corpus = Corpus::new(&judgements.repository, &judgements.language, &workspace, &view)?;
        let wanted = judgements.queries.iter().filter(|judged| match args.ids {
            IdsArg::All => true,
            IdsArg::Even => !judged.is_odd(),
            IdsArg::Odd => judged.is_odd(),
        });
        for judged in wanted {
            let request = request(judged, &judgements.root)?;
            let row = row(&mut corpus, judged, &request, args)?;
            if let Some(file) = features {
                write_features(file, &mut corpus, judged, &request)?;
            }
            rows.push(row);
        }
    }
    Ok(rows)
}

fn history_rows(global: &Global, args: &EvalArgs, features: &mut Option<BufWriter<File>>) -> Result<Vec<Row>> {
    let overrides = Overrides {
        sidecar: args.index_dir.clone(),
        ..Overrides::default()
    };
    let workspace = Arc::new(Workspace::open(&global.repo, &overrides)?);
    let Some(tip) = workspace.target(&global.reference)?.and_then(|target| target.commit) else {
        bail!("{} is not a commit", global.reference);
    };
    let options = HistoryOptions {
        sample: args.sample,
        ..HistoryOptions::default()
    };
    let sampled = sample_history(&mut workspace.repository.reader(), tip, &options)?;
    let progress = CliProgress::new(global.quiet);
    let name = global.repo.display().to_string();
    let mut rows = Vec::new();
    for (parent, _, judged) in &sampled {
        let view = complete_view(&workspace, &parent.to_string(), &progress)?;
        let mut corpus = Corpus::new(&name, "", &workspace, &view)?;
        let request = request(judged, ".")?;
        rows.push(row(&mut corpus, judged, &request, args)?);
        if let Some(file) = features {
            write_features(file, &mut corpus, judged, &request)?;
        }
    }
    Ok(rows)
}

/// Opens a view after computing the vectors of the configured models, because queries do not compute them.
fn complete_view(workspace: &Arc<Workspace>, reference: &str, progress: &CliProgress) -> Result<View> {
    let view = || -> Result<View> {
        let session = Session::for_command(Arc::clone(workspace));
        let call = CallCtx::unlimited(progress.ctx());
        Ok(session.view(ViewRequest::of(reference), &call)?.0.view.clone())
    };
    let found = view()?;
    let Some(tree) = found
        .provenance()
        .tree
        .filter(|_| !workspace.models.sources().is_empty())
    else {
        return Ok(found);
    };
    workspace.catch_up(&[tree], progress.ctx())?;
    view()
}

/// Opens the clone of a judged repository at the judged commit.
fn opened(global: &Global, args: &EvalArgs, judgements: &Judgements) -> Result<(Arc<Workspace>, View)> {
    let clone = find_clone(args, judgements)?;
    let index_dir = args.index_dir.as_ref();
    let overrides = Overrides {
        sidecar: index_dir.map(|dir| dir.join(judgements.repository.replace('/', "+"))),
        ..Overrides::default()
    };
    let workspace = Arc::new(Workspace::open(&clone, &overrides)?);
    let view = complete_view(&workspace, &judgements.commit, &CliProgress::new(global.quiet))?;
    Ok((workspace, view))
}

fn find_clone(args: &EvalArgs, judgements: &Judgements) -> Result<PathBuf> {
    let folder = args.clones.clone().unwrap_or_else(|| PathBuf::from("."));
    let name = judgements.repository.as_str();
    let short = name.rsplit('/').next().unwrap_or(name);
    for place in [name, short, &format!("{}/repo", name.replace('/', "+"))] {
        let found = below(&folder, place).with_context(|| format!("cannot read {}", folder.display()))?;
        if let Some(found) = found {
            return Ok(found);
        }
    }
    bail!("no clone of {name} below {}", folder.display())
}

/// Returns the folder at `place` below `folder`. If there is none, ignores case, because hosting sites ignore the case
/// of names.
fn below(folder: &Path, place: &str) -> io::Result<Option<PathBuf>> {
    let mut found = folder.to_owned();
    for name in place.split('/') {
        let exact = found.join(name);
        if exact.is_dir() {
            found = exact;
            continue;
        }
        let entries = fs::read_dir(&found)?.collect::<io::Result<Vec<_>>>()?;
        let is_it = |entry: &fs::DirEntry| entry.file_name().eq_ignore_ascii_case(name) && entry.path().is_dir();
        match entries
            .iter()
            .filter(|entry| is_it(entry))
            .map(fs::DirEntry::path)
            .min()
        {
            Some(other_case) => found = other_case,
            None => return Ok(None),
        }
    }
    Ok(Some(found))
}

fn request(judged: &Judged, root: &str) -> Result<Request> {
    let paths = if root == "." {
        Vec::new()
    } else {
        vec![format!("{root}/")]
    };
    Ok(Request {
        query: judged.query.clone(),
        filter: FileFilter::new(&paths, &[], Tests::Any)?,
        limit: N_RESULTS,
        ..Request::default()
    })
}

/// A judged repository and its searchers.
struct Corpus<'a> {
    name: &'a str,
    language: &'a str,
    searcher: Searcher<'a>,
    /// A searcher that uses only the built-in model.
    alone: Searcher<'a>,
    reader: ObjectReader,
}

impl<'a> Corpus<'a> {
    fn new(name: &'a str, language: &'a str, workspace: &'a Workspace, view: &'a View) -> Result<Self> {
        let own = workspace.models.own();
        let searcher = workspace.searcher(view, &INTERRUPTED)?;
        Ok(Self {
            name,
            language,
            searcher: searcher.with_reranking(workspace.reranking(view, &INTERRUPTED)),
            alone: Searcher::new(view, own, own)?.with_sources(Sources::new(view, &workspace.repository)),
            reader: workspace.repository.reader(),
        })
    }
}

fn row(corpus: &mut Corpus<'_>, judged: &Judged, request: &Request, args: &EvalArgs) -> Result<Row> {
    let mut by_setting = Vec::new();
    let mut took_ms = Vec::new();
    let mut notes = Vec::new();
    for setting in Setting::all(args) {
        let request = Request {
            mode: setting.mode.to_query(),
            ..request.clone()
        };
        let searcher = if setting.is_alone {
            &corpus.alone
        } else {
            &corpus.searcher
        };
        let started = Instant::now();
        let outcome = searcher.search(&request)?;
        took_ms.push(started.elapsed().as_secs_f64() * 1e3);
        notes.push(outcome.notes);
        let view = corpus.searcher.view();
        let ranked = |hit| ranked(view, &mut corpus.reader, hit);
        let results: Vec<Ranked> = outcome.hits.iter().filter_map(ranked).collect();
        by_setting.push(measure(&results, &judged.relevant));
    }
    if by_setting.last().is_some_and(|measures| measures.ndcg_file == 0.0) {
        tracing::info!(id = judged.id, query = judged.query, "nothing found");
    }
    Ok(Row {
        repository: corpus.name.to_owned(),
        language: corpus.language.to_owned(),
        category: judged.category,
        by_setting,
        took_ms,
        notes,
    })
}

fn ranked(view: &View, reader: &mut ObjectReader, hit: &Hit) -> Option<Ranked> {
    let place = hit.places.first()?;
    // The text is needed only to compute the lines of a focus.
    let bytes = match hit.focus.map(|_| view.read(place.file, reader, MAX_OBJECT_BYTES)) {
        Some(Ok(BlobContent::Content(bytes))) => bytes,
        _ => Vec::new(),
    };
    let (start, end, _) = hit.lines(&bytes)?;
    Some(Ranked {
        path: String::from_utf8_lossy(view.file(place.file).path).into_owned(),
        lines: (start, end),
        further: hit
            .further
            .iter()
            .map(|part| (part.start_line, part.end_line))
            .collect(),
    })
}

#[derive(Serialize)]
struct FeaturesOut<'a> {
    repository: &'a str,
    id: &'a str,
    category: String,
    query: &'a str,
    is_name: bool,
    relevant: Vec<(&'a str, u32, u32, u32)>,
    candidates: Vec<(String, u32, u32, Vec<f32>)>,
}

fn write_features(file: &mut impl Write, corpus: &mut Corpus<'_>, judged: &Judged, request: &Request) -> Result<()> {
    let Corpus {
        name, searcher, reader, ..
    } = corpus;
    let view = searcher.view();
    let candidates = searcher.candidates(request)?;
    let value = FeaturesOut {
        repository: name,
        id: &judged.id,
        category: judged.category.to_string(),
        query: &judged.query,
        is_name: searcher.is_name_query(&judged.query)?,
        relevant: judged
            .relevant
            .iter()
            .map(|place| (place.path.as_str(), place.start, place.end, place.grade))
            .collect(),
        candidates: candidates
            .iter()
            .filter_map(|hit| {
                let Ranked { path, lines, .. } = ranked(view, reader, hit)?;
                Some((path, lines.0, lines.1, hit.features.to_array().to_vec()))
            })
            .collect(),
    };
    serde_json::to_writer(&mut *file, &value)?;
    writeln!(file)?;
    Ok(())
}

fn summarise(args: &EvalArgs, rows: &[Row], not_evaluated: Vec<NotEvaluatedOut>) -> EvalOut {
    let asked = Setting::all(args);
    let settings = asked.iter().enumerate().map(|(index, setting)| {
        let of = |pick: &dyn Fn(&&Row) -> bool| measures_out(&rows.iter().filter(pick).collect::<Vec<_>>(), index);
        let mut took: Vec<f64> = rows.iter().map(|row| row.took_ms[index]).collect();
        took.sort_unstable_by(f64::total_cmp);
        let mut by_category = BTreeMap::new();
        let mut by_language = BTreeMap::new();
        for row in rows {
            let category = row.category;
            by_category
                .entry(category.to_string())
                .or_insert_with(|| of(&|row: &&Row| row.category == category));
            by_language
                .entry(row.language.clone())
                .or_insert_with(|| of(&|other: &&Row| other.language == row.language));
        }
        let mut notes = rows
            .iter()
            .map(|row| &row.notes[index])
            .filter(|notes| !notes.is_empty());
        SettingOut {
            setting: setting.name(),
            median_ms: took[took.len() / 2],
            incomplete: notes.clone().count(),
            incomplete_because: notes.next().and_then(|notes| notes.first().cloned()),
            all: of(&|_| true),
            by_category,
            by_language,
        }
    });
    let last = asked.len() - 1;
    let everything: Vec<&Row> = rows.iter().collect();
    let differences = (0..last).map(|index| {
        let difference = |pick: fn(&Measures) -> f64| {
            let of = |setting| grouped(&everything, |row| pick(&row.by_setting[setting]));
            triple(paired_difference(&of(index), &of(last)))
        };
        DifferenceOut {
            from: asked[index].name(),
            to: asked[last].name(),
            ndcg_file: difference(|measures| measures.ndcg_file),
            ndcg_lines: difference(|measures| measures.ndcg_lines),
            ndcg_places: difference(|measures| measures.ndcg_places),
        }
    });
    EvalOut {
        queries: rows.len(),
        repositories: grouped(&everything, |_| 0.0).len(),
        complete: not_evaluated.is_empty(),
        not_evaluated,
        settings: settings.collect(),
        differences: differences.collect(),
    }
}

fn measures_out(rows: &[&Row], setting: usize) -> MeasuresOut {
    let mean = |pick: &dyn Fn(&Measures) -> f64| bootstrap_mean(&grouped(rows, |row| pick(&row.by_setting[setting])));
    MeasuresOut {
        queries: rows.len(),
        empty: rows.iter().filter(|row| row.by_setting[setting].is_empty).count(),
        ndcg_file: triple(mean(&|measures| measures.ndcg_file)),
        ndcg_lines: triple(mean(&|measures| measures.ndcg_lines)),
        ndcg_places: triple(mean(&|measures| measures.ndcg_places)),
        lines_shown: mean(&|measures| measures.lines_shown).mean.round(),
        recall_file_1: mean(&|measures| measures.recall_file[0]).mean,
        recall_file_5: mean(&|measures| measures.recall_file[1]).mean,
        recall_file_10: mean(&|measures| measures.recall_file[2]).mean,
        mrr_file: mean(&|measures| measures.mrr_file).mean,
    }
}

/// Groups a value of each row by repository.
fn grouped(rows: &[&Row], value: impl Fn(&Row) -> f64) -> Vec<Vec<f64>> {
    let mut groups: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for row in rows {
        groups.entry(&row.repository).or_default().push(value(row));
    }
    groups.into_values().collect()
}

fn triple(interval: Interval) -> [f64; 3] {
    let round = |value: f64| (value * 1e4).round() / 1e4;
    [round(interval.mean), round(interval.low), round(interval.high)]
}

fn show(answer: &EvalOut, output: &mut Output) -> Result<()> {
    output.line(&format!(
        "{} queries over {} repositories; NDCG@10 with 95 % intervals",
        answer.queries, answer.repositories
    ))?;
    if !answer.complete {
        let missing = answer.not_evaluated.iter().map(|missing| missing.repository.as_str());
        let missing = missing.collect::<Vec<_>>().join(", ");
        output.line(&format!("partial: skipped {}", one_line(&missing)))?;
    }
    for setting in &answer.settings {
        output.line("")?;
        output.line(&format!("{} (median {:.1} ms)", setting.setting, setting.median_ms))?;
        if let Some(why) = &setting.incomplete_because {
            let n = setting.incomplete;
            output.line(&format!("  incomplete answers: {n}; first reason: {}", one_line(why)))?;
        }
        let all = [("all".to_owned(), &setting.all)];
        let categories = setting
            .by_category
            .iter()
            .map(|(name, measures)| (name.clone(), measures));
        let languages = setting.by_language.iter().filter(|(name, _)| !name.is_empty());
        let languages = languages.map(|(name, measures)| (format!("  {name}"), measures));
        for (name, measures) in all.into_iter().chain(categories).chain(languages) {
            let [file, low, high] = measures.ndcg_file;
            let [lines, lines_low, lines_high] = measures.ndcg_lines;
            let [places, places_low, places_high] = measures.ndcg_places;
            output.line(&format!(
                "  {name:14} file {file:.3} [{low:.3} {high:.3}]  lines {lines:.3} [{lines_low:.3} {lines_high:.3}]  \
                 places {places:.3} [{places_low:.3} {places_high:.3}] ({} lines)  recall@1/5/10 {:.2} {:.2} {:.2}  \
                 MRR {:.3}  n={}  empty {}",
                measures.lines_shown,
                measures.recall_file_1,
                measures.recall_file_5,
                measures.recall_file_10,
                measures.mrr_file,
                measures.queries,
                measures.empty
            ))?;
        }
    }
    for difference in &answer.differences {
        let [mean, low, high] = difference.ndcg_file;
        let [lines, lines_low, lines_high] = difference.ndcg_lines;
        let [places, places_low, places_high] = difference.ndcg_places;
        output.line("")?;
        output.line(&format!(
            "{} → {}: file {mean:+.3} [{low:+.3} {high:+.3}], lines {lines:+.3} [{lines_low:+.3} {lines_high:+.3}], \
             places {places:+.3} [{places_low:+.3} {places_high:+.3}]",
            difference.from, difference.to
        ))?;
    }
    if answer.repositories > 1 {
        note("means are macro-averaged: over queries per repository, then over repositories");
    }
    Ok(())
}
