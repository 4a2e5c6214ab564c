//! Files by the number of other files that use them: hubs and orphans.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use serde::Serialize;

use super::Lookup;
use super::facts::{DegreeFacts, GraphFacts};
use super::rows::{GraphRow, name_of};
use crate::extract::{self, DefinitionKind, Language};
use crate::link::{DefId, ImportSite, Imported, Usage, Usages};
use crate::model::count::count;
use crate::ops::ask::WithTests;
use crate::ops::op::Page;
use crate::ops::paths::path_of;
use crate::ops::sink::{Recorded, Sink, Style};
use crate::query::{Source, definitions_at};
use crate::session::Result;
use crate::snapshot::FileId;

/// Maximum number of definitions that a hub lists.
const MAX_DEFINITIONS: usize = 5;

/// A file and how many others it is connected with.
#[derive(Debug, Serialize)]
pub(crate) struct DegreeOut {
    path: String,
    /// Number of other files that certainly refer to it or import it.
    used_by: usize,
    /// Number of other files that it certainly refers to or imports.
    uses: usize,
    /// Number of references that could mean its definitions, and of its imports that are not resolved.
    possible: usize,
    /// Its definitions that most other files refer to.
    definitions: Vec<DefinitionDegree>,
}

/// A definition and how often other files refer to it.
#[derive(Debug, Serialize)]
struct DefinitionDegree {
    id: String,
    line: u32,
    /// Number of other files with sure references.
    files: u32,
    /// Number of sure references in other files.
    references: u32,
}

impl DegreeOut {
    pub(super) fn render(&self, out: &mut dyn Sink) {
        out.span(Style::Path, &self.path);
        if self.used_by > 0 {
            out.span(Style::Fact, &format!(" used by {}", count(self.used_by, "file")));
        }
        if self.possible > 0 {
            out.span(Style::Fact, &format!(" {} possible", self.possible));
        }
        out.end();
        for one in &self.definitions {
            out.plain("    ");
            out.span(Style::Name, name_of(&one.id));
            let references = count(one.references, "reference");
            out.span(Style::Fact, &format!(" {references} in {}", count(one.files, "file")));
            out.end();
        }
    }
}

/// The connections of files.
struct Degrees {
    usages: Usages,
    used_by: HashMap<FileId, BTreeSet<FileId>>,
    uses: HashMap<FileId, BTreeSet<FileId>>,
    /// Files of packages that others import, and the files that import packages.
    in_packages: HashSet<FileId>,
    importing: HashSet<FileId>,
    /// Number of imports of each file that are not resolved.
    unknown: BTreeMap<FileId, usize>,
}

impl Degrees {
    /// Returns true if a file certainly uses another one, or the reverse.
    fn is_connected(&self, file: FileId) -> bool {
        let is_in = |files: &HashMap<FileId, BTreeSet<FileId>>| files.contains_key(&file);
        let is_of_package = self.in_packages.contains(&file) || self.importing.contains(&file);
        is_of_package || is_in(&self.used_by) || is_in(&self.uses)
    }
}

