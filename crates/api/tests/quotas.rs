//! Quotas of an account: every row of `outlast_domain::quotas::QUOTAS` is enforced, with AWS's name for the refusal,
//! can be raised by the operator, and holds when many calls come at a time.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::type_complexity,
    reason = "a test may fail and print"
)]

#[path = "quotas/connectors.rs"]
mod connectors;
mod workflows;

use crate::approvals_support::{file, rule, user_arn};
use crate::certificates;
use crate::common;
use crate::rolesanywhere_support;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use certificates::{acm, certify, pca};
use common::authorities::{leaf_body, leaf_request, self_signed};
use common::{
    ACCESS_KEY, ACCOUNT, Answer, Fixture, NOW, OTHER_ACCOUNT, REGION, Refused, SECRET, Shared, Who,
    b64, client, policy, text, with,
};
use http::{HeaderMap, Method};
use outlast_api::service::{Request, Service};
use outlast_api::wire::sigv4::{self, Credentials, Target};
use outlast_crypto::Secret;
use outlast_domain::quotas::{QUOTAS, Quotas};
use outlast_domain::seal::{RootKey, SoftwareKek};
use outlast_domain::{audit, identity, quotas};
use outlast_store::Store;
use outlast_store::faulty::FaultyStore;
use outlast_store::memory::MemoryStore;
use outlast_store::postgres::PostgresStore;
use outlast_store::sqlite::SqliteStore;
use outlast_store::testing::Postgres;
use rolesanywhere_support::{Holder, anchor};
use serde_json::{Value, json};

const DAY: i64 = 86_400;
const EC: (&str, &str) = ("EC_prime256v1", "SHA256WITHECDSA");

/// A server on the store, always with the same root key.
fn service(store: Arc<dyn Store>, limits: &[(&str, u64)]) -> Service {
    let kek = SoftwareKek::from_key(Secret::new(vec![7; 32])).unwrap();
    let service = Service::new(store, RootKey::new(Box::new(kek)));
    let mut quotas = Quotas::default();
    assert!(limits.iter().all(|(name, most)| quotas.set(name, *most)), "{limits:?}");
    service.set_quotas(quotas);
    service
}

/// Administrators of two accounts, and an audit log.
fn establish(service: &Service) {
    let mut work = service.work(NOW * 1000);
    audit::establish(&mut work, "log.example/quotas").unwrap();
    for (account, id) in [(ACCOUNT, ACCESS_KEY), (OTHER_ACCOUNT, "AKIAOTHER")] {
        let secret = Secret::new(SECRET.to_vec());
        identity::create_administrator(&mut work, account, "admin", Some(id.into()), &secret)
            .unwrap();
    }
    service.store().commit_and_wait(work.into_first_transaction()).unwrap();
}

/// A server on a store in memory.
fn on(store: &Arc<FaultyStore<MemoryStore>>, limits: &[(&str, u64)], now: i64) -> Fixture {
    Fixture {
        service: service(Arc::new(Shared(store.clone())), limits),
        store: store.clone(),
        client: client(ACCESS_KEY, REGION),
        now: std::cell::Cell::new(now),
    }
}

fn new(limits: &[(&str, u64)]) -> Fixture {
    let store = Arc::new(FaultyStore::new(MemoryStore::new()));
    let fixture = on(&store, limits, NOW);
    establish(&fixture.service);
    fixture
}

/// A role that anybody of the account may assume.
fn role(fixture: &Fixture, account: &str, name: &str) -> String {
    let trust = policy(json!([{
        "Effect": "Allow", "Principal": { "AWS": account }, "Action": "sts:AssumeRole",
    }]));
    fixture.role(account, name, &trust, &[])
}

/// A session of a role, or the refusal.
fn assumed(fixture: &Fixture, who: &Who, role: &str) -> Answer {
    let form = [("Action", "AssumeRole"), ("RoleArn", role), ("RoleSessionName", "session")];
    let response = fixture.sts_as(who, &form);
    let xml = String::from_utf8(response.body).unwrap();
    match response.status {
        200 => Ok(json!({})),
        status => Err(Refused {
            code: common::element(&xml, "Code"),
            message: common::element(&xml, "Message"),
            status,
        }),
    }
}

fn new_authority() -> Value {
    json!({
        "CertificateAuthorityConfiguration": {
            "KeyAlgorithm": EC.0, "SigningAlgorithm": EC.1, "Subject": { "CommonName": "Root" },
        },
        "CertificateAuthorityType": "ROOT",
    })
}

