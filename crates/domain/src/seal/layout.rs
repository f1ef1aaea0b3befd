//! The bytes of protected records: the first byte, and the parts of an authenticated one. Verifies nothing.

/// Length of the id of a root key, in bytes.
pub(super) const ID_LEN: usize = 8;
/// Id of a root key.
pub(super) type Id = [u8; ID_LEN];

/// First byte of a record sealed directly under the key in the root key file.
pub(super) const DIRECT: u8 = 1;
/// First byte of a record sealed under a root key with an id.
pub(super) const NAMED: u8 = 2;
/// First byte of an authenticated record. JSON begins with none of these bytes.
pub(super) const AUTHENTIC: u8 = 3;
pub(super) const STAMP_LEN: usize = 8;
pub(super) const TAG_LEN: usize = 32;
const STAMP_AT: usize = 1 + ID_LEN;
const TAG_AT: usize = STAMP_AT + STAMP_LEN;
/// Offset of the JSON in an authenticated record.
pub(super) const JSON_AT: usize = TAG_AT + TAG_LEN;

/// The parts of an authenticated record; the tag is not verified.
pub(super) struct Parts<'a> {
    pub id: Id,
    pub stamp: [u8; STAMP_LEN],
    pub tag: &'a [u8],
    pub json: &'a [u8],
}

/// The parts of an authenticated record.
pub(super) fn parts(value: &[u8]) -> Option<Parts<'_>> {
    let (&AUTHENTIC, rest) = value.split_first()? else { return None };
    let (id, rest) = rest.split_first_chunk()?;
    let (stamp, rest) = rest.split_first_chunk()?;
    let (tag, json) = rest.split_at_checked(TAG_LEN)?;
    Some(Parts { id: *id, stamp: *stamp, tag, json })
}

/// The stamp in a record, if it has one; not verified.
pub(crate) fn stamp(value: &[u8]) -> Option<u64> {
    parts(value).map(|parts| u64::from_be_bytes(parts.stamp))
}

/// The JSON of a record, without verifying a tag: for callers without a root key, and for records that were verified
/// before.
pub fn json(value: &[u8]) -> &[u8] {
    parts(value).map_or(value, |parts| parts.json)
}

/// The id of the root key that a record is authenticated under.
pub(super) fn authentic_under(value: &[u8]) -> Option<Id> {
    parts(value).map(|parts| parts.id)
}
