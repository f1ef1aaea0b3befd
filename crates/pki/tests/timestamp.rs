//! Timestamps: what we make verifies, what `openssl ts` makes is read, and nothing panics.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use outlast_crypto::digests::{DIGESTS, Digest};
use outlast_crypto::signatures::Message;
use outlast_pki::ObjectIdentifier;
use outlast_pki::timestamp::{
    Accuracy, Failure, Grant, Imprint, MAX_NONCE_LEN, MAX_REQUEST_LEN, Nonce, Request, Response,
    Status, TimestampError, Token, Trust, Verified, refusal,
};
use proptest::prelude::*;

use crate::common::{Party, START, issue, raw};

pub const DATA: &[u8] = b"the file to be stamped";
pub const POLICY: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.4.1.99999.1");
/// When tokens are made, milliseconds since 1970.
pub const STAMPED_MS: i64 = (START + 1000) * 1000 + 56;
pub const NOW: i64 = START + 2000;

/// An authority below a CA.
pub struct World {
    pub root: Party,
    pub ca: Party,
    pub tsa: Party,
    pub root_der: Vec<Vec<u8>>,
}

pub fn world(spec: &str) -> World {
    let root = issue(spec, "Root", "RootCACertificate", 10, None);
    let ca = issue(spec, "Sub", "SubordinateCACertificate_PathLen0", 5, Some(&root));
    let tsa = issue(spec, "Stamps", "TimeStampingCertificate", 1, Some(&ca));
    let root_der = vec![root.certificate.der().to_vec()];
    World { root, ca, tsa, root_der }
}

pub fn request() -> Request {
    let sha512 = Digest::by_name("sha512").unwrap();
    Request::new(Imprint::of(sha512, DATA), Some(Nonce::new(&[0x81; 16]).unwrap()))
}

/// The response of `tsa`, below `ca`.
pub fn respond(tsa: &Party, ca: &Party, request: &Request, time_ms: i64) -> Vec<u8> {
    let grant = Grant {
        request,
        policy: request.policy.unwrap_or(POLICY),
        serial: &[0xff; 20],
        time_ms,
        accuracy: Some(Accuracy { micros: 1_500_100 }),
        ordering: false,
        names_authority: true,
        signer: &tsa.certificate,
        chain: &[ca.certificate.der().to_vec()],
        digest: Digest::by_name(tsa.algorithm.cms_digests[0]).unwrap(),
        algorithm: tsa.algorithm,
    };
    let unsigned = grant.prepare().unwrap();
    assert!(unsigned.to_be_signed().len() < 512, "{}", unsigned.to_be_signed().len());
    let signature = tsa.key.sign(tsa.algorithm, Message::Raw(unsigned.to_be_signed())).unwrap();
    Response::granted(&unsigned.assemble(&signature).unwrap()).unwrap()
}

impl World {
    pub fn respond(&self, request: &Request) -> Vec<u8> {
        respond(&self.tsa, &self.ca, request, STAMPED_MS)
    }

    pub fn trust(&self) -> Trust<'_> {
        Trust { roots: &self.root_der, now: NOW, ..Trust::default() }
    }

    pub fn verify(&self, response: &[u8], data: &[u8]) -> Result<Verified, TimestampError> {
        let token = Token::parse_response(response)?;
        let imprint = Imprint::of(token.imprint().digest, data);
        token.verify(&imprint, &self.trust())
    }
}

