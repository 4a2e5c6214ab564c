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
use super::positions::Encoding;
use super::process::{Guard, Process};
use super::question::{Answer, Canary, KnownFile, Place, Question};
use super::readiness::SETTLE;
use super::servers::Found;
use super::transport::{Refusal, RequestId, Stopped, Transport, Watch, folder, json_of};
use super::uri::uri_of;

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
    encoding: Encoding,
    version: Option<String>,
    documents: Documents,
    /// Path and id of the files that the server knows of, by language.
    files: HashMap<String, BTreeMap<String, String>>,
    proof: Proof,
    /// What was found when it was last looked for, and when.
    last: Option<(Vec<Finding>, Instant)>,
}

/// A place that was asked about, and the answer.
type Finding = (Place, Option<Targets>);

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
            encoding: Encoding::default(),
            version: None,
            documents: Documents::new(root),
            files: HashMap::new(),
            proof: Proof::Missing,
            last: None,
        })
    }

    pub(super) fn process(&self) -> &Process<'a> {
        &self.process
    }

    /// Returns true while the server may need attention although nobody asks.
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
                .map(|(definition, targets)| believed(definition, targets?.inside, &question.canaries))
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
        let answer = answer.map_err(|refusal| broken(format!("it refuses the handshake: {}", refusal.message)))?;
        let encoding = Encoding::chosen(answer.capabilities.position_encoding.as_ref());
        self.encoding = encoding.ok_or_else(|| broken("it chose an encoding that was not offered".to_owned()))?;
        self.version = answer.server_info.and_then(|info| info.version);
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
        if self.proof == Proof::Valid {
            self.proof = Proof::Outdated;
        }
    }

    /// Waits until the server finds a reference that is known, or answers twice the same if none is known.
    fn prove(&mut self, question: &Question, language_id: &str, watch: &mut Watch<'_>) -> Result<(), Stopped> {
        if self.proof == Proof::Valid {
            return Ok(());
        }
        let canaries = self.usable(&question.canaries);
        let mut pause = SETTLE;
        loop {
            self.transport.wait_until_quiet(!canaries.is_empty(), watch)?;
            let (is_right, found) = if canaries.is_empty() {
                (true, self.sample(question, language_id, watch)?)
            } else {
                self.look_for(&canaries, language_id, watch)?
            };
            let now = Instant::now();
            let is_settled = |(before, at): &(Vec<Finding>, Instant)| *before == found && now - *at >= SETTLE;
            if is_right && (self.proof == Proof::Outdated || self.last.as_ref().is_some_and(is_settled)) {
                self.proof = Proof::Valid;
                return Ok(());
            }
            // Clients with little patience must not begin anew each time.
            if self.last.as_ref().is_none_or(|(before, _)| *before != found) {
                self.last = Some((found, now));
            }
            self.transport.pause(pause, watch)?;
            pause = LONGEST_PAUSE.min(pause * 2);
        }
    }

    /// Chooses known references from different parts of the list.
    fn usable(&mut self, canaries: &[Canary]) -> Vec<Canary> {
        let step = canaries.len().div_ceil(N_CANARIES).max(1);
        let spread = (0..step).flat_map(|first| canaries.iter().skip(first).step_by(step));
        let usable = spread.filter(|Canary { site, definition }| {
            let mut is_word = |place: &Place| {
                let text = self.documents.on_disk(&place.path);
                text.is_some_and(|text| text.is_word(place.start as usize, place.end as usize))
            };
            is_word(site) && is_word(definition)
        });
        usable.take(N_CANARIES).cloned().collect()
    }

    /// Looks for known references. Returns true if one is found in both directions, and what was found.
    fn look_for(
        &mut self,
        canaries: &[Canary],
        language_id: &str,
        watch: &mut Watch<'_>,
    ) -> Result<(bool, Vec<Finding>), Stopped> {
        let (mut is_right, mut found) = (false, Vec::new());
        for Canary { site, definition } in canaries {
            // If the file with the reference were open, the server could find it without having read the worktree.
            self.documents.close_all(&self.transport);
            let references = self.ask_one(Method::References, definition, language_id, watch)?;
            let definitions = self.ask_one(Method::Definition, site, language_id, watch)?;
            let is_found = |targets: &Option<Targets>, wanted: &Place| {
                let mut places = targets.iter().flat_map(|targets| &targets.inside);
                places.any(|place| place.path == wanted.path && (place.start..place.end).contains(&wanted.start))
            };
            is_right |= is_found(&references, site) && is_found(&definitions, definition);
            found.push((definition.clone(), references));
        }
        Ok((is_right, found))
    }

    /// Asks a few of the requests of a question.
    fn sample(
        &mut self,
        question: &Question,
        language_id: &str,
        watch: &mut Watch<'_>,
    ) -> Result<Vec<Finding>, Stopped> {
        let references = question.definitions.iter().map(|place| (Method::References, place));
        let definitions = question.sites.iter().map(|place| (Method::Definition, place));
        let few = references.take(N_CANARIES).chain(definitions.take(N_CANARIES));
        few.map(|(method, place)| Ok((place.clone(), self.ask_one(method, place, language_id, watch)?)))
            .collect()
    }

    fn ask_one(
        &mut self,
        method: Method,
        place: &Place,
        language_id: &str,
        watch: &mut Watch<'_>,
    ) -> Result<Option<Targets>, Stopped> {
        let answers = self.ask_all(method, std::slice::from_ref(place), language_id, watch)?;
        match answers.is_partial {
            true => Err(Stopped::TimeIsUp),
            false => Ok(answers.targets.into_iter().next().flatten()),
        }
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
        loop {
            while waiting.len() < MAX_IN_FLIGHT && next < places.len() {
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
                Ok(Err(refusal)) => tracing::debug!(message = refusal.message, "a request was refused"),
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

/// Returns the references unless one is missing that is known.
fn believed(definition: &Place, found: Vec<Place>, canaries: &[Canary]) -> Option<Vec<Place>> {
    let mut known = canaries.iter().filter(|canary| canary.definition == *definition);
    known.all(|canary| found.contains(&canary.site)).then_some(found)
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
