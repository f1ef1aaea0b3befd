//! Requests to other servers, each on its own connection: over plain HTTP, over TLS, or over a stream that the caller
//! has opened. A request that is dropped leaves nothing behind.

use std::fmt::Display;
use std::net::IpAddr;
use std::pin::pin;

use bytes::Bytes;
use http::header::{HOST, USER_AGENT};
use http::request::Builder;
use http::response::Parts;
use http::{Method, Request, Response, Uri};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use crate::client::Connector;

/// Address of a server: the part of a URL before the path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Origin {
    /// Whether the scheme is `https://`.
    pub(crate) is_tls: bool,
    /// Host name or address, without brackets.
    pub(crate) host: String,
    /// Port; the scheme's default if none is given.
    pub(crate) port: u16,
    /// As in the URL: the value of `Host`.
    pub(crate) authority: String,
}

/// Why there is no response.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Broken {
    /// The connection failed or broke.
    #[error("{0}")]
    Connection(String),
    /// The body of the response is longer than this many bytes.
    #[error("the answer is longer than {0} bytes")]
    TooLong(usize),
}

impl Broken {
    fn of(error: impl Display) -> Self {
        Self::Connection(error.to_string())
    }
}

impl Origin {
    /// Origin of a URL; `None` if it is not an HTTP URL, has no host, or contains a user or password.
    pub(crate) fn of(uri: &Uri) -> Option<Self> {
        let (is_tls, usual) = match uri.scheme_str()? {
            "https" => (true, 443),
            "http" => (false, 80),
            _ => return None,
        };
        let authority = uri.authority()?;
        let host = authority.host().trim_start_matches('[').trim_end_matches(']');
        if host.is_empty() || authority.as_str().contains('@') {
            return None;
        }
        Some(Self {
            is_tls,
            host: host.to_owned(),
            // An invalid port is not treated as a missing one.
            port: match authority.as_str().rsplit_once(':') {
                Some((_, port)) if !port.ends_with(']') => port.parse().ok()?,
                _ => usual,
            },
            authority: authority.as_str().to_owned(),
        })
    }

    /// Whether it is this machine.
    pub(crate) fn is_loopback(&self) -> bool {
        let host = self.host.as_str();
        host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
    }

    /// A request for a path and query on this server.
    pub(crate) fn request(&self, method: Method, target: &str) -> Builder {
        let builder = Request::builder().method(method).uri(target);
        builder.header(HOST, &self.authority).header(USER_AGENT, "outlast")
    }

    /// Connects, over TLS by means of `tls`, sends a request and reads the response like [`over`].
    pub(crate) async fn exchange(
        &self,
        tls: Option<&Connector>,
        request: Request<Bytes>,
        wanted: impl FnOnce(&Parts) -> usize,
    ) -> Result<Response<Bytes>, Broken> {
        match (self.is_tls, tls) {
            (false, _) => {
                let connecting = TcpStream::connect((self.host.as_str(), self.port));
                over(connecting.await.map_err(Broken::of)?, request, wanted).await
            }
            (true, Some(tls)) => {
                let stream = tls.stream(&self.host, self.port).await.map_err(Broken::of)?;
                over(stream, request, wanted).await
            }
            (true, None) => {
                Err(Broken::of("there are no CA certificates to verify the server with"))
            }
        }
    }
}

/// Sends a request over a stream and reads the response. `wanted` says how many bytes of the body to read at most,
/// given the head. With 0 the body is ignored.
pub(crate) async fn over(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    request: Request<Bytes>,
    wanted: impl FnOnce(&Parts) -> usize,
) -> Result<Response<Bytes>, Broken> {
    let (mut sender, connection) =
        http1::handshake(TokioIo::new(stream)).await.map_err(Broken::of)?;
    let exchange = async {
        let response = sender.send_request(request.map(Full::new)).await.map_err(Broken::of)?;
        let (head, body) = response.into_parts();
        let max = wanted(&head);
        if max == 0 {
            return Ok(Response::from_parts(head, Bytes::new()));
        }
        let body = Limited::new(body, max).collect().await.map_err(|error| {
            if error.is::<LengthLimitError>() { Broken::TooLong(max) } else { Broken::of(error) }
        })?;
        Ok(Response::from_parts(head, body.to_bytes()))
    };
    let mut exchange = pin!(exchange);
    // Both end here: the connection ends with this function.
    tokio::select! {
        outcome = &mut exchange => outcome,
        // The connection may have delivered the response and be closed.
        _ = connection => exchange.await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_are_what_stands_before_the_path() {
        let of = |url: &str| Origin::of(&url.parse().unwrap());
        for (url, is_tls, host, port, authority) in [
            ("http://a.example/x", false, "a.example", 80, "a.example"),
            ("https://a.example:8443", true, "a.example", 8443, "a.example:8443"),
            ("https://[::1]/", true, "::1", 443, "[::1]"),
            ("http://[::1]:81/", false, "::1", 81, "[::1]:81"),
        ] {
            let expected = Origin { is_tls, host: host.into(), port, authority: authority.into() };
            assert_eq!(of(url), Some(expected), "{url}");
        }
        for url in ["/x", "ftp://a.example/", "http://user@a.example/", "http://a.example:99999/"] {
            let parsed: Result<Uri, _> = url.parse();
            assert!(parsed.is_err() || of(url).is_none(), "{url}");
        }
    }
}
