//! Revocation at Roles Anywhere: by private CAs, by imported CRLs, and by the deletion of a CA.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test may fail and print"
)]

use crate::certificates;
use crate::common;
use crate::rolesanywhere_support;

use common::{ACCOUNT, Fixture, NOW, REGION, Refused, authorities, b64, policy, text, with};
use outlast_domain::ca;
use outlast_domain::settings::Settings;
use outlast_pki::certificate::Certificate;
use outlast_pki::{csr, pem};
use outlast_store::Store;
use rolesanywhere_support::{
    DAY, Holder, Made, Scene, Signing, anchor, authority, everything, id, may_call, who, workload,
};
use serde_json::{Value, json};

/// A certificate from a private CA of the service, for a key of ours.
fn issued_by(fixture: &Fixture, arn: &str, algorithm: &str, spec: &str, subject: &str) -> Holder {
    let (key, request) = authorities::leaf_request(spec, subject);
    csr::CertificateRequest::parse_and_verify(&request).unwrap();
    let body = authorities::leaf_body(arn, &request, algorithm, "EndEntityCertificate");
    let made = certificates::pca(fixture, "IssueCertificate", &body).unwrap();
    let get = json!({ "CertificateAuthorityArn": arn, "CertificateArn": made["CertificateArn"] });
    let found = certificates::pca(fixture, "GetCertificate", &get).unwrap();
    let certificate = Certificate::parse_one(text(&found["Certificate"]).as_bytes()).unwrap();
    Holder::of(key, spec, certificate)
}

fn revoke(fixture: &Fixture, arn: &str, certificate: &Certificate) {
    let body = json!({
        "CertificateAuthorityArn": arn, "RevocationReason": "KEY_COMPROMISE",
        "CertificateSerial": hex::encode(certificate.serial()),
    });
    certificates::pca(fixture, "RevokeCertificate", &body).unwrap();
}

#[test]
fn private_ca_ends_sessions_when_it_revokes() {
    let scene = Scene::new();
    let fixture = &scene.fixture;
    let ca = certificates::root_ca(fixture, certificates::ML_DSA, 365, json!({}));
    let body = json!({
        "name": "pca", "enabled": true,
        "source": { "sourceType": "AWS_ACM_PCA", "sourceData": { "acmPcaArn": ca } },
    });
    let made = fixture.ra("CreateTrustAnchor", body).unwrap();
    let anchor = text(&made["trustAnchor"]["trustAnchorArn"]).to_owned();
    let on = json!({ "trustAnchorArn": anchor });
    let leaf = issued_by(fixture, &ca, "ML_DSA_65", "ML_DSA_65", "alice");
    let other = issued_by(fixture, &ca, "ML_DSA_65", "ECC_NIST_P256", "bob");
    let running = who(&scene.session_with(&leaf, on.clone()).unwrap());
    let unharmed = who(&scene.session_with(&other, on.clone()).unwrap());
    // A role that those of the profile may assume, and that may assume itself.
    let next = format!("arn:aws:iam::{ACCOUNT}:role/next");
    let by = policy(json!([{
        "Effect": "Allow", "Principal": { "AWS": ACCOUNT },
        "Action": ["sts:AssumeRole", "sts:TagSession", "sts:SetSourceIdentity"],
    }]));
    fixture.role(ACCOUNT, "next", &by, &[everything()]);
    let chained = fixture.session(&running, &next, &[]);
    let twice = fixture.session(&chained, &next, &[]);
    revoke(fixture, &ca, &leaf.certificate);
    // At once, without a CRL.
    let refused = scene.session_with(&leaf, on.clone()).unwrap_err();
    assert_eq!((refused.message.as_str(), refused.status), ("Certificate revoked", 403));
    scene.session_with(&other, on.clone()).unwrap();
    // As at AWS a running session goes on, unless the operator wants something else.
    assert!(may_call(fixture, &running));
    let ends = |wanted: bool| {
        let settings = Settings { end_sessions_on_revocation: wanted, ..Settings::default() };
        fixture.service.set_settings(settings);
    };
    ends(true);
    assert!(!may_call(fixture, &running) && may_call(fixture, &unharmed));
    // Nor do sessions that were begun by it go on.
    assert!(!may_call(fixture, &chained) && !may_call(fixture, &twice));
    ends(false);
    assert!(may_call(fixture, &running));
    // A disabled CA still answers for what it has issued; a deleted one is trusted no more, unless it is restored.
    let disable = json!({ "CertificateAuthorityArn": ca, "Status": "DISABLED" });
    certificates::pca(fixture, "UpdateCertificateAuthority", &disable).unwrap();
    scene.session_with(&other, on.clone()).unwrap();
    let delete = json!({ "CertificateAuthorityArn": ca });
    certificates::pca(fixture, "DeleteCertificateAuthority", &delete).unwrap();
    let refused = scene.session_with(&other, on.clone()).unwrap_err();
    assert_eq!(refused.message, "Untrusted signing certificate");
    assert!(may_call(fixture, &unharmed));
    ends(true);
    assert!(!may_call(fixture, &unharmed));
    certificates::pca(fixture, "RestoreCertificateAuthority", &delete).unwrap();
    assert!(may_call(fixture, &unharmed));
    // Deleting the anchor ends all of its sessions, since nobody can say any more what is revoked.
    fixture.ra("DeleteTrustAnchor", json!({ "trustAnchorId": id(&anchor) })).unwrap();
    assert!(!may_call(fixture, &unharmed));
}

