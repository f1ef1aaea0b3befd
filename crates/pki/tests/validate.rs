//! Path validation beyond PKITS: purposes, identities, revocation by OCSP and partitioned CRLs, trust anchors that
//! are not trusted blindly, several paths, and chains designed to be expensive.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::type_complexity,
    reason = "a test may fail"
)]

use crate::authority;

use std::time::Instant;

use authority::{Authority, DAY, Plan, START, YEAR, plan};
use der::asn1::{Ia5String, Null, OctetString};
use outlast_pki::ObjectIdentifier;
use outlast_pki::certificate::Certificate;
use outlast_pki::crl::{self, Crl, Entry, Reason, Scope};
use outlast_pki::ocsp::{self, Request, Response, Single, Status};
use outlast_pki::validate::{
    Identity, MAX_DISTRIBUTION_POINTS, MAX_INTERMEDIATES, MAX_POLICIES, MAX_SIGNATURES, Material,
    Options, Refusal, Revocation, Rule, validate,
};
use outlast_testing::PATIENCE;
use proptest::prelude::*;
use x509_cert::ext::pkix::certpolicy::PolicyInformation;
use x509_cert::ext::pkix::constraints::name::GeneralSubtree;
use x509_cert::ext::pkix::crl::CrlDistributionPoints;
use x509_cert::ext::pkix::crl::dp::DistributionPoint;
use x509_cert::ext::pkix::name::{DistributionPointName, GeneralName};
use x509_cert::ext::pkix::{
    CertificatePolicies, KeyUsages, NameConstraints, PolicyMapping, PolicyMappings, SubjectAltName,
};

const SPEC: &str = "ML_DSA_44";
const NOW: i64 = START + 10 * DAY;
const SERVER: &str = "1.3.6.1.5.5.7.3.1";
const CLIENT: &str = "1.3.6.1.5.5.7.3.2";

fn oid(text: &str) -> ObjectIdentifier {
    text.parse().unwrap()
}

fn dns(text: &str) -> GeneralName {
    GeneralName::DnsName(Ia5String::new(text).unwrap())
}

fn with_names(plan: Plan, names: &[GeneralName]) -> Plan {
    plan.with("2.5.29.17", false, &SubjectAltName(names.to_vec()))
}

fn certificates(parties: &[&Authority]) -> Vec<Certificate> {
    parties.iter().map(|party| party.certificate.clone()).collect()
}

fn run(
    leaf: &Authority,
    intermediates: &[&Authority],
    roots: &[&Authority],
    options: &Options<'_>,
) -> Result<(usize, Vec<ObjectIdentifier>), Refusal> {
    let (intermediates, roots) = (certificates(intermediates), certificates(roots));
    let material = Material { roots: &roots, intermediates: &intermediates, ..Material::default() };
    validate(&leaf.certificate, &material, options).map(|done| (done.path.len(), done.policies))
}

fn rule<T: std::fmt::Debug>(outcome: Result<T, Refusal>) -> Rule {
    outcome.unwrap_err().rule
}

