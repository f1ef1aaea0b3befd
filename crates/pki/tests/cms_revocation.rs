//! Revocation of signers: by whom it is known when a file was signed, and for which reason a certificate is revoked.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use std::sync::LazyLock;

use der::asn1::GeneralizedTime;
use der::{DateTime, Decode, Encode};
use outlast_crypto::digests::Digest;
use outlast_crypto::signatures::Message;
use outlast_pki::cms::sign::{Request, Unsigned};
use outlast_pki::cms::verify::{
    Evidence, SignedMessage, Signer, Time, TimeSource, Verifier, VerifyError,
};
use outlast_pki::crl::{self, Crl, REASONS, Reason, Scope};
use outlast_pki::ocsp::{self, Response, Status};
use outlast_pki::path::PathError;
use outlast_pki::seen::Seen;
use outlast_pki::validate::{
    MAX_SIGNATURES, Material, Options, Proof, Revocation, Rule, Standing, validate,
};
use x509_cert::crl::CertificateList;

use crate::common::{Hierarchy, Party, START, hierarchy};

const FILE: &[u8] = b"the file to be signed";
pub const DAY: i64 = 86_400;
/// When the file was signed, as its signer claims.
const SIGNED: i64 = START + 10 * DAY;
const NOW: i64 = START + 100 * DAY;

fn sign(h: &Hierarchy, crls: &[Crl], ocsp: &[Response]) -> Vec<u8> {
    let digest = Digest::by_name("sha512").unwrap();
    let request = Request {
        message_digest: &digest.digest(FILE),
        digest,
        algorithm: h.leaf.algorithm,
        signing_time: SIGNED,
        signer: &h.leaf.certificate,
        chain: &[h.subordinate.certificate.der().to_vec()],
    };
    let unsigned = Unsigned::new(&[request]).unwrap().with_revocation(crls, ocsp).unwrap();
    let signature =
        h.leaf.key.sign(h.leaf.algorithm, Message::Raw(&unsigned.to_be_signed[0])).unwrap();
    unsigned.assemble(&[signature]).unwrap()
}

/// The serial number of all certificates of these tests: the first byte is given by the crate.
fn serial() -> [u8; 16] {
    let mut serial = [0x11; 16];
    serial[0] = 0x51;
    serial
}

/// A CRL of `issuer` that lists the serial numbers of all certificates of these tests, or none.
pub fn crl(issuer: &Party, this_update: i64, revoked: Option<(i64, &'static Reason)>) -> Crl {
    let content = crl::Content {
        issuer: issuer.certificate.subject().clone(),
        issuer_key_id: issuer.certificate.subject_key_identifier().unwrap(),
        number: 1,
        this_update,
        next_update: this_update + 7 * DAY,
        distribution_points: Vec::new(),
        scope: Scope::All,
    };
    let entries =
        revoked.map(|(revoked_at, reason)| crl::Entry { serial: serial(), revoked_at, reason });
    let unsigned = content.prepare(issuer.algorithm, entries).unwrap();
    let signature =
        issuer.key.sign(issuer.algorithm, Message::Raw(&unsigned.to_be_signed)).unwrap();
    Crl::parse(&unsigned.assemble(&signature).unwrap()).unwrap()
}

/// An OCSP response of `issuer` about the certificate of `leaf`.
pub fn response(issuer: &Party, leaf: &Party, this_update: i64, status: Status) -> Response {
    let key = issuer.certificate.public_key().unwrap();
    let hash = &outlast_crypto::digests::SHA1_FOR_IDENTIFIERS;
    let (name, serial) = (issuer.certificate.subject(), leaf.certificate.serial());
    let content = ocsp::Content {
        responder_key: &key,
        produced_at: this_update,
        responses: vec![ocsp::Single {
            id: ocsp::CertId::new(hash, name, &key, serial).unwrap(),
            status,
            this_update,
            next_update: Some(this_update + DAY),
        }],
        nonce: None,
    };
    let unsigned = content.prepare(issuer.algorithm).unwrap();
    let signature =
        issuer.key.sign(issuer.algorithm, Message::Raw(&unsigned.to_be_signed)).unwrap();
    Response::parse(&unsigned.assemble(&signature, &[]).unwrap()).unwrap()
}

struct Case<'a> {
    trusted: Option<i64>,
    revocation: Revocation,
    crls: &'a [Crl],
    ocsp: &'a [Response],
}

/// What all cases have seen: none may be judged otherwise for it.
static SEEN: LazyLock<Seen> = LazyLock::new(Seen::default);

