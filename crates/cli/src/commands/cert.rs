//! `outlast cert`: looks at certificates, requests, CRLs and keys, whoever made them. Needs no service.

mod convert;
mod inspect;
mod lint;
mod show;
mod verify;
mod whatif;

use std::path::Path;

use outlast_crypto::encrypted;
use outlast_pki::object::{self, Kind, Object};

use crate::failure::Failure;
use crate::files;
use crate::output::Output;
use crate::root_key::Source;

/// Largest file that is read, in bytes: CRLs can be long.
const MAX_FILE: usize = 64 << 20;

/// Arguments of `cert`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Show what is in certificates, requests, CRLs, OCSP responses and keys, and who takes a key.
    Inspect(inspect::Arguments),
    /// Validate a certificate: path, purpose, name and revocation.
    Verify(verify::Arguments),
    /// Hold certificates against the rules of RFC 5280 and the post-quantum profiles.
    Lint(lint::Arguments),
    /// Tell what a chain costs: bytes in the handshake, round trips, and headers behind proxies.
    Whatif(whatif::Arguments),
    /// Write certificates, requests, CRLs and keys in another form.
    Convert(convert::Arguments),
}

/// Runs the command.
pub(crate) fn run(arguments: Arguments, output: Output) -> Result<(), Failure> {
    match arguments.command {
        Command::Inspect(arguments) => inspect::run(&arguments, output),
        Command::Verify(arguments) => verify::run(&arguments, output),
        Command::Lint(arguments) => lint::run(&arguments, output),
        Command::Whatif(arguments) => whatif::run(&arguments, output),
        Command::Convert(arguments) => convert::run(&arguments, output),
    }
}

/// All objects of a file.
fn objects(path: &Path) -> Result<Vec<Object>, Failure> {
    let bytes = outlast_crypto::Secret::new(files::read(path, MAX_FILE)?);
    object::read(bytes.expose()).map_err(|error| Failure::file(path, &error))
}

/// The certificates of a file, which must hold some.
fn certificates(path: &Path) -> Result<Vec<Vec<u8>>, Failure> {
    let found: Vec<_> = objects(path)?
        .iter()
        .filter(|object| object.kind == Kind::Certificate)
        .map(|object| object.der.expose().to_vec())
        .collect();
    if found.is_empty() {
        return Err(Failure::file(path, &"there is no certificate in it"));
    }
    Ok(found)
}

/// Opens an encrypted key; other objects stay as they are.
fn opened(object: Object, passphrase: Option<&Source>) -> Result<Object, Failure> {
    let (Kind::EncryptedPrivateKey, Some(source)) = (object.kind, passphrase) else {
        return Ok(object);
    };
    let der = encrypted::decrypt(object.der.expose(), &source.read_for_key()?)
        .map_err(|error| Failure::new(error.to_string()))?;
    Ok(Object { kind: Kind::PrivateKey, der })
}

/// Where a passphrase is, as an argument of clap.
fn source(text: &str) -> Result<Source, String> {
    Source::parse(text).map_err(|failure| failure.message().to_owned())
}
