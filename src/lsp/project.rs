//! One server that reads one worktree: the handshake, the proof that it has read it, and questions.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::io;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use lsp_types::notification::{DidChangeWatchedFiles, Exit, Initialized};
use lsp_types::request::{GotoDefinition, Initialize, References as FindReferences, Shutdown};
use lsp_types::{
    ClientCapabilities, ClientInfo, DidChangeWatchedFilesClientCapabilities, DidChangeWatchedFilesParams,
    FileChangeType, FileEvent, GeneralClientCapabilities, GotoCapability, GotoDefinitionParams, GotoDefinitionResponse,
    InitializeParams, InitializedParams, PositionEncodingKind, Range, ReferenceContext, ReferenceParams,
    TextDocumentClientCapabilities, TextDocumentIdentifier, TextDocumentPositionParams, Uri, WindowClientCapabilities,
    WorkspaceClientCapabilities,
};

use super::documents::{Documents, Location};
use super::positions::chosen_unit;
use super::process::{Guard, Process};
use super::question::{Answer, Canary, KnownFile, Place, Question};
use super::readiness::SETTLE;
use super::servers::Found;
use super::transport::{Refusal, RequestId, Stopped, Transport, Watch, folder, json_of, shown};
use super::uri::uri_of;
use crate::model::ColumnUnit;

/// Limit on the time of the handshake.
const HANDSHAKE: Duration = Duration::from_secs(120);
/// Time that a server gets to end by itself.
const GRACE: Duration = Duration::from_secs(2);
/// Limit on requests whose answers are waited for.
const MAX_IN_FLIGHT: usize = 16;
/// Limit on attempts of a request that a server cannot answer just now.
const MAX_ATTEMPTS: usize = 5;
/// Number of known references that are looked for.
const N_CANARIES: usize = 3;
/// The longest pause between two proofs.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// A server that has been started for a worktree.
#[derive(Debug)]
pub(super) struct Project<'a> {
    found: Found,
    process: Process<'a>,
    transport: Transport,
    /// The request of the handshake, until it is answered.
    handshake: Option<RequestId>,
    started: Instant,
    encoding: ColumnUnit,
    version: Option<String>,
    documents: Documents,
    /// Path and id of the files that the server knows of, by language.
    files: HashMap<String, BTreeMap<String, String>>,
    proof: Proof,
    /// The trial that goes on. Clients with little patience must not start it again each time.
    trial: Option<Trial>,
    /// The last trial that ended, and when its answers were first given.
    last: Option<(Trial, Instant)>,
    /// Number of trials that did not find what is known.
    n_vain: usize,
}

/// Requests whose answers show if the server has read the worktree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Trial {
    /// Two requests for each: for the references of the definition, and for the definition of the reference.
    canaries: Vec<Canary>,
    requests: Vec<(Method, Place)>,
    /// The answers so far.
    answers: Vec<Option<Targets>>,
    /// The request that waits for its answer.
    waiting: Option<RequestId>,
}

/// The evidence that the server has read the worktree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Proof {
    Missing,
    /// Files have changed since the proof.
    Outdated,
    Valid,
}

/// The kinds of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Method {
    References,
    Definition,
}

/// The places that a server named.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Targets {
    inside: Vec<Place>,
    is_outside: bool,
}

/// The answers to several requests. `None` if a request was not answered.
struct Answers {
    targets: Vec<Option<Targets>>,
    is_partial: bool,
}

impl<'a> Project<'a> {
    /// Starts a server.
    pub(super) fn start(found: Found, root: &Path, search_path: &str, guard: &'a Guard) -> io::Result<Self> {
        let (process, pipes) = Process::start(&found, root, search_path, guard)?;
        let mut transport = Transport::start(found.server, uri_of(root), pipes);
        let handshake = transport.request::<Initialize>(greeting(&found, &uri_of(root)));
        Ok(Self {
            found,
            process,
            transport,
            handshake: Some(handshake),
            started: Instant::now(),
            encoding: ColumnUnit::default(),
            version: None,
            documents: Documents::new(root),
            files: HashMap::new(),
            proof: Proof::Missing,
            trial: None,
            last: None,
            n_vain: 0,
        })
    }

