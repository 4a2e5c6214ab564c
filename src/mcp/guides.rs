//! Help on demand: short, so that it is read.

const GUIDES: &[(&str, &str)] = &[
    ("search", include_str!("guides/search.md")),
    ("answers", include_str!("guides/answers.md")),
    ("errors", include_str!("guides/errors.md")),
    ("refs", include_str!("guides/refs.md")),
    ("repos", include_str!("guides/repos.md")),
];

/// What there are guides on.
pub(super) fn topics() -> Vec<&'static str> {
    GUIDES.iter().map(|(topic, _)| *topic).collect()
}

/// A guide.
pub(super) fn find(topic: &str) -> Option<&'static str> {
    GUIDES.iter().find(|(known, _)| *known == topic).map(|(_, text)| *text)
}
