//! CRLs and OCSP between us and OpenSSL: ours in its verifier, and its requests and responses in ours.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test may fail and print"
)]

use crate::authority;
use crate::common::peers;

use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::{SystemTime, UNIX_EPOCH};

use authority::{Authority, DAY, Plan, YEAR, plan};
use der::asn1::Ia5String;
use outlast_pki::crl::{self, Crl, Entry, Reason, Scope};
use outlast_pki::ocsp::cert_id::hashes;
use outlast_pki::ocsp::{self, CertId, Request, Response, Single, Status};
use outlast_pki::pem;
use peers::{openssl, peer};
use x509_cert::ext::pkix::KeyUsages;
use x509_cert::ext::pkix::crl::CrlDistributionPoints;
use x509_cert::ext::pkix::crl::dp::DistributionPoint;
use x509_cert::ext::pkix::name::{DistributionPointName, GeneralName};

const SPECS: [&str; 3] = ["ML_DSA_65", "ECC_NIST_P256", "RSA_2048"];
const URL: &str = "http://crl.example/partition-3.crl";

fn now() -> i64 {
    i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()).unwrap()
}

fn current(plan: Plan) -> Plan {
    plan.valid(now() - DAY, now() + YEAR)
}

struct World {
    folder: tempfile::TempDir,
    peer: PathBuf,
    root: Authority,
    sub: Authority,
    good: Authority,
    bad: Authority,
}

impl World {
    fn new(spec: &'static str, peer: &Path) -> Self {
        let name = GeneralName::UniformResourceIdentifier(Ia5String::new(URL).unwrap());
        let points = CrlDistributionPoints(vec![DistributionPoint {
            distribution_point: Some(DistributionPointName::FullName(vec![name])),
            reasons: None,
            crl_issuer: None,
        }]);
        let root = current(plan(spec, "Root")).ca(None).issue(None);
        let sub = current(plan(spec, "Sub")).ca(Some(0)).issue(Some(&root));
        let leaf = |serial| {
            current(plan(spec, "leaf"))
                .usage(&[KeyUsages::DigitalSignature])
                .with("2.5.29.31", false, &points)
                .serial(serial)
                .issue(Some(&sub))
        };
        let (good, bad) = (leaf(1), leaf(2));
        let world =
            Self { folder: tempfile::tempdir().unwrap(), peer: peer.into(), root, sub, good, bad };
        for (name, party) in [
            ("root.pem", &world.root),
            ("sub.pem", &world.sub),
            ("good.pem", &world.good),
            ("bad.pem", &world.bad),
        ] {
            world.write(name, pem::certificate(&party.der()).as_bytes());
        }
        world
    }

    fn at(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        std::fs::write(self.at(name), bytes).unwrap();
    }

    /// `@name` in an argument is a file of the folder.
    fn openssl(&self, line: &str) -> Output {
        let arguments: Vec<String> = line
            .split(' ')
            .map(|word| {
                word.strip_prefix('@').map_or_else(|| word.to_owned(), |name| self.at(name))
            })
            .collect();
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        openssl(&self.peer, &arguments).output().unwrap()
    }
}

