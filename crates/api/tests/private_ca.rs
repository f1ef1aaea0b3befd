//! Private CA: hierarchies, templates, states, and what is refused.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::type_complexity,
    reason = "a test may fail and print"
)]

mod common;

use common::{Fixture, NOW};
use outlast_api::ops::acm_pca::{
    create_certificate_authority, delete_certificate_authority, describe_certificate_authority,
    get_certificate, get_certificate_authority_certificate, get_certificate_authority_csr,
    import_certificate_authority_certificate, issue_certificate, list_certificate_authorities,
    list_tags, tag_certificate_authority, update_certificate_authority,
};
use outlast_crypto::keys::{KEY_SPECS, Key, KeySpec};
use outlast_crypto::signatures::{Message, SignatureAlgorithm};
use outlast_pki::certificate::Certificate;
use outlast_pki::templates::{Kind, Passthrough, TEMPLATES, Template};
use outlast_pki::{csr, name, pem};
use serde_json::{Value, json};

fn input<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

fn b64(bytes: &[u8]) -> String {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

fn create(fixture: &Fixture, kind: &str, name: &str, algorithms: (&str, &str)) -> String {
    let new = json!({
        "CertificateAuthorityConfiguration": {
            "KeyAlgorithm": algorithms.0, "SigningAlgorithm": algorithms.1,
            "Subject": { "CommonName": name, "Country": "DE", "Organization": "Outlast" },
        },
        "CertificateAuthorityType": kind,
    });
    fixture
        .call::<create_certificate_authority::CreateCertificateAuthority>(&input(new))
        .unwrap()
        .certificate_authority_arn
}

fn ca_request(fixture: &Fixture, arn: &str) -> String {
    let get = json!({ "CertificateAuthorityArn": arn });
    fixture
        .call::<get_certificate_authority_csr::GetCertificateAuthorityCsr>(&input(get))
        .unwrap()
        .csr
}

/// What to issue; the rest is the same everywhere.
struct Issue<'a> {
    authority: &'a str,
    request: &'a [u8],
    algorithm: &'a str,
    template: &'a str,
    validity: Value,
}

fn issue(fixture: &Fixture, what: &Issue<'_>) -> Result<String, String> {
    let request = json!({
        "CertificateAuthorityArn": what.authority,
        "Csr": b64(what.request),
        "SigningAlgorithm": what.algorithm,
        "TemplateArn": format!("arn:aws:acm-pca:::template/{}/V1", what.template),
        "Validity": what.validity,
    });
    fixture
        .call::<issue_certificate::IssueCertificate>(&input(request))
        .map(|made| made.certificate_arn)
        .map_err(|error| error.code)
}

fn get(fixture: &Fixture, authority: &str, arn: &str) -> (Certificate, Vec<Certificate>) {
    let get = json!({ "CertificateAuthorityArn": authority, "CertificateArn": arn });
    let found = fixture.call::<get_certificate::GetCertificate>(&input(get)).unwrap();
    let parse = |text: &str| {
        let list = pem::read_certificates(text.as_bytes()).unwrap();
        list.iter().map(|der| Certificate::parse(der).unwrap()).collect::<Vec<_>>()
    };
    let chain = found.certificate_chain.as_deref().map(parse).unwrap_or_default();
    (parse(&found.certificate).remove(0), chain)
}

fn import(
    fixture: &Fixture,
    arn: &str,
    certificate: &[u8],
    chain: Option<&[u8]>,
) -> Result<(), String> {
    let request = json!({
        "CertificateAuthorityArn": arn, "Certificate": b64(certificate),
        "CertificateChain": chain.map(b64),
    });
    fixture
        .call::<import_certificate_authority_certificate::ImportCertificateAuthorityCertificate>(
            &input(request),
        )
        .map(|_| ())
        .map_err(|error| error.code)
}

fn years(value: i64) -> Value {
    json!({ "Value": value, "Type": "YEARS" })
}

