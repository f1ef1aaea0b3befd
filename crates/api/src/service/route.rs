//! Which operation a request is for, and the answers that need no more than that.

use std::ptr;

use http::{HeaderMap, Method};
use outlast_domain::Fault;
use outlast_domain::limits::MAX_SESSION_REQUEST;

use super::{Response, elsewhere};
use crate::model::create_session::CREATE_SESSION;
use crate::ops::{ROLES_ANYWHERE, SERVICES};
use crate::table::{Row, ServiceRow};
use crate::wire::sigv4::Claim;
use crate::wire::{ApiError, Protocol, query, rest};

/// The destination of a request, known from its head alone.
#[derive(Clone, Copy)]
pub struct Route {
    pub(super) service: &'static ServiceRow,
    pub(super) row: &'static Row,
    pub(super) protocol: Protocol,
}

impl Route {
    /// Finds the operation or, for a query service, only the service; [`Route::resolve`] does the rest. The error is
    /// ready to be sent.
    pub fn find(method: &Method, path: &str, headers: &HeaderMap) -> Result<Self, Response> {
        Self::find_among(SERVICES, method, path, headers)
    }

    /// The same among these services.
    pub fn find_among(
        services: &[&'static ServiceRow],
        method: &Method,
        path: &str,
        headers: &HeaderMap,
    ) -> Result<Self, Response> {
        if let Some(rest) = path.strip_prefix("/service/") {
            let cbor = headers.get("smithy-protocol").is_some_and(|name| name == "rpc-v2-cbor");
            let found = rest.split_once("/operation/").and_then(|(service, operation)| {
                let service = services.iter().find(|row| {
                    row.model.target_prefix == service
                        && row.model.protocols.contains(&Protocol::RpcV2Cbor)
                })?;
                let row = service.operations.iter().find(|row| row.name == operation)?;
                Some(Self { service, row, protocol: Protocol::RpcV2Cbor })
            });
            return found
                .filter(|_| cbor && method == Method::POST)
                .ok_or_else(|| unknown(Protocol::RpcV2Cbor));
        }
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
        let scope = text("authorization").and_then(Claim::service_of);
        if let Some(response) = scope.and_then(|name| elsewhere::answer(name, path)) {
            return Err(response);
        }
        let is_session = method == Method::POST
            && path == CREATE_SESSION.http.uri
            && scope.is_none_or(|name| name == ROLES_ANYWHERE.model.signing_name);
        if let Some(service) =
            services.iter().find(|row| is_session && ptr::eq(**row, &ROLES_ANYWHERE))
        {
            return Ok(Self { service, row: &CREATE_SESSION, protocol: Protocol::RestJson1 });
        }
        let rest = services.iter().filter(|row| {
            row.model.protocols.contains(&Protocol::RestJson1)
                && scope.is_none_or(|name| name == row.model.signing_name)
        });
        if let Some(found) = rest.clone().find_map(|service| Self::by_path(service, method, path)) {
            return Ok(found);
        }
        if scope.is_some() && rest.count() > 0 {
            return Err(unknown(Protocol::RestJson1));
        }
        let found = match text("x-amz-target") {
            Some(target) => target.split_once('.').and_then(|(prefix, name)| {
                let service = services.iter().find(|row| {
                    row.model.target_prefix == prefix
                        && row.model.protocols.contains(&Protocol::Json11)
                })?;
                let row = service.operations.iter().find(|row| row.name == name)?;
                Some(Self { service, row, protocol: Protocol::Json11 })
            }),
            // The scope that the request is signed for identifies a query service.
            None => scope.and_then(|name| {
                let service = services.iter().find(|row| {
                    row.model.signing_name == name && row.model.protocols.contains(&Protocol::Query)
                })?;
                Some(Self { service, row: service.operations.first()?, protocol: Protocol::Query })
            }),
        };
        found
            .filter(|_| method == Method::POST && path == "/")
            .ok_or_else(|| unknown(Protocol::Json11))
    }

    /// The operation of a REST service with this method and path.
    fn by_path(service: &'static ServiceRow, method: &Method, path: &str) -> Option<Self> {
        let fits = |row: &&'static Row| {
            row.http.method == method.as_str() && rest::labels(row.http.uri, path).is_some()
        };
        let found = service.operations.iter().filter(fits);
        let row = found.max_by_key(|row| rest::parts_given(row.http.uri))?;
        Some(Self { service, row, protocol: Protocol::RestJson1 })
    }

