//! Signers and time-stamping authorities that are trusted by their certificate or key alone: a revocation by their CA
//! counts for them, too, if the verifier has the CA's certificate.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use outlast_crypto::digests::sha256;
use outlast_pki::cms::verify::{Evidence, SignedMessage};
use outlast_pki::crl::Reason;
use outlast_pki::ocsp::Status;
use outlast_pki::signing_policy::file;
use outlast_pki::signing_policy::judge::{Context, Verdict};
use outlast_pki::trusted_time::{Authority, Trust};
use outlast_pki::validate::{Proof, Revocation, Standing};

use crate::cms_dual::world;
use crate::cms_revocation::{DAY, crl, response};
use crate::trusted_time::{FILE, REVOKED_AUTHORITIES, SIGNED, Scene, Stamper, new_record};

const NOW: i64 = SIGNED + 100 * DAY;

fn reason(code: u8) -> &'static Reason {
    Reason::by_code(code).unwrap()
}

fn judged(rule: &str, p7s: &[u8], context: Context<'_>) -> Verdict {
    let text = format!("[[rule]]\nfiles = \"*\"\n{rule}\n");
    let rule = file::parse("test", &text).unwrap().rules.remove(0);
    let message = SignedMessage::parse(p7s).unwrap();
    let digests: Vec<_> = message.digests().unwrap().iter().map(|row| row.digest(FILE)).collect();
    let context = Context { now: NOW, as_of: NOW, ..context };
    rule.judge(&message, &digests, &context).unwrap()
}

#[test]
fn a_pinned_signer_is_refused_if_its_ca_revoked_it() {
    let (own, stranger) = (world(&["ML_DSA_44"]), world(&["ML_DSA_44"]));
    let p7s = own.sign(&["sha512"], SIGNED);
    let leaf = &own.signers[0].certificate;
    let key = leaf.public_key().unwrap();
    let pins = [
        format!("certificates = \"sha256:{}\"", hex::encode(sha256(leaf.der()))),
        format!("public_keys = \"sha256:{}\"", hex::encode(sha256(&key))),
    ];
    let (ca, none) = (own.subordinates.clone(), Vec::new());
    let of_ca = |code, days: i64| {
        crl(&own.authorities[0], NOW - DAY, Some((SIGNED + days * DAY, reason(code))))
    };
    let good = crl(&own.authorities[0], NOW - DAY, None);
    // The same name, another key.
    let of_stranger = crl(&stranger.authorities[0], NOW - DAY, Some((SIGNED, reason(1))));
    let revoked = Status::Revoked { at: SIGNED - DAY, reason: reason(4) };
    let by_ocsp = response(&own.authorities[0], &own.signers[0], NOW - 60, revoked);
    let if_present = Some(Revocation::IfPresent);
    let [stolen, ended, superseded, good, of_stranger] =
        &[of_ca(1, 5), of_ca(4, -5), of_ca(4, 5), good, of_stranger].map(|crl| vec![crl]);
    let (by_ocsp, nothing, no_crl) = (vec![by_ocsp], Vec::new(), Vec::new());
    let off = Some(Revocation::Off);
    // (CRLs, OCSP responses, CAs, time that the verifier knows, revocation, reason, warning)
    for (number, (crls, ocsp, authorities, trusted, revocation, refused, warned)) in [
        (stolen, &nothing, &ca, None, if_present, "it was revoked at", ""),
        (stolen, &nothing, &ca, None, None, "it was revoked at", ""),
        (ended, &nothing, &ca, None, None, "it was revoked at", ""),
        (&no_crl, &by_ocsp, &ca, None, None, "it was revoked at", ""),
        // Superseded, and stolen after a time that the verifier knows.
        (superseded, &nothing, &ca, None, None, "", ""),
        (stolen, &nothing, &ca, Some(SIGNED), None, "", ""),
        (good, &nothing, &ca, None, None, "", ""),
        // Evidence that cannot be verified decides nothing, and is not silently ignored.
        (stolen, &nothing, &none, None, None, "", "give it with --certificates"),
        (of_stranger, &nothing, &ca, None, None, "", "not signed by a valid CRL signer"),
        (of_stranger, &nothing, &stranger.subordinates, None, None, "", "give it with"),
        (stolen, &nothing, &ca, None, off, "", ""),
    ]
    .into_iter()
    .enumerate()
    {
        for pin in &pins {
            let context = Context { trusted, revocation, crls, ocsp, ..Context::default() };
            // The CA among the certificates, or among the roots.
            for context in [
                Context { certificates: authorities, ..context },
                Context { roots: authorities, ..context },
            ] {
                let verdict = judged(pin, &p7s, context);
                let signer = &verdict.signers[0];
                let against = signer.against.join("; ");
                assert_eq!(verdict.is_accepted(), refused.is_empty(), "{number}: {against}");
                assert!(against.contains(refused), "{number}: {against}");
                let warnings = signer.warnings.join("; ");
                assert_eq!(warnings.is_empty(), warned.is_empty(), "{number}: {warnings}");
                assert!(warnings.contains(warned), "{number}: {warnings}");
            }
        }
    }
    // What is known is told, with its source.
    let context = Context { certificates: &ca, crls: superseded, ..Context::default() };
    let verdict = judged(&pins[0], &p7s, context);
    let status = &verdict.signers[0].verified.as_ref().unwrap().statuses[0];
    assert_eq!(status.evidence, Some(Evidence::Given(Proof::Crl(0))));
    assert!(matches!(status.standing, Standing::Known { later: Some(_), .. }));
    // Without evidence about it there is nothing to say.
    let verdict = judged(&pins[0], &p7s, Context::default());
    assert!(verdict.signers[0].verified.as_ref().unwrap().statuses.is_empty());
    assert!(verdict.signers[0].warnings.is_empty());
}

