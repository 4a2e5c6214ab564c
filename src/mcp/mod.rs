//! The tools of agents, over the Model Context Protocol: on standard input and output, or over HTTP.
//!
//! Asynchronous as far as messages are concerned; every question is handed over once (`blocking.rs`) and answered by the
//! synchronous rooms. A tool is one file in `tools/`. Start at `server.rs`.

mod arguments;
mod asked;
mod authority;
mod blocking;
mod connection;
mod guides;
mod http;
mod hub;
mod lines;
mod options;
mod parameters;
mod prompts;
mod reply;
mod resources;
mod server;
mod stdio;
mod suggest;
mod token;
mod tool;
mod tools;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use anyhow::{Context, Result};

use self::hub::Hub;
pub use self::options::{Bodies, HttpOptions, ServeOptions};
use self::server::Server;

/// Threads that messages are handled on; the work is done on others.
const MESSAGE_THREADS: usize = 2;
/// Threads that may block: one for each call that may be under way, if only to wait, and some that were given up.
const CALL_THREADS: usize = 640;

/// Serves tools until the client goes or the process is told to end.
pub fn serve(options: &ServeOptions) -> Result<()> {
    let hub = Arc::new(Hub::new(&options.repo, &options.roots)?);
    let server = Server::new(Arc::clone(&hub), options.bodies);
    let runtime = runtime()?;
    let served = match &options.http {
        None => runtime.block_on(stdio::serve(server)),
        Some(http) => {
            let access = token::choose(http, token::default_file(&hub))?;
            runtime.block_on(http::serve(server, http, access))
        }
    };
    // Work that nobody waits for any more is told to stop; what it has published stays.
    hub.stop();
    runtime.shutdown_background();
    served
}

/// Serves another handler through the same HTTP door: how the door itself is held against the protocol's conformance suite.
#[doc(hidden)]
pub fn serve_handler<H: rmcp::ServerHandler + Clone>(handler: H, options: &HttpOptions) -> Result<()> {
    let access = token::choose(options, None)?;
    runtime()?.block_on(http::serve(handler, options, access))
}

fn runtime() -> Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(MESSAGE_THREADS)
        .max_blocking_threads(CALL_THREADS)
        .thread_name("messages")
        .enable_all()
        .build()
        .context("cannot start the threads for messages")
}