/// A private root, a private CA below it, and an anchor with the certificate of the root. Neither CA has CRLs or OCSP.
struct Below {
    scene: Scene,
    root: String,
    below: String,
    /// The certificate of the CA below.
    middle: Certificate,
    anchor: String,
}

impl Below {
    fn new() -> Self {
        let scene = Scene::new();
        let fixture = &scene.fixture;
        let root = authorities::root(fixture, authorities::EC);
        let template = "SubordinateCACertificate_PathLen0";
        let below = authorities::subordinate(fixture, &root, authorities::EC, template);
        let middle = own_certificate(fixture, &below);
        let anchor = anchor(fixture, &pem::certificate(own_certificate(fixture, &root).der()));
        Self { scene, root, below, middle, anchor }
    }

    fn leaf(&self, name: &str) -> Holder {
        issued_by(&self.scene.fixture, &self.below, "SHA256WITHECDSA", "ECC_NIST_P256", name)
    }

    fn session_by(&self, leaf: &Holder, anchor: &str) -> Result<Value, Refused> {
        let body = self.scene.body(json!({ "trustAnchorArn": anchor }));
        let mut signing = Signing::new(leaf, &body, self.scene.fixture.now.get());
        signing.chain = vec![self.middle.clone()];
        self.scene.answer(&signing.sign())
    }

    fn session(&self, leaf: &Holder) -> Result<Value, Refused> {
        self.session_by(leaf, &self.anchor)
    }
}

fn own_certificate(fixture: &Fixture, arn: &str) -> Certificate {
    let of = json!({ "CertificateAuthorityArn": arn });
    let found = certificates::pca(fixture, "GetCertificateAuthorityCertificate", &of).unwrap();
    Certificate::parse_one(text(&found["Certificate"]).as_bytes()).unwrap()
}

/// Deletes a CA with the shortest time for a restoration.
fn delete(fixture: &Fixture, arn: &str) {
    let disable = json!({ "CertificateAuthorityArn": arn, "Status": "DISABLED" });
    certificates::pca(fixture, "UpdateCertificateAuthority", &disable).unwrap();
    let delete = json!({ "CertificateAuthorityArn": arn, "PermanentDeletionTimeInDays": 7 });
    certificates::pca(fixture, "DeleteCertificateAuthority", &delete).unwrap();
}

#[test]
fn subordinate_private_ca_revokes_below_any_anchor() {
    let world = Below::new();
    let leaf = world.leaf("alice");
    world.session(&leaf).unwrap();
    revoke(&world.scene.fixture, &world.below, &leaf.certificate);
    assert_eq!(world.session(&leaf).unwrap_err().message, "Certificate revoked");
}

