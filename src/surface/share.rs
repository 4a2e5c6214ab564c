//! What is known of a repository, out into a bundle and in from one.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::Path;
use std::sync::atomic::AtomicBool;

use anyhow::{Context as _, Result, bail, ensure};

use super::open::Workspace;
use crate::artifact::ArtifactKey;
use crate::bundle::{
    BundleFile, Contents, Header, HeaderError, Kind, Packed, PublicKey, ReadError, SigningKey, Trust, pipeline,
};
use crate::embed::ProfileId;
use crate::git::ObjectFormat;
use crate::index::{Records, RecordsKind, Segments};
use crate::ingest::{Audit, GivenCommits, Imported, IngestError, PassedOver, Progress, TakenRows, Target};
use crate::model::{CommitId, TreeId};
use crate::sidecar::{Bytes, Sidecar, State};

/// How a bundle is taken in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ImportOptions {
    /// Whose bundles are taken.
    pub(crate) trust: Trust,
    /// Whether who made it is trusted without a signature, because nobody else could write where it was read from.
    pub(crate) is_own: bool,
    /// What is made again to compare.
    pub(crate) audit: Audit,
}

/// A bundle that was taken in.
#[derive(Debug)]
pub(crate) struct ImportedBundle {
    /// What it said.
    pub(crate) header: Header,
    /// Who signed it.
    pub(crate) signer: Option<PublicKey>,
    /// What came of it.
    pub(crate) imported: Imported,
    /// Its trees that this repository has, which can be asked about now.
    pub(crate) trees: Vec<TreeId>,
    /// What became of the record of commits in it, if there is one.
    pub(crate) commits: Option<Result<TakenCommits, PassedOver>>,
}

/// A record of commits that was taken over.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TakenCommits {
    pub(crate) n_commits: u32,
    /// Of how many everything was made again to compare.
    pub(crate) n_audited: usize,
}

/// What is known of trees, to be written out.
pub(crate) struct Known {
    pub(crate) sidecar: Sidecar,
    state: State,
    segments: Segments,
    pub(crate) keys: Vec<ArtifactKey>,
    pub(crate) trees: Vec<TreeId>,
    pub(crate) commits: Vec<CommitId>,
}

impl Known {
    /// Whether a blob is known, of whatever tree.
    pub(crate) fn has(&self, key: ArtifactKey) -> bool {
        self.segments.find_blob(key).is_some()
    }
}

impl Workspace {
    /// Everything that is known of revisions, which are indexed first where that is missing.
    pub(crate) fn known(
        &self,
        references: &[String],
        progress: &dyn Progress,
        interrupt: &AtomicBool,
    ) -> Result<Known> {
        let (mut trees, mut commits): (Vec<TreeId>, Vec<CommitId>) = Default::default();
        for reference in references {
            let ingested = self.ingest_revision(reference, progress, interrupt)?;
            let (target, outcome) = ingested.context("no commits yet: there is nothing to share")?;
            if outcome.interrupted {
                bail!("interrupted; what was indexed so far is kept");
            }
            if !trees.contains(&target.tree) {
                trees.push(target.tree);
            }
            commits.extend(target.commit.filter(|commit| !commits.contains(commit)));
        }
        let (sidecar, state) = self.sidecar()?.context("the index is gone")?;
        let state = state.context("the index is gone")?;
        let segments = Segments::open(&sidecar, &state, &self.own_model().profile().id().to_string())?;
        // What stands in two trees is taken once.
        let (mut keys, mut seen) = (Vec::new(), HashSet::new());
        for &tree in &trees {
            let of_tree = self.writer(&sidecar).keys_of(tree)?;
            keys.extend(of_tree.into_iter().filter(|&key| seen.insert(key)));
        }
        Ok(Known {
            sidecar,
            state,
            segments,
            keys,
            trees,
            commits,
        })
    }

    /// Writes what is known to `to`, and what is recorded of commits.
    pub(crate) fn pack(
        &self,
        known: &Known,
        kind: Kind,
        commits: Option<&GivenCommits>,
        key: Option<&SigningKey>,
        to: &mut dyn Write,
    ) -> Result<Packed> {
        let contents = Contents {
            commits,
            ..self.contents(known, &known.keys, &known.trees)
        };
        Ok(contents.write(kind, key, &known.sidecar, to)?)
    }

    /// Writes what is known of some blobs to `to`.
    pub(crate) fn pack_keys(
        &self,
        known: &Known,
        keys: &[ArtifactKey],
        kind: Kind,
        key: Option<&SigningKey>,
        to: &mut dyn Write,
    ) -> Result<Packed> {
        let given: HashSet<ArtifactKey> = keys.iter().copied().collect();
        let has_all = known.keys.iter().all(|key| given.contains(key));
        let trees = if has_all { known.trees.as_slice() } else { &[] };
        Ok(self.contents(known, keys, trees).write(kind, key, &known.sidecar, to)?)
    }

