//! The multiple-signatures attribute (RFC 5752): each signer of a message names the others, so that none can be
//! removed unseen, and none can be taken over from another message.
//!
//! Each value holds the digest of the other signer's attributes, in which the digests of this attribute are empty
//! (section 4.4.1): otherwise no signer could be the first. The certificate is always named, although it is only
//! needed for signers with the same algorithms.

use const_oid::ObjectIdentifier;
use der::asn1::{Any, OctetString, SetOfVec};
use der::{Decode, Encode, Sequence};
use outlast_crypto::digests::Digest;
use spki::AlgorithmIdentifierOwned;
use x509_cert::attr::{Attribute, Attributes};

use super::ess::EssCertIdV2;
use super::message::SignerInfo;

/// `id-aa-multipleSignatures`
pub(super) const MULTIPLE_SIGNATURES: ObjectIdentifier =
    ObjectIdentifier::new_unwrap("1.2.840.113549.1.9.16.2.51");

/// What is wrong with the attribute of a signer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// It occurs twice, or cannot be parsed.
    Malformed,
    /// A signer that it names is not there, or not as it was; the algorithm of its signature.
    Missing(ObjectIdentifier),
}

#[derive(Clone, Debug, PartialEq, Eq, Sequence)]
struct MultipleSignatures {
    body_hash_algorithm: AlgorithmIdentifierOwned,
    signature_algorithm: AlgorithmIdentifierOwned,
    attributes_hash: AttributesHash,
    certificate: Option<EssCertIdV2>,
}

#[derive(Clone, Debug, PartialEq, Eq, Sequence)]
struct AttributesHash {
    algorithm: AlgorithmIdentifierOwned,
    hash: OctetString,
}

/// One of the signers of a message to be made.
pub(super) struct Party<'a> {
    pub digest: &'static Digest,
    pub digest_algorithm: &'a AlgorithmIdentifierOwned,
    pub signature_algorithm: &'a AlgorithmIdentifierOwned,
    /// DER.
    pub certificate: &'a [u8],
    /// Without this attribute.
    pub attributes: &'a Attributes,
}

