//! Rotation of a PostgreSQL user's password.
//!
//! The secret is the JSON that AWS's rotation functions use ("JSON structure of AWS Secrets Manager secrets"): `host`,
//! `port`, `username`, `password`, `dbname`, and for alternating users `masterarn`, the ARN of a secret of a user who may
//! change the others.
//!
//! - `single-user` changes the user's own password. Between that and the end of the rotation, programs that still have the
//!   old password cannot log in.
//! - `alternating-users` makes a second user, `NAME_clone`, a member of the first; each rotation changes the password of
//!   the one that is not in use, so that every program can log in at any time with what it has.

mod second_user;

use std::collections::BTreeSet;
use std::path::PathBuf;

use outlast_api::aws::secretsmanager::{
    DescribeSecret, DescribeSecretRequest, GetRandomPassword, GetRandomPasswordRequest,
    GetSecretValue, GetSecretValueRequest, PutSecretValue, PutSecretValueRequest,
    UpdateSecretVersionStage, UpdateSecretVersionStageRequest,
};
use outlast_api::client::ServiceError;
use outlast_domain::secrets::rotation::{Call, Step};
use outlast_domain::secrets::{CURRENT, PENDING, PREVIOUS};
use outlast_store::postgres::{Client as Connection, log_in};
use postgres_protocol::password::scram_sha_256;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::own::Client;

/// Which users a rotation changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Users {
    /// The user of the secret.
    SingleUser,
    /// Two users in turn.
    AlternatingUsers,
}

/// A built-in function.
pub(super) struct Database {
    pub(super) users: Users,
    /// `HOST:PORT` of the servers that secrets may name.
    pub(super) hosts: BTreeSet<String>,
    /// PEM file with the certificates to trust.
    pub(super) ca_bundle: Option<PathBuf>,
}

/// Characters that connection strings need to escape (AWS's functions exclude the same).
const EXCLUDED: &str = "/@\"'\\";
/// Suffix of the second user.
const CLONE: &str = "_clone";
/// Bytes of a name that PostgreSQL keeps (`NAMEDATALEN` less one).
const MAX_NAME: usize = 63;

/// A value of a secret. There is no `Debug`.
struct Login {
    fields: Map<String, Value>,
}

impl Login {
    fn parse(text: &str) -> Result<Self, String> {
        let value =
            serde_json::from_str(text).map_err(|_| "the secret's value is not JSON".to_owned())?;
        let Value::Object(fields) = value else {
            return Err("the secret's value is not a JSON object".into());
        };
        let login = Self { fields };
        for name in ["host", "username", "password"] {
            login.text(name)?;
        }
        Ok(login)
    }

    fn text(&self, name: &str) -> Result<&str, String> {
        let text = self.fields.get(name).and_then(Value::as_str);
        text.ok_or_else(|| format!("the secret's value has no text {name}"))
    }

    fn host(&self) -> Result<String, String> {
        let port = match self.fields.get("port") {
            None => 5432,
            Some(Value::Number(number)) => number.as_u64().unwrap_or(0),
            Some(Value::String(text)) => text.parse().unwrap_or(0),
            Some(_) => 0,
        };
        if !(1..=65535).contains(&port) {
            return Err("the secret's value has a port that is none".into());
        }
        Ok(format!("{}:{port}", self.text("host")?))
    }

    fn with(&self, name: &str, value: &str) -> Self {
        let mut fields = self.fields.clone();
        fields.insert(name.to_owned(), value.into());
        Self { fields }
    }

    fn to_text(&self) -> String {
        Value::Object(self.fields.clone()).to_string()
    }
}

/// Why a login failed.
enum Refused {
    /// The server does not take user and password.
    Password,
    /// Anything else.
    Other(String),
}

/// Carries out one step.
pub(super) async fn step(database: &Database, own: &Client, call: &Call) -> Result<(), String> {
    match call.step {
        Step::Create => create(database, own, call).await,
        Step::Set => set(database, own, call).await,
        Step::Test => {
            let login = value(own, call, Some(&call.version_id), None).await?;
            let login = login.ok_or("there is no version to test")?;
            match connect(database, &login).await {
                Ok(connection) => {
                    let asked = connection.query_one("SELECT current_user", &[]).await;
                    asked.map(|_| ()).map_err(|_| "the database does not answer".to_owned())
                }
                Err(Refused::Password) => Err("the database refuses the new password".into()),
                Err(Refused::Other(why)) => Err(why),
            }
        }
        Step::Finish => finish(own, call).await,
    }
}

