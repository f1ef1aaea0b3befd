//! Keys and certificates, among themselves. `tests/` has those of OpenSSH.

use super::pair::{KINDS, Pair, With, host, key, server_config};
use crate::*;

#[test]
fn key_files_are_read_back() {
    for kind in KINDS {
        let original = key(kind);
        let file = original.to_openssh_pem("a comment").unwrap();
        let text = std::str::from_utf8(file.expose()).unwrap();
        let read = PrivateKey::from_pem(text).unwrap();
        assert_eq!(read.public_key(), original.public_key(), "{kind:?}");
        let algorithm = read.algorithm();
        let signature = read.sign(algorithm, b"message").unwrap();
        let (row, _) = signature::Algorithm::by_name(algorithm).unwrap();
        let verified = |message: &[u8], signature: &[u8]| {
            signature::verify(original.public_key(), row, message, signature).is_some()
        };
        assert!(verified(b"message", &signature), "{kind:?}");
        assert!(!verified(b"another", &signature));
        for at in 0..signature.len() {
            let mut changed = signature.clone();
            changed[at] ^= 1;
            // Lengths and names count, too.
            if at % 37 == 0 || at < 40 {
                assert!(!verified(b"message", &changed), "{kind:?} {at}");
            }
        }
        assert!((0..40).all(|len| !verified(b"message", &signature[..len])));
        let line = original.public_key().to_openssh_line() + " comment";
        assert_eq!(&PublicKey::from_openssh_line(&line).unwrap(), original.public_key());
        assert!(original.public_key().fingerprint().starts_with("SHA256:"));
    }
}

#[test]
fn what_is_not_a_key_is_refused() {
    for text in
        ["", "-----BEGIN OPENSSH PRIVATE KEY-----", "-----BEGIN X-----\nAA\n-----END X-----"]
    {
        assert!(matches!(PrivateKey::from_pem(text), Err(KeyError::Malformed(_))), "{text}");
    }
    let encrypted = "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nAA==\n-----END RSA PRIVATE KEY-----\n";
    assert!(matches!(PrivateKey::from_pem(encrypted), Err(KeyError::Encrypted)));
    let key = key(KeyKind::EcdsaP256).public_key().clone();
    for len in 0..key.blob().len() {
        assert!(PublicKey::parse(&key.blob()[..len]).is_err(), "{len}");
    }
    let mut longer = key.blob().to_vec();
    longer.push(0);
    assert!(PublicKey::parse(&longer).is_err());
    assert!(PublicKey::from_openssh_line("ssh-ed25519").is_err());
    let other = key.to_openssh_line().replace("ecdsa-sha2-nistp256 ", "ssh-ed25519 ");
    assert!(PublicKey::from_openssh_line(&other).is_err());
    let dss = "ssh-dss AAAAB3NzaC1kc3MAAAAA";
    assert!(matches!(PublicKey::from_openssh_line(dss), Err(KeyError::UnsupportedType(_))));
}

pub(super) fn fields(kind: CertificateKind, principals: &[&str]) -> CertificateFields {
    CertificateFields {
        serial: 7,
        kind,
        key_id: "alice's laptop".to_owned(),
        principals: principals.iter().map(|name| (*name).to_owned()).collect(),
        valid_after_s: 1000,
        valid_before_s: 2000,
        critical_options: vec![
            ("force-command".to_owned(), option_value(Some("internal-sftp"))),
            ("source-address".to_owned(), option_value(Some("192.0.2.0/24,2001:db8::1"))),
        ],
        extensions: vec![("permit-pty".to_owned(), option_value(None))],
    }
}