fn root(fixture: &Fixture, algorithms: (&str, &str)) -> String {
    let arn = create(fixture, "ROOT", "Root", algorithms);
    let request = ca_request(fixture, &arn);
    let what = Issue {
        authority: &arn,
        request: request.as_bytes(),
        algorithm: algorithms.1,
        template: "RootCACertificate",
        validity: years(10),
    };
    let certificate = issue(fixture, &what).unwrap();
    let (certificate, chain) = get(fixture, &arn, &certificate);
    assert!(chain.is_empty());
    import(fixture, &arn, pem::certificate(certificate.der()).as_bytes(), None).unwrap();
    arn
}

fn subordinate(fixture: &Fixture, root: &str, algorithms: (&str, &str), template: &str) -> String {
    let arn = create(fixture, "SUBORDINATE", "Sub", algorithms);
    let request = ca_request(fixture, &arn);
    let signing = describe(fixture, root)["CertificateAuthorityConfiguration"]["SigningAlgorithm"]
        .as_str()
        .unwrap()
        .to_owned();
    let what = Issue {
        authority: root,
        request: request.as_bytes(),
        algorithm: &signing,
        template,
        validity: years(5),
    };
    let certificate = issue(fixture, &what).unwrap();
    let (certificate, chain) = get(fixture, root, &certificate);
    let chain = pem::chain(chain.iter().map(Certificate::der));
    let certificate = pem::certificate(certificate.der());
    import(fixture, &arn, certificate.as_bytes(), Some(chain.as_bytes())).unwrap();
    arn
}

fn describe(fixture: &Fixture, arn: &str) -> Value {
    let get = json!({ "CertificateAuthorityArn": arn });
    let found = fixture
        .call::<describe_certificate_authority::DescribeCertificateAuthority>(&input(get))
        .unwrap();
    serde_json::to_value(found.certificate_authority).unwrap()
}

/// A key of somebody outside, and a request made with it.
fn leaf_request(spec: &str, subject: &str) -> (Box<dyn Key>, Vec<u8>) {
    let spec = KeySpec::by_name(spec).unwrap();
    let key = spec.load(&spec.generate().unwrap()).unwrap();
    let algorithm: &'static SignatureAlgorithm =
        spec.signing.iter().find(|row| row.oid.is_some()).unwrap();
    let subject = name::common_name(subject).unwrap();
    let unsigned = csr::Unsigned::new(subject, key.public_key().unwrap(), Vec::new()).unwrap();
    let signature = key.sign(algorithm, Message::Raw(&unsigned.to_be_signed)).unwrap();
    let request = unsigned.assemble(algorithm, &signature).unwrap();
    (key, request)
}

const ML_DSA: (&str, &str) = ("ML_DSA_65", "ML_DSA_65");

#[test]
fn every_key_algorithm_makes_a_hierarchy() {
    let fixture = Fixture::new();
    for spec in KEY_SPECS.iter().filter(|spec| spec.pca_name.is_some()) {
        let signing = spec.signing.iter().find_map(|row| row.pca_name).unwrap();
        let algorithms = (spec.pca_name.unwrap(), signing);
        let root = root(&fixture, algorithms);
        let sub = subordinate(&fixture, &root, algorithms, "SubordinateCACertificate_PathLen0");
        let (_, request) = leaf_request("ML_DSA_44", "leaf.example");
        let what = Issue {
            authority: &sub,
            request: &request,
            algorithm: signing,
            template: "CodeSigningCertificate",
            validity: years(1),
        };
        let arn = issue(&fixture, &what).unwrap();
        let (leaf, chain) = get(&fixture, &sub, &arn);
        assert!(arn.ends_with(&hex::encode(leaf.serial())));
        assert_eq!(chain.len(), 2);
        assert!(leaf.signed_by(&chain[0]) && chain[0].signed_by(&chain[1]), "{}", spec.name);
        assert!(chain[1].signed_by(&chain[1]));
        assert_eq!(leaf.not_before(), NOW - 3600);
        assert_eq!(leaf.not_after(), NOW + 365 * 86_400);
        let der = chain.iter().map(|found| found.der().to_vec()).collect::<Vec<_>>();
        outlast_pki::path::verify_code_signing(&leaf, &der[..1], &der[1..], NOW).unwrap();
    }
}

