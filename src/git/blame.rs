//! Finds the commit that each line of a file comes from by running `git blame`.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use bstr::{BString, ByteSlice};

use super::command::{CommandError, git_until};
use super::commit::{Person, listed_commits};
use super::irregular::{RulesFiles, check_mailmap};
use super::open::Repository;
use super::small_file::read_small_file;
use crate::model::{CommitId, Oid, RepoPath};

/// Options of `git blame`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlameOptions {
    /// Ignore whitespace (`-w`).
    pub ignores_blanks: bool,
    /// Follow lines that moved within the file (`-M`).
    pub follows_moves: bool,
    /// Follow lines that moved or were copied from other files (`-C`). 1 considers files changed in the same commit;
    /// higher values, up to 3, consider more files.
    pub follows_copies: u8,
    /// Commits to skip (`--ignore-rev`).
    pub ignored: Vec<CommitId>,
    /// Files that list commits to skip (`--ignore-revs-file`), in addition to the configured files.
    pub ignore_files: Vec<PathBuf>,
    /// Blame only these lines, from the first to the last; 1-based.
    pub lines: Option<(u32, u32)>,
}

/// The result of blaming a file: the origin of each line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Blame {
    /// The lines in the requested order.
    pub lines: Vec<BlameLine>,
    /// The commits that the lines come from.
    pub commits: HashMap<CommitId, BlamedCommit>,
    /// Notes to show to the user.
    pub notes: Vec<String>,
}

/// The origin of one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlameLine {
    /// The line number in the blamed file, 1-based.
    pub line: u32,
    /// The commit that last changed the line.
    pub commit: CommitId,
    /// The path of the file in that commit.
    pub path: RepoPath,
    /// The line number in that commit's version of the file, 1-based.
    pub original_line: u32,
}

/// A commit that lines come from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlamedCommit {
    /// The author, corrected by the mailmap.
    pub author: Person,
    /// The subject of the commit message.
    pub subject: BString,
    /// True if the available history ends at this commit; the line may be older.
    pub is_boundary: bool,
}

/// Parts of git's error messages if a configured list of commits to skip does not exist, or is no such list.
const NO_LIST_MESSAGES: [&str; 2] = ["could not open object name list", "invalid object name"];

impl Repository {
    /// Blames the lines of `path` in `commit`. The result has the same commits as the output of `git blame`.
    ///
    /// If a configured `blame.ignoreRevsFile` does not exist or is no list of commits, ignores it and adds a note; git
    /// itself would fail, with a message that quotes the file. Stops soon after `interrupt` is set.
    pub fn blame(
        &self,
        commit: CommitId,
        path: &RepoPath,
        options: &BlameOptions,
        interrupt: &AtomicBool,
    ) -> Result<Blame, CommandError> {
        let mut notes = Vec::new();
        let printed = match self.run_blame(commit, path, options, None, interrupt) {
            Err(CommandError::Failed { message, .. }) if NO_LIST_MESSAGES.iter().any(|part| message.contains(part)) => {
                let (there, others) = self.configured_lists();
                let note = |(name, why)| format!("blame.ignoreRevsFile names {name}, which {why}");
                notes.extend(others.into_iter().map(note));
                self.run_blame(commit, path, options, Some(&there), interrupt)?
            }
            printed => printed?,
        };
        let mut blame = parse(&printed);
        blame.notes = notes;
        Ok(blame)
    }

    /// Returns the commits that `git log -L` lists for a range of lines of a file, latest first. `lines` is the first
    /// and the last line, 1-based. Stops soon after `interrupt` is set.
    pub fn line_log(
        &self,
        commit: CommitId,
        path: &RepoPath,
        lines: (u32, u32),
        interrupt: &AtomicBool,
    ) -> Result<Vec<CommitId>, CommandError> {
        use std::ffi::OsString;
        use std::os::unix::ffi::OsStringExt;
        let mut range = format!("-L{},{}:", lines.0, lines.1).into_bytes();
        range.extend_from_slice(path.as_bytes());
        let arguments: [OsString; 6] = [
            "--format=%H".into(),
            "--no-patch".into(),
            "--no-ext-diff".into(),
            "--no-textconv".into(),
            OsString::from_vec(range),
            commit.to_string().into(),
        ];
        self.check_rules_files("log", path)?;
        let printed = git_until(self, "log", &arguments, interrupt)?;
        let id = |line: &[u8]| Oid::from_hex(line.to_str().ok()?.trim()).ok().map(CommitId);
        Ok(printed.lines().filter_map(id).collect())
    }

