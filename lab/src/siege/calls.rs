//! Attacks by well-formed requests: refused calls, expensive ones, and floods of requests whose answers the service
//! must sign or remember.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use outlast_api::client::Client;
use outlast_api::ops::kms::describe_key::DescribeKey;
use outlast_api::ops::kms::generate_data_key_pair_without_plaintext::GenerateDataKeyPairWithoutPlaintext;
use outlast_api::ops::kms::list_keys::ListKeys;
use outlast_crypto::{Secret, random};
use outlast_net::server::system_clock;
use serde_json::json;
use tokio::io;
use tokio::time::sleep;

use super::attack::Attack;
use super::http1::{again, again_on, exchange};
use super::plain::header;

/// Pause of attackers that are only limited by their rate.
const QUICKLY: Duration = Duration::from_millis(50);
/// Pause between expensive calls.
const SELDOM: Duration = Duration::from_millis(500);
/// Length of the value that expensive patterns are matched with, in bytes: with the rest of the head below 64 KiB.
const LONG_VALUE: usize = 60_000;

/// Unsigned calls.
pub(super) async fn unsigned(attack: Arc<Attack>) -> io::Result<()> {
    let request = super::http1::kms_head("TrentService.ListKeys", 2) + "{}";
    again(&attack, QUICKLY, |_| Ok(request.clone().into_bytes())).await
}

/// Calls with another caller's access key and a wrong secret.
pub(super) async fn badly_signed(attack: Arc<Attack>) -> io::Result<()> {
    let mut client = attack.field.access.client();
    client.credentials.secret = Secret::new(b"not-the-secret-of-this-key".to_vec());
    again(&attack, QUICKLY, |_| signed::<ListKeys>(&client, &json!({}), "")).await
}

/// Calls of a user whose policy is expensive to evaluate.
pub(super) async fn expensive_policy(attack: Arc<Attack>) -> io::Result<()> {
    let Some((client, tenant)) = attack.field.tenant() else { return Ok(()) };
    let agent = format!("User-Agent: {}\r\n", "a".repeat(LONG_VALUE));
    let input = json!({ "KeyId": tenant.judged });
    again(&attack, SELDOM, |_| signed::<DescribeKey>(&client, &input, &agent)).await
}

/// Calls of a user, each of which makes an RSA key.
pub(super) async fn slow_keys(attack: Arc<Attack>) -> io::Result<()> {
    let Some((client, tenant)) = attack.field.tenant() else { return Ok(()) };
    let input = json!({ "KeyId": tenant.usual, "KeyPairSpec": "RSA_4096" });
    again(&attack, QUICKLY, |_| signed::<GenerateDataKeyPairWithoutPlaintext>(&client, &input, ""))
        .await
}

/// OCSP requests with a nonce: each response is signed for one client only.
pub(super) async fn nonces(attack: Arc<Attack>) -> io::Result<()> {
    let stream = attack.tcp(attack.field.plain).await?;
    again_on(&attack, stream, QUICKLY, |_| {
        let nonce = random::bytes::<16>().map_err(io::Error::other)?;
        let question = attack.field.question(Some(&nonce)).map_err(io::Error::other)?;
        let head = format!(
            "POST /ocsp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/ocsp-request\r\nContent-Length: {}\r\n\r\n",
            question.len()
        );
        Ok([head.as_bytes(), &question].concat())
    })
    .await
}

/// ACME nonces that are never used.
pub(super) async fn acme_nonces(attack: Arc<Attack>) -> io::Result<()> {
    let request = new_nonce(&attack);
    again(&attack, QUICKLY, |_| Ok(request.clone())).await
}

/// ACME accounts with an invalid signature.
pub(super) async fn acme_accounts(attack: Arc<Attack>) -> io::Result<()> {
    let mut stream = attack.tls().await?;
    let path = format!("{}new-account", attack.field.prepared.acme);
    loop {
        let answer = exchange(&attack, &mut stream, &new_nonce(&attack)).await?;
        let answer = String::from_utf8_lossy(&answer);
        let nonce = header(&answer, "replay-nonce").unwrap_or_default();
        let protected = json!({
            "alg": "ES256", "nonce": nonce,
            "url": format!("https://{}{path}", attack.field.access.address),
            // The key of RFC 7515, appendix A.3.1.
            "jwk": {
                "kty": "EC", "crv": "P-256",
                "x": "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
                "y": "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0",
            },
        });
        let signature = random::bytes::<64>().map_err(io::Error::other)?;
        let part = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        let body = json!({
            "protected": part(protected.to_string().as_bytes()),
            "payload": part(br#"{"termsOfServiceAgreed":true}"#),
            "signature": part(&signature),
        })
        .to_string();
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/jose+json\r\nContent-Length: {}\r\n\r\n{body}",
            attack.field.access.address,
            body.len()
        );
        exchange(&attack, &mut stream, request.as_bytes()).await?;
        sleep(QUICKLY).await;
    }
}

fn new_nonce(attack: &Attack) -> Vec<u8> {
    let path = &attack.field.prepared.acme;
    format!("GET {path}new-nonce HTTP/1.1\r\nHost: {}\r\n\r\n", attack.field.access.address)
        .into_bytes()
}

/// A signed call as bytes; `more` are headers that the signature does not cover.
fn signed<O: outlast_api::aws::Operation>(
    client: &Client,
    input: &serde_json::Value,
    more: &str,
) -> io::Result<Vec<u8>> {
    let input: O::Input = serde_json::from_value(input.clone()).map_err(io::Error::other)?;
    let request = client.request::<O>(&input, system_clock().div_euclid(1000));
    let request = request.map_err(|error| io::Error::other(error.message))?;
    let mut bytes = b"POST / HTTP/1.1\r\n".to_vec();
    for (name, value) in request.headers() {
        bytes.extend([name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat());
    }
    bytes.extend_from_slice(more.as_bytes());
    bytes.extend(format!("Content-Length: {}\r\n\r\n", request.body().len()).into_bytes());
    bytes.extend_from_slice(request.body());
    Ok(bytes)
}
