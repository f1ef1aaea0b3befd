//! Writing objects to a bucket behind an endpoint that speaks S3, by path: `https://endpoint/bucket/key`.

use std::net::IpAddr;

use bytes::Bytes;
use http::{HeaderMap, Method, Request};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use outlast_api::service::Sink;
use outlast_api::wire::sigv4::{Credentials, Target, encode_path, sign_object};
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio::time::timeout;

use crate::client::Connector;
use crate::limits;
use crate::server::Clock;

/// Where buckets are.
pub struct S3 {
    host: String,
    port: u16,
    /// `Host` header.
    authority: String,
    /// Absent for plain HTTP.
    connector: Option<Connector>,
    region: String,
    credentials: Credentials,
    clock: Clock,
    handle: Handle,
}

/// What an endpoint is made of.
pub struct Settings {
    /// `https://host[:port]`, or `http://host[:port]`.
    pub endpoint: String,
    /// Whether plain HTTP may go to another machine.
    pub allow_plain: bool,
    /// Region that requests are signed for.
    pub region: String,
    /// Who signs.
    pub credentials: Credentials,
    /// How to connect by TLS.
    pub connector: Connector,
}

impl S3 {
    /// Checks the endpoint. Objects are written by way of `handle`.
    ///
    /// # Errors
    /// What is wrong with it, for people.
    pub fn new(settings: Settings, clock: Clock, handle: Handle) -> Result<Self, String> {
        let Settings { endpoint, allow_plain, region, credentials, connector } = settings;
        let (rest, tls) =
            match (endpoint.strip_prefix("https://"), endpoint.strip_prefix("http://")) {
                (Some(rest), _) => (rest, true),
                (None, Some(rest)) => (rest, false),
                (None, None) => return Err("it must begin with https:// or http://".into()),
            };
        let authority = rest.trim_end_matches('/');
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => {
                (host, port.parse().map_err(|_| "its port is not a number".to_owned())?)
            }
            _ => (authority, if tls { 443 } else { 80 }),
        };
        if host.is_empty() || authority.contains(['/', '@', '?', '#']) {
            return Err("it must be a scheme, a host and perhaps a port".into());
        }
        if !tls && !allow_plain && !is_loopback(host) {
            return Err("reports would go to another machine by plain HTTP".into());
        }
        Ok(Self {
            host: host.to_owned(),
            port,
            authority: authority.to_owned(),
            connector: tls.then_some(connector),
            region,
            credentials,
            clock,
            handle,
        })
    }

    async fn put_object(&self, path: &str, content_type: &str, bytes: &[u8]) -> Result<(), String> {
        let invalid = |_| "the object's name or type cannot be sent".to_owned();
        let mut headers = HeaderMap::new();
        headers.insert("content-type", content_type.parse().map_err(invalid)?);
        let path = encode_path(path);
        let target = Target {
            path: &path,
            host: &self.authority,
            body: bytes,
            region: &self.region,
            service: "s3",
        };
        sign_object(&mut headers, &target, &self.credentials, (self.clock)().div_euclid(1000))
            .map_err(|error| error.message)?;
        headers.insert("host", self.authority.parse().map_err(invalid)?);
        let mut request = Request::new(bytes.to_vec());
        *request.method_mut() = Method::PUT;
        *request.uri_mut() =
            path.parse().map_err(|_| "the object's name cannot be sent".to_owned())?;
        *request.headers_mut() = headers;
        let (status, body) = match &self.connector {
            Some(connector) => {
                let connecting = connector.connect(&self.host, self.port);
                let mut connection = connecting.await.map_err(|error| error.to_string())?;
                connection.send(request).await.map_err(|error| error.to_string())?
            }
            None => self.send_plain(request).await?,
        };
        if (200..300).contains(&status) {
            return Ok(());
        }
        // S3's error is XML: the code is what one wants to know.
        let text = String::from_utf8_lossy(&body);
        let code = text.split_once("<Code>").and_then(|(_, rest)| rest.split_once('<'));
        let code: String = code.map_or("", |(code, _)| code).chars().take(100).collect();
        Err(format!("the answer of {} is {status} {code}", self.authority))
    }

    async fn send_plain(&self, request: Request<Vec<u8>>) -> Result<(u16, Bytes), String> {
        let bare = self.host.trim_start_matches('[').trim_end_matches(']');
        let stream =
            TcpStream::connect((bare, self.port)).await.map_err(|error| error.to_string())?;
        let http = |error: hyper::Error| error.to_string();
        let (mut sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(http)?;
        tokio::spawn(async move {
            // An error here reaches the request that is waiting as well.
            let _ = connection.await;
        });
        let request = request.map(|body| Full::new(Bytes::from(body)));
        let response = sender.send_request(request).await.map_err(http)?;
        let status = response.status().as_u16();
        let body = Limited::new(response.into_body(), limits::MAX_ANSWER).collect().await;
        Ok((status, body.map_err(|error| error.to_string())?.to_bytes()))
    }
}

impl Sink for S3 {
    /// Must not be called on a thread that runs futures.
    fn put(&self, bucket: &str, key: &str, content_type: &str, bytes: &[u8]) -> Result<(), String> {
        let path = format!("/{}/{key}", bucket.trim_matches('/'));
        self.handle.block_on(async {
            timeout(limits::OBJECT, self.put_object(&path, content_type, bytes))
                .await
                .unwrap_or_else(|_| Err(format!("{} does not answer", self.authority)))
        })
    }
}

fn is_loopback(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    bare == "localhost" || bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}
