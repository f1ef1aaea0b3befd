//! Revocation: OCSP responses from the cache over plain HTTP, and a CRL of an authority with many certificates and
//! revocations.

use std::sync::Arc;
use std::time::{Duration, Instant};

use outlast_api::ops::acm_pca::{
    create_certificate_authority, get_certificate, get_certificate_authority_csr,
    import_certificate_authority_certificate, issue_certificate,
};
use outlast_api::wire::Blob;
use outlast_crypto::digests::sha256;
use outlast_domain::seal::{self, RootKey, SoftwareKek};
use outlast_domain::work::Work;
use outlast_harness::server::{Folder, Session};
use outlast_net::policy::Policy;
use outlast_pki::certificate::Certificate;
use outlast_pki::ocsp::{CertId, Request, cert_id};
use outlast_store::Store;
use outlast_store::sqlite::SqliteStore;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::Figure;
use crate::authority::new_request;
use crate::statistics::quantile;

/// Certificates in the OCSP requests.
const ASKED: usize = 500;
const CONNECTIONS: usize = 8;
/// Requests that a connection sends before it reads a response: caches and proxies pipeline several.
const TOGETHER: usize = 16;
const ISSUED: u32 = 100_000;
const REVOKED: u32 = 10_000;

pub(crate) fn measure(quick: bool) -> Result<Vec<Figure>, String> {
    let folder = crate::process::folder()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    let (arn, certificate, serials) = {
        let server = folder.serve()?;
        runtime.block_on(async {
            let mut session = server.session(&Policy::default()).await?;
            prepare(&mut session, if quick { 50 } else { ASKED }).await
        })?
    };
    fill(&folder, &arn)?;
    let server = folder.serve()?;
    let port = server.revocation;
    runtime.block_on(async {
        let answers = answers(port, &certificate, &serials, quick).await?;
        let mut session = server.session(&Policy::default()).await?;
        let lists = lists(port, &mut session, &arn, &serials, quick).await?;
        Ok(vec![answers, lists])
    })
}

/// An ML-DSA authority with CRLs and OCSP, and the serial numbers of its certificates.
async fn prepare(
    session: &mut Session,
    count: usize,
) -> Result<(String, Certificate, Vec<Vec<u8>>), String> {
    let (arn, root) = root(session).await?;
    let malformed = |error: outlast_pki::PkiError| error.to_string();
    let mut serials = Vec::with_capacity(count);
    let leaf_csr = new_request("ML_DSA_65")?;
    for _ in 0..count {
        let made = issue(session, &arn, &leaf_csr, "EndEntityCertificate", 90).await?;
        let leaf = Certificate::parse_one(made.pem.as_bytes()).map_err(malformed)?;
        serials.push(leaf.serial().to_vec());
    }
    Ok((arn, Certificate::parse_one(root.as_bytes()).map_err(malformed)?, serials))
}

/// An ML-DSA root with CRLs and OCSP: its ARN and its certificate in PEM.
pub(crate) async fn root(session: &mut Session) -> Result<(String, String), String> {
    let made = session
        .call::<create_certificate_authority::CreateCertificateAuthority>(json!({
            "CertificateAuthorityConfiguration": {
                "KeyAlgorithm": "ML_DSA_65", "SigningAlgorithm": "ML_DSA_65",
                "Subject": { "CommonName": "Benchmark" },
            },
            "RevocationConfiguration": {
                "CrlConfiguration": { "Enabled": true, "ExpirationInDays": 7 },
                "OcspConfiguration": { "Enabled": true },
            },
            "CertificateAuthorityType": "ROOT",
        }))
        .await?;
    let arn = made.certificate_authority_arn;
    let authority = json!({ "CertificateAuthorityArn": arn });
    let csr = session
        .call::<get_certificate_authority_csr::GetCertificateAuthorityCsr>(authority)
        .await?
        .csr;
    let root = issue(session, &arn, csr.as_bytes(), "RootCACertificate", 3650).await?.pem;
    let import = json!({ "CertificateAuthorityArn": arn, "Certificate": blob(root.as_bytes()) });
    session
        .call::<import_certificate_authority_certificate::ImportCertificateAuthorityCertificate>(
            import,
        )
        .await?;
    Ok((arn, root))
}

pub(crate) fn blob(bytes: &[u8]) -> Value {
    serde_json::to_value(Blob(bytes.to_vec())).unwrap_or_default()
}

/// An issued certificate.
pub(crate) struct Issued {
    pub(crate) arn: String,
    pub(crate) pem: String,
}

