//! A time-stamping authority over plain HTTP, whose keys the test has. The path says how it answers. The same server says
//! what its CAs have revoked.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use outlast_crypto::digests::Digest;
use outlast_crypto::random;
use outlast_crypto::signatures::Message;
use outlast_net::server::system_clock;
use outlast_pki::crl::{self, Reason};
use outlast_pki::extensions::{authority_information_access, crl_distribution_points};
use outlast_pki::ocsp;
use outlast_pki::timestamp::{
    self, Accuracy, Failure, Grant, Imprint, Nonce, RESPONSE_MEDIA_TYPE, Request, Response,
};

use super::pki::{New, Party, issue};

/// Days for which the certificates are valid.
const DAYS: i64 = 20 * 365;

/// Who says whether the authority is revoked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Says {
    Nobody,
    Crl,
    Ocsp,
    /// The CRL; the OCSP responder does not know the authority.
    UnknownAndCrl,
}

/// An authority below a root of its own.
pub struct Authority {
    pub root: Party,
    ca: Party,
    tsa: Party,
    /// A code signer, which must not stamp.
    other: Party,
    says: Says,
    /// When and why the authority was revoked.
    revoked: Mutex<Option<(i64, &'static Reason)>>,
}

impl Authority {
    /// Its certificates name these places below `url`: `/root.crl`, and `/ca.crl` or `/ocsp`.
    fn new(spec: &str, name: &str, url: &str, says: Says) -> Self {
        let now = system_clock().div_euclid(1000);
        let crl = |path: &str| crl_distribution_points(&[&format!("{url}{path}")]).unwrap();
        let (above, own) = match says {
            Says::Nobody => (Vec::new(), Vec::new()),
            Says::Crl => (vec![crl("/root.crl")], vec![crl("/ca.crl")]),
            Says::Ocsp => {
                let ocsp = authority_information_access(&[&format!("{url}/ocsp")], &[]);
                (vec![crl("/root.crl")], vec![ocsp.unwrap()])
            }
            Says::UnknownAndCrl => {
                let ocsp = authority_information_access(&[&format!("{url}/ocsp")], &[]);
                (vec![crl("/root.crl")], vec![ocsp.unwrap(), crl("/ca.crl")])
            }
        };
        let below = |template: &str, name: &str, issuer: Option<&Party>| {
            let authority = match template {
                "SubordinateCACertificate_PathLen0" => above.clone(),
                "TimeStampingCertificate" => own.clone(),
                _ => Vec::new(),
            };
            issue(spec, New { days: DAYS, authority, ..New::of(template, name, now) }, issuer)
        };
        let root = below("RootCACertificate", &format!("{name} Root"), None);
        let ca = below("SubordinateCACertificate_PathLen0", name, Some(&root));
        let tsa = below("TimeStampingCertificate", &format!("{name} TSA"), Some(&ca));
        let other = below("CodeSigningCertificate", "Other", Some(&ca));
        Self { root, ca, tsa, other, says, revoked: Mutex::default() }
    }

    /// What the CAs say about revocation, if the path asks for that.
    fn revocation(&self, path: &str) -> Option<Vec<u8>> {
        let now = system_clock().div_euclid(1000);
        let revoked = *self.revoked.lock().unwrap();
        let tsa = &self.tsa.certificate;
        match path {
            "/root.crl" => Some(self.root.crl(1, &[], now)),
            "/ca.crl" => {
                let entry =
                    |(revoked_at, reason)| crl::Entry { serial: tsa.serial(), revoked_at, reason };
                Some(self.ca.crl_of(1, revoked.map(entry), now))
            }
            "/ocsp" if self.says == Says::UnknownAndCrl => {
                Some(self.ca.ocsp(tsa, ocsp::Status::Unknown, now))
            }
            "/ocsp" => {
                let status = revoked.map_or(ocsp::Status::Good, |(at, reason)| {
                    ocsp::Status::Revoked { at, reason }
                });
                Some(self.ca.ocsp(tsa, status, now))
            }
            _ => None,
        }
    }

    /// A response, as the path wants it.
    fn respond(&self, path: &str, body: &[u8]) -> Vec<u8> {
        let mut request = Request::parse(body).unwrap();
        assert!(request.wants_certificates && request.nonce.is_some());
        let now = system_clock();
        let time_ms = match path {
            "/old" => now - 86_400_000,
            "/future" => now + 86_400_000,
            _ => now,
        };
        match path {
            "/refuse" => {
                return timestamp::refusal(Failure::TimeNotAvailable, "the clock is not right")
                    .unwrap();
            }
            "/garbage" => return b"garbage".to_vec(),
            "/long" => return vec![0x30; 600_000],
            "/nonce" => request.nonce = Some(Nonce::new(&[1; 16]).unwrap()),
            "/other" => request.imprint = Imprint::of(request.imprint.digest, b"other data"),
            _ => {}
        }
        let signer = if path == "/code" { &self.other } else { &self.tsa };
        let serial: [u8; 16] = random::bytes().unwrap();
        let grant = Grant {
            request: &request,
            policy: "1.3.6.1.4.1.99999.7".parse().unwrap(),
            serial: &serial,
            time_ms,
            accuracy: Some(Accuracy { micros: 1_000_000 }),
            ordering: false,
            names_authority: true,
            signer: &signer.certificate,
            chain: &[self.ca.der()],
            digest: Digest::by_name(signer.algorithm().cms_digests[0]).unwrap(),
            algorithm: signer.algorithm(),
        };
        let unsigned = grant.prepare().unwrap();
        let message = Message::Raw(unsigned.to_be_signed());
        let signature = signer.key.sign(signer.algorithm(), message).unwrap();
        Response::granted(&unsigned.assemble(&signature).unwrap()).unwrap()
    }
}

/// The server. It ends with the test.
pub struct Tsa {
    pub authority: Arc<Authority>,
    port: u16,
    requests: Arc<AtomicUsize>,
}

impl Tsa {
    pub fn new(spec: &str, name: &str) -> Self {
        Self::revocable(spec, name, Says::Nobody)
    }

    pub fn revocable(spec: &str, name: &str, says: Says) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let url = format!("http://127.0.0.1:{port}");
        let authority = Arc::new(Authority::new(spec, name, &url, says));
        let requests = Arc::new(AtomicUsize::new(0));
        let (shared, count) = (authority.clone(), requests.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (authority, count) = (shared.clone(), count.clone());
                std::thread::spawn(move || serve(stream.unwrap(), &authority, &count));
            }
        });
        Self { authority, port, requests }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// Its CA revokes its certificate as of a time in seconds since 1970, by the code of the reason (RFC 5280).
    pub fn revoke(&self, at: i64, code: u8) {
        *self.authority.revoked.lock().unwrap() = Some((at, Reason::by_code(code).unwrap()));
    }

    /// How many requests were answered.
    pub fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }
}

/// One request, and the end of the connection.
fn serve(mut stream: TcpStream, authority: &Authority, count: &AtomicUsize) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut first = String::new();
    reader.read_line(&mut first).unwrap();
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let line = line.trim_end().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("content-length: ") {
            length = value.parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    count.fetch_add(1, Ordering::SeqCst);
    let path = first.split(' ').nth(1).unwrap();
    let (status, answer) = match path {
        "/busy" => ("503 busy", Vec::new()),
        path => {
            let answer = authority.revocation(path);
            ("200 OK", answer.unwrap_or_else(|| authority.respond(path, &body)))
        }
    };
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: {RESPONSE_MEDIA_TYPE}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        answer.len()
    );
    // The client may have seen enough.
    let _ = stream.write_all(&[head.as_bytes(), &answer].concat());
}
