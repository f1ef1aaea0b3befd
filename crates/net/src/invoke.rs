//! Calls of functions over HTTP: Lambda's invocation interface, which its runtime interface emulator also has.
//!
//! Source: `Invoke` of the Lambda API reference (header `X-Amz-Function-Error`), and the emulator's
//! `/2015-03-31/functions/function/invocations`, which reports an error in the body alone.

use std::time::Duration;

use http::HeaderValue;
use http::header::HeaderName;
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
    let kind = HeaderName::from_static("x-amz-invocation-type");
    let headers = vec![(kind, HeaderValue::from_static("RequestResponse"))];
    let post = Post {
        url,
        tls,
        headers,
        json: event,
        timeout,
        max_answer: limits::MAX_FUNCTION_ANSWER,
        whom: "the function",
    };
    let response = post.send().await?;
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
