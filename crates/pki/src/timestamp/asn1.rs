//! The ASN.1 of RFC 3161, section 2.4, for `der`.

use const_oid::ObjectIdentifier;
use der::Sequence;
use der::asn1::{Any, BitString, Int, OctetString};
use spki::AlgorithmIdentifierOwned;
use x509_cert::ext::Extension;

use super::Accuracy as Value;

#[derive(Debug, Clone, PartialEq, Eq, Sequence)]
pub struct MessageImprint {
    pub hash_algorithm: AlgorithmIdentifierOwned,
    pub hashed_message: OctetString,
}

#[derive(Debug, Sequence)]
pub struct TimeStampReq {
    pub version: Int,
    pub message_imprint: MessageImprint,
    pub req_policy: Option<ObjectIdentifier>,
    pub nonce: Option<Int>,
    #[asn1(default = "Default::default")]
    pub cert_req: bool,
    #[asn1(context_specific = "0", tag_mode = "IMPLICIT", constructed = "true", optional = "true")]
    pub extensions: Option<Vec<Extension>>,
}

#[derive(Debug, Sequence)]
pub struct TimeStampResp {
    pub status: PkiStatusInfo,
    /// A `ContentInfo`, raw.
    pub time_stamp_token: Option<Any>,
}

/// RFC 4210, section 5.2.3.
#[derive(Debug, Sequence)]
pub struct PkiStatusInfo {
    pub status: Int,
    /// `PKIFreeText ::= SEQUENCE SIZE (1..MAX) OF UTF8String`
    pub status_string: Option<Vec<Any>>,
    pub fail_info: Option<BitString>,
}

#[derive(Debug, Sequence)]
pub struct TstInfo {
    pub version: Int,
    pub policy: ObjectIdentifier,
    pub message_imprint: MessageImprint,
    pub serial_number: Int,
    /// A GeneralizedTime with a fraction, which `der` does not parse: see [`super::gen_time`].
    pub gen_time: Any,
    pub accuracy: Option<Accuracy>,
    #[asn1(default = "Default::default")]
    pub ordering: bool,
    pub nonce: Option<Int>,
    /// A `GeneralName`. Explicit, because it is a CHOICE (X.680, section 31.2.7).
    #[asn1(context_specific = "0", tag_mode = "EXPLICIT", optional = "true")]
    pub tsa: Option<Any>,
    #[asn1(context_specific = "1", tag_mode = "IMPLICIT", constructed = "true", optional = "true")]
    pub extensions: Option<Vec<Extension>>,
}

#[derive(Debug, Sequence)]
pub struct Accuracy {
    pub seconds: Option<u32>,
    /// 1 to 999.
    #[asn1(context_specific = "0", tag_mode = "IMPLICIT", optional = "true")]
    pub millis: Option<u16>,
    /// 1 to 999.
    #[asn1(context_specific = "1", tag_mode = "IMPLICIT", optional = "true")]
    pub micros: Option<u16>,
}

impl Accuracy {
    /// Encoded without the parts that are zero.
    pub fn of(value: Value) -> Self {
        let part = |micros: u64| u16::try_from(micros % 1000).ok().filter(|part| *part > 0);
        let seconds = u32::try_from(value.micros / 1_000_000).unwrap_or(u32::MAX);
        Self {
            seconds: Some(seconds).filter(|seconds| *seconds > 0),
            millis: part(value.micros / 1000),
            micros: part(value.micros),
        }
    }

    /// `None` if a part is out of its range.
    pub fn value(&self) -> Option<Value> {
        let part = |part: Option<u16>| match part {
            None => Some(0),
            Some(value @ 0..=999) => Some(u64::from(value)),
            Some(_) => None,
        };
        let seconds = u64::from(self.seconds.unwrap_or(0));
        Some(Value { micros: seconds * 1_000_000 + part(self.millis)? * 1000 + part(self.micros)? })
    }
}
