//! Fetches CRLs, OCSP responses, timestamps and issuers' certificates over plain HTTP. They are signed, so the transport
//! need not be trusted. Times and sizes are limited; nothing is cached.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, LOCATION};
use http::response::Parts;
use http::{Method, Uri};
use tokio::time::timeout;

use crate::client::Connector;
use crate::exchange::{Broken, Origin};
use crate::limits;

/// Why nothing was fetched.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    /// Not a URL of plain HTTP.
    #[error("{0} is not a URL that begins with http://")]
    Url(String),
    /// Not a URL of HTTP.
    #[error("{0} is not a URL that begins with http:// or https://")]
    AnyUrl(String),
    /// The connection failed or broke.
    #[error("{url}: {reason}")]
    Connection {
        /// What was asked for.
        url: String,
        /// What happened.
        reason: String,
    },
    /// A status other than success.
    #[error("{url}: the server answered with status {status}")]
    Status {
        /// Requested URL.
        url: String,
        /// HTTP status.
        status: u16,
    },
    /// The response is too long.
    #[error("{0}: the answer is longer than {max} bytes", max = limits::MAX_FETCH)]
    TooLong(String),
    /// It took too long.
    #[error("{0}: no answer within {seconds} seconds", seconds = limits::FETCH.as_secs())]
    Timeout(String),
}

/// The body at `url`.
pub async fn get(url: &str) -> Result<Vec<u8>, FetchError> {
    timeout(limits::FETCH, fetch(url, None, None))
        .await
        .unwrap_or_else(|_| Err(FetchError::Timeout(url.to_owned())))
}

/// Posts a body of this content type to `url`; returns the body of the response.
pub async fn post(url: &str, content_type: &str, body: Vec<u8>) -> Result<Vec<u8>, FetchError> {
    timeout(limits::FETCH, fetch(url, Some((content_type, body)), None))
        .await
        .unwrap_or_else(|_| Err(FetchError::Timeout(url.to_owned())))
}

/// The same over `https://`, too, by means of `tls`.
pub async fn post_over(
    url: &str,
    content_type: &str,
    body: Vec<u8>,
    tls: &Connector,
) -> Result<Vec<u8>, FetchError> {
    timeout(limits::FETCH, fetch(url, Some((content_type, body)), Some(tls)))
        .await
        .unwrap_or_else(|_| Err(FetchError::Timeout(url.to_owned())))
}

async fn fetch(
    url: &str,
    body: Option<(&str, Vec<u8>)>,
    tls: Option<&Connector>,
) -> Result<Vec<u8>, FetchError> {
    let mut url = url.to_owned();
    let mut first = None;
    for _ in 0..=limits::MAX_FETCH_REDIRECTS {
        let wrong = || {
            let url = url.chars().take(200).collect();
            if tls.is_some() { FetchError::AnyUrl(url) } else { FetchError::Url(url) }
        };
        let uri: Uri = url.parse().map_err(|_| wrong())?;
        let origin = Origin::of(&uri).filter(|origin| !origin.is_tls || tls.is_some());
        let origin = origin.ok_or_else(wrong)?;
        // Anybody on the way can answer plain HTTP, and would choose whom this machine talks to.
        let host = first.get_or_insert_with(|| origin.host.clone());
        if !origin.host.eq_ignore_ascii_case(host) {
            let reason = format!("it leads to another server than {host}, which is not asked");
            return Err(FetchError::Connection { url, reason });
        }
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        let request = match &body {
            Some((content_type, bytes)) => origin
                .request(Method::POST, path)
                .header(CONTENT_TYPE, *content_type)
                .body(Bytes::from(bytes.clone())),
            None => origin.request(Method::GET, path).body(Bytes::new()),
        };
        let wanted = |head: &Parts| if head.status.is_success() { limits::MAX_FETCH } else { 0 };
        let response = match origin.exchange(tls, request.map_err(|_| wrong())?, wanted).await {
            Ok(response) => response,
            Err(Broken::TooLong(_)) => return Err(FetchError::TooLong(url)),
            Err(error) => {
                return Err(FetchError::Connection { url, reason: error.to_string() });
            }
        };
        let status = response.status();
        let elsewhere = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
        if let (true, None, Some(elsewhere)) = (status.is_redirection(), &body, elsewhere) {
            url = elsewhere.to_owned();
            continue;
        }
        if !status.is_success() {
            return Err(FetchError::Status { url, status: status.as_u16() });
        }
        return Ok(response.into_body().into());
    }
    Err(FetchError::Connection { url, reason: "too many redirections".into() })
}
