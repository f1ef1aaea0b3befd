//! Posts JSON to a URL that the operator has chosen: of a function or a target of events. Redirections are not followed.

use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderName};
use http::{HeaderValue, Method, Response, Uri};
use serde_json::Value;

use crate::client::Connector;
use crate::exchange::Origin;

/// What is posted, and how.
pub struct Post<'a> {
    /// `https://` or `http://`
    pub url: &'a str,
    /// How to connect over TLS; needed for `https://`.
    pub tls: Option<&'a Connector>,
    /// Headers beside the usual ones.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// The body.
    pub json: &'a Value,
    /// Longest time until the answer is complete.
    pub timeout: Duration,
    /// Longest answer that is read, in bytes; with 0 only the status counts.
    pub max_answer: usize,
    /// Who is asked, for messages: `the function`.
    pub whom: &'static str,
}

/// Checks a URL without connecting: one of HTTP, without a user, and without a part after `#`.
///
/// # Errors
/// What is wrong with it, for people.
pub fn check_url(url: &str, allow_plain: bool) -> Result<(), String> {
    let uri: Option<Uri> = url.parse().ok();
    let origin = uri.as_ref().and_then(Origin::of).filter(|_| !url.contains('#'));
    let origin =
        origin.ok_or("it must be https:// or http://, a host, and perhaps a port and a path")?;
    if !origin.is_tls && !allow_plain && !origin.is_loopback() {
        return Err("events would go to another machine by plain HTTP".to_owned());
    }
    Ok(())
}

impl Post<'_> {
    /// Sends it, and returns the answer, whatever its status.
    ///
    /// # Errors
    /// Why there is no answer.
    pub async fn send(self) -> Result<Response<Bytes>, String> {
        let whom = self.whom;
        let uri: Uri = self.url.parse().map_err(|_| format!("the URL of {whom} cannot be read"))?;
        let origin = Origin::of(&uri).ok_or_else(|| format!("the URL of {whom} is not of HTTP"))?;
        let target = uri.path_and_query().map_or("/", |target| target.as_str());
        let mut request =
            origin.request(Method::POST, target).header(CONTENT_TYPE, "application/json");
        for (name, value) in self.headers {
            request = request.header(name, value);
        }
        let request =
            request.body(Bytes::from(self.json.to_string())).map_err(|error| error.to_string())?;
        let exchange = origin.exchange(self.tls, request, |_| self.max_answer);
        tokio::time::timeout(self.timeout, exchange)
            .await
            .map_err(|_| format!("{whom} did not answer within {} s", self.timeout.as_secs()))?
            .map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_do_not_leave_the_machine_in_the_clear() {
        for (url, allow_plain, is_good) in [
            ("https://a.example/x?y=z", false, true),
            ("http://127.0.0.1:1/", false, true),
            ("http://localhost", false, true),
            ("http://[::1]:8080/a", false, true),
            ("http://a.example/", false, false),
            ("http://a.example/", true, true),
            ("https://user@a.example/", false, false),
            ("https://a.example/#x", false, false),
            ("ftp://a.example/", false, false),
            ("a", false, false),
        ] {
            assert_eq!(check_url(url, allow_plain).is_ok(), is_good, "{url}");
        }
    }
}
