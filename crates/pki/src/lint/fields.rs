//! Rules about the fields of a certificate, and about its encoding.

use der::{Decode, Encode, Tag, Tagged};
use outlast_crypto::signatures::SIGNATURES;
use spki::AlgorithmIdentifierRef;

use super::Outcome;
use super::parts::Parts;
use crate::strict_der::is_der;

pub(super) fn version(parts: &Parts<'_>) -> Outcome {
    (parts.version != 2).then(|| format!("the version is {}", u16::from(parts.version) + 1))
}

pub(super) fn serial_positive(parts: &Parts<'_>) -> Outcome {
    let negative = parts.serial.first().is_none_or(|first| *first >= 0x80);
    let zero = parts.serial.iter().all(|byte| *byte == 0);
    (negative || zero).then(|| "the serial number is not positive".into())
}

pub(super) fn serial_len(parts: &Parts<'_>) -> Outcome {
    let len = parts.serial.len();
    (len > 20).then(|| format!("the serial number has {len} octets"))
}

pub(super) fn same_algorithm(parts: &Parts<'_>) -> Outcome {
    let outer = parts.outer_signature?;
    (outer != parts.signature).then(|| "the algorithms inside and outside differ".into())
}

/// Only identifiers that the tables have can be checked.
pub(super) fn algorithm_parameters(parts: &Parts<'_>) -> Outcome {
    let Ok(identifier) = AlgorithmIdentifierRef::from_der(parts.signature) else {
        return Some("the signature's algorithm is not an AlgorithmIdentifier".into());
    };
    let mut known = SIGNATURES.iter().filter(|row| row.oid == Some(identifier.oid)).peekable();
    known.peek()?;
    let given = identifier.parameters.and_then(|parameters| parameters.to_der().ok());
    let fits = known.any(|row| row.encoded_parameters().is_ok_and(|wanted| wanted == given));
    (!fits).then(|| {
        format!("the parameters of {} are not those that the algorithm requires", identifier.oid)
    })
}

pub(super) fn issuer_not_empty(parts: &Parts<'_>) -> Outcome {
    parts.issuer.attributes.is_empty().then(|| "the issuer is empty".into())
}

pub(super) fn time_format(parts: &Parts<'_>) -> Outcome {
    for time in [parts.not_before, parts.not_after] {
        let len = match time.tag() {
            Tag::UtcTime => 13,
            Tag::GeneralizedTime => 15,
            _ => return Some("a time is neither UTCTime nor GeneralizedTime".into()),
        };
        let wanted = time.value().split_last().is_some_and(|(last, digits)| {
            *last == b'Z' && digits.iter().all(u8::is_ascii_digit) && time.value().len() == len
        });
        if !wanted {
            let text = String::from_utf8_lossy(time.value()).chars().take(30).collect::<String>();
            return Some(format!("{text:?} is not in Zulu time with seconds and no fraction"));
        }
    }
    None
}

pub(super) fn time_type(parts: &Parts<'_>) -> Outcome {
    for time in [parts.not_before, parts.not_after] {
        // A UTCTime cannot express 2050: its years from 50 on belong to the last century.
        if time.tag() == Tag::GeneralizedTime && time.value() < &b"2050"[..] {
            return Some("a time before 2050 is a GeneralizedTime".into());
        }
    }
    None
}

pub(super) fn time_order(parts: &Parts<'_>) -> Outcome {
    let comparable = |time: der::asn1::AnyRef<'_>| {
        let mut text = String::from_utf8_lossy(time.value()).into_owned();
        if time.tag() == Tag::UtcTime {
            let century = if text.as_str() < "50" { "20" } else { "19" };
            text.insert_str(0, century);
        }
        text
    };
    (comparable(parts.not_before) > comparable(parts.not_after))
        .then(|| "the validity ends before it begins".into())
}

pub(super) fn no_unique_identifiers(parts: &Parts<'_>) -> Outcome {
    parts.unique_identifiers.then(|| "there is a unique identifier".into())
}

/// X.690, sections 10 and 11: lengths, booleans, integers, the order of sets, the default of `critical`. Other defaults
/// and lists of named bits have rules of their own.
pub(super) fn canonical(parts: &Parts<'_>) -> Outcome {
    if !is_der(parts.tbs) {
        return Some("the certificate is not DER".into());
    }
    for extension in &parts.extensions {
        if extension.default_encoded {
            return Some(format!("the extension {} says that it is not critical", extension.oid));
        }
        if !is_der(extension.value) {
            return Some(format!("the value of the extension {} is not DER", extension.oid));
        }
    }
    None
}
