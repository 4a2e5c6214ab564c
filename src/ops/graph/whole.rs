//! Answers about all references of a view.

use std::collections::BTreeMap;

use rayon::prelude::*;

use super::Lookup;
use super::facts::{GraphFacts, StatsFacts};
use super::rows::{GraphRow, LanguageOut};
use crate::extract;
use crate::link::Linker;
use crate::model::count::count;
use crate::ops::op::Page;
use crate::ops::sink::Recorded;
use crate::session::Result;
use crate::snapshot::{FileId, View};

impl Lookup<'_> {
    /// Counts references by language and by how they were resolved.
    pub(super) fn stats(&self) -> Result<Page<GraphFacts, GraphRow>> {
        let (files, linker, view) = (self.wanted_files(), self.linker, self.question.view());
        let of_files: Vec<LanguageOut> = files
            .par_iter()
            .filter_map(|&file| stats_of(linker, view, file))
            .collect();
        let mut languages: BTreeMap<&str, LanguageOut> = BTreeMap::new();
        for one in of_files {
            let all = languages.entry(one.language).or_default();
            all.language = one.language;
            all.across_files = one.across_files;
            all.files += one.files;
            all.definitions += one.definitions;
            all.references += one.references;
            one.tiers
                .into_iter()
                .for_each(|(tier, n)| *all.tiers.entry(tier).or_default() += n);
        }
        languages.retain(|_, language| language.references > 0);
        let mut tiers: BTreeMap<&'static str, usize> = BTreeMap::new();
        for (tier, n) in languages.values().flat_map(|language| &language.tiers) {
            *tiers.entry(tier).or_default() += n;
        }
        let facts = StatsFacts {
            total: languages.len(),
            files: languages.values().map(|language| language.files).sum(),
            references: tiers.values().sum(),
            tiers,
        };
        let shown: Vec<String> = facts.tiers.iter().map(|(tier, n)| format!("{tier} {n}")).collect();
        let line = format!(
            "{} in {} ({})",
            count(facts.references, "reference"),
            count(facts.files, "file"),
            shown.join(", ")
        );
        let mut rows: Vec<GraphRow> = languages.into_values().map(GraphRow::Language).collect();
        rows.sort_by_key(|row| match row {
            GraphRow::Language(language) => std::cmp::Reverse(language.references),
            _ => std::cmp::Reverse(0),
        });
        let n_rows = rows.len();
        let mut page = self.page(rows, n_rows, GraphFacts::Stats(facts));
        page.head = Recorded::of(|out| out.whole_line(&line));
        Ok(page)
    }
}

fn stats_of(linker: &Linker<'_>, view: &View, file: FileId) -> Option<LanguageOut> {
    let links = linker.link_file(file)?;
    let mut tiers = BTreeMap::new();
    for link in &links {
        *tiers.entry(link.tier.name()).or_default() += 1;
    }
    let language = extract::language(view.lang(file)).map_or("text", |language| language.name);
    let definitions = linker.definitions(file).map_or(0, |list| list.len());
    Some(LanguageOut {
        language,
        files: 1,
        definitions,
        references: links.len(),
        tiers,
        across_files: linker.resolves_across_files(file),
    })
}
