//! Certificates and requests of every algorithm, and every kind of name, verified by OpenSSL.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use crate::common;

use common::peers::{openssl, peer};
use common::succeed;
use outlast_crypto::keys::{KEY_SPECS, Key, KeySpec};
use outlast_crypto::random;
use outlast_crypto::signatures::{Family, Message, SignatureAlgorithm};
use outlast_pki::certificate::{Content, key_identifier};
use outlast_pki::csr;
use outlast_pki::extensions::{self, Extension, Policy, subject_alternative_names};
use outlast_pki::general_name::{GeneralName, ip_address};
use outlast_pki::name::{Name, common_name};
use outlast_pki::pem;
use outlast_pki::templates::{Requested, Template};

struct Party {
    key: Box<dyn Key>,
    name: Name,
}

fn party(spec: &KeySpec, name: &str) -> Party {
    let key = spec.load(&spec.generate().unwrap()).unwrap();
    Party { key, name: common_name(name).unwrap() }
}

/// PEM of a certificate for `subject` by `issuer`.
fn issue(
    subject: &Party,
    issuer: &Party,
    algorithm: &SignatureAlgorithm,
    template: &str,
    csr: &[Extension],
) -> String {
    let root = std::ptr::eq(subject, issuer);
    let issuer_key = issuer.key.public_key().unwrap();
    let id = key_identifier(issuer_key).unwrap();
    let public_key = subject.key.public_key().unwrap();
    let arn = format!("arn:aws:acm-pca:::template/{template}/V1");
    let extensions = Template::by_arn(&arn)
        .unwrap()
        .extensions(&Requested {
            public_key,
            issuer_key_id: (!root).then_some(&id),
            csr,
            ..Requested::default()
        })
        .unwrap();
    let now = outlast_net::server::system_clock() / 1000;
    let unsigned = Content {
        serial: random::bytes().unwrap(),
        issuer: issuer.name.clone(),
        subject: subject.name.clone(),
        public_key: public_key.to_vec(),
        not_before: now - 3600,
        not_after: now + 86_400,
        extensions,
    }
    .prepare(algorithm, issuer_key)
    .unwrap();
    let signature = issuer.key.sign(algorithm, Message::Raw(&unsigned.to_be_signed)).unwrap();
    pem::certificate(&unsigned.assemble(&signature).unwrap())
}

#[test]
fn openssl_verifies_chains_and_requests_of_every_algorithm() {
    let Some(peer) = peer("openssl") else { return };
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let mut count = 0;
    for spec in KEY_SPECS {
        for algorithm in spec.signing.iter().filter(|row| row.oid.is_some()) {
            // Only BouncyCastle has composite signatures.
            if algorithm.family == Family::Composite {
                continue;
            }
            // Large RSA keys take long to generate: one algorithm is enough.
            let large = spec.name.starts_with("RSA") && spec.name != "RSA_2048";
            if large && *algorithm != spec.signing[0] {
                continue;
            }
            let (root, sub, leaf) =
                (party(spec, "Root"), party(spec, "Sub"), party(spec, "leaf.example"));
            let root_pem = issue(&root, &root, algorithm, "RootCACertificate", &[]);
            let name = "SubordinateCACertificate_PathLen0";
            let sub_pem = issue(&sub, &root, algorithm, name, &[]);
            let leaf_pem = issue(&leaf, &sub, algorithm, "EndEntityCertificate", &[]);
            let root_file = write("root.pem", &root_pem);
            let sub_file = write("sub.pem", &sub_pem);
            let leaf_file = write("leaf.pem", &leaf_pem);
            let said = succeed(&mut openssl(
                &peer,
                &[
                    "verify",
                    "-x509_strict",
                    "-purpose",
                    "sslserver",
                    "-CAfile",
                    &root_file,
                    "-untrusted",
                    &sub_file,
                    &leaf_file,
                ],
            ));
            assert!(said.contains("OK"), "{} {algorithm:?}: {said}", spec.name);
            let unsigned =
                csr::Unsigned::new(leaf.name.clone(), leaf.key.public_key().unwrap(), Vec::new())
                    .unwrap();
            let signature = leaf.key.sign(algorithm, Message::Raw(&unsigned.to_be_signed)).unwrap();
            let request =
                pem::certificate_request(&unsigned.assemble(algorithm, &signature).unwrap());
            let request_file = write("leaf.csr", &request);
            succeed(&mut openssl(&peer, &["req", "-verify", "-noout", "-in", &request_file]));
            count += 1;
        }
    }
    assert!(count >= 15, "{count}");
}