#[test]
fn a_pinned_authority_loses_its_tokens_if_its_key_was_stolen() {
    let world = world(&["ML_DSA_44"]);
    let (stamper, later) = (Stamper::new("ML_DSA_44", "A", 3), Stamper::new("ML_DSA_44", "B", 9));
    let p7s = stamper.stamp(&world.sign(&["sha512"], SIGNED), SIGNED + 60);
    let record = new_record(&later, "sha512", &p7s, SIGNED + 50 * DAY);
    let ca = [stamper.ca.certificate.der().to_vec()];
    let message = SignedMessage::parse(&p7s).unwrap();
    let digests: Vec<_> = message.digests().unwrap().iter().map(|row| row.digest(FILE)).collect();
    let signer = message.authenticate(&digests, &[]).unwrap().remove(0);
    let key = stamper.tsa.certificate.public_key().unwrap();
    for pin in [
        Authority::Certificate(sha256(stamper.tsa.certificate.der()).to_vec()),
        Authority::PublicKey(sha256(&key).to_vec()),
    ] {
        // As for an authority below a root.
        for (code, days, alone, covered) in REVOKED_AUTHORITIES {
            let crls = vec![crl(&stamper.ca, NOW - DAY, Some((SIGNED + days * DAY, reason(code))))];
            let authorities = vec![pin.clone(), Authority::Roots(later.roots())];
            let scene = Scene { authorities, crls, ..Scene::new(&world, &[], NOW) };
            let evidence = scene.evidence(&record, &p7s).unwrap();
            let holds = |trust: &Trust<'_>, evidence| {
                let outcome = trust.tokens(&signer, evidence).remove(0).result;
                let said = outcome.as_ref().map_or_else(ToString::to_string, |_| String::new());
                assert!(outcome.is_ok() || said.contains("it was revoked at"), "{said}");
                outcome.is_ok()
            };
            let trust = Trust { certificates: &ca, ..scene.trust() };
            assert_eq!(holds(&trust, None), alone, "{code} {days}");
            assert_eq!(holds(&trust, Some(&evidence)), covered, "{code} {days}");
            // Without the CA nobody verifies the CRL; and revocation may be switched off.
            assert!(holds(&scene.trust(), None));
            assert!(holds(&Trust { revocation: Revocation::Off, ..trust }, None));
        }
    }
}
