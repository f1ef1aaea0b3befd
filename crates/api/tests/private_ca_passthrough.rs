//! Private CA: what comes from the call and from the request, possession, name constraints, and bad input.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::type_complexity,
    reason = "a test may fail and print"
)]

use crate::common;

use common::authorities::*;
use common::{Fixture, b64, code, text, with};
use outlast_crypto::keys::KeySpec;
use outlast_crypto::signatures::Message;
use outlast_pki::certificate::{Certificate, Extension};
use outlast_pki::extensions::{self, Policy};
use outlast_pki::general_name::{GeneralName, decode_names};
use outlast_pki::templates::{CA_KEY_USAGE, Kind, TEMPLATES};
use outlast_pki::{ObjectIdentifier, csr, name};
use serde_json::{Value, json};

fn oid(text: &str) -> ObjectIdentifier {
    ObjectIdentifier::new(text).unwrap()
}

fn issued(fixture: &Fixture, authority: &str, body: Value) -> Certificate {
    let made = fixture.pca("IssueCertificate", body).unwrap();
    get(fixture, authority, text(&made["CertificateArn"])).0
}

fn find(certificate: &Certificate, id: &str) -> Option<Extension> {
    certificate.extensions().iter().find(|found| found.extn_id == oid(id)).cloned()
}

#[test]
fn every_template_takes_what_it_says() {
    let fixture = Fixture::new();
    let root = root(&fixture, ML_DSA);
    let sub = subordinate(&fixture, &root, ML_DSA, "SubordinateCACertificate_PathLen3");
    let custom = |id: &str| extensions::custom(oid(id), false, &[0x05, 0x00]).unwrap();
    let names = [GeneralName::DnsName("csr.example".into())];
    let asked = vec![
        custom("1.3.6.1.4.1.99999.1"),
        custom("1.3.6.1.4.1.99999.3"),
        extensions::subject_alternative_names(&names, false).unwrap(),
    ];
    let (_, plain_request) = request_with("ECC_NIST_P256", "subject", asked.clone());
    let sign = extensions::key_usage(CA_KEY_USAGE).unwrap();
    let (_, ca_request) = request_with("ECC_NIST_P256", "subject", [asked, vec![sign]].concat());
    let api = |body: &Value, usage: &str| {
        with(
            body,
            json!({ "ApiPassthrough": {
            "Subject": { "CommonName": "from the call" },
            "Extensions": { "CustomExtensions": [
                { "ObjectIdentifier": "1.3.6.1.4.1.99999.2", "Value": "BQA=", "Critical": false },
                { "ObjectIdentifier": "1.3.6.1.4.1.99999.3", "Value": "AQH/" },
                { "ObjectIdentifier": "2.5.29.15", "Value": usage, "Critical": true },
            ] },
        } }),
        )
    };
    let mut tried = 0;
    for template in TEMPLATES.iter().filter(|row| !row.name.contains("KeyEncapsulation")) {
        if matches!(template.kind, Kind::Root | Kind::Subordinate(3)) {
            continue;
        }
        // A blank CA template has the requested key usage, and makes no CA without keyCertSign.
        let (request, usage) = match template.kind {
            Kind::EndEntity => (&plain_request, "AwIHgA=="),
            _ => (&ca_request, "AwIBBg=="),
        };
        let plain = leaf_body(&sub, request, "ML_DSA_65", template.name);
        let before = fixture.store_without_uses();
        let body = if template.takes_api() {
            api(&plain, usage)
        } else {
            let refused = fixture.pca("IssueCertificate", api(&plain, usage)).unwrap_err();
            assert_eq!(refused.code, "InvalidArgsException", "{}", template.name);
            assert!(refused.message.contains("_APIPassthrough"), "{}", refused.message);
            assert_eq!(fixture.store_without_uses(), before, "{}", template.name);
            plain
        };
        let certificate = issued(&fixture, &sub, body);
        tried += 1;
        let subject = if template.takes_api() { "CN=from the call" } else { "CN=subject" };
        assert_eq!(certificate.subject().to_string(), subject, "{}", template.name);
        let has = |id: &str| find(&certificate, id).is_some();
        assert_eq!(has("1.3.6.1.4.1.99999.1"), template.takes_csr(), "{}", template.name);
        assert_eq!(has("1.3.6.1.4.1.99999.2"), template.takes_api(), "{}", template.name);
        // The call takes precedence over the request.
        let both =
            find(&certificate, "1.3.6.1.4.1.99999.3").map(|e| e.extn_value.as_bytes().to_vec());
        let expected: Option<&[u8]> = match (template.takes_api(), template.takes_csr()) {
            (true, _) => Some(&[1, 1, 0xff]),
            (false, true) => Some(&[5, 0]),
            (false, false) => None,
        };
        assert_eq!(both.as_deref(), expected, "{}", template.name);
        assert!(has("2.5.29.17"), "{}", template.name);
    }
    assert!(tried >= 45, "{tried}");
}

