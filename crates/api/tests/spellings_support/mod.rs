//! A resource of every kind that a member can name, and the table of those members.

mod outlast;
mod rolesanywhere;
pub mod spell;
pub mod table;
mod transfer;

use outlast_crypto::keys::KeySpec;
use outlast_crypto::signatures::Message;
use outlast_crypto::wrap::WrappingAlgorithm;
use outlast_pki::certificate::Content;
use outlast_pki::extensions::{basic_constraints, subject_alternative_names};
use outlast_pki::general_name::GeneralName;
use outlast_pki::object::{Kind, Object};
use outlast_pki::{name, pem};
use serde_json::{Value, json};

use crate::acme_support::world::{World, call};
use crate::acme_support::{Signer, request};
use crate::common::{ACCOUNT, Fixture, REGION, Who, allow, b64, key_policy, policy, text, unb64};
use crate::rolesanywhere_support::{self, Holder};

/// The template whose ARN is spelled.
pub const TEMPLATE: &str = "arn:aws:acm-pca:::template/EndEntityCertificate/V1";

/// A key under its four names.
#[derive(Clone)]
pub struct Key {
    pub id: String,
    pub arn: String,
    pub alias: String,
}

/// All resources of the test.
pub struct Scene {
    pub world: World,
    /// May do everything, unless a policy of hers denies it.
    pub eve: Who,
    /// May do everything that the policies of keys, CAs and roles allow, and all of them deny him.
    pub mallory: Who,
    pub symmetric: Key,
    pub signing: Key,
    /// A key that signs what Eve has approved, and a request to her: id and digest.
    pub approved: Key,
    pub request: (String, String),
    pub mac: Key,
    pub agreement: Key,
    pub kem: Key,
    pub empty: Key,
    pub imported: Key,
    pub disabled: Key,
    pub rotating: Key,
    pub leaving: Key,
    pub primary: Key,
    pub import: Value,
    pub reimport: Value,
    pub material: String,
    pub grant: Value,
    pub retirable: Value,
    pub ciphertext: String,
    pub signature: String,
    pub tag: String,
    pub peer: String,
    pub sealed: String,
    pub authority: String,
    pub pending: String,
    pub deleted: String,
    pub csr: String,
    pub issued: String,
    pub serial: String,
    pub root: String,
    pub report: String,
    pub certificate: String,
    pub own_certificate: String,
    pub pair: (String, String),
    pub binding: String,
    pub validation: String,
    pub account: String,
    pub assumable: String,
    /// A trust anchor, a profile, a CRL and a subject of Roles Anywhere.
    pub anchor: String,
    pub profile: String,
    pub crl: String,
    pub subject: String,
    /// What imports a CRL for that anchor.
    pub crl_data: String,
    pub secret: String,
    pub version: String,
    pub replicated: String,
    pub deleted_secret: String,
    /// An SFTP server.
    pub served: transfer::Served,
}

fn kms(fixture: &Fixture, operation: &str, body: Value) -> Value {
    fixture.kms(operation, body).unwrap()
}

fn mallory() -> String {
    format!("arn:aws:iam::{ACCOUNT}:user/mallory")
}

/// A key with an alias, whose policy denies Mallory everything.
fn key(fixture: &Fixture, body: Value, alias: &str) -> Key {
    let denied = json!([{
        "Effect": "Deny", "Principal": { "AWS": mallory() }, "Action": "kms:*", "Resource": "*",
    }]);
    let body = crate::common::with(&body, json!({ "Policy": key_policy(denied) }));
    let made = kms(fixture, "CreateKey", body);
    let id = text(&made["KeyMetadata"]["KeyId"]).to_owned();
    let alias = format!("alias/sweep/{alias}");
    kms(fixture, "CreateAlias", json!({ "AliasName": alias, "TargetKeyId": id }));
    Key { arn: text(&made["KeyMetadata"]["Arn"]).to_owned(), id, alias }
}

/// The body of an import of these bytes.
fn import(fixture: &Fixture, key: &Key, material: &[u8]) -> Value {
    let algorithm = "RSAES_OAEP_SHA_256";
    let body =
        json!({ "KeyId": key.id, "WrappingAlgorithm": algorithm, "WrappingKeySpec": "RSA_2048" });
    let made = kms(fixture, "GetParametersForImport", body);
    let wrapped = WrappingAlgorithm::by_name(algorithm)
        .unwrap()
        .wrap(&unb64(&made["PublicKey"]), material)
        .unwrap();
    json!({
        "ImportToken": made["ImportToken"], "EncryptedKeyMaterial": b64(&wrapped),
        "ExpirationModel": "KEY_MATERIAL_DOES_NOT_EXPIRE",
    })
}

