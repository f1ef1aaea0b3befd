//! Path validation for any purpose: all of RFC 5280, section 6, over objects that the caller has.
//!
//! Trust anchors are certificates, and are not trusted blindly: their validity, their right to issue, path length,
//! name constraints and extended key usage count (RFC 5937); their own signature and policies do not.
//! `docs/decisions/0009-path-validation.md` says why this is not a library.
//!
//! Not supported, and refused or undetermined, never accepted: delta and indirect CRLs, name constraints on forms of
//! names other than directory, DNS, e-mail, URI and IP address when a certificate has such a name, and Unicode
//! normalisation of names.

mod build;
mod check;
mod constraints;
mod facts;
mod identity;
pub mod names;
pub(crate) mod pinned;
mod policy;
mod pool;
mod revocation;
mod rules;
mod standing;

use const_oid::ObjectIdentifier;
use x509_cert::ext::pkix::KeyUsages;

use crate::certificate::Certificate;
use crate::crl::{Crl, Reason};
use crate::ocsp;
use crate::seen::Seen;
use crate::time::rfc3339;

pub use identity::Identity;
pub use standing::{Judged, Proof, SignatureTime, Standing};

/// Most CAs between the leaf and the trust anchor.
pub const MAX_INTERMEDIATES: usize = 10;

/// Most certificates in the input; trust anchors do not count.
pub const MAX_OFFERED: usize = 512;

/// Most CRLs in the input, and most OCSP responses. Those about other certificates are passed over by issuer or serial number.
pub const MAX_EVIDENCE: usize = 4_096;

/// Most signatures that one validation verifies, including those of CRLs and OCSP responses.
pub const MAX_SIGNATURES: u32 = 100;

/// Most steps of path building, each with one candidate.
pub const MAX_STEPS: u32 = 2_000;

/// Most comparisons of a name with a name constraint.
pub const MAX_NAME_COMPARISONS: u32 = 100_000;

/// Most policies or mappings in one certificate.
pub const MAX_POLICIES: usize = 64;

/// Most extensions of one certificate or CRL.
pub const MAX_EXTENSIONS: usize = 64;

/// Most distribution points of one certificate, and most names of one distribution point.
pub const MAX_DISTRIBUTION_POINTS: usize = 32;

/// Whether to check revocation, by the given CRLs and OCSP responses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Revocation {
    /// Revocation is not checked.
    #[default]
    Off,
    /// Certificates that are known to be revoked are refused.
    IfPresent,
    /// The status of every certificate below the trust anchor must be known.
    Required,
}

/// Requirements on a path.
#[derive(Debug, Clone)]
pub struct Options<'a> {
    /// Time of the check, seconds since 1970.
    pub at: i64,
    /// Purposes that the leaf, and every CA that restricts them, must allow. A leaf without extended key usage
    /// allows all.
    pub purposes: &'a [ObjectIdentifier],
    /// A key usage that the leaf must have, if it restricts its usage.
    pub key_usage: Option<KeyUsages>,
    /// The identity that the leaf must be for (RFC 9525).
    pub name: Option<Identity<'a>>,
    /// The policies that are acceptable; `None` for any (`user-initial-policy-set`).
    pub policies: Option<&'a [ObjectIdentifier]>,
    /// `initial-explicit-policy`
    pub explicit_policy: bool,
    /// `initial-policy-mapping-inhibit`
    pub inhibit_policy_mapping: bool,
    /// `initial-any-policy-inhibit`
    pub inhibit_any_policy: bool,
    /// Revocation checks.
    pub revocation: Revocation,
    /// For a signature that is older than the check: see [`SignatureTime`]. `None` for what is used at `at`, such as
    /// a TLS certificate: whatever is revoked is refused, and evidence must be current at `at`.
    pub signature: Option<SignatureTime>,
    /// Most CAs between the leaf and the trust anchor; at most [`MAX_INTERMEDIATES`]. OpenSSL counts `-verify_depth`
    /// in the same way.
    pub max_intermediates: usize,
}

impl Options<'_> {
    /// Validation at `at` (seconds since 1970) for any purpose, name and policy, without revocation.
    pub fn at(at: i64) -> Self {
        Self {
            at,
            purposes: &[],
            key_usage: None,
            name: None,
            policies: None,
            explicit_policy: false,
            inhibit_policy_mapping: false,
            inhibit_any_policy: false,
            revocation: Revocation::Off,
            signature: None,
            max_intermediates: MAX_INTERMEDIATES,
        }
    }
}

/// Input of a validation.
#[derive(Debug, Clone, Copy, Default)]
pub struct Material<'a> {
    /// Trust anchors.
    pub roots: &'a [Certificate],
    /// CA certificates in any order, and those of separate CRL signers.
    pub intermediates: &'a [Certificate],
    /// CRLs.
    pub crls: &'a [Crl],
    /// OCSP responses.
    pub ocsp: &'a [ocsp::Response],
    /// Signatures of certificates, CRLs and OCSP responses that need not be verified again, and how many more may be verified
    /// for the message, if it is for one.
    pub seen: Option<&'a Seen>,
}

impl Material<'_> {
    fn check_counts(&self, leaf: &Certificate) -> Result<(), Refusal> {
        let too_many = self.intermediates.len() > MAX_OFFERED
            || self.crls.len() > MAX_EVIDENCE
            || self.ocsp.len() > MAX_EVIDENCE;
        match too_many {
            true => Err(Refusal::new(leaf, Rule::Limit("too many objects were given"))),
            false => Ok(()),
        }
    }

    /// Refuses to go on once the limit of the message has kept a signature from being verified.
    fn check_message(&self) -> Result<(), Rule> {
        match Seen::is_used_up(self.seen) {
            true => Err(Rule::Limit("too many signatures to verify for one message")),
            false => Ok(()),
        }
    }
}

