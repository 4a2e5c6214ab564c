//! Computes the order of candidates from their features.
//!
//! A candidate's score is a weighted sum of features, each between 0 and about 1. There are separate weights for
//! queries that are names and for prose. `docs/evaluation.md` describes how the weights were chosen and how well they
//! perform.

/// The number of features.
pub const N_FEATURES: usize = 27;

/// The names of the features, in the order of the weights.
pub const FEATURES: [&str; N_FEATURES] = [
    "bm25",
    "bm25_file",
    "cosine",
    "cosine_file_mean",
    "cosine_file_best",
    "cosine_path",
    "covered",
    "covered_file",
    "named",
    "defines",
    "defines_in_container",
    "file_name",
    "folder_names",
    "rank_lexical",
    "rank_dense",
    "is_test",
    "is_peripheral",
    "is_function",
    "is_type",
    "is_prose",
    "is_module_text",
    "brevity",
    "exact_text",
    "sparse",
    "messages",
    "place",
    "verbatim",
];

/// Weight of literal matches. It is larger than the sum of all other weights, so literal matches come first.
const EXACT_TEXT: f32 = 5.0;
/// Weight of the places in a query. It is larger than all others together.
const PLACE: f32 = 10.0;
/// Weight of test code if the query asks for tests.
const WANTED_TEST: f32 = 0.8;

/// The features of a candidate.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Features {
    /// BM25 of the chunk, relative to the best chunk.
    pub bm25: f32,
    /// BM25 of the whole file, relative to the best file.
    pub bm25_file: f32,
    /// Cosine to the query, relative to the best candidate.
    pub cosine: f32,
    /// Mean cosine of the chunks of its file, relative to the best candidate.
    pub cosine_file_mean: f32,
    /// Best cosine of a chunk of its file, relative to the best candidate.
    pub cosine_file_best: f32,
    /// Cosine of the words of its path, relative to the best candidate.
    pub cosine_path: f32,
    /// Share of the query's idf that belongs to terms in the chunk.
    pub covered: f32,
    /// Share of the query's idf that belongs to terms in its file.
    pub covered_file: f32,
    /// Share of the query's idf that belongs to terms in names that the chunk defines.
    pub named: f32,
    /// How well the chunk's definition matches a name from the query; 0 if the chunk defines no such name.
    pub defines: f32,
    /// 1 if that definition is in the container given in the query.
    pub defines_in_container: f32,
    /// Share of the query's idf that belongs to terms in the file's name.
    pub file_name: f32,
    /// Share of the query's idf that belongs to terms in the names of its folders.
    pub folder_names: f32,
    /// 60 / (60 + rank − 1) for its 1-based rank by BM25; 0 without a rank.
    pub rank_lexical: f32,
    /// 60 / (60 + rank − 1) for its 1-based rank by cosine; 0 without a rank.
    pub rank_dense: f32,
    /// 1 for test code.
    pub is_test: f32,
    /// 1 for examples, benchmarks, documentation tooling and the like.
    pub is_peripheral: f32,
    /// 1 for a callable item.
    pub is_function: f32,
    /// 1 for a type.
    pub is_type: f32,
    /// 1 for a section of a document.
    pub is_prose: f32,
    /// 1 for imports, licence headers and statements at file level.
    pub is_module_text: f32,
    /// Shortness: 1 / (1 + tokens / 20).
    pub brevity: f32,
    /// Share of the query's literal texts that the chunk contains.
    pub exact_text: f32,
    /// Dot product of its sparse vector and the query's, relative to the best candidate, times the configured weight; 0
    /// without sparse vectors.
    pub sparse: f32,
    /// BM25 of the messages of the commits that changed its file, relative to the best candidate; 0 for names and
    /// without recorded commits.
    pub messages: f32,
    /// 1 for the first place that the query gives, a little less for each further one; 0 for other code.
    pub place: f32,
    /// Share of the query's idf in the words that stand in the chunk as in the query; 0 unless they are a whole message
    /// or the whole query.
    pub verbatim: f32,
}

impl Features {
    /// Returns the features in the order of [`FEATURES`].
    pub fn to_array(self) -> [f32; N_FEATURES] {
        [
            self.bm25,
            self.bm25_file,
            self.cosine,
            self.cosine_file_mean,
            self.cosine_file_best,
            self.cosine_path,
            self.covered,
            self.covered_file,
            self.named,
            self.defines,
            self.defines_in_container,
            self.file_name,
            self.folder_names,
            self.rank_lexical,
            self.rank_dense,
            self.is_test,
            self.is_peripheral,
            self.is_function,
            self.is_type,
            self.is_prose,
            self.is_module_text,
            self.brevity,
            self.exact_text,
            self.sparse,
            self.messages,
            self.place,
            self.verbatim,
        ]
    }
}