impl Lookup<'_> {
    /// Lists the files that most other files use, each with the definitions that they refer to.
    pub(super) fn hubs(&self) -> Result<Page<GraphFacts, GraphRow>> {
        let degrees = self.degrees()?;
        let used_by = |file: &FileId| degrees.used_by.get(file).map_or(0, BTreeSet::len);
        let mut files = self.wanted_files();
        files.retain(|file| used_by(file) > 0);
        files.sort_by_key(|file| (std::cmp::Reverse(used_by(file)), *file));
        let line = format!("{} that other files use", count(files.len(), "file"));
        // Without a certain connection, there can be possible ones.
        let has_doubt = |file: &FileId| files.is_empty() && self.possible(&degrees, *file) > 0;
        let n_possible = self.wanted_files().iter().filter(|file| has_doubt(file)).count();
        self.degree_page(&degrees, &files, n_possible, line)
    }

    /// Lists the files with code that no other file uses and that use no other file.
    pub(super) fn orphans(&self) -> Result<Page<GraphFacts, GraphRow>> {
        let degrees = self.degrees()?;
        let view = self.question.view();
        let is_code = |file: &FileId| extract::language(view.lang(*file)).is_some_and(Language::is_code);
        let mut files = self.wanted_files();
        files.retain(is_code);
        let n_code = files.len();
        files.retain(|file| !degrees.is_connected(*file));
        let n_alone = files.len();
        let is_sure = |file: &FileId| self.possible(&degrees, *file) == 0;
        let n_sure = files.iter().filter(|file| is_sure(file)).count();
        files.retain(|file| self.request.candidates || is_sure(file));
        files.sort_by_key(|file| (!is_sure(file), *file));
        let mut line = format!("{} of {}", count(n_sure, "orphan"), count(n_code, "code file"));
        if n_alone > n_sure {
            line += &format!(
                " · {} with candidates{}",
                n_alone - n_sure,
                self.how_to_list_candidates()
            );
        }
        self.degree_page(&degrees, &files, n_alone - n_sure, line)
    }

    fn degrees(&self) -> Result<Degrees> {
        let files = self.files_of_view(self.request.files.tests != WithTests::No);
        let mut degrees = Degrees {
            usages: self.linker.usages(&files),
            used_by: HashMap::new(),
            uses: HashMap::new(),
            in_packages: HashSet::new(),
            importing: HashSet::new(),
            unknown: BTreeMap::new(),
        };
        let imports = self.imports_of(&files);
        // After an interruption, all further links are unknown.
        self.question.sources().go_on()?;
        let mut pairs: BTreeSet<(FileId, FileId)> = degrees.usages.between().collect();
        for ImportSite { file, imported, .. } in &imports {
            match imported {
                Imported::Files(others) => pairs.extend(others.iter().map(|other| (*file, *other))),
                // Which files of a package are meant, references say.
                Imported::Package(_, others) => {
                    degrees.in_packages.extend(others.iter().filter(|other| *other != file));
                    degrees.importing.insert(*file);
                }
                Imported::Unknown => *degrees.unknown.entry(*file).or_default() += 1,
                Imported::Outside => {}
            }
        }
        for (from, to) in pairs.into_iter().filter(|(from, to)| from != to) {
            degrees.uses.entry(from).or_default().insert(to);
            degrees.used_by.entry(to).or_default().insert(from);
        }
        Ok(degrees)
    }

    /// Returns the definitions of a file that are counted, each with the references to it.
    fn usages_of(&self, degrees: &Degrees, file: FileId) -> Vec<(u32, Usage)> {
        let definitions = self.linker.definitions(file).unwrap_or_default();
        let indices = (0..)
            .zip(&definitions)
            .filter(|(_, one)| one.kind != DefinitionKind::Impl);
        let usage = |index| self.linker.usage_of(DefId { file, index }, &degrees.usages);
        indices.map(|(index, _)| (index, usage(index))).collect()
    }

    /// Returns the number of references and imports that could connect a file with another one.
    fn possible(&self, degrees: &Degrees, file: FileId) -> usize {
        let usages = self.usages_of(degrees, file);
        let possible: u32 = usages.iter().map(|(_, usage)| usage.possible).sum();
        possible as usize + degrees.unknown.get(&file).copied().unwrap_or_default()
    }

    fn degree_page(
        &self,
        degrees: &Degrees,
        files: &[FileId],
        candidates: usize,
        line: String,
    ) -> Result<Page<GraphFacts, GraphRow>> {
        let facts = DegreeFacts {
            total: files.len(),
            candidates,
        };
        let rows = self.part.of(files).into_iter();
        let rows = rows.map(|file| Ok(GraphRow::Degree(self.degree(degrees, *file)?)));
        let rows = rows.collect::<Result<Vec<_>>>()?;
        let mut page = self.page(rows, files.len(), GraphFacts::Degrees(facts));
        page.is_unfinished |= page.is_empty && candidates > 0;
        page.head = Recorded::of(|out| out.whole_line(&line));
        Ok(page)
    }

    fn degree(&self, degrees: &Degrees, file: FileId) -> Result<DegreeOut> {
        let sources = self.question.sources();
        let mut used = self.usages_of(degrees, file);
        used.retain(|(_, usage)| usage.files > 0);
        used.sort_by_key(|(index, usage)| (std::cmp::Reverse((usage.files, usage.sure - usage.own)), *index));
        used.truncate(MAX_DEFINITIONS);
        let found = match sources.reader().read(file)? {
            Source::Bytes(bytes) => definitions_at(sources.view(), file, &bytes, used.iter().map(|(index, _)| *index))?,
            _ => Vec::new(),
        };
        let definition = |(index, usage): &(u32, Usage)| {
            let found = found.iter().find(|found| found.index == *index)?;
            Some(DefinitionDegree {
                id: found.id.clone(),
                line: found.name_line,
                files: usage.files,
                references: usage.sure - usage.own,
            })
        };
        let size = |of: &HashMap<FileId, BTreeSet<FileId>>| of.get(&file).map_or(0, BTreeSet::len);
        Ok(DegreeOut {
            path: path_of(sources.view(), file),
            used_by: size(&degrees.used_by),
            uses: size(&degrees.uses),
            possible: self.possible(degrees, file),
            definitions: used.iter().filter_map(definition).collect(),
        })
    }
}
