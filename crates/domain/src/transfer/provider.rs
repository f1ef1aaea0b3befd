//! Identity providers: who knows the users of a server, and what is asked of one outside.
//!
//! Sources: Transfer Family User Guide, "Using Amazon API Gateway to integrate your identity provider" and "Using AWS Lambda
//! to integrate your identity provider". A provider that gets no password answers with the public keys of the user, and
//! with a role either way. So it must never be asked in the name of a user who has proved nothing: a login with an empty
//! password is refused before.

use std::fmt::{self, Write as _};
use std::net::IpAddr;

use outlast_crypto::{Secret, digests};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::TransferError;
use super::authentication::Methods;
use super::home::{Home, Mapping, MappingKind};
use super::user::Posix;
use crate::arn::{Arn, Scope};
use crate::limits::MAX_PROVIDER_ANSWER;

/// Who knows the users of a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Provider {
    /// `SERVICE_MANAGED`: this service.
    ServiceManaged,
    /// `API_GATEWAY`
    ApiGateway {
        /// `Url`
        url: String,
        /// `InvocationRole`, a canonical ARN.
        invocation_role: Option<String>,
        /// `SftpAuthenticationMethods`
        methods: Methods,
    },
    /// `AWS_LAMBDA`
    Lambda {
        /// `Function`, a canonical ARN.
        function: String,
        /// `SftpAuthenticationMethods`
        methods: Methods,
    },
}

impl Provider {
    /// AWS's names of those that are served.
    pub const NAMES: [&str; 3] = ["SERVICE_MANAGED", "API_GATEWAY", "AWS_LAMBDA"];

    /// AWS's name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::ServiceManaged => "SERVICE_MANAGED",
            Self::ApiGateway { .. } => "API_GATEWAY",
            Self::Lambda { .. } => "AWS_LAMBDA",
        }
    }

    /// Whether this service knows the users.
    pub fn is_service_managed(&self) -> bool {
        *self == Self::ServiceManaged
    }

    /// What users must prove: users of this service have public keys only.
    pub fn methods(&self) -> Methods {
        match self {
            Self::ServiceManaged => Methods::PublicKey,
            Self::ApiGateway { methods, .. } | Self::Lambda { methods, .. } => *methods,
        }
    }

    pub(super) fn invocation_role(&self) -> Option<&str> {
        match self {
            Self::ApiGateway { invocation_role, .. } => invocation_role.as_deref(),
            _ => None,
        }
    }

    /// Checks what a caller wants to store.
    pub(super) fn check(&self, scope: &Scope) -> Result<(), TransferError> {
        match self {
            Self::ServiceManaged => Ok(()),
            Self::ApiGateway { url, .. } if is_url(url) => Ok(()),
            Self::ApiGateway { .. } => Err(TransferError::invalid(
                "Url must be one of HTTPS without user information, query and fragment",
            )),
            Self::Lambda { function, .. } => {
                let arn = Arn::parse(function).filter(|arn| arn.is_in(scope));
                match arn.is_some_and(|arn| arn.of("lambda", "function:").is_some()) {
                    true => Ok(()),
                    false => Err(TransferError::invalid(
                        "Function must be the ARN of a function of the server's account and Region",
                    )),
                }
            }
        }
    }

    /// What to ask about a user; `None` if this service knows it. `user` is a valid name.
    pub(super) fn question(
        &self,
        server: &str,
        user: &str,
        password: Option<&Secret>,
        source_ip: IpAddr,
    ) -> Option<Question> {
        let target = match self {
            Self::ServiceManaged => return None,
            Self::ApiGateway { url, .. } => {
                let base = url.trim_end_matches('/');
                let (user, address) = (escaped(user), escaped(&source_ip.to_string()));
                Target::Https {
                    url: format!(
                        "{base}/servers/{server}/users/{user}/config?protocol=SFTP&sourceIp={address}"
                    ),
                    password: password.map(|password| Secret::new(password.expose().to_vec())),
                }
            }
            Self::Lambda { function, .. } => {
                let text = |secret: &Secret| String::from_utf8_lossy(secret.expose()).into_owned();
                let event = json!({
                    "username": user,
                    "password": password.map(text).unwrap_or_default(),
                    "protocol": "SFTP",
                    "serverId": server,
                    "sourceIp": source_ip.to_string(),
                });
                Target::Function {
                    arn: function.clone(),
                    event: Secret::new(event.to_string().into_bytes()),
                }
            }
        };
        Some(Question { target, asked: Asked::new(server, user, password) })
    }
}

