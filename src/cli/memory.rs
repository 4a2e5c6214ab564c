//! `codescout memory`

use std::io::{self, Read as _};

use super::args::{Global, Paged};
use super::input::read_input;
use super::render::Output;
use super::{Found, op};
use crate::ops::Memory;
use crate::session::{Context as _, Result, Workspace};

/// Limit on the text that is read from standard input, in bytes. Longer than any note.
const MAX_INPUT_BYTES: u64 = 1 << 20;

pub(super) fn run(workspace: Workspace, global: &Global, memory: &Paged<Memory>, output: &mut Output) -> Result<Found> {
    let mut request = memory.op.clone();
    if request.text.as_deref() == Some("-") {
        let read = || {
            let mut text = String::new();
            io::stdin().take(MAX_INPUT_BYTES).read_to_string(&mut text)?;
            Ok(text)
        };
        request.text = Some(read_input(read).context("standard input cannot be read as text")?);
    }
    op::run("memory", &request, &memory.page, workspace, global, output)
}