fn import(fixture: &Fixture) -> Answer {
    let (certificate, key) = self_signed("imported.example", NOW + 30 * DAY);
    let body =
        json!({ "Certificate": b64(certificate.as_bytes()), "PrivateKey": b64(key.as_bytes()) });
    acm(fixture, "ImportCertificate", &body)
}

/// What a quota limits: each call makes one more, of the same owner or of a neighbour; and the first can be deleted
/// where the API allows it.
struct Thing {
    refusal: &'static str,
    make: Box<dyn Fn(&Fixture, usize) -> Answer>,
    neighbour: Box<dyn Fn(&Fixture) -> Answer>,
    /// Deletes what was made first.
    remove: Option<Box<dyn Fn(&Fixture, &Value)>>,
}

fn kms_keys(_: &Fixture) -> Thing {
    Thing {
        refusal: "LimitExceededException",
        // Some are replicas of keys in another Region; one of those is refused.
        make: Box::new(|fixture, number| match number {
            0 | 1 | 3 | 5.. => fixture.kms("CreateKey", json!({})),
            _ => {
                let there = Who::admin().at("us-east-1");
                let primary =
                    fixture.kms_as(&there, "CreateKey", json!({ "MultiRegion": true }))?;
                let id = primary["KeyMetadata"]["KeyId"].clone();
                let replica = json!({ "KeyId": id, "ReplicaRegion": REGION });
                fixture.kms_as(&there, "ReplicateKey", replica)
            }
        }),
        neighbour: Box::new(|fixture| {
            fixture.kms_as(&Who::admin().at("us-west-2"), "CreateKey", json!({}))?;
            fixture.kms_as(&Who::stranger(), "CreateKey", json!({}))
        }),
        remove: Some(Box::new(|fixture, made| {
            let id = &made["KeyMetadata"]["KeyId"];
            let body = json!({ "KeyId": id, "PendingWindowInDays": 7 });
            fixture.kms("ScheduleKeyDeletion", body).unwrap();
            // It counts as long as it exists.
            assert_eq!(common::code(fixture.kms("CreateKey", json!({}))), "LimitExceededException");
            fixture.advance(8 * DAY);
            fixture.run_housekeeping();
        })),
    }
}

fn aliases(fixture: &Fixture) -> Thing {
    let (key, other) = (fixture.key(json!({})), fixture.key(json!({})));
    let alias = |name: String, key: &str| json!({ "AliasName": name, "TargetKeyId": key });
    Thing {
        refusal: "LimitExceededException",
        make: Box::new(move |fixture, number| {
            fixture.kms("CreateAlias", alias(format!("alias/a{number}"), &key))
        }),
        neighbour: Box::new(move |fixture| {
            fixture.kms("CreateAlias", alias("alias/other".into(), &other))
        }),
        remove: Some(Box::new(|fixture, _| {
            fixture.kms("DeleteAlias", json!({ "AliasName": "alias/a0" })).unwrap();
        })),
    }
}

fn grants(fixture: &Fixture) -> Thing {
    let (key, other) = (fixture.key(json!({})), fixture.key(json!({})));
    let grant = |key: &str, number: usize| {
        json!({
            "KeyId": key, "GranteePrincipal": format!("arn:aws:iam::{ACCOUNT}:user/admin"),
            "Operations": ["Encrypt"], "Name": format!("n{number}"),
        })
    };
    let revoked = key.clone();
    Thing {
        refusal: "LimitExceededException",
        make: Box::new(move |fixture, number| fixture.kms("CreateGrant", grant(&key, number))),
        neighbour: Box::new(move |fixture| fixture.kms("CreateGrant", grant(&other, 0))),
        remove: Some(Box::new(move |fixture, made| {
            let body = json!({ "KeyId": revoked, "GrantId": made["GrantId"] });
            fixture.kms("RevokeGrant", body).unwrap();
        })),
    }
}

