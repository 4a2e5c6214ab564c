//! Reads names in the forms in which people write and programs print them: `Type::method`, `(*T).M`, `C$Inner.m`,
//! `<T as Trait>::m`, `A\B->m()`, `Response#success?`, `C.m.<locals>.f`.
//!
//! All forms are rewritten to one: segments joined by `.`, outermost first, without arguments and type parameters.

use super::analyze::looks_like_code;

/// Marks the end of a name that is followed by arguments.
const CALL: char = '\u{1}';
/// Placeholders of functions without a name, and of scopes, that are no part of a name.
const ANONYMOUS: &[&str] = &[
    "anonfun",
    "anonymous",
    "block",
    "clinit",
    "closure",
    "ctor",
    "eval",
    "genexpr",
    "init",
    "lambda",
    "listcomp",
    "locals",
    "main",
    "module",
    "setcomp",
    "dictcomp",
    "static",
    "top (required)",
    "unknown",
];
/// Segments that compilers add to the names of functions without a name.
const ADDED: &[&str] = &["anonfun", "lambda", "locals"];
/// Longest text in brackets that is taken for arguments or type parameters, in bytes.
const MAX_BRACKETS: usize = 400;

/// A name in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PrintedName {
    /// The name with its containers, outermost first. Never empty.
    pub(super) segments: Vec<String>,
    /// True if the form shows that it is a name rather than a word.
    pub(super) is_code: bool,
}

/// Returns the names and other words of `text`, in order.
pub(super) fn printed_names(text: &str) -> Vec<PrintedName> {
    let mut rewriter = Rewriter::new(text);
    rewriter.run();
    rewriter.out.split_whitespace().filter_map(printed).collect()
}

/// Reads one rewritten token.
fn printed(token: &str) -> Option<PrintedName> {
    let is_called = token.ends_with(CALL);
    let token = token.replace(CALL, "");
    // Of a path, the last component may be a name with its package.
    let (folders, token) = token
        .rsplit_once('/')
        .map_or((None, token.as_str()), |(folders, last)| (Some(folders), last));
    let is_sigil = token.starts_with(['.', '@', '$']) && token.len() > 2;
    let is_segment = |segment: &&str| !segment.is_empty() && !segment.bytes().all(|byte| byte.is_ascii_digit());
    let parts: Vec<&str> = token
        .split('.')
        .map(|part| part.trim_start_matches(['@', '$']))
        .filter(is_segment)
        .collect();
    let n_parts = parts.len();
    let is_named = |part: &&str| n_parts == 1 || !ADDED.contains(part);
    let mut segments: Vec<String> = parts.into_iter().filter(is_named).map(str::to_owned).collect();
    let last = segments.last_mut()?;
    let is_operator =
        last.starts_with("operator") && last.len() > "operator".len() && !last.ends_with(char::is_alphanumeric);
    if !is_operator && n_parts == 1 && !is_sigil && last.ends_with(['?', '!', '=']) && !looks_like_code(last) {
        last.truncate(last.trim_end_matches(['?', '!', '=']).len());
    }
    if last.is_empty() || (folders.is_some() && n_parts < 2) {
        return None;
    }
    let is_code = n_parts > 1 || is_called || is_sigil || is_operator || looks_like_code(last);
    Some(PrintedName { segments, is_code })
}

/// Rewrites a text, one character at a time.
struct Rewriter<'a> {
    text: &'a str,
    at: usize,
    out: String,
}

impl<'a> Rewriter<'a> {
    fn new(text: &'a str) -> Self {
        Self {
            text,
            at: 0,
            out: String::with_capacity(text.len()),
        }
    }

