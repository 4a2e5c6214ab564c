//! The Model Context Protocol (MCP) server, which provides tools to agents over standard input and output or over HTTP.
//!
//! Messages are handled asynchronously. Each call runs on a blocking thread (`blocking.rs`), where synchronous code
//! answers it. The tools are in `tools/`. Start reading at `server.rs`.

mod aliases;
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

use parking_lot::Mutex;

pub(crate) use self::blocking::{Blocking, Outcome, Permit};
pub(crate) use self::connection::{Limited, Pace};
pub(crate) use self::http::say;
pub(crate) use self::hub::Hub;
pub use self::options::{Bodies, HttpOptions, Profile, ServeOptions};
use self::server::Server;
pub(crate) use self::stdio::termination_signal;
use self::tools::selected;
use crate::session::{Context as _, Result};

/// Number of threads that handle messages. Calls run on blocking threads.
const MESSAGE_THREADS: usize = 2;
/// Maximum number of blocking threads: one for each running or waiting call, and some for abandoned calls.
const CALL_THREADS: usize = 640;

/// Serves tools until the client disconnects or the process receives a termination signal.
pub fn serve(options: &ServeOptions) -> Result<()> {
    let hub = Arc::new(Hub::new(&options.repo, &options.roots, options.fleet.as_ref())?);
    let server = Server::new(Arc::clone(&hub), selected(options)?, options.bodies);
    let hubs = Arc::new(Mutex::new(vec![Arc::clone(&hub)]));
    let runtime = runtime()?;
    let served = match &options.http {
        None => runtime.block_on(stdio::serve(server)),
        Some(http) => {
            let default_file = token::default_file(&hub);
            let access = match hub.whole_fleet() {
                Some(fleet) => token::choose_of_fleet(http, default_file, fleet)?,
                None => token::choose(http, default_file)?,
            };
            let hubs = Arc::clone(&hubs);
            let handlers = move |groups: &[String]| match hub.whole_fleet() {
                Some(fleet) if !groups.is_empty() => {
                    let hub = Arc::new(Hub::of_fleet(fleet.clone(), groups)?);
                    hubs.lock().push(Arc::clone(&hub));
                    Ok(server.with_hub(hub))
                }
                _ => Ok(server.clone()),
            };
            runtime.block_on(http::serve(Box::new(handlers), http, access))
        }
    };
    // Stops builds that no call waits for. Data that they have published remains.
    hubs.lock().iter().for_each(|hub| hub.stop());
    runtime.shutdown_background();
    served
}

/// Serves another handler through the same HTTP code. Used to run the protocol's conformance suite against that code.
#[doc(hidden)]
pub fn serve_handler<H: rmcp::ServerHandler + Clone>(handler: H, options: &HttpOptions) -> Result<()> {
    let access = token::choose(options, None)?;
    runtime()?.block_on(http::serve(Box::new(move |_| Ok(handler.clone())), options, access))
}

fn runtime() -> Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(MESSAGE_THREADS)
        .max_blocking_threads(CALL_THREADS)
        .thread_name("messages")
        .enable_all()
        .build()
        .context("cannot start the message threads")
}
