//! Resources that a client can show or attach without calling a tool: guides, a summary, and the contents of a commit.
//! All of them are also available through tools.

use rmcp::RoleServer;
use rmcp::model::{CacheScope, ErrorData, ReadResourceResult, Resource, ResourceContents, ResourceTemplate};
use rmcp::service::RequestContext;
use serde_json::{Map, Value, json};

use super::blocking::Outcome;
use super::guides;
use super::reply::error_text;
use super::server::Server;
use super::tools::TOOLS;

const SCHEME: &str = "codescout://";
/// Caching time for guides and for the contents of a fully indexed commit, which do not change while the program runs.
const FIXED_TTL_MS: u64 = 86_400_000;

/// Returns the resources that have a fixed URI.
pub(super) fn all() -> Vec<Resource> {
    let guides = guides::topics().into_iter().map(|topic| {
        Resource::new(format!("{SCHEME}guide/{topic}"), format!("guide-{topic}"))
            .with_title(format!("Guide: {topic}"))
            .with_description(format!("How to use codescout: {topic}"))
            .with_mime_type("text/markdown")
    });
    let summary = Resource::new(format!("{SCHEME}repo/summary"), "repo-summary")
        .with_title("Summary of the repository")
        .with_description("Languages, folders, entry points, build files and tests of the worktree")
        .with_mime_type("text/plain");
    guides.chain([summary]).collect()
}

/// Returns the resource templates, whose URIs have a parameter.
pub(super) fn templates() -> Vec<ResourceTemplate> {
    vec![
        ResourceTemplate::new(format!("{SCHEME}snapshot/{{commit}}"), "snapshot")
            .with_title("Contents of a commit")
            .with_description("Files, languages and coverage of a commit, tag or branch")
            .with_mime_type("text/plain"),
    ]
}

/// Returns the text of a resource.
pub(super) async fn read(
    server: &Server,
    uri: &str,
    context: &RequestContext<RoleServer>,
) -> Result<ReadResourceResult, ErrorData> {
    let not_found = || {
        let short: String = uri.chars().take(200).collect();
        ErrorData::resource_not_found(format!("unknown resource {short:?}"), Some(json!({"uri": uri})))
    };
    let path = uri.strip_prefix(SCHEME).ok_or_else(not_found)?;
    if let Some(text) = path.strip_prefix("guide/").and_then(guides::find) {
        return Ok(contents(uri, text, "text/markdown", FIXED_TTL_MS, CacheScope::Public));
    }
    let (tool, arguments, ttl_ms) = match path.split_once('/') {
        Some(("repo", "summary")) => ("outline", json!({"view": "summary"}), 0),
        Some(("snapshot", commit)) => {
            let commit = decoded(commit)
                .filter(|commit| !commit.is_empty())
                .ok_or_else(not_found)?;
            let ttl_ms = if is_whole_id(&commit) { FIXED_TTL_MS } else { 0 };
            ("outline", json!({"view": "summary", "ref": commit}), ttl_ms)
        }
        _ => return Err(not_found()),
    };
    let tool = TOOLS.iter().find(|known| known.name == tool).ok_or_else(not_found)?;
    match server.answer(tool, object(arguments), context, false).await {
        Outcome::Ended(Ok(reply)) => {
            let ttl_ms = if reply.is_complete { ttl_ms } else { 0 };
            Ok(contents(uri, &reply.text, "text/plain", ttl_ms, CacheScope::Private))
        }
        Outcome::Ended(Err(error)) => Err(ErrorData::resource_not_found(
            error_text(&error.for_tools()),
            Some(json!({"uri": uri})),
        )),
        Outcome::Cancelled | Outcome::TooLong => Err(ErrorData::internal_error("the call was stopped", None)),
        Outcome::Panicked(message) => Err(ErrorData::internal_error(message, None)),
    }
}

/// Returns true for a full commit id. In contrast, branches, tags and abbreviated ids may resolve to different commits
/// over time.
fn is_whole_id(commit: &str) -> bool {
    matches!(commit.len(), 40 | 64) && commit.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Decodes percent-encoding. Returns `None` if it is malformed or not UTF-8. Source: RFC 3986, section 2.1; RFC 6570
/// expands templates this way.
fn decoded(text: &str) -> Option<String> {
    let mut parts = text.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at_checked(2)?;
        if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        bytes.extend(rest.as_bytes());
    }
    String::from_utf8(bytes).ok()
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(object) => object,
        _ => Map::new(),
    }
}

fn contents(uri: &str, text: &str, mime_type: &str, ttl_ms: u64, scope: CacheScope) -> ReadResourceResult {
    let contents = ResourceContents::text(text, uri).with_mime_type(mime_type);
    ReadResourceResult::new(vec![contents])
        .with_ttl_ms(ttl_ms)
        .with_cache_scope(scope)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resource_uris_are_percent_decoded() {
        assert_eq!(decoded("feature%2Fx").as_deref(), Some("feature/x"));
        assert_eq!(decoded("v1").as_deref(), Some("v1"));
        assert_eq!(decoded("%C3%A4").as_deref(), Some("ä"));
        for wrong in ["100%", "%2", "%+1x", "%ff"] {
            assert_eq!(decoded(wrong), None, "{wrong}");
        }
    }
}
