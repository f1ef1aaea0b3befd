//! Responses (RFC 3161, section 2.4.2): a token, or why there is none.

use std::fmt::Write as _;

use der::asn1::{Any, BitString, Int, Utf8StringRef};
use der::{Decode, Encode};

use super::{MAX_RESPONSE_LEN, MAX_TEXT_LEN, asn1, malformed};
use crate::PkiError;

/// `PKIStatus`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// There is a token, as it was asked for.
    Granted = 0,
    /// There is a token, but something is not as it was asked for.
    GrantedWithMods = 1,
    /// Refused.
    Rejection = 2,
    /// To be asked for again later.
    Waiting = 3,
    /// The authority's certificate is about to be revoked.
    RevocationWarning = 4,
    /// It was revoked.
    RevocationNotification = 5,
}

const STATUSES: [Status; 6] = [
    Status::Granted,
    Status::GrantedWithMods,
    Status::Rejection,
    Status::Waiting,
    Status::RevocationWarning,
    Status::RevocationNotification,
];

/// `PKIFailureInfo`, of which RFC 3161 allows these. The number is the bit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Failure {
    /// The digest of the imprint is not accepted.
    BadAlg = 0,
    /// The transaction is not permitted or supported.
    BadRequest = 2,
    /// The request cannot be parsed.
    BadDataFormat = 5,
    /// The authority's clock is not available.
    TimeNotAvailable = 14,
    /// The policy that was asked for is not supported.
    UnacceptedPolicy = 15,
    /// An extension is not supported.
    UnacceptedExtension = 16,
    /// Further information is not available.
    AddInfoNotAvailable = 17,
    /// The request cannot be carried out because of the authority.
    SystemFailure = 25,
}

/// All failures with their names in RFC 3161.
const FAILURES: &[(Failure, &str)] = &[
    (Failure::BadAlg, "badAlg"),
    (Failure::BadRequest, "badRequest"),
    (Failure::BadDataFormat, "badDataFormat"),
    (Failure::TimeNotAvailable, "timeNotAvailable"),
    (Failure::UnacceptedPolicy, "unacceptedPolicy"),
    (Failure::UnacceptedExtension, "unacceptedExtension"),
    (Failure::AddInfoNotAvailable, "addInfoNotAvailable"),
    (Failure::SystemFailure, "systemFailure"),
];

impl Failure {
    /// Name in RFC 3161.
    pub fn name(self) -> &'static str {
        FAILURES.iter().find(|(failure, _)| *failure == self).map_or("", |(_, name)| name)
    }

    const fn bit(self) -> usize {
        self as usize
    }
}

/// A parsed response. Parsing does not verify the token: see [`super::Token`].
#[derive(Debug, Clone)]
pub struct Response {
    /// What became of the request.
    pub status: Status,
    /// The authority's explanation, without control characters and shortened to [`MAX_TEXT_LEN`] characters.
    pub text: Option<String>,
    /// Why it was refused.
    pub failure: Option<Failure>,
    /// The token in DER or BER.
    pub token: Option<Vec<u8>>,
}

impl Response {
    /// Parses a response of at most [`MAX_RESPONSE_LEN`] bytes.
    pub fn parse(der: &[u8]) -> Result<Self, PkiError> {
        let wrong = |reason: &str| PkiError::Malformed {
            what: "timestamp response",
            reason: reason.to_owned(),
        };
        if der.len() > MAX_RESPONSE_LEN {
            return Err(wrong(&format!("it is longer than {MAX_RESPONSE_LEN} bytes")));
        }
        let response = asn1::TimeStampResp::from_der(der)
            .map_err(|error| PkiError::malformed("timestamp response", &error))?;
        let [number] = response.status.status.as_bytes() else {
            return Err(wrong("its status is not a PKIStatus"));
        };
        let status = STATUSES
            .into_iter()
            .find(|status| *status as u8 == *number)
            .ok_or_else(|| wrong("its status is not a PKIStatus"))?;
        let failure = response.status.fail_info.as_ref().and_then(|bits| {
            let is_set = |bit: usize| bits.bits().nth(bit) == Some(true);
            FAILURES.iter().map(|(failure, _)| *failure).find(|failure| is_set(failure.bit()))
        });
        let token =
            response.time_stamp_token.map(|any| any.to_der()).transpose().map_err(malformed)?;
        // RFC 3161, section 2.4.2: a token exactly if it was granted.
        let is_granted = matches!(status, Status::Granted | Status::GrantedWithMods);
        if is_granted != token.is_some() {
            return Err(wrong(match is_granted {
                true => "it grants a token and has none",
                false => "it has a token without granting it",
            }));
        }
        let text = response.status.status_string.as_deref().and_then(text);
        Ok(Self { status, text, failure, token })
    }

    /// Why there is no token, in words: `unacceptedPolicy: the policy 1.2.3 is not supported`.
    pub fn explanation(&self) -> String {
        let mut out = String::new();
        match self.failure {
            Some(failure) => out.push_str(failure.name()),
            None => {
                let _ = write!(out, "status {}", self.status as u8);
            }
        }
        if let Some(text) = &self.text {
            let _ = write!(out, ": {text}");
        }
        out
    }

    /// A response with a token (DER).
    pub fn granted(token: &[u8]) -> Result<Vec<u8>, PkiError> {
        let build = || {
            let status = info(Status::Granted, None, None)?;
            asn1::TimeStampResp { status, time_stamp_token: Some(Any::from_der(token)?) }.to_der()
        };
        build().map_err(malformed)
    }
}

/// A response that refuses, with the reason for people.
pub fn refusal(failure: Failure, text: &str) -> Result<Vec<u8>, PkiError> {
    let build = || {
        let status = info(Status::Rejection, Some(text), Some(failure))?;
        asn1::TimeStampResp { status, time_stamp_token: None }.to_der()
    };
    build().map_err(malformed)
}

fn info(
    status: Status,
    text: Option<&str>,
    failure: Option<Failure>,
) -> der::Result<asn1::PkiStatusInfo> {
    let status_string = match text {
        Some(text) => Some(vec![Any::encode_from(&Utf8StringRef::new(text)?)?]),
        None => None,
    };
    let fail_info = match failure {
        Some(failure) => Some(one_bit(failure.bit())?),
        None => None,
    };
    Ok(asn1::PkiStatusInfo { status: Int::new(&[status as u8])?, status_string, fail_info })
}

/// A named bit list with one bit (X.690, section 11.2.2: no zero bits at the end).
fn one_bit(bit: usize) -> der::Result<BitString> {
    let mut bytes = vec![0u8; bit / 8 + 1];
    let unused = 7 - bit % 8;
    if let Some(last) = bytes.last_mut() {
        *last = 1 << unused;
    }
    BitString::new(u8::try_from(unused).unwrap_or(0), bytes)
}

fn text(parts: &[Any]) -> Option<String> {
    let mut out = String::new();
    for part in parts {
        let Ok(part) = part.decode_as::<Utf8StringRef<'_>>() else { continue };
        if !out.is_empty() {
            out.push_str("; ");
        }
        let left = MAX_TEXT_LEN.saturating_sub(out.chars().count());
        out.extend(part.as_str().chars().filter(|char| !char.is_control()).take(left));
    }
    Some(out).filter(|text| !text.is_empty())
}
