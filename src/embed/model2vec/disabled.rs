//! Replaces the Model2Vec loader in builds without the feature.

use std::path::Path;

use crate::embed::{Embedder, OpenError};

/// Always returns [`OpenError::NotBuilt`].
pub fn open(folder: &Path) -> Result<Box<dyn Embedder>, OpenError> {
    Err(OpenError::NotBuilt {
        path: folder.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_missing_feature_is_named() {
        let error = open(Path::new("models/any")).err().map(|error| error.to_string());
        assert_eq!(
            error.as_deref(),
            Some("cannot use Model2Vec folder models/any: this build lacks the feature `model2vec`")
        );
    }
}
