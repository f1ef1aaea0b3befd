//! Gets CRLs, OCSP responses and issuers' certificates over plain HTTP: what they hold is signed, so that the way
//! need not be trusted. Times and sizes are limited; nothing is kept.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST, LOCATION, USER_AGENT};
use http::{Request, Response, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::limits;

/// Why nothing was fetched.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    /// Not a URL of plain HTTP.
    #[error("{0} is not a URL that begins with http://")]
    Url(String),
    /// No connection, or it broke.
    #[error("{url}: {reason}")]
    Connection {
        /// What was asked for.
        url: String,
        /// What happened.
        reason: String,
    },
    /// An answer other than success.
    #[error("{url}: the server answered with status {status}")]
    Status {
        /// What was asked for.
        url: String,
        /// HTTP status.
        status: u16,
    },
    /// The answer is too long.
    #[error("{0}: the answer is longer than {max} bytes", max = limits::MAX_FETCH)]
    TooLong(String),
    /// It took too long.
    #[error("{0}: no answer within {seconds} seconds", seconds = limits::FETCH.as_secs())]
    Timeout(String),
}

/// The body at `url`.
pub async fn get(url: &str) -> Result<Vec<u8>, FetchError> {
    timeout(limits::FETCH, fetch(url, None))
        .await
        .unwrap_or_else(|_| Err(FetchError::Timeout(url.to_owned())))
}

/// What the server at `url` answers to a body of this content type.
pub async fn post(url: &str, content_type: &str, body: Vec<u8>) -> Result<Vec<u8>, FetchError> {
    timeout(limits::FETCH, fetch(url, Some((content_type, body))))
        .await
        .unwrap_or_else(|_| Err(FetchError::Timeout(url.to_owned())))
}

async fn fetch(url: &str, body: Option<(&str, Vec<u8>)>) -> Result<Vec<u8>, FetchError> {
    let mut url = url.to_owned();
    for _ in 0..=limits::MAX_FETCH_REDIRECTS {
        let response = exchange(&url, body.as_ref()).await?;
        let status = response.status();
        let elsewhere = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
        if let (true, None, Some(elsewhere)) = (status.is_redirection(), &body, elsewhere) {
            url = elsewhere.to_owned();
            continue;
        }
        if !status.is_success() {
            return Err(FetchError::Status { url, status: status.as_u16() });
        }
        return match Limited::new(response.into_body(), limits::MAX_FETCH).collect().await {
            Ok(collected) => Ok(collected.to_bytes().to_vec()),
            Err(error) if error.is::<http_body_util::LengthLimitError>() => {
                Err(FetchError::TooLong(url))
            }
            Err(error) => Err(FetchError::Connection { url, reason: error.to_string() }),
        };
    }
    Err(FetchError::Connection { url, reason: "too many redirections".into() })
}

async fn exchange(
    url: &str,
    body: Option<&(&str, Vec<u8>)>,
) -> Result<Response<Incoming>, FetchError> {
    let wrong = || FetchError::Url(url.chars().take(200).collect());
    let failed = |reason: &dyn std::fmt::Display| FetchError::Connection {
        url: url.to_owned(),
        reason: reason.to_string(),
    };
    let uri: Uri = url.parse().map_err(|_| wrong())?;
    if uri.scheme_str() != Some("http") {
        return Err(wrong());
    }
    let host = uri.host().ok_or_else(wrong)?;
    let port = uri.port_u16().unwrap_or(80);
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let stream = TcpStream::connect((bare, port)).await.map_err(|error| failed(&error))?;
    let (mut sender, connection) =
        http1::handshake(TokioIo::new(stream)).await.map_err(|error| failed(&error))?;
    tokio::spawn(async move {
        // An error here reaches the request as well.
        let _ = connection.await;
    });
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let authority = uri.authority().map_or(host, |authority| authority.as_str());
    let request = Request::builder()
        .uri(path)
        .header(HOST, authority)
        .header(USER_AGENT, "outlast")
        .method(if body.is_some() { "POST" } else { "GET" });
    let request = match body {
        Some((content_type, bytes)) => {
            request.header(CONTENT_TYPE, *content_type).body(Full::new(Bytes::from(bytes.clone())))
        }
        None => request.body(Full::default()),
    };
    sender.send_request(request.map_err(|_| wrong())?).await.map_err(|error| failed(&error))
}