    pub(super) fn process(&self) -> &Process<'a> {
        &self.process
    }

    /// Returns true while the server may need attention between questions.
    pub(super) fn is_starting(&self) -> bool {
        self.handshake.is_some() && self.transport.failure().is_none()
    }

    /// Describes what the server does.
    pub(super) fn state(&self) -> String {
        match (self.transport.failure(), self.proof) {
            (Some(reason), _) => reason,
            (None, Proof::Valid) => "ready".to_owned(),
            (None, _) => self.transport.with_readiness(|readiness| readiness.state()),
        }
    }

    /// Continues the handshake if its answer has arrived.
    pub(super) fn attend(&mut self) {
        if let Some(id) = self.handshake
            && self.transport.has_answer(id)
        {
            let mut watch = Watch {
                deadline: Instant::now(),
                is_cancelled: &AtomicBool::new(false),
                on_state: &mut |_| {},
            };
            // A failure is kept by the transport.
            let _ = self.shake_hands(&mut watch);
        } else if self.handshake.is_some() && self.started.elapsed() > HANDSHAKE {
            self.transport.fail("it does not answer the handshake".to_owned());
        }
    }

    /// Answers a question once the server has read the worktree.
    pub(super) fn answer(&mut self, question: &Question, watch: &mut Watch<'_>) -> Result<Answer, Stopped> {
        self.shake_hands(watch)?;
        self.note_files(question);
        self.documents.refresh(&self.transport);
        let language_id = self.found.server.language_id(&question.language).unwrap_or_default();
        self.prove(question, language_id, watch)?;
        (watch.on_state)("ready");
        let references = self.ask_all(Method::References, &question.definitions, language_id, watch)?;
        let definitions = self.ask_all(Method::Definition, &question.sites, language_id, watch)?;
        let known = known_references(question, &definitions.targets);
        // What refers to a definition may be in a file that the settings of the server exclude.
        let reads_all = self.transport.n_files().is_none_or(|n| n >= question.files.len());
        let version = self.version.clone().or_else(|| self.transport.version());
        let is_outside = |targets: &Option<Targets>| targets.as_ref().is_some_and(|targets| targets.is_outside);
        Ok(Answer {
            server: self.found.server.name.to_owned(),
            version: version.unwrap_or_default(),
            is_partial: references.is_partial || definitions.is_partial,
            references: question
                .definitions
                .iter()
                .zip(references.targets)
                .map(|(definition, targets)| believed(definition, targets?.inside, &known))
                .map(|found| found.filter(|found| reads_all || !found.is_empty()))
                .collect(),
            is_outside: definitions.targets.iter().map(is_outside).collect(),
            definitions: definitions
                .targets
                .into_iter()
                .map(|targets| {
                    targets
                        .filter(|targets| *targets != Targets::default())
                        .map(|targets| targets.inside)
                })
                .collect(),
        })
    }

    /// Stops the server.
    pub(super) fn stop(mut self) {
        let deadline = Instant::now() + GRACE;
        let id = self.transport.request::<Shutdown>(());
        let mut watch = Watch {
            deadline,
            is_cancelled: &AtomicBool::new(false),
            on_state: &mut |_| {},
        };
        // The server is killed whatever it answers.
        let _ = self.transport.answer::<Shutdown>(id, &mut watch);
        self.transport.tell::<Exit>(());
        self.process.wait(deadline.saturating_duration_since(Instant::now()));
    }

    fn shake_hands(&mut self, watch: &mut Watch<'_>) -> Result<(), Stopped> {
        let Some(id) = self.handshake else {
            return Ok(());
        };
        let broken = |reason: String| {
            self.transport.fail(reason.clone());
            Stopped::Failed(reason)
        };
        let answer = self.transport.answer::<Initialize>(id, watch)?;
        let answer =
            answer.map_err(|refusal| broken(format!("it refuses the handshake: {}", shown(&refusal.message, 200))))?;
        let encoding = chosen_unit(answer.capabilities.position_encoding.as_ref());
        self.encoding = encoding.ok_or_else(|| broken("it chose an encoding that was not offered".to_owned()))?;
        let version = answer.server_info.and_then(|info| info.version);
        self.version = version.map(|version| shown(&version, 60));
        self.handshake = None;
        self.transport.tell::<Initialized>(InitializedParams {});
        self.transport
            .with_readiness(|readiness| readiness.initialized(Instant::now()));
        Ok(())
    }

    /// Informs the server of the files that have changed since the last question.
    fn note_files(&mut self, question: &Question) {
        let now = question
            .files
            .iter()
            .map(|KnownFile { path, id }| (path.clone(), id.clone()));
        let now: BTreeMap<String, String> = now.collect();
        // Before the first question, the server reads all files by itself.
        let is_first = self.files.is_empty();
        let before = self.files.insert(question.language.clone(), now).unwrap_or_default();
        if is_first {
            return;
        }
        let now = &self.files[&question.language];
        let event = |path: &String| {
            let kind = match (before.get(path), now.get(path)) {
                (old, new) if old == new => return None,
                (None, _) => FileChangeType::CREATED,
                (_, None) => FileChangeType::DELETED,
                _ => FileChangeType::CHANGED,
            };
            Some(FileEvent::new(self.documents.uri(path), kind))
        };
        let paths: BTreeSet<&String> = before.keys().chain(now.keys()).collect();
        let changes: Vec<FileEvent> = paths.into_iter().filter_map(event).collect();
        if changes.is_empty() {
            return;
        }
        self.transport
            .tell::<DidChangeWatchedFiles>(DidChangeWatchedFilesParams { changes });
        self.transport
            .with_readiness(|readiness| readiness.changed(Instant::now()));
        if let Some(id) = self.trial.take().and_then(|trial| trial.waiting) {
            self.transport.cancel(id);
        }
        if self.proof == Proof::Valid {
            self.proof = Proof::Outdated;
        }
    }

    /// Waits until the server finds a reference that is known, or answers twice the same if none is known.
    fn prove(&mut self, question: &Question, language_id: &str, watch: &mut Watch<'_>) -> Result<(), Stopped> {
        let mut pause = SETTLE;
        while self.proof != Proof::Valid {
            let mut trial = match self.trial.take() {
                Some(trial) => trial,
                None => self.trial(question),
            };
            let tried = self.go_on(&mut trial, language_id, watch);
            if let Err(stopped) = tried {
                self.trial = Some(trial);
                return Err(stopped);
            }
            let is_right = trial.is_right();
            self.n_vain += usize::from(!is_right);
            let now = Instant::now();
            match &self.last {
                Some((before, at)) if *before == trial => {
                    if is_right && now - *at >= SETTLE {
                        self.proof = Proof::Valid;
                    }
                }
                _ => self.last = Some((trial, now)),
            }
            if is_right && self.proof == Proof::Outdated {
                self.proof = Proof::Valid;
            }
            if self.proof != Proof::Valid {
                self.transport.pause(pause, watch)?;
                pause = LONGEST_PAUSE.min(pause * 2);
            }
        }
        Ok(())
    }

    fn trial(&mut self, question: &Question) -> Trial {
        let canaries = self.usable(&question.canaries);
        let requests = if canaries.is_empty() {
            let references = question
                .definitions
                .iter()
                .map(|place| (Method::References, place.clone()));
            let definitions = question.sites.iter().map(|place| (Method::Definition, place.clone()));
            references
                .take(N_CANARIES)
                .chain(definitions.take(N_CANARIES))
                .collect()
        } else {
            let both = |Canary { site, definition }: &Canary| {
                [
                    (Method::References, definition.clone()),
                    (Method::Definition, site.clone()),
                ]
            };
            canaries.iter().flat_map(both).collect()
        };
        Trial {
            canaries,
            requests,
            ..Trial::default()
        }
    }

    /// Chooses known references from different parts of the list, and others than before if those were not found: the
    /// settings of a server may exclude some files.
    fn usable(&mut self, canaries: &[Canary]) -> Vec<Canary> {
        let step = canaries.len().div_ceil(N_CANARIES).max(1);
        let spread = (0..step).flat_map(|first| {
            let first = (first + self.n_vain) % step;
            canaries.iter().skip(first).step_by(step)
        });
        let documents = &mut self.documents;
        let usable = spread.filter(|Canary { site, definition }| {
            let mut is_word = |place: &Place| {
                let text = documents.on_disk(&place.path);
                text.is_some_and(|text| text.is_word(place.start as usize, place.end as usize))
            };
            is_word(site) && is_word(definition)
        });
        usable.take(N_CANARIES).cloned().collect()
    }

    /// Sends the requests of a trial one after the other.
    fn go_on(&mut self, trial: &mut Trial, language_id: &str, watch: &mut Watch<'_>) -> Result<(), Stopped> {
        let knows_reference = !trial.canaries.is_empty();
        while let Some((method, place)) = trial.requests.get(trial.answers.len()) {
            if trial.answers.is_empty() && trial.waiting.is_none() {
                self.transport.wait_until_quiet(knows_reference, watch)?;
            }
            if trial.waiting.is_none() {
                self.transport.wait_until_free(watch)?;
                // If the file with the reference were open, the server could find it without having read the worktree.
                if knows_reference && *method == Method::References {
                    self.documents.close_all(&self.transport);
                }
                trial.waiting = self.request(*method, place, language_id);
            }
            let answer = match trial.waiting {
                Some(id) => self.named(*method, id, watch)?.ok(),
                None => None,
            };
            trial.waiting = None;
            trial.answers.push(answer.and_then(|named| self.resolve(named, place)));
        }
        Ok(())
    }

    /// Sends a request for each place, a few at a time. Places that are no whole word are not asked.
    fn ask_all(
        &mut self,
        method: Method,
        places: &[Place],
        language_id: &str,
        watch: &mut Watch<'_>,
    ) -> Result<Answers, Stopped> {
        let mut targets = vec![None; places.len()];
        let mut waiting = VecDeque::new();
        let mut next = 0;
        match self.transport.wait_until_free(watch) {
            Ok(()) => {}
            Err(Stopped::TimeIsUp) => {
                let is_partial = !places.is_empty();
                return Ok(Answers { targets, is_partial });
            }
            Err(stopped) => return Err(stopped),
        }
        let most = if self.found.server.is_serial { 1 } else { MAX_IN_FLIGHT };
        loop {
            while waiting.len() < most && next < places.len() {
                let id = self.request(method, &places[next], language_id);
                waiting.extend(id.map(|id| (next, id, 1)));
                next += 1;
            }
            let Some((at, id, n_attempts)) = waiting.pop_front() else {
                return Ok(Answers {
                    targets,
                    is_partial: false,
                });
            };
            match self.named(method, id, watch) {
                Ok(Ok(named)) => targets[at] = self.resolve(named, &places[at]),
                Ok(Err(refusal)) if refusal.is_transient() && n_attempts < MAX_ATTEMPTS => {
                    std::thread::sleep(Duration::from_millis(50));
                    let id = self.request(method, &places[at], language_id);
                    waiting.extend(id.map(|id| (at, id, n_attempts + 1)));
                }
                Ok(Err(refusal)) => tracing::debug!(reason = refusal.message, "a request was refused"),
                Err(Stopped::TimeIsUp) => {
                    let ids = waiting.iter().map(|(_, id, _)| *id);
                    ids.chain([id]).for_each(|id| self.transport.cancel(id));
                    return Ok(Answers {
                        targets,
                        is_partial: true,
                    });
                }
                Err(stopped) => return Err(stopped),
            }
        }
    }

    fn request(&mut self, method: Method, place: &Place, language_id: &str) -> Option<RequestId> {
        let text = self.documents.open(&place.path, language_id, &self.transport)?;
        if !text.is_word(place.start as usize, place.end as usize) {
            return None;
        }
        let position = TextDocumentPositionParams {
            text_document: TextDocumentIdentifier::new(self.documents.uri(&place.path)),
            position: text.position(place.start as usize, self.encoding)?,
        };
        Some(match method {
            Method::References => self.transport.request::<FindReferences>(ReferenceParams {
                text_document_position: position,
                work_done_progress_params: Default::default(),
                partial_result_params: Default::default(),
                context: ReferenceContext {
                    include_declaration: false,
                },
            }),
            Method::Definition => self.transport.request::<GotoDefinition>(GotoDefinitionParams {
                text_document_position_params: position,
                work_done_progress_params: Default::default(),
                partial_result_params: Default::default(),
            }),
        })
    }

    /// Waits for the answer to a request.
    fn named(
        &self,
        method: Method,
        id: RequestId,
        watch: &mut Watch<'_>,
    ) -> Result<Result<Vec<(Uri, Range)>, Refusal>, Stopped> {
        let response = match method {
            Method::References => {
                let answer = self.transport.answer::<FindReferences>(id, watch)?;
                answer.map(|found| found.map(GotoDefinitionResponse::Array))
            }
            Method::Definition => self.transport.answer::<GotoDefinition>(id, watch)?,
        };
        Ok(response.map(|response| match response {
            None => Vec::new(),
            Some(GotoDefinitionResponse::Scalar(found)) => vec![(found.uri, found.range)],
            Some(GotoDefinitionResponse::Array(found)) => found.into_iter().map(|one| (one.uri, one.range)).collect(),
            Some(GotoDefinitionResponse::Link(found)) => {
                let target = |link: lsp_types::LocationLink| (link.target_uri, link.target_selection_range);
                found.into_iter().map(target).collect()
            }
        }))
    }

    /// Converts what a server named, without `asked`. Returns `None` if a place is in no text.
    fn resolve(&mut self, named: Vec<(Uri, Range)>, asked: &Place) -> Option<Targets> {
        let mut targets = Targets::default();
        for (uri, range) in named {
            let Location::Inside(path) = self.documents.locate(&uri) else {
                targets.is_outside = true;
                continue;
            };
            let text = self.documents.on_disk(&path)?;
            let (start, end) = (
                text.byte(range.start, self.encoding)?,
                text.byte(range.end, self.encoding)?,
            );
            let (start, end) = (start.try_into().ok()?, end.try_into().ok()?);
            targets.inside.push(Place { path, start, end });
        }
        targets.inside.retain(|place| place != asked);
        targets.inside.sort();
        targets.inside.dedup();
        Some(targets)
    }
}

