//! Chains that are made to measure them.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test may fail and print"
)]

use outlast_crypto::keys::KeySpec;
use outlast_crypto::signatures::{Message, SignatureAlgorithm};
use outlast_pki::certificate::Certificate;
use outlast_pki::ocsp::{CertId, Content, Single, Status};
use outlast_pki::whatif::{MAX_LEN, build, flight, ordered};

/// 2026-11-01T00:00:00Z
const START: i64 = 1_793_491_200;

fn specs(names: &[&str]) -> Vec<&'static KeySpec> {
    names.iter().map(|name| KeySpec::by_name(name).unwrap()).collect()
}

#[test]
fn chains_of_every_depth_are_brought_into_order() {
    for depth in 2..=5 {
        let names = vec!["ECC_NIST_P256"; depth];
        let made = build(&specs(&names), &["a.example.com".into()], START).unwrap();
        assert_eq!(made.certificates.len(), depth);
        let mut shuffled = made.certificates.clone();
        shuffled.rotate_left(depth / 2);
        shuffled.swap(0, depth - 1);
        let in_order: Vec<_> =
            ordered(&shuffled).unwrap().iter().map(|found| found.der().to_vec()).collect();
        assert_eq!(in_order, made.certificates, "{depth}");
    }
    for names in [&["ML_DSA_65"][..], &[], &["ECC_NIST_P256"; MAX_LEN + 1]] {
        assert!(build(&specs(names), &[], START).is_err());
    }
    // A key that cannot sign cannot be an issuer's.
    assert!(build(&specs(&["ML_DSA_44", "ML_KEM_768", "ML_DSA_44"]), &[], START).is_err());
    assert!(ordered(&[]).unwrap().is_empty());
}

#[test]
fn an_ocsp_response_is_as_long_as_it_is_said_to_be() {
    for (name, algorithm) in [("ML_DSA_44", "ML_DSA_44"), ("ML_DSA_87", "ML_DSA_87")] {
        let spec = KeySpec::by_name(name).unwrap();
        let made = build(&[spec, spec], &[], START).unwrap();
        let [leaf, issuer] = made.certificates.as_slice() else { panic!() };
        let (leaf, issuer) =
            (Certificate::parse(leaf).unwrap(), Certificate::parse(issuer).unwrap());
        let key = spec.load(&spec.generate().unwrap()).unwrap();
        let algorithm = SignatureAlgorithm::by_pca_name(algorithm).unwrap();
        let issuer_key = issuer.public_key().unwrap();
        let single = Single {
            id: CertId::new(
                &outlast_crypto::digests::SHA1_FOR_IDENTIFIERS,
                issuer.subject(),
                &issuer_key,
                leaf.serial(),
            )
            .unwrap(),
            status: Status::Good,
            this_update: START,
            next_update: Some(START + 86_400),
        };
        let unsigned = Content {
            responder_key: &issuer_key,
            produced_at: START,
            responses: vec![single],
            nonce: None,
        }
        .prepare(algorithm)
        .unwrap();
        let signature = key.sign(algorithm, Message::Raw(&unsigned.to_be_signed)).unwrap();
        let response = unsigned.assemble(&signature, &[]).unwrap();
        let base = response.len() - signature.len();
        println!("{name}: {base}");
        assert!(base.abs_diff(flight::OCSP_BASE) <= 2, "{base}");
    }
}