    fn run(&mut self) {
        while let Some(character) = self.rest().chars().next() {
            self.at += character.len_utf8();
            self.take(character);
        }
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn next(&self) -> char {
        self.rest().chars().next().unwrap_or(' ')
    }

    fn last(&self) -> char {
        self.out.chars().next_back().unwrap_or(' ')
    }

    fn is_between_words(&self) -> bool {
        is_word(self.last()) && is_word(self.next())
    }

    /// Writes a separator of segments, or a space where no segment can follow.
    fn separate(&mut self, is_separator: bool) {
        self.out.push(if is_separator { '.' } else { ' ' });
    }

    fn take(&mut self, character: char) {
        if self.take_operator(character) {
            return;
        }
        match character {
            _ if is_word(character) => self.out.push(character),
            '.' => self.separate(!self.next().is_whitespace()),
            ':' if self.next() == ':' => {
                self.at += 1;
                self.separate(true);
            }
            '-' if self.next() == '>' => {
                self.at += 1;
                self.separate(is_word(self.next()));
            }
            ':' => {
                let is_method = self.is_between_words() && !self.next().is_ascii_digit();
                self.separate(is_method);
            }
            '#' => {
                let is_method = is_word(self.next()) && !self.next().is_ascii_digit();
                self.separate(is_method);
            }
            '\\' => {
                let is_namespace =
                    is_word(self.next()) && (is_word(self.last()) || self.last() == ' ' || self.out.is_empty());
                self.separate(is_namespace);
            }
            '+' => {
                let is_nested = self.is_between_words() && self.next().is_uppercase();
                self.separate(is_nested);
            }
            '$' if is_word(self.last()) => self.out.push('.'),
            '$' | '@' if is_word(self.next()) && !is_word(self.last()) => self.out.push(character),
            '/' if self.is_between_words() => self.take_slash(),
            '~' if self.last() == '.' => self.out.push('~'),
            '?' | '!' if is_word(self.last()) => self.out.push(character),
            '=' if is_word(self.last()) && self.is_in_method() && !self.next().is_alphanumeric() => self.out.push('='),
            '`' => {
                // The number of type parameters of C#: `List`1`.
                if is_word(self.last()) && self.next().is_ascii_digit() {
                    self.at += self.rest().len() - self.rest().trim_start_matches(|c: char| c.is_ascii_digit()).len();
                } else {
                    self.out.push(' ');
                }
            }
            '<' => self.take_angle(),
            '(' => self.take_parenthesis(),
            '[' => self.take_bracket(),
            '{' => self.take_brace(),
            _ => self.out.push(' '),
        }
    }

    /// True if the last token written contains a separator.
    fn is_in_method(&self) -> bool {
        self.out
            .rsplit(char::is_whitespace)
            .next()
            .is_some_and(|token| token.contains('.'))
    }

    fn take_slash(&mut self) {
        let digits = self.rest().len() - self.rest().trim_start_matches(|c: char| c.is_ascii_digit()).len();
        if digits > 0 && !self.rest()[digits..].starts_with(is_word) {
            // The arity of a function: `run/2`.
            self.at += digits;
            self.out.push(CALL);
        } else {
            self.out.push('/');
        }
    }

    /// Takes the symbols of an overloaded operator: `operator==`.
    fn take_operator(&mut self, character: char) -> bool {
        if is_word(character) || character.is_whitespace() || !self.out.ends_with("operator") {
            return false;
        }
        let symbols: String = std::iter::once(character)
            .chain(self.rest().chars())
            .take_while(|c| "=<>!+-*/%&|^~[]".contains(*c))
            .collect();
        let symbols = if symbols.is_empty() && character == '(' && self.next() == ')' {
            "()".to_owned()
        } else {
            symbols
        };
        if symbols.is_empty() {
            return false;
        }
        self.at += symbols.len() - 1;
        self.out.push_str(&symbols);
        true
    }

    /// Returns the text up to the bracket that closes one just taken, and moves behind it.
    fn inside(&mut self, open: char, close: char) -> Option<&'a str> {
        let rest = self.rest();
        let mut depth = 0_u32;
        let mut before = ' ';
        for (at, character) in rest
            .char_indices()
            .take_while(|(at, c)| *at < MAX_BRACKETS && *c != '\n')
        {
            let is_arrow = character == '>' && matches!(before, '-' | '=');
            before = character;
            if character == open {
                depth += 1;
            } else if character == close && !is_arrow {
                if depth == 0 {
                    self.at += at + close.len_utf8();
                    return Some(&rest[..at]);
                }
                depth -= 1;
            }
        }
        None
    }

    fn take_angle(&mut self) {
        let is_after_name = is_word(self.last()) || self.last() == '.';
        let Some(inside) = self.inside('<', '>') else {
            self.out.push(' ');
            return;
        };
        let inside = inside.trim();
        if let Some((of, _)) = inside.split_once(" as ") {
            self.write_type(of);
        } else if let Some(implemented) = inside.strip_prefix("impl ") {
            self.write_type(implemented.rsplit(" for ").next().unwrap_or(implemented));
        } else if let Some(generated) = self.generated(inside) {
            // A method that the C# compiler made of another: `<Run>b__0`.
            self.out.push_str(inside);
            self.at += generated;
        } else if !is_after_name && !ANONYMOUS.contains(&inside) {
            self.out.push(' ');
        }
    }

    /// Returns the length of what the compiler appended to the name `inside`.
    fn generated(&self, inside: &str) -> Option<usize> {
        let rest = self.rest();
        let is_marked = ["b__", "d__", "g__", "c__"].iter().any(|mark| rest.starts_with(mark));
        let length = rest.len() - rest.trim_start_matches(|c: char| is_word(c) || c == '|').len();
        (is_marked && !inside.is_empty() && inside.chars().all(is_word)).then_some(length)
    }

    /// Writes a type without its type parameters.
    fn write_type(&mut self, text: &str) {
        let mut rewriter = Rewriter::new(text.trim().trim_start_matches(['&', '*']));
        rewriter.run();
        if let Some(of) = rewriter.out.split_whitespace().next() {
            self.out.push_str(of);
        }
    }