#[test]
fn erased_ca_vouches_for_nobody() {
    let world = Below::new();
    let fixture = &world.scene.fixture;
    fixture
        .service
        .set_settings(Settings { end_sessions_on_revocation: true, ..Settings::default() });
    let (revoked, leaf) = (world.leaf("mallory"), world.leaf("alice"));
    // An anchor that has the certificate of the CA itself.
    let direct = anchor(fixture, &pem::certificate(world.middle.der()));
    let running = who(&world.session(&leaf).unwrap());
    world.session_by(&leaf, &direct).unwrap();
    revoke(fixture, &world.below, &revoked.certificate);
    delete(fixture, &world.below);
    let untrusted = |leaf: &Holder| {
        for anchor in [&world.anchor, &direct] {
            let refused = world.session_by(leaf, anchor).unwrap_err();
            assert_eq!(refused.message, "Untrusted signing certificate");
            assert_eq!((refused.code.as_str(), refused.status), ("AccessDeniedException", 403));
        }
    };
    untrusted(&leaf);
    assert!(!may_call(fixture, &running));
    assert_eq!(world.session(&revoked).unwrap_err().message, "Certificate revoked");
    // The deletion can be undone, and the revocation is still known.
    let of = json!({ "CertificateAuthorityArn": world.below });
    certificates::pca(fixture, "RestoreCertificateAuthority", &of).unwrap();
    assert!(may_call(fixture, &running));
    assert_eq!(world.session(&revoked).unwrap_err().message, "Certificate revoked");
    world.session(&leaf).unwrap();
    delete(fixture, &world.below);
    // Its time is over, before it is erased and after.
    fixture.advance(7 * DAY);
    untrusted(&leaf);
    untrusted(&revoked);
    fixture.run_housekeeping();
    assert_eq!(fixture.store.scan("ca/material/", "", 10).unwrap().len(), 1, "it is erased");
    untrusted(&leaf);
    untrusted(&revoked);
    assert!(check(fixture).is_empty(), "{:?}", check(fixture));
    // A CA of the same name with another key has nothing to do with it.
    let template = "SubordinateCACertificate_PathLen0";
    let next = authorities::subordinate(fixture, &world.root, authorities::EC, template);
    let middle = own_certificate(fixture, &next);
    assert_eq!(middle.subject(), world.middle.subject());
    let world = Below { middle, below: next, ..world };
    world.session(&world.leaf("alice")).unwrap();
}

fn check(fixture: &Fixture) -> Vec<outlast_domain::check::Problem> {
    let root = fixture.service.root();
    outlast_domain::check::check(fixture.store.as_ref(), root, &mut |_| {}).unwrap().problems
}

#[test]
fn running_session_ends_when_its_ca_is_erased() {
    let world = Below::new();
    let fixture = &world.scene.fixture;
    let leaf = world.leaf("alice");
    let ends = |wanted: bool| {
        let settings = Settings { end_sessions_on_revocation: wanted, ..Settings::default() };
        fixture.service.set_settings(settings);
    };
    let running = who(&world.session(&leaf).unwrap());
    let id = id(&world.below);
    // Sessions that roles begin one after the other last longer than the seven days until a CA is erased.
    fixture.directory(|work| {
        let record_key = format!("ca/authority/{ACCOUNT}/{REGION}/{id}");
        let mut record: Value = work.get(&record_key).unwrap().unwrap();
        record["status"] = json!("DELETED");
        record["restorable_until_ms"] = json!((fixture.now.get() + 60) * 1000);
        work.put(&record_key, &record).unwrap();
    });
    fixture.advance(61);
    fixture.run_housekeeping();
    let is_gone = |prefix: &str| {
        let found = fixture.store.scan(prefix, "", 100).unwrap();
        found.iter().all(|(record_key, _)| !record_key.ends_with(id))
    };
    assert!(is_gone("ca/authority/") && is_gone("ca/material/"));
    // As at AWS it goes on, unless the operator wants something else.
    assert!(may_call(fixture, &running));
    ends(true);
    assert!(!may_call(fixture, &running));
}

/// What earlier versions have left out: authorities without CRLs and OCSP were in no index.
#[test]
fn authorities_of_an_earlier_version_revoke_once_they_are_indexed() {
    let world = Below::new();
    let fixture = &world.scene.fixture;
    let leaf = world.leaf("alice");
    // A CA without a certificate is in no index, one that is deleted is.
    authorities::create(fixture, "ROOT", "Pending", authorities::EC);
    let deleted = certificates::root_ca(fixture, certificates::ECDSA, 365, json!({}));
    delete(fixture, &deleted);
    let entries = || {
        let of = |prefix: &str| fixture.store.scan(prefix, "", 100).unwrap();
        let all = [of("ca/served/"), of("ca/ocsp-issuer/")].concat();
        all.into_iter().map(|(record_key, _)| record_key).collect::<Vec<_>>()
    };
    let now = entries();
    fixture.directory(|work| now.iter().for_each(|record_key| work.delete(record_key)));
    revoke(fixture, &world.below, &leaf.certificate);
    world.session(&leaf).unwrap();
    // The time of the deleted one is over, and nothing has erased it yet.
    fixture.advance(8 * DAY);
    let missing = || ca::unindexed(&fixture.service.work(fixture.now.get() * 1000)).unwrap();
    assert_eq!(missing().len(), 3);
    let record_keys = missing();
    for _ in 0..2 {
        fixture.directory(|work| {
            record_keys.iter().for_each(|record_key| ca::index(work, record_key).unwrap());
        });
        assert_eq!(entries(), now);
    }
    assert!(missing().is_empty());
    assert_eq!(world.session(&leaf).unwrap_err().message, "Certificate revoked");
    assert!(check(fixture).is_empty(), "{:?}", check(fixture));
}