#[test]
fn a_token_says_what_was_asked_for() {
    for spec in ["ML_DSA_65", "ML_DSA_87", "ECC_NIST_P256", "RSA_2048"] {
        let world = world(spec);
        for (policy, nonce, wants_certificates) in [
            (None, Some(&[0x81; 16][..]), true),
            (Some("1.2.3.4"), None, true),
            (None, Some(&[0; 3]), false),
        ] {
            let asked = Request {
                policy: policy.map(|text| text.parse().unwrap()),
                nonce: nonce.map(|bytes| Nonce::new(bytes).unwrap()),
                wants_certificates,
                ..request()
            };
            let asked = Request::parse(&asked.to_der().unwrap()).unwrap();
            let response = Response::parse(&world.respond(&asked)).unwrap();
            assert_eq!((response.status, response.failure), (Status::Granted, None));
            let token = Token::parse(&response.token.unwrap()).unwrap();
            token.answers(&asked).unwrap();
            assert_eq!(token.certificates().len(), if wants_certificates { 2 } else { 0 });
            let others: Vec<_> =
                [&world.tsa, &world.ca].map(|party| party.certificate.der().to_vec()).to_vec();
            let policies = [asked.policy.unwrap_or(POLICY)];
            let trust = Trust {
                certificates: if wants_certificates { &[] } else { &others },
                policies: &policies,
                nonce: asked.nonce.as_ref(),
                ..world.trust()
            };
            let found = token.verify(&asked.imprint, &trust).unwrap();
            assert_eq!(found.time_ms, STAMPED_MS);
            assert_eq!(found.accuracy, Some(Accuracy { micros: 1_500_100 }));
            assert_eq!(found.accuracy.unwrap().to_string(), "1.5001 s");
            assert_eq!((found.serial, found.policy), (vec![0xff; 20], policies[0]));
            assert_eq!(found.chain.len(), 3);
            assert!(!found.ordering);
            assert_eq!(found.certificate.subject().to_string(), "CN=Stamps");
        }
    }
}

#[test]
fn every_digest_can_be_stamped() {
    let world = world("ML_DSA_44");
    for digest in DIGESTS {
        let asked = Request::new(Imprint::of(digest, DATA), None);
        let asked = Request::parse(&asked.to_der().unwrap()).unwrap();
        assert!(world.verify(&world.respond(&asked), DATA).is_ok(), "{}", digest.name);
    }
}

#[test]
fn accuracies_keep_their_parts() {
    let world = world("ML_DSA_44");
    for (micros, text) in [
        (0, "0 s"),
        (1, "0.000001 s"),
        (1000, "0.001 s"),
        (500_000, "0.5 s"),
        (60_000_000, "60 s"),
        (4_294_967_295_999_999, "4294967295.999999 s"),
    ] {
        let asked = request();
        let grant = Grant {
            request: &asked,
            policy: POLICY,
            serial: &[1],
            time_ms: STAMPED_MS,
            accuracy: Some(Accuracy { micros }),
            ordering: true,
            names_authority: false,
            signer: &world.tsa.certificate,
            chain: &[world.ca.certificate.der().to_vec()],
            digest: Digest::by_name("sha512").unwrap(),
            algorithm: world.tsa.algorithm,
        };
        let unsigned = grant.prepare().unwrap();
        let message = Message::Raw(unsigned.to_be_signed());
        let signature = world.tsa.key.sign(world.tsa.algorithm, message).unwrap();
        let found = world.verify(&unsigned.assemble(&signature).unwrap(), DATA).unwrap();
        assert_eq!(found.accuracy, Some(Accuracy { micros }));
        assert_eq!(found.accuracy.unwrap().to_string(), text);
        assert!(found.ordering);
    }
}

