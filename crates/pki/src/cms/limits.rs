//! Limits of the parts of a message, checked before they are parsed.
//!
//! A SET OF is sorted when it is parsed, and each comparison measures both elements down to their values: without a
//! limit on these, a message of a few MiB would take hours.

use der::asn1::AnyRef;
use der::{Decode, Reader, SliceReader, Tag, Tagged};

/// Most signers in one message.
pub(super) const MAX_SIGNERS: usize = 16;

/// Most signed attributes of one signer, and most unsigned ones. Other software writes up to ten.
pub(super) const MAX_ATTRIBUTES: usize = 64;

/// Most values of one attribute. The longest that are read name the other signers, or are timestamps: 16.
pub(super) const MAX_VALUES: usize = 64;

/// Why a message is not parsed.
pub(super) enum Excess {
    /// No signers, or too many: how many.
    Signers(usize),
    /// Too many attributes, or values of one.
    Attributes,
    /// It is no DER.
    Der(der::Error),
}

impl From<der::Error> for Excess {
    fn from(error: der::Error) -> Self {
        Self::Der(error)
    }
}

/// Refuses a `SignedData` (RFC 5652, section 5.1) with more signers, attributes or values than are parsed. Whatever
/// else is wrong with it is left to the parser.
pub(super) fn check(signed_data: AnyRef<'_>) -> Result<(), Excess> {
    // The digest algorithms are a SET, too, and come first.
    let mut sets = elements(signed_data)?.filter(|one| is(one, |tag| tag == Tag::Set));
    let Some(infos) = sets.nth(1).transpose()? else { return Ok(()) };
    let signers = count(infos)?;
    if signers == 0 || signers > MAX_SIGNERS {
        return Err(Excess::Signers(signers));
    }
    for info in elements(infos)? {
        // A constructed member with a context-specific tag: signedAttrs [0] or unsignedAttrs [1].
        let is_set = |tag: Tag| tag.is_context_specific() && tag.is_constructed();
        for attributes in elements(info?)?.filter(|one| is(one, is_set)) {
            let attributes = attributes?;
            if count(attributes)? > MAX_ATTRIBUTES {
                return Err(Excess::Attributes);
            }
            for attribute in elements(attributes)? {
                for member in elements(attribute?)? {
                    let member = member?;
                    if member.tag() == Tag::Set && count(member)? > MAX_VALUES {
                        return Err(Excess::Attributes);
                    }
                }
            }
        }
    }
    Ok(())
}

fn count(of: AnyRef<'_>) -> der::Result<usize> {
    elements(of)?.try_fold(0_usize, |count, one| one.map(|_| count + 1))
}

/// Whether an element is of this kind. An error passes, so that the caller finds it.
fn is(one: &der::Result<AnyRef<'_>>, kind: impl Fn(Tag) -> bool) -> bool {
    one.as_ref().map_or(true, |any| kind(any.tag()))
}

/// The elements of a SEQUENCE or SET, which end with the first that cannot be read.
fn elements<'a>(of: AnyRef<'a>) -> der::Result<impl Iterator<Item = der::Result<AnyRef<'a>>>> {
    let mut reader = SliceReader::new(of.value())?;
    let mut is_broken = false;
    Ok(std::iter::from_fn(move || {
        if is_broken || reader.is_finished() {
            return None;
        }
        let one = AnyRef::decode(&mut reader);
        is_broken = one.is_err();
        Some(one)
    }))
}