impl Trial {
    /// Returns true if a known reference was found in both directions, or none is known.
    fn is_right(&self) -> bool {
        let is_found = |targets: &Option<Targets>, wanted: &Place| {
            let mut places = targets.iter().flat_map(|targets| &targets.inside);
            places.any(|place| place.path == wanted.path && (place.start..place.end).contains(&wanted.start))
        };
        let mut pairs = self.canaries.iter().zip(self.answers.chunks(2));
        self.canaries.is_empty()
            || pairs.any(|(Canary { site, definition }, answers)| match answers {
                [references, definitions] => is_found(references, site) && is_found(definitions, definition),
                _ => false,
            })
    }
}

/// Returns the references that are known: the canaries, and what the server itself found of the sites. A server finds
/// more from a site, whose file it has been sent, than from a definition, if its settings exclude files.
fn known_references(question: &Question, definitions: &[Option<Targets>]) -> BTreeSet<(Place, Place)> {
    let canaries = question.canaries.iter();
    let certain = canaries.map(|Canary { site, definition }| (definition.clone(), site.clone()));
    let found = question.sites.iter().zip(definitions).flat_map(|(site, targets)| {
        let inside = targets.iter().flat_map(|targets| &targets.inside);
        inside.map(|definition| (definition.clone(), site.clone()))
    });
    certain
        .chain(found)
        .filter(|(definition, site)| definition != site)
        .collect()
}

