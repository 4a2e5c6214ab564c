//! What a tool is, and what its body is given.

use std::cell::OnceCell;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::{Map, Value, json};

use super::arguments::{Arguments, Parameter};
use super::blocking::Seat;
use super::desk::Desk;
use super::hub::Hub;
use super::jobs::Advance;
use super::reply::Reply;
use crate::mcp::Bodies;
use crate::session::Workspace;

/// No question takes longer: clients wait for a minute at least, people less.
pub(super) const QUESTION_TIME: Duration = Duration::from_secs(10);
/// How long after a call came in it waits for an index. What is left of ten seconds is for an answer without it, on a busy machine.
const BUILD_TIME: Duration = Duration::from_millis(4_500);
/// How long after a call came in files are read to find those that it is likely about.
const READING_TIME: Duration = Duration::from_millis(5_700);

/// A tool: what is said of it, and its body.
#[derive(Clone, Copy)]
pub(super) struct Tool {
    /// As it is called.
    pub(super) name: &'static str,
    /// For people.
    pub(super) title: &'static str,
    /// For models: when to use it.
    pub(super) description: &'static str,
    /// What it alone may be given.
    pub(super) own: &'static [Parameter],
    /// What it may be given that others are given too.
    pub(super) common: &'static [Parameter],
    /// The JSON Schema of its own part of an answer, as properties.
    pub(super) output: fn() -> Value,
    /// Whether it changes nothing.
    pub(super) is_read_only: bool,
    /// How long a call may take before it is stopped.
    pub(super) time_limit: Duration,
    /// Answers a call.
    pub(super) run: fn(&Call<'_>) -> Result<Reply>,
}

impl Tool {
    /// Everything that it may be given.
    pub(super) fn parameters(&self) -> Vec<Parameter> {
        [self.own, self.common].concat()
    }
}

/// The JSON Schema of results that have some fields, each with its type, if they have them. The fields by which a program goes on:
/// all of them would make the list of tools half as long again.
pub(super) fn results(fields: &[(&str, &str)]) -> Value {
    let properties = fields.iter();
    let properties: Map<String, Value> = properties
        .map(|(name, kind)| ((*name).to_owned(), json!({"type": kind})))
        .collect();
    json!({"type": "array", "items": {"type": "object", "properties": properties}})
}

/// One call of a tool.
pub(super) struct Call<'a> {
    /// The tool's name.
    pub(super) tool: &'static str,
    /// The repositories of the server.
    pub(super) hub: &'a Hub,
    /// The one that the call is about, when it was asked for.
    pub(super) found: OnceCell<Arc<Desk>>,
    /// What was given.
    pub(super) arguments: Arguments,
    /// Set when the caller has gone.
    pub(super) interrupt: &'a AtomicBool,
    /// Its place among the calls that are worked on.
    pub(super) seat: &'a Seat,
    /// When it came.
    pub(super) began: Instant,
    /// Where the text of results is wanted.
    pub(super) bodies: Bodies,
    /// Told of long work, if the caller wants that.
    pub(super) progress: &'a (dyn Fn(Advance) + Sync),
}

impl Call<'_> {
    /// The repository that the call is about.
    pub(super) fn desk(&self) -> Result<&Arc<Desk>> {
        match self.found.get() {
            Some(desk) => Ok(desk),
            None => {
                let desk = self.hub.desk(self.arguments.text("repo"))?;
                Ok(self.found.get_or_init(|| desk))
            }
        }
    }

    /// How long the call still waits for an index that is being built.
    pub(super) fn patience(&self) -> Duration {
        BUILD_TIME.saturating_sub(self.began.elapsed())
    }

    /// Until when files are read that are not indexed yet; a call that has waited longer still reads some.
    pub(super) fn reading_ends(&self) -> Instant {
        const LEAST: Duration = Duration::from_millis(500);
        (self.began + READING_TIME).max(Instant::now() + LEAST)
    }

    /// The repository itself, its sidecar and settings.
    pub(super) fn workspace(&self) -> Result<&Workspace> {
        Ok(&self.desk()?.workspace)
    }
}
