//! Rules of single languages about names.

use std::borrow::Cow;

use super::role::{Place, Subject};
use crate::extract::{self, Definition, DefinitionKind, ReferenceKind, language};
use crate::link::{DefId, Site, Tier};
use crate::model::ByteRange;
use crate::ops::question::Question;
use crate::query::Source;
use crate::session::{OpError, Result};
use crate::snapshot::FileId;

/// Maximum distance of a name of Python from the quotes around its type.
const MAX_TYPE_BYTES: usize = 1 << 10;
/// Maximum number of lines of a comment that are read.
const MAX_COMMENT_LINES: usize = 300;
/// Methods of interfaces of Go's standard library that types often implement, besides those that are never renamed.
const OF_GO_INTERFACES: &[&str] = &[
    "BlockSize",
    "Bounds",
    "ColorModel",
    "Enabled",
    "Handle",
    "IsDir",
    "LocalAddr",
    "ModTime",
    "RemoteAddr",
    "SetDeadline",
    "SetReadDeadline",
    "SetWriteDeadline",
    "Sum",
    "Sys",
    "WithAttrs",
    "WithGroup",
];

impl Subject<'_> {
    /// Fails if the language has uses of the definition that its name does not show.
    pub(super) fn check_language(&self, bytes: &[u8]) -> Result<()> {
        let (definition, name) = (&self.definition, &self.definition.name);
        let head = text(bytes, definition.range.start, definition.signature.start);
        let is_fixture = |line: &str| line.trim_start().starts_with('@') && line.contains("fixture");
        let why = match self.language {
            "python" if head.lines().any(is_fixture) => {
                format!("{name} is a fixture, which tests name by their parameters")
            }
            "java" if name == "value" && self.is_in_annotation(bytes) => {
                "annotations of java name value by giving only its value".to_owned()
            }
            "python" if !self.is_member && is_read_by_pytest(name) => {
                format!("pytest reads {name} by its name")
            }
            "python" if !self.is_member && !self.is_in_function && self.is_setting() => {
                format!("{name} is a setting, which another program reads by its name")
            }
            "rust" if !self.is_member && matches!(name.as_str(), "serialize" | "deserialize") => {
                format!("serde calls {name} of a module by its name")
            }
            "go" if name.starts_with("Example") && self.is_test_of_go(self.of.file) => {
                format!("{name} is named after what it shows")
            }
            _ => return Ok(()),
        };
        Err(OpError::failed(why))
    }

    /// Returns true for a name of a file that Sphinx or Django reads.
    fn is_setting(&self) -> bool {
        let path = self.view.file(self.of.file).path;
        let name = path.rsplit(|byte| *byte == b'/').next();
        let is_upper = !self.definition.name.bytes().any(|byte| byte.is_ascii_lowercase());
        let is_value = !self.definition.kind.is_callable() && !self.definition.kind.is_type();
        is_value && (name == Some(b"conf.py") || is_upper && name == Some(b"settings.py"))
    }

    /// Returns true in code of a documentation comment that is run as a test.
    pub(super) fn is_in_tested_text(&self, bytes: &[u8], at: usize) -> bool {
        let start = memchr::memrchr(b'\n', &bytes[..at]).map_or(0, |end| end + 1);
        let line = bytes[start..at].trim_ascii_start();
        match self.language {
            "python" => line.starts_with(b">>>") || line.starts_with(b"... "),
            "rust" if of_comment(line).is_some() => {
                let lines = bytes[..start].rsplit(|byte| *byte == b'\n').skip(1);
                let above = lines.map_while(of_comment).take(MAX_COMMENT_LINES);
                above.filter(|line| line.trim_ascii_start().starts_with(b"```")).count() % 2 == 1
            }
            _ => false,
        }
    }

    /// Returns true for an element of an annotation of Java.
    fn is_in_annotation(&self, bytes: &[u8]) -> bool {
        let outer = self.linker.type_around(self.of);
        let outer = outer.and_then(|outer| self.linker.definition(outer));
        outer.is_some_and(|outer| text(bytes, outer.signature.start, outer.signature.end).contains("@interface"))
    }

    /// Returns true for a declaration of TypeScript that is merged with those of an outside module or the global scope.
    pub(super) fn is_merged(&self, bytes: &[u8]) -> bool {
        let before = text(bytes, 0, self.definition.range.start);
        let is_around = |start: &str| {
            let inside = before.rfind(start).map_or("", |at| &before[at + start.len()..]);
            !inside.starts_with('.') && inside.matches('{').count() > inside.matches('}').count()
        };
        let starts = ["declare global", "declare module '", "declare module \""];
        self.is_script() && !self.is_member && starts.iter().any(|start| is_around(start))
    }

    /// Returns true for a member that only its own type has.
    pub(super) fn is_hidden(&self, bytes: &[u8]) -> bool {
        let definition = &self.definition;
        let modifiers = text(bytes, definition.signature.start, definition.name_range.start);
        let is_hiding = |word| matches!(word, "private" | "static");
        let has_modifiers = matches!(self.language, "java" | "typescript" | "tsx");
        has_modifiers && modifiers.split_whitespace().any(is_hiding) || definition.name.starts_with('#')
    }

    /// Returns why the meaning of a reference cannot be relied on, if it cannot.
    pub(super) fn doubt(&self, place: &Place, site: &Site, is_plain: bool, before: &[u8]) -> Option<&'static str> {
        match self.language {
            // In some macros and attributes, a path is not resolved.
            "rust" => (is_plain && site.kind != ReferenceKind::Import && ends_with_path(before)).then_some("macro"),
            "python" => self.doubt_in_python(place, site, before),
            _ if self.is_script() => self.doubt_in_script(site, before),
            _ => None,
        }
    }

    fn doubt_in_python(&self, place: &Place, site: &Site, before: &[u8]) -> Option<&'static str> {
        let is_import = site.kind == ReferenceKind::Import && site.tier == Tier::Outside && !self.is_member;
        match site.tier {
            // A name can be defined or imported.
            _ if is_import && self.is_in(place.file) => Some("import"),
            // `global name` before `from module import name`.
            Tier::Import if !self.is_member && declares_global(before, &self.definition.name) => Some("global"),
            Tier::Type | Tier::Return if self.has_namesakes => Some(site.tier.name()),
            _ => self.is_too_early(place, site).then_some("unresolved"),
        }
    }

    fn doubt_in_script(&self, site: &Site, before: &[u8]) -> Option<&'static str> {
        // In TypeScript, a value can have the name of a type.
        let kind = self.definition.kind;
        let is_only_type = matches!(kind, DefinitionKind::TypeAlias | DefinitionKind::Interface);
        let is_of_type = matches!(site.kind, ReferenceKind::Type | ReferenceKind::Import)
            || site.kind == ReferenceKind::Inherit && kind == DefinitionKind::Interface;
        // A parameter can be called `self`.
        let is_of_self = before.ends_with(b"self.") || before.ends_with(b"self?.");
        match site.tier {
            _ if is_of_self => Some(site.tier.name()),
            _ if is_only_type && !is_of_type => Some("value"),
            Tier::Type | Tier::Return if self.has_namesakes => Some(site.tier.name()),
            _ => None,
        }
    }

    /// Returns true for a key of an object of JavaScript, and for a field or method of Rust.
    pub(super) fn is_surely_member(&self, site: &Site, is_plain: bool, before: &[u8]) -> bool {
        match self.language {
            // In macros, the object is not known. A comment can end with a full stop.
            "rust" => {
                let before = if is_plain { before } else { before.trim_ascii_end() };
                before.ends_with(b".") && !before.ends_with(b"..")
            }
            _ => self.is_script() && site.kind == ReferenceKind::Member && is_plain,
        }
    }

    /// Returns true if a reference that was resolved to nothing in the repository can mean the definition after all.
    pub(super) fn may_be_inside(&self, place: &Place, site: &Site, is_plain: bool, before: &[u8]) -> bool {
        let (file, at) = (place.file, place.range.start);
        let is_after_dot = before.trim_ascii_end().ends_with(b".") || before.ends_with(b"::");
        let is_unsure = (self.is_member || is_after_dot) && !self.linker.is_surely_outside(file, at, is_after_dot);
        // Members by their bare names: cases and inherited members of Java, and what a class body of Python names. Paths of
        // Rust are not resolved from the crate in files that no Cargo.toml leads to, nor from `Self` of a type outside.
        let is_bare_member = self.is_member && is_plain && (self.language == "java" || self.is_in(file));
        let is_own = before.ends_with(b"Self::") || before.ends_with(b"::") && !ends_with_path(before);
        // The items of a file that a file of Rust includes.
        let is_included = is_plain && memchr::memmem::find(before, b"include!(").is_some();
        site.tier == Tier::Outside
            && (is_unsure || is_bare_member || (is_own || is_included) && self.language == "rust")
    }

    /// Returns true if code of a Python module runs before the definition, and can mean a built-in name:
    /// `native = str` above `str = str`.
    fn is_too_early(&self, place: &Place, site: &Site) -> bool {
        let of_file = self.kin.iter().filter(|of| of.file == place.file);
        let ends = of_file.filter_map(|of| Some(self.linker.definition(*of)?.range.end));
        let is_early = ends.min().is_some_and(|end| place.range.start < end);
        let mut around = site.inside;
        while let Some(of) = around {
            let outer = self.linker.definition(of);
            if outer.as_ref().is_none_or(|outer| outer.kind.is_callable()) {
                return false;
            }
            around = outer
                .and_then(|outer| outer.container)
                .map(|index| DefId { index, ..of });
        }
        is_early && site.kind != ReferenceKind::Type && !self.is_member && !self.is_in_function
    }

    /// Returns true if a definition of JavaScript is an assignment to a variable of which only one of them is renamed:
    /// `let run = wrap(a => a); run = wrap(b => b)`.
    pub(super) fn is_assignment(&self, place: &Place, of: DefId) -> bool {
        if self.is_member || !self.is_script() {
            return false;
        }
        let at = place.range.start;
        let visible = self.linker.visible_at(place.file, at, &self.definition.name);
        let is_meant = visible.iter().any(|target| self.kin.contains(target));
        !visible.is_empty() && is_meant != self.kin.contains(&of)
    }

    /// Returns true if a file has a definition that is renamed.
    fn is_in(&self, file: FileId) -> bool {
        self.kin.iter().any(|of| of.file == file)
    }

    pub(super) fn is_test_of_go(&self, file: FileId) -> bool {
        self.language == "go" && self.view.file(file).path.ends_with(b"_test.go")
    }

    /// Returns true if a place is in the name of an example of Go, which says what it shows: `func ExampleRoute_Path()`.
    pub(super) fn is_in_example(&self, bytes: &[u8], at: usize) -> bool {
        let line = memchr::memrchr(b'\n', &bytes[..at]).map_or(0, |end| end + 1);
        let before = format!(
            "func Example{}",
            self.type_name().map_or_else(String::new, |outer| outer + "_")
        );
        let after = bytes.get(at + self.definition.name.len());
        &bytes[line..at] == before.as_bytes() && matches!(after, Some(b'(' | b'_'))
    }

    /// Returns the places of Go that may need the name of an exported member: `_ other.Handler = (*Type)(nil)`, the import of
    /// a package that finds fields by their names, and a method of a standard interface.
    pub(super) fn bases_of_go(&self, question: &Question<'_>) -> Result<Vec<(FileId, ByteRange)>> {
        let (definition, mut found) = (&self.definition, Vec::new());
        let is_exported = self.is_member && definition.name.starts_with(char::is_uppercase);
        let Some(of) = self.type_name().filter(|_| self.language == "go" && is_exported) else {
            return Ok(found);
        };
        let is_field = definition.kind == DefinitionKind::Field;
        if !is_field && OF_GO_INTERFACES.contains(&definition.name.as_str()) {
            found.push((self.of.file, definition.name_range));
        }
        let tag = match question.sources().reader().read(self.of.file)? {
            Source::Bytes(bytes) => text(&bytes, definition.name_range.end, bytes.len() as u32).into_owned(),
            _ => String::new(),
        };
        let tag = tag.lines().next().unwrap_or_default();
        let needs = |line: &str| {
            if is_field {
                needs_name(line, tag)
            } else {
                is_assertion(line, &of)
            }
        };
        for file in self.files_beside() {
            let Source::Bytes(bytes) = question.sources().reader().read(file)? else {
                continue;
            };
            let mut start = 0;
            for line in bytes.split_inclusive(|byte| *byte == b'\n') {
                if needs(&String::from_utf8_lossy(line)) {
                    let end = start + line.trim_ascii_end().len() as u32;
                    found.push((file, ByteRange::new(start, end)));
                }
                start += line.len() as u32;
            }
        }
        Ok(found)
    }

    /// Returns the files of the language in the folder of the definition.
    fn files_beside(&self) -> impl Iterator<Item = FileId> {
        let folder = |file: FileId| self.view.file(file).path.rsplitn(2, |byte| *byte == b'/').nth(1);
        let files = self.view.files().map(|(file, _)| file);
        files.filter(move |file| self.linker.is_like(*file, self.of.file) && folder(*file) == folder(self.of.file))
    }

    /// Returns the name of the type that the definition is a member of.
    fn type_name(&self) -> Option<String> {
        let outer = || self.linker.definition(self.linker.type_around(self.of)?);
        self.definition.qualifier.clone().or_else(|| Some(outer()?.name))
    }

    /// Returns true for the key in `const { name: other } = module` if it is not resolved.
    pub(super) fn may_be_exported(&self, file: FileId, at: u32) -> bool {
        let is_resolved = |site: Site| site.tier.is_sure() && !site.targets.is_empty();
        let site = self.linker.site_at(file, at);
        !self.is_member && !self.is_in_function && !site.is_some_and(is_resolved)
    }

    /// Returns true for `name` in `const { name } = module`.
    pub(super) fn is_from_module(&self, place: &Place, bytes: &[u8]) -> bool {
        let rest = &bytes[place.range.end as usize..];
        let close = rest
            .iter()
            .position(|byte| *byte == b'}')
            .map_or(&[][..], |close| &rest[close + 1..]);
        let value = close
            .trim_ascii_start()
            .strip_prefix(b"=")
            .unwrap_or_default()
            .trim_ascii_start();
        let end = value
            .iter()
            .position(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_')
            .unwrap_or(value.len());
        let name = std::str::from_utf8(&value[..end]).unwrap_or_default();
        self.is_script() && !self.is_member && self.linker.imports_name(place.file, name)
    }

    pub(super) fn is_script(&self) -> bool {
        is_script(self.language)
    }

    /// Returns true if a place in a string of Python can name a type: `cast("Thing", x)`, `Callable[["Thing"], None]`.
    pub(super) fn is_quoted_type(&self, bytes: &[u8], at: usize) -> bool {
        let name = &self.definition.name;
        let is_camel = name.starts_with(char::is_uppercase) && name.contains(char::is_lowercase);
        let can_be = self.definition.kind.is_type() || is_camel && !self.definition.kind.is_callable();
        if !can_be || self.language != "python" {
            return false;
        }
        let is_quote = |byte: &u8| matches!(byte, b'"' | b'\'');
        let near = &bytes[at.saturating_sub(MAX_TYPE_BYTES)..bytes.len().min(at + MAX_TYPE_BYTES)];
        let at = at.min(MAX_TYPE_BYTES);
        let start = near[..at].iter().rposition(is_quote).map_or(at, |quote| quote + 1);
        let end = near[at..].iter().position(is_quote).map_or(at, |quote| at + quote);
        std::str::from_utf8(&near[start..end]).is_ok_and(extract::is_quoted_type)
    }
}

