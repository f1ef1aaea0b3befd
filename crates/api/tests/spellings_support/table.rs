//! Every member of every operation that names something, with a request that is carried out unless a policy denies it.

use outlast_api::ops::{ACM, ACM_PCA, KMS, SECRETS_MANAGER, STS};
use outlast_api::table::ServiceRow;
use serde_json::{Value, json};

use super::spell::Form;
use super::{Key, Scene, TEMPLATE};
use crate::common::{ACCOUNT, b64, key_policy, policy, with};

/// A member of an operation.
pub struct Case {
    pub service: &'static ServiceRow,
    pub operation: &'static str,
    /// JSON pointer to the member, whose first word is a member of the input.
    pub member: &'static str,
    pub body: Value,
    /// Its right names.
    pub names: Vec<(String, Form)>,
    /// `Action`, `Resource` and perhaps `Condition` of the statement that denies.
    pub deny: Value,
    /// Whether the policy of a key, CA or role can deny the call, too.
    pub has_policy: bool,
    /// Another spelling may be the right name of another resource: then the denied one must not occur.
    pub names_others: bool,
    /// The request fails for another reason in the end, but only for a principal who is allowed.
    pub fails: bool,
}

/// Members that have the name of an identifier and need no row: operation (`*` for all), member, and reason.
pub static EXEMPT: &[(&str, &str, &str)] = &[
    ("CreateKey", "MultiRegion", "true or false"),
    ("CreateConnector", "Url", "a server outside, which no policy names"),
    ("UpdateConnector", "Url", "a server outside, which no policy names"),
    ("*", "CustomKeyStoreId", "there are no custom key stores: it is refused or not found"),
    ("*", "CloudHsmClusterId", "there are no custom key stores"),
    ("*", "XksKeyId", "refused by name"),
    (
        "*",
        "GrantTokens",
        "they name grants of the key that KeyId names, which is judged by its record",
    ),
    (
        "*",
        "GranteeServicePrincipal",
        "the name of a service, compared as it is; no principal of this service is one",
    ),
    (
        "*",
        "RetiringServicePrincipal",
        "the name of a service, compared as it is; no principal of this service is one",
    ),
    ("ListGrants", "GranteePrincipal", "it filters what the grants of KeyId's key are"),
    ("AssumeRole", "ExternalId", "a text for conditions"),
    ("CreatePermission", "Principal", "acm.amazonaws.com or refused"),
    ("DeletePermission", "Principal", "acm.amazonaws.com or refused"),
    ("RequestCertificate", "ManagedBy", "refused"),
    ("RotateSecret", "ExternalSecretRotationRoleArn", "refused"),
    ("DeleteSshPublicKey", "SshPublicKeyId", "a key of the user that UserName names"),
    ("*", "VersionId", "a version of the secret that SecretId names"),
    (
        "UpdateSecretVersionStage",
        "RemoveFromVersionId",
        "a version of the secret that SecretId names",
    ),
    ("UpdateSecretVersionStage", "MoveToVersionId", "a version of the secret that SecretId names"),
];

/// Whether a member has the name of an identifier.
pub fn is_identifier(member: &str) -> bool {
    let ends = ["Arn", "Id", "Principal", "Url", "Region", "Serial", "GrantToken", "GrantTokens"];
    ends.iter().any(|end| member.ends_with(end))
        || ["AliasName", "CertificateAuthority"].contains(&member)
}

pub fn pointer(body: &Value, member: &'static str) -> Value {
    let mut body = body.clone();
    if body.pointer(member).is_none() {
        body[member.trim_start_matches('/')] = Value::Null;
    }
    body
}

/// The rows.
pub fn cases(scene: &Scene) -> Vec<Case> {
    let mut all = kms(scene);
    all.extend(grants(scene));
    all.extend(aliases(scene));
    all.extend(pca(scene));
    all.extend(acm(scene));
    all.extend(acme(scene));
    all.extend(super::rolesanywhere::cases(scene));
    all.extend(super::outlast::cases(scene));
    all.extend(super::transfer::cases(scene));
    all.extend(secrets(scene));
    all.push(Case {
        service: &STS,
        operation: "AssumeRole",
        member: "/RoleArn",
        body: json!({ "RoleArn": null, "RoleSessionName": "session" }),
        names: vec![(scene.assumable.clone(), Form::Arn), (foreign(&scene.assumable), Form::Arn)],
        deny: json!({ "Action": "sts:AssumeRole", "Resource": scene.assumable }),
        has_policy: true,
        names_others: false,
        fails: false,
    });
    all
}