#[test]
fn every_member_of_a_passthrough_is_in_the_certificate() {
    let fixture = Fixture::new();
    let root = root(&fixture, EC);
    let (_, request) = leaf_request("ECC_NIST_P256", "leaf");
    let template = "BlankEndEntityCertificate_APIPassthrough";
    let body = with(
        &leaf_body(&root, &request, EC.1, template),
        json!({ "ApiPassthrough": {
        "Subject": { "CustomAttributes": [
            { "ObjectIdentifier": "2.5.4.3", "Value": "Custom" },
            { "ObjectIdentifier": "1.3.6.1.4.1.37244.1.1", "Value": "FFFFFFFF00000001" },
        ] },
        "Extensions": {
            "CertificatePolicies": [
                { "CertPolicyId": "1.3.6.1.4.1.99999.7", "PolicyQualifiers": [
                    { "PolicyQualifierId": "CPS", "Qualifier": { "CpsUri": "https://example.com/cps" } },
                ] },
                { "CertPolicyId": "2.23.140.1.2.1" },
            ],
            "ExtendedKeyUsage": [
                { "ExtendedKeyUsageType": "SERVER_AUTH" },
                { "ExtendedKeyUsageType": "SMART_CARD_LOGIN" },
                { "ExtendedKeyUsageObjectIdentifier": "1.3.6.1.5.5.7.3.17" },
            ],
            "KeyUsage": { "DigitalSignature": true, "NonRepudiation": true, "KeyAgreement": true },
            "SubjectAlternativeNames": [
                { "OtherName": { "TypeId": "1.3.6.1.4.1.311.20.2.3", "Value": "user@example.com" } },
                { "Rfc822Name": "user@example.com" },
                { "DnsName": "*.example.com" },
                { "DirectoryName": { "CommonName": "Directory", "Country": "DE" } },
                { "EdiPartyName": { "PartyName": "party", "NameAssigner": "assigner" } },
                { "UniformResourceIdentifier": "spiffe://example.com/x" },
                { "IpAddress": "192.0.2.7" },
                { "IpAddress": "2001:db8::1" },
                { "RegisteredId": "1.2.3.4" },
            ],
            "CustomExtensions": [
                { "ObjectIdentifier": "1.3.6.1.5.5.7.1.24", "Value": "MAMCAQU=", "Critical": false },
            ],
        },
    } }),
    );
    let certificate = issued(&fixture, &root, body);
    assert_eq!(certificate.subject().len(), 2);
    let (critical, usage) = certificate.key_usage().unwrap();
    assert!(
        critical && usage.digital_signature() && usage.non_repudiation() && usage.key_agreement()
    );
    assert!(!usage.key_cert_sign());
    let (_, purposes) = certificate.extended_key_usage().unwrap();
    let dotted: Vec<_> = purposes.iter().map(ToString::to_string).collect();
    assert_eq!(dotted, ["1.3.6.1.5.5.7.3.1", "1.3.6.1.4.1.311.20.2.2", "1.3.6.1.5.5.7.3.17"]);
    let san = find(&certificate, "2.5.29.17").unwrap();
    assert!(!san.critical);
    let names: Vec<_> =
        decode_names(san.extn_value.as_bytes()).unwrap().iter().map(ToString::to_string).collect();
    assert_eq!(
        names,
        [
            "otherName:1.3.6.1.4.1.311.20.2.3",
            "email:user@example.com",
            "DNS:*.example.com",
            "DirName:CN=Directory,C=DE",
            "EdiPartyName:party",
            "URI:spiffe://example.com/x",
            "IP Address:192.0.2.7",
            "IP Address:2001:db8::1",
            "Registered ID:1.2.3.4",
        ]
    );
    let policies = find(&certificate, "2.5.29.32").unwrap();
    let expected = extensions::certificate_policies(&[
        Policy { id: oid("1.3.6.1.4.1.99999.7"), cps: vec!["https://example.com/cps".into()] },
        Policy { id: oid("2.23.140.1.2.1"), cps: Vec::new() },
    ]);
    assert_eq!(policies, expected.unwrap());
    assert_eq!(
        find(&certificate, "1.3.6.1.5.5.7.1.24").unwrap().extn_value.as_bytes(),
        [0x30, 3, 2, 1, 5]
    );
    // Without a subject the alternative name must be critical.
    let (_, nameless) = request_with("ECC_NIST_P256", "", Vec::new());
    let names = json!({ "Extensions": { "SubjectAlternativeNames": [{ "DnsName": "a.example" }],
        "KeyUsage": { "DigitalSignature": true } } });
    let body =
        with(&leaf_body(&root, &nameless, EC.1, template), json!({ "ApiPassthrough": names }));
    let certificate = issued(&fixture, &root, body);
    assert!(certificate.subject().is_empty());
    assert!(find(&certificate, "2.5.29.17").unwrap().critical);
}

