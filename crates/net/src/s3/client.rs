//! Signed requests to an S3 endpoint: connections, attempts and time limits.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, HOST};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use outlast_api::wire::sigv4::{Credentials, Target, encode_component, encode_path, sign_s3};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use super::Settings;
use super::xml;
use crate::client::Connector;
use crate::exchange::Origin;
use crate::limits;
use crate::server::Clock;

/// Why S3 did not do what it was asked.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Failure {
    /// It answered so.
    #[error("the answer of {endpoint} is {status} {code}")]
    Refused {
        /// Host and port.
        endpoint: String,
        /// HTTP's status.
        status: u16,
        /// S3's error code; empty if the answer has none, as that of HEAD.
        code: String,
    },
    /// It could not be reached, or the connection broke.
    #[error("{endpoint} cannot be reached: {reason}")]
    Unreachable {
        /// Host and port.
        endpoint: String,
        /// Reason.
        reason: String,
    },
    /// It did not answer in time.
    #[error("{0} does not answer")]
    Silent(String),
    /// Its answer makes no sense.
    #[error("the answer of {0} cannot be read")]
    Unreadable(String),
    /// The name or the type of the object cannot be sent.
    #[error("the object's name or type cannot be sent")]
    Unsendable,
}

impl Failure {
    /// HTTP's status, if there is an answer.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Refused { status, .. } => Some(*status),
            _ => None,
        }
    }

    /// Whether another attempt may succeed.
    fn is_temporary(&self) -> bool {
        match self {
            Self::Refused { status, code, .. } => {
                matches!(status, 429 | 500 | 502 | 503 | 504) || code == "RequestTimeout"
            }
            Self::Unreachable { .. } | Self::Silent(_) => true,
            Self::Unreadable(_) | Self::Unsendable => false,
        }
    }
}

/// One request.
pub(super) struct Call<'a> {
    pub(super) method: Method,
    pub(super) bucket: &'a str,
    /// Key of the object; empty for the bucket itself.
    pub(super) key: &'a str,
    /// Not encoded yet.
    pub(super) query: Vec<(&'static str, String)>,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    /// Bytes of the answer, at most.
    pub(super) max: usize,
    /// Whether the request, carried out a second time, fails because of the first. It is repeated only if S3 has answered
    /// that it did nothing.
    pub(super) is_once: bool,
    /// Time that S3 may work before it answers, besides what it takes to send and receive.
    pub(super) work: Duration,
}

impl<'a> Call<'a> {
    pub(super) fn new(method: Method, bucket: &'a str, key: &'a str) -> Self {
        let (query, headers, body) = (Vec::new(), HeaderMap::new(), Bytes::new());
        let (max, work) = (limits::MAX_ANSWER, Duration::ZERO);
        Self { method, bucket, key, query, headers, body, max, is_once: false, work }
    }

    pub(super) fn query(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.query.push((name, value.into()));
        self
    }

    pub(super) fn header(mut self, name: &'static str, value: &str) -> Result<Self, Failure> {
        let value = HeaderValue::from_str(value).map_err(|_| Failure::Unsendable)?;
        self.headers.insert(name, value);
        Ok(self)
    }

    /// Only under a condition.
    pub(super) fn only(mut self, condition: &Only) -> Result<Self, Failure> {
        match condition {
            Only::Always => return Ok(self),
            Only::Absent => {
                self.headers.insert("if-none-match", HeaderValue::from_static("*"));
            }
            Only::Same(etag) => self = self.header("if-match", etag)?,
        }
        self.is_once = true;
        Ok(self)
    }
}

/// Whether an object is written, by what is under its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Only {
    /// Whatever is there.
    Always,
    /// If nothing is there.
    Absent,
    /// If the object with this entity tag is there.
    Same(String),
}

/// An S3 endpoint and the credentials for it. Clones share connections.
#[derive(Clone)]
pub struct Client(Arc<Inner>);

struct Inner {
    origin: Origin,
    connector: Connector,
    region: String,
    credentials: Credentials,
    clock: Clock,
    spare: Mutex<Vec<(SendRequest<Full<Bytes>>, Instant)>>,
}

