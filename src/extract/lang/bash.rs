//! Rules for Bash and POSIX shell.

use tree_sitter::Node;

use super::text::{import_of, variable, without_quotes};
use super::{Language, Profile, Structure};
use crate::extract::rules::{Grammar, Leaf, Mention, Named, Role, Rule, SignatureFrom, define, on, range_of};
use crate::extract::types::{DefinitionKind, Import, ReferenceKind};
use crate::extract::walk::{Cx, field};
use crate::model::{ByteRange, Lang};

pub(super) const LANGUAGE: Language = Language {
    name: "bash",
    lang: Lang(16),
    aliases: &["sh", "shell", "zsh", "shellscript"],
    extensions: &["sh", "bash", "zsh", "ksh", "bats", "ebuild", "eclass"],
    file_names: &[".bashrc", ".bash_profile", ".profile", ".zshrc", "PKGBUILD", "APKBUILD"],
    interpreters: &["sh", "bash", "zsh", "dash", "ksh", "ash", "bats"],
    profile: Profile { is_script: true, ..Profile::HASH },
    structure: Structure::Grammar(&Grammar::new("bash", &[RULES])),
};

const RULES: &[Rule] = &[
    on(&["function_definition"], define(DefinitionKind::Function).role()),
    on(&["variable_assignment"], define(DefinitionKind::Variable).name_by(assigned).not_local().role()),
    on(&["command"], define(DefinitionKind::Function).name_by(alias_name).role()),
    on(&["declaration_command"], Role::Wrap(SignatureFrom::Wrapper)),
    on(&["command"], Role::Import(sourced)),
    on(&["command"], Role::Mention(called)),
    on(&["comment"], Role::Comment),
    on(&["variable_name"], Role::Leaf(Leaf::Name)),
];

/// Built-in commands of shells. Calls of these are not recorded.
const BUILTINS: [&str; 34] = [
    ".", ":", "[", "alias", "break", "builtin", "cd", "command", "continue", "declare", "echo", "eval", "exec", "exit",
    "export", "false", "getopts", "local", "printf", "pwd", "read", "readonly", "return", "set", "shift", "source", "test",
    "trap", "true", "type", "ulimit", "umask", "unset", "wait",
];

/// Finds the name in `A=1`. Skips the environment of a command (`A=1 cmd`) and items of an array.
fn assigned<'t>(cx: &Cx<'_, 't>, node: Node<'t>, names: &mut Vec<Named>) {
    let name = field(node, "name").filter(|name| name.kind() == "variable_name" && cx.parent_kind() != "command");
    names.extend(name.map(|name| variable(cx, name)));
}

/// Finds the name in `alias up='…'`.
fn alias_name<'t>(cx: &Cx<'_, 't>, node: Node<'t>, names: &mut Vec<Named>) {
    if command_name(cx, node) != Some("alias") {
        return;
    }
    let Some(argument) = field(node, "argument") else { return };
    if let Some(len) = cx.text(argument).find('=') {
        let start = argument.start_byte() as u32;
        names.push(Named { range: ByteRange::new(start, start + len as u32), kind: None, qualifier: None });
    }
}

fn command_name<'a, 't>(cx: &Cx<'a, 't>, node: Node<'t>) -> Option<&'a str> {
    field(node, "name").map(|name| cx.text(name))
}

fn sourced<'t>(cx: &Cx<'_, 't>, node: Node<'t>, imports: &mut Vec<Import>) -> bool {
    if !matches!(command_name(cx, node), Some("source" | ".")) {
        return false;
    }
    let Some(file) = field(node, "argument") else { return false };
    imports.push(import_of(without_quotes(cx.text(file)), node));
    true
}

fn called<'t>(cx: &Cx<'_, 't>, node: Node<'t>, mentions: &mut Vec<Mention>) {
    let Some(name) = field(node, "name") else { return };
    let text = cx.text(name);
    let is_plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.:+".contains(&byte));
    if is_plain && !BUILTINS.contains(&text) {
        let qualifier = ByteRange::default();
        mentions.push(Mention::new(ReferenceKind::Call, range_of(name), qualifier));
    }
}
