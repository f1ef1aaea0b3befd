//! Every lint rule with an example that breaks it and one that does not; every template with every kind of key.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test may fail and print"
)]

use crate::common;

use common::raw::{GENERALIZED, Raw, UTC, dn, ext, oid, seq, tlv};
use common::{START, YEAR, issue, template};
use outlast_crypto::keys::{KEY_SPECS, KeySpec};
use outlast_pki::certificate::{Content, key_identifier};
use outlast_pki::extensions::{
    self, Extension, KeyUsages, authority_key_identifier, key_usage, subject_alternative_names,
};
use outlast_pki::general_name::GeneralName;
use outlast_pki::lint::{self, RULES, Severity};
use outlast_pki::name::common_name;
use outlast_pki::public_key::Kind;
use outlast_pki::templates::{Kind as TemplateKind, Requested, TEMPLATES};

const AKI: &str = "2.5.29.35";
const SKI: &str = "2.5.29.14";
const KU: &str = "2.5.29.15";
const BC: &str = "2.5.29.19";
const SAN: &str = "2.5.29.17";
const IAN: &str = "2.5.29.18";
const EKU: &str = "2.5.29.37";
const NC: &str = "2.5.29.30";
const CP: &str = "2.5.29.32";
const PM: &str = "2.5.29.33";
const PC: &str = "2.5.29.36";
const CDP: &str = "2.5.29.31";
const AIA: &str = "1.3.6.1.5.5.7.1.1";
const CA_TRUE: &[u8] = &[0x30, 3, 1, 1, 0xff];

fn broken(der: &[u8]) -> Vec<&'static str> {
    let findings = lint::certificate(der).unwrap();
    for finding in &findings {
        assert!(!finding.detail.is_empty() && finding.to_string().contains(finding.rule.source));
    }
    findings.iter().map(|finding| finding.rule.name).collect()
}

fn spki(spec: &str) -> Vec<u8> {
    let spec = KeySpec::by_name(spec).unwrap();
    spec.load(&spec.generate().unwrap()).unwrap().public_key().unwrap().to_vec()
}

struct Base {
    leaf: Raw,
    sub: Raw,
    root: Raw,
}

fn base() -> Base {
    let root = issue("ECC_NIST_P256", "Root", "RootCACertificate", 10, None);
    let sub = issue("ECC_NIST_P256", "Sub", "SubordinateCACertificate_PathLen0", 5, Some(&root));
    let leaf = issue("ECC_NIST_P256", "Leaf", "EndEntityCertificate", 1, Some(&sub));
    let raw = |party: &common::Party| Raw::of(party.certificate.der());
    Base { leaf: raw(&leaf), sub: raw(&sub), root: raw(&root) }
}

/// The leaf with another kind of key and this key usage.
fn keyed(leaf: &Raw, spec: &str, usage: &[KeyUsages]) -> Raw {
    let key = spki(spec);
    let raw = Raw { public_key: key, ..leaf.clone() };
    raw.without(EKU).set_extension(&key_usage(usage).unwrap())
}

/// The leaf with a key of this kind that is one byte too long.
fn long_key(leaf: &Raw, spec: &str, usage: &[KeyUsages]) -> Raw {
    let mut raw = keyed(leaf, spec, usage);
    let spki = raw.public_key;
    let algorithm_len = 2 + usize::from(spki[header(&spki) + 1]);
    let start = header(&spki);
    let algorithm = &spki[start..start + algorithm_len];
    let bits = &spki[start + algorithm_len..];
    let content = [&bits[header(bits)..], &[1]].concat();
    raw.public_key = seq(&[algorithm, &tlv(3, &content)]);
    raw
}

fn header(der: &[u8]) -> usize {
    if der[1] < 0x80 { 2 } else { 2 + usize::from(der[1] & 0x7f) }
}

fn names(names: &[(u8, &[u8])]) -> Vec<u8> {
    tlv(0x30, &names.iter().flat_map(|(tag, value)| tlv(*tag, value)).collect::<Vec<_>>())
}

