//! Calls of functions over HTTP: Lambda's invocation interface, which its runtime interface emulator also has.
//!
//! Source: `Invoke` of the Lambda API reference (header `X-Amz-Function-Error`), and the emulator's
//! `/2015-03-31/functions/function/invocations`, which reports an error in the body alone.

use std::time::Duration;

use bytes::Bytes;
use http::header::HeaderName;
use http::{HeaderValue, Response};
use outlast_crypto::Secret;
use serde_json::Value;

use crate::client::Connector;
use crate::limits;
use crate::post::Post;

/// Calls the function at `url` with this event, and waits for its answer. `tls` is needed for `https://`.
///
/// # Errors
/// Why the call or the function has failed. Answers are not repeated in it beyond the error's own type and message.
pub async fn invoke(
    url: &str,
    tls: Option<&Connector>,
    event: &Value,
    timeout: Duration,
) -> Result<(), String> {
    let response = send(url, tls, event, timeout, limits::MAX_FUNCTION_ANSWER).await?;
    let status = response.status();
    let answer: Value = serde_json::from_slice(response.body()).unwrap_or_default();
    let text = |name: &str| {
        let text = answer.get(name).and_then(Value::as_str);
        text.map(|text| text.chars().take(200).collect::<String>())
    };
    let has_failed = response.headers().contains_key(FUNCTION_ERROR) || is_error(&answer);
    if !status.is_success() {
        return Err(format!("the function's endpoint answered {}", status.as_u16()));
    }
    if has_failed {
        let (kind, message) = (text("errorType"), text("errorMessage"));
        return Err(format!(
            "{}: {}",
            kind.as_deref().unwrap_or("the function has failed"),
            message.as_deref().unwrap_or("it gives no reason")
        ));
    }
    Ok(())
}

/// Calls the function in the same way, with an event that contains a password, and returns its answer.
///
/// # Errors
/// Why there is none. Nothing that the function said is in it: it may repeat the password.
pub async fn answer(
    url: &str,
    tls: Option<&Connector>,
    event: Secret,
    timeout: Duration,
    max: usize,
) -> Result<Vec<u8>, String> {
    let event = serde_json::from_slice(event.expose()).map_err(|_| "the event is not JSON")?;
    let response = send(url, tls, &event, timeout, max + 1).await?;
    if !response.status().is_success() {
        return Err(format!("the function's endpoint answered {}", response.status().as_u16()));
    }
    let answer: Value = serde_json::from_slice(response.body()).unwrap_or_default();
    if response.headers().contains_key(FUNCTION_ERROR) || is_error(&answer) {
        return Err("the function has failed; its own log has the reason".to_owned());
    }
    Ok(response.body().to_vec())
}

async fn send(
    url: &str,
    tls: Option<&Connector>,
    event: &Value,
    timeout: Duration,
    max_answer: usize,
) -> Result<Response<Bytes>, String> {
    let kind = HeaderName::from_static("x-amz-invocation-type");
    let headers = vec![(kind, HeaderValue::from_static("RequestResponse"))];
    let whom = "the function";
    Post { url, tls, headers, json: event, timeout, max_answer, whom }.send().await
}

/// Set by Lambda if the function has failed.
const FUNCTION_ERROR: &str = "x-amz-function-error";

fn is_error(answer: &Value) -> bool {
    answer.get("errorType").is_some() || answer.get("errorMessage").is_some()
}
