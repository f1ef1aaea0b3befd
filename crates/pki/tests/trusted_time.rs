//! When a signature was made: timestamps in messages and evidence records, as far as they hold.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use cms::cert::CertificateChoices;
use cms::signed_data::CertificateSet;
use der::Decode;
use der::asn1::SetOfVec;
use outlast_crypto::digests::Digest;
use outlast_pki::ObjectIdentifier;
use outlast_pki::cms::attach::with_tokens;
use outlast_pki::cms::verify::{SignedMessage, Signer, Status, TimeSource, Verifier, VerifyError};
use outlast_pki::crl::{Crl, Reason};
use outlast_pki::evidence_record::tree::Tree;
use outlast_pki::evidence_record::{EvidenceError, EvidenceRecord};
use outlast_pki::seen::Seen;
use outlast_pki::timestamp::{Imprint, Request, Response};
use outlast_pki::trusted_time::{self, Authority, Evidence, Fault, Timed, Trust, due};
use outlast_pki::validate::{Revocation, Standing};

use crate::cms_dual::{World, changed, world};
use crate::cms_revocation::{DAY, crl};
use crate::common::{Party, START, YEAR, issue};
use crate::timestamp::respond;

pub const FILE: &[u8] = b"the file to be signed";
/// When the file is signed and timestamped.
pub const SIGNED: i64 = START + 10 * DAY;
/// What the accuracy of the tokens of these tests adds to their times: 1.5001 seconds, rounded up.
pub const ACCURACY: i64 = 2;

/// Revocations of an authority that stamps when the file is signed: (reason, days between the signature and the revocation,
/// its token holds alone, it holds under a record of day 50).
pub const REVOKED_AUTHORITIES: [(u8, i64, bool, bool); 5] = [
    (4, 20, true, true),
    (5, -20, false, false),
    (1, 20, false, false),
    (1, 70, false, true),
    (0, 70, false, true),
];

/// A time-stamping authority with its CA and root.
pub struct Stamper {
    pub root: Party,
    pub ca: Party,
    pub tsa: Party,
}

impl Stamper {
    /// An authority whose certificate is valid for so many years, below a root for 30.
    pub fn new(spec: &str, name: &str, years: i64) -> Self {
        let root = issue(spec, &format!("{name} Root"), "RootCACertificate", 30, None);
        let ca = format!("{name} CA");
        let ca = issue(spec, &ca, "SubordinateCACertificate_PathLen0", 30, Some(&root));
        let tsa = issue(spec, name, "TimeStampingCertificate", years, Some(&ca));
        Self { root, ca, tsa }
    }

    pub fn roots(&self) -> Vec<Vec<u8>> {
        vec![self.root.certificate.der().to_vec()]
    }

    /// A token over an imprint at a time in seconds since 1970.
    pub fn token(&self, imprint: Imprint, at: i64) -> Vec<u8> {
        let response = respond(&self.tsa, &self.ca, &Request::new(imprint, None), at * 1000);
        Response::parse(&response).unwrap().token.unwrap()
    }

    /// The message with a token for each signer.
    pub fn stamp(&self, message: &[u8], at: i64) -> Vec<u8> {
        let digest = Digest::by_name("sha512").unwrap();
        let claims = SignedMessage::parse(message).unwrap().claims();
        let token = |value: &Vec<u8>| (value.clone(), self.token(Imprint::of(digest, value), at));
        let tokens: Vec<_> = claims.iter().map(|claim| token(&claim.value)).collect();
        with_tokens(message, &tokens).unwrap()
    }
}

/// What a verifier has, at a time.
pub struct Scene<'a> {
    pub world: &'a World,
    pub authorities: Vec<Authority>,
    pub least: usize,
    pub policies: Vec<ObjectIdentifier>,
    pub crls: Vec<Crl>,
    pub now: i64,
    pub seen: Option<&'a Seen>,
}

