//! The `codescout` binary. Parses the arguments, runs the command, prints the error chain and sets the exit code.

use std::process::ExitCode;

use codescout::cli;

fn main() -> ExitCode {
    cli::main(std::env::args_os())
}
