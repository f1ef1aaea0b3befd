//! Writes objects to a bucket behind an endpoint that speaks S3, with path-style URLs: `https://endpoint/bucket/key`.

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Uri};
use outlast_api::service::Sink;
use outlast_api::wire::sigv4::{Credentials, Target, encode_path, sign_object};
use tokio::runtime::Handle;
use tokio::time::timeout;

use crate::client::Connector;
use crate::exchange::Origin;
use crate::limits;
use crate::server::Clock;

/// An S3 endpoint.
pub struct S3 {
    origin: Origin,
    connector: Connector,
    region: String,
    credentials: Credentials,
    clock: Clock,
    handle: Handle,
}

/// Settings of an endpoint.
pub struct Settings {
    /// `https://host[:port]`, or `http://host[:port]`.
    pub endpoint: String,
    /// Whether plain HTTP to another machine is allowed.
    pub allow_plain: bool,
    /// Region in the requests' signatures.
    pub region: String,
    /// Credentials for signing requests.
    pub credentials: Credentials,
    /// How to connect over TLS.
    pub connector: Connector,
}

impl S3 {
    /// Checks the settings. Objects are written on the runtime of `handle`.
    ///
    /// # Errors
    /// Fault in the settings, for people.
    pub fn new(settings: Settings, clock: Clock, handle: Handle) -> Result<Self, String> {
        let Settings { endpoint, allow_plain, region, credentials, connector } = settings;
        if !endpoint.starts_with("https://") && !endpoint.starts_with("http://") {
            return Err("it must begin with https:// or http://".into());
        }
        let uri: Option<Uri> = endpoint.parse().ok();
        let bare = uri.filter(|uri| uri.path() == "/" && uri.query().is_none());
        let origin = bare.as_ref().and_then(Origin::of).filter(|_| !endpoint.contains('#'));
        let origin = origin.ok_or("it must be a scheme, a host and perhaps a port")?;
        if !origin.is_tls && !allow_plain && !origin.is_loopback() {
            return Err("reports would go to another machine by plain HTTP".into());
        }
        Ok(Self { origin, connector, region, credentials, clock, handle })
    }

    async fn put_object(&self, path: &str, content_type: &str, bytes: &[u8]) -> Result<(), String> {
        let invalid = |_| "the object's name or type cannot be sent".to_owned();
        let mut headers = HeaderMap::new();
        headers.insert("content-type", content_type.parse().map_err(invalid)?);
        let path = encode_path(path);
        let target = Target {
            path: &path,
            host: &self.origin.authority,
            body: bytes,
            region: &self.region,
            service: "s3",
        };
        sign_object(&mut headers, &target, &self.credentials, (self.clock)().div_euclid(1000))
            .map_err(|error| error.message)?;
        headers.insert("host", self.origin.authority.parse().map_err(invalid)?);
        let mut request = Request::new(Bytes::copy_from_slice(bytes));
        *request.method_mut() = Method::PUT;
        *request.uri_mut() =
            path.parse().map_err(|_| "the object's name cannot be sent".to_owned())?;
        *request.headers_mut() = headers;
        let exchange = self.origin.exchange(Some(&self.connector), request, |_| limits::MAX_ANSWER);
        let response = exchange.await.map_err(|error| error.to_string())?;
        let (status, body) = (response.status(), response.body());
        if status.is_success() {
            return Ok(());
        }
        // S3's error is XML, and its code is the useful part.
        let text = String::from_utf8_lossy(body);
        let code = text.split_once("<Code>").and_then(|(_, rest)| rest.split_once('<'));
        let code: String = code.map_or("", |(code, _)| code).chars().take(100).collect();
        let status = status.as_u16();
        Err(format!("the answer of {} is {status} {code}", self.origin.authority))
    }
}

impl Sink for S3 {
    /// Must not be called on a thread that runs futures.
    fn put(&self, bucket: &str, key: &str, content_type: &str, bytes: &[u8]) -> Result<(), String> {
        let path = format!("/{}/{key}", bucket.trim_matches('/'));
        self.handle.block_on(async {
            timeout(limits::OBJECT, self.put_object(&path, content_type, bytes))
                .await
                .unwrap_or_else(|_| Err(format!("{} does not answer", self.origin.authority)))
        })
    }
}
