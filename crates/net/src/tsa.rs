//! Timestamp requests (RFC 3161, section 3.4), over HTTPS and over plain HTTP: tokens are signed, so that nobody needs
//! TLS to believe them.

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, HOST};
use http::{HeaderValue, StatusCode};
use outlast_api::service::tsa::{self, timestamp_contended, timestamp_unread};
use outlast_api::service::{Request, Response, Service};
use outlast_crypto::pace;
use outlast_domain::ids;
use outlast_pki::timestamp::MAX_REQUEST_LEN;
use outlast_store::driver::drive;

use crate::plain::PlainServer;
use crate::server::{Clock, Connection, Content, Unread, discard};

impl Connection {
    /// The answer to a request below `/tsa`.
    pub(crate) async fn timestamp(
        &self,
        request: http::Request<impl Content>,
        request_id: &str,
    ) -> Response {
        let (head, body) = request.into_parts();
        let announced = head
            .headers
            .get(CONTENT_LENGTH)
            .and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
        if announced.is_some_and(|len| len > MAX_REQUEST_LEN) {
            discard(body).await;
            return timestamp_unread(413);
        }
        self.activity().touch();
        let body = match self.server.bodies().read(self.of, body, MAX_REQUEST_LEN).await {
            Ok(body) => body,
            Err(Unread::TooLong) => return timestamp_unread(413),
            Err(Unread::Incomplete) => return timestamp_unread(408),
        };
        let _use = self.activity().begin();
        let request = Request {
            body: &body.bytes,
            source_ip: &self.peer,
            tls: Some(&self.tls),
            ..of_head(&head, (self.server.clock)(), request_id)
        };
        let service = &self.server.service;
        let peer = self.peer.parse().ok();
        let asked = match service.timestamp_asked(&request, peer) {
            Ok(asked) => asked,
            Err(response) => return response,
        };
        let clock: Clock = self.server.clock;
        let prepare = || {
            // The token's time is that of its signature.
            let request = Request { now_ms: clock(), ..request };
            let asked = &asked;
            async move {
                let make = || pace::quickly(|| service.timestamp(asked, &request));
                self.off_thread(false, make).await
            }
        };
        settled(service, prepare).await
    }
}

impl PlainServer {
    /// The answer to a request below `/tsa`, whose body has arrived.
    pub(crate) async fn timestamp(
        &self,
        head: &http::request::Parts,
        body: &[u8],
        peer: std::net::IpAddr,
    ) -> http::Response<Bytes> {
        let request_id = ids::uuid().unwrap_or_default();
        let source_ip = peer.to_string();
        let clock = self.clock();
        let request =
            Request { body, source_ip: &source_ip, ..of_head(head, clock(), &request_id) };
        let service = self.service();
        let response = match service.timestamp_asked(&request, Some(peer)) {
            Ok(asked) => {
                let prepare = || {
                    let request = Request { now_ms: clock(), ..request };
                    let asked = &asked;
                    async move {
                        let make = || pace::quickly(|| service.timestamp(asked, &request));
                        self.off_thread(make).await
                    }
                };
                settled(service, prepare).await
            }
            Err(response) => response,
        };
        let mut out = http::Response::new(Bytes::from(response.body));
        *out.status_mut() =
            StatusCode::from_u16(response.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let headers = out.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(response.content_type));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        out
    }
}

/// A request without what its connection says, and without its body.
fn of_head<'a>(head: &'a http::request::Parts, now_ms: i64, request_id: &'a str) -> Request<'a> {
    // In HTTP/2 and HTTP/3 the host is part of the request's target.
    let host = head
        .headers
        .get(HOST)
        .and_then(|value| value.to_str().ok())
        .or_else(|| head.uri.authority().map(http::uri::Authority::as_str))
        .unwrap_or_default();
    Request {
        method: &head.method,
        path: head.uri.path(),
        query: head.uri.query().unwrap_or_default(),
        host,
        headers: &head.headers,
        body: &[],
        source_ip: "",
        tls: None,
        now_ms,
        request_id,
    }
}

/// Makes a token, and waits until its event is on disk.
async fn settled<F: Future<Output = tsa::Stamping>>(
    service: &Service,
    prepare: impl FnMut() -> F,
) -> Response {
    let finish = |response, outcome| service.timestamp_settled(response, outcome);
    drive(service.store().as_ref(), prepare, finish).await.unwrap_or_else(timestamp_contended)
}
