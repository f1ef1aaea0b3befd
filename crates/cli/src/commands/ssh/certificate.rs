//! What `ssh sign` and `ssh login` say of a certificate, in ssh-keygen's words, and the request for it.

use std::collections::BTreeMap;
use std::path::Path;

use outlast_api::ops::outlast::sign_ssh_certificate::{Input, Output, SignSshCertificate};
use outlast_api::wire::Timestamp;
use outlast_pki::time::rfc3339;
use outlast_ssh::{Certificate, PublicKey};
use serde_json::{Value, json};

use super::validity::{self, Validity};
use crate::endpoint::Endpoint;
use crate::failure::Failure;
use crate::files;

/// Longest file with a key or certificate, in bytes.
const MAX_FILE: usize = 64 * 1024;

/// What ssh-keygen gives to users' certificates.
const DEFAULT_EXTENSIONS: [&str; 5] = [
    "permit-X11-forwarding",
    "permit-agent-forwarding",
    "permit-port-forwarding",
    "permit-pty",
    "permit-user-rc",
];

/// What a certificate is to say.
#[derive(clap::Args)]
pub(super) struct Said {
    /// The authority: KMS key with the tag outlast:ssh-ca; alias/NAME, key id or ARN.
    #[arg(long, env = "OUTLAST_SSH_CA_KEY")]
    key: String,
    /// Names that the certificate is for, separated by commas: users or hosts [default: for a user, the caller's own].
    #[arg(short = 'n', long, value_name = "NAMES", value_delimiter = ',')]
    principals: Vec<String>,
    /// Key id, which servers log [default: the caller's ARN].
    #[arg(short = 'I', long)]
    identity: Option<String>,
    /// When it is valid: +8h, or FROM:TO with each a time such as 20261201Z, or relative to now
    /// [default: 16 hours for users, 90 days for hosts].
    #[arg(short = 'V', long, value_name = "[FROM:]TO", value_parser = validity::parse, allow_hyphen_values = true)]
    validity: Option<Validity>,
    /// Option of a user's certificate, as of ssh-keygen: clear, no-pty, permit-pty, force-command=..., source-address=...,
    /// extension:NAME=... and others; may be repeated.
    #[arg(short = 'O', long, value_name = "OPTION")]
    option: Vec<String>,
}

/// Critical options and extensions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Options {
    critical: BTreeMap<String, String>,
    extensions: BTreeMap<String, String>,
}

impl Options {
    /// Reads options in their order, as ssh-keygen does: each changes what was said before.
    pub(super) fn parse(said: &[String], is_host: bool) -> Result<Self, Failure> {
        let mut found = Self::default();
        if !is_host {
            let flag = |name: &str| (name.to_owned(), String::new());
            found.extensions = DEFAULT_EXTENSIONS.into_iter().map(flag).collect();
        }
        for option in said {
            let refused = |text: String| Failure::new(text).code(crate::failure::USAGE);
            found.add(option).map_err(|wrong| match wrong {
                Wrong::Unknown => refused(format!("{option} is not an option of certificates"))
                    .hint("see CERTIFICATES in the manual of ssh-keygen"),
                // The first one would be lost, and it may be the narrower one.
                Wrong::Again(name) => refused(format!("{name} is given twice"))
                    .hint("give it once; source-address takes networks separated by commas"),
            })?;
        }
        Ok(found)
    }