#[test]
fn every_template_gives_its_extensions() {
    let fixture = Fixture::new();
    let root = root(&fixture, ML_DSA);
    let sub = subordinate(&fixture, &root, ML_DSA, "SubordinateCACertificate_PathLen3");
    let root_id = describe(&fixture, &root);
    assert_eq!(root_id["Status"], "ACTIVE");
    let base = |row: &&Template| row.aws && row.passthrough == Passthrough::None;
    for template in TEMPLATES.iter().filter(base) {
        for spec in ["ML_DSA_65", "ECC_NIST_P256", "RSA_2048"] {
            let (_, request) = leaf_request(spec, "subject");
            let what = Issue {
                authority: &sub,
                request: &request,
                algorithm: "ML_DSA_65",
                template: template.name,
                validity: years(1),
            };
            let outcome = issue(&fixture, &what);
            let allowed = match template.kind {
                Kind::Root => false,
                Kind::Subordinate(len) => len < 3,
                Kind::EndEntity => true,
            };
            assert_eq!(outcome.is_ok(), allowed, "{} {outcome:?}", template.name);
            let Ok(arn) = outcome else { continue };
            let (found, chain) = get(&fixture, &sub, &arn);
            let constraints = found.basic_constraints().unwrap();
            assert_eq!(constraints.ca, template.kind != Kind::EndEntity);
            let (critical, usage) = found.key_usage().unwrap();
            assert!(critical && usage.digital_signature());
            let tls = template.name.starts_with("EndEntity");
            // RFC 9881, section 5, and RFC 8813: only RSA keys encipher.
            assert_eq!(
                usage.key_encipherment(),
                tls && spec == "RSA_2048",
                "{} {spec}",
                template.name
            );
            assert_eq!(usage.key_cert_sign(), constraints.ca);
            let purpose = found.extended_key_usage();
            assert_eq!(purpose.is_some(), !constraints.ca);
            if let Some((critical, _)) = purpose {
                assert_eq!(critical, template.name.ends_with("SigningCertificate"));
            }
            assert_eq!(found.subject_key_identifier().unwrap().len(), 20);
            assert!(found.signed_by(&chain[0]));
        }
    }
}

#[test]
fn subjects_keep_every_field() {
    let fixture = Fixture::new();
    let fields = json!({
        "Country": "DE", "Organization": "Müller & Söhne", "OrganizationalUnit": "PKI",
        "DistinguishedNameQualifier": "q", "State": "Bayern", "CommonName": "Root",
        "SerialNumber": "12", "Locality": "Ulm", "Title": "T", "Surname": "S", "GivenName": "G",
        "Initials": "I", "Pseudonym": "P", "GenerationQualifier": "II",
    });
    let configuration = |subject: Value| {
        json!({
            "CertificateAuthorityConfiguration": {
                "KeyAlgorithm": "EC_prime256v1", "SigningAlgorithm": "SHA256WITHECDSA",
                "Subject": subject,
            },
            "CertificateAuthorityType": "ROOT",
        })
    };
    type Create = create_certificate_authority::CreateCertificateAuthority;
    let made = fixture.call::<Create>(&input(configuration(fields.clone()))).unwrap();
    let described = describe(&fixture, &made.certificate_authority_arn);
    assert_eq!(described["CertificateAuthorityConfiguration"]["Subject"], fields);
    let request = ca_request(&fixture, &made.certificate_authority_arn);
    let parsed = csr::CertificateRequest::parse_and_verify(request.as_bytes()).unwrap();
    assert_eq!(parsed.subject.len(), 14);
    let custom = json!({ "CustomAttributes": [
        { "ObjectIdentifier": "2.5.4.3", "Value": "Custom" },
        { "ObjectIdentifier": "1.3.6.1.4.1.99999.1", "Value": "x" },
    ] });
    let made = fixture.call::<Create>(&input(configuration(custom.clone()))).unwrap();
    let described = describe(&fixture, &made.certificate_authority_arn);
    assert_eq!(described["CertificateAuthorityConfiguration"]["Subject"], custom);
    for (subject, code) in [
        (json!({}), "InvalidArgsException"),
        (json!({ "Country": "Germany" }), "InvalidArgsException"),
        (json!({ "CommonName": "x".repeat(65) }), "InvalidArgsException"),
        (json!({ "SerialNumber": "é" }), "InvalidArgsException"),
        (
            json!({ "CommonName": "x", "CustomAttributes": [
                { "ObjectIdentifier": "2.5.4.3", "Value": "y" },
            ] }),
            "InvalidArgsException",
        ),
    ] {
        assert_eq!(fixture.error::<Create>(&input(configuration(subject))), code);
    }
    let body = configuration(json!({ "Nothing": "x" })).to_string();
    let target = "ACMPrivateCA.CreateCertificateAuthority";
    let response = fixture.send(&fixture.raw("acm-pca", target, body.as_bytes()));
    assert_eq!(common::error_code(&response), "SerializationException");
}

