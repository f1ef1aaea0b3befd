//! What RFC 5280 and RFC 5480 forbid and lenient verifiers accept: extensions that must not be critical, curves
//! without a name, CRLs by keys that may not sign CRLs; and the length of a path.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "a test may fail")]

use crate::authority;
#[allow(dead_code, reason = "each test file uses its own part")]
use crate::common::raw;

use authority::{Authority, DAY, START, plan};
use outlast_pki::certificate::Certificate;
use outlast_pki::crl::{self, Crl, Entry, Reason, Scope};
use outlast_pki::validate::{
    MAX_INTERMEDIATES, Material, Options, Revocation, Rule, Validated, validate,
};
use raw::{oid, seq, tlv, values};
use x509_cert::ext::pkix::KeyUsages;

const SPEC: &str = "ML_DSA_44";
const NOW: i64 = START + 10 * DAY;
const SKI: &str = "2.5.29.14";
const AKI: &str = "2.5.29.35";
const CRL_NUMBER: &str = "2.5.29.20";

fn refusal(leaf: &Authority, intermediates: &[&Authority], root: &Authority) -> Option<Rule> {
    let intermediates: Vec<_> = intermediates.iter().map(|one| one.certificate.clone()).collect();
    let roots = [root.certificate.clone()];
    let material = Material { roots: &roots, intermediates: &intermediates, ..Material::default() };
    validate(&leaf.certificate, &material, &Options::at(NOW)).err().map(|refusal| refusal.rule)
}

/// RFC 5280, sections 4.2.1.1 and 4.2.1.2: "Conforming CAs MUST mark this extension as non-critical".
#[test]
fn key_identifiers_must_not_be_critical() {
    let root = plan(SPEC, "Root").ca(None).issue(None);
    let sub = plan(SPEC, "Sub").ca(None).issue(Some(&root));
    assert_eq!(refusal(&plan(SPEC, "leaf").issue(Some(&sub)), &[&sub], &root), None);
    for (oid, section) in [(SKI, "4.2.1.2"), (AKI, "4.2.1.1")] {
        let leaf = plan(SPEC, "leaf").critical(oid).issue(Some(&sub));
        let bad_sub = plan(SPEC, "Sub").ca(None).critical(oid).issue(Some(&root));
        let below = plan(SPEC, "leaf").issue(Some(&bad_sub));
        let found = [refusal(&leaf, &[&sub], &root), refusal(&below, &[&bad_sub], &root)];
        for rule in found {
            let Some(Rule::Malformed(why)) = rule else { panic!("{oid}: {rule:?}") };
            assert!(why.contains(oid) && why.contains(section), "{why}");
        }
    }
    let bad_root = plan(SPEC, "Root").ca(None).critical(SKI).issue(None);
    let leaf = plan(SPEC, "leaf").issue(Some(&bad_root));
    assert!(matches!(refusal(&leaf, &[], &bad_root), Some(Rule::Malformed(_))));
}

/// P-256 as a curve without a name: "specifiedCurve, which is of type SpecifiedECDomain, MUST NOT be used in PKIX"
/// (RFC 5480, section 2.1.1). Made by `openssl ecparam -name prime256v1 -genkey -param_enc explicit`.
const EXPLICIT: &str = "3082014b3082010306072a8648ce3d02013081f7020101302c06072a8648ce3d0101022100ffffffff00000001000000000000000000000000ffffffffffffffffffffffff305b0420ffffffff00000001000000000000000000000000fffffffffffffffffffffffc04205ac635d8aa3a93e7b3ebbd55769886bc651d06b0cc53b0f63bce3c3e27d2604b031500c49d360886e704936a6678e1139d26b7819f7e900441046b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c2964fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5022100ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551020101034200044dda78853f3bc6eea1cf05297810e8d612ad3fb49bdc12ca8b7ea03dca97e53f477e234143883678d2dde99ab11ced1e535561327664de398efe471c033e9874";

#[test]
fn curves_must_have_a_name() {
    let root = plan(SPEC, "Root").ca(None).issue(None);
    let explicit = hex::decode(EXPLICIT).unwrap();
    // The same key by the curve's name, and with `implicitCurve`.
    let point = values(&explicit).pop().unwrap();
    let key = |parameters: &[u8]| seq(&[&seq(&[&oid("1.2.840.10045.2.1"), parameters]), &point]);
    for (what, spki, good) in [
        ("named", key(&oid("1.2.840.10045.3.1.7")), true),
        ("another name", key(&oid("1.3.36.3.3.2.8.1.1.7")), true),
        ("specifiedCurve", explicit.clone(), false),
        ("implicitCurve", key(&[5, 0]), false),
        ("no parameters", key(&[]), false),
    ] {
        let leaf = plan(SPEC, "leaf").public_key(&spki).issue(Some(&root));
        match refusal(&leaf, &[], &root) {
            None => assert!(good, "{what}"),
            Some(Rule::Malformed(why)) => {
                assert!(!good && why.contains("RFC 5480"), "{what}: {why}");
            }
            Some(other) => panic!("{what}: {other}"),
        }
    }
}

fn crl(issuer: &Authority, serials: &[&[u8]]) -> Crl {
    let content = crl::Content {
        issuer: issuer.certificate.subject().clone(),
        issuer_key_id: issuer.certificate.subject_key_identifier().unwrap(),
        number: 1,
        this_update: NOW - DAY,
        next_update: NOW + DAY,
        distribution_points: Vec::new(),
        scope: Scope::All,
    };
    let reason = Reason::by_code(1).unwrap();
    let entries = serials.iter().map(|serial| Entry { serial, revoked_at: NOW, reason });
    let unsigned = content.prepare(issuer.algorithm, entries).unwrap();
    let signature = issuer.sign(&unsigned.to_be_signed);
    Crl::parse(&unsigned.assemble(&signature).unwrap()).unwrap()
}

