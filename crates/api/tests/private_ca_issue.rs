//! Private CA: what is issued, from each template, and what is refused.
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
use common::{Fixture, NOW, code, text, with};
use outlast_api::ops::acm_pca::{
    create_certificate_authority, get_certificate_authority_certificate,
};
use outlast_pki::certificate::Certificate;
use outlast_pki::pem;
use outlast_pki::templates::{Kind, Passthrough, TEMPLATES, Template};
use serde_json::json;

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
fn nothing_is_issued_in_the_name_of_the_authority_itself() {
    let fixture = Fixture::new();
    let root = root(&fixture, EC);
    let namesake = create(&fixture, "SUBORDINATE", "Root", EC);
    let before = fixture.store_without_uses();
    let refused =
        |body| assert_eq!(code(fixture.pca("IssueCertificate", body)), "InvalidArgsException");
    for template in ["EndEntityCertificate", "SubordinateCACertificate_PathLen0"] {
        let request = ca_request(&fixture, &namesake);
        refused(leaf_body(&root, request.as_bytes(), EC.1, template));
        // The name as written, and as it is compared (RFC 5280, section 7.1).
        for name in ["Root", " ROOT"] {
            let subject = json!({ "CommonName": name, "Country": "DE", "Organization": "Outlast" });
            let template = format!("{template}_APIPassthrough");
            let (_, request) = leaf_request("ECC_NIST_P256", "leaf");
            let body = leaf_body(&root, &request, EC.1, &template);
            refused(with(&body, json!({ "ApiPassthrough": { "Subject": subject } })));
        }
    }
    assert_eq!(fixture.store_without_uses(), before);
    // It renews its own certificate.
    let own = ca_request(&fixture, &root);
    fixture
        .pca("IssueCertificate", leaf_body(&root, own.as_bytes(), EC.1, "RootCACertificate"))
        .unwrap();
}

#[test]
fn path_lengths_of_all_cas_above_count() {
    let fixture = Fixture::new();
    for (path_len, longest) in
        [(Some(1), None), (Some(2), Some(0)), (Some(3), Some(1)), (None, Some(3))]
    {
        let external = External::root(path_len, NOW - 86_400);
        let sub = create(&fixture, "SUBORDINATE", "Sub", EC);
        external.certify(&fixture, &sub, Vec::new(), NOW - 86_400);
        for len in 0..=3 {
            let (_, request) = leaf_request("ECC_NIST_P256", "below");
            let template = format!("SubordinateCACertificate_PathLen{len}");
            let outcome =
                fixture.pca("IssueCertificate", leaf_body(&sub, &request, EC.1, &template));
            let fits = longest.is_some_and(|longest| len <= longest);
            assert_eq!(outcome.is_ok(), fits, "{path_len:?} {len}");
            assert!(fits || code(outcome) == "InvalidArgsException");
        }
    }
}

#[test]
fn nothing_begins_before_the_authority_does() {
    let fixture = Fixture::new();
    let external = External::root(None, NOW - 86_400);
    let sub = create(&fixture, "SUBORDINATE", "Sub", EC);
    external.certify(&fixture, &sub, Vec::new(), NOW - 60);
    let (_, request) = leaf_request("ECC_NIST_P256", "leaf");
    let body = leaf_body(&sub, &request, EC.1, "EndEntityCertificate");
    let from = |at: i64| {
        let start = json!({ "ValidityNotBefore": { "Value": at, "Type": "ABSOLUTE" } });
        fixture.pca("IssueCertificate", with(&body, start))
    };
    assert_eq!(code(from(NOW - 61)), "ValidationException");
    for made in [from(NOW - 60), fixture.pca("IssueCertificate", body.clone())] {
        let (certificate, _) = get(&fixture, &sub, text(&made.unwrap()["CertificateArn"]));
        assert_eq!(certificate.not_before(), NOW - 60);
    }
}