#[test]
fn what_does_not_fit_is_refused_and_changes_nothing() {
    let fixture = Fixture::new();
    let root = root(&fixture, ML_DSA);
    let sub = subordinate(&fixture, &root, ML_DSA, "SubordinateCACertificate_PathLen0");
    let (_, request) = leaf_request("ECC_NIST_P256", "leaf");
    let base = || Issue {
        authority: &sub,
        request: &request,
        algorithm: "ML_DSA_65",
        template: "EndEntityCertificate",
        validity: years(1),
    };
    let mut forged = request.clone();
    *forged.last_mut().unwrap() ^= 1;
    let own_request = ca_request(&fixture, &root);
    let sub_request = ca_request(&fixture, &sub);
    let own = own_request.as_bytes();
    for (what, code) in [
        (Issue { request: &forged, ..base() }, "MalformedCSRException"),
        (Issue { request: b"nonsense", ..base() }, "MalformedCSRException"),
        (Issue { request: &request[..100], ..base() }, "MalformedCSRException"),
        (Issue { algorithm: "SHA256WITHRSA", ..base() }, "InvalidArgsException"),
        (Issue { algorithm: "ML_DSA_87", ..base() }, "InvalidArgsException"),
        (Issue { algorithm: "NOTHING", ..base() }, "ValidationException"),
        (Issue { template: "Nothing", ..base() }, "InvalidArgsException"),
        (Issue { template: "RootCACertificate", ..base() }, "InvalidArgsException"),
        (Issue { template: "SubordinateCACertificate_PathLen0", ..base() }, "InvalidArgsException"),
        (
            Issue { authority: &root, template: "RootCACertificate", ..base() },
            "InvalidArgsException",
        ),
        (
            Issue {
                authority: &root,
                request: own,
                template: "SubordinateCACertificate_PathLen0",
                ..base()
            },
            "InvalidArgsException",
        ),
        (Issue { validity: years(6), ..base() }, "ValidationException"),
        (Issue { validity: years(9000), ..base() }, "ValidationException"),
        (
            Issue { validity: json!({ "Value": 0, "Type": "DAYS" }), ..base() },
            "ValidationException",
        ),
        (
            Issue { validity: json!({ "Value": NOW - 5, "Type": "ABSOLUTE" }), ..base() },
            "ValidationException",
        ),
        (
            Issue { validity: json!({ "Value": 1, "Type": "WEEKS" }), ..base() },
            "ValidationException",
        ),
        (
            Issue { authority: "arn:aws:acm-pca:eu-west-1:123456789012:x", ..base() },
            "InvalidArnException",
        ),
        (
            Issue {
                authority: "arn:aws:acm-pca:eu-west-1:123456789012:certificate-authority/11111111-2222-3333-4444-555555555555",
                ..base()
            },
            "ResourceNotFoundException",
        ),
    ] {
        assert_eq!(
            issue(&fixture, &what).err().as_deref(),
            Some(code),
            "{} {}",
            what.template,
            what.algorithm
        );
    }
    assert!(issue(&fixture, &base()).is_ok());

    let leaf = issue(&fixture, &base()).unwrap();
    let (leaf, _) = get(&fixture, &sub, &leaf);
    let fresh = create(&fixture, "SUBORDINATE", "Fresh", ML_DSA);
    let fresh_root = create(&fixture, "ROOT", "Fresh root", ML_DSA);
    let what = Issue { authority: &fresh, ..base() };
    assert_eq!(issue(&fixture, &what).err().unwrap(), "InvalidStateException");
    type GetCertificate = get_certificate_authority_certificate::GetCertificateAuthorityCertificate;
    let get_it = json!({ "CertificateAuthorityArn": fresh });
    assert_eq!(fixture.error::<GetCertificate>(&input(get_it)), "InvalidStateException");
    let of = |arn: &str| {
        let found = fixture
            .call::<GetCertificate>(&input(json!({ "CertificateAuthorityArn": arn })))
            .unwrap();
        (found.certificate, found.certificate_chain)
    };
    let (root_pem, _) = of(&root);
    let (sub_pem, sub_chain) = of(&sub);
    let sub_chain = sub_chain.unwrap();
    let leaf_pem = pem::certificate(leaf.der());
    for (arn, certificate, chain, code) in [
        (&fresh, "nonsense", Some(root_pem.as_str()), "MalformedCertificateException"),
        (&fresh, sub_pem.as_str(), Some(sub_chain.as_str()), "CertificateMismatchException"),
        (&fresh, leaf_pem.as_str(), Some(root_pem.as_str()), "CertificateMismatchException"),
        (&sub, sub_pem.as_str(), None, "InvalidRequestException"),
        (&sub, sub_pem.as_str(), Some(sub_pem.as_str()), "MalformedCertificateException"),
        (&root, root_pem.as_str(), Some(root_pem.as_str()), "InvalidRequestException"),
        (&fresh_root, root_pem.as_str(), None, "CertificateMismatchException"),
    ] {
        let outcome = import(&fixture, arn, certificate.as_bytes(), chain.map(str::as_bytes));
        assert_eq!(outcome.err().as_deref(), Some(code), "{arn}");
    }
    assert_eq!(describe(&fixture, &fresh)["Status"], "PENDING_CERTIFICATE");
    // The root signs the subordinate's request once more: a renewal.
    let renewal = Issue {
        authority: &root,
        request: sub_request.as_bytes(),
        template: "SubordinateCACertificate_PathLen0",
        validity: years(6),
        ..base()
    };
    let (renewed, chain) = get(&fixture, &root, &issue(&fixture, &renewal).unwrap());
    let chain = pem::chain(chain.iter().map(Certificate::der));
    import(&fixture, &sub, pem::certificate(renewed.der()).as_bytes(), Some(chain.as_bytes()))
        .unwrap();
    assert!(issue(&fixture, &Issue { validity: years(5), ..base() }).is_ok());
}

