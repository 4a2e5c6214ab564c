//! Short help texts that clients can request.

const GUIDES: &[(&str, &str)] = &[
    ("search", include_str!("guides/search.md")),
    ("answers", include_str!("guides/answers.md")),
    ("errors", include_str!("guides/errors.md")),
    ("refs", include_str!("guides/refs.md")),
    ("repos", include_str!("guides/repos.md")),
];

/// Returns the topics of the guides.
pub(super) fn topics() -> Vec<&'static str> {
    GUIDES.iter().map(|(topic, _)| *topic).collect()
}

/// Returns the text of a guide.
pub(super) fn find(topic: &str) -> Option<&'static str> {
    GUIDES.iter().find(|(known, _)| *known == topic).map(|(_, text)| *text)
}
