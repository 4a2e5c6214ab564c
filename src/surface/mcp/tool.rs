//! What a tool is, and what its body is given.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::Value;

use super::arguments::{Arguments, Parameter};
use super::desk::Desk;
use super::hub::Hub;
use super::jobs::Advance;
use super::reply::Reply;
use crate::surface::doors::Bodies;

/// No question takes longer: clients wait for a minute at least, people less.
pub(super) const QUESTION_TIME: Duration = Duration::from_secs(10);

/// A tool: what is said of it, and its body.
#[derive(Clone, Copy)]
pub(super) struct Tool {
    /// As it is called.
    pub(super) name: &'static str,
    /// For people.
    pub(super) title: &'static str,
    /// For models: when to use it.
    pub(super) description: &'static str,
    /// What it may be given.
    pub(super) parameters: &'static [Parameter],
    /// The JSON Schema of its own part of an answer, as properties.
    pub(super) output: fn() -> Value,
    /// Whether it changes nothing.
    pub(super) is_read_only: bool,
    /// How long a call may take before it is stopped.
    pub(super) time_limit: Duration,
    /// Answers a call.
    pub(super) run: fn(&Call<'_>) -> Result<Reply>,
}

/// One call of a tool.
pub(super) struct Call<'a> {
    /// The repositories of the server.
    pub(super) hub: &'a Hub,
    /// The one that the call is about.
    pub(super) desk: Arc<Desk>,
    /// What was given.
    pub(super) arguments: Arguments,
    /// Set when the caller has gone.
    pub(super) interrupt: &'a AtomicBool,
    /// When it came.
    pub(super) began: Instant,
    /// Where the text of results is wanted.
    pub(super) bodies: Bodies,
    /// Told of long work, if the caller wants that.
    pub(super) progress: &'a (dyn Fn(Advance) + Sync),
}
