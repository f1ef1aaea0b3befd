//! Chains, CRLs and OCSP responses checked by other verifiers: OpenSSL, Go 1.27, JDK 25, BouncyCastle and pkilint.
//! `tests/interop/pki/STEPS.md` says what each step checks.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::type_complexity,
    reason = "a test may fail and print"
)]

use crate::common;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use common::authority::{Authority, Order, material, request, root, root_by, subordinate};
use common::peers::{Verdict, Verifier, checkout, openssl, peer, verifiers};
use common::{Folder, outlast, run, stderr, stdout, succeed};
use outlast_crypto::keys::KeySpec;
use outlast_crypto::signatures::Message;
use outlast_pki::certificate::Certificate;
use outlast_pki::templates::{Kind, TEMPLATES, Template};
use outlast_pki::{csr, name, pem};
use outlast_testing::PATIENCE;
use serde_json::{Value, json};

/// Expected result of a step.
#[derive(Clone, Copy)]
enum Want {
    Accepted,
    Revoked,
    Refused,
}
use Want::{Accepted, Refused, Revoked};

impl Want {
    fn is(self, verdict: &Verdict) -> bool {
        match self {
            Accepted => *verdict == Verdict::Accepted,
            Revoked => *verdict == Verdict::Revoked,
            Refused => matches!(verdict, Verdict::Refused(_)),
        }
    }
}

/// The folders of `material.sh`, and the expected results of the steps chain, crl and ocsp in each.
const MATERIAL: &[(&str, [Want; 3])] = &[
    ("good", [Accepted, Accepted, Accepted]),
    ("revoked", [Accepted, Revoked, Revoked]),
    ("stale", [Accepted, Refused, Accepted]),
    ("forged", [Accepted, Refused, Refused]),
    ("stranger", [Accepted, Refused, Refused]),
    ("purpose", [Accepted, Accepted, Refused]),
    ("missing", [Accepted, Refused, Refused]),
    ("root", [Refused, Refused, Refused]),
];

/// A verdict is worth something only from a verifier that can refuse.
#[test]
fn the_verifiers_tell_good_from_bad() {
    let (Some(openssl), Some(verifiers)) = (peer("openssl"), verifiers()) else { return };
    let temporary = tempfile::tempdir().unwrap();
    for (name, algorithm, cases) in [
        ("ml-dsa", &["ML-DSA-65"][..], MATERIAL),
        ("ec", &["EC", "-pkeyopt", "ec_paramgen_curve:P-256"][..], &MATERIAL[..2]),
    ] {
        let out = temporary.path().join(name);
        let mut make = Command::new(checkout().join("tests/interop/pki/material.sh"));
        succeed(make.arg(openssl.join("bin/openssl")).arg(&out).args(algorithm));
        for (case, wanted) in cases {
            for verifier in &verifiers {
                let steps = ["chain", "crl", "ocsp"];
                let verdicts = verifier.verdicts(&out.join(case), &steps);
                for ((step, want), verdict) in steps.iter().zip(wanted).zip(verdicts) {
                    let who = verifier.name;
                    assert!(want.is(&verdict), "{name}, {case}, {step}: {who} said {verdict:?}");
                }
            }
        }
    }
}

/// pkilint's findings at NOTICE or above.
fn lint(peer: &Path, tool: &str, options: &[&str], file: &Path) -> String {
    let mut command = Command::new(peer.join("bin").join(tool));
    let output = run(command.arg("lint").args(options).args(["-s", "NOTICE"]).arg(file));
    let text = stdout(&output).trim().to_owned() + &stderr(&output);
    assert_eq!(output.status.success(), text.is_empty(), "{text}");
    text
}

/// The caller's extensions for a passthrough template.
fn passthrough(template: &Template) -> Option<Value> {
    let ca = json!({
        "Extensions": { "KeyUsage": { "KeyCertSign": true, "CRLSign": true } },
    });
    let leaf = json!({
        "Extensions": {
            "KeyUsage": { "DigitalSignature": true },
            "CertificatePolicies": [{ "CertPolicyId": "2.16.840.1.101.3.2.1.48.1" }],
            "SubjectAlternativeNames": [
                { "DnsName": "api.example" }, { "IpAddress": "192.0.2.7" },
                { "Rfc822Name": "someone@api.example" },
                { "UniformResourceIdentifier": "https://api.example/service" },
            ],
        },
    });
    let given = if template.kind == Kind::EndEntity { leaf } else { ca };
    template.takes_api().then_some(given)
}

