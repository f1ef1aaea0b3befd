//! A connection as any user of any database, for parts of the program that manage users.

use std::path::Path;

use tokio::time::timeout;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, NoTls};

use super::connection::drive;
use super::patience::CONNECT;
use super::settings::Settings;

/// Why a login failed.
#[derive(Debug)]
pub struct LoginError {
    /// Whether the server does not accept the user and password.
    pub is_password: bool,
    /// Text for people, without user and password.
    pub what: String,
}

impl LoginError {
    fn other(what: impl Into<String>) -> Self {
        Self { is_password: false, what: what.into() }
    }
}

/// Logs in at `postgres://HOST:PORT/DATABASE`, over TLS with hybrid groups first, except on the loopback interface.
/// `roots` is a PEM file with the certificates to trust. Must be called inside a tokio runtime.
///
/// # Errors
/// The address is not valid, the server cannot be reached, or it refuses the login.
pub async fn log_in(
    url: &str,
    roots: Option<&Path>,
    user: &str,
    password: &str,
) -> Result<Client, LoginError> {
    let url = match roots {
        Some(path) => format!("{url}?sslrootcert={}", encoded(&path.to_string_lossy())),
        None => url.to_owned(),
    };
    let mut settings =
        Settings::parse(&url, "public").map_err(|error| LoginError::other(error.to_string()))?;
    settings.config.user(user).password(password);
    let connecting = async {
        Ok(match &settings.tls {
            Some(tls) => {
                let (client, connection) = settings.config.connect(tls.clone()).await?;
                drive(connection);
                client
            }
            None => {
                let (client, connection) = settings.config.connect(NoTls).await?;
                drive(connection);
                client
            }
        })
    };
    let connected: Result<Client, tokio_postgres::Error> = timeout(CONNECT, connecting)
        .await
        .map_err(|_| LoginError::other("the database does not answer"))?;
    connected.map_err(|error| {
        let refused = [SqlState::INVALID_PASSWORD, SqlState::INVALID_AUTHORIZATION_SPECIFICATION];
        let is_password = error.code().is_some_and(|code| refused.contains(code));
        let what = match error.as_db_error() {
            Some(error) => {
                format!("the database refuses the login (SQLSTATE {})", error.code().code())
            }
            None => "the database cannot be reached, or its certificate is not trusted".to_owned(),
        };
        LoginError { is_password, what }
    })
}

/// Encodes what separates the parts of a URL.
fn encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-".contains(&byte);
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if plain(byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}
