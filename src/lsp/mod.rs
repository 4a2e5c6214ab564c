//! Language servers: one broker process per user starts them, asks them and stops them.
//!
//! A question is about files of one worktree in one language. The broker runs one server per worktree and language, and
//! answers only once the server has read the project. Start with [`Question`] and [`ask`]; in the broker, `broker.rs`
//! accepts questions, `worker.rs` answers those for one server, and `project.rs` asks it.

mod ask;
mod broker;
mod documents;
mod frames;
mod place;
mod positions;
mod process;
mod project;
mod question;
mod readiness;
mod servers;
mod transport;
mod uri;
mod wire;
mod worker;

pub use ask::{ask, running};
pub use broker::{BrokerOptions, serve_broker};
pub use place::BrokerPlace;
pub use process::{Guard, guard, kill_tree, memory_by_group};
pub use question::{Answer, AskError, Canary, KnownFile, Place, Question, References};
pub use servers::{ServerStatus, servers};
pub use wire::RunningServer;