/// A resource without a Region is the same in each partition.
fn foreign(arn: &str) -> String {
    arn.replacen("arn:aws:", "arn:aws-cn:", 1)
}

fn four_names(key: &Key) -> Vec<(String, Form)> {
    vec![
        (key.id.clone(), Form::Word),
        (key.arn.clone(), Form::Arn),
        (key.alias.clone(), Form::Word),
        (Scene::alias_arn(&key.alias), Form::Arn),
    ]
}

fn key_case(
    operation: &'static str,
    member: &'static str,
    key: &Key,
    action: &str,
    more: &Value,
) -> Case {
    Case {
        service: &KMS,
        operation,
        member,
        body: pointer(more, member),
        names: four_names(key),
        deny: json!({ "Action": format!("kms:{action}"), "Resource": key.arn }),
        has_policy: true,
        names_others: false,
        fails: false,
    }
}

fn kms(s: &Scene) -> Vec<Case> {
    let none = json!({});
    let message = b64(b"message");
    let signed = json!({ "Message": message, "SigningAlgorithm": "ECDSA_SHA_256" });
    let mac = json!({ "Message": message, "MacAlgorithm": "HMAC_SHA_256" });
    let wrapping =
        json!({ "WrappingAlgorithm": "RSAES_OAEP_SHA_256", "WrappingKeySpec": "RSA_2048" });
    let rows: Vec<(&'static str, &Key, Value)> = vec![
        ("CancelKeyDeletion", &s.leaving, none.clone()),
        (
            "CreateGrant",
            &s.symmetric,
            json!({
                "GranteePrincipal": format!("arn:aws:iam::{ACCOUNT}:user/admin"), "Operations": ["Encrypt"],
            }),
        ),
        (
            "Decapsulate",
            &s.kem,
            json!({
                "SharedSecretCiphertextBlob": s.sealed, "EncapsulationAlgorithm": "ML_KEM",
            }),
        ),
        ("Decrypt", &s.symmetric, json!({ "CiphertextBlob": s.ciphertext })),
        ("DeleteImportedKeyMaterial", &s.imported, none.clone()),
        (
            "DeriveSharedSecret",
            &s.agreement,
            json!({
                "KeyAgreementAlgorithm": "ECDH", "PublicKey": s.peer,
            }),
        ),
        ("DescribeKey", &s.symmetric, none.clone()),
        ("DisableKey", &s.symmetric, none.clone()),
        ("DisableKeyRotation", &s.rotating, none.clone()),
        ("EnableKey", &s.disabled, none.clone()),
        ("EnableKeyRotation", &s.symmetric, none.clone()),
        ("Encapsulate", &s.kem, json!({ "EncapsulationAlgorithm": "ML_KEM" })),
        ("Encrypt", &s.symmetric, json!({ "Plaintext": message })),
        ("GenerateDataKey", &s.symmetric, json!({ "KeySpec": "AES_256" })),
        ("GenerateDataKeyPair", &s.symmetric, json!({ "KeyPairSpec": "ECC_NIST_P256" })),
        (
            "GenerateDataKeyPairWithoutPlaintext",
            &s.symmetric,
            json!({ "KeyPairSpec": "ECC_NIST_P256" }),
        ),
        ("GenerateDataKeyWithoutPlaintext", &s.symmetric, json!({ "KeySpec": "AES_256" })),
        ("GenerateMac", &s.mac, mac.clone()),
        ("GetKeyLastUsage", &s.symmetric, none.clone()),
        ("GetKeyPolicy", &s.symmetric, none.clone()),
        ("GetKeyRotationStatus", &s.symmetric, none.clone()),
        ("GetParametersForImport", &s.empty, wrapping),
        ("GetPublicKey", &s.signing, none.clone()),
        ("ImportKeyMaterial", &s.empty, s.import.clone()),
        ("ListGrants", &s.symmetric, none.clone()),
        ("ListKeyPolicies", &s.symmetric, none.clone()),
        ("ListKeyRotations", &s.symmetric, none.clone()),
        ("ListResourceTags", &s.symmetric, none.clone()),
        ("PutKeyPolicy", &s.symmetric, json!({ "Policy": key_policy(json!([])) })),
        ("ReplicateKey", &s.primary, json!({ "ReplicaRegion": "us-west-2" })),
        ("RetireGrant", &s.symmetric, json!({ "GrantId": s.retirable["GrantId"] })),
        ("RevokeGrant", &s.symmetric, json!({ "GrantId": s.grant["GrantId"] })),
        ("RotateKeyOnDemand", &s.symmetric, none.clone()),
        ("ScheduleKeyDeletion", &s.symmetric, none.clone()),
        ("Sign", &s.signing, signed.clone()),
        ("TagResource", &s.symmetric, json!({ "Tags": [{ "TagKey": "a", "TagValue": "b" }] })),
        ("UntagResource", &s.symmetric, json!({ "TagKeys": ["a"] })),
        ("UpdateKeyDescription", &s.symmetric, json!({ "Description": "changed" })),
        ("UpdatePrimaryRegion", &s.primary, json!({ "PrimaryRegion": "us-east-1" })),
        ("Verify", &s.signing, with(&signed, json!({ "Signature": s.signature }))),
        ("VerifyMac", &s.mac, with(&mac, json!({ "Mac": s.tag }))),
    ];
    let mut all: Vec<_> = rows
        .iter()
        .map(|(operation, key, more)| key_case(operation, "/KeyId", key, operation, more))
        .collect();
    let recrypt = json!({
        "CiphertextBlob": s.ciphertext, "SourceKeyId": s.symmetric.id, "DestinationKeyId": s.rotating.id,
    });
    all.push(key_case("ReEncrypt", "/SourceKeyId", &s.symmetric, "ReEncryptFrom", &recrypt));
    all.push(key_case("ReEncrypt", "/DestinationKeyId", &s.rotating, "ReEncryptTo", &recrypt));
    let of = with(&s.reimport, json!({ "KeyId": s.imported.id }));
    let material = vec![(s.material.clone(), Form::Word)];
    for (operation, more) in [
        ("ImportKeyMaterial", of),
        ("DeleteImportedKeyMaterial", json!({ "KeyId": s.imported.id })),
    ] {
        let case = key_case(operation, "/KeyMaterialId", &s.imported, operation, &more);
        all.push(Case { names: material.clone(), ..case });
    }
    // The list belongs to the account; the key only selects.
    let case = key_case("ListAliases", "/KeyId", &s.symmetric, "ListAliases", &none);
    let deny = json!({ "Action": "kms:ListAliases", "Resource": "*" });
    all.push(Case { deny, has_policy: false, ..case });
    for (operation, member, key, region) in [
        ("ReplicateKey", "/ReplicaRegion", "kms:ReplicaRegion", "us-west-2"),
        ("UpdatePrimaryRegion", "/PrimaryRegion", "kms:PrimaryRegion", "us-east-1"),
    ] {
        let more = json!({ "KeyId": s.primary.id });
        let case = key_case(operation, member, &s.primary, operation, &more);
        let deny = json!({
            "Action": format!("kms:{operation}"), "Resource": s.primary.arn,
            "Condition": { "StringEquals": { key: region } },
        });
        let names = vec![(region.to_owned(), Form::Word)];
        all.push(Case { names, deny, names_others: true, ..case });
    }
    all
}

