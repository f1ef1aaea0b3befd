//! A CRL that was made, as it is stored.

use outlast_crypto::digests::sha256;
use serde::{Deserialize, Serialize};

use crate::arn::Scope;
use crate::ca::authority::{Authority, authority_by_id};
use crate::work::Work;
use crate::{Fault, ids};

/// A CRL that was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Made {
    pub(super) account: String,
    pub(super) region: String,
    /// Id of the authority.
    pub authority: String,
    /// SHA-256 of the CRL, in hexadecimal.
    pub digest: String,
    /// The path that certificates name it by, without a slash at the beginning.
    pub path: String,
    /// URLs that certificates have named it by; the last is the one that they get now.
    #[serde(default)]
    pub(super) urls: Vec<String>,
    /// CRL number.
    pub number: u64,
    /// Seconds since 1970.
    pub this_update: i64,
    /// Seconds since 1970.
    pub next_update: i64,
    /// When one was last made because it was time, seconds since 1970.
    pub(super) regular_at: i64,
    /// Certificates on it.
    pub entries: usize,
}

/// The CRL with this name, if there is one: what is said of it.
pub fn made(work: &mut Work<'_>, name: &str) -> Result<Option<Made>, Fault> {
    if ids::uuid_bytes(name).is_none() {
        return Ok(None);
    }
    work.get(&made_record_key(name))
}

/// The CRL itself in DER. `None` if it was made anew meanwhile.
pub fn der(work: &Work<'_>, name: &str, made: &Made) -> Result<Option<Vec<u8>>, Fault> {
    let record = work.store().read_fresh(&der_record_key(name))?;
    Ok(record.map(|record| record.value).filter(|der| hex::encode(sha256(der)) == made.digest))
}

impl Made {
    /// The account of the authority that it is of.
    pub(in crate::ca) fn account(&self) -> &str {
        &self.account
    }

    /// The authority that it is of, if it is still there.
    pub(in crate::ca) fn authority(&self, work: &mut Work<'_>) -> Result<Option<Authority>, Fault> {
        let scope = Scope { account: self.account.clone(), region: self.region.clone() };
        authority_by_id(work, &scope, &self.authority)
    }
}

pub(super) fn made_record_key(name: &str) -> String {
    format!("ca/crl/{name}")
}

pub(super) fn der_record_key(name: &str) -> String {
    format!("{DER}{name}")
}

/// Below are the CRLs in DER.
pub(crate) const DER: &str = "ca/crl-der/";