fn uri_access(uri: &[u8]) -> Vec<u8> {
    seq(&[&seq(&[&oid("1.3.6.1.5.5.7.48.1"), &tlv(0x86, uri)])])
}

type Example = (&'static str, Raw, Raw);

/// (rule, an example that keeps it, an example that breaks it)
fn fields(base: &Base) -> Vec<Example> {
    let leaf = || base.leaf.clone();
    let utc = (UTC, "261101000000Z");
    let late = |text| leaf().set_times(utc, (GENERALIZED, text));
    vec![
        ("rfc5280.version.v3", leaf(), Raw { version: vec![0xa0, 3, 2, 1, 1], ..leaf() }),
        ("rfc5280.serial_number.positive", leaf(), Raw { serial: vec![2, 1, 0xff], ..leaf() }),
        (
            "rfc5280.serial_number.length",
            Raw { serial: tlv(2, &[1; 20]), ..leaf() },
            Raw { serial: tlv(2, &[1; 21]), ..leaf() },
        ),
        (
            "rfc5280.signature.same_inside_and_outside",
            leaf(),
            Raw { outer_algorithm: seq(&[&oid("1.2.840.10045.4.3.3")]), ..leaf() },
        ),
        (
            "pkix.signature.parameters",
            Raw { algorithm: seq(&[&oid("1.2.840.113549.1.1.11"), &[5, 0]]), ..leaf() },
            Raw { algorithm: seq(&[&oid("1.2.840.10045.4.3.2"), &[5, 0]]), ..leaf() },
        ),
        ("rfc5280.issuer.not_empty", leaf(), Raw { issuer: seq(&[]), ..leaf() }),
        ("rfc5280.validity.format", late("20500101000000Z"), late("20500101000000.5Z")),
        ("rfc5280.validity.format", leaf(), leaf().set_times((UTC, "2611010000Z"), utc)),
        ("rfc5280.validity.utc_time_before_2050", late("20500101000000Z"), late("20491231235959Z")),
        ("rfc5280.validity.order", leaf(), leaf().set_times(utc, (UTC, "261031235959Z"))),
        (
            "rfc5280.validity.order",
            late("20500101000000Z"),
            leaf().set_times(utc, (UTC, "991231235959Z")),
        ),
        ("rfc5280.unique_identifier.absent", leaf(), Raw { unique: vec![0x82, 2, 0, 1], ..leaf() }),
        ("x690.der", leaf(), Raw { serial: vec![2, 2, 0, 1], ..leaf() }),
        ("x690.der", leaf(), {
            let pair = |value: &[u8]| seq(&[&oid("2.5.4.3"), &tlv(0x0c, value)]);
            let set = tlv(0x31, &[pair(b"b"), pair(b"a")].concat());
            Raw { subject: seq(&[&set]), ..leaf() }
        }),
        ("x690.der", leaf(), {
            let mut raw = leaf().without(SKI);
            let value = tlv(4, &tlv(4, &[7; 20]));
            raw.extensions.as_mut().unwrap().push(seq(&[&oid(SKI), &[1, 1, 0], &value]));
            raw
        }),
        (
            "rfc5280.subject.not_empty_in_ca",
            base.sub.clone(),
            Raw { subject: seq(&[]), ..base.sub.clone() },
        ),
        (
            "rfc5280.subject.empty_needs_critical_name",
            Raw { subject: seq(&[]), ..leaf() }.set(SAN, true, &names(&[(0x82, b"a.example")])),
            Raw { subject: seq(&[]), ..leaf() }.set(SAN, false, &names(&[(0x82, b"a.example")])),
        ),
        ("rfc5280.subject.empty_needs_critical_name", leaf(), Raw { subject: seq(&[]), ..leaf() }),
        (
            "rfc5280.name.attribute_length",
            Raw { subject: dn("2.5.4.3", 0x0c, "é".repeat(64).as_bytes()), ..leaf() },
            Raw { subject: dn("2.5.4.3", 0x0c, &[b'a'; 65]), ..leaf() },
        ),
        (
            "rfc5280.name.attribute_type",
            Raw { subject: dn("2.5.4.6", 0x13, b"DE"), ..leaf() },
            Raw { subject: dn("2.5.4.6", 0x0c, b"DE"), ..leaf() },
        ),
        (
            "rfc5280.name.attribute_type",
            leaf(),
            Raw { subject: dn("2.5.4.3", 0x14, b"x"), ..leaf() },
        ),
        (
            "rfc5280.name.attribute_characters",
            leaf(),
            Raw { subject: dn("2.5.4.3", 0x13, b"a@b"), ..leaf() },
        ),
        (
            "rfc5280.name.country",
            Raw { issuer: dn("2.5.4.6", 0x13, b"DE"), ..leaf() },
            Raw { issuer: dn("2.5.4.6", 0x13, b"D"), ..leaf() },
        ),
        (
            "iso3166.name.country",
            Raw { issuer: dn("2.5.4.6", 0x13, b"DE"), ..leaf() },
            Raw { issuer: dn("2.5.4.6", 0x13, b"de"), ..leaf() },
        ),
        (
            "rfc5280.subject.email_address",
            leaf(),
            Raw { subject: dn("1.2.840.113549.1.9.1", 0x16, b"a@b.example"), ..leaf() },
        ),
    ]
}

fn extensions_examples(base: &Base) -> Vec<Example> {
    let leaf = || base.leaf.clone();
    let sub = || base.sub.clone();
    let usage = |flags: &[KeyUsages]| key_usage(flags).unwrap();
    let twice = {
        let mut raw = leaf();
        let list = raw.extensions.as_mut().unwrap();
        list.push(list[0].clone());
        raw
    };
    let subtree = |extra: &[u8]| tlv(0x30, &tlv(0xa0, &seq(&[&tlv(0x82, b"example"), extra])));
    let policy = seq(&[&oid("1.3.6.1.4.1.32473.1")]);
    let mapping = |to: &str| seq(&[&seq(&[&oid("1.3.6.1.4.1.32473.1"), &oid(to)])]);
    let notice = |tag: u8, len: usize| {
        let text = seq(&[&tlv(tag, &vec![b'a'; len])]);
        let qualifier = seq(&[&oid("1.3.6.1.5.5.7.2.2"), &text]);
        let policy = seq(&[&oid("1.3.6.1.4.1.32473.1"), &seq(&[&qualifier])]);
        leaf().set(CP, false, &seq(&[&policy]))
    };
    let purposes = |list: &[&str]| {
        seq(&list
            .iter()
            .map(|name| oid(name))
            .collect::<Vec<_>>()
            .iter()
            .map(Vec::as_slice)
            .collect::<Vec<_>>())
    };
    let point = |uri: &[u8]| seq(&[&seq(&[&tlv(0xa0, &tlv(0xa0, &tlv(0x86, uri)))])]);
    vec![
        ("rfc5280.extensions.not_empty", leaf(), Raw { extensions: Some(Vec::new()), ..leaf() }),
        ("rfc5280.extensions.unique", leaf(), twice),
        ("rfc5280.extensions.syntax", leaf(), leaf().set(KU, true, &[4, 0])),
        ("rfc5280.extensions.syntax", leaf(), leaf().set(SAN, false, &[0x30, 0])),
        (
            "rfc5280.extensions.unknown_critical",
            leaf().set("1.3.6.1.4.1.32473.1", false, &[5, 0]),
            leaf().set("1.3.6.1.4.1.32473.1", true, &[5, 0]),
        ),
        ("rfc5280.extensions.never_critical", leaf(), leaf().set(SKI, true, &tlv(4, &[7; 20]))),
        (
            "rfc5280.extensions.rarely_critical",
            leaf().set(CDP, false, &point(b"http://a.example/crl")),
            leaf().set(CDP, true, &point(b"http://a.example/crl")),
        ),
        (
            "rfc5280.extensions.always_critical",
            sub().set(NC, true, &subtree(&[])),
            sub().set(NC, false, &subtree(&[])),
        ),
        ("rfc5280.extensions.mostly_critical", leaf(), leaf().set(KU, false, &[3, 2, 7, 0x80])),
        (
            "rfc5280.extensions.for_cas_only",
            sub().set(NC, true, &subtree(&[])),
            leaf().set(NC, true, &subtree(&[])),
        ),
        ("rfc5280.authority_key_identifier.present", base.root.clone(), leaf().without(AKI)),
        (
            "rfc5280.authority_key_identifier.present",
            base.root.clone(),
            Raw { issuer: leaf().subject, ..leaf() }.without(AKI),
        ),
        ("rfc6818.user_notice.utf8", notice(0x0c, 200), notice(0x1a, 5)),
        ("rfc6818.user_notice.explicit_text", notice(0x0c, 200), notice(0x0c, 201)),
        ("rfc6818.user_notice.explicit_text", notice(0x1a, 200), notice(0x16, 1)),
        (
            "rfc5280.authority_key_identifier.pair",
            leaf(),
            leaf().set(AKI, false, &seq(&[&tlv(0x80, &[1; 20]), &tlv(0x82, &[1])])),
        ),
        ("rfc5280.subject_key_identifier.in_ca", leaf().without(SKI), sub().without(SKI)),
        ("rfc5280.subject_key_identifier.in_end_entity", leaf(), leaf().without(SKI)),
        ("rfc5280.subject_key_identifier.not_empty", leaf(), leaf().set(SKI, false, &[4, 0])),
        ("rfc5280.key_usage.in_ca", leaf().without(KU), sub().without(KU)),
        ("rfc5280.key_usage.not_empty", leaf(), leaf().set(KU, true, &[3, 1, 0])),
        ("rfc5280.key_usage.named_bits", leaf(), leaf().set(KU, true, &[3, 2, 0, 0x80])),
        (
            "rfc5280.key_usage.cert_sign_without_ca",
            sub(),
            leaf().set_extension(&usage(&[KeyUsages::DigitalSignature, KeyUsages::KeyCertSign])),
        ),
        (
            "rfc5280.key_usage.crl_sign_without_ca",
            sub(),
            leaf().set_extension(&usage(&[KeyUsages::DigitalSignature, KeyUsages::CRLSign])),
        ),
        (
            "rfc5280.key_usage.ca_without_cert_sign",
            sub(),
            sub().set_extension(&usage(&[KeyUsages::CRLSign])),
        ),
        (
            "rfc5280.key_usage.only_with_agreement",
            leaf().set_extension(&usage(&[
                KeyUsages::DigitalSignature,
                KeyUsages::KeyAgreement,
                KeyUsages::DecipherOnly,
            ])),
            leaf().set_extension(&usage(&[KeyUsages::DigitalSignature, KeyUsages::DecipherOnly])),
        ),
        ("rfc5280.basic_constraints.critical_in_ca", sub(), sub().set(BC, false, CA_TRUE)),
        (
            "rfc5280.basic_constraints.path_length",
            sub(),
            leaf().set(BC, false, &[0x30, 3, 2, 1, 0]),
        ),
        ("rfc5280.basic_constraints.default", leaf(), leaf().set(BC, false, &[0x30, 3, 1, 1, 0])),
        (
            "rfc5280.name_constraints.subtrees",
            sub().set(NC, true, &subtree(&[])),
            sub().set(NC, true, &[0x30, 0]),
        ),
        (
            "rfc5280.name_constraints.subtrees",
            sub().set(NC, true, &subtree(&[])),
            sub().set(NC, true, &subtree(&[0x80, 1, 1])),
        ),
        (
            "rfc5280.name_constraints.subtrees",
            sub().set(NC, true, &subtree(&[])),
            sub().set(NC, true, &subtree(&[0x80, 1, 0])),
        ),
        (
            "rfc5280.certificate_policies.unique",
            leaf().set(CP, false, &seq(&[&policy])),
            leaf().set(CP, false, &seq(&[&policy, &policy])),
        ),
        (
            "rfc5280.certificate_policies.not_empty",
            leaf().set(CP, false, &seq(&[&policy])),
            leaf().set(CP, false, &seq(&[&seq(&[&oid("1.3.6.1.4.1.32473.1"), &[0x30, 0]])])),
        ),
        (
            "rfc5280.policy_mappings.no_any_policy",
            sub().set(PM, true, &mapping("1.3.6.1.4.1.32473.2")),
            sub().set(PM, true, &mapping("2.5.29.32.0")),
        ),
        (
            "rfc5280.policy_constraints.not_empty",
            sub().set(PC, true, &[0x30, 3, 0x80, 1, 0]),
            sub().set(PC, true, &[0x30, 0]),
        ),
        ("rfc5280.extended_key_usage.not_empty", leaf(), leaf().set(EKU, false, &[0x30, 0])),
        (
            "rfc5280.extended_key_usage.any_not_critical",
            leaf().set(EKU, false, &purposes(&["2.5.29.37.0"])),
            leaf().set(EKU, true, &purposes(&["2.5.29.37.0"])),
        ),
        (
            "rfc5280.extended_key_usage.fits_key_usage",
            leaf(),
            leaf().set_extension(&usage(&[KeyUsages::NonRepudiation])),
        ),
        (
            "rfc5280.crl_distribution_points.not_empty",
            leaf().set(CDP, false, &point(b"http://a.example/crl")),
            leaf().set(CDP, false, &seq(&[&seq(&[&tlv(0x81, &[0, 0x80])])])),
        ),
        (
            "rfc5280.information_access.not_empty",
            leaf().set(AIA, false, &uri_access(b"http://a.example/")),
            leaf().set(AIA, false, &[0x30, 0]),
        ),
        (
            "rfc5280.location.uri",
            leaf().set(CDP, false, &point(b"ldap:///cn=x")),
            leaf().set(CDP, false, &point(b"a.example/crl")),
        ),
        (
            "rfc5280.location.uri",
            leaf().set(AIA, false, &uri_access(b"http://a.example/")),
            leaf().set(AIA, false, &uri_access(b"http:///")),
        ),
    ]
}

fn general_names(base: &Base) -> Vec<Example> {
    let with = |tag: u8, value: &[u8]| base.leaf.clone().set(SAN, false, &names(&[(tag, value)]));
    let good = || with(0x82, b"*.a-1.example");
    let mut list = vec![
        ("rfc5280.subject_alternative_name.not_critical", good(), {
            base.leaf.clone().set(SAN, true, &names(&[(0x82, b"a.example")]))
        }),
        ("rfc5280.general_name.dns_underscore", good(), with(0x82, b"a_b.example")),
        ("rfc5280.general_name.ip", with(0x87, &[127, 0, 0, 1]), with(0x87, &[1; 5])),
        ("rfc5280.general_name.ip", with(0x87, &[0; 16]), with(0x87, &[255; 8])),
        (
            "rfc5280.general_name.other",
            with(0xa4, &dn("2.5.4.3", 0x0c, b"x")),
            with(0xa4, &[0x30, 0]),
        ),
        (
            "rfc5280.general_name.other",
            with(0xa5, &tlv(0xa1, &tlv(0x0c, b"x"))),
            with(0xa5, &tlv(0xa1, &tlv(0x0c, b""))),
        ),
        (
            "rfc5280.general_name.dns",
            good(),
            base.leaf.clone().set(IAN, false, &names(&[(0x82, b"a..example")])),
        ),
    ];
    for wrong in [
        &b"a.*.example"[..],
        b"a*.example",
        b"-a.example",
        b"a.example.",
        b" ",
        b"",
        b"a b",
        b"a/b",
    ] {
        list.push(("rfc5280.general_name.dns", good(), with(0x82, wrong)));
    }
    for wrong in [&b"a"[..], b"@a.example", b"a@", b"A <a@b.example>", b"a..b@c.example", b"a@b@"] {
        let fine = with(0x81, b"first.last+tag@a.example");
        list.push(("rfc5280.general_name.rfc822", fine, with(0x81, wrong)));
    }
    for wrong in
        [&b"/a"[..], b"a.example", b"http:", b"http://", b"1a:b", b"http://a b/", b"urn:%zz"]
    {
        let fine = with(0x86, b"spiffe://trust.example/a/b?c=%20#d");
        list.push(("rfc5280.general_name.uri", fine, with(0x86, wrong)));
    }
    list
}

fn keys(base: &Base) -> Vec<Example> {
    use KeyUsages::{DataEncipherment, DigitalSignature, KeyAgreement, KeyEncipherment};
    let keyed = |spec: &str, usage: &[KeyUsages]| keyed(&base.leaf, spec, usage);
    let long = |spec: &str, usage: &[KeyUsages]| long_key(&base.leaf, spec, usage);
    let sign: &[KeyUsages] = &[DigitalSignature];
    let wrong: &[KeyUsages] = &[DigitalSignature, KeyEncipherment];
    let mut small = keyed("RSA_2048", sign);
    let modulus = tlv(2, &[&[0][..], &[0xc1; 128]].concat());
    let key = tlv(3, &[&[0][..], &seq(&[&modulus, &[2, 1, 3]])].concat());
    small.public_key = seq(&[&seq(&[&oid("1.2.840.113549.1.1.1"), &[5, 0]]), &key]);
    let mut unknown = keyed("RSA_2048", sign);
    unknown.public_key = seq(&[&seq(&[&oid("1.3.101.110")]), &tlv(3, &[0; 33])]);
    let mut list = vec![
        ("pkix.public_key.known", base.leaf.clone(), unknown),
        ("rfc3279.rsa.public_key", keyed("RSA_2048", sign), small),
        (
            "rfc3279.rsa.key_usage",
            keyed("RSA_2048", &[DigitalSignature, KeyEncipherment, DataEncipherment]),
            keyed("RSA_2048", &[KeyAgreement]),
        ),
        (
            "rfc8813.ec.key_usage",
            keyed("ECC_NIST_P256", &[DigitalSignature, KeyAgreement]),
            keyed("ECC_NIST_P256", wrong),
        ),
        (
            "rfc9935.ml_kem.public_key",
            keyed("ML_KEM_768", &[KeyEncipherment]),
            long("ML_KEM_768", &[KeyEncipherment]),
        ),
        (
            "rfc9935.ml_kem.key_usage",
            keyed("ML_KEM_768", &[KeyEncipherment]),
            keyed("ML_KEM_768", wrong),
        ),
    ];
    for (rule, spec) in [
        ("rfc5480.ec.public_key", "ECC_NIST_P256"),
        ("rfc8410.ed25519.public_key", "ECC_NIST_EDWARDS25519"),
        ("rfc9881.ml_dsa.public_key", "ML_DSA_65"),
        ("rfc9909.slh_dsa.public_key", "SLH_DSA_SHA2_128S"),
        ("composite.ml_dsa.public_key", "ML_DSA_65_ECDSA_P256"),
    ] {
        list.push((rule, keyed(spec, sign), long(spec, sign)));
    }
    for (rule, spec) in [
        ("rfc9295.ed25519.key_usage", "ECC_NIST_EDWARDS25519"),
        ("rfc9881.ml_dsa.key_usage", "ML_DSA_65"),
        ("rfc9909.slh_dsa.key_usage", "SLH_DSA_SHA2_128S"),
        ("composite.ml_dsa.key_usage", "ML_DSA_65_ECDSA_P256"),
    ] {
        list.push((rule, keyed(spec, sign), keyed(spec, wrong)));
        list.push((rule, keyed(spec, sign), keyed(spec, &[KeyAgreement])));
    }
    list
}

#[test]
fn every_rule_has_both_kinds_of_examples() {
    let base = base();
    for raw in [&base.leaf, &base.sub, &base.root] {
        assert_eq!(broken(&raw.der()), Vec::<&str>::new());
    }
    let mut examples = fields(&base);
    examples.extend(extensions_examples(&base));
    examples.extend(general_names(&base));
    examples.extend(keys(&base));
    for (rule, good, bad) in &examples {
        let found = broken(&good.der());
        assert!(!found.contains(rule), "{rule}: the good example breaks it");
        let found = broken(&bad.der());
        assert!(found.contains(rule), "{rule}: not in {found:?}");
        let before: Vec<_> =
            lint::to_be_signed(&bad.tbs()).unwrap().iter().map(|found| found.rule.name).collect();
        let outside = "rfc5280.signature.same_inside_and_outside";
        assert!(before.contains(rule) || *rule == outside);
    }
    for rule in RULES {
        assert!(examples.iter().any(|(name, _, _)| *name == rule.name), "{rule:?} has no example");
        assert_eq!(RULES.iter().filter(|other| other.name == rule.name).count(), 1);
        assert_eq!(rule.severity.name(), rule.severity.name().to_lowercase());
    }
    assert!(Severity::Error > Severity::Warning && Severity::Warning > Severity::Notice);
}

/// Passes on what the blank templates leave to the caller.
fn passed(row: &outlast_pki::templates::Template, kind: &Kind) -> Vec<Extension> {
    let usage: &[KeyUsages] = match (row.kind, kind.signs()) {
        (TemplateKind::EndEntity, true) => &[KeyUsages::DigitalSignature],
        (TemplateKind::EndEntity, false) => &[KeyUsages::KeyEncipherment],
        _ => &[KeyUsages::KeyCertSign, KeyUsages::CRLSign],
    };
    vec![
        key_usage(usage).unwrap(),
        subject_alternative_names(&[GeneralName::DnsName("a.example".into())], false).unwrap(),
    ]
}

/// Certificates from the templates break no rule, with two exceptions that follow from AWS's templates.
#[test]
fn every_template_with_every_kind_of_key_is_clean() {
    let issuer = spki("ML_DSA_44");
    let issuer_id = key_identifier(&issuer).unwrap();
    let authority = [
        extensions::crl_distribution_points(&["http://crl.example/ca.crl"]).unwrap(),
        extensions::authority_information_access(&["http://ocsp.example/"], &[]).unwrap(),
    ];
    for spec in KEY_SPECS.iter().filter(|spec| !spec.is_symmetric()) {
        let key = spki(spec.name);
        let kind = Kind::of(&key).unwrap();
        for row in TEMPLATES {
            let passed = passed(row, kind);
            let root = row.kind == TemplateKind::Root;
            let requested = Requested {
                public_key: &key,
                issuer_key_id: if root { None } else { Some(&issuer_id) },
                csr: &passed,
                api: &passed,
                authority: &authority,
            };
            let Ok(extensions) = row.extensions(&requested) else { continue };
            let issuer_name = if root { "Leaf" } else { "Root" };
            let unsigned = Content {
                serial: [7; 16],
                issuer: common_name(issuer_name).unwrap(),
                subject: common_name("Leaf").unwrap(),
                public_key: key.clone(),
                not_before: START,
                not_after: START + YEAR,
                extensions,
            }
            .prepare(&outlast_crypto::signatures::ML_DSA_44, &issuer)
            .unwrap();
            let findings = lint::to_be_signed(&unsigned.to_be_signed).unwrap();
            // TLS clients and servers sign; RFC 9935 keys cannot.
            let tls_kem = !kind.signs() && row.name.starts_with("EndEntity");
            let expected = "rfc5280.extended_key_usage.fits_key_usage";
            for finding in &findings {
                assert!(
                    tls_kem && finding.rule.name == expected,
                    "{} {}: {finding}",
                    row.name,
                    spec.name
                );
            }
            assert!(lint::first_error(&findings).is_none());
        }
    }
}

/// Time for people to read: less than 50 microseconds in a release build.
#[test]
fn linting_again_finds_nothing_again() {
    let der = base().leaf.der();
    let start = std::time::Instant::now();
    for _ in 0..1000 {
        assert!(lint::certificate(&der).unwrap().is_empty());
    }
    println!("{} microseconds", start.elapsed().as_micros() / 1000);
}

#[test]
fn damaged_certificates_never_panic() {
    let der = base().sub.der();
    for index in 0..der.len() {
        for flip in [1, 0x80, 0xff] {
            let mut bad = der.clone();
            bad[index] ^= flip;
            let _ = lint::certificate(&bad);
        }
        let _ = lint::certificate(&der[..index]);
    }
    let _ = (ext(BC, true, CA_TRUE), authority_key_identifier(b""), template("RootCACertificate"));
}
