//! ACME: condition keys where endpoints are made, certificates are ordered and revoked.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail and print")]

use crate::acme_support;
use crate::common;

use acme_support::world::{self, World, call, json_of, problem};
use acme_support::{Signer, b64, binding, request};
use common::{ACCOUNT, OTHER_ACCOUNT, Who, allow, code, policy, text};
use outlast_api::acme::header;
use outlast_pki::pem;
use serde_json::{Value, json};

const TEMPLATE: &str = "arn:aws:acm-pca:::template/EndEntityCertificate/V1";

/// A role that ACME may act as, with these statements.
fn role(world: &World, name: &str, statements: Value) -> String {
    let trust = policy(json!([{ "Effect": "Allow", "Action": "sts:*",
        "Principal": { "Service": "acm-acme.amazonaws.com" } }]));
    world.fixture.role(ACCOUNT, name, &trust, &[policy(statements)])
}

fn allowed_if(action: &str, condition: &Value) -> Value {
    json!({ "Effect": "Allow", "Action": action, "Resource": "*", "Condition": condition })
}

fn always(action: &str) -> Value {
    json!({ "Effect": "Allow", "Action": action, "Resource": "*" })
}

/// Orders a certificate: the answer of finalize, and what is needed to revoke the certificate, if there is one.
fn ordered(account: &world::Account<'_>) -> Result<String, String> {
    let leaf = Signer::new("ES256");
    let (url, order) = account.order(&["a.example"]);
    account.prove(&order, "dns-01");
    let response = account.finalize(&order, &request(&leaf, &["a.example"], None));
    if response.status != 200 {
        assert_eq!(problem(&response), ("unauthorized".into(), 403));
        return Err(text(&json_of(&response)["detail"]).to_owned());
    }
    let order = account.read(&url);
    let chain = account.post(text(&order["certificate"]), "").body;
    let der = pem::read_certificates(&chain).unwrap().remove(0);
    Ok(json!({ "certificate": b64(der) }).to_string())
}

#[test]
fn policies_can_ask_for_the_tags_of_what_is_made_for_acme() {
    let mut world = World::new();
    let statements = policy(json!([
        allowed_if("acm:Create*", &json!({ "StringEquals": { "aws:RequestTag/team": "x" } })),
        always("acm:TagResource"),
        always("acm-pca:IssueCertificate"),
        always("iam:PassRole"),
    ]));
    let user = world.fixture.user(ACCOUNT, "maker", &[statements]);
    let denied = policy(json!([
        always("acm:*"), always("acm-pca:*"), always("iam:PassRole"),
        { "Effect": "Deny", "Action": "acm:*", "Resource": "*",
          "Condition": { "ForAnyValue:StringEquals": { "aws:TagKeys": "team" } } },
    ]));
    let denied = world.fixture.user(ACCOUNT, "denied", &[denied]);
    let endpoint = json!({
        "AuthorizationBehavior": "CHALLENGE",
        "CertificateAuthority": { "PrivateCertificateAuthority": { "CertificateAuthorityArn": world.authority } },
    });
    world.endpoint = world.another("CHALLENGE", json!({}));
    let binding = json!({ "AcmeEndpointArn": world.endpoint, "RoleArn": world.role });
    let validation = json!({
        "AcmeEndpointArn": world.endpoint, "DomainName": "a.example",
        "PrevalidationOptions": { "DnsPrevalidation": { "DomainScope": { "ExactDomain": "ENABLED" } } },
    });
    for (operation, body) in [
        ("CreateAcmeEndpoint", endpoint),
        ("CreateAcmeExternalAccountBinding", binding),
        ("CreateAcmeDomainValidation", validation),
    ] {
        let tags = |value: &str| json!({ "Tags": [{ "Key": "team", "Value": value }] });
        let send = |who: &Who, body: &Value| call(&world.fixture, who, "acm", operation, body);
        for more in [json!({}), tags("y")] {
            let refused = send(&user, &common::with(&body, more));
            assert_eq!(code(refused), "AccessDeniedException", "{operation}");
        }
        let tagged = common::with(&body, tags("x"));
        assert_eq!(code(send(&denied, &tagged)), "AccessDeniedException", "{operation}");
        send(&user, &tagged).unwrap();
    }
}

