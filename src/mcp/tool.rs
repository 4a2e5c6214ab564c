//! What a tool is, and what its body is given.

use std::cell::OnceCell;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;

use super::arguments::{Arguments, Parameter};
use super::asked;
use super::hub::Hub;
use super::reply::Reply;
use crate::mcp::Bodies;
use crate::ops::Ask;
use crate::session::{Ctx, Session, Workspace};

/// No question takes longer: clients wait for a minute at least, people less.
pub(super) const QUESTION_TIME: Duration = Duration::from_secs(10);

/// A tool: what is said of it, and its body.
#[derive(Clone, Copy)]
pub(super) struct Tool {
    /// As it is called.
    pub(super) name: &'static str,
    /// For models: when to use it.
    pub(super) description: &'static str,
    /// Its own parameters.
    pub(super) own: fn() -> Vec<Parameter>,
    /// What it may be given that others are given too.
    pub(super) common: &'static [Parameter],
    /// Whether it changes nothing.
    pub(super) is_read_only: bool,
    /// How long a call may take before it is stopped.
    pub(super) time_limit: Duration,
    /// Answers a call.
    pub(super) run: fn(&Call<'_>) -> Result<Reply>,
}

impl Tool {
    /// Creates a tool that answers with one operation and changes nothing.
    pub(super) const fn of_op(
        name: &'static str,
        description: &'static str,
        own: fn() -> Vec<Parameter>,
        common: &'static [Parameter],
        run: fn(&Call<'_>) -> Result<Reply>,
    ) -> Self {
        Self {
            name,
            description,
            own,
            common,
            is_read_only: true,
            time_limit: QUESTION_TIME,
            run,
        }
    }

    /// Everything that it may be given.
    pub(super) fn parameters(&self) -> Vec<Parameter> {
        [(self.own)(), self.common.to_vec()].concat()
    }
}

/// One call of a tool.
pub(super) struct Call<'a> {
    /// The tool's name.
    pub(super) tool: &'static str,
    /// The repositories of the server.
    pub(super) hub: &'a Hub,
    /// The one that the call is about, when it was asked for.
    pub(super) found: OnceCell<Arc<Session>>,
    /// What was given.
    pub(super) arguments: Arguments,
    /// Progress, interruption and time limits.
    pub(super) ctx: Ctx<'a>,
    /// Where the text of results is wanted.
    pub(super) bodies: Bodies,
}

impl Call<'_> {
    /// The repository that the call is about.
    pub(super) fn session(&self) -> Result<&Arc<Session>> {
        match self.found.get() {
            Some(session) => Ok(session),
            None => {
                let session = self.hub.session(self.arguments.text("repo"))?;
                Ok(self.found.get_or_init(|| session))
            }
        }
    }

    /// Returns the call of an operation.
    pub(super) fn ask(&self) -> Result<Ask<'_>> {
        Ok(Ask {
            session: self.session()?,
            ctx: self.ctx,
            common: asked::common(self)?,
        })
    }

    /// The repository itself, its sidecar and settings.
    pub(super) fn workspace(&self) -> Result<&Workspace> {
        Ok(&self.session()?.workspace)
    }
}
