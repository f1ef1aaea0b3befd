//! Private CA: hierarchies, names, tokens, states, lists.
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
use common::{Fixture, NOW, b64, code, with};
use http::HeaderMap;
use outlast_api::ops::acm_pca::{
    create_certificate_authority, create_permission, delete_certificate_authority,
    describe_certificate_authority, issue_certificate, list_certificate_authorities,
    list_permissions, list_tags, tag_certificate_authority, update_certificate_authority,
};
use outlast_api::wire::Protocol;
use outlast_crypto::keys::KEY_SPECS;
use outlast_domain::settings::{KeyStorage, Settings};
use outlast_pki::csr;
use serde_json::{Value, json};

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
        (json!({ "Country": "Germany" }), "ValidationException"),
        (json!({ "CommonName": "x".repeat(65) }), "ValidationException"),
        (json!({ "SerialNumber": "é" }), "ValidationException"),
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
fn only_a_standard_that_the_operator_claims_is_claimed() {
    const LEVEL_2: &str = "FIPS_140_2_LEVEL_2_OR_HIGHER";
    const LEVEL_3: &str = "FIPS_140_2_LEVEL_3_OR_HIGHER";
    const CCPC: &str = "CCPC_LEVEL_1_OR_HIGHER";
    let fixture = Fixture::new();
    let create = |standard: Option<&str>| {
        let mut body = json!({
            "CertificateAuthorityConfiguration": {
                "KeyAlgorithm": EC.0, "SigningAlgorithm": EC.1, "Subject": { "CommonName": "x" },
            },
            "CertificateAuthorityType": "ROOT",
        });
        if let Some(standard) = standard {
            body["KeyStorageSecurityStandard"] = standard.into();
        }
        fixture.pca("CreateCertificateAuthority", body)
    };
    let shown = |arn: &Value| {
        let body = json!({ "CertificateAuthorityArn": arn });
        let found = fixture.pca("DescribeCertificateAuthority", body).unwrap();
        let described = found["CertificateAuthority"]["KeyStorageSecurityStandard"].clone();
        let listed = fixture.pca("ListCertificateAuthorities", json!({})).unwrap();
        let all = listed["CertificateAuthorities"].as_array().unwrap();
        let listed = all.iter().find(|one| one["Arn"] == *arn).unwrap();
        assert_eq!(listed["KeyStorageSecurityStandard"], described);
        described
    };
    let claim = |name: Option<&str>| {
        let key_storage = name.and_then(KeyStorage::by_name);
        fixture.service.set_settings(Settings { key_storage, ..Settings::default() });
    };
    // A store whose root key is in a file.
    let plain = create(None).unwrap()["CertificateAuthorityArn"].clone();
    assert_eq!(shown(&plain), Value::Null);
    for standard in [LEVEL_2, LEVEL_3, CCPC] {
        let refused = create(Some(standard)).unwrap_err();
        assert_eq!(refused.code, "InvalidArgsException");
        assert!(refused.message.contains("leave KeyStorageSecurityStandard out"), "{refused:?}");
        assert!(refused.message.contains("cannot be created in this region"), "{refused:?}");
    }
    assert_eq!(code(create(Some("FIPS"))), "ValidationException");
    for (claimed, met, not_met) in [
        (LEVEL_2, vec![LEVEL_2], vec![LEVEL_3, CCPC]),
        (LEVEL_3, vec![LEVEL_2, LEVEL_3], vec![CCPC]),
        (CCPC, vec![CCPC], vec![LEVEL_2, LEVEL_3]),
    ] {
        claim(Some(claimed));
        let by_default = create(None).unwrap()["CertificateAuthorityArn"].clone();
        assert_eq!(shown(&by_default), claimed);
        assert_eq!(shown(&plain), Value::Null, "a CA of before claims it, too");
        for standard in met {
            let made = create(Some(standard)).unwrap()["CertificateAuthorityArn"].clone();
            assert_eq!(shown(&made), standard);
        }
        for standard in not_met {
            assert_eq!(code(create(Some(standard))), "InvalidArgsException");
        }
        claim(None);
        assert_eq!(shown(&by_default), Value::Null, "it is claimed without the token");
    }
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
    fixture.service.run_housekeeping((NOW + 8 * 86_400) * 1000).unwrap();
    use outlast_store::Store;
    assert!(fixture.store.scan("ca/material/", "", 10).unwrap().is_empty(), "the key stayed");
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

#[test]
fn only_an_active_authority_issues() {
    let fixture = Fixture::new();
    let (_, request) = leaf_request("ECC_NIST_P256", "leaf");
    let ask = |authority: &str| {
        let body = leaf_body(authority, &request, EC.1, "EndEntityCertificate");
        fixture.pca("IssueCertificate", body)
    };
    let pending = create(&fixture, "ROOT", "Pending", EC);
    let disabled = root(&fixture, EC);
    let deleted = root(&fixture, EC);
    let expired = root(&fixture, EC);
    for arn in [&disabled, &deleted] {
        let off = json!({ "CertificateAuthorityArn": arn, "Status": "DISABLED" });
        fixture.pca("UpdateCertificateAuthority", off).unwrap();
    }
    let delete = json!({ "CertificateAuthorityArn": deleted });
    fixture.pca("DeleteCertificateAuthority", delete).unwrap();
    ask(&expired).unwrap();
    let before = fixture.store_without_uses();
    for (what, arn) in [("pending", &pending), ("disabled", &disabled), ("deleted", &deleted)] {
        let refused = ask(arn).unwrap_err();
        assert_eq!(refused.code, "InvalidStateException", "{what}");
        assert!(refused.message.contains(arn.as_str()), "{}", refused.message);
    }
    fixture.advance(11 * 366 * 86_400);
    assert_eq!(code(ask(&expired)), "InvalidStateException");
    assert_eq!(fixture.store_without_uses(), before);
}

#[test]
fn reused_token_with_another_request_is_refused() {
    let fixture = Fixture::new();
    let root = root(&fixture, EC);
    let ask = |request: &[u8]| {
        let body = leaf_body(&root, request, EC.1, "EndEntityCertificate");
        fixture.pca("IssueCertificate", with(&body, json!({ "IdempotencyToken": "t" })))
    };
    let (one, other) =
        (leaf_request("ECC_NIST_P256", "one").1, leaf_request("ECC_NIST_P256", "two").1);
    let made = ask(&one).unwrap();
    let before = fixture.store_without_uses();
    assert_eq!(code(ask(&other)), "InvalidArgsException");
    assert_eq!(ask(&one).unwrap(), made);
    assert_eq!(fixture.store_without_uses(), before);
    fixture.advance(301);
    assert_ne!(ask(&other).unwrap(), made);
}

#[test]
fn cbor_says_the_same_as_json() {
    let fixture = Fixture::new();
    let arn = root(&fixture, EC);
    let protocol = Protocol::RpcV2Cbor;
    let call = |operation: &str, body: Vec<u8>| {
        let mut headers = HeaderMap::new();
        headers.insert("smithy-protocol", "rpc-v2-cbor".parse().unwrap());
        headers.insert("content-type", "application/cbor".parse().unwrap());
        let path = format!("/service/ACMPrivateCA/operation/{operation}");
        let response = fixture.send(&fixture.signed("acm-pca", &path, headers, &body));
        assert_eq!((response.status, response.is_cbor), (200, true), "{operation}");
        response.body
    };
    let permission: create_permission::Input = input(json!({
        "CertificateAuthorityArn": arn, "Principal": "acm.amazonaws.com", "Actions": ["IssueCertificate"],
    }));
    call("CreatePermission", protocol.encode(&permission).unwrap());
    let list: list_permissions::Input = input(json!({ "CertificateAuthorityArn": arn }));
    let body = call("ListPermissions", protocol.encode(&list).unwrap());
    let found: list_permissions::Output = ciborium::from_reader(&body[..]).unwrap();
    let plain = fixture.call::<list_permissions::ListPermissions>(&list).unwrap();
    assert_eq!(serde_json::to_value(found).unwrap(), serde_json::to_value(plain).unwrap());
    let (_, request) = leaf_request("ECC_NIST_P256", "leaf");
    let template = "EndEntityCertificate_APIPassthrough";
    let body = with(
        &leaf_body(&arn, &request, EC.1, template),
        json!({ "ApiPassthrough": {
        "Subject": { "CommonName": "From CBOR" },
        "Extensions": { "SubjectAlternativeNames": [{ "DnsName": "a.example" }],
            "KeyUsage": { "DigitalSignature": true } },
    } }),
    );
    let issue: issue_certificate::Input = input(body);
    let made = call("IssueCertificate", protocol.encode(&issue).unwrap());
    let made: issue_certificate::Output = ciborium::from_reader(&made[..]).unwrap();
    let (certificate, _) = get(&fixture, &arn, &made.certificate_arn);
    assert_eq!(certificate.subject().to_string(), "CN=From CBOR");
    assert_eq!(certificate.subject_alternative_names().len(), 1);
}