#[test]
fn idempotency_tokens_work() {
    let fixture = Fixture::new();
    type Create = create_certificate_authority::CreateCertificateAuthority;
    let new = |name: &str, token: &str| {
        input(json!({
            "CertificateAuthorityConfiguration": {
                "KeyAlgorithm": "EC_prime256v1", "SigningAlgorithm": "SHA256WITHECDSA",
                "Subject": { "CommonName": name },
            },
            "CertificateAuthorityType": "ROOT", "IdempotencyToken": token,
        }))
    };
    let first = fixture.call::<Create>(&new("A", "one")).unwrap().certificate_authority_arn;
    assert_eq!(fixture.call::<Create>(&new("A", "one")).unwrap().certificate_authority_arn, first);
    assert_eq!(fixture.error::<Create>(&new("B", "one")), "InvalidArgsException");
    assert_ne!(fixture.call::<Create>(&new("A", "two")).unwrap().certificate_authority_arn, first);
    assert_eq!(fixture.error::<Create>(&new("A", &"x".repeat(37))), "ValidationException");
    fixture.now.set(NOW + 301);
    assert_ne!(fixture.call::<Create>(&new("A", "one")).unwrap().certificate_authority_arn, first);
    fixture.now.set(NOW);
    let root = root(&fixture, ML_DSA);
    let (_, request) = leaf_request("ML_DSA_44", "leaf");
    let issue = |days: i64| {
        let request = json!({
            "CertificateAuthorityArn": root, "Csr": b64(&request), "SigningAlgorithm": "ML_DSA_65",
            "Validity": { "Value": days, "Type": "DAYS" }, "IdempotencyToken": "t",
        });
        fixture.call::<issue_certificate::IssueCertificate>(&input(request))
    };
    let first = issue(1).unwrap().certificate_arn;
    assert_eq!(issue(1).unwrap().certificate_arn, first);
    assert_eq!(issue(2).err().unwrap().code, "InvalidArgsException");
}