    fn add(&mut self, option: &str) -> Result<(), Wrong> {
        let known = |name: &str| {
            let full = format!("permit-{name}");
            DEFAULT_EXTENSIONS.into_iter().find(|known| known.eq_ignore_ascii_case(&full))
        };
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        if option == "clear" {
            self.extensions.clear();
        } else if let Some(name) = option.strip_prefix("permit-").and_then(known) {
            self.extensions.insert(name.to_owned(), String::new());
        } else if let Some(name) = option.strip_prefix("no-").and_then(known) {
            self.extensions.remove(name);
        } else if option == "no-touch-required" {
            self.extensions.insert(option.to_owned(), String::new());
        } else if option == "verify-required" {
            self.critical.insert(option.to_owned(), String::new());
        } else if matches!(name, "force-command" | "source-address") && !value.is_empty() {
            self.restrict(name, value)?;
        } else if let Some(name) = name.strip_prefix("critical:").filter(|name| !name.is_empty()) {
            self.restrict(name, value)?;
        } else if let Some(name) = name.strip_prefix("extension:").filter(|name| !name.is_empty()) {
            self.extensions.insert(name.to_owned(), value.to_owned());
        } else {
            return Err(Wrong::Unknown);
        }
        Ok(())
    }

    /// A critical option, which ssh-keygen takes once, too.
    fn restrict(&mut self, name: &str, value: &str) -> Result<(), Wrong> {
        match self.critical.insert(name.to_owned(), value.to_owned()) {
            None => Ok(()),
            Some(_) => Err(Wrong::Again(name.to_owned())),
        }
    }
}

/// Why an option is refused.
enum Wrong {
    Unknown,
    /// The option with this name was given before.
    Again(String),
}

impl Said {
    /// The request, but for the key to be certified.
    pub(super) fn request(
        &self,
        is_host: bool,
        serial: Option<u64>,
        now: i64,
    ) -> Result<Input, Failure> {
        let options = Options::parse(&self.option, is_host)?;
        let some =
            |map: BTreeMap<String, String>| (!map.is_empty()).then(|| map.into_iter().collect());
        let at = |at: i64| Timestamp::from_seconds(at);
        let after = self.validity.and_then(|said| said.after);
        Ok(Input {
            key_id: self.key.clone(),
            public_key: String::new(),
            certificate_type: if is_host { "HOST" } else { "USER" }.to_owned(),
            principals: (!self.principals.is_empty()).then(|| self.principals.clone()),
            identity: self.identity.clone(),
            serial_number: serial.and_then(|serial| i64::try_from(serial).ok()),
            valid_after: after.map(|time| at(time.at(now))),
            valid_before: self.validity.map(|said| at(said.before.at(now))),
            critical_options: some(options.critical),
            extensions: some(options.extensions),
        })
    }
}

/// A certificate as the service gave it.
pub(super) struct Issued {
    pub(super) certificate: Certificate,
    pub(super) line: String,
    answer: Output,
}

impl Issued {
    /// Asks for a certificate, and compares it with the key.
    pub(super) async fn get(
        endpoint: &mut Endpoint,
        request: &Input,
        key: &PublicKey,
    ) -> Result<Self, Failure> {
        let request = Input { public_key: key.to_openssh_line(), ..request.clone() };
        let answer = endpoint.call::<SignSshCertificate>(&request).await?;
        let line = answer.certificate.clone();
        let certificate = Certificate::from_openssh_line(&line)
            .map_err(|error| Failure::new(format!("the service's certificate: {error}")))?;
        if certificate.key() != key {
            return Err(Failure::new("the service's certificate is for another key"));
        }
        Ok(Self { certificate, line, answer })
    }

    /// The certificate for programs.
    pub(super) fn value(&self) -> Value {
        let fields = self.certificate.fields();
        json!({
            // In JSON, numbers beyond 2^53 lose digits.
            "serial": fields.serial.to_string(),
            "identity": fields.key_id,
            "principals": fields.principals,
            "validAfter": rfc3339(seconds(fields.valid_after_s)),
            "validBefore": rfc3339(seconds(fields.valid_before_s)),
            "publicKeyFingerprint": self.answer.public_key_fingerprint,
            "authorityFingerprint": self.answer.authority_fingerprint,
            "keyId": self.answer.key_id,
        })
    }

    /// The same for people, without the file.
    pub(super) fn text(&self) -> String {
        let fields = self.certificate.fields();
        format!(
            "serial {} for {}, key id {:?}, until {}",
            fields.serial,
            fields.principals.join(", "),
            fields.key_id,
            rfc3339(seconds(fields.valid_before_s))
        )
    }
}