impl<'a> Scene<'a> {
    pub fn new(world: &'a World, stampers: &[&Stamper], now: i64) -> Self {
        let one = |stamper: &&Stamper| Authority::Roots(stamper.roots());
        let authorities = stampers.iter().map(one).collect();
        let (policies, crls) = (Vec::new(), Vec::new());
        Self { world, authorities, least: 1, policies, crls, now, seen: None }
    }

    pub fn trust(&self) -> Trust<'_> {
        Trust {
            authorities: &self.authorities,
            least: self.least,
            policies: &self.policies,
            certificates: &[],
            now: self.now,
            holds_at: self.now,
            revocation: Revocation::IfPresent,
            crls: &self.crls,
            ocsp: &[],
            seen: self.seen,
            suits: &|_, _| None,
        }
    }

    pub fn evidence(&self, record: &EvidenceRecord, p7s: &[u8]) -> Result<Evidence, String> {
        let objects = objects(record, &[FILE, p7s]);
        self.trust().evidence(record, &objects).map_err(|refusal| refusal.reason)
    }

    pub fn verify(
        &self,
        p7s: &[u8],
        evidence: Option<&Evidence>,
    ) -> Result<Vec<Timed<Signer>>, VerifyError> {
        let message = SignedMessage::parse(p7s)?;
        let digests: Vec<_> = message.digests()?.iter().map(|row| row.digest(FILE)).collect();
        let verifier = Verifier {
            roots: &self.world.roots,
            now: self.now,
            revocation: Revocation::IfPresent,
            crls: &self.crls,
            seen: self.seen,
            ..Verifier::default()
        };
        trusted_time::verify(&message, &digests, &verifier, &self.trust(), evidence)
    }

    /// The first signer's time and its source.
    pub fn time(&self, p7s: &[u8], evidence: Option<&Evidence>) -> (i64, TimeSource) {
        let found = self.verify(p7s, evidence).unwrap();
        (found[0].signer.time.at, found[0].signer.time.source.clone())
    }
}

pub fn hashes(digest: &'static Digest, objects: &[&[u8]]) -> Vec<Vec<u8>> {
    objects.iter().map(|object| digest.digest(object)).collect()
}

pub fn objects(record: &EvidenceRecord, objects: &[&[u8]]) -> Vec<Vec<Vec<u8>>> {
    record.digests().iter().map(|digest| hashes(digest, objects)).collect()
}

/// A new record over the file and its signature.
pub fn new_record(stamper: &Stamper, digest: &str, p7s: &[u8], at: i64) -> EvidenceRecord {
    let digest = Digest::by_name(digest).unwrap();
    let tree = Tree::new(digest, &[hashes(digest, &[FILE, p7s])]).unwrap();
    let token = stamper.token(Imprint::new(digest, &tree.root).unwrap(), at);
    EvidenceRecord::new(digest, &tree.paths[0], &token).unwrap()
}

pub fn renew(record: &mut EvidenceRecord, stamper: &Stamper, at: i64) {
    let digest = *record.digests().last().unwrap();
    let tree = Tree::new(digest, &[record.tokens_to_cover().unwrap()]).unwrap();
    let token = stamper.token(Imprint::new(digest, &tree.root).unwrap(), at);
    record.renew(&tree.paths[0], &token).unwrap();
}

pub fn rehash(record: &mut EvidenceRecord, digest: &str, stamper: &Stamper, p7s: &[u8], at: i64) {
    let digest = Digest::by_name(digest).unwrap();
    let covers = record.data_to_cover(digest, &hashes(digest, &[FILE, p7s])).unwrap();
    let tree = Tree::new(digest, &[covers]).unwrap();
    let token = stamper.token(Imprint::new(digest, &tree.root).unwrap(), at);
    record.rehash(digest, &tree.paths[0], &token).unwrap();
}