fn grants(s: &Scene) -> Vec<Case> {
    let mut all = Vec::new();
    let id = |grant: &Value| vec![(grant["GrantId"].as_str().unwrap().to_owned(), Form::Word)];
    let of = json!({ "KeyId": s.symmetric.id });
    for (operation, grant) in
        [("RetireGrant", &s.retirable), ("RevokeGrant", &s.grant), ("ListGrants", &s.grant)]
    {
        let case = key_case(operation, "/GrantId", &s.symmetric, operation, &of);
        all.push(Case { names: id(grant), ..case });
    }
    let token = s.retirable["GrantToken"].as_str().unwrap().to_owned();
    let case = key_case("RetireGrant", "/GrantToken", &s.symmetric, "RetireGrant", &json!({}));
    all.push(Case { names: vec![(token, Form::Word)], ..case });
    let user = format!("arn:aws:iam::{ACCOUNT}:user/admin");
    let names = vec![(user.clone(), Form::Arn), (foreign(&user), Form::Arn)];
    for (member, key, more) in [
        ("/GranteePrincipal", "kms:GranteePrincipal", json!({})),
        (
            "/RetiringPrincipal",
            "kms:RetiringPrincipal",
            json!({
                "GranteePrincipal": format!("arn:aws:iam::{ACCOUNT}:user/eve"),
            }),
        ),
    ] {
        let more = with(&with(&of, more), json!({ "Operations": ["Encrypt"] }));
        let deny = json!({
            "Action": "kms:CreateGrant", "Resource": "*", "Condition": { "StringEquals": { key: user } },
        });
        let case = key_case("CreateGrant", member, &s.symmetric, "CreateGrant", &more);
        all.push(Case { names: names.clone(), deny, names_others: true, ..case });
    }
    let case = key_case("ListRetirableGrants", "/RetiringPrincipal", &s.symmetric, "", &json!({}));
    let deny = json!({ "Action": "kms:ListRetirableGrants", "Resource": user });
    all.push(Case { names, deny, has_policy: false, names_others: true, ..case });
    all
}