/// Seconds as a signed number, in which times are printed; later ones than there are stand for the end of time.
fn seconds(at: u64) -> i64 {
    i64::try_from(at).unwrap_or(i64::MAX)
}

/// Reads a public key, or the key of a certificate.
pub(super) fn read_key(path: &Path) -> Result<PublicKey, Failure> {
    match read_line(path)? {
        Line::Key(key) => Ok(key),
        Line::Certificate(certificate) => Ok(certificate.key().clone()),
    }
}

/// What a file with one line contains.
pub(super) enum Line {
    Key(PublicKey),
    Certificate(Box<Certificate>),
}

/// Reads a file with a public key or a certificate, and nothing else.
pub(super) fn read_line(path: &Path) -> Result<Line, Failure> {
    let mut lines = read_lines(path)?;
    match (lines.pop(), lines.is_empty()) {
        (Some(line), true) => Ok(line),
        _ => Err(Failure::file(path, &"it has more than one key")
            .hint("put each key into a file of its own")),
    }
}

/// Reads a file with public keys and certificates, one a line; there is at least one.
pub(super) fn read_lines(path: &Path) -> Result<Vec<Line>, Failure> {
    let bytes = files::read(path, MAX_FILE)?;
    let text = String::from_utf8_lossy(&bytes);
    let lines =
        text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let one = |line: &str| {
        if let Ok(certificate) = Certificate::from_openssh_line(line) {
            return Ok(Line::Certificate(Box::new(certificate)));
        }
        PublicKey::from_openssh_line(line).map(Line::Key).map_err(|error| {
            Failure::file(path, &error).hint("give a public key, such as ~/.ssh/id_ed25519.pub")
        })
    };
    let lines: Vec<_> = lines.map(one).collect::<Result<_, _>>()?;
    // The reason why an empty file is refused is that of a line without a key.
    if lines.is_empty() { one("").map(|line| vec![line]) } else { Ok(lines) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(said: &[&str]) -> Options {
        let said: Vec<_> = said.iter().map(|option| (*option).to_owned()).collect();
        Options::parse(&said, false).unwrap()
    }

    #[test]
    fn options_are_those_of_ssh_keygen() {
        let names = |found: &Options| found.extensions.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&options(&[])), DEFAULT_EXTENSIONS);
        assert_eq!(names(&options(&["clear"])), Vec::<String>::new());
        assert_eq!(names(&options(&["clear", "permit-pty"])), ["permit-pty"]);
        assert_eq!(names(&options(&["clear", "permit-x11-forwarding"])), ["permit-X11-forwarding"]);
        assert!(!names(&options(&["no-pty"])).contains(&"permit-pty".to_owned()));
        let found = options(&["clear", "extension:login@example.com=bob", "no-touch-required"]);
        assert_eq!(found.extensions["login@example.com"], "bob");
        assert_eq!(found.extensions["no-touch-required"], "");
        let found =
            options(&["force-command=a=b", "source-address=192.0.2.0/24", "verify-required"]);
        assert_eq!(found.critical["force-command"], "a=b");
        assert_eq!(found.critical["source-address"], "192.0.2.0/24");
        assert_eq!(found.critical["verify-required"], "");
        assert_eq!(options(&["critical:a@example.com"]).critical["a@example.com"], "");
        for wrong in
            ["", "permit", "permit-all", "force-command", "source-address=", "extension:=a", "no-"]
        {
            assert!(Options::parse(&[wrong.to_owned()], false).is_err(), "{wrong}");
        }
        // The second one would replace the first, which may be the narrower one.
        for twice in [
            ["source-address=192.0.2.0/24", "source-address=0.0.0.0/0"],
            ["force-command=true", "critical:force-command=sh"],
        ] {
            assert!(Options::parse(&twice.map(str::to_owned), false).is_err(), "{twice:?}");
        }
        assert_eq!(Options::parse(&[], true).unwrap(), Options::default());
    }
}
