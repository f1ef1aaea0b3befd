//! Importing certificates: every type and encoding of keys, chains, replacements, and what is refused.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::type_complexity,
    reason = "a test may fail and print"
)]

use crate::certificates;
use crate::common;

use certificates::*;
use common::{Answer, Fixture, NOW, Refused, b64, text, with};
use outlast_crypto::keys::{Form, Key, KeySpec};
use outlast_crypto::signatures::{Message, SignatureAlgorithm};
use outlast_crypto::{Secret, encrypted};
use outlast_pki::certificate::{Certificate, Content, Extension};
use outlast_pki::extensions::{self, KeyUsages, SERVER_AUTH, subject_alternative_names};
use outlast_pki::general_name::GeneralName;
use outlast_pki::object::{Kind, Object};
use outlast_pki::{name, pem};
use outlast_store::Store;
use serde_json::{Value, json};

const DAY: i64 = 86_400;

/// A key with a certificate.
struct Holder {
    spec: &'static KeySpec,
    stored: Secret,
    key: Box<dyn Key>,
    certificate: Certificate,
}

/// A certificate that a test asks for.
struct Wanted<'a> {
    spec: &'a str,
    name: &'a str,
    ca: bool,
    from: i64,
    to: i64,
    names: &'a [&'a str],
    usages: &'a [KeyUsages],
    purposes: bool,
}

const LEAF: Wanted<'_> = Wanted {
    spec: "ECC_NIST_P256",
    name: "leaf.example.com",
    ca: false,
    from: NOW - 60,
    to: NOW + 90 * DAY,
    names: &["leaf.example.com", "www.example.com"],
    usages: &[KeyUsages::DigitalSignature],
    purposes: true,
};
const CA: Wanted<'_> = Wanted {
    name: "CA",
    ca: true,
    to: NOW + 3650 * DAY,
    names: &[],
    usages: &[KeyUsages::KeyCertSign],
    purposes: false,
    ..LEAF
};

fn signing(spec: &KeySpec) -> &'static SignatureAlgorithm {
    spec.signing.iter().find(|algorithm| algorithm.oid.is_some()).unwrap()
}

impl Holder {
    fn new(wanted: &Wanted<'_>, issuer: Option<&Holder>) -> Self {
        let spec = KeySpec::by_name(wanted.spec).unwrap();
        let stored = spec.generate().unwrap();
        Self::with_key(spec, stored, wanted, issuer)
    }

    fn with_key(
        spec: &'static KeySpec,
        stored: Secret,
        wanted: &Wanted<'_>,
        issuer: Option<&Holder>,
    ) -> Self {
        let key = spec.load(&stored).unwrap();
        let subject = name::common_name(wanted.name).unwrap();
        let mut extensions: Vec<Extension> =
            vec![extensions::basic_constraints(wanted.ca, None, wanted.ca).unwrap()];
        if !wanted.usages.is_empty() {
            extensions.push(extensions::key_usage(wanted.usages).unwrap());
        }
        if wanted.purposes {
            extensions.push(extensions::extended_key_usage(&[SERVER_AUTH], false).unwrap());
        }
        if !wanted.names.is_empty() {
            let names: Vec<_> =
                wanted.names.iter().map(|n| GeneralName::DnsName((*n).to_owned())).collect();
            extensions.push(subject_alternative_names(&names, false).unwrap());
        }
        let (signer, signer_spec) =
            issuer.map_or((&key, spec), |issuer| (&issuer.key, issuer.spec));
        let unsigned = Content {
            serial: outlast_crypto::random::bytes().unwrap(),
            issuer: issuer
                .map_or_else(|| subject.clone(), |issuer| issuer.certificate.subject().clone()),
            subject,
            public_key: key.public_key().unwrap().to_vec(),
            not_before: wanted.from,
            not_after: wanted.to,
            extensions,
        }
        .prepare(signing(signer_spec), signer.public_key().unwrap())
        .unwrap();
        let signature =
            signer.sign(signing(signer_spec), Message::Raw(&unsigned.to_be_signed)).unwrap();
        let certificate = Certificate::parse(&unsigned.assemble(&signature).unwrap()).unwrap();
        Self { spec, stored, key, certificate }
    }

    fn pem(&self) -> String {
        pem::certificate(self.certificate.der())
    }

    fn pkcs8(&self) -> String {
        pem_of(Kind::PrivateKey, self.spec.to_pkcs8(&self.stored).unwrap())
    }
}

