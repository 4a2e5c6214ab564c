//! Files that hold secrets by their names, and so are not shown to agents: neither read nor searched nor listed. They are taken out
//! of every view before a tool sees it, so that no tool has to remember them.

pub(super) use crate::extract::is_credential;

/// Whether a target (`path`, `path:10-20`, `path#id`) names such a file.
pub(super) fn is_hidden_target(target: &str) -> bool {
    let path = target.split(['#', ':']).next().unwrap_or(target);
    is_credential(path.as_bytes())
}
