//! The `codescout` program.

fn main() {}