/// A certificate that signs itself, and its key.
fn pair() -> (String, String) {
    let spec = KeySpec::by_name("ECC_NIST_P256").unwrap();
    let stored = spec.generate().unwrap();
    let key = spec.load(&stored).unwrap();
    let subject = name::common_name("own.example").unwrap();
    let names = [GeneralName::DnsName("own.example".into())];
    let row = spec.signing_algorithm("ECDSA_SHA_256").unwrap();
    let unsigned = Content {
        serial: outlast_crypto::random::bytes().unwrap(),
        issuer: subject.clone(),
        subject,
        public_key: key.public_key().unwrap().to_vec(),
        not_before: crate::common::NOW - 1000,
        not_after: crate::common::NOW + 10_000_000,
        extensions: vec![
            basic_constraints(false, None, false).unwrap(),
            subject_alternative_names(&names, false).unwrap(),
        ],
    }
    .prepare(row, key.public_key().unwrap())
    .unwrap();
    let signature = key.sign(row, Message::Raw(&unsigned.to_be_signed)).unwrap();
    let certificate = pem::certificate(&unsigned.assemble(&signature).unwrap());
    let der = spec.to_pkcs8(&stored).unwrap();
    let private = Object { kind: Kind::PrivateKey, der }.to_pem().unwrap();
    (b64(certificate.as_bytes()), b64(private.expose()))
}