/// Checks the names of a certificate to be signed (DER of a `TBSCertificate`) against the name constraints of the CAs
/// above it.
pub fn check_names(to_be_signed: &[u8], above: &[Certificate]) -> Result<(), Rule> {
    let malformed = Rule::Malformed;
    let mut constraints = Vec::new();
    for issuer in above {
        constraints.extend(facts::Facts::read(issuer).map_err(malformed)?.constraints);
    }
    if constraints.is_empty() {
        return Ok(());
    }
    let certificate =
        Certificate::unsigned(to_be_signed).map_err(|error| Rule::Malformed(error.to_string()))?;
    let facts = facts::Facts::read(&certificate).map_err(malformed)?;
    let mut budget = MAX_NAME_COMPARISONS;
    let above: Vec<_> = constraints.iter().collect();
    constraints::check_new(&certificate, &facts.names, &above, &mut budget)
}

/// A valid path.
#[derive(Debug, Clone)]
pub struct Validated<'a> {
    /// From the leaf to the trust anchor.
    pub path: Vec<&'a Certificate>,
    /// Policies under which the path is valid (`user-constrained-policy-set`); anyPolicy means all.
    pub policies: Vec<ObjectIdentifier>,
    /// With [`Revocation::IfPresent`]: certificates of the path whose status is unknown, leaf first, and why.
    pub undetermined: Vec<(&'a Certificate, String)>,
    /// What is known about the revocation of each certificate below the trust anchor, leaf first; empty with
    /// [`Revocation::Off`].
    pub standings: Vec<Standing>,
}

/// Why there is no valid path: the certificate that fails, and the rule that it breaks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{subject}\": {rule}")]
pub struct Refusal {
    /// Subject of the certificate that fails.
    pub subject: String,
    /// Its serial number, big-endian.
    pub serial: Vec<u8>,
    /// The rule.
    pub rule: Rule,
}

impl Refusal {
    fn new(certificate: &Certificate, rule: Rule) -> Self {
        Self {
            subject: certificate.subject().to_string(),
            serial: certificate.serial().to_vec(),
            rule,
        }
    }
}

/// A rule that a path breaks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Rule {
    /// No certificate of its issuer is known, or none that leads to a trust anchor.
    #[error("no path to a trusted root (issuer \"{0}\")")]
    UnknownIssuer(String),
    /// RFC 5280, section 6.1.3 (a)(1).
    #[error("its signature is not valid")]
    Signature,
    /// The tables lack the algorithm of its signature.
    #[error("the signature algorithm {0} is not supported")]
    Algorithm(String),
    /// RFC 5280, section 6.1.3 (a)(2).
    #[error("it is not valid before {}", rfc3339(*.0))]
    NotYetValid(i64),
    /// RFC 5280, section 6.1.3 (a)(2).
    #[error("it expired at {}", rfc3339(*.0))]
    Expired(i64),
    /// RFC 5280, section 6.1.3 (a)(3).
    #[error("it was revoked at {} ({})", rfc3339(*.at), .reason.rfc_name)]
    Revoked {
        /// When, seconds since 1970.
        at: i64,
        /// Reason from the issuer (RFC 5280, section 5.3.1).
        reason: &'static Reason,
    },
    /// A signer's certificate, or a CA's above it, that was revoked: see [`SignatureTime`].
    #[error("{0}")]
    RevokedSigner(Judged),
    /// RFC 5280, section 6.1.3 (a)(3), with revocation required.
    #[error("its revocation status cannot be determined: {0}")]
    RevocationUnknown(String),
    /// RFC 5280, section 6.1.3 (b) and (c).
    #[error("a name in it violates the name constraints of its issuers: {0}")]
    NameConstraints(String),
    /// RFC 5280, section 6.1.5 (g).
    #[error("the path is valid under no acceptable certificate policy")]
    Policy,
    /// RFC 5280, section 6.1.4 (a).
    #[error("a policy mapping from or to anyPolicy is not allowed")]
    PolicyMapping,
    /// RFC 5280, section 6.1.4 (k).
    #[error("it is not a CA's certificate (basic constraints)")]
    NotCa,
    /// RFC 5280, section 6.1.4 (l).
    #[error("a path length constraint is exceeded")]
    PathLength,
    /// Longer than any path that is searched for.
    #[error("it comes after {0} other CAs, and no longer path is built")]
    TooLong(usize),
    /// RFC 5280, section 6.1.4 (n), and the leaf's.
    #[error("its key usage does not allow {0}")]
    KeyUsage(&'static str),
    /// RFC 5280, section 4.2.1.12.
    #[error("its extended key usage does not allow {0}")]
    Purpose(String),
    /// RFC 5280, section 6.1.5 (f).
    #[error("it has the unknown critical extension {0}")]
    CriticalExtension(ObjectIdentifier),
    /// RFC 9525, section 6.
    #[error("it is not for {0}")]
    Identity(String),
    /// An extension that cannot be read or breaks a rule of RFC 5280, section 4.
    #[error("it is not well-formed: {0}")]
    Malformed(String),
    /// A limit of the validation is reached.
    #[error("the search for a path was stopped: {0}")]
    Limit(&'static str),
}

/// Finds a path from `leaf` to a trust anchor that satisfies all rules.
///
/// Of several paths the first valid one is returned; if none is valid, the refusal of the path that came furthest.
pub fn validate<'a>(
    leaf: &'a Certificate,
    material: &Material<'a>,
    options: &Options<'_>,
) -> Result<Validated<'a>, Refusal> {
    material.check_counts(leaf)?;
    build::find(leaf, material, options, revocation::check)
}
