//! Texts of the worktree: what a server has been sent, and what is on disk.

use std::collections::{HashMap, VecDeque};
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use lsp_types::notification::{DidChangeTextDocument, DidCloseTextDocument, DidOpenTextDocument};
use lsp_types::{
    DidChangeTextDocumentParams, DidCloseTextDocumentParams, DidOpenTextDocumentParams, TextDocumentContentChangeEvent,
    TextDocumentIdentifier, TextDocumentItem, Uri, VersionedTextDocumentIdentifier,
};

use super::positions::Text;
use super::transport::Transport;
use super::uri::{path_of, uri_of};

/// Limit on open documents. The oldest is closed.
const MAX_OPEN: usize = 200;
/// Limit on the size of a file.
const MAX_FILE: u64 = 4 << 20;
/// Limit on texts that are kept for the places in an answer.
const MAX_KEPT: usize = 64 << 20;

/// The documents of a server.
#[derive(Debug)]
pub(super) struct Documents {
    root: PathBuf,
    open: HashMap<String, Document>,
    /// Open documents, oldest first.
    order: VecDeque<String>,
    /// Texts on disk since the start of a question.
    kept: HashMap<String, Option<Rc<Text>>>,
    n_kept: usize,
    /// Where URIs of the server lead, since the start of a question.
    places: HashMap<String, Location>,
}

#[derive(Debug)]
struct Document {
    version: i32,
    text: Rc<Text>,
}

/// A file that a server names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Location {
    /// Path from the root, with `/`.
    Inside(String),
    Outside,
}

impl Documents {
    pub(super) fn new(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
            open: HashMap::new(),
            order: VecDeque::new(),
            kept: HashMap::new(),
            n_kept: 0,
            places: HashMap::new(),
        }
    }

    pub(super) fn uri(&self, path: &str) -> Uri {
        uri_of(&self.root.join(path))
    }

    /// Forgets what was on disk, and sends the server the text of each open document that has changed.
    pub(super) fn refresh(&mut self, server: &Transport) {
        self.kept.clear();
        self.n_kept = 0;
        self.places.clear();
        for path in self.order.clone() {
            match (self.on_disk(&path), self.open.get_mut(&path)) {
                (None, _) => self.close(&path, server),
                (Some(text), Some(document)) if text.content() != document.text.content() => {
                    document.version += 1;
                    document.text = Rc::clone(&text);
                    let version = document.version;
                    server.tell::<DidChangeTextDocument>(DidChangeTextDocumentParams {
                        text_document: VersionedTextDocumentIdentifier::new(self.uri(&path), version),
                        content_changes: vec![TextDocumentContentChangeEvent {
                            range: None,
                            range_length: None,
                            text: text.content().to_owned(),
                        }],
                    });
                }
                _ => {}
            }
        }
    }

    /// Opens a document unless it is open. Returns its text, and `None` if it cannot be read.
    pub(super) fn open(&mut self, path: &str, language_id: &str, server: &Transport) -> Option<Rc<Text>> {
        if let Some(document) = self.open.get(path) {
            return Some(Rc::clone(&document.text));
        }
        let text = self.on_disk(path)?;
        if self.order.len() >= MAX_OPEN
            && let Some(oldest) = self.order.front().cloned()
        {
            self.close(&oldest, server);
        }
        let item = TextDocumentItem::new(self.uri(path), language_id.to_owned(), 1, text.content().to_owned());
        server.tell::<DidOpenTextDocument>(DidOpenTextDocumentParams { text_document: item });
        let document = Document {
            version: 1,
            text: Rc::clone(&text),
        };
        self.open.insert(path.to_owned(), document);
        self.order.push_back(path.to_owned());
        Some(text)
    }

    /// Closes all documents, so that the server answers from what it has read by itself.
    pub(super) fn close_all(&mut self, server: &Transport) {
        for path in self.order.clone() {
            self.close(&path, server);
        }
    }

    fn close(&mut self, path: &str, server: &Transport) {
        self.open.remove(path);
        self.order.retain(|open| open != path);
        let text_document = TextDocumentIdentifier::new(self.uri(path));
        server.tell::<DidCloseTextDocument>(DidCloseTextDocumentParams { text_document });
    }

    /// Returns the text of a file of the worktree. Links out of it are not followed.
    pub(super) fn on_disk(&mut self, path: &str) -> Option<Rc<Text>> {
        if let Some(known) = self.kept.get(path) {
            return known.clone();
        }
        let text = self.read(path).map(|content| Rc::new(Text::new(content)));
        self.n_kept += text.as_ref().map_or(0, |text| text.content().len());
        if self.n_kept > MAX_KEPT {
            self.kept.clear();
            self.n_kept = 0;
        }
        self.kept.insert(path.to_owned(), text.clone());
        text
    }

    fn read(&self, path: &str) -> Option<String> {
        let path = self.root.join(path).canonicalize().ok()?;
        let is_file = fs::metadata(&path).is_ok_and(|entry| entry.is_file() && entry.len() <= MAX_FILE);
        if !is_file || !path.starts_with(&self.root) {
            return None;
        }
        let mut content = String::new();
        File::open(path)
            .ok()?
            .take(MAX_FILE)
            .read_to_string(&mut content)
            .ok()?;
        Some(content)
    }

    /// Returns where a URI leads. Links are followed.
    pub(super) fn locate(&mut self, uri: &Uri) -> Location {
        if let Some(known) = self.places.get(uri.as_str()) {
            return known.clone();
        }
        let inside = path_of(uri).and_then(|path| {
            let path = path.canonicalize().ok()?;
            Some(path.strip_prefix(&self.root).ok()?.to_str()?.to_owned())
        });
        let location = inside.map_or(Location::Outside, Location::Inside);
        self.places.insert(uri.as_str().to_owned(), location.clone());
        location
    }
}
