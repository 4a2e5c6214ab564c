//! Measures how far the meaning of a text moved: the distance between the vectors of its two versions.
//!
//! The vectors are those of the built-in model, for which the words below were calibrated. They are computed from the
//! two texts, because a stored vector belongs to a chunk, which may hold several small definitions.

use serde::Serialize;

use crate::embed::{Side, StaticModel};

/// The distances that separate three kinds of changes best, rounded: reformatting from new names, and these from new
/// bodies. `tests/bench/drift.py` finds them; docs/evaluation.md says how often they are right.
const RENAME_FROM: f32 = 0.01;
const REWRITE_FROM: f32 = 0.2;

/// How far the meaning of a text moved.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct DriftOut {
    /// The cosine distance of the vectors of both versions: 0 if they have the same direction.
    distance: f64,
    as_much_as: Extent,
}

/// The kind of change that most often moves a text as far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Extent {
    Reformat,
    Rename,
    Rewrite,
}

impl DriftOut {
    /// Returns the drift from `old` to `new`; `None` if the model knows no word of one of them, so that it has no
    /// vector.
    pub(crate) fn between(model: &StaticModel, old: &[u8], new: &[u8]) -> Option<Self> {
        let [old, new] = [old, new].map(|text| model.embed(text, Side::Document));
        let dot: f32 = old.vector.iter().zip(&new.vector).map(|(a, b)| a * b).sum();
        let has_vectors = old.weight > 0.0 && new.weight > 0.0;
        has_vectors.then(|| Self::of((1.0 - dot).max(0.0)))
    }

    fn of(distance: f32) -> Self {
        Self {
            distance: f64::from(distance * 1000.0).round() / 1000.0,
            as_much_as: match distance {
                _ if distance < RENAME_FROM => Extent::Reformat,
                _ if distance < REWRITE_FROM => Extent::Rename,
                _ => Extent::Rewrite,
            },
        }
    }

    /// Returns true if nothing is left of the distance when it is rounded.
    pub(crate) fn is_zero(self) -> bool {
        self.distance == 0.0
    }

    /// Describes the drift, or says that there is no vector.
    pub(crate) fn to_text(drift: Option<Self>) -> String {
        let Some(Self { distance, as_much_as }) = drift else {
            return "drift unknown (no vector)".to_owned();
        };
        let like = match as_much_as {
            Extent::Reformat if distance == 0.0 => return "drift 0".to_owned(),
            Extent::Reformat => "a reformat",
            Extent::Rename => "new names",
            Extent::Rewrite => "a rewrite",
        };
        format!("drift {distance:.3} (as much as {like})")
    }
}