#[test]
fn purposes_usages_and_identities_are_held_to() {
    let root = plan(SPEC, "Root").ca(None).issue(None);
    let open = plan(SPEC, "Open").ca(Some(0)).issue(Some(&root));
    let servers = plan(SPEC, "Servers").ca(Some(0)).purpose(&[SERVER]).issue(Some(&root));
    let names = [
        dns("a.example"),
        dns("*.b.example"),
        GeneralName::from("192.0.2.1".parse::<std::net::IpAddr>().unwrap()),
        GeneralName::Rfc822Name(Ia5String::new("ops@a.example").unwrap()),
    ];
    let leaf = |ca, purposes: &[&str]| {
        let leaf = with_names(plan(SPEC, "leaf"), &names).usage(&[KeyUsages::DigitalSignature]);
        if purposes.is_empty() { leaf } else { leaf.purpose(purposes) }.issue(Some(ca))
    };
    let all: [(&Authority, &[&str]); 4] =
        [(&open, &[]), (&open, &[SERVER]), (&open, &["2.5.29.37.0"]), (&servers, &[])];
    // (requested purposes, for which of these leaves it is valid)
    let cases: [(&[ObjectIdentifier], [bool; 4]); 4] = [
        (&[], [true; 4]),
        (&[oid(SERVER)], [true; 4]),
        (&[oid(CLIENT)], [true, false, true, false]),
        (&[oid(SERVER), oid(CLIENT)], [true, false, true, false]),
    ];
    let leaves: Vec<_> = all.iter().map(|(ca, purposes)| leaf(*ca, purposes)).collect();
    for (purposes, expected) in cases {
        for ((leaf, (ca, _)), expected) in leaves.iter().zip(all).zip(expected) {
            let options = Options { purposes, ..Options::at(NOW) };
            let outcome = run(leaf, &[ca], &[&root], &options);
            assert_eq!(outcome.is_ok(), expected, "{purposes:?}: {outcome:?}");
            if let Err(refusal) = outcome {
                assert!(matches!(refusal.rule, Rule::Purpose(_)), "{refusal}");
            }
        }
    }
    for (name, expected) in [
        (Identity::Dns("A.example"), true),
        (Identity::Dns("x.b.example"), true),
        (Identity::Dns("x.y.b.example"), false),
        (Identity::Dns("leaf"), false),
        (Identity::Ip("192.0.2.1".parse().unwrap()), true),
        (Identity::Ip("192.0.2.2".parse().unwrap()), false),
        (Identity::Email("ops@A.example"), true),
        (Identity::Email("other@a.example"), false),
    ] {
        let options = Options { name: Some(name), ..Options::at(NOW) };
        let outcome = run(&leaves[0], &[&open], &[&root], &options);
        assert_eq!(outcome.is_ok(), expected, "{name:?}");
        if !expected {
            assert_eq!(rule(outcome), Rule::Identity(name.to_string()));
        }
    }
    for (usage, expected) in
        [(KeyUsages::DigitalSignature, true), (KeyUsages::KeyEncipherment, false)]
    {
        let options = Options { key_usage: Some(usage), ..Options::at(NOW) };
        assert_eq!(run(&leaves[0], &[&open], &[&root], &options).is_ok(), expected);
    }
}

#[test]
fn trust_anchors_are_not_believed_blindly() {
    let permitted = NameConstraints {
        permitted_subtrees: Some(vec![GeneralSubtree {
            base: dns("example"),
            minimum: 0,
            maximum: None,
        }]),
        excluded_subtrees: None,
    };
    let ca = |root: &Authority| plan(SPEC, "Sub").ca(None).issue(Some(root));
    let leaf =
        |sub: &Authority| with_names(plan(SPEC, "leaf"), &[dns("www.other")]).issue(Some(sub));
    let base = || plan(SPEC, "Root");
    let options = Options { purposes: &[oid(SERVER)], ..Options::at(NOW) };
    let cases: [(Plan, Option<Rule>); 6] = [
        (base().ca(None), None),
        (base().ca(None).valid(START, START + DAY), Some(Rule::Expired(START + DAY))),
        (base().ca(Some(0)), Some(Rule::PathLength)),
        (base(), Some(Rule::NotCa)),
        (base().ca(None).purpose(&[CLIENT]), Some(Rule::Purpose("id-kp-serverAuth".into()))),
        (
            base().ca(None).with("2.5.29.30", true, &permitted),
            Some(Rule::NameConstraints(String::new())),
        ),
    ];
    for (plan, expected) in cases {
        let root = plan.issue(None);
        let sub = ca(&root);
        let outcome = run(&leaf(&sub), &[&sub], &[&root], &options);
        match (outcome, expected) {
            (Ok((3, _)), None) => {}
            (Err(refusal), Some(Rule::NameConstraints(_))) => {
                assert!(matches!(refusal.rule, Rule::NameConstraints(_)), "{refusal}");
                assert_eq!(refusal.subject, "CN=leaf");
            }
            (outcome, expected) => {
                assert_eq!(outcome.err().map(|refusal| refusal.rule), expected);
            }
        }
    }
}

