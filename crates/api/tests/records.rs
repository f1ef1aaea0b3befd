//! A store with a record of every kind goes through everything that an operator can start: rotation, interrupted at
//! every write, to another provider, backup, restoration, the check of the store, and the move from SQLite to
//! PostgreSQL.
//!
//! Kinds are the rows of `outlast_domain::records::KINDS`. A kind without a record in this store fails the test.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::type_complexity,
    reason = "a test may fail and print"
)]

use crate::acme_support;
use crate::common;
use crate::rolesanywhere_support;

use std::collections::BTreeMap;
use std::sync::Arc;

use acme_support::Signer;
use acme_support::world::World;
use common::{
    ACCESS_KEY, ACCOUNT, Fixture, NOW, OTHER_ACCOUNT, SECRET, Shared, Who, b64, client, policy,
    text, with,
};
use outlast_api::service::{Room, Service};
use outlast_crypto::Secret;
use outlast_domain::backup::{self, NewBackup};
use outlast_domain::records::{self, KINDS, Protection, Sample};
use outlast_domain::seal::migration::{self, State};
use outlast_domain::seal::rotation::{self, NewKek};
use outlast_domain::seal::{CANARY, RootKey, SoftwareKek, read_record};
use outlast_domain::settings::{EventTarget, Events, PublicCertificates, Settings};
use outlast_domain::work::Work;
use outlast_domain::{audit, check, identity, register};
use outlast_store::faulty::FaultyStore;
use outlast_store::memory::MemoryStore;
use outlast_store::postgres::PostgresStore;
use outlast_store::sqlite::SqliteStore;
use outlast_store::testing::Postgres;
use outlast_store::{Store, StoreError, Transaction};
use rolesanywhere_support::Holder;
use serde_json::{Map, Value, json};

const ADMIN: &str = "arn:aws:iam::123456789012:user/admin";
/// Records that one step of a rotation reads: few, so that there are many writes to die at.
const BATCH: usize = 5;

fn file() -> SoftwareKek {
    SoftwareKek::from_key(Secret::new(vec![7; 32])).unwrap()
}

fn passphrase() -> SoftwareKek {
    SoftwareKek::from_passphrase(Secret::new(vec![5; 32])).unwrap()
}

/// A fixture on a store as `outlast init` makes it.
fn established() -> Fixture {
    let store = Arc::new(FaultyStore::new(MemoryStore::new()));
    let service = Service::new(Arc::new(Shared(store.clone())), RootKey::new(Box::new(file())));
    let mut work = service.work(NOW * 1000);
    service.root().establish(&mut work, Map::new()).unwrap();
    work.put("meta/store", &json!({ "created_ms": 0, "created_by": "a test" })).unwrap();
    migration::set_state(&mut work, State { has_log: true, is_authenticated: true }).unwrap();
    audit::establish(&mut work, "log.example/records").unwrap();
    for (account, id) in [(ACCOUNT, ACCESS_KEY), (OTHER_ACCOUNT, "AKIAOTHER")] {
        let secret = Secret::new(SECRET.to_vec());
        identity::create_administrator(&mut work, account, "admin", Some(id.into()), &secret)
            .unwrap();
    }
    register::begin(&mut work).unwrap();
    store.commit_and_wait(work.into_first_transaction()).unwrap();
    service.set_settings(Settings {
        revocation_url: Some("http://pki.example:8080".into()),
        service_url: "https://localhost:8443".into(),
        events: Events {
            targets: vec![EventTarget { name: "target".into(), ..EventTarget::default() }],
            ..Events::default()
        },
        ..Settings::default()
    });
    let now = std::cell::Cell::new(NOW);
    Fixture { service, store, client: client(ACCESS_KEY, common::REGION), now }
}

