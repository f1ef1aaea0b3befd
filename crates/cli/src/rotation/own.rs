//! A client of this server's own operations, without a connection: a built-in rotation asks as its role does, so that
//! policies and the audit trail apply to it as to a function outside.

use std::sync::Arc;

use outlast_api::aws::Operation;
use outlast_api::client::{Client as Signer, ServiceError};
use outlast_api::service::{Request, Service};
use outlast_api::wire::sigv4::Credentials;
use outlast_domain::identity::session::Issued;
use outlast_domain::ids;
use outlast_net::server::system_clock;

/// Host that requests are signed for.
const HOST: &str = "localhost";

/// A client with the credentials of a role.
pub(super) struct Client {
    service: Arc<Service>,
    signer: Arc<Signer>,
}

impl Client {
    pub(super) fn new(service: Arc<Service>, region: &str, issued: Issued) -> Result<Self, String> {
        let credentials = Credentials {
            access_key_id: issued.access_key_id,
            secret: issued.secret,
            token: Some(issued.token),
        };
        let signer = Signer { host: HOST.to_owned(), region: region.to_owned(), credentials };
        Ok(Self { service, signer: Arc::new(signer) })
    }

    /// Calls an operation.
    pub(super) async fn call<O>(&self, input: O::Input) -> Result<O::Output, ServiceError>
    where
        O: Operation,
        O::Input: Send + 'static,
        O::Output: Send + 'static,
    {
        let (service, signer) = (self.service.clone(), self.signer.clone());
        let calling = move || {
            let failed =
                |message: String| ServiceError { code: "ClientError".into(), message, status: 0 };
            let now_ms = system_clock();
            let request = signer
                .request::<O>(&input, now_ms.div_euclid(1000))
                .map_err(|error| failed(error.to_string()))?;
            let id = ids::uuid().map_err(|fault| failed(fault.to_string()))?;
            let response = service.call(&Request {
                method: request.method(),
                path: "/",
                query: "",
                host: HOST,
                headers: request.headers(),
                body: request.body(),
                source_ip: "127.0.0.1",
                tls: None,
                now_ms,
                request_id: &id,
            });
            Signer::response::<O>(response.status, &response.body)
        };
        match tokio::task::spawn_blocking(calling).await {
            Ok(answer) => answer,
            Err(error) => Err(ServiceError {
                code: "ClientError".into(),
                message: error.to_string(),
                status: 0,
            }),
        }
    }
}
