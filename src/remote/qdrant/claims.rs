//! Claims, which announce to other clones that a clone is embedding some chunks.
//!
//! Each claim is a field with a random name in a separate point of the repository, which has no vector. Its value is
//! `"AT UNTIL KEYS"`: milliseconds since 1970, seconds since 1970, and the first four bytes of the id of each claimed
//! chunk's point in hexadecimal. Fields are set and deleted one by one, so clones do not overwrite each other's claims.
//! Claims only save work: if a claim is lost, or a clock is wrong, two clones compute the same vectors.

use std::collections::HashSet;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value, json};

use super::super::client::{Call, Request};
use super::points::{random, seconds_now};
use super::wire::{self, NewPoint, Points, Record, Update};
use super::{PointId, Qdrant, bytes_of, patient, to_hex};
use crate::index::shared::{Claim, Claimable, Claims, SharedError};
use crate::model::ChunkKey;

/// Prefix of the names of claim fields.
const CLAIM: &str = "claim_";
/// Maximum duration of a claim. A longer claim comes from a wrong clock, or from an embedder that is too slow to wait
/// for.
const MAX_LEASE: Duration = Duration::from_secs(3600);
/// Maximum size of all claims of a repository. Enough for hundreds of requests in flight.
const MAX_CLAIM_BYTES: u64 = 1 << 20;
/// Time limit for releasing a claim. A claim that is not released expires.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(3);

/// The beginning of a point's id.
type Prefix = [u8; 4];

struct Other {
    name: String,
    at: u64,
    is_live: bool,
    keys: HashSet<Prefix>,
}

impl Claims for Qdrant {
    fn claim(
        &self,
        keys: &[ChunkKey],
        claimable: Claimable,
        lease: Duration,
        interrupt: &AtomicBool,
    ) -> Result<Claim, SharedError> {
        let (there, others) = self.look(keys, interrupt)?;
        let is_others = claimed_by(others.as_deref().unwrap_or_default());
        let is_free = |key: &ChunkKey| {
            let is_there = claimable == Claimable::Missing && there.contains(&self.point_of(*key));
            !is_there && !is_others.contains(&self.prefix_of(*key))
        };
        let mut ours: Vec<bool> = keys.iter().map(is_free).collect();
        if !ours.contains(&true) {
            let names = Vec::new();
            return Ok(Claim { ours, names });
        }
        if others.is_none() {
            self.make_claims_point(interrupt)?;
        }
        let (name, at) = (format!("{CLAIM}{}", to_hex(&random()[..8])), millis_now());
        let until = seconds_now() + lease.min(MAX_LEASE).as_secs();
        let claimed = keys.iter().zip(&ours).filter(|(_, is_ours)| **is_ours);
        let claimed: String = claimed.map(|(key, _)| to_hex(&self.prefix_of(*key))).collect();
        let body = json!({
            "payload": { (name.as_str()): format!("{at} {until} {claimed}") },
            "points": [self.claims_id().to_string()],
        });
        self.change("/points/payload?wait=true", &body, None, interrupt)?;
        // If two clones claim the same chunks at once, both see both claims, and the earlier claim wins.
        let (_, others) = self.look(&[], interrupt)?;
        let mut others = others.unwrap_or_default();
        let mut names: Vec<String> = others
            .iter()
            .filter(|other| !other.is_live)
            .map(|other| other.name.clone())
            .collect();
        others.retain(|other| (other.at, &other.name) < (at, &name));
        let is_others = claimed_by(&others);
        for (key, is_ours) in keys.iter().zip(&mut ours) {
            *is_ours &= !is_others.contains(&self.prefix_of(*key));
        }
        names.push(name);
        Ok(Claim { ours, names })
    }

    fn claimed(&self, keys: &[ChunkKey], interrupt: &AtomicBool) -> Result<Vec<bool>, SharedError> {
        let (_, others) = self.look(&[], interrupt)?;
        let is_others = claimed_by(&others.unwrap_or_default());
        Ok(keys
            .iter()
            .map(|key| is_others.contains(&self.prefix_of(*key)))
            .collect())
    }

    /// Releases a claim and removes expired claims. If the request fails, the claim expires later.
    fn release(&self, claim: &Claim) {
        if claim.names.is_empty() {
            return;
        }
        let body = json!({ "keys": claim.names, "points": [self.claims_id().to_string()] });
        let request = Request::post(&self.path("/points/payload/delete?wait=false"), &body);
        let call = Call {
            deadline: Some(Instant::now() + RELEASE_TIMEOUT),
            interrupt: &AtomicBool::new(false),
            retries: false,
        };
        if let Err(error) = self.send_by::<Update>(&call, &request) {
            tracing::debug!(%error, "cannot release a claim");
        }
    }
}

