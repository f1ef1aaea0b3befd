//! Which software reads which private keys in which form, as rows.

use super::PrivateKey;

/// Whether software reads a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// It does.
    Yes,
    /// It does not.
    No,
    /// Unknown: neither documented nor tried.
    Unknown,
}

impl Answer {
    /// `yes`, `no` or `unknown`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Yes => "yes",
            Self::No => "no",
            Self::Unknown => "unknown",
        }
    }
}

/// Software that reads private keys. It does not read what no rule names.
#[derive(Debug)]
pub struct KeyReader {
    /// Name and version.
    pub name: &'static str,
    /// Source of the rules.
    pub source: &'static str,
    rules: &'static [Rule],
}

/// Prefixes of `KeySpec` names, forms as returned by [`PrivateKey::form_name`], and the answer.
type Rule = (&'static [&'static str], &'static [&'static str], Answer);

const NIST_EC: &[&str] = &["ECC_NIST_P"];
const ANY_EC: &[&str] = &["ECC_NIST_P", "ECC_SECG_"];
const EDWARDS: &[&str] = &["ECC_NIST_EDWARDS"];
const RSA: &[&str] = &["RSA_"];
const ML_DSA: &[&str] = &["ML_DSA_44", "ML_DSA_65", "ML_DSA_87"];
const ML: &[&str] = &["ML_DSA_44", "ML_DSA_65", "ML_DSA_87", "ML_KEM_"];
/// BoringSSL has no ML-KEM-512.
const BORING_ML: &[&str] = &["ML_DSA_44", "ML_DSA_65", "ML_DSA_87", "ML_KEM_768", "ML_KEM_1024"];
const SLH_DSA: &[&str] = &["SLH_DSA_"];
const COMPOSITE: &[&str] = &["ML_DSA_65_ECDSA_P256"];
const PKCS8: &[&str] = &["PKCS #8"];
const EC_FORMS: &[&str] = &["PKCS #8", "SEC 1"];
const RSA_FORMS: &[&str] = &["PKCS #8", "PKCS #1"];
const ALL_FORMS: &[&str] = &["seed", "expanded", "both"];
const SEED: &[&str] = &["seed"];

/// All software in the table.
pub static KEY_READERS: &[KeyReader] = &[
    KeyReader {
        name: "OpenSSL 3.5",
        source: "EVP_PKEY-ML-DSA(7) and EVP_PKEY-ML-KEM(7), input formats; tried with 3.5.7",
        rules: &[
            (ML, ALL_FORMS, Answer::Yes),
            (SLH_DSA, PKCS8, Answer::Yes),
            (ANY_EC, EC_FORMS, Answer::Yes),
            (EDWARDS, PKCS8, Answer::Yes),
            (RSA, RSA_FORMS, Answer::Yes),
        ],
    },
    KeyReader {
        name: "Go 1.27",
        source: "crypto/x509, ParsePKCS8PrivateKey and its kin; tried with 1.27.4",
        rules: &[
            (ML_DSA, SEED, Answer::Yes),
            (NIST_EC, EC_FORMS, Answer::Yes),
            (EDWARDS, PKCS8, Answer::Yes),
            (RSA, RSA_FORMS, Answer::Yes),
        ],
    },
    KeyReader {
        name: "BoringSSL",
        source: "crypto/evp/p_mldsa.cc and p_mlkem.cc, DecodePrivate: seeds only, on purpose",
        rules: &[
            (BORING_ML, SEED, Answer::Yes),
            (NIST_EC, EC_FORMS, Answer::Yes),
            (EDWARDS, PKCS8, Answer::Yes),
            (RSA, RSA_FORMS, Answer::Yes),
        ],
    },
    KeyReader {
        name: "BouncyCastle 1.86",
        source: "PEMParser and BouncyCastleProvider.getPrivateKey; tried with 1.86",
        rules: &[
            (COMPOSITE, PKCS8, Answer::Unknown),
            (ML, ALL_FORMS, Answer::Yes),
            (SLH_DSA, PKCS8, Answer::Yes),
            (ANY_EC, EC_FORMS, Answer::Yes),
            (EDWARDS, PKCS8, Answer::Yes),
            (RSA, RSA_FORMS, Answer::Yes),
        ],
    },
    KeyReader {
        name: "rustls with aws-lc-rs 1.19",
        source: "aws_lc_rs::signature::PqdsaKeyPair::from_pkcs8; rustls any_supported_type",
        rules: &[
            (ML_DSA, ALL_FORMS, Answer::Yes),
            (NIST_EC, EC_FORMS, Answer::Yes),
            (EDWARDS, PKCS8, Answer::Yes),
            (RSA, RSA_FORMS, Answer::Yes),
        ],
    },
    KeyReader {
        name: "AWS KMS import",
        // By the developer guide's "Requirements for imported key material" asymmetric keys are PKCS #8; it does not
        // say which form of an ML-DSA key.
        source: "KMS developer guide, requirements for imported key material",
        rules: &[
            (ML, ALL_FORMS, Answer::Unknown),
            (ANY_EC, PKCS8, Answer::Yes),
            (EDWARDS, PKCS8, Answer::Unknown),
            (RSA, PKCS8, Answer::Yes),
        ],
    },
    KeyReader {
        name: "AWS Roles Anywhere helper",
        source: "aws_signing_helper, ReadPrivateKeyData: ML-DSA keys as both only",
        rules: &[
            (ML_DSA, &["both"], Answer::Yes),
            (NIST_EC, EC_FORMS, Answer::Yes),
            (RSA, RSA_FORMS, Answer::Yes),
        ],
    },
    KeyReader {
        name: "Outlast, KMS import",
        source: "the key types' import functions, which the tests hold to every form",
        rules: &[(ML, ALL_FORMS, Answer::Yes), (&[""], PKCS8, Answer::Yes)],
    },
];

