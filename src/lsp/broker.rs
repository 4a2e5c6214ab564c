//! The broker: a process that runs the servers of one user and ends some time after the last client.

use std::collections::HashMap;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use std::{fs, net::Shutdown};

use parking_lot::Mutex;

use super::place::{prepare, socket, try_lock};
use super::process::{Guard, memory_by_group};
use super::question::{AskError, Question};
use super::servers::{Found, candidates, choose};
use super::wire::{self, Reply, Request, RunningServer};
use super::worker::{Job, Status, Worker};
use crate::program::command_at;

/// Limit on clients at the same time.
const MAX_CLIENTS: usize = 256;
/// Time that a client gets to send its question.
const READ_PATIENCE: Duration = Duration::from_secs(10);
/// Time after the patience of a client at which a question that still waits for others is given up.
const LATE: Duration = Duration::from_millis(500);
/// The interval at which the broker looks for its end.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// The interval at which memory is measured.
const MEASURE_EVERY: Duration = Duration::from_secs(1);

/// How the broker runs.
#[derive(Clone, Debug)]
pub struct BrokerOptions {
    /// The folder of the socket.
    pub folder: PathBuf,
    /// The program with the command that calls [`guard`](super::guard).
    pub program: PathBuf,
    /// Time without clients after which the broker ends.
    pub idle: Duration,
    /// Time without questions after which a server is stopped.
    pub server_idle: Duration,
    /// Limit on the resident bytes of a server and of what it starts.
    pub max_memory: u64,
}

impl BrokerOptions {
    /// Returns the options that users get.
    pub fn new(folder: PathBuf, program: PathBuf) -> Self {
        Self {
            folder,
            program,
            idle: Duration::from_secs(60),
            server_idle: Duration::from_secs(300),
            max_memory: 2 << 30,
        }
    }
}

