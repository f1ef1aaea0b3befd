//! Message digests as rows, each with a streaming context.

use const_oid::ObjectIdentifier;
use sha3::digest::{ExtendableOutput, Update};

/// A message digest algorithm.
#[derive(Debug)]
pub struct Digest {
    /// Name on command lines: `sha512`.
    pub name: &'static str,
    /// OID (NIST CSOR, RFC 8702 for SHAKE).
    pub oid: ObjectIdentifier,
    /// Output length in bytes.
    pub output_len: usize,
    start: fn() -> Box<dyn DigestContext>,
}

/// A digest computation in progress.
pub trait DigestContext: Send {
    /// Adds `data` to the message.
    fn update(&mut self, data: &[u8]);
    /// Ends the message and returns its digest.
    fn finish(self: Box<Self>) -> Vec<u8>;
}

/// All digests. SHA-512 comes first because RFC 9882 (section 3.3) requires every implementation to have it.
pub static DIGESTS: &[Digest] = &[
    Digest {
        name: "sha512",
        oid: oid("2.16.840.1.101.3.4.2.3"),
        output_len: 64,
        start: || aws_lc(&aws_lc_rs::digest::SHA512),
    },
    Digest {
        name: "shake256",
        oid: oid("2.16.840.1.101.3.4.2.12"),
        output_len: 64,
        start: || Box::new(Shake256(sha3::Shake256::default())),
    },
    Digest {
        name: "sha384",
        oid: oid("2.16.840.1.101.3.4.2.2"),
        output_len: 48,
        start: || aws_lc(&aws_lc_rs::digest::SHA384),
    },
    Digest {
        name: "sha256",
        oid: oid("2.16.840.1.101.3.4.2.1"),
        output_len: 32,
        start: || aws_lc(&aws_lc_rs::digest::SHA256),
    },
    Digest {
        name: "sha3-512",
        oid: oid("2.16.840.1.101.3.4.2.10"),
        output_len: 64,
        start: || aws_lc(&aws_lc_rs::digest::SHA3_512),
    },
    Digest {
        name: "sha3-384",
        oid: oid("2.16.840.1.101.3.4.2.9"),
        output_len: 48,
        start: || aws_lc(&aws_lc_rs::digest::SHA3_384),
    },
    Digest {
        name: "sha3-256",
        oid: oid("2.16.840.1.101.3.4.2.8"),
        output_len: 32,
        start: || aws_lc(&aws_lc_rs::digest::SHA3_256),
    },
    Digest {
        name: "shake128",
        oid: oid("2.16.840.1.101.3.4.2.11"),
        output_len: 32,
        start: || Box::new(Shake128(sha3::Shake128::default())),
    },
];

/// SHA-1, by which OCSP names issuers and responders (RFC 6960, section 4.1.1; RFC 5019, section 2.1.1).
///
/// It is not in [`DIGESTS`], so code that looks up a digest for a signature cannot find it.
pub static SHA1_FOR_IDENTIFIERS: Digest = Digest {
    name: "sha1",
    oid: oid("1.3.14.3.2.26"),
    output_len: 20,
    start: || aws_lc(&aws_lc_rs::digest::SHA1_FOR_LEGACY_USE_ONLY),
};

impl Digest {
    /// The row named `name`.
    pub fn by_name(name: &str) -> Option<&'static Self> {
        DIGESTS.iter().find(|row| row.name == name)
    }

    /// The row with this OID.
    pub fn by_oid(oid: ObjectIdentifier) -> Option<&'static Self> {
        DIGESTS.iter().find(|row| row.oid == oid)
    }

    /// Starts a new computation.
    pub fn start(&self) -> Box<dyn DigestContext> {
        (self.start)()
    }

    /// Digest of a message that is in memory.
    ///
    /// ```
    /// use outlast_crypto::digests::Digest;
    ///
    /// let sha512 = Digest::by_name("sha512").unwrap();
    /// assert_eq!(sha512.digest(b"abc")[..4], [0xdd, 0xaf, 0x35, 0xa1]); // FIPS 180-4's example
    /// ```
    pub fn digest(&self, message: &[u8]) -> Vec<u8> {
        let mut context = self.start();
        context.update(message);
        context.finish()
    }
}