fn verify(h: &Hierarchy, p7s: &[u8], case: &Case<'_>) -> Result<Signer, VerifyError> {
    let message = SignedMessage::parse(p7s)?;
    let digests: Vec<_> = message.digests()?.iter().map(|row| row.digest(FILE)).collect();
    let roots = [h.root.certificate.der().to_vec()];
    let verifier = Verifier {
        roots: &roots,
        now: NOW,
        time: case.trusted.map(|at| Time { at, source: TimeSource::Verifier }),
        revocation: case.revocation,
        crls: case.crls,
        ocsp: case.ocsp,
        ..Verifier::default()
    };
    let run = |seen| {
        let verifier = Verifier { seen, ..verifier.clone() };
        message.verify(&digests, &verifier).map(|mut signers| signers.remove(0))
    };
    let outcome = run(None);
    for _ in 0..2 {
        let again = run(Some(&SEEN));
        assert_eq!(format!("{again:?}"), format!("{outcome:?}"));
    }
    outcome
}

fn is_revoked(outcome: &Result<Signer, VerifyError>) -> bool {
    matches!(outcome, Err(VerifyError::Path(PathError::Revoked(_))))
}

#[test]
fn a_claimed_time_does_not_help_a_stolen_key() {
    let h = hierarchy("ML_DSA_44");
    let p7s = sign(&h, &[], &[]);
    for reason in REASONS.iter().filter(|row| row.code != 8) {
        for days in [-5, 0, 5] {
            let at = SIGNED + days * DAY;
            let by_crl = [crl(&h.subordinate, NOW - DAY, Some((at, reason)))];
            let revoked = Status::Revoked { at, reason };
            let by_ocsp = [response(&h.subordinate, &h.leaf, NOW - 3600, revoked)];
            let (none, empty) = (&[][..], &[][..]);
            for (crls, ocsp) in [(&by_crl[..], empty), (none, &by_ocsp[..])] {
                let row = format!("{} {days} days, {} CRLs", reason.rfc_name, crls.len());
                let case =
                    |trusted| Case { trusted, revocation: Revocation::IfPresent, crls, ocsp };
                let trusted = verify(&h, &p7s, &case(Some(SIGNED)));
                assert_eq!(is_revoked(&trusted), days <= 0, "trusted, {row}: {:?}", trusted.err());
                let claimed = verify(&h, &p7s, &case(None));
                let refused = days <= 0 || reason.key_at_risk;
                assert_eq!(is_revoked(&claimed), refused, "claimed, {row}: {:?}", claimed.err());
                if let Ok(signer) = trusted {
                    let Standing::Known { later: Some(later), .. } = &signer.statuses[0].standing
                    else {
                        panic!("{row}")
                    };
                    assert_eq!((later.at, later.reason), (at, reason));
                }
                let off = Case { revocation: Revocation::Off, ..case(None) };
                assert!(verify(&h, &p7s, &off).unwrap().statuses.is_empty());
            }
        }
    }
}

#[test]
fn a_revoked_ca_refuses_what_is_below_it() {
    let h = hierarchy("ML_DSA_44");
    let p7s = sign(&h, &[], &[]);
    let reason = Reason::by_code(2).unwrap();
    let crls = [crl(&h.root, NOW - DAY, Some((SIGNED + DAY, reason)))];
    let case =
        |trusted| Case { trusted, revocation: Revocation::IfPresent, crls: &crls, ocsp: &[] };
    assert!(is_revoked(&verify(&h, &p7s, &case(None))));
    assert!(verify(&h, &p7s, &case(Some(SIGNED))).is_ok());
    assert!(is_revoked(&verify(&h, &p7s, &case(Some(NOW)))));
}

/// The invalidity date comes before the revocation (RFC 5280, section 5.3.2).
#[test]
fn the_invalidity_date_counts() {
    let h = hierarchy("ML_DSA_44");
    let p7s = sign(&h, &[], &[]);
    let reason = Reason::by_code(1).unwrap();
    let plain = crl(&h.subordinate, NOW - DAY, Some((SIGNED + 20 * DAY, reason)));
    let mut list: CertificateList = CertificateList::from_der(plain.der()).unwrap();
    let seconds = u64::try_from(SIGNED - DAY).unwrap();
    let date = DateTime::from_unix_duration(std::time::Duration::from_secs(seconds)).unwrap();
    let date = GeneralizedTime::from_date_time(date);
    let invalidity =
        outlast_pki::extension::extension("2.5.29.24".parse().unwrap(), false, &date).unwrap();
    let entry = &mut list.tbs_cert_list.revoked_certificates.as_mut().unwrap()[0];
    entry.crl_entry_extensions.as_mut().unwrap().push(invalidity);
    let to_be_signed = list.tbs_cert_list.to_der().unwrap();
    let signer = &h.subordinate;
    let signature = signer.key.sign(signer.algorithm, Message::Raw(&to_be_signed)).unwrap();
    list.signature = der::asn1::BitString::from_bytes(&signature).unwrap();
    let dated = Crl::parse(&list.to_der().unwrap()).unwrap();
    let found = dated.revocation_of(&h.leaf.certificate).unwrap();
    assert_eq!((found.at, found.invalid_since), (SIGNED + 20 * DAY, Some(SIGNED - DAY)));
    for (crls, refused) in [([plain], false), ([dated], true)] {
        let case = Case {
            trusted: Some(SIGNED),
            revocation: Revocation::IfPresent,
            crls: &crls,
            ocsp: &[],
        };
        assert_eq!(is_revoked(&verify(&h, &p7s, &case)), refused);
    }
}

