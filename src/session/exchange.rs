//! Pushes the index of a repository to a ref of a remote, and pulls it from there. Transfers only data that the
//! receiver lacks.

use std::collections::{BTreeMap, HashSet};
use std::io::{Read, Write};
use std::path::PathBuf;

use super::error::{Context as _, Result, ensure};
use super::share::{ImportOptions, ImportedBundle, Known, Packing};
use super::workspace::Workspace;
use crate::artifact::ArtifactKey;
use crate::bundle::{Kind, SigningKey, Trust, decode_keys, encode_keys};
use crate::embed::ProfileId;
use crate::git::{Bounds, Direction, Exchange, RemoteFiles};
use crate::index::Segments;
use crate::ingest::{ImportRefusal, has_rows};
use crate::model::{BlobId, CommitId, Ctx, ErrorKind, Lang};

/// Prefix of the refs that contain indexes on a remote. Each combination of build and settings has its own ref.
const NAMESPACE: &str = "refs/codescout";
/// Number of parts from which a push merges parts into one. It merges the parts whose keys are all known locally.
const MAX_PARTS: usize = 8;
/// Number of parts, or of keys in their lists, from which a push also removes parts with unknown keys. Without this
/// limit, every shallow clone would add a part that other clones do not know.
const MAX_KEPT_PARTS: usize = 256;
const MAX_KEPT_KEYS: usize = 1 << 20;
/// Maximum number of attempts if other pushes come first.
const MAX_ATTEMPTS: usize = 5;
const PART_ENDING: &str = ".bundle";
const KEYS_ENDING: &str = ".keys";
const NAME_DIGITS: usize = 32;
/// Maximum size of all key lists together, enough for three million blobs.
const MAX_KEYS_BYTES: u64 = 64 << 20;

/// The kind of data in one ref of a remote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// Records of blobs.
    Records,
    /// Vectors of an external model for the blobs.
    Rows(ProfileId),
    /// Facts of indexers about files.
    Facts,
    /// Records of commits. Each part is a complete record, and its key list contains the tips.
    Commits,
}

impl Content {
    /// Returns all kinds of data that this clone exchanges, in transfer order. Vectors come after the blobs that they
    /// belong to.
    pub(crate) fn all(workspace: &Workspace, with_commits: bool) -> Vec<Self> {
        let rows = workspace.added_profiles().into_iter().map(Self::Rows);
        let commits = with_commits.then_some(Self::Commits);
        let always = [Self::Records, Self::Facts];
        always.into_iter().chain(rows).chain(commits).collect()
    }

    fn profile(self) -> Option<ProfileId> {
        match self {
            Self::Records | Self::Facts | Self::Commits => None,
            Self::Rows(profile) => Some(profile),
        }
    }

    /// Returns true if this clone has all data of this kind for a key.
    fn is_in(self, held: &Held, key: ArtifactKey) -> bool {
        match self {
            Self::Records | Self::Commits => held.segments.find_blob(key).is_some(),
            Self::Rows(profile) => has_rows(&held.segments, key, profile),
            Self::Facts => held.facts.contains(&key),
        }
    }
}

/// The data of this clone.
struct Held {
    /// The segments, opened with the profile of the exchanged data.
    segments: Segments,
    /// The keys of the facts of indexers, if these are exchanged.
    facts: HashSet<ArtifactKey>,
}

/// The purpose of opening a remote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To fetch data.
    Pull,
    /// To add data that the remote lacks.
    Add,
    /// To replace all data on the remote.
    Replace,
}

/// A remote whose list of parts has been read.
pub(crate) struct Remote<'a> {
    pub(crate) content: Content,
    exchange: Exchange<'a>,
    purpose: Purpose,
    /// Temporary folder with the Git repository used for the transfer.
    folder: tempfile::TempDir,
    shelf: RemoteFiles,
    parts: Vec<Part>,
}

/// A part of the index on a remote, stored as a bundle.
#[derive(Clone, Debug)]
struct Part {
    /// Name of its two files without extension: digits of the bundle's hash, a hyphen, the bundle's size.
    name: String,
    n_bytes: u64,
    keys: Vec<ArtifactKey>,
}

impl Part {
    /// Returns the tips of the record of commits. The record contains the tips and all their ancestors.
    fn tips(&self) -> Vec<CommitId> {
        self.keys.iter().map(|key| CommitId(key.blob.0)).collect()
    }
}

