//! The cause of an error in this module.

/// An error of a library or a system call.
pub type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Returns an error of gix as a cause, without what it quotes from a file: in a git directory from an archive, a link can
/// lead to any file of the user.
pub(super) fn without_quotes(error: &gix::Error) -> Cause {
    let said = error.iter_errors().map(|each| {
        if let Some(message) = each.downcast_ref::<gix::error::Message>() {
            message.message.to_string()
        } else if let Some(error) = each.downcast_ref::<gix::config::parse::Error>() {
            format!("line {} is not a setting", error.line_number())
        } else {
            each.to_string()
        }
    });
    said.collect::<Vec<_>>().join(": ").into()
}