#[test]
fn certificates_of_every_key_by_every_authority() {
    for kind in KINDS {
        for authority in KINDS {
            let user = key(kind);
            let authority = key(authority);
            let fields = fields(CertificateKind::User, &["alice", "bob"]);
            let issued = Certificate::issue(user.public_key(), &fields, &authority).unwrap();
            assert_eq!(
                (issued.key(), issued.authority()),
                (user.public_key(), authority.public_key())
            );
            assert_eq!(issued.fields(), &fields);
            let line = issued.to_openssh_line();
            assert_eq!(Certificate::from_openssh_line(&line).unwrap(), issued);
            let mut pair = Pair::new(
                server_config(),
                ClientConfig::default(),
                With::Key(user, Some(Box::new(issued.clone()))),
            );
            pair.check(&format!("{kind:?}"));
            assert!(pair.attempts[0].contains("certificate: Some"), "{:?}", pair.attempts);
            // One changed bit anywhere is noticed.
            for at in (0..issued.blob().len()).step_by(101) {
                let mut changed = issued.blob().to_vec();
                changed[at] ^= 0x10;
                assert!(Certificate::parse(&changed).is_err(), "{kind:?} {at}");
            }
        }
    }
}

#[test]
fn certificates_are_checked() {
    let authority = key(KeyKind::Ed25519);
    let issue = |fields: &CertificateFields| {
        Certificate::issue(key(KeyKind::EcdsaP256).public_key(), fields, &authority).unwrap()
    };
    let certificate = issue(&fields(CertificateKind::User, &["alice"]));
    let check = |name, now_ms| certificate.check(CertificateKind::User, name, now_ms);
    assert_eq!(check("alice", 1_000_000), Ok(()));
    assert_eq!(check("alice", 1_999_999), Ok(()));
    assert_eq!(check("alice", 999_999), Err(CertificateError::NotYetValid));
    assert_eq!(check("alice", 2_000_000), Err(CertificateError::Expired));
    assert_eq!(check("bob", 1_500_000), Err(CertificateError::Principal));
    let as_host = certificate.check(CertificateKind::Host, "alice", 1_500_000);
    assert_eq!(as_host, Err(CertificateError::Kind));
    assert_eq!(certificate.forced_command(), Some(&b"internal-sftp"[..]));
    for (address, allowed) in [
        ("192.0.2.9", true),
        ("::ffff:192.0.2.9", true),
        ("2001:db8::1", true),
        ("192.0.3.1", false),
    ] {
        let checked = certificate.check_source(address.parse().unwrap());
        assert_eq!(checked.is_ok(), allowed, "{address}");
    }
    // No principals: no user, but every host.
    let nobody = issue(&fields(CertificateKind::User, &[]));
    assert!(nobody.check(CertificateKind::User, "", 1_500_000).is_err());
    let mut plain = fields(CertificateKind::Host, &[]);
    plain.critical_options.clear();
    assert_eq!(issue(&plain).check(CertificateKind::Host, "h", 1_500_000), Ok(()));
    let mut unknown = fields(CertificateKind::User, &["alice"]);
    unknown.critical_options = vec![("x@example.com".to_owned(), Vec::new())];
    let unknown = issue(&unknown).check(CertificateKind::User, "alice", 1_500_000);
    assert_eq!(unknown, Err(CertificateError::CriticalOption("x@example.com".to_owned())));
}

#[test]
fn a_host_key_may_have_a_certificate() {
    for kind in KINDS {
        let mut fields = fields(CertificateKind::Host, &["files.example.com"]);
        fields.critical_options.clear();
        let issued =
            Certificate::issue(key(kind).public_key(), &fields, &key(KeyKind::Ed25519)).unwrap();
        let mut config = server_config();
        config.host_keys = vec![HostKey { certificate: Some(issued), ..host(kind) }];
        let name = key(kind).algorithm();
        let certified = signature::Algorithm::by_name(name).unwrap().0.with_certificate;
        for (host_certificates, expected) in
            [(true, certified.to_owned()), (false, name.to_owned())]
        {
            let client = ClientConfig { host_certificates, ..ClientConfig::default() };
            let host_keys = config.host_keys.iter().map(again).collect();
            let config = ServerConfig { host_keys, ..server_config() };
            let mut pair = Pair::new(config, client, With::Password);
            pair.check(&expected);
            assert_eq!(pair.negotiations[0].outcome.as_ref().unwrap().host_key, expected);
        }
    }
}

fn again(host: &HostKey) -> HostKey {
    HostKey { key: host.key.clone(), certificate: host.certificate.clone() }
}