impl KeyReader {
    /// Whether the software reads this key.
    pub fn takes(&self, key: &PrivateKey) -> Answer {
        self.answer(key.spec.name, key.form_name())
    }

    fn answer(&self, name: &str, form: &str) -> Answer {
        let fits = |(names, forms, _): &&Rule| {
            names.iter().any(|begin| name.starts_with(begin)) && forms.contains(&form)
        };
        self.rules.iter().find(fits).map_or(Answer::No, |(_, _, answer)| *answer)
    }
}

#[cfg(test)]
mod tests {
    use outlast_crypto::keys::KEY_SPECS;

    use super::*;

    #[test]
    fn every_rule_is_about_a_key_type_that_exists() {
        for taker in KEY_READERS {
            for (names, _, _) in taker.rules {
                for begin in *names {
                    assert!(
                        KEY_SPECS.iter().any(|spec| spec.name.starts_with(begin)),
                        "{}: {begin}",
                        taker.name
                    );
                }
            }
        }
    }

    #[test]
    fn the_known_differences() {
        let takes = |taker: &str, name: &str, form: &str| {
            let row = KEY_READERS.iter().find(|row| row.name.starts_with(taker)).unwrap();
            row.answer(name, form).name()
        };
        assert_eq!(takes("OpenSSL", "ML_DSA_65", "expanded"), "yes");
        assert_eq!(takes("Go", "ML_DSA_65", "seed"), "yes");
        assert_eq!(takes("Go", "ML_DSA_65", "both"), "no");
        assert_eq!(takes("BoringSSL", "ML_DSA_44", "both"), "no");
        assert_eq!(takes("BoringSSL", "ML_KEM_512", "seed"), "no");
        assert_eq!(takes("BoringSSL", "ML_KEM_768", "seed"), "yes");
        assert_eq!(takes("AWS Roles Anywhere", "ML_DSA_87", "seed"), "no");
        assert_eq!(takes("AWS Roles Anywhere", "ML_DSA_87", "both"), "yes");
        assert_eq!(takes("AWS KMS", "ECC_NIST_P256", "SEC 1"), "no");
        assert_eq!(takes("OpenSSL", "ML_DSA_65_ECDSA_P256", "PKCS #8"), "no");
    }
}