#[test]
fn states_follow_the_documented_life() {
    let fixture = Fixture::new();
    let root = root(&fixture, ML_DSA);
    let update = |status: &str| {
        let request = json!({ "CertificateAuthorityArn": root, "Status": status });
        type Update = update_certificate_authority::UpdateCertificateAuthority;
        fixture.call::<Update>(&input(request)).map(|_| ()).map_err(|error| error.code)
    };
    let delete = |days: i64| {
        let request =
            json!({ "CertificateAuthorityArn": root, "PermanentDeletionTimeInDays": days });
        type Delete = delete_certificate_authority::DeleteCertificateAuthority;
        fixture.call::<Delete>(&input(request)).map(|_| ()).map_err(|error| error.code)
    };
    assert_eq!(update("DELETED").err().unwrap(), "InvalidArgsException");
    assert_eq!(delete(7).err().unwrap(), "InvalidStateException", "an active CA");
    update("DISABLED").unwrap();
    assert_eq!(describe(&fixture, &root)["Status"], "DISABLED");
    let (_, request) = leaf_request("ML_DSA_44", "leaf");
    let what = Issue {
        authority: &root,
        request: &request,
        algorithm: "ML_DSA_65",
        template: "EndEntityCertificate",
        validity: years(1),
    };
    assert_eq!(issue(&fixture, &what).err().unwrap(), "InvalidStateException");
    update("ACTIVE").unwrap();
    assert!(issue(&fixture, &what).is_ok());
    fixture.now.set(NOW + 11 * 366 * 86_400);
    assert_eq!(describe(&fixture, &root)["Status"], "EXPIRED");
    assert_eq!(issue(&fixture, &what).err().unwrap(), "InvalidStateException");
    fixture.now.set(NOW);
    update("DISABLED").unwrap();
    assert_eq!(delete(6).err().unwrap(), "ValidationException");
    delete(7).unwrap();
    assert_eq!(delete(7).err().unwrap(), "InvalidStateException");
    assert_eq!(describe(&fixture, &root)["Status"], "DELETED");
    fixture.now.set(NOW + 8 * 86_400);
    let get = json!({ "CertificateAuthorityArn": root });
    type Describe = describe_certificate_authority::DescribeCertificateAuthority;
    assert_eq!(fixture.error::<Describe>(&input(get)), "ResourceNotFoundException");
    fixture.service.keep_house((NOW + 8 * 86_400) * 1000).unwrap();
    use outlast_store::Store;
    assert!(fixture.store.scan("ca/material/", "", 10).unwrap().is_empty(), "the key stayed");
}

#[test]
fn short_lived_authorities_issue_for_a_week_at_most() {
    let fixture = Fixture::new();
    let new = json!({
        "CertificateAuthorityConfiguration": {
            "KeyAlgorithm": "ML_DSA_44", "SigningAlgorithm": "ML_DSA_44",
            "Subject": { "CommonName": "Short" },
        },
        "CertificateAuthorityType": "ROOT", "UsageMode": "SHORT_LIVED_CERTIFICATE",
    });
    type Create = create_certificate_authority::CreateCertificateAuthority;
    let arn = fixture.call::<Create>(&input(new)).unwrap().certificate_authority_arn;
    let request = ca_request(&fixture, &arn);
    let what = Issue {
        authority: &arn,
        request: request.as_bytes(),
        algorithm: "ML_DSA_44",
        template: "RootCACertificate",
        validity: years(10),
    };
    let (certificate, _) = get(&fixture, &arn, &issue(&fixture, &what).unwrap());
    import(&fixture, &arn, certificate.der(), None).unwrap();
    let (_, request) = leaf_request("ML_DSA_44", "leaf");
    let leaf = |days: i64| Issue {
        authority: &arn,
        request: &request,
        algorithm: "ML_DSA_44",
        template: "EndEntityCertificate",
        validity: json!({ "Value": days, "Type": "DAYS" }),
    };
    assert!(issue(&fixture, &leaf(7)).is_ok());
    assert_eq!(issue(&fixture, &leaf(8)).err().unwrap(), "ValidationException");
}