fn aliases(s: &Scene) -> Vec<Case> {
    let fresh = "alias/sweep/fresh".to_owned();
    let known = s.symmetric.alias.clone();
    let mut all = Vec::new();
    for (operation, name) in [("CreateAlias", &fresh), ("UpdateAlias", &known)] {
        let more = json!({ "AliasName": name });
        all.push(key_case(operation, "/TargetKeyId", &s.rotating, operation, &more));
    }
    for (operation, name, more) in [
        ("CreateAlias", &fresh, json!({ "TargetKeyId": s.rotating.id })),
        ("UpdateAlias", &known, json!({ "TargetKeyId": s.rotating.id })),
        ("DeleteAlias", &known, json!({})),
    ] {
        let case = key_case(operation, "/AliasName", &s.symmetric, operation, &more);
        let deny =
            json!({ "Action": format!("kms:{operation}"), "Resource": Scene::alias_arn(name) });
        let names = vec![(name.clone(), Form::Word)];
        // A new alias may have any name.
        let names_others = operation == "CreateAlias";
        all.push(Case { names, deny, has_policy: false, names_others, ..case });
    }
    all
}

fn secrets(s: &Scene) -> Vec<Case> {
    let none = json!({});
    let share = policy(json!([{
        "Effect": "Allow", "Principal": { "AWS": crate::common::OTHER_ACCOUNT }, "Resource": "*",
        "Action": "secretsmanager:GetSecretValue",
    }]));
    let tags = json!([{ "Key": "a", "Value": "b" }]);
    let function = "arn:aws:lambda:eu-west-1:123456789012:function:f";
    let moved = json!({ "VersionStage": "mine", "MoveToVersionId": s.version });
    let rows: Vec<(&'static str, &String, Value)> = vec![
        ("CancelRotateSecret", &s.secret, none.clone()),
        ("DeleteResourcePolicy", &s.secret, none.clone()),
        ("DeleteSecret", &s.secret, none.clone()),
        ("DescribeSecret", &s.secret, none.clone()),
        ("GetResourcePolicy", &s.secret, none.clone()),
        ("GetSecretValue", &s.secret, none.clone()),
        ("ListResourcePolicies", &s.secret, none.clone()),
        ("ListSecretVersionIds", &s.secret, none.clone()),
        ("PutResourcePolicy", &s.secret, json!({ "ResourcePolicy": share.to_string() })),
        ("PutSecretValue", &s.secret, json!({ "SecretString": "new" })),
        (
            "RemoveRegionsFromReplication",
            &s.replicated,
            json!({ "RemoveReplicaRegions": ["us-east-1"] }),
        ),
        (
            "ReplicateSecretToRegions",
            &s.secret,
            json!({ "AddReplicaRegions": [{ "Region": "us-east-1" }] }),
        ),
        ("RestoreSecret", &s.deleted_secret, none.clone()),
        ("RotateSecret", &s.secret, json!({ "RotationLambdaARN": function })),
        ("TagResource", &s.secret, json!({ "Tags": tags })),
        ("UntagResource", &s.secret, json!({ "TagKeys": ["a"] })),
        ("UpdateSecret", &s.secret, json!({ "Description": "new" })),
        ("UpdateSecretVersionStage", &s.secret, moved),
        ("ValidateResourcePolicy", &s.secret, json!({ "ResourcePolicy": share.to_string() })),
    ];
    let mut all: Vec<_> = rows
        .iter()
        .map(|(operation, secret, more)| Case {
            service: &SECRETS_MANAGER,
            operation,
            member: "/SecretId",
            body: pointer(more, "/SecretId"),
            names: secret_names(secret),
            deny: json!({ "Action": format!("secretsmanager:{operation}"), "Resource": secret }),
            has_policy: true,
            names_others: false,
            fails: false,
        })
        .collect();
    let replica = s.replicated.replace(crate::common::REGION, "us-east-1");
    // In the caller's Region there is no replica: only callers who may promote the primary secret are told so.
    all.push(Case {
        service: &SECRETS_MANAGER,
        operation: "StopReplicationToReplica",
        member: "/SecretId",
        body: json!({ "SecretId": null }),
        names: secret_names(&s.replicated),
        deny: json!({ "Action": "secretsmanager:StopReplicationToReplica", "Resource": [s.replicated, replica] }),
        has_policy: true,
        names_others: false,
        fails: true,
    });
    // The key of a new value: its own policy counts, whatever it is called.
    for (operation, more) in [
        ("CreateSecret", json!({ "Name": "fresh", "SecretString": "x" })),
        ("UpdateSecret", json!({ "SecretId": s.secret, "SecretString": "x" })),
    ] {
        let case = key_case(operation, "/KmsKeyId", &s.symmetric, "GenerateDataKey", &more);
        all.push(Case { service: &SECRETS_MANAGER, ..case });
    }
    all
}

