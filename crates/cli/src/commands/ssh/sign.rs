//! `outlast ssh sign`: issues certificates for public keys, as `ssh-keygen -s` does.

use std::path::{Path, PathBuf};

use outlast_net::policy::Policy;
use outlast_net::server::system_clock;
use outlast_ssh::PublicKey;

use super::certificate::{Issued, Line, Said, read_key, read_line};
use crate::endpoint::Endpoint;
use crate::failure::{Failure, USAGE};
use crate::files;
use crate::output::Output;
use crate::profile::Connection;

/// Arguments of `ssh sign`. `-V` is ssh-keygen's.
#[derive(clap::Args)]
#[command(disable_version_flag = true)]
pub(super) struct Arguments {
    /// Public keys: each FILE.pub gets its certificate in FILE-cert.pub.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Issue certificates of hosts, not of users.
    #[arg(short = 'H', long)]
    host: bool,
    #[command(flatten)]
    said: Said,
    /// Serial number of the first certificate; each further one gets the next [default: 63 random bits each].
    #[arg(short = 'z', long, value_parser = crate::values::positive::<u64>)]
    serial: Option<u64>,
    /// Replace files that are not certificates of the same key.
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    connection: Connection,
}

/// Runs the command.
pub(super) fn run(arguments: &Arguments, output: Output) -> Result<(), Failure> {
    let mut wanted = Vec::with_capacity(arguments.files.len());
    for path in &arguments.files {
        let key = read_key(path)?;
        let to = certificate_path(path);
        if !arguments.force {
            may_replace(&to, &key)?;
        }
        wanted.push((key, to));
    }
    let last = arguments.serial.map(|first| first.checked_add(wanted.len() as u64 - 1));
    if last.is_some_and(|last| last.is_none_or(|last| i64::try_from(last).is_err())) {
        return Err(Failure::new("serial numbers end at 9223372036854775807").code(USAGE));
    }
    let now = system_clock().div_euclid(1000);
    let first = arguments.said.request(arguments.host, None, now)?;
    let mut endpoint = Endpoint::new(arguments.connection.settings()?, &Policy::default())?;
    let runtime = crate::runtime::small()?;
    let (mut text, mut list) = (String::new(), Vec::new());
    for (number, (key, to)) in (0_u64..).zip(&wanted) {
        let mut request = first.clone();
        let serial = arguments.serial.and_then(|first| i64::try_from(first + number).ok());
        request.serial_number = serial;
        let issued = runtime.block_on(Issued::get(&mut endpoint, &request, key))?;
        files::write(to, format!("{}\n", issued.line).as_bytes(), 0o644)?;
        text.push_str(&format!("{}: {}\n", to.display(), issued.text()));
        let mut value = issued.value();
        value["file"] = to.display().to_string().into();
        list.push(value);
    }
    output.result(text.trim_end(), &list);
    Ok(())
}

/// `FILE-cert.pub` of `FILE.pub`.
fn certificate_path(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let stem = name.strip_suffix(".pub").unwrap_or(&name);
    path.with_file_name(format!("{stem}-cert.pub"))
}

/// An older certificate of the same key may be replaced.
fn may_replace(path: &Path, key: &PublicKey) -> Result<(), Failure> {
    if !files::exists(path)? {
        return Ok(());
    }
    match read_line(path) {
        Ok(Line::Certificate(old)) if old.key() == key => Ok(()),
        _ => Err(files::exists_already(path)),
    }
}
