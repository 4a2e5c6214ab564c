//! The work of a worker.

use std::io::{self, stdin};
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::time::{ClockId, clock_gettime};

use super::message::{Answer, Hello, Question, Wanted, read_message, write_message};
use crate::artifact::codec::{encode_core, encode_references};
use crate::extract::{Extraction, Extractor, Options, Word};

/// Size of the stack for parsing. tree-sitter releases a parse stack, which may be as deep as the text is long, with
/// recursion. Only the part that is used takes memory.
pub(super) const STACK_BYTES: usize = 256 << 20;
/// Limit on the memory of the process.
const MAX_MEMORY_BYTES: u64 = 4 << 30;
/// Limit on its memory for a text, and for each byte of it. The process begins with 440 MiB of addresses, most of them
/// the stack. Code takes up to 150 bytes per byte.
const BASE_MEMORY_BYTES: u64 = 768 << 20;
const MEMORY_BYTES_PER_BYTE: u64 = 512;
/// Limit on the CPU time of a text in seconds, and one more for so many bytes. About 20 times what the limit on
/// operations takes for code, so that the result depends on the machine only if single operations are slow.
const MAX_CPU_SECONDS: u64 = 5;
const BYTES_PER_CPU_SECOND: u64 = 100_000;

/// Answers questions on standard input, a socket, until it is closed.
pub fn serve_extractor() -> io::Result<()> {
    let mut questions = UnixStream::from(stdin().as_fd().try_clone_to_owned()?);
    let mut answers = questions.try_clone()?;
    let (send, receive) = sync_channel(1);
    thread::Builder::new().stack_size(STACK_BYTES).spawn(move || {
        let answering = AssertUnwindSafe(|| answer_all(&receive, &mut answers));
        let ended = catch_unwind(answering).map_err(|_| io::ErrorKind::Other.into());
        // Ends the loop below and the wait of the other process.
        ended
            .and_then(|ended| ended)
            .or_else(|_| answers.shutdown(Shutdown::Both))
    })?;
    lower_limits();
    write_message(&mut questions, &Hello::new(), b"")?;
    // Reads while a text is parsed, so that the worker ends at once if the other process does.
    while let Ok(question) = read_message(&mut questions) {
        if send.send(question).is_err() {
            break;
        }
    }
    Ok(())
}

/// Lets a parser that a file has taken over do little.
fn lower_limits() {
    lower(Resource::As, MAX_MEMORY_BYTES);
    let none = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    // Each fails only on systems without it.
    for resource in [Resource::Nofile, Resource::Nproc, Resource::Fsize, Resource::Core] {
        let _ = setrlimit(resource, none);
    }
}

/// Lowers a limit, if the system allows.
fn lower(resource: Resource, to: u64) {
    let maximum = getrlimit(resource).maximum;
    let current = Some(maximum.map_or(to, |maximum| maximum.min(to)));
    let _ = setrlimit(resource, Rlimit { current, maximum });
}

fn answer_all(questions: &Receiver<(Question, Vec<u8>)>, answers: &mut UnixStream) -> io::Result<()> {
    let mut extractor: Option<(Options, Extractor)> = None;
    for (question, text) in questions {
        let memory = BASE_MEMORY_BYTES + MEMORY_BYTES_PER_BYTE * text.len() as u64;
        lower(Resource::As, memory.min(MAX_MEMORY_BYTES));
        let used = clock_gettime(ClockId::ProcessCPUTime).tv_sec.unsigned_abs();
        lower(
            Resource::Cpu,
            used + MAX_CPU_SECONDS + text.len() as u64 / BYTES_PER_CPU_SECOND,
        );
        let (answer, body) = answer(&question, &text, &mut extractor);
        write_message(answers, &answer, &body)?;
    }
    Ok(())
}

fn answer(question: &Question, text: &[u8], kept: &mut Option<(Options, Extractor)>) -> (Answer, Vec<u8>) {
    let lang = question.lang();
    let options = question.wanted.options();
    let extractor = match kept {
        Some((of, extractor)) if *of == options => extractor,
        _ => &mut kept.insert((options.clone(), Extractor::new(options))).1,
    };
    match &question.wanted {
        Wanted::All(_) => {
            let extraction = extractor.extract(text, lang);
            let mut body = encode_core(&extraction);
            let n_core_bytes = body.len() as u32;
            body.extend(encode_references(&extraction));
            (Answer::All { n_core_bytes }, body)
        }
        Wanted::Definitions => {
            let found = extractor.definitions(text, lang);
            let errors = found
                .errors()
                .map(|errors| errors.iter().map(|error| (error.start, error.end)).collect());
            let extraction = Extraction {
                definitions: found.definitions,
                ..Extraction::default()
            };
            (Answer::Definitions { errors }, encode_core(&extraction))
        }
        Wanted::Words(name) => {
            let words = extractor.words(text, lang, name);
            let word = |word: &Word| (word.range.start, word.range.end, word.kind as u8);
            (
                Answer::Words(words.map(|words| words.iter().map(word).collect())),
                Vec::new(),
            )
        }
    }
}