/// What to ask a provider outside.
pub struct Question {
    /// Where, and what.
    pub target: Target,
    asked: Asked,
}

/// What an answer is about: it says nothing about another user, and not that another password is right.
#[derive(Clone, PartialEq, Eq)]
struct Asked {
    server: String,
    user: String,
    /// Digest of the password.
    password: Option<[u8; 32]>,
}

impl fmt::Debug for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Asked").field("user", &self.user).finish_non_exhaustive()
    }
}

impl Asked {
    fn new(server: &str, user: &str, password: Option<&Secret>) -> Self {
        let password = password.map(|password| digests::sha256(password.expose()));
        Self { server: server.to_owned(), user: user.to_owned(), password }
    }
}

impl Question {
    /// Reads the answer. `None` if the provider does not know the user, or refuses it: there is no role.
    ///
    /// # Errors
    /// [`AnswerError`]; then nobody is let in.
    pub fn answer(&self, body: &[u8]) -> Result<Option<Answer>, AnswerError> {
        Answer::parse(self.asked.clone(), body)
    }
}

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

/// Why an answer cannot be used. For the operator, never for the peer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AnswerError {
    /// It is longer than any answer may be.
    #[error("the answer of the identity provider is longer than {MAX_PROVIDER_ANSWER} bytes")]
    TooLong,
    /// It is not what AWS documents.
    #[error("the answer of the identity provider is not valid: {0}")]
    Invalid(String),
}

/// What a provider says about a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    asked: Asked,
    pub(super) role: Arn,
    pub(super) home: Home,
    pub(super) policy: Option<String>,
    pub(super) posix: Option<Posix>,
    pub(super) keys: Vec<String>,
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

impl Answer {
    /// Whether it is the answer about this user with this password.
    pub(super) fn is_for(&self, server: &str, user: &str, password: Option<&Secret>) -> bool {
        self.asked == Asked::new(server, user, password)
    }

    fn parse(asked: Asked, body: &[u8]) -> Result<Option<Self>, AnswerError> {
        let invalid = |text: &dyn ToString| AnswerError::Invalid(text.to_string());
        if body.len() > MAX_PROVIDER_ANSWER {
            return Err(AnswerError::TooLong);
        }
        let Ok(given) = serde_json::from_slice::<Given>(body) else {
            // An error's position could quote nothing, but its text could.
            return Err(AnswerError::Invalid("it is not the JSON that AWS documents".into()));
        };
        let Some(role) = given.role.filter(|role| !role.is_empty()) else { return Ok(None) };
        let arn = Arn::principal(&role).filter(|arn| arn.of("iam", "role/").is_some());
        let role =
            arn.ok_or_else(|| AnswerError::Invalid("Role is not the ARN of a role".into()))?;
        let mappings = match given.home_directory_type.as_deref() {
            None | Some("PATH") => None,
            Some("LOGICAL") => Some(mappings(given.home_directory_details)?),
            Some(_) => return Err(AnswerError::Invalid("HomeDirectoryType".into())),
        };
        let home = Home { directory: given.home_directory, mappings };
        home.check().map_err(|error| invalid(&error))?;
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
        Ok(Some(Self { asked, role, home, policy, posix, keys }))
    }
}