#[test]
fn another_path_is_tried_when_one_does_not_hold() {
    let old_root = plan(SPEC, "Old Root").ca(None).valid(START, START + DAY).issue(None);
    let new_root = plan(SPEC, "New Root").ca(None).issue(None);
    // The same CA, certified twice: with a new key it keeps its name.
    let first = plan(SPEC, "Sub").ca(None).issue(Some(&old_root));
    let leaf = plan(SPEC, "leaf").issue(Some(&first));
    let spki = first.certificate.public_key().unwrap();
    let cross = cross_certify(&spki, first.certificate.subject(), &new_root);
    let roots = certificates(&[&old_root, &new_root]);
    for order in [[0, 1], [1, 0]] {
        let both = [first.certificate.clone(), cross.clone()];
        let intermediates = order.map(|index| both[index].clone());
        let material =
            Material { roots: &roots, intermediates: &intermediates, ..Material::default() };
        let found = validate(&leaf.certificate, &material, &Options::at(NOW)).unwrap();
        assert_eq!(found.path[2].der(), new_root.der());
    }
    // Alone, the refusal names the certificate that fails.
    let refusal = run(&leaf, &[&first], &[&old_root], &Options::at(NOW)).unwrap_err();
    assert_eq!(refusal.rule, Rule::Expired(START + DAY));
    assert_eq!(refusal.subject, "CN=Old Root");
    let refusal = run(&leaf, &[&first], &[&new_root], &Options::at(NOW)).unwrap_err();
    assert_eq!(refusal.rule, Rule::UnknownIssuer("CN=Old Root".into()));
}

fn cross_certify(spki: &[u8], subject: &outlast_pki::name::Name, by: &Authority) -> Certificate {
    use outlast_pki::certificate::Content;
    use outlast_pki::extension::extension;
    use x509_cert::ext::pkix::BasicConstraints;
    let constraints = BasicConstraints { ca: true, path_len_constraint: None };
    let unsigned = Content {
        serial: [9; 16],
        issuer: by.certificate.subject().clone(),
        subject: subject.clone(),
        public_key: spki.to_vec(),
        not_before: START,
        not_after: START + YEAR,
        extensions: vec![extension(oid("2.5.29.19"), true, &constraints).unwrap()],
    }
    .prepare(by.algorithm, &by.certificate.public_key().unwrap())
    .unwrap();
    let signature = by.sign(&unsigned.to_be_signed);
    Certificate::parse(&unsigned.assemble(&signature).unwrap()).unwrap()
}

struct World {
    root: Authority,
    sub: Authority,
    leaf: Authority,
    responder: Authority,
}

const URL: &str = "http://crl.example/3.crl";

fn world() -> World {
    let name = GeneralName::UniformResourceIdentifier(Ia5String::new(URL).unwrap());
    let points = CrlDistributionPoints(vec![DistributionPoint {
        distribution_point: Some(DistributionPointName::FullName(vec![name])),
        reasons: None,
        crl_issuer: None,
    }]);
    let root = plan(SPEC, "Root").ca(None).issue(None);
    let sub = plan(SPEC, "Sub").ca(None).issue(Some(&root));
    let leaf = plan(SPEC, "leaf").serial(7).with("2.5.29.31", false, &points).issue(Some(&sub));
    let responder = plan(SPEC, "Responder")
        .usage(&[KeyUsages::DigitalSignature])
        .purpose(&["1.3.6.1.5.5.7.3.9"])
        .with("1.3.6.1.5.5.7.48.1.5", false, &Null)
        .issue(Some(&sub));
    World { root, sub, leaf, responder }
}