impl Client {
    /// Checks the settings.
    ///
    /// # Errors
    /// Fault in the settings, for people.
    pub fn new(settings: Settings, clock: Clock) -> Result<Self, String> {
        let Settings { endpoint, allow_plain, region, credentials, connector } = settings;
        if !endpoint.starts_with("https://") && !endpoint.starts_with("http://") {
            return Err("it must begin with https:// or http://".into());
        }
        let uri: Option<Uri> = endpoint.parse().ok();
        let bare = uri.filter(|uri| uri.path() == "/" && uri.query().is_none());
        let origin = bare.as_ref().and_then(Origin::of).filter(|_| !endpoint.contains('#'));
        let origin = origin.ok_or("it must be a scheme, a host and perhaps a port")?;
        if !origin.is_tls && !allow_plain && !origin.is_loopback() {
            return Err("reports and files would go to another machine by plain HTTP".into());
        }
        let spare = Mutex::default();
        Ok(Self(Arc::new(Inner { origin, connector, region, credentials, clock, spare })))
    }

    /// Host and port, for messages.
    #[must_use]
    pub fn endpoint(&self) -> &str {
        &self.0.origin.authority
    }

    pub(super) fn unreadable(&self) -> Failure {
        Failure::Unreadable(self.endpoint().to_owned())
    }

    /// Sends a request until there is an answer that stands. A failure that S3 reports is an error.
    pub(super) async fn send(&self, call: &Call<'_>) -> Result<Response<Bytes>, Failure> {
        let mut pause = limits::S3_PAUSE;
        let mut attempts = 1;
        let mut earlier = None;
        loop {
            let failure = match self.attempt(call).await {
                Ok(response) => return Ok(response),
                Err(failure) => failure,
            };
            // Perhaps an earlier attempt was carried out although S3 said that it failed, and this one was refused for that reason.
            let is_refused = match failure.status() {
                Some(409 | 412) => true,
                Some(404) => call.method == Method::POST,
                _ => false,
            };
            if call.is_once && is_refused {
                return Err(earlier.unwrap_or(failure));
            }
            // What a gateway says does not tell what S3 behind it has done.
            let may_be_done = call.is_once && matches!(failure.status(), None | Some(502 | 504));
            if may_be_done || !failure.is_temporary() || attempts == limits::S3_ATTEMPTS {
                return Err(failure);
            }
            tracing::debug!(%failure, attempts, "a request to S3 is repeated");
            earlier = Some(failure);
            sleep(pause).await;
            pause *= 2;
            attempts += 1;
        }
    }

    async fn attempt(&self, call: &Call<'_>) -> Result<Response<Bytes>, Failure> {
        let request = self.signed(call)?;
        let bytes = (call.body.len() as u64).max(call.max as u64);
        let limit =
            limits::S3_REQUEST + Duration::from_secs(bytes / limits::S3_SLOWEST) + call.work;
        let exchange = self.exchange(request, call);
        let response = timeout(limit, exchange)
            .await
            .map_err(|_| Failure::Silent(self.endpoint().to_owned()))??;
        let status = response.status();
        // Copies and completed uploads may fail after the head with 200 has been sent.
        let begins_with_error = || xml::first(response.body(), "Code").is_some();
        let is_late = status == StatusCode::OK && call.method != Method::GET && begins_with_error();
        if status.is_success() && !is_late {
            return Ok(response);
        }
        let code = xml::first(response.body(), "Code").unwrap_or_default();
        Err(Failure::Refused {
            endpoint: self.endpoint().to_owned(),
            status: if is_late { 500 } else { status.as_u16() },
            code: code.chars().filter(char::is_ascii_alphanumeric).take(100).collect(),
        })
    }

