//! An ACME client: carries the messages of a machine that enrols.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::{Method, Request, Response};
use outlast_agent::acme::Signer;
use outlast_crypto::Secret;
use serde_json::{Value, json};

use super::challenge::Solver;
use super::{Link, LinkError, TIMEOUT};
use crate::endpoint::address;
use crate::failure::Failure;

/// Pause between two questions whether something is done, and how many there are.
const PAUSE: Duration = Duration::from_secs(1);
const QUESTIONS: usize = 120;
const JOSE: &str = "application/jose+json";

/// A conversation with an ACME server.
pub(crate) struct Conversation<'a> {
    link: Link,
    directory: String,
    key: &'a Signer,
    account: Option<String>,
    nonce: Option<String>,
    urls: Value,
}

/// What a server said.
struct Said {
    location: Option<String>,
    body: Vec<u8>,
}

impl<'a> Conversation<'a> {
    /// Reads the directory.
    pub(crate) async fn open(
        link: Link,
        directory: &str,
        key: &'a Signer,
    ) -> Result<Self, Failure> {
        let mut conversation = Self {
            link,
            directory: directory.to_owned(),
            key,
            account: None,
            nonce: None,
            urls: Value::Null,
        };
        let said = conversation.send(Method::GET, directory, Vec::new()).await?;
        let body = said.into_body();
        conversation.urls = serde_json::from_slice(&body).map_err(|_| {
            Failure::new(format!("{directory} is not the directory of an ACME server"))
        })?;
        Ok(conversation)
    }

    /// Finds the key's account, or makes one with the external account binding (id, and key in base64url).
    pub(crate) async fn account(
        &mut self,
        binding: Option<(&str, &Secret)>,
    ) -> Result<(), Failure> {
        let url = self.url("newAccount")?;
        let existing = self.post(&url, Some(&json!({ "onlyReturnExisting": true }))).await;
        let said = match (existing, binding) {
            (Ok(said), _) => said,
            (Err(failure), Some((id, key)))
                if failure.message().contains("accountDoesNotExist") =>
            {
                let binding = self.key.binding(id, key, &url);
                let binding = binding.map_err(|error| Failure::new(error.to_string()))?;
                let new =
                    json!({ "termsOfServiceAgreed": true, "externalAccountBinding": binding });
                self.post(&url, Some(&new)).await?
            }
            (Err(failure), _) => {
                return Err(failure.hint(
                    "a machine enrols the first time with --eab-kid and --eab-key-file, and keeps its account key",
                ));
            }
        };
        self.account = Some(said.location.ok_or_else(|| Failure::new("the account has no URL"))?);
        Ok(())
    }

    /// Gets a certificate for these names; returns it with its chain, in PEM.
    pub(crate) async fn certificate(
        &mut self,
        names: &[String],
        request: &[u8],
        solver: &Solver,
    ) -> Result<Vec<u8>, Failure> {
        let identifiers: Vec<_> =
            names.iter().map(|name| json!({ "type": "dns", "value": name })).collect();
        let url = self.url("newOrder")?;
        let said = self.post(&url, Some(&json!({ "identifiers": identifiers }))).await?;
        let order_url =
            said.location.clone().ok_or_else(|| Failure::new("the order has no URL"))?;
        let order = said.json()?;
        for url in order["authorizations"].as_array().into_iter().flatten() {
            self.authorize(url.as_str().unwrap_or_default(), solver).await?;
        }
        let finalize = text(&order, "finalize")?;
        let csr = json!({ "csr": URL_SAFE_NO_PAD.encode(request) });
        self.post(&finalize, Some(&csr)).await?;
        let order = self.settled(&order_url, &["pending", "ready", "processing"]).await?;
        if order["status"] != "valid" {
            return Err(Failure::new(format!(
                "the order was refused: {}",
                problem(&order["error"])
            )));
        }
        let certificate = text(&order, "certificate")?;
        Ok(self.post(&certificate, None).await?.body)
    }

    async fn authorize(&mut self, url: &str, solver: &Solver) -> Result<(), Failure> {
        let authorization = self.post(url, None).await?.json()?;
        // The names of some endpoints are validated once and for all.
        if authorization["status"] == "valid" {
            return Ok(());
        }
        let name = authorization["identifier"]["value"].as_str().unwrap_or_default().to_owned();
        let challenges = authorization["challenges"].as_array().cloned().unwrap_or_default();
        let kind = solver.kind();
        let challenge = challenges.iter().find(|challenge| challenge["type"] == kind);
        let challenge = challenge.ok_or_else(|| {
            let offered: Vec<_> =
                challenges.iter().filter_map(|challenge| challenge["type"].as_str()).collect();
            Failure::new(format!("{name} cannot be validated by {kind}"))
                .hint(format!("the server offers {} for it: see --challenge", offered.join(", ")))
        })?;
        let token = text(challenge, "token")?;
        let answer = self.key.key_authorization(&token);
        let presented = solver.present(&name, token, answer).await?;
        let outcome = async {
            self.post(&text(challenge, "url")?, Some(&json!({}))).await?;
            self.settled(url, &["pending"]).await
        };
        let outcome = outcome.await;
        presented.withdraw().await;
        let authorization = outcome?;
        if authorization["status"] == "valid" {
            return Ok(());
        }
        let challenges = authorization["challenges"].as_array().cloned().unwrap_or_default();
        let reason = challenges.iter().find(|challenge| challenge["error"].is_object());
        let reason = reason.map_or_else(String::new, |challenge| problem(&challenge["error"]));
        Err(Failure::new(format!("{name} was not validated: {reason}")).hint(solver.hint()))
    }