fn crl(issuer: &Authority, point: Option<&str>, scope: Scope, serials: &[&[u8]]) -> Crl {
    let content = crl::Content {
        issuer: issuer.certificate.subject().clone(),
        issuer_key_id: issuer.certificate.subject_key_identifier().unwrap(),
        number: 1,
        this_update: NOW - DAY,
        next_update: NOW + DAY,
        distribution_points: point.map(str::to_owned).into_iter().collect(),
        scope,
    };
    let reason = Reason::by_code(1).unwrap();
    let entries = serials.iter().map(|serial| Entry { serial, revoked_at: NOW, reason });
    let unsigned = content.prepare(issuer.algorithm, entries).unwrap();
    let signature = issuer.sign(&unsigned.to_be_signed);
    Crl::parse(&unsigned.assemble(&signature).unwrap()).unwrap()
}

fn response(issuer: &Authority, subject: &Authority, by: &Authority, status: Status) -> Response {
    let request = Request::new(&issuer.certificate, &subject.certificate, None).unwrap();
    let key = by.certificate.public_key().unwrap();
    let unsigned = ocsp::Content {
        responder_key: &key,
        produced_at: NOW,
        responses: vec![Single {
            id: request.ids[0].clone(),
            status,
            this_update: NOW - DAY,
            next_update: Some(NOW + DAY),
        }],
        nonce: None,
    }
    .prepare(by.algorithm)
    .unwrap();
    let signature = by.sign(&unsigned.to_be_signed);
    Response::parse(&unsigned.assemble(&signature, &[by.der()]).unwrap()).unwrap()
}

#[test]
fn revocation_is_known_or_it_is_not() {
    let World { root, sub, leaf, responder } = world();
    let serial = leaf.certificate.serial();
    let revoked = Status::Revoked { at: NOW, reason: Reason::by_code(4).unwrap() };
    let of_root = crl(&root, None, Scope::All, &[]);
    let good = [of_root.clone(), crl(&sub, Some(URL), Scope::All, &[])];
    let bad = [of_root.clone(), crl(&sub, Some(URL), Scope::UserCertificates, &[serial])];
    let elsewhere = crl(&sub, Some("http://crl.example/4.crl"), Scope::All, &[serial]);
    let for_cas = crl(&sub, None, Scope::CaCertificates, &[serial]);
    let mut old = of_root.der().to_vec();
    *old.last_mut().unwrap() ^= 1;
    let broken = Crl::parse(&old).unwrap();
    let says = |status| response(&sub, &leaf, &responder, status);
    let unknown = Some("cannot be determined");
    // (CRLs, OCSP responses, outcome with revocation required, whether it is refused with revocation if present)
    let cases: Vec<(&str, Vec<Crl>, Vec<Response>, Option<&str>, bool)> = vec![
        ("nothing", vec![], vec![], unknown, false),
        ("both good", good.to_vec(), vec![], None, false),
        ("only the leaf's", vec![good[1].clone()], vec![], unknown, false),
        ("only the CA's", vec![of_root.clone()], vec![], unknown, false),
        ("revoked leaf", bad.to_vec(), vec![], Some("revoked"), true),
        (
            "revoked CA",
            vec![crl(&root, None, Scope::All, &[sub.certificate.serial()]), good[1].clone()],
            vec![],
            Some("revoked"),
            true,
        ),
        ("other partition", vec![of_root.clone(), elsewhere], vec![], unknown, false),
        ("CAs only", vec![of_root.clone(), for_cas], vec![], unknown, false),
        ("bad signature", vec![broken, good[1].clone()], vec![], unknown, false),
        ("good by OCSP", vec![of_root.clone()], vec![says(Status::Good)], None, false),
        ("revoked by OCSP", good.to_vec(), vec![says(revoked)], Some("revoked"), true),
        ("unknown by OCSP", vec![of_root.clone()], vec![says(Status::Unknown)], unknown, false),
        (
            "revoked by CRL, good by OCSP",
            bad.to_vec(),
            vec![says(Status::Good)],
            Some("revoked"),
            true,
        ),
        (
            "signed by another",
            vec![of_root.clone()],
            vec![response(&sub, &leaf, &leaf, Status::Good)],
            unknown,
            false,
        ),
        (
            "about another",
            vec![of_root],
            vec![response(&sub, &responder, &sub, Status::Good)],
            unknown,
            false,
        ),
    ];
    let (roots, intermediates) = (certificates(&[&root]), certificates(&[&sub]));
    for (what, crls, ocsp, required, refused) in &cases {
        let material = Material {
            roots: &roots,
            intermediates: &intermediates,
            crls,
            ocsp,
            ..Material::default()
        };
        let check = |revocation| {
            let options = Options { revocation, ..Options::at(NOW) };
            validate(&leaf.certificate, &material, &options).map(|_| ())
        };
        match (check(Revocation::Required), required) {
            (Ok(()), None) => {}
            (Err(refusal), Some(text)) => {
                assert!(refusal.to_string().contains(text), "{what}: {refusal}");
            }
            (outcome, _) => panic!("{what}: {outcome:?}"),
        }
        assert_eq!(check(Revocation::IfPresent).is_err(), *refused, "{what}");
        assert_eq!(check(Revocation::Off), Ok(()), "{what}");
    }
    // CRLs and responses from another time.
    let material = Material {
        roots: &roots,
        intermediates: &intermediates,
        crls: &good,
        ocsp: &[],
        ..Material::default()
    };
    for at in [NOW - 2 * DAY, NOW + 2 * DAY] {
        let options = Options { revocation: Revocation::Required, ..Options::at(at) };
        let outcome = validate(&leaf.certificate, &material, &options);
        assert!(matches!(rule(outcome), Rule::RevocationUnknown(_)));
    }
}

