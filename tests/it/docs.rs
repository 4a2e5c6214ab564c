//! Checks the documents: links are valid, all settings are documented, and no path of a particular machine occurs.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::cli::{PROGRAM, command_in};
use crate::support::InTime;
use codescout::config::{Config, Environment, NAMED, Overrides, RepositoryFiles, SETTINGS, Scope, variables};
use codescout::extract::{by_name, lang_of_path, profile};
use codescout::model::{Lang, RepoPath};

/// Paths of particular machines. They are concatenated here, so that this file does not contain them.
const MACHINE_PATHS: &[&str] = &[concat!("/", "work/"), concat!("/", "root/"), concat!("/", "home/")];
/// Maximum size of text files. Larger files are data.
const MAX_TEXT_BYTES: usize = 4 << 20;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Returns `README.md` and `docs/*.md`, relative to the root.
fn documents() -> Vec<String> {
    let entries = fs::read_dir(root().join("docs")).expect("there are documents");
    let names = entries.map(|entry| entry.expect("they can be listed").file_name());
    let mut documents: Vec<String> = names
        .map(|name| format!("docs/{}", name.to_string_lossy()))
        .filter(|name| name.ends_with(".md"))
        .collect();
    documents.push("README.md".to_owned());
    documents.sort();
    documents
}

/// Returns the lines of a document outside fenced code blocks.
fn prose(text: &str) -> Vec<&str> {
    let mut is_fenced = false;
    text.lines()
        .filter(|line| {
            let is_fence = line.trim_start().starts_with("```");
            is_fenced ^= is_fence;
            !is_fence && !is_fenced
        })
        .collect()
}

/// Returns the targets of the links in a document, except links to other sites.
fn links(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for line in prose(text) {
        for (at, _) in line.match_indices("](") {
            let rest = &line[at + 2..];
            let Some(end) = rest.find(')') else { continue };
            let target = &rest[..end];
            if !target.contains("://") && !target.starts_with("mailto:") {
                found.push(target.to_owned());
            }
        }
    }
    found
}

/// Converts a heading to an anchor, like code hosting sites: lower case, without punctuation, a hyphen for each space.
fn anchor(heading: &str) -> String {
    let kept = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = kept
        .chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

fn anchors(text: &str) -> BTreeSet<String> {
    let headings = prose(text).into_iter().filter(|line| line.starts_with('#'));
    headings.map(anchor).collect()
}

/// Returns the problem of a link in the document at `from`, if there is one.
fn complaint(from: &str, link: &str) -> Option<String> {
    let (path, fragment) = link.split_once('#').unwrap_or((link, ""));
    let folder = Path::new(from).parent().unwrap_or(Path::new(""));
    let target = if path.is_empty() {
        PathBuf::from(from)
    } else {
        folder.join(path)
    };
    let target = without_dots(&target);
    let name = target.to_string_lossy().into_owned();
    let whole = root().join(&target);
    if !whole.exists() {
        return Some(format!("{from}: {link} leads nowhere"));
    }
    let is_wrong = !fragment.is_empty() && name.ends_with(".md") && !anchors(&read(&name)).contains(fragment);
    is_wrong.then(|| format!("{from}: {link} names no heading"))
}

/// Resolves `..` in the path.
fn without_dots(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::ParentDir => {
                plain.pop();
            }
            std::path::Component::CurDir => {}
            other => plain.push(other),
        }
    }
    plain
}

/// Returns the files tracked by git, or the files on disk if this is not a repository.
fn tracked() -> Vec<String> {
    let listed = Command::new("git")
        .args(["ls-files", "-z"])
        .current_dir(root())
        .output_in_time();
    match listed {
        Ok(output) if output.status.success() && !output.stdout.is_empty() => {
            let names = output.stdout.split(|byte| *byte == 0).filter(|name| !name.is_empty());
            names.map(|name| String::from_utf8_lossy(name).into_owned()).collect()
        }
        _ => {
            let mut found = Vec::new();
            for part in ["src", "docs", "tests"] {
                on_disk(Path::new(part), &mut found);
            }
            found.push("README.md".to_owned());
            found
        }
    }
}

