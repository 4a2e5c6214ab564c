//! The `codescout` program: parse, run, print the error chain, exit code.

use std::process::ExitCode;

fn main() -> ExitCode {
    codescout::surface::cli::main(std::env::args_os())
}