/// `HomeDirectoryDetails`: a list, as JSON in a string or plain.
fn mappings(details: Option<Value>) -> Result<Vec<Mapping>, AnswerError> {
    let invalid = || AnswerError::Invalid("HomeDirectoryDetails is not a list of mappings".into());
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

/// Whether this is the beginning of a URL of HTTPS, to which a path and a query can be added.
fn is_url(url: &str) -> bool {
    let Some(rest) = url.strip_prefix("https://") else { return false };
    let host = rest.split('/').next().unwrap_or_default();
    !host.is_empty()
        && !host.starts_with(':')
        && rest.bytes().all(|byte| byte.is_ascii_graphic() && !b"@?#\\<>\"".contains(&byte))
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
    use super::*;

    const ROLE: &str = "arn:aws:iam::123456789012:role/transfer";

    fn parsed(value: &Value) -> Result<Option<Answer>, AnswerError> {
        Answer::parse(Asked::new("s-0", "alice", None), value.to_string().as_bytes())
    }

    #[test]
    fn questions_have_aws_form() {
        let gateway = |url: &str| Provider::ApiGateway {
            url: url.into(),
            invocation_role: None,
            methods: Methods::Either,
        };
        let address: IpAddr = "2001:db8::1".parse().unwrap();
        let secret = Secret::new(b"secret".to_vec());
        let asked = gateway("https://idp.example/prod/")
            .question("s-0", "a@b.example", Some(&secret), address)
            .unwrap();
        let Target::Https { url, password } = asked.target else { panic!("a URL") };
        let expected = "https://idp.example/prod/servers/s-0/users/a%40b.example/config?protocol=SFTP&sourceIp=2001%3Adb8%3A%3A1";
        assert_eq!((url.as_str(), password.unwrap().expose()), (expected, &b"secret"[..]));
        let function = "arn:aws:lambda:eu-west-1:123456789012:function:idp";
        let lambda = Provider::Lambda { function: function.into(), methods: Methods::Either };
        let asked = lambda.question("s-0", "alice", None, address).unwrap();
        let Target::Function { arn, event } = asked.target else { panic!("a function") };
        let event: Value = serde_json::from_slice(event.expose()).unwrap();
        let expected = json!({
            "username": "alice", "password": "", "protocol": "SFTP", "serverId": "s-0", "sourceIp": "2001:db8::1",
        });
        assert_eq!((arn.as_str(), event), (function, expected));
        assert!(Provider::ServiceManaged.question("s-0", "alice", None, address).is_none());
        let scope = Scope { account: "123456789012".into(), region: "eu-west-1".into() };
        for wrong in [
            "",
            "http://a.example",
            "https://",
            "https:///x",
            "https://u@a.example",
            "https://a.example?x",
            "https://a.example/#",
            "https://a b",
        ] {
            assert!(gateway(wrong).check(&scope).is_err(), "{wrong}");
        }
        gateway("https://a.example:8443/x").check(&scope).unwrap();
        lambda.check(&scope).unwrap();
        let elsewhere = Scope { account: "210987654321".into(), ..scope };
        assert!(lambda.check(&elsewhere).is_err());
    }

    #[test]
    fn answers_are_read_as_aws_documents_them() {
        let answer = parsed(&json!({
            "Role": ROLE, "HomeDirectoryType": "LOGICAL",
            "HomeDirectoryDetails": "[{\"Entry\":\"/\",\"Target\":\"/files/${transfer:UserName}\"}]",
            "PublicKeys": ["ssh-ed25519 AAAA"], "Policy": "", "Unknown": 1,
            "PosixProfile": { "Uid": 1000, "Gid": 1000 },
        }));
        let answer = answer.unwrap().unwrap();
        assert_eq!(answer.role.to_string(), ROLE);
        assert!(answer.home.is_logical() && answer.policy.is_none());
        assert_eq!(answer.keys.len(), 1);
        let answer = parsed(&json!({ "Role": ROLE, "HomeDirectory": "/files/home" })).unwrap();
        assert!(!answer.unwrap().home.is_logical());
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
        let long =
            Answer::parse(Asked::new("s-0", "alice", None), &vec![b' '; MAX_PROVIDER_ANSWER + 1]);
        assert_eq!(long, Err(AnswerError::TooLong));
    }
}