fn pem_of(kind: Kind, der: Secret) -> String {
    let text = Object { kind, der }.to_pem().unwrap();
    String::from_utf8(text.expose().to_vec()).unwrap()
}

fn body(certificate: &str, key: &str, chain: Option<&str>) -> Value {
    let mut body =
        json!({ "Certificate": b64(certificate.as_bytes()), "PrivateKey": b64(key.as_bytes()) });
    if let Some(chain) = chain {
        body["CertificateChain"] = json!(b64(chain.as_bytes()));
    }
    body
}

fn import(fixture: &Fixture, body: &Value) -> Answer {
    acm(fixture, "ImportCertificate", body)
}

#[track_caller]
fn imported(fixture: &Fixture, body: &Value) -> String {
    text(&import(fixture, body).unwrap()["CertificateArn"]).to_owned()
}

#[track_caller]
fn refused(fixture: &Fixture, body: &Value, error: &str, part: &str) {
    let before = fixture.store_without_uses();
    let Refused { code, message, .. } = import(fixture, body).unwrap_err();
    assert_eq!(code, error, "{message}");
    assert!(message.contains(part), "{message}");
    assert!(fixture.store_without_uses() == before);
}

#[test]
fn every_key_type_is_imported_with_its_chain() {
    let fixture = Fixture::new();
    for (algorithm, spec) in [
        ("RSA_2048", "RSA_2048"),
        ("RSA_3072", "RSA_3072"),
        ("RSA_4096", "RSA_4096"),
        ("EC_prime256v1", "ECC_NIST_P256"),
        ("EC_secp384r1", "ECC_NIST_P384"),
        ("EC_secp521r1", "ECC_NIST_P521"),
        ("ML_DSA_44", "ML_DSA_44"),
        ("ML_DSA_65", "ML_DSA_65"),
        ("ML_DSA_87", "ML_DSA_87"),
    ] {
        // RSA keys take long to generate, so their CAs have other keys.
        let ca_spec = if algorithm.starts_with("RSA") { "ECC_NIST_P256" } else { spec };
        let root = Holder::new(&Wanted { spec: ca_spec, name: "Root", ..CA }, None);
        let middle = Holder::new(&Wanted { spec: ca_spec, ..CA }, Some(&root));
        let leaf = Holder::new(&Wanted { spec, ..LEAF }, Some(&middle));
        for chain in [middle.pem(), middle.pem() + &root.pem()] {
            let arn = imported(&fixture, &body(&leaf.pem(), &leaf.pkcs8(), Some(&chain)));
            let found = described(&fixture, &arn);
            for (member, expected) in [
                ("Type", json!("IMPORTED")),
                ("Status", json!("ISSUED")),
                ("KeyAlgorithm", json!(algorithm.replace("RSA_", "RSA-"))),
                ("DomainName", json!("leaf.example.com")),
                ("SubjectAlternativeNames", json!(["leaf.example.com", "www.example.com"])),
                ("ImportedAt", json!(NOW)),
                ("CertificateKeyPairOrigin", json!("CUSTOMER_PROVIDED")),
                ("RenewalEligibility", json!("INELIGIBLE")),
                ("Issuer", json!("CA")),
            ] {
                assert_eq!(found[member], expected, "{algorithm} {member}");
            }
            assert!(
                found.get("IssuedAt").is_none() && found.get("CertificateAuthorityArn").is_none()
            );
            let answer = acm(&fixture, "GetCertificate", &of(&arn)).unwrap();
            assert_eq!(
                (text(&answer["Certificate"]), text(&answer["CertificateChain"])),
                (leaf.pem().trim_end(), chain.trim_end())
            );
        }
        // A self-signed certificate needs no chain.
        let own = Holder::new(&Wanted { spec, ..LEAF }, None);
        let arn = imported(&fixture, &body(&own.pem(), &own.pkcs8(), None));
        let answer = acm(&fixture, "GetCertificate", &of(&arn)).unwrap();
        assert!(answer.get("CertificateChain").is_none());
    }
    let report =
        outlast_domain::check::check(fixture.store.as_ref(), fixture.service.root(), &mut |_| {})
            .unwrap();
    assert_eq!(report.problems, []);
}