#[test]
fn invalid_passthrough_changes_nothing() {
    let fixture = Fixture::new();
    let root = root(&fixture, EC);
    let (_, request) = leaf_request("ECC_NIST_P256", "leaf");
    let base = leaf_body(&root, &request, EC.1, "EndEntityCertificate_APIPassthrough");
    let names = |list: Value| json!({ "Extensions": { "SubjectAlternativeNames": list } });
    let custom = |list: Value| json!({ "Extensions": { "CustomExtensions": list } });
    let before = fixture.store_without_uses();
    for (what, expected) in [
        (names(json!([])), "ValidationException"),
        (names(json!([{}])), "InvalidArgsException"),
        (
            names(json!([{ "DnsName": "a.example", "IpAddress": "192.0.2.1" }])),
            "InvalidArgsException",
        ),
        (names(json!([{ "DnsName": "not a name" }])), "InvalidArgsException"),
        (names(json!([{ "DnsName": "a".repeat(254) }])), "ValidationException"),
        (names(json!([{ "IpAddress": "192.0.2.256" }])), "InvalidArgsException"),
        (names(json!([{ "Rfc822Name": "nobody" }])), "InvalidArgsException"),
        (names(json!([{ "UniformResourceIdentifier": "relative" }])), "InvalidArgsException"),
        (names(json!([{ "RegisteredId": "9.9" }])), "ValidationException"),
        (names(json!([{ "DirectoryName": {} }])), "InvalidArgsException"),
        (names(json!([{ "X400Address": "x" }])), "SerializationException"),
        (names(json!(vec![json!({ "DnsName": "a.example" }); 151])), "ValidationException"),
        (
            custom(json!([{ "ObjectIdentifier": "1.2.3", "Value": "not base64" }])),
            "ValidationException",
        ),
        (custom(json!([{ "ObjectIdentifier": "1.2.3", "Value": "//8=" }])), "InvalidArgsException"),
        (custom(json!([{ "ObjectIdentifier": "x", "Value": "BQA=" }])), "ValidationException"),
        (
            custom(json!([{ "ObjectIdentifier": "2.5.29.19", "Value": "MAMBAf8=" }])),
            "InvalidArgsException",
        ),
        (
            custom(json!([
                { "ObjectIdentifier": "1.2.3", "Value": "BQA=" },
                { "ObjectIdentifier": "1.2.3", "Value": "BQA=" },
            ])),
            "InvalidArgsException",
        ),
        (
            json!({ "Extensions": { "KeyUsage": { "DigitalSignature": true }, "CustomExtensions": [
                { "ObjectIdentifier": "2.5.29.15", "Value": "AwIHgA==" },
            ] } }),
            "InvalidArgsException",
        ),
        (json!({ "Extensions": { "KeyUsage": {} } }), "InvalidArgsException"),
        (json!({ "Extensions": { "KeyUsage": { "Nothing": true } } }), "SerializationException"),
        (json!({ "Extensions": { "ExtendedKeyUsage": [{}] } }), "InvalidArgsException"),
        (
            json!({ "Extensions": { "ExtendedKeyUsage": [{ "ExtendedKeyUsageType": "X" }] } }),
            "ValidationException",
        ),
        (json!({ "Subject": {} }), "InvalidArgsException"),
        (json!({ "Subject": { "Country": "Germany" } }), "ValidationException"),
        (json!({ "Nothing": {} }), "SerializationException"),
    ] {
        let body = with(&base, json!({ "ApiPassthrough": what }));
        let refused = fixture.pca("IssueCertificate", body).err().map(|refused| refused.code);
        assert_eq!(refused.as_deref(), Some(expected), "{what}");
    }
    assert_eq!(fixture.store_without_uses(), before);
}

