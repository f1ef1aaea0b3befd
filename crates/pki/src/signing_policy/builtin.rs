//! Built-in policies with dates, for all files. They say nothing about who signs: the roots come from the verifier.
//!
//! - `cnsa-2.0`: NSA, "Announcing the Commercial National Security Algorithm Suite 2.0" (September 2022), and its FAQ
//!   (version 2.1, December 2024). Software and firmware signing: support and prefer CNSA 2.0 by 2025, use it exclusively by
//!   2030. ML-DSA-87 is for any use; SHA-384 or SHA-512. Until then the algorithms of CNSA 1.0 (CNSSP 15) still count:
//!   RSA from 3072 bits on, ECDSA P-384. CNSA 2.0 also has LMS and XMSS for software signing, which Outlast does not
//!   offer, and not SLH-DSA.
//! - `nist-ir-8547`: NIST IR 8547, initial public draft, "Transition to Post-Quantum Cryptography Standards" (November
//!   2024), table 2: signatures by ECDSA and RSA with 112 bits of security are deprecated after 2030, and all
//!   signatures by ECDSA, EdDSA and RSA are disallowed after 2035.
//!
//! A signature with a timestamp is judged by the date of the timestamp, whose own algorithm must count at the date until which
//! it has to hold: so renewed evidence keeps an old signature.
//!
//! "After 2030" begins on 2031-01-01, "by 2030" has ended on 2030-01-01.

use super::algorithms::AnyOf;
use super::rule::{Need, Phase, Policy, Rule, Scope, Timestamps, Validity};
use crate::pattern::Pattern;
use crate::templates::CODE_SIGNING;

/// What the names of built-in policies begin with.
pub const PREFIX: &str = "builtin:";

/// 2030-01-01T00:00:00Z
const IN_2030: i64 = 1_893_456_000;
/// 2031-01-01T00:00:00Z
const AFTER_2030: i64 = 1_924_992_000;
/// 2036-01-01T00:00:00Z: NIST IR 8547 disallows classical signatures from here on.
pub const AFTER_2035: i64 = 2_082_758_400;

const PREFER: &str = "CNSA 2.0 prefers ML-DSA-87 now and allows nothing else from 2030 on";
const DEPRECATED: &str = "NIST IR 8547 deprecates this strength after 2030: it still counts, at the risk of who relies on it";

/// A stage of a policy.
struct Stage {
    from: i64,
    signers: &'static [&'static str],
    /// As good as the signers' if it is empty.
    authorities: &'static [&'static str],
    digests: &'static [&'static str],
    deprecated: &'static [&'static str],
    warning: &'static str,
}

/// A built-in policy.
struct Row {
    name: &'static str,
    stages: &'static [Stage],
}

const CNSA_1_AND_2: &[&str] = &["ml-dsa-87", "rsa-3072", "rsa-4096", "ecdsa-p384"];

static ROWS: &[Row] = &[
    Row {
        name: "cnsa-2.0",
        stages: &[
            Stage {
                from: i64::MIN,
                signers: CNSA_1_AND_2,
                authorities: CNSA_1_AND_2,
                digests: &["sha384", "sha512"],
                deprecated: &["classical"],
                warning: PREFER,
            },
            Stage {
                from: IN_2030,
                signers: &["ml-dsa-87"],
                authorities: &["ml-dsa-87"],
                digests: &["sha384", "sha512"],
                deprecated: &[],
                warning: "",
            },
        ],
    },
    Row {
        name: "nist-ir-8547",
        stages: &[
            Stage {
                from: i64::MIN,
                signers: &["any"],
                authorities: &[],
                digests: &[],
                deprecated: &[],
                warning: "",
            },
            Stage {
                from: AFTER_2030,
                signers: &["any"],
                authorities: &[],
                digests: &[],
                deprecated: &["rsa-2048"],
                warning: DEPRECATED,
            },
            Stage {
                from: AFTER_2035,
                signers: &["post-quantum"],
                authorities: &[],
                digests: &[],
                deprecated: &[],
                warning: "",
            },
        ],
    },
];

/// Names of all built-in policies, without [`PREFIX`].
pub fn names() -> impl Iterator<Item = &'static str> {
    ROWS.iter().map(|row| row.name)
}

