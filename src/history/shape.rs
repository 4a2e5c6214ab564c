//! Describes definitions so that two versions can be compared.
//!
//! Text is split into tokens: words, numbers, strings and single punctuation characters. White space, comments and a
//! comma before a closing bracket are ignored, so formatting has no effect. In languages with significant indentation
//! (Python, YAML and others), each change of the indentation level is a token; in Python and YAML only outside of
//! brackets.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use xxhash_rust::xxh3::xxh3_64;

use crate::extract::{self, Definition, DefinitionKind, FileDefinitions, Indentation, Profile};
use crate::model::{ByteRange, Lang, RepoPath};

use super::symbols::SymbolKey;

/// Maximum length of the name of a definition with its own history, with those of what it is in.
const MAX_NAME_BYTES: usize = 4 << 10;

/// The content of a version of a file, with the tokens of its language.
#[derive(Debug)]
struct Source {
    bytes: Arc<Vec<u8>>,
    tokens: Tokens,
}

/// A definition in one version of a file.
#[derive(Clone, Debug)]
pub struct Shape {
    /// The index among all definitions of the version.
    pub(super) index: u32,
    /// The name without a qualifier.
    pub name: String,
    /// The qualified name: `Parser.parse`.
    pub qualified: String,
    /// The index among the definitions with this qualified name in the file, 1-based.
    pub nth: u32,
    /// The kind of the definition.
    pub kind: DefinitionKind,
    /// The range of the whole item, including doc comment and attributes.
    pub range: ByteRange,
    /// The parts of the item that do not belong to members with their own history.
    pub own: Vec<Range<usize>>,
    signature: ByteRange,
    doc: Option<ByteRange>,
    source: Arc<Source>,
    text_fingerprint: OnceLock<u64>,
    prints: OnceLock<Arc<Prints>>,
}

/// The hashes that represent a definition when two versions are compared.
#[derive(Debug)]
pub struct Prints {
    /// A hash of the tokens of the signature.
    pub signature: u64,
    /// A hash of the tokens of the signature, without the name of the definition.
    pub signature_without_name: u64,
    /// A hash of the tokens outside of the signature and the doc comment, without the name of the definition.
    pub body: u64,
    /// A hash of the words of the doc comment; 0 if there is no doc comment.
    pub doc: u64,
    /// The hashes of all sequences of three tokens in the body, ascending. The similarity of bodies is computed from
    /// them.
    trigrams: Vec<u32>,
    /// Number of tokens in the body.
    pub n_tokens: u32,
}

impl Prints {
    /// Returns an upper bound of the similarity of two bodies, computed from their lengths.
    pub(super) fn most_similar(&self, other: &Self) -> f64 {
        if self.body == other.body {
            return 1.0;
        }
        let (a, b) = (self.trigrams.len(), other.trigrams.len());
        2.0 * a.min(b) as f64 / (a + b).max(1) as f64
    }
}

impl Shape {
    /// Returns the qualified name, and the index among the definitions of that name in the file.
    pub fn numbered_name(&self) -> (&str, u32) {
        (&self.qualified, self.nth)
    }

    /// Returns the hashes for comparisons. They are computed on first use, because most definitions are never compared.
    pub fn prints(&self) -> &Prints {
        self.prints.get_or_init(|| Arc::new(self.print()))
    }

    /// Returns a hash of the text of the item, without members that have their own history.
    pub fn text_fingerprint(&self) -> u64 {
        *self.text_fingerprint.get_or_init(|| xxh3_64(&self.text()))
    }

    /// Returns a copy that does not hold the file in memory. Computes all hashes before copying.
    pub(super) fn detached(&self) -> Self {
        self.text_fingerprint();
        self.prints();
        let source = Source {
            bytes: Arc::default(),
            tokens: self.source.tokens,
        };
        Self {
            source: Arc::new(source),
            ..self.clone()
        }
    }

    /// Returns the range from the start of the item to the end of its signature.
    pub(super) fn head(&self) -> Range<usize> {
        self.range.start as usize..(self.signature.end as usize).max(self.range.start as usize)
    }

    /// Returns the key in the file at `path`.
    pub fn key(&self, path: &RepoPath) -> SymbolKey {
        SymbolKey {
            path: path.clone(),
            name: self.qualified.clone(),
            nth: self.nth,
        }
    }

