//! `docs/attacks.md`: what the tables of attacks in the tests try, and which words each attack is refused with.

use std::sync::{Mutex, PoisonError};

/// Tests of one program run at the same time, and write the page in turns.
static PAGE: Mutex<()> = Mutex::new(());

/// Compares a section of the page with a table of attacks; with `OUTLAST_BLESS` set, writes the section. A row is an attack and
/// the words of its refusal; no words mean that it is accepted: a control. The caller has tried each of them.
///
/// # Panics
/// The page has no such section, or says something else in it.
pub fn hold(section: &str, rows: &[(&str, &str)]) {
    let _turn = PAGE.lock().unwrap_or_else(PoisonError::into_inner);
    let path = crate::checkout().join("docs/attacks.md");
    let page = std::fs::read_to_string(&path).unwrap_or_default();
    let heading = format!("\n## {section}\n");
    let Some(begin) = page.find(&heading).map(|at| at + heading.len()) else {
        panic!("docs/attacks.md has no section {section:?}: write its heading")
    };
    let rest = &page[begin..];
    let found = &rest[..rest.find("\n## ").unwrap_or(rest.len())];
    let mut wanted = String::from("\n| attack | the answer says |\n|---|---|\n");
    for (attack, words) in rows {
        let words =
            if words.is_empty() { "accepted: a control".into() } else { format!("“{words}”") };
        wanted.push_str(&format!("| {} | {} |\n", cell(attack), cell(&words)));
    }
    if std::env::var_os("OUTLAST_BLESS").is_some() {
        let page = format!("{}{wanted}{}", &page[..begin], &rest[found.len()..]);
        if let Err(error) = std::fs::write(&path, page) {
            panic!("docs/attacks.md cannot be written: {error}");
        }
        return;
    }
    assert!(
        found == wanted,
        "section {section:?} of docs/attacks.md is stale: run the test with OUTLAST_BLESS=1"
    );
}

/// A text in a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('<', "&lt;")
}
