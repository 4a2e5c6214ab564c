//! What all pages have: the bar with the search, the links of a file, and what is not known.

use maud::{DOCTYPE, Markup, html};

use super::url::{Target, encoded, shown};
use crate::model::unprintable::visible;
use crate::ops::ProvenanceOut;

/// The style and the script of all pages. Their paths contain a hash of their text.
pub(super) static STYLE: Asset = Asset {
    ending: "css",
    kind: "text/css; charset=utf-8",
    text: include_str!("app.css"),
};
static SCRIPT: Asset = Asset {
    ending: "js",
    kind: "text/javascript; charset=utf-8",
    text: include_str!("app.js"),
};

/// A file that pages load.
pub(super) struct Asset {
    ending: &'static str,
    pub(super) kind: &'static str,
    pub(super) text: &'static str,
}

impl Asset {
    /// Returns the file that is served at a path.
    pub(super) fn at(path: &str) -> Option<&'static Self> {
        [&STYLE, &SCRIPT].into_iter().find(|asset| asset.path() == path)
    }

    fn path(&self) -> String {
        let hash = blake3::hash(self.text.as_bytes()).to_hex();
        format!("/-/app-{}.{}", &hash[..12], self.ending)
    }
}

/// The content of a page of a repository.
pub(super) struct Content {
    pub(super) title: String,
    pub(super) body: Markup,
    pub(super) provenance: Option<ProvenanceOut>,
    /// The link under which the page stays as it is.
    pub(super) permanent: Option<String>,
}

/// Returns a page about a repository.
pub(super) fn page(target: &Target, content: &Content) -> String {
    let place = &target.place;
    let provenance = content.provenance.as_ref();
    let permanent = &content.permanent;
    let incomplete = provenance.map(ProvenanceOut::incomplete_because).unwrap_or_default();
    let views = ["file", "outline", "history", "blame"];
    let search = if target.is_about_all() {
        target.page("search")
    } else {
        format!("{}/{}", target.page("search"), encoded(&place.revision, "/"))
    };
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                (head(&shown(&content.title)))
                @if let Some(link) = permanent { link rel="canonical" href=(link); }
                @if provenance.is_some_and(ProvenanceOut::is_building) { meta http-equiv="refresh" content="3"; }
            }
            body {
                a.skip href="#main" { "Skip to content" }
                header {
                    nav aria-label="Repository" {
                        @if !target.is_about_all() {
                            a href=(target.link("tree", &place.revision, "")) { b { (visible(&target.repo)) } }
                            " " a href=(target.page("review")) { "review" }
                            " " a href=(target.link("life", &place.revision, "")) { "life" }
                            " " a href=(target.link("index", &place.revision, "")) { "index" } " "
                        }
                        a href="/" { "all repositories" }
                        " " a href="/-/help" { "help" }
                    }
                    form action=(search) role="search" {
                        input type="search" name="q" aria-label="Search" placeholder="search" value=[target.parameter("q")];
                        " " button { "Search" }
                    }
                }
                @if !target.is_about_all() { nav.path aria-label="Path" {
                    a.faint href=(target.link("refs", "", &place.path)) aria-label={ "revision " (visible(&place.revision)) } {
                        (visible(&place.revision))
                    }
                    ": "
                    (crumbs(target))
                    @if !place.path.is_empty() && target.page != "tree" {
                        span.views {
                            @for view in views {
                                " " a href=(target.link(view, &place.revision, &place.path)) aria-current=[(target.page == view).then_some("page")] { (view) }
                            }
                            " " a href=(target.link("raw", &place.revision, &place.path)) { "raw" }
                        }
                    }
                    @if let Some(link) = permanent { " " a href=(link) { "permalink" } }
                } }
                main id="main" {
                    h1 { (shown(&content.title)) }
                    (content.body)
                }
                @if !incomplete.is_empty() {
                    footer { h2 { "Not known here" } ul { @for why in incomplete { li.unknown { (visible(why)) } } } }
                }
            }
        }
    }
    .into_string()
}

/// Returns a page without a repository.
pub(super) fn plain_page(title: &str, body: &Markup) -> String {
    html! {
        (DOCTYPE)
        html lang="en" { head { (head(title)) } body { main { h1 { (visible(title)) } (body) } } }
    }
    .into_string()
}

fn head(title: &str) -> Markup {
    html! {
        meta charset="utf-8";
        meta name="viewport" content="width=device-width, initial-scale=1";
        title { (visible(title)) }
        link rel="icon" href="data:,";
        link rel="stylesheet" href=(STYLE.path());
        script src=(SCRIPT.path()) defer {}
    }
}

/// Returns a link for each folder on the way to a path.
fn crumbs(target: &Target) -> Markup {
    let (revision, path) = (&target.place.revision, &target.place.path);
    let ends = path.match_indices('/').map(|(at, _)| at);
    html! {
        a href=(target.link("tree", revision, "")) aria-label="root folder" { "/" }
        @for end in ends {
            " " a href=(target.link("tree", revision, &path[..end])) { (shown(path[..end].rsplit('/').next().unwrap_or_default())) } " /"
        }
        " " b { (shown(path.rsplit('/').next().unwrap_or_default())) }
    }
}