    fn contents<'a>(&self, known: &'a Known, keys: &'a [ArtifactKey], trees: &'a [TreeId]) -> Contents<'a> {
        // What a partial clone lacks was passed over.
        let is_whole = keys.iter().all(|&key| known.has(key));
        Contents {
            segments: &known.segments,
            state: &known.state,
            keys,
            trees: if is_whole { trees } else { &[] },
            recipe: self.build_options().recipe,
            profile: self.own_model().profile().id(),
            id_bytes: self.id_bytes(),
            commits: None,
        }
    }

    /// Takes in a bundle, and makes the manifests of those of its trees that are here.
    pub(crate) fn import(
        &self,
        from: impl Read,
        options: ImportOptions,
        progress: &dyn Progress,
        interrupt: &AtomicBool,
    ) -> Result<ImportedBundle> {
        self.import_opened(BundleFile::open(from)?, options, progress, interrupt)
    }

    /// [`Self::import`] of a bundle whose header was read.
    pub(crate) fn import_opened<R: Read>(
        &self,
        bundle: BundleFile<R>,
        options: ImportOptions,
        progress: &dyn Progress,
        interrupt: &AtomicBool,
    ) -> Result<ImportedBundle> {
        ensure!(
            bundle.header.kind() != Kind::Added,
            "it has vectors of another model and nothing else: codescout import takes them"
        );
        let profile = self.own_model().profile();
        bundle.check(
            self.build_options().recipe,
            profile.id(),
            self.id_bytes(),
            options.trust,
        )?;
        let (header, signer) = (bundle.header.clone(), bundle.signer);
        let sidecar = self.open_or_create_sidecar(interrupt)?;
        let files = bundle.stage(&sidecar)?;
        let is_trusted = options.is_own || matches!(options.trust, Trust::Only(_));
        let examined = match header.offered_commits(&files) {
            None => None,
            Some(offered) => {
                let audit = (!is_trusted).then_some(options.audit);
                Some(self.examine_commits(&sidecar, &offered, audit, progress, interrupt)?)
            }
        };
        let imported = self.take_in(
            &header,
            &files,
            &sidecar,
            is_trusted,
            options.audit,
            progress,
            interrupt,
        )?;
        if imported.interrupted {
            bail!("interrupted; nothing was taken over");
        }
        let mut trees = Vec::new();
        for tree in header.trees().filter(|&tree| self.has_tree(tree)) {
            let target = Target { commit: None, tree };
            match self.ingest(target, progress, interrupt) {
                Ok(_) => trees.push(tree),
                // Of a tree in a partial clone not everything may be here.
                Err(error) if matches!(error.downcast_ref(), Some(IngestError::Object(_))) => {
                    tracing::warn!("tree {tree}: {error:#}");
                }
                Err(error) => return Err(error),
            }
        }
        let commits = match examined {
            Some(Ok(examined)) => {
                let taken = self.take_commits(&sidecar, &examined, progress, interrupt)?;
                Some(taken.map(|()| TakenCommits {
                    n_commits: examined.n_commits(),
                    n_audited: examined.n_audited,
                }))
            }
            Some(Err(why)) => Some(Err(why)),
            None => None,
        };
        Ok(ImportedBundle {
            header,
            signer,
            imported,
            trees,
            commits,
        })
    }

    /// Writes what the model beside the own one has made of what is known to `to`.
    pub(crate) fn pack_added(&self, known: &Known, key: Option<&SigningKey>, to: &mut dyn Write) -> Result<Packed> {
        let makers = self.makers();
        let maker = makers
            .first()
            .context("no model is in use beside the one inside the program")?;
        let profile = maker.profile().id();
        let contents = Contents {
            segments: &known
                .segments
                .with_added(&known.sidecar, &known.state, &profile.to_string()),
            state: &known.state,
            keys: &known.keys,
            trees: &known.trees,
            recipe: self.build_options().recipe,
            profile,
            id_bytes: self.id_bytes(),
            commits: None,
        };
        Ok(contents.write(Kind::Added, key, &known.sidecar, to)?)
    }

    /// Takes in what a model that is in use here has made elsewhere, for those of the bundle's trees that are here.
    pub(crate) fn import_added<R: Read>(
        &self,
        bundle: BundleFile<R>,
        trust: Trust,
        progress: &dyn Progress,
        interrupt: &AtomicBool,
    ) -> Result<(ImportedBundle, TakenRows)> {
        let profile = ProfileId(bundle.header.profile);
        let maker = self.makers().into_iter().find(|maker| maker.profile().id() == profile);
        let maker = maker
            .with_context(|| format!("the bundle has vectors of a model that is not in use here: profile {profile}"))?;
        bundle.check(self.build_options().recipe, profile, self.id_bytes(), trust)?;
        let (header, signer) = (bundle.header.clone(), bundle.signer);
        let sidecar = self.open_or_create_sidecar(interrupt)?;
        let files = bundle.stage(&sidecar)?;
        let mut trees: Vec<TreeId> = header.trees().collect();
        trees.retain(|&tree| self.has_tree(tree));
        for &tree in &trees {
            self.ingest(Target { commit: None, tree }, progress, interrupt)?;
        }
        let (probe, parts) = files.split_first().context("it has no entries")?;
        let taken = self
            .catching_up(&sidecar, maker, &self.own_profile())
            .take_over(probe.clone(), parts)?;
        let imported = Imported {
            n_docs: taken.n_new,
            is_adopted: true,
            ..Imported::default()
        };
        let imported = ImportedBundle {
            header,
            signer,
            imported,
            trees,
            commits: None,
        };
        Ok((imported, taken))
    }

    #[expect(clippy::too_many_arguments, reason = "one call, and each is another thing")]
    fn take_in(
        &self,
        header: &Header,
        files: &[Bytes],
        sidecar: &Sidecar,
        is_trusted: bool,
        audit: Audit,
        progress: &dyn Progress,
        interrupt: &AtomicBool,
    ) -> Result<Imported> {
        let parts = header.by_part(files);
        let writer = self.writer(sidecar);
        let kind = RecordsKind {
            recipe: self.build_options().recipe,
            profile: self.own_model().profile().id(),
            dim: self.own_model().profile().dim,
            quantisation: self.build_options().quantisation,
            id_bytes: self.id_bytes(),
            max_blob_bytes: self.build_options().max_blob_bytes,
        };
        let files = parts
            .iter()
            .map(|(records, vectors, _)| (records.clone(), vectors.clone()));
        let records = Records::open(files, kind)?;
        let told = header.parts.iter().map(|part| (part.n_blobs, part.n_docs));
        ensure!(
            records.sizes().eq(told),
            "its parts have other sizes than the header says"
        );
        if is_trusted && header.kind() == Kind::Ready {
            let ready = |(records, vectors, words): (Bytes, Bytes, Option<Bytes>)| Some([records, words?, vectors]);
            let segments: Option<Vec<[Bytes; 3]>> = parts.into_iter().map(ready).collect();
            if let Some(imported) = writer.adopt(&segments.unwrap_or_default(), interrupt)? {
                return Ok(imported);
            }
        }
        Ok(writer.import(&records, audit, progress, interrupt)?)
    }

    fn has_tree(&self, tree: TreeId) -> bool {
        self.repository.resolve(&tree.to_string()).is_ok()
    }

    /// The name of everything that decides whether a bundle can be taken.
    pub(crate) fn pipeline(&self) -> String {
        pipeline(
            self.build_options().recipe,
            self.own_model().profile().id(),
            self.id_bytes(),
        )
    }

    /// Whether a bundle is of this build, these settings and this kind of repository, whoever made it.
    pub(crate) fn takes<R: Read>(&self, bundle: &BundleFile<R>) -> bool {
        let profile = self.own_model().profile().id();
        let checked = bundle.check(self.build_options().recipe, profile, self.id_bytes(), Trust::Anybody);
        checked.is_ok()
    }

    /// Bytes of an object id of this repository.
    pub(crate) fn id_bytes(&self) -> usize {
        match self.repository.object_format() {
            ObjectFormat::Sha1 => 20,
            ObjectFormat::Sha256 => 32,
        }
    }
}

/// Writes a bundle by way of another name, so that it is there whole or not at all. Anything else in its place stays.
pub(crate) fn write_whole<T>(path: &Path, write: impl FnOnce(&mut File) -> Result<T>) -> Result<T> {
    use std::os::unix::fs::PermissionsExt;
    let is_other = |file: File| matches!(BundleFile::open(file), Err(ReadError::Header(HeaderError::OtherKind)));
    let is_full = fs::metadata(path).is_ok_and(|found| found.is_file() && found.len() > 0);
    ensure!(
        !(is_full && File::open(path).is_ok_and(is_other)),
        "{} is there already and no bundle: name another file, or remove it",
        path.display()
    );
    let cannot = || format!("cannot write {}", path.display());
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let mut file = tempfile::Builder::new()
        .prefix(".writing-")
        .permissions(fs::Permissions::from_mode(0o666))
        .tempfile_in(folder.unwrap_or(Path::new(".")))
        .with_context(cannot)?;
    let value = write(file.as_file_mut())?;
    file.as_file().sync_all().with_context(cannot)?;
    file.persist(path).with_context(cannot)?;
    Ok(value)
}