/// The planned changes of a push.
pub(crate) struct PushPlan {
    new: Option<NewPart>,
    dropped: Vec<String>,
    /// True if all other files on the ref are removed too.
    replaces: bool,
    /// Number of parts before and after the push.
    pub(crate) n_parts: (usize, usize),
}

struct NewPart {
    file: PathBuf,
    name: String,
    keys: Vec<ArtifactKey>,
    n_bytes: u64,
}

impl PushPlan {
    /// Returns the number of blobs to send, and their size in bytes.
    pub(crate) fn cost(&self) -> (usize, u64) {
        self.new.as_ref().map_or((0, 0), |new| (new.keys.len(), new.n_bytes))
    }

    /// Returns true if the push would change nothing.
    pub(crate) fn is_empty(&self) -> bool {
        self.new.is_none() && self.dropped.is_empty()
    }
}

/// The planned transfers of a pull.
#[derive(Default)]
pub(crate) struct PullPlan {
    parts: Vec<Part>,
    /// Parts that are fetched, one at a time, if another part turns out to be unusable.
    others: Vec<Part>,
    /// The reason why this clone cannot use any of the data.
    pub(crate) passed_over: Option<ImportRefusal>,
}

impl PullPlan {
    /// Returns the number of parts to fetch, and their size in bytes.
    pub(crate) fn cost(&self) -> (usize, u64) {
        (self.parts.len(), self.parts.iter().map(|part| part.n_bytes).sum())
    }
}

impl<'a> Remote<'a> {
    /// Connects to a remote and lists its parts for this build and these settings.
    pub(crate) fn open(
        workspace: &Workspace,
        remote: &str,
        content: Content,
        purpose: Purpose,
        bounds: Bounds<'a>,
    ) -> Result<Self> {
        let folder = tempfile::Builder::new()
            .prefix("codescout-exchange-")
            .tempdir()
            .context("cannot make a temporary folder")?;
        let name = match content {
            Content::Records => workspace.pipeline(),
            Content::Rows(profile) => workspace.pipeline_of(profile),
            Content::Facts => workspace.pipeline_of_facts(),
            Content::Commits => workspace.pipeline_of_commits(),
        };
        let reference = format!("{NAMESPACE}/{name}");
        let place = folder.path().join("git");
        std::fs::create_dir(&place)?;
        let direction = match purpose {
            Purpose::Pull => Direction::Fetch,
            Purpose::Add | Purpose::Replace => Direction::Push,
        };
        let exchange = Exchange::new(&workspace.repository, remote, &reference, &place, direction, bounds)?;
        let mut remote = Self {
            content,
            exchange,
            purpose,
            folder,
            shelf: RemoteFiles::default(),
            parts: Vec::new(),
        };
        remote.look()?;
        Ok(remote)
    }

    /// Returns the address of the remote without a password.
    pub(crate) fn address(&self) -> String {
        self.exchange.shown()
    }

    fn look(&mut self) -> Result<()> {
        match self.read_shelf() {
            // A push that replaces everything may also replace unreadable data.
            Err(error) if self.purpose == Purpose::Replace => {
                tracing::info!("cannot read the index on the remote: {error:#}");
                self.parts.clear();
                self.shelf = RemoteFiles {
                    commit: self.exchange.commit()?,
                    ..RemoteFiles::default()
                };
                Ok(())
            }
            read => read,
        }
    }

    fn read_shelf(&mut self) -> Result<()> {
        self.shelf = self.exchange.look()?;
        let lists: Vec<&String> = self
            .shelf
            .files
            .iter()
            .filter_map(|(name, id)| name.ends_with(KEYS_ENDING).then_some(id))
            .collect();
        let ids: Vec<&str> = lists.into_iter().map(String::as_str).collect();
        self.exchange.bring(&ids, None)?;
        self.check_lists(&ids)?;
        let names = self
            .shelf
            .files
            .keys()
            .filter_map(|name| name.strip_suffix(PART_ENDING));
        self.parts = names
            .filter_map(|name| self.part(name).transpose())
            .collect::<Result<_>>()?;
        Ok(())
    }

    /// Fails if the key lists together exceed [`MAX_KEYS_BYTES`].
    fn check_lists(&self, ids: &[&str]) -> Result<()> {
        let mut n_bytes = 0;
        for id in ids {
            n_bytes += self.exchange.size(id)?;
            ensure!(
                n_bytes <= MAX_KEYS_BYTES,
                "the remote's lists of blobs exceed {MAX_KEYS_BYTES} bytes"
            );
        }
        Ok(())
    }