fn fill_kms(fixture: &Fixture) {
    let key = fixture.key(json!({}));
    fixture.encrypted(&key, b"x");
    let grant = json!({
        "KeyId": key, "GranteePrincipal": ADMIN, "RetiringPrincipal": ADMIN, "Name": "n",
        "Operations": ["Encrypt"],
    });
    let grant = fixture.kms("CreateGrant", grant).unwrap();
    // As an earlier version pointed to it.
    let digest = hex::encode(outlast_crypto::digests::sha256(ADMIN.as_bytes()));
    let id = text(&grant["GrantId"]);
    let pointer = json!({ "account": ACCOUNT, "key_id": key, "grant_id": id });
    let old = format!("kms/grant-to/{ACCOUNT}/{}/{key}/{digest}/{id}", common::REGION);
    fixture.directory(|work| work.put(&old, &pointer).unwrap());
    fixture.kms("CreateAlias", json!({ "AliasName": "alias/a/b", "TargetKeyId": key })).unwrap();
    let signing = fixture.key_of("ECC_NIST_P256", "SIGN_VERIFY");
    let files = [crate::approvals_support::file("a", b"text", "ECDSA_SHA_256")];
    let rule = crate::approvals_support::rule(1, &[ADMIN.to_owned()]);
    let put = json!({ "KeyId": signing, "Rule": rule });
    fixture.outlast("PutSigningApprovalRule", &put).unwrap();
    let asked = json!({ "KeyId": signing, "Files": files });
    fixture.outlast("RequestSigningApproval", &asked).unwrap();
    let message = crate::artifact_log::Signer::new(fixture).sign(fixture, b"file");
    let entries = json!({ "Entries": [crate::artifact_log::new_entry(&message)] });
    fixture.outlast("AddLogEntries", &entries).unwrap();
    let import = fixture.key(json!({ "Origin": "EXTERNAL" }));
    let parameters = json!({
        "KeyId": import, "WrappingAlgorithm": "RSAES_OAEP_SHA_256", "WrappingKeySpec": "RSA_2048",
    });
    fixture.kms("GetParametersForImport", parameters).unwrap();
    let ends = fixture.key(json!({}));
    fixture.kms("ScheduleKeyDeletion", json!({ "KeyId": ends })).unwrap();
    let trust = policy(json!([{
        "Effect": "Allow", "Principal": { "AWS": ACCOUNT }, "Action": "sts:*",
    }]));
    let role = fixture.role(ACCOUNT, "role", &trust, &[]);
    fixture.session(&Who::admin(), &role, &[]);
}

fn fill_secrets(fixture: &Fixture) {
    let secret = fixture.secret("app/db", "a value");
    let allow = policy(json!([{
        "Effect": "Allow", "Principal": { "AWS": ADMIN }, "Action": "secretsmanager:*", "Resource": "*",
    }]));
    let put = json!({ "SecretId": secret, "ResourcePolicy": allow.to_string() });
    fixture.secrets("PutResourcePolicy", put).unwrap();
    let rotate = json!({
        "SecretId": secret, "RotationLambdaARN": "arn:aws:lambda:eu-west-1:123456789012:function:f",
    });
    fixture.secrets("RotateSecret", rotate).unwrap();
}

fn fill_pca(world: &World) {
    let fixture = &world.fixture;
    let pca = |operation: &str, body: Value| {
        acme_support::world::call(fixture, &Who::admin(), "acm-pca", operation, &body).unwrap()
    };
    let of = json!({ "CertificateAuthorityArn": world.authority });
    let revocation = json!({ "RevocationConfiguration": {
        "CrlConfiguration": { "Enabled": true, "ExpirationInDays": 7, "S3BucketName": "crls" },
        "OcspConfiguration": { "Enabled": true },
    } });
    pca("UpdateCertificateAuthority", with(&of, revocation));
    let leaf = acme_support::request(&Signer::new("ES256"), &["leaf.example"], None);
    let issue = json!({
        "Csr": b64(&leaf), "SigningAlgorithm": "SHA256WITHECDSA", "IdempotencyToken": "t",
        "Validity": { "Type": "DAYS", "Value": 30 },
    });
    let issued = pca("IssueCertificate", with(&of, issue));
    // The CRL and the responder, and then a revocation that makes a new CRL due.
    fixture.service.keep_revocation(fixture.now.get() * 1000).unwrap();
    let serial = text(&issued["CertificateArn"]).rsplit('/').next().unwrap();
    let revoke = json!({ "CertificateSerial": serial, "RevocationReason": "SUPERSEDED" });
    pca("RevokeCertificate", with(&of, revoke));
    let actions = ["IssueCertificate", "GetCertificate", "ListPermissions"];
    let permission = json!({ "Principal": "acm.amazonaws.com", "Actions": actions });
    pca("CreatePermission", with(&of, permission));
    let share = policy(json!([{
        "Effect": "Allow", "Principal": { "AWS": OTHER_ACCOUNT },
        "Action": "acm-pca:GetCertificate", "Resource": world.authority,
    }]));
    let share = json!({ "ResourceArn": world.authority, "Policy": share.to_string() });
    pca("PutPolicy", share);
    let report = json!({ "S3BucketName": "reports", "AuditReportResponseFormat": "CSV" });
    pca("CreateCertificateAuthorityAuditReport", with(&of, report));
}