#[test]
fn imported_crl_ends_sessions_while_it_is_enabled() {
    let scene = Scene::new();
    let fixture = &scene.fixture;
    fixture
        .service
        .set_settings(Settings { end_sessions_on_revocation: true, ..Settings::default() });
    let leaf = scene.root.issue("ECC_NIST_P256", workload("CN=alice"));
    let other = scene.root.issue("ECC_NIST_P256", workload("CN=bob"));
    let running = who(&scene.session(&leaf).unwrap());
    let crl = scene.root.crl(&[&leaf.certificate], NOW);
    let import = json!({ "name": "c", "trustAnchorArn": scene.anchor, "crlData": b64(&crl) });
    let made = fixture.ra("ImportCrl", import).unwrap();
    let of = json!({ "crlId": made["crl"]["crlId"] });
    let revoked = |expected: bool| {
        assert_eq!(scene.session(&leaf).is_err(), expected);
        assert_eq!(may_call(fixture, &running), !expected);
        assert!(scene.session(&other).is_ok());
    };
    revoked(false);
    fixture.ra("EnableCrl", of.clone()).unwrap();
    assert_eq!(scene.session(&leaf).unwrap_err().message, "Certificate revoked");
    revoked(true);
    fixture.ra("DisableCrl", of.clone()).unwrap();
    revoked(false);
    fixture.ra("EnableCrl", of.clone()).unwrap();
    revoked(true);
    let empty = with(&of, json!({ "crlData": b64(&scene.root.crl(&[], NOW)) }));
    fixture.ra("UpdateCrl", empty).unwrap();
    revoked(false);
    let again = with(&of, json!({ "crlData": b64(&crl) }));
    fixture.ra("UpdateCrl", again).unwrap();
    revoked(true);
    fixture.ra("DeleteCrl", of).unwrap();
    revoked(false);
    // Expired, and nevertheless the last word on what it lists.
    let old = scene.root.crl(&[&leaf.certificate], NOW - 60 * DAY);
    let import = json!({
        "name": "c", "trustAnchorArn": scene.anchor, "crlData": b64(&old), "enabled": true,
    });
    fixture.ra("ImportCrl", import).unwrap();
    revoked(true);
}

#[test]
fn intermediate_that_is_revoked_authenticates_nobody() {
    let scene = Scene::new();
    let one = scene.root.issue("ECC_NIST_P256", authority("CN=One"));
    let leaf = one.issue("ECC_NIST_P256", workload("CN=alice"));
    let session = || {
        let mut signing = scene.signing(&leaf);
        signing.chain = vec![one.certificate.clone()];
        scene.answer(&signing.sign())
    };
    session().unwrap();
    // A CRL of the root with the leaf's number is about another certificate.
    let numbers = Made { serial: Some([0x41; 16]), ..workload("CN=mallory") };
    let same = scene.root.issue("ECC_NIST_P256", numbers);
    let twin = one.issue("ECC_NIST_P256", Made { serial: Some([0x41; 16]), ..workload("CN=bob") });
    assert_eq!(same.certificate.serial(), twin.certificate.serial());
    let import = |certificate: &Certificate| {
        let crl = scene.root.crl(&[certificate], NOW);
        let body = json!({
            "name": "c", "trustAnchorArn": scene.anchor, "crlData": b64(&crl), "enabled": true,
        });
        scene.fixture.ra("ImportCrl", body).unwrap();
    };
    import(&same.certificate);
    let mut signing = scene.signing(&twin);
    signing.chain = vec![one.certificate.clone()];
    scene.answer(&signing.sign()).unwrap();
    assert_eq!(scene.session(&same).unwrap_err().message, "Certificate revoked");
    import(&one.certificate);
    assert_eq!(session().unwrap_err().message, "Certificate revoked");
}
