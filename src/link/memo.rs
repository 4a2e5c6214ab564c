//! Remembers answers, so that no question is answered twice and questions that lead back to themselves end.
//!
//! An answer that does not depend on where the question came from is kept for the life of the linker. An answer on a
//! cycle, such as two modules that import everything from each other, depends on where the cycle was entered, so it is
//! kept only until the outermost question of the thread is answered. So answers do not depend on the order of questions.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::sync::{Mutex, PoisonError};

use super::environment::Module;
use super::facts::DefId;
use super::resolve::Found;
use crate::snapshot::FileId;

/// Number of maps, each with a lock of its own.
const N_SHARDS: usize = 64;

/// What is asked of the linker.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Question {
    /// What does a reference of a file mean?
    Reference(FileId, u32),
    /// What does a name of a module mean?
    Name(Module, Box<str>),
    /// Which blocks implement a type?
    Parts(DefId),
}

/// The answers that a linker has found.
#[derive(Debug)]
pub(super) struct Memo {
    shards: Vec<Mutex<HashMap<Question, Found>>>,
}

/// The questions that a thread is answering.
#[derive(Default)]
struct Asking {
    open: HashSet<Question>,
    /// Answers that depend on a question in `open`, or were cut off.
    provisional: HashMap<Question, Found>,
    /// True if the answer being computed depends on an open question, or was cut off.
    is_tainted: bool,
}

thread_local! {
    static ASKING: RefCell<Asking> = RefCell::default();
}

/// Returns the depth of a nested question; `None` if it is too deep.
pub(super) fn deeper(depth: u8) -> Option<u8> {
    let deeper = depth.checked_sub(1);
    if deeper.is_none() {
        ASKING.with_borrow_mut(|asking| asking.is_tainted = true);
    }
    deeper
}

impl Memo {
    pub(super) fn new() -> Self {
        Self {
            shards: (0..N_SHARDS).map(|_| Mutex::default()).collect(),
        }
    }

    /// Returns the answer to a question. `find` computes it.
    pub(super) fn answer(&self, question: Question, find: impl FnOnce() -> Found) -> Found {
        let shard = BuildHasherDefault::<DefaultHasher>::default().hash_one(&question) as usize % N_SHARDS;
        if let Some(found) = self.shards[shard]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&question)
        {
            return found.clone();
        }
        let (known, was_tainted) = ASKING.with_borrow_mut(|asking| {
            let known = match asking.provisional.get(&question) {
                Some(found) => Some(found.clone()),
                None if asking.open.contains(&question) => Some(Found::unknown()),
                None => None,
            };
            if known.is_some() {
                asking.is_tainted = true;
            } else {
                asking.open.insert(question.clone());
            }
            let was_tainted = std::mem::replace(&mut asking.is_tainted, known.is_some());
            (known, was_tainted)
        });
        if let Some(found) = known {
            return found;
        }
        let found = find();
        let is_exact = ASKING.with_borrow_mut(|asking| {
            asking.open.remove(&question);
            let is_exact = !asking.is_tainted;
            if !is_exact {
                asking.provisional.insert(question.clone(), found.clone());
            }
            asking.is_tainted |= was_tainted;
            if asking.open.is_empty() {
                asking.provisional.clear();
                asking.is_tainted = false;
            }
            is_exact
        });
        if is_exact {
            self.shards[shard]
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .insert(question, found.clone());
        }
        found
    }
}
