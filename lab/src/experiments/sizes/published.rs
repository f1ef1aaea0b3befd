//! Sizes from standards and submissions, in bytes. Algorithms that cannot run here are shown from this table alone.

/// Kind of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Key encapsulation.
    Kem,
    /// Signatures.
    Signature,
}

/// A published algorithm.
#[derive(Debug, Clone, Copy)]
pub struct Published {
    /// Name in the source, or the lab's.
    pub name: &'static str,
    /// Kind.
    pub kind: Kind,
    /// Bytes of a public key.
    pub public_key: usize,
    /// Bytes of a secret key.
    pub secret_key: usize,
    /// Bytes of a ciphertext or signature, at most.
    pub output: usize,
    /// Source.
    pub source: &'static str,
}

const fn kem(name: &'static str, sizes: [usize; 3], source: &'static str) -> Published {
    let [public_key, secret_key, output] = sizes;
    Published { name, kind: Kind::Kem, public_key, secret_key, output, source }
}

const fn signature(name: &'static str, sizes: [usize; 3], source: &'static str) -> Published {
    let [public_key, secret_key, output] = sizes;
    Published { name, kind: Kind::Signature, public_key, secret_key, output, source }
}

/// The standard of ML-KEM, which the service's algorithms must match.
pub const FIPS_203: &str = "FIPS 203, table 3";
/// The standard of ML-DSA.
pub const FIPS_204: &str = "FIPS 204, table 2";
/// The standard of SLH-DSA.
pub const FIPS_205: &str = "FIPS 205, table 2";
/// Ed25519.
pub const RFC_8032: &str = "RFC 8032, section 5.1";
const KYBER_2: &str = "NIST round 2 submission (2019)";
const KYBER_3: &str = "NIST round 3 submission (2020)";
const SABER: &str = "NIST round 3 submission (2020)";
const NTRU: &str = "NIST round 3 submission (2020)";
const DILITHIUM_2: &str = "NIST round 2 submission (2019)";
const DILITHIUM_3: &str = "NIST round 3 submission (2021)";
const FALCON: &str = "NIST round 3 submission (2020); signatures as liboqs of 2022 counts them";
const FN_DSA: &str = "draft of FIPS 206, as in fn-dsa 0.4: signatures are padded";
const AIGIS: &str = "Zhang et al., PKC 2020, and PQMagic 1.0.7";
const COMPETITION: &str = "Chinese competition (CACR 2019), in the 2022 study";

/// All rows.
pub const PUBLISHED: &[Published] = &[
    kem("ML-KEM-512", [800, 1632, 768], FIPS_203),
    kem("ML-KEM-768", [1184, 2400, 1088], FIPS_203),
    kem("ML-KEM-1024", [1568, 3168, 1568], FIPS_203),
    signature("ML-DSA-44", [1312, 2560, 2420], FIPS_204),
    signature("ML-DSA-65", [1952, 4032, 3309], FIPS_204),
    signature("ML-DSA-87", [2592, 4896, 4627], FIPS_204),
    signature("SLH-DSA-SHA2-128S", [32, 64, 7856], FIPS_205),
    signature("SLH-DSA-SHA2-256S", [64, 128, 29792], FIPS_205),
    signature("Ed25519", [32, 32, 64], RFC_8032),
    kem("kyber512_r2", [800, 1632, 736], KYBER_2),
    kem("kyber768_r2", [1184, 2400, 1088], KYBER_2),
    kem("kyber1024_r2", [1568, 3168, 1568], KYBER_2),
    kem("kyber512_90s_r2", [800, 1632, 736], KYBER_2),
    kem("kyber768_90s_r2", [1184, 2400, 1088], KYBER_2),
    kem("kyber1024_90s_r2", [1568, 3168, 1568], KYBER_2),
    kem("kyber512_r3", [800, 1632, 768], KYBER_3),
    kem("kyber768_r3", [1184, 2400, 1088], KYBER_3),
    kem("kyber1024_r3", [1568, 3168, 1568], KYBER_3),
    kem("lightsaber", [672, 1568, 736], SABER),
    kem("saber", [992, 2304, 1088], SABER),
    kem("firesaber", [1312, 3040, 1472], SABER),
    kem("ntru_hps2048509", [699, 935, 699], NTRU),
    kem("ntru_hps2048677", [930, 1234, 930], NTRU),
    kem("ntru_hps4096821", [1230, 1590, 1230], NTRU),
    kem("ntru_hrss701", [1138, 1450, 1138], NTRU),
    kem("aigis_enc_1", [672, 1568, 736], AIGIS),
    kem("aigis_enc_2", [896, 2208, 992], AIGIS),
    kem("aigis_enc_3", [992, 2304, 1056], AIGIS),
    kem("aigis_enc_4", [1440, 3168, 1568], AIGIS),
    kem("akcn_mlwe", [992, 2304, 1056], COMPETITION),
    signature("dilithium2_r2", [1184, 2800, 2044], DILITHIUM_2),
    signature("dilithium3_r2", [1472, 3504, 2701], DILITHIUM_2),
    signature("dilithium4_r2", [1760, 3856, 3366], DILITHIUM_2),
    signature("dilithium2_r3", [1312, 2528, 2420], DILITHIUM_3),
    signature("dilithium3_r3", [1952, 4000, 3293], DILITHIUM_3),
    signature("dilithium5_r3", [2592, 4864, 4595], DILITHIUM_3),
    signature("falcon512", [897, 1281, 690], FALCON),
    signature("falcon1024", [1793, 2305, 1330], FALCON),
    signature("fn_dsa_512_draft", [897, 1281, 666], FN_DSA),
    signature("fn_dsa_1024_draft", [1793, 2305, 1280], FN_DSA),
    signature("aigis_sig1", [1056, 2448, 1852], AIGIS),
    signature("aigis_sig2", [1312, 3376, 2445], AIGIS),
    signature("aigis_sig3", [1568, 3888, 3046], AIGIS),
    signature("mulan", [1312, 3056, 2573], COMPETITION),
];

/// Key shares in the standards: client's, server's.
pub const SHARES: &[(&str, [usize; 2], &str)] = &[
    ("X25519MLKEM768", [1216, 1120], "RFC 10024"),
    ("SecP256r1MLKEM768", [1249, 1153], "RFC 10024"),
    ("SecP384r1MLKEM1024", [1665, 1665], "RFC 10024"),
    ("MLKEM1024", [1568, 1568], FIPS_203),
    ("MLKEM768", [1184, 1088], FIPS_203),
    ("x25519", [32, 32], "RFC 7748, section 6.1"),
    ("secp256r1", [65, 65], "RFC 8446, section 4.2.8.2"),
    ("secp384r1", [97, 97], "RFC 8446, section 4.2.8.2"),
    ("secp521r1", [133, 133], "RFC 8446, section 4.2.8.2"),
];

impl Published {
    /// The row with this name.
    pub fn by_name(name: &str) -> Option<&'static Self> {
        PUBLISHED.iter().find(|row| row.name == name)
    }
}
