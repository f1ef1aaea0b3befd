//! Timestamps (RFC 3161) by an ML-DSA-65 authority over plain HTTP, each with its event in the audit trail on disk
//! before it is sent.

use std::time::Duration;

use outlast_api::ops::kms::{create_key, get_public_key, sign, tag_resource};
use outlast_crypto::digests::Digest;
use outlast_crypto::signatures::ML_DSA_65;
use outlast_domain::certified_key::CERTIFICATE_TAG;
use outlast_harness::server::Session;
use outlast_net::policy::Policy;
use outlast_pki::timestamp::{Imprint, Nonce, REQUEST_MEDIA_TYPE, Request, Response, Token};
use outlast_pki::{csr, name, pem};
use serde_json::json;

use crate::Figure;
use crate::revocation::{Client, blob, issue, rate, root};

/// Kept connections, with one request on the way on each: what is committed together.
const CONNECTIONS: usize = 64;

pub(crate) fn measure(quick: bool) -> Result<Vec<Figure>, String> {
    let folder = crate::process::folder()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    let key = {
        let server = folder.serve()?;
        runtime.block_on(async {
            let mut session = server.session(&Policy::default()).await?;
            authority(&mut session).await
        })?
    };
    let settings = format!(
        "[tsa]\nauthorities = {{ bench = {{ key = \"{key}\" }} }}\nper_second = 1000000\nper_address = 1000000\n"
    );
    let path = folder.data().join("outlast.toml");
    std::fs::write(&path, settings).map_err(|error| error.to_string())?;
    let server = folder.serve()?;
    let port = server.revocation;
    runtime.block_on(tokens(port, quick)).map(|figure| vec![figure])
}

/// The ARN of a key with a certificate for time stamping.
async fn authority(session: &mut Session) -> Result<String, String> {
    let text = |error: outlast_pki::PkiError| error.to_string();
    let (ca, _) = root(session).await?;
    let new = json!({ "KeySpec": "ML_DSA_65", "KeyUsage": "SIGN_VERIFY" });
    let key = session.call::<create_key::CreateKey>(new).await?.key_metadata.arn;
    let get = json!({ "KeyId": key });
    let public = session.call::<get_public_key::GetPublicKey>(get).await?.public_key.0;
    let subject = name::common_name("Benchmark Timestamps").map_err(text)?;
    let unsigned = csr::Unsigned::new(subject, &public, Vec::new()).map_err(text)?;
    let order = json!({
        "KeyId": key, "Message": blob(&unsigned.to_be_signed),
        "SigningAlgorithm": ML_DSA_65.kms_name,
    });
    let signature = session.call::<sign::Sign>(order).await?.signature.0;
    let request = unsigned.assemble(&ML_DSA_65, &signature).map_err(text)?;
    let request = pem::certificate_request(&request);
    let made = issue(session, &ca, request.as_bytes(), "TimeStampingCertificate", 90).await?;
    let tags = json!([{ "TagKey": CERTIFICATE_TAG, "TagValue": made.arn }]);
    session.call::<tag_resource::TagResource>(json!({ "KeyId": key, "Tags": tags })).await?;
    Ok(key)
}

async fn tokens(port: u16, quick: bool) -> Result<Figure, String> {
    let text = |error: outlast_pki::PkiError| error.to_string();
    let sha512 = Digest::by_name("sha512").ok_or("no SHA-512")?;
    let asked = Request::new(
        Imprint::of(sha512, b"benchmark"),
        Some(Nonce::new(&[0x7f; 16]).map_err(text)?),
    );
    let body = asked.to_der().map_err(text)?;
    let head = format!(
        "POST /tsa HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: {REQUEST_MEDIA_TYPE}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let request = [head.as_bytes(), &body].concat();
    let mut first = Client::connect(port).await?;
    let reply = Response::parse(&first.exchange(&request, 1).await?).map_err(text)?;
    let token = reply.token.as_ref().ok_or_else(|| reply.explanation())?;
    let token = Token::parse(token).map_err(|error| error.to_string())?;
    token.answers(&asked).map_err(|error| error.to_string())?;
    let time = Duration::from_secs(if quick { 1 } else { 8 });
    let batches = |_| {
        let request = request.clone();
        move || request.clone()
    };
    let rate = rate(port, CONNECTIONS, 1, time, batches).await?;
    Ok(Figure {
        name: "timestamps a second (RFC 3161, ML-DSA-65, audit trail on disk)",
        value: format!("{rate:.0}"),
        limit: ">= 2000",
        met: rate >= 2000.0,
        note: format!(
            "{CONNECTIONS} kept connections over plain HTTP, one request on the way on each; responses of {} bytes; the \
             client runs on the same cores",
            token.der().len()
        ),
    })
}
