//! `openssl s_server` at the server's end of the link: a foreign server.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::tls::Foreign;
use crate::error::LabError;
use crate::subject::{Kind, Subject};
use crate::tls::chain::{self, SERVER_NAMES};
use crate::trusted;

/// Name of its stack.
pub(super) const NAME: &str = "openssl";

/// A command that serves this subject, with its files in `folder`, and what a client needs to know.
pub(super) fn server(
    subject: &Subject,
    address: SocketAddr,
    folder: &Path,
    executable: &Path,
) -> Result<(Command, Foreign), LabError> {
    if subject.kind == Kind::Mutual {
        return Err(LabError::unavailable(
            "a client's certificate before openssl s_server",
            "stack rustls",
        ));
    }
    let chain = chain::server(subject.authentication, subject.certificates)?;
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        fs::write(&path, text).map(|()| path.clone()).map_err(|error| LabError::file(&path, error))
    };
    let pem: Vec<String> =
        chain.certificates.iter().map(|der| outlast_pki::pem::certificate(der)).collect();
    let leaf = write("leaf.pem", pem.first().map_or("", String::as_str))?;
    let rest = write("rest.pem", &pem.get(1..).unwrap_or_default().concat())?;
    let key = write("key.pem", &chain.key_pem()?)?;
    let mut command = Command::new(program(executable)?);
    command.current_dir(folder);
    command.args(["s_server", "-quiet", "-HTTP", "-http_server_binmode", "-tls1_3"]);
    command.args(["-no-CAfile", "-accept", &address.to_string()]);
    command.args(["-groups", subject.key_exchange.name]);
    command.arg("-cert").arg(leaf).arg("-key").arg(key);
    if pem.len() > 1 {
        command.arg("-cert_chain").arg(rest);
    }
    let foreign = Foreign {
        address,
        name: SERVER_NAMES[0].into(),
        roots: vec![chain.root.clone()],
        path: Some("/body-{body}".into()),
    };
    Ok((command, foreign))
}

/// The file that the server answers with for so many bytes.
pub(super) fn body(folder: &Path, bytes: u32) -> Result<(), LabError> {
    let path = folder.join(format!("body-{bytes}"));
    if path.exists() {
        return Ok(());
    }
    let mut text = b"HTTP/1.0 200 ok\r\n\r\n".to_vec();
    text.resize(bytes as usize, b'x');
    fs::write(&path, text).map_err(|error| LabError::file(&path, error))
}

/// The program: the value of `OUTLAST_OPENSSL`, the one that `cargo xtask peers` installed beside the build of
/// `executable`, or the one in the path. It runs as root, so a file that others may write to is refused.
fn program(executable: &Path) -> Result<PathBuf, LabError> {
    let chosen = std::env::var_os("OUTLAST_OPENSSL").map(PathBuf::from);
    let ours = || {
        let path = trusted::peers(executable)?.join("openssl/bin/openssl");
        path.exists().then_some(path)
    };
    let lacks = |found: String| {
        let needs = format!(
            "openssl of version 3.5 or later in the path or named by OUTLAST_OPENSSL ({found})"
        );
        LabError::unavailable("openssl s_server", needs)
    };
    let program = match chosen.or_else(ours) {
        Some(program) => {
            trusted::trusted(&program).map_err(|error| lacks(error.to_string()))?;
            program
        }
        None => "openssl".into(),
    };
    let output = Command::new(&program)
        .arg("version")
        .output()
        .map_err(|error| lacks(format!("{}: {error}", program.display())))?;
    let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    // "OpenSSL 3.5.7 9 Jun 2026 (Library: ...)"
    let number = said.split_whitespace().nth(1).and_then(|number| {
        let (major, rest) = number.split_once('.')?;
        Some((major.parse::<u32>().ok()?, rest.split('.').next()?.parse::<u32>().ok()?))
    });
    match number {
        Some(number) if number >= (3, 5) => Ok(program),
        _ => Err(lacks(format!("{} is {said}", program.display()))),
    }
}