    /// Returns the similarity of two bodies, from 0 to 1: the share of trigrams that they have in common (Dice
    /// coefficient).
    pub fn similarity(&self, other: &Self) -> f64 {
        let (one, two) = (self.prints(), other.prints());
        if one.body == two.body {
            return 1.0;
        }
        let (a, b) = (&one.trigrams, &two.trigrams);
        let (mut i, mut j, mut n_shared) = (0, 0, 0usize);
        while i < a.len() && j < b.len() {
            match a[i].cmp(&b[j]) {
                std::cmp::Ordering::Less => i += 1,
                std::cmp::Ordering::Greater => j += 1,
                std::cmp::Ordering::Equal => {
                    n_shared += 1;
                    i += 1;
                    j += 1;
                }
            }
        }
        match a.len() + b.len() {
            0 => 0.0,
            n_both => 2.0 * n_shared as f64 / n_both as f64,
        }
    }

    /// Returns true if two definitions can be versions of the same one, according to their kinds. For example, a
    /// function can become a method, and a struct can become an enum.
    pub fn is_like(&self, other: &Self) -> bool {
        self.kind == other.kind
            || (self.kind.is_callable() && other.kind.is_callable())
            || (self.kind.is_type() && other.kind.is_type())
    }

    /// Returns the text of the item, without members that have their own history.
    pub fn text(&self) -> Vec<u8> {
        let pieces = self.own.iter().map(|range| self.slice(range.clone()).trim_ascii_end());
        pieces.flatten().copied().collect()
    }

    fn slice(&self, range: Range<usize>) -> &[u8] {
        self.source.bytes.get(range).unwrap_or_default()
    }

    fn print(&self) -> Prints {
        let tokens = self.source.tokens;
        let signature = self.signature.as_usize();
        let doc_range = self.doc.map(ByteRange::as_usize).unwrap_or_default();
        let mut of_signature = Vec::new();
        tokens.of(self.slice(signature.clone()), &mut |token| {
            of_signature.push(xxh3_64(token))
        });
        let mut of_body: Vec<u64> = Vec::new();
        // Of the text before the signature, attributes and decorators belong to the body, but the doc comment does not.
        for range in &self.own {
            for piece in without(range.clone(), &[signature.clone(), doc_range.clone()]) {
                tokens.of(self.slice(piece), &mut |token| {
                    if token != self.name.as_bytes() {
                        of_body.push(xxh3_64(token));
                    }
                });
            }
        }
        let hash = |tokens: &[u64]| xxh3_64(&tokens.iter().flat_map(|token| token.to_le_bytes()).collect::<Vec<u8>>());
        let mut trigrams: Vec<u32> = of_body.windows(3).map(|three| hash(three) as u32).collect();
        trigrams.sort_unstable();
        let name = xxh3_64(self.name.as_bytes());
        let unnamed: Vec<u64> = of_signature.iter().copied().filter(|token| *token != name).collect();
        Prints {
            signature: hash(&of_signature),
            signature_without_name: hash(&unnamed),
            body: hash(&of_body),
            doc: words_of(self.slice(doc_range)),
            trigrams,
            n_tokens: of_body.len() as u32,
        }
    }
}

/// Returns a hash of the words of a comment. Returns 0 if the comment has no words.
fn words_of(doc: &[u8]) -> u64 {
    let is_between = |byte: &u8| !byte.is_ascii_alphanumeric() && byte.is_ascii();
    let words: Vec<&[u8]> = doc.split(is_between).filter(|word| !word.is_empty()).collect();
    if words.is_empty() {
        0
    } else {
        xxh3_64(&words.join(&b' '))
    }
}

/// Returns true if definitions of this kind have their own history. Definitions in data files and the fields and
/// variants of a type belong to their container instead. The package clause of a file has no history.
pub fn has_own_history(kind: DefinitionKind, lang: Lang) -> bool {
    if kind == DefinitionKind::Module {
        return !extract::profile(lang).has_package_clause;
    }
    !matches!(
        kind,
        DefinitionKind::Key
            | DefinitionKind::Rule
            | DefinitionKind::Element
            | DefinitionKind::Field
            | DefinitionKind::Variant
            | DefinitionKind::Property
    )
}

/// Returns true if files in this language can contain definitions with their own history.
pub(super) fn may_have_traced_definitions(lang: Lang) -> bool {
    let has_structure = |language: &extract::Language| {
        language.has_structure() && !matches!(language.name, "json" | "yaml" | "toml" | "css")
    };
    extract::language(lang).is_some_and(has_structure)
}

