//! Least algorithms of signing policies: `ml-dsa-65 or better`.
//!
//! A post-quantum algorithm is as good as its security category of NIST (FIPS 204, table 1; FIPS 205, table 2), a classical
//! one as its bits (SP 800-57 part 1, revision 5, table 2). "X or better" with a post-quantum X is never satisfied by a
//! classical algorithm, however long its keys are.

use std::fmt;

use crate::public_key::{Kind, rsa_bits};

/// A kind of key that signs, with its strength.
#[derive(Debug, PartialEq, Eq)]
pub struct Algorithm {
    /// Name in policies.
    pub name: &'static str,
    /// Name of its [`Kind`].
    kind: &'static str,
    /// Least length of the modulus, for RSA.
    modulus: usize,
    /// Classical strength in bits.
    pub bits: u16,
    /// NIST's security category; `None` if a quantum computer could forge signatures.
    pub category: Option<u8>,
}

const fn classical(name: &'static str, kind: &'static str, bits: u16) -> Algorithm {
    Algorithm { name, kind, modulus: 0, bits, category: None }
}

const fn rsa(name: &'static str, modulus: usize, bits: u16) -> Algorithm {
    Algorithm { name, kind: "RSA", modulus, bits, category: None }
}

/// A category is at least as hard to break as AES with this many bits, or a collision of SHA-2.
const fn post_quantum(name: &'static str, kind: &'static str, category: u8) -> Algorithm {
    let bits = match category {
        0..=2 => 128,
        3 | 4 => 192,
        _ => 256,
    };
    Algorithm { name, kind, modulus: 0, bits, category: Some(category) }
}

/// All algorithms; RSA with the longest modulus first.
pub static ALGORITHMS: &[Algorithm] = &[
    post_quantum("ml-dsa-44", "ML-DSA-44", 2),
    post_quantum("ml-dsa-65", "ML-DSA-65", 3),
    post_quantum("ml-dsa-87", "ML-DSA-87", 5),
    post_quantum("slh-dsa-sha2-128s", "SLH-DSA-SHA2-128s", 1),
    post_quantum("slh-dsa-sha2-256s", "SLH-DSA-SHA2-256s", 5),
    post_quantum("mldsa65-ecdsa-p256", "MLDSA65-ECDSA-P256-SHA512", 3),
    classical("ecdsa-p256", "EC P-256", 128),
    classical("ecdsa-p384", "EC P-384", 192),
    classical("ecdsa-p521", "EC P-521", 256),
    classical("ecdsa-secp256k1", "EC secp256k1", 128),
    classical("ed25519", "Ed25519", 128),
    rsa("rsa-4096", 4096, 128),
    rsa("rsa-3072", 3072, 128),
    rsa("rsa-2048", 2048, 112),
];

impl Algorithm {
    /// The row for a key (DER `SubjectPublicKeyInfo`); RSA keys belong to the longest modulus that they reach.
    pub fn of(spki: &[u8]) -> Option<&'static Self> {
        let kind = Kind::of(spki).ok()?.name;
        let modulus = rsa_bits(spki).unwrap_or(0);
        ALGORITHMS.iter().find(|row| row.kind == kind && row.modulus <= modulus)
    }

    /// Whether a quantum computer cannot forge its signatures, as far as is known.
    pub const fn is_post_quantum(&self) -> bool {
        self.category.is_some()
    }

    fn is_as_good_as(&self, other: &Self) -> bool {
        match other.category {
            Some(category) => self.category.is_some_and(|own| own >= category),
            // All RSA keys from 3072 bits on have one strength in SP 800-57.
            None => {
                self.bits >= other.bits
                    && (self.kind != other.kind || self.modulus >= other.modulus)
            }
        }
    }
}

/// What an algorithm must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Term {
    Any,
    Classical,
    PostQuantum,
    Exactly(&'static Algorithm),
    OrBetter(&'static Algorithm),
}

/// Words for kinds of algorithms.
const KINDS: &[(&str, Term)] =
    &[("any", Term::Any), ("classical", Term::Classical), ("post-quantum", Term::PostQuantum)];

impl Term {
    fn accepts(self, algorithm: &Algorithm) -> bool {
        match self {
            Self::Any => true,
            Self::Classical => !algorithm.is_post_quantum(),
            Self::PostQuantum => algorithm.is_post_quantum(),
            Self::Exactly(row) => row == algorithm,
            Self::OrBetter(row) => algorithm.is_as_good_as(row),
        }
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exactly(row) => f.write_str(row.name),
            Self::OrBetter(row) => write!(f, "{} or better", row.name),
            Self::Any | Self::Classical | Self::PostQuantum => {
                let name = KINDS.iter().find(|(_, term)| term == self);
                f.write_str(name.map_or("", |(name, _)| *name))
            }
        }
    }
}

