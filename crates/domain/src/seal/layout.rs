//! The bytes of protected records: what their first byte says, and the parts of an authenticated one. Verifies nothing.

/// Length of the id of a root key, in bytes.
pub(super) const ID_LEN: usize = 8;
/// Id of a root key.
pub(super) type Id = [u8; ID_LEN];

/// First byte of what is sealed directly under the key in the root key file.
pub(super) const DIRECT: u8 = 1;
/// First byte of what is sealed under a root key with an id.
pub(super) const NAMED: u8 = 2;
/// First byte of an authenticated record. JSON begins with none of the first bytes here.
pub(super) const AUTHENTIC: u8 = 3;
pub(super) const STAMP_LEN: usize = 8;
pub(super) const TAG_LEN: usize = 32;
const STAMP_AT: usize = 1 + ID_LEN;
const TAG_AT: usize = STAMP_AT + STAMP_LEN;
/// Where the JSON of an authenticated record begins.
pub(super) const JSON_AT: usize = TAG_AT + TAG_LEN;

/// An authenticated record in its parts; whether the tag is right is another question.
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

/// The stamp that a record claims, if it has one.
pub(crate) fn stamp(value: &[u8]) -> Option<u64> {
    parts(value).map(|parts| u64::from_be_bytes(parts.stamp))
}

/// The JSON of a record, authenticated or not, without a look at its tag: for those who have no root key, and for
/// records that were verified before.
pub fn json(value: &[u8]) -> &[u8] {
    parts(value).map_or(value, |parts| parts.json)
}

/// The id of the root key that a record is authenticated under.
pub(super) fn authentic_under(value: &[u8]) -> Option<Id> {
    parts(value).map(|parts| parts.id)
}