fn on_disk(folder: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(root().join(folder)).expect("it can be listed") {
        let name = folder.join(entry.expect("it can be listed").file_name());
        if root().join(&name).is_dir() {
            on_disk(&name, found);
        } else {
            found.push(name.to_string_lossy().into_owned());
        }
    }
}

#[test]
fn links_lead_somewhere() {
    let mut wrong = Vec::new();
    let mut n_links = 0;
    for document in documents() {
        for link in links(&read(&document)) {
            n_links += 1;
            wrong.extend(complaint(&document, &link));
        }
    }
    assert!(n_links > 10, "{n_links} links were found");
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn every_document_is_listed() {
    let listed = links(&read("docs/README.md"));
    for document in documents() {
        let name = document.strip_prefix("docs/").filter(|name| *name != "README.md");
        assert!(
            name.is_none_or(|name| listed.iter().any(|link| link == name)),
            "{document}"
        );
    }
}

#[test]
fn pages_that_are_read_are_short() {
    const MAX_WORDS: usize = 3_000;
    const REFERENCE: &[&str] = &["docs/cli.md", "docs/evaluation.md", "docs/formats.md", "docs/mcp.md"];
    let mut pages = documents();
    pages.retain(|page| !REFERENCE.contains(&&**page));
    for page in pages {
        let n_words = read(&page).split_whitespace().count();
        assert!(n_words <= MAX_WORDS, "{page} has {n_words} words");
    }
}

/// Fails unless every tag of an SVG is closed in turn and it loads and runs nothing.
#[track_caller]
fn check_picture(svg: &str) {
    let mut open = Vec::new();
    for tag in svg.split('<').skip(1) {
        let (tag, text) = tag.split_once('>').expect("a tag ends");
        let name = tag.split([' ', '/']).next().unwrap();
        match tag.strip_prefix('/') {
            Some(end) => assert_eq!(open.pop(), Some(end), "<{tag}>"),
            None if tag.ends_with('/') => {}
            None => open.push(name),
        }
        let n_entities = ["&amp;", "&lt;", "&gt;"].map(|entity| text.matches(entity).count());
        assert_eq!(text.matches('&').count(), n_entities.iter().sum::<usize>(), "{text}");
        assert!(["svg", "style", "rect", "text", "tspan", ""].contains(&name), "<{tag}>");
        assert!(
            !tag.contains("href") && !text.contains("url(") && !text.contains('>'),
            "<{tag}>{text}"
        );
    }
    assert!(open.is_empty(), "{open:?}");
}

#[test]
fn readme_shows_a_recording_that_is_small_and_harmless() {
    const RECORDING: &str = "docs/recording.svg";
    let svg = read(RECORDING);
    assert!(read("README.md").contains(&format!("]({RECORDING})")));
    assert!(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\"") && svg.len() < 40_000);
    assert!(!svg.contains("/tmp/"), "{svg}");
    check_picture(&svg);
    for command in ["codescout search", "codescout graph callers", "codescout history"] {
        assert!(svg.contains(&format!("$ {command}")), "{command}");
    }
}

/// What git needs to make commits.
const IDENTITY: &[&str] = &[
    "GIT_AUTHOR_NAME",
    "GIT_AUTHOR_EMAIL",
    "GIT_COMMITTER_NAME",
    "GIT_COMMITTER_EMAIL",
];
/// Documents with samples. They are run in this order in one clone.
const SAMPLED: &[&str] = &["README.md", "docs/tutorial.md"];

/// Returns the samples of a document: the commands, and the range of what each prints.
fn samples(text: &str) -> Vec<(String, Range<usize>)> {
    let mut found: Vec<(String, Range<usize>)> = Vec::new();
    let (mut at, mut is_sample) = (0, false);
    for line in text.split_inclusive('\n') {
        at += line.len();
        match line.strip_prefix("$ ") {
            _ if line.starts_with("```") => is_sample = line == "```console\n",
            Some(command) if is_sample => found.push((command.trim_end().to_owned(), at..at)),
            _ if is_sample => found.last_mut().expect("a sample starts with a command").1.end = at,
            _ => {}
        }
    }
    found
}

