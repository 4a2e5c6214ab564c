//! What tests share. Knows nothing of the crate under test, so that unit tests can use it too.

#![allow(dead_code, reason = "each test binary uses its own part of it")]
#![allow(clippy::unwrap_used, reason = "tests")]

pub(crate) mod model;
pub(crate) mod qdrant;
mod repo;
mod stub;

pub(crate) use repo::TestRepo;
#[allow(unused_imports, reason = "each test binary uses its own part of it")]
pub(crate) use stub::{Reply, Seen, Stub};