    /// Finds the operation of a query service in the body.
    pub fn resolve(self, body: &[u8]) -> Result<Self, Response> {
        if self.protocol != Protocol::Query {
            return Ok(self);
        }
        let action = query::action(body);
        let row = action
            .as_ref()
            .and_then(|name| self.service.operations.iter().find(|row| row.name == name.as_ref()));
        row.map(|row| Self { row, ..self }).ok_or_else(|| {
            let name: String = action.iter().flat_map(|name| name.chars()).take(64).collect();
            let version = self.service.model.namespace.trim_end_matches('/');
            let version = version.rsplit('/').next().unwrap_or_default();
            let text = format!("Could not find operation {name} for version {version}");
            self.failure(&ApiError::new("InvalidAction", text))
        })
    }

    /// The service's name in signatures, and the operation's name once it is resolved.
    pub fn names(&self) -> (&'static str, &'static str) {
        (self.service.model.signing_name, self.row.name)
    }

    /// Whether it is CreateSession, which has no caller with an access key.
    pub(super) fn is_session(&self) -> bool {
        ptr::eq(self.row, &CREATE_SESSION)
    }

    /// Largest body that the operation takes, in bytes.
    pub fn max_body(&self) -> usize {
        if self.is_session() { MAX_SESSION_REQUEST } else { self.service.model.max_body }
    }

    /// The answer when too many slow calls of one caller are waiting.
    pub fn throttled(&self) -> Response {
        let text = "Rate exceeded: too many of your slow calls are waiting.";
        self.failure(&ApiError::new("ThrottlingException", text))
    }

    /// The answer to a body that is too large.
    pub fn too_large(&self) -> Response {
        let error = ApiError {
            status: 413,
            ..ApiError::new(
                "RequestEntityTooLargeException",
                format!("The request body is longer than {} bytes.", self.max_body()),
            )
        };
        self.failure(&error)
    }

    /// The answer to a body that did not arrive whole and in time.
    pub fn incomplete(&self) -> Response {
        let error = ApiError {
            status: 408,
            ..ApiError::new("RequestTimeoutException", "The request body did not arrive in time.")
        };
        self.failure(&error)
    }

    pub(super) fn failure(&self, error: &ApiError) -> Response {
        let model = self.service.model;
        let mut response = response_for(self.protocol, (model.namespace, model.message), error);
        if self.protocol != Protocol::Query
            && let Some(status) = model.status(error.code)
        {
            response.status = status;
        }
        response
    }

    /// The answer to a request that has failed.
    pub(super) fn refusal(&self, error: &ApiError, request_id: &str) -> Response {
        let mut response = self.failure(error);
        if self.protocol == Protocol::Query {
            response.body = query::identified(response.body, request_id);
        }
        response
    }

    pub(super) fn fault(&self, fault: Fault) -> ApiError {
        ApiError::internal(self.service.model.internal_error, fault)
    }
}

fn unknown(protocol: Protocol) -> Response {
    let error = ApiError::new("UnknownOperationException", "The operation is unknown.");
    response_for(protocol, ("com.amazon.coral.service", "message"), &error)
}

/// An error in the namespace of a service, whose text is in the member that this service has for it.
fn response_for(
    protocol: Protocol,
    (namespace, member): (&str, &str),
    error: &ApiError,
) -> Response {
    let (code, status) = protocol.error_code(error);
    Response {
        status,
        content_type: protocol.response_type(),
        is_cbor: protocol == Protocol::RpcV2Cbor,
        error: Some(code),
        body: protocol.encode_error(error, namespace, member),
    }
}
