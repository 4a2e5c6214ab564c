//! The index of a repository under a ref of its remote: what the other side lacks, and nothing else, goes over.

use std::collections::{BTreeMap, HashSet};
use std::io::{Read, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context as _, Result, ensure};

use super::Workspace;
use super::share::{ImportOptions, ImportedBundle, Known, Packing};
use crate::artifact::ArtifactKey;
use crate::bundle::{Kind, SigningKey, Trust, decode_keys, encode_keys};
use crate::embed::ProfileId;
use crate::git::{Bounds, Direction, Exchange, ExchangeError, RemoteFiles};
use crate::index::Segments;
use crate::ingest::{ImportRefusal, Progress, has_rows};
use crate::model::{BlobId, CommitId, Lang};

/// Below this stand the indexes of a remote, one for each build and settings.
const NAMESPACE: &str = "refs/codescout";
/// With so many parts a push makes one of those that it knows all of.
const MAX_PARTS: usize = 8;
/// With so many, or so many blobs in their lists, those of others go too: each shallow clone adds one, and knows only its own.
const MAX_KEPT_PARTS: usize = 256;
const MAX_KEPT_KEYS: usize = 1 << 20;
/// How often a push begins again because somebody else was faster.
const MAX_ATTEMPTS: usize = 5;
const PART_ENDING: &str = ".bundle";
const KEYS_ENDING: &str = ".keys";
const NAME_DIGITS: usize = 32;
/// All lists of keys together are not longer: three million blobs.
const MAX_KEYS_BYTES: u64 = 64 << 20;

/// What stands under one ref of a remote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// Records of blobs.
    Records,
    /// What a model beside the one inside the program has made of them.
    Rows(ProfileId),
    /// The record of commits: each part is a whole one, and its list names the tips.
    Commits,
}

impl Content {
    /// All that this clone gives and takes, in this order: rows are about blobs that are known.
    pub(crate) fn all(workspace: &Workspace, with_commits: bool) -> Vec<Self> {
        let rows = workspace.added_profiles().into_iter().map(Self::Rows);
        let commits = with_commits.then_some(Self::Commits);
        std::iter::once(Self::Records).chain(rows).chain(commits).collect()
    }

    fn profile(self) -> Option<ProfileId> {
        match self {
            Self::Records | Self::Commits => None,
            Self::Rows(profile) => Some(profile),
        }
    }

    /// Whether `segments`, opened with the profile, have everything of a blob.
    fn is_in(self, segments: &Segments, key: ArtifactKey) -> bool {
        match self {
            Self::Records | Self::Commits => segments.find_blob(key).is_some(),
            Self::Rows(profile) => has_rows(segments, key, profile),
        }
    }
}

/// What a remote is looked at for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To take what it has.
    Pull,
    /// To give what it lacks.
    Add,
    /// To leave nothing but what is given.
    Replace,
}

/// A remote that was looked at.
pub(crate) struct Remote<'a> {
    pub(crate) content: Content,
    exchange: Exchange<'a>,
    purpose: Purpose,
    /// Holds the repository that everything goes through.
    folder: tempfile::TempDir,
    shelf: RemoteFiles,
    parts: Vec<Part>,
}

/// A bundle on a remote.
#[derive(Clone, Debug)]
struct Part {
    /// The beginning of both names: digits of its hash, a hyphen, its size.
    name: String,
    n_bytes: u64,
    keys: Vec<ArtifactKey>,
}

impl Part {
    /// The commits that it is a record of, with all before them.
    fn tips(&self) -> Vec<CommitId> {
        self.keys.iter().map(|key| CommitId(key.blob.0)).collect()
    }
}

/// What a push would do.
pub(crate) struct PushPlan {
    new: Option<NewPart>,
    dropped: Vec<String>,
    /// Whether nothing else stays either.
    replaces: bool,
    /// Parts there are, and will be.
    pub(crate) n_parts: (usize, usize),
}

