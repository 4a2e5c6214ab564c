//! `codescout doctor`

use std::sync::atomic::Ordering;

use serde::Serialize;

use super::args::{DoctorArgs, Global};
use super::config::SettingOut;
use super::progress::CliProgress;
use super::render::{FAINT, MATCH, Output, STRONG, one_line};
use super::{Found, INTERRUPTED};
use crate::config::{Origin, Overrides};
use crate::session::{OpError, Result, Workspace};
use crate::setup::doctor::{Finding, Report, Severity, examine};

#[derive(Debug, Serialize)]
struct DoctorOut {
    /// True if no problem was found.
    well: bool,
    findings: Vec<FindingOut>,
    settings: Vec<SettingOut>,
    /// The fixes made by `--fix`.
    mended: Vec<String>,
}

#[derive(Debug, Serialize)]
struct FindingOut {
    area: &'static str,
    severity: &'static str,
    message: String,
    mend: Option<String>,
}

pub(super) fn run(global: &Global, args: &DoctorArgs, output: &mut Output) -> Result<Found> {
    let mut report = examine(&global.repo, &INTERRUPTED);
    let mut mended = Vec::new();
    if args.fix && !report.remedies().is_empty() {
        mended = mend(&report, global)?;
        report = examine(&global.repo, &INTERRUPTED);
    }
    // After an interrupt, servers are missing from the report.
    if INTERRUPTED.load(Ordering::Relaxed) {
        return Err(OpError::interrupted());
    }
    if args.what_leaves {
        report.findings.retain(|finding| finding.area == "privacy");
        report.settings.clear();
    }
    let found = if report.is_well() {
        Found::Something
    } else {
        Found::Nothing
    };
    if output.json {
        let findings = report.findings.into_iter().map(FindingOut::from).collect();
        let settings = report.settings.into_iter().map(SettingOut::from).collect();
        let well = found == Found::Something;
        output.json(&DoctorOut {
            well,
            findings,
            settings,
            mended,
        })?;
    } else {
        show(&report, &mended, output)?;
    }
    Ok(found)
}

fn mend(report: &Report, global: &Global) -> Result<Vec<String>> {
    let workspace = Workspace::open(&global.repo, &Overrides::default())?;
    let progress = CliProgress::new(global.quiet);
    let remedies = report.remedies().into_iter();
    remedies
        .map(|remedy| remedy.apply(&workspace, progress.ctx()))
        .collect()
}

impl From<Finding> for FindingOut {
    fn from(finding: Finding) -> Self {
        Self {
            area: finding.area,
            severity: finding.severity.name(),
            message: finding.message,
            mend: finding.mend,
        }
    }
}

fn show(report: &Report, mended: &[String], output: &mut Output) -> Result<()> {
    for did in mended {
        output.line(&format!("fixed: {}", one_line(did)))?;
    }
    for finding in &report.findings {
        let style = match finding.severity {
            Severity::Fine | Severity::Note => FAINT,
            Severity::Warning => STRONG,
            Severity::Problem => MATCH,
        };
        let severity = output.styled(style, &format!("{:<7}", finding.severity.name()));
        output.line(&format!(
            "{severity}  {:<13}  {}",
            finding.area,
            one_line(&finding.message)
        ))?;
        if let Some(mend) = &finding.mend {
            output.line(&format!("{:<24} fix: {}", "", one_line(mend)))?;
        }
    }
    for setting in report
        .settings
        .iter()
        .filter(|setting| setting.origin != Origin::Default)
    {
        let origin = output.name(FAINT, &format!("({})", setting.origin));
        output.line(&format!(
            "setting  {} = {} {origin}",
            setting.key,
            one_line(&setting.value)
        ))?;
    }
    Ok(())
}