#[test]
fn a_token_tells_the_time_for_as_long_as_it_holds() {
    let world = world(&["ML_DSA_44"]);
    let (stamper, stranger) =
        (Stamper::new("ML_DSA_44", "A", 3), Stamper::new("ML_DSA_44", "B", 3));
    let plain = world.sign(&["sha512"], SIGNED);
    let p7s = stamper.stamp(&plain, SIGNED + 60);
    let claim = (SIGNED, TimeSource::Signer);
    // The certificate has expired, but was valid when it signed.
    let now = START + 2 * YEAR;
    let scene = Scene::new(&world, &[&stamper], now);
    assert_eq!(scene.time(&plain, None), claim);
    // The authority's clock may be behind.
    assert_eq!(scene.time(&p7s, None), (SIGNED + 60 + ACCURACY, TimeSource::Timestamp));
    let found = scene.verify(&p7s, None).unwrap();
    let stamp = found[0].tokens[0].result.as_ref().unwrap();
    assert_eq!((stamp.ends(), stamp.authority()), (START + 3 * YEAR, "CN=A".to_owned()));
    // A token that is not trusted, or has ended, is as if it were not there, and is named.
    for (scene, reason) in [
        (Scene::new(&world, &[&stranger], now), "no path from"),
        (Scene::new(&world, &[], now), "no time-stamping authority is trusted"),
        (Scene::new(&world, &[&stamper], START + 3 * YEAR + 1), "was not renewed before"),
    ] {
        assert_eq!(scene.time(&p7s, None), claim, "{reason}");
        let found = scene.verify(&p7s, None).unwrap();
        let why = found[0].tokens[0].result.as_ref().unwrap_err();
        assert!(why.reason.contains(reason), "{why}");
        assert_eq!(found[0].tokens[0].authority.as_deref(), Some("CN=A"));
    }
    // The earliest token counts.
    let both = stamper.stamp(&stranger.stamp(&plain, SIGNED + 120), SIGNED + 60);
    let scene = Scene::new(&world, &[&stranger, &stamper], now);
    assert_eq!(scene.time(&both, None), (SIGNED + 60 + ACCURACY, TimeSource::Timestamp));
    // Unless two authorities must agree: then the later one.
    let two = Scene { least: 2, ..Scene::new(&world, &[&stranger, &stamper], now) };
    assert_eq!(two.time(&both, None), (SIGNED + 120 + ACCURACY, TimeSource::Timestamp));
    assert_eq!(two.time(&p7s, None), claim);
    // Pins.
    let sha256 = |bytes: &[u8]| Digest::by_name("sha256").unwrap().digest(bytes);
    for (pin, holds) in [
        (Authority::Certificate(sha256(stamper.tsa.certificate.der())), true),
        (Authority::PublicKey(sha256(&stamper.tsa.certificate.public_key().unwrap())), true),
        (Authority::Certificate(sha256(stamper.root.certificate.der())), false),
        (Authority::PublicKey(sha256(b"x")), false),
    ] {
        let scene = Scene { authorities: vec![pin], ..Scene::new(&world, &[], now) };
        assert_eq!(scene.time(&p7s, None) != claim, holds);
        let later = Scene { now: START + 3 * YEAR + 1, ..scene };
        assert_eq!(later.time(&p7s, None), claim);
    }
    // A policy of tokens.
    for (policy, holds) in [("1.3.6.1.4.1.99999.1", true), ("1.2.3", false)] {
        let policies = vec![policy.parse().unwrap()];
        let scene = Scene { policies, ..Scene::new(&world, &[&stamper], now) };
        assert_eq!(scene.time(&p7s, None) != claim, holds);
    }
}