/// The name of a secret, its ARN, and its ARN without the suffix.
fn secret_names(arn: &str) -> Vec<(String, Form)> {
    let partial = &arn[..arn.len() - 7];
    let name = partial.rsplit(':').next().unwrap();
    vec![
        (name.to_owned(), Form::Word),
        (arn.to_owned(), Form::Arn),
        (partial.to_owned(), Form::Arn),
    ]
}

fn authority_case(
    operation: &'static str,
    member: &'static str,
    authority: &str,
    more: &Value,
) -> Case {
    Case {
        service: &ACM_PCA,
        operation,
        member,
        body: pointer(more, member),
        names: vec![(authority.to_owned(), Form::Arn)],
        deny: json!({ "Action": format!("acm-pca:{operation}"), "Resource": authority }),
        has_policy: true,
        names_others: false,
        fails: false,
    }
}

fn pca(s: &Scene) -> Vec<Case> {
    let none = json!({});
    let issue = json!({
        "Csr": s.csr, "SigningAlgorithm": "SHA256WITHECDSA", "Validity": { "Type": "DAYS", "Value": 5 },
    });
    let service = json!({ "Principal": "acm.amazonaws.com" });
    let share = policy(json!([{
        "Effect": "Allow", "Principal": { "AWS": crate::common::OTHER_ACCOUNT }, "Resource": s.authority,
        "Action": "acm-pca:DescribeCertificateAuthority",
    }]));
    let revoke = json!({ "CertificateSerial": s.serial, "RevocationReason": "UNSPECIFIED" });
    let rows: Vec<(&'static str, &'static str, &String, Value)> = vec![
        (
            "CreateCertificateAuthorityAuditReport",
            "/CertificateAuthorityArn",
            &s.authority,
            json!({
                "S3BucketName": "bucket", "AuditReportResponseFormat": "JSON",
            }),
        ),
        (
            "CreatePermission",
            "/CertificateAuthorityArn",
            &s.pending,
            with(&service, json!({ "Actions": ["IssueCertificate"] })),
        ),
        ("DeleteCertificateAuthority", "/CertificateAuthorityArn", &s.pending, none.clone()),
        ("DeletePermission", "/CertificateAuthorityArn", &s.authority, service),
        ("DeletePolicy", "/ResourceArn", &s.authority, none.clone()),
        ("DescribeCertificateAuthority", "/CertificateAuthorityArn", &s.authority, none.clone()),
        (
            "DescribeCertificateAuthorityAuditReport",
            "/CertificateAuthorityArn",
            &s.authority,
            json!({ "AuditReportId": s.report }),
        ),
        (
            "GetCertificate",
            "/CertificateAuthorityArn",
            &s.authority,
            json!({ "CertificateArn": s.issued }),
        ),
        (
            "GetCertificateAuthorityCertificate",
            "/CertificateAuthorityArn",
            &s.authority,
            none.clone(),
        ),
        ("GetCertificateAuthorityCsr", "/CertificateAuthorityArn", &s.authority, none.clone()),
        (
            "ImportCertificateAuthorityCertificate",
            "/CertificateAuthorityArn",
            &s.pending,
            json!({ "Certificate": s.root }),
        ),
        ("IssueCertificate", "/CertificateAuthorityArn", &s.authority, issue.clone()),
        ("ListPermissions", "/CertificateAuthorityArn", &s.authority, none.clone()),
        ("ListTags", "/CertificateAuthorityArn", &s.authority, none.clone()),
        ("PutPolicy", "/ResourceArn", &s.authority, json!({ "Policy": share.to_string() })),
        ("RestoreCertificateAuthority", "/CertificateAuthorityArn", &s.deleted, none.clone()),
        ("RevokeCertificate", "/CertificateAuthorityArn", &s.authority, revoke.clone()),
        (
            "TagCertificateAuthority",
            "/CertificateAuthorityArn",
            &s.authority,
            json!({ "Tags": [{ "Key": "a", "Value": "b" }] }),
        ),
        (
            "UntagCertificateAuthority",
            "/CertificateAuthorityArn",
            &s.authority,
            json!({ "Tags": [{ "Key": "a" }] }),
        ),
        (
            "UpdateCertificateAuthority",
            "/CertificateAuthorityArn",
            &s.authority,
            json!({ "Status": "DISABLED" }),
        ),
    ];
    let mut all: Vec<_> = rows
        .iter()
        .map(|(operation, member, authority, more)| {
            authority_case(operation, member, authority, more)
        })
        .collect();
    // A report is being written: only a principal who may request one is told so.
    let report = |case: &&mut Case| case.operation == "CreateCertificateAuthorityAuditReport";
    all.iter_mut().filter(report).for_each(|case| case.fails = true);
    all.push(authority_case("GetPolicy", "/ResourceArn", &s.authority, &none));
    let of = json!({ "CertificateAuthorityArn": s.authority });
    for (operation, member, name, form, more) in [
        ("GetCertificate", "/CertificateArn", &s.issued, Form::Arn, none.clone()),
        ("RevokeCertificate", "/CertificateSerial", &s.serial, Form::Word, revoke),
        ("DescribeCertificateAuthorityAuditReport", "/AuditReportId", &s.report, Form::Word, none),
    ] {
        let case = authority_case(operation, member, &s.authority, &with(&of, more));
        all.push(Case { names: vec![(name.clone(), form)], ..case });
    }
    let case = authority_case("IssueCertificate", "/TemplateArn", &s.authority, &with(&of, issue));
    let deny = json!({
        "Action": "acm-pca:IssueCertificate", "Resource": s.authority,
        "Condition": { "StringEquals": { "acm-pca:TemplateArn": TEMPLATE } },
    });
    let names = vec![(TEMPLATE.to_owned(), Form::Arn), (foreign(TEMPLATE), Form::Arn)];
    all.push(Case { names, deny, ..case });
    all
}