fn fill_acm(world: &World) {
    world.acm(
        "RequestCertificate",
        json!({
            "DomainName": "a.example", "CertificateAuthorityArn": world.authority,
            "KeyAlgorithm": "EC_prime256v1", "IdempotencyToken": "t",
        }),
    );
    let (certificate, key) = common::authorities::self_signed("imported.example", NOW + 86_400);
    let imported =
        json!({ "Certificate": b64(certificate.as_bytes()), "PrivateKey": b64(key.as_bytes()) });
    world.acm("ImportCertificate", imported);
    let events = json!({ "DaysBeforeExpiry": 10 });
    world
        .acm("PutAccountConfiguration", json!({ "ExpiryEvents": events, "IdempotencyToken": "t" }));
    // A request that names no CA, whose name nobody has proved.
    let of_account = BTreeMap::from([(common::REGION.to_owned(), world.authority.clone())]);
    world.fixture.service.set_settings(Settings {
        public_certificates: PublicCertificates {
            authorities: BTreeMap::from([(ACCOUNT.to_owned(), of_account)]),
            approved: BTreeMap::new(),
        },
        ..Settings::clone(&world.fixture.service.settings())
    });
    world.acm("RequestCertificate", json!({ "DomainName": "public.example" }));
    let account = world.account("ES256");
    account.certificate(&["one.example"], &Signer::new("ES256"));
    let (_, order) = account.order(&["two.example"]);
    // A challenge that no server has validated.
    let authorization = account.read(text(&order["authorizations"][0]));
    let challenge = acme_support::world::challenge(&authorization, "dns-01");
    account.post(text(&challenge["url"]), "{}");
    let scope =
        json!({ "ExactDomain": "ENABLED", "Subdomains": "ENABLED", "Wildcards": "DISABLED" });
    world.acm(
        "CreateAcmeDomainValidation",
        json!({
            "AcmeEndpointArn": world.endpoint, "DomainName": "corp.example",
            "PrevalidationOptions": { "DnsPrevalidation": { "DomainScope": scope } },
            "IdempotencyToken": "t",
        }),
    );
    let gone = world.another("CHALLENGE", json!({}));
    world.acm("DeleteAcmeEndpoint", json!({ "AcmeEndpointArn": gone }));
}

fn fill_roles_anywhere(fixture: &Fixture) {
    let root = Holder::root("ECC_NIST_P256", "CN=Root");
    let role = fixture.role(ACCOUNT, "workload", &rolesanywhere_support::trust(&json!({})), &[]);
    let anchor = rolesanywhere_support::anchor(fixture, &root.pem());
    let profile = rolesanywhere_support::profile(fixture, &[&role], json!({ "aliasName": "a/b" }));
    let crl = b64(&root.crl(&[], NOW));
    let import = json!({ "name": "c", "trustAnchorArn": anchor, "crlData": crl, "enabled": true });
    fixture.ra("ImportCrl", import).unwrap();
    let leaf = root.issue("ECC_NIST_P256", rolesanywhere_support::workload("CN=alice"));
    let body = json!({ "trustAnchorArn": anchor, "profileArn": profile, "roleArn": role });
    let signed = rolesanywhere_support::Signing::new(&leaf, &body, fixture.now.get()).sign();
    rolesanywhere_support::answered(fixture, &signed).unwrap();
}

