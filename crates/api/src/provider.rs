//! What is asked of an identity provider outside, and what it answers, in AWS's form.
//!
//! Sources: Transfer Family User Guide, "Using Amazon API Gateway to integrate your identity provider" and "Using AWS Lambda
//! to integrate your identity provider". The caller makes the connection; nothing here does.

use std::fmt::Write as _;

use outlast_crypto::Secret;
use outlast_domain::arn::Arn;
use outlast_domain::limits::MAX_PROVIDER_ANSWER;
use outlast_domain::transfer::{
    Answer, Home, Mapping, MappingKind, Posix, Provider, Question, Said,
};
use serde::Deserialize;
use serde_json::{Value, json};

/// Where to ask. There is no `Debug`: a password is among it.
pub enum Target {
    /// `GET` of this URL, with the password in the header `Password`, or in base64 in `PasswordBase64` if it is not ASCII.
    Https {
        /// URL with path and query.
        url: String,
        /// The password, if the user gave one.
        password: Option<Secret>,
    },
    /// An invocation of a function with this event, in JSON.
    Function {
        /// ARN.
        arn: String,
        /// The event.
        event: Secret,
    },
}

/// What a provider has answered. There is no `Debug`: it may be anything.
pub struct ProviderReply {
    /// The URL that was asked; empty for a function.
    pub url: String,
    /// HTTP status; 200 for a function that has answered.
    pub status: u16,
    /// The answer.
    pub body: Vec<u8>,
}

impl ProviderReply {
    /// Reads the answer to `question`. `None` if the provider does not know the user, or refuses it.
    ///
    /// # Errors
    /// [`AnswerError`]; then nobody is let in.
    pub fn answer(&self, question: &Question) -> Result<Option<Answer>, AnswerError> {
        match self.status {
            200 => answer(question, &self.body),
            // API Gateway's answers for users that its function or authorizer refuses.
            401 | 403 | 404 => Ok(None),
            status => Err(AnswerError::Status(status)),
        }
    }
}

/// Why an answer cannot be used. For the operator, never for the peer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AnswerError {
    /// It is longer than any answer may be.
    #[error("the answer of the identity provider is longer than {MAX_PROVIDER_ANSWER} bytes")]
    TooLong,
    /// It has a status of HTTP that means neither yes nor no.
    #[error("the identity provider answered with the status {0}")]
    Status(u16),
    /// It is not what AWS documents.
    #[error("the answer of the identity provider is not valid: {0}")]
    Invalid(String),
}

impl AnswerError {
    fn invalid(text: impl Into<String>) -> Self {
        Self::Invalid(text.into())
    }
}

/// Where to ask a question; `None` if this service knows the user itself.
pub fn target(question: &Question) -> Option<Target> {
    let Question { provider, server, user, password, source_ip } = question;
    match provider {
        Provider::ServiceManaged => None,
        Provider::ApiGateway { url, .. } => {
            let base = url.trim_end_matches('/');
            let (user, address) = (escaped(user), escaped(&source_ip.to_string()));
            let password =
                password.as_ref().map(|password| Secret::new(password.expose().to_vec()));
            let url = format!(
                "{base}/servers/{server}/users/{user}/config?protocol=SFTP&sourceIp={address}"
            );
            Some(Target::Https { url, password })
        }
        Provider::Lambda { function, .. } => {
            let text = |secret: &Secret| String::from_utf8_lossy(secret.expose()).into_owned();
            let event = json!({
                "username": user,
                "password": password.as_ref().map(text).unwrap_or_default(),
                "protocol": "SFTP",
                "serverId": server,
                "sourceIp": source_ip.to_string(),
            });
            let event = Secret::new(event.to_string().into_bytes());
            Some(Target::Function { arn: function.clone(), event })
        }
    }
}

