//! Common clients, as rows, for explanations and differences of policies.
//!
//! The offers were captured from that software with its defaults, unless the name says otherwise. They stand for
//! their kind; the ledger knows the real clients of a door.

use crate::offer::{Offer, Transport};

/// A kind of client.
#[derive(Debug)]
pub struct Client {
    /// Name in explanations.
    pub name: &'static str,
    versions: &'static [u16],
    suites: &'static [u16],
    groups: &'static [u16],
    shares: &'static [u16],
    schemes: &'static [u16],
}

const BOTH: &[u16] = &[0x0304, 0x0303];
const BROWSER_SUITES: &[u16] = &[
    0x1301, 0x1302, 0x1303, 0xc02b, 0xc02f, 0xc02c, 0xc030, 0xcca9, 0xcca8, 0xc013, 0xc014, 0x009c,
    0x009d, 0x002f, 0x0035,
];
const OPENSSL_SUITES: &[u16] = &[
    0x1302, 0x1303, 0x1301, 0xc02c, 0xc030, 0x009f, 0xcca9, 0xcca8, 0xccaa, 0xc02b, 0xc02f, 0x009e,
    0xc024, 0xc028, 0x006b, 0xc023, 0xc027, 0x0067, 0xc00a, 0xc014, 0x0039, 0xc009, 0xc013, 0x0033,
    0x009d, 0x009c, 0x003d, 0x003c, 0x0035, 0x002f,
];
const BROWSER_SCHEMES: &[u16] = &[0x0403, 0x0804, 0x0401, 0x0503, 0x0805, 0x0501, 0x0806, 0x0601];
const OPENSSL_SCHEMES: &[u16] = &[
    0x0403, 0x0503, 0x0603, 0x0807, 0x0808, 0x0809, 0x080a, 0x080b, 0x0804, 0x0805, 0x0806, 0x0401,
    0x0501, 0x0601,
];
const OPENSSL_35_SCHEMES: &[u16] = &[
    0x0905, 0x0906, 0x0904, 0x0403, 0x0503, 0x0603, 0x0807, 0x0808, 0x081a, 0x081b, 0x081c, 0x0809,
    0x080a, 0x080b, 0x0804, 0x0805, 0x0806, 0x0401, 0x0501, 0x0601,
];

/// All kinds, the best protected first.
pub static CROWD: &[Client] = &[
    Client {
        name: "browser with X25519MLKEM768",
        versions: BOTH,
        suites: BROWSER_SUITES,
        groups: &[0x11ec, 0x001d, 0x0017, 0x0018],
        shares: &[0x11ec, 0x001d],
        schemes: BROWSER_SCHEMES,
    },
    Client {
        name: "OpenSSL 3.5 or newer",
        versions: BOTH,
        suites: OPENSSL_SUITES,
        groups: &[0x11ec, 0x001d, 0x0017, 0x001e, 0x0018, 0x0019, 0x0100, 0x0101],
        shares: &[0x11ec, 0x001d],
        schemes: OPENSSL_35_SCHEMES,
    },
    Client {
        name: "OpenSSL 3.5 with its classical group first",
        versions: BOTH,
        suites: OPENSSL_SUITES,
        groups: &[0x001d, 0x11ec],
        shares: &[0x001d],
        schemes: OPENSSL_35_SCHEMES,
    },
    Client {
        name: "client with all three hybrids and ML-DSA",
        versions: BOTH,
        suites: OPENSSL_SUITES,
        groups: &[0x11ec, 0x11eb, 0x11ed, 0x0017, 0x001d, 0x0018, 0x0019],
        shares: &[0x11ec],
        schemes: OPENSSL_35_SCHEMES,
    },
    Client {
        name: "client with SecP256r1MLKEM768 and NIST curves, as under FIPS",
        versions: BOTH,
        suites: &[0x1302, 0x1301, 0xc02c, 0xc030, 0xc02b, 0xc02f],
        groups: &[0x11eb, 0x11ed, 0x0017, 0x0018, 0x0019],
        shares: &[0x11eb, 0x0017],
        schemes: OPENSSL_SCHEMES,
    },
    Client {
        name: "client of CNSA 2.0",
        versions: &[0x0304],
        suites: &[0x1302],
        groups: &[0x0202],
        shares: &[0x0202],
        schemes: &[0x0906],
    },
    Client {
        name: "OpenSSL 3.0 (AWS CLI and boto3 on older systems)",
        versions: BOTH,
        suites: OPENSSL_SUITES,
        groups: &[0x001d, 0x0017, 0x001e, 0x0019, 0x0018, 0x0100, 0x0101, 0x0102, 0x0103, 0x0104],
        shares: &[0x001d],
        schemes: OPENSSL_SCHEMES,
    },
    Client {
        name: "client with NIST curves only",
        versions: BOTH,
        suites: &[0x1302, 0x1301, 0xc02c, 0xc030, 0xc02b, 0xc02f],
        groups: &[0x0017, 0x0018, 0x0019],
        shares: &[0x0017],
        schemes: OPENSSL_SCHEMES,
    },
    Client {
        name: "client of TLS 1.2",
        versions: &[0x0303],
        suites: OPENSSL_SUITES,
        groups: &[0x001d, 0x0017, 0x001e, 0x0019, 0x0018],
        shares: &[],
        schemes: OPENSSL_SCHEMES,
    },
];

impl Client {
    /// Its offer.
    pub fn offer(&self) -> Offer {
        let is_13 = self.versions.contains(&0x0304);
        let extensions: &[u16] = if is_13 { &[10, 13, 43, 51] } else { &[10, 13] };
        Offer {
            transport: Transport::Tcp,
            versions: self.versions.to_vec(),
            suites: self.suites.to_vec(),
            groups: self.groups.to_vec(),
            shares: is_13.then(|| self.shares.to_vec()),
            schemes: self.schemes.to_vec(),
            certificate_schemes: None,
            sni: None,
            protocols: Vec::new(),
            extensions: extensions.to_vec(),
            resumes: false,
        }
    }
}