impl Scene {
    #[allow(clippy::too_many_lines, reason = "one thing after the other")]
    pub fn new() -> Self {
        let world = World::new();
        let fixture = &world.fixture;
        let eve = fixture.user(ACCOUNT, "eve", &[allow(&["*"])]);
        let mallory = fixture.user(ACCOUNT, "mallory", &[allow(&["*"])]);
        let of = |spec: &str, usage: &str, alias: &str| {
            key(fixture, json!({ "KeySpec": spec, "KeyUsage": usage }), alias)
        };
        let symmetric = of("SYMMETRIC_DEFAULT", "ENCRYPT_DECRYPT", "symmetric");
        let signing = of("ECC_NIST_P256", "SIGN_VERIFY", "signing");
        let approved = of("ECC_NIST_P256", "SIGN_VERIFY", "approved");
        let waiting = outlast::request(fixture, &approved);
        let mac = of("HMAC_256", "GENERATE_VERIFY_MAC", "mac");
        let agreement = of("ECC_NIST_P256", "KEY_AGREEMENT", "agreement");
        let kem = of("ML_KEM_768", "ENCAPSULATE_DECAPSULATE", "kem");
        let external = json!({ "Origin": "EXTERNAL" });
        let empty = key(fixture, external.clone(), "empty");
        let imported = key(fixture, external, "imported");
        let disabled = key(fixture, json!({}), "disabled");
        let rotating = key(fixture, json!({}), "rotating");
        let leaving = key(fixture, json!({}), "leaving");
        let primary = key(fixture, json!({ "MultiRegion": true }), "primary");
        let replicate = json!({ "KeyId": primary.id, "ReplicaRegion": "us-east-1" });
        kms(fixture, "ReplicateKey", replicate);
        kms(fixture, "DisableKey", json!({ "KeyId": disabled.id }));
        kms(fixture, "EnableKeyRotation", json!({ "KeyId": rotating.id }));
        kms(fixture, "ScheduleKeyDeletion", json!({ "KeyId": leaving.id }));
        let with_id =
            |key: &Key, body: &Value| crate::common::with(body, json!({ "KeyId": key.id }));
        let first = import(fixture, &imported, &[7; 32]);
        let made = kms(fixture, "ImportKeyMaterial", with_id(&imported, &first));
        let material = text(&made["KeyMaterialId"]).to_owned();
        let reimport = import(fixture, &imported, &[7; 32]);
        let import = import(fixture, &empty, &[9; 32]);
        let grantee = format!("arn:aws:iam::{ACCOUNT}:user/eve");
        let grant = json!({
            "KeyId": symmetric.id, "GranteePrincipal": grantee, "Operations": ["Encrypt", "RetireGrant"],
        });
        let retirable = with_id(
            &symmetric,
            &json!({
                "GranteePrincipal": format!("arn:aws:iam::{ACCOUNT}:user/admin"), "RetiringPrincipal": grantee,
                "Operations": ["Encrypt"],
            }),
        );
        let grant = kms(fixture, "CreateGrant", grant);
        let retirable = kms(fixture, "CreateGrant", retirable);
        let ciphertext = fixture.encrypted(&symmetric.id, b"plaintext");
        let signed = json!({
            "KeyId": signing.id, "Message": b64(b"message"), "SigningAlgorithm": "ECDSA_SHA_256",
        });
        let signature = text(&kms(fixture, "Sign", signed)["Signature"]).to_owned();
        let made =
            json!({ "KeyId": mac.id, "Message": b64(b"message"), "MacAlgorithm": "HMAC_SHA_256" });
        let tag = text(&kms(fixture, "GenerateMac", made)["Mac"]).to_owned();
        let peer = kms(fixture, "GetPublicKey", json!({ "KeyId": agreement.id }));
        let peer = text(&peer["PublicKey"]).to_owned();
        let sealed = json!({ "KeyId": kem.id, "EncapsulationAlgorithm": "ML_KEM" });
        let sealed = kms(fixture, "Encapsulate", sealed);
        let sealed = text(&sealed["SharedSecretCiphertextBlob"]).to_owned();

        let pca = |operation: &str, body: Value| {
            call(fixture, &Who::admin(), "acm-pca", operation, &body).unwrap()
        };
        let authority = world.authority.clone();
        let new_root = || {
            let made = pca(
                "CreateCertificateAuthority",
                json!({
                    "CertificateAuthorityConfiguration": {
                        "KeyAlgorithm": "EC_prime256v1", "SigningAlgorithm": "SHA256WITHECDSA",
                        "Subject": { "CommonName": "Another" },
                    },
                    "CertificateAuthorityType": "ROOT",
                }),
            );
            text(&made["CertificateAuthorityArn"]).to_owned()
        };
        let (pending, deleted) = (new_root(), new_root());
        for arn in [&authority, &pending, &deleted] {
            let denied = policy(json!([{
                "Effect": "Deny", "Principal": { "AWS": self::mallory() }, "Action": "acm-pca:*", "Resource": arn,
            }]));
            pca("PutPolicy", json!({ "ResourceArn": arn, "Policy": denied.to_string() }));
        }
        let csr = pca("GetCertificateAuthorityCsr", json!({ "CertificateAuthorityArn": pending }));
        let issued = pca(
            "IssueCertificate",
            json!({
                "CertificateAuthorityArn": pending, "Csr": b64(text(&csr["Csr"]).as_bytes()),
                "SigningAlgorithm": "SHA256WITHECDSA", "Validity": { "Type": "YEARS", "Value": 5 },
                "TemplateArn": "arn:aws:acm-pca:::template/RootCACertificate/V1",
            }),
        );
        let root = pca(
            "GetCertificate",
            json!({
                "CertificateAuthorityArn": pending, "CertificateArn": issued["CertificateArn"],
            }),
        );
        let root = b64(text(&root["Certificate"]).as_bytes());
        pca("DeleteCertificateAuthority", json!({ "CertificateAuthorityArn": deleted }));
        let leaf = request(&Signer::new("ES256"), &["a.example"], None);
        let csr = b64(pem::certificate_request(&leaf).as_bytes());
        let issued = pca(
            "IssueCertificate",
            json!({
                "CertificateAuthorityArn": authority, "Csr": csr, "SigningAlgorithm": "SHA256WITHECDSA",
                "Validity": { "Type": "DAYS", "Value": 5 },
            }),
        );
        let issued = text(&issued["CertificateArn"]).to_owned();
        let serial = issued.rsplit('/').next().unwrap().to_owned();
        let report = pca(
            "CreateCertificateAuthorityAuditReport",
            json!({
                "CertificateAuthorityArn": authority, "S3BucketName": "bucket", "AuditReportResponseFormat": "JSON",
            }),
        );
        let report = text(&report["AuditReportId"]).to_owned();
        pca(
            "CreatePermission",
            json!({
                "CertificateAuthorityArn": authority, "Principal": "acm.amazonaws.com",
                "Actions": ["IssueCertificate", "GetCertificate", "ListPermissions"],
            }),
        );

        let requested = world.acm("RequestCertificate", json!({
            "DomainName": "a.example", "CertificateAuthorityArn": authority, "KeyAlgorithm": "EC_prime256v1",
            "Tags": [{ "Key": "team", "Value": "x" }],
        }));
        let certificate = text(&requested["CertificateArn"]).to_owned();
        let pair = pair();
        let own =
            world.acm("ImportCertificate", json!({ "Certificate": pair.0, "PrivateKey": pair.1 }));
        let own_certificate = text(&own["CertificateArn"]).to_owned();
        let (binding, _) = world.binding(json!({}));
        let made = world.acm("CreateAcmeDomainValidation", json!({
            "AcmeEndpointArn": world.endpoint, "DomainName": "a.example",
            "PrevalidationOptions": { "DnsPrevalidation": { "DomainScope": { "ExactDomain": "ENABLED" } } },
        }));
        let validation = text(&made["AcmeDomainValidationArn"]).to_owned();
        let account = world.account("ES256").url;
        let trust = policy(json!([
            { "Effect": "Allow", "Principal": { "AWS": ACCOUNT }, "Action": "sts:AssumeRole" },
            { "Effect": "Deny", "Principal": { "AWS": self::mallory() }, "Action": "sts:AssumeRole" },
        ]));
        let assumable = fixture.role(ACCOUNT, "assumable", &trust, &[]);
        let denied = policy(json!([{
            "Effect": "Deny", "Principal": { "AWS": self::mallory() }, "Action": "secretsmanager:*", "Resource": "*",
        }]));
        let [secret, replicated, deleted_secret] = ["plain", "replicated", "deleted"].map(|name| {
            let arn = fixture.secret(&format!("sweep/{name}"), "a value");
            let put = json!({ "SecretId": arn, "ResourcePolicy": denied.to_string() });
            fixture.secrets("PutResourcePolicy", put).unwrap();
            arn
        });
        let listed =
            fixture.secrets("ListSecretVersionIds", json!({ "SecretId": secret })).unwrap();
        let version = text(&listed["Versions"][0]["VersionId"]).to_owned();
        let regions =
            json!({ "SecretId": replicated, "AddReplicaRegions": [{ "Region": "us-east-1" }] });
        fixture.secrets("ReplicateSecretToRegions", regions).unwrap();
        fixture.secrets("DeleteSecret", json!({ "SecretId": deleted_secret })).unwrap();
        let root_of = Holder::root("ECC_NIST_P256", "CN=Root");
        let anchor = rolesanywhere_support::anchor(fixture, &root_of.pem());
        let trust = rolesanywhere_support::trust(&json!({}));
        let workload = fixture.role(ACCOUNT, "workload", &trust, &[]);
        let named = json!({ "aliasName": "sweep/profile" });
        let profile = rolesanywhere_support::profile(fixture, &[&workload], named);
        let crl_data = b64(&root_of.crl(&[], crate::common::NOW));
        let import_crl = json!({ "name": "c", "trustAnchorArn": anchor, "crlData": crl_data });
        let crl =
            text(&fixture.ra("ImportCrl", import_crl.clone()).unwrap()["crl"]["crlArn"]).to_owned();
        let leaf = root_of.issue("ECC_NIST_P256", rolesanywhere_support::workload("CN=alice"));
        let asked = json!({ "trustAnchorArn": anchor, "profileArn": profile, "roleArn": workload });
        let signed = rolesanywhere_support::Signing::new(&leaf, &asked, fixture.now.get()).sign();
        let begun = rolesanywhere_support::answered(fixture, &signed).unwrap();
        let subject = text(&begun["subjectArn"]).to_owned();
        let served = transfer::Served::new(fixture);
        Self {
            secret,
            version,
            replicated,
            deleted_secret,
            served,
            anchor,
            profile,
            crl,
            subject,
            crl_data,
            symmetric,
            signing,
            approved,
            request: waiting,
            mac,
            agreement,
            kem,
            empty,
            imported,
            disabled,
            rotating,
            leaving,
            primary,
            import,
            reimport,
            material,
            grant,
            retirable,
            ciphertext,
            signature,
            tag,
            peer,
            sealed,
            authority,
            pending,
            deleted,
            csr,
            issued,
            serial,
            root,
            report,
            certificate,
            own_certificate,
            pair,
            binding,
            validation,
            account,
            assumable,
            eve,
            mallory,
            world,
        }
    }

    /// A key as the resource of its approvals.
    pub fn approval_arn(key: &Key) -> String {
        format!("arn:aws:outlast:{REGION}:{ACCOUNT}:key/{}", key.id)
    }

    /// The ARN of an alias.
    pub fn alias_arn(alias: &str) -> String {
        format!("arn:aws:kms:{REGION}:{ACCOUNT}:{alias}")
    }
}
