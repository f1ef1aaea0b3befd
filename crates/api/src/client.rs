//! Makes requests and reads responses; the caller owns the connection.

use http::{HeaderMap, HeaderValue, Method, Request};
use serde::Deserialize;
use serde_json::Value;

use crate::aws::Operation;
use crate::wire::sigv4::{Credentials, Target, sign, sign_rest};
use crate::wire::{ApiError, Protocol, read, rest};

/// A client of one endpoint, in one Region, with one access key. It speaks REST JSON with the services that do, and
/// AWS JSON 1.1 with the others.
pub struct Client {
    /// Host and port as in the endpoint's URL.
    pub host: String,
    /// Region to sign requests for.
    pub region: String,
    /// Credentials to sign requests with.
    pub credentials: Credentials,
}

/// An error that the service returned.
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
        if O::SERVICE.protocols.contains(&Protocol::RestJson1) {
            return self.rest::<O>(input, now);
        }
        let body = Protocol::Json11.encode(input)?;
        let invalid = || ApiError::validation("the request cannot be built");
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

    fn rest<O: Operation>(&self, input: &O::Input, now: i64) -> Result<Request<Vec<u8>>, ApiError> {
        let invalid = || ApiError::validation("the request cannot be built");
        let protocol = Protocol::RestJson1;
        let Ok(Value::Object(members)) = serde_json::to_value(input) else {
            return Err(invalid());
        };
        let written = rest::write(&O::HTTP, O::INPUT, members)?;
        let (path, query) = (written.path.as_str(), written.query.as_str());
        let body = match written.body.is_empty() {
            true => Vec::new(),
            false => protocol.encode(&written.body)?,
        };
        let mut headers = HeaderMap::new();
        if !body.is_empty() {
            let kind = HeaderValue::from_static(protocol.content_type());
            headers.insert("content-type", kind);
        }
        let (host, region, service) = (&self.host, &self.region, O::SERVICE.signing_name);
        let target = Target { path, host, body: &body, region, service };
        sign_rest(&mut headers, O::HTTP.method, query, &target, &self.credentials, now)?;
        headers.insert("host", self.host.parse().map_err(|_| invalid())?);
        let uri = if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") };
        let mut request = Request::new(body);
        *request.method_mut() = O::HTTP.method.parse().map_err(|_| invalid())?;
        *request.uri_mut() = uri.parse().map_err(|_| invalid())?;
        *request.headers_mut() = headers;
        Ok(request)
    }

    /// Reads the response to such a request.
    pub fn response<O: Operation>(status: u16, body: &[u8]) -> Result<O::Output, ServiceError> {
        Self::response_as::<O>(status, None, body)
    }

    /// The same, given the header `x-amzn-errortype`: REST JSON has the error's name nowhere else.
    pub fn response_as<O: Operation>(
        status: u16,
        error_type: Option<&str>,
        body: &[u8],
    ) -> Result<O::Output, ServiceError> {
        let unreadable = |error: &dyn std::fmt::Display| ServiceError {
            code: "UnreadableResponse".into(),
            message: format!("the endpoint's answer to {} cannot be read: {error}", O::NAME),
            status,
        };
        if status == O::HTTP.status {
            let body = if body.is_empty() { b"{}" } else { body };
            if !O::SERVICE.protocols.contains(&Protocol::RestJson1) {
                return serde_json::from_slice(body).map_err(|error| unreadable(&error));
            }
            let mut value = serde_json::from_slice(body).map_err(|error| unreadable(&error))?;
            read::with_read_times(&mut value, O::OUTPUT);
            return serde_json::from_value(value).map_err(|error| unreadable(&error));
        }
        #[derive(Deserialize)]
        struct Body {
            #[serde(rename = "__type", default)]
            kind: String,
            #[serde(alias = "Message", default)]
            message: String,
        }
        let error: Body = serde_json::from_slice(body).map_err(|error| unreadable(&error))?;
        // AWS may prefix the name with a namespace, or append a URL.
        let kind =
            error_type.map_or(error.kind.as_str(), |kind| kind.split(':').next().unwrap_or(kind));
        let code = kind.rsplit('#').next().unwrap_or_default().to_owned();
        Err(ServiceError { code, message: error.message, status })
    }
}