    fn take_parenthesis(&mut self) {
        if self.next() == '*' {
            // The receiver of a method of Go: `(*Server).Start`.
            if let Some(inside) = self.inside('(', ')') {
                self.write_type(inside);
            }
            return;
        }
        if !is_word(self.last()) && !matches!(self.last(), '?' | '!' | '.') {
            self.out.push(' ');
            return;
        }
        if self.inside('(', ')').is_none() {
            let rest = self.rest();
            self.at += rest.find(char::is_whitespace).unwrap_or(rest.len());
        }
        self.out.push(CALL);
        // The qualifiers of a method of C++ are no names.
        for qualifier in [" const", " noexcept", " volatile"] {
            if self.rest().starts_with(qualifier) && !self.rest()[qualifier.len()..].starts_with(is_word) {
                self.at += qualifier.len();
            }
        }
    }

    fn take_bracket(&mut self) {
        if is_word(self.last()) {
            if self.inside('[', ']').is_none() {
                self.out.push(' ');
            }
            return;
        }
        let is_message = self.text[..self.at - 1].ends_with(['-', '+']);
        let name = self.rest().strip_prefix("as ").and_then(|_| self.inside('[', ']'));
        self.out.push(' ');
        if let Some(name) = name {
            // The property that holds a function of JavaScript: `Object.m [as n]`.
            self.out.push_str(name.trim_start_matches("as "));
            self.out.push(' ');
        } else if is_message && let Some(message) = self.inside('[', ']') {
            let mut words = message.split([' ', ':']).filter(|word| !word.is_empty());
            self.out.push_str(&words.by_ref().take(2).collect::<Vec<_>>().join("."));
            self.out.push(' ');
        }
    }

    fn take_brace(&mut self) {
        let inside = self.inside('{', '}').map(|inside| inside.trim_matches(['{', '}']));
        let is_placeholder = inside.is_some_and(|inside| {
            let word = inside.split(['#', ':', '(', ' ']).next().unwrap_or_default();
            ANONYMOUS.contains(&word) || word == "impl" || word == "shim"
        });
        match inside {
            Some(_) if is_placeholder => {}
            Some(inside) => {
                self.at -= inside.len() + 1;
                self.out.push(' ');
            }
            None => self.out.push(' '),
        }
    }
}

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> Vec<String> {
        let names = printed_names(text).into_iter().filter(|name| name.is_code);
        names.map(|name| name.segments.join(".")).collect()
    }

    #[test]
    fn printed_forms_are_names() {
        for (text, name) in [
            ("parse_query", "parse_query"),
            ("Response#success?", "Response.success?"),
            ("A::B#m!", "A.B.m!"),
            ("(*Repository).LoadBlob", "Repository.LoadBlob"),
            (
                "repository.(*Repository).LoadBlob(...)",
                "repository.Repository.LoadBlob",
            ),
            ("github.com/a/b.(*T[...]).M", "b.T.M"),
            ("main.run.func1", "main.run.func1"),
            (r"\A\B\C::m", "A.B.C.m"),
            ("$c->m()", "c.m"),
            ("Recipe<'src>::run_script", "Recipe.run_script"),
            ("<T as Trait>::m", "T.m"),
            ("<impl Display for Error>::fmt", "Error.fmt"),
            ("crate::m::f::{{closure}}", "crate.m.f"),
            ("core::ops::f::{closure#0}", "core.ops.f"),
            ("a.b.C.m(C.java:696)", "a.b.C.m"),
            ("C$Inner.m", "C.Inner.m"),
            ("C$1.run", "C.run"),
            ("a.b.C.<init>(C.java:3)", "a.b.C"),
            ("N.C.M(Int32 x)", "N.C.M"),
            ("N.C`1.M(T x)", "N.C.M"),
            ("N.C.<Run>d__3.MoveNext()", "N.C.Run.MoveNext"),
            ("ns::C::m(int, std::map<int, int>) const", "ns.C.m"),
            ("C::operator==", "C.operator=="),
            ("C::operator()(int)", "C.operator()"),
            ("C::~C()", "C.~C"),
            ("Map<String, List<V>>::get", "Map.get"),
            ("C.m.<locals>.f", "C.m.f"),
            ("mod:method", "mod.method"),
            ("MyApp.Mod.run/2", "MyApp.Mod.run"),
            ("a.b.C$.m(C.scala:3)", "a.b.C.m"),
            ("Module.C.m(at: Swift.Int) -> ()", "Module.C.m"),
            ("-[Cache objectForKey:]", "Cache.objectForKey"),
            ("call()", "call"),
            ("open(", "open"),
        ] {
            assert_eq!(code(text), [name], "{text}");
        }
        assert_eq!(code("Object.m [as nextTick]"), ["Object.m", "nextTick"]);
    }

    #[test]
    fn prose_has_no_names() {
        for text in [
            "where is a failed upload retried?",
            "read and/or write",
            "five (or more) words",
            "a well-known port",
            "version 1.2.3",
            "why < or > matters",
            "done. Next one!",
        ] {
            assert!(code(text).is_empty(), "{text}: {:?}", code(text));
        }
    }

    #[test]
    fn odd_brackets_are_read() {
        for text in [
            "a(b[c<d{e",
            ")]>}",
            "<<<<((((",
            "{{{{",
            "[as ",
            "-[",
            "operator",
            "operator(",
        ] {
            printed_names(text);
        }
    }
}