struct Broker {
    options: BrokerOptions,
    guard: Guard,
    clients: Mutex<Clients>,
    servers: Mutex<HashMap<(PathBuf, &'static str), Running>>,
}

struct Clients {
    n: usize,
    last: Instant,
    /// No more clients are served.
    is_over: bool,
}

impl Clients {
    fn are_gone(&self, idle: Duration) -> bool {
        self.n == 0 && self.last.elapsed() >= idle
    }
}

/// The thread of a server.
struct Running {
    jobs: Sender<Job>,
    status: Arc<Mutex<Status>>,
    thread: JoinHandle<()>,
}

/// Serves clients until there have been none for a while, or until `interrupt` is set. Stops all servers before it
/// returns. Returns at once if another broker serves the folder.
pub fn serve_broker(options: BrokerOptions, interrupt: &AtomicBool) -> io::Result<()> {
    // Fails if this process leads a group, because it was started from a shell.
    let _ = rustix::process::setsid();
    prepare(&options.folder)?;
    let Some(listener) = listen(&options)? else {
        return Ok(());
    };
    let guard = Guard::start(&mut command_at(&options.program)?)?;
    let broker = Arc::new(Broker {
        options,
        guard,
        clients: Mutex::new(Clients {
            n: 0,
            last: Instant::now(),
            is_over: false,
        }),
        servers: Mutex::default(),
    });
    let accepting = Arc::clone(&broker);
    thread::spawn(move || accepting.accept(&listener));
    broker.watch(interrupt)?;
    broker.stop_servers();
    Ok(())
}

/// Creates the socket. Returns `None` if another broker listens.
fn listen(options: &BrokerOptions) -> io::Result<Option<UnixListener>> {
    let path = socket(&options.folder);
    if UnixStream::connect(&path).is_ok() {
        return Ok(None);
    }
    remove_if_exists(&path)?;
    let listener = UnixListener::bind(&path)?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
    Ok(Some(listener))
}

fn remove_if_exists(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

impl Broker {
    fn accept(self: &Arc<Self>, listener: &UnixListener) {
        for stream in listener.incoming() {
            let Ok(stream) = stream else {
                // Too many open files, for example.
                thread::sleep(LOOK_EVERY);
                continue;
            };
            let mut clients = self.clients.lock();
            // The connection is closed, and the client tries again.
            if clients.is_over || clients.n >= MAX_CLIENTS {
                continue;
            }
            clients.n += 1;
            drop(clients);
            let broker = Arc::clone(self);
            thread::spawn(move || {
                let _leaving = Leaving(&broker.clients);
                if let Err(error) = broker.attend(stream) {
                    tracing::debug!(%error, "a client has gone");
                }
            });
        }
    }

    /// Measures memory until it is time to end.
    fn watch(&self, interrupt: &AtomicBool) -> io::Result<()> {
        let mut measured = Instant::now();
        loop {
            thread::sleep(LOOK_EVERY);
            if measured.elapsed() >= MEASURE_EVERY {
                self.measure();
                measured = Instant::now();
            }
            let is_interrupted = interrupt.load(Ordering::Relaxed);
            if !is_interrupted && !self.clients.lock().are_gone(self.options.idle) {
                continue;
            }
            // A client that is starting a broker holds the lock, and may have found this one.
            let Some(_lock) = try_lock(&self.options.folder)? else {
                continue;
            };
            let mut clients = self.clients.lock();
            if is_interrupted || clients.are_gone(self.options.idle) {
                clients.is_over = true;
                return remove_if_exists(&socket(&self.options.folder));
            }
        }
    }

    fn measure(&self) {
        let servers = self.servers.lock();
        if servers.is_empty() {
            return;
        }
        let processes = memory_by_group();
        for running in servers.values() {
            running.status.lock().note_memory(&processes, self.options.max_memory);
        }
    }

    fn stop_servers(&self) {
        let servers: Vec<Running> = self.servers.lock().drain().map(|(_, running)| running).collect();
        // Without senders, the threads end.
        let threads: Vec<JoinHandle<()>> = servers.into_iter().map(|running| running.thread).collect();
        for thread in threads {
            // A thread that panicked has dropped its server.
            let _ = thread.join();
        }
    }

    /// Answers the request of a client.
    fn attend(self: &Arc<Self>, mut stream: UnixStream) -> io::Result<()> {
        stream.set_read_timeout(Some(READ_PATIENCE))?;
        stream.set_write_timeout(Some(READ_PATIENCE))?;
        let request = wire::Receiver::new(stream.try_clone()?).receive()?;
        match request.ok_or(io::ErrorKind::TimedOut)? {
            Request::List => wire::send(&mut stream, &Reply::List(self.list())),
            Request::Ask(question) => {
                let answered = self.ask(question, &mut stream);
                // Ends the thread that reads from it.
                stream.shutdown(Shutdown::Both).and(answered)
            }
        }
    }

    fn list(&self) -> Vec<RunningServer> {
        let servers = self.servers.lock();
        let listed = servers.iter().map(|((root, server), running)| {
            let status = running.status.lock();
            RunningServer {
                root: root.clone(),
                language: status.language.clone(),
                server: (*server).to_owned(),
                state: status.state.clone(),
                memory: status.memory,
            }
        });
        let mut listed: Vec<RunningServer> = listed.collect();
        listed.sort_by(|a, b| (&a.root, &a.server).cmp(&(&b.root, &b.server)));
        listed
    }

    fn ask(self: &Arc<Self>, question: Question, stream: &mut UnixStream) -> io::Result<()> {
        let deadline = Instant::now() + question.patience;
        let found = match self.server_for(&question) {
            Ok(found) => found,
            Err(error) => return wire::send(stream, &Reply::Answer(Err(error))),
        };
        let server = found.server.name.to_owned();
        let is_cancelled = Arc::new(AtomicBool::new(false));
        watch_for_end(stream.try_clone()?, Arc::clone(&is_cancelled));
        let (replies, to_send) = channel();
        self.submit(
            found,
            Job {
                question,
                deadline,
                is_cancelled: Arc::clone(&is_cancelled),
                replies,
            },
        );
        let sent = forward(&to_send, deadline + LATE, server, stream);
        is_cancelled.store(true, Ordering::Relaxed);
        sent
    }

    /// Finds the server for a question. One that runs was checked when it was started.
    fn server_for(&self, question: &Question) -> Result<Found, AskError> {
        let root = &question.root;
        let found = candidates(&question.language, &question.search_path, root)?;
        let servers = self.servers.lock();
        let runs = |found: &&Found| servers.contains_key(&(root.clone(), found.server.name));
        let running = found.iter().find(runs).cloned();
        drop(servers);
        running.map_or_else(|| choose(&found, &question.search_path, root), Ok)
    }

    fn submit(self: &Arc<Self>, found: Found, job: Job) {
        let key = (job.question.root.clone(), found.server.name);
        let mut servers = self.servers.lock();
        // A thread that ends removes itself, unless it panics.
        if servers.get(&key).is_some_and(|running| running.thread.is_finished()) {
            servers.remove(&key);
        }
        let running = servers.entry(key).or_insert_with_key(|key| self.start(key, found));
        // If the thread has just panicked, the client is informed by the end of the replies.
        let _ = running.jobs.send(job);
    }

    fn start(self: &Arc<Self>, key: &(PathBuf, &'static str), found: Found) -> Running {
        let (jobs, received) = channel();
        let status = Arc::new(Mutex::new(Status::default()));
        let (broker, key, shared) = (Arc::clone(self), key.clone(), Arc::clone(&status));
        let thread = thread::spawn(move || {
            let may_end = || {
                let mut servers = broker.servers.lock();
                let next = received.try_recv().ok();
                if next.is_none() {
                    servers.remove(&key);
                }
                next
            };
            let worker = Worker::new(found, &key.0, &broker.guard, &shared);
            worker.run(&received, broker.options.server_idle, may_end);
        });
        Running { jobs, status, thread }
    }
}

/// A client that leaves when this is dropped.
struct Leaving<'a>(&'a Mutex<Clients>);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        let mut clients = self.0.lock();
        clients.n -= 1;
        clients.last = Instant::now();
    }
}

/// Sends replies until the last one.
fn forward(replies: &Receiver<Reply>, deadline: Instant, server: String, to: &mut UnixStream) -> io::Result<()> {
    let error = loop {
        match replies.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(reply) => {
                wire::send(to, &reply)?;
                if let Reply::Answer(_) = reply {
                    return Ok(());
                }
            }
            Err(RecvTimeoutError::Timeout) => {
                let state = "it answers other questions".to_owned();
                break AskError::NotReady { server, state };
            }
            Err(RecvTimeoutError::Disconnected) => {
                let reason = "the broker could not ask it".to_owned();
                break AskError::Failed { server, reason };
            }
        }
    };
    wire::send(to, &Reply::Answer(Err(error)))
}

/// Sets `is_over` when the other side closes the connection.
fn watch_for_end(mut stream: UnixStream, is_over: Arc<AtomicBool>) {
    thread::spawn(move || {
        let mut rest = [0; 64];
        loop {
            match stream.read(&mut rest) {
                Ok(1..) => {}
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
                _ => return is_over.store(true, Ordering::Relaxed),
            }
        }
    });
}