/// A CA may have its CRLs signed with another key (RFC 5280, section 6.3.3 (f)): one with a path of its own to the
/// same root, which is not revoked.
#[test]
fn crl_signers_need_a_path_of_their_own() {
    let World { root, sub, leaf, .. } = world();
    let signer = || plan(SPEC, "Sub").serial(77).usage(&[KeyUsages::CRLSign]);
    let other_root = plan(SPEC, "Other Root").ca(None).issue(None);
    let good = signer().issue(Some(&root));
    let no_usage = plan(SPEC, "Sub").usage(&[KeyUsages::DigitalSignature]).issue(Some(&root));
    let of_other_root = signer().issue(Some(&other_root));
    let expired = signer().valid(START, START + DAY).issue(Some(&root));
    let listed = [good.certificate.serial()];
    // (signer, whether it is revoked, whether its CRL counts)
    let cases = [
        ("good", &good, false, true),
        ("revoked", &good, true, false),
        ("without cRLSign", &no_usage, false, false),
        ("of another root", &of_other_root, false, false),
        ("expired", &expired, false, false),
    ];
    let roots = certificates(&[&root, &other_root]);
    for (what, signer, revoked, expected) in cases {
        let of_root = crl(&root, None, Scope::All, if revoked { &listed } else { &[] });
        let crls = [of_root, crl(signer, Some(URL), Scope::All, &[])];
        let intermediates = certificates(&[&sub, signer]);
        let material = Material {
            roots: &roots,
            intermediates: &intermediates,
            crls: &crls,
            ocsp: &[],
            ..Material::default()
        };
        let options = Options { revocation: Revocation::Required, ..Options::at(NOW) };
        let outcome = validate(&leaf.certificate, &material, &options);
        assert_eq!(outcome.is_ok(), expected, "{what}: {outcome:?}");
        if !expected {
            assert!(matches!(rule(outcome), Rule::RevocationUnknown(_)), "{what}");
        }
    }
}

