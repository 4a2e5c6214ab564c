//! The `codescout` program: parse, run, print the error chain, exit code.

use std::process::ExitCode;

use codescout::surface::{Doors, cli, mcp};

fn main() -> ExitCode {
    cli::main(std::env::args_os(), Doors { serve: mcp::serve })
}
