//! Compares the module `git` with the git executable.

mod attributes;
mod hostile;
mod irregular;
mod linked;
mod objects;
mod oracle;
mod refs;
mod roots;
mod worktree;
