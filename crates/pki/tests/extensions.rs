//! General names and extensions: known encodings, refusals, and arbitrary values that are parsed again.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use std::net::IpAddr;

use outlast_pki::extensions::{self, Extension, KEY_USAGES, PURPOSES, Policy, Purpose, check};
use outlast_pki::general_name::{
    GeneralName, MAX_NAMES, decode_names, dns_name, encode_names, ip_address, mailbox, uri,
};
use outlast_pki::name::common_name;
use outlast_pki::{ObjectIdentifier, PkiError};
use proptest::prelude::*;
use x509_cert::der::asn1::OctetString;
use x509_cert::der::{Decode, Encode};

fn oid(text: &str) -> ObjectIdentifier {
    text.parse().unwrap()
}

fn encoded(extension: &Extension) -> String {
    check(extension).unwrap();
    hex::encode(extension.to_der().unwrap())
}

/// RFC 5280's syntax, spelled out by hand.
#[test]
fn encodings_are_those_of_others() {
    let usage = |list: &[&str]| {
        let flags: Vec<_> =
            list.iter().map(|name| extensions::key_usage_by_name(name).unwrap()).collect();
        encoded(&extensions::key_usage(&flags).unwrap())
    };
    assert_eq!(usage(&["DigitalSignature"]), "300e0603551d0f0101ff040403020780");
    assert_eq!(usage(&["KeyCertSign", "CRLSign"]), "300e0603551d0f0101ff040403020106");
    assert_eq!(usage(&["DecipherOnly"]), "300f0603551d0f0101ff04050303070080");
    assert_eq!(
        encoded(&extensions::basic_constraints(true, Some(0), true).unwrap()),
        "30120603551d130101ff040830060101ff020100"
    );
    assert_eq!(
        encoded(&extensions::basic_constraints(false, None, false).unwrap()),
        "30090603551d1304023000"
    );
    assert_eq!(
        encoded(&extensions::ocsp_no_check().unwrap()),
        "300f06092b060105050730010504020500"
    );
    assert_eq!(
        encoded(&extensions::crl_distribution_points(&["http://a/b"]).unwrap()),
        "301b0603551d1f041430123010a00ea00c860a687474703a2f2f612f62"
    );
    let names = [GeneralName::DnsName("a.b".into()), ip_address("127.0.0.1").unwrap()];
    assert_eq!(
        encoded(&extensions::subject_alternative_names(&names, false).unwrap()),
        "30140603551d11040d300b8203612e6287047f000001"
    );
}

#[test]
fn what_breaks_a_rule_is_refused() {
    assert!(extensions::key_usage(&[]).is_err());
    assert!(extensions::extended_key_usage(&[], false).is_err());
    assert!(extensions::certificate_policies(&[]).is_err());
    assert!(extensions::crl_distribution_points(&[]).is_err());
    assert!(extensions::crl_distribution_points(&["no uri"]).is_err());
    assert!(extensions::authority_information_access(&[], &[]).is_err());
    assert!(extensions::subject_information_access(&[]).is_err());
    let policy = |cps: &str| Policy { id: oid("1.2.3"), cps: vec![cps.into()] };
    assert!(extensions::certificate_policies(&[policy("not a uri")]).is_err());
    assert!(extensions::certificate_policies(&[policy("http://a/"), policy("http://a/")]).is_err());
    let custom = |id: &str, der: &[u8]| extensions::custom(oid(id), true, der);
    for garbage in [&[][..], &[5], &[5, 0, 0], &[0x30, 1], &[0x30, 2, 5], &[1, 1, 7], &[2, 2, 0, 1]]
    {
        assert!(custom("1.3.6.1.4.1.32473.1", garbage).is_err(), "{garbage:?}");
    }
    // Nested deeper than anyone needs.
    let deep = (0..20)
        .fold(vec![5, 0], |der, _| [&[0x30, u8::try_from(der.len()).unwrap()][..], &der].concat());
    assert!(custom("1.3.6.1.4.1.32473.1", &deep).is_err());
    custom("1.3.6.1.4.1.32473.1", &[5, 0]).unwrap();
    assert!(custom("2.5.29.15", &[5, 0]).is_err());
    custom("2.5.29.15", &[3, 2, 7, 0x80]).unwrap();
    let constraints = custom(
        "2.5.29.30",
        &hex::decode("300da00b30098207")
            .map(|mut der| {
                der.extend(b"example");
                der
            })
            .unwrap(),
    );
    let constraints = extensions::name_constraints(&constraints.unwrap()).unwrap();
    assert_eq!(constraints.permitted_subtrees.unwrap().len(), 1);
    let many = vec![GeneralName::DnsName("a".into()); MAX_NAMES + 1];
    assert!(encode_names(&many).is_err() && encode_names(&[]).is_err());
    for wrong in [
        GeneralName::DnsName("a b".into()),
        GeneralName::Rfc822Name("a".into()),
        GeneralName::UniformResourceIdentifier("/a".into()),
        GeneralName::DnsName("é.example".into()),
        GeneralName::EdiPartyName { party_name: String::new(), name_assigner: None },
        GeneralName::OtherName { type_id: oid("1.2.3"), value: vec![1] },
    ] {
        let outcome = encode_names(std::slice::from_ref(&wrong));
        assert!(matches!(outcome, Err(PkiError::Name { .. })), "{wrong:?}");
    }
    let error = ip_address(&"9".repeat(1000)).unwrap_err().to_string();
    assert!(error.len() < 200, "{error}");
}

