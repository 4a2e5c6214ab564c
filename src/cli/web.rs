//! `codescout web`

use std::sync::atomic::Ordering;

use super::Found;
use super::args::{Global, WebArgs};
use super::signals::IS_SERVER;
use crate::session::Result;
use crate::web::{WebOptions, serve};

pub(super) fn run(global: &Global, args: &WebArgs) -> Result<Found> {
    IS_SERVER.store(true, Ordering::Relaxed);
    serve(&WebOptions {
        repo: global.repo.clone(),
        roots: args.roots.clone(),
        fleet: args.fleet.chosen(),
        port: args.port,
    })?;
    Ok(Found::Something)
}
