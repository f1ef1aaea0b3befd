//! Address of the database and how to connect to it, from a URL. Errors never repeat a part of the URL.

use std::path::Path;

use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};

use super::patience::{ANSWER, CONNECT, unavailable};
use super::tls::Tls;
use crate::StoreError;

/// Settings of a connection.
pub(super) struct Settings {
    /// Settings for tokio-postgres, including the password.
    pub(super) config: Config,
    /// TLS settings; `None` on the loopback interface and unix sockets, where nobody can listen in.
    pub(super) tls: Option<Tls>,
    /// Schema of the tables: a name that needs no quotes.
    pub(super) schema: String,
}

impl Settings {
    /// Reads `postgres://USER:PASSWORD@HOST:PORT/DATABASE?sslmode=require&sslrootcert=FILE`.
    pub(super) fn parse(url: &str, schema: &str) -> Result<Self, StoreError> {
        if !is_plain_name(schema) {
            return Err(unavailable(
                "the schema's name may contain only lower-case letters, digits and _",
            ));
        }
        if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
            return Err(unavailable("a database URL begins with postgres://"));
        }
        let (mut mode, mut roots, mut kept) = ("prefer", None, Vec::new());
        let (base, parameters) = url.split_once('?').unwrap_or((url, ""));
        for parameter in parameters.split('&').filter(|parameter| !parameter.is_empty()) {
            match parameter.split_once('=') {
                Some(("sslmode", value)) => mode = value,
                Some(("sslrootcert", value)) => roots = Some(decode(value).ok_or_else(malformed)?),
                Some((name, _)) if PASSED_ON.contains(&name) => kept.push(parameter),
                _ => return Err(malformed()),
            }
        }
        let mut config: Config =
            format!("{base}?{}", kept.join("&")).parse().map_err(|_| malformed())?;
        if config.get_hosts().is_empty() {
            return Err(unavailable("the database URL names no host"));
        }
        let tls = needs_tls(mode, &config)?.then(|| roots_of(roots.as_deref())).transpose()?;
        config
            .ssl_mode(if tls.is_some() { SslMode::Require } else { SslMode::Disable })
            .connect_timeout(CONNECT)
            .tcp_user_timeout(ANSWER)
            // Of several hosts, picks the one that accepts writes.
            .target_session_attrs(TargetSessionAttrs::ReadWrite);
        if config.get_application_name().is_none() {
            config.application_name("outlast");
        }
        Ok(Self { config, tls, schema: schema.to_owned() })
    }
}

/// URL parameters that are passed on to tokio-postgres. `options` is not among them because it could contradict the
/// store's own settings.
const PASSED_ON: &[&str] = &["user", "password", "host", "port", "dbname", "application_name"];

fn malformed() -> StoreError {
    unavailable(&format!(
        "the database URL cannot be parsed; it may have the parameters sslmode, sslrootcert, {}, and special \
         characters of a password are written as %XX",
        PASSED_ON.join(", ")
    ))
}

fn is_plain_name(name: &str) -> bool {
    (1..=63).contains(&name.len())
        && !name.starts_with(|first: char| first.is_ascii_digit())
        && name.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_'))
}

fn needs_tls(mode: &str, config: &Config) -> Result<bool, StoreError> {
    let is_unix = |host: &Host| matches!(host, Host::Unix(_));
    let is_local = |host: &Host| match host {
        Host::Unix(_) => true,
        Host::Tcp(name) => {
            name == "localhost"
                || name.parse().is_ok_and(|address: std::net::IpAddr| address.is_loopback())
        }
    };
    let all_local = config.get_hosts().iter().all(is_local);
    match mode {
        "disable" if all_local => Ok(false),
        "disable" => Err(unavailable(
            "sslmode=disable is for the loopback interface and unix sockets; elsewhere use sslmode=require",
        )),
        "allow" | "prefer" => Ok(!all_local),
        // Unix sockets have no TLS.
        "require" | "verify-ca" | "verify-full" => Ok(!config.get_hosts().iter().all(is_unix)),
        _ => Err(unavailable("sslmode is not one of disable, prefer, require, verify-full")),
    }
}

fn roots_of(file: Option<&str>) -> Result<Tls, StoreError> {
    let file = file.ok_or_else(|| {
        unavailable(
            "the connection to the database needs TLS; name the file with its root certificate in the URL: \
             sslrootcert=FILE",
        )
    })?;
    Tls::with_roots(Path::new(file)).map_err(|error| unavailable(&format!("sslrootcert: {error}")))
}

/// Decodes %XX.
fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('%') {
        bytes.extend_from_slice(before.as_bytes());
        bytes.push(u8::from_str_radix(after.get(..2)?, 16).ok()?);
        rest = &after[2..];
    }
    bytes.extend_from_slice(rest.as_bytes());
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(url: &str) -> String {
        match Settings::parse(url, "outlast") {
            Ok(settings) => format!("tls {}", settings.tls.is_some()),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn tls_is_asked_for_where_somebody_could_listen() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("root 1.pem");
        let roots = format!("sslrootcert={}", file.display()).replace(' ', "%20");
        std::fs::write(&file, include_str!("../../tests/data/root.pem")).unwrap();
        let with = |base: &str, mode: &str| outcome(&format!("{base}?{roots}&{mode}"));
        for local in
            ["postgres://u@localhost", "postgres://u@127.0.0.1/d", "postgres://u@[::1]:1/d"]
        {
            assert_eq!(with(local, "sslmode=disable"), "tls false");
            assert_eq!(with(local, "sslmode=prefer"), "tls false");
            assert_eq!(with(local, ""), "tls false");
            assert_eq!(with(local, "sslmode=require"), "tls true");
        }
        assert_eq!(with("postgres://u@%2Ftmp/d", "sslmode=require"), "tls false");
        assert_eq!(with("postgres://u@/d", "host=/tmp"), "tls false");
        let remote = "postgresql://u:p@db.example.com,127.0.0.1:5433/d";
        assert!(with(remote, "sslmode=disable").contains("sslmode=require"));
        for mode in
            ["", "sslmode=allow", "sslmode=prefer", "sslmode=require", "sslmode=verify-full"]
        {
            assert_eq!(with(remote, mode), "tls true");
        }
        assert!(outcome(remote).contains("sslrootcert=FILE"));
        assert!(outcome(&format!("{remote}?sslrootcert=/nowhere")).contains("/nowhere"));
    }

    #[test]
    fn errors_do_not_repeat_the_url() {
        for url in [
            "postgres://user:hunter2",
            "postgres://user:hun?hunter2=x@host/d",
            "postgres://user:x@host/d?hunter2=hunter2",
            "postgres://user:x@host:hunter2/d",
            "postgres://user:x@host/d?sslmode=hunter2",
            "postgres://user:x@host/d?password=%hunter2",
            "hunter2",
        ] {
            let error = outcome(url);
            assert!(!error.contains("hunter2") && !error.starts_with("tls"), "{url}: {error}");
        }
    }
}