#[test]
fn lists_and_tags_come_in_pages() {
    let fixture = Fixture::new();
    let mut arns: Vec<_> = (0..5)
        .map(|n| create(&fixture, "ROOT", &format!("R{n}"), ("EC_prime256v1", "SHA256WITHECDSA")))
        .collect();
    let mut seen = Vec::new();
    let mut token: Option<String> = None;
    type List = list_certificate_authorities::ListCertificateAuthorities;
    loop {
        let page =
            fixture.call::<List>(&input(json!({ "MaxResults": 2, "NextToken": token }))).unwrap();
        seen.extend(page.certificate_authorities.into_iter().map(|found| found.arn));
        token = page.next_token;
        if token.is_none() {
            break;
        }
    }
    arns.sort();
    assert_eq!(seen, arns);
    let wrong = input(json!({ "NextToken": "?" }));
    assert_eq!(fixture.error::<List>(&wrong), "InvalidNextTokenException");
    let tags = json!([{ "Key": "b", "Value": "1" }, { "Key": "a" }, { "Key": "c", "Value": "3" }]);
    let tag = json!({ "CertificateAuthorityArn": arns[0], "Tags": tags });
    fixture.call::<tag_certificate_authority::TagCertificateAuthority>(&input(tag)).unwrap();
    let list = |request: Value| fixture.call::<list_tags::ListTags>(&input(request)).unwrap();
    let page = list(json!({ "CertificateAuthorityArn": arns[0], "MaxResults": 2 }));
    assert_eq!(page.tags.iter().map(|tag| tag.key.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    let rest = list(json!({ "CertificateAuthorityArn": arns[0], "NextToken": page.next_token }));
    assert_eq!((rest.tags.len(), rest.next_token), (1, None));
    let wrong = json!({ "CertificateAuthorityArn": arns[0], "Tags": [{ "Key": "aws:x" }] });
    let code = fixture.error::<tag_certificate_authority::TagCertificateAuthority>(&input(wrong));
    assert_eq!(code, "InvalidTagException");
}

#[test]
fn what_is_not_served_is_refused_by_name() {
    let fixture = Fixture::new();
    let new = |extra: Value| {
        let mut new = json!({
            "CertificateAuthorityConfiguration": {
                "KeyAlgorithm": "ML_DSA_65", "SigningAlgorithm": "ML_DSA_65",
                "Subject": { "CommonName": "x" },
            },
            "CertificateAuthorityType": "ROOT",
        });
        new.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        input(new)
    };
    type Create = create_certificate_authority::CreateCertificateAuthority;
    for off in [
        json!({ "RevocationConfiguration": {} }),
        json!({ "RevocationConfiguration": { "CrlConfiguration": { "Enabled": false } } }),
        json!({ "RevocationConfiguration": { "OcspConfiguration": { "Enabled": false } } }),
    ] {
        fixture.call::<Create>(&new(off)).unwrap();
    }
    for on in [
        json!({ "RevocationConfiguration": { "CrlConfiguration": { "Enabled": true } } }),
        json!({ "RevocationConfiguration": { "OcspConfiguration": { "Enabled": true } } }),
    ] {
        assert_eq!(fixture.error::<Create>(&new(on)), "InvalidArgsException");
    }
    let algorithms = json!({ "CertificateAuthorityConfiguration": {
        "KeyAlgorithm": "ML_DSA_65", "SigningAlgorithm": "SHA256WITHRSA",
        "Subject": { "CommonName": "x" },
    } });
    assert_eq!(fixture.error::<Create>(&new(algorithms)), "InvalidArgsException");
}