/// Returns the definitions in a version of a file that have their own history, in source order.
///
/// Reuses the hashes of definitions that were copied from `known`.
pub(super) fn shapes(bytes: &Arc<Vec<u8>>, found: &FileDefinitions, known: &[Shape]) -> Vec<Shape> {
    let lang = found.lang;
    let source = Arc::new(Source {
        bytes: Arc::clone(bytes),
        tokens: Tokens(extract::profile(lang)),
    });
    let definitions = &found.definitions;
    let mut n_named: HashMap<String, u32> = HashMap::new();
    let mut shapes: Vec<Shape> = Vec::new();
    for (index, definition) in definitions.iter().enumerate() {
        // Count definitions without their own history too, so that ids are the same as in the index. For example, a
        // getter and its field have the same name.
        let qualified = qualified_name(definitions, definition);
        if qualified.len() > MAX_NAME_BYTES {
            continue;
        }
        let nth = n_named.entry(qualified.clone()).or_default();
        *nth += 1;
        if !has_own_history(definition.kind, lang) {
            continue;
        }
        let same = found.carried[index].and_then(|at| {
            let place = known.binary_search_by_key(&at, |shape| shape.index).ok()?;
            known.get(place)
        });
        shapes.push(Shape {
            index: index as u32,
            name: definition.name.clone(),
            qualified,
            nth: *nth,
            kind: definition.kind,
            range: definition.range,
            own: own_ranges(definitions, index, lang),
            signature: definition.signature,
            doc: definition.doc,
            source: Arc::clone(&source),
            text_fingerprint: same.map_or_else(OnceLock::new, |same| same.text_fingerprint.clone()),
            prints: same.map_or_else(OnceLock::new, |same| same.prints.clone()),
        });
    }
    shapes
}

pub(super) fn qualified_name(definitions: &[Definition], definition: &Definition) -> String {
    let mut names: Vec<&str> = vec![&definition.name];
    names.extend(definition.qualifier.as_deref());
    let mut next = definition.container;
    while let Some(outer) = next.and_then(|index| definitions.get(index as usize)) {
        names.push(&outer.name);
        next = outer.container;
        if names.len() > definitions.len() + 2 {
            break;
        }
    }
    names.reverse();
    names.join(".")
}

/// Returns the parts of an item that do not belong to members with their own history. The nested definitions of a
/// function belong to the function.
fn own_ranges(definitions: &[Definition], index: usize, lang: Lang) -> Vec<Range<usize>> {
    let definition = &definitions[index];
    let whole = definition.range.as_usize();
    if definition.kind.is_callable() {
        return vec![whole];
    }
    let inner = definitions[index + 1..]
        .iter()
        .take_while(|other| other.range.start < definition.range.end);
    let (mut own, mut at) = (Vec::new(), whole.start);
    for other in inner.filter(|other| has_own_history(other.kind, lang) && definition.range.contains(other.range)) {
        let range = other.range.as_usize();
        if range.start > at {
            own.push(at..range.start);
        }
        at = at.max(range.end);
        // Each of many variables in one statement has its range.
        if at >= whole.end {
            break;
        }
    }
    if at < whole.end {
        own.push(at..whole.end);
    }
    own
}

/// Removes the ranges `holes` from `range`.
fn without(range: Range<usize>, holes: &[Range<usize>]) -> Vec<Range<usize>> {
    let mut pieces = vec![range];
    for hole in holes.iter().filter(|hole| !hole.is_empty()) {
        let mut left = Vec::new();
        for piece in pieces {
            if hole.end <= piece.start || piece.end <= hole.start {
                left.push(piece);
                continue;
            }
            if piece.start < hole.start {
                left.push(piece.start..hole.start);
            }
            if hole.end < piece.end {
                left.push(hole.end..piece.end);
            }
        }
        pieces = left;
    }
    pieces
}