#[test]
fn tables_have_no_doubles() {
    for (index, row) in PURPOSES.iter().enumerate() {
        assert!(PURPOSES[..index].iter().all(|other| other.oid != row.oid));
        assert!(std::ptr::eq(Purpose::by_name(row.name).unwrap(), row));
    }
    assert_eq!(PURPOSES.iter().filter(|row| row.aws).count(), 9);
    assert_eq!(KEY_USAGES.len(), 9);
    assert!(extensions::key_usage_by_name("Nothing").is_none());
    assert_eq!(extensions::access_method_by_name("CA_REPOSITORY"), Some(oid("1.3.6.1.5.5.7.48.5")));
}

fn names() -> impl Strategy<Value = GeneralName> {
    let oids = prop::collection::vec(0u32..100_000, 1..6).prop_map(|arcs| {
        let text = arcs.iter().fold("1.3".to_owned(), |text, arc| format!("{text}.{arc}"));
        oid(&text)
    });
    prop_oneof![
        (oids.clone(), ".{0,40}")
            .prop_map(|(id, text)| GeneralName::other_name(id, &text).unwrap()),
        ".{0,40}".prop_map(GeneralName::Rfc822Name),
        "[a-z0-9*._ -]{0,40}".prop_map(GeneralName::DnsName),
        "[a-z0-9-]{1,20}(\\.[a-z]{1,9}){0,3}".prop_map(GeneralName::DnsName),
        "[a-z.]{1,9}@[a-z]{1,9}".prop_map(GeneralName::Rfc822Name),
        "[a-z0-9:/?#@%\\[\\].]{0,40}".prop_map(GeneralName::UniformResourceIdentifier),
        "https://[a-z]{1,9}(:[0-9]{1,5})?/[a-z]{0,9}"
            .prop_map(GeneralName::UniformResourceIdentifier),
        "[ -~]{1,40}".prop_map(|name| GeneralName::DirectoryName(common_name(&name).unwrap())),
        (".{0,20}", prop::option::of(".{0,20}")).prop_map(|(party_name, name_assigner)| {
            GeneralName::EdiPartyName { party_name, name_assigner }
        }),
        any::<IpAddr>().prop_map(GeneralName::IpAddress),
        oids.prop_map(GeneralName::RegisteredId),
    ]
}

proptest! {
    #[test]
    fn names_that_can_be_made_are_read_again(list in prop::collection::vec(names(), 0..8)) {
        let Ok(der) = encode_names(&list) else {
            prop_assert!(list.is_empty() || list.iter().any(|name| name.check().is_err()));
            return Ok(());
        };
        prop_assert_eq!(&decode_names(&der).unwrap(), &list);
        // The other implementation of the same types parses them, too.
        let theirs = x509_cert::ext::pkix::SubjectAltName::from_der(&der).unwrap();
        prop_assert_eq!(theirs.0.len(), list.len());
        prop_assert_eq!(theirs.to_der().unwrap(), der);
        let extension = extensions::subject_alternative_names(&list, false).unwrap();
        prop_assert!(check(&extension).is_ok());
        for name in &list {
            prop_assert!(!name.to_string().is_empty());
            let one = GeneralName::from_der(&name.to_der().unwrap());
            prop_assert_eq!(&one.unwrap(), name);
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), which in 0usize..14) {
        if let Ok(list) = decode_names(&bytes) {
            for name in &list {
                let _ = (name.check(), name.to_string());
                // What was parsed is encoded as it was.
                prop_assert!(name.to_der().is_ok());
            }
        }
        let _ = GeneralName::from_der(&bytes);
        let ids = [14, 15, 17, 18, 19, 30, 31, 32, 33, 35, 36, 37, 46, 54];
        let id = oid(&format!("2.5.29.{}", ids[which]));
        let value = OctetString::new(bytes.clone()).unwrap();
        let extension = Extension { extn_id: id, critical: false, extn_value: value };
        if check(&extension).is_ok() {
            prop_assert!(outlast_pki::strict_der::is_der(&bytes));
        }
        if let Ok(made) = extensions::custom(id, true, &bytes) {
            prop_assert_eq!(Extension::from_der(&made.to_der().unwrap()).unwrap(), made);
        }
    }

    #[test]
    fn names_as_text_never_panic(text in ".{0,300}") {
        let _ = (dns_name(&text), mailbox(&text), uri(&text), ip_address(&text));
    }

    #[test]
    fn urls_and_policies_are_read_again(host in "[a-z]{1,20}", path in "[a-z/]{0,30}", arcs in prop::collection::vec(0u32..9999, 1..5)) {
        let url = format!("http://{host}/{path}");
        let urls = [url.as_str(), url.as_str()];
        for extension in [
            extensions::crl_distribution_points(&urls).unwrap(),
            extensions::authority_information_access(&urls, &urls).unwrap(),
        ] {
            prop_assert!(check(&extension).is_ok());
        }
        let policies: Vec<_> = arcs.iter().enumerate().map(|(index, arc)| Policy {
            id: oid(&format!("1.3.{index}.{arc}")), cps: vec![url.clone(); index],
        }).collect();
        let extension = extensions::certificate_policies(&policies).unwrap();
        prop_assert!(check(&extension).is_ok());
        let theirs = x509_cert::ext::pkix::CertificatePolicies::from_der(extension.extn_value.as_bytes()).unwrap();
        prop_assert_eq!(theirs.0.len(), policies.len());
    }
}
