//! Checks which language servers could answer questions about the repository. Starts none.

use std::collections::BTreeSet;

use super::{Finding, Severity};
use crate::config::Environment;
use crate::extract::{lang_of_path, language};
use crate::lsp::{ServerStatus, servers};
use crate::session::Workspace;

const AREA: &str = "language-servers";

pub(super) fn examined(workspace: &Workspace) -> Vec<Finding> {
    let languages = languages(workspace);
    let known = servers(&Environment::read().search_path, workspace.repository.work_dir());
    let is_for = |server: &ServerStatus, language: &str| server.languages.contains(&language);
    let mut findings = Vec::new();
    let useful = known
        .iter()
        .filter(|server| languages.iter().any(|language| is_for(server, language)));
    let installed: Vec<&ServerStatus> = useful.filter(|server| server.program.is_some()).collect();
    for server in &installed {
        let of_here = server
            .languages
            .iter()
            .copied()
            .filter(|language| languages.contains(language));
        let faults = match server.known_faults {
            "" => String::new(),
            faults => format!("; {faults}"),
        };
        findings.push(Finding::new(
            AREA,
            Severity::Fine,
            format!(
                "{} says with --precise what names in {} mean{faults}",
                server.name,
                of_here.collect::<Vec<_>>().join(", ")
            ),
        ));
    }
    if let Some(command) = workspace.command_to_trust().filter(|_| !installed.is_empty()) {
        let message = "they may not read this repository until you trust it, because some run code of it";
        findings.push(Finding::new(AREA, Severity::Fine, message).mended_by(command));
    }
    for language in &languages {
        if installed.iter().any(|server| is_for(server, language)) {
            continue;
        }
        if let Some(first) = known.iter().find(|server| is_for(server, language)) {
            findings.push(Finding::new(
                AREA,
                Severity::Fine,
                format!(
                    "none for {language} is installed; {}: {}",
                    first.name, first.how_to_install
                ),
            ));
        }
    }
    findings
}

/// Returns the languages of the files in the checked-out commit.
fn languages(workspace: &Workspace) -> BTreeSet<&'static str> {
    let mut languages = BTreeSet::new();
    if let Ok(Some(target)) = workspace.target("HEAD") {
        let mut reader = workspace.repository.reader();
        // What cannot be read is reported by the check of objects.
        let _ = reader.tree_files(target.tree, &mut |file| {
            languages.extend(language(lang_of_path(&file.path)).map(|language| language.name));
        });
    }
    languages
}