/// Made by OpenSSL 3.0: `openssl ts -query -data file -sha256 -cert -tspolicy 1.2.3.4.5`, `-sha512 -no_nonce` and
/// `-sha1`.
const QUERY: &str = "30490201013031300d060960864801650304020105000420c41b15e739652fcef790e42b49dff859352fa53d408fc348d32f139ba6a189b506042a03040502085978310bab1ec92a0101ff";
const QUERY_SHA512: &str = "30560201013051300d06096086480165030402030500044098551446ba928870a98e866457002206c4ec39143eb1a46541204f0b508358295f4f802e3808e375a6de67780af957722a50ee0326ffc7e668f6fe3f01bde19e";
const QUERY_SHA1: &str = "30300201013021300906052b0e03021a050004146fbb28dc7c5414a3bb03c6368c4119bc0723722a02087c60817ddef5ca44";
/// `openssl ts -reply` to the first one, with an authority on P-256 directly below this root.
const REPLY: &str = "\
MIIDhzADAgEAMIIDfgYJKoZIhvcNAQcCoIIDbzCCA2sCAQMxDzANBglghkgBZQMEAgEFADCBmgYLKoZIhvcNAQkQAQSggYoEgYcw\
gYQCAQEGBCoDBAUwMTANBglghkgBZQMEAgEFAAQgxBsV5zllL873kOQrSd/4WTUvpT1Aj8NI0y8Tm6ahibUCAQIYEzIwMjYxMTI0\
MTYxNzU5LjAxNVowCgIBAYACAfSBAWQBAf8CCFl4MQurHskqoBWkEzARMQ8wDQYDVQQDDAZTdGFtcHOgggGJMIIBhTCCASygAwIB\
AgIBBzAKBggqhkjOPQQDAjAPMQ0wCwYDVQQDDARSb290MCAXDTI2MTEyNDE2MTc1OFoYDzIxMjUwNjE4MTYxNzU4WjARMQ8wDQYD\
VQQDDAZTdGFtcHMwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAAQVzyxN1Gddpe7ZjVxnXH0niE9h5pHKj05kHWLTHN4KmvZlnJSb\
8/YyOsz6HOzzPoAA5/3wwWtPQhaclDF3vQMqo3UwczAJBgNVHRMEAjAAMA4GA1UdDwEB/wQEAwIHgDAWBgNVHSUBAf8EDDAKBggr\
BgEFBQcDCDAdBgNVHQ4EFgQU3R44L/2Z+jWwmRwHJ3+a2VIZ64EwHwYDVR0jBBgwFoAUII/bqYzWFzep+p6953jY43J1kegwCgYI\
KoZIzj0EAwIDRwAwRAIgCULKt5l1jrFUitmIpSrJfzQCt6XmeO/dw6fnl6+K/CsCIGOHgt3DhOqVEYfhdIiMPUD1q+YdnDU7PVtT\
fiYOSYxyMYIBKTCCASUCAQEwFDAPMQ0wCwYDVQQDDARSb290AgEHMA0GCWCGSAFlAwQCAQUAoIGkMBoGCSqGSIb3DQEJAzENBgsq\
hkiG9w0BCRABBDAcBgkqhkiG9w0BCQUxDxcNMjYxMTI0MTYxNzU5WjAvBgkqhkiG9w0BCQQxIgQgWWiCcKrJwqLMNV4Lo2sC9gpS\
rTqu9uW+7ESmrU4HskUwNwYLKoZIhvcNAQkQAi8xKDAmMCQwIgQgeeBKw4Ycwu+J3gWWoJyOFtvqN3RWT9NCw79iwFtdNiAwCgYI\
KoZIzj0EAwIESDBGAiEAnZc3VCZmLZVzaswzElCgCR+komRJ+XMtHNWhcF7u5S4CIQDpu9rzaji3zOZozta2MJqeo43XwVj5/6Jz\
p6ZXYqq5qg==";
const ROOT: &str = "\
MIIBZTCCAQqgAwIBAgIUS6CsBDAgYyBds1MSVurVYf6bOHgwCgYIKoZIzj0EAwIwDzENMAsGA1UEAwwEUm9vdDAgFw0yNjExMjQx\
NjE3NThaGA8yMTI2MTAzMTE2MTc1OFowDzENMAsGA1UEAwwEUm9vdDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABM8VfoWnMf0H\
Ml1/Xuk7CUFvu4DuhQL93yWEvaiDDpRIZkk3fET5OJIzoTvvL0+asxpgtLRiLNPNdRMrDxaKBbOjQjBAMA8GA1UdEwEB/wQFMAMB\
Af8wDgYDVR0PAQH/BAQDAgEGMB0GA1UdDgQWBBQgj9upjNYXN6n6nr3neNjjcnWR6DAKBggqhkjOPQQDAgNJADBGAiEA/HY87GPW\
yy5FvjWqzAVeGaENYS1OrDOSk0/vuC8UrEgCIQC9XukqILQVbwf7OESI6mFWCnHimTabXEgJfgJTOEvAdg==";

