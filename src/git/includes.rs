//! Checks the files that a repository's configuration includes or names. git opens such files without checking their
//! type.

use std::path::{Path, PathBuf};

use bstr::BString;
use gix::config::{File, Source};

use super::irregular::check_file;
use super::open::OpenError;

/// Limit on the included files of a configuration, counting repetitions. Reading files that include each other many
/// times would take forever.
const MAX_INCLUDED: usize = 256;
/// Limit on the nesting of includes. git rejects deeper nesting. Source: `MAX_INCLUDE_DEPTH` in git's `config.c`.
const MAX_DEPTH: usize = 10;

/// Settings that name files. The git and gix operations used here read these files.
const NAMES_OF_FILES: [&str; 5] = [
    "core.excludesFile",
    "core.attributesFile",
    "mailmap.file",
    "blame.ignoreRevsFile",
    "diff.orderFile",
];

/// Fails if a configuration includes a pipe, a device or too many files. Follows every `includeIf`, whatever its
/// condition.
pub(super) fn check_includes(config: &Path) -> Result<(), OpenError> {
    let mut files = vec![(config.to_owned(), 0)];
    let mut n_included = 0;
    while let Some((file, depth)) = files.pop() {
        // A missing file includes nothing. A malformed file is reported when it is used.
        let Ok(parsed) = File::from_path_no_includes(file.clone(), Source::Local) else {
            continue;
        };
        let folder = file.parent().unwrap_or(Path::new(""));
        for included in included(&parsed) {
            let included = folder.join(included);
            n_included += 1;
            if n_included > MAX_INCLUDED {
                return Err(OpenError::TooManyIncludes {
                    path: config.to_owned(),
                    limit: MAX_INCLUDED,
                });
            }
            check_file(included.clone())?;
            if depth < MAX_DEPTH {
                files.push((included, depth + 1));
            }
        }
    }
    Ok(())
}

/// Returns the paths in `include.path` and `includeIf.<condition>.path`.
fn included(config: &File) -> impl Iterator<Item = PathBuf> {
    let is_include = |name: &[u8]| name.eq_ignore_ascii_case(b"include") || name.eq_ignore_ascii_case(b"includeIf");
    let sections = config
        .sections()
        .filter(move |section| is_include(section.header().name()));
    sections
        .flat_map(|section| section.values("path"))
        .filter_map(interpolated)
}

/// Fails if one of [`NAMES_OF_FILES`] names a pipe or a device.
pub(super) fn check_named_files(repository: &gix::Repository) -> Result<(), OpenError> {
    let config = repository.config_snapshot();
    let folder = repository.workdir().unwrap_or(repository.git_dir());
    let values = NAMES_OF_FILES
        .iter()
        .flat_map(|key| config.plumbing().raw_values(key).unwrap_or_default());
    values
        .filter_map(interpolated)
        .try_for_each(|path| check_file(folder.join(path)))
}

/// Expands `~` to the home directory.
fn interpolated(path: BString) -> Option<PathBuf> {
    let home = gix::path::env::home_dir();
    let context = gix::config::path::interpolate::Context {
        home_dir: home.as_deref(),
        home_for_user: Some(gix::config::path::interpolate::home_for_user),
        ..Default::default()
    };
    gix::config::Path::from(path).interpolate(context).ok()
}