#[test]
fn a_policy_of_the_ca_can_ask_for_the_template() {
    let mut world = World::new();
    let only = json!({ "StringEquals": { "acm-pca:TemplateArn": TEMPLATE } });
    let maker = policy(json!([always("acm:*"), allowed_if("acm-pca:IssueCertificate", &only)]));
    let maker = world.fixture.user(ACCOUNT, "maker", &[maker]);
    let body = json!({
        "AuthorizationBehavior": "CHALLENGE",
        "CertificateAuthority": { "PrivateCertificateAuthority": { "CertificateAuthorityArn": world.authority } },
    });
    call(&world.fixture, &maker, "acm", "CreateAcmeEndpoint", &body).unwrap();
    let statements = [always("acm:*"), allowed_if("acm-pca:IssueCertificate", &only)];
    world.role = role(&world, "template", json!(statements));
    ordered(&world.account("ES256")).unwrap();
}

#[test]
fn the_keys_of_an_order_are_all_there() {
    let mut world = World::new();
    for (number, (key, value)) in [
        ("acm:CertificateKeyPairOrigin", "ACME"),
        ("acm:ValidationMethod", "DNS"),
        ("acm:CertificateTransparencyLogging", "ENABLED"),
        ("acm:Export", "ENABLED"),
        ("acm:KeyAlgorithm", "EC_prime256v1"),
        ("acm:DomainNames", "a.example"),
    ]
    .into_iter()
    .enumerate()
    {
        for (name, wanted, fits) in [("one", value, true), ("other", "other", false)] {
            let condition = json!({ "ForAllValues:StringEquals": { key: wanted } });
            let statements = json!([
                always("acm-pca:IssueCertificate"),
                allowed_if("acm:RequestCertificate", &condition),
            ]);
            world.role = role(&world, &format!("{name}{number}"), statements);
            let answer = ordered(&world.account("ES256"));
            assert_eq!(answer.is_ok(), fits, "{key} {wanted}");
        }
    }
}

#[test]
fn certificates_get_their_endpoints_tags_by_who_may_tag() {
    let mut world = World::new();
    let tags = json!([{ "Key": "team", "Value": "x" }]);
    let made = world.acm(
        "CreateAcmeEndpoint",
        json!({
            "AuthorizationBehavior": "CHALLENGE", "CertificateTags": tags,
            "CertificateAuthority": { "PrivateCertificateAuthority": { "CertificateAuthorityArn": world.authority } },
        }),
    );
    text(&made["AcmeEndpointArn"]).clone_into(&mut world.endpoint);
    let why = ordered(&world.account("ES256")).unwrap_err();
    assert!(why.contains("acm:AddTagsToCertificate"), "{why}");
    for (name, value) in [("yes", "x"), ("no", "y")] {
        let only = json!({ "StringEquals": { "aws:RequestTag/team": value } });
        let statements = json!([
            always("acm-pca:IssueCertificate"),
            always("acm:RequestCertificate"),
            allowed_if("acm:AddTagsToCertificate", &only),
        ]);
        world.role = role(&world, name, statements);
        let answer = ordered(&world.account("ES256"));
        assert_eq!(answer.is_ok(), name == "yes", "{name}");
    }
}