#[test]
fn openssl_asks() {
    let request = Request::parse(&hex::decode(QUERY).unwrap()).unwrap();
    assert_eq!(request.imprint, Imprint::of(Digest::by_name("sha256").unwrap(), DATA));
    assert_eq!(request.policy, Some(ObjectIdentifier::new_unwrap("1.2.3.4.5")));
    assert_eq!(request.nonce.as_ref().unwrap().to_string(), "5978310bab1ec92a");
    assert!(request.wants_certificates);
    assert_eq!(hex::encode(request.to_der().unwrap()), QUERY, "byte for byte");
    let request = Request::parse(&hex::decode(QUERY_SHA512).unwrap()).unwrap();
    assert_eq!(request.imprint, Imprint::of(Digest::by_name("sha512").unwrap(), DATA));
    assert!(request.nonce.is_none() && request.policy.is_none() && !request.wants_certificates);
    let refused = Request::parse(&hex::decode(QUERY_SHA1).unwrap()).unwrap_err();
    assert_eq!(refused.failure, Failure::BadAlg, "{refused}");
}

#[test]
fn openssl_stamps() {
    let reply = STANDARD.decode(REPLY).unwrap();
    let request = Request::parse(&hex::decode(QUERY).unwrap()).unwrap();
    let token = Token::parse_response(&reply).unwrap();
    token.answers(&request).unwrap();
    let roots = [STANDARD.decode(ROOT).unwrap()];
    let now = 1_795_540_000;
    let trust = Trust { roots: &roots, now, nonce: request.nonce.as_ref(), ..Trust::default() };
    let found = token.verify(&request.imprint, &trust).unwrap();
    assert_eq!(found.time_ms, 1_795_537_079_015);
    assert_eq!(found.accuracy, Some(Accuracy { micros: 1_500_100 }));
    assert_eq!((found.serial, found.policy.to_string()), (vec![2], "1.2.3.4.5".into()));
    assert!(found.ordering);
    let alone = Response::parse(&reply).unwrap().token.unwrap();
    assert_eq!(Token::parse_response(&alone).unwrap().der(), alone);
}

#[test]
fn refusals_say_why() {
    for (failure, name, bits) in [
        (Failure::BadAlg, "badAlg", "03020780"),
        (Failure::BadRequest, "badRequest", "03020520"),
        (Failure::BadDataFormat, "badDataFormat", "03020204"),
        (Failure::TimeNotAvailable, "timeNotAvailable", "0303010002"),
        (Failure::UnacceptedPolicy, "unacceptedPolicy", "0303000001"),
        (Failure::UnacceptedExtension, "unacceptedExtension", "030407000080"),
        (Failure::AddInfoNotAvailable, "addInfoNotAvailable", "030406000040"),
        (Failure::SystemFailure, "systemFailure", "03050600000040"),
    ] {
        let der = refusal(failure, "come back\u{7}later").unwrap();
        assert!(hex::encode(&der).ends_with(bits), "{name}: {}", hex::encode(&der));
        let response = Response::parse(&der).unwrap();
        assert_eq!((response.status, response.failure), (Status::Rejection, Some(failure)));
        assert_eq!(response.explanation(), format!("{name}: come backlater"));
        let error = Token::parse_response(&der).unwrap_err();
        assert!(matches!(error, TimestampError::Refused(_)), "{error}");
    }
    // OpenSSL's refusal of SHA-1.
    let der = hex::decode(
        "30373035020102302c0c2a4d6573736167652064696765737420616c676f726974686d206973206e6f742073\
         7570706f727465642e03020780",
    );
    let response = Response::parse(&der.unwrap()).unwrap();
    assert_eq!(response.explanation(), "badAlg: Message digest algorithm is not supported.");
    let long = refusal(Failure::BadRequest, &"x".repeat(4000)).unwrap();
    assert_eq!(Response::parse(&long).unwrap().text.unwrap().len(), 500);
}

