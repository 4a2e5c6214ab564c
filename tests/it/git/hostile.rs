//! Tests a repository whose configuration names programs in every possible place. None of them may run.

use std::sync::atomic::AtomicBool;

use codescout::git::{Attributes, KnownFiles};
use codescout::model::RepoPath;

use super::oracle::{open, tree_files};
use crate::support::{TestRepo, write_executable};

/// Sets every setting that can name a program to a program that writes to `trace`.
fn trapped(repo: &TestRepo) {
    let trap = repo.beside("trap.sh");
    let trace = repo.beside("trace");
    write_executable(
        &trap,
        &format!("#!/bin/sh\necho \"$@\" >> '{}'\ncat\n", trace.display()),
    );
    let hooks = repo.beside("hooks");
    std::fs::create_dir(&hooks).unwrap();
    for hook in [
        "post-index-change",
        "post-checkout",
        "reference-transaction",
        "pre-auto-gc",
        "fsmonitor-watchman",
    ] {
        std::fs::copy(&trap, hooks.join(hook)).unwrap();
    }
    let trap = trap.to_str().unwrap();
    for key in [
        "core.fsmonitor",
        "core.pager",
        "core.editor",
        "core.sshCommand",
        "core.askPass",
        "core.gitProxy",
        "core.alternateRefsCommand",
        "pager.log",
        "pager.status",
        "pager.for-each-ref",
        "pager.rev-parse",
        "diff.external",
        "diff.trap.textconv",
        "diff.trap.command",
        "filter.trap.clean",
        "filter.trap.smudge",
        "filter.trap.process",
        "filter.lfs.clean",
        "filter.lfs.process",
        "merge.trap.driver",
        "gpg.program",
        "gpg.ssh.program",
        "credential.helper",
        "uploadpack.packObjectsHook",
        "alias.rev-parse",
        "alias.for-each-ref",
        "hook.trap.command",
    ] {
        repo.git(["config", key, trap]);
    }
    for (key, value) in [
        ("core.hooksPath", hooks.to_str().unwrap()),
        ("core.fsmonitorHookVersion", "2"),
        ("log.showSignature", "true"),
        ("filter.trap.required", "true"),
        ("protocol.ext.allow", "always"),
        ("remote.origin.url", &format!("ext::{trap}")),
        ("remote.origin.promisor", "true"),
        ("remote.origin.partialCloneFilter", "blob:none"),
        ("gitoxide.core.indexFile", "../../trap.sh"),
    ] {
        repo.git(["config", key, value]);
    }
}

fn everything_is_asked(repo: &TestRepo) {
    let repository = open(repo);
    let head = repository.head().unwrap();
    repository.refs().unwrap();
    repository.main_work_dir().unwrap();
    for spec in ["HEAD", "HEAD~1", "main", "v1", "HEAD@{1}", ":/first", "mian", "0123456"] {
        let _ = repository.resolve(spec);
    }
    let (new, old) = (
        repository.resolve("HEAD").unwrap(),
        repository.resolve("HEAD~1").unwrap(),
    );
    let mut reader = repository.reader();
    reader.commit(head.commit().unwrap()).unwrap();
    reader.diff_trees(Some(old.tree), new.tree).unwrap();
    for file in tree_files(&repository, new.tree) {
        reader.blob(file.blob().unwrap(), 1000).unwrap();
    }
    // A blob that the promisor remote has.
    reader
        .blob(
            codescout::model::BlobId(super::oracle::oid(&"0123456789".repeat(4))),
            1000,
        )
        .unwrap();
    repository.index_changes().unwrap();
    let changes = repository
        .work_tree_changes(1000, &mut KnownFiles::default(), &AtomicBool::new(false))
        .unwrap();
    assert_eq!(changes.changes.len(), 3);
    let mut files = repository.work_tree_reader().unwrap();
    for path in ["a.trap", "b.lfs", "new.trap"] {
        files.read(&RepoPath::from(path), 1000).unwrap();
    }
    let attributes = Attributes::for_tree(&mut reader, new.tree).unwrap();
    attributes
        .with_changes(&changes, &mut files)
        .matcher()
        .of(&RepoPath::from("a.trap"));
}

#[test]
fn no_program_of_the_repository_runs() {
    for options in [&[][..], &["--ref-format=reftable"]] {
        let repo = TestRepo::init(options);
        repo.write_files(
            "
            //- .gitattributes
            *.trap filter=trap diff=trap merge=trap
            *.lfs filter=lfs
            //- a.trap
            first
            //- b.lfs
            first
        ",
        );
        repo.commit("first");
        repo.tag("v1");
        repo.write("a.trap", "second");
        repo.commit("second");
        trapped(&repo);
        repo.write("a.trap", "edited");
        repo.write("b.lfs", "edited");
        repo.write("new.trap", "new");
        everything_is_asked(&repo);
        let trace = repo.beside("trace");
        assert!(!trace.exists(), "{}", std::fs::read_to_string(&trace).unwrap());
        // Checks that the traps work.
        repo.try_git(["status"]);
        assert!(trace.exists());
    }
}