    /// Returns the part with this file name. `None` if the file is not part of an index.
    fn part(&self, name: &str) -> Result<Option<Part>> {
        let (Some(n_bytes), Some(id)) = (size_in(name), self.shelf.files.get(&format!("{name}{KEYS_ENDING}"))) else {
            return Ok(None);
        };
        let mut child = self.exchange.read(id)?;
        let mut bytes = Vec::new();
        child
            .stdout
            .take()
            .context("git has no output")?
            .read_to_end(&mut bytes)?;
        child.wait()?;
        Ok(decode_keys(&bytes).map(|keys| Part {
            name: name.to_owned(),
            n_bytes,
            keys,
        }))
    }

    /// Plans a push of data that the remote lacks. The plan removes all existing parts if the purpose is
    /// [`Purpose::Replace`], or if the remote has so many parts that readers would soon refuse it.
    pub(crate) fn plan_push(
        &self,
        workspace: &Workspace,
        known: &Known,
        sign: Option<&SigningKey>,
    ) -> Result<PushPlan> {
        if self.content == Content::Commits {
            return self.plan_push_of_commits(workspace, known, sign);
        }
        let covered: HashSet<ArtifactKey> = self.parts.iter().flat_map(|part| part.keys.iter().copied()).collect();
        let segments = match self.content.profile() {
            None => known.segments().clone(),
            Some(profile) => known.with_added(profile),
        };
        let (mut keys, facts) = match self.content {
            Content::Facts => known.fact_keys(),
            _ => (known.keys.clone(), HashSet::new()),
        };
        let held = Held { segments, facts };
        let has = |key: &ArtifactKey| self.content.is_in(&held, *key);
        keys.retain(has);
        let lacks_something = keys.iter().any(|key| !covered.contains(key));
        let mut dropped: Vec<&Part> = Vec::new();
        let replace = self.purpose == Purpose::Replace || lacks_something && self.is_full();
        if replace {
            dropped = self.parts.iter().collect();
        } else if lacks_something && self.parts.len() >= MAX_PARTS {
            dropped = self.parts.iter().filter(|part| part.keys.iter().all(has)).collect();
        }
        let names: HashSet<&String> = dropped.iter().map(|part| &part.name).collect();
        let stays: HashSet<ArtifactKey> = self
            .parts
            .iter()
            .filter(|part| !names.contains(&part.name))
            .flat_map(|part| part.keys.iter().copied())
            .collect();
        if !replace {
            let mut seen: HashSet<ArtifactKey> = keys.iter().copied().collect();
            let old = dropped.iter().flat_map(|part| &part.keys);
            keys.extend(old.filter(|&&key| seen.insert(key)));
        }
        keys.retain(|key| !stays.contains(key) && has(key));
        let n_before = self.parts.len();
        let mut plan = PushPlan {
            dropped: dropped.iter().map(|part| part.name.clone()).collect(),
            replaces: replace,
            new: None,
            n_parts: (n_before, n_before - dropped.len()),
        };
        if !keys.is_empty() {
            let new = self.write_part(workspace, known, keys, sign)?;
            // The new part is identical to the removed one, so it is already on the remote.
            if plan.dropped == [new.name.clone()] {
                plan.dropped.clear();
                plan.n_parts.1 = n_before;
                return Ok(plan);
            }
            plan.n_parts.1 += 1;
            plan.new = Some(new);
        }
        Ok(plan)
    }

    /// Plans a push of one complete record of commits. It replaces the records that it contains.
    fn plan_push_of_commits(
        &self,
        workspace: &Workspace,
        known: &Known,
        sign: Option<&SigningKey>,
    ) -> Result<PushPlan> {
        let given = known.given.as_ref().context("no commit history was exported")?;
        let n_before = self.parts.len();
        let mut plan = PushPlan {
            dropped: Vec::new(),
            replaces: self.purpose == Purpose::Replace,
            new: None,
            n_parts: (n_before, n_before),
        };
        let is_there = |part: &Part| given.is_within(&part.tips());
        if !plan.replaces && self.parts.iter().any(is_there) {
            return Ok(plan);
        }
        // While there are few parts, records of other branches remain. Each of them is complete.
        let goes_all = plan.replaces || n_before >= MAX_PARTS;
        let goes = |part: &&Part| goes_all || part.tips().iter().all(|&tip| given.has(tip));
        plan.dropped = self.parts.iter().filter(goes).map(|part| part.name.clone()).collect();
        let keys = given.tips.iter().map(|tip| ArtifactKey {
            blob: BlobId(tip.0),
            lang: Lang(0),
        });
        let new = self.write_part(workspace, known, keys.collect(), sign)?;
        plan.dropped.retain(|name| *name != new.name);
        plan.n_parts.1 =
            n_before - plan.dropped.len() + usize::from(self.parts.iter().all(|part| part.name != new.name));
        plan.new = Some(new);
        Ok(plan)
    }