impl Qdrant {
    fn claims_id(&self) -> PointId {
        self.point_of(ChunkKey(*b"repository claim"))
    }

    fn prefix_of(&self, key: ChunkKey) -> Prefix {
        let PointId([a, b, c, d, ..]) = self.point_of(key);
        [a, b, c, d]
    }

    /// Returns which points of `keys` exist, and all claims. The claims are `None` if the point that stores them does
    /// not exist.
    fn look(
        &self,
        keys: &[ChunkKey],
        interrupt: &AtomicBool,
    ) -> Result<(HashSet<PointId>, Option<Vec<Other>>), SharedError> {
        let mut ids: Vec<PointId> = keys.iter().map(|key| self.point_of(*key)).collect();
        ids.push(self.claims_id());
        let request = Request::post(&self.reading("/points"), &wire::by_ids(&ids, None, true))
            .with_max_response_bytes(bytes_of(ids.len()) + MAX_CLAIM_BYTES);
        let found: Vec<Record> = self
            .send_by(&patient(None, interrupt), &request)
            .map_err(|error| self.failed(error))?;
        let (mut there, mut others) = (HashSet::new(), None);
        for record in found {
            let id = self.point_id(&record.id)?;
            if id == self.claims_id() {
                others = Some(parse_claims(&record.payload.unwrap_or_default()));
            } else {
                there.insert(id);
            }
        }
        Ok((there, others))
    }

    /// Creates the point that stores the claims, unless another clone has created it meanwhile.
    fn make_claims_point(&self, interrupt: &AtomicBool) -> Result<(), SharedError> {
        let point = NewPoint {
            id: self.claims_id().to_string(),
            vector: Map::new(),
            payload: Default::default(),
        };
        // Servers before version 1.17 overwrite an existing point. Then a claim may be lost, and some vectors are
        // computed twice.
        let mut body = json!(Points { points: vec![point] });
        body["update_mode"] = "insert_only".into();
        let request = Request::put(&self.path("/points?wait=true"), &body);
        let put = self.send_by::<Update>(&patient(None, interrupt), &request);
        put.map(drop).map_err(|error| self.failed(error))
    }
}

fn claimed_by(others: &[Other]) -> HashSet<Prefix> {
    let live = others.iter().filter(|other| other.is_live);
    live.flat_map(|other| other.keys.iter().copied()).collect()
}

fn parse_claims(payload: &Map<String, Value>) -> Vec<Other> {
    let now = seconds_now();
    let claims = payload.iter().filter(|(name, _)| name.starts_with(CLAIM));
    claims
        .map(|(name, claim)| {
            let read = claim.as_str().and_then(|claim| {
                let mut parts = claim.split(' ');
                let (at, until) = (parts.next()?.parse().ok()?, parts.next()?.parse::<u64>().ok()?);
                Some((at, until, parts.next()?))
            });
            // An unreadable claim counts as expired.
            let (at, until, keys) = read.unwrap_or_default();
            let is_live = (now..=now + MAX_LEASE.as_secs()).contains(&until);
            let keys = keys.as_bytes().chunks(8).filter_map(|digits| {
                let digits = std::str::from_utf8(digits).ok()?;
                super::from_hex(digits)
            });
            Other {
                name: name.clone(),
                at,
                is_live,
                keys: keys.collect(),
            }
        })
        .collect()
}

fn millis_now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_is_believed_until_it_ends_and_no_longer() {
        let now = seconds_now();
        for (claim, is_live) in [
            (format!("1 {} 00000001ffffffff", now + 60), true),
            (format!("1 {} 00000001ffffffff", now - 2), false),
            // A claim from a clone with a wrong clock.
            (format!("1 {} 00000001ffffffff", now + 8000), false),
            ("x".to_owned(), false),
            (String::new(), false),
        ] {
            let mut payload = Map::new();
            payload.insert("claim_1".to_owned(), claim.clone().into());
            payload.insert("other".to_owned(), claim.clone().into());
            let found = parse_claims(&payload);
            assert_eq!(found.len(), 1, "{claim}");
            assert_eq!(found[0].is_live, is_live, "{claim}");
            assert!(
                !is_live || found[0].keys == HashSet::from([[0, 0, 0, 1], [255; 4]]),
                "{claim}"
            );
        }
    }
}