/// The extensions of a request, for OpenSSL's `-addext`.
fn requested(template: &Template) -> &'static [&'static str] {
    match template.kind {
        Kind::EndEntity => {
            &["subjectAltName=DNS:csr.example", "keyUsage=critical,digitalSignature"]
        }
        _ => &["keyUsage=critical,keyCertSign,cRLSign"],
    }
}

/// One root, and a certificate of each template below it; a root of its own for each root template.
#[test]
fn pkilint_has_nothing_to_say_of_any_template() {
    let (Some(openssl), Some(pkilint)) = (peer("openssl"), peer("pkilint")) else { return };
    let folder = Folder::new();
    let server = folder.serve();
    let mut found = Vec::new();
    let mut count = 0;
    common::runtime().block_on(async {
        let mut session = server.session().await.unwrap();
        for (algorithms, key, templates) in [
            (("ML_DSA_65", "ML_DSA_65"), &["ML-DSA-65"][..], TEMPLATES),
            (("EC_secp384r1", "SHA384WITHECDSA"), EC_KEY, &TEMPLATES[..10]),
            (("RSA_3072", "SHA256WITHRSA"), RSA_KEY, &TEMPLATES[..10]),
        ] {
            let authority = root(&mut session, algorithms, "Root", None).await;
            for template in templates {
                let issued = certificate(&mut session, &authority, algorithms, template, |name| {
                    // A signature key does not encipher.
                    let enciphers = template.name.starts_with("KeyEncapsulation");
                    let key = if enciphers { RSA_KEY } else { key };
                    let extensions = if enciphers { &[][..] } else { requested(template) };
                    request(&openssl, folder.temporary.path(), name, key, extensions)
                });
                let file = folder.write("linted.pem", issued.await.as_bytes());
                let said = lint(&pkilint, "lint_pkix_cert", &[], &file);
                count += 1;
                if !said.is_empty() {
                    found.push(format!("{algorithms:?}, {}: {said}", template.name));
                }
            }
        }
    });
    assert!(found.is_empty(), "of {count}:\n{}", found.join("\n"));
    println!("pkilint: {count} certificates, no findings");
}

const EC_KEY: &[&str] = &["EC", "-pkeyopt", "ec_paramgen_curve:P-256"];
const RSA_KEY: &[&str] = &["RSA", "-pkeyopt", "rsa_keygen_bits:2048"];

/// A certificate from this template, in PEM. `request` makes a request for a new key.
async fn certificate(
    session: &mut common::Session,
    authority: &Authority,
    algorithms: (&str, &'static str),
    template: &Template,
    request: impl Fn(&str) -> Vec<u8>,
) -> String {
    let passthrough = passthrough(template);
    if template.kind == Kind::Root {
        let name = template.name;
        return root_by(session, algorithms, name, None, name, passthrough).await.certificate;
    }
    let csr = request("applicant");
    let order = Order { template: template.name, csr: &csr, passthrough, days: 30 };
    authority.issue(session, order).await.certificate
}

/// Revocation settings of an authority.
fn revocation(crl_type: &str) -> Value {
    json!({
        "CrlConfiguration": { "Enabled": true, "ExpirationInDays": 7, "CrlType": crl_type },
        "OcspConfiguration": { "Enabled": true },
    })
}

const ONLINE: &[&str] = &["chain", "fetch-crl", "fetch-ocsp"];

/// Whether the steps of `ONLINE` end so.
fn online(verifier: &Verifier, folder: &Path, wanted: [Want; 3]) {
    let verdicts = verifier.verdicts(folder, ONLINE);
    let right = wanted.iter().zip(&verdicts).all(|(want, verdict)| want.is(verdict));
    assert!(right, "{}, {}: {verdicts:?}", verifier.name, folder.display());
}

/// An authority whose certificates are revoked, and the verifiers that know its algorithm.
struct Case {
    /// Its `KeyAlgorithm` and `SigningAlgorithm`.
    algorithms: (&'static str, &'static str),
    /// Arguments with which OpenSSL makes the leaf's key.
    key: &'static [&'static str],
    /// The issuer's `CrlType`.
    crl_type: &'static str,
    who: &'static [&'static str],
}

const ALL: &[&str] = &["OpenSSL", "Go", "JDK", "BouncyCastle"];