/// Splits text in a language into tokens.
#[derive(Clone, Copy, Debug)]
struct Tokens(&'static Profile);

impl Tokens {
    /// Calls `see` with each token of `text`.
    fn of(self, text: &[u8], see: &mut dyn FnMut(&[u8])) {
        let mut comma: Option<&[u8]> = None;
        let mut levels: Vec<usize> = Vec::new();
        let (mut at, mut n_open) = (0, 0usize);
        let mut is_line_start = false;
        while at < text.len() {
            let rest = &text[at..];
            if let Some(length) = self.continuation(rest) {
                at += length;
                continue;
            }
            if rest[0] == b'\n' {
                is_line_start = true;
                at += 1;
                continue;
            }
            if rest[0].is_ascii_whitespace() {
                at += if is_line_start {
                    rest.iter()
                        .take_while(|byte| matches!(byte, b' ' | b'\t'))
                        .count()
                        .max(1)
                } else {
                    1
                };
                continue;
            }
            if let Some(length) = self.comment(rest) {
                at += length;
                continue;
            }
            if std::mem::take(&mut is_line_start) && self.has_levels(n_open) {
                let width = text[..at]
                    .iter()
                    .rev()
                    .take_while(|byte| matches!(byte, b' ' | b'\t'))
                    .count();
                self.indent(width, &mut levels, see);
            }
            let length = self.token(rest);
            let token = &rest[..length];
            if let Some(comma) = comma.take()
                && !matches!(token, b")" | b"]" | b"}")
            {
                see(comma);
            }
            match token {
                b"(" | b"[" | b"{" => n_open += 1,
                b")" | b"]" | b"}" => n_open = n_open.saturating_sub(1),
                _ => {}
            }
            match token {
                b"," => comma = Some(token),
                _ => see(token),
            }
            at += length;
        }
        if let Some(comma) = comma {
            see(comma);
        }
    }

    /// Returns true if indentation is significant inside `n_open` open brackets.
    fn has_levels(self, n_open: usize) -> bool {
        match self.0.indentation {
            Indentation::Nowhere => false,
            Indentation::OutsideBrackets => n_open == 0,
            Indentation::Everywhere => true,
        }
    }

    /// Returns the length of a backslash and the line break that it escapes. Returns `None` if there is none.
    fn continuation(self, rest: &[u8]) -> Option<usize> {
        let endings: [&[u8]; 2] = [b"\\\n", b"\\\r\n"];
        let ending = endings.into_iter().find(|ending| rest.starts_with(ending))?;
        (self.0.indentation == Indentation::OutsideBrackets).then_some(ending.len())
    }

    fn indent(self, width: usize, levels: &mut Vec<usize>, see: &mut dyn FnMut(&[u8])) {
        while levels.last().is_some_and(|level| *level > width) {
            levels.pop();
            see(b"<-");
        }
        if levels.last().is_none_or(|level| *level < width) {
            levels.push(width);
            see(b"->");
        }
    }

    fn comment(self, rest: &[u8]) -> Option<usize> {
        if let Some((open, close)) = self.0.block_comment
            && rest.starts_with(open.as_bytes())
        {
            let inside = memchr::memmem::find(&rest[open.len()..], close.as_bytes());
            return Some(inside.map_or(rest.len(), |at| open.len() + at + close.len()));
        }
        let is_comment = self
            .0
            .line_comments
            .iter()
            .any(|start| rest.starts_with(start.as_bytes()));
        is_comment.then(|| memchr::memchr(b'\n', rest).unwrap_or(rest.len()))
    }

    fn token(self, rest: &[u8]) -> usize {
        let first = rest[0];
        if first.is_ascii_alphanumeric() || first == b'_' || first >= 0x80 {
            let is_word = |byte: &&u8| byte.is_ascii_alphanumeric() || **byte == b'_' || **byte >= 0x80;
            return rest.iter().take_while(is_word).count();
        }
        match first {
            b'"' | b'\'' if self.0.indentation == Indentation::OutsideBrackets && is_triple_quote(rest) => {
                long_string(rest)
            }
            b'"' | b'`' => string(rest, first),
            b'\'' if self.0.has_single_quotes => string(rest, first),
            _ => 1,
        }
    }
}

fn is_triple_quote(rest: &[u8]) -> bool {
    rest.len() >= 3 && rest[1] == rest[0] && rest[2] == rest[0]
}

/// Returns the length of a triple-quoted string. Brackets inside it do not count.
fn long_string(rest: &[u8]) -> usize {
    let mut at = 3;
    while at < rest.len() {
        match rest[at] {
            b'\\' => at += 1,
            byte if byte == rest[0] && is_triple_quote(&rest[at..]) => return at + 3,
            _ => {}
        }
        at += 1;
    }
    rest.len()
}

/// Returns the length of a string including its quotes. A single quote without a matching one on the line is a token of
/// its own. Other strings may contain line breaks.
fn string(rest: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            b'\\' => at += 1,
            b'\n' if quote == b'\'' => return 1,
            byte if byte == quote => return at + 1,
            _ => {}
        }
        at += 1;
    }
    if quote == b'\'' { 1 } else { rest.len() }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn shape_of(language: &str, text: &str, name: &str) -> Shape {
        let lang = extract::by_name(language).unwrap();
        let found = extract::Extractor::new(extract::Options::default()).definitions(text.as_bytes(), lang);
        let all = shapes(&Arc::new(text.as_bytes().to_vec()), &found, &[]);
        all.into_iter().find(|shape| shape.name == name).unwrap()
    }

    #[test]
    fn formatting_and_comments_leave_the_body_unchanged() {
        let pairs = [
            (
                "rust",
                "fn f(a: u8) { g(a, b) }\n",
                "fn f(\n    a: u8,\n) {\n    // why\n    g(\n        a,\n        b,\n    )\n}\n",
            ),
            (
                "python",
                "def f(a):\n  if a:\n    g('x # y')\n",
                "def f(a):\n    # why\n    if a:\n\n        g('x # y')\n",
            ),
            (
                "python",
                "def f(a, b):\n    x = g(a, [b], h())\n    return x + a\n",
                "def f(\n    a,\n    b,\n):\n    x = g(\n        a,\n      [\n  b],\n        h(),\n    )\n    return x + \\\n  a\n",
            ),
            (
                "javascript",
                "function f() { return a }\n",
                "function f() {\n  /* why */\n  return a\n}\n",
            ),
        ];
        for (language, one, two) in pairs {
            let (one, two) = (shape_of(language, one, "f"), shape_of(language, two, "f"));
            assert_eq!(
                (one.prints().signature, one.prints().body),
                (two.prints().signature, two.prints().body),
                "{language}"
            );
            assert_ne!(one.text_fingerprint(), two.text_fingerprint());
        }
    }

    #[test]
    fn a_change_of_meaning_changes_the_body() {
        let pairs = [
            ("rust", "fn f() { g(a) }\n", "fn f() { g(b) }\n"),
            ("rust", "fn f() { \"a // b\" }\n", "fn f() { \"a // c\" }\n"),
            (
                "python",
                "def f(a):\n  if a:\n    g()\n    h()\n",
                "def f(a):\n  if a:\n    g()\n  h()\n",
            ),
            (
                "python",
                "def f(a):\n  x = g(\n    '''it's ( \"'''\n  )\n  if a:\n    g()\n    h()\n",
                "def f(a):\n  x = g(\n    '''it's ( \"'''\n  )\n  if a:\n    g()\n  h()\n",
            ),
        ];
        for (language, one, two) in pairs {
            let (one, two) = (shape_of(language, one, "f"), shape_of(language, two, "f"));
            assert_eq!(one.prints().signature, two.prints().signature);
            assert_ne!(one.prints().body, two.prints().body, "{language}");
        }
    }

    #[test]
    fn fingerprints_separate_signature_doc_and_name() {
        let one = shape_of("rust", "/// Says a.\nfn f(a: u8) { loop { f(a) } }\n", "f");
        let doc = shape_of("rust", "/// Says b.\nfn f(a: u8) { loop { f(a) } }\n", "f");
        assert_eq!(
            (one.prints().signature, one.prints().body),
            (doc.prints().signature, doc.prints().body)
        );
        assert_ne!(one.prints().doc, doc.prints().doc);
        let signature = shape_of("rust", "/// Says a.\nfn f(a: u16) { loop { f(a) } }\n", "f");
        assert_eq!(
            (one.prints().doc, one.prints().body),
            (signature.prints().doc, signature.prints().body)
        );
        assert_ne!(one.prints().signature, signature.prints().signature);
        let renamed = shape_of("rust", "/// Says a.\nfn g(a: u8) { loop { g(a) } }\n", "g");
        assert_eq!(one.prints().body, renamed.prints().body);
        assert_eq!(one.similarity(&renamed), 1.0);
    }

    #[test]
    fn a_type_excludes_its_methods() {
        let one = shape_of(
            "python",
            "class A:\n    x = 1\n\n    def m(self):\n        return 1\n",
            "A",
        );
        let two = shape_of(
            "python",
            "class A:\n    x = 1\n\n    def m(self):\n        return 2\n",
            "A",
        );
        assert_eq!(one.prints().body, two.prints().body);
    }
}
