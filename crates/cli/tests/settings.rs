//! The settings of the server, row by row: set by option, by variable and by file, and refused with the source of the
//! value. docs/settings.md is written from the rows (`OUTLAST_BLESS=1`), and the test fails when it is stale.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use crate::common;

use std::path::Path;
use std::process::Command;

use common::{Folder, fail, outlast, run, stderr, succeed};
use outlast_testing::checkout;
use serde_json::Value;

/// A row in the output of `outlast settings`.
struct Row {
    name: String,
    option: Option<String>,
    variable: Option<String>,
    kind: String,
    value: Option<String>,
    from: String,
}

/// The section and the key of a name.
fn split(name: &str) -> (&str, &str) {
    name.split_once('.').unwrap_or(("", name))
}

fn settings(data: &Path) -> Command {
    let mut command = outlast();
    command.args(["settings", "--output", "json", "--data"]).arg(data);
    command
}

fn rows(command: &mut Command) -> Vec<Row> {
    let found: Value = serde_json::from_str(&succeed(command)).unwrap();
    let text = |row: &Value, member: &str| row[member].as_str().map(str::to_owned);
    let rows = found["settings"].as_array().unwrap().iter().map(|row| Row {
        name: text(row, "name").unwrap(),
        option: text(row, "option"),
        variable: text(row, "variable"),
        kind: text(row, "kind").unwrap(),
        value: text(row, "value"),
        from: text(row, "from").unwrap(),
    });
    rows.collect()
}

/// A value of a row: the `n`th of three, as an option and in the file.
fn sample(row: &Row, n: usize) -> (String, String) {
    let known = match row.name.as_str() {
        "policy" => Some(["2026-11", "fips-2026-11", "cnsa2-2026-11"]),
        "mode" => Some(["require", "prefer", "allow"]),
        _ => None,
    };
    if let Some(names) = known {
        return (names[n - 1].to_owned(), format!("'{}'", names[n - 1]));
    }
    let plain = match row.kind.as_str() {
        "address" => format!("127.0.0.{n}:1"),
        "number" => return (n.to_string(), n.to_string()),
        "true or false" => return ("true".to_owned(), "true".to_owned()),
        "table of lists" => return ("1=a,b".to_owned(), "{ 1 = ['b', 'a'] }".to_owned()),
        "table of tables" => return ("1/a=b".to_owned(), "{ 1 = { a = 'b' } }".to_owned()),
        "table of targets" => {
            let target = "{ a = { url = 'http://127.0.0.1:1/secret', ca_bundle = 'ca.pem' } }";
            return ("a=http://127.0.0.1:1".to_owned(), target.to_owned());
        }
        "list of paths" | "list of texts" => {
            return (format!("a{n},b{n}"), format!("['a{n}', 'b{n}']"));
        }
        "text" | "path" => format!("a{n}"),
        other => panic!("there is no sample of {other}"),
    };
    (plain.clone(), format!("'{plain}'"))
}

/// How the `n`th sample is shown if a settings file of this folder has it.
fn below(row: &Row, n: usize, folder: &Path) -> String {
    let (text, _) = sample(row, n);
    match row.kind.as_str() {
        "path" | "list of paths" => {
            let paths = text.split(',').map(|path| folder.join(path).display().to_string());
            paths.collect::<Vec<_>>().join(",")
        }
        _ => text,
    }
}

/// A settings file with these keys and values.
fn file(values: &[(&str, String)]) -> String {
    let mut text = String::new();
    let mut sections: Vec<&str> = values.iter().map(|(name, _)| split(name).0).collect();
    sections.sort_unstable();
    sections.dedup();
    for section in sections {
        if !section.is_empty() {
            text.push_str(&format!("[{section}]\n"));
        }
        for (name, value) in values.iter().filter(|(name, _)| split(name).0 == section) {
            text.push_str(&format!("{} = {value}\n", split(name).1));
        }
    }
    text
}

