//! Exports the index of a repository to a bundle, and imports bundles.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::atomic::AtomicBool;

use super::call::CallCtx;
use super::error::{Context as _, OpError, Result, ensure};
use super::update::{Event, Steps};
use super::workspace::Workspace;
use crate::artifact::ArtifactKey;
use crate::bundle::{
    BundleFile, Contents, Header, HeaderError, Kind, Packed, PublicKey, ReadError, SigningKey, Trust, pipeline,
};
use crate::embed::ProfileId;
use crate::git::ObjectFormat;
use crate::index::{Records, RecordsKind, Segments};
use crate::ingest::{
    Audit, CatchUpError, EmbeddingSource, ExportedCommits, ExportedFacts, ImportRefusal, Imported, IngestError,
    TakenFacts, Target, VerifiedRows, gather_facts, key_of_facts, n_rows, stored_facts,
};
use crate::model::{BlobId, CommitId, Ctx, RepoPath, TreeId};
use crate::precise::FactsFile;
use crate::sidecar::{Bytes, RealFolder, Sidecar, State};

/// Options for importing a bundle.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ImportOptions {
    /// Determines which signatures are accepted.
    pub(crate) trust: Trust,
    /// True if the bundle is trusted without a signature, because nobody else can write to its location.
    pub(crate) is_own: bool,
    /// Determines how much data is computed again for comparison.
    pub(crate) audit: Audit,
}

/// An imported bundle.
#[derive(Debug)]
pub(crate) struct ImportedBundle {
    /// The header of the bundle.
    pub(crate) header: Header,
    /// The key that signed the bundle; `None` if it is not signed.
    pub(crate) signer: Option<PublicKey>,
    /// The outcome of importing its records of blobs.
    pub(crate) imported: Imported,
    /// The trees of the bundle that this repository has. They are now indexed.
    pub(crate) trees: Vec<TreeId>,
    /// The outcome of importing vectors of external models.
    pub(crate) vectors: TakenVectors,
    /// The outcome of importing its records of commits, if it has any.
    pub(crate) commits: Option<Result<TakenCommits, ImportRefusal>>,
    /// The outcome of importing facts of indexers, or the reason why they were not imported.
    pub(crate) facts: Result<TakenFacts, &'static str>,
}

/// The outcome of importing vectors of external models.
#[derive(Clone, Debug, Default)]
pub(crate) struct TakenVectors {
    pub(crate) n_new: usize,
    /// The reason why some vectors were not imported.
    pub(crate) passed_over: Option<String>,
}

impl TakenVectors {
    /// Returns the outcome under [`Audit::All`], where no vectors are imported, because verifying them would mean
    /// computing them.
    fn not_compared(header: &Header) -> Self {
        let why = "they can only be verified by computing them again; run codescout index";
        Self {
            n_new: 0,
            passed_over: (!header.added.is_empty()).then(|| why.to_owned()),
        }
    }
}

/// Verified vectors from another clone, of a model that is configured here.
struct MadeElsewhere<'a> {
    maker: EmbeddingSource<'a>,
    rows: VerifiedRows,
}

/// The outcome of importing a record of commits.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TakenCommits {
    pub(crate) n_commits: u32,
    /// Number of commits that were recorded again for comparison.
    pub(crate) n_audited: usize,
}

/// The index of some trees, prepared for export.
pub(crate) struct Known {
    pub(crate) sidecar: Sidecar,
    state: State,
    segments: Segments,
    pub(crate) keys: Vec<ArtifactKey>,
    pub(crate) trees: Vec<TreeId>,
    pub(crate) commits: Vec<CommitId>,
    /// The records of these commits and all their ancestors, if requested.
    pub(crate) given: Option<ExportedCommits>,
    /// The facts of indexers, including those about files of other trees.
    facts: Vec<FactsFile>,
    /// The files of the trees, if there are facts.
    files: HashSet<(BlobId, RepoPath)>,
}

/// Selects the content of a bundle.
#[derive(Clone, Copy)]
pub(crate) struct Packing<'a> {
    pub(crate) kind: Kind,
    /// The profiles of the external models whose vectors are included.
    pub(crate) added: &'a [ProfileId],
    pub(crate) commits: Option<&'a ExportedCommits>,
    pub(crate) facts: &'a [(u32, Vec<u8>)],
    pub(crate) key: Option<&'a SigningKey>,
}

impl<'a> Packing<'a> {
    pub(crate) fn new(kind: Kind, key: Option<&'a SigningKey>) -> Self {
        Self {
            kind,
            added: &[],
            commits: None,
            facts: &[],
            key,
        }
    }
}

