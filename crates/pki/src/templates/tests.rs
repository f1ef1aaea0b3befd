//! The whole table: names, sources of extensions, key usages by kind of key.

use super::*;
use crate::extension::extension;
use crate::general_name::GeneralName;
use outlast_crypto::keys::{KEY_SPECS, KeySpec};

#[test]
fn arns_name_rows() {
    for row in TEMPLATES {
        let arn = format!("arn:aws:acm-pca:::template/{}/V1", row.name);
        assert!(std::ptr::eq(Template::by_arn(&arn).unwrap(), row));
    }
    for wrong in [
        "arn:aws:acm-pca:::template/RootCACertificate/V2",
        "arn:aws:acm-pca:::template/Nothing/V1",
        "RootCACertificate/V1",
        "",
    ] {
        assert!(Template::by_arn(wrong).is_none(), "{wrong}");
    }
    assert_eq!(Template::default_row().name, "EndEntityCertificate");
}

/// Counts of the user guide: 10 base templates, 15, 21 and 15 with passthrough.
#[test]
fn every_template_of_aws_is_there_once() {
    let count = |passthrough| {
        TEMPLATES.iter().filter(|row| row.aws && row.passthrough == passthrough).count()
    };
    assert_eq!(count(Passthrough::None), 10);
    assert_eq!(count(Passthrough::Request), 15);
    assert_eq!(count(Passthrough::Call), 21);
    assert_eq!(count(Passthrough::Both), 15);
    let mut names: Vec<_> = TEMPLATES.iter().map(|row| row.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), TEMPLATES.len());
    for row in TEMPLATES {
        let expected = match row.passthrough {
            Passthrough::None => "",
            Passthrough::Request => "_CSRPassthrough",
            Passthrough::Call => "_APIPassthrough",
            Passthrough::Both => "_APICSRPassthrough",
        };
        let suffix = row.name.rsplit_once('_').map_or("", |(base, suffix)| {
            if suffix.ends_with("Passthrough") { &row.name[base.len()..] } else { "" }
        });
        assert_eq!(suffix, expected, "{}", row.name);
        assert_eq!(row.name.contains("RootCA"), row.kind == Kind::Root);
        assert_eq!(row.name.contains("SubordinateCA"), matches!(row.kind, Kind::Subordinate(_)));
        let path_len = row.name.split_once("PathLen").map(|(_, rest)| rest[..1].parse().unwrap());
        assert_eq!(row.path_len(), path_len, "{}", row.name);
        assert_eq!(row.name.contains("CriticalBasic"), row.critical_constraints);
        assert_eq!(row.name.starts_with("Blank"), row.key_usage.is_empty());
    }
}

fn public_key(spec: &str) -> Vec<u8> {
    let spec = KeySpec::by_name(spec).unwrap();
    let key = spec.load(&spec.generate().unwrap()).unwrap();
    key.public_key().unwrap().to_vec()
}

fn names(name: &str) -> Extension {
    extensions::subject_alternative_names(&[GeneralName::DnsName(name.into())], false).unwrap()
}

fn value(list: &[Extension], oid: ObjectIdentifier) -> Option<&Extension> {
    let mut found = list.iter().filter(|extension| extension.extn_id == oid);
    let first = found.next();
    assert!(found.next().is_none(), "{oid} is there twice");
    first
}

