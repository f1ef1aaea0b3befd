//! Revocation information inside a message (RFC 5652, section 10.2.1): CRLs, and OCSP responses in the form of RFC
//! 5940.
//!
//! It is not signed by the signer, and need not be: each CRL and response has its issuer's signature, which path
//! validation checks. What cannot be parsed, or is of another kind, is left out: it proves nothing.

use const_oid::ObjectIdentifier;
use der::asn1::{Any, AnyRef, SetOfVec};
use der::{Decode, Encode, Reader, SliceReader, Tag, TagNumber, Tagged};

use crate::crl::Crl;
use crate::ocsp::Response;

/// `id-ri-ocsp-response` (RFC 5940, section 2.1).
const OCSP_RESPONSE: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.16.2");

/// The tag of `OtherRevocationInfoFormat`, which is implicit.
const OTHER: Tag = Tag::ContextSpecific { constructed: true, number: TagNumber(1) };

/// Most CRLs, and most OCSP responses, of one message that are read.
pub const MAX_EMBEDDED: usize = 64;

/// The CRLs and OCSP responses of a message.
#[derive(Debug, Default)]
pub struct Embedded {
    /// CRLs.
    pub crls: Vec<Crl>,
    /// OCSP responses.
    pub ocsp: Vec<Response>,
}

impl Embedded {
    pub(super) fn read(choices: Option<&SetOfVec<Any>>) -> Self {
        let mut out = Self::default();
        for choice in choices.into_iter().flat_map(SetOfVec::iter) {
            match choice.tag() {
                Tag::Sequence if out.crls.len() < MAX_EMBEDDED => {
                    let crl = choice.to_der().ok().and_then(|der| Crl::parse(&der).ok());
                    out.crls.extend(crl);
                }
                OTHER if out.ocsp.len() < MAX_EMBEDDED => {
                    out.ocsp.extend(ocsp_response(choice.value()));
                }
                _ => {}
            }
        }
        out
    }
}

/// The set for a message; `None` if there is nothing to put into it.
pub(super) fn choices(crls: &[Crl], ocsp: &[Response]) -> der::Result<Option<SetOfVec<Any>>> {
    let mut set = SetOfVec::new();
    for crl in crls {
        insert(&mut set, Any::from_der(crl.der())?)?;
    }
    for response in ocsp {
        let content = [&OCSP_RESPONSE.to_der()?[..], response.der()].concat();
        insert(&mut set, Any::new(OTHER, content)?)?;
    }
    Ok(Some(set).filter(|set| !set.is_empty()))
}

/// The same CRL for two certificates is needed once.
fn insert(set: &mut SetOfVec<Any>, one: Any) -> der::Result<()> {
    match set.iter().any(|known| *known == one) {
        true => Ok(()),
        false => set.insert(one),
    }
}

/// `OtherRevocationInfoFormat ::= SEQUENCE { otherRevInfoFormat OBJECT IDENTIFIER, otherRevInfo ANY }`
fn ocsp_response(content: &[u8]) -> Option<Response> {
    let mut reader = SliceReader::new(content).ok()?;
    if ObjectIdentifier::decode(&mut reader).ok()? != OCSP_RESPONSE {
        return None;
    }
    let response = AnyRef::decode(&mut reader).ok()?;
    reader.is_finished().then_some(())?;
    Response::parse(&response.to_der().ok()?).ok()
}