#[test]
fn keys_come_in_any_encoding_that_is_not_encrypted() {
    let fixture = Fixture::new();
    for (spec, kinds) in [
        ("RSA_2048", &[Kind::PrivateKey, Kind::RsaPrivateKey][..]),
        ("ECC_NIST_P256", &[Kind::PrivateKey]),
    ] {
        let own = Holder::new(&Wanted { spec, ..LEAF }, None);
        let pkcs8 = own.spec.to_pkcs8(&own.stored).unwrap();
        for kind in kinds {
            let der = match kind {
                // The contents of PKCS #8's OCTET STRING, which comes last.
                Kind::RsaPrivateKey => Secret::new(pkcs8.expose()[26..].to_vec()),
                _ => Secret::new(pkcs8.expose().to_vec()),
            };
            imported(&fixture, &body(&own.pem(), &pem_of(*kind, der), None));
        }
    }
    let own = Holder::new(&Wanted { spec: "ML_DSA_65", ..LEAF }, None);
    for form in [Form::Seed, Form::Expanded, Form::Both] {
        let key = pem_of(Kind::PrivateKey, own.spec.to_form(&own.stored, form).unwrap());
        imported(&fixture, &body(&own.pem(), &key, None));
    }
    let report =
        outlast_domain::check::check(fixture.store.as_ref(), fixture.service.root(), &mut |_| {})
            .unwrap();
    assert_eq!(report.problems, []);
}

#[test]
fn what_does_not_belong_together_is_refused() {
    let fixture = Fixture::new();
    let root = Holder::new(&Wanted { name: "Root", ..CA }, None);
    let middle = Holder::new(&CA, Some(&root));
    let leaf = Holder::new(&LEAF, Some(&middle));
    let other = Holder::new(&LEAF, None);
    let (certificate, key) = (leaf.pem(), leaf.pkcs8());
    let chain = middle.pem() + &root.pem();
    let passphrase = Secret::new(PASSPHRASE.to_vec());
    let pkcs8 = leaf.spec.to_pkcs8(&leaf.stored).unwrap();
    let locked = encrypted::encrypt_pbkdf2(&pkcs8, &passphrase).unwrap();
    let locked = pem_of(Kind::EncryptedPrivateKey, Secret::new(locked));
    let of_kind = |spec: &str| Holder::new(&Wanted { spec, ..LEAF }, None);
    let (p256k1, ed25519) = (of_kind("ECC_SECG_P256K1"), of_kind("ECC_NIST_EDWARDS25519"));
    let early = Holder::new(&Wanted { from: NOW + 10, ..LEAF }, None);
    let late = Holder::new(&Wanted { to: NOW - 10, ..LEAF }, None);
    let no_ca = Holder::new(&Wanted { name: "no CA", ..LEAF }, Some(&root));
    let below = Holder::new(&LEAF, Some(&no_ca));
    let old = Holder::new(&Wanted { to: NOW - 1, ..CA }, None);
    let below_old = Holder::new(&LEAF, Some(&old));
    let many: String = (0..17).map(|_| root.pem()).collect();
    let index = |index: usize| format!("the invalid certificate is: {index}");
    for (body, part) in [
        (body(&certificate, &other.pkcs8(), Some(&chain)), "does not match"),
        (body(&certificate, &key, None), "is not a valid self signed"),
        (body(&certificate, &key, Some(&root.pem())), &*index(0)),
        (body(&certificate, &key, Some(&(root.pem() + &middle.pem()))), &index(0)),
        (body(&certificate, &key, Some(&(middle.pem() + &other.pem()))), &index(1)),
        (body(&certificate, &key, Some(&(certificate.clone() + &chain))), &index(0)),
        (body(&below.pem(), &below.pkcs8(), Some(&(no_ca.pem() + &root.pem()))), &index(0)),
        (body(&below_old.pem(), &below_old.pkcs8(), Some(&old.pem())), &index(0)),
        (body(&certificate, &key, Some("nothing")), "PEM"),
        (body(&(certificate.clone() + &chain), &key, None), "more than one certificate"),
        (body("nothing", &key, None), "PEM"),
        (body(&certificate.replace("MII", "MIJ"), &key, Some(&chain)), "cannot be read"),
        (body(&certificate, "nothing", Some(&chain)), "PEM"),
        (body(&certificate, &key.replace("MIGH", "MIGX"), Some(&chain)), "private key"),
        (body(&certificate, &certificate, Some(&chain)), "does not contain a private key"),
        (body(&certificate, &(key.clone() + &key), Some(&chain)), "one private key"),
        (body(&certificate, &locked, Some(&chain)), "must not be encrypted"),
        (body(&p256k1.pem(), &p256k1.pkcs8(), None), "not supported"),
        (body(&ed25519.pem(), &ed25519.pkcs8(), None), "not supported"),
        (body(&early.pem(), &early.pkcs8(), None), "not valid now"),
        (body(&late.pem(), &late.pkcs8(), None), "not valid now"),
        (body("", &key, None), "length"),
        (body(&"x".repeat(32_769), &key, None), "length"),
        (body(&certificate, &"x".repeat(8193), None), "length"),
        (body(&certificate, "", None), "length"),
        (with(&body(&certificate, &key, None), json!({ "CertificateChain": "" })), "length"),
    ] {
        refused(&fixture, &body, "ValidationException", part);
    }
    refused(&fixture, &body(&certificate, &key, Some(&many)), "LimitExceededException", "16");
    let good = body(&certificate, &key, Some(&chain));
    let tagged = with(&good, json!({ "Tags": [{ "Key": "aws:x" }] }));
    refused(&fixture, &tagged, "InvalidTagException", "aws:");
    // No part of a key is in an answer or in the audit trail.
    let trail = format!("{:?}", fixture.events());
    assert!(!trail.contains("MIGH"));
    imported(&fixture, &with(&good, json!({ "Tags": [{ "Key": "a" }] })));
}

