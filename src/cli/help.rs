//! Help: commands in groups, examples before options, and the options of every command on a page of their own.

use std::fmt::Write;

use clap::{Arg, Command, CommandFactory};

use super::args::Args;
use super::man::version;

/// Name of the page about options of every command: `codescout help options`.
pub(super) const OPTIONS: &str = "options";

/// Commands by purpose.
const GROUPS: &[(&str, &[&str])] = &[
    ("Find", &["search", "grep", "symbol", "outline", "read", "fleet"]),
    ("Understand", &["graph", "history", "blame", "diff", "review", "web"]),
    ("Change", &["edit", "rename", "docs", "memory", "run"]),
    ("Share", &["export", "import", "push", "pull", "ci", "precise"]),
    (
        "Set up",
        &[
            "init",
            "install",
            "uninstall",
            "serve",
            "hooks",
            "index",
            "status",
            "doctor",
            "verify",
            "gc",
            "config",
            "completions",
            "man",
            "eval",
        ],
    ),
];

const PAGE: &str = "{about-with-newline}
{usage-heading} {usage}{after-help}

{all-args}

Options of every command: codescout help options";

const MORE: &str = "codescout help COMMAND   examples and options of a command
codescout help options   options of every command";

/// Returns the command line with its help.
pub(super) fn command() -> Command {
    let root = Args::command();
    let global: Vec<Arg> = root
        .get_arguments()
        .filter(|arg| arg.is_global_set())
        .cloned()
        .collect();
    let overview = overview(&root);
    root.version(version())
        .help_template(overview)
        .mut_args(|arg| {
            let is_global = arg.is_global_set();
            arg.hide_short_help(is_global).hide_long_help(is_global)
        })
        .mut_subcommands(|command| match command.get_name() {
            OPTIONS => command.args(&global).help_template("{about-with-newline}\n{options}"),
            _ => page(command),
        })
}

/// Returns the page about options of every command.
pub(super) fn options() -> String {
    let mut command = command();
    command.build();
    let page = command.find_subcommand_mut(OPTIONS).map(Command::render_help);
    page.map(|page| page.to_string()).unwrap_or_default()
}

fn page(command: Command) -> Command {
    command.help_template(PAGE).mut_subcommands(page)
}

/// Returns the template of the program's own help.
fn overview(root: &Command) -> String {
    let (header, name) = (root.get_styles().get_header(), root.get_styles().get_literal());
    let mut text = "{about-with-newline}\n{usage-heading} {usage}\n\n".to_owned();
    for (group, commands) in GROUPS {
        // Writing to a string does not fail.
        let _ = writeln!(text, "{header}{group}:{header:#}");
        for command in commands.iter().filter_map(|name| root.find_subcommand(name)) {
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            let _ = writeln!(text, "  {name}{:<12}{name:#} {about}", command.get_name());
        }
        text.push('\n');
    }
    text + MORE
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_command_is_in_one_group() {
        let listed: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| *names).copied().collect();
        let root = Args::command();
        let shown = root.get_subcommands().filter(|command| !command.is_hide_set());
        let shown: BTreeSet<&str> = shown.map(Command::get_name).collect();
        assert_eq!(listed.len(), shown.len());
        assert_eq!(listed.into_iter().collect::<BTreeSet<_>>(), shown);
    }

    #[test]
    fn short_help_fits_a_screen() {
        fn check(commands: &mut Command) {
            for command in commands.get_subcommands_mut() {
                let lines = command.render_help().to_string().lines().count();
                assert!(lines <= 45, "{}: {lines} lines", command.get_name());
                check(command);
            }
        }
        let mut root = command();
        root.build();
        check(&mut root);
    }
}