impl Known {
    /// Returns the segments with the vectors of an external model.
    pub(crate) fn with_added(&self, profile: ProfileId) -> Segments {
        self.segments
            .with_added(&self.sidecar, &self.state, &profile.to_string())
    }

    /// Returns all segments, including those with blobs of other trees.
    pub(crate) fn segments(&self) -> &Segments {
        &self.segments
    }

    /// Returns the facts of indexers about the files of the trees.
    pub(crate) fn facts(&self) -> Result<ExportedFacts> {
        Ok(gather_facts(&self.facts, |_, blob, path| self.has_file(blob, path))?)
    }

    /// Returns true if there are facts of indexers, even if they are about files of other trees.
    pub(crate) fn has_facts(&self) -> bool {
        !self.facts.is_empty()
    }

    /// Returns the facts with these keys.
    pub(crate) fn facts_of(&self, keys: &[ArtifactKey]) -> Result<ExportedFacts> {
        let keys: HashSet<&ArtifactKey> = keys.iter().collect();
        Ok(gather_facts(&self.facts, |tool, blob, path| {
            keys.contains(&key_of_facts(tool, blob, path))
        })?)
    }

    /// Returns the keys of the facts, first those about the files of the trees, then all others.
    pub(crate) fn fact_keys(&self) -> (Vec<ArtifactKey>, HashSet<ArtifactKey>) {
        let (mut of_trees, mut all) = (Vec::new(), HashSet::new());
        for file in &self.facts {
            for (blob, path) in file.documents() {
                let key = key_of_facts(file.tool(), blob, path);
                if all.insert(key) && self.has_file(blob, path) {
                    of_trees.push(key);
                }
            }
        }
        (of_trees, all)
    }

    fn has_file(&self, blob: BlobId, path: &[u8]) -> bool {
        self.files.contains(&(blob, RepoPath::new(path.to_vec())))
    }

    /// Returns true if a blob is indexed, even if it belongs to another tree.
    pub(crate) fn has(&self, key: ArtifactKey) -> bool {
        self.segments.find_blob(key).is_some()
    }
}

impl Workspace {
    /// Collects the index of some revisions. Indexes them first if needed.
    pub(crate) fn known(&self, references: &[String], ctx: Ctx<'_>) -> Result<Known> {
        let (mut trees, mut commits): (Vec<TreeId>, Vec<CommitId>) = Default::default();
        for reference in references {
            let ingested = self.ingest_revision(reference, ctx)?;
            let (target, outcome) = ingested.context("no commits yet: there is nothing to share")?;
            if outcome.interrupted {
                return Err(OpError::interrupted_with("the files indexed so far are kept"));
            }
            if !trees.contains(&target.tree) {
                trees.push(target.tree);
            }
            commits.extend(target.commit.filter(|commit| !commits.contains(commit)));
        }
        let call = CallCtx::unlimited(ctx);
        self.finish_update(&commits, &[], Steps::default(), &call, &mut Event::log)?;
        let (sidecar, state) = self.storage.open_with_state()?.context("the index is gone")?;
        let state = state.context("the index is gone")?;
        let segments = Segments::open(&sidecar, &state, &self.models.own_embedder().profile().id().to_string())?;
        // A key that occurs in several trees is included once.
        let (mut keys, mut seen) = (Vec::new(), HashSet::new());
        for &tree in &trees {
            let of_tree = self.writer(&sidecar).keys_of(tree)?;
            keys.extend(of_tree.into_iter().filter(|&key| seen.insert(key)));
        }
        let facts = stored_facts(&sidecar, &state)?;
        let mut files = HashSet::new();
        if !facts.is_empty() {
            let mut reader = self.repository.reader();
            for &tree in &trees {
                reader.tree_files(tree, &mut |file| {
                    files.extend(file.blob().map(|blob| (blob, file.path)));
                })?;
            }
        }
        Ok(Known {
            sidecar,
            state,
            segments,
            keys,
            trees,
            commits,
            given: None,
            facts,
            files,
        })
    }

    /// Writes a bundle of all keys of `known` to `to`.
    pub(crate) fn pack(&self, known: &Known, packing: Packing<'_>, to: &mut dyn Write) -> Result<Packed> {
        self.pack_keys(known, &known.keys, packing, to)
    }

