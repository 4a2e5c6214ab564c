//! Relations between files: imports, importers and cycles.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use rayon::prelude::*;

use super::facts::{CycleFacts, GraphFacts, ImportFacts};
use super::places::{Places, Wish};
use super::rows::{CycleOut, GraphRow, ImportOut};
use super::{GraphOp, Lookup};
use crate::extract::{self, Language};
use crate::link::{ImportSite, Imported};
use crate::model::count::count;
use crate::ops::op::Page;
use crate::ops::paths::inside;
use crate::ops::paths::path_of;
use crate::ops::sink::Recorded;
use crate::query::{is_folder, unknown_path};
use crate::session::Result;
use crate::snapshot::FileId;

impl Lookup<'_> {
    /// Lists the imports of files, or the imports of other files that import them.
    pub(super) fn imports(&self) -> Result<Page<GraphFacts, GraphRow>> {
        let mut of = self.files_of_target()?;
        of.sort_unstable();
        let is_importers = self.request.op == GraphOp::Importers;
        let mut sites = if is_importers {
            self.all_imports()
        } else {
            self.imports_of(&of)
        };
        let is_inside = |file: FileId| of.binary_search(&file).is_ok();
        let mut unknown: Vec<&ImportSite> = sites.iter().filter(|site| site.imported == Imported::Unknown).collect();
        if is_importers {
            unknown.retain(|site| !is_inside(site.file) && of.iter().any(|file| self.can_import(site.file, *file)));
        }
        let mut unknown_by_language = self.by_language(&unknown);
        if is_importers {
            self.add_hidden_importers(&of, &mut unknown_by_language)?;
        }
        let n_unknown = unknown_by_language.values().sum();
        if is_importers {
            sites.retain(|site| !is_inside(site.file) && of.iter().any(|file| site.imported.includes(*file)));
        }
        let facts = ImportFacts {
            total: sites.len(),
            files: sites.iter().map(|site| site.file).collect::<BTreeSet<_>>().len(),
            outside: sites.iter().filter(|site| site.imported == Imported::Outside).count(),
            unknown: n_unknown,
            uncertain: sites.is_empty() && n_unknown > 0,
            unknown_by_language,
        };
        let mut line = match (facts.total, is_importers) {
            (0, true) if facts.uncertain => format!("importers of {} are not known", count(of.len(), "file")),
            (0, true) => format!("no imports of {}", count(of.len(), "file")),
            (0, false) => format!("no imports in {}", count(of.len(), "file")),
            (total, _) => format!("{} in {}", count(total, "import"), count(facts.files, "file")),
        };
        if facts.outside > 0 {
            line += &format!(" · {} outside", facts.outside);
        }
        line += &not_resolved(&facts.unknown_by_language);
        let of_page: Vec<&ImportSite> = self.part.of(&sites);
        let mut wish = Wish::default();
        of_page
            .iter()
            .for_each(|site| wish.position(site.file, site.range.start));
        let places = wish.read(&self.question.sources())?;
        let rows = of_page
            .iter()
            .map(|site| GraphRow::Import(self.import(site, &places)))
            .collect();
        let is_uncertain = facts.uncertain;
        let mut page = self.page(rows, sites.len(), GraphFacts::Imports(facts));
        page.is_unfinished |= is_uncertain;
        page.head = Recorded::of(|out| out.whole_line(&line));
        Ok(page)
    }

    /// Counts the files whose code is not read and that contain the name of one of these files.
    fn add_hidden_importers(&self, of: &[FileId], numbers: &mut BTreeMap<&'static str, usize>) -> Result<()> {
        let view = self.question.view();
        let is_wanted = self.is_wanted();
        let mut files = BTreeSet::new();
        for (of, path) in of.iter().map(|file| (*file, path_of(view, *file))) {
            let is_hidden = |file: &FileId| self.linker.may_hide_uses(*file, of) && is_wanted(*file);
            let name = path.rsplit('/').next().unwrap_or_default();
            let stem = name.split('.').next().unwrap_or_default();
            if !stem.is_empty() {
                files.extend(self.linker.files_with(stem)?.into_iter().filter(is_hidden));
            }
        }
        for file in files.into_iter().filter(|file| of.binary_search(file).is_err()) {
            let language = extract::language(view.lang(file)).map_or("other", |language| language.name);
            *numbers.entry(language).or_default() += 1;
        }
        Ok(())
    }

    /// Returns true if a file can import another one, judged by their languages.
    fn can_import(&self, file: FileId, other: FileId) -> bool {
        let is_code = extract::language(self.question.view().lang(other)).is_some_and(Language::is_code);
        !is_code || self.linker.is_like(file, other)
    }

    /// Counts imports by the language of their files.
    fn by_language(&self, sites: &[&ImportSite]) -> BTreeMap<&'static str, usize> {
        let mut numbers = BTreeMap::new();
        for site in sites {
            let language = extract::language(self.question.view().lang(site.file));
            *numbers
                .entry(language.map_or("other", |language| language.name))
                .or_default() += 1;
        }
        numbers
    }

    fn import(&self, site: &ImportSite, places: &Places) -> ImportOut {
        let view = self.question.view();
        let (line, text) = places.line(site.file, site.range.start);
        let (kind, to) = match &site.imported {
            Imported::Files(files) => ("file", files.iter().map(|file| path_of(view, *file)).collect()),
            Imported::Package(path, _) => ("package", vec![path.clone()]),
            Imported::Outside => ("outside", Vec::new()),
            Imported::Unknown => ("unknown", Vec::new()),
        };
        ImportOut {
            path: path_of(view, site.file),
            line,
            module: site.module.clone(),
            kind,
            to,
            text,
        }
    }

    /// Returns the files that the target names; without one, all files.
    fn files_of_target(&self) -> Result<Vec<FileId>> {
        let Some(typed) = &self.request.target else {
            return Ok(self.wanted_files());
        };
        let path = self.path_of(typed);
        let found = self.files_at(&path);
        found.ok_or_else(|| unknown_path(self.question.view(), &path).into())
    }

    /// Returns the path in the repository that a target names.
    pub(super) fn path_of(&self, typed: &str) -> String {
        let path = inside(&self.ask.session.workspace, typed);
        path.trim_start_matches("./").trim_end_matches('/').to_owned()
    }

    /// Returns the file at a path, or the files of the folder there.
    pub(super) fn files_at(&self, path: &str) -> Option<Vec<FileId>> {
        let view = self.question.view();
        if let Some(file) = view.find_text(path) {
            return Some(vec![file]);
        }
        let start = format!("{path}/");
        let inside = view.files().filter(|(_, file)| file.path.starts_with(start.as_bytes()));
        is_folder(view, path).then(|| inside.map(|(file, _)| file).collect())
    }

    pub(super) fn wanted_files(&self) -> Vec<FileId> {
        let is_wanted = self.is_wanted();
        self.question
            .view()
            .files()
            .map(|(file, _)| file)
            .filter(|file| is_wanted(*file))
            .collect()
    }

    pub(super) fn imports_of(&self, files: &[FileId]) -> Vec<ImportSite> {
        let sites: Vec<Vec<ImportSite>> = files.par_iter().map(|file| self.linker.imports(*file)).collect();
        sites.into_iter().flatten().collect()
    }

    fn all_imports(&self) -> Vec<ImportSite> {
        self.imports_of(&self.wanted_files())
    }

    /// Lists the sets of files that import each other.
    pub(super) fn cycles(&self) -> Result<Page<GraphFacts, GraphRow>> {
        let sites = self.all_imports();
        let mut edges: BTreeMap<FileId, BTreeSet<FileId>> = BTreeMap::new();
        for site in &sites {
            if let Imported::Files(files) = &site.imported {
                edges
                    .entry(site.file)
                    .or_default()
                    .extend(files.iter().filter(|file| **file != site.file));
            }
        }
        let components = components(&edges);
        let path = |file: &FileId| path_of(self.question.view(), *file);
        let row = |files: &BTreeSet<FileId>| {
            let cycle = shortest_cycle(&edges, files);
            GraphRow::Cycle(CycleOut {
                cycle: cycle.iter().map(path).collect(),
                files: files.iter().map(path).collect(),
            })
        };
        let rows: Vec<GraphRow> = components.iter().map(row).collect();
        let is_of_file = |site: &&ImportSite| matches!(site.imported, Imported::Files(_));
        let n_imports = sites.iter().filter(is_of_file).count();
        let unknown: Vec<&ImportSite> = sites.iter().filter(|site| site.imported == Imported::Unknown).collect();
        let facts = CycleFacts {
            total: rows.len(),
            files: components.iter().map(BTreeSet::len).sum(),
            imports: n_imports,
            unknown_by_language: self.by_language(&unknown),
            uncertain: rows.is_empty() && !unknown.is_empty(),
        };
        let looked_at = format!("{} of one file by another", count(n_imports, "import"));
        let mut line = match facts.total {
            0 if facts.uncertain => format!("no certain import cycles; {looked_at} followed"),
            0 => format!("no import cycles; {looked_at} followed"),
            n => format!(
                "{} with {} · {looked_at} followed",
                count(n, "import cycle"),
                count(facts.files, "file")
            ),
        };
        line += &not_resolved(&facts.unknown_by_language);
        let n_rows = rows.len();
        let is_uncertain = facts.uncertain;
        let mut page = self.page(rows, n_rows, GraphFacts::Cycles(facts));
        page.is_unfinished |= is_uncertain;
        page.head = Recorded::of(|out| out.whole_line(&line));
        Ok(page)
    }
}

