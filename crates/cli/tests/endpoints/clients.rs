//! Clients that are processes: OpenSSL's `s_client`, and the programs of `tests/interop/endpoints`.

use std::collections::HashMap;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use outlast_crypto::groups::Group;
use outlast_crypto::suites::{SUITES, Suite};
use outlast_crypto::versions::Version;
use serde_json::{Value, json};

use crate::common::peers::openssl;
use crate::common::{run, stderr, stdout};
use crate::endpoints::matrix::{Report, Stack};

pub const TLS13_SUITES: &[&str] =
    &["TLS_AES_256_GCM_SHA384", "TLS_AES_128_GCM_SHA256", "TLS_CHACHA20_POLY1305_SHA256"];

/// Every suite in the table of suites.
pub const ALL_SUITES: &[&str] = &[
    "TLS_AES_256_GCM_SHA384",
    "TLS_AES_128_GCM_SHA256",
    "TLS_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
];

pub const ALL_SCHEMES: &[&str] = &[
    "mldsa65",
    "mldsa87",
    "mldsa44",
    "ecdsa_secp384r1_sha384",
    "ecdsa_secp256r1_sha256",
    "ed25519",
    "rsa_pss_rsae_sha256",
];

pub const CLASSICAL_SCHEMES: &[&str] =
    &["ecdsa_secp256r1_sha256", "ecdsa_secp384r1_sha384", "rsa_pss_rsae_sha256"];

pub const OPENSSL: Stack = Stack {
    name: "OpenSSL 3.5.7, TCP",
    suites: ALL_SUITES,
    schemes: ALL_SCHEMES,
    certificate_schemes: None,
};

pub const GO: Stack = Stack {
    name: "Go 1.27, TCP",
    suites: ALL_SUITES,
    schemes: ALL_SCHEMES,
    certificate_schemes: Some(CLASSICAL_SCHEMES),
};

/// `openssl s_client`; `-ign_eof` lets it read until the server ends.
pub fn s_client(peer: &Path, address: SocketAddr, name: &str, ca: &Path, extra: &[&str]) -> Report {
    let mut command = openssl(peer, &["s_client", "-connect", &address.to_string()]);
    command.args(["-servername", name, "-verify_hostname", name]);
    command.args(["-verify_return_error", "-ign_eof", "-msg", "-CAfile"]).arg(ca);
    let output = run(command.args(extra).stdin(Stdio::null()));
    let text = stdout(&output);
    said_by_s_client(&text, &stderr(&output), output.status.success())
}

fn said_by_s_client(text: &str, errors: &str, success: bool) -> Report {
    let after = |prefix: &str| {
        let line = text.lines().find_map(|line| line.trim().strip_prefix(prefix));
        line.map(|rest| rest.trim().to_owned())
    };
    let alert = text.lines().filter(|line| line.starts_with("<<<")).find_map(|line| {
        let (_, rest) = line.split_once(", Alert [length 0002], fatal ")?;
        Some(rest.trim().to_owned())
    });
    if !success {
        let error = errors.lines().find(|line| line.contains("error")).unwrap_or(errors);
        return Report { error: Some(error.to_owned()), alert, ..Report::default() };
    }
    let session = after("New, ").or_else(|| after("Reused, ")).unwrap_or_default();
    let (version, suite) = session.split_once(", Cipher is ").unwrap_or_default();
    let group = after("Negotiated TLS1.3 group: ").or_else(|| {
        let key = after("Peer Temp Key: ").or_else(|| after("Server Temp Key: "))?;
        let key = key.strip_prefix("ECDH, ").unwrap_or(&key);
        key.split(',').next().map(str::to_owned)
    });
    let hellos =
        text.lines().filter(|line| line.starts_with("<<<") && line.ends_with("ServerHello"));
    Report {
        ok: true,
        version: Some(version.to_owned()),
        group: group.map(|name| iana_group(&name)),
        hello_retry: Some(hellos.count() > 1),
        suite: Some(iana_suite(suite)),
        resumed: Some(text.lines().any(|line| line.starts_with("Reused, "))),
        signature: after("Peer signature type: "),
        ..Report::default()
    }
}

/// Names of groups in OpenSSL and Go that differ from IANA's.
pub fn iana_group(name: &str) -> String {
    let name = match name {
        "prime256v1" | "P-256" => "secp256r1",
        "P-384" => "secp384r1",
        "P-521" => "secp521r1",
        other => other,
    };
    Group::by_name(name).map_or(name, |row| row.name).to_owned()
}

/// OpenSSL's name `ECDHE-ECDSA-AES256-GCM-SHA384` is `TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384`.
fn iana_suite(name: &str) -> String {
    let plain = |name: &str| {
        name.replace("_WITH_", "-").replace("TLS_ECDHE", "ECDHE").replace(['_', '-'], "")
    };
    let found = SUITES.iter().find(|row| {
        let ours = plain(row.name);
        let ours = ours.strip_suffix("POLY1305SHA256").map_or(ours.clone(), |rest| {
            // OpenSSL leaves the digest out.
            format!("{rest}POLY1305")
        });
        row.version == Version::Tls12 && ours == plain(name)
    });
    found.map_or(name, |row: &Suite| row.name).to_owned()
}

/// A program that connects once and prints a report.
pub fn said_on(command: &mut Command) -> Report {
    let output = run(command);
    let text = stdout(&output);
    serde_json::from_str(text.trim())
        .unwrap_or_else(|error| panic!("{command:?}: {error}: {text}{}", stderr(&output)))
}

/// A program that takes cases as lines of JSON.
pub struct Program {
    path: PathBuf,
    arguments: &'static [&'static str],
}

impl Program {
    pub fn new(path: PathBuf, arguments: &'static [&'static str]) -> Self {
        Self { path, arguments }
    }

    /// Runs the cases, each a JSON object, and returns the reports in the same order.
    pub fn run(&self, cases: &[Value]) -> Vec<Report> {
        let mut child = Command::new(&self.path)
            .args(self.arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let lines: String = cases
            .iter()
            .enumerate()
            .map(|(id, case)| {
                let mut case = case.clone();
                case["id"] = json!(id);
                format!("{case}\n")
            })
            .collect();
        // It answers while it is still reading.
        let writing = std::thread::spawn(move || stdin.write_all(lines.as_bytes()));
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}: {}", self.path.display(), output.status);
        writing.join().unwrap().unwrap();
        let mut found: HashMap<usize, Report> = stdout(&output)
            .lines()
            .map(|line| {
                let mut report: Report =
                    serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}"));
                report.group = report.group.map(|name| iana_group(&name));
                report.suite = report.suite.map(|name| iana_suite(&name));
                (report.id, report)
            })
            .collect();
        (0..cases.len())
            .map(|id| found.remove(&id).unwrap_or_else(|| panic!("nothing was said of case {id}")))
            .collect()
    }
}
