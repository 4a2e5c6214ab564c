//! Finds the values of names that suggest secrets.
//!
//! Code is not parsed: a table of forms says what may be between a name and its value, and how much a value there must
//! look like a secret.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use crate::model::start_of;

use super::forms::{compiled, rows};
use super::name::{Name, Strength, names};
use super::value::{self, BYTES, Trust, is_meant, last_bytes, line_end};

/// Maximum distance between a name and its value. The limit makes the time proportional to the length of the text.
const MAX_BYTES: usize = 4 << 10;
/// Maximum number of bytes before a name that are read.
const MAX_BYTES_BEFORE: usize = 200;

/// The places of values, without those behind a sign of assignment: the minimum strength of the name, the trust for a
/// literal, the trust for a word or the text of a tag, the line up to the name (`§`), and the text behind it. All rows
/// that match count.
const LINKS: &str = r##"
# `name == "value"`, `strcmp(name, "value")`.
strong  any  never  §  (?:["'`]?\s*\])?\s*(?:[!=]==?|\.equals\()\s*
strong  any  never  (?:assert\w*!?|expect\w*|[eE]quals?)\(\s*[\w.$&>-]*§  (?:\(\))?\s*,\s*
strong  any  never  §  (?:\(\))?\)\.(?:to|not|should)?\.?(?:toBe|toEqual|toStrictEqual|equals?|eql?|be)\(\s*
strong  any  never  (?:cmp|compare\w*|equals)\(§  \s*,\s*
# `getenv("NAME", "value")`, `put(NAME, "value")`, `{name, "value"}`, `set :name, "value"`, `"--name", "value"`.
weak  any  never  (?i)(?:(?:env|setdefault|fetch|\bget|option|flag\.\w+|\bdefine|setattr|set_?property|header|put|insert|add|append|\.of|pair|param|\.set|\.set_env|set_var|setItem)\(\s*(?:\w+,\s*)?["']?|^\s*\{|\bset[ (]:|["']--?)§  ["']?\s*,\s*
strong  any  never  ["']§  ["']\s*(?:to|->|;)\s*
weak  any  never  --?§  ["']\)\s*\.arg\(\s*
weak  random  never  ["':]§  ["'`]?\s*,\s*
strong  random  never  §  ["'`]?\s*,\s*
# `get("NAME") || "value"`, `env::var("NAME").unwrap_or("value")`, `fetch("NAME") { "value" }`.
weak  any  never  §  ["'`]?\s*[\])]*\s*(?:\|\|=?|\?\?=?|\?:|\bor\b|\.unwrap_or\w*\(|\.(?i:or_?else|get_?or_?else)\w*\s*[({]|:-)\s*(?:\|\w*\|\s*|\(\)\s*[-=]>\s*)?
weak  any  never  §  ["'`]\s*[\])]\s*\{\s*
# `fn name() -> T { "value" }`, `def name\n return "value"`, `name { get { return "value"; } }`.
strong  any  never  \b(?:fn|func?|fun|def|function|get|public|private|protected|static|const|va[lr]|let|[Ss]tring)\s+(?:\w+\s+)*(?:get_?)?§  (?:\([^()\n]{0,80}\))?(?:\s*->\s*[&'\w<>: ]{1,40})?[^;={}()"'\n,]{0,40}(?:[{:]|=>?|\n)\s*(?:get\s*(?:\{|=>)\s*)?(?:return\b\s*)?
# `name() { return "value" }`, `name: function () { return "value" }`, `name = () => "value"`.
strong  any  never  HEAD§  GIVES
weak  random  never  HEAD§  GIVES
# `class Secrets: NAME = "value"`.
strong  any  never  \bclass\s+§  [^\n]{0,40}[:{]\s*\n\s*(?:\w+\s+){0,4}\w+\s*=\s*
# `find("#name").type("value")`, `setName("value")`, `.name("user", "value")`, `Name{"value"}`.
strong  any  never  §  ["'`]?\]?["']?\)\s*\.(?:type|fill|clear_and_type|send_?keys|sendKeys|val|set_?[vV]alue|set)\(\s*
strong  random  never  §  [({]\s*
# `val name by lazy { "value" }`, `let(:name) { "value" }`, `name: .some("value")`, `name = Buffer.from("value")`.
weak  any  never  §  \s+by\s+\w+\s*\{\s*
strong  any  never  \blet!?\(:§  \)\s*\{\s*
weak  any  never  §  \s*(?::\s*[&'\w?<>\[\] ]{1,40}=)?[:=]?\s*(?:new\s+)?[\w:.]*(?:\.some|\.from|concat!|encode|pack|bytes)\s*\(?\s*
# `strcpy(name, "value")`, `name, = ["value"]`, `option (name) = "value"`.
strong  any  never  (?:str|mem)n?l?cpy\w*\(\s*§  \s*,\s*
strong  any  never  §  \s*,\s*=\s*[\[(]?\s*
strong  any  never  \(§  \)\s*=\s*
# `NAME=$(echo value)`, `read NAME <<< value`.
strong  any  any  §  =\$\(\s*(?:echo|printf)\s+(?:-\w+\s+)?
strong  any  any  (?i)^\s*read\s(?:.*\s)?§  [ \t]*<<<[ \t]*
# `name is value`, `name 0 value`, `name "value"`, `--name value`, `ENV name value`.
strong  never  random  §  ["'`*]*[ \t]+(?:(?:is|are|was|as|to|be|ist|est|es):?[ \t]+|[0-9][ \t]+)?["'`*]*
strong  any  never  §  [ \t]+(?:is|ist|est|es|was|as):?[ \t]+
strong  any  never  §  [ \t]+
weak  any  random  (?:-|(?i)^\s*(?:env|arg|set(?:\s+-\w+)?|setx|setenv|export|#\s*define|\(\w+|.*\sset_header|proxy_\w+|.*;\s*set|set|.*\sconfig(?:ure)?\s+set)\s(?:.*[\s:])?\$?)§  [ \t]+(?:<<<[ \t]+)?
weak  never  any  (?i)^\s*(?:env|arg|set|setx|setenv|export)\s(?:-\w+\s)?(?-i)[A-Z_]*§  [ \t]+
strong  never  any  -§  [ \t]+
weak  never  any  -§  [ \t]*\n[ \t]*-[ \t]+
# `AUTH_NAME value` as a line, and `name:` with a line.
strong  never  notname  ^\s*(?:[?>#*+-][ \t]+)?§|&§  (?:\t+|[ \t]+(?:-[ \t]+)?|[ \t]*\n(?:[|] |: ))
strong  any  entry  ^[ \t"'-]*§  ["']?:[ \t]*(?:#[^\n]*)?\n[ \t]+
# `<name>value</name>`, `<key>name</key><string>value`, and `<name id="…">value`, also as CDATA.
strong  never  any  <(?:[\w-]+:)?§  (?:\s[^<>]*)?>\s*(?:<!\[CDATA\[)?
weak  never  random  <(?:[\w-]+:)?§  (?:\s[^<>]*)?>\s*(?:<!\[CDATA\[)?
strong  never  any  NAMED§  ["']?[^<>]{0,200}(?:</key>\s*<\w+>|>\s*(?:<\w+>)?)\s*
weak  never  random  NAMED§  ["']?[^<>]{0,200}(?:</key>\s*<\w+>|>\s*(?:<\w+>)?)\s*
# `${name:value}`.
weak  never  any  \$\{[\w.-]*§  :-?
# COBOL.
strong  any  never  §  \s+PIC\s+\S+\s+VALUE\s+
"##;
/// The key of a name that is itself a value.
const NAMED: &str =
    r#"(?i:\b(?:name|key|id|type|variable|property|param(?:eter)?)\\?["'`]?\s*(?:[:=]|=>)?\s*\\?["'`]?|<key>)"#;

/// What may be before the name of a function of JavaScript, and behind it up to the value that it returns.
const HEAD: &str =
    r"(?:^|[{,;]|\b(?:async|const|default|export|function|get|let|private|protected|public|static|va[lr])\s)\s*";
const GIVES: &str = r"(?:\s*[:=]\s*(?:async\s+)?(?:function\b\s*\w*\s*)?)?\([^()\n]{0,80}\)\s*(?::\s*[\w<>\[\]|.]{1,40}\s*)?(?:=>\s*(?:\{\s*return\b\s*)?|\{\s*return\b\s*)";

static NAMED_FORM: LazyLock<Regex> = LazyLock::new(|| compiled(&format!("{NAMED}$")));

struct Link {
    strength: Strength,
    literal: Trust,
    word: Trust,
    before: Option<Regex>,
    between: Regex,
}

static COMPILED: LazyLock<Vec<Link>> = LazyLock::new(|| {
    let of = |[strength, literal, word, before, between]: [&str; 5]| Link {
        strength: Strength::of(strength),
        literal: Trust::of(literal),
        word: Trust::of(word),
        before: (before != "§").then(|| {
            let before = before.replace('§', "").replace("NAMED", NAMED).replace("HEAD", HEAD);
            compiled(&format!("(?:{before})$"))
        }),
        between: compiled(&format!(r"\A(?:{})", between.replace("GIVES", GIVES))),
    };
    rows(LINKS).map(of).collect()
});

pub(super) fn find(text: &str) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    let mut line = Line::default();
    for name in names(text) {
        // A name in a secret has no value. Many of them would take long.
        if found.iter().rev().take(8).any(|secret| secret.contains(&name.start)) {
            continue;
        }
        line.read_to(text, name.start);
        let window = start_of(text, name.end() + MAX_BYTES);
        let quote = line
            .quote
            .filter(|quote| text.as_bytes().get(name.end()) != Some(quote));
        let end = quote.and_then(|quote| closing(window, name.end(), quote));
        let place = Place {
            text: &window[..end.unwrap_or(window.len())],
            name,
            line: &text[line.start..name.start],
            in_string: quote.is_some(),
        };
        found.extend(place.values());
    }
    found
}

/// Returns the position of the quote that ends the string that is open at `at`.
fn closing(text: &str, at: usize, quote: u8) -> Option<usize> {
    let is_end = |at: &usize| {
        let next = text[at + 1..].chars().next();
        !text[..*at].ends_with('\\') && next.is_none_or(|c| c.is_whitespace() || ",;:)]}+.%>\\/|".contains(c))
    };
    let quotes = text[at..].match_indices(char::from(quote));
    quotes.map(|(n_bytes, _)| at + n_bytes).find(is_end)
}

/// The line that contains the position `end`, up to `end`.
#[derive(Default)]
struct Line {
    start: usize,
    end: usize,
    /// The quote that is open at `end`.
    quote: Option<u8>,
}

impl Line {
    fn read_to(&mut self, text: &str, end: usize) {
        let bytes = text.as_bytes();
        while self.end < end {
            let byte = bytes[self.end];
            match (byte, self.quote) {
                (b'\n', _) => (self.quote, self.start) = (None, self.end + 1),
                (b'\\', _) if bytes.get(self.end + 1) != Some(&b'\n') => self.end += 1,
                (b'"' | b'`', None) => self.quote = Some(byte),
                (b'\'', None) if !value::is_apostrophe(&bytes[..self.end]) => self.quote = Some(byte),
                (_, Some(quote)) if byte == quote => self.quote = None,
                _ => {}
            }
            self.end += 1;
        }
    }
}

/// A name with its surrounding text.
struct Place<'t> {
    /// The text up to the end of the string that contains the name, or up to [`MAX_BYTES`] behind it.
    text: &'t str,
    name: Name<'t>,
    /// The line before the name.
    line: &'t str,
    /// True if a string contains the name and more.
    in_string: bool,
}

impl Place<'_> {
    fn values(&self) -> Vec<Range<usize>> {
        let mut found = self.assigned();
        if self.name.strength > Strength::Key {
            found.extend(self.paired());
        }
        if self.name.strength > Strength::Mentions {
            found.extend(COMPILED.iter().filter_map(|link| self.linked(link)));
            found.extend(self.passed());
            found.extend(self.in_columns());
            found.extend(self.first_of_several());
        }
        found
    }

    /// Finds values in `name = value`, `"name": value`, `["name"] = value` and `name Type = value`.
    fn assigned(&self) -> Vec<Range<usize>> {
        let sign = form!(
            r#"\A(?:\\*["'`](?:\s*\])?|\*\*|(?:\s*\])?(?:\[[^\]\n]{0,20}\]| ?\{[^{}\n]{0,40}\})?[?!]?(?:[ \t]+(?:[Aa]s[ \t]+)?[*A-Za-z][\w.*\[\]]*)?)((?:[ \t]*\r?\n[ \t]*)?|[ \t]*)(:[=-]|=>|<-|\|\|=?|\?\?=?|&&=|[+.?|:]{0,2}=|::?)([ \t]*)(?:/\*[^*\n]*\*/\s*)?"#
        );
        let several = form!(r"^\s*(?:[a-z]+ )?[\w\s,]+,\s*$");
        let Some(found) = sign.captures(self.after()) else {
            return Vec::new();
        };
        let (before, sign, behind) = (&found[1], &found[2], &found[3]);
        let mut at = self.name.end() + found[0].len();
        let indented = form!(r"\A[ \t]*\r?\n[ \t]+").find(&self.text[at..]);
        at += indented
            .filter(|_| sign == "=" && self.is_in_section())
            .map_or(0, |gap| gap.end());
        let is_other = behind.is_empty() && self.text[at..].starts_with(['=', '~', ':']);
        // A cross-reference or symbol in prose, as in "Never pass :ref:`signal` as sender".
        let is_symbol = behind.is_empty() && self.text[at..].starts_with(|c: char| c.is_ascii_alphabetic());
        if sign != "=>" && is_other
            || before.contains('\n') && !sign.ends_with('=')
            || sign == "::" && behind.is_empty()
            || self.name.strength == Strength::Key && self.text[at..].starts_with('{')
            || sign == ":" && !before.is_empty() && is_symbol
        {
            return Vec::new();
        }
        // An assignment of several values: `user, password = "…", "…"`.
        if self.line.len() < MAX_BYTES_BEFORE && several.is_match(self.line) {
            let is_wide = self.name.strength > Strength::Key;
            let end = if is_wide { line_end(self.text, at) } else { at };
            return value::literals(&self.text[..end], at, true);
        }
        let trust = match self.name.strength {
            Strength::Key => Trust::Key,
            _ if self.is_setting(sign, before.is_empty() && behind.is_empty(), at) => Trust::Any,
            Strength::Strong => Trust::NotName,
            _ => Trust::Random,
        };
        self.value(at, trust)
    }

    /// Finds values in an assignment of several values that begins with the name: `password, user = "…", "…"`.
    fn first_of_several(&self) -> Vec<Range<usize>> {
        let statement = form!(r"^\s*(?:[a-z]+ )?[\[(]?(?:\s*[\w.$]+,)*\s*$");
        let rest = form!(r"\A(?:[ \t]*,[ \t]*[\w.$]+){1,8}[\])]?[ \t]+:?=[ \t]+");
        if self.line.len() > MAX_BYTES_BEFORE || !statement.is_match(self.line) {
            return Vec::new();
        }
        let Some(rest) = rest.find(self.after()) else {
            return Vec::new();
        };
        let at = self.name.end() + rest.end();
        let mut found = value::literals(&self.text[..line_end(self.text, at)], at, true);
        found.retain(|literal| {
            self.name.strength == Strength::Strong || is_meant(&self.text[literal.clone()], Trust::Random)
        });
        found
    }

    /// Returns true if any word behind the sign of assignment is a value, not code.
    fn is_setting(&self, sign: &str, is_near: bool, at: usize) -> bool {
        let is_strong = self.name.strength == Strength::Strong;
        let is_wide = self.name.strength > Strength::Mentions;
        let is_first = self.is_first();
        let is_entry = |text: &str| is_first && value::is_entry(text);
        let rest = &self.text[at..line_end(self.text, at)];
        match sign {
            // As in environment variables, URLs, flags, properties files and logs.
            "=" if is_near && self.text[..at].ends_with('=') => {
                let is_part = self.before().ends_with(['?', '&', '#', ';', ':', '-']);
                let is_word = || self.in_string || self.before().ends_with(' ');
                self.name.is_upper()
                    || is_wide && is_part
                    || is_wide && is_word() && value::is_entry(rest.split(' ').next().unwrap_or(""))
                    || (is_strong || is_wide && self.name.text.contains('.')) && is_entry(rest)
            }
            "=" => is_strong && is_entry(rest) && (is_near || self.is_in_section()),
            ":=" | "?=" => self.name.is_upper() && is_entry(rest),
            _ => (is_strong || is_wide && (self.name.is_upper() || self.name.text.starts_with("X-"))) && is_entry(rest),
        }
    }

    /// Returns true if the name is in a section of an ini file.
    fn is_in_section(&self) -> bool {
        let section = form!(r#"(?m)^\[[\w .:"-]+\][ \t]*\r?\n(?:(?:[#;][^\n]*|[\w.-]+[ \t]*=[^\n]*|)\r?\n)*[ \t]*\z"#);
        section.is_match(last_bytes(self.before(), 2 * MAX_BYTES_BEFORE))
    }

    fn linked(&self, link: &Link) -> Option<Range<usize>> {
        if self.name.strength < link.strength {
            return None;
        }
        let gap = link.between.find(self.after())?;
        let before = last_bytes(self.line, MAX_BYTES_BEFORE);
        if link.before.as_ref().is_some_and(|form| !form.is_match(before)) {
            return None;
        }
        let at = self.name.end() + gap.end();
        // The verb "pass" and a literal in Markdown.
        let is_prose = self.name.text.eq_ignore_ascii_case("pass") || self.text[at..].starts_with('`');
        if gap.as_str().trim().is_empty() && is_prose {
            return None;
        }
        let is_in_tag = self.line.ends_with(['<', ':']) || gap.as_str().contains('<') || NAMED_FORM.is_match(before);
        match gap.as_str().trim_end().chars().next_back() {
            Some('>') if is_in_tag => self.content(at, "<", link.word),
            Some('[') if is_in_tag => self.content(at, "]]>", link.word),
            _ => self.value_at(at, link.literal, link.word),
        }
    }

    /// Finds the block, literal or word at `at`.
    fn value_at(&self, at: usize, literal: Trust, word: Trust) -> Option<Range<usize>> {
        // Not a documentation string.
        let is_short = |range: &Range<usize>| {
            !self.text[range.clone()].contains('\n') && !self.text[..range.start].ends_with("\"\"\"")
        };
        value::block(self.text, at, MAX_BYTES)
            .or_else(|| self.literal(at, literal).filter(is_short))
            .or_else(|| value::word(self.text, at, self.in_string, word))
    }

    /// Finds values in `name … default = "value"`, `"name": {"value": "…"}` and `key="name" value="…"`. The key of a value
    /// is on the line of the name or on one that is indented more, unless the name itself has a key.
    fn paired(&self) -> Option<Range<usize>> {
        let key = form!(r#"(?i)(?-u:\b)(?:value|default(?:_?value)?|content|example)\\?["'`]?\s*(?:[:=(]|=>)\s*"#);
        let next = form!(r#"(?i)<|(?-u:\b)(?:name|key)["'`]?\s*[:=]|[)\]],?\s*\n|\},\s*\n|;\s*\n"#);
        let indent = |line: &str| line.len() - line.trim_start().len();
        let key = key.find(start_of(self.after(), MAX_BYTES_BEFORE))?;
        let gap = &self.after()[..key.start()];
        let is_named = NAMED_FORM.is_match(last_bytes(self.line, MAX_BYTES_BEFORE));
        let is_nested = || gap.lines().skip(1).all(|line| indent(line) > indent(self.line));
        let (literal, word) = match self.name.strength {
            Strength::Strong if is_named => (Trust::Any, Trust::Any),
            Strength::Strong => (Trust::Any, Trust::Entry),
            _ if is_named => (Trust::Any, Trust::Random),
            _ => (Trust::Random, Trust::Random),
        };
        if next.is_match(gap) || !is_named && (!is_nested() || self.name.strength == Strength::Mentions) {
            return None;
        }
        let at = self.name.end() + key.end();
        let line = gap.lines().last().unwrap_or_default();
        value::block(self.text, at, indent(line)).or_else(|| self.value_at(at, literal, word))
    }

    /// Finds the text at `at` up to `end`, if it is a secret.
    fn content(&self, at: usize, end: &str, trust: Trust) -> Option<Range<usize>> {
        let (content, next) = self.text[at..].split_at(self.text[at..].find(end)?);
        let content = content.trim_end();
        let is_value = end == "]]>" || next.starts_with("</");
        let is_secret = is_value && value::word(content, 0, false, trust).is_some();
        is_secret.then_some(at..at + content.len())
    }

    /// Finds values in `setName("value")`, `.name("user", "value")` and `Name{"value"}`.
    fn passed(&self) -> Vec<Range<usize>> {
        let setter = form!(
            r"(?i)(?:^|\.)_*(?:set\w*|(?-i:(?:with|use|put|add|With|Use|Put|Add)[A-Z_]\w*)|\w*(?:basic|bearer)_?auth|k?(?:passw|passp|secret|api|access|private|db|user|store_?p|key_?p)\w*)$"
        );
        let is_setter = || setter.is_match(self.name.text) || self.before().ends_with("new ");
        match form!(r"\A[({]\s*").find(self.after()) {
            Some(open) if is_setter() => {
                let at = self.name.end() + open.end();
                let is_literal = value::literal_at(self.text, at).is_some();
                if is_literal {
                    value::literals(self.text, at, true)
                } else {
                    Vec::new()
                }
            }
            _ => Vec::new(),
        }
    }

    /// Finds values in the column of the name: of a table, a CSV file, and `INSERT INTO t (name) VALUES ("value")`.
    fn in_columns(&self) -> Vec<Range<usize>> {
        const MAX_ROWS: usize = 20;
        let head = form!(r#"^\s*(?:\|.*|(?:["'`]?[\w .-]{1,40}["'`]?[,;\t] ?)*)["'`]?$"#);
        let tail = form!(r#"\A["'`]?\s*(?:\|.*|[,;\t][^\n(){}=]*)?\r?(?:\n|\z)"#);
        let insert = form!(r"(?is)\A[^()]{0,200}\)\s*VALUES\s*\(");
        let has_columns = |line: &str| line.contains(['|', ',', ';', '\t']);
        let next = start_of(self.after(), MAX_BYTES_BEFORE)
            .lines()
            .next()
            .unwrap_or_default();
        if self.line.len() > MAX_BYTES_BEFORE
            || !has_columns(self.line) && !self.line.contains('(') && !has_columns(next)
        {
            return Vec::new();
        }
        let is_head = !self.line.contains('|') && !next.contains('|')
            || form!(r"\A[^\n]*\n[ \t]*[|:-][ \t|:-]+\r?(?:\n|\z)").is_match(self.after());
        let of_column = match self.name.strength {
            Strength::Strong if is_head => Trust::NotName,
            _ => Trust::Random,
        };
        let fields = self.line.rsplit('(').next().unwrap_or("");
        let (fields, found, n_rows, trust) = match (insert.find(self.after()), tail.find(self.after())) {
            (Some(list), _) => (fields, list, 1, Trust::Any),
            (_, Some(tail)) if head.is_match(self.line) => (self.line, tail, MAX_ROWS, of_column),
            _ => return Vec::new(),
        };
        let delimiter = fields
            .chars()
            .chain(next.chars())
            .find(|c| "|,;\t".contains(*c))
            .unwrap_or(',');
        let index = fields.matches(delimiter).count();
        let n_cells = |line: &str| line.split(delimiter).count();
        let n_columns = index + n_cells(next);
        // The elements of a list in code.
        if n_rows > 1 && delimiter != '|' && next.trim_end().ends_with(delimiter) {
            return Vec::new();
        }
        let mut at = self.name.end() + found.end();
        let mut cells = Vec::new();
        for row in self.text[at..].split_inclusive('\n').take(n_rows) {
            let is_row = n_rows == 1 || delimiter == '|' || n_cells(row) == n_columns;
            let Some(cell) = row.split(delimiter).nth(index).filter(|_| is_row) else {
                break;
            };
            let is_edge = |c: char| c.is_whitespace() || "\"'`*();".contains(c);
            let word = cell.trim_matches(is_edge);
            let start = at
                + row
                    .split(delimiter)
                    .take(index)
                    .map(|cell| cell.len() + 1)
                    .sum::<usize>();
            let start = start + cell.len() - cell.trim_start_matches(is_edge).len();
            // Neither the line between the head and the body of a table, nor prose.
            let is_word = word.contains(char::is_alphanumeric) && !word.contains(char::is_whitespace);
            if (is_word || n_rows == 1) && is_meant(word, trust) && (trust < Trust::Any || cell.contains(['\'', '"'])) {
                cells.push(start..start + word.len());
            }
            at += row.len();
        }
        cells
    }

    /// Finds the value at `at`: a block, bytes, literals, words or a word.
    fn value(&self, at: usize, trust: Trust) -> Vec<Range<usize>> {
        let tag = form!(r"\A(?:[!&][\w!:/.-]*[ \t]+)*(?:\*\*)?");
        let at = at + tag.find(&self.text[at..]).map_or(0, |tag| tag.end());
        let column = self.line.trim_end_matches(['"', '\'']).len();
        let is_random = |word: &str| is_meant(word, Trust::Random);
        let bytes = || form!(BYTES).captures(&self.text[at..line_end(self.text, at)])?.get(1);
        let bytes = || bytes().map(|bytes| at + bytes.start()..at + bytes.end());
        let block = (trust != Trust::Key)
            .then(|| value::block(self.text, at, column))
            .flatten()
            .filter(|lines| trust > Trust::Random || self.text[lines.clone()].split_whitespace().any(is_random));
        if let Some(found) = block.or_else(bytes) {
            return vec![found];
        }
        let may_be_words = self.is_first() && self.name.strength == Strength::Strong && trust != Trust::Any;
        let words = || value::words(self.text, at, self.text[..at].trim_end().ends_with('='));
        let words = may_be_words.then(words).flatten();
        let word = words.or_else(|| value::word(self.text, at, self.in_string, trust));
        let mut literals = value::literals(self.text, at, false);
        literals.retain(|literal| trust != Trust::Key || is_meant(&self.text[literal.clone()], trust));
        literals.into_iter().chain(word).collect()
    }

    fn literal(&self, at: usize, trust: Trust) -> Option<Range<usize>> {
        value::literal_at(self.text, at).filter(|literal| is_meant(&self.text[literal.clone()], trust))
    }

    /// Returns true if the line begins with the name.
    fn is_first(&self) -> bool {
        self.line.bytes().all(|byte| b" \t-\"'$#/*".contains(&byte))
    }

    fn before(&self) -> &str {
        &self.text[..self.name.start]
    }

    fn after(&self) -> &str {
        &self.text[self.name.end()..]
    }
}
