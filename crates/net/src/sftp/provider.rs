//! Identity providers over HTTPS, by API Gateway's contract.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{HeaderValue, Method, Uri};
use outlast_api::service::sftp::{Target, answer, target};
use outlast_domain::limits::MAX_PROVIDER_ANSWER;
use outlast_domain::transfer::{Answer, Question};
use tokio::time::timeout;

use super::Ask;
use crate::client::Connector;
use crate::exchange::Origin;
use crate::limits;

/// Asks providers over connections of this kind. Nobody is let in if one does not answer, or not with status 200.
pub fn over_https(connector: Connector) -> Ask {
    let connector = Arc::new(connector);
    Arc::new(move |question| {
        let connector = connector.clone();
        Box::pin(async move {
            let asked = timeout(limits::SFTP_PROVIDER, ask(&connector, &question)).await;
            match asked.unwrap_or_else(|_| Err("it did not answer in time".to_owned())) {
                Ok(answer) => answer,
                Err(error) => {
                    tracing::error!(error, "an identity provider could not be asked");
                    None
                }
            }
        })
    })
}

async fn ask(connector: &Connector, question: &Question) -> Result<Option<Answer>, String> {
    let Some(Target::Https { url, password }) = target(question) else {
        return Err("it is not one over HTTPS".to_owned());
    };
    let uri: Uri = url.parse().map_err(|_| "its URL cannot be read".to_owned())?;
    let origin =
        Origin::of(&uri).filter(|origin| origin.is_tls).ok_or("its URL is not of HTTPS")?;
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let mut request = origin.request(Method::GET, path);
    if let Some(password) = password {
        let bytes = password.expose();
        let (name, value) = match bytes.is_ascii() && !bytes.iter().any(u8::is_ascii_control) {
            true => ("password", HeaderValue::from_bytes(bytes)),
            false => ("passwordbase64", HeaderValue::from_str(&STANDARD.encode(bytes))),
        };
        let mut value = value.map_err(|_| "the password is not one of HTTP".to_owned())?;
        value.set_sensitive(true);
        request = request.header(name, value);
    }
    let request = request.body(Bytes::new()).map_err(|error| error.to_string())?;
    let response = origin
        .exchange(Some(connector), request, |_| MAX_PROVIDER_ANSWER + 1)
        .await
        .map_err(|error| error.to_string())?;
    match response.status().as_u16() {
        200 => answer(question, response.body()).map_err(|error| error.to_string()),
        // API Gateway's answers for users that its function or authorizer refuses.
        401 | 403 | 404 => Ok(None),
        status => Err(format!("it answered {status}")),
    }
}
