//! ACME requests on the HTTPS port.

use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderName};
use http::{HeaderValue, Method, StatusCode};
use http_body_util::Full;
use outlast_api::acme::{self, Response, Step};
use outlast_api::service::Request;
use outlast_crypto::pace;
use outlast_store::driver::{Attempt, drive};

use crate::server::{Connection, Content, Unread, discard};

impl Connection {
    pub(crate) async fn acme(
        &self,
        request: http::Request<impl Content>,
        request_id: &str,
    ) -> http::Response<Full<Bytes>> {
        let is_head = request.method() == Method::HEAD;
        let response = self.acme_response(request, request_id).await;
        // A response to HEAD has no body, but hyper sets its length.
        let body = if is_head { Vec::new() } else { response.body };
        let mut out = http::Response::new(Full::new(Bytes::from(body)));
        *out.status_mut() =
            StatusCode::from_u16(response.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let headers = out.headers_mut();
        if !response.content_type.is_empty() {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(response.content_type));
        }
        for (name, value) in response.headers {
            if let Ok(value) = HeaderValue::from_str(&value) {
                headers.append(HeaderName::from_static(name), value);
            }
        }
        if let Ok(id) = HeaderValue::from_str(request_id) {
            headers.insert("x-amzn-requestid", id);
        }
        out
    }

    async fn acme_response(
        &self,
        request: http::Request<impl Content>,
        request_id: &str,
    ) -> Response {
        let (head, body) = request.into_parts();
        let announced = head
            .headers
            .get(CONTENT_LENGTH)
            .and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
        if announced.is_some_and(|len| len > acme::MAX_BODY) {
            discard(body).await;
            return acme::body_refused(413);
        }
        self.activity().touch();
        let body = match self.server.bodies().read(self.of, body, acme::MAX_BODY).await {
            Ok(body) => body,
            Err(Unread::TooLong) => return acme::body_refused(413),
            Err(Unread::Incomplete) => return acme::body_refused(408),
        };
        let _use = self.activity().begin();
        // In HTTP/2 and HTTP/3 the host is part of the request's target.
        let host = head
            .headers
            .get(HOST)
            .and_then(|value| value.to_str().ok())
            .or_else(|| head.uri.authority().map(http::uri::Authority::as_str))
            .unwrap_or_default();
        let path = head.uri.path();
        let request = Request {
            method: &head.method,
            path,
            query: head.uri.query().unwrap_or_default(),
            host,
            headers: &head.headers,
            body: &body.bytes,
            source_ip: &self.peer,
            tls: Some(&self.tls),
            now_ms: (self.server.clock)(),
            request_id,
        };
        let service = &self.server.service;
        let takes_long = AtomicBool::new(false);
        let prepare = || async {
            let carry_out = || service.acme(&request);
            let step = match takes_long.load(Ordering::Relaxed) {
                false => self.off_thread(acme::is_slow(path), || pace::quickly(carry_out)).await,
                true => match self.in_turn(&acme::principal(path), carry_out).await {
                    Some(step) => step,
                    None => return Attempt::Done(acme::throttled()),
                },
            };
            match &step {
                Step::TakesLong => takes_long.store(true, Ordering::Relaxed),
                Step::Commit(prepared) => {
                    prepared.principal.iter().for_each(|principal| self.watch.principal(principal));
                }
                Step::Respond(_) | Step::Again => {}
            }
            step.into()
        };
        drive(service.store().as_ref(), prepare, acme::Prepared::settle)
            .await
            .unwrap_or_else(acme::contended)
    }
}