    /// Asks until the object has another status than these.
    async fn settled(&mut self, url: &str, open: &[&str]) -> Result<Value, Failure> {
        for _ in 0..QUESTIONS {
            let found = self.post(url, None).await?.json()?;
            if !open.iter().any(|status| found["status"] == *status) {
                return Ok(found);
            }
            tokio::time::sleep(PAUSE).await;
        }
        Err(Failure::new(format!("{url} is not settled after {QUESTIONS} questions")))
    }

    fn url(&self, name: &str) -> Result<String, Failure> {
        text(&self.urls, name)
    }

    async fn post(&mut self, url: &str, payload: Option<&Value>) -> Result<Said, Failure> {
        let mut attempts = 0;
        loop {
            attempts += 1;
            let nonce = self.nonce().await?;
            let message = self.key.message(url, &nonce, self.account.as_deref(), payload);
            let message = message.map_err(|error| Failure::new(error.to_string()))?;
            let response = self.send(Method::POST, url, message).await?;
            let (status, location) = (response.status(), header(&response, "location"));
            let body = response.into_body().to_vec();
            if status.is_success() {
                return Ok(Said { location, body });
            }
            let said = serde_json::from_slice::<Value>(&body).unwrap_or_default();
            // A nonce ages (RFC 8555, section 6.5).
            let is_old = said["type"].as_str().is_some_and(|kind| kind.ends_with(":badNonce"));
            if !is_old || attempts > 2 {
                return Err(Failure::new(format!("the ACME server refused: {}", problem(&said))));
            }
        }
    }

    async fn nonce(&mut self) -> Result<String, Failure> {
        if self.nonce.is_none() {
            let url = self.url("newNonce")?;
            self.send(Method::HEAD, &url, Vec::new()).await?;
        }
        self.nonce.take().ok_or_else(|| Failure::new("the ACME server gives no nonce"))
    }

    async fn send(
        &mut self,
        method: Method,
        url: &str,
        body: Vec<u8>,
    ) -> Result<Response<bytes::Bytes>, Failure> {
        let (origin, path) = split(url)?;
        // Messages are signed for their URL, but a server must not send this machine elsewhere.
        if split(&self.directory)?.0 != origin {
            return Err(Failure::new(format!(
                "the ACME server names a URL of another server: {url}"
            )));
        }
        let invalid = |_| Failure::new(format!("{url} is not a URL"));
        let mut builder = Request::builder().method(method).uri(path);
        builder = builder.header("host", self.link.authority()).header("user-agent", "outlast");
        if !body.is_empty() {
            builder = builder.header("content-type", JOSE);
        }
        let request = builder.body(body).map_err(invalid)?;
        let response = self.link.send(request, TIMEOUT).await.map_err(|error| match error {
            LinkError::Timeout => Failure::new("the ACME server does not answer"),
            LinkError::Client(error) => self.link.failure(error),
        })?;
        self.nonce = header(&response, "replay-nonce").or(self.nonce.take());
        Ok(response)
    }
}

/// Scheme and authority of a URL, and its path.
pub(crate) fn split(url: &str) -> Result<(String, String), Failure> {
    let rest = url.strip_prefix("https://");
    let rest = rest.ok_or_else(|| Failure::new(format!("{url} does not begin with https://")))?;
    let at = rest.find('/').unwrap_or(rest.len());
    let origin = format!("https://{}", &rest[..at]);
    address(&origin)?;
    Ok((origin, if at == rest.len() { "/".to_owned() } else { rest[at..].to_owned() }))
}

impl Said {
    fn json(&self) -> Result<Value, Failure> {
        let said = serde_json::from_slice(&self.body);
        said.map_err(|_| Failure::new("the ACME server's answer is not JSON"))
    }
}

fn header(response: &Response<bytes::Bytes>, name: &str) -> Option<String> {
    response.headers().get(name)?.to_str().ok().map(str::to_owned)
}

fn text(value: &Value, name: &str) -> Result<String, Failure> {
    let found = value[name].as_str().map(str::to_owned);
    found.ok_or_else(|| Failure::new(format!("the ACME server's answer has no {name}")))
}

/// A problem document (RFC 8555, section 6.7) in one line.
fn problem(value: &Value) -> String {
    let kind = value["type"].as_str().unwrap_or_default();
    let kind = kind.rsplit(':').next().unwrap_or_default();
    let detail = value["detail"].as_str().unwrap_or_default();
    let line: String = format!("{kind}: {detail}").chars().filter(|c| !c.is_control()).collect();
    line.chars().take(500).collect()
}
