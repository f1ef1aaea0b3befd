//! Attacks on timestamps, as a table: each is refused, with its reason in words.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use cms::cert::CertificateChoices;
use cms::signed_data::{CertificateSet, SignerInfo};
use der::asn1::{Any, ObjectIdentifier, OctetString, SetOfVec};
use der::{Decode, Encode};
use outlast_crypto::digests::Digest;
use outlast_pki::crl::{Crl, Reason};
use outlast_pki::pem;
use outlast_pki::timestamp::{
    Imprint, Nonce, Request, Response, TimestampError, Token, Trust, Verified,
};
use outlast_pki::validate::Revocation;
use x509_cert::ext::pkix::KeyUsages;

use crate::authority::{Authority, Plan, plan};
use crate::cms_dual::{changed, signers, with_signers};
use crate::cms_revocation::{DAY, crl};
use crate::common::{Party, START, YEAR, issue};
use crate::timestamp::{DATA, NOW, STAMPED_MS, World, request, respond, world};

/// What a verifier is given.
struct Attack {
    name: &'static str,
    token: Vec<u8>,
    data: Vec<u8>,
    nonce: Option<Nonce>,
    crls: Vec<Crl>,
    now: i64,
    existed_at: Option<i64>,
    policies: Vec<ObjectIdentifier>,
    root: Vec<u8>,
    /// Part of the reason; empty if it is accepted: a control.
    reason: &'static str,
}

impl Attack {
    fn run(&self) -> Result<Verified, TimestampError> {
        let token = Token::parse_response(&self.token)?;
        let roots = [self.root.clone()];
        let trust = Trust {
            roots: &roots,
            now: self.now,
            nonce: self.nonce.as_ref(),
            crls: &self.crls,
            revocation: Revocation::IfPresent,
            existed_at: self.existed_at,
            policies: &self.policies,
            ..Trust::default()
        };
        token.verify(&Imprint::of(token.imprint().digest, &self.data), &trust)
    }
}

fn oid(text: &str) -> ObjectIdentifier {
    text.parse().unwrap()
}

/// The only signer after a change.
fn with_signer(token: &[u8], change: impl FnOnce(&mut SignerInfo)) -> Vec<u8> {
    let mut all = signers(token);
    change(&mut all[0]);
    with_signers(token, all)
}

const TIME_STAMPING: &str = "1.3.6.1.5.5.7.3.8";
const EKU: &str = "2.5.29.37";

/// A root that certifies authorities against the rules.
struct Careless {
    root: Authority,
}

impl Careless {
    fn tsa(&self, change: impl FnOnce(Plan) -> Plan) -> Party {
        let Authority { key, algorithm, certificate } =
            change(plan("ML_DSA_44", "Stamps")).issue(Some(&self.root));
        Party { key, algorithm, certificate }
    }

    fn token(&self, change: impl FnOnce(Plan) -> Plan) -> Vec<u8> {
        let tsa = self.tsa(change);
        respond(&tsa, &tsa, &request(), STAMPED_MS)
    }
}

fn signs(plan: Plan) -> Plan {
    plan.usage(&[KeyUsages::DigitalSignature])
}

fn purposes(plan: Plan, oids: &[&str]) -> Plan {
    plan.purpose(oids).critical(EKU)
}