fn authorities(_: &Fixture) -> Thing {
    Thing {
        refusal: "LimitExceededException",
        make: Box::new(|fixture, _| pca(fixture, "CreateCertificateAuthority", &new_authority())),
        neighbour: Box::new(|fixture| {
            fixture.pca_as(
                &Who::admin().at("us-west-2"),
                "CreateCertificateAuthority",
                new_authority(),
            )?;
            fixture.pca_as(&Who::stranger(), "CreateCertificateAuthority", new_authority())
        }),
        remove: Some(Box::new(|fixture, made| {
            let body = with(made, json!({ "PermanentDeletionTimeInDays": 7 }));
            pca(fixture, "DeleteCertificateAuthority", &body).unwrap();
            // A CA that can still be restored counts.
            let another = pca(fixture, "CreateCertificateAuthority", &new_authority());
            assert_eq!(common::code(another), "LimitExceededException");
            fixture.advance(8 * DAY);
            fixture.run_housekeeping();
        })),
    }
}

fn certificates_of_a_ca(fixture: &Fixture) -> Thing {
    let made = |name: &str| {
        let body = pca(fixture, "CreateCertificateAuthority", &new_authority()).unwrap();
        let arn = text(&body["CertificateAuthorityArn"]).to_owned();
        certify(fixture, &arn, EC.1, 365);
        (arn, leaf_request("ECC_NIST_P256", name).1)
    };
    let ((arn, csr), (other, other_csr)) = (made("a"), made("b"));
    let body = |arn: &str, csr: &[u8]| leaf_body(arn, csr, EC.1, "EndEntityCertificate");
    Thing {
        refusal: "LimitExceededException",
        make: Box::new(move |fixture, number| match number {
            // Its own certificate is the first.
            0 => Ok(json!({})),
            1..3 => pca(fixture, "IssueCertificate", &body(&arn, &csr)),
            3 => {
                // By Certificate Manager as well.
                let request = json!({ "DomainName": "a.example", "CertificateAuthorityArn": arn });
                let answer = acm(fixture, "RequestCertificate", &request);
                if let Err(refused) = &answer {
                    let text = refused.message.as_str();
                    assert_eq!(refused.code, "LimitExceededException", "{text}");
                    assert!(text.starts_with("PCA_LIMIT_EXCEEDED"), "{text}");
                }
                answer
            }
            _ => pca(fixture, "IssueCertificate", &body(&arn, &csr)),
        }),
        neighbour: Box::new(move |fixture| {
            pca(fixture, "IssueCertificate", &body(&other, &other_csr))
        }),
        remove: None,
    }
}

fn imported(_: &Fixture) -> Thing {
    Thing {
        refusal: "LimitExceededException",
        make: Box::new(|fixture, number| {
            let made = import(fixture)?;
            if number == 0 {
                // A replacement does not count as another one.
                let (certificate, key) = self_signed("imported.example", NOW + 60 * DAY);
                let body = json!({
                    "CertificateArn": made["CertificateArn"],
                    "Certificate": b64(certificate.as_bytes()), "PrivateKey": b64(key.as_bytes()),
                });
                acm(fixture, "ImportCertificate", &body).unwrap();
            }
            Ok(made)
        }),
        neighbour: Box::new(|fixture| {
            let ca = certificates::ca(fixture);
            let request = json!({ "DomainName": "a.example", "CertificateAuthorityArn": ca });
            acm(fixture, "RequestCertificate", &request)
        }),
        remove: Some(Box::new(|fixture, made| {
            acm(fixture, "DeleteCertificate", made).unwrap();
        })),
    }
}

fn secrets(_: &Fixture) -> Thing {
    let create = |who: &Who, fixture: &Fixture, name: &str| {
        fixture.secrets_as(who, "CreateSecret", &json!({ "Name": name, "SecretString": "x" }))
    };
    Thing {
        refusal: "LimitExceededException",
        make: Box::new(move |fixture, number| {
            create(&Who::admin(), fixture, &format!("s{number}"))
        }),
        neighbour: Box::new(move |fixture| create(&Who::stranger(), fixture, "theirs")),
        remove: Some(Box::new(|fixture, made| {
            let body = json!({ "SecretId": made["ARN"], "ForceDeleteWithoutRecovery": true });
            fixture.secrets("DeleteSecret", body).unwrap();
        })),
    }
}

fn sessions(fixture: &Fixture) -> Thing {
    let (one, two) = (role(fixture, ACCOUNT, "one"), role(fixture, ACCOUNT, "two"));
    let theirs = role(fixture, OTHER_ACCOUNT, "theirs");
    Thing {
        refusal: "Throttling",
        make: Box::new(move |fixture, number| {
            assumed(fixture, &Who::admin(), if number % 2 == 0 { &one } else { &two })
        }),
        neighbour: Box::new(move |fixture| assumed(fixture, &Who::stranger(), &theirs)),
        remove: Some(Box::new(|fixture, _| {
            fixture.advance(2 * 3600);
            fixture.run_housekeeping();
        })),
    }
}