pub(crate) async fn issue(
    session: &mut Session,
    arn: &str,
    csr: &[u8],
    template: &str,
    days: i64,
) -> Result<Issued, String> {
    let made = session
        .call::<issue_certificate::IssueCertificate>(json!({
            "CertificateAuthorityArn": arn, "Csr": blob(csr), "SigningAlgorithm": "ML_DSA_65",
            "TemplateArn": format!("arn:aws:acm-pca:::template/{template}/V1"),
            "Validity": { "Type": "DAYS", "Value": days },
        }))
        .await?;
    let get = json!({ "CertificateAuthorityArn": arn, "CertificateArn": made.certificate_arn });
    let pem = session.call::<get_certificate::GetCertificate>(get).await?.certificate;
    Ok(Issued { arn: made.certificate_arn, pem })
}

/// Writes records of as many certificates and revocations as the figure names: issuing them all would take minutes.
fn fill(folder: &Folder, arn: &str) -> Result<(), String> {
    let failed = |error: outlast_store::StoreError| error.to_string();
    let store = SqliteStore::open(&folder.data().join("store.db")).map_err(failed)?;
    let id = arn.rsplit('/').next().unwrap_or_default();
    let issued = format!("ca/certificate/123456789012/us-east-1/{id}/");
    let revoked = format!("ca/revoked/123456789012/us-east-1/{id}/");
    let root_key = std::fs::read_to_string(folder.data().join("root.key"));
    let root_key = SoftwareKek::from_file(&root_key.map_err(|error| error.to_string())?);
    let root = RootKey::new(Box::new(root_key.map_err(|error| error.to_string())?));
    let (_, sample) = store.scan(&issued, "", 1).map_err(failed)?.pop().ok_or("nothing issued")?;
    let sample: Value = serde_json::from_slice(seal::json(&sample.value))
        .map_err(|error| format!("the certificate cannot be read: {error}"))?;
    let revocation = json!({
        "reason": "KEY_COMPROMISE", "revoked_ms": 1_795_219_200_000_i64, "not_after": i64::from(u32::MAX),
    });
    for first in (0..ISSUED).step_by(2000) {
        let mut work = Work::new(&store, &root, 0);
        let mut put = |place: String, value: &Value| {
            work.create(&place, value).map_err(|fault| fault.to_string())
        };
        for number in first..first + 2000 {
            let mut serial = sha256(&number.to_be_bytes());
            serial[0] = (serial[0] & 0x7f) | 0x40;
            let serial = hex(&serial[..16]);
            put(format!("{issued}{serial}"), &sample)?;
            if number < REVOKED {
                put(format!("{revoked}{serial}"), &revocation)?;
            }
        }
        store.commit_and_wait(work.into_transaction(Vec::new())).map_err(failed)?;
    }
    Ok(())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Responses per second on kept connections, for each certificate in turn.
async fn answers(
    port: u16,
    issuer: &Certificate,
    serials: &[Vec<u8>],
    quick: bool,
) -> Result<Figure, String> {
    let failed = |error: outlast_pki::PkiError| error.to_string();
    let hash = cert_id::hashes().next().ok_or("no hash")?;
    let key = issuer.public_key().map_err(failed)?;
    let mut requests = Vec::with_capacity(serials.len());
    for serial in serials {
        let id = CertId::new(hash, issuer.subject(), &key, serial).map_err(failed)?;
        let der = Request { ids: vec![id], nonce: None }.to_der().map_err(failed)?;
        let encoded = blob(&der).as_str().unwrap_or_default().replace('/', "%2F");
        let request = format!("GET /ocsp/{encoded} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n");
        requests.push(request.into_bytes());
    }
    let requests = Arc::new(requests);
    // The first round has responses signed; a moment later they are in the cache.
    let mut first = Client::connect(port).await?;
    let begun = Instant::now();
    for request in requests.iter() {
        first.exchange(request, 1).await?;
    }
    let signed = begun.elapsed() / u32::try_from(requests.len()).unwrap_or(1);
    let time = Duration::from_secs(if quick { 1 } else { 8 });
    let batches = |number: usize| {
        let requests = requests.clone();
        let mut next = number * 17;
        move || {
            let mut together = Vec::with_capacity(TOGETHER * 256);
            for _ in 0..TOGETHER {
                next += 1;
                together.extend_from_slice(&requests[next % requests.len()]);
            }
            together
        }
    };
    let rate = rate(port, CONNECTIONS, TOGETHER, time, batches).await?;
    Ok(Figure {
        name: "OCSP answers from cache a second (GET, ML-DSA-65)",
        value: format!("{rate:.0}"),
        limit: ">= 20000",
        met: rate >= 20_000.0,
        note: format!(
            "{} certificates over {CONNECTIONS} kept connections, {TOGETHER} requests on the way on each; the client runs \
             on the same cores. Signed for the first time, one after the other: {:.1} ms",
            requests.len(),
            signed.as_secs_f64() * 1000.0
        ),
    })
}

/// Time from the call that revokes to the CRL that contains the revocation, without the wait for the next round.
async fn lists(
    port: u16,
    session: &mut Session,
    arn: &str,
    serials: &[Vec<u8>],
    quick: bool,
) -> Result<Figure, String> {
    use outlast_api::ops::acm_pca::revoke_certificate::RevokeCertificate;
    let id = arn.rsplit('/').next().unwrap_or_default();
    let get = format!("GET /crl/{id}.crl HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n");
    let mut client = Client::connect(port).await?;
    let mut times = Vec::new();
    let mut len = 0;
    for serial in serials.iter().take(if quick { 2 } else { 7 }) {
        let revoke = json!({
            "CertificateAuthorityArn": arn, "CertificateSerial": hex(serial),
            "RevocationReason": "SUPERSEDED",
        });
        let begun = Instant::now();
        session.call::<RevokeCertificate>(revoke).await?;
        loop {
            let body = client.exchange(get.as_bytes(), 1).await?;
            let crl = outlast_pki::crl::Crl::parse(&body).map_err(|error| error.to_string())?;
            if crl.entry(serial).is_some() {
                len = crl.len();
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        times.push(begun.elapsed());
    }
    let worst = quantile(&mut times, 1.0);
    Ok(Figure {
        name: "from RevokeCertificate to the CRL, 100,000 issued, 10,000 revoked (ML-DSA-65)",
        value: format!("{:.1} s", worst.as_secs_f64()),
        limit: "< 5 s",
        met: worst < Duration::from_secs(5),
        note: format!("slowest of {}; {len} entries; looked for every 2 s", times.len()),
    })
}

/// An HTTP/1.1 connection that reads responses as bytes: a fuller client would use up the cores.
pub(crate) struct Client {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Client {
    pub(crate) async fn connect(port: u16) -> Result<Self, String> {
        let stream =
            TcpStream::connect(("127.0.0.1", port)).await.map_err(|error| error.to_string())?;
        stream.set_nodelay(true).map_err(|error| error.to_string())?;
        Ok(Self { stream, buffer: Vec::with_capacity(1 << 20) })
    }

    /// Sends requests and reads as many responses; returns the body of the last.
    pub(crate) async fn exchange(
        &mut self,
        requests: &[u8],
        count: usize,
    ) -> Result<Vec<u8>, String> {
        let failed = |error: std::io::Error| error.to_string();
        self.stream.write_all(requests).await.map_err(failed)?;
        self.buffer.clear();
        let (mut at, mut last) = (0, 0..0);
        for _ in 0..count {
            loop {
                if let Some(body) = answer(&self.buffer[at..])? {
                    last = at + body.start..at + body.end;
                    at = last.end;
                    break;
                }
                if self.stream.read_buf(&mut self.buffer).await.map_err(failed)? == 0 {
                    return Err("the connection was closed".into());
                }
            }
        }
        Ok(self.buffer[last].to_vec())
    }
}

/// Responses a second on kept connections. Connection `n` sends what `batches(n)` yields, batches of `together` requests, each when
/// the batch before it is answered.
pub(crate) async fn rate<B: FnMut() -> Vec<u8> + Send + 'static>(
    port: u16,
    connections: usize,
    together: usize,
    time: Duration,
    batches: impl Fn(usize) -> B,
) -> Result<f64, String> {
    let begun = Instant::now();
    let send = |number: usize| {
        let mut next = batches(number);
        tokio::spawn(async move {
            let mut client = Client::connect(port).await?;
            let mut count = 0_u64;
            while begun.elapsed() < time {
                client.exchange(&next(), together).await?;
                count += together as u64;
            }
            Ok::<_, String>(count)
        })
    };
    let tasks: Vec<_> = (0..connections).map(send).collect();
    let mut total = 0;
    for task in tasks {
        total += task.await.map_err(|error| error.to_string())??;
    }
    #[expect(clippy::cast_precision_loss, reason = "a count of requests")]
    let rate = total as f64 / begun.elapsed().as_secs_f64();
    Ok(rate)
}

/// Position of the first response's body, if all of it has arrived.
fn answer(bytes: &[u8]) -> Result<Option<std::ops::Range<usize>>, String> {
    let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else { return Ok(None) };
    let head = String::from_utf8_lossy(&bytes[..end]);
    if !head.starts_with("HTTP/1.1 200") {
        return Err(format!("the answer is {}", head.lines().next().unwrap_or_default()));
    }
    let len = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok())
        .ok_or("an answer has no length")?;
    let body = end + 4..end + 4 + len;
    Ok((bytes.len() >= body.end).then_some(body))
}
