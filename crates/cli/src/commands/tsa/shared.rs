//! What the subcommands of `outlast tsa` share.

use std::path::{Path, PathBuf};

use outlast_pki::ObjectIdentifier;

/// Where the timestamp of a file is.
pub(super) fn token_path(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".tsr");
    PathBuf::from(name)
}

/// A policy, as an argument.
pub(super) fn policy(text: &str) -> Result<ObjectIdentifier, String> {
    ObjectIdentifier::new(text).map_err(|_| "not an object identifier such as 1.2.3".to_owned())
}

/// A time with milliseconds: `2026-11-24T16:12:34.056Z`.
pub(super) fn instant(unix_ms: i64) -> String {
    let seconds = outlast_pki::time::rfc3339(unix_ms.div_euclid(1000));
    format!("{}.{:03}Z", seconds.trim_end_matches('Z'), unix_ms.rem_euclid(1000))
}