/// Describes the imports that could not be resolved.
fn not_resolved(by_language: &BTreeMap<&'static str, usize>) -> String {
    let numbers: Vec<String> = by_language
        .iter()
        .map(|(language, n)| format!("{language} {n}"))
        .collect();
    match by_language.values().sum::<usize>() {
        0 => String::new(),
        n => format!(" · {n} not resolved ({})", numbers.join(", ")),
    }
}

/// Returns the sets of more than one file that reach one another (Tarjan's algorithm without recursion), by their first
/// file.
fn components(edges: &BTreeMap<FileId, BTreeSet<FileId>>) -> Vec<BTreeSet<FileId>> {
    let mut search = Tarjan::default();
    for &root in edges.keys() {
        search.visit(root, edges);
    }
    search.found.sort_by_key(|files| files.first().copied());
    search.found
}

#[derive(Default)]
struct Tarjan {
    /// For each visited file its number and the lowest number that it reaches.
    numbers: HashMap<FileId, (usize, usize)>,
    stack: Vec<FileId>,
    on_stack: BTreeSet<FileId>,
    found: Vec<BTreeSet<FileId>>,
}

impl Tarjan {
    fn visit(&mut self, root: FileId, edges: &BTreeMap<FileId, BTreeSet<FileId>>) {
        let next_of = |file: FileId| edges.get(&file).into_iter().flatten().copied();
        if self.numbers.contains_key(&root) {
            return;
        }
        self.enter(root);
        let mut path = vec![(root, next_of(root))];
        while let Some((file, next)) = path.last_mut() {
            let file = *file;
            match next.next() {
                Some(other) if !self.numbers.contains_key(&other) => {
                    self.enter(other);
                    path.push((other, next_of(other)));
                }
                Some(other) if self.on_stack.contains(&other) => self.lower(file, self.numbers[&other].0),
                Some(_) => {}
                None => {
                    path.pop();
                    let (number, low) = self.numbers[&file];
                    if let Some((before, _)) = path.last() {
                        self.lower(*before, low);
                    }
                    if number == low {
                        self.leave(file);
                    }
                }
            }
        }
    }

