//! What a certificate is to say: read from a request, completed, and as condition keys of policies.

use std::collections::BTreeMap;

use outlast_crypto::random;
use outlast_ssh::{CertificateFields, CertificateKind, PublicKey, is_source_list, option_value};

use crate::Fault;
use crate::identity::{Caller, Identity};
use crate::kms::KmsError;
use crate::limits;
use crate::policy::ConditionKeys;

use super::kind_name;

/// What a caller says of a certificate.
#[derive(Debug, Clone)]
pub struct Said {
    /// Line of OpenSSH's with the key to be certified.
    pub public_key: String,
    /// For a user or a host.
    pub kind: CertificateKind,
    /// Names; the caller's own if a user's certificate has none.
    pub principals: Vec<String>,
    /// Key id; the caller's ARN if there is none.
    pub identity: Option<String>,
    /// Serial number; a random one if there is none.
    pub serial: Option<u64>,
    /// First second of its validity, since 1970; a minute ago if there is none.
    pub valid_after: Option<i64>,
    /// End of its validity, in seconds since 1970; a default if there is none.
    pub valid_before: Option<i64>,
    /// Critical options: names and texts, which are empty where an option has no value.
    pub critical_options: BTreeMap<String, String>,
    /// Extensions, in the same form.
    pub extensions: BTreeMap<String, String>,
}

/// What is to be certified.
#[derive(Debug, Clone)]
pub struct Order {
    /// The key.
    pub subject: PublicKey,
    /// What the certificate says of it.
    pub fields: CertificateFields,
    /// Seconds from now to the end of its validity.
    pub lasts_s: i64,
    /// Critical options and extensions as policies see them: `name` or `name=value`.
    shown: [Vec<String>; 2],
}

/// The name that a caller's certificate is for by default: the user's name, else the session's source identity, which Roles
/// Anywhere takes from a certificate and AssumeRole needs a permission for, else the session's name. The caller's policies
/// must allow it like any other.
pub fn principal_of(caller: &Caller) -> &str {
    match &caller.principal.identity {
        Identity::User { name, .. } => name,
        Identity::Session { session, .. } => caller.source_identity.as_deref().unwrap_or(session),
    }
}

impl Order {
    /// Checks and completes what a caller says.
    ///
    /// # Errors
    /// [`KmsError::Validation`], with the member that is wrong.
    pub fn new(said: Said, caller: &Caller, now_ms: i64) -> Result<Self, KmsError> {
        let subject = PublicKey::from_openssh_line(&said.public_key)
            .map_err(|error| wrong(&format!("PublicKey is not a public key of SSH: {error}.")))?;
        let now = now_ms.div_euclid(1000);
        let (valid_after, valid_before) = validity(&said, now)?;
        let principals = match (said.kind, said.principals.is_empty()) {
            (CertificateKind::User, true) => vec![principal_of(caller).to_owned()],
            (CertificateKind::Host, true) => {
                // OpenSSH takes a certificate without names for any host.
                return Err(wrong("Principals is missing: name the hosts of the certificate."));
            }
            (_, false) => said.principals,
        };
        for name in &principals {
            // ssh-keygen and authorized_principals separate names by commas and spaces.
            if !is_plain(name, limits::MAX_SSH_NAME) || name.contains([',', ' ', '"']) {
                return Err(wrong(
                    "Principals has a name that is empty or too long, or has a comma, a space, a quotation mark or a \
                     control character.",
                ));
            }
        }
        if said.kind == CertificateKind::Host
            && principals.iter().any(|name| name.contains(['*', '?']))
        {
            return Err(wrong(
                "Principals has a wildcard: OpenSSH would take the certificate for hosts that policies do not name. Name each \
                 host.",
            ));
        }
        let key_id = said
            .identity
            .unwrap_or_else(|| caller.principal.arn().chars().take(limits::MAX_SSH_NAME).collect());
        if !is_plain(&key_id, limits::MAX_SSH_NAME) {
            return Err(wrong("Identity is empty or too long, or has a control character."));
        }
        let critical_options = critical(&said.critical_options, said.kind)?;
        let extensions = extensions(&said.extensions, said.kind)?;
        let shown = [shown(&said.critical_options), shown(&said.extensions)];
        Ok(Self {
            subject,
            shown,
            lasts_s: valid_before - now,
            fields: CertificateFields {
                serial: said.serial.map_or_else(serial, Ok)?,
                kind: said.kind,
                key_id,
                principals,
                valid_after_s: u64::try_from(valid_after).unwrap_or_default(),
                valid_before_s: u64::try_from(valid_before).unwrap_or_default(),
                critical_options,
                extensions,
            },
        })
    }
}

impl Order {
    /// Critical options and extensions as policies and events have them: `name` or `name=value`.
    pub fn shown(&self) -> (&[String], &[String]) {
        (&self.shown[0], &self.shown[1])
    }
}

fn wrong(text: &str) -> KmsError {
    KmsError::Validation(text.to_owned())
}