#[test]
fn options_override_variables_override_file() {
    let temporary = tempfile::tempdir().unwrap();
    let data = temporary.path();
    let path = data.join("outlast.toml");
    let rows_of = |command: &mut Command| rows(command).into_iter();
    let all = rows(&mut settings(data));
    assert!(all.len() > 40, "{}", all.len());
    for row in &all {
        assert_eq!((&row.value, row.from.as_str()), (&None, "default"), "{}", row.name);
    }
    let in_file: Vec<(&str, String)> =
        all.iter().map(|row| (row.name.as_str(), sample(row, 1).1)).collect();
    std::fs::write(&path, file(&in_file)).unwrap();
    let shown = |row: &Row, value: String| match row.name.as_str() {
        "store" | "root_key" => "(set; it may hold a secret)".to_owned(),
        _ => value,
    };
    for row in rows_of(&mut settings(data)) {
        let wanted = shown(&row, below(&row, 1, data));
        assert_eq!(row.value.as_deref(), Some(wanted.as_str()), "{}", row.name);
        assert_eq!(row.from, path.display().to_string(), "{}", row.name);
    }
    let by_variables = || {
        let mut command = settings(data);
        for row in &all {
            if let Some(variable) = &row.variable {
                command.env(variable, sample(row, 2).0);
            }
        }
        command
    };
    for row in rows_of(&mut by_variables()).filter(|row| row.variable.is_some()) {
        assert_eq!(row.value, Some(shown(&row, sample(&row, 2).0)), "{}", row.name);
        assert_eq!(Some(&row.from), row.variable.as_ref());
    }
    let mut by_options = by_variables();
    for row in &all {
        if let Some(option) = &row.option {
            by_options.arg(option).arg(sample(row, 3).0);
        }
    }
    for row in rows_of(&mut by_options) {
        let Some(option) = &row.option else {
            assert_eq!(row.from, path.display().to_string(), "{}", row.name);
            continue;
        };
        assert_eq!(row.value, Some(shown(&row, sample(&row, 3).0)), "{}", row.name);
        assert_eq!(&row.from, option);
    }
}

/// A refused value of each setting, and the message; other settings that it needs.
const REFUSED: &[(&str, &str, &str)] = &[
    ("store", "mysql://a", ""),
    ("root_key", "a", ""),
    ("listen", "a", ""),
    ("policy", "2027-01", ""),
    ("mode", "enforce", ""),
    ("tls_cert", "a", ""),
    ("tls_cert_file", "/none", ""),
    ("tls_key_file", "/none", "tls_cert_file = ['{own}']"),
    ("http3", "a", ""),
    ("connections_per_peer", "a", ""),
    ("revocation_listen", "a", ""),
    ("revocation_url", "a", ""),
    ("ocsp_validity", "5", ""),
    ("service_url", "a", ""),
    ("acme.dns", "a", ""),
    ("acme.http_port", "a", ""),
    ("acme.tls_port", "a", ""),
    ("acme.networks", "a", ""),
    ("acm.default_authority", "a", ""),
    ("acm.approved_domains", "a", ""),
    ("log", "a=loud", ""),
    ("client_ca", "/none", ""),
    ("client_auth", "require", ""),
    ("client_crls", "/none", ""),
    ("metrics_listen", "a", ""),
    ("ledger", "{own}", ""),
    ("ledger_days", "a", ""),
    ("ledger_bytes", "a", ""),
    ("key_storage_standard", "a", ""),
    ("artifact_log.witnesses", "a", ""),
    ("artifact_log.quorum", "1", ""),
    ("artifact_log.witness_ca", "/none", "witnesses = ['{witness} https://a.example']"),
    ("artifact_log.publish", "a", ""),
    ("audit.witnesses", "a", ""),
    ("audit.quorum", "1", ""),
    ("audit.witness_ca", "/none", "witnesses = ['{witness} https://a.example']"),
    ("audit.publish", "a", ""),
    ("audit.retention_days", "1", ""),
    ("audit.archive", "a", ""),
    ("backup.every_hours", "0", "folder = 'a'"),
    ("backup.keep", "0", "folder = 'a'"),
    ("backup.keep_days", "0", "folder = 'a'"),
    ("buckets.endpoint", "a", "access_key_id = 'a'\nsecret_access_key_file = '{own}'"),
    ("buckets.allow_plain", "a", ""),
    ("rolesanywhere.end_sessions_on_revocation", "a", ""),
    ("rotation.functions", "{own}", ""),
    ("process.allow_dumps", "a", ""),
    ("events.targets", "a", ""),
    ("events.authority_days", "a", ""),
    ("tsa.authorities", "a", ""),
    ("tsa.default_authority", "a", ""),
    ("tsa.accuracy_ms", "a", ""),
    ("tsa.ordering", "a", ""),
    ("tsa.synchronised_seconds", "a", ""),
    ("tsa.per_second", "0", ""),
    ("tsa.per_address", "0", ""),
    ("sftp.address", "a", ""),
    ("sftp.users", "/none", "address = '127.0.0.1:0'"),
    ("connectors.destinations", "a b", ""),
    ("sftp_uploads.scan", "a", ""),
    ("sftp_uploads.scan_timeout_seconds", "a", ""),
    ("sftp_uploads.sign", "a", ""),
    (
        "sftp_uploads.signatures",
        "/proc/none",
        "sign = 'arn:aws:kms:us-east-1:123456789012:alias/uploads'\n[sftp]\naddress = '127.0.0.1:0'",
    ),
    ("sftp.ssh_mode", "enforce", "address = '127.0.0.1:0'"),
    ("sftp.atomic_uploads", "a", ""),
    ("sftp.identity_ca_bundle", "/none", "address = '127.0.0.1:0'"),
    ("sftp.trusted_user_ca_keys", "/none", "address = '127.0.0.1:0'"),
    ("sftp.revoked_keys", "/none", "address = '127.0.0.1:0'"),
    ("sftp.host_certificates", "/none", "address = '127.0.0.1:0'"),
    ("sftp.identity_functions", "{own}", ""),
    ("sftp.workflow_functions", "{own}", ""),
    ("sftp.login_grace_seconds", "a", ""),
    ("sftp.idle_seconds", "a", ""),
    ("sftp.connections", "a", ""),
    ("sftp.sessions_per_user", "a", ""),
];

