//! Certificate revocation lists: where they are, when they are due, and making them.
//!
//! An authority has one complete CRL, or [`PARTITIONS`] of them by serial number. Each is a record that all servers
//! on the store serve, under a name that no other has: the authority's id, or a UUID made of it and the partition.

use outlast_pki::certificate::Extension;
use outlast_pki::extensions;

use super::CaError;
use super::authority::Authority;
use super::revocation::Crl;
use crate::settings::Settings;
use crate::{Fault, ids};

/// Partitions of a partitioned CRL. Certificates name theirs: this number can never change.
pub const PARTITIONS: u8 = 64;

/// One CRL of an authority.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// The only one.
    Complete,
    /// One of [`PARTITIONS`].
    Partition(u8),
}

impl Part {
    /// Where the certificate with this serial number (big-endian) is listed.
    fn of(crl: &Crl, serial: &[u8]) -> Self {
        if crl.partitioned {
            Self::Partition(serial.first().copied().unwrap_or_default() % PARTITIONS)
        } else {
            Self::Complete
        }
    }

    /// What the CRL is called: the file name without its ending.
    pub(super) fn name(self, authority_id: &str) -> String {
        match self {
            Self::Complete => authority_id.to_owned(),
            Self::Partition(number) => {
                let digest = outlast_crypto::digests::sha256(
                    format!("outlast CRL partition {authority_id}/{number}").as_bytes(),
                );
                let mut bytes = [0; 16];
                bytes.copy_from_slice(&digest[..16]);
                // RFC 9562, section 5.8: a UUID of the application's own making.
                bytes[6] = (bytes[6] & 0x0f) | 0x80;
                bytes[8] = (bytes[8] & 0x3f) | 0x80;
                ids::uuid_text(bytes)
            }
        }
    }

    /// The path of its file below [`Crl::base_url`].
    fn path(self, authority_id: &str, crl: &Crl) -> String {
        let name = self.name(authority_id);
        match self {
            // As AWS documents CustomPath: `http://<CustomName>/<CustomPath>/<CrlPartition_GUID>.crl`.
            Self::Partition(_) if crl.custom_path.is_none() => format!("{authority_id}/{name}.crl"),
            _ => format!("{name}.crl"),
        }
    }

    fn url(self, authority_id: &str, crl: &Crl) -> String {
        format!("{}/{}", crl.base_url, self.path(authority_id, crl))
    }
}

/// What [`Crl::base_url`] shall be for these `CustomCname` and `CustomPath`. `None` without a name if the server
/// has no listener for plain HTTP.
pub fn base_url(
    settings: &Settings,
    custom_cname: Option<&str>,
    custom_path: Option<&str>,
) -> Option<String> {
    let host = match custom_cname {
        Some(name) => format!("http://{name}"),
        None => settings.revocation_url.clone()?,
    };
    Some(match custom_path.unwrap_or("crl").trim_matches('/') {
        "" => host,
        path => format!("{host}/{path}"),
    })
}

/// The extension that says in a certificate with this serial number (big-endian) where its CRL is, as the
/// authority is configured.
pub fn distribution_point(
    authority: &Authority,
    serial: &[u8],
) -> Result<Option<Extension>, CaError> {
    let Some(crl) = &authority.revocation().crl else { return Ok(None) };
    if crl.omit_extension {
        return Ok(None);
    }
    let url = Part::of(crl, serial).url(authority.id(), crl);
    let extension = extensions::crl_distribution_points(&[&url]).map_err(Fault::from)?;
    Ok(Some(extension))
}
