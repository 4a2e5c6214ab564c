//! Remembers answers, so that no question is answered twice and questions that lead back to themselves end.
//!
//! An answer is kept for the life of the linker if it does not depend on a question that is still being answered. An
//! answer inside a cycle, such as two modules that import everything from each other, depends on where the cycle was
//! entered; it is kept only until the outermost question of the thread is answered.

use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use parking_lot::Mutex;

use super::environment::Module;
use super::facts::DefId;
use super::members::Use;
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
    /// What do these imports of one name, by their indexes and those of the name, make visible?
    Imported(FileId, Box<[(u32, Option<u32>)]>),
    /// From which modules does a module import everything, directly?
    Stars(Module),
    /// From which modules does a module import everything, directly or not?
    Taken(Module),
    /// Which module does a path mean in a file, or in a module with a body inside of it?
    Path(FileId, Option<u32>, Box<str>),
    /// What does a word mean at a byte of a file?
    Word(FileId, u32, Box<str>),
    /// Which blocks implement a type?
    Parts(DefId),
    /// Which of the blocks that implement a type is the first?
    Whole(DefId),
    /// Which types does a type extend?
    Bases(DefId),
    /// Which members of a type does a use of a name mean?
    Members(DefId, Box<str>, Use),
}

/// The answers that a linker has found.
#[derive(Debug)]
pub(super) struct Memo {
    shards: Vec<Mutex<HashMap<Question, Found>>>,
}

/// The questions that a thread is answering.
struct Asking {
    /// The questions, and how many others each is nested in.
    open: HashMap<Question, usize>,
    /// Answers that depend on a question in `open`.
    provisional: HashMap<Question, Found>,
    /// The outermost open question that the answer being computed depends on; `usize::MAX` for none.
    lowest: usize,
}

impl Default for Asking {
    fn default() -> Self {
        Self {
            open: HashMap::new(),
            provisional: HashMap::new(),
            lowest: usize::MAX,
        }
    }
}

/// Forgets the questions of the thread if answering one of them panics, because the thread may answer others later.
struct Guard;

impl Drop for Guard {
    fn drop(&mut self) {
        if std::thread::panicking() {
            ASKING.with_borrow_mut(|asking| *asking = Asking::default());
        }
    }
}

thread_local! {
    static ASKING: RefCell<Asking> = RefCell::default();
}

/// Returns the depth of a nested question; `None` if it is too deep.
pub(super) fn deeper(depth: u8) -> Option<u8> {
    let deeper = depth.checked_sub(1);
    if deeper.is_none() {
        // The answer depends on how far down the question is.
        ASKING.with_borrow_mut(|asking| asking.lowest = 0);
    }
    deeper
}

impl Memo {
    pub(super) fn new() -> Self {
        Self {
            shards: (0..N_SHARDS).map(|_| Mutex::default()).collect(),
        }
    }

    /// Returns the number of answers.
    pub(super) fn len(&self) -> usize {
        let n = |shard: &Mutex<HashMap<Question, Found>>| shard.lock().len();
        self.shards.iter().map(n).sum()
    }

    /// Returns true if the answer to a question is kept.
    pub(super) fn has(&self, question: &Question) -> bool {
        self.shard(question).lock().contains_key(question)
    }

    fn shard(&self, question: &Question) -> &Mutex<HashMap<Question, Found>> {
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(question);
        &self.shards[hash as usize % N_SHARDS]
    }

    /// Returns the answer to a question. `find` computes it. It is kept if `may_keep` then returns true.
    pub(super) fn answer(
        &self,
        question: Question,
        find: impl FnOnce() -> Found,
        may_keep: impl FnOnce() -> bool,
    ) -> Found {
        let shard = self.shard(&question);
        if let Some(found) = shard.lock().get(&question) {
            return found.clone();
        }
        let (known, lowest_before, level) = ASKING.with_borrow_mut(|asking| {
            let level = asking.open.len();
            let known = match asking.provisional.get(&question) {
                Some(found) => {
                    asking.lowest = 0;
                    Some(found.clone())
                }
                None => asking.open.get(&question).copied().map(|open| {
                    asking.lowest = asking.lowest.min(open);
                    Found::unknown()
                }),
            };
            if known.is_some() {
                return (known, 0, level);
            }
            asking.open.insert(question.clone(), level);
            (None, std::mem::replace(&mut asking.lowest, usize::MAX), level)
        });
        if let Some(found) = known {
            return found;
        }
        let guard = Guard;
        let found = find();
        drop(guard);
        let is_exact = ASKING.with_borrow_mut(|asking| {
            asking.open.remove(&question);
            let is_exact = asking.lowest >= level;
            if is_exact {
                asking.lowest = lowest_before;
            } else {
                asking.provisional.insert(question.clone(), found.clone());
                asking.lowest = asking.lowest.min(lowest_before);
            }
            if asking.open.is_empty() {
                asking.provisional.clear();
                asking.lowest = usize::MAX;
            }
            is_exact
        });
        if is_exact && may_keep() {
            shard.lock().insert(question, found.clone());
        }
        found
    }
}