/// Alternatives, of which one is enough: `ml-dsa-65 or better`, or a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnyOf(Vec<Term>);

impl AnyOf {
    /// Every algorithm.
    pub fn any() -> Self {
        Self(vec![Term::Any])
    }

    /// Parses terms: a name of [`ALGORITHMS`], perhaps with ` or better`, or `any`, `classical`, `post-quantum`. The error is
    /// the term that is none.
    pub fn parse<'a>(terms: impl IntoIterator<Item = &'a str>) -> Result<Self, String> {
        terms
            .into_iter()
            .map(|text| term(text).ok_or_else(|| text.to_owned()))
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// Whether there is no alternative.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether it is one of the alternatives.
    pub fn accepts(&self, algorithm: &Algorithm) -> bool {
        self.0.iter().any(|term| term.accepts(algorithm))
    }

    /// Whether a CA's key is as good as the weakest alternative. A signer is as strong as the CAs above: who forges a
    /// CA's signature makes a certificate for a key of any algorithm.
    pub fn suits_authority(&self, authority: &Algorithm) -> bool {
        let mut accepted = ALGORITHMS.iter().filter(|row| self.accepts(row));
        let categories: Vec<_> = accepted.clone().map(|row| row.category).collect();
        match categories.iter().copied().min().flatten() {
            // `None` is the least: there is a classical alternative.
            Some(least) => authority.category.is_some_and(|own| own >= least),
            None => accepted
                .by_ref()
                .map(|row| row.bits)
                .min()
                .is_some_and(|least| authority.bits >= least),
        }
    }
}

impl fmt::Display for AnyOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, term) in self.0.iter().enumerate() {
            let before = if index == 0 { "" } else { ", or " };
            write!(f, "{before}{term}")?;
        }
        Ok(())
    }
}

/// All words that a term can begin with.
pub fn vocabulary() -> impl Iterator<Item = &'static str> {
    ALGORITHMS.iter().map(|row| row.name).chain(KINDS.iter().map(|(name, _)| *name))
}