fn trust_anchors(_: &Fixture) -> Thing {
    let root = Holder::root("ECC_NIST_P256", "CN=Root");
    let new = json!({
        "name": "a",
        "source": {
            "sourceType": "CERTIFICATE_BUNDLE", "sourceData": { "x509CertificateData": root.pem() },
        },
    });
    let neighbour = new.clone();
    Thing {
        refusal: "ValidationException",
        make: Box::new(move |fixture, _| fixture.ra("CreateTrustAnchor", new.clone())),
        neighbour: Box::new(move |fixture| {
            let there = Who::admin().at("us-west-2");
            fixture.ra_as(&there, "CreateTrustAnchor", neighbour.clone())?;
            fixture.ra_as(&Who::stranger(), "CreateTrustAnchor", neighbour.clone())
        }),
        remove: Some(Box::new(|fixture, made| {
            let of = json!({ "trustAnchorId": made["trustAnchor"]["trustAnchorId"] });
            fixture.ra("DeleteTrustAnchor", of).unwrap();
        })),
    }
}

fn profiles(_: &Fixture) -> Thing {
    let new = || json!({ "name": "p", "roleArns": [] });
    Thing {
        refusal: "ValidationException",
        make: Box::new(move |fixture, _| fixture.ra("CreateProfile", new())),
        neighbour: Box::new(move |fixture| {
            fixture.ra_as(&Who::admin().at("us-west-2"), "CreateProfile", new())?;
            fixture.ra_as(&Who::stranger(), "CreateProfile", new())
        }),
        remove: Some(Box::new(|fixture, made| {
            let of = json!({ "profileId": made["profile"]["profileId"] });
            fixture.ra("DeleteProfile", of).unwrap();
        })),
    }
}

fn crls(fixture: &Fixture) -> Thing {
    let root = Holder::root("ECC_NIST_P256", "CN=Root");
    let crl = b64(&root.crl(&[], NOW));
    let new = move |anchor: &str| json!({ "name": "c", "trustAnchorArn": anchor, "crlData": crl });
    let (one, two) = (anchor(fixture, &root.pem()), anchor(fixture, &root.pem()));
    let (first, second) = (new(&one), new(&two));
    Thing {
        refusal: "ValidationException",
        make: Box::new(move |fixture, _| fixture.ra("ImportCrl", first.clone())),
        neighbour: Box::new(move |fixture| fixture.ra("ImportCrl", second.clone())),
        remove: Some(Box::new(|fixture, made| {
            fixture.ra("DeleteCrl", json!({ "crlId": made["crl"]["crlId"] })).unwrap();
        })),
    }
}

fn subjects(fixture: &Fixture) -> Thing {
    let root = std::rc::Rc::new(Holder::root("ECC_NIST_P256", "CN=Root"));
    let trust = rolesanywhere_support::trust(&json!({}));
    let body = |fixture: &Fixture, who: &Who, account: &str| {
        let role = fixture.role(account, "workload", &trust, &[]);
        let new = json!({
            "name": "a", "enabled": true,
            "source": {
                "sourceType": "CERTIFICATE_BUNDLE", "sourceData": { "x509CertificateData": root.pem() },
            },
        });
        let anchor = fixture.ra_as(who, "CreateTrustAnchor", new).unwrap();
        let new = json!({ "name": "p", "enabled": true, "roleArns": [role] });
        let profile = fixture.ra_as(who, "CreateProfile", new).unwrap();
        json!({
            "trustAnchorArn": anchor["trustAnchor"]["trustAnchorArn"],
            "profileArn": profile["profile"]["profileArn"], "roleArn": role,
        })
    };
    let mine = body(fixture, &Who::admin(), ACCOUNT);
    let theirs = body(fixture, &Who::stranger(), OTHER_ACCOUNT);
    let other = root.clone();
    let session = |fixture: &Fixture, root: &Holder, body: &Value, subject: &str| {
        let leaf = root.issue("ECC_NIST_P256", rolesanywhere_support::workload(subject));
        let signed = rolesanywhere_support::Signing::new(&leaf, body, fixture.now.get()).sign();
        rolesanywhere_support::answered(fixture, &signed)
    };
    Thing {
        refusal: "ValidationException",
        make: Box::new(move |fixture, number| {
            // One that is known already does not count again.
            if number > 0 {
                session(fixture, &root, &mine, "CN=s0")?;
            }
            session(fixture, &root, &mine, &format!("CN=s{number}"))
        }),
        neighbour: Box::new(move |fixture| session(fixture, &other, &theirs, "CN=x")),
        remove: None,
    }
}