#[test]
fn a_revocation_is_judged_at_the_time_of_the_token() {
    let world = world(&["ML_DSA_44"]);
    let stamper = Stamper::new("ML_DSA_44", "A", 3);
    let plain = world.sign(&["sha512"], SIGNED);
    let p7s = stamper.stamp(&plain, SIGNED + 60);
    let now = SIGNED + 100 * DAY;
    let issuer = &world.authorities[0];
    for (code, days, with_token, without) in
        [(1, 5, true, false), (1, -5, false, false), (4, 5, true, true), (4, -5, false, false)]
    {
        let revoked = Some((SIGNED + days * DAY, Reason::by_code(code).unwrap()));
        let crls = vec![crl(issuer, now - DAY, revoked)];
        let scene = Scene { crls, ..Scene::new(&world, &[&stamper], now) };
        assert_eq!(scene.verify(&p7s, None).is_ok(), with_token, "{code} {days}");
        assert_eq!(scene.verify(&plain, None).is_ok(), without, "{code} {days}");
    }
}

#[test]
fn an_authority_that_was_revoked_keeps_its_tokens_unless_its_key_is_at_risk() {
    let world = world(&["ML_DSA_44"]);
    let (stamper, later) = (Stamper::new("ML_DSA_44", "A", 3), Stamper::new("ML_DSA_44", "B", 9));
    let p7s = stamper.stamp(&world.sign(&["sha512"], SIGNED), SIGNED + 60);
    let now = SIGNED + 100 * DAY;
    let renewed = SIGNED + 50 * DAY;
    let record = new_record(&later, "sha512", &p7s, renewed);
    for (code, days, alone, covered) in REVOKED_AUTHORITIES {
        let revoked = Some((SIGNED + days * DAY, Reason::by_code(code).unwrap()));
        let crls = vec![crl(&stamper.ca, now - DAY, revoked)];
        let scene = Scene { crls, ..Scene::new(&world, &[&stamper, &later], now) };
        let expected = |holds, otherwise| {
            let by_token = (SIGNED + 60 + ACCURACY, TimeSource::Timestamp);
            if holds { by_token } else { otherwise }
        };
        let claim = (SIGNED, TimeSource::Signer);
        assert_eq!(scene.time(&p7s, None), expected(alone, claim), "{code} {days}");
        let evidence = scene.evidence(&record, &p7s).unwrap();
        // What is known of the authority is told with the timestamp.
        let tokens = scene.verify(&p7s, None).unwrap().remove(0).tokens;
        match &tokens[0].result {
            Ok(stamp) => {
                let is_later = |status: &Status| {
                    matches!(status.standing, Standing::Known { later: Some(_), .. })
                };
                assert!(alone && stamp.statuses.iter().any(is_later), "{code} {days}");
            }
            Err(refusal) => {
                assert!(!alone && refusal.fault == Fault::Revoked, "{code} {days}: {refusal}");
            }
        }
        let by_record = (renewed + ACCURACY, TimeSource::EvidenceRecord);
        let found = scene.time(&p7s, Some(&evidence));
        assert_eq!(found, expected(covered, by_record), "{code} {days}");
    }
}

