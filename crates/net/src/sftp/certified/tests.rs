//! Which certificates count, one condition at a time.

use outlast_ssh::{CertificateFields, KeyKind, PrivateKey, option_value};

use super::*;

fn fields() -> CertificateFields {
    CertificateFields {
        serial: 7,
        kind: CertificateKind::User,
        key_id: "alice at work".to_owned(),
        principals: vec!["bob".to_owned(), "alice".to_owned()],
        valid_after_s: 1_000,
        valid_before_s: 2_000,
        critical_options: Vec::new(),
        extensions: vec![("permit-pty".to_owned(), option_value(None))],
    }
}

/// A certificate of `authority`, as `change` makes it, at a server that trusts `trusted`.
struct Scene {
    authority: PrivateKey,
    user: PrivateKey,
    all: Authorities,
}

impl Scene {
    fn new() -> Self {
        let key = || PrivateKey::generate(KeyKind::Ed25519).unwrap();
        let authority = key();
        let trusted = vec![key().public_key().clone(), authority.public_key().clone()];
        let all = Authorities { trusted, ..Authorities::default() };
        Self { authority, user: key(), all }
    }

    fn certificate(&self, change: impl FnOnce(&mut CertificateFields)) -> Certificate {
        let mut fields = fields();
        change(&mut fields);
        Certificate::issue(self.user.public_key(), &fields, &self.authority).unwrap()
    }

    fn try_at(&self, certificate: &Certificate, now_ms: u64) -> Result<Certified, String> {
        let at = At {
            user: "alice",
            source: "192.0.2.7".parse().unwrap(),
            now_ms,
            signatures: &["ssh-ed25519", "rsa-sha2-512"],
        };
        self.all.accept(certificate, &at)
    }
}

type Change = fn(&mut CertificateFields);

fn critical(name: &str, value: Option<&str>) -> Vec<(String, Vec<u8>)> {
    vec![(name.to_owned(), option_value(value))]
}

#[test]
fn a_certificate_counts_only_as_it_was_meant() {
    let scene = Scene::new();
    let rows: &[(&str, Change, Option<&str>)] = &[
        ("as it is", |_| {}, None),
        ("of a host", |fields| fields.kind = CertificateKind::Host, Some("other kind")),
        (
            "for others",
            |fields| fields.principals = vec!["alic".into(), "alice2".into()],
            Some("other principals"),
        ),
        ("for a pattern", |fields| fields.principals = vec!["*".into()], Some("other principals")),
        ("without principals", |fields| fields.principals = Vec::new(), Some("other principals")),
        ("later", |fields| fields.valid_after_s = 1_501, Some("not valid yet")),
        ("from now on", |fields| fields.valid_after_s = 1_500, None),
        ("earlier", |fields| fields.valid_before_s = 1_500, Some("expired")),
        ("until now", |fields| fields.valid_before_s = 1_501, None),
        ("for ever", |fields| fields.valid_before_s = u64::MAX, None),
        (
            "from here",
            |fields| {
                fields.critical_options =
                    critical("source-address", Some("198.51.100.1,192.0.2.0/24"));
            },
            None,
        ),
        (
            "from elsewhere",
            |fields| fields.critical_options = critical("source-address", Some("198.51.100.0/24")),
            Some("source addresses"),
        ),
        (
            "from nowhere",
            |fields| fields.critical_options = critical("source-address", None),
            Some("source addresses"),
        ),
        (
            "for SFTP",
            |fields| fields.critical_options = critical("force-command", Some("internal-sftp")),
            None,
        ),
        (
            "for SFTP with options",
            |fields| fields.critical_options = critical("force-command", Some("internal-sftp -R")),
            Some("command"),
        ),
        (
            "for a command",
            |fields| fields.critical_options = critical("force-command", Some("true")),
            Some("command"),
        ),
        (
            "for no command",
            |fields| fields.critical_options = critical("force-command", None),
            Some("command"),
        ),
        (
            "with an option",
            |fields| fields.critical_options = critical("other@example.com", None),
            Some("not supported"),
        ),
        (
            "with an extension",
            |fields| fields.extensions = critical("other@example.com", None),
            None,
        ),
    ];
    for (what, change, expected) in rows {
        let outcome = scene.try_at(&scene.certificate(change), 1_500_000);
        match expected {
            None => assert!(outcome.is_ok(), "{what}: {outcome:?}"),
            Some(why) => assert!(
                outcome.as_ref().is_err_and(|text| text.contains(why)),
                "{what}: {outcome:?}"
            ),
        }
    }
    let certified = scene.try_at(&scene.certificate(|_| {}), 1_500_000).unwrap();
    assert_eq!((certified.key_id.as_str(), certified.serial), ("alice at work", 7));
    assert_eq!(certified.authority, scene.authority.public_key().fingerprint());
}

#[test]
fn other_authorities_and_what_is_revoked_do_not_count() {
    let mut scene = Scene::new();
    let certificate = scene.certificate(|_| {});
    let refused = |scene: &Scene, why: &str| {
        let outcome = scene.try_at(&certificate, 1_500_000);
        assert!(outcome.as_ref().is_err_and(|text| text.contains(why)), "{why}: {outcome:?}");
    };
    let authority = scene.authority.public_key().clone();
    type Revoke = fn(&mut Krl, &Certificate);
    let rows: [(&str, Revoke); 5] = [
        ("its serial number", |list, one| list.revoke_certificate(one).unwrap()),
        ("its serial number", |list, _| list.revoke_serials(None, 5, 9).unwrap()),
        ("its key id", |list, _| list.revoke_key_id(None, "alice at work").unwrap()),
        ("its key", |list, one| list.revoke_key(one.key()).unwrap()),
        ("its authority's key", |list, one| list.revoke_key(one.authority()).unwrap()),
    ];
    for (by, revoke) in rows {
        scene.all.revoked = Krl::default();
        revoke(&mut scene.all.revoked, &certificate);
        refused(&scene, &format!("revoked by {by}"));
    }
    scene.all.revoked = Krl::default();
    scene.all.revoked.revoke_serials(Some(&authority), 8, 9).unwrap();
    assert!(scene.try_at(&certificate, 1_500_000).is_ok());
    // The key of the user is no authority, and neither is one that was taken out.
    scene.all.trusted = vec![scene.user.public_key().clone()];
    refused(&scene, "is not trusted");
    scene.all.trusted = Vec::new();
    refused(&scene, "is not trusted");
    scene.all.trusted = vec![authority];
    scene.authority = PrivateKey::generate(KeyKind::EcdsaP256).unwrap();
    scene.all.trusted.push(scene.authority.public_key().clone());
    let other = scene.certificate(|_| {});
    let outcome = scene.try_at(&other, 1_500_000).unwrap_err();
    assert!(outcome.contains("does not allow signatures by ecdsa-sha2-nistp256"), "{outcome}");
}