/// Each extension comes from the first source that defines it, in AWS's order.
#[test]
fn sources_count_in_their_order() {
    let key = public_key("ECC_NIST_P256");
    let from = |source: &str| {
        let url = format!("http://{source}.example/crl");
        let custom = ObjectIdentifier::new_unwrap("1.3.6.1.4.1.32473.1");
        vec![
            names(&format!("{source}.example")),
            extensions::crl_distribution_points(&[&url]).unwrap(),
            extensions::custom(custom, false, &[0x0c, 3, b'a', b'b', b'c']).unwrap(),
            key_usage(&[KeyUsages::NonRepudiation]).unwrap(),
            extensions::extended_key_usage(&[OCSP_SIGNING], false).unwrap(),
            authority_key_identifier(source.as_bytes()).unwrap(),
            subject_key_identifier(source.as_bytes()).unwrap(),
            extensions::basic_constraints(true, None, false).unwrap(),
        ]
    };
    let (csr, api) = (from("csr"), from("api"));
    let configured = [extensions::crl_distribution_points(&["http://ca.example/crl"]).unwrap()];
    for row in TEMPLATES {
        if row.name.starts_with("KeyEncapsulation") {
            continue;
        }
        let root = row.kind == Kind::Root;
        for authority in [&configured[..], &[]] {
            let input = Requested {
                public_key: &key,
                issuer_key_id: if root { None } else { Some(b"issuer") },
                csr: &csr,
                api: &api,
                authority,
            };
            let out = row.extensions(&input).unwrap();
            let source = if row.takes_api() { "api" } else { "csr" };
            let expected = names(&format!("{source}.example"));
            assert_eq!(value(&out, SUBJECT_ALT_NAME), Some(&expected), "{}", row.name);
            let passed: Option<&[Extension]> = match row.passthrough {
                Passthrough::None => None,
                Passthrough::Request => Some(&csr),
                Passthrough::Call | Passthrough::Both => Some(&api),
            };
            let points = value(&out, id::ID_CE_CRL_DISTRIBUTION_POINTS);
            if root {
                let blank = row.name.starts_with("Blank");
                assert_eq!(points, passed.filter(|_| blank).map(|list| &list[1]), "{}", row.name);
            } else if authority.is_empty() {
                assert_eq!(points, passed.map(|list| &list[1]), "{}", row.name);
            } else {
                assert_eq!(points, Some(&configured[0]), "{}", row.name);
            }
            let usage = value(&out, id::ID_CE_KEY_USAGE);
            let constraints = value(&out, id::ID_CE_BASIC_CONSTRAINTS).unwrap();
            assert_eq!(
                constraints,
                &extension(
                    id::ID_CE_BASIC_CONSTRAINTS,
                    row.kind != Kind::EndEntity || row.critical_constraints,
                    &BasicConstraints {
                        ca: row.kind != Kind::EndEntity,
                        path_len_constraint: row.path_len()
                    }
                )
                .unwrap()
            );
            if row.name.starts_with("Blank") {
                assert_eq!(usage, passed.map(|list| &list[3]), "{}", row.name);
            } else {
                assert_ne!(usage, Some(&csr[3]), "{}", row.name);
            }
            let own = key_identifier(&key).unwrap();
            let subject = subject_key_identifier(&own).unwrap();
            assert_eq!(value(&out, id::ID_CE_SUBJECT_KEY_IDENTIFIER), Some(&subject));
            let issuer = value(&out, id::ID_CE_AUTHORITY_KEY_IDENTIFIER);
            if root {
                let own = authority_key_identifier(&own).unwrap();
                assert_eq!(issuer, Some(passed.map_or(&own, |list| &list[5])));
            } else {
                assert_eq!(issuer, Some(&authority_key_identifier(b"issuer").unwrap()));
            }
        }
    }
}

/// Every template with every kind of key: what a key cannot do is dropped, or refused if nothing would remain.
#[test]
fn key_usages_fit_the_key() {
    let san = [names("a.example")];
    for spec in KEY_SPECS.iter().filter(|spec| !spec.is_symmetric()) {
        let key = public_key(spec.name);
        let kind = public_key::Kind::of(&key).unwrap();
        for row in TEMPLATES {
            let input = Requested { public_key: &key, csr: &san, ..Requested::default() };
            let outcome = row.extensions(&input);
            let wanted = row.key_usage.contains(&KeyUsages::KeyEncipherment);
            let possible = match row.kind {
                Kind::EndEntity if row.key_usage.is_empty() => true,
                Kind::EndEntity if row.key_usage == [KeyUsages::KeyEncipherment] => kind.enciphers,
                Kind::EndEntity => kind.signs() || wanted,
                _ => kind.signs(),
            };
            assert_eq!(outcome.is_ok(), possible, "{} {} {outcome:?}", row.name, spec.name);
            let Ok(out) = outcome else { continue };
            let Some(usage) = value(&out, id::ID_CE_KEY_USAGE) else {
                assert!(row.name.starts_with("Blank"));
                continue;
            };
            assert!(usage.critical);
            let expected: Vec<_> = row
                .key_usage
                .iter()
                .copied()
                .filter(|flag| match flag {
                    KeyUsages::KeyEncipherment => kind.enciphers,
                    _ => kind.signs(),
                })
                .collect();
            assert_eq!(usage, &key_usage(&expected).unwrap(), "{} {}", row.name, spec.name);
        }
    }
}

#[test]
fn an_ipsec_peer_needs_a_name() {
    let key = public_key("ECC_NIST_P256");
    let row = TEMPLATES.iter().find(|row| row.name == "IPSecEndEntityCertificate").unwrap();
    let outcome = row.extensions(&Requested { public_key: &key, ..Requested::default() });
    assert!(matches!(outcome, Err(PkiError::Template { .. })), "{outcome:?}");
}