#[test]
fn requests_have_limits() {
    let good = request().to_der().unwrap();
    let failure = |der: &[u8]| Request::parse(der).unwrap_err().failure;
    for cut in 0..good.len() {
        assert_eq!(failure(&good[..cut]), Failure::BadDataFormat);
    }
    assert_eq!(failure(&[&good[..], &[0]].concat()), Failure::BadDataFormat);
    assert_eq!(failure(&vec![0x30; MAX_REQUEST_LEN + 1]), Failure::BadRequest);
    assert!(Nonce::new(&[1; MAX_NONCE_LEN]).is_ok());
    assert!(Nonce::new(&[1; MAX_NONCE_LEN + 1]).is_err());
    let changed = |from: &str, to: &str| {
        let text = hex::encode(&good);
        assert_eq!(text.matches(from).count(), 1, "{from}");
        hex::decode(text.replacen(from, to, 1)).unwrap()
    };
    // Version 2; the name of a shorter digest; an unknown digest; parameters; an extension.
    assert_eq!(failure(&changed("020101304f", "020102304f")), Failure::BadRequest);
    assert_eq!(failure(&changed("040203", "040201")), Failure::BadDataFormat);
    assert_eq!(failure(&changed("040203", "040220")), Failure::BadAlg);
    let sha256 = [raw::oid("2.16.840.1.101.3.4.2.1"), raw::tlv(4, &[0; 1])];
    let build = |algorithm: &[&[u8]], digest: usize, rest: &[u8]| {
        let imprint = raw::seq(&[&raw::seq(algorithm), &raw::tlv(4, &vec![7; digest])]);
        raw::seq(&[&[2, 1, 1], &imprint, rest])
    };
    let algorithm = &sha256[0][..];
    assert!(Request::parse(&build(&[algorithm], 32, &[])).is_ok());
    assert!(Request::parse(&build(&[algorithm, &[5, 0]], 32, &[])).is_ok());
    assert_eq!(failure(&build(&[algorithm, &sha256[1]], 32, &[])), Failure::BadDataFormat);
    assert_eq!(failure(&build(&[algorithm], 31, &[])), Failure::BadDataFormat);
    for critical in [false, true] {
        let extensions = raw::tlv(0xa0, &raw::ext("1.2.3.4", critical, &[5, 0]));
        assert_eq!(failure(&build(&[algorithm], 32, &extensions)), Failure::UnacceptedExtension);
    }
    let huge = raw::tlv(2, &[1; MAX_NONCE_LEN + 1]);
    assert_eq!(failure(&build(&[algorithm], 32, &huge)), Failure::BadRequest);
    let negative = Request::parse(&build(&[algorithm], 32, &[2, 1, 0xff])).unwrap();
    assert_eq!(negative.nonce.unwrap().to_string(), "ff");
    let md5 = raw::oid("1.2.840.113549.2.5");
    assert_eq!(failure(&build(&[&md5, &[5, 0]], 16, &[])), Failure::BadAlg);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// No bytes from outside make a parser panic, whether they look like a timestamp or not.
    #[test]
    fn damaged_timestamps_never_panic(at in 0usize..6_000, value in any::<u8>(), cut in 0usize..6_000) {
        use std::sync::LazyLock;
        static MADE: LazyLock<(World, Vec<u8>)> = LazyLock::new(|| {
            let world = world("ECC_NIST_P256");
            let response = world.respond(&request());
            (world, response)
        });
        let (world, response) = &*MADE;
        let mut bad = response.clone();
        let at = at % bad.len();
        bad[at] = value;
        let _ = world.verify(&bad, DATA);
        let _ = world.verify(&bad[..cut.min(bad.len())], DATA);
        let mut bad = request().to_der().unwrap();
        let at = at % bad.len();
        bad[at] = value;
        let _ = Request::parse(&bad);
    }

    #[test]
    fn random_bytes_are_no_timestamps(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(Token::parse(&bytes).is_err());
        prop_assert!(Response::parse(&bytes).is_err());
        prop_assert!(Request::parse(&bytes).is_err());
    }
}