fn acm_case(operation: &'static str, member: &'static str, arn: &str, more: &Value) -> Case {
    Case {
        service: &ACM,
        operation,
        member,
        body: pointer(more, member),
        names: vec![(arn.to_owned(), Form::Arn)],
        deny: json!({ "Action": format!("acm:{operation}"), "Resource": arn }),
        has_policy: false,
        names_others: false,
        fails: false,
    }
}

fn acm(s: &Scene) -> Vec<Case> {
    let none = json!({});
    let tags = json!({ "Tags": [{ "Key": "a", "Value": "b" }] });
    let rows: Vec<(&'static str, Value)> = vec![
        ("AddTagsToCertificate", tags.clone()),
        ("DeleteCertificate", none.clone()),
        ("DescribeCertificate", none.clone()),
        ("ExportCertificate", json!({ "Passphrase": b64(b"a passphrase") })),
        ("GetCertificate", none.clone()),
        ("ListCertificateDomainValidations", none.clone()),
        ("ListTagsForCertificate", none.clone()),
        ("RemoveTagsFromCertificate", tags.clone()),
        ("RenewCertificate", none.clone()),
        ("RevokeCertificate", json!({ "RevocationReason": "UNSPECIFIED" })),
        (
            "UpdateCertificateOptions",
            json!({
                "Options": { "CertificateTransparencyLoggingPreference": "DISABLED" },
            }),
        ),
    ];
    let mut all: Vec<_> = rows
        .iter()
        .map(|(operation, more)| acm_case(operation, "/CertificateArn", &s.certificate, more))
        .collect();
    // It is too early: only a principal who may renew is told so.
    let renewal = |case: &&mut Case| case.operation == "RenewCertificate";
    all.iter_mut().filter(renewal).for_each(|case| case.fails = true);
    let email = json!({ "Domain": "a.example", "ValidationDomain": "a.example" });
    let case = acm_case("ResendValidationEmail", "/CertificateArn", &s.certificate, &email);
    all.push(Case { fails: true, ..case });
    let pair = json!({ "Certificate": s.pair.0, "PrivateKey": s.pair.1 });
    all.push(acm_case("ImportCertificate", "/CertificateArn", &s.own_certificate, &pair));
    let request = json!({ "DomainName": "b.example", "KeyAlgorithm": "EC_prime256v1" });
    for deny in [
        json!({
            "Action": "acm:RequestCertificate", "Resource": "*",
            "Condition": { "StringEquals": { "acm:CertificateAuthority": s.authority } },
        }),
        json!({ "Action": "acm-pca:IssueCertificate", "Resource": s.authority }),
    ] {
        let case =
            acm_case("RequestCertificate", "/CertificateAuthorityArn", &s.authority, &request);
        all.push(Case { deny, has_policy: true, ..case });
    }
    for arn in [&s.certificate, &s.world.endpoint, &s.binding, &s.validation] {
        all.push(acm_case("ListTagsForResource", "/ResourceArn", arn, &none));
        all.push(acm_case("TagResource", "/ResourceArn", arn, &tags));
        all.push(acm_case("UntagResource", "/ResourceArn", arn, &json!({ "TagKeys": ["a"] })));
    }
    all
}

