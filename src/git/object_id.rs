//! From gix's object ids to the model's and back.

use crate::model::Oid;

/// The id in the model's form.
pub(super) fn from_gix(id: &gix::oid) -> Oid {
    Oid::from_bytes(id.as_bytes()).expect("git ids have 20 or 32 bytes")
}

/// The id in gix's form.
pub(super) fn to_gix(id: Oid) -> gix::ObjectId {
    gix::ObjectId::from_bytes_or_panic(id.as_bytes())
}