#[test]
fn renewed_evidence_outlives_certificates() {
    let world = world(&["ECC_NIST_P256"]);
    let first = Stamper::new("ECC_NIST_P256", "A", 3);
    let second = Stamper::new("ECC_NIST_P384", "B", 6);
    let third = Stamper::new("ML_DSA_65", "C", 20);
    let p7s = first.stamp(&world.sign(&["sha256"], SIGNED), SIGNED + 60);
    let mut record = new_record(&second, "sha256", &p7s, START + 2 * YEAR);
    let stampers = [&first, &second, &third];
    let holds = |record: &EvidenceRecord, years: i64| {
        let scene = Scene::new(&world, &stampers, START + years * YEAR + DAY);
        let evidence = scene.evidence(record, &p7s)?;
        let found = scene.time(&p7s, Some(&evidence));
        assert_eq!(found, (SIGNED + 60 + ACCURACY, TimeSource::Timestamp));
        Ok::<_, String>(evidence.stamps.len())
    };
    assert_eq!(holds(&record, 4), Ok(1));
    assert!(holds(&record, 6).unwrap_err().contains("was not renewed before"));
    assert_eq!(due::of_record(&record).unwrap().at, START + 6 * YEAR);
    let mut late = record.clone();
    renew(&mut late, &third, START + 6 * YEAR + DAY);
    assert!(holds(&late, 7).unwrap_err().contains("it was renewed too late"));
    renew(&mut record, &second, START + 4 * YEAR);
    renew(&mut record, &third, START + 5 * YEAR);
    assert_eq!(holds(&record, 7), Ok(3));
    // A new digest, and once more in the new chain.
    rehash(&mut record, "sha512", &third, &p7s, START + 8 * YEAR);
    renew(&mut record, &third, START + 9 * YEAR);
    assert_eq!(holds(&record, 15), Ok(5));
    assert_eq!(record.digests().len(), 2);
    // What is written is what is read.
    let read = EvidenceRecord::parse(&record.to_der().unwrap()).unwrap();
    assert_eq!(read.to_der().unwrap(), record.to_der().unwrap());
    assert_eq!(holds(&read, 15), Ok(5));
    let due = due::of_record(&read).unwrap();
    assert_eq!((due.at, due.because.contains("CN=C")), (START + 20 * YEAR, true));
    // A single token, without a record, ends with its certificate; a classical one at the latest in 2035.
    let message = SignedMessage::parse(&p7s).unwrap();
    assert_eq!(due::of_signature(&message).unwrap().at, START + 3 * YEAR);
    let long = Stamper::new("ECC_NIST_P256", "D", 20);
    let stamped = long.stamp(&p7s, SIGNED + 90);
    let due = due::of_signature(&SignedMessage::parse(&stamped).unwrap()).unwrap();
    assert!(due.because.contains("NIST IR 8547 disallows ecdsa-p256"), "{}", due.because);
}

#[test]
fn one_timestamp_renews_many_files() {
    let digest = Digest::by_name("sha512").unwrap();
    let stamper = Stamper::new("ML_DSA_44", "A", 3);
    let files: Vec<[Vec<u8>; 2]> = (0..1000)
        .map(|index| [format!("file {index}"), format!("p7s {index}")].map(String::into_bytes))
        .collect();
    let of = |pair: &[Vec<u8>; 2]| hashes(digest, &[&pair[0], &pair[1]]);
    let tree = Tree::new(digest, &files.iter().map(of).collect::<Vec<_>>()).unwrap();
    let token = stamper.token(Imprint::new(digest, &tree.root).unwrap(), SIGNED);
    let mut records: Vec<_> =
        tree.paths.iter().map(|path| EvidenceRecord::new(digest, path, &token).unwrap()).collect();
    // All of them have the same token, so the renewal has one leaf.
    let groups: Vec<_> = records.iter().map(|record| record.tokens_to_cover().unwrap()).collect();
    let tree = Tree::new(digest, &groups).unwrap();
    let again = stamper.token(Imprint::new(digest, &tree.root).unwrap(), SIGNED + DAY);
    let world = world(&["ML_DSA_44"]);
    let scene = Scene::new(&world, &[&stamper], SIGNED + 2 * DAY);
    for (index, record) in records.iter_mut().enumerate() {
        record.renew(&tree.paths[index], &again).unwrap();
        if index % 97 == 0 {
            let data = [of(&files[index])];
            assert_eq!(scene.trust().evidence(record, &data).unwrap().stamps.len(), 2);
            let other = [of(&files[(index + 1) % 1000])];
            assert_eq!(record.links(&other).map(|_| ()).unwrap_err(), EvidenceError::OtherData);
        }
    }
}