/// Settings for which the server accepts every value at the start.
const NEVER_REFUSED: &[&str] = &[
    "tls_names",
    "audit.readers",
    "tsa.callers",
    "sftp.transfer_server",
    "tsa.synchronised_file",
    "backup.folder",
    "buckets.folder",
    "buckets.region",
    "buckets.access_key_id",
    "buckets.secret_access_key_file",
    "buckets.ca_bundle",
    "buckets.allow",
];

#[test]
fn what_is_refused_is_named_with_the_place_that_it_came_from() {
    let folder = Folder::new();
    let path = folder.data.join("outlast.toml");
    let own = folder.write("own", b"something else\n").display().to_string();
    let server = || {
        let mut command = outlast();
        command.args(["server", "--data"]).arg(&folder.data);
        command
    };
    for row in rows(&mut settings(&folder.data)) {
        if NEVER_REFUSED.contains(&row.name.as_str()) {
            continue;
        }
        let found = REFUSED.iter().find(|(name, _, _)| *name == row.name);
        let (_, value, beside) = found.unwrap_or_else(|| panic!("{} has no row here", row.name));
        let (section, key) = split(&row.name);
        let value = value.replace("{own}", &own);
        let beside = beside.replace("{own}", &own).replace("{witness}", WITNESS);
        let quoted = match row.kind.as_str() {
            "number" if value.parse::<u64>().is_ok() => value.clone(),
            kind if kind.starts_with("list") => format!("['{value}']"),
            _ => format!("'{value}'"),
        };
        let head = if section.is_empty() { String::new() } else { format!("[{section}]\n") };
        let port = if row.name == "listen" { "" } else { "listen = '127.0.0.1:0'\n" };
        std::fs::write(&path, format!("{port}{head}{beside}\n{key} = {quoted}\n")).unwrap();
        let said = fail(&mut server(), 1);
        let place = path.display().to_string();
        assert!(said.contains(&place) && said.contains(key), "{}: {said}", row.name);
        let (Some(option), Some(variable)) = (&row.option, &row.variable) else { continue };
        std::fs::write(&path, format!("{port}{head}{beside}\n")).unwrap();
        // 1 or 2: whether the command line parser refuses the value.
        let by = |command: &mut Command| {
            let output = run(command);
            assert!(!output.status.success(), "{}", row.name);
            stderr(&output)
        };
        let said = by(server().env(variable, &value));
        assert!(said.contains(variable.as_str()), "{}: {said}", row.name);
        let said = by(server().args([option, &value]).env(variable, "x"));
        assert!(
            !said.contains(variable.as_str()) && !said.contains(&place),
            "{}: {said}",
            row.name
        );
    }
}

/// A verifier key, as C2SP's signed-note prints it.
const WITNESS: &str = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW";

#[test]
fn unknown_keys_are_refused_with_a_suggestion() {
    let folder = Folder::new();
    let path = folder.data.join("outlast.toml");
    for (text, line, meant) in [
        ("polcy = '2026-11'\n", 1, "policy"),
        ("log = 'info'\n\ntls-names = ['a']\n", 3, "tls_names"),
        ("[acme]\ndsn = '127.0.0.1:53'\n", 2, "acme.dns"),
        ("acme_networks = ['10.0.0.0/8']\n", 1, "acme.networks"),
        ("[buckts]\nfolder = 'a'\n", 1, "buckets"),
        ("[backup]\nfolder = 'a'\nkeep_day = 1\n", 3, "backup.keep_days"),
    ] {
        std::fs::write(&path, text).unwrap();
        for command in [
            &mut settings(&folder.data),
            outlast().args(["store", "check", "--data"]).arg(&folder.data),
        ] {
            let said = fail(command, 1);
            let place = format!("{}: line {line}: ", path.display());
            assert!(said.contains(&place), "{said}");
            assert!(said.contains(&format!("hint: did you mean {meant}")), "{said}");
        }
    }
    std::fs::write(&path, "zzzzzz = 1\n").unwrap();
    let said = fail(&mut settings(&folder.data), 1);
    assert!(!said.contains("did you mean") && said.contains("hint: outlast settings"), "{said}");
}