#[test]
fn another_is_imported_in_its_place() {
    let fixture = Fixture::new();
    let first = Holder::new(&LEAF, None);
    let arn = imported(
        &fixture,
        &with(&body(&first.pem(), &first.pkcs8(), None), json!({ "Tags": [{ "Key": "a" }] })),
    );
    let in_place = |holder: &Holder| with(&body(&holder.pem(), &holder.pkcs8(), None), of(&arn));
    fixture.advance(100);
    let second = Holder::new(&Wanted { names: &["other.example.com"], ..LEAF }, None);
    assert_eq!(imported(&fixture, &in_place(&second)), arn);
    let found = described(&fixture, &arn);
    assert_eq!((&found["CreatedAt"], &found["ImportedAt"]), (&json!(NOW), &json!(NOW + 100)));
    assert_eq!(found["SubjectAlternativeNames"], json!(["other.example.com"]));
    assert_eq!(got(&fixture, &arn).0.der(), second.certificate.der());
    let tags = acm(&fixture, "ListTagsForCertificate", &of(&arn)).unwrap();
    assert_eq!(tags["Tags"], json!([{ "Key": "a", "Value": "" }]));
    assert_eq!(fixture.store.scan("acm/material/", "", 10).unwrap().len(), 1);
    // An expired certificate is replaced, too.
    fixture.advance(100 * DAY);
    assert_eq!(described(&fixture, &arn)["Status"], "EXPIRED");
    let later = Wanted { to: NOW + 300 * DAY, ..LEAF };
    let third = Holder::new(&later, None);
    imported(&fixture, &in_place(&third));
    assert_eq!(described(&fixture, &arn)["Status"], "ISSUED");
    for (wanted, part) in [
        (Wanted { spec: "ECC_NIST_P384", ..later }, "type and size"),
        (Wanted { names: &[], ..later }, "domain names"),
        (Wanted { usages: &[], ..later }, "key usage"),
        (Wanted { purposes: false, ..later }, "extended key usage"),
    ] {
        refused(&fixture, &in_place(&Holder::new(&wanted, None)), "ValidationException", part);
    }
    let tagged = with(&in_place(&third), json!({ "Tags": [{ "Key": "b" }] }));
    refused(&fixture, &tagged, "InvalidParameterException", "tags");
    let authority = root_ca(&fixture, ECDSA, 3650, json!({}));
    let managed = requested(&fixture, &authority, "a.example.com", json!({}));
    let over = with(&body(&third.pem(), &third.pkcs8(), None), of(&managed));
    refused(&fixture, &over, "ValidationException", "imported");
    for (operation, more) in [
        ("ExportCertificate", json!({ "Passphrase": b64(PASSPHRASE) })),
        ("RenewCertificate", json!({})),
        ("RevokeCertificate", json!({ "RevocationReason": "UNSPECIFIED" })),
    ] {
        let refusal = acm(&fixture, operation, &with(&more, of(&arn))).unwrap_err();
        assert_eq!(refusal.code, "ValidationException", "{operation}");
    }
    acm(&fixture, "DeleteCertificate", &of(&arn)).unwrap();
    assert_eq!(fixture.store.scan("acm/material/", "", 10).unwrap().len(), 1);
}
