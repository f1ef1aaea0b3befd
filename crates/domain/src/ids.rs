//! Identifiers.

use outlast_crypto::random;
use uuid::Uuid;

use crate::Fault;

/// A random UUID (RFC 9562, version 4), written with hyphens.
pub fn uuid() -> Result<String, Fault> {
    Ok(uuid::Builder::from_random_bytes(random::bytes()?).into_uuid().to_string())
}

/// The id of an audit event: a UUID that begins with the time (RFC 9562, version 7), by which the event is found.
/// `now_ms` is in milliseconds since 1970.
pub fn event_id(now_ms: i64) -> Result<String, Fault> {
    let millis = u64::try_from(now_ms).unwrap_or(0);
    let random = random::bytes()?;
    Ok(uuid::Builder::from_unix_timestamp_millis(millis, &random).into_uuid().to_string())
}

/// The 16 bytes of a UUID in its usual form.
pub fn uuid_bytes(text: &str) -> Option<[u8; 16]> {
    (text.len() == 36).then(|| Uuid::parse_str(text).ok().map(Uuid::into_bytes))?
}

/// The id of a multi-Region key: `mrk-` and 32 hexadecimal digits.
pub fn multi_region() -> Result<String, Fault> {
    Ok(format!("mrk-{}", hex::<16>()?))
}

/// The 16 bytes of a key id, and whether it belongs to a multi-Region key.
pub fn key_bytes(text: &str) -> Option<([u8; 16], bool)> {
    let Some(digits) = text.strip_prefix("mrk-") else {
        return uuid_bytes(text).map(|bytes| (bytes, false));
    };
    let lower = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    let bytes = ::hex::decode(digits).ok()?.try_into().ok()?;
    digits.bytes().all(lower).then_some((bytes, true))
}

/// Reverses [`key_bytes`].
pub fn key_text(bytes: [u8; 16], is_multi_region: bool) -> String {
    if is_multi_region { format!("mrk-{}", ::hex::encode(bytes)) } else { uuid_text(bytes) }
}

/// Reverses [`uuid_bytes`].
pub fn uuid_text(bytes: [u8; 16]) -> String {
    Uuid::from_bytes(bytes).to_string()
}

/// `N` random bytes in lower-case hexadecimal.
pub fn hex<const N: usize>() -> Result<String, Fault> {
    Ok(::hex::encode(random::bytes::<N>()?))
}

/// An AWS-style identifier: `prefix` followed by `len` characters of base 32.
pub fn base32(prefix: &str, len: usize) -> Result<String, Fault> {
    const ALPHABET: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    let random = random::secret(len)?;
    let tail = random.expose().iter().map(|byte| char::from(ALPHABET[usize::from(byte % 32)]));
    Ok(prefix.chars().chain(tail).collect())
}