#[test]
fn names_that_a_ca_above_does_not_permit_are_refused() {
    let fixture = Fixture::new();
    let root = root(&fixture, EC);
    // permitted: DNS example.com; excluded: DNS secret.example.com
    let permitted = [&[0x30, 0x0d, 0x82, 0x0b][..], b"example.com"].concat();
    let excluded = [&[0x30, 0x14, 0x82, 0x12][..], b"secret.example.com"].concat();
    let mut content = vec![0xa0, u8::try_from(permitted.len()).unwrap()];
    content.extend(&permitted);
    content.extend([0xa1, u8::try_from(excluded.len()).unwrap()]);
    content.extend(&excluded);
    let mut value = vec![0x30, u8::try_from(content.len()).unwrap()];
    value.extend(content);
    let sub = create(&fixture, "SUBORDINATE", "Sub", EC);
    let request = ca_request(&fixture, &sub);
    let template = "SubordinateCACertificate_PathLen1_APIPassthrough";
    let body = with(
        &leaf_body(&root, request.as_bytes(), EC.1, template),
        json!({
            "ApiPassthrough": { "Extensions": { "CustomExtensions": [
                { "ObjectIdentifier": "2.5.29.30", "Value": b64(&value), "Critical": true },
            ] } }, "Validity": years(9),
        }),
    );
    let made = fixture.pca("IssueCertificate", body).unwrap();
    let (certificate, chain) = get(&fixture, &root, text(&made["CertificateArn"]));
    let chain = outlast_pki::pem::chain(chain.iter().map(Certificate::der));
    let certificate = outlast_pki::pem::certificate(certificate.der());
    import(&fixture, &sub, certificate.as_bytes(), Some(chain.as_bytes())).unwrap();
    // And one more CA below, which has no constraints itself.
    let below = subordinate(&fixture, &sub, EC, "SubordinateCACertificate_PathLen0");
    for authority in [&sub, &below] {
        for (dns, fine) in [
            ("www.example.com", true),
            ("example.org", false),
            ("x.secret.example.com", false),
            ("notexample.com", false),
        ] {
            let names = [GeneralName::DnsName(dns.into())];
            let names = extensions::subject_alternative_names(&names, false).unwrap();
            let (_, request) = request_with("ECC_NIST_P256", "leaf", vec![names]);
            let before = fixture.store_without_uses();
            let body = leaf_body(authority, &request, EC.1, "EndEntityCertificate");
            let outcome = fixture.pca("IssueCertificate", body);
            assert_eq!(outcome.is_ok(), fine, "{dns} {outcome:?}");
            if !fine {
                let refused = outcome.unwrap_err();
                assert_eq!(refused.code, "InvalidArgsException");
                assert!(refused.message.contains("name constraints"), "{}", refused.message);
                assert_eq!(fixture.store_without_uses(), before);
            }
        }
    }
}