/// The attributes of each signer with the attribute that names the others; unchanged for a single signer.
pub(super) fn bound(parties: &[Party<'_>]) -> der::Result<Vec<Attributes>> {
    if parties.len() < 2 {
        return Ok(parties.iter().map(|party| party.attributes.clone()).collect());
    }
    let with = |index: usize, hash: &dyn Fn(usize) -> der::Result<Vec<u8>>| {
        let Some(own) = parties.get(index) else { return Err(der::ErrorKind::Failed.into()) };
        let mut values = Vec::with_capacity(parties.len());
        for (other, party) in parties.iter().enumerate().filter(|(other, _)| *other != index) {
            let value = MultipleSignatures {
                body_hash_algorithm: party.digest_algorithm.clone(),
                signature_algorithm: party.signature_algorithm.clone(),
                attributes_hash: AttributesHash {
                    algorithm: own.digest_algorithm.clone(),
                    hash: OctetString::new(hash(other)?)?,
                },
                certificate: Some(EssCertIdV2::of(party.certificate)?),
            };
            values.push(Any::from_der(&value.to_der()?)?);
        }
        let mut attributes = own.attributes.clone();
        let values = SetOfVec::try_from(values)?;
        attributes.insert(Attribute { oid: MULTIPLE_SIGNATURES, values })?;
        Ok(attributes)
    };
    let unfilled = (0..parties.len())
        .map(|index| with(index, &|_| Ok(Vec::new()))?.to_der())
        .collect::<der::Result<Vec<_>>>()?;
    parties
        .iter()
        .enumerate()
        .map(|(index, own)| {
            with(index, &|other| {
                Ok(own.digest.digest(unfilled.get(other).map_or(&[][..], Vec::as_slice)))
            })
        })
        .collect()
}

/// Refuses a message in which a signer names another one that is not there, or not as it was. `certificates` are the
/// signers', in DER, where they are known.
pub(super) fn check(signers: &[SignerInfo], certificates: &[Option<Vec<u8>>]) -> Result<(), Fault> {
    let named = signers.iter().map(values).collect::<Result<Vec<_>, _>>()?;
    // Each names all others, so no value can be more than these; checked before anything is hashed.
    for values in &named {
        if let Some(value) = values.get(signers.len().saturating_sub(1)) {
            return Err(Fault::Missing(value.signature_algorithm.oid));
        }
    }
    if named.iter().all(Vec::is_empty) {
        return Ok(());
    }
    let unfilled = signers.iter().map(without_hashes).collect::<Result<Vec<_>, _>>()?;
    for (index, values) in named.iter().enumerate() {
        let Some(own) = signers.get(index).filter(|_| !values.is_empty()) else { continue };
        let missing = |value: &MultipleSignatures| Fault::Missing(value.signature_algorithm.oid);
        let digest = Digest::by_oid(own.digest_algorithm.oid).ok_or(Fault::Malformed)?;
        let hashes: Vec<_> = unfilled.iter().map(|der| digest.digest(der)).collect();
        let mut used = vec![index];
        for value in values {
            if value.attributes_hash.algorithm.oid != digest.oid {
                return Err(Fault::Malformed);
            }
            let is_it = |other: usize| {
                let Some(signer) = signers.get(other) else { return false };
                // The other one names as many: all of the group.
                named.get(other).is_some_and(|list| list.len() == values.len())
                    && signer.signature_algorithm.oid == value.signature_algorithm.oid
                    && signer.digest_algorithm.oid == value.body_hash_algorithm.oid
                    && hashes.get(other).is_some_and(|hash| {
                        hash.as_slice() == value.attributes_hash.hash.as_bytes()
                    })
                    && certificate_fits(value, certificates.get(other).and_then(Option::as_deref))
            };
            let found = (0..signers.len()).find(|other| !used.contains(other) && is_it(*other));
            used.push(found.ok_or_else(|| missing(value))?);
        }
    }
    Ok(())
}

fn certificate_fits(value: &MultipleSignatures, certificate: Option<&[u8]>) -> bool {
    let (Some(id), Some(der)) = (&value.certificate, certificate) else { return true };
    id.has_digest_of(der)
}

fn values(signer: &SignerInfo) -> Result<Vec<MultipleSignatures>, Fault> {
    let wrong = || Fault::Malformed;
    let Some(attributes) = &signer.signed_attributes else { return Ok(Vec::new()) };
    let mut found = attributes.iter().filter(|attribute| attribute.oid == MULTIPLE_SIGNATURES);
    let Some(attribute) = found.next() else { return Ok(Vec::new()) };
    if found.next().is_some() || attribute.values.is_empty() {
        return Err(wrong());
    }
    attribute.values.iter().map(|value| value.decode_as().map_err(|_| wrong())).collect()
}

/// The attributes of a signer in DER, with empty digests in this attribute.
fn without_hashes(signer: &SignerInfo) -> Result<Vec<u8>, Fault> {
    let build = |named: Vec<MultipleSignatures>| {
        let emptied = named
            .into_iter()
            .map(|mut value| {
                value.attributes_hash.hash = OctetString::new([])?;
                Any::from_der(&value.to_der()?)
            })
            .collect::<der::Result<Vec<_>>>()?;
        let mut emptied = Some(SetOfVec::try_from(emptied)?);
        let mut out = Vec::new();
        for attribute in signer.signed_attributes.iter().flat_map(|set| set.iter()) {
            let mut attribute = attribute.clone();
            if attribute.oid == MULTIPLE_SIGNATURES {
                // It occurs once.
                attribute.values = emptied.take().unwrap_or_default();
            }
            out.push(attribute);
        }
        SetOfVec::try_from(out)?.to_der()
    };
    build(values(signer)?).map_err(|_: der::Error| Fault::Malformed)
}
