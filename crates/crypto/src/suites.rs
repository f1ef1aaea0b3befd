//! Cipher suites of TLS 1.3 and TLS 1.2 as rows.
//!
//! Sources: RFC 8446 (appendix B.4), RFC 5289, RFC 7905. Suites without forward secrecy or authenticated encryption
//! have no row.

use rustls::SupportedCipherSuite;
use rustls::crypto::aws_lc_rs::cipher_suite as aws;

use crate::versions::Version;

/// How the server authenticates itself in a suite.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Authentication {
    /// With a signature scheme of TLS 1.3.
    Any,
    /// With an ECDSA key (TLS 1.2).
    Ecdsa,
    /// With an RSA key (TLS 1.2).
    Rsa,
}

/// A cipher suite.
#[derive(Debug)]
pub struct Suite {
    /// Name in the IANA registry "TLS Cipher Suites".
    pub name: &'static str,
    /// Code point in that registry.
    pub code_point: u16,
    /// TLS version.
    pub version: Version,
    /// Required type of the certificate's key.
    pub authentication: Authentication,
    /// Length of the cipher's key in bits.
    pub key_bits: u16,
    /// Whether FIPS 140-3 approves its cipher.
    pub fips: bool,
    /// The implementation.
    pub suite: SupportedCipherSuite,
}

/// All suites, in order of preference.
pub static SUITES: &[Suite] = &[
    Suite {
        name: "TLS_AES_256_GCM_SHA384",
        code_point: 0x1302,
        version: Version::Tls13,
        authentication: Authentication::Any,
        key_bits: 256,
        fips: true,
        suite: aws::TLS13_AES_256_GCM_SHA384,
    },
    Suite {
        name: "TLS_AES_128_GCM_SHA256",
        code_point: 0x1301,
        version: Version::Tls13,
        authentication: Authentication::Any,
        key_bits: 128,
        fips: true,
        suite: aws::TLS13_AES_128_GCM_SHA256,
    },
    Suite {
        name: "TLS_CHACHA20_POLY1305_SHA256",
        code_point: 0x1303,
        version: Version::Tls13,
        authentication: Authentication::Any,
        key_bits: 256,
        fips: false,
        suite: aws::TLS13_CHACHA20_POLY1305_SHA256,
    },
    Suite {
        name: "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
        code_point: 0xc02c,
        version: Version::Tls12,
        authentication: Authentication::Ecdsa,
        key_bits: 256,
        fips: true,
        suite: aws::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
    },
    Suite {
        name: "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
        code_point: 0xc02b,
        version: Version::Tls12,
        authentication: Authentication::Ecdsa,
        key_bits: 128,
        fips: true,
        suite: aws::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
    },
    Suite {
        name: "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
        code_point: 0xcca9,
        version: Version::Tls12,
        authentication: Authentication::Ecdsa,
        key_bits: 256,
        fips: false,
        suite: aws::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
    },
    Suite {
        name: "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
        code_point: 0xc030,
        version: Version::Tls12,
        authentication: Authentication::Rsa,
        key_bits: 256,
        fips: true,
        suite: aws::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
    },
    Suite {
        name: "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
        code_point: 0xc02f,
        version: Version::Tls12,
        authentication: Authentication::Rsa,
        key_bits: 128,
        fips: true,
        suite: aws::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
    },
    Suite {
        name: "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
        code_point: 0xcca8,
        version: Version::Tls12,
        authentication: Authentication::Rsa,
        key_bits: 256,
        fips: false,
        suite: aws::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
    },
];

impl Suite {
    /// The row with this IANA name.
    pub fn by_name(name: &str) -> Option<&'static Self> {
        SUITES.iter().find(|row| row.name == name)
    }

    /// The row with this code point.
    pub fn by_code_point(code_point: u16) -> Option<&'static Self> {
        SUITES.iter().find(|row| row.code_point == code_point)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_the_suite_that_it_names() {
        for row in SUITES {
            assert_eq!(u16::from(row.suite.suite()), row.code_point, "{}", row.name);
            let name = row.suite.suite().as_str().unwrap().replacen("TLS13_", "TLS_", 1);
            assert_eq!(name, row.name);
            let is_13 = row.suite.tls13().is_some();
            assert_eq!(is_13, row.version == Version::Tls13, "{}", row.name);
            let is_fips = row.suite.fips();
            assert_eq!(is_fips, row.fips && aws_lc_rs::try_fips_mode().is_ok(), "{}", row.name);
        }
        let all = rustls::crypto::aws_lc_rs::ALL_CIPHER_SUITES;
        assert_eq!(all.len(), SUITES.len(), "rustls has more than there are rows for");
    }
}
