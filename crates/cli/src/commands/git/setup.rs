//! `outlast git setup`: writes git's configuration.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::evidence::Check;
use crate::failure::{Failure, USAGE};
use crate::output::Output;
use crate::{git, shell, signing_policy, trust};

/// Arguments of `git setup`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Configure all repositories of this user, not only the one in the current folder.
    #[arg(long)]
    global: bool,
    /// KMS key to sign with: alias/NAME, key id or ARN.
    #[arg(long)]
    key: Option<String>,
    /// AWS profile for signing [default: AWS_PROFILE when git runs].
    #[arg(long, requires = "key")]
    profile: Option<String>,
    /// Sign every commit and tag, also without -S and -s.
    #[arg(long, requires = "key")]
    sign_all: bool,
    /// Trusted roots: a PEM or DER file, or a folder of them.
    #[arg(long)]
    trust: Option<PathBuf>,
    /// Policy that says who may sign what: a TOML file, builtin:cnsa-2.0 or builtin:nist-ir-8547.
    #[arg(long, value_name = "POLICY")]
    policy: Option<String>,
    /// Whether revoked certificates are refused.
    #[arg(long, value_enum)]
    revocation: Option<Check>,
    /// File with CRLs.
    #[arg(long, value_name = "FILE")]
    crl: Option<PathBuf>,
}

/// Checks what can be checked without a service, then writes.
pub(super) fn run(arguments: &Arguments, output: Output) -> Result<(), Failure> {
    if arguments.key.is_none() && arguments.trust.is_none() && arguments.policy.is_none() {
        return Err(Failure::new("there is nothing to configure")
            .hint("sign with --key alias/NAME, verify with --trust root.pem or --policy FILE")
            .code(USAGE));
    }
    if let Some(path) = &arguments.trust {
        trust::authorities(path)?;
    }
    if let Some(policy) = &arguments.policy {
        signing_policy::load(policy)?.check_roots(arguments.trust.is_some())?;
    }
    let mut values: Vec<(&str, OsString)> = vec![("gpg.x509.program", program()?)];
    if let Some(key) = &arguments.key {
        values.push(("gpg.format", "x509".into()));
        values.push(("user.signingKey", key.into()));
    }
    if let Some(profile) = &arguments.profile {
        values.push(("outlast.profile", profile.into()));
    }
    if arguments.sign_all {
        values.push(("commit.gpgSign", "true".into()));
        values.push(("tag.gpgSign", "true".into()));
    }
    // Git runs the program in any folder, and a relative path could lead into a working tree that others write.
    if let Some(path) = &arguments.trust {
        values.push(("outlast.trust", absolute(path)?));
    }
    if let Some(policy) = &arguments.policy {
        let is_file = !policy.starts_with("builtin:");
        let value = if is_file { absolute(Path::new(policy))? } else { policy.into() };
        values.push(("outlast.policy", value));
    }
    if let Some(check) = arguments.revocation {
        values.push(("outlast.revocation", check.name().into()));
    }
    if let Some(path) = &arguments.crl {
        values.push(("outlast.crl", absolute(path)?));
    }
    let mut text = String::new();
    for (name, value) in &values {
        git::configure(arguments.global, name, value)?;
        text.push_str(&format!("git config {name} {}\n", shell::quoted(Path::new(value))));
    }
    if arguments.key.is_some() {
        text.push_str("sign:   git commit -S, git tag -s\n");
    }
    if arguments.trust.is_some() || arguments.policy.is_some() {
        text.push_str("verify: git log --show-signature, git verify-commit, git verify-tag\n");
    }
    let list: Vec<_> = values
        .iter()
        .map(|(name, value)| json!({ "name": name, "value": value.to_string_lossy() }))
        .collect();
    output.result(&text, &json!({ "global": arguments.global, "configuration": list }));
    Ok(())
}

/// Git starts the program itself, without arguments of ours: the program knows git's calls by their first argument.
fn program() -> Result<OsString, Failure> {
    let path = std::env::current_exe();
    let path = path.map_err(|error| Failure::new(format!("this program's path: {error}")))?;
    Ok(path.into_os_string())
}

/// The path from the root on, without `..`. The file itself may be a link, whose target changes.
fn absolute(path: &Path) -> Result<OsString, Failure> {
    let failed = |error: std::io::Error| Failure::file(path, &error);
    let found = match (path.parent(), path.file_name()) {
        (Some(folder), Some(name)) => {
            let here = folder.as_os_str().is_empty();
            let folder = if here { Path::new(".") } else { folder };
            folder.canonicalize().map_err(failed)?.join(name)
        }
        _ => path.canonicalize().map_err(failed)?,
    };
    Ok(found.into_os_string())
}