fn attacks(w: &World) -> Vec<Attack> {
    let good = w.respond(&request());
    let token = Response::parse(&good).unwrap().token.unwrap();
    let root = w.root.certificate.der().to_vec();
    let attack = |name, token: Vec<u8>, reason| Attack {
        name,
        token,
        data: DATA.to_vec(),
        nonce: request().nonce,
        crls: Vec::new(),
        now: NOW,
        existed_at: None,
        policies: Vec::new(),
        root: root.clone(),
        reason,
    };
    let careless = Careless { root: plan("ML_DSA_44", "Careless").ca(None).issue(None) };
    let by_plan = |name, change: fn(Plan) -> Plan, reason| Attack {
        root: careless.root.der(),
        ..attack(name, careless.token(change), reason)
    };
    let by_row = |row: &str| {
        let tsa = issue("ML_DSA_44", "Stamps", row, 1, Some(&w.ca));
        respond(&tsa, &w.ca, &request(), STAMPED_MS)
    };
    let at = |time_ms: i64| respond(&w.tsa, &w.ca, &request(), time_ms);
    let other = issue("ML_DSA_44", "Stamps", "TimeStampingCertificate", 1, Some(&w.ca));
    let stranger = world("ML_DSA_44");
    let twins = {
        let tsa = careless.tsa(|plan| purposes(signs(plan), &[TIME_STAMPING]));
        let key = tsa.certificate.public_key().unwrap();
        let twin = careless.tsa(|plan| {
            purposes(signs(plan), &[TIME_STAMPING]).public_key(&key).valid(START, START + 2 * YEAR)
        });
        let response = respond(&tsa, &tsa, &request(), STAMPED_MS);
        let token = Response::parse(&response).unwrap().token.unwrap();
        changed(&token, |data| {
            let x509 = x509_cert::Certificate::from_der(twin.certificate.der()).unwrap();
            let only = SetOfVec::try_from(vec![CertificateChoices::Certificate(x509)]).unwrap();
            data.certificates = Some(CertificateSet(only));
        })
    };
    let revoked = |days: i64, code: u8| {
        let reason = Reason::by_code(code).unwrap();
        vec![crl(&w.ca, NOW - 500, Some((STAMPED_MS / 1000 + days * DAY, reason)))]
    };
    let attribute = |number: &str| {
        let number = oid(number);
        move |one: &mut SignerInfo| {
            let kept = one.signed_attrs.iter().flat_map(|set| set.iter());
            let kept: Vec<_> = kept.filter(|one| one.oid != number).cloned().collect();
            one.signed_attrs = Some(SetOfVec::try_from(kept).unwrap());
        }
    };
    let old = Request { nonce: Some(Nonce::new(&[5; 16]).unwrap()), ..request() };
    vec![
        attack("none", good.clone(), ""),
        attack("the token alone", token.clone(), ""),
        attack("the token in PEM", pem::cms(&token).into_bytes(), ""),
        Attack {
            data: b"another file".to_vec(),
            ..attack("a token for another file", good.clone(), "is for other data")
        },
        Attack { data: Vec::new(), ..attack("an empty file", good.clone(), "is for other data") },
        attack("the answer to an older request", w.respond(&old), "nonce is not the request's"),
        attack(
            "an answer without a nonce",
            w.respond(&Request { nonce: None, ..request() }),
            "nonce is not the request's",
        ),
        Attack {
            policies: vec![oid("1.2.3")],
            ..attack("another policy", good.clone(), "which is not accepted")
        },
        attack("garbage", b"not a token at all".to_vec(), "not a timestamp"),
        attack("nothing", Vec::new(), "not a timestamp"),
        attack("half of it", good[..good.len() / 2].to_vec(), "not a timestamp"),
        attack("data follows", [&token[..], b"x"].concat(), "data follows"),
        attack("a certificate", root.clone(), "not a timestamp"),
        attack("too long", vec![0x30; 600_000], "longer than"),
        attack(
            "a code signer's certificate",
            by_row("CodeSigningCertificate"),
            "lacks timeStamping",
        ),
        attack("a TLS server's", by_row("EndEntityServerAuthCertificate"), "extended key usage"),
        attack("a certificate for anything", by_row("EndEntityCertificate"), "extended key usage"),
        by_plan("no extended key usage", signs, "it has no extended key usage"),
        by_plan("a right one", |plan| purposes(signs(plan), &[TIME_STAMPING]), ""),
        by_plan("no key usage", |plan| purposes(plan, &[TIME_STAMPING]), ""),
        by_plan(
            "an extended key usage that is not critical",
            |plan| signs(plan).purpose(&[TIME_STAMPING]),
            "is not critical",
        ),
        by_plan(
            "an additional extended key usage",
            |plan| purposes(signs(plan), &[TIME_STAMPING, "1.3.6.1.5.5.7.3.3"]),
            "allows other purposes",
        ),
        by_plan(
            "any extended key usage in addition",
            |plan| purposes(signs(plan), &[TIME_STAMPING, "2.5.29.37.0"]),
            "allows other purposes",
        ),
        by_plan(
            "a key usage for more than signatures",
            |plan| {
                let usages = [KeyUsages::DigitalSignature, KeyUsages::KeyEncipherment];
                purposes(plan.usage(&usages), &[TIME_STAMPING])
            },
            "key usage allows other purposes",
        ),
        by_plan(
            "a CA stamps",
            |plan| purposes(plan.ca(None), &[TIME_STAMPING]),
            "it is a CA's certificate",
        ),
        Attack {
            now: START + 2 * YEAR,
            ..attack(
                "a time after the certificate's end",
                at((START + YEAR + DAY) * 1000),
                "expired at",
            )
        },
        Attack {
            now: START + 2 * YEAR,
            ..attack("verified after the certificate's end", good.clone(), "")
        },
        attack("a time before the certificate", at((START - DAY) * 1000), "is not valid before"),
        attack("a time in the future", at((NOW + DAY) * 1000), "is in the future"),
        attack("a clock that is a little ahead", at((NOW + 60) * 1000), ""),
        Attack {
            existed_at: Some(STAMPED_MS / 1000 - DAY),
            ..attack("a time after its proof", good.clone(), "later than the time by which")
        },
        Attack {
            root: stranger.root.certificate.der().to_vec(),
            ..attack("a root of the same name", good.clone(), "not valid")
        },
        Attack {
            root: other.certificate.der().to_vec(),
            ..attack("an authority as root", good.clone(), "no certificate of a CA")
        },
        attack(
            "the signature is changed",
            with_signer(&token, |one| one.signature = OctetString::new([7; 2420]).unwrap()),
            "the signature is not valid",
        ),
        attack(
            "the signature of another token",
            with_signer(&token, |one| {
                let other = signers(&Response::parse(&at(STAMPED_MS + 1)).unwrap().token.unwrap());
                *one = other[0].clone();
            }),
            "its digest does not match",
        ),
        Attack {
            root: careless.root.der(),
            ..attack("another certificate for the same key", twins, "another certificate's")
        },
        attack(
            "no signingCertificateV2",
            with_signer(&token, attribute("1.2.840.113549.1.9.16.2.47")),
            "the signature is not valid",
        ),
        attack(
            "two signers",
            {
                let mut all = signers(&token);
                all.push(
                    signers(&Response::parse(&at(STAMPED_MS + 1)).unwrap().token.unwrap())
                        .remove(0),
                );
                with_signers(&token, all)
            },
            "has 2 signers instead of one",
        ),
        attack("no signer", with_signers(&token, Vec::new()), "has 0 signers"),
        attack(
            "without content",
            changed(&token, |data| data.encap_content_info.econtent = None),
            "it has no content",
        ),
        attack(
            "a later time",
            changed(&token, |data| {
                let mut content =
                    data.encap_content_info.econtent.take().unwrap().to_der().unwrap();
                let year = content.windows(4).position(|bytes| bytes == *b"2026").unwrap();
                content[year + 3] = b'7';
                data.encap_content_info.econtent = Some(Any::from_der(&content).unwrap());
            }),
            "its digest does not match",
        ),
        attack(
            "the content of another type",
            changed(&token, |data| {
                data.encap_content_info.econtent_type = oid("1.2.840.113549.1.7.1");
            }),
            "its content is of type",
        ),
        attack(
            "a signed file",
            changed(&token, |data| {
                data.encap_content_info.econtent =
                    Some(Any::encode_from(&OctetString::new(*b"file").unwrap()).unwrap());
            }),
            "is not a TSTInfo",
        ),
        attack(
            "the certificates are gone",
            changed(&token, |data| data.certificates = None),
            "certificate is not in the message",
        ),
        Attack { crls: revoked(-1, 4), ..attack("superseded before", good.clone(), "was revoked") },
        Attack { crls: revoked(1, 4), ..attack("superseded after", good.clone(), "") },
        Attack {
            crls: revoked(1, 1),
            ..attack("its key was stolen after", good.clone(), "only the signer claims")
        },
        Attack {
            crls: revoked(2, 1),
            existed_at: Some(STAMPED_MS / 1000 + DAY),
            ..attack("stolen after another token proved it", good.clone(), "")
        },
        Attack {
            crls: revoked(1, 1),
            existed_at: Some(STAMPED_MS / 1000 + 2 * DAY),
            ..attack("stolen before another token proved it", good, "nothing shows that")
        },
    ]
}