/// Returns the references unless one is missing that is known.
fn believed(definition: &Place, found: Vec<Place>, known: &BTreeSet<(Place, Place)>) -> Option<Vec<Place>> {
    let mut sites = known
        .iter()
        .filter(|(known, _)| known == definition)
        .map(|(_, site)| site);
    sites.all(|site| found.contains(site)).then_some(found)
}

fn greeting(found: &Found, root: &Uri) -> InitializeParams {
    let mut encodings = vec![PositionEncodingKind::UTF8, PositionEncodingKind::UTF16];
    encodings.push(PositionEncodingKind::UTF32);
    let capabilities = ClientCapabilities {
        general: Some(GeneralClientCapabilities {
            position_encodings: Some(encodings),
            ..Default::default()
        }),
        window: Some(WindowClientCapabilities {
            work_done_progress: Some(true),
            ..Default::default()
        }),
        workspace: Some(WorkspaceClientCapabilities {
            configuration: Some(true),
            workspace_folders: Some(true),
            did_change_watched_files: Some(DidChangeWatchedFilesClientCapabilities {
                dynamic_registration: Some(true),
                relative_pattern_support: Some(true),
            }),
            ..Default::default()
        }),
        text_document: Some(TextDocumentClientCapabilities {
            definition: Some(GotoCapability {
                dynamic_registration: None,
                link_support: Some(true),
            }),
            references: Some(Default::default()),
            ..Default::default()
        }),
        experimental: Some(json_of(r#"{"serverStatusNotification": true}"#)),
        ..Default::default()
    };
    #[expect(deprecated, reason = "older servers read only the root")]
    InitializeParams {
        process_id: Some(std::process::id()),
        root_uri: Some(root.clone()),
        workspace_folders: Some(vec![folder(root)]),
        initialization_options: Some(json_of(found.server.options)),
        capabilities,
        client_info: Some(ClientInfo {
            name: "codescout".to_owned(),
            version: Some(env!("CARGO_PKG_VERSION").to_owned()),
        }),
        ..Default::default()
    }
}