#[test]
fn the_keys_of_a_revocation_are_those_of_the_certificate() {
    let mut world = World::new();
    let made = world.acm(
        "CreateAcmeEndpoint",
        json!({
            "AuthorizationBehavior": "CHALLENGE", "CertificateTags": [{ "Key": "team", "Value": "x" }],
            "CertificateAuthority": { "PrivateCertificateAuthority": { "CertificateAuthorityArn": world.authority } },
        }),
    );
    text(&made["AcmeEndpointArn"]).clone_into(&mut world.endpoint);
    for (number, (key, value)) in [
        ("acm:CertificateKeyPairOrigin", "ACME"),
        ("acm:DomainNames", "a.example"),
        ("aws:ResourceTag/team", "x"),
    ]
    .into_iter()
    .enumerate()
    {
        for (name, wanted, fits) in [("one", value, true), ("other", "other", false)] {
            let condition = json!({ "ForAllValues:StringEquals": { key: wanted } });
            let statements = json!([
                always("acm-pca:IssueCertificate"),
                always("acm:RequestCertificate"),
                always("acm:AddTagsToCertificate"),
                allowed_if("acm:RevokeCertificate", &condition),
            ]);
            world.role = role(&world, &format!("{name}{number}"), statements);
            let account = world.account("ES256");
            let payload = ordered(&account).unwrap();
            let response = account.post(&world.url("revoke-cert"), &payload);
            assert_eq!(response.status == 200, fits, "{key} {wanted}");
        }
    }
}

#[test]
fn revoking_at_the_ca_of_another_account_takes_its_right() {
    let mut world = World::new();
    let issue = ["acm-pca:IssueCertificate", "acm-pca:DescribeCertificateAuthority"];
    let authority = world.authority.clone();
    let share = |actions: &[&str]| {
        let (issuing, others): (Vec<&str>, Vec<&str>) =
            actions.iter().partition(|action| **action == "acm-pca:IssueCertificate");
        let other = json!({ "AWS": OTHER_ACCOUNT });
        policy(json!([
            { "Effect": "Allow", "Principal": other, "Action": issuing, "Resource": authority,
              "Condition": { "StringEquals": { "acm-pca:TemplateArn": TEMPLATE } } },
            { "Effect": "Allow", "Principal": other, "Action": others, "Resource": authority },
        ]))
    };
    {
        let document = share(&issue);
        let body = json!({ "ResourceArn": world.authority, "Policy": document.to_string() });
        call(&world.fixture, &Who::admin(), "acm-pca", "PutPolicy", &body).unwrap();
    }
    let stranger = Who::stranger();
    let made = call(
        &world.fixture,
        &stranger,
        "acm",
        "CreateAcmeEndpoint",
        &json!({
            "AuthorizationBehavior": "CHALLENGE",
            "CertificateAuthority": { "PrivateCertificateAuthority": { "CertificateAuthorityArn": world.authority } },
        }),
    )
    .unwrap();
    let endpoint = text(&made["AcmeEndpointArn"]).to_owned();
    let trust = policy(json!([{ "Effect": "Allow", "Action": "sts:*",
        "Principal": { "Service": "acm-acme.amazonaws.com" } }]));
    let role = |name: &str, actions: &[&str]| {
        world.fixture.role(OTHER_ACCOUNT, name, &trust, &[allow(actions)])
    };
    let roles = [role("half", world::ROLE), role("whole", &["acm:*", "acm-pca:*"])];
    let bind = |role: &String| {
        let send = |operation: &str, body: Value| {
            call(&world.fixture, &stranger, "acm", operation, &body).unwrap()
        };
        let body = json!({ "AcmeEndpointArn": endpoint, "RoleArn": role });
        let made = send("CreateAcmeExternalAccountBinding", body);
        let arn = &made["ExternalAccountBinding"]["AcmeExternalAccountBindingArn"];
        let body = json!({ "AcmeExternalAccountBindingArn": arn });
        let found = send("GetAcmeExternalAccountBindingCredentials", body);
        (text(&found["KeyId"]).to_owned(), acme_support::unb64(text(&found["MacKey"])))
    };
    let credentials: Vec<_> = roles.iter().map(bind).collect();
    world.endpoint.clone_from(&endpoint);
    let with_revoke = [issue[0], issue[1], "acm-pca:RevokeCertificate"];
    // It takes the role's permission and the CA's own policy.
    for (index, actions, fits) in [
        (0, issue.as_slice(), false),
        (1, issue.as_slice(), false),
        (0, with_revoke.as_slice(), false),
        (1, with_revoke.as_slice(), true),
    ] {
        let document = share(actions);
        let body = json!({ "ResourceArn": world.authority, "Policy": document.to_string() });
        call(&world.fixture, &Who::admin(), "acm-pca", "PutPolicy", &body).unwrap();
        let (kid, mac_key) = &credentials[index];
        let signer = Signer::new("ES256");
        let url = world.url("new-account");
        let payload = json!({ "externalAccountBinding": binding(kid, mac_key, &signer, &url) });
        let response = world.post(&signer, None, &url, &payload.to_string());
        let url = header(&response, "location").unwrap().to_owned();
        let account = world::Account { world: &world, signer, url };
        let payload = ordered(&account).unwrap();
        let response = account.post(&world.url("revoke-cert"), &payload);
        assert_eq!(response.status == 200, fits, "{index} {actions:?}");
        if !fits {
            let why = text(&json_of(&response)["detail"]).to_owned();
            assert!(why.contains("acm-pca:RevokeCertificate"), "{why}");
        }
    }
}