/// A revoked CA certifies a CA with its issuer's name, and that one signs a CRL on which the CA is not revoked;
/// another CA does the same for its neighbour.
#[test]
fn a_ca_cannot_vouch_for_itself_or_for_its_neighbours() {
    let root = plan(SPEC, "Root").ca(None).issue(None);
    let sub = plan(SPEC, "Sub").ca(None).issue(Some(&root));
    let fake_root = plan(SPEC, "Root").ca(None).serial(5).issue(Some(&sub));
    let leaf = plan(SPEC, "leaf").issue(Some(&fake_root));
    let rogue = plan(SPEC, "Rogue").ca(None).serial(6).issue(Some(&root));
    let neighbour_leaf = plan(SPEC, "leaf").issue(Some(&sub));
    let rogue_signer = plan(SPEC, "Sub").usage(&[KeyUsages::CRLSign]).serial(7).issue(Some(&rogue));
    let roots = certificates(&[&root]);
    let options = Options { revocation: Revocation::Required, ..Options::at(NOW) };
    let all = |by| crl(by, None, Scope::All, &[]);

    let intermediates = certificates(&[&sub, &fake_root]);
    let crls = [all(&fake_root), all(&sub)];
    let material = Material {
        roots: &roots,
        intermediates: &intermediates,
        crls: &crls,
        ocsp: &[],
        ..Material::default()
    };
    let refusal = validate(&leaf.certificate, &material, &options).unwrap_err();
    assert!(matches!(refusal.rule, Rule::RevocationUnknown(_)), "{refusal}");
    assert_eq!(refusal.subject, "CN=Sub");
    let crls = [all(&fake_root), all(&sub), all(&root)];
    let material = Material { crls: &crls, ..material };
    validate(&leaf.certificate, &material, &options).unwrap();

    let intermediates = certificates(&[&sub, &rogue, &rogue_signer]);
    let crls = [all(&root), all(&rogue), all(&rogue_signer)];
    let material = Material {
        roots: &roots,
        intermediates: &intermediates,
        crls: &crls,
        ocsp: &[],
        ..Material::default()
    };
    let refusal = validate(&neighbour_leaf.certificate, &material, &options).unwrap_err();
    assert!(matches!(refusal.rule, Rule::RevocationUnknown(_)), "{refusal}");
    assert_eq!(refusal.subject, "CN=leaf");
}

/// RFC 9608: a short-lived certificate may say that there will be no revocation information; a CA's may not.
#[test]
fn no_rev_avail_spares_leaves_only() {
    let World { root, sub, .. } = world();
    let crls = [crl(&root, None, Scope::All, &[])];
    let (roots, intermediates) = (certificates(&[&root]), certificates(&[&sub]));
    let material = Material {
        roots: &roots,
        intermediates: &intermediates,
        crls: &crls,
        ocsp: &[],
        ..Material::default()
    };
    let options = Options { revocation: Revocation::Required, ..Options::at(NOW) };
    let leaf = plan(SPEC, "short").with("2.5.29.56", false, &Null);
    assert!(validate(&leaf.issue(Some(&sub)).certificate, &material, &options).is_ok());
    let ca = plan(SPEC, "short").ca(None).with("2.5.29.56", false, &Null).issue(Some(&sub));
    let outcome = validate(&ca.certificate, &material, &options);
    assert!(matches!(rule(outcome), Rule::RevocationUnknown(_)));
}

#[test]
fn paths_have_a_longest_length() {
    let root = plan(SPEC, "Root").ca(None).issue(None);
    let mut chain = vec![plan(SPEC, "CA 0").ca(None).issue(Some(&root))];
    for n in 1..=MAX_INTERMEDIATES {
        let name = format!("CA {n}");
        let next = plan(SPEC, &name).ca(None).issue(chain.last());
        chain.push(next);
    }
    let all: Vec<_> = chain.iter().collect();
    let fits = plan(SPEC, "leaf").issue(Some(&chain[MAX_INTERMEDIATES - 1]));
    let outcome = run(&fits, &all, &[&root], &Options::at(NOW)).unwrap();
    assert_eq!(outcome.0, MAX_INTERMEDIATES + 2);
    let too_long = plan(SPEC, "leaf").issue(chain.last());
    let outcome = run(&too_long, &all, &[&root], &Options::at(NOW));
    assert_eq!(rule(outcome), Rule::TooLong(MAX_INTERMEDIATES));
}

