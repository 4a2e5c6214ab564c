//! `codescout search`: reads the query from standard input if it is `-`.

use std::io::Read;

use super::args::{Global, Paged};
use super::input::read_input;
use super::render::Output;
use super::{Found, op};
use crate::ops::{MAX_QUERY_BYTES, Search};
use crate::session::{Result, Workspace};

pub(super) fn run(workspace: Workspace, global: &Global, args: &Paged<Search>, output: &mut Output) -> Result<Found> {
    let typed = args.op.reads_input().then(typed_query).transpose()?;
    let search = args.op.clone().completed(typed);
    op::run("search", &search, &args.page, workspace, global, output)
}

fn typed_query() -> Result<String> {
    Ok(read_input(|| {
        let mut text = String::new();
        let input = std::io::stdin().lock();
        input.take(MAX_QUERY_BYTES as u64 + 1).read_to_string(&mut text)?;
        Ok(text)
    })?)
}
