//! Converts between gix's object ids and [`Oid`].

use crate::model::Oid;

pub(super) fn from_gix(id: &gix::oid) -> Oid {
    Oid::from_bytes(id.as_bytes()).expect("git ids have 20 or 32 bytes")
}

pub(super) fn to_gix(id: Oid) -> gix::ObjectId {
    gix::ObjectId::from_bytes_or_panic(id.as_bytes())
}
