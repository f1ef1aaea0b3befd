//! Private keys in every form, by the examples of RFC 9881 where they are available.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test may fail and print"
)]

use std::path::PathBuf;

use outlast_crypto::keys::{Form, KEY_SPECS};
use outlast_pki::key_forms::{KeyError, PrivateKey};
use outlast_pki::object::{self, Kind, Object};

/// The examples of RFC 9881, appendix C, if they are available.
fn examples() -> Option<PathBuf> {
    outlast_testing::vectors("rfc9881")
}

fn read(place: &std::path::Path, name: &str) -> Result<PrivateKey, KeyError> {
    let bytes = std::fs::read(place.join(name)).unwrap();
    PrivateKey::read(&object::read(&bytes).unwrap()[0])
}

#[test]
fn the_three_forms_of_the_rfc_are_one_key() {
    let Some(place) = examples() else { return };
    for set in ["44", "65", "87"] {
        let forms = [("seed", Form::Seed), ("expanded", Form::Expanded), ("both", Form::Both)];
        let keys: Vec<_> = forms
            .iter()
            .map(|(name, form)| {
                let key = read(&place, &format!("ML-DSA-{set}-{name}.priv")).unwrap();
                assert_eq!((key.form, key.form_name()), (*form, *name));
                assert_eq!(key.spec.name, format!("ML_DSA_{set}"));
                key
            })
            .collect();
        let public = std::fs::read(place.join(format!("ML-DSA-{set}.pub"))).unwrap();
        let public = object::read(&public).unwrap();
        assert_eq!(public[0].kind, Kind::PublicKey);
        for key in &keys {
            assert_eq!(key.public_key, public[0].der.expose());
            for (target, (name, form)) in keys.iter().zip(forms) {
                match key.to_form(form) {
                    Ok(written) => {
                        let original =
                            std::fs::read(place.join(format!("ML-DSA-{set}-{name}.priv")));
                        let original = object::read(&original.unwrap()).unwrap();
                        assert_eq!(written.expose(), original[0].der.expose());
                    }
                    Err(error) => {
                        assert_eq!((key.form, error), (Form::Expanded, KeyError::NoSeed));
                        assert_ne!(target.form, Form::Expanded);
                    }
                }
            }
        }
    }
}

#[test]
fn the_bad_keys_of_the_rfc_are_refused_with_the_reason() {
    let Some(place) = examples() else { return };
    let mut seen = 0;
    for entry in std::fs::read_dir(&place).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if name.starts_with("bad-") {
            seen += 1;
            let error = read(&place, &name).err().unwrap();
            eprintln!("{name}: {error}");
            assert!(matches!(error, KeyError::Inconsistent | KeyError::Part(_)), "{name}: {error}");
        }
    }
    assert!(seen > 0);
}

#[test]
fn every_key_type_reads_back_and_one_form_stays_one_form() {
    for spec in KEY_SPECS.iter().filter(|spec| !spec.is_symmetric()) {
        if spec.name == "RSA_4096" {
            continue; // slow to make, and RSA_2048 is the same code
        }
        let der = spec.to_pkcs8(&spec.generate().unwrap()).unwrap();
        let object = Object { kind: Kind::PrivateKey, der };
        let read = object::read(object.der.expose()).unwrap();
        assert_eq!(read[0].kind, Kind::PrivateKey, "{}", spec.name);
        let key = PrivateKey::read(&read[0]).unwrap();
        assert_eq!(key.spec.name, spec.name);
        assert_eq!(key.to_pkcs8().unwrap().expose(), object.der.expose(), "{}", spec.name);
        if key.form == Form::Pkcs8 {
            assert_eq!(key.to_form(Form::Seed).err(), Some(KeyError::OneForm(spec.name)));
        }
        assert!(PrivateKey::parse(&object.der.expose()[..20]).is_err());
    }
}

proptest::proptest! {
    #[test]
    fn no_key_makes_the_reader_panic(bytes: Vec<u8>, at in 0_usize..54, byte: u8) {
        let _ = PrivateKey::parse(&bytes);
        // A valid seed with one byte changed: another key, or refused.
        let spec = outlast_crypto::keys::KeySpec::by_name("ML_DSA_44").unwrap();
        let sound = spec.to_pkcs8(&outlast_crypto::Secret::new(vec![7; 32])).unwrap();
        let mut changed = sound.expose().to_vec();
        let at = at % changed.len();
        changed[at] = byte;
        if let Ok(key) = PrivateKey::parse(&changed) {
            let written = key.to_pkcs8().unwrap();
            proptest::prop_assert_eq!(written.expose(), &changed[..]);
        }
        for kind in [Kind::EcPrivateKey, Kind::RsaPrivateKey, Kind::PrivateKey] {
            let der = outlast_crypto::Secret::new(bytes.clone());
            let _ = PrivateKey::read(&Object { kind, der });
        }
    }
}