/// Repeats the steps of `ONLINE` until they end so: CRLs take a moment.
fn await_steps(verifier: &Verifier, folder: &Path, wanted: [Want; 3]) -> Duration {
    let begin = Instant::now();
    loop {
        let verdicts = verifier.verdicts(folder, ONLINE);
        let waited = begin.elapsed();
        if wanted.iter().zip(&verdicts).all(|(want, verdict)| want.is(verdict)) {
            return waited;
        }
        assert!(waited < PATIENCE, "{}: {verdicts:?}", folder.display());
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn what_ml_dsa_revokes_is_refused_by_all() {
    let algorithms = ("ML_DSA_65", "ML_DSA_65");
    revoked(&Case { algorithms, key: &["ML-DSA-65"], crl_type: "COMPLETE", who: ALL });
}

#[test]
fn what_a_partition_lists_is_refused_by_all() {
    let algorithms = ("ML_DSA_44", "ML_DSA_44");
    revoked(&Case { algorithms, key: &["ML-DSA-44"], crl_type: "PARTITIONED", who: ALL });
}

#[test]
fn what_ec_revokes_is_refused_by_all() {
    let algorithms = ("EC_prime256v1", "SHA256WITHECDSA");
    revoked(&Case { algorithms, key: EC_KEY, crl_type: "COMPLETE", who: ALL });
}

#[test]
fn what_rsa_revokes_is_refused_by_all() {
    let algorithms = ("RSA_2048", "SHA256WITHRSA");
    revoked(&Case { algorithms, key: RSA_KEY, crl_type: "COMPLETE", who: ALL });
}

#[test]
fn what_slh_dsa_revokes_is_refused_by_those_who_know_it() {
    let algorithms = ("SLH_DSA_SHA2_128S", "SLH_DSA_SHA2_128S");
    let who = &["OpenSSL", "BouncyCastle"];
    revoked(&Case { algorithms, key: &["ML-DSA-65"], crl_type: "COMPLETE", who });
}

#[test]
fn what_a_composite_key_revokes_is_refused_by_bouncycastle() {
    let algorithms = ("ML_DSA_65_ECDSA_P256", "ML_DSA_65_ECDSA_P256_SHA512");
    let who = &["BouncyCastle"];
    revoked(&Case { algorithms, key: &["ML-DSA-65"], crl_type: "COMPLETE", who });
}

/// A running server issues and revokes; verifiers use its CRLs and its responder.
fn revoked(case: &Case) {
    let (Some(ssl), Some(pkilint), Some(mut verifiers)) =
        (peer("openssl"), peer("pkilint"), verifiers())
    else {
        return;
    };
    verifiers.retain(|verifier| case.who.contains(&verifier.name));
    // Go starts quickly.
    let quick = verifiers.iter().find(|found| found.name == "Go").unwrap_or(&verifiers[0]);
    let folder = Folder::new();
    let server = folder.serve();
    // OpenSSL requires a CRL for the root, too, and a root is in no partition.
    let [of_root, of_sub] = ["COMPLETE", case.crl_type].map(revocation);
    let at = |name: &str| folder.path(name);
    common::runtime().block_on(async {
        let mut session = server.session().await.unwrap();
        let root = root(&mut session, case.algorithms, "Root", Some(&of_root)).await;
        let sub = subordinate(&mut session, &root, case.algorithms, "Sub", Some(&of_sub)).await;
        for name in ["good", "bad"] {
            let host = format!("subjectAltName=DNS:{name}.example");
            let csr = request(&ssl, folder.temporary.path(), name, case.key, &[&host]);
            let order =
                Order { template: "EndEntityCertificate", csr: &csr, passthrough: None, days: 30 };
            material(&at(name), &sub.issue(&mut session, order).await);
        }
        // An authority has a CRL within seconds, before anybody asks for it.
        await_steps(quick, &at("bad"), [Accepted; 3]);
        let mut show = openssl(&ssl, &["x509", "-noout", "-serial", "-in"]);
        let serial = succeed(show.arg(at("bad").join("leaf.pem")));
        let serial = serial.trim().trim_start_matches("serial=");
        sub.revoke(&mut session, serial, "KEY_COMPROMISE").await;
        let gone = [Accepted, Revoked, Revoked];
        let waited = await_steps(quick, &at("bad"), gone);
        println!("{}: revoked, and refused after {waited:?}", case.algorithms.0);
        for verifier in &verifiers {
            online(verifier, &at("bad"), gone);
            online(verifier, &at("good"), [Accepted; 3]);
        }
        succeed(&mut ours(&at("good")));
        let output = run(&mut ours(&at("bad")));
        assert!(!output.status.success() && stderr(&output).contains("revoked"), "{output:?}");
        for name in ["good", "bad"] {
            let (crl, ocsp) = published(&ssl, &at(name));
            for (tool, options, file) in [
                ("lint_crl", &["-t", "CRL", "-p", "PKIX"][..], crl),
                ("lint_ocsp_response", &[], ocsp),
            ] {
                let said = lint(&pkilint, tool, options, &file);
                assert!(said.is_empty(), "{:?}, {name}, {tool}: {said}", case.algorithms);
            }
        }
    });
}

/// A certificate for a key that cannot sign (RFC 9935); one that can signs the request (RFC 9883).
#[test]
fn a_certificate_for_ml_kem_is_accepted_by_all() {
    let (Some(pkilint), Some(verifiers)) = (peer("pkilint"), verifiers()) else { return };
    let folder = Folder::new();
    let server = folder.serve();
    let key = |spec: &str| {
        let spec = KeySpec::by_name(spec).unwrap();
        spec.load(&spec.generate().unwrap()).unwrap()
    };
    let (signer, kem) = (key("ML_DSA_65"), key("ML_KEM_768"));
    let request = |public: &[u8], possession: Option<&csr::Possession>| {
        let subject = name::common_name("device").unwrap();
        let unsigned = csr::Unsigned::with_statement(subject, public, Vec::new(), possession);
        let unsigned = unsigned.unwrap();
        let algorithm = KeySpec::by_name("ML_DSA_65").unwrap().signing[0];
        let signature = signer.sign(algorithm, Message::Raw(&unsigned.to_be_signed)).unwrap();
        unsigned.assemble(algorithm, &signature).unwrap()
    };
    let at = folder.path("kem");
    common::runtime().block_on(async {
        let mut session = server.session().await.unwrap();
        let (algorithms, revocation) = (("ML_DSA_65", "ML_DSA_65"), revocation("COMPLETE"));
        let root = root(&mut session, algorithms, "Root", Some(&revocation)).await;
        let sub = subordinate(&mut session, &root, algorithms, "Sub", Some(&revocation)).await;
        let csr = request(signer.public_key().unwrap(), None);
        let order =
            Order { template: "EndEntityCertificate", csr: &csr, passthrough: None, days: 30 };
        let issued = sub.issue(&mut session, order).await;
        let der = pem::read_certificates(issued.certificate.as_bytes()).unwrap().remove(0);
        let possession = csr::Possession::by(&Certificate::parse(&der).unwrap(), false);
        let csr = request(kem.public_key().unwrap(), Some(&possession));
        let template = "KeyEncapsulationCertificate";
        let order = Order { template, csr: &csr, passthrough: None, days: 20 };
        material(&at, &sub.issue(&mut session, order).await);
    });
    await_steps(&verifiers[1], &at, [Accepted; 3]);
    for verifier in &verifiers {
        online(verifier, &at, [Accepted; 3]);
    }
    succeed(&mut ours(&at));
    let said = lint(&pkilint, "lint_pkix_cert", &[], &at.join("leaf.pem"));
    assert!(said.is_empty(), "{said}");
}

/// Our own verifier.
fn ours(folder: &Path) -> Command {
    let mut command = outlast();
    command.args(["cert", "verify", "--fetch", "--revocation", "required", "--trust"]);
    command.arg(folder.join("root.pem")).arg("--chain").arg(folder.join("chain.pem"));
    command.arg(folder.join("leaf.pem"));
    command
}

/// Fetches the leaf's CRL and a response about it, from the URLs in the leaf.
fn published(peer: &Path, folder: &Path) -> (PathBuf, PathBuf) {
    let at = |name: &str| folder.join(name).display().to_string();
    let leaf = at("leaf.pem");
    let text = succeed(&mut openssl(
        peer,
        &["x509", "-noout", "-ext", "crlDistributionPoints", "-in", &leaf],
    ));
    let url = text.lines().find_map(|line| line.trim().strip_prefix("URI:")).unwrap().trim();
    let (crl, ocsp) = (folder.join("leaf.crl"), folder.join("leaf.ocsp"));
    let mut fetch = openssl(peer, &["crl", "-in", url, "-outform", "DER", "-out"]);
    succeed(fetch.arg(&crl).env("no_proxy", "127.0.0.1"));
    let uri = succeed(&mut openssl(peer, &["x509", "-noout", "-ocsp_uri", "-in", &leaf]));
    let mut ask =
        openssl(peer, &["ocsp", "-issuer", &at("chain.pem"), "-cert", &leaf, "-noverify"]);
    succeed(ask.args(["-no_proxy", "*", "-url", uri.trim(), "-respout"]).arg(&ocsp));
    (crl, ocsp)
}
