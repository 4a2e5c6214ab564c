//! Writes the text of answers as HTML, with links for paths and definitions.

use maud::{Markup, PreEscaped, Render, html};

use super::url::Target;
use crate::model::typed;
use crate::model::unprintable::visible;
use crate::ops::{Page, Row, Sink, Style};

/// Text as HTML, a `div` for each line.
pub(super) struct Html<'a> {
    target: &'a Target,
    text: String,
    line: String,
    /// The path that the current line begins with; in an outline, the last path.
    path: Option<String>,
}

impl<'a> Html<'a> {
    fn new(target: &'a Target) -> Self {
        Self {
            target,
            text: String::new(),
            line: String::new(),
            path: None,
        }
    }

    /// Returns the link of the name of a definition behind its place, as in results of a search.
    fn link_of_name(&self, name: &str) -> Option<String> {
        let path = self.path.as_ref().filter(|_| self.target.page == "search")?;
        let is_name = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '.' | '~' | '$');
        (!name.is_empty() && name.chars().all(is_name)).then(|| self.target.definition(&format!("{path}#{name}")))
    }

    /// Returns the link of a line number in an outline, behind the path of its file.
    fn link_of_line(&self, text: &str) -> Option<String> {
        let path = self.path.as_ref().filter(|_| self.target.page == "outline")?;
        Some(self.target.file(path, text.trim().parse().ok()?))
    }
}

/// Returns the rows of an answer, with the text before and after them.
pub(super) fn rows<F, R: Row>(target: &Target, page: &Page<F, R>) -> Markup {
    let mut out = Html::new(target);
    let limit = page.paging.limit.unwrap_or(usize::MAX).min(page.rows.len());
    page.head.replay(&mut out);
    for (number, row) in page.rows[..limit].iter().enumerate() {
        if number > 0 && row.is_apart() {
            out.text.push_str("<br>");
        }
        row.render(&mut out);
    }
    page.tail.replay(&mut out);
    let total = page.n_selected.filter(|total| *total > limit);
    html! {
        div.answer { (PreEscaped(out.text)) }
        @for note in &page.notes { p.faint { (visible(note)) } }
        @if let Some(total) = total { p.faint { (limit) " of " (total) " · " a href=(target.with_all()) { "show all" } } }
    }
}

impl Sink for Html<'_> {
    fn span(&mut self, style: Style, text: &str) {
        let shown = visible(text);
        let markup = match style {
            Style::Plain => html! { (shown) },
            Style::Path => {
                let text = typed(text.trim());
                let in_it = self.target.in_repository(&text).map_or(&*text, |(_, path)| path);
                let path = in_it.split([':', '#']).next().unwrap_or_default();
                let path = &text[..text.len() - in_it.len() + path.len()];
                self.path = Some(path.to_owned()).filter(|_| self.line.is_empty());
                match link_of(self.target, &text) {
                    Some(link) => html! { a href=(link) { (shown) } },
                    None => html! { (shown) },
                }
            }
            Style::Name => match self.link_of_name(text.trim()) {
                Some(link) => html! { a href=(link) { b { (shown) } } },
                None => html! { b { (shown) } },
            },
            Style::Commit if self.target.is_about_all() => html! { (shown) },
            Style::Commit => html! { a href=(self.target.commit(text.trim_start_matches('^'))) { (shown) } },
            Style::Fact => match self.link_of_line(text) {
                Some(link) => html! { a.faint href=(link) { (shown) } },
                None => html! { span.faint { (shown) } },
            },
            Style::Added => html! { span.add { (shown) } },
            Style::Removed => html! { span.del { (shown) } },
            Style::Match => html! { mark { (shown) } },
            Style::Comment | Style::Literal | Style::Keyword => html! { span class=[syntax_class(style)] { (shown) } },
        };
        markup.render_to(&mut self.line);
    }

    fn end(&mut self) {
        let line = std::mem::take(&mut self.line);
        self.path.take_if(|_| self.target.page != "outline");
        html! { div.line { (PreEscaped(line)) } }.render_to(&mut self.text);
    }
}

/// Returns the class of a part of code.
pub(super) fn syntax_class(style: Style) -> Option<&'static str> {
    match style {
        Style::Comment => Some("comment"),
        Style::Literal => Some("string"),
        Style::Keyword => Some("keyword"),
        _ => None,
    }
}

/// Returns the link for a path as answers write it: `path`, `path:10`, `path:10-20`, `path#name` or `folder/`.
fn link_of(target: &Target, text: &str) -> Option<String> {
    let is_in_none = target.is_about_all() && target.in_repository(text).is_none();
    if text.is_empty() || text.starts_with('/') || is_in_none {
        return None;
    }
    if text.contains('#') {
        return Some(target.definition(text));
    }
    let is_lines = |lines: &str| lines.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    let (path, lines) = match text.rsplit_once(':') {
        Some((path, lines)) if !lines.is_empty() && is_lines(lines) => (path, lines),
        _ => (text, ""),
    };
    let line = lines
        .split('-')
        .next()
        .and_then(|line| line.parse().ok())
        .unwrap_or_default();
    Some(target.file(path, line))
}