fn fill_transfer(fixture: &Fixture) {
    let server = fixture.server(json!({}));
    let role = crate::transfer_support::role(fixture, "sftp-users");
    fixture.sftp_user(&server, "alice", &role, json!({}));
    crate::workflow_support::attach_and_upload(fixture, &server);
    let connector = fixture.connector(&role, json!({}));
    fixture.send_files(&connector, &["/files/a"]);
    let jobs = fixture.service.connector_jobs(&|| fixture.now.get() * 1000, &Room::of(1)).unwrap();
    assert_eq!(jobs.len(), 1);
}

/// The server's own TLS files, with a certificate and key that Certificate Manager made.
fn fill_tls(fixture: &Fixture) {
    let (record_key, _) = fixture.store.scan("acm/material/", "", 1).unwrap().remove(0);
    let mut parts = record_key.split('/');
    let owner = [parts.nth(2).unwrap(), parts.next().unwrap(), parts.next().unwrap()].join("/");
    let mut work = fixture.service.work(fixture.now.get() * 1000);
    let said: Value = work.get(&format!("acm/text/{owner}")).unwrap().unwrap();
    let key = work.secret(&record_key).unwrap().unwrap();
    work.put("tls/certificate/ecdsa-p256/leaf", &json!({ "certificate": said["certificate"] }))
        .unwrap();
    work.put_secret("tls/key/ecdsa-p256/leaf", &key).unwrap();
    work.put_secret("tls/ticket-keys", &key).unwrap();
    fixture.store.commit_and_wait(work.into_transaction(Vec::new())).unwrap();
}

/// A store with a record of every kind, and how many there are of each.
fn every_kind() -> (Fixture, BTreeMap<&'static str, usize>) {
    let world = World::on(established(), "CHALLENGE", json!({}));
    fill_kms(&world.fixture);
    fill_secrets(&world.fixture);
    fill_pca(&world);
    fill_acm(&world);
    fill_roles_anywhere(&world.fixture);
    fill_transfer(&world.fixture);
    fill_tls(&world.fixture);
    let fixture = world.fixture;
    while fixture.store.last_event().unwrap() < 300 {
        fixture.kms("ListKeys", json!({})).unwrap();
    }
    fixture.service.sign_log(fixture.now.get() * 1000, true).unwrap();
    let mut work = fixture.service.work(fixture.now.get() * 1000);
    for row in KINDS {
        if let Sample::Is(key, value) = row.sample {
            match row.protection {
                Protection::Sealed => {
                    work.put_secret(key, &Secret::new(value.as_bytes().to_vec())).unwrap();
                }
                _ => work.put(key, &serde_json::from_str::<Value>(value).unwrap()).unwrap(),
            }
        }
    }
    fixture.store.commit_and_wait(work.into_transaction(Vec::new())).unwrap();
    let mut kinds: BTreeMap<_, _> = KINDS.iter().map(|row| (row.key, 0)).collect();
    for (record_key, _) in fixture.store.scan("", "", 100_000).unwrap() {
        let kind = records::kind(&record_key)
            .unwrap_or_else(|| panic!("{record_key} is of no known kind"));
        *kinds.get_mut(kind.key).unwrap() += 1;
    }
    let without: Vec<_> = kinds.iter().filter(|(_, count)| **count == 0).collect();
    assert!(without.is_empty(), "kinds without a sample: {without:?}");
    (fixture, kinds)
}

/// Every record opens, verifies and matches; the report has nothing but the alarm.
#[track_caller]
fn assert_good(store: &dyn Store, root: &RootKey) {
    let report = check::check(store, root, &mut |_| {}).unwrap();
    let found: Vec<_> = report.problems.iter().map(|problem| problem.record_key.as_str()).collect();
    assert_eq!(found, ["audit/alarm"], "{:?}", report.problems);
}