    /// Returns true if another part could exceed the limits of readers.
    fn is_full(&self) -> bool {
        let n_keys: usize = self.parts.iter().map(|part| part.keys.len()).sum();
        self.parts.len() >= MAX_KEPT_PARTS || n_keys >= MAX_KEPT_KEYS
    }

    fn write_part(
        &self,
        workspace: &Workspace,
        known: &Known,
        keys: Vec<ArtifactKey>,
        sign: Option<&SigningKey>,
    ) -> Result<NewPart> {
        let file = self.folder.path().join("part");
        let mut hashed = Hashed {
            hasher: blake3::Hasher::new(),
            to: std::fs::File::create(&file).context("cannot write to the temporary folder")?,
        };
        let (mut packing, mut facts) = (Packing::new(Kind::Added, sign), Vec::new());
        match &self.content {
            Content::Records => packing.kind = Kind::Records,
            Content::Rows(profile) => packing.added = std::slice::from_ref(profile),
            Content::Commits => packing.commits = known.given.as_ref(),
            Content::Facts => facts = known.facts_of(&keys)?,
        }
        packing.facts = &facts;
        let packed = workspace.pack_keys(known, &keys, packing, &mut hashed)?;
        let mut name = hashed.hasher.finalize().to_hex().to_string();
        name.truncate(NAME_DIGITS);
        Ok(NewPart {
            name: format!("{name}-{}", packed.n_bytes),
            n_bytes: packed.n_bytes,
            file,
            keys,
        })
    }

    /// Applies the plan. Fails with [`ExchangeError::Moved`] if another push came first.
    pub(crate) fn push(&self, plan: &PushPlan) -> Result<()> {
        let mut files: BTreeMap<String, String> = if plan.replaces {
            BTreeMap::new()
        } else {
            self.shelf.files.clone()
        };
        for name in &plan.dropped {
            for ending in [PART_ENDING, KEYS_ENDING] {
                files.remove(&format!("{name}{ending}"));
            }
        }
        if let Some(new) = &plan.new {
            let keys = self.folder.path().join("keys");
            std::fs::write(&keys, encode_keys(&new.keys)).context("cannot write to the temporary folder")?;
            for (ending, file) in [(PART_ENDING, &new.file), (KEYS_ENDING, &keys)] {
                files.insert(format!("{}{ending}", new.name), self.exchange.add(file)?);
            }
        }
        Ok(self.exchange.replace(&self.shelf, &files)?)
    }

    /// Pushes. If another push comes first, reads the remote again and makes a new plan. The new plan may be larger
    /// than the one shown to the user.
    pub(crate) fn push_until_done(
        &mut self,
        plan: &mut PushPlan,
        workspace: &Workspace,
        known: &Known,
        sign: Option<&SigningKey>,
    ) -> Result<()> {
        for attempt in 1.. {
            match self.push(plan) {
                Err(error) if error.kind == ErrorKind::Raced && attempt < MAX_ATTEMPTS => {
                    tracing::info!("the remote changed during the push; reading it again");
                    self.look()?;
                    *plan = self.plan_push(workspace, known, sign)?;
                    if plan.is_empty() {
                        break;
                    }
                }
                pushed => return pushed,
            }
        }
        Ok(())
    }

    /// Plans to fetch the parts with data for blobs that are in this repository but not in the index.
    pub(crate) fn plan_pull(&self, workspace: &Workspace, trust: Trust) -> Result<PullPlan> {
        if self.content == Content::Commits {
            return self.plan_pull_of_commits(workspace, trust);
        }
        let held = Held {
            segments: workspace.known_segments(self.content.profile())?,
            facts: match self.content {
                Content::Facts => workspace.fact_keys()?,
                _ => HashSet::new(),
            },
        };
        let mut reader = workspace.repository.reader();
        let mut seen = HashSet::new();
        let mut is_new = |key: &ArtifactKey| {
            !self.content.is_in(&held, *key)
                && !seen.contains(key)
                && matches!(reader.blob_size(key.blob), Ok(Some(_)))
                && seen.insert(*key)
        };
        // The largest part comes first, so that its keys are not needed from other parts.
        let mut parts: Vec<&Part> = self.parts.iter().collect();
        parts.sort_by_key(|part| std::cmp::Reverse(part.keys.len()));
        let wanted = parts
            .into_iter()
            .filter(|part| part.keys.iter().filter(|&key| is_new(key)).count() > 0);
        Ok(PullPlan {
            parts: wanted.cloned().collect(),
            ..PullPlan::default()
        })
    }

