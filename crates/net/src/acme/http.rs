//! http-01 (RFC 8555, section 8.3).

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::header::LOCATION;
use http::response::Parts;
use http::uri::Uri;
use http::{Method, StatusCode};
use outlast_domain::acme::{DnsName, Kind};
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::addresses::may_look;
use super::{Unmet, Validator, step, tls};
use crate::exchange::{Origin, over};
use crate::limits;

/// Result of a request: a redirect, or a body.
enum Found {
    Elsewhere(String),
    Body(Bytes),
}

impl Validator {
    pub(super) async fn http(&self, host: &str, token: &str, content: &str) -> Result<(), Unmet> {
        let port = self.settings.http_port;
        let authority = if port == 80 { host.to_owned() } else { format!("{host}:{port}") };
        let mut url = format!("http://{authority}/.well-known/acme-challenge/{token}");
        for _ in 0..=limits::MAX_REDIRECTS {
            match self.fetch(&url).await? {
                Found::Elsewhere(next) => url = next,
                // "The server SHOULD ignore whitespace characters at the end of the body."
                Found::Body(body) if body.trim_ascii_end() == content.as_bytes() => return Ok(()),
                Found::Body(_) => {
                    return Err(Unmet::wrong(
                        Kind::INCORRECT_RESPONSE,
                        format!("The answer from {host} is not the expected key authorization."),
                    ));
                }
            }
        }
        Err(Unmet::wrong(Kind::CONNECTION, format!("{host} redirects too often.")))
    }

    async fn fetch(&self, url: &str) -> Result<Found, Unmet> {
        let odd = || {
            Unmet::wrong(
                Kind::CONNECTION,
                "A redirect leads to a URL that validation does not follow.",
            )
        };
        let uri: Uri = url.parse().map_err(|_| odd())?;
        let origin = Origin::of(&uri).ok_or_else(odd)?;
        // Only to the ports of web servers: anything may listen on other ports.
        let usual = if origin.is_tls { self.settings.tls_port } else { self.settings.http_port };
        let port = origin.port;
        if port != usual && port != 80 && port != 443 {
            return Err(odd());
        }
        // A host name, not an address: DNS decides where the connection goes, and `addresses` what is allowed.
        let host = DnsName::parse(&origin.host).map_err(|_| odd())?.to_string();
        let stream = self.connect(&host, port).await?;
        if origin.is_tls {
            // The certificate's names are not checked: the file counts, as over plain HTTP.
            let name = ServerName::try_from(host.clone()).map_err(|_| odd())?;
            let connecting =
                TlsConnector::from(Arc::new(tls::any_certificate()?)).connect(name, stream);
            let stream = step(&host, connecting).await?;
            ask(&host, &origin, &uri, stream).await
        } else {
            ask(&host, &origin, &uri, stream).await
        }
    }

    /// Connects to a host: tries its addresses until one answers.
    pub(super) async fn connect(&self, host: &str, port: u16) -> Result<TcpStream, Unmet> {
        let found = self.resolver.addresses(host).await?;
        let usable: Vec<_> = found
            .into_iter()
            .filter(|address| may_look(*address, &self.settings.networks))
            .take(limits::MAX_ADDRESSES)
            .collect();
        if usable.is_empty() {
            return Err(Unmet::wrong(
                Kind::CONNECTION,
                format!("{host} has no address that this server may connect to."),
            ));
        }
        let mut last = None;
        for address in usable {
            // The first of several addresses must not use up all the time.
            let connecting = TcpStream::connect(SocketAddr::new(address, port));
            match timeout(limits::VALIDATION_STEP / 2, connecting).await {
                Ok(Ok(stream)) => return Ok(stream),
                Ok(Err(error)) => last = Some(error.to_string()),
                Err(_) => last = Some("it does not answer".to_owned()),
            }
        }
        let why = last.unwrap_or_default();
        Err(Unmet::not_yet(
            Kind::CONNECTION,
            format!("{host} cannot be reached at port {port}: {why}."),
        ))
    }
}

async fn ask(
    host: &str,
    origin: &Origin,
    uri: &Uri,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
) -> Result<Found, Unmet> {
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let request = origin
        .request(Method::GET, path)
        .body(Bytes::new())
        .map_err(|error| Unmet::wrong(Kind::CONNECTION, error.to_string()))?;
    let wanted = |head: &Parts| match head.status {
        StatusCode::OK => limits::MAX_VALIDATION_BODY,
        _ => 0,
    };
    let response = step(host, over(stream, request, wanted)).await?;
    let status = response.status();
    if status.is_redirection()
        && let Some(target) = response.headers().get(LOCATION)
    {
        let target = target.to_str().ok().and_then(|target| absolute(uri, target));
        let target = target.ok_or_else(|| {
            Unmet::wrong(
                Kind::CONNECTION,
                format!("{host} redirects to something that is not a URL."),
            )
        })?;
        return Ok(Found::Elsewhere(target));
    }
    if status != StatusCode::OK {
        // Some of the host's servers may not know it yet.
        return Err(Unmet::not_yet(
            Kind::UNAUTHORIZED,
            format!("{host} answers with the status {}.", status.as_u16()),
        ));
    }
    Ok(Found::Body(response.into_body()))
}

/// Target URL of a redirect: an absolute one, or one on the same host.
fn absolute(from: &Uri, target: &str) -> Option<String> {
    // RFC 3986, section 3.1; a query may contain a URL.
    let of_scheme = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    if target.split_once("://").is_some_and(|(scheme, _)| scheme.chars().all(of_scheme)) {
        return Some(target.to_owned());
    }
    let origin = format!("{}://{}", from.scheme_str()?, from.authority()?);
    match target.strip_prefix("//") {
        Some(rest) => Some(format!("{}://{rest}", from.scheme_str()?)),
        None if target.starts_with('/') => Some(origin + target),
        None => None,
    }
}