#[test]
fn a_key_that_cannot_sign_is_asked_for_by_one_that_can() {
    let fixture = Fixture::new();
    let root = root(&fixture, ML_DSA);
    let other = root_named(&fixture, "Other root");
    let (key, request) = leaf_request("ML_DSA_65", "device");
    let body = leaf_body(&root, &request, "ML_DSA_65", "EndEntityCertificate");
    let made = fixture.pca("IssueCertificate", body).unwrap();
    let arn = text(&made["CertificateArn"]).to_owned();
    let (signer, _) = get(&fixture, &root, &arn);
    let spec = KeySpec::by_name("ML_KEM_768").unwrap();
    let kem = spec.load(&spec.generate().unwrap()).unwrap();
    let request = |subject: &str, signer: &Certificate| {
        let possession = csr::Possession::by(signer, false);
        let subject = name::common_name(subject).unwrap();
        let public = kem.public_key().unwrap();
        let unsigned =
            csr::Unsigned::with_statement(subject, public, Vec::new(), Some(&possession)).unwrap();
        let algorithm = KeySpec::by_name("ML_DSA_65").unwrap().signing[0];
        let signature = key.sign(algorithm, Message::Raw(&unsigned.to_be_signed)).unwrap();
        unsigned.assemble(algorithm, &signature).unwrap()
    };
    let ask = |authority: &str, request: &[u8]| {
        let template =
            TEMPLATES.iter().find(|row| row.name == "KeyEncapsulationCertificate").unwrap().name;
        fixture.pca("IssueCertificate", leaf_body(authority, request, "ML_DSA_65", template))
    };
    let good = request("device", &signer);
    // A voucher for the key holds for these names and no others (RFC 9883, section 4).
    let named = |passthrough: Value| {
        let template = TEMPLATES
            .iter()
            .find(|row| row.name.starts_with("KeyEncapsulationCertificate") && row.takes_api());
        let body = leaf_body(&root, &good, "ML_DSA_65", template.unwrap().name);
        fixture.pca("IssueCertificate", with(&body, json!({ "ApiPassthrough": passthrough })))
    };
    for passthrough in [
        json!({ "Subject": { "CommonName": "somebody else" } }),
        json!({ "Extensions": { "SubjectAlternativeNames": [{ "DnsName": "else.example" }] } }),
    ] {
        assert_eq!(code(named(passthrough.clone())), "InvalidArgsException", "{passthrough}");
    }
    let made = ask(&root, &good).unwrap();
    let (certificate, _) = get(&fixture, &root, text(&made["CertificateArn"]));
    assert_eq!(certificate.public_key().unwrap(), kem.public_key().unwrap());
    let (_, usage) = certificate.key_usage().unwrap();
    assert!(usage.key_encipherment() && !usage.digital_signature(), "RFC 9935, section 5");
    let before = fixture.store_without_uses();
    assert_eq!(code(ask(&root, &request("somebody else", &signer))), "MalformedCSRException");
    assert_eq!(code(ask(&other, &good)), "MalformedCSRException");
    let mut forged = good.clone();
    *forged.last_mut().unwrap() ^= 1;
    assert_eq!(code(ask(&root, &forged)), "MalformedCSRException");
    assert_eq!(fixture.store_without_uses(), before);
    fixture.advance(31 * 86_400);
    assert_eq!(code(ask(&root, &good)), "MalformedCSRException", "the signer has expired");
    fixture.advance(-31 * 86_400);
    fixture
        .pca(
            "RevokeCertificate",
            json!({
                "CertificateAuthorityArn": root, "RevocationReason": "KEY_COMPROMISE",
                "CertificateSerial": arn.rsplit('/').next().unwrap(),
            }),
        )
        .unwrap();
    let refused = ask(&root, &good).unwrap_err();
    assert_eq!(refused.code, "MalformedCSRException");
    assert!(refused.message.contains("revoked"), "{}", refused.message);
}

