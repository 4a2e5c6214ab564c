//! Language servers: one broker process per user starts them, asks them and stops them.
//!
//! A question is about files of one worktree in one language. The broker runs one server per worktree and language, and
//! answers only once the server has read the project. Start with [`Question`] and [`ask`].

mod question;

pub use question::{Answer, AskError, Canary, KnownFile, Place, Question, References};

/// Where the broker listens, and the program that is started as broker if none listens.
#[derive(Clone, Debug)]
pub struct BrokerPlace {
    /// A folder of the user for the socket.
    pub folder: std::path::PathBuf,
    /// The program.
    pub program: std::path::PathBuf,
}