struct NewPart {
    file: PathBuf,
    name: String,
    keys: Vec<ArtifactKey>,
    n_bytes: u64,
}

impl PushPlan {
    /// Blobs that would be sent, and bytes of these.
    pub(crate) fn cost(&self) -> (usize, u64) {
        self.new.as_ref().map_or((0, 0), |new| (new.keys.len(), new.n_bytes))
    }

    /// Whether there is anything to do.
    pub(crate) fn is_empty(&self) -> bool {
        self.new.is_none() && self.dropped.is_empty()
    }
}

/// What a pull would do.
#[derive(Default)]
pub(crate) struct PullPlan {
    parts: Vec<Part>,
    /// What is brought one after the other instead if a part turns out to be of no use.
    others: Vec<Part>,
    /// Why nothing of this would be of use.
    pub(crate) passed_over: Option<ImportRefusal>,
}

impl PullPlan {
    /// Parts that would be brought, and their bytes.
    pub(crate) fn cost(&self) -> (usize, u64) {
        (self.parts.len(), self.parts.iter().map(|part| part.n_bytes).sum())
    }
}

impl<'a> Remote<'a> {
    /// Looks at what a remote has for this build and these settings.
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

    /// The address, without a password.
    pub(crate) fn address(&self) -> String {
        self.exchange.shown()
    }

