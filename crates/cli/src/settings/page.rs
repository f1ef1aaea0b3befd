//! The settings in words: `docs/settings.md`, and their part of the manual page.

use std::fmt::Write as _;

use clap_mangen::roff::{Inline, Roff, bold, italic, roman};
use outlast_domain::quotas::QUOTAS;

use super::row::{Group, Row, help};
use super::table::Settings;

/// Paragraphs about settings in general.
const ABOUT: [&str; 4] = [
    "An option overrides its variable, a variable overrides the settings file, and the file overrides the default. The \
     file is outlast.toml in the data folder, unless --config or OUTLAST_CONFIG names another. An unknown key is \
     refused, and an error about a value says where the value comes from. outlast settings --data DIR shows the \
     settings that a server would start with, and where each comes from.",
    "Options and variables take lists separated by commas; options may also be repeated. Relative paths in the \
     settings file are below the data folder, those in options and variables below the working folder.",
    "Settings are read when the server starts. At SIGHUP the server reads again the files that some settings name; it \
     also checks every few seconds whether these files have changed.",
    "No setting is a secret, because other users of the machine can see options. Secret access keys are in the \
     variables OUTLAST_SECRET_ACCESS_KEY (outlast init and outlast principal) and OUTLAST_BUCKETS_SECRET_ACCESS_KEY; \
     passphrases and PINs are in a file or a variable that --root-key names. If the URL of a database contains a \
     password, give the URL in the variable or in the settings file, which only its owner can read.",
];

/// Heading of a group.
fn heading(group: &Group) -> String {
    let about = help(group.lines, None);
    match group.section {
        "" => about,
        section => format!("{about}: [{section}]"),
    }
}

/// `docs/settings.md`.
pub(crate) fn markdown() -> String {
    let mut text = String::from(
        "# Settings of `outlast server`\n\n\
         Written by `outlast man --markdown` from the rows in `crates/cli/src/settings/table.rs`; \
         `crates/cli/tests/settings.rs` checks that this page is current.\n",
    );
    for paragraph in ABOUT {
        let _ = write!(text, "\n{paragraph}\n");
    }
    for group in Settings::groups() {
        let _ = write!(
            text,
            "\n## {}\n\n| key | option, variable | value | default | at SIGHUP | meaning |\n|---|---|---|---|---|---|\n",
            heading(&group)
        );
        for row in group.rows {
            let given_by = match row.given_by {
                Some((option, variable)) => format!("`--{option}`, `{variable}`"),
                None => "-".to_owned(),
            };
            let (meaning, default) = row.meaning_and_default();
            let reread = if row.reread { "its files" } else { "-" };
            let key = format!("`{}`", row.key);
            let cells = [&key, &given_by, row.kind, &default, reread, &meaning];
            let cells = cells.map(|cell| cell.replace('|', "\\|"));
            let _ = writeln!(text, "| {} |", cells.join(" | "));
        }
    }
    text.push_str("\n## Quotas of an account: [limits]\n\n| key | default | maximum number of |\n|---|---|---|\n");
    for quota in QUOTAS {
        let _ = writeln!(
            text,
            "| `{}` | {} | {} {} |",
            quota.name, quota.default, quota.what, quota.of
        );
    }
    text.push_str(
        "\n## Settings without a key\n\n\
         `--data` (`OUTLAST_DATA`) names the data folder and `--config` (`OUTLAST_CONFIG`) the settings file. `--trust-clock` \
         (`OUTLAST_TRUST_CLOCK`) is for one start, after a wrong clock was corrected ([readiness.md](readiness.md)). Variables that begin \
         with `OTEL_` say where metrics are pushed to ([metrics.md](metrics.md)).\n",
    );
    text
}

/// The settings' sections of the manual page.
pub(crate) fn manual() -> Roff {
    let mut page = Roff::new();
    page.control("SH", ["SETTINGS OF THE SERVER"]);
    for paragraph in ABOUT {
        page.control("PP", []);
        page.text([roman(paragraph)]);
    }
    for group in Settings::groups() {
        page.control("SS", [heading(&group).as_str()]);
        for row in group.rows {
            entry(&mut page, row);
        }
    }
    page.control("SS", ["Quotas of an account: [limits]"]);
    for quota in QUOTAS {
        let about = format!("{} {} [default: {}]", quota.what, quota.of, quota.default);
        page.control("TP", []);
        page.text([bold(quota.name)]);
        page.text([roman(about)]);
    }
    page
}

fn entry(page: &mut Roff, row: &Row) {
    let mut term: Vec<Inline> = vec![bold(row.key), roman(" ("), italic(row.kind), roman(")")];
    if let Some((option, variable)) = row.given_by {
        term.extend([roman(", "), bold(format!("--{option}")), roman(", "), bold(variable)]);
    }
    let (meaning, default) = row.meaning_and_default();
    let reread = if row.reread { "; its files are read again at SIGHUP" } else { "" };
    page.control("TP", []);
    page.text(term);
    page.text([roman(format!("{meaning} [default: {default}{reread}]"))]);
}