/// The same CRL with one of its extensions marked critical, and signed again.
fn with_critical(crl: &Crl, wanted: &str, issuer: &Authority) -> Crl {
    let outer = values(crl.der());
    let mut tbs = values(&outer[0]);
    let list = values(&values(&tbs.pop().unwrap())[0]);
    let mut found = false;
    let changed = list.iter().map(|extension| {
        let parts = values(extension);
        if parts[0] != oid(wanted) {
            return extension.clone();
        }
        found = true;
        seq(&[&parts[0], &[1, 1, 0xff], parts.last().unwrap()])
    });
    let changed: Vec<_> = changed.collect();
    assert!(found, "{wanted}");
    tbs.push(tlv(0xa0, &tlv(0x30, &changed.concat())));
    let tbs = tlv(0x30, &tbs.concat());
    let signature = tlv(3, &[&[0], issuer.sign(&tbs).as_slice()].concat());
    Crl::parse(&seq(&[&tbs, &outer[1], &signature])).unwrap()
}

/// The outcomes for a leaf of `root` by one CRL: with revocation required, and if present.
fn by_crl(root: &Authority, leaf: &Authority, crl: Crl) -> (Result<(), String>, Vec<String>) {
    let roots = [root.certificate.clone()];
    let crls = [crl];
    let material = Material { roots: &roots, crls: &crls, ..Material::default() };
    let check = |revocation| {
        let options = Options { revocation, ..Options::at(NOW) };
        validate(&leaf.certificate, &material, &options)
    };
    let required = check(Revocation::Required).map(|_| ()).map_err(|error| error.to_string());
    let present = check(Revocation::IfPresent).unwrap().undetermined;
    (required, present.into_iter().map(|(_, why)| why).collect())
}

/// RFC 5280, section 5.2.3: "CRL number is a non-critical CRL extension"; section 5.2.1 refers to 4.2.1.1.
#[test]
fn crls_with_critical_number_or_key_id_are_rejected() {
    let root = plan(SPEC, "Root").ca(None).issue(None);
    let leaf = plan(SPEC, "leaf").issue(Some(&root));
    let good = crl(&root, &[]);
    assert_eq!(by_crl(&root, &leaf, good.clone()), (Ok(()), Vec::new()));
    for (oid, what) in [(CRL_NUMBER, "CRL number"), (AKI, "authority key identifier")] {
        let (required, unknown) = by_crl(&root, &leaf, with_critical(&good, oid, &root));
        let why = required.unwrap_err();
        assert!(why.contains(what) && why.contains("RFC 5280"), "{why}");
        assert!(unknown.len() == 1 && unknown[0].contains(what), "{unknown:?}");
    }
}

/// RFC 5280, section 6.3.3 (f): a CRL by a key that may not sign CRLs is not used, and the result says why.
#[test]
fn crl_from_issuer_without_crl_sign_is_ignored() {
    let root = plan(SPEC, "Root")
        .with(
            "2.5.29.19",
            true,
            &x509_cert::ext::pkix::BasicConstraints { ca: true, path_len_constraint: None },
        )
        .usage(&[KeyUsages::KeyCertSign])
        .issue(None);
    let leaf = plan(SPEC, "leaf").issue(Some(&root));
    let listed = leaf.certificate.serial().to_vec();
    for serials in [&[][..], &[listed.as_slice()]] {
        let (required, unknown) = by_crl(&root, &leaf, crl(&root, serials));
        let why = required.unwrap_err();
        assert!(why.contains("cRLSign"), "{why}");
        assert!(unknown.len() == 1 && unknown[0].contains("cRLSign"), "{unknown:?}");
    }
    // A CRL with the same name by another key is a different case.
    let stranger = plan(SPEC, "Root").ca(None).issue(None);
    let (required, _) = by_crl(&root, &leaf, crl(&stranger, &[]));
    assert!(!required.unwrap_err().contains("cRLSign"));
}

/// As OpenSSL's `-verify_depth`: neither the leaf nor the trust anchor counts.
#[test]
fn a_path_is_no_longer_than_the_depth_allows() {
    let mut chain = vec![plan(SPEC, "CA 0").ca(None).issue(None)];
    let names = ["CA 1", "CA 2", "CA 3"];
    for name in names {
        let issued = plan(SPEC, name).ca(None).issue(chain.last());
        chain.push(issued);
    }
    let leaf = plan(SPEC, "leaf").issue(chain.last());
    let roots = [chain[0].certificate.clone()];
    let intermediates: Vec<_> = chain[1..].iter().map(|one| one.certificate.clone()).collect();
    let material = Material { roots: &roots, intermediates: &intermediates, ..Material::default() };
    for depth in [0, 1, 2, 3, 4, MAX_INTERMEDIATES, usize::MAX] {
        let options = Options { max_intermediates: depth, ..Options::at(NOW) };
        let outcome: Result<Validated<'_>, _> = validate(&leaf.certificate, &material, &options);
        match outcome {
            Ok(found) => assert!(depth >= 3 && found.path.len() == 5, "{depth}"),
            Err(refusal) => {
                assert!(depth < 3, "{depth}: {refusal}");
                assert_eq!(refusal.rule, Rule::TooLong(depth));
            }
        }
    }
    let direct = Certificate::parse(&chain[1].der()).unwrap();
    let options = Options { max_intermediates: 0, ..Options::at(NOW) };
    assert!(validate(&direct, &material, &options).is_ok(), "issued by the root itself");
}
