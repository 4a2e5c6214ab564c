//! Finds the values of names that suggest secrets.

use crate::model::start_of;
use std::ops::Range;

use regex::{Match, Regex};

use super::name::{Name, Strength, names};
use super::value::{self, Trust, last_bytes, line_end};

/// Maximum distance between a name and its value. The limit makes the time proportional to the length of the text.
const MAX_BYTES: usize = 4 << 10;

pub(super) fn find(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut line = Line::default();
    for name in names(text) {
        line.read_to(text, name.start);
        let place = Place {
            text: start_of(text, name.end() + MAX_BYTES),
            name,
            line: &line,
        };
        found.extend(place.values());
    }
    found
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
                (b'\n', _) => {
                    self.quote = None;
                    self.start = self.end + 1;
                }
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
    text: &'t str,
    name: Name<'t>,
    line: &'t Line,
}

impl Place<'_> {
    fn values(&self) -> Vec<Range<usize>> {
        let of = [
            Self::assigned,
            Self::compared,
            Self::passed,
            Self::listed,
            Self::enclosed,
            Self::after_space,
            Self::paired,
            Self::paired_before,
        ];
        of.iter().flat_map(|of| of(self)).collect()
    }

    /// Finds values in `name = value`, `"name": value`, `["name"] = value` and `name Type = value`.
    fn assigned(&self) -> Vec<Range<usize>> {
        let sign = form!(
            r#"\A(?:\\*["'`](?:\s*\])?|\*\*|(?:\s*\])?(?:\[[^\]\n]{0,20}\]| ?\{[^{}\n]{0,40}\})?[?!]?(?:[ \t]+[*A-Za-z][\w.*\[\]]*)?)([ \t]*)(:[=-]|=>|<-|\|\||\?\?|[+.?|]{0,2}=|:|：|＝)([ \t]*)"#
        );
        let tuple = form!(r"^\s*(?:[a-z]+ )?[\w\s,]+,\s*$");
        let Some(found) = sign.captures(self.after()) else {
            return Vec::new();
        };
        let (before, sign, behind) = (&found[1], &found[2], &found[3]);
        let at = self.name.end() + found[0].len();
        if sign != "=>" && behind.is_empty() && self.text[at..].starts_with(['=', '~', ':']) {
            return Vec::new();
        }
        // A cross-reference or symbol in prose, as in "Never pass :ref:`signal` as sender".
        if sign == ":" && !before.is_empty() && self.text[at..].starts_with(|c: char| c.is_ascii_alphabetic()) {
            return Vec::new();
        }
        // An assignment of several values: `user, password = "…", "…"`.
        if self.is_behind(tuple) {
            return value::arguments(&self.text[..line_end(self.text, at)], at, self.quote());
        }
        // An assignment without spaces, as in environment variables, URLs, flags, properties files and YAML.
        let is_tight = sign == "=" && before.is_empty() && behind.is_empty();
        let is_part = self.name.strength > Strength::Mentions && self.before().ends_with(['?', '&', ';', ':', '-']);
        let is_entry = self.is_first() && self.name.strength == Strength::Strong && (is_tight || sign == ":");
        if is_tight && (self.name.is_upper() || is_part) || is_entry && value::is_entry(self.text, at) {
            self.value(at, Trust::Any)
        } else {
            self.value(at, self.trust())
        }
    }

    /// Finds values in comparisons such as `name == "value"` if they do not look like words.
    fn compared(&self) -> Vec<Range<usize>> {
        let sign = form!(r#"\A(?:["'`]?\s*\])?\s*(?:[!=]==?|\.equals\()\s*"#);
        match sign.find(self.after()) {
            Some(sign) if self.name.strength == Strength::Strong => self.random_literals(self.name.end() + sign.end()),
            _ => Vec::new(),
        }
    }

    /// Finds values in `setName("value")`, `.name("user", "value")` and `Name{"value"}`. In other calls, only values
    /// that do not look like words.
    fn passed(&self) -> Vec<Range<usize>> {
        let setter = form!(
            r"(?i)(?:^|\.)_*(?:set\w*|(?-i:(?:with|use|put|add|With|Use|Put|Add)[A-Z_]\w*)|\w*(?:basic|bearer)_?auth|k?(?:passw|passp|secret|api|access|private|db|user|store_?p|key_?p)\w*)$"
        );
        let open = form!(r"\A[({]\s*");
        let Some(at) = open.find(self.after()).map(|open| self.name.end() + open.end()) else {
            return Vec::new();
        };
        let is_setter = || setter.is_match(self.name.text) || self.before().ends_with("new ");
        match self.name.strength {
            Strength::Mentions => Vec::new(),
            _ if value::is_literal(self.text, at) && is_setter() => value::arguments(self.text, at, self.quote()),
            Strength::Strong => self.random_literals(at),
            Strength::Weak => Vec::new(),
        }
    }

    /// Finds values in `("name", "value")`, `{"name", "value"}`, `"--name", "value"` and `set :name, "value"`. In other
    /// lists, only values that do not look like words.
    fn listed(&self) -> Vec<Range<usize>> {
        let comma = form!(r#"\A["']?\s*,\s*"#);
        let symbol = form!(r"\bset[ (]:$");
        let Some(comma) = comma.find(self.after()) else {
            return Vec::new();
        };
        let at = self.name.end() + comma.end();
        let is_quoted = self.after().starts_with(['"', '\'']);
        let is_flag = is_quoted && self.before().ends_with('-') || symbol.is_match(last_bytes(self.before(), 40));
        let is_first = self.before().trim_end_matches(['"', '\'']).ends_with(['(', '{']);
        let is_last = |literal: &Range<usize>| {
            let after = self.text[literal.end..].trim_start_matches(['"', '\'', '`', '#']);
            after.trim_start().starts_with([')', '}'])
        };
        let is_item = is_quoted || self.before().ends_with(':');
        if self.name.strength == Strength::Mentions || !(is_flag || is_item) || !value::is_literal(self.text, at) {
            return Vec::new();
        }
        let is_secret = |literal: &Range<usize>| {
            is_flag || is_first && is_last(literal) || value::is_random_word(&self.text[literal.clone()])
        };
        self.literals(at).into_iter().filter(is_secret).collect()
    }

    /// Finds values in `<name>value</name>`, also as CDATA.
    fn enclosed(&self) -> Vec<Range<usize>> {
        let tag = form!(r"<(?:[\w-]+:)?$");
        let end = form!(r"\A(?:\s[^<>]*)?>");
        let is_tag = tag.is_match(last_bytes(self.before(), 40));
        let end = is_tag.then(|| end.find(self.after())).flatten();
        end.and_then(|end| self.content(end)).into_iter().collect()
    }

    /// Finds values in `--name value`, `ENV name value`, `name "value"`, and `name value` as a line.
    fn after_space(&self) -> Vec<Range<usize>> {
        let space = form!(r"\A[ \t]+(?:<<<[ \t]*)?");
        let command = form!(r"(?i)^\s*(?:env|arg|setx?|setenv|#\s*define|.*\sconfig(?:ure)?\s+set)\s(?:.*\s)?$");
        let heredoc = form!(r#"\A<<[-~]?\\?["']?[A-Z_]"#);
        let rest = form!(r"\A[ \t]+\S+[ \t]*(?:\n|\z)");
        let Some(space) = space.find(self.after()) else {
            return Vec::new();
        };
        let at = self.name.end() + space.end();
        if heredoc.is_match(&self.text[at..]) {
            return value::block(self.text, at, 0).into_iter().collect();
        }
        let before = self.line_before();
        let is_argument = before.ends_with('-') || self.is_behind(command);
        // Excludes the verb "pass".
        let is_strong = self.name.strength == Strength::Strong && !self.name.text.eq_ignore_ascii_case("pass");
        let is_line = || is_strong && before.trim().is_empty() && rest.is_match(self.after());
        match value::is_literal(self.text, at) && !self.text[at..].starts_with('`') {
            true if is_argument || is_strong => self.literals(at),
            false if is_argument && self.name.is_upper() => self.word(at, Trust::Any).into_iter().collect(),
            false if is_argument || is_line() => self.word(at, self.trust()).into_iter().collect(),
            _ => Vec::new(),
        }
    }

    /// Finds values in `name: NAME` followed by `value: …`, `variable "name" { default = "…" }`, `key="name" value="…"`
    /// and `<key>name</key><string>…`.
    fn paired(&self) -> Vec<Range<usize>> {
        let value = form!(
            r#"(?i)\A\\?["'`]?(?:[^<>{}]{0,8}\{)?[^<>{}]{0,300}?\b(?:value|default|content)\\?["'`]?\s*(?:[:=]|=>)\s*"#
        );
        let tag = form!(r#"\A["']?[^<>]{0,200}(?:</key>\s*<\w+>|>\s*(?:<\w+>)?)"#);
        let next = form!(r#"(?i)\b(?:name|key)["'`]?\s*[:=]"#);
        if !self.is_named() {
            return Vec::new();
        }
        let content = tag.find(self.after()).and_then(|tag| self.content(tag));
        let value = value.find(self.after()).filter(|value| !next.is_match(value.as_str()));
        let value = value.map(|value| self.value(self.name.end() + value.end(), self.trust_of_text()));
        content.into_iter().chain(value.into_iter().flatten()).collect()
    }

    /// Finds values in `value="…" key="name"`.
    fn paired_before(&self) -> Vec<Range<usize>> {
        let value = form!(
            r#"(?i)\bvalue\\?["'`]?\s*(?:[:=]|=>)\s*\\?(?:"([^"\n]{4,})"|'([^'\n]{4,})'|([^\s"'<>{}]{4,}))[,;]?\s*\\?["']?(?:key|name)\\?["']?\s*(?:[:=]|=>)\s*\\?["']?$"#
        );
        if !self.is_named() {
            return Vec::new();
        }
        let before = last_bytes(self.before(), 300);
        let start = self.name.start - before.len();
        let group = value
            .captures(before)
            .and_then(|value| value.iter().skip(1).flatten().next());
        let literal = group.filter(|group| !value::is_reference(group.as_str()));
        literal
            .map(|group| start + group.start()..start + group.end())
            .into_iter()
            .collect()
    }

    /// Returns true if the name is itself the value of a key such as `name`.
    fn is_named(&self) -> bool {
        let key = form!(
            r#"(?i)(?:\b(?:name|key|id|type|variable|property|param(?:eter)?)\\?["'`]?\s*(?:[:=]|=>)?\s*\\?["'`]?|<key>)$"#
        );
        key.is_match(last_bytes(self.before(), 40))
    }

    /// Finds the value at `at`: a block, literals, words or a word.
    fn value(&self, at: usize, trust: Trust) -> Vec<Range<usize>> {
        let tag = form!(r"\A(?:[!&][\w!:/.-]*[ \t]+)*(?:\*\*)?");
        let at = at + tag.find(&self.text[at..]).map_or(0, |tag| tag.end());
        let column = self.line_before().trim_end_matches(['"', '\'']).len();
        let long_string = || value::long_string(self.text, at, trust);
        if let Some(found) = value::block(self.text, at, column).or_else(long_string) {
            return vec![found];
        }
        let words = || {
            if self.is_first() && self.name.strength == Strength::Strong && trust != Trust::Any {
                value::words(self.text, at, self.text[..at].trim_end().ends_with('='))
            } else {
                None
            }
        };
        let word = words().or_else(|| self.word(at, trust));
        self.literals(at).into_iter().chain(word).collect()
    }

    fn literals(&self, at: usize) -> Vec<Range<usize>> {
        value::literals(self.text, at, self.quote())
    }

    /// Finds literals that do not look like words.
    fn random_literals(&self, at: usize) -> Vec<Range<usize>> {
        let mut literals = if value::is_literal(self.text, at) {
            self.literals(at)
        } else {
            Vec::new()
        };
        literals.retain(|literal| value::is_random_word(&self.text[literal.clone()]));
        literals
    }

    fn word(&self, at: usize, trust: Trust) -> Option<Range<usize>> {
        value::word(self.text, at, self.quote(), trust)
    }

    /// Returns the text from the end of `tag`, a match after the name, to the next tag.
    fn content(&self, tag: Match<'_>) -> Option<Range<usize>> {
        let start = self.name.end() + tag.end();
        let text = &self.text[start..];
        let text = &text[text.len() - text.trim_start().len()..];
        let start = self.text.len() - text.len();
        if let Some(data) = text.strip_prefix("<![CDATA[") {
            let start = self.text.len() - data.len();
            return Some(start..start + data.find("]]>").unwrap_or(data.len()));
        }
        let (content, next) = text.split_at(text.find('<')?);
        let is_secret =
            next.starts_with("</") && value::word(content.trim_end(), 0, None, self.trust_of_text()).is_some();
        is_secret.then_some(start..start + content.trim_end().len())
    }

    fn trust(&self) -> Trust {
        match self.name.strength {
            Strength::Strong => Trust::NotName,
            _ => Trust::Random,
        }
    }

    /// Like [`Self::trust`], for places that contain only data.
    fn trust_of_text(&self) -> Trust {
        if self.name.strength == Strength::Strong || self.name.is_upper() {
            Trust::Any
        } else {
            Trust::Random
        }
    }

    /// Returns true if the part of the line before the name is short and matches `form`.
    fn is_behind(&self, form: &Regex) -> bool {
        const MAX_BYTES: usize = 200;
        let before = self.line_before();
        before.len() <= MAX_BYTES && form.is_match(before)
    }

    /// Returns the quote that is still open after the name.
    fn quote(&self) -> Option<u8> {
        let closes = |quote: &u8| self.after().as_bytes().first() == Some(quote);
        self.line.quote.filter(|quote| !closes(quote))
    }

    /// Returns true if the line begins with the name.
    fn is_first(&self) -> bool {
        self.line_before().bytes().all(|byte| b" \t-\"'$".contains(&byte))
    }

    fn line_before(&self) -> &str {
        &self.text[self.line.start..self.name.start]
    }

    fn before(&self) -> &str {
        &self.text[..self.name.start]
    }

    fn after(&self) -> &str {
        &self.text[self.name.end()..]
    }
}