    /// Writes a bundle of `keys` to `to`.
    pub(crate) fn pack_keys(
        &self,
        known: &Known,
        keys: &[ArtifactKey],
        packing: Packing<'_>,
        to: &mut dyn Write,
    ) -> Result<Packed> {
        let given: HashSet<ArtifactKey> = keys.iter().copied().collect();
        let has_all = packing.kind != Kind::Added && known.keys.iter().all(|key| given.contains(key));
        let trees = if has_all { known.trees.as_slice() } else { &[] };
        let contents = Contents {
            added: packing.added,
            commits: packing.commits,
            facts: packing.facts,
            ..self.contents(known, keys, trees)
        };
        Ok(contents.write(packing.kind, packing.key, &known.sidecar, to)?)
    }

    /// Returns the profiles of the external models.
    pub(crate) fn added_profiles(&self) -> Vec<ProfileId> {
        let makers = self.models.sources().into_iter();
        makers.map(|maker| maker.profile().id()).collect()
    }

    /// Returns the name of the settings and build that a record of commits must match to be imported.
    pub(crate) fn pipeline_of_commits(&self) -> String {
        pipeline(self.records().record_recipe(), ProfileId([0; 16]), self.id_bytes())
    }

    /// Returns the name of the format of facts of indexers, which depend on no settings.
    pub(crate) fn pipeline_of_facts(&self) -> String {
        pipeline(FactsFile::FORMAT.into(), ProfileId([0; 16]), self.id_bytes())
    }

    /// Returns the keys of all facts of indexers that are stored.
    pub(crate) fn fact_keys(&self) -> Result<HashSet<ArtifactKey>> {
        let Some((sidecar, Some(state))) = self.storage.open_with_state()? else {
            return Ok(HashSet::new());
        };
        let files = stored_facts(&sidecar, &state)?;
        let keys = files.iter().flat_map(|file| {
            let key = |(blob, path)| key_of_facts(file.tool(), blob, path);
            file.documents().map(key)
        });
        Ok(keys.collect())
    }

    /// Returns the number of chunks in `known` that have vectors, for each external model.
    pub(crate) fn n_rows(&self, known: &Known) -> Vec<(ProfileId, usize)> {
        let count = |profile| (profile, n_rows(&known.with_added(profile), &known.keys, profile));
        self.added_profiles().into_iter().map(count).collect()
    }