#[test]
fn the_file_of_a_new_folder_has_examples_that_are_settings() {
    let folder = Folder::new();
    let path = folder.data.join("outlast.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    let examples: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("# ").filter(|line| line.contains(" = ")))
        .collect();
    assert!(examples.len() > 4, "{text}");
    std::fs::write(&path, examples.join("\n")).unwrap();
    let set = rows(&mut settings(&folder.data)).iter().filter(|row| row.value.is_some()).count();
    assert_eq!(set, examples.len());
}

#[test]
fn relative_paths_depend_on_their_source() {
    let folder = Folder::new();
    let path = folder.data.join("outlast.toml");
    std::fs::write(&path, "ledger = 'elsewhere'\nroot_key = 'file:root.key'\n").unwrap();
    let server = folder.serve();
    assert!(folder.data.join("elsewhere").is_dir());
    drop(server);
    succeed(outlast().args(["ledger", "summary", "--data"]).arg(&folder.data));
    let mut command = outlast();
    command.args(["server", "--root-key", "file:root.key", "--data"]).arg(&folder.data);
    let said = fail(command.current_dir(folder.temporary.path()), 1);
    assert!(said.contains("error: root.key: "), "{said}");
}

#[test]
fn the_page_of_settings_is_that_of_the_rows() {
    let text = succeed(outlast().args(["man", "--markdown"]));
    let place = checkout().join("docs/settings.md");
    if std::env::var_os("OUTLAST_BLESS").is_some() {
        std::fs::write(&place, &text).unwrap();
    }
    let found = std::fs::read_to_string(&place).unwrap_or_default();
    assert!(found == text, "docs/settings.md is stale: run the test with OUTLAST_BLESS=1");
}

#[test]
fn the_manual_has_every_setting_and_a_page_for_every_command() {
    let temporary = tempfile::tempdir().unwrap();
    let page = succeed(outlast().arg("man"));
    for row in rows(&mut settings(temporary.path())) {
        for word in
            [Some(split(&row.name).1.to_owned()), row.option, row.variable].into_iter().flatten()
        {
            // Roff's notation of hyphens.
            assert!(page.contains(&word.replace('-', "\\-")), "{word}");
        }
    }
    let folder = temporary.path().join("man1");
    succeed(outlast().args(["man", "--out"]).arg(&folder));
    assert_eq!(
        std::fs::read_to_string(folder.join("outlast.1")).unwrap().trim_end(),
        page.trim_end()
    );
    for command in ["server", "settings", "proxy", "audit-verify", "root-key-rotate"] {
        let text = std::fs::read_to_string(folder.join(format!("outlast-{command}.1"))).unwrap();
        assert!(text.contains(".TH outlast"), "{command}: {text}");
        assert!(text.contains(".SH \"EXIT STATUS\""), "{command}: {text}");
        assert!(text.contains(&format!("\"outlast {}\"", env!("CARGO_PKG_VERSION"))), "{text}");
    }
    let said = succeed(outlast().args(["man", "--out"]).arg(&folder));
    assert!(said.starts_with("wrote ") && said.contains("man1"), "{said}");
    let page = succeed(outlast().args(["man", "sign"]));
    let written = std::fs::read_to_string(folder.join("outlast-sign.1")).unwrap();
    assert_eq!(page.trim_end(), written.trim_end());
    for words in ["AWS_PROFILE", "\\fIKEY\\fR", "some of several files", "EXIT STATUS"] {
        assert!(page.contains(words), "{words}: {page}");
    }
    assert!(
        succeed(outlast().args(["man", "cert", "request"])).contains("outlast\\-cert\\-request")
    );
    assert!(fail(outlast().args(["man", "sgin"]), 2).contains("has no command sgin"));
}

#[test]
fn no_option_takes_a_secret() {
    let help = succeed(outlast().args(["server", "--help"]));
    let options = help.split_whitespace().filter(|word| word.starts_with("--"));
    for option in options {
        for word in ["secret", "password", "passphrase", "pin"] {
            assert!(!option.split('-').any(|part| part == word), "{option}");
        }
    }
}