/// Reads the answer to a question. `None` if the provider does not know the user, or refuses it: there is no role.
///
/// # Errors
/// [`AnswerError`]; then nobody is let in.
pub fn answer(question: &Question, body: &[u8]) -> Result<Option<Answer>, AnswerError> {
    Ok(read(body)?.map(|said| question.answered(said)))
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Given {
    role: Option<String>,
    home_directory: Option<String>,
    home_directory_type: Option<String>,
    home_directory_details: Option<Value>,
    policy: Option<Value>,
    posix_profile: Option<GivenPosix>,
    public_keys: Option<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct GivenPosix {
    uid: u32,
    gid: u32,
    #[serde(default)]
    secondary_gids: Vec<u32>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct GivenMapping {
    entry: String,
    target: String,
    r#type: Option<String>,
}

fn read(body: &[u8]) -> Result<Option<Said>, AnswerError> {
    if body.len() > MAX_PROVIDER_ANSWER {
        return Err(AnswerError::TooLong);
    }
    // The text of the error could quote a secret of the provider.
    let given = serde_json::from_slice::<Given>(body)
        .map_err(|_| AnswerError::invalid("it is not the JSON that AWS documents"))?;
    let Some(role) = given.role.filter(|role| !role.is_empty()) else { return Ok(None) };
    let arn = Arn::principal(&role).filter(|arn| arn.of("iam", "role/").is_some());
    let role = arn.ok_or_else(|| AnswerError::invalid("Role is not the ARN of a role"))?;
    let mappings = match given.home_directory_type.as_deref() {
        None | Some("PATH") => None,
        Some("LOGICAL") => Some(mappings(given.home_directory_details)?),
        Some(_) => return Err(AnswerError::invalid("HomeDirectoryType is unknown")),
    };
    let home = Home { directory: given.home_directory, mappings };
    home.check().map_err(|error| AnswerError::invalid(error.to_string()))?;
    let policy = match given.policy {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) => Some(text).filter(|text| !text.is_empty()),
        Some(document) => Some(document.to_string()),
    };
    let posix = given.posix_profile.map(|given| Posix {
        uid: given.uid,
        gid: given.gid,
        secondary_gids: given.secondary_gids,
    });
    let keys = given.public_keys.unwrap_or_default();
    Ok(Some(Said { role, home, policy, posix, keys }))
}

/// `HomeDirectoryDetails`: a list, as JSON in a string or plain.
fn mappings(details: Option<Value>) -> Result<Vec<Mapping>, AnswerError> {
    let invalid = || AnswerError::invalid("HomeDirectoryDetails is not a list of mappings");
    let given: Vec<GivenMapping> = match details {
        Some(Value::String(text)) => serde_json::from_str(&text).map_err(|_| invalid())?,
        Some(list) => serde_json::from_value(list).map_err(|_| invalid())?,
        None => return Err(invalid()),
    };
    let of = |given: GivenMapping| {
        let kind = match given.r#type.as_deref() {
            None => None,
            Some("DIRECTORY") => Some(MappingKind::Directory),
            Some("FILE") => Some(MappingKind::File),
            Some(_) => return Err(invalid()),
        };
        Ok(Mapping { entry: given.entry, target: given.target, kind })
    };
    given.into_iter().map(of).collect()
}

/// Percent-encoded, except for unreserved characters (RFC 3986, section 2.3).
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use outlast_domain::transfer::Methods;

    use super::*;

    const ROLE: &str = "arn:aws:iam::123456789012:role/transfer";

    fn parsed(value: &Value) -> Result<Option<Said>, AnswerError> {
        read(value.to_string().as_bytes())
    }

    #[test]
    fn questions_have_aws_form() {
        let ask = |provider: Provider, user: &str, password: Option<&[u8]>| {
            let question = Question {
                provider,
                server: "s-0".into(),
                user: user.into(),
                password: password.map(|password| Secret::new(password.to_vec())),
                source_ip: IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, 1]),
            };
            target(&question)
        };
        let gateway = Provider::ApiGateway {
            url: "https://idp.example/prod/".into(),
            invocation_role: None,
            methods: Methods::Either,
        };
        let Some(Target::Https { url, password }) = ask(gateway, "a@b.example", Some(b"secret"))
        else {
            panic!("a URL");
        };
        let expected = "https://idp.example/prod/servers/s-0/users/a%40b.example/config?protocol=SFTP&sourceIp=2001%3Adb8%3A%3A1";
        assert_eq!(url, expected);
        assert_eq!(password.as_ref().map(Secret::expose), Some(&b"secret"[..]));
        let function = "arn:aws:lambda:eu-west-1:123456789012:function:idp";
        let lambda = Provider::Lambda { function: function.into(), methods: Methods::Either };
        let Some(Target::Function { arn, event }) = ask(lambda, "alice", None) else {
            panic!("a function");
        };
        let event: Value = serde_json::from_slice(event.expose()).unwrap_or_default();
        let expected = json!({
            "username": "alice", "password": "", "protocol": "SFTP", "serverId": "s-0", "sourceIp": "2001:db8::1",
        });
        assert_eq!((arn.as_str(), event), (function, expected));
        assert!(ask(Provider::ServiceManaged, "alice", None).is_none());
    }

    #[test]
    fn answers_are_read_as_aws_documents_them() {
        let answer = parsed(&json!({
            "Role": ROLE, "HomeDirectoryType": "LOGICAL",
            "HomeDirectoryDetails": "[{\"Entry\":\"/\",\"Target\":\"/files/${transfer:UserName}\"}]",
            "PublicKeys": ["ssh-ed25519 AAAA"], "Policy": "", "Unknown": 1,
            "PosixProfile": { "Uid": 1000, "Gid": 1000 },
        }));
        let Ok(Some(answer)) = answer else { panic!("{answer:?}") };
        assert_eq!(answer.role.to_string(), ROLE);
        assert!(answer.home.is_logical() && answer.policy.is_none());
        assert_eq!(answer.keys.len(), 1);
        let answer = parsed(&json!({ "Role": ROLE, "HomeDirectory": "/files/home" }));
        assert!(matches!(answer, Ok(Some(said)) if !said.home.is_logical()));
        for nobody in [json!({}), json!({ "Role": "" }), json!({ "PublicKeys": [] })] {
            assert_eq!(parsed(&nobody), Ok(None), "{nobody}");
        }
        for wrong in [
            json!("text"),
            json!({ "Role": "role/x" }),
            json!({ "Role": ROLE.replace("role", "user") }),
            json!({ "Role": ROLE, "HomeDirectory": "/files/../x" }),
            json!({ "Role": ROLE, "HomeDirectoryType": "LOGICAL" }),
            json!({ "Role": ROLE, "HomeDirectoryType": "LOGICAL", "HomeDirectoryDetails": "[]" }),
            json!({ "Role": ROLE, "HomeDirectoryType": "OTHER" }),
            json!({ "Role": ROLE, "PublicKeys": "ssh-ed25519 AAAA" }),
        ] {
            assert!(parsed(&wrong).is_err(), "{wrong}");
        }
        let long = vec![b' '; MAX_PROVIDER_ANSWER + 1];
        assert_eq!(read(&long), Err(AnswerError::TooLong));
    }
}
