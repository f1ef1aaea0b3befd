//! `outlast sign --format jws`: what `jose` of Node says of it, and attacks on headers.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::{Value, json};

use crate::common::peers::peer;
use crate::common::{Folder, fail, outlast, succeed};

/// The header and the signature.
fn parts(jws: &str) -> (Value, String) {
    let parts: Vec<_> = jws.trim_end().split('.').collect();
    let header = URL_SAFE_NO_PAD.decode(parts[0]).unwrap();
    assert_eq!((parts.len(), parts[1]), (3, ""));
    (serde_json::from_slice(&header).unwrap(), parts[2].to_owned())
}

#[test]
fn headers_do_not_decide_by_what_a_key_signs() {
    let folder = Folder::new();
    let server = folder.serve();
    let client = |arguments: &[&str]| folder.client_at(&server, arguments);
    let verify = |file: &str, signature: &str| {
        let mut command = outlast();
        command.args(["verify", file, "--signature", signature, "--trust", "roots.pem"]);
        folder.here(command)
    };
    let mut roots = String::new();
    let signers = [
        ("ml", "ml-dsa-65", "ML-DSA-65"),
        ("p384", "ecdsa-p384", "ES384"),
        ("p256", "ecdsa-p256", "ES256"),
    ];
    for (name, algorithm, _) in signers {
        let setup = ["sign", "setup", "--name", name, "--algorithm", algorithm, "--create-ca"];
        succeed(&mut client(&setup));
        roots += &std::fs::read_to_string(folder.path(&format!("{name}-root.pem"))).unwrap();
    }
    folder.write("roots.pem", roots.as_bytes());
    for (name, _, alg) in signers {
        let file = format!("{name}.bin");
        // Points and line breaks: the payload is signed as it is.
        folder.write(&file, format!("content.of {name}\n\0").repeat(500).as_bytes());
        let key = format!("alias/{name}");
        let said = succeed(&mut client(&["sign", &file, "--format", "jws", "--key", &key]));
        assert!(said.contains(&format!("signed {file}: {file}.jws")), "{said}");
        let signature = format!("{file}.jws");
        let said = succeed(&mut verify(&file, &signature));
        assert!(said.contains(&format!("by \"CN={name}\"")), "{said}");
        let (header, _) = parts(&std::fs::read_to_string(folder.path(&signature)).unwrap());
        assert_eq!(header["alg"], alg);
        let Some(place) = peer("javascript") else { continue };
        let jose = |file: &str| {
            let program = place.join("src/jws.mjs");
            let mut command = Command::new(place.join("bin/node"));
            command.arg(program).args(["verify", &signature, file]);
            folder.here(command)
        };
        let said = succeed(&mut jose(&file));
        assert_eq!(said.trim_end(), format!("verified {alg}"));
        fail(&mut jose("roots.pem"), 1);
    }

    let jws = std::fs::read_to_string(folder.path("ml.bin.jws")).unwrap();
    let (header, signature) = parts(&jws);
    let (other, other_signature) =
        parts(&std::fs::read_to_string(folder.path("p256.bin.jws")).unwrap());
    let with = |name: &str, value: Value| {
        let mut header = header.clone();
        header[name] = value;
        format!("{}..{signature}", URL_SAFE_NO_PAD.encode(header.to_string()))
    };
    let encoded = jws.split('.').next().unwrap();
    let payload = URL_SAFE_NO_PAD.encode("else");
    for (name, text, reason) in [
        ("none", with("alg", json!("none")), "the algorithm \"none\""),
        ("hmac", with("alg", json!("HS256")), "the algorithm \"HS256\""),
        (
            "es256",
            with("alg", json!("ES256")),
            "the header says ES256, and the key of \"CN=ml\" is of type ML-DSA-65",
        ),
        ("ml-dsa-87", with("alg", json!("ML-DSA-87")), "the header says ML-DSA-87"),
        ("crit", with("crit", json!(["b64", "exp"])), "the critical header \"exp\" is not known"),
        ("b64", with("b64", json!(true)), "the signature is not valid"),
        ("x5c", with("x5c", other["x5c"].clone()), "is of type EC P-256"),
        ("no-x5c", with("x5c", json!([])), "has no certificate"),
        ("jwk", with("jwk", json!({ "kty": "oct", "k": "AA" })), "the signature is not valid"),
        ("empty", format!("{encoded}.."), "the signature is not valid"),
        ("other", format!("{encoded}..{other_signature}"), "the signature is not valid"),
        ("payload", format!("{encoded}.{payload}.{signature}"), "is not the file"),
        ("parts", format!("{jws}.x"), "three parts"),
    ] {
        let file = format!("{name}.jws");
        folder.write(&file, text.as_bytes());
        let text = fail(&mut verify("ml.bin", &file), 3);
        assert!(text.contains(reason), "{name}: {text}");
    }
    let text = fail(&mut verify("p384.bin", "ml.bin.jws"), 3);
    assert!(text.contains("or the file was changed"), "{text}");
    let policy = "[[rule]]\nfiles = \"*.bin\"\ntrust = \"roots.pem\"\nalgorithms = \"ml-dsa-65 or better\"\n";
    folder.write("policy.toml", policy.as_bytes());
    let judged = |file: &str| {
        let mut command = outlast();
        command.args(["verify", file, "--signature", &format!("{file}.jws")]);
        command.args(["--policy", "policy.toml"]);
        folder.here(command)
    };
    succeed(&mut judged("ml.bin"));
    let text = fail(&mut judged("p384.bin"), 3);
    assert!(text.contains("its algorithm ecdsa-p384 is not ml-dsa-65 or better"), "{text}");
    // One signer; and options that only CMS has.
    let sign = |more: &[&str]| client(&[&["sign", "ml.bin", "--format", "jws"], more].concat());
    let two = ["--key", "alias/ml", "--key", "alias/p256", "--force"];
    let text = fail(&mut sign(&two), 2);
    assert!(text.contains("a JWS in the compact form has one signer"), "{text}");
    let text = fail(&mut sign(&["--key", "alias/ml"]), 1);
    assert!(text.contains("nothing is signed") && text.contains("ml.bin.jws"), "{text}");
    let text = fail(&mut sign(&["--key", "alias/ml", "--embed-revocation"]), 2);
    assert!(text.contains("--embed-revocation is for CMS signatures"), "{text}");
    // The certificate of the header is the one of the key's tag.
    let der = STANDARD.decode(header["x5c"][0].as_str().unwrap()).unwrap();
    assert!(outlast_pki::certificate::Certificate::parse(&der).is_ok());
}
