//! A CRL as it is stored.

use outlast_crypto::digests::sha256;
use serde::{Deserialize, Serialize};

use crate::arn::Scope;
use crate::ca::authority::{Authority, authority_by_id};
use crate::work::Work;
use crate::{Fault, ids};

/// A CRL that has been made, without its DER.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Made {
    pub(super) account: String,
    pub(super) region: String,
    /// Id of the authority.
    pub authority: String,
    /// SHA-256 of the CRL, in hexadecimal.
    pub digest: String,
    /// The path of its URL in certificates, without the leading slash.
    pub path: String,
    /// All its URLs in certificates; the last is the one for new certificates.
    #[serde(default)]
    pub(super) urls: Vec<String>,
    /// CRL number.
    pub number: u64,
    /// Seconds since 1970.
    pub this_update: i64,
    /// Seconds since 1970.
    pub next_update: i64,
    /// When the last regularly scheduled CRL was made, seconds since 1970.
    pub(super) regular_at: i64,
    /// Number of certificates on it.
    pub entries: usize,
}

/// The record of the CRL with this name, if there is one.
pub fn made(work: &mut Work<'_>, name: &str) -> Result<Option<Made>, Fault> {
    if ids::uuid_bytes(name).is_none() {
        return Ok(None);
    }
    work.get(&made_record_key(name))
}

/// The CRL in DER. `None` if it was remade in the meantime.
pub fn der(work: &Work<'_>, name: &str, made: &Made) -> Result<Option<Vec<u8>>, Fault> {
    let record = work.store().read_fresh(&der_record_key(name))?;
    Ok(record.map(|record| record.value).filter(|der| hex::encode(sha256(der)) == made.digest))
}

impl Made {
    /// The account of its authority.
    pub(in crate::ca) fn account(&self) -> &str {
        &self.account
    }

    /// Its authority, if it still exists.
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

/// Prefix of the records with the CRLs in DER.
pub(crate) const DER: &str = "ca/crl-der/";