fn is_script(language: &str) -> bool {
    matches!(language, "javascript" | "typescript" | "tsx")
}

/// Returns true for a line of Go that says that a type implements an interface of another package, in any of its forms:
/// `var _ other.Handler = (*Type)(nil)`, `_ other.Handler = new(Type)`.
fn is_assertion(line: &str, of: &str) -> bool {
    let line = line.trim();
    let declared = line
        .strip_prefix("var ")
        .unwrap_or(line)
        .trim_start()
        .strip_prefix("_ ");
    declared
        .and_then(|rest| rest.split_once('='))
        .is_some_and(|(base, value)| {
            let mut words = value.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
            base.contains('.') && words.any(|word| word == of)
        })
}

/// Returns true for the import of a package of Go that finds a field by its name, unless the field's tag names it for the
/// package: `"encoding/json"` without the tag `json:"name"`.
fn needs_name(line: &str, tag: &str) -> bool {
    let line = line.split("//").next().unwrap_or_default().trim();
    let quoted = line.strip_prefix("import ").unwrap_or(line).strip_suffix('"');
    let Some((alias, path)) = quoted.and_then(|line| line.rsplit_once('"')) else {
        return false;
    };
    let is_alias = alias
        .trim()
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.'));
    let is_import = is_alias && (path.contains('/') || path == "reflect");
    let mut words = path.split(|letter: char| !letter.is_ascii_alphanumeric());
    is_import
        && words.any(|word| match word {
            "json" | "xml" | "yaml" | "toml" => !tag.contains(&format!("{word}:\"")),
            word => matches!(word, "gob" | "template" | "reflect"),
        })
}

