//! Trust stores: a PEM or DER file, or a folder of them.

use std::path::{Path, PathBuf};

use outlast_net::client::Connector;
use outlast_net::policy::Policy;
use outlast_pki::certificate::Certificate;
use outlast_pki::path::NO_AUTHORITY;
use outlast_pki::pem;

use crate::failure::Failure;
use crate::files;

/// Largest file that is read, in bytes.
const MAX_FILE: usize = 16 << 20;

/// Files in which systems keep their trusted CAs.
const SYSTEM_CAS: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// The trust store of signatures: [`load`]ed, with a CA's certificate in it.
pub(crate) fn authorities(path: &Path) -> Result<Vec<Vec<u8>>, Failure> {
    let found = load(path)?;
    let issues = |der: &Vec<u8>| Certificate::parse(der).is_ok_and(|found| found.may_issue());
    if !found.iter().any(issues) {
        return Err(no_authority(path));
    }
    Ok(found)
}

/// The trust store cannot be used: that says nothing about what was to be verified.
pub(crate) fn no_authority(path: &Path) -> Failure {
    Failure::file(path, &NO_AUTHORITY)
        .hint("--trust takes the certificate of the root CA, not that of the signer")
}

/// All certificates in a file, or in the files of a folder that end in .pem, .crt, .cer or .der.
pub(crate) fn load(path: &Path) -> Result<Vec<Vec<u8>>, Failure> {
    if !path.is_dir() {
        return read(path);
    }
    let failed = |error: std::io::Error| Failure::file(path, &error);
    let mut files = std::fs::read_dir(path)
        .map_err(failed)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<Vec<_>, _>>()
        .map_err(failed)?;
    files.sort();
    let mut out = Vec::new();
    for file in files {
        let kind = file.extension().and_then(|kind| kind.to_str()).unwrap_or_default();
        if matches!(kind, "pem" | "crt" | "cer" | "der") {
            out.extend(read(&file)?);
        }
    }
    if out.is_empty() {
        return Err(Failure::file(path, &"the folder holds no certificate")
            .hint("certificates are files that end in .pem, .crt, .cer or .der"));
    }
    Ok(out)
}

/// The CAs that this system trusts. Old ones that TLS does not take are left out.
pub(crate) fn system_roots() -> Result<Vec<Vec<u8>>, Failure> {
    let given = std::env::var_os("SSL_CERT_FILE").map(PathBuf::from);
    let usual = SYSTEM_CAS.iter().map(PathBuf::from).find(|path| path.exists());
    let path = given.or(usual).ok_or_else(|| {
        Failure::new("the system's trusted CAs were not found").hint("name them in a PEM file")
    })?;
    let mut roots = load(&path)?;
    roots.retain(|der| Connector::new(&Policy::default(), std::slice::from_ref(der)).is_ok());
    Ok(roots)
}

/// A connector that trusts the certificates of a PEM file.
pub(crate) fn connector(path: &Path) -> Result<Connector, Failure> {
    Connector::new(&Policy::default(), &read(path)?)
        .map_err(|error| Failure::new(format!("TLS cannot be configured: {error}")))
}

fn read(path: &Path) -> Result<Vec<Vec<u8>>, Failure> {
    let bytes = files::read(path, MAX_FILE)?;
    pem::read_certificates(&bytes).map_err(|error| Failure::file(path, &error))
}
