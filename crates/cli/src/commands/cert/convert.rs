//! `outlast cert convert`: converts certificates, requests, CRLs and keys. Private keys are written as PKCS #8,
//! readable by their owner only.

use std::path::{Path, PathBuf};

use outlast_crypto::keys::Form;
use outlast_crypto::{Secret, encrypted};
use outlast_pki::key_forms::{KeyError, PrivateKey};
use outlast_pki::object::{Kind, Object};
use serde_json::json;

use super::may_write;
use crate::failure::Failure;
use crate::files;
use crate::objects;
use crate::output::{self, Output};
use crate::root_key::Source;

/// Output form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Target {
    /// PEM; all objects of the file.
    Pem,
    /// DER; a file with one object.
    Der,
    /// Seed of an ML-DSA or ML-KEM key, as Go and BoringSSL read it (PEM).
    Seed,
    /// Expanded form of an ML-DSA or ML-KEM key (PEM).
    Expanded,
    /// Both forms of an ML-DSA or ML-KEM key, as AWS's Roles Anywhere helper reads it (PEM).
    Both,
}

/// Arguments of `cert convert`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// PEM or DER file.
    file: PathBuf,
    /// Output form.
    #[arg(long, value_enum)]
    to: Target,
    /// Output file [default: stdout; unencrypted private keys need a file].
    #[arg(long)]
    out: Option<PathBuf>,
    /// Replace an existing --out file.
    #[arg(long)]
    force: bool,
    /// Source of an encrypted key's passphrase: env:NAME, file:PATH, or "" to be asked.
    #[arg(long, value_parser = objects::source, value_name = "SOURCE")]
    passphrase: Option<Source>,
    /// Encrypt private keys, with the passphrase from: env:NAME, file:PATH, or "" to be asked.
    #[arg(long, value_parser = objects::source, value_name = "SOURCE")]
    new_passphrase: Option<Source>,
}

/// Converts a file.
pub(crate) fn run(arguments: &Arguments, output: Output) -> Result<(), Failure> {
    let path = &arguments.file;
    let mut converted = Vec::new();
    for object in objects::read(path)? {
        let object = objects::opened(object, arguments.passphrase.as_ref())?;
        converted.push(convert(object, arguments).map_err(|failure| named(path, failure))?);
    }
    let holds_key = converted.iter().any(|object| object.kind.is_bare_private_key());
    let bytes = match (arguments.to, converted.as_slice()) {
        (Target::Der, [one]) => Secret::new(one.der.expose().to_vec()),
        (Target::Der, several) => {
            let count = several.len();
            return Err(Failure::file(path, &format!("it contains {count} objects"))
                .hint("DER holds one object; write them with --to pem, or split the file first"));
        }
        (_, all) => {
            let mut text = Vec::new();
            for object in all {
                text.push(object.to_pem()?);
            }
            let parts: Vec<_> = text.iter().map(Secret::expose).collect();
            Secret::new(parts.concat())
        }
    };
    let Some(out) = &arguments.out else {
        if holds_key {
            return Err(Failure::new("a private key is not written to stdout")
                .hint("name a file with --out, or encrypt it with --new-passphrase"));
        }
        output::data(bytes.expose());
        return Ok(());
    };
    let is_key = converted.iter().any(|object| {
        object.kind.is_bare_private_key() || object.kind == Kind::EncryptedPrivateKey
    });
    write(out, &bytes, if is_key { 0o600 } else { 0o644 }, arguments.force)?;
    let kinds: Vec<_> = converted.iter().map(|object| object.kind.name()).collect();
    let text = format!("{}: {}, {} bytes", out.display(), kinds.join(", "), bytes.len());
    output.result(
        &text,
        &json!({ "file": files::json_path(out), "objects": kinds, "bytes": bytes.len() }),
    );
    Ok(())
}

fn named(path: &Path, failure: Failure) -> Failure {
    failure.prefixed(&path.display().to_string())
}

fn convert(object: Object, arguments: &Arguments) -> Result<Object, Failure> {
    let form = match arguments.to {
        Target::Pem | Target::Der => None,
        Target::Seed => Some(Form::Seed),
        Target::Expanded => Some(Form::Expanded),
        Target::Both => Some(Form::Both),
    };
    match object.kind {
        kind if kind.is_bare_private_key() => private_key(&object, form, arguments),
        Kind::EncryptedPrivateKey if form.is_none() && arguments.new_passphrase.is_none() => {
            Ok(object)
        }
        Kind::EncryptedPrivateKey | Kind::LegacyEncryptedKey => {
            let failure = Failure::new("the private key is encrypted");
            Err(match object.kind {
                Kind::LegacyEncryptedKey => failure.hint(
                    "OpenSSL's older encryption is not supported; encrypt the key again with: openssl pkey -in FILE -aes256",
                ),
                _ => failure.hint("name the source of its passphrase with --passphrase"),
            })
        }
        kind if form.is_some() => Err(Failure::new(format!(
            "it contains a {}, but seed, expanded and both are forms of private keys",
            kind.name()
        ))
        .hint("use --to pem or --to der")),
        _ => Ok(object),
    }
}

fn private_key(
    object: &Object,
    form: Option<Form>,
    arguments: &Arguments,
) -> Result<Object, Failure> {
    let refused = |error: KeyError| {
        let failure = Failure::new(error.to_string());
        match error {
            KeyError::NoSeed => failure
                .hint("only --to expanded is possible; the seed cannot be computed from the key"),
            KeyError::Inconsistent => {
                failure.hint("find out which half belongs to the certificate before using either")
            }
            _ => failure,
        }
    };
    let key = PrivateKey::read(object).map_err(refused)?;
    let pkcs8 = form.map_or_else(|| key.to_pkcs8(), |form| key.to_form(form)).map_err(refused)?;
    match &arguments.new_passphrase {
        None => Ok(Object { kind: Kind::PrivateKey, der: pkcs8 }),
        Some(source) => {
            let der = encrypted::encrypt(&pkcs8, &source.read_for_key()?)?;
            Ok(Object { kind: Kind::EncryptedPrivateKey, der: Secret::new(der) })
        }
    }
}

fn write(out: &Path, bytes: &Secret, mode: u32, force: bool) -> Result<(), Failure> {
    may_write(out, force)?;
    if out.exists() && mode == 0o600 {
        output::warning(&format!("{}: replaced", out.display()));
    }
    files::write(out, bytes.expose(), mode)
}