#[test]
fn openssl_reads_every_kind_of_name_and_extension() {
    let Some(peer) = peer("openssl") else { return };
    let folder = tempfile::tempdir().unwrap();
    let spec = KeySpec::by_name("ECC_NIST_P256").unwrap();
    let algorithm = spec.signing[0];
    let (root, leaf) = (party(spec, "Root"), party(spec, "Leaf"));
    let oid = |text: &str| text.parse().unwrap();
    let names = [
        GeneralName::other_name(oid("1.3.6.1.4.1.311.20.2.3"), "user@example.com").unwrap(),
        GeneralName::Rfc822Name("a@example.com".into()),
        GeneralName::DnsName("*.example.com".into()),
        GeneralName::DirectoryName(common_name("Somebody").unwrap()),
        GeneralName::EdiPartyName {
            party_name: "party".into(),
            name_assigner: Some("assigner".into()),
        },
        GeneralName::UniformResourceIdentifier("spiffe://example.com/a".into()),
        ip_address("192.0.2.1").unwrap(),
        ip_address("2001:db8::1").unwrap(),
        GeneralName::RegisteredId(oid("1.3.6.1.4.1.32473.1")),
    ];
    let policy =
        Policy { id: oid("1.3.6.1.4.1.32473.2"), cps: vec!["http://example.com/cps".into()] };
    let requested = [
        subject_alternative_names(&names, false).unwrap(),
        extensions::certificate_policies(&[policy]).unwrap(),
        extensions::subject_information_access(&[(
            extensions::access_method_by_name("CA_REPOSITORY").unwrap(),
            GeneralName::UniformResourceIdentifier("http://example.com/repository".into()),
        )])
        .unwrap(),
        extensions::authority_information_access(
            &["http://ocsp.example.com/"],
            &["http://example.com/ca.cer"],
        )
        .unwrap(),
        extensions::crl_distribution_points(&["http://example.com/a.crl", "http://example.org/b"])
            .unwrap(),
        extensions::ocsp_no_check().unwrap(),
        extensions::key_usage(&extensions::KEY_USAGES.iter().map(|row| row.1).collect::<Vec<_>>())
            .unwrap(),
        extensions::extended_key_usage(
            &extensions::PURPOSES.iter().map(|row| row.oid).collect::<Vec<_>>(),
            false,
        )
        .unwrap(),
    ];
    let pem =
        issue(&leaf, &root, algorithm, "BlankEndEntityCertificate_CSRPassthrough", &requested);
    let file = folder.path().join("leaf.pem");
    std::fs::write(&file, pem).unwrap();
    let file = file.display().to_string();
    let text = succeed(&mut openssl(&peer, &["x509", "-in", &file, "-noout", "-text"]));
    for expected in [
        "othername: UPN:user@example.com",
        "email:a@example.com",
        "DNS:*.example.com",
        "DirName:/CN=Somebody",
        "EdiPartyName:<unsupported>",
        "URI:spiffe://example.com/a",
        "IP Address:192.0.2.1",
        "IP Address:2001:DB8:0:0:0:0:0:1",
        "Registered ID:1.3.6.1.4.1.32473.1",
        "Policy: 1.3.6.1.4.1.32473.2",
        "CPS: http://example.com/cps",
        "CA Repository - URI:http://example.com/repository",
        "OCSP - URI:http://ocsp.example.com/",
        "CA Issuers - URI:http://example.com/ca.cer",
        "URI:http://example.com/a.crl",
        "URI:http://example.org/b",
        "OCSP No Check",
        // All nine were requested; an EC key enciphers no keys.
        "Digital Signature, Non Repudiation, Data Encipherment, Key Agreement, \
         Certificate Sign, CRL Sign, Encipher Only, Decipher Only",
        "TLS Web Server Authentication, TLS Web Client Authentication, Code Signing, \
         E-mail Protection, Time Stamping, OCSP Signing",
        "Smartcard Login",
        "ipsec Internet Key Exchange",
    ] {
        assert!(text.contains(expected), "{expected} is missing in\n{text}");
    }
    // RFC 5280, section 4.2.1.6: nameAssigner [0] and partyName [1], each around a UTF8String.
    let names = requested[0].extn_value.as_bytes();
    let at = names.windows(5).position(|part| part == b"party").unwrap();
    let party = &names[at - 4..at + 5];
    assert_eq!(party, [&[0xa1, 7, 0x0c, 5], &b"party"[..]].concat());
}