/// Makes the new value, unless an earlier attempt has.
async fn create(database: &Database, own: &Client, call: &Call) -> Result<(), String> {
    if value(own, call, Some(&call.version_id), Some(PENDING)).await?.is_some() {
        return Ok(());
    }
    let current = value(own, call, None, Some(CURRENT)).await?;
    let current = current.ok_or("the secret has no current version")?;
    let request = GetRandomPasswordRequest {
        exclude_characters: Some(EXCLUDED.into()),
        ..GetRandomPasswordRequest::default()
    };
    let password = own.call::<GetRandomPassword>(request).await.map_err(told)?.random_password;
    let mut new = current.with("password", &password);
    if database.users == Users::AlternatingUsers {
        new = new.with("username", &other(current.text("username")?)?);
    }
    let put = PutSecretValueRequest {
        secret_id: call.secret_arn.clone(),
        client_request_token: Some(call.version_id.clone()),
        secret_string: Some(new.to_text()),
        version_stages: Some(vec![PENDING.into()]),
        rotation_token: Some(call.token.clone()),
        ..PutSecretValueRequest::default()
    };
    own.call::<PutSecretValue>(put).await.map_err(told)?;
    Ok(())
}

/// The user that takes turns with this one.
fn other(user: &str) -> Result<String, String> {
    let other = match user.strip_suffix(CLONE) {
        Some(first) => first.to_owned(),
        None => format!("{user}{CLONE}"),
    };
    if other.is_empty() || other.len() > MAX_NAME {
        return Err(format!(
            "the user's name is too long: {CLONE} is added to it, for {MAX_NAME} bytes together"
        ));
    }
    Ok(other)
}

/// Gives the database the new password.
async fn set(database: &Database, own: &Client, call: &Call) -> Result<(), String> {
    let pending = value(own, call, Some(&call.version_id), Some(PENDING)).await?;
    let pending = pending.ok_or("there is no pending version")?;
    match connect(database, &pending).await {
        // An earlier attempt has set it.
        Ok(_) => return Ok(()),
        Err(Refused::Password) => {}
        Err(Refused::Other(why)) => return Err(why),
    }
    let (user, password) = (pending.text("username")?, pending.text("password")?);
    let current = value(own, call, None, Some(CURRENT)).await?;
    let current = current.ok_or("the secret has no current version")?;
    if current.host()? != pending.host()? {
        return Err("the pending version names another database server than the current one".into());
    }
    let connection = match database.users {
        Users::SingleUser => {
            if current.text("username")? != user {
                return Err("the pending version has another user than the current one".into());
            }
            match connect(database, &current).await {
                Ok(connection) => connection,
                Err(Refused::Other(why)) => return Err(why),
                // A rotation that was given up may have left the previous password in force.
                Err(Refused::Password) => {
                    let previous = value(own, call, None, Some(PREVIOUS)).await?;
                    let previous = previous
                        .filter(|previous| previous.text("username").is_ok_and(|name| name == user))
                        .ok_or("the database refuses the current password, and there is no previous one")?;
                    connected(database, &previous, "current and previous passwords").await?
                }
            }
        }
        Users::AlternatingUsers => {
            let first = current.text("username")?;
            if other(first)? != user {
                return Err("the pending version does not have the other user".into());
            }
            // A caller who can log in as the current user owns it; no other caller may have the second user changed.
            connected(database, &current, "current password").await?;
            let master = current.text("masterarn")?;
            let request =
                GetSecretValueRequest { secret_id: master.to_owned(), ..Default::default() };
            let got = own.call::<GetSecretValue>(request).await.map_err(told)?;
            let master = Login::parse(got.secret_string.as_deref().unwrap_or_default())?;
            if master.host()? != current.host()? {
                return Err("the secret of masterarn names another database server".into());
            }
            let connection = connected(database, &master, "password of masterarn").await?;
            second_user::prepare(&connection, first, user).await?;
            connection
        }
    };
    // The server's log never sees the password, only what it would store of it.
    let verifier = scram_sha_256(password.as_bytes());
    run(&connection, "ALTER ROLE %I WITH PASSWORD %L", user, &verifier).await
}

/// Executes a statement whose names and texts the server itself quotes.
async fn run(connection: &Connection, form: &str, one: &str, two: &str) -> Result<(), String> {
    let statement = formed(connection, form, one, two).await?;
    connection.batch_execute(&statement).await.map_err(|error| {
        // Its text may quote the statement.
        let code = error.code().map(|code| code.code().to_owned());
        format!("the database refuses to change the user (SQLSTATE {})", code.unwrap_or_default())
    })
}