/// Runs a command in a shell, with the program on its path.
fn run_in_shell(command: &str, folder: &Path, home: &Path) -> Output {
    let programs = Path::new(PROGRAM).parent().expect("the program is in a folder");
    let path = std::env::var("PATH").unwrap_or_default();
    command_in("sh", folder, &["-c", command])
        .env("PATH", format!("{}:{path}", programs.display()))
        .env("HOME", home)
        .envs(IDENTITY.iter().map(|name| (name, "reader")))
        .output_in_time()
        .expect("there is a shell")
}

/// Returns what a command prints.
fn printed(command: &str, folder: &Path, home: &Path) -> String {
    let called = run_in_shell(command, folder, home);
    let errors = String::from_utf8_lossy(&called.stderr);
    assert!(called.status.success(), "{command}: {errors}");
    String::from_utf8(called.stdout).expect("samples are text")
}

/// Returns the commands in the blocks of a document for a shell, except those with other programs.
fn examples(text: &str) -> Vec<&str> {
    let blocks = text
        .split("```sh\n")
        .skip(1)
        .filter_map(|rest| rest.split("```").next());
    let lines = blocks
        .flat_map(str::lines)
        .filter(|line| line.starts_with("codescout "));
    let commands = lines.map(|line| line.split(" #").next().unwrap_or_default().trim_end());
    let is_plain = |command: &&str| !command.contains(['|', '<', '>', '$', '&', ';', '`']) && !command.contains(" -- ");
    commands.filter(is_plain).collect()
}

/// A command with an unknown option or value fails before it prints its help.
#[test]
fn options_in_examples_exist() {
    let nowhere = tempfile::tempdir().expect("there is a temporary folder");
    let texts: Vec<String> = documents().iter().map(|document| read(document)).collect();
    let commands: Vec<&str> = texts.iter().flat_map(|text| examples(text)).collect();
    assert!(commands.len() > 100, "{}", commands.len());
    let shell = |command: &str| run_in_shell(&format!("{command} --help"), nowhere.path(), nowhere.path());
    let wrong: Vec<&&str> = commands
        .iter()
        .filter(|command| !shell(command).status.success())
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(!shell("codescout search --no-such-option").status.success());
}

/// Runs the samples of documents at the commit that README names. Clones without that commit, such as shallow ones, are
/// left out. `CODESCOUT_ACCEPT=1` writes what is shown.
#[test]
fn documents_show_what_the_program_prints() {
    let readme = read("README.md");
    let pinned = readme
        .split("at commit `")
        .nth(1)
        .and_then(|rest| rest.split('`').next());
    let pinned = pinned.expect("README names the commit of its samples");
    let temporary = tempfile::tempdir().expect("there is a temporary folder");
    let (home, clone) = (temporary.path(), temporary.path().join("codescout"));
    let known = Command::new("git")
        .arg("-C")
        .arg(root())
        .args(["cat-file", "-e", &format!("{pinned}^{{commit}}")])
        .output_in_time();
    if !known.expect("git is there").status.success() {
        return;
    }
    let clone_command = format!("git clone -q --shared --no-checkout '{}' codescout", root().display());
    printed(&clone_command, home, home);
    printed(&format!("git checkout -q {pinned}"), &clone, home);
    let authors = printed("git log --format=%an", &clone, home);
    let authors: BTreeSet<&str> = authors.lines().collect();
    for document in SAMPLED {
        let text = read(document);
        let (mut renewed, mut end) = (String::new(), 0);
        for (command, shown) in samples(&text) {
            let printed = printed(&command, &clone, home);
            let printed = authors.iter().fold(printed, |text, author| text.replace(author, "…"));
            renewed.push_str(&text[end..shown.start]);
            renewed.push_str(&printed);
            end = shown.end;
        }
        renewed.push_str(&text[end..]);
        if std::env::var_os("CODESCOUT_ACCEPT").is_some() {
            fs::write(root().join(document), &renewed).expect("documents can be written");
            continue;
        }
        let differs = renewed
            .lines()
            .zip(text.lines())
            .find(|(printed, shown)| printed != shown);
        assert_eq!(
            differs, None,
            "{document}; to accept: CODESCOUT_ACCEPT=1 cargo test --test it documents_show"
        );
        assert_eq!(renewed.len(), text.len(), "{document}");
    }
}

