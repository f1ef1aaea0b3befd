//! The settings in words: `docs/settings.md`, and their part of the manual page.

use std::fmt::Write as _;

use clap_mangen::roff::{Inline, Roff, bold, italic, roman};
use outlast_domain::quotas::QUOTAS;

use super::row::{Group, Row, help};
use super::table::Settings;

/// Paragraphs about settings in general.
const ABOUT: [&str; 4] = [
    "An option goes before its variable, a variable before the settings file, and the file before the default. The file is \
     outlast.toml in the data folder, unless --config or OUTLAST_CONFIG names another. A key that is not known is refused, and a \
     value that is refused is named with the place that it came from. outlast settings --data DIR shows what a server would be \
     started with, and where each value comes from.",
    "Options and variables take lists with commas; options may be repeated, too. Relative paths in the settings file are below the data \
     folder, those of options and variables below the working folder.",
    "Settings are read when the server starts. SIGHUP has the files read again that some of them name; the server also looks every few \
     seconds whether these files have changed.",
    "No setting is a secret, and other users of a machine see options. Variables hold OUTLAST_SECRET_ACCESS_KEY (outlast init and \
     outlast principal) and OUTLAST_BUCKETS_SECRET_ACCESS_KEY; passphrases and PINs are in a file or a variable that --root-key names. If \
     the URL of a database has a password in it, give it by the variable or in the settings file, which is for its owner only.",
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
         Written by `outlast man --markdown` from the rows in `crates/cli/src/settings/table.rs`; `crates/cli/tests/settings.rs` holds \
         this page against it.\n",
    );
    for paragraph in ABOUT {
        let _ = write!(text, "\n{paragraph}\n");
    }
    for group in Settings::groups() {
        let _ = write!(
            text,
            "\n## {}\n\n| key | option, variable | value | default | at SIGHUP | what it says |\n|---|---|---|---|---|---|\n",
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
    text.push_str("\n## How many of something an account may have: [limits]\n\n| key | default | how many there may be |\n|---|---|---|\n");
    for quota in QUOTAS {
        let _ = writeln!(
            text,
            "| `{}` | {} | {} {} |",
            quota.name, quota.default, quota.what, quota.of
        );
    }
    text.push_str(
        "\n## By an option or variable only\n\n\
         `--data` (`OUTLAST_DATA`) names the data folder and `--config` (`OUTLAST_CONFIG`) the settings file. `--trust-clock` \
         (`OUTLAST_TRUST_CLOCK`) is for one start, after a wrong clock was set right ([readiness.md](readiness.md)). Variables that begin \
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
    page.control("SS", ["How many of something an account may have: [limits]"]);
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