fn term(text: &str) -> Option<Term> {
    let text = text.trim().to_ascii_lowercase();
    let row = |name: &str| ALGORITHMS.iter().find(|row| row.name == name);
    if let Some(name) = text.strip_suffix(" or better") {
        return row(name.trim()).map(Term::OrBetter);
    }
    let kind = KINDS.iter().find(|(name, _)| *name == text).map(|(_, term)| *term);
    kind.or_else(|| row(&text).map(Term::Exactly))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may fail")]
mod tests {
    use super::*;
    use outlast_crypto::keys::KEY_SPECS;

    fn accepted(terms: &[&str]) -> Vec<&'static str> {
        let parsed = AnyOf::parse(terms.iter().copied()).unwrap();
        ALGORITHMS.iter().filter(|row| parsed.accepts(row)).map(|row| row.name).collect()
    }

    #[test]
    fn each_term_accepts_what_it_says() {
        let post_quantum = [
            "ml-dsa-44",
            "ml-dsa-65",
            "ml-dsa-87",
            "slh-dsa-sha2-128s",
            "slh-dsa-sha2-256s",
            "mldsa65-ecdsa-p256",
        ];
        let all: Vec<_> = ALGORITHMS.iter().map(|row| row.name).collect();
        let classical = &all[post_quantum.len()..];
        let without = |names: &[&str]| -> Vec<_> {
            all.iter().copied().filter(|name| !names.contains(name)).collect()
        };
        assert_eq!(accepted(&["any"]), all);
        assert_eq!(accepted(&["classical"]), classical);
        assert_eq!(accepted(&["post-quantum"]), post_quantum);
        let rows: &[(&str, Vec<&str>)] = &[
            ("slh-dsa-sha2-128s or better", post_quantum.to_vec()),
            (
                "ml-dsa-44 or better",
                vec![
                    "ml-dsa-44",
                    "ml-dsa-65",
                    "ml-dsa-87",
                    "slh-dsa-sha2-256s",
                    "mldsa65-ecdsa-p256",
                ],
            ),
            (
                "ML-DSA-65 or better",
                vec!["ml-dsa-65", "ml-dsa-87", "slh-dsa-sha2-256s", "mldsa65-ecdsa-p256"],
            ),
            (
                "mldsa65-ecdsa-p256 or better",
                vec!["ml-dsa-65", "ml-dsa-87", "slh-dsa-sha2-256s", "mldsa65-ecdsa-p256"],
            ),
            ("ml-dsa-87 or better", vec!["ml-dsa-87", "slh-dsa-sha2-256s"]),
            ("slh-dsa-sha2-256s or better", vec!["ml-dsa-87", "slh-dsa-sha2-256s"]),
            ("rsa-2048 or better", all.clone()),
            ("rsa-3072 or better", without(&["rsa-2048"])),
            ("rsa-4096 or better", without(&["rsa-2048", "rsa-3072"])),
            ("ecdsa-p256 or better", without(&["rsa-2048"])),
            ("ecdsa-secp256k1 or better", without(&["rsa-2048"])),
            ("ed25519 or better", without(&["rsa-2048"])),
            (
                "ecdsa-p384 or better",
                vec![
                    "ml-dsa-65",
                    "ml-dsa-87",
                    "slh-dsa-sha2-256s",
                    "mldsa65-ecdsa-p256",
                    "ecdsa-p384",
                    "ecdsa-p521",
                ],
            ),
            ("ecdsa-p521 or better", vec!["ml-dsa-87", "slh-dsa-sha2-256s", "ecdsa-p521"]),
        ];
        for (text, expected) in rows {
            assert_eq!(&accepted(&[text]), expected, "{text}");
        }
        // No row is forgotten, and each accepts itself.
        for row in ALGORITHMS {
            assert_eq!(accepted(&[row.name]), [row.name]);
            let text = format!("{} or better", row.name);
            assert!(accepted(&[&text]).contains(&row.name), "{text}");
            assert!(rows.iter().any(|(named, _)| named.to_lowercase() == text), "{text}");
        }
        assert_eq!(accepted(&["ecdsa-p256", "ml-dsa-65"]), ["ml-dsa-65", "ecdsa-p256"]);
        for wrong in ["", "or better", "ml-dsa-66", "any or better", "ml-dsa-65 or worse", "ml-dsa"]
        {
            assert_eq!(AnyOf::parse([wrong]), Err(wrong.to_owned()));
        }
    }

    #[test]
    fn an_authority_is_as_strong_as_the_weakest_alternative() {
        for (terms, good, bad) in [
            (
                &["ml-dsa-65 or better"][..],
                &["ml-dsa-65", "ml-dsa-87", "slh-dsa-sha2-256s"][..],
                &["ml-dsa-44", "ecdsa-p521", "rsa-4096"][..],
            ),
            (&["post-quantum"], &["slh-dsa-sha2-128s", "ml-dsa-44"], &["ecdsa-p521"]),
            (
                &["ecdsa-p384", "ml-dsa-65"],
                &["ecdsa-p384", "ml-dsa-65"],
                &["ecdsa-p256", "ml-dsa-44"],
            ),
            (&["classical"], &["rsa-2048", "ml-dsa-65"], &[]),
            (&["any"], &["rsa-2048", "ml-dsa-44"], &[]),
        ] {
            let parsed = AnyOf::parse(terms.iter().copied()).unwrap();
            let row = |name: &&str| ALGORITHMS.iter().find(|row| row.name == *name).unwrap();
            assert!(good.iter().map(row).all(|row| parsed.suits_authority(row)), "{parsed}");
            assert!(!bad.iter().map(row).any(|row| parsed.suits_authority(row)), "{parsed}");
        }
    }

    #[test]
    fn every_key_type_that_signs_has_a_row() {
        for spec in KEY_SPECS.iter().filter(|spec| !spec.is_symmetric() && !spec.signing.is_empty())
        {
            let key = spec.load(&spec.generate().unwrap()).unwrap();
            let found = Algorithm::of(key.public_key().unwrap()).expect(spec.name);
            if let Some(bits) = spec.name.strip_prefix("RSA_") {
                assert_eq!(found.name, format!("rsa-{bits}"));
            }
        }
    }
}
