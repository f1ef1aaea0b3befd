//! Files with secrets in them: the secret as it is, or a template that names any number of secrets.
//!
//! A template cannot wait, so rendering happens in rounds: a secret that is not there yet ends the round, and the
//! caller reads it before the next one. What passes through a template passes through ordinary memory.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use minijinja::value::Kwargs;
use minijinja::{Environment, Error, ErrorKind, UndefinedBehavior, Value};
use serde::Deserialize;
use zeroize::Zeroizing;

use crate::interface::Ask;

/// Secrets of one template, at most.
pub const MAX_SECRETS: usize = 256;
/// Length of a rendered file, at most, in bytes.
pub const MAX_RENDERED: usize = 4 << 20;

/// The value of a secret. There is no `Debug`.
#[derive(Clone)]
pub enum Content {
    /// `SecretString`
    Text(Arc<Zeroizing<String>>),
    /// `SecretBinary`
    Binary(Arc<Zeroizing<Vec<u8>>>),
}

/// Result of a round.
pub enum Round {
    /// The file.
    Done(Zeroizing<Vec<u8>>),
    /// Secrets that must be read first.
    Needs(Vec<Ask>),
}

/// Why a template gives no file. Contains no value of a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TemplateError(String);

/// Reads the value out of an answer for clients.
pub fn content(body: &[u8]) -> Result<Content, TemplateError> {
    #[derive(Deserialize)]
    struct Members {
        #[serde(rename = "SecretString")]
        string: Option<String>,
        #[serde(rename = "SecretBinary")]
        binary: Option<String>,
    }
    let unreadable = || TemplateError("the secret cannot be read".to_owned());
    let found: Members = serde_json::from_slice(body).map_err(|_| unreadable())?;
    let (string, binary) = (found.string.map(Zeroizing::new), found.binary.map(Zeroizing::new));
    match (string, binary) {
        (Some(text), _) => Ok(Content::Text(Arc::new(text))),
        (None, Some(text)) => {
            let bytes = STANDARD.decode(text.as_bytes()).map_err(|_| unreadable())?;
            Ok(Content::Binary(Arc::new(Zeroizing::new(bytes))))
        }
        (None, None) => Err(TemplateError("the secret has no value".to_owned())),
    }
}

impl Content {
    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Binary(bytes) => bytes,
        }
    }
}

/// Checks a template without secrets: its syntax.
pub fn check(name: &str, template: &str) -> Result<(), TemplateError> {
    Environment::new().template_from_named_str(name, template).map(|_| ()).map_err(explain)
}

/// Renders a template with the secrets that are known.
pub fn render(
    name: &str,
    template: &str,
    known: &HashMap<Ask, Content>,
) -> Result<Round, TemplateError> {
    let needs: Arc<Mutex<HashSet<Ask>>> = Arc::default();
    let mut environment = Environment::new();
    // A misspelt member must not become an empty password.
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_keep_trailing_newline(true);
    let (values, wanted) = (Arc::new(known.clone()), needs.clone());
    let secret = move |id: String, options: Kwargs| {
        let ask = Ask {
            secret_id: id,
            version_id: options.get("version_id")?,
            version_stage: options.get("version_stage")?,
            role_arn: None,
        };
        options.assert_all_used()?;
        match values.get(&ask) {
            Some(Content::Text(text)) => Ok(Value::from(text.as_str())),
            Some(Content::Binary(bytes)) => Ok(Value::from_bytes(bytes.to_vec())),
            None => {
                wanted.lock().unwrap_or_else(PoisonError::into_inner).insert(ask);
                Err(Error::new(ErrorKind::InvalidOperation, "the secret is not there yet"))
            }
        }
    };
    environment.add_function("secret", secret);
    environment.add_filter("from_json", from_json);
    environment.add_filter("base64", |value: Value| {
        let bytes = value.as_bytes().map(<[u8]>::to_vec);
        STANDARD.encode(bytes.unwrap_or_else(|| value.to_string().into_bytes()))
    });
    let rendered = environment
        .template_from_named_str(name, template)
        .and_then(|template| template.render(()));
    let needs: Vec<Ask> = needs.lock().unwrap_or_else(PoisonError::into_inner).drain().collect();
    if !needs.is_empty() {
        if known.len() + needs.len() > MAX_SECRETS {
            return Err(TemplateError(format!("it names more than {MAX_SECRETS} secrets")));
        }
        return Ok(Round::Needs(needs));
    }
    let text = rendered.map_err(explain)?;
    if text.len() > MAX_RENDERED {
        return Err(TemplateError(format!("its result is longer than {MAX_RENDERED} bytes")));
    }
    Ok(Round::Done(Zeroizing::new(text.into_bytes())))
}

fn from_json(text: &str) -> Result<Value, Error> {
    // Without serde's text, which may quote the secret.
    let wrong = || Error::new(ErrorKind::InvalidOperation, "the secret is not JSON");
    serde_json::from_str::<serde_json::Value>(text)
        .map(|value| Value::from_serialize(&value))
        .map_err(|_| wrong())
}

/// The kind of an error and its place. The detail may contain a value, and is left out unless it is about syntax.
fn explain(error: Error) -> TemplateError {
    let place = error.line().map_or(String::new(), |line| format!("line {line}: "));
    let detail = match error.kind() {
        ErrorKind::SyntaxError | ErrorKind::UnknownFilter | ErrorKind::UnknownFunction => {
            error.detail().map_or(String::new(), |detail| format!(": {detail}"))
        }
        ErrorKind::InvalidOperation if error.detail() == Some("the secret is not JSON") => {
            ": the secret is not JSON".to_owned()
        }
        _ => String::new(),
    };
    TemplateError(format!("{place}{}{detail}", error.kind()))
}