fn signing_requests(fixture: &Fixture) -> Thing {
    let there = Who::admin().at("us-west-2");
    let spec = json!({ "KeySpec": "ECC_NIST_P256", "KeyUsage": "SIGN_VERIFY" });
    let made = fixture.kms_as(&there, "CreateKey", spec.clone()).unwrap();
    let (key, other) = (fixture.key(spec), made["KeyMetadata"]["KeyId"].clone());
    let rule = rule(1, &[user_arn("admin")]);
    for (who, key) in [(&Who::admin(), &json!(key)), (&there, &other)] {
        let body = json!({ "KeyId": key, "Rule": rule });
        fixture.outlast_as(who, "PutSigningApprovalRule", &body).unwrap();
    }
    let body = |key: &Value, number: usize| {
        let file = file("a", format!("text {number}").as_bytes(), "ECDSA_SHA_256");
        json!({ "KeyId": key, "Files": [file] })
    };
    let key = Value::from(key);
    Thing {
        refusal: "LimitExceededException",
        make: Box::new(move |fixture, number| {
            fixture.outlast("RequestSigningApproval", &body(&key, number))
        }),
        neighbour: Box::new(move |fixture| {
            fixture.outlast_as(&there, "RequestSigningApproval", &body(&other, 0))
        }),
        remove: None,
    }
}

fn servers(_: &Fixture) -> Thing {
    Thing {
        refusal: "InvalidRequestException",
        make: Box::new(|fixture, _| fixture.transfer("CreateServer", json!({}))),
        neighbour: Box::new(|fixture| {
            let there = Who::admin().at("us-west-2");
            fixture.transfer_as(&there, "CreateServer", &json!({}))?;
            fixture.transfer_as(&Who::stranger(), "CreateServer", &json!({}))
        }),
        remove: Some(Box::new(|fixture, made| {
            fixture.transfer("DeleteServer", made.clone()).unwrap();
        })),
    }
}

fn users_of_a_server(fixture: &Fixture) -> Thing {
    let role = crate::transfer_support::role(fixture, "users");
    let (one, two) = (fixture.server(json!({})), fixture.server(json!({})));
    let new = move |server: &str, name: String| json!({ "ServerId": server, "UserName": name, "Role": role });
    let first = new.clone();
    Thing {
        refusal: "InvalidRequestException",
        make: Box::new(move |fixture, number| {
            fixture.transfer("CreateUser", first(&one, format!("user{number}")))
        }),
        neighbour: Box::new(move |fixture| {
            fixture.transfer("CreateUser", new(&two, "user0".into()))
        }),
        remove: Some(Box::new(|fixture, made| {
            fixture.transfer("DeleteUser", made.clone()).unwrap();
        })),
    }
}

/// A new host key.
fn host_key() -> String {
    let key = outlast_ssh::PrivateKey::generate(outlast_ssh::KeyKind::Ed25519).unwrap();
    String::from_utf8(key.to_openssh_pem("").unwrap().expose().to_vec()).unwrap()
}

fn host_keys_of_a_server(fixture: &Fixture) -> Thing {
    let new = |host_key: String| json!({ "HostKey": host_key });
    let (one, two) = (fixture.server(new(host_key())), fixture.server(new(host_key())));
    let import = |server: &str| json!({ "ServerId": server, "HostKeyBody": host_key() });
    Thing {
        refusal: "InvalidRequestException",
        make: Box::new(move |fixture, number| match number {
            // The server has been made with the first.
            0 => Ok(json!({})),
            _ => fixture.transfer("ImportHostKey", import(&one)),
        }),
        neighbour: Box::new(move |fixture| fixture.transfer("ImportHostKey", import(&two))),
        remove: None,
    }
}

