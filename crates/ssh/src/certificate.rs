//! OpenSSH certificates of users and hosts (OpenSSH's PROTOCOL.certkeys).

use std::net::IpAddr;

use crate::error::printable;
use crate::limits::MAX_CERTIFICATE_ITEMS;
use crate::private_key::PrivateKey;
use crate::public_key::{KeyError, Material, PublicKey, split_line};
use crate::signature::{self, ALGORITHMS, Algorithm};
use crate::wire::{Reader, Writer};

/// What a certificate is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CertificateKind {
    /// A user's key.
    User,
    /// A host's key.
    Host,
}

/// Why a certificate does not count.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CertificateError {
    /// A user's certificate for a host, or the other way round.
    #[error("the certificate is for the other kind of key")]
    Kind,
    /// Its time has not come.
    #[error("the certificate is not valid yet")]
    NotYetValid,
    /// Its time is over.
    #[error("the certificate has expired")]
    Expired,
    /// Its principals do not contain the name.
    #[error("the certificate is for other principals")]
    Principal,
    /// A critical option that this crate does not know.
    #[error("the certificate has the critical option {0}, which is not supported")]
    CriticalOption(String),
    /// The option `source-address` does not contain the address.
    #[error("the certificate is for other source addresses")]
    SourceAddress,
}

/// A certificate whose authority's signature was verified. Whether that authority is trusted, the time, the principal
/// and the source address are for the caller to check: [`Certificate::check`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Certificate {
    blob: Vec<u8>,
    key: PublicKey,
    fields: CertificateFields,
    /// The key id as it is in the blob; the one among the fields is for people.
    key_id: Vec<u8>,
    authority: PublicKey,
    signature_algorithm: &'static str,
}

/// What a certificate says of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateFields {
    /// Serial number; 0 if the authority does not number its certificates.
    pub serial: u64,
    /// What it is for.
    pub kind: CertificateKind,
    /// Identity of the holder, for logs.
    pub key_id: String,
    /// User or host names.
    pub principals: Vec<String>,
    /// First second in which it is valid, since 1970.
    pub valid_after_s: u64,
    /// First second in which it is no longer valid; [`u64::MAX`] means for ever.
    pub valid_before_s: u64,
    /// Options that who does not know them must refuse, in order of their names.
    pub critical_options: Vec<(String, Vec<u8>)>,
    /// Options that may be ignored, in order of their names.
    pub extensions: Vec<(String, Vec<u8>)>,
}

const FORCE_COMMAND: &str = "force-command";
const SOURCE_ADDRESS: &str = "source-address";
const VERIFY_REQUIRED: &str = "verify-required";
const NO_TOUCH_REQUIRED: &str = "no-touch-required";

impl Certificate {
    /// Parses a certificate and verifies its signature.
    pub fn parse(blob: &[u8]) -> Result<Self, KeyError> {
        let mut reader = Reader::new(blob);
        let name = reader.text()?;
        let row = ALGORITHMS
            .iter()
            .find(|row| row.certificate_type == name)
            .ok_or_else(|| KeyError::UnsupportedType(printable(name.as_bytes())))?;
        // The nonce, which makes what is signed unpredictable.
        reader.string()?;
        let key = PublicKey::new(Material::read(row.key_type, &mut reader)?);
        let serial = reader.u64()?;
        let kind = match reader.u32()? {
            1 => CertificateKind::User,
            2 => CertificateKind::Host,
            _ => {
                return Err(KeyError::Malformed(
                    "the certificate is neither a user's nor a host's",
                ));
            }
        };
        let key_id_bytes = reader.string()?.to_vec();
        let key_id = printable(&key_id_bytes);
        let principals = principals(reader.string()?)?;
        let valid_after_s = reader.u64()?;
        let valid_before_s = reader.u64()?;
        let critical_options = options(reader.string()?)?;
        let extensions = options(reader.string()?)?;
        reader.string()?;
        let authority = PublicKey::parse(reader.string()?)?;
        let signed = &blob[..blob.len() - reader.rest().len()];
        let signature = reader.string()?;
        reader.end()?;
        let signature_algorithm = signed_by(&authority, signed, signature)
            .ok_or(KeyError::Malformed("the certificate's signature does not verify"))?;
        let fields = CertificateFields {
            serial,
            kind,
            key_id,
            principals,
            valid_after_s,
            valid_before_s,
            critical_options,
            extensions,
        };
        Ok(Self {
            blob: blob.to_vec(),
            key,
            fields,
            key_id: key_id_bytes,
            authority,
            signature_algorithm,
        })
    }