    /// Plans to fetch the largest record of commits that are in this repository but not recorded.
    fn plan_pull_of_commits(&self, workspace: &Workspace, trust: Trust) -> Result<PullPlan> {
        let mut plan = PullPlan::default();
        if self.parts.is_empty() {
            return Ok(plan);
        }
        plan.passed_over = workspace.records().takes_no_records(matches!(trust, Trust::Only(_)))?;
        if plan.passed_over.is_some() {
            return Ok(plan);
        }
        for part in &self.parts {
            if workspace.records().lacks_records_of(&part.tips())? {
                plan.others.push(part.clone());
            }
        }
        plan.others.sort_by_key(|part| std::cmp::Reverse(part.n_bytes));
        plan.parts
            .extend((!plan.others.is_empty()).then(|| plan.others.remove(0)));
        Ok(plan)
    }

    /// Fetches the planned parts and imports them.
    pub(crate) fn pull(
        &self,
        plan: &PullPlan,
        workspace: &Workspace,
        options: ImportOptions,
        ctx: Ctx<'_>,
    ) -> Result<Vec<ImportedBundle>> {
        let mut taken = self.bring(&plan.parts, workspace, options, ctx);
        for other in &plan.others {
            match &taken {
                Ok(taken) if taken.iter().any(|taken| matches!(taken.commits, Some(Ok(_)))) => break,
                Err(_) if ctx.is_interrupted() => break,
                Err(error) => tracing::warn!("{error:#}: trying the next part"),
                Ok(_) => {}
            }
            let more = self.bring(std::slice::from_ref(other), workspace, options, ctx);
            taken = match (taken, more) {
                (Ok(mut taken), Ok(more)) => {
                    taken.extend(more);
                    Ok(taken)
                }
                (Err(_), Ok(more)) => Ok(more),
                (taken, Err(_)) => taken,
            };
        }
        taken
    }

    fn bring(
        &self,
        parts: &[Part],
        workspace: &Workspace,
        options: ImportOptions,
        ctx: Ctx<'_>,
    ) -> Result<Vec<ImportedBundle>> {
        let id_of = |part: &Part| {
            self.shelf
                .files
                .get(&format!("{}{PART_ENDING}", part.name))
                .map(String::as_str)
        };
        let ids: Vec<&str> = parts.iter().filter_map(id_of).collect();
        self.exchange
            .bring(&ids, Some(parts.iter().map(|part| part.n_bytes).sum()))?;
        let mut taken = Vec::new();
        for (part, id) in parts.iter().zip(ids) {
            let found = self.exchange.size(id)?;
            ensure!(
                found == part.n_bytes,
                "{}: {found} bytes, expected {} from its name",
                part.name,
                part.n_bytes
            );
            let mut child = self.exchange.read(id)?;
            let from = child.stdout.take().context("git has no output")?;
            let imported = workspace.import(from, options, ctx);
            child.wait()?;
            taken.push(imported.with_context(|| format!("cannot import part {}", part.name))?);
        }
        Ok(taken)
    }

    /// Returns the number of parts.
    pub(crate) fn n_parts(&self) -> usize {
        self.parts.len()
    }
}

/// Returns the size in the file name of a part. `None` for other file names.
fn size_in(name: &str) -> Option<u64> {
    let (digits, size) = name.split_once('-')?;
    let is_ours = digits.len() == NAME_DIGITS && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let is_number = !size.is_empty() && size.len() <= 12 && size.bytes().all(|byte| byte.is_ascii_digit());
    (is_ours && is_number).then(|| size.parse().ok())?
}

/// A writer that hashes the bytes written through it.
struct Hashed {
    hasher: blake3::Hasher,
    to: std::fs::File,
}

impl Write for Hashed {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let n_written = self.to.write(bytes)?;
        self.hasher.update(&bytes[..n_written]);
        Ok(n_written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.to.flush()
    }
}