fn acme(s: &Scene) -> Vec<Case> {
    let none = json!({});
    let dns = json!({ "PrevalidationOptions": { "DnsPrevalidation": {
        "DomainScope": { "ExactDomain": "ENABLED" },
    } } });
    let endpoint = &s.world.endpoint;
    let account = json!({ "AccountUrl": s.account });
    let role = json!({ "RoleArn": s.world.role });
    let names: [(&'static str, &'static str, &String, Value); 18] = [
        (
            "CreateAcmeDomainValidation",
            "/AcmeEndpointArn",
            endpoint,
            with(&dns, json!({ "DomainName": "b.example" })),
        ),
        ("CreateAcmeExternalAccountBinding", "/AcmeEndpointArn", endpoint, role),
        ("DeleteAcmeDomainValidation", "/AcmeDomainValidationArn", &s.validation, none.clone()),
        ("DeleteAcmeEndpoint", "/AcmeEndpointArn", endpoint, none.clone()),
        (
            "DeleteAcmeExternalAccountBinding",
            "/AcmeExternalAccountBindingArn",
            &s.binding,
            none.clone(),
        ),
        ("DescribeAcmeAccount", "/AcmeEndpointArn", endpoint, account.clone()),
        ("DescribeAcmeDomainValidation", "/AcmeDomainValidationArn", &s.validation, none.clone()),
        ("DescribeAcmeEndpoint", "/AcmeEndpointArn", endpoint, none.clone()),
        (
            "DescribeAcmeExternalAccountBinding",
            "/AcmeExternalAccountBindingArn",
            &s.binding,
            none.clone(),
        ),
        (
            "GetAcmeExternalAccountBindingCredentials",
            "/AcmeExternalAccountBindingArn",
            &s.binding,
            none.clone(),
        ),
        ("ListAcmeAccounts", "/AcmeEndpointArn", endpoint, none.clone()),
        ("ListAcmeDomainValidations", "/AcmeEndpointArn", endpoint, none.clone()),
        ("ListAcmeExternalAccountBindings", "/AcmeEndpointArn", endpoint, none.clone()),
        ("RevokeAcmeAccount", "/AcmeEndpointArn", endpoint, account),
        ("RevokeAcmeExternalAccountBinding", "/AcmeExternalAccountBindingArn", &s.binding, none),
        ("UpdateAcmeDomainValidation", "/AcmeDomainValidationArn", &s.validation, dns),
        ("UpdateAcmeEndpoint", "/AcmeEndpointArn", endpoint, json!({ "Contact": "REQUIRED" })),
        (
            "UpdateAcmeEndpoint",
            "/AcmeEndpointArn",
            endpoint,
            json!({ "AuthorizationBehavior": "PRE_APPROVED" }),
        ),
    ];
    let mut all: Vec<_> = names
        .iter()
        .map(|(operation, member, arn, more)| acm_case(operation, member, arn, more))
        .collect();
    for operation in ["DescribeAcmeAccount", "RevokeAcmeAccount"] {
        let of = json!({ "AcmeEndpointArn": endpoint });
        let case = acm_case(operation, "/AccountUrl", endpoint, &of);
        all.push(Case { names: vec![(s.account.clone(), Form::Url)], ..case });
    }
    let of = json!({ "AcmeEndpointArn": endpoint });
    let case = acm_case("CreateAcmeExternalAccountBinding", "/RoleArn", &s.world.role, &of);
    let deny = json!({ "Action": "iam:PassRole", "Resource": s.world.role });
    let names = vec![(s.world.role.clone(), Form::Arn), (foreign(&s.world.role), Form::Arn)];
    all.push(Case { names, deny, ..case });
    let issuing = json!({ "Action": "acm-pca:IssueCertificate", "Resource": s.authority });
    let private = json!({ "CertificateAuthority": {
        "PrivateCertificateAuthority": { "CertificateAuthorityArn": null },
    } });
    let member = "/CertificateAuthority/PrivateCertificateAuthority/CertificateAuthorityArn";
    let behaviour = json!({ "AuthorizationBehavior": "CHALLENGE" });
    let tagged = json!({
        "CertificateAuthority": { "PublicCertificateAuthority": {} },
        "Tags": [{ "Key": "outlast:certificate-authority-arn", "Value": null }],
    });
    for (operation, member, more) in [
        ("CreateAcmeEndpoint", member, with(&behaviour, private.clone())),
        ("CreateAcmeEndpoint", "/Tags/0/Value", with(&behaviour, tagged)),
        ("UpdateAcmeEndpoint", member, with(&of, private)),
    ] {
        let case = acm_case(operation, member, &s.authority, &more);
        all.push(Case { deny: issuing.clone(), has_policy: true, ..case });
    }
    all
}
