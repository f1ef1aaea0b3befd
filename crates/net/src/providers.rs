//! Identity providers: over HTTPS by API Gateway's contract, and functions, which the caller runs.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{HeaderValue, Method, Uri};
use outlast_api::provider::{ProviderReply, Target, target};
use outlast_crypto::Secret;
use outlast_domain::limits::MAX_PROVIDER_ANSWER;
use outlast_domain::transfer::{Answer, Question, Refusal};
use tokio::time::timeout;

use crate::client::Connector;
use crate::exchange::Origin;
use crate::limits;

/// Asks an identity provider outside; `None` if it refuses, and [`Refusal::ProviderUnavailable`] if it cannot be asked.
pub type Ask = Arc<
    dyn Fn(Question) -> Pin<Box<dyn Future<Output = Result<Option<Answer>, Refusal>> + Send>>
        + Send
        + Sync,
>;

/// Runs the function with this ARN on an event, and returns its answer, of [`MAX_PROVIDER_ANSWER`] bytes at most.
pub type CallFunction = Arc<
    dyn Fn(String, Secret) -> Pin<Box<dyn Future<Output = Result<Vec<u8>, String>> + Send>>
        + Send
        + Sync,
>;

/// Asks identity providers. Nobody is let in if one does not answer.
#[derive(Default)]
pub struct Providers {
    /// Connections to providers; none is asked over HTTPS without.
    pub https: Option<Connector>,
    /// Functions; none is called without.
    pub functions: Option<CallFunction>,
}

impl Providers {
    /// For logins: the answer, or none if the provider refuses.
    pub fn ask(self: &Arc<Self>) -> Ask {
        let providers = self.clone();
        Arc::new(move |question| {
            let providers = providers.clone();
            Box::pin(async move {
                let asked = providers.answer(&question).await;
                asked.map_err(|error| {
                    tracing::error!(error, "an identity provider could not be asked");
                    Refusal::ProviderUnavailable
                })
            })
        })
    }

    async fn answer(&self, question: &Question) -> Result<Option<Answer>, String> {
        let reply = self.fetch(question).await?;
        reply.answer(question).map_err(|error| error.to_string())
    }

    /// What a provider answers, whatever it is.
    ///
    /// # Errors
    /// Why there is no answer, for the operator.
    pub async fn fetch(&self, question: &Question) -> Result<ProviderReply, String> {
        timeout(limits::SFTP_PROVIDER, self.fetch_slowly(question))
            .await
            .unwrap_or_else(|_| Err("it did not answer in time".to_owned()))
    }

    async fn fetch_slowly(&self, question: &Question) -> Result<ProviderReply, String> {
        match target(question) {
            Some(Target::Https { url, password }) => self.over_https(url, password).await,
            Some(Target::Function { arn, event }) => {
                let call = self.functions.as_ref().ok_or("no functions are configured")?;
                let body = call(arn, event).await?;
                Ok(ProviderReply { url: String::new(), status: 200, body })
            }
            None => Err("the users are the service's own".to_owned()),
        }
    }

    async fn over_https(
        &self,
        url: String,
        password: Option<Secret>,
    ) -> Result<ProviderReply, String> {
        let connector = self.https.as_ref().ok_or("no CAs of identity providers are configured")?;
        let uri: Uri = url.parse().map_err(|_| "its URL cannot be read".to_owned())?;
        let origin =
            Origin::of(&uri).filter(|origin| origin.is_tls).ok_or("its URL is not of HTTPS")?;
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        let mut request = origin.request(Method::GET, path);
        if let Some(password) = password {
            let bytes = password.expose();
            // HTTP drops blanks at both ends of a value.
            let is_plain = bytes.is_ascii()
                && !bytes.iter().any(u8::is_ascii_control)
                && bytes.trim_ascii() == bytes;
            let (name, value) = match is_plain {
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
        let (status, body) = (response.status().as_u16(), response.body().to_vec());
        Ok(ProviderReply { url, status, body })
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use outlast_domain::transfer::{Methods, Provider};

    use super::*;

    #[tokio::test]
    async fn a_provider_that_cannot_be_asked_has_not_refused() {
        let function = "arn:aws:lambda:us-east-1:123456789012:function:login".to_owned();
        let provider = Provider::Lambda { function, methods: Methods::Either };
        let question = || Question {
            provider: provider.clone(),
            server: "s-01234567890abcdef".to_owned(),
            user: "alice".to_owned(),
            password: None,
            source_ip: IpAddr::from([192, 0, 2, 1]),
        };
        let says = |answer: Result<Vec<u8>, String>| {
            let call: CallFunction =
                Arc::new(move |_, _| Box::pin(std::future::ready(answer.clone())));
            Arc::new(Providers { https: None, functions: Some(call) }).ask()
        };
        let unavailable = Err(Refusal::ProviderUnavailable);
        assert_eq!(Arc::<Providers>::default().ask()(question()).await, unavailable);
        assert_eq!(says(Err("it is gone".to_owned()))(question()).await, unavailable);
        assert_eq!(says(Ok(b"yes".to_vec()))(question()).await, unavailable);
        assert_eq!(says(Ok(b"{}".to_vec()))(question()).await, Ok(None));
    }
}
