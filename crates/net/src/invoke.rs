//! Calls of functions over HTTP: Lambda's invocation interface, which its runtime interface emulator also has.
//!
//! Source: `Invoke` of the Lambda API reference (header `X-Amz-Function-Error`), and the emulator's
//! `/2015-03-31/functions/function/invocations`, which reports an error in the body alone.

use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{Method, Uri};
use serde_json::Value;

use crate::client::Connector;
use crate::exchange::Origin;
use crate::limits;

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
    let uri: Uri = url.parse().map_err(|_| "the URL of the function cannot be read".to_owned())?;
    let origin = Origin::of(&uri).ok_or("the URL of the function is not of HTTP")?;
    let target = uri.path_and_query().map_or("/", |target| target.as_str());
    let request = origin
        .request(Method::POST, target)
        .header(CONTENT_TYPE, "application/json")
        .header("x-amz-invocation-type", "RequestResponse")
        .body(Bytes::from(event.to_string()))
        .map_err(|error| error.to_string())?;
    let exchange = origin.exchange(tls, request, |_| limits::MAX_FUNCTION_ANSWER);
    let response = tokio::time::timeout(timeout, exchange)
        .await
        .map_err(|_| format!("the function did not answer within {} s", timeout.as_secs()))?
        .map_err(|error| error.to_string())?;
    let status = response.status();
    let answer: Value = serde_json::from_slice(response.body()).unwrap_or_default();
    let text = |name: &str| {
        let text = answer.get(name).and_then(Value::as_str);
        text.map(|text| text.chars().take(200).collect::<String>())
    };
    let has_failed = response.headers().contains_key("x-amz-function-error")
        || answer.get("errorType").is_some()
        || answer.get("errorMessage").is_some();
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
