//! The settings file.

use std::path::{Path, PathBuf};

use outlast_negotiate::names::nearest;
use toml::de::{DeTable, DeValue};

use super::row::Row;
use super::table::{LIMITS, Settings};
use crate::failure::Failure;
use crate::files;

/// Name of the file in a data folder.
const NAME: &str = "outlast.toml";

/// Largest file that is read, in bytes.
const MAX_FILE: usize = 1 << 20;

/// The given settings file, or that of a data folder.
pub(super) fn path(given: Option<&Path>, folder: &Path) -> PathBuf {
    given.map_or_else(|| folder.join(NAME), Path::to_path_buf)
}

impl Settings {
    /// Reads the given file, or the folder's if there is one. Unknown keys are errors.
    pub(crate) fn load(given: Option<&Path>, folder: &Path) -> Result<Self, Failure> {
        let path = path(given, folder);
        if given.is_none() && !files::exists(&path)? {
            return Ok(Self::default());
        }
        let bytes = files::read(&path, MAX_FILE)?;
        let text = String::from_utf8_lossy(&bytes);
        let wrong = |error: toml::de::Error| {
            Failure::file(&path, &error.to_string().trim_end())
                .hint("settings are named like the options in outlast server --help, with _ for -")
        };
        let table = DeTable::parse(&text).map_err(wrong)?.into_inner();
        look_for_unknown(&table, &path, &text)?;
        let settings = Self::read(&text, folder).map_err(wrong)?;
        // Without it the section would be backups that are never made.
        if table.keys().any(|key| key.get_ref() == "backup") && settings.backup.folder.is_none() {
            return Err(Failure::file(&path, &"[backup] has no folder")
                .hint("name the folder that backups are written to"));
        }
        Ok(settings)
    }
}

/// Fails if any key has no row.
fn look_for_unknown(table: &DeTable<'_>, path: &Path, text: &str) -> Result<(), Failure> {
    let unknown = |name: &str, at: usize| {
        let line = text.get(..at).unwrap_or_default().matches('\n').count() + 1;
        let error = format!("line {line}: there is no setting {name}");
        let names: Vec<String> = Settings::rows().map(Row::name).collect();
        // Options have no sections: somebody who knows --acme-dns may write acme_dns.
        let all = "outlast settings --data DIR shows all";
        let hint = match nearest(name, names.iter().map(String::as_str)) {
            Some(meant) => format!("did you mean {meant}? {all}"),
            None => all.to_owned(),
        };
        Err(Failure::file(path, &error).hint(hint))
    };
    for (key, value) in table {
        let name: &str = key.get_ref();
        if name == LIMITS {
            // `limits_options` checks its names.
            continue;
        }
        let is_section = Settings::rows().any(|row| row.section == name);
        match value.get_ref() {
            DeValue::Table(inner) if is_section => {
                let is_known =
                    |key: &str| Settings::rows().any(|row| row.section == name && row.key == key);
                if let Some(odd) = inner.keys().find(|key| !is_known(key.get_ref())) {
                    return unknown(&format!("{name}.{}", odd.get_ref()), odd.span().start);
                }
            }
            _ if is_section
                || Settings::rows().any(|row| row.section.is_empty() && row.key == name) => {}
            _ => return unknown(name, key.span().start),
        }
    }
    Ok(())
}