fn copy(from: &dyn Store, to: &dyn Store) {
    let mut items = Vec::new();
    from.snapshot(&mut |item| {
        items.push(item);
        Ok(())
    })
    .unwrap();
    to.restore(&mut items.into_iter().map(Ok)).unwrap();
}

/// A rotation with every step of the command; returns the first error. `to` is given at the end.
fn rotate(store: &dyn Store, root: &RootKey, to: Option<&NewKek<'_>>) -> Result<(), StoreError> {
    let commit = |work: Work<'_>| store.commit_and_wait(work.into_transaction(Vec::new()));
    if read_record(store).unwrap().unwrap().previous.is_none() {
        let mut after = Some(String::new());
        while let Some(from) = after {
            let step = rotation::survey(&mut Work::new(store, root, 1), &from, BATCH).unwrap();
            assert_eq!(step.unreadable, [""; 0]);
            after = step.next;
        }
        let mut work = Work::new(store, root, 2);
        rotation::begin(&mut work).unwrap();
        commit(work)?;
    }
    let mut after = Some(String::new());
    while let Some(from) = after {
        let mut work = Work::new(store, root, 3);
        let step = rotation::reseal(&mut work, &from, BATCH).unwrap();
        assert_eq!(step.unreadable, [""; 0]);
        after = step.next;
        if work.writes_anything() {
            commit(work)?;
        }
    }
    let mut work = Work::new(store, root, 4);
    rotation::finish(&mut work, to).unwrap();
    commit(work)
}

#[test]
fn every_kind_survives_what_an_operator_starts() {
    let (fixture, kinds) = every_kind();
    let source: &dyn Store = &*fixture.store;
    let total: usize = kinds.values().sum();
    println!("{} kinds, {total} records", kinds.len());
    assert_good(source, fixture.service.root());
    let opened = |kek: SoftwareKek| RootKey::new(Box::new(kek));

    // Rotation, also to another provider, on a store that fails at each of its writes in turn.
    for switch in [false, true] {
        let new_kek = passphrase();
        let parameters = Map::from_iter([("salt".to_owned(), Value::from("00"))]);
        let new = NewKek { kek: &new_kek, parameters };
        let to = switch.then_some(&new);
        let mut died = 0;
        loop {
            let store = FaultyStore::new(MemoryStore::new());
            store.fail_writes_after(Some(died));
            copy(source, &store);
            let outcome = rotate(&store, &opened(file()), to);
            store.fail_writes_after(None);
            if outcome.is_ok() {
                let record = read_record(&store).unwrap().unwrap();
                assert_eq!(record.provider, if switch { "passphrase" } else { "file" });
                let root = opened(if switch { passphrase() } else { file() });
                assert_good(&store, &root);
                break;
            }
            // The key in force still is, for a process that starts now, and the rotation can be finished.
            assert_eq!(read_record(&store).unwrap().unwrap().provider, "file");
            assert_good(&store, &opened(file()));
            rotate(&store, &opened(file()), to).unwrap();
            let root = opened(if switch { passphrase() } else { file() });
            assert_good(&store, &root);
            assert_eq!(store.scan("meta/root-key/", "", 9).unwrap().len(), 1);
            died += 1;
        }
        println!(
            "interrupted at {died} writes{}",
            if switch { ", to another provider" } else { "" }
        );
        assert!(died as usize > total / BATCH / 2, "{died}");
    }

    // Backup and restoration.
    let kek = file();
    let new = NewBackup {
        created_ms: 0,
        created_by: "a test".into(),
        kek: &kek,
        parameters: Map::new(),
        by_store: true,
        include_root_keys: false,
    };
    let mut bytes = Vec::new();
    let counts =
        backup::write(source, fixture.service.root(), new, &mut bytes, &mut |_| {}).unwrap();
    assert_eq!(counts.records, total as u64);
    let mut input = bytes.as_slice();
    let (header, head) = backup::header(&mut input).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let sqlite = SqliteStore::open(&folder.path().join("store.db")).unwrap();
    backup::restore(&header, &head, &kek, &mut input, &sqlite, &mut |_| {}).unwrap();
    assert_good(&sqlite, &opened(file()));
    rotate(&sqlite, &opened(file()), None).unwrap();
    assert_good(&sqlite, &opened(file()));

    // From SQLite to PostgreSQL.
    let Some(postgres) = Postgres::shared() else { return };
    println!("PostgreSQL, too");
    let database = PostgresStore::open(&postgres.new_database()).unwrap();
    copy(&sqlite, &database);
    assert_good(&database, &opened(file()));
    rotate(&database, &opened(file()), None).unwrap();
    assert_good(&database, &opened(file()));
    assert_eq!(database.scan("", "", 100_000).unwrap().len(), total);
}