#[test]
fn each_attack_is_refused_with_its_reason() {
    let w = world("ML_DSA_44");
    let mut wrong = Vec::new();
    let attacks = attacks(&w);
    for attack in &attacks {
        match (attack.run(), attack.reason) {
            (Ok(_), "") => {}
            (Err(error), reason) if !reason.is_empty() && error.to_string().contains(reason) => {}
            (outcome, reason) => {
                let outcome = outcome.map(|found| found.time_ms);
                wrong.push(format!("{}: {outcome:?} instead of {reason:?}", attack.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let rows: Vec<_> = attacks.iter().map(|attack| (attack.name, attack.reason)).collect();
    outlast_testing::attack_page::hold("Timestamps", &rows);
}

#[test]
fn a_client_sees_that_an_answer_is_not_its_own() {
    let w = world("ML_DSA_44");
    let asked = request();
    let token = Token::parse_response(&w.respond(&asked)).unwrap();
    token.answers(&asked).unwrap();
    let sha256 = Digest::by_name("sha256").unwrap();
    for (other, reason) in [
        (Request { nonce: None, ..request() }, "nonce"),
        (Request { nonce: Some(Nonce::new(&[1]).unwrap()), ..request() }, "nonce"),
        (Request { policy: Some(oid("1.2.3")), ..request() }, "policy"),
        (Request { imprint: Imprint::of(sha256, DATA), ..request() }, "sha512 digest"),
        (
            Request { imprint: Imprint::of(asked.imprint.digest, b"other"), ..request() },
            "other data",
        ),
    ] {
        let error = token.answers(&other).unwrap_err();
        assert!(error.to_string().contains(reason), "{error}");
    }
}