fn crl(issuer: &Authority, point: Option<&str>, serials: &[&[u8]]) -> Vec<u8> {
    let content = crl::Content {
        issuer: issuer.certificate.subject().clone(),
        issuer_key_id: issuer.certificate.subject_key_identifier().unwrap(),
        number: 1,
        this_update: now() - 60,
        next_update: now() + DAY,
        distribution_points: point.map(str::to_owned).into_iter().collect(),
        scope: Scope::All,
    };
    let reason = Reason::by_aws_name("KEY_COMPROMISE").unwrap();
    let entries = serials.iter().map(|serial| Entry { serial, revoked_at: now() - 60, reason });
    let unsigned = content.prepare(issuer.algorithm, entries).unwrap();
    let signature = issuer.sign(&unsigned.to_be_signed);
    unsigned.assemble(&signature).unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// A response to `request`; it includes a delegated responder's certificate.
fn respond(request: &Request, signer: &Authority, delegated: bool, status: Status) -> Vec<u8> {
    let signer_key = signer.certificate.public_key().unwrap();
    let unsigned = ocsp::Content {
        responder_key: &signer_key,
        produced_at: now(),
        responses: vec![Single {
            id: request.ids[0].clone(),
            status,
            this_update: now() - 60,
            next_update: Some(now() + 3600),
        }],
        nonce: request.nonce.clone(),
    }
    .prepare(signer.algorithm)
    .unwrap();
    let signature = signer.sign(&unsigned.to_be_signed);
    let chain = if delegated { vec![signer.der()] } else { Vec::new() };
    unsigned.assemble(&signature, &chain).unwrap()
}

fn responder(spec: &'static str, issuer: &Authority) -> Authority {
    current(plan(spec, "Responder"))
        .usage(&[KeyUsages::DigitalSignature])
        .purpose(&["1.3.6.1.5.5.7.3.9"])
        .with("1.3.6.1.5.5.7.48.1.5", false, &der::asn1::Null)
        .issue(Some(issuer))
}

/// The regression that matters: a subordinate's CRL has the subordinate's own key as its authority key identifier.
/// With the issuer's instead, OpenSSL finds no CRL ("unable to get certificate CRL").
#[test]
fn openssl_checks_the_crls_of_a_whole_chain() {
    let Some(peer) = peer("openssl") else { return };
    for spec in SPECS {
        let world = World::new(spec, &peer);
        let bad = world.bad.certificate.serial();
        for point in [None, Some(URL)] {
            let ours = crl(&world.sub, point, &[bad]);
            let crls = crl::pem(&crl(&world.root, None, &[])) + &crl::pem(&ours);
            world.write("crls.pem", crls.as_bytes());
            let verify = |name: &str| {
                world.openssl(&format!(
                    "verify -x509_strict -crl_check_all -CAfile @root.pem -untrusted @sub.pem -CRLfile @crls.pem @{name}"
                ))
            };
            let good = verify("good.pem");
            assert!(good.status.success(), "{spec} {point:?}: {}", said(&good));
            let revoked = verify("bad.pem");
            assert!(!revoked.status.success());
            assert!(said(&revoked).contains("certificate revoked"), "{}", said(&revoked));
            world.write("one.crl", &ours);
            let text = said(&world.openssl("crl -inform DER -in @one.crl -text -noout"));
            assert!(text.contains("Key Compromise"), "{text}");
            assert_eq!(text.contains(URL), point.is_some(), "{text}");
        }
        // Another partition does not cover these certificates.
        let other = crl(&world.sub, Some("http://crl.example/partition-4.crl"), &[]);
        let crls = crl::pem(&crl(&world.root, None, &[])) + &crl::pem(&other);
        world.write("crls.pem", crls.as_bytes());
        let output = world.openssl(
            "verify -crl_check_all -CAfile @root.pem -untrusted @sub.pem -CRLfile @crls.pem @good.pem",
        );
        assert!(!output.status.success(), "{spec}: {}", said(&output));
    }
}

#[test]
fn openssl_makes_a_crl_that_is_read() {
    let Some(peer) = peer("openssl") else { return };
    let world = World::new("ECC_NIST_P256", &peer);
    world.write("index.txt", b"R\t301231000000Z\t261101000000Z,superseded\t0ABC\tunknown\t/CN=x\n");
    world.write("number", b"0100\n");
    world.write(
        "ca.cnf",
        format!(
            "[ca]\ndefault_ca=a\n[a]\ndatabase={}\ncrlnumber={}\ndefault_md=sha256\ncrl_extensions=e\n[e]\nauthorityKeyIdentifier=keyid\n",
            world.at("index.txt"),
            world.at("number")
        )
        .as_bytes(),
    );
    let made = said(&world.openssl(
        "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -noenc -keyout @key.pem -out @own.pem -subj /CN=Own -days 30",
    ));
    let output = world.openssl(
        "ca -gencrl -config @ca.cnf -cert @own.pem -keyfile @key.pem -crldays 3 -out @made.crl",
    );
    assert!(output.status.success(), "{made}{}", said(&output));
    let crl = Crl::parse(&std::fs::read(world.at("made.crl")).unwrap()).unwrap();
    let issuer = std::fs::read(world.at("own.pem")).unwrap();
    let issuer = outlast_pki::certificate::Certificate::parse_one(&issuer).unwrap();
    assert!(crl.signed_by(&issuer));
    assert_eq!(crl.entry(&[0x0a, 0xbc]).unwrap().reason.rfc_name, "superseded");
    assert_eq!(crl.number().unwrap(), [1, 0]);
    assert_eq!(crl.authority_key_identifier(), issuer.subject_key_identifier());
}

#[test]
fn openssl_asks_and_believes_the_answer() {
    let Some(peer) = peer("openssl") else { return };
    for spec in SPECS {
        let world = World::new(spec, &peer);
        let responder = responder(spec, &world.sub);
        let reason = Reason::by_aws_name("SUPERSEDED").unwrap();
        let revoked = Status::Revoked { at: now() - 60, reason };
        for (name, hash) in [("good", "sha1"), ("bad", "sha256")] {
            let asked = world.openssl(&format!(
                "ocsp -{hash} -issuer @sub.pem -cert @{name}.pem -reqout @request.der -no_nonce"
            ));
            assert!(asked.status.success(), "{}", said(&asked));
            // With a nonce of OpenSSL's choice.
            let asked = world.openssl(&format!(
                "ocsp -{hash} -issuer @sub.pem -cert @{name}.pem -reqout @nonce.der"
            ));
            assert!(asked.status.success(), "{}", said(&asked));
            let request = Request::parse(&std::fs::read(world.at("nonce.der")).unwrap()).unwrap();
            assert!(request.nonce.is_some());
            let key = world.sub.certificate.public_key().unwrap();
            assert!(request.ids[0].is_of(world.sub.certificate.subject(), &key));
            for signer in [&world.sub, &responder] {
                let status = if name == "bad" { revoked } else { Status::Good };
                let delegated = std::ptr::eq(signer, &responder);
                world.write("response.der", &respond(&request, signer, delegated, status));
                let read = world.openssl(
                    "ocsp -respin @response.der -reqin @nonce.der -CAfile @root.pem -verify_other @sub.pem",
                );
                assert!(read.status.success(), "{spec}: {}", said(&read));
                let text = said(&read);
                assert!(text.contains("Response verify OK"), "{spec}: {text}");
                assert!(!text.contains("WARNING"), "{spec}: {text}");
                let shown = said(&world.openssl("ocsp -respin @response.der -noverify -resp_text"));
                let wanted = if name == "bad" {
                    "Revocation Reason: superseded"
                } else {
                    "Cert Status: good"
                };
                assert!(shown.contains(wanted), "{shown}");
            }
        }
        // Ours, read by OpenSSL.
        for hash in hashes() {
            let key = world.sub.certificate.public_key().unwrap();
            let subject = world.sub.certificate.subject();
            let id = CertId::new(hash, subject, &key, &[1]).unwrap();
            let request = Request { ids: vec![id], nonce: Some(vec![0xab; 32]) };
            world.write("ours.der", &request.to_der().unwrap());
            let text = said(&world.openssl("ocsp -reqin @ours.der -req_text"));
            assert!(text.contains("OCSP Nonce") && text.contains(hash.name), "{text}");
        }
    }
}

/// OpenSSL as the responder, from its index file.
#[test]
fn openssl_answers_and_is_believed() {
    let Some(peer) = peer("openssl") else { return };
    let world = World::new("ECC_NIST_P256", &peer);
    let ca = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -noenc -keyout @key.pem -out @own.pem -subj /CN=Own -days 30";
    assert!(world.openssl(ca).status.success());
    for (serial, name) in [("0x0AB1", "one"), ("0x0AB2", "two")] {
        let leaf = format!(
            "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -noenc -keyout @leaf.key -out @{name}.pem -subj /CN={name} -days 30 -CA @own.pem -CAkey @key.pem -set_serial {serial}"
        );
        let output = world.openssl(&leaf);
        assert!(output.status.success(), "{}", said(&output));
    }
    world.write(
        "index.txt",
        b"V\t361231000000Z\t\t0AB1\tunknown\t/CN=one\nR\t361231000000Z\t261101000000Z,keyCompromise\t0AB2\tunknown\t/CN=two\n",
    );
    let read = |name: &str| {
        let bytes = std::fs::read(world.at(name)).unwrap();
        outlast_pki::certificate::Certificate::parse_one(&bytes).unwrap()
    };
    let own = read("own.pem");
    for (name, revoked) in [("one", false), ("two", true)] {
        let leaf = read(&format!("{name}.pem"));
        let nonce = [0x3c; 32];
        let request = Request::new(&own, &leaf, Some(&nonce)).unwrap();
        world.write("request.der", &request.to_der().unwrap());
        let output = world.openssl(
            "ocsp -index @index.txt -CA @own.pem -rsigner @own.pem -rkey @key.pem -reqin @request.der -respout @response.der -ndays 1",
        );
        assert!(output.status.success(), "{}", said(&output));
        let response = Response::parse(&std::fs::read(world.at("response.der")).unwrap()).unwrap();
        let verified = response.verify(&own, &leaf, Some(&nonce), now()).unwrap();
        assert!(verified.nonce_echoed);
        match verified.status {
            Status::Good => assert!(!revoked),
            Status::Revoked { reason, .. } => {
                assert!(revoked);
                assert_eq!(reason.aws_name, Some("KEY_COMPROMISE"));
            }
            Status::Unknown => panic!("unknown"),
        }
    }
}

/// RSASSA-PSS is one OID; its parameters name the hash.
#[test]
fn openssl_signs_certificates_with_pss() {
    let Some(peer) = peer("openssl") else { return };
    let world = World::new("ECC_NIST_P256", &peer);
    for (hash, salt, expected) in
        [("sha256", "digest", true), ("sha384", "digest", true), ("sha256", "20", false)]
    {
        let output = world.openssl(&format!(
            "req -x509 -newkey rsa:2048 -noenc -keyout @key.pem -out @own.pem -subj /CN=Own -days 30 -{hash} -sigopt rsa_padding_mode:pss -sigopt rsa_pss_saltlen:{salt}"
        ));
        assert!(output.status.success(), "{}", said(&output));
        let bytes = std::fs::read(world.at("own.pem")).unwrap();
        let own = outlast_pki::certificate::Certificate::parse_one(&bytes).unwrap();
        assert_eq!(own.signed_by(&own), expected, "{hash} {salt}");
    }
}

/// pkilint (RFC 5280, RFC 6960, RFC 9881) has no findings on CRLs and OCSP responses.
#[test]
fn pkilint_finds_nothing() {
    let Some(peer) = peer("pkilint") else { return };
    for spec in SPECS {
        let world = World::new(spec, Path::new(""));
        let lint = |program: &str, arguments: &[&str], name: &str| {
            let mut command = std::process::Command::new(peer.join("bin").join(program));
            command.arg("lint").args(arguments).args(["-s", "NOTICE"]).arg(world.at(name));
            let output = command.output().unwrap();
            assert!(output.status.success(), "{spec} {program}: {}", said(&output));
        };
        let serials: &[&[u8]] = &[&[1], &[0x40, 2]];
        for (point, serials) in [(None, &[][..]), (None, serials), (Some(URL), serials)] {
            world.write("one.crl", &crl(&world.sub, point, serials));
            lint("lint_crl", &["-t", "CRL", "-p", "PKIX"], "one.crl");
        }
        let responder = responder(spec, &world.sub);
        let nonce = Some(&[7; 32][..]);
        let request = Request::new(&world.sub.certificate, &world.good.certificate, nonce).unwrap();
        let revoked =
            |code| Status::Revoked { at: now() - 60, reason: Reason::by_code(code).unwrap() };
        for status in [Status::Good, Status::Unknown, revoked(0), revoked(1)] {
            for (signer, delegated) in [(&world.sub, false), (&responder, true)] {
                world.write("response.der", &respond(&request, signer, delegated, status));
                lint("lint_ocsp_response", &[], "response.der");
            }
        }
    }
}