#[test]
fn what_is_set_is_on_record() {
    let world = World::new();
    let last = || world.fixture.events().pop().unwrap()["requestParameters"].clone();
    let keys = json!(["EC_prime256v1", "ML_DSA_65"]);
    let authority = json!({ "PublicCertificateAuthority": { "AllowedKeyAlgorithms": keys } });
    world.acm(
        "UpdateAcmeEndpoint",
        json!({
            "AcmeEndpointArn": world.endpoint, "AuthorizationBehavior": "PRE_APPROVED", "Contact": "REQUIRED",
            "CertificateAuthority": authority,
        }),
    );
    let noted = last();
    assert_eq!(noted["authorizationBehavior"], "PRE_APPROVED");
    assert_eq!(noted["contact"], "REQUIRED");
    assert_eq!(noted["allowedKeyAlgorithms"], keys);
    world.another("CHALLENGE", json!({ "AllowedKeyAlgorithms": keys }));
    assert_eq!(last()["allowedKeyAlgorithms"], keys);
    let scope = |wildcards: &str| {
        json!({ "DnsPrevalidation": { "DomainScope": {
            "ExactDomain": "ENABLED", "Wildcards": wildcards,
        } } })
    };
    let made = world.acm(
        "CreateAcmeDomainValidation",
        json!({
            "AcmeEndpointArn": world.endpoint, "DomainName": "a.example", "PrevalidationOptions": scope("DISABLED"),
        }),
    );
    let expected = |wildcards: &str| json!({ "exactDomain": "ENABLED", "subdomains": "DISABLED", "wildcards": wildcards });
    assert_eq!(last()["domainScope"], expected("DISABLED"));
    world.acm(
        "UpdateAcmeDomainValidation",
        json!({
            "AcmeDomainValidationArn": made["AcmeDomainValidationArn"], "PrevalidationOptions": scope("ENABLED"),
        }),
    );
    assert_eq!(last()["domainScope"], expected("ENABLED"));
}

/// Whether a type can be printed for debugging: an inherent constant hides that of a trait.
struct Probe<T>(std::marker::PhantomData<T>);

trait Unprinted {
    const IS_DEBUG: bool = false;
}

impl<T> Unprinted for Probe<T> {}

impl<T: std::fmt::Debug> Probe<T> {
    const IS_DEBUG: bool = true;
}

#[test]
fn answers_with_secrets_cannot_be_printed() {
    use outlast_api::ops::acm::{
        export_certificate, get_acme_external_account_binding_credentials,
    };
    const {
        assert!(Probe::<export_certificate::Input>::IS_DEBUG);
        assert!(!Probe::<export_certificate::Output>::IS_DEBUG);
        assert!(!Probe::<get_acme_external_account_binding_credentials::Output>::IS_DEBUG);
    }
}