#[test]
fn what_would_break_a_rule_is_refused_with_the_rules_name() {
    let fixture = Fixture::new();
    let root = root(&fixture, EC);
    let (_, request) = leaf_request("ECC_NIST_P256", "leaf");
    let (_, quantum) = leaf_request("ML_DSA_65", "leaf");
    let blank_ca = "BlankSubordinateCACertificate_PathLen0_APIPassthrough";
    let blank = "BlankEndEntityCertificate_APIPassthrough";
    let usage = |name: &str| json!({ "Extensions": { "KeyUsage": { (name): true } } });
    let before = fixture.store_without_uses();
    for (template, request, given, code, rule) in [
        (blank_ca, &request, json!({}), "MalformedCSRException", "rfc5280.key_usage.in_ca"),
        (blank, &request, usage("KeyCertSign"), "InvalidArgsException", "rfc5280."),
        (blank, &quantum, usage("KeyEncipherment"), "InvalidArgsException", "rfc9881."),
        (blank, &request, usage("KeyEncipherment"), "InvalidArgsException", "rfc8813."),
    ] {
        let body =
            with(&leaf_body(&root, request, EC.1, template), json!({ "ApiPassthrough": given }));
        let refused = fixture.pca("IssueCertificate", body).unwrap_err();
        assert_eq!(refused.code, code, "{}", refused.message);
        let expected = format!("the certificate would violate {rule}");
        assert!(refused.message.starts_with(&expected), "{}", refused.message);
    }
    assert_eq!(fixture.store_without_uses(), before);
    // Beside other usages, the bit that the key cannot serve is dropped, as AWS does: cert-manager requests both.
    let both = json!({ "Extensions": { "KeyUsage": { "DigitalSignature": true, "KeyEncipherment": true } } });
    for request in [&request, &quantum] {
        let body = with(&leaf_body(&root, request, EC.1, blank), json!({ "ApiPassthrough": both }));
        let made = fixture.pca("IssueCertificate", body).unwrap();
        let (leaf, _) = get(&fixture, &root, text(&made["CertificateArn"]));
        let (_, usage) = leaf.key_usage().unwrap();
        assert!(usage.digital_signature() && !usage.key_encipherment());
    }
}

fn root_named(fixture: &Fixture, name: &str) -> String {
    let arn = create(fixture, "ROOT", name, ML_DSA);
    let request = ca_request(fixture, &arn);
    let what = Issue {
        authority: &arn,
        request: request.as_bytes(),
        algorithm: ML_DSA.1,
        template: "RootCACertificate",
        validity: years(10),
    };
    let (certificate, _) = get(fixture, &arn, &issue(fixture, &what).unwrap());
    import(fixture, &arn, certificate.der(), None).unwrap();
    arn
}

#[test]
fn requests_that_are_wrong_are_refused_and_change_nothing() {
    let fixture = Fixture::new();
    let root = root(&fixture, EC);
    let (_, good) = leaf_request("ECC_NIST_P256", "leaf");
    let mut forged = good.clone();
    *forged.last_mut().unwrap() ^= 1;
    let dns = |count: usize| {
        let names: Vec<_> = (0..count)
            .map(|number| GeneralName::DnsName(format!("host-{number}.{}.example", "x".repeat(60))))
            .collect();
        extensions::subject_alternative_names(&names, false).unwrap()
    };
    let (_, many) = request_with("ECC_NIST_P256", "leaf", vec![dns(900)]);
    assert!(many.len() > 65_536);
    let twice = extensions::custom(oid("1.2.3.4"), false, &[5, 0]).unwrap();
    let (_, twice) = request_with("ECC_NIST_P256", "leaf", vec![twice.clone(), twice]);
    let (_, names_twice) = request_with("ECC_NIST_P256", "leaf", vec![dns(1), dns(2)]);
    let (_, nameless) = request_with("ECC_NIST_P256", "", Vec::new());
    let policy = Policy { id: oid("1.2.3"), cps: Vec::new() };
    let policies = extensions::certificate_policies(&[policy]).unwrap();
    let (_, policies) = request_with("ECC_NIST_P256", "leaf", vec![policies]);
    let before = fixture.store_without_uses();
    for (what, request, expected) in [
        ("a forged signature", forged, "MalformedCSRException"),
        ("no request", b"nothing".to_vec(), "MalformedCSRException"),
        ("nothing", Vec::new(), "ValidationException"),
        ("a part", good[..80].to_vec(), "MalformedCSRException"),
        ("something behind", [good.clone(), vec![0]].concat(), "MalformedCSRException"),
        ("a certificate", get_root(&fixture, &root), "MalformedCSRException"),
        ("many names", many, "ValidationException"),
        ("a megabyte", vec![b'x'; 1 << 20], "ValidationException"),
        ("an extension twice", twice, "MalformedCSRException"),
        ("names twice", names_twice, "MalformedCSRException"),
        ("no name", nameless, "MalformedCSRException"),
    ] {
        let body = leaf_body(&root, &request, EC.1, "EndEntityCertificate");
        let refused = fixture.pca("IssueCertificate", body).err().map(|refused| refused.code);
        assert_eq!(refused.as_deref(), Some(expected), "{what}");
    }
    assert_eq!(fixture.store_without_uses(), before);
    // What a base template does not pass is no fault.
    let body = leaf_body(&root, &policies, EC.1, "EndEntityCertificate");
    assert!(find(&issued(&fixture, &root, body), "2.5.29.32").is_none());
}