/// The policy with this name, without [`PREFIX`].
pub fn find(name: &str) -> Option<Policy> {
    let row = ROWS.iter().find(|row| row.name == name)?;
    let terms = |list: &[&'static str]| AnyOf::parse(list.iter().copied()).ok();
    let phase = |stage: &Stage| {
        let authorities =
            if stage.authorities.is_empty() { None } else { terms(stage.authorities) };
        let deprecated = terms(stage.deprecated).filter(|list| !list.is_empty());
        Some(Phase {
            from: stage.from,
            all_of: vec![terms(stage.signers)?],
            authorities,
            digests: stage.digests.to_vec(),
            deprecated: deprecated.into_iter().map(|list| (list, stage.warning)).collect(),
        })
    };
    let rule = Rule {
        name: row.name.to_owned(),
        files: vec![Pattern::parse("**").ok()?],
        scope: Scope::Everything,
        trust: Vec::new(),
        roots: Vec::new(),
        certificates: Vec::new(),
        public_keys: Vec::new(),
        subjects: Vec::new(),
        names: Vec::new(),
        purpose: CODE_SIGNING,
        phases: row.stages.iter().map(phase).collect::<Option<_>>()?,
        revocation: None,
        validity: Validity::SigningTime,
        timestamp: Need::IfAvailable,
        timestamps: Timestamps { by_phases: true, ..Timestamps::default() },
        log: None,
        not_before: None,
        until: None,
    };
    Some(Policy { name: format!("{PREFIX}{name}"), rules: vec![rule] })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may fail")]
mod tests {
    use super::super::algorithms::{ALGORITHMS, Algorithm};
    use super::*;
    use crate::time::rfc3339;

    /// The algorithms that count at a time, those with a warning marked by an exclamation mark.
    fn accepted(name: &str, at: i64) -> String {
        let policy = find(name).unwrap();
        let phase = policy.rules[0].phase(at).unwrap().clone();
        let counts = |row: &&Algorithm| phase.all_of[0].accepts(row);
        let warned = |row: &Algorithm| phase.deprecated.iter().any(|(list, _)| list.accepts(row));
        let word = |row: &Algorithm| format!("{}{}", row.name, if warned(row) { "!" } else { "" });
        ALGORITHMS.iter().filter(counts).map(word).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn dates_are_those_of_the_documents() {
        assert_eq!(rfc3339(IN_2030), "2030-01-01T00:00:00Z");
        assert_eq!(rfc3339(AFTER_2030), "2031-01-01T00:00:00Z");
        assert_eq!(rfc3339(AFTER_2035), "2036-01-01T00:00:00Z");
        let post_quantum =
            "ml-dsa-44 ml-dsa-65 ml-dsa-87 slh-dsa-sha2-128s slh-dsa-sha2-256s mldsa65-ecdsa-p256";
        let strong = "ecdsa-p256 ecdsa-p384 ecdsa-p521 ecdsa-secp256k1 ed25519 rsa-4096 rsa-3072";
        for (name, at, expected) in [
            ("cnsa-2.0", IN_2030 - 1, "ml-dsa-87 ecdsa-p384! rsa-4096! rsa-3072!".to_owned()),
            ("cnsa-2.0", IN_2030, "ml-dsa-87".to_owned()),
            ("nist-ir-8547", AFTER_2030 - 1, format!("{post_quantum} {strong} rsa-2048")),
            ("nist-ir-8547", AFTER_2030, format!("{post_quantum} {strong} rsa-2048!")),
            ("nist-ir-8547", AFTER_2035 - 1, format!("{post_quantum} {strong} rsa-2048!")),
            ("nist-ir-8547", AFTER_2035, post_quantum.to_owned()),
        ] {
            assert_eq!(accepted(name, at), expected, "{name} at {}", rfc3339(at));
        }
        assert!(find("cnsa").is_none());
    }

    #[test]
    fn all_of_them_need_roots_and_are_for_every_file() {
        for name in names() {
            let policy = find(name).unwrap();
            assert!(policy.rules.iter().all(Rule::needs_roots));
            for file in ["a", "a/b", "/a/b", "a.b"] {
                let file = super::super::names::FileName::parse(file).unwrap();
                assert!(policy.rule_for(&file).is_some(), "{name} {file:?}");
            }
        }
    }
}
