//! Prompts that users can select from a menu, and completion of their arguments.

use rmcp::RoleServer;
use rmcp::model::{
    CompleteRequestParams, CompleteResult, CompletionInfo, ErrorData, GetPromptResult, JsonObject, Prompt,
    PromptArgument, PromptMessage, Reference, Role,
};
use rmcp::service::RequestContext;

use super::arguments::MAX_TEXT_BYTES;
use super::blocking::Outcome;
use super::hub::Hub;
use super::server::Server;
use crate::model::Ctx;
use crate::session::{Build, CallCtx, Result, ViewRequest};

/// A prompt with at most one argument.
struct Known {
    name: &'static str,
    title: &'static str,
    about: &'static str,
    /// Name, description, and whether the argument is optional.
    argument: Option<(&'static str, &'static str, bool)>,
    text: &'static str,
}

/// The prompts. `{}` in a text is replaced by the argument.
const PROMPTS: &[Known] = &[
    Known {
        name: "onboard",
        title: "Get to know the repository",
        about: "Explain what this repository does, how it is built and where to start reading",
        argument: None,
        text: "Explain this repository to a newcomer. Use codescout: outline, then outline view=map, then read the \
               README and the entry points that the summary names. Describe what the repository does, its main parts \
               and how data flows between them, how it is built and tested, and which five files to read first. Cite a \
               path and a line for every claim.",
    },
    Known {
        name: "review-branch",
        title: "Review a branch",
        about: "Review the changes of the current branch against its base branch",
        argument: Some(("base", "the base branch", false)),
        text: "Review the branch that is checked out against {}. Use codescout: diff from={}...HEAD lists the changed \
               definitions of each file, by=text the changed lines; diff without from shows uncommitted changes. For \
               each changed definition, symbol with include=[\"body\", \"refs\"] shows its code and its references; \
               history and blame show why the old code was written. Report bugs first, with path and line, then risks, \
               then missing tests.",
    },
    Known {
        name: "explain-history",
        title: "Explain the history of a symbol or file",
        about: "Explain how a symbol or file evolved, and why",
        argument: Some(("target", "a symbol or a path", false)),
        text: "Explain how {} evolved. Use codescout: history target={} lists the commits that changed it, across \
               renames and moves; blame shows who last changed each part; diff between two of those commits, or read \
               with ref, shows the code at that time; search in=commits searches commit messages. Explain why it \
               changed, not only what changed.",
    },
];

/// Returns every prompt.
pub(super) fn all() -> Vec<Prompt> {
    let prompt = |known: &Known| {
        let argument = known.argument.map(|(name, about, is_optional)| {
            vec![
                PromptArgument::new(name)
                    .with_description(about)
                    .with_required(!is_optional),
            ]
        });
        Prompt::new(known.name, Some(known.about), argument).with_title(known.title)
    };
    PROMPTS.iter().map(prompt).collect()
}

/// Returns the text of a prompt with its argument filled in.
pub(super) fn get(name: &str, arguments: &JsonObject) -> Result<GetPromptResult, ErrorData> {
    let known = PROMPTS
        .iter()
        .find(|known| known.name == name)
        .ok_or_else(|| ErrorData::invalid_params("unknown prompt", None))?;
    let text = match known.argument {
        None => known.text.to_owned(),
        Some((argument, ..)) => {
            let value = arguments
                .get(argument)
                .and_then(|value| value.as_str())
                .unwrap_or_default();
            if value.trim().is_empty() || value.len() > MAX_TEXT_BYTES {
                return Err(ErrorData::invalid_params(
                    format!("the argument {argument} is missing or too long"),
                    None,
                ));
            }
            known.text.replace("{}", value)
        }
    };
    let message = PromptMessage::new_text(Role::User, text);
    Ok(GetPromptResult::new(vec![message]).with_description(known.about))
}

/// Returns completions for the beginning of an argument: paths if the argument is a target, otherwise names of refs.
pub(super) async fn complete(
    server: &Server,
    request: CompleteRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CompleteResult, ErrorData> {
    let is_path = match &request.r#ref {
        Reference::Prompt(prompt) => prompt.name == "explain-history",
        _ => false,
    };
    let begin = request.argument.value;
    let hub = server.hub().clone();
    let limit = std::time::Duration::from_secs(5);
    let outcome = server
        .blocking()
        .run(context.ct.cancelled(), limit, move |interrupt, _| {
            if is_path {
                paths(&hub, &begin, interrupt)
            } else {
                refs(&hub, &begin)
            }
        })
        .await;
    // If completion fails, the answer contains no suggestions.
    let mut values = match outcome {
        Outcome::Ended(Ok(values)) => values,
        _ => Vec::new(),
    };
    let total = values.len();
    values.truncate(CompletionInfo::MAX_VALUES);
    let has_more = total > values.len();
    let info = CompletionInfo::with_pagination(values, Some(total as u32), has_more);
    info.map(CompleteResult::new)
        .map_err(|error| ErrorData::internal_error(error, None))
}

fn refs(hub: &Hub, begin: &str) -> Result<Vec<String>> {
    let session = hub.session(None)?;
    let refs = session.workspace.repository.refs()?.into_iter();
    let names = refs.map(|found| short(&found.name.to_string()).to_owned());
    Ok(names.filter(|name| name.starts_with(begin)).collect())
}

/// Shortens the full name of a ref, like git.
fn short(name: &str) -> &str {
    let prefixes = ["refs/heads/", "refs/tags/", "refs/remotes/"];
    prefixes
        .iter()
        .find_map(|prefix| name.strip_prefix(prefix))
        .unwrap_or(name)
}

fn paths(hub: &Hub, begin: &str, interrupt: &std::sync::atomic::AtomicBool) -> Result<Vec<String>> {
    let request = ViewRequest {
        build: Build::Never,
        takes_last: true,
        ..ViewRequest::of("WORKTREE")
    };
    let call = CallCtx::unlimited(Ctx::silent(interrupt));
    let (seen, _) = hub.session(None)?.view(request, &call)?;
    let paths = seen
        .view
        .files()
        .map(|(_, file)| crate::model::quoted(file.path).into_owned());
    Ok(paths.filter(|path| path.starts_with(begin)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn history_prompts_name_the_history_tools() {
        for name in ["review-branch", "explain-history"] {
            let prompt = PROMPTS.iter().find(|prompt| prompt.name == name);
            let text = prompt.map_or("", |prompt| prompt.text);
            for tool in ["diff", "history", "blame"] {
                assert!(text.contains(tool), "{name} does not name {tool}");
            }
        }
    }
}