/// Returns the cells of the rows of the table whose header begins so.
fn table<'a>(document: &'a str, header: &str) -> Vec<Vec<&'a str>> {
    let lines = document.lines().skip_while(|line| !line.starts_with(header)).skip(2);
    let rows = lines.take_while(|line| line.starts_with('|'));
    let cells = |row: &'a str| row.trim_matches('|').split('|').map(str::trim).collect();
    rows.map(cells).collect()
}

/// Returns the name of a language as the program prints it.
fn language_name(shown: &str) -> String {
    match shown {
        "C++" => "cpp".to_owned(),
        "C#" => "csharp".to_owned(),
        name => name.to_lowercase(),
    }
}

#[test]
fn languages_in_readme_have_what_is_measured_and_supported() {
    let (readme, evaluation) = (read("README.md"), read("docs/evaluation.md"));
    let mut search = BTreeMap::new();
    for row in table(&evaluation, "| first set, odd ids | by file | by lines | with places |") {
        let [left, right] = [&row[0..2], &row[5..7]];
        search.extend([left, right].map(|cells| (cells[0], cells[1])));
    }
    let found: BTreeMap<String, &str> = table(&evaluation, "| language | repositories | declarations |")
        .into_iter()
        .map(|row| (language_name(row[0]), row[4]))
        .collect();
    let mut linked = Vec::new();
    on_disk(Path::new("tests/fixtures/link"), &mut linked);
    let linked: BTreeSet<Lang> = linked
        .iter()
        .map(|name| lang_of_path(&RepoPath::new(name.as_bytes())))
        .collect();
    let mut listed = BTreeSet::new();
    for row in table(&readme, "| language | search |") {
        let names: Vec<String> = row[0].split(", ").map(language_name).collect();
        let cells = names.iter().zip(row[1].split(", ")).zip(row[2].split(", "));
        for ((name, by_file), share) in cells {
            assert_eq!(by_file, search[&**name], "{name}");
            assert_eq!(share, found[name], "{name}");
            let lang = by_name(name).expect("a language");
            assert_eq!(row[3] != "within a file", linked.contains(&lang), "{name}");
            assert_eq!(row[5] != "–", !profile(lang).keywords.is_empty(), "{name}");
            listed.insert(lang);
        }
    }
    assert_eq!(listed.len(), found.len());
}

#[test]
fn broken_links_are_told_from_good_ones() {
    assert_eq!(complaint("docs/formats.md", "../README.md"), None);
    assert_eq!(complaint("docs/formats.md", "architecture.md#threads-and-memory"), None);
    assert!(complaint("docs/formats.md", "CHANGELOG.md").is_some());
    assert!(complaint("README.md", "docs/architecture.md#no-such-heading").is_some());
    let text = "see [a](b.md), [c](https://d.example)\n```\n[e](f.md)\n```\n";
    assert_eq!(links(text), ["b.md"]);
}

#[test]
fn every_variable_and_key_is_documented() {
    let text = read("docs/configuration.md");
    let config = Config::resolve(
        &Overrides::default(),
        &Environment::default(),
        &RepositoryFiles::default(),
    )
    .unwrap();
    let keys = config.entries().into_iter().map(|entry| entry.key);
    let named = NAMED.iter().map(|setting| setting.key.to_owned());
    let names = variables().map(|(name, _)| name.to_owned()).chain(keys).chain(named);
    let missing: Vec<String> = names.filter(|name| !text.contains(&format!("`{name}`"))).collect();
    assert!(missing.is_empty(), "{missing:#?}");
}

#[test]
fn scopes_and_variables_of_settings_are_documented() {
    let text = read("docs/configuration.md");
    let rows: Vec<&str> = text.lines().filter(|line| line.starts_with('|')).collect();
    let committed = rows.iter().find(|row| row.contains("`.codescout.toml`"));
    let committed = committed.expect("there is a row for it");
    for setting in SETTINGS {
        let key = format!("`{}`", setting.key);
        assert_eq!(committed.contains(&key), setting.scope == Scope::Repository, "{key}");
        if let Some(name) = setting.variable {
            let name = format!("`{name}`");
            assert!(
                rows.iter().any(|row| row.contains(&name) && row.contains(&key)),
                "{name}"
            );
        }
    }
}

