//! PQMagic's algorithms against its published known answers. Needs the library, which `cargo xtask peers` installs,
//! and the vectors, which are outside the repository, next to the checkout in `../shared/vectors`.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test may fail and print"
)]

use std::path::PathBuf;

use outlast_native::pqmagic::{FILE_NAME, KEMS, PqMagic, SIGNATURES};

fn library() -> Option<PqMagic> {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let usual = here.join("../../target/peers/pqmagic/lib");
    let place = std::env::var_os("OUTLAST_PQMAGIC").map_or(usual, PathBuf::from);
    match PqMagic::load(&[place]) {
        Ok(library) => Some(library),
        Err(missing) => {
            outlast_testing::skip_for_want_of("pqmagic", missing);
            None
        }
    }
}

type Vector = Vec<(String, Vec<u8>)>;

/// Values `name = HEX` of each vector in a file.
fn vectors(file: &str) -> Option<Vec<Vector>> {
    let folder = outlast_testing::vectors("aigis")?;
    let text = std::fs::read_to_string(folder.join(file)).unwrap();
    let mut vectors: Vec<Vector> = Vec::new();
    for line in text.lines() {
        if line.starts_with("TEST VEC") {
            vectors.push(Vec::new());
        } else if let Some(vector) = vectors.last_mut()
            && let Some((name, value)) = line.split_once('=')
            && !name.contains("len")
        {
            vector.push((name.trim().to_owned(), unhex(value.trim())));
        }
    }
    Some(vectors)
}

fn unhex(text: &str) -> Vec<u8> {
    let pair = |at| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
    (0..text.len()).step_by(2).map(pair).collect()
}

fn value<'a>(vector: &'a Vector, name: &str) -> &'a [u8] {
    let found = vector.iter().find(|(key, _)| key == name);
    found.map_or(&[], |(_, bytes)| bytes)
}

#[test]
fn what_is_missing_says_how_to_get_it() {
    let missing = PqMagic::load(&[PathBuf::from("/nonexistent")]).unwrap_err().to_string();
    assert!(missing.contains(FILE_NAME) && missing.contains("pip install"), "{missing}");
}

#[test]
fn a_file_that_is_no_library_is_refused() {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    let missing = PqMagic::load(&[file]).unwrap_err().to_string();
    assert!(missing.contains("Cargo.toml"), "{missing}");
}

#[test]
fn every_mechanism_goes_round() {
    let Some(library) = library() else { return };
    for sizes in KEMS {
        let kem = library.kem(*sizes).unwrap();
        let (public, secret) = kem.generate().unwrap();
        assert_eq!((public.len(), secret.len()), (sizes.public_key, sizes.secret_key));
        let (ciphertext, shared) = kem.encapsulate(&public).unwrap();
        assert_eq!(kem.decapsulate(&secret, &ciphertext).unwrap(), shared, "{}", sizes.name);
        assert!(kem.encapsulate(&public[1..]).is_err() && kem.decapsulate(&secret, b"").is_err());
    }
}

#[test]
fn sizes_that_are_too_small_are_noticed() {
    let Some(library) = library() else { return };
    let mut sizes = KEMS[1];
    sizes.public_key -= 1;
    // Repeated because the surplus byte is random.
    for _ in 0..300 {
        let missing = library.kem(sizes).unwrap_err().to_string();
        assert!(missing.contains("other sizes"), "{missing}");
    }
}

#[test]
fn every_signature_algorithm_signs() {
    let Some(library) = library() else { return };
    for sizes in SIGNATURES {
        let algorithm = library.signature(*sizes).unwrap();
        let (public, secret) = algorithm.generate().unwrap();
        let mut signature = algorithm.sign(&secret, b"message", b"").unwrap();
        assert_eq!((public.len(), signature.len()), (sizes.public_key, sizes.signature));
        assert!(algorithm.verify(&public, b"message", b"", &signature), "{}", sizes.name);
        assert!(!algorithm.verify(&public, b"Message", b"", &signature));
        assert!(!algorithm.verify(&public, b"message", b"", &signature[1..]));
        signature[0] ^= 1;
        assert!(!algorithm.verify(&public, b"message", b"", &signature));
    }
}

#[test]
fn aigis_enc_gives_the_known_answers() {
    let Some(library) = library() else { return };
    let rows = KEMS.iter().filter(|row| row.name.starts_with("aigis"));
    for (number, sizes) in (1..).zip(rows) {
        let file = format!("aigis_enc_{number}_test_vectors.txt");
        let Some(vectors) = vectors(&file) else { return };
        assert_eq!(vectors.len(), 10);
        let kem = library.kem(*sizes).unwrap();
        for vector in &vectors {
            let (public, secret) = kem.generate_from(value(vector, "keypair coins")).unwrap();
            assert_eq!(public, value(vector, "pk"), "{}", sizes.name);
            assert_eq!(secret, value(vector, "sk"), "{}", sizes.name);
            let coins = value(vector, "kem_enc coins");
            let (ciphertext, shared) = kem.encapsulate_from(&public, coins).unwrap();
            assert_eq!(ciphertext, value(vector, "ct"), "{}", sizes.name);
            assert_eq!(shared, value(vector, "ss"), "{}", sizes.name);
            assert_eq!(kem.decapsulate(&secret, &ciphertext).unwrap(), shared);
        }
    }
}

#[test]
fn aigis_sig_gives_the_known_answers() {
    let Some(library) = library() else { return };
    let rows = SIGNATURES.iter().filter(|row| row.name.starts_with("aigis"));
    for (number, sizes) in (1..).zip(rows) {
        let file = format!("aigis_sig_{number}_test_vectors.txt");
        let Some(vectors) = vectors(&file) else { return };
        assert_eq!(vectors.len(), 10);
        let algorithm = library.signature(*sizes).unwrap();
        for vector in &vectors {
            let (public, secret) = algorithm.generate_from(value(vector, "keypair coins")).unwrap();
            assert_eq!(public, value(vector, "pk"), "{}", sizes.name);
            assert_eq!(secret, value(vector, "sk"), "{}", sizes.name);
            let (message, context) = (value(vector, "m"), value(vector, "ctx"));
            let signature = algorithm.sign(&secret, message, context).unwrap();
            assert_eq!(signature, value(vector, "sig"), "{}", sizes.name);
            assert!(algorithm.verify(&public, message, context, &signature));
        }
    }
}
