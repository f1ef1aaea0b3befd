//! The secret of a connector: the user at the remote server, with a private key, a password or both.
//!
//! Source: Transfer Family User Guide, "Store authentication credentials for SFTP connectors in Secrets Manager". Errors name
//! the mistake, and never repeat a value.

use outlast_crypto::Secret;
use serde::Deserialize;

use super::job::{Failure, FailureCode};
use crate::limits;

/// Contents of the secret. There is no `Debug`.
pub struct Credentials {
    /// `Username`
    pub user: String,
    /// `PrivateKey`
    pub private_key: Option<Secret>,
    /// `Password`
    pub password: Option<Secret>,
}

/// The secret's JSON, with AWS's names. Other members are ignored.
#[derive(Deserialize)]
struct Stored {
    #[serde(rename = "Username")]
    user: Option<String>,
    #[serde(rename = "PrivateKey")]
    private_key: Option<String>,
    #[serde(rename = "Password")]
    password: Option<String>,
}

impl Credentials {
    /// Reads the value of a secret.
    pub fn read(value: &Secret) -> Result<Self, Failure> {
        let wrong = |why: &str| {
            Failure::new(
                FailureCode::Connection,
                format!("The secret of the connector is not formatted correctly: {why}"),
            )
        };
        // What the parser says may repeat a value.
        let stored: Stored = serde_json::from_slice(value.expose()).map_err(|_| {
            wrong(
                "it must be a JSON object with the texts Username and PrivateKey, Password or both",
            )
        })?;
        let secret = |text: Option<String>| {
            text.map(|text| Secret::new(text.into_bytes())).filter(|secret| !secret.is_empty())
        };
        let (private_key, password) = (secret(stored.private_key), secret(stored.password));
        let user = stored.user.filter(|user| !user.is_empty());
        let user = user.ok_or_else(|| wrong("it has no Username"))?;
        if user.chars().count() > limits::MAX_CONNECTOR_USER || user.chars().any(char::is_control) {
            return Err(wrong("Username is too long or has control characters"));
        }
        if private_key.is_none() && password.is_none() {
            return Err(wrong("it has neither a PrivateKey nor a Password"));
        }
        let is_long = |secret: &Option<Secret>, most| {
            secret.as_ref().is_some_and(|secret| secret.len() > most)
        };
        if is_long(&private_key, limits::MAX_CONNECTOR_KEY) {
            return Err(wrong("PrivateKey is too long"));
        }
        if is_long(&password, limits::MAX_CONNECTOR_PASSWORD) {
            return Err(wrong("Password is too long"));
        }
        Ok(Self { user, private_key, password })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Result<Credentials, Failure> {
        Credentials::read(&Secret::new(json.as_bytes().to_vec()))
    }

    #[test]
    fn a_user_has_a_key_or_a_password() {
        let both = read(r#"{"Username":"u","PrivateKey":"k","Password":"p","more":1}"#).unwrap();
        assert_eq!(both.user, "u");
        assert_eq!(both.private_key.unwrap().expose(), b"k");
        assert_eq!(both.password.unwrap().expose(), b"p");
        let one = read(r#"{"Username":"u","PrivateKey":"","Password":"p"}"#).unwrap();
        assert!(one.private_key.is_none() && one.password.is_some());
    }

    #[test]
    fn mistakes_are_named_without_the_value() {
        let long = "q".repeat(8193);
        for json in [
            "tell-tale".to_owned(),
            r#"["tell-tale"]"#.to_owned(),
            r#"{"Username":"u","Password":"tell-tale"#.to_owned(),
            r#"{"Username":"u","Password":["tell-tale"]}"#.to_owned(),
            r#"{"Username":{"tell-tale":1},"Password":"p"}"#.to_owned(),
            r#"{"Password":"tell-tale"}"#.to_owned(),
            r#"{"Username":"","Password":"tell-tale"}"#.to_owned(),
            r#"{"Username":"tell-tale\n","Password":"p"}"#.to_owned(),
            r#"{"Username":"tell-tale"}"#.to_owned(),
            r#"{"username":"u","password":"tell-tale"}"#.to_owned(),
            format!(r#"{{"Username":"u","PrivateKey":"{long}"}}"#),
            format!(r#"{{"Username":"u","Password":"{}"}}"#, &long[..1025]),
            format!(r#"{{"Username":"{}","Password":"p"}}"#, &long[..101]),
        ] {
            let Err(failure) = read(&json) else { panic!("{json}") };
            assert_eq!(failure.code, FailureCode::Connection, "{json}");
            assert!(failure.message.contains("not formatted correctly"), "{failure}");
            assert!(
                !failure.message.contains("tell-tale") && !failure.message.contains("qq"),
                "{failure}"
            );
        }
    }
}
