//! `codescout edit`: reads the operations from a file, standard input or the arguments.

use std::io::Read;

use super::args::{EditArgs, Global, PageArgs};
use super::input::read_input;
use super::render::Output;
use super::{Found, op};
use crate::edit::Operation;
use crate::ops::Edit;
use crate::session::{Context as _, OpError, Result, Workspace};

pub(super) fn run(workspace: Workspace, global: &Global, args: &EditArgs, output: &mut Output) -> Result<Found> {
    let edit = Edit {
        edits: operations(args)?,
        ..args.edit.clone()
    };
    op::run("edit", &edit, &PageArgs::default(), workspace, global, output)
}

fn operations(args: &EditArgs) -> Result<Vec<Operation>> {
    if let Some((verb, target)) = args.verb().zip(args.target.clone()) {
        let text = match args.text.as_deref() {
            Some("-") => Some(input()?),
            text => text.map(str::to_owned),
        };
        return Ok(vec![Operation {
            op: verb,
            target,
            text,
            expect: args.expect.clone(),
            old: args.old.clone(),
            count: args.count,
            all: args.all,
        }]);
    }
    if args.target.is_some() {
        return Err(OpError::new(
            format!("unknown operation {:?}", args.what),
            "codescout edit --help lists the operations",
        ));
    }
    let text = match args.file() {
        Some(file) => std::fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?,
        None => input()?,
    };
    serde_json::from_str(&text).context("the operations are not a JSON list as described in docs/editing.md")
}

fn input() -> Result<String> {
    Ok(read_input(|| {
        let mut text = String::new();
        std::io::stdin().lock().read_to_string(&mut text)?;
        Ok(text)
    })?)
}