#[test]
fn every_documented_variable_is_read() {
    let text = read("docs/configuration.md");
    let is_part = |c: char| c.is_ascii_uppercase() || c == '_';
    let named: BTreeSet<&str> = text
        .split(|c: char| !is_part(c))
        .filter(|word| word.starts_with("CODESCOUT_"))
        .collect();
    let unknown: Vec<&&str> = named
        .iter()
        .filter(|name| !variables().any(|(known, _)| known == **name))
        .collect();
    assert!(!named.is_empty() && unknown.is_empty(), "{unknown:#?}");
}

#[test]
fn every_room_stands_on_the_map() {
    let map = read("docs/architecture.md");
    let library = read("src/lib.rs");
    for entry in fs::read_dir(root().join("src")).expect("there are rooms") {
        let path = entry.expect("they can be listed").path();
        if path.is_dir() {
            let room = format!("{}/", path.file_name().unwrap_or_default().to_string_lossy());
            assert!(map.contains(&room), "docs/architecture.md does not name {room}");
            assert!(library.contains(&room), "src/lib.rs does not name {room}");
        }
    }
}

/// Returns every source file with its text, by path relative to the root.
fn sources() -> Vec<(String, String)> {
    let mut names = Vec::new();
    for folder in ["src", "tests"] {
        on_disk(Path::new(folder), &mut names);
    }
    names.retain(|name| name.ends_with(".rs") && !name.contains("/vendor/"));
    names.into_iter().map(|name| (name.clone(), read(&name))).collect()
}

/// Returns the texts between backticks in a document, outside fenced code blocks.
fn code_spans(text: &str) -> Vec<&str> {
    prose(text)
        .into_iter()
        .flat_map(|line| line.split('`').skip(1).step_by(2))
        .collect()
}

/// Returns true if a code span is an identifier of this program: `snake_case`, `Type::method`, `TypeName`.
fn is_own_name(span: &str) -> bool {
    let is_word = |word: &str| !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let is_camel = |word: &str| {
        word.starts_with(|c: char| c.is_ascii_uppercase())
            && word.chars().skip(1).any(|c| c.is_ascii_uppercase())
            && word.chars().any(|c| c.is_ascii_lowercase())
    };
    span.split("::").all(is_word) && (span.contains("::") || span.contains('_') || is_camel(span))
}

#[test]
fn what_documents_name_is_there() {
    let sources = sources();
    let mut wrong = Vec::new();
    for document in ["docs/architecture.md", "docs/formats.md", "docs/adding-a-language.md"] {
        let text = read(document);
        for span in code_spans(&text) {
            let is_there = if span.contains('<') {
                true
            } else if span.ends_with(".rs") {
                let ending = format!("/{span}");
                sources.iter().any(|(name, _)| format!("/{name}").ends_with(&ending))
            } else if is_own_name(span) && !span.starts_with("GIT_") {
                let last = span.rsplit("::").next().unwrap_or(span);
                sources.iter().any(|(_, text)| text.contains(last))
            } else {
                true
            };
            if !is_there {
                wrong.push(format!("{document}: {span}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn no_path_of_a_machine_and_no_conflict_is_committed() {
    let mut wrong = Vec::new();
    for name in tracked() {
        // A file may be deleted without being committed.
        let Ok(bytes) = fs::read(root().join(&name)) else {
            continue;
        };
        if bytes.len() > MAX_TEXT_BYTES || bytes.contains(&0) {
            continue;
        }
        let text = String::from_utf8_lossy(&bytes);
        let found = MACHINE_PATHS.iter().filter(|path| text.contains(**path));
        wrong.extend(found.map(|path| format!("{name}: {path}")));
        let conflict = text.lines().find(|line| line.starts_with("<<<<<<< "));
        wrong.extend(conflict.map(|line| format!("{name}: {line}")));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