/// CAs that certify each other, without a root: the search ends, and the refusal says what is missing.
#[test]
fn loops_end() {
    let mut parties = vec![plan(SPEC, "A").ca(None).issue(None)];
    for name in ["B", "C", "D"] {
        parties.push(plan(SPEC, name).ca(None).issue(None));
    }
    let mut pool = Vec::new();
    for issuer in &parties {
        for subject in &parties {
            let key = subject.certificate.public_key().unwrap();
            pool.push(cross_certify(&key, subject.certificate.subject(), issuer));
        }
    }
    let root = plan(SPEC, "Root").ca(None).issue(None);
    let leaf = plan(SPEC, "leaf").issue(Some(&parties[0]));
    let roots = certificates(&[&root]);
    let material = Material { roots: &roots, intermediates: &pool, ..Material::default() };
    let outcome = validate(&leaf.certificate, &material, &Options::at(NOW));
    assert!(matches!(rule(outcome), Rule::UnknownIssuer(_)));
}

/// Many CAs with one name: only so many signatures are verified.
#[test]
fn signatures_are_limited() {
    let root = plan(SPEC, "Root").ca(None).issue(None);
    let count = MAX_SIGNATURES + 20;
    let decoys: Vec<_> =
        (0..count).map(|_| plan("ECC_NIST_P256", "Sub").ca(None).issue(None)).collect();
    let sub = plan(SPEC, "Sub").ca(None).issue(Some(&root));
    let leaf = plan(SPEC, "leaf").issue(Some(&sub));
    let mut all: Vec<_> = decoys.iter().collect();
    let outcome = run(&leaf, &all, &[&root], &Options::at(NOW));
    assert_eq!(rule(outcome), Rule::Limit("too many signatures to verify"));
    // The one with the right key identifier is found nevertheless.
    all.push(&sub);
    assert!(run(&leaf, &all, &[&root], &Options::at(NOW)).is_ok());
}

/// Policies that would make RFC 5280's tree grow with every certificate (CVE-2023-0464).
#[test]
fn policies_cost_no_more_than_a_graph() {
    let policy = |n: usize| oid(&format!("1.2.3.{n}"));
    let list = |count: usize| {
        CertificatePolicies(
            (0..count)
                .map(|n| PolicyInformation {
                    policy_identifier: policy(n),
                    policy_qualifiers: None,
                })
                .collect(),
        )
    };
    let half = MAX_POLICIES / 2;
    // Maps each of two policies to both.
    let both = PolicyMappings(
        (0..2)
            .flat_map(|from| {
                (0..half).map(move |to| PolicyMapping {
                    issuer_domain_policy: policy(from),
                    subject_domain_policy: policy(to),
                })
            })
            .collect(),
    );
    let heavy = |plan: Plan| {
        plan.ca(None).with("2.5.29.32", true, &list(MAX_POLICIES)).with("2.5.29.33", true, &both)
    };
    let root = plan(SPEC, "Root").ca(None).issue(None);
    let mut chain = vec![heavy(plan(SPEC, "CA 0")).issue(Some(&root))];
    for n in 1..MAX_INTERMEDIATES {
        let name = format!("CA {n}");
        let next = heavy(plan(SPEC, &name)).issue(chain.last());
        chain.push(next);
    }
    let leaf = plan(SPEC, "leaf").with("2.5.29.32", true, &list(2)).issue(chain.last());
    let all: Vec<_> = chain.iter().collect();
    let begin = Instant::now();
    let options = Options { explicit_policy: true, ..Options::at(NOW) };
    let (_, policies) = run(&leaf, &all, &[&root], &options).unwrap();
    // A tree that grows quadratically would take days.
    assert!(begin.elapsed() < PATIENCE, "{:?}", begin.elapsed());
    assert!(policies.contains(&policy(0)) && !policies.contains(&policy(half)), "{policies:?}");
    let too_many =
        plan(SPEC, "leaf").with("2.5.29.32", true, &list(MAX_POLICIES + 1)).issue(Some(&root));
    let outcome = run(&too_many, &[], &[&root], &Options::at(NOW));
    assert!(matches!(rule(outcome), Rule::Malformed(_)));
}