    /// Parses a line such as `ssh-ed25519-cert-v01@openssh.com AAAA... comment`.
    pub fn from_openssh_line(line: &str) -> Result<Self, KeyError> {
        let (name, blob) = split_line(line)?;
        let certificate = Self::parse(&blob)?;
        if certificate.blob_type() != Some(name) {
            return Err(KeyError::Malformed(
                "the line names another type than its certificate has",
            ));
        }
        Ok(certificate)
    }

    /// Issues a certificate for a key.
    pub fn issue(
        key: &PublicKey,
        fields: &CertificateFields,
        authority: &PrivateKey,
    ) -> Result<Self, KeyError> {
        let mut blob = to_be_signed(key, fields, authority.public_key())?;
        let signature = authority.sign(authority.algorithm(), &blob).ok_or(KeyError::Invalid)?;
        blob.put_string(&signature);
        Self::parse(&blob)
    }

    /// The blob.
    pub fn blob(&self) -> &[u8] {
        &self.blob
    }

    /// Type and base64 of the blob, without a comment.
    pub fn to_openssh_line(&self) -> String {
        let blob = crate::fingerprint::to_base64(&self.blob);
        format!("{} {blob}", self.blob_type().unwrap_or_default())
    }

    /// Type, such as `ssh-ed25519-cert-v01@openssh.com`.
    pub fn type_name(&self) -> &str {
        self.blob_type().unwrap_or_default()
    }

    pub(crate) fn key_id_bytes(&self) -> &[u8] {
        &self.key_id
    }

    /// The certified key.
    pub fn key(&self) -> &PublicKey {
        &self.key
    }

    /// The key that signed the certificate.
    pub fn authority(&self) -> &PublicKey {
        &self.authority
    }