    fn signed(&self, call: &Call<'_>) -> Result<Request<Bytes>, Failure> {
        let Inner { origin, region, credentials, clock, .. } = &*self.0;
        let path = match call.key {
            "" => format!("/{}", call.bucket),
            key => format!("/{}/{key}", call.bucket),
        };
        let path = encode_path(&path);
        let pairs: Vec<_> = call
            .query
            .iter()
            .map(|(name, value)| format!("{name}={}", encode_component(value)))
            .collect();
        let query = pairs.join("&");
        let mut headers = call.headers.clone();
        let target = Target {
            path: &path,
            host: &origin.authority,
            body: &call.body,
            region,
            service: "s3",
        };
        let now = (clock)().div_euclid(1000);
        sign_s3(&mut headers, call.method.as_str(), &query, &target, credentials, now)
            .map_err(|_| Failure::Unsendable)?;
        if matches!(call.method, Method::PUT | Method::POST) {
            // hyper leaves it out of a request without a body, and S3 wants it in every upload.
            headers.insert(CONTENT_LENGTH, HeaderValue::from(call.body.len()));
        }
        headers.insert(HOST, origin.authority.parse().map_err(|_| Failure::Unsendable)?);
        let uri = if query.is_empty() { path } else { format!("{path}?{query}") };
        let mut request = Request::new(call.body.clone());
        *request.method_mut() = call.method.clone();
        *request.uri_mut() = uri.parse().map_err(|_| Failure::Unsendable)?;
        *request.headers_mut() = headers;
        Ok(request)
    }

    /// Sends a request over a kept connection or a new one, which is kept afterwards.
    async fn exchange(
        &self,
        request: Request<Bytes>,
        call: &Call<'_>,
    ) -> Result<Response<Bytes>, Failure> {
        // A kept connection may be closed at any moment, and then nobody knows what became of the request.
        let kept = if call.is_once { None } else { self.take() };
        let mut sender = match kept {
            Some(sender) => sender,
            None => self.connect().await?,
        };
        let broken = |error: &dyn std::fmt::Display| self.unreachable(error);
        let response =
            sender.send_request(request.map(Full::new)).await.map_err(|error| broken(&error))?;
        let (head, body) = response.into_parts();
        let body = Limited::new(body, call.max.max(limits::MAX_S3_ERROR)).collect().await;
        let body = body.map_err(|error| broken(&error))?.to_bytes();
        self.keep(sender);
        Ok(Response::from_parts(head, body))
    }

    fn unreachable(&self, reason: &dyn std::fmt::Display) -> Failure {
        let endpoint = self.endpoint().to_owned();
        Failure::Unreachable { endpoint, reason: reason.to_string() }
    }

    async fn connect(&self) -> Result<SendRequest<Full<Bytes>>, Failure> {
        let Inner { origin, connector, .. } = &*self.0;
        let failed = |error: &dyn std::fmt::Display| self.unreachable(error);
        if origin.is_tls {
            let stream = connector.stream(&origin.host, origin.port).await;
            return self.speak(stream.map_err(|error| failed(&error))?).await;
        }
        let stream = TcpStream::connect((origin.host.as_str(), origin.port)).await;
        let stream = stream.map_err(|error| failed(&error))?;
        let _ = stream.set_nodelay(true);
        self.speak(stream).await
    }

    async fn speak(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    ) -> Result<SendRequest<Full<Bytes>>, Failure> {
        let begun = http1::handshake(TokioIo::new(stream)).await;
        let (sender, connection) = begun.map_err(|error| self.unreachable(&error))?;
        // It ends with its sender; a request that waits for its response gets the error.
        tokio::spawn(connection);
        Ok(sender)
    }

    fn take(&self) -> Option<SendRequest<Full<Bytes>>> {
        let mut spare = self.0.spare.lock().unwrap_or_else(PoisonError::into_inner);
        spare
            .retain(|(sender, since)| sender.is_ready() && since.elapsed() < limits::S3_SPARE_IDLE);
        spare.pop().map(|(sender, _)| sender)
    }

    fn keep(&self, sender: SendRequest<Full<Bytes>>) {
        let mut spare = self.0.spare.lock().unwrap_or_else(PoisonError::into_inner);
        spare.retain(|(sender, since)| {
            !sender.is_closed() && since.elapsed() < limits::S3_SPARE_IDLE
        });
        if spare.len() < limits::S3_SPARE_CONNECTIONS {
            spare.push((sender, Instant::now()));
        }
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Client").field(&self.endpoint()).finish()
    }
}
