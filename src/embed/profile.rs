//! Identifies how a vector was computed: everything that determines it besides the text.

use std::fmt;

/// The properties of an embedding method. Vectors of different profiles are never compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// The name of the model, for display.
    pub model: String,
    /// The identity of the weights: the BLAKE3 hash of the model's files in hexadecimal, or the revision that a server
    /// reports.
    pub digest: String,
    /// Number of components of each vector.
    pub dim: usize,
    /// A description of all other properties that vectors depend on, for example pooling and prefixes.
    pub recipe: String,
}

impl Profile {
    /// Returns the id of the profile: the first 16 bytes of the BLAKE3 hash over all fields. Each text is prefixed with
    /// its length.
    pub fn id(&self) -> ProfileId {
        let mut hasher = blake3::Hasher::new_derive_key("codescout embedding profile 1");
        for field in [&self.model, &self.digest, &self.recipe] {
            hasher.update(&(field.len() as u64).to_le_bytes());
            hasher.update(field.as_bytes());
        }
        hasher.update(&(self.dim as u64).to_le_bytes());
        let mut id = [0; 16];
        id.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
        ProfileId(id)
    }
}

/// Identifies a [`Profile`] in keys and file headers. Printed as lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProfileId(pub [u8; 16]);

impl fmt::Display for ProfileId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ProfileId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ProfileId({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile(model: &str, digest: &str, dim: usize, recipe: &str) -> Profile {
        Profile {
            model: model.into(),
            digest: digest.into(),
            dim,
            recipe: recipe.into(),
        }
    }

    #[test]
    fn every_field_changes_the_id() {
        let base = profile("m", "d", 4, "r").id();
        for other in [
            profile("n", "d", 4, "r"),
            profile("m", "e", 4, "r"),
            profile("m", "d", 5, "r"),
            profile("m", "d", 4, "s"),
        ] {
            assert_ne!(other.id(), base, "{other:?}");
        }
        assert_ne!(profile("md", "", 4, "r").id(), base, "fields must not run together");
    }
}
