//! `codescout broker`, which [`lsp::ask`](crate::lsp::ask) starts.

use std::io::stdin;
use std::time::Duration;

use super::args::BrokerArgs;
use super::{Found, INTERRUPTED};
use crate::lsp::{BrokerOptions, guard, serve_broker};
use crate::session::{Context as _, Result};

pub(super) fn run(args: &BrokerArgs) -> Result<Found> {
    let Some(folder) = args.folder.clone() else {
        guard(stdin().lock());
        return Ok(Found::Something);
    };
    let program = std::env::current_exe().context("cannot determine the path of this program")?;
    let mut options = BrokerOptions::new(folder, program);
    if let Some(seconds) = args.idle {
        options.idle = Duration::from_secs(seconds);
    }
    if let Some(seconds) = args.server_idle {
        options.server_idle = Duration::from_secs(seconds);
    }
    if let Some(mib) = args.max_memory {
        options.max_memory = mib << 20;
    }
    serve_broker(options, &INTERRUPTED).context("cannot serve language servers")?;
    Ok(Found::Something)
}