    fn contents<'a>(&self, known: &'a Known, keys: &'a [ArtifactKey], trees: &'a [TreeId]) -> Contents<'a> {
        // A partial clone skips blobs that it lacks.
        let is_whole = keys.iter().all(|&key| known.has(key));
        Contents {
            segments: &known.segments,
            state: &known.state,
            keys,
            trees: if is_whole { trees } else { &[] },
            recipe: self.build_options().recipe,
            profile: self.models.own_embedder().profile().id(),
            id_bytes: self.id_bytes(),
            added: &[],
            commits: None,
            facts: &[],
        }
    }

    /// Imports a bundle, and indexes those of its trees that this repository has.
    pub(crate) fn import(&self, from: impl Read, options: ImportOptions, ctx: Ctx<'_>) -> Result<ImportedBundle> {
        self.import_opened(BundleFile::open(from)?, options, ctx)
    }

    /// Imports a bundle whose header has already been read.
    pub(crate) fn import_opened<R: Read>(
        &self,
        bundle: BundleFile<R>,
        options: ImportOptions,
        ctx: Ctx<'_>,
    ) -> Result<ImportedBundle> {
        let profile = self.models.own_embedder().profile();
        bundle.check(
            self.build_options().recipe,
            profile.id(),
            self.id_bytes(),
            options.trust,
        )?;
        let (header, signer) = (bundle.header.clone(), bundle.signer);
        let sidecar = self.storage.open_or_create(ctx.interrupt)?;
        let files = bundle.stage(&sidecar)?;
        let is_trusted = options.audit != Audit::All && (options.is_own || matches!(options.trust, Trust::Only(_)));
        let examined = match header.offered_commits(&files) {
            None => None,
            Some(offered) => {
                let audit = (!is_trusted).then_some(options.audit);
                Some(self.records().examine_commits(&sidecar, &offered, audit, ctx)?)
            }
        };
        let made = match options.audit {
            Audit::All => Vec::new(),
            Audit::Sample => self.examine_rows(&header, &files, &sidecar)?,
        };
        let offered = match options.audit {
            Audit::All => Vec::new(),
            Audit::Sample => checked_facts(&header, &files)?,
        };
        let imported = self.take_in(&header, &files, &sidecar, is_trusted, options.audit, ctx)?;
        if imported.interrupted {
            return Err(OpError::interrupted_with("nothing was imported"));
        }
        let mut trees = Vec::new();
        let known = self.known_segments(None)?;
        for tree in header.trees().filter(|&tree| self.has_tree(tree)) {
            // The bundle may claim trees that it does not contain, and a partial clone may lack objects of a tree.
            let is_whole = match self.writer(&sidecar).keys_of(tree) {
                Ok(keys) => keys.into_iter().all(|key| known.find_blob(key).is_some()),
                Err(IngestError::Object(_)) => false,
                Err(error) => return Err(error.into()),
            };
            if !is_whole {
                tracing::warn!("tree {tree} is not imported: some of its files are not indexed");
                continue;
            }
            let target = Target { commit: None, tree };
            self.ingest(target, ctx)?;
            trees.push(tree);
        }
        let vectors = match options.audit {
            Audit::All => TakenVectors::not_compared(&header),
            Audit::Sample => self.take_rows(&header, &made, &sidecar, ctx.interrupt)?,
        };
        let commits = match examined {
            Some(Ok(examined)) => {
                let taken = self.records().take_commits(&sidecar, &examined, ctx)?;
                Some(taken.map(|()| TakenCommits {
                    n_commits: examined.n_commits(),
                    n_audited: examined.n_audited,
                }))
            }
            Some(Err(why)) => Some(Err(why)),
            None => None,
        };
        let facts = if options.audit == Audit::All && !header.facts.is_empty() {
            Err("they can only be verified by the indexer")
        } else if offered.is_empty() {
            Ok(TakenFacts::default())
        } else {
            Ok(self.writer(&sidecar).take_facts(&offered, is_trusted, ctx.interrupt)?)
        };
        Ok(ImportedBundle {
            header,
            signer,
            imported,
            trees,
            vectors,
            commits,
            facts,
        })
    }

    /// Verifies the vectors in a bundle that come from configured models.
    fn examine_rows(&self, header: &Header, files: &[Bytes], sidecar: &Sidecar) -> Result<Vec<MadeElsewhere<'_>>> {
        let makers = self.models.sources();
        let own_profile = self.models.own_profile();
        let mut examined = Vec::new();
        for offered in header.offered_rows(files) {
            let maker = makers.iter().find(|maker| maker.profile().id() == offered.profile);
            let Some(&maker) = maker else { continue };
            let rows = self.catching_up(sidecar, maker, &own_profile).examine(&offered)?;
            examined.push(MadeElsewhere { maker, rows });
        }
        ensure!(
            header.kind() != Kind::Added || header.added.is_empty() || !examined.is_empty(),
            "the bundle has vectors of a model that is not configured here: configure the same API, model, prefixes \
             and revision"
        );
        Ok(examined)
    }

    /// Stores verified vectors. Vectors of a different model with the same name are skipped. That is an error only if
    /// the bundle has no other content.
    fn take_rows(
        &self,
        header: &Header,
        made: &[MadeElsewhere<'_>],
        sidecar: &Sidecar,
        interrupt: &AtomicBool,
    ) -> Result<TakenVectors> {
        let own_profile = self.models.own_profile();
        let mut taken = TakenVectors::default();
        let is_taken = |profile: &[u8; 16]| made.iter().any(|made| made.maker.profile().id().0 == *profile);
        if header.added.iter().any(|added| !is_taken(&added.profile)) {
            taken.passed_over = Some("they come from a model that is not configured here".to_owned());
        }
        for MadeElsewhere { maker, rows } in made {
            match self
                .catching_up(sidecar, *maker, &own_profile)
                .take_over(rows, interrupt)
            {
                Ok(n_new) => taken.n_new += n_new,
                Err(error @ CatchUpError::Outside { .. }) if header.kind() != Kind::Added => {
                    taken.passed_over = Some(error.to_string());
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(taken)
    }

    fn take_in(
        &self,
        header: &Header,
        files: &[Bytes],
        sidecar: &Sidecar,
        is_trusted: bool,
        audit: Audit,
        ctx: Ctx<'_>,
    ) -> Result<Imported> {
        if header.kind() == Kind::Added {
            return Ok(Imported::default());
        }
        let parts = header.by_part(files);
        let writer = self.writer(sidecar);
        let kind = RecordsKind {
            recipe: self.build_options().recipe,
            profile: self.models.own_embedder().profile().id(),
            dim: self.models.own_embedder().profile().dim,
            quantisation: self.build_options().quantisation,
            id_bytes: self.id_bytes(),
            max_blob_bytes: self.build_options().max_blob_bytes,
        };
        let files = parts
            .iter()
            .map(|(records, vectors, _)| (records.clone(), vectors.clone()));
        let records = Records::open(files, kind)?;
        let sizes = header.parts.iter().map(|part| (part.n_blobs, part.n_docs));
        ensure!(
            records.sizes().eq(sizes),
            "the sizes of its parts differ from the header"
        );
        if is_trusted && header.kind() == Kind::Ready {
            let ready = |(records, vectors, words): (Bytes, Bytes, Option<Bytes>)| Some([records, words?, vectors]);
            let segments: Option<Vec<[Bytes; 3]>> = parts.into_iter().map(ready).collect();
            if let Some(imported) = writer.adopt(&segments.unwrap_or_default(), ctx.interrupt)? {
                return Ok(imported);
            }
        }
        Ok(writer.import(&records, audit, ctx)?)
    }

    /// Returns the stored segments with the vectors of the model `added`. They are empty if another build or other
    /// settings made them.
    pub(crate) fn known_segments(&self, added: Option<ProfileId>) -> Result<Segments> {
        let Some((sidecar, Some(state))) = self.storage.open_with_state()? else {
            return Ok(Segments::default());
        };
        if state.recipe != self.build_options().recipe {
            return Ok(Segments::default());
        }
        let segments = Segments::open_newest(&sidecar, &state, &self.models.own_profile())?;
        Ok(match added {
            Some(profile) => segments.with_added(&sidecar, &state, &profile.to_string()),
            None => segments,
        })
    }

    fn has_tree(&self, tree: TreeId) -> bool {
        self.repository.resolve(&tree.to_string()).is_ok()
    }

    /// Returns the name of the settings and build that a bundle must match to be imported.
    pub(crate) fn pipeline(&self) -> String {
        self.pipeline_of(self.models.own_embedder().profile().id())
    }

    /// Like [`Self::pipeline`], for a bundle with the vectors of another model.
    pub(crate) fn pipeline_of(&self, profile: ProfileId) -> String {
        pipeline(self.build_options().recipe, profile, self.id_bytes())
    }

    /// Returns true if a bundle matches this build, the settings and the object format, regardless of its signature.
    pub(crate) fn takes<R: Read>(&self, bundle: &BundleFile<R>) -> bool {
        let profile = self.models.own_embedder().profile().id();
        let checked = bundle.check(self.build_options().recipe, profile, self.id_bytes(), Trust::Anybody);
        checked.is_ok()
    }

    /// Returns the length of an object id in this repository, in bytes.
    pub(crate) fn id_bytes(&self) -> usize {
        match self.repository.object_format() {
            ObjectFormat::Sha1 => 20,
            ObjectFormat::Sha256 => 32,
        }
    }
}

/// Verifies the facts of indexers in a bundle, and returns their files.
fn checked_facts(header: &Header, files: &[Bytes]) -> Result<Vec<Bytes>> {
    let check = |(n_documents, bytes): (u32, &Bytes)| {
        let file = FactsFile::receive(bytes.clone())?;
        ensure!(
            file.documents().count() == n_documents as usize,
            "the sizes of its facts differ from the header"
        );
        Ok(bytes.clone())
    };
    header.offered_facts(files).map(check).collect()
}

/// Opens a regular file for reading. Fails for other kinds of files, because opening or reading them could block.
pub(crate) fn open_plain(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    let flags = rustix::fs::OFlags::NONBLOCK.bits() as i32;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"))
    }
}

/// Writes a bundle to a temporary file and renames it, so that the file is never incomplete. `path` is what
/// [`check_output`](super::check_output) returned for `typed`. Refuses to replace a non-empty file that is not a bundle.
pub(crate) fn write_whole<T>(path: &Path, typed: &Path, write: impl FnOnce(&mut File) -> Result<T>) -> Result<T> {
    let is_other = |file: File| matches!(BundleFile::open(file), Err(ReadError::Header(HeaderError::OtherKind)));
    let is_full = fs::metadata(path).is_ok_and(|found| found.is_file() && found.len() > 0);
    ensure!(
        !(is_full && File::open(path).is_ok_and(is_other)),
        "{} exists and is not a bundle: name another file, or remove it",
        typed.display()
    );
    let cannot = || format!("cannot write {}", typed.display());
    ensure!(!path.is_dir(), "{} is a folder, not a file", typed.display());
    let has_folder = path.parent().is_some_and(Path::is_dir);
    let parent = typed.parent().unwrap_or(typed);
    ensure!(has_folder, "folder {} does not exist", parent.display());
    let (folder, name) = RealFolder::of_file(path, false).with_context(cannot)?;
    let (temporary, mut file) = folder.temporary().with_context(cannot)?;
    let write = || {
        let value = write(&mut file)?;
        file.sync_all().with_context(cannot)?;
        folder.rename(OsStr::new(&temporary), &name).with_context(cannot)?;
        Ok(value)
    };
    write().inspect_err(|_: &OpError| folder.discard(&temporary))
}
