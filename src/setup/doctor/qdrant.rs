//! Checks the Qdrant server for shared vectors, and lists the data that it receives.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::checks::{destination, reached};
use super::{Finding, Severity};
use crate::index::RowKind;
use crate::index::shared::{SharedError, Standing};
use crate::model::chain;
use crate::remote::{Compression, Qdrant, QdrantProbe};
use crate::session::{FleetFolder, Workspace};

const EXAMINE_WITHIN: Duration = Duration::from_secs(5);

fn finding(severity: Severity, message: String) -> Finding {
    Finding::new("qdrant", severity, message)
}

/// Checks the server.
pub(super) fn examined(workspace: &Workspace, interrupt: &AtomicBool) -> Vec<Finding> {
    let sharing = match workspace.vector_sharing().sharing() {
        Ok(sharing) => sharing,
        Err(error) => return vec![finding(Severity::Warning, format!("vectors are not shared: {error:#}"))],
    };
    let is_remote_only = workspace.vector_sharing().keeps_away(RowKind::Dense);
    let mut findings = Vec::new();
    if !workspace.config.qdrant.keep_local.value && !is_remote_only {
        let message = "qdrant.keep_local has no effect: it requires qdrant.server and embedding.server";
        findings.push(finding(Severity::Note, message.to_owned()));
    }
    let options = sharing.first().map(Qdrant::options);
    if options.is_some_and(|options| options.exact && options.collection.compression != Compression::None) {
        let message =
            "qdrant.compression has no effect while qdrant.exact is true: the uncompressed vectors are compared";
        findings.push(finding(Severity::Note, message.to_owned()));
    }
    let Some(endpoint) = sharing.first().map(|qdrant| &qdrant.options().endpoint) else {
        return findings;
    };
    if is_remote_only {
        let message = format!("vectors are stored only at {} (qdrant.keep_local)", endpoint.host());
        findings.push(finding(Severity::Fine, message));
    }
    let mut is_told_of = false;
    for qdrant in sharing {
        match qdrant.examine(EXAMINE_WITHIN, interrupt) {
            Ok(found) => {
                if !std::mem::replace(&mut is_told_of, true) {
                    findings.extend(server_findings(workspace, &endpoint.host(), &found));
                }
                findings.extend(vector_findings(qdrant, &found));
                findings.extend(other_dimension(workspace, qdrant, &found, interrupt));
            }
            Err(error) => {
                let until = if is_remote_only {
                    "the built-in model is used"
                } else {
                    "vectors are compared on this machine"
                };
                let missing = finding(
                    Severity::Warning,
                    format!("{}; until it answers {until}", chain(&error)),
                );
                let is_unusable = matches!(error, SharedError::Unusable { .. });
                findings.push(missing.mended_by(if is_unusable {
                    "codescout config set qdrant.prefix NAME, with a name that is not in use".to_owned()
                } else {
                    reached("qdrant", &error)
                }));
                break;
            }
        }
    }
    if endpoint.is_in_clear() {
        findings.push(finding(
            Severity::Warning,
            format!(
                "requests to {} use plain http: the vectors can be read by anyone on the network path",
                endpoint.host()
            ),
        ));
    }
    findings
}

fn server_findings(workspace: &Workspace, host: &str, found: &QdrantProbe) -> Vec<Finding> {
    let version = &found.version;
    let took = found.elapsed.as_millis();
    let mut findings = vec![finding(
        Severity::Fine,
        format!("Qdrant {version} at {host} answers in {took} ms"),
    )];
    if let Ok(Some(identity)) = workspace.vector_sharing().identity() {
        findings.push(finding(
            Severity::Fine,
            format!("this repository is identified there by {identity} (qdrant.repository)"),
        ));
    }
    findings
}

/// Checks the vectors of one kind.
fn vector_findings(qdrant: &Qdrant, found: &QdrantProbe) -> Vec<Finding> {
    let (alias, noun) = (qdrant.alias(), qdrant.kind().noun());
    let mut findings = Vec::new();
    if let Some(status) = found.collection.as_ref().filter(|status| *status != "green") {
        findings.push(finding(Severity::Note, format!("the collection {alias} is {status}")));
    }
    if !found.is_as_set {
        let message = format!("the collection {alias} was created with other settings");
        findings.push(finding(Severity::Note, message).mended_by("codescout index --new-collection"));
    }
    findings.push(match &found.standing {
        Some(Standing { is_removing: true, .. }) => finding(
            Severity::Warning,
            format!("{noun} are being removed; queries do not use the server until that is done"),
        )
        .mended_by("if the removing process was killed, run codescout index after five minutes"),
        Some(standing) => finding(
            Severity::Fine,
            format!("{} {noun} of this repository in {alias}", standing.n_vectors),
        ),
        None => finding(
            Severity::Note,
            format!("the server has no {noun} of this repository yet"),
        )
        .mended_by("codescout index"),
    });
    findings
}

/// Returns a warning if the dimension of the collection differs from the model's.
fn other_dimension(
    workspace: &Workspace,
    qdrant: &Qdrant,
    found: &QdrantProbe,
    interrupt: &AtomicBool,
) -> Option<Finding> {
    let dim = found.dim.filter(|_| qdrant.kind() == RowKind::Dense)?;
    let model = workspace.models.embedder().profile();
    let given = match (model.dim, workspace.models.remote()) {
        // If the embedding server does not respond, another check reports it.
        (0, Some(server)) => server.examine(EXAMINE_WITHIN, interrupt).ok()?.dim,
        (dim, _) => dim,
    };
    let message = format!(
        "the collection {} has vectors of {dim} components, but {} returns {given}: no vectors are shared",
        qdrant.alias(),
        model.model
    );
    (given != dim).then(|| {
        finding(Severity::Warning, message).mended_by(
            "codescout config set embedding.revision NAME, for a collection of its own, then codescout index",
        )
    })
}

/// Lists the data that the server of the user's fleet receives. Empty without a fleet.
pub(super) fn leaves_of_fleet() -> Vec<String> {
    let folder = FleetFolder::at(None).ok().filter(|folder| folder.settings().exists());
    let config = folder.and_then(|folder| folder.config().ok());
    let Some(options) = config.and_then(|config| config.qdrant.options().ok()?) else {
        return Vec::new();
    };
    vec![
        format!("{}, where codescout fleet finds files:", destination(&options.endpoint)),
        "for each chunk of the fleet's repositories its vector and up to three paths; for each file its path, \
         language, names of definitions and hashes of its words; for each repository its name, groups and commit"
            .to_owned(),
        "no text, and nothing from files whose names suggest secrets".to_owned(),
        "the vector and the hashed words of every question about the fleet".to_owned(),
    ]
}

/// Lists the data that the server receives. Empty if no server is configured.
pub(super) fn leaves(workspace: &Workspace) -> Vec<String> {
    let Ok(Some(options)) = workspace.config.qdrant.options() else {
        return Vec::new();
    };
    let (vectors, of_questions) = match workspace.models.remote_sparse() {
        Some(_) => (
            "the vector and the sparse vector of every chunk",
            "the vectors of every question",
        ),
        None => ("the vector of every chunk", "the vector of every question"),
    };
    vec![
        format!("{}, where clones share vectors:", destination(&options.endpoint)),
        format!(
            "{vectors} of the indexed revisions, from which much of the text can be reconstructed; no text, names \
             or paths, and nothing from files whose names suggest secrets"
        ),
        "an id for each chunk, computed from its text, and one for the repository".to_owned(),
        format!("{of_questions}, but those of grep and of the mode keyword"),
    ]
}