    fn run_blame(
        &self,
        commit: CommitId,
        path: &RepoPath,
        options: &BlameOptions,
        override_files: Option<&[PathBuf]>,
        interrupt: &AtomicBool,
    ) -> Result<Vec<u8>, CommandError> {
        use std::ffi::{OsStr, OsString};
        use std::os::unix::ffi::OsStrExt;
        let mut arguments: Vec<OsString> = vec!["--porcelain".into(), "--no-textconv".into()];
        let mut flag = |is_set: bool, name: &str| arguments.extend(is_set.then(|| name.into()));
        flag(options.ignores_blanks, "-w");
        flag(options.follows_moves, "-M");
        (0..options.follows_copies.min(3)).for_each(|_| flag(true, "-C"));
        if override_files.is_some() {
            // This option clears the configured list. An empty file name would also clear it, but only after git has
            // opened the configured files.
            arguments.push("--no-ignore-revs-file".into());
        }
        for file in override_files.unwrap_or_default().iter().chain(&options.ignore_files) {
            arguments.push("--ignore-revs-file".into());
            arguments.push(file.into());
        }
        for ignored in &options.ignored {
            arguments.push("--ignore-rev".into());
            arguments.push(ignored.to_string().into());
        }
        if let Some((first, last)) = options.lines {
            arguments.push(format!("-L{first},{last}").into());
        }
        arguments.push(commit.to_string().into());
        arguments.push("--".into());
        arguments.push(OsStr::from_bytes(path.as_bytes()).to_owned());
        self.check_rules_files("blame", path)?;
        git_until(self, "blame", &arguments, interrupt)
    }

    /// Fails if one of the files that git reads from the worktree, the rules files and the mailmap, is a pipe. git
    /// would block on it.
    fn check_rules_files(&self, operation: &str, path: &RepoPath) -> Result<(), CommandError> {
        let failed = |message| CommandError::Failed {
            operation: operation.to_owned(),
            message,
        };
        let Ok(root) = self.root() else { return Ok(()) };
        let checked = RulesFiles::default().check(&root, path.as_bytes());
        let checked = checked.and_then(|()| check_mailmap(&root));
        checked.map_err(|error| failed(error.to_string()))
    }

    /// Returns the commits that are being merged into the checked-out commit (`MERGE_HEAD`).
    pub fn merge_heads(&self) -> std::io::Result<Vec<CommitId>> {
        let text = read_small_file(&self.git_dir().join("MERGE_HEAD"))?;
        Ok(listed_commits(&text.unwrap_or_default()))
    }

    /// Returns true if the configuration names files that list commits to skip.
    pub fn has_ignored_revisions(&self) -> bool {
        !self.configured_lists().0.is_empty()
    }

