//! The `codescout` program: parse, run, print the error chain, exit code.

use std::process::ExitCode;

use codescout::cli;

fn main() -> ExitCode {
    cli::main(std::env::args_os())
}
