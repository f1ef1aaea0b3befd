//! Makes requests and reads responses; the caller owns the connection.

use http::{HeaderMap, Method, Request};
use serde::Deserialize;

use crate::aws::Operation;
use crate::wire::sigv4::{Credentials, Target, sign};
use crate::wire::{ApiError, Protocol};

/// A client of one endpoint, in one region, with one access key. It speaks AWS JSON 1.1.
pub struct Client {
    /// Host and port as in the endpoint's URL.
    pub host: String,
    /// Region that the requests are for.
    pub region: String,
    /// Who signs them.
    pub credentials: Credentials,
}

/// An error that the service answered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {message}")]
pub struct ServiceError {
    /// AWS's name of the error.
    pub code: String,
    /// Text for people.
    pub message: String,
    /// HTTP status.
    pub status: u16,
}

impl Client {
    /// A signed request for an operation. `now` is the time in seconds since 1970.
    pub fn request<O: Operation>(
        &self,
        input: &O::Input,
        now: i64,
    ) -> Result<Request<Vec<u8>>, ApiError> {
        let body = Protocol::Json11.encode(input)?;
        let invalid = || ApiError::validation("the request cannot be put together");
        let target = format!("{}.{}", O::SERVICE.target_prefix, O::NAME);
        let mut headers = HeaderMap::new();
        let content_type = Protocol::Json11.content_type();
        headers.insert("content-type", content_type.parse().map_err(|_| invalid())?);
        headers.insert("x-amz-target", target.parse().map_err(|_| invalid())?);
        let target = Target {
            path: "/",
            host: &self.host,
            body: &body,
            region: &self.region,
            service: O::SERVICE.signing_name,
        };
        sign(&mut headers, &target, &self.credentials, now)?;
        headers.insert("host", self.host.parse().map_err(|_| invalid())?);
        let mut request = Request::new(body);
        *request.method_mut() = Method::POST;
        *request.headers_mut() = headers;
        Ok(request)
    }

    /// Reads the response to such a request.
    pub fn response<O: Operation>(status: u16, body: &[u8]) -> Result<O::Output, ServiceError> {
        let unreadable = |error: &dyn std::fmt::Display| ServiceError {
            code: "UnreadableResponse".into(),
            message: format!("the endpoint's answer to {} cannot be read: {error}", O::NAME),
            status,
        };
        if status == 200 {
            let body = if body.is_empty() { b"{}" } else { body };
            return serde_json::from_slice(body).map_err(|error| unreadable(&error));
        }
        #[derive(Deserialize)]
        struct Body {
            #[serde(rename = "__type")]
            kind: String,
            #[serde(alias = "Message", default)]
            message: String,
        }
        let error: Body = serde_json::from_slice(body).map_err(|error| unreadable(&error))?;
        let code = error.kind.rsplit('#').next().unwrap_or_default().to_owned();
        Err(ServiceError { code, message: error.message, status })
    }
}