    /// Returns the configured files that list commits to skip: the paths of those that do, and the names of the others,
    /// with the reason.
    fn configured_lists(&self) -> (Vec<PathBuf>, Vec<(String, &'static str)>) {
        use std::os::unix::ffi::OsStrExt;
        let local = self.local();
        let config = local.config_snapshot();
        let values = config.plumbing().raw_values("blame.ignoreRevsFile").unwrap_or_default();
        let root = self.discovery_dir();
        let (mut there, mut others) = (Vec::new(), Vec::new());
        for value in values.iter().filter(|value| !value.is_empty()) {
            let path = root.join(std::ffi::OsStr::from_bytes(value));
            let why = match read_small_file(&path) {
                Ok(Some(list)) if is_list(&list) => {
                    there.push(path);
                    continue;
                }
                Ok(Some(_)) => "is no list of commits",
                _ if path.is_file() => "cannot be read",
                _ => "does not exist",
            };
            others.push((value.to_str_lossy().into_owned(), why));
        }
        (there, others)
    }
}

/// Returns true for ids of commits, one per line, with comments. Source: `oidset_parse_file_carefully` in git's
/// `oidset.c`.
fn is_list(text: &[u8]) -> bool {
    let ids = text
        .lines()
        .map(|line| line.split_str("#").next().unwrap_or_default().trim());
    ids.filter(|id| !id.is_empty())
        .all(|id| id.to_str().is_ok_and(|id| Oid::from_hex(id).is_ok()))
}

/// Parses the output of `git blame --porcelain`. Source: "THE PORCELAIN FORMAT" in git's `blame` manual page.
fn parse(printed: &[u8]) -> Blame {
    let mut blame = Blame::default();
    let mut paths: HashMap<CommitId, RepoPath> = HashMap::new();
    let mut group: Option<(CommitId, u32, u32)> = None;
    for line in printed.lines() {
        if let (Some((commit, original, own)), true) = (group, line.starts_with(b"\t")) {
            blame.lines.push(BlameLine {
                line: own,
                commit,
                path: paths.get(&commit).cloned().unwrap_or_else(|| RepoPath::new("")),
                original_line: original,
            });
            continue;
        }
        if let Some(begun) = begin(line) {
            blame.commits.entry(begun.0).or_default();
            group = Some(begun);
            continue;
        }
        let Some((commit, ..)) = group else { continue };
        let (name, value) = line.split_once_str(b" ").unwrap_or((line, b""));
        if name == b"filename" {
            paths.insert(commit, RepoPath::new(unquoted(value)));
            continue;
        }
        let known = blame.commits.entry(commit).or_default();
        match name {
            b"author" => known.author.name = value.into(),
            b"author-mail" => known.author.email = value.trim_with(|c| c == '<' || c == '>').into(),
            b"author-time" => known.author.time = number(value).unwrap_or_default(),
            b"author-tz" => known.author.utc_offset = offset(value),
            b"summary" => known.subject = value.into(),
            b"boundary" => known.is_boundary = true,
            _ => {}
        }
    }
    blame
}

/// Parses the first line of a group: `<oid> <original line> <final line> [<lines in group>]`.
fn begin(line: &[u8]) -> Option<(CommitId, u32, u32)> {
    let mut words = line.split_str(b" ");
    let oid = Oid::from_hex(words.next()?.to_str().ok()?).ok()?;
    let mut next = || number(words.next()?).and_then(|number| u32::try_from(number).ok());
    Some((CommitId(oid), next()?, next()?))
}

fn number(text: &[u8]) -> Option<i64> {
    text.to_str().ok()?.trim().parse().ok()
}

/// Converts a UTC offset such as `+0130` to seconds.
fn offset(text: &[u8]) -> i32 {
    let signed = number(text).unwrap_or_default() as i32;
    signed / 100 * 3600 + signed % 100 * 60
}

/// Decodes a path in git's output, which is quoted and escaped if it contains unusual bytes.
fn unquoted(text: &[u8]) -> Vec<u8> {
    let Some(inside) = text.strip_prefix(b"\"").and_then(|text| text.strip_suffix(b"\"")) else {
        return text.to_vec();
    };
    let mut bytes = Vec::new();
    let mut rest = inside;
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first != b'\\' {
            bytes.push(*first);
            continue;
        }
        let octal = after
            .get(..3)
            .filter(|digits| digits.iter().all(|digit| (b'0'..=b'7').contains(digit)));
        if let Some(digits) = octal {
            let value = digits
                .iter()
                .fold(0u32, |value, digit| value * 8 + u32::from(digit - b'0'));
            bytes.push(value as u8);
            rest = &after[3..];
        } else if let Some((escaped, after)) = after.split_first() {
            bytes.push(match escaped {
                b'n' => b'\n',
                b't' => b'\t',
                b'r' => b'\r',
                b'a' => 7,
                b'b' => 8,
                b'f' => 12,
                b'v' => 11,
                other => *other,
            });
            rest = after;
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_names_are_read() {
        assert_eq!(unquoted(b"plain name"), b"plain name");
        assert_eq!(unquoted(br#""a\"b\\c\td\303\274""#), "a\"b\\c\td\u{fc}".as_bytes());
    }

    #[test]
    fn commit_details_apply_to_all_its_groups() {
        let oid = "ab".repeat(20);
        let printed = format!(
            "{oid} 1 1 2\nauthor A B\nauthor-mail <a@x>\nauthor-time 60\nauthor-tz -0130\nsummary one\nboundary\n\
             filename old name\n\tline\n{oid} 2 2\n\t{oid} 9 9\n"
        );
        let blame = parse(printed.as_bytes());
        let lines: Vec<_> = blame.lines.iter().map(|line| (line.line, line.original_line)).collect();
        assert_eq!(lines, [(1, 1), (2, 2)]);
        let commit = blame.commits.values().next().expect("there is one");
        assert_eq!((commit.author.utc_offset, commit.is_boundary), (-5400, true));
        assert_eq!(blame.lines[1].path, RepoPath::from("old name"));
    }
}