    /// Algorithm of the authority's signature, such as `rsa-sha2-512`.
    pub fn signature_algorithm(&self) -> &'static str {
        self.signature_algorithm
    }

    /// What the certificate says.
    pub fn fields(&self) -> &CertificateFields {
        &self.fields
    }

    /// Checks kind, time, principal and the names of critical options. A user's certificate must name the principal;
    /// a host's certificate without principals is for all hosts. `verify-required` is checked when a signature is.
    pub fn check(
        &self,
        kind: CertificateKind,
        principal: &str,
        now_ms: u64,
    ) -> Result<(), CertificateError> {
        let fields = &self.fields;
        if fields.kind != kind {
            return Err(CertificateError::Kind);
        }
        let now_s = now_ms / 1000;
        if now_s < fields.valid_after_s {
            return Err(CertificateError::NotYetValid);
        }
        if now_s >= fields.valid_before_s {
            return Err(CertificateError::Expired);
        }
        let any = kind == CertificateKind::Host && fields.principals.is_empty();
        if !any && !fields.principals.iter().any(|name| name == principal) {
            return Err(CertificateError::Principal);
        }
        let known = [FORCE_COMMAND, SOURCE_ADDRESS, VERIFY_REQUIRED];
        match fields
            .critical_options
            .iter()
            .find(|(name, _)| kind == CertificateKind::Host || !known.contains(&name.as_str()))
        {
            Some((name, _)) => Err(CertificateError::CriticalOption(printable(name.as_bytes()))),
            None => Ok(()),
        }
    }

    /// Checks the critical option `source-address`, if there is one: a list of addresses and CIDR blocks.
    pub fn check_source(&self, address: IpAddr) -> Result<(), CertificateError> {
        let Some(list) = self.critical(SOURCE_ADDRESS) else { return Ok(()) };
        let list = std::str::from_utf8(list).map_err(|_| CertificateError::SourceAddress)?;
        let address = address.to_canonical();
        // As with OpenSSH, a list with a mistake in it allows nothing.
        match is_source_list(list) && list.split(',').any(|block| contains(block, address)) {
            true => Ok(()),
            false => Err(CertificateError::SourceAddress),
        }
    }

    /// The command that the certificate allows instead of any other, from the critical option `force-command`.
    pub fn forced_command(&self) -> Option<&[u8]> {
        self.critical(FORCE_COMMAND)
    }

    pub(crate) fn needs_verified_user(&self) -> bool {
        self.fields.critical_options.iter().any(|(name, _)| name == VERIFY_REQUIRED)
    }

    pub(crate) fn needs_touch(&self) -> bool {
        let lifts =
            |(name, value): &(String, Vec<u8>)| name == NO_TOUCH_REQUIRED && value.is_empty();
        !self.fields.extensions.iter().any(lifts)
    }

    fn critical(&self, name: &str) -> Option<&[u8]> {
        let options = &self.fields.critical_options;
        let value = options.iter().find(|(option, _)| option == name).map(|(_, value)| value)?;
        // The value is a string within the option's data.
        Some(Reader::new(value).string().unwrap_or_default())
    }

    fn blob_type(&self) -> Option<&str> {
        Reader::new(&self.blob).text().ok()
    }
}

/// What an authority signs. The signature blob is appended as a string.
pub fn to_be_signed(
    key: &PublicKey,
    fields: &CertificateFields,
    authority: &PublicKey,
) -> Result<Vec<u8>, KeyError> {
    let row = ALGORITHMS
        .iter()
        .find(|row| row.key_type == key.key_type())
        .ok_or_else(|| KeyError::UnsupportedType(key.key_type().to_owned()))?;
    let nonce = outlast_crypto::random::bytes::<32>().map_err(|_| KeyError::Invalid)?;
    let mut out = Vec::new();
    out.put_string(row.certificate_type.as_bytes());
    out.put_string(&nonce);
    key.material().write(&mut out);
    out.put_u64(fields.serial);
    out.put_u32(match fields.kind {
        CertificateKind::User => 1,
        CertificateKind::Host => 2,
    });
    out.put_string(fields.key_id.as_bytes());
    let mut list = Vec::new();
    for name in &fields.principals {
        list.put_string(name.as_bytes());
    }
    out.put_string(&list);
    out.put_u64(fields.valid_after_s);
    out.put_u64(fields.valid_before_s);
    for options in [&fields.critical_options, &fields.extensions] {
        let mut list = Vec::new();
        for (name, value) in options {
            list.put_string(name.as_bytes());
            list.put_string(value);
        }
        out.put_string(&list);
    }
    out.put_string(b"");
    out.put_string(authority.blob());
    Ok(out)
}

/// A critical option's or extension's data: a string, or nothing.
pub fn option_value(text: Option<&str>) -> Vec<u8> {
    let mut value = Vec::new();
    if let Some(text) = text {
        value.put_string(text.as_bytes());
    }
    value
}

/// Whether the text can be the value of `source-address`: addresses and CIDR blocks, separated by commas.
pub fn is_source_list(text: &str) -> bool {
    !text.is_empty() && text.split(',').all(|block| parse_block(block).is_some())
}

/// The algorithm by which the authority signed this, if it did, with one that fits its key.
fn signed_by(authority: &PublicKey, signed: &[u8], signature: &[u8]) -> Option<&'static str> {
    match Algorithm::by_name(Reader::new(signature).text().ok()?)? {
        // OpenSSH lets keys on hardware sign certificates, too; a touch is part of what ssh-keygen does then.
        (row, false) => {
            signature::verify(authority, row, signed, signature).is_some().then_some(row.name)
        }
        _ => None,
    }
}