/// A weight for each feature.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Weights {
    /// The weights in the order of [`FEATURES`].
    pub by_feature: [f32; N_FEATURES],
}

impl Weights {
    /// Weights for queries that are names. In both sets of weights, `sparse` has half the weight of the cosine. That is
    /// a guess, because the user chooses the model.
    pub const NAME: Self = Self::of(&[
        ("bm25", 0.6),
        ("cosine", 0.3),
        ("cosine_file_mean", 0.05),
        ("cosine_file_best", 0.1),
        ("covered", 0.3),
        ("covered_file", 0.1),
        ("named", 0.6),
        ("defines", 1.0),
        ("defines_in_container", 1.0),
        ("file_name", 0.3),
        ("rank_lexical", 0.1),
        ("rank_dense", 0.1),
        ("is_test", -0.3),
        ("is_peripheral", -0.1),
        ("is_function", 0.1),
        ("is_type", 0.1),
        ("is_prose", -0.2),
        ("is_module_text", -0.2),
        ("brevity", -0.2),
        ("exact_text", EXACT_TEXT),
        ("sparse", 0.15),
        ("place", PLACE),
    ]);
    /// Weights for descriptions.
    pub const PROSE: Self = Self::of(&[
        ("bm25", 0.15),
        ("bm25_file", 0.35),
        ("cosine", 0.68),
        ("cosine_file_mean", 0.14),
        ("cosine_file_best", 0.18),
        ("cosine_path", 0.14),
        ("covered", 0.05),
        ("covered_file", 0.05),
        ("named", 0.1),
        ("defines", 0.5),
        ("defines_in_container", 1.0),
        ("file_name", 0.1),
        ("rank_dense", 0.1),
        ("is_test", -0.4),
        ("is_peripheral", -0.15),
        ("is_function", 0.25),
        ("is_type", 0.05),
        ("is_prose", -0.1),
        ("is_module_text", -0.2),
        ("brevity", -0.2),
        ("exact_text", EXACT_TEXT),
        ("sparse", 0.34),
        ("messages", 0.2),
        ("place", PLACE),
        ("verbatim", 2.0),
    ]);

    /// Sets weights by feature name. Other features have weight 0.
    const fn of(named: &[(&str, f32)]) -> Self {
        let mut by_feature = [0.0; N_FEATURES];
        let mut n_placed = 0;
        let mut feature = 0;
        while feature < N_FEATURES {
            let mut at = 0;
            while at < named.len() {
                if is_same(FEATURES[feature], named[at].0) {
                    by_feature[feature] = named[at].1;
                    n_placed += 1;
                }
                at += 1;
            }
            feature += 1;
        }
        assert!(n_placed == named.len(), "a weight names no feature");
        Self { by_feature }
    }

    /// Returns the weights for a query that asks for tests.
    pub fn for_tests(mut self) -> Self {
        for (weight, name) in self.by_feature.iter_mut().zip(FEATURES) {
            match name {
                "is_test" => *weight = WANTED_TEST,
                // What is tested is not what is asked for.
                "defines" | "defines_in_container" | "is_function" => *weight = 0.0,
                _ => {}
            }
        }
        self
    }

    /// Returns the weighted sum.
    pub fn score(&self, features: &Features) -> f32 {
        let products = features.to_array().into_iter().zip(self.by_feature);
        products.map(|(feature, weight)| feature * weight).sum()
    }
}

/// Compares two strings; usable in constants.
const fn is_same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    if a.len() != b.len() {
        return false;
    }
    let mut at = 0;
    while at < a.len() {
        if a[at] != b[at] {
            return false;
        }
        at += 1;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_are_in_the_order_of_their_names() {
        let features = Features {
            bm25: 1.0,
            brevity: 2.0,
            is_test: 3.0,
            ..Features::default()
        };
        let array = features.to_array();
        let value = |name: &str| FEATURES.iter().position(|known| *known == name).map(|at| array[at]);
        assert_eq!(
            (value("bm25"), value("brevity"), value("is_test")),
            (Some(1.0), Some(2.0), Some(3.0))
        );
        assert!(Weights::PROSE.score(&features) < 0.0);
    }
}