#[test]
fn a_token_is_added_without_touching_the_rest() {
    let world = world(&["ECC_NIST_P256", "ML_DSA_65"]);
    let stamper = Stamper::new("ML_DSA_44", "A", 3);
    let plain = world.sign(&["sha256", "sha512"], SIGNED);
    let stamped = stamper.stamp(&plain, SIGNED + 60);
    let scene = Scene::new(&world, &[&stamper], SIGNED + DAY);
    let found = scene.verify(&stamped, None).unwrap();
    assert_eq!(found.len(), 2);
    assert!(found.iter().all(|one| one.tokens.len() == 1 && one.proven.is_some()));
    // Without the tokens it is the same again, byte by byte.
    let claims = |p7s: &[u8]| SignedMessage::parse(p7s).unwrap().claims();
    assert_eq!(claims(&plain).len(), claims(&stamped).len());
    assert_eq!(with_tokens(&plain, &[]).unwrap(), plain);
    let stripped = crate::cms_dual::with_signers(
        &stamped,
        crate::cms_dual::signers(&stamped)
            .into_iter()
            .map(|mut signer| {
                signer.unsigned_attrs = None;
                signer
            })
            .collect(),
    );
    assert_eq!(stripped, plain);
    let again = crate::cms_dual::with_signers(&stamped, crate::cms_dual::signers(&stamped));
    assert_eq!(again, stamped, "it is in DER");
    assert!(with_tokens(b"", &[]).is_err() && with_tokens(&plain[..100], &[]).is_err());
}

/// Timestamps with CAs of the right name and wrong keys: each of them is tried for each authority that is trusted, and wrong
/// signatures are not remembered.
#[test]
fn what_a_message_costs_is_limited() {
    let world = world(&["ML_DSA_44"]);
    let stamper = Stamper::new("ECC_NIST_P256", "A", 3);
    let plain = world.sign(&["sha512"], SIGNED);
    let value = SignedMessage::parse(&plain).unwrap().claims()[0].value.clone();
    let decoy = |_| {
        let row = "SubordinateCACertificate_PathLen0";
        issue("ECC_NIST_P256", "A CA", row, 30, Some(&stamper.root)).certificate
    };
    let decoys: Vec<_> = (0..31).map(decoy).collect();
    let certificates = decoys.iter().chain([&stamper.tsa.certificate]).map(|one| {
        CertificateChoices::Certificate(x509_cert::Certificate::from_der(one.der()).unwrap())
    });
    let certificates = SetOfVec::try_from(certificates.collect::<Vec<_>>()).unwrap();
    let with = |count: i64, is_costly: bool| {
        let digest = Digest::by_name("sha512").unwrap();
        let token = |number: i64| {
            let token = stamper.token(Imprint::of(digest, &value), SIGNED + 60 + number);
            let token = match is_costly {
                true => changed(&token, |data| {
                    data.certificates = Some(CertificateSet(certificates.clone()));
                }),
                false => token,
            };
            (value.clone(), token)
        };
        with_tokens(&plain, &(0..count).map(token).collect::<Vec<_>>()).unwrap()
    };
    let memory = Seen::default();
    let verify = |p7s: &[u8]| {
        let seen = memory.for_message();
        let authorities = [&stamper, &stamper, &stamper];
        let scene = Scene::new(&world, &authorities, SIGNED + DAY);
        let found = Scene { seen: Some(&seen), ..scene }.verify(p7s, None)?;
        assert!(found[0].tokens.len() >= 8);
        Ok::<_, VerifyError>(found[0].signer.time.source.clone())
    };
    let costly = with(16, true);
    for _ in 0..2 {
        let refusal = verify(&costly).unwrap_err();
        assert_eq!(refusal, VerifyError::TooManySignatures);
        assert!(refusal.to_string().contains("more than 2000 signatures"), "{refusal}");
        // Neither good timestamps nor a few bad ones are affected.
        assert_eq!(verify(&with(16, false)), Ok(TimeSource::Timestamp));
        assert_eq!(verify(&with(8, true)), Ok(TimeSource::Signer));
    }
}