const TOO_MANY: KeyError =
    KeyError::Malformed("the certificate has too many principals or options");

fn principals(list: &[u8]) -> Result<Vec<String>, KeyError> {
    let mut reader = Reader::new(list);
    let mut names = Vec::new();
    while !reader.is_empty() {
        if names.len() == MAX_CERTIFICATE_ITEMS {
            return Err(TOO_MANY);
        }
        names.push(reader.text()?.to_owned());
    }
    Ok(names)
}

fn options(list: &[u8]) -> Result<Vec<(String, Vec<u8>)>, KeyError> {
    let mut reader = Reader::new(list);
    let mut found: Vec<(String, Vec<u8>)> = Vec::new();
    while !reader.is_empty() {
        if found.len() == MAX_CERTIFICATE_ITEMS {
            return Err(TOO_MANY);
        }
        let name = reader.text()?.to_owned();
        let value = reader.string()?.to_vec();
        // PROTOCOL.certkeys: each name once, in order.
        if found.last().is_some_and(|(last, _)| *last >= name) {
            return Err(KeyError::Malformed("the certificate's options are not in order"));
        }
        found.push((name, value));
    }
    Ok(found)
}

/// Network, and length of its prefix in bits, of a block such as `192.0.2.0/24` or an address. Bits of an address beyond the prefix are a
/// mistake: `10.0.0.0/0` was meant otherwise.
fn parse_block(block: &str) -> Option<(IpAddr, u32)> {
    let (network, len) = match block.split_once('/') {
        Some((network, len)) if len.bytes().all(|byte| byte.is_ascii_digit()) => {
            (network, Some(len.parse::<u32>().ok()?))
        }
        Some(_) => return None,
        None => (block, None),
    };
    let network: IpAddr = network.parse().ok()?;
    let width = if network.is_ipv4() { 32 } else { 128 };
    let len = len.unwrap_or(width);
    let beyond = bits(network).checked_shl(len).unwrap_or(0);
    (len <= width && beyond == 0).then_some((network, len))
}

/// An address as the highest bits of a number.
fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(u32::from(address)) << 96,
        IpAddr::V6(address) => u128::from(address),
    }
}

/// Whether a block contains the address.
fn contains(block: &str, address: IpAddr) -> bool {
    let Some((network, len)) = parse_block(block) else { return false };
    network.is_ipv4() == address.is_ipv4()
        && (len == 0 || (bits(network) ^ bits(address)) >> (128 - len) == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_contain_addresses() {
        let contains = |block, address: &str| contains(block, address.parse().unwrap());
        assert!(contains("192.0.2.0/24", "192.0.2.255") && !contains("192.0.2.0/24", "192.0.3.0"));
        assert!(contains("192.0.2.7", "192.0.2.7") && !contains("192.0.2.7", "192.0.2.6"));
        assert!(contains("0.0.0.0/0", "198.51.100.1") && !contains("0.0.0.0/0", "2001:db8::1"));
        assert!(contains("2001:db8::/32", "2001:db8:1::1") && contains("::/0", "::1"));
        assert!(!contains("192.0.2.0/33", "192.0.2.0") && !contains("", "192.0.2.0"));
        assert!(!contains("192.0.2.0/x", "192.0.2.0"));
        // What `ssh-keygen -O source-address` refuses, too.
        for mistake in ["10.0.0.0/0", "192.0.2.5/24", "192.0.2.0/+24", "2001:db8::1/32", "::1/0"] {
            assert!(!is_source_list(mistake) && !contains(mistake, "10.0.0.0"), "{mistake}");
        }
        assert!(is_source_list("0.0.0.0/0,::/0,192.0.2.5/32,2001:db8::1/128"));
    }
}