fn is_read_by_pytest(name: &str) -> bool {
    name.starts_with("pytest") || matches!(name, "collect_ignore" | "collect_ignore_glob")
}

/// Returns the text of a line of a documentation comment of Rust.
fn of_comment(line: &[u8]) -> Option<&[u8]> {
    let line = line.trim_ascii();
    line.strip_prefix(b"///").or(line.strip_prefix(b"//!"))
}

/// Returns true for `value.name = function …` in JavaScript, unless the module exports it.
pub(super) fn is_property(question: &Question<'_>, of: DefId, definition: &Definition) -> Result<bool> {
    let is_script = language(question.view().lang(of.file)).is_some_and(|language| is_script(language.name));
    let source = question.sources().reader().read(of.file)?;
    let Source::Bytes(bytes) = source else { return Ok(false) };
    let before = bytes.get(..definition.name_range.start as usize).unwrap_or_default();
    let object = before.trim_ascii_end().strip_suffix(b".");
    Ok(is_script && object.is_some_and(|object| !object.ends_with(b"exports") && !object.ends_with(b"module")))
}

/// Returns true if a function of a Python file says that a name is that of the module.
pub(super) fn declares_global(bytes: &[u8], name: &str) -> bool {
    let lines = bytes.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    let mut names = lines.filter_map(|line| line.strip_prefix(b"global "));
    names.any(|names| {
        names
            .split(|byte| *byte == b',')
            .any(|other| other.trim_ascii() == name.as_bytes())
    })
}

/// Returns true if a text ends with the qualifier of a name, other than a keyword.
fn ends_with_path(before: &[u8]) -> bool {
    before.strip_suffix(b"::").is_some_and(|path| {
        ![&b"crate"[..], b"self", b"super"]
            .iter()
            .any(|keyword| path.ends_with(keyword))
    })
}

fn text(bytes: &[u8], start: u32, end: u32) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes.get(start as usize..end as usize).unwrap_or_default())
}
