//! `codescout gc`

use super::args::{GcArgs, Global, PageArgs};
use super::render::Output;
use super::{Found, op};
use crate::ops::Pins;
use crate::session::{Result, Workspace};

pub(super) fn run(workspace: Workspace, global: &Global, args: &GcArgs, output: &mut Output) -> Result<Found> {
    let page = PageArgs::default();
    if !args.pins.is_given() {
        return op::run("gc", &args.gc, &page, workspace, global, output);
    }
    let pins = Pins {
        dry_run: args.gc.dry_run,
        ..args.pins.clone()
    };
    op::run("gc", &pins, &page, workspace, global, output)
}
