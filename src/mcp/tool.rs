//! Defines a tool, and the call that its function receives.

use std::cell::OnceCell;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use super::arguments::{Arguments, Parameter};
use super::asked;
use super::hub::Hub;
use super::parameters;
use super::reply::Reply;
use super::tools::{TOOLS, op};
use crate::mcp::{Bodies, Profile};
use crate::ops::{Ask, Op};
use crate::session::{CallCtx, Result, Session, Workspace};

/// Time limit of a query. Clients time out after a minute or more, but users do not want to wait that long.
pub(super) const QUESTION_TIME: Duration = Duration::from_secs(10);

/// The effect of a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// It changes nothing.
    Reads,
    /// It changes the index, which can be built again.
    Indexes,
    /// It changes files of the worktree.
    Writes,
}

/// A tool: its description and its function.
#[derive(Clone, Copy)]
pub(super) struct Tool {
    pub(super) name: &'static str,
    /// Explains to models when and how to use the tool.
    pub(super) description: &'static str,
    /// Returns the parameters that only this tool has.
    pub(super) own: fn() -> Vec<Parameter>,
    /// The common parameters that the tool accepts.
    pub(super) common: &'static [Parameter],
    /// The profile that has the tool; `None` if every server has it.
    pub(super) profile: Option<Profile>,
    pub(super) effect: Effect,
    /// Time limit of a call. After it, the call is interrupted.
    pub(super) time_limit: Duration,
    /// The next step after a call that was interrupted.
    pub(super) when_too_slow: &'static str,
    /// The function that answers a call.
    pub(super) run: fn(&Call<'_>) -> Result<Reply>,
}

impl Tool {
    /// Creates a read-only tool that runs one operation.
    pub(super) const fn of_op<O: Op + DeserializeOwned + JsonSchema>(
        name: &'static str,
        description: &'static str,
        common: &'static [Parameter],
    ) -> Self {
        Self {
            name,
            description,
            own: parameters::of::<O>,
            common,
            profile: None,
            effect: Effect::Reads,
            time_limit: QUESTION_TIME,
            when_too_slow: O::WHEN_TOO_SLOW,
            run: op::run::<O>,
        }
    }

    /// Makes the tool one that changes files, and that only servers with a profile have.
    pub(super) const fn writing(self, profile: Profile) -> Self {
        Self {
            profile: Some(profile),
            effect: Effect::Writes,
            ..self
        }
    }

    /// Returns all parameters that the tool accepts.
    pub(super) fn parameters(&self) -> &'static [Parameter] {
        static OF_ALL: LazyLock<Vec<(&str, Vec<Parameter>)>> = LazyLock::new(|| {
            let of_tool = |tool: &Tool| (tool.name, [(tool.own)(), tool.common.to_vec()].concat());
            TOOLS.iter().map(of_tool).collect()
        });
        let found = OF_ALL.iter().find(|(name, _)| *name == self.name);
        found.map_or(&[], |(_, parameters)| parameters)
    }
}

/// One call of a tool.
pub(super) struct Call<'a> {
    /// The tool's name.
    pub(super) tool: &'static str,
    /// The repositories of the server.
    pub(super) hub: &'a Hub,
    /// The repository of the call; set when it is first needed.
    pub(super) found: OnceCell<Arc<Session>>,
    pub(super) arguments: Arguments,
    /// Progress, interruption and time limits.
    pub(super) ctx: CallCtx<'a>,
    /// Determines which part of the reply contains the text of results.
    pub(super) bodies: Bodies,
    /// False if the client gets only the text.
    pub(super) sends_structure: bool,
}

impl Call<'_> {
    /// Returns the session of the repository that the call names, or of the default one.
    pub(super) fn session(&self) -> Result<&Arc<Session>> {
        match self.found.get() {
            Some(session) => Ok(session),
            None => {
                let session = self.hub.session(self.arguments.text("repo"))?;
                Ok(self.found.get_or_init(|| session))
            }
        }
    }

    /// Returns the parameters for running an operation in this call.
    pub(super) fn ask(&self) -> Result<Ask<'_>> {
        Ok(Ask {
            session: self.session()?,
            call: self.ctx,
            opens: self.hub,
            common: asked::common(self)?,
        })
    }

    /// Returns the repository, its sidecar and its settings.
    pub(super) fn workspace(&self) -> Result<&Workspace> {
        Ok(&self.session()?.workspace)
    }
}
