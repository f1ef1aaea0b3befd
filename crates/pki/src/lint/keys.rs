//! Rules about the public key, and about key usages that its kind does not allow.

use outlast_crypto::signatures::Family;
use x509_cert::ext::pkix::KeyUsages;

use super::Outcome;
use super::parts::Parts;
use crate::extensions::KEY_USAGES;

/// Usages of a key that only signs.
const SIGNING: &[KeyUsages] = &[
    KeyUsages::DigitalSignature,
    KeyUsages::NonRepudiation,
    KeyUsages::KeyCertSign,
    KeyUsages::CRLSign,
];
/// RFC 3279, section 2.3.1.
const RSA: &[KeyUsages] = &[
    KeyUsages::DigitalSignature,
    KeyUsages::NonRepudiation,
    KeyUsages::KeyCertSign,
    KeyUsages::CRLSign,
    KeyUsages::KeyEncipherment,
    KeyUsages::DataEncipherment,
];
/// RFC 8813, section 3: all but keyEncipherment and dataEncipherment.
const EC: &[KeyUsages] = &[
    KeyUsages::DigitalSignature,
    KeyUsages::NonRepudiation,
    KeyUsages::KeyCertSign,
    KeyUsages::CRLSign,
    KeyUsages::KeyAgreement,
    KeyUsages::EncipherOnly,
    KeyUsages::DecipherOnly,
];

pub(super) fn known(parts: &Parts<'_>) -> Outcome {
    let Some(key) = &parts.public_key else {
        return Some("the public key is not a SubjectPublicKeyInfo".into());
    };
    parts.kind.is_none().then(|| format!("the key algorithm {} is unknown", key.algorithm.oid))
}

/// A fault in the encoding of a key of the family; `None` as family means keys that cannot sign.
fn encoding(parts: &Parts<'_>, family: Option<Family>) -> Outcome {
    let (key, kind) = parts.public_key.as_ref().zip(parts.kind)?;
    if kind.family != family {
        return None;
    }
    kind.fault(key).map(|reason| format!("the {} public key: {reason}", kind.name))
}

fn usage(parts: &Parts<'_>, family: Option<Family>, allowed: &[KeyUsages]) -> Outcome {
    let usage = parts.key_usage?;
    let kind = parts.kind.filter(|kind| kind.family == family)?;
    let wrong = KEY_USAGES
        .iter()
        .find(|(_, flag)| usage.contains(*flag) && !allowed.contains(flag))
        .map(|(name, _)| format!("{name} is not allowed for {} keys", kind.name));
    wrong.or_else(|| {
        let none = !allowed.iter().any(|flag| usage.contains(*flag));
        none.then(|| format!("it has no usage that is allowed for {} keys", kind.name))
    })
}

pub(super) fn rsa(parts: &Parts<'_>) -> Outcome {
    encoding(parts, Some(Family::Rsa))
}

pub(super) fn ec(parts: &Parts<'_>) -> Outcome {
    encoding(parts, Some(Family::Ec))
}

pub(super) fn ed25519(parts: &Parts<'_>) -> Outcome {
    encoding(parts, Some(Family::Ed25519))
}

pub(super) fn ml_dsa(parts: &Parts<'_>) -> Outcome {
    encoding(parts, Some(Family::MlDsa))
}

pub(super) fn slh_dsa(parts: &Parts<'_>) -> Outcome {
    encoding(parts, Some(Family::SlhDsa))
}

pub(super) fn composite(parts: &Parts<'_>) -> Outcome {
    encoding(parts, Some(Family::Composite))
}

pub(super) fn ml_kem(parts: &Parts<'_>) -> Outcome {
    encoding(parts, None)
}

pub(super) fn rsa_usage(parts: &Parts<'_>) -> Outcome {
    usage(parts, Some(Family::Rsa), RSA)
}

pub(super) fn ec_usage(parts: &Parts<'_>) -> Outcome {
    usage(parts, Some(Family::Ec), EC)
}

pub(super) fn ed25519_usage(parts: &Parts<'_>) -> Outcome {
    usage(parts, Some(Family::Ed25519), SIGNING)
}

pub(super) fn ml_dsa_usage(parts: &Parts<'_>) -> Outcome {
    usage(parts, Some(Family::MlDsa), SIGNING)
}

pub(super) fn slh_dsa_usage(parts: &Parts<'_>) -> Outcome {
    usage(parts, Some(Family::SlhDsa), SIGNING)
}

pub(super) fn composite_usage(parts: &Parts<'_>) -> Outcome {
    usage(parts, Some(Family::Composite), SIGNING)
}

pub(super) fn ml_kem_usage(parts: &Parts<'_>) -> Outcome {
    usage(parts, None, &[KeyUsages::KeyEncipherment])
}
