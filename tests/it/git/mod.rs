//! The git room against the git executable, which is the oracle for everything here.

mod attributes;
mod hostile;
mod irregular;
mod linked;
mod objects;
mod oracle;
mod refs;
mod roots;
mod worktree;