fn ssh_keys_of_a_user(fixture: &Fixture) -> Thing {
    let role = crate::transfer_support::role(fixture, "users");
    let server = fixture.server(json!({}));
    for name in ["one", "two"] {
        fixture.sftp_user(&server, name, &role, json!({ "SshPublicKeyBody": "" }));
    }
    let body = move |name: &str, number: usize| {
        let line = crate::transfer_support::key(u8::try_from(number + 1).unwrap());
        json!({ "ServerId": server, "UserName": name, "SshPublicKeyBody": line })
    };
    let first = body.clone();
    Thing {
        refusal: "InvalidRequestException",
        make: Box::new(move |fixture, number| {
            fixture.transfer("ImportSshPublicKey", first("one", number))
        }),
        neighbour: Box::new(move |fixture| fixture.transfer("ImportSshPublicKey", body("two", 0))),
        // They are no records of their own.
        remove: None,
    }
}

#[test]
fn every_quota_is_held_and_raised() {
    const MOST: usize = 3;
    for quota in QUOTAS {
        let name = quota.name;
        let fixture = new(&[(name, MOST as u64)]);
        let thing = match name {
            "kms_keys" => kms_keys(&fixture),
            "aliases_per_kms_key" => aliases(&fixture),
            "grants_per_kms_key" => grants(&fixture),
            "private_cas" => authorities(&fixture),
            "certificates_per_private_ca" => certificates_of_a_ca(&fixture),
            "imported_certificates" => imported(&fixture),
            "secrets" => secrets(&fixture),
            "sessions" => sessions(&fixture),
            "trust_anchors" => trust_anchors(&fixture),
            "profiles" => profiles(&fixture),
            "crls_per_trust_anchor" => crls(&fixture),
            "subjects" => subjects(&fixture),
            "signing_requests" => signing_requests(&fixture),
            "transfer_servers" => servers(&fixture),
            "users_per_server" => users_of_a_server(&fixture),
            "host_keys_per_server" => host_keys_of_a_server(&fixture),
            "ssh_keys_per_user" => ssh_keys_of_a_user(&fixture),
            "workflows" => workflows::workflows(&fixture),
            "connectors" => connectors::connectors(&fixture),
            "jobs_per_connector" => connectors::jobs_of_a_connector(&fixture),
            "connector_jobs" => connectors::connector_jobs(&fixture),
            name => panic!("the quota {name} has no test"),
        };
        let made: Vec<Value> = (0..MOST)
            .map(|number| {
                (thing.make)(&fixture, number).unwrap_or_else(|e| panic!("{name}: {e:?}"))
            })
            .collect();
        let record_keys = || -> Vec<String> {
            let records = fixture.store.scan("", "", 100_000).unwrap();
            records.into_iter().map(|(record_key, _)| record_key).collect()
        };
        let before = fixture.store.scan(quota.kind, "", 1000).unwrap().len();
        let refused = (thing.make)(&fixture, MOST).unwrap_err();
        assert_eq!((refused.code.as_str(), refused.status), (thing.refusal, 400), "{name}");
        assert!(refused.message.contains(&format!("{MOST} {}", quota.what)), "{}", refused.message);
        assert!(refused.message.contains(name), "{}", refused.message);
        // The refusal is in the audit log, and nothing was made.
        let last = fixture.events().pop().unwrap();
        assert_eq!(last["errorCode"], thing.refusal, "{name}: {last}");
        if name != "kms_keys" {
            assert_eq!(fixture.store.scan(quota.kind, "", 1000).unwrap().len(), before, "{name}");
        }
        // A neighbour is not affected.
        (thing.neighbour)(&fixture).unwrap_or_else(|e| panic!("{name}: {e:?}"));
        // With a higher quota, after a restart of the server.
        let raised = on(&fixture.store, &[(name, MOST as u64 + 1)], fixture.now.get());
        (thing.make)(&raised, MOST).unwrap_or_else(|e| panic!("{name}: {e:?}"));
        assert_eq!(common::code((thing.make)(&raised, MOST + 1)), thing.refusal, "{name}");
        // And with a quota below the present number.
        let lowered = on(&fixture.store, &[(name, 1)], fixture.now.get());
        assert_eq!(common::code((thing.make)(&lowered, MOST + 2)), thing.refusal, "{name}");
        let Some(remove) = &thing.remove else { continue };
        let count = record_keys().len();
        remove(&raised, &made[0]);
        assert!(record_keys().len() < count, "{name}: nothing went");
        (thing.make)(&raised, MOST + 3).unwrap_or_else(|e| panic!("{name}: {e:?}"));
    }
}

