//! What tests share. Knows nothing of the crate under test, so that unit tests can use it too.

#![allow(dead_code, reason = "each test binary uses its own part of it")]
#![allow(clippy::unwrap_used, reason = "tests")]

mod repo;

pub(crate) use repo::TestRepo;