/// A statement made by the server's `format`, which quotes `one` and `two` as `%1$I` or `%2$L` says.
async fn formed(
    connection: &Connection,
    form: &str,
    one: &str,
    two: &str,
) -> Result<String, String> {
    let failed = |error: &dyn std::fmt::Display| format!("the database refuses: {error}");
    let query = "SELECT pg_catalog.format($1::text, $2::text, $3::text)";
    let row = connection.query_one(query, &[&form, &one, &two]).await;
    row.map_err(|error| failed(&error))?.try_get(0).map_err(|error| failed(&error))
}

/// Moves AWSCURRENT to the new version.
async fn finish(own: &Client, call: &Call) -> Result<(), String> {
    let request = DescribeSecretRequest { secret_id: call.secret_arn.clone() };
    let described = own.call::<DescribeSecret>(request).await.map_err(told)?;
    let stages = described.version_ids_to_stages.unwrap_or_default();
    let current = stages.iter().find(|(_, labels)| labels.iter().any(|label| label == CURRENT));
    let current = current.map(|(id, _)| id.clone());
    if current.as_ref() == Some(&call.version_id) {
        return Ok(());
    }
    let request = UpdateSecretVersionStageRequest {
        secret_id: call.secret_arn.clone(),
        version_stage: CURRENT.into(),
        remove_from_version_id: current,
        move_to_version_id: Some(call.version_id.clone()),
    };
    own.call::<UpdateSecretVersionStage>(request).await.map_err(told)?;
    Ok(())
}

/// The value of a version; `None` if there is none.
async fn value(
    own: &Client,
    call: &Call,
    version_id: Option<&str>,
    stage: Option<&str>,
) -> Result<Option<Login>, String> {
    let request = GetSecretValueRequest {
        secret_id: call.secret_arn.clone(),
        version_id: version_id.map(str::to_owned),
        version_stage: stage.map(str::to_owned),
    };
    match own.call::<GetSecretValue>(request).await {
        Ok(got) => Login::parse(got.secret_string.as_deref().unwrap_or_default()).map(Some),
        Err(error) if error.code == "ResourceNotFoundException" => Ok(None),
        Err(error) if error.code == "InvalidRequestException" && stage.is_some() => Ok(None),
        Err(error) => Err(told(error)),
    }
}

async fn connected(database: &Database, login: &Login, what: &str) -> Result<Connection, String> {
    connect(database, login).await.map_err(|refused| match refused {
        Refused::Password => format!("the database refuses the {what}"),
        Refused::Other(why) => why,
    })
}

async fn connect(database: &Database, login: &Login) -> Result<Connection, Refused> {
    let other = Refused::Other;
    let host = login.host().map_err(other)?;
    if !database.hosts.contains(&host) {
        return Err(other(format!("the server {host} is not among the hosts of the function")));
    }
    let name = login.fields.get("dbname").and_then(Value::as_str).unwrap_or("postgres");
    if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte)) {
        return Err(other("dbname may have letters, digits, _ and - only".into()));
    }
    let roots = database.ca_bundle.as_deref();
    let (user, password) =
        (login.text("username").map_err(other)?, login.text("password").map_err(other)?);
    log_in(&format!("postgres://{host}/{name}"), roots, user, password)
        .await
        .map_err(|error| if error.is_password { Refused::Password } else { other(error.what) })
}

fn told(error: ServiceError) -> String {
    format!("{}: {}", error.code, error.message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_alternate() {
        assert_eq!(other("app").unwrap(), "app_clone");
        assert_eq!(other("app_clone").unwrap(), "app");
        assert!(other(&"x".repeat(58)).is_err());
        assert!(other(CLONE).is_err());
    }

    #[test]
    fn logins_have_host_user_and_password() {
        let login = |text: &str| Login::parse(text).map(|login| login.host());
        let full = r#"{"host":"db","username":"u","password":"p"}"#;
        assert_eq!(login(full).unwrap(), Ok("db:5432".into()));
        assert_eq!(login(&full.replace('}', r#","port":6432}"#)).unwrap(), Ok("db:6432".into()));
        assert_eq!(login(&full.replace('}', r#","port":"6432"}"#)).unwrap(), Ok("db:6432".into()));
        assert!(login(&full.replace('}', r#","port":0}"#)).unwrap().is_err());
        for text in ["", "[]", "secret", r#"{"host":"db","username":"u"}"#] {
            assert!(login(text).is_err(), "{text}");
        }
    }
}
