//! The two AWS types that differ between JSON and CBOR, and the type of members that are ignored.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ciborium::tag::Required;
use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde::ser::{Serialize, Serializer};

/// Bytes: base64 in JSON, a byte string in CBOR. `Debug` shows only the length, because they may be a plaintext.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Blob(pub Vec<u8>);

impl fmt::Debug for Blob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Blob({} bytes)", self.0.len())
    }
}

impl Serialize for Blob {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            serializer.serialize_str(&STANDARD.encode(&self.0))
        } else {
            serializer.serialize_bytes(&self.0)
        }
    }
}

impl<'de> Deserialize<'de> for Blob {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if deserializer.is_human_readable() {
            let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
            STANDARD.decode(text.as_bytes()).map(Self).map_err(|_| D::Error::custom("not base64"))
        } else {
            deserializer.deserialize_byte_buf(BytesVisitor)
        }
    }
}

/// PEM text as AWS sends it: without the last newline.
pub fn pem(mut text: String) -> String {
    text.truncate(text.trim_end().len());
    text
}

/// A member that is read and dropped: the secret of a feature that is not served.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Discarded;

impl Serialize for Discarded {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_unit()
    }
}

impl<'de> Deserialize<'de> for Discarded {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        serde::de::IgnoredAny::deserialize(deserializer).map(|_| Self)
    }
}

struct BytesVisitor;

impl Visitor<'_> for BytesVisitor {
    type Value = Blob;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a byte string")
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Blob, E> {
        Ok(Blob(bytes.to_vec()))
    }

    fn visit_byte_buf<E: Error>(self, bytes: Vec<u8>) -> Result<Blob, E> {
        Ok(Blob(bytes))
    }
}

/// A point in time in milliseconds since 1970: seconds as a number in JSON, tag 1 in CBOR.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timestamp {
    /// Milliseconds since 1970.
    pub ms: i64,
}

impl Timestamp {
    /// From milliseconds since 1970.
    pub fn from_ms(ms: i64) -> Self {
        Self { ms }
    }

    /// From seconds since 1970.
    pub fn from_seconds(seconds: i64) -> Self {
        Self { ms: seconds.saturating_mul(1000) }
    }

    fn seconds(self) -> f64 {
        // Exact for every date before the year 280,000.
        #[expect(clippy::cast_precision_loss, reason = "milliseconds fit 53 bits")]
        let seconds = self.ms as f64 / 1000.0;
        seconds
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if !serializer.is_human_readable() {
            return Required::<f64, 1>(self.seconds()).serialize(serializer);
        }
        if self.ms % 1000 == 0 {
            serializer.serialize_i64(self.ms / 1000)
        } else {
            serializer.serialize_f64(self.seconds())
        }
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let seconds = if deserializer.is_human_readable() {
            f64::deserialize(deserializer)?
        } else {
            Required::<f64, 1>::deserialize(deserializer)?.0
        };
        if !(-1e12..=1e12).contains(&seconds) {
            return Err(D::Error::custom("the timestamp is out of range"));
        }
        #[expect(clippy::cast_possible_truncation, reason = "the range was checked")]
        let ms = (seconds * 1000.0).round() as i64;
        Ok(Self { ms })
    }
}