#[test]
fn what_is_embedded_is_used_and_named() {
    let h = hierarchy("ML_DSA_44");
    let of_leaf = response(&h.subordinate, &h.leaf, SIGNED - 60, Status::Good);
    let of_sub = crl(&h.root, SIGNED - DAY, None);
    let p7s = sign(&h, std::slice::from_ref(&of_sub), std::slice::from_ref(&of_leaf));
    let message = SignedMessage::parse(&p7s).unwrap();
    assert_eq!((message.embedded.crls.len(), message.embedded.ocsp.len()), (1, 1));
    assert_eq!(message.embedded.ocsp[0].der(), of_leaf.der());
    let case = |trusted, revocation| Case { trusted, revocation, crls: &[], ocsp: &[] };
    // By a trusted time the evidence is enough for ever.
    let signer = verify(&h, &p7s, &case(Some(SIGNED), Revocation::Required)).unwrap();
    let evidence: Vec<_> = signer.statuses.iter().map(|status| status.evidence).collect();
    let expected =
        [Evidence::Embedded(Proof::Ocsp(0)), Evidence::Embedded(Proof::Crl(0))].map(Some);
    assert_eq!(evidence, expected);
    // A thief can embed evidence from before the theft, and claim that time.
    let claimed = verify(&h, &p7s, &case(None, Revocation::Required));
    let unknown = matches!(claimed, Err(VerifyError::Path(PathError::RevocationUnknown(_))));
    assert!(unknown, "{:?}", claimed.err());
    assert!(verify(&h, &p7s, &case(None, Revocation::IfPresent)).is_ok());
    // Current evidence is.
    let fresh = [crl(&h.subordinate, NOW - DAY, None), crl(&h.root, NOW - DAY, None)];
    let current = Case { crls: &fresh, ..case(None, Revocation::Required) };
    let signer = verify(&h, &p7s, &current).unwrap();
    assert_eq!(signer.statuses[0].evidence, Some(Evidence::Given(Proof::Crl(0))));
    // A later compromise overrides what the message says of itself.
    let stolen = Reason::by_code(1).unwrap();
    let later = [crl(&h.subordinate, NOW - DAY, Some((NOW - 2 * DAY, stolen)))];
    let case = Case { crls: &later, ..case(None, Revocation::IfPresent) };
    assert!(is_revoked(&verify(&h, &p7s, &case)));
}

#[test]
fn evidence_by_others_counts_for_nothing() {
    let (h, stranger) = (hierarchy("ML_DSA_44"), hierarchy("ML_DSA_44"));
    let p7s = sign(&h, &[], &[]);
    let reason = Reason::by_code(1).unwrap();
    let crls = [crl(&stranger.subordinate, NOW - DAY, Some((START, reason)))];
    let revoked = Status::Revoked { at: START, reason };
    let ocsp = [response(&stranger.subordinate, &stranger.leaf, NOW - 60, revoked)];
    let case = |revocation| Case { trusted: Some(NOW), revocation, crls: &crls, ocsp: &ocsp };
    assert!(verify(&h, &p7s, &case(Revocation::IfPresent)).is_ok());
    let outcome = verify(&h, &p7s, &case(Revocation::Required));
    assert!(matches!(outcome, Err(VerifyError::Path(PathError::RevocationUnknown(_)))));
}

/// What was verified before costs nothing of the limit of a validation.
#[test]
fn known_crls_are_not_limited() {
    let h = hierarchy("ML_DSA_44");
    let count = i64::from(MAX_SIGNATURES) + 20;
    let crls: Vec<_> = (0..count).map(|at| crl(&h.subordinate, NOW - DAY + at, None)).collect();
    let roots = [h.root.certificate.clone()];
    let intermediates = [h.subordinate.certificate.clone()];
    let run = |seen: Option<&Seen>| {
        let material = Material {
            roots: &roots,
            intermediates: &intermediates,
            crls: &crls,
            seen,
            ..Material::default()
        };
        let options = Options { revocation: Revocation::IfPresent, ..Options::at(NOW) };
        let outcome = validate(&h.leaf.certificate, &material, &options);
        outcome.map(|_| ()).map_err(|refusal| refusal.rule)
    };
    let too_many = Err(Rule::Limit("too many signatures to verify"));
    assert_eq!(run(None), too_many);
    let seen = Seen::default();
    assert_eq!(run(Some(&seen)), too_many);
    // Now most of them are known, and the rest is within the limit.
    assert_eq!(run(Some(&seen)), Ok(()));
}