fn get_root(fixture: &Fixture, root: &str) -> Vec<u8> {
    let found = fixture
        .pca("GetCertificateAuthorityCertificate", json!({ "CertificateAuthorityArn": root }))
        .unwrap();
    text(&found["Certificate"]).as_bytes().to_vec()
}

#[test]
fn ca_csr_contains_requested_extensions() {
    let fixture = Fixture::new();
    let extensions = json!({
        "KeyUsage": { "KeyCertSign": true, "CRLSign": true },
        "SubjectInformationAccess": [
            { "AccessMethod": { "AccessMethodType": "CA_REPOSITORY" },
              "AccessLocation": { "UniformResourceIdentifier": "https://repository.example/" } },
            { "AccessMethod": { "CustomObjectIdentifier": "1.2.3.4" },
              "AccessLocation": { "DnsName": "x.example" } },
        ],
    });
    let body = |extensions: Value| {
        json!({ "CertificateAuthorityType": "SUBORDINATE", "CertificateAuthorityConfiguration": {
            "KeyAlgorithm": EC.0, "SigningAlgorithm": EC.1, "Subject": { "CommonName": "x" },
            "CsrExtensions": extensions,
        } })
    };
    let made = fixture.pca("CreateCertificateAuthority", body(extensions.clone())).unwrap();
    let arn = text(&made["CertificateAuthorityArn"]);
    let request = ca_request(&fixture, arn);
    let request = csr::CertificateRequest::parse_and_verify(request.as_bytes()).unwrap();
    let ids: Vec<_> = request.extensions.iter().map(|e| e.extn_id.to_string()).collect();
    assert_eq!(ids, ["2.5.29.19", "2.5.29.15", "1.3.6.1.5.5.7.1.11"]);
    assert_eq!(request.extensions[1].extn_value.as_bytes(), [3, 2, 1, 6]);
    let shown = &describe(&fixture, arn)["CertificateAuthorityConfiguration"]["CsrExtensions"];
    assert_eq!(shown["SubjectInformationAccess"], extensions["SubjectInformationAccess"]);
    assert_eq!(shown["KeyUsage"]["KeyCertSign"], true);
    let before = fixture.store_without_uses();
    for wrong in [
        json!({ "KeyUsage": {} }),
        json!({ "SubjectInformationAccess": [
            { "AccessMethod": {}, "AccessLocation": { "DnsName": "x.example" } },
        ] }),
        json!({ "SubjectInformationAccess": [
            { "AccessMethod": { "AccessMethodType": "CA_REPOSITORY" }, "AccessLocation": {} },
        ] }),
    ] {
        let refused = code(fixture.pca("CreateCertificateAuthority", body(wrong.clone())));
        assert_eq!(refused, "InvalidArgsException", "{wrong}");
    }
    assert_eq!(fixture.store_without_uses(), before);
}