/// SHA-256 of `message`: 32 bytes.
pub fn sha256(message: &[u8]) -> [u8; 32] {
    let mut out = [0; 32];
    out.copy_from_slice(aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, message).as_ref());
    out
}

const fn oid(text: &str) -> ObjectIdentifier {
    ObjectIdentifier::new_unwrap(text)
}

struct AwsLc(aws_lc_rs::digest::Context);

fn aws_lc(algorithm: &'static aws_lc_rs::digest::Algorithm) -> Box<dyn DigestContext> {
    Box::new(AwsLc(aws_lc_rs::digest::Context::new(algorithm)))
}

impl DigestContext for AwsLc {
    fn update(&mut self, data: &[u8]) {
        self.0.update(data);
    }
    fn finish(self: Box<Self>) -> Vec<u8> {
        self.0.finish().as_ref().to_vec()
    }
}

struct Shake128(sha3::Shake128);
struct Shake256(sha3::Shake256);

impl DigestContext for Shake128 {
    fn update(&mut self, data: &[u8]) {
        self.0.update(data);
    }
    fn finish(self: Box<Self>) -> Vec<u8> {
        self.0.finalize_boxed(32).into_vec()
    }
}

impl DigestContext for Shake256 {
    fn update(&mut self, data: &[u8]) {
        self.0.update(data);
    }
    fn finish(self: Box<Self>) -> Vec<u8> {
        // RFC 8702, section 3.1: the output of SHAKE256 as a message digest is 64 bytes.
        self.0.finalize_boxed(64).into_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Digests of "abc": the examples of FIPS 180-4 and FIPS 202 that NIST's CSRC publishes.
    const ABC: &[(&str, &str)] = &[
        ("sha256", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        (
            "sha384",
            "cb00753f45a35e8bb5a03d699ac65007272c32ab0eded1631a8b605a43ff5bed8086072ba1e7cc2358baeca134c825a7",
        ),
        (
            "sha512",
            "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f",
        ),
        ("sha3-256", "3a985da74fe225b2045c172d6bd390bd855f086e3e9d525b46bfe24511431532"),
        (
            "sha3-384",
            "ec01498288516fc926459f58e2c6ad8df9b473cb0fc08c2596da7cf0e49be4b298d88cea927ac7f539f1edf228376d25",
        ),
        (
            "sha3-512",
            "b751850b1a57168a5693cd924b6b096e08f621827444f70d884f5d0240d2712e10e116e9192af3c91a7ec57647e3934057340b4cf408d5a56592f8274eec53f0",
        ),
        ("shake128", "5881092dd818bf5cf8a3ddb793fbcba74097d5c526a6d35f97b83351940f2cc8"),
        (
            "shake256",
            "483366601360a8771c6863080cc4114d8db44530f8f1e1ee4f94ea37e78b5739d5a15bef186a5386c75744c0527e1faa9f8726e462a12a4feb06bd8801e751e4",
        ),
    ];

    #[test]
    fn sha1_is_found_by_nothing_that_signs() {
        let answer = "a9993e364706816aba3e25717850c26c9cd0d89d";
        assert_eq!(hex::encode(SHA1_FOR_IDENTIFIERS.digest(b"abc")), answer);
        assert!(Digest::by_name("sha1").is_none());
        assert!(Digest::by_oid(SHA1_FOR_IDENTIFIERS.oid).is_none());
    }

    #[test]
    fn every_row_has_its_known_answer() {
        for row in DIGESTS {
            let (_, expected) = ABC.iter().find(|(name, _)| *name == row.name).expect(row.name);
            assert_eq!(hex::encode(row.digest(b"abc")), *expected, "{}", row.name);
            assert_eq!(row.digest(b"").len(), row.output_len);
            assert!(std::ptr::eq(Digest::by_oid(row.oid).unwrap(), row));
        }
        assert_eq!(ABC.len(), DIGESTS.len());
    }
}