    fn look(&mut self) -> Result<()> {
        match self.read_shelf() {
            // Whatever it is, it goes.
            Err(error) if self.purpose == Purpose::Replace => {
                tracing::info!("what is there cannot be read: {error:#}");
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

    /// Refuses lists that would not go into memory.
    fn check_lists(&self, ids: &[&str]) -> Result<()> {
        let mut n_bytes = 0;
        for id in ids {
            n_bytes += self.exchange.size(id)?;
            ensure!(
                n_bytes <= MAX_KEYS_BYTES,
                "the lists of what is there have more than {MAX_KEYS_BYTES} bytes"
            );
        }
        Ok(())
    }

    /// A part by the beginning of its names; `None` for what is none of ours.
    fn part(&self, name: &str) -> Result<Option<Part>> {
        let (Some(n_bytes), Some(id)) = (size_in(name), self.shelf.files.get(&format!("{name}{KEYS_ENDING}"))) else {
            return Ok(None);
        };
        let mut child = self.exchange.read(id)?;
        let mut bytes = Vec::new();
        child
            .stdout
            .take()
            .context("git gives nothing")?
            .read_to_end(&mut bytes)?;
        child.wait()?;
        Ok(decode_keys(&bytes).map(|keys| Part {
            name: name.to_owned(),
            n_bytes,
            keys,
        }))
    }

    /// What the remote lacks of what is known. Nothing of what is there stays if that was asked for, or if it has become more than
    /// can be read before long.
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
        let has = |key: &ArtifactKey| self.content.is_in(&segments, *key);
        let mut keys = known.keys.clone();
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
            // All that is dropped and nothing else: it is there already.
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

    /// A whole record, in the place of those that it has everything of.
    fn plan_push_of_commits(
        &self,
        workspace: &Workspace,
        known: &Known,
        sign: Option<&SigningKey>,
    ) -> Result<PushPlan> {
        let given = known.given.as_ref().context("no record of commits was asked for")?;
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
        // Those of other branches stay, while they are few: each is a whole record.
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

    /// Whether there is so much that one part more could be too much for who reads it.
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
        let (kind, added, commits) = match &self.content {
            Content::Records => (Kind::Records, &[][..], None),
            Content::Rows(profile) => (Kind::Added, std::slice::from_ref(profile), None),
            Content::Commits => (Kind::Added, &[][..], known.given.as_ref()),
        };
        let packing = Packing {
            kind,
            added,
            commits,
            key: sign,
        };
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

    /// Does what was planned, if nobody was faster: then [`ExchangeError::Moved`].
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

    /// [`Self::push`], looking again and planning anew while others are faster. What was shown before may become a little more.
    pub(crate) fn push_until_done(
        &mut self,
        plan: &mut PushPlan,
        workspace: &Workspace,
        known: &Known,
        sign: Option<&SigningKey>,
    ) -> Result<()> {
        for attempt in 1.. {
            match self.push(plan) {
                Err(error) if has_moved(&error) && attempt < MAX_ATTEMPTS => {
                    tracing::info!("somebody else was faster: looking again");
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

    /// The parts that have something about blobs that are here and not known.
    pub(crate) fn plan_pull(&self, workspace: &Workspace, trust: Trust) -> Result<PullPlan> {
        if self.content == Content::Commits {
            return self.plan_pull_of_commits(workspace, trust);
        }
        let known = workspace.known_segments(self.content.profile())?;
        let mut reader = workspace.repository.reader();
        let mut seen = HashSet::new();
        let mut is_new = |key: &ArtifactKey| {
            !self.content.is_in(&known, *key)
                && !seen.contains(key)
                && matches!(reader.blob_size(key.blob), Ok(Some(_)))
                && seen.insert(*key)
        };
        // The largest first: what stands in it needs no other.
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

    /// The largest record of commits that are here and not recorded.
    fn plan_pull_of_commits(&self, workspace: &Workspace, trust: Trust) -> Result<PullPlan> {
        let mut plan = PullPlan::default();
        if self.parts.is_empty() {
            return Ok(plan);
        }
        plan.passed_over = workspace.takes_no_records(matches!(trust, Trust::Only(_)))?;
        if plan.passed_over.is_some() {
            return Ok(plan);
        }
        for part in &self.parts {
            if workspace.lacks_records_of(&part.tips())? {
                plan.others.push(part.clone());
            }
        }
        plan.others.sort_by_key(|part| std::cmp::Reverse(part.n_bytes));
        plan.parts
            .extend((!plan.others.is_empty()).then(|| plan.others.remove(0)));
        Ok(plan)
    }

    /// Brings what was planned and takes it in.
    pub(crate) fn pull(
        &self,
        plan: &PullPlan,
        workspace: &Workspace,
        options: ImportOptions,
        progress: &dyn Progress,
        interrupt: &AtomicBool,
    ) -> Result<Vec<ImportedBundle>> {
        let mut taken = self.bring(&plan.parts, workspace, options, progress, interrupt);
        for other in &plan.others {
            match &taken {
                Ok(taken) if taken.iter().any(|taken| matches!(taken.commits, Some(Ok(_)))) => break,
                Err(_) if interrupt.load(Ordering::Relaxed) => break,
                Err(error) => tracing::warn!("{error:#}: trying the next part"),
                Ok(_) => {}
            }
            let more = self.bring(std::slice::from_ref(other), workspace, options, progress, interrupt);
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
        progress: &dyn Progress,
        interrupt: &AtomicBool,
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
                "{}: {found} bytes where its name says {}",
                part.name,
                part.n_bytes
            );
            let mut child = self.exchange.read(id)?;
            let from = child.stdout.take().context("git gives nothing")?;
            let imported = workspace.import(from, options, progress, interrupt);
            child.wait()?;
            taken.push(imported.with_context(|| format!("cannot take in part {}", part.name))?);
        }
        Ok(taken)
    }

    /// How many parts there are.
    pub(crate) fn n_parts(&self) -> usize {
        self.parts.len()
    }
}

fn has_moved(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(ExchangeError::Moved { .. }))
}

/// The size in the name of a part; `None` for another name.
fn size_in(name: &str) -> Option<u64> {
    let (digits, size) = name.split_once('-')?;
    let is_ours = digits.len() == NAME_DIGITS && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let is_number = !size.is_empty() && size.len() <= 12 && size.bytes().all(|byte| byte.is_ascii_digit());
    (is_ours && is_number).then(|| size.parse().ok())?
}

/// Hashes what it hands on.
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
