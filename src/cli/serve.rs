//! `codescout serve`

use std::io::IsTerminal;
use std::sync::atomic::Ordering;

use super::Found;
use super::args::{BodiesArg, Global, ProfileArg, ServeArgs};
use super::render::note;
use super::signals::IS_SERVER;
use crate::mcp::{self, Bodies, HttpOptions, Profile, ServeOptions};
use crate::session::Result;

pub(super) fn run(global: &Global, args: &ServeArgs) -> Result<Found> {
    IS_SERVER.store(true, Ordering::Relaxed);
    if args.http.is_none() && !global.quiet && std::io::stdin().is_terminal() {
        note("this MCP server waits for a coding agent on standard input; press Ctrl-D to end it");
        note("`codescout install` configures an agent to start it");
    }
    mcp::serve(&ServeOptions {
        repo: global.repo.clone(),
        roots: args.roots.clone(),
        fleet: args.fleet.chosen(),
        profiles: args.profiles.iter().map(profile).collect(),
        without: args.without.clone(),
        bodies: match args.bodies {
            BodiesArg::ByClient => Bodies::ByClient,
            BodiesArg::Text => Bodies::Text,
            BodiesArg::Structured => Bodies::Structured,
            BodiesArg::Both => Bodies::Both,
        },
        http: args.http.clone().map(|address| HttpOptions {
            address,
            token_file: args.token_file.clone(),
            no_token: args.no_token,
            hosts: args.hosts.clone(),
        }),
    })?;
    Ok(Found::Something)
}

fn profile(typed: &ProfileArg) -> Profile {
    match typed {
        ProfileArg::Write => Profile::Write,
        ProfileArg::Memory => Profile::Memory,
        ProfileArg::Docs => Profile::Docs,
        ProfileArg::Run => Profile::Run,
    }
}