    fn enter(&mut self, file: FileId) {
        let number = self.numbers.len();
        self.numbers.insert(file, (number, number));
        self.stack.push(file);
        self.on_stack.insert(file);
    }

    fn lower(&mut self, file: FileId, low: usize) {
        if let Some((_, lowest)) = self.numbers.get_mut(&file) {
            *lowest = (*lowest).min(low);
        }
    }

    /// Takes a set off the stack.
    fn leave(&mut self, first: FileId) {
        let mut files = BTreeSet::new();
        while let Some(file) = self.stack.pop() {
            self.on_stack.remove(&file);
            files.insert(file);
            if file == first {
                break;
            }
        }
        if files.len() > 1 {
            self.found.push(files);
        }
    }
}

/// Returns the shortest cycle through the first file of a set.
fn shortest_cycle(edges: &BTreeMap<FileId, BTreeSet<FileId>>, files: &BTreeSet<FileId>) -> Vec<FileId> {
    let Some(&first) = files.first() else { return Vec::new() };
    let mut came_from: HashMap<FileId, FileId> = HashMap::new();
    let mut queue = VecDeque::from([first]);
    while let Some(file) = queue.pop_front() {
        for &next in edges
            .get(&file)
            .into_iter()
            .flatten()
            .filter(|next| files.contains(next))
        {
            if next == first {
                let mut cycle = vec![file];
                while let Some(&before) = cycle.last().and_then(|last| came_from.get(last)) {
                    cycle.push(before);
                }
                cycle.reverse();
                return cycle;
            }
            if let Entry::Vacant(unseen) = came_from.entry(next) {
                unseen.insert(file);
                queue.push_back(next);
            }
        }
    }
    vec![first]
}
