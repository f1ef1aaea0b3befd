//! Timestamps of signatures: tokens in the unsigned attribute `id-aa-timeStampToken` (RFC 3161, appendix A).
//!
//! A token is put into a message without encoding the rest again: what others may have signed or hashed stays as it is,
//! down to the order of certificates. BER becomes DER, because a value cannot be inserted into indefinite lengths.

use der::asn1::{Any, AnyRef};
use der::{Decode, Encode, Reader, SliceReader, Tag, TagNumber, Tagged};

use super::MAX_MESSAGE_LEN;
use super::message::{ContentInfo, SignerInfo, TIMESTAMP_TOKEN, der_from_ber};
use super::verify::{SignedMessage, VerifyError};
use crate::pem;

/// `unsignedAttrs [1] IMPLICIT UnsignedAttributes`
const UNSIGNED: Tag = Tag::ContextSpecific { constructed: true, number: TagNumber(1) };

/// The message (DER, BER or PEM) in DER with these tokens, each given with the signature value that it is over.
pub fn with_tokens(message: &[u8], tokens: &[(Vec<u8>, Vec<u8>)]) -> Result<Vec<u8>, VerifyError> {
    // Everything that makes a message unreadable is found here.
    SignedMessage::parse(message)?;
    let bytes = pem::read_cms(message).map_err(|error| VerifyError::NotCms(error.to_string()))?;
    let bytes = match ContentInfo::from_der(&bytes) {
        Ok(_) => bytes,
        Err(error) => der_from_ber(&bytes).ok_or_else(|| VerifyError::NotCms(error.to_string()))?.0,
    };
    let out = rebuilt(&bytes, tokens).map_err(|error| VerifyError::NotCms(error.to_string()))?;
    if out.len() > MAX_MESSAGE_LEN {
        return Err(VerifyError::NotCms(format!(
            "with its timestamps it is longer than {MAX_MESSAGE_LEN} bytes"
        )));
    }
    Ok(out)
}

fn rebuilt(der: &[u8], tokens: &[(Vec<u8>, Vec<u8>)]) -> der::Result<Vec<u8>> {
    let failed = || der::Error::from(der::ErrorKind::Failed);
    let outer = AnyRef::from_der(der)?;
    let [content_type, explicit] = values(outer.value())?[..] else { return Err(failed()) };
    let explicit = AnyRef::from_der(explicit)?;
    let data = AnyRef::from_der(explicit.value())?;
    let fields = values(data.value())?;
    let (infos, before) = fields.split_last().ok_or_else(failed)?;
    let infos = AnyRef::from_der(infos)?;
    let mut signers = values(infos.value())?
        .into_iter()
        .map(|signer| with_those_of(signer, tokens))
        .collect::<der::Result<Vec<_>>>()?;
    // X.690, section 11.6: the elements of a SET OF ascend.
    signers.sort();
    let infos = Any::new(infos.tag(), signers.concat())?.to_der()?;
    let data = Any::new(data.tag(), [before.concat(), infos].concat())?.to_der()?;
    let explicit = Any::new(explicit.tag(), data)?.to_der()?;
    Any::new(outer.tag(), [content_type, &explicit].concat())?.to_der()
}

/// A `SignerInfo` with the tokens that are over its signature.
fn with_those_of(signer: &[u8], tokens: &[(Vec<u8>, Vec<u8>)]) -> der::Result<Vec<u8>> {
    let parsed = SignerInfo::from_der(signer)?;
    let own = tokens.iter().filter(|(value, _)| value == parsed.signature.as_bytes());
    let outer = AnyRef::from_der(signer)?;
    let mut fields = values(outer.value())?;
    let mut attributes: Vec<Vec<u8>> = Vec::new();
    if let Some(last) = fields.last().copied()
        && AnyRef::from_der(last)?.tag() == UNSIGNED
    {
        fields.pop();
        let there = values(AnyRef::from_der(last)?.value())?;
        attributes.extend(there.into_iter().map(<[u8]>::to_vec));
    }
    for (_, token) in own {
        let values = Any::new(Tag::Set, token.as_slice())?.to_der()?;
        let content = [TIMESTAMP_TOKEN.to_der()?, values].concat();
        attributes.push(Any::new(Tag::Sequence, content)?.to_der()?);
    }
    if attributes.is_empty() {
        return Ok(signer.to_vec());
    }
    attributes.sort();
    let unsigned = Any::new(UNSIGNED, attributes.concat())?.to_der()?;
    Any::new(outer.tag(), [fields.concat(), unsigned].concat())?.to_der()
}

/// The values that follow each other in `content`, each with its tag and length.
fn values(content: &[u8]) -> der::Result<Vec<&[u8]>> {
    let mut reader = SliceReader::new(content)?;
    let mut out = Vec::new();
    while !reader.is_finished() {
        let start = usize::try_from(reader.position()).unwrap_or(usize::MAX);
        AnyRef::decode(&mut reader)?;
        let end = usize::try_from(reader.position()).unwrap_or(usize::MAX);
        out.push(content.get(start..end).ok_or(der::ErrorKind::Failed)?);
    }
    Ok(out)
}