#[test]
fn unknown_and_damaged_records_are_reported() {
    let (fixture, _) = every_kind();
    let root = fixture.service.root();
    fixture.put_record("kms/surprise/1", &json!({}));
    let report = check::check(&*fixture.store, root, &mut |_| {}).unwrap();
    let unknown: Vec<_> =
        report.problems.iter().filter(|problem| problem.record_key == "kms/surprise/1").collect();
    assert!(
        matches!(unknown[..], [one] if one.what.contains("no known version of outlast")),
        "{report:?}"
    );
    fixture
        .store
        .commit_and_wait(Transaction {
            writes: vec![("kms/surprise/1".into(), None)],
            ..Transaction::default()
        })
        .unwrap();
    // One byte of a record of each kind that a rotation must read.
    let (mut named, mut spoiled) = (0, 0);
    for row in KINDS.iter().filter(|row| row.protection != Protection::Plain) {
        if [CANARY, "meta/root"].contains(&row.key) {
            continue;
        }
        let found = fixture.store.scan(row.key, "", 1000).unwrap();
        let (record_key, record) =
            found.iter().find(|(record_key, _)| row.has(record_key)).unwrap().clone();
        let mut value = record.value.clone();
        let last = value.len() - 1;
        value[last] ^= 1;
        let put = |value: Vec<u8>| {
            let writes = vec![(record_key.clone(), Some(value))];
            fixture
                .store
                .commit_and_wait(Transaction { writes, ..Transaction::default() })
                .unwrap();
        };
        put(value);
        let mut unreadable = Vec::new();
        let mut after = Some(String::new());
        while let Some(from) = after {
            let mut work = Work::new(&*fixture.store, root, 1);
            let step = rotation::survey(&mut work, &from, 100).unwrap();
            unreadable.extend(step.unreadable);
            after = step.next;
        }
        assert_eq!(unreadable, [record_key.as_str()]);
        let title = records::title(&*fixture.store, &record_key);
        assert!(!title.contains('{'), "{title}");
        named += usize::from(title.contains("arn:aws:"));
        put(record.value);
        spoiled += 1;
    }
    println!("{spoiled} kinds spoiled, {named} named by an ARN");
    assert!(spoiled > 70 && named > 30, "{spoiled} {named}");
    let (der, _) = fixture.store.scan("ca/crl-der/", "", 1).unwrap().remove(0);
    let title = records::title(&*fixture.store, &der);
    assert!(title.starts_with("the CRL of CA arn:aws:acm-pca:eu-west-1:123456789012:"), "{title}");
}

#[test]
fn what_the_register_needs_is_not_prunable() {
    let fixture = established();
    while fixture.store.last_event().unwrap() < 600 {
        fixture.kms("ListKeys", json!({})).unwrap();
    }
    let now_ms = NOW * 1000;
    fixture.service.sign_log(now_ms, true).unwrap();
    let prunable = || audit::prune::prunable(&mut fixture.service.work(now_ms)).unwrap();
    assert_eq!(prunable(), 0, "the register has not gone over any event");
    // The record that the pointer depends on is changed, so that the pointer must be updated.
    fixture.key(json!({}));
    fixture.service.follow_events(now_ms).unwrap();
    assert_eq!(prunable(), 512);
    let mut work = fixture.service.work(now_ms);
    assert_eq!(audit::prune::prune(&mut work, 600).unwrap(), 512);
}