#[test]
fn what_is_there_is_listed_by_whose_it_is() {
    let fixture = new(&[]);
    for _ in 0..3 {
        fixture.key(json!({}));
    }
    fixture.kms_as(&Who::admin().at("us-east-1"), "CreateKey", json!({})).unwrap();
    let ca = certificates::ca(&fixture);
    let role = role(&fixture, OTHER_ACCOUNT, "theirs");
    assumed(&fixture, &Who::stranger(), &role).unwrap();
    let found = quotas::used(&*fixture.store).unwrap();
    let found: Vec<_> =
        found.iter().map(|used| (used.limit, used.of.as_str(), used.used)).collect();
    let expected = [
        ("kms_keys", "account 123456789012 in eu-west-1", 3),
        ("kms_keys", "account 123456789012 in us-east-1", 1),
        ("private_cas", "account 123456789012 in eu-west-1", 1),
        ("certificates_per_private_ca", ca.as_str(), 1),
        ("sessions", "account 210987654321", 1),
    ];
    assert_eq!(found, expected);
}

/// A call of KMS by the administrator, for threads.
fn create_key(service: &Service) -> (u16, Vec<u8>) {
    let body = b"{}";
    let mut headers = HeaderMap::new();
    headers.insert("content-type", "application/x-amz-json-1.1".parse().unwrap());
    headers.insert("x-amz-target", "TrentService.CreateKey".parse().unwrap());
    let target = Target { path: "/", host: common::HOST, body, region: REGION, service: "kms" };
    let credentials = Credentials {
        access_key_id: ACCESS_KEY.into(),
        secret: Secret::new(SECRET.to_vec()),
        token: None,
    };
    sigv4::sign(&mut headers, &target, &credentials, NOW).unwrap();
    headers.insert("host", common::HOST.parse().unwrap());
    let response = service.call(&Request {
        method: &Method::POST,
        path: "/",
        query: "",
        host: common::HOST,
        headers: &headers,
        body,
        source_ip: "127.0.0.1",
        tls: None,
        now_ms: NOW * 1000,
        request_id: "00000000-0000-0000-0000-000000000000",
    });
    (response.status, response.body)
}

/// Several servers with several callers each: exactly as many keys are made as the quota allows, and the later calls
/// are refused.
fn race(open: &(dyn Fn() -> Arc<dyn Store> + Sync), servers: usize) {
    const MOST: u64 = 21;
    const CALLS: u32 = 12;
    establish(&service(open(), &[]));
    let (made, refused) = (AtomicU32::new(0), AtomicU32::new(0));
    std::thread::scope(|scope| {
        for _ in 0..servers {
            let server = Arc::new(service(open(), &[("kms_keys", MOST)]));
            for _ in 0..4 {
                let (server, made, refused) = (server.clone(), &made, &refused);
                scope.spawn(move || {
                    for _ in 0..CALLS {
                        let (status, body) = create_key(&server);
                        let text = String::from_utf8_lossy(&body);
                        match status {
                            200 => made.fetch_add(1, Ordering::SeqCst),
                            _ => {
                                assert!(text.contains("LimitExceededException"), "{text}");
                                refused.fetch_add(1, Ordering::SeqCst)
                            }
                        };
                    }
                });
            }
        }
    });
    let store = open();
    let kept = store.count(&format!("kms/key/{ACCOUNT}/{REGION}/")).unwrap();
    let there = store.scan("kms/key/", "", 1000).unwrap().len() as u64;
    let calls = u32::try_from(servers).unwrap() * 4 * CALLS;
    assert_eq!((u64::from(made.into_inner()), kept, there), (MOST, MOST, MOST));
    assert_eq!(u64::from(refused.into_inner()), u64::from(calls) - MOST);
}

#[test]
fn many_at_a_time_do_not_pass_a_quota() {
    let folder = tempfile::tempdir().unwrap();
    let store: Arc<dyn Store> =
        Arc::new(SqliteStore::open(&folder.path().join("store.db")).unwrap());
    race(&|| store.clone(), 1);
    if let Some(server) = Postgres::shared() {
        let url = server.new_database();
        race(&|| Arc::new(PostgresStore::open(&url).unwrap()), 2);
    }
}