fn is_plain(text: &str, most: usize) -> bool {
    !text.is_empty() && text.chars().count() <= most && !text.chars().any(char::is_control)
}

/// 63 random bits, which every language's integers hold; several servers need no common counter.
fn serial() -> Result<u64, KmsError> {
    let bytes = random::bytes::<8>().map_err(Fault::from)?;
    Ok((u64::from_be_bytes(bytes) >> 1).max(1))
}

/// First second and end of the validity.
fn validity(said: &Said, now: i64) -> Result<(i64, i64), KmsError> {
    let default = match said.kind {
        CertificateKind::User => limits::SSH_USER_SECONDS,
        CertificateKind::Host => limits::SSH_HOST_SECONDS,
    };
    let valid_after = said.valid_after.unwrap_or(now - limits::SSH_BACKDATE_SECONDS);
    let valid_before = said.valid_before.unwrap_or_else(|| now.max(valid_after) + default);
    if valid_after < now - limits::BACKDATE_SECONDS {
        return Err(wrong("ValidAfter is more than an hour ago."));
    }
    if valid_before <= now || valid_before <= valid_after {
        return Err(wrong("ValidBefore is not after the present and ValidAfter."));
    }
    if valid_before - now > limits::MAX_SSH_SECONDS {
        return Err(wrong(
            "ValidBefore is more than ten years from now: certificates that last can only be revoked.",
        ));
    }
    Ok((valid_after, valid_before))
}

const FORCE_COMMAND: &str = "force-command";
const SOURCE_ADDRESS: &str = "source-address";
const VERIFY_REQUIRED: &str = "verify-required";

/// PROTOCOL.certkeys, "Critical options": all that there are concern users.
fn critical(
    said: &BTreeMap<String, String>,
    kind: CertificateKind,
) -> Result<Vec<(String, Vec<u8>)>, KmsError> {
    if kind == CertificateKind::Host && !said.is_empty() {
        return Err(wrong("CriticalOptions is for users' certificates; hosts' have none."));
    }
    for (name, value) in said {
        let fits = match name.as_str() {
            FORCE_COMMAND => !value.is_empty(),
            SOURCE_ADDRESS => is_source_list(value),
            VERIFY_REQUIRED => value.is_empty(),
            // Others have the domain of who has defined them.
            other => other.contains('@') && is_option(other),
        };
        if !fits || value.contains('\0') {
            return Err(wrong(
                "CriticalOptions has an option that OpenSSH does not know, or one with a wrong value: force-command has a \
                 command, source-address has addresses and CIDR blocks, verify-required has none.",
            ));
        }
    }
    Ok(encoded(said))
}

/// Whether a name can be told from its value where policies see both as `name=value`.
fn is_option(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'=' | b','))
}

/// PROTOCOL.certkeys, "Extensions".
fn extensions(
    said: &BTreeMap<String, String>,
    kind: CertificateKind,
) -> Result<Vec<(String, Vec<u8>)>, KmsError> {
    if kind == CertificateKind::Host && !said.is_empty() {
        return Err(wrong("Extensions is for users' certificates; hosts' have none."));
    }
    let is_name = |name: &String| is_plain(name, limits::MAX_SSH_NAME) && is_option(name);
    if !said.keys().all(is_name) || said.values().any(|value| value.contains('\0')) {
        return Err(wrong("Extensions has a name or value with characters that it cannot have."));
    }
    // OpenSSH's own have none. Policies see a value behind the name: one that means nothing would evade them.
    if said.iter().any(|(name, value)| !name.contains('@') && !value.is_empty()) {
        return Err(wrong(
            "Extensions without a domain in their name, such as permit-pty, have no value.",
        ));
    }
    Ok(encoded(said))
}

/// In order of their names, as certificates have them.
fn encoded(said: &BTreeMap<String, String>) -> Vec<(String, Vec<u8>)> {
    let value = |value: &String| option_value((!value.is_empty()).then_some(value));
    said.iter().map(|(name, text)| (name.clone(), value(text))).collect()
}

fn shown(said: &BTreeMap<String, String>) -> Vec<String> {
    let one = |(name, value): (&String, &String)| match value.as_str() {
        "" => name.clone(),
        value => format!("{name}={value}"),
    };
    said.iter().map(one).collect()
}

/// Sets the condition keys about a certificate.
pub fn describe(conditions: &mut ConditionKeys, order: &Order) {
    let [critical, extensions] = &order.shown;
    conditions.set("outlast:SshCertificateType", kind_name(order.fields.kind));
    conditions.set_many("outlast:SshPrincipals", order.fields.principals.clone());
    conditions.set("outlast:SshKeyId", order.fields.key_id.as_str());
    conditions.set("outlast:SshValiditySeconds", order.lasts_s.to_string());
    conditions.set_many("outlast:SshCriticalOptions", critical.clone());
    conditions.set_many("outlast:SshExtensions", extensions.clone());
}