#[test]
fn name_comparisons_are_limited() {
    let subtree =
        |n: usize| GeneralSubtree { base: dns(&format!("x{n}.test")), minimum: 0, maximum: None };
    let constraints = NameConstraints {
        permitted_subtrees: None,
        excluded_subtrees: Some((0..1000).map(subtree).collect()),
    };
    let root = plan(SPEC, "Root").ca(None).with("2.5.29.30", true, &constraints).issue(None);
    let names = |count: usize| (0..count).map(|n| dns(&format!("y{n}.test"))).collect::<Vec<_>>();
    let few = with_names(plan(SPEC, "leaf"), &names(50)).issue(Some(&root));
    assert!(run(&few, &[], &[&root], &Options::at(NOW)).is_ok());
    let many = with_names(plan(SPEC, "leaf"), &names(500)).issue(Some(&root));
    let outcome = run(&many, &[], &[&root], &Options::at(NOW));
    assert_eq!(rule(outcome), Rule::Limit("too many names and name constraints"));
}

#[test]
fn broken_extensions_are_refused() {
    let root = plan(SPEC, "Root").ca(None).issue(None);
    let garbage = OctetString::new(vec![1, 2, 3]).unwrap();
    let twice = plan(SPEC, "leaf").purpose(&[SERVER]).purpose(&[CLIENT]).issue(Some(&root));
    let broken = plan(SPEC, "leaf").with("2.5.29.19", false, &garbage).issue(Some(&root));
    let many = (0..70)
        .fold(plan(SPEC, "leaf"), |plan, n| plan.with(&format!("1.2.3.4.{n}"), false, &Null));
    let point = |count: usize| {
        let name = GeneralName::UniformResourceIdentifier(Ia5String::new(URL).unwrap());
        DistributionPoint {
            distribution_point: Some(DistributionPointName::FullName(vec![name; count])),
            reasons: None,
            crl_issuer: None,
        }
    };
    let points = |list| {
        let list = CrlDistributionPoints(list);
        plan(SPEC, "leaf").with("2.5.29.31", false, &list).issue(Some(&root))
    };
    let most = MAX_DISTRIBUTION_POINTS;
    assert!(run(&points(vec![point(most); most]), &[], &[&root], &Options::at(NOW)).is_ok());
    let many = many.issue(Some(&root));
    let (wide, long) = (points(vec![point(most + 1)]), points(vec![point(1); most + 1]));
    for leaf in [twice, broken, many, wide, long] {
        let outcome = run(&leaf, &[], &[&root], &Options::at(NOW));
        assert!(matches!(rule(outcome), Rule::Malformed(_)));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    /// A leaf with any byte changed cannot be parsed, or is not valid.
    #[test]
    fn no_byte_of_a_leaf_can_be_changed(place in any::<usize>(), bit in 0u8..8) {
        static CHAIN: std::sync::LazyLock<[Vec<u8>; 2]> = std::sync::LazyLock::new(|| {
            let root = plan("ECC_NIST_P256", "Root").ca(None).issue(None);
            let leaf = plan("ECC_NIST_P256", "leaf").purpose(&[SERVER]).issue(Some(&root));
            [root.der(), leaf.der()]
        });
        let roots = [Certificate::parse(&CHAIN[0]).unwrap()];
        let mut der = CHAIN[1].clone();
        let place = place % der.len();
        der[place] ^= 1 << bit;
        if let Ok(leaf) = Certificate::parse(&der) {
            let material = Material { roots: &roots, ..Material::default() };
            prop_assert!(validate(&leaf, &material, &Options::at(NOW)).is_err(), "{}", place);
        }
    }
}
