//! The key-encryption key of a store's root keys: in a file, from a passphrase, or in a token (PKCS #11).
//!
//! Only finds and fetches the key; `outlast_domain::seal` uses it.

mod pkcs11;

use std::fmt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use outlast_crypto::passphrase::Costs;
use outlast_crypto::{Secret, aead};
use outlast_domain::seal::{Kek, RootRecord, SoftwareKek};
use outlast_domain::settings::{KEY_STORAGE, KeyStorage};
use serde_json::{Map, Value, json};

use crate::failure::Failure;
use crate::settings::Located;
use crate::{files, shell};

/// Length below which passphrases for new keys are refused, in characters.
const MIN_PASSPHRASE: usize = 12;
const FORMS: &str = "use file:PATH, passphrase:env:NAME, passphrase:file:PATH, passphrase: (asks on \
                     the terminal) or pkcs11:token=...;object=...?module-path=...&pin-source=file:PATH";

/// Where the key-encryption key of a store comes from.
#[derive(Clone)]
pub(crate) enum Provider {
    /// In a file.
    File(PathBuf),
    /// Derived from a passphrase.
    Passphrase(Source),
    /// Inside a token.
    Pkcs11(pkcs11::Uri),
}

/// Source of a passphrase.
#[derive(Clone)]
pub(crate) enum Source {
    Environment(String),
    File(PathBuf),
    Terminal,
}

/// A key-encryption key, and what its provider needs to find or derive it again.
pub(crate) type Made = (Box<dyn Kek>, Map<String, Value>);

impl fmt::Display for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "file:{}", path.display()),
            Self::Passphrase(Source::Environment(name)) => write!(f, "passphrase:env:{name}"),
            Self::Passphrase(Source::File(path)) => write!(f, "passphrase:file:{}", path.display()),
            Self::Passphrase(Source::Terminal) => write!(f, "passphrase:"),
            Self::Pkcs11(uri) => uri.fmt(f),
        }
    }
}

impl Provider {
    /// Reads `file:PATH`, `passphrase:SOURCE` or a PKCS #11 URI. Relative paths are below `base`.
    pub(crate) fn parse(text: &str, base: &Path) -> Result<Self, Failure> {
        // The text may hold a PIN or, by mistake, a key: it is not quoted.
        let unknown = || Failure::new("the root key's location is not valid").hint(FORMS);
        let path = |path: &str| match path {
            "" => Err(unknown()),
            path => Ok(base.join(path)),
        };
        match text.split_once(':').ok_or_else(unknown)? {
            ("file", rest) => Ok(Self::File(path(rest)?)),
            ("passphrase", "") => Ok(Self::Passphrase(Source::Terminal)),
            ("passphrase", source) => match source.split_once(':').ok_or_else(unknown)? {
                ("env", name) if !name.is_empty() => {
                    Ok(Self::Passphrase(Source::Environment(name.to_owned())))
                }
                ("file", rest) => Ok(Self::Passphrase(Source::File(path(rest)?))),
                _ => Err(unknown()),
            },
            ("pkcs11", rest) => pkcs11::Uri::parse(rest, base).map(Self::Pkcs11),
            _ => Err(unknown()),
        }
    }

    /// The default: the file `root.key` in the data folder.
    pub(crate) fn default_in(folder: &Path) -> Self {
        Self::File(folder.join("root.key"))
    }

    /// The provider in `root_key`, or the default of a data folder.
    pub(crate) fn choose(root_key: Option<&Located>, folder: &Path) -> Result<Self, Failure> {
        match root_key {
            Some(said) => {
                Self::parse(&said.text, &said.base).map_err(|error| error.about("root_key"))
            }
            None => Ok(Self::default_in(folder)),
        }
    }

    /// Its name in the store.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::File(_) => SoftwareKek::FILE,
            Self::Passphrase(_) => SoftwareKek::PASSPHRASE,
            Self::Pkcs11(_) => pkcs11::PROVIDER,
        }
    }

    /// The standard that the operator says it is certified for. Only a token can be.
    pub(crate) fn certified_to(
        &self,
        setting: Option<&str>,
    ) -> Result<Option<&'static KeyStorage>, Failure> {
        let Some(name) = setting else { return Ok(None) };
        let standard = KeyStorage::by_name(name).ok_or_else(|| {
            let known: Vec<_> = KEY_STORAGE.iter().map(|row| row.name).collect();
            Failure::new(format!("key_storage_standard: {name} is not a known standard"))
                .hint(format!("choose one of {}", known.join(", ")))
                .about("key_storage_standard")
        })?;
        match self {
            Self::Pkcs11(_) => Ok(Some(standard)),
            Self::File(_) | Self::Passphrase(_) => Err(Failure::new(format!(
                "key_storage_standard: {name} cannot be claimed: no token keeps the root key"
            ))
            .hint("remove the setting, or move the root key with: outlast root-key rotate --to pkcs11:URI")
            .about("key_storage_standard")),
        }
    }

    /// Whether it can be shown and written down: it has no PIN.
    pub(crate) fn can_be_shown(&self) -> bool {
        !matches!(self, Self::Pkcs11(uri) if uri.holds_pin())
    }

    /// The key for a store with this `record`; a store of the first layout has no such record.
    pub(crate) fn open(&self, record: Option<&RootRecord>) -> Result<Box<dyn Kek>, Failure> {
        let stated = record.map_or(SoftwareKek::FILE, |record| record.provider.as_str());
        self.open_stated(stated, record.map(|record| &record.parameters))
    }

    /// The key of a provider, from its stored name and parameters.
    pub(crate) fn open_stated(
        &self,
        name: &str,
        parameters: Option<&Map<String, Value>>,
    ) -> Result<Box<dyn Kek>, Failure> {
        if name != self.name() {
            let form = match name {
                SoftwareKek::PASSPHRASE => "passphrase:SOURCE",
                pkcs11::PROVIDER => "pkcs11:URI",
                _ => "file:PATH",
            };
            return Err(Failure::new(format!(
                "the root key is kept by the provider {name}, but {self} was given"
            ))
            .hint(format!(
                "say where it is with --root-key {form}, OUTLAST_ROOT_KEY, or root_key in outlast.toml"
            )));
        }
        match self {
            Self::File(path) => Ok(Box::new(read_file(path)?)),
            Self::Passphrase(source) => {
                let costs =
                    parameters.and_then(costs_of).filter(Costs::acceptable).ok_or_else(|| {
                        Failure::new(
                            "the store's parameters for the passphrase are missing or too weak",
                        )
                        .hint("the store may have been tampered with; restore a backup")
                    })?;
                derive(&costs, &source.read()?)
            }
            Self::Pkcs11(uri) => Ok(Box::new(pkcs11::Token::open(uri, false)?)),
        }
    }

    /// Keeps an existing key: only a file can.
    pub(crate) fn keep(&self, key: Secret) -> Result<(), Failure> {
        match self {
            Self::File(path) if !files::exists(path)? => {
                files::write(path, SoftwareKek::from_key(key)?.to_file().expose(), 0o600)
            }
            Self::File(path) => Err(Failure::file(path, &"the file exists already")),
            _ => Err(Failure::new(
                "the root key of this store has never been rotated and is in a file",
            )
            .hint("restore it with --root-key file:PATH; then: outlast root-key rotate --to ...")),
        }
    }

    /// A key for a new store: a file or a token's key is created unless it exists, a passphrase gets a salt.
    pub(crate) fn create(&self) -> Result<Made, Failure> {
        match self {
            Self::File(path) => {
                let kek = if files::exists(path)? {
                    read_file(path)?
                } else {
                    let kek = SoftwareKek::generate()?;
                    files::write(path, kek.to_file().expose(), 0o600)?;
                    kek
                };
                let parameters = map(json!({ "fingerprint": kek.fingerprint() }));
                Ok((Box::new(kek), parameters))
            }
            Self::Passphrase(source) => {
                let passphrase = source.read_new()?;
                let costs = Costs::recommended()?;
                let parameters = map(json!({
                    "salt": hex::encode(&costs.salt),
                    "memory_kib": costs.memory_kib,
                    "passes": costs.passes,
                    "lanes": costs.lanes,
                }));
                Ok((derive(&costs, &passphrase)?, parameters))
            }
            Self::Pkcs11(uri) => {
                Ok((Box::new(pkcs11::Token::open(uri, true)?), map(uri.parameters())))
            }
        }
    }

    /// Explains why this key does not open a store.
    pub(crate) fn wrong_key(&self, kek: &dyn Kek, stated: Option<&str>) -> Failure {
        match self {
            Self::File(path) => {
                let found = kek.direct().map(SoftwareKek::fingerprint_of).unwrap_or_default();
                let wanted = stated.map(|wanted| format!("; the store needs {wanted}"));
                Failure::file(
                    path,
                    &format!(
                        "this is the root key of another store (its fingerprint is {found}{})",
                        wanted.unwrap_or_default()
                    ),
                )
                .hint("put back the root key that the store was made with, or that `root-key rotate` made last")
            }
            Self::Passphrase(_) => Failure::new("the passphrase is wrong, or the store is damaged")
                .hint("give the passphrase that the store was made with or last rotated to"),
            Self::Pkcs11(uri) => Failure::new(format!(
                "{uri}: this is not the key that wraps the root keys of this store"
            ))
            .hint("name the token and object that the store was made with"),
        }
    }
}

impl Source {
    /// Parses `env:NAME`, `file:PATH`, or nothing, which means to ask on the terminal.
    pub(crate) fn parse(text: &str) -> Result<Self, Failure> {
        match text.split_once(':') {
            Some(("env", name)) if !name.is_empty() => Ok(Self::Environment(name.to_owned())),
            Some(("file", path)) if !path.is_empty() => Ok(Self::File(PathBuf::from(path))),
            None if text.is_empty() => Ok(Self::Terminal),
            // The text may be the passphrase itself, by mistake: it is not quoted.
            _ => Err(Failure::new("the source of the passphrase is not valid")
                .hint("use env:NAME, file:PATH, or \"\" to be asked on the terminal")
                .code(2)),
        }
    }

    /// The passphrase of a private key in a file.
    pub(crate) fn read_for_key(&self) -> Result<Secret, Failure> {
        match self {
            Self::Terminal => ask("passphrase of the private key: "),
            other => other.read(),
        }
    }

    fn read(&self) -> Result<Secret, Failure> {
        let empty = |what: String| Failure::new(format!("{what} contains no passphrase"));
        match self {
            Self::Environment(name) => match std::env::var(name) {
                Ok(text) if !text.is_empty() => Ok(Secret::new(text.into_bytes())),
                _ => Err(empty(format!("the variable {name}"))
                    .hint("set it, or use passphrase:file:PATH or passphrase: instead")),
            },
            Self::File(path) => {
                let bytes = Secret::new(files::read(path, 64 * 1024)?);
                let line = bytes.expose().split(|byte| *byte == b'\n').next().unwrap_or_default();
                let line = line.strip_suffix(b"\r").unwrap_or(line);
                if line.is_empty() {
                    return Err(empty(path.display().to_string()));
                }
                Ok(Secret::new(line.to_vec()))
            }
            Self::Terminal => ask("passphrase of the root key: "),
        }
    }

    fn read_new(&self) -> Result<Secret, Failure> {
        let passphrase = self.read()?;
        if passphrase.len() < MIN_PASSPHRASE {
            return Err(Failure::new("the passphrase is too short").hint(format!(
                "use {MIN_PASSPHRASE} or more characters, such as six random words"
            )));
        }
        if matches!(self, Self::Terminal)
            && ask("repeat the passphrase: ")?.expose() != passphrase.expose()
        {
            return Err(Failure::new("the two passphrases differ"));
        }
        Ok(passphrase)
    }
}

/// Asks on the terminal, without echo.
fn ask(prompt: &str) -> Result<Secret, Failure> {
    let text = rpassword::prompt_password(prompt).map_err(|error| {
        Failure::new(format!("input cannot be read from the terminal: {error}"))
            .hint("without a terminal, use passphrase:env:NAME or passphrase:file:PATH")
    })?;
    Ok(Secret::new(text.into_bytes()))
}

fn read_file(path: &Path) -> Result<SoftwareKek, Failure> {
    if !files::exists(path)? {
        return Err(Failure::file(path, &"the root key file does not exist").hint(
            "the store cannot be opened without its root key; restore the file, or say where it is with --root-key",
        ));
    }
    let text = Secret::new(files::read(path, 1024)?);
    let mode = std::fs::metadata(path).map_or(0, |found| found.permissions().mode());
    if mode & 0o077 != 0 {
        crate::output::warning(&format!(
            "{}: other users can read the root key; to prevent that, run: chmod 600 {}",
            path.display(),
            shell::quoted(path)
        ));
    }
    std::str::from_utf8(text.expose())
        .ok()
        .and_then(|text| SoftwareKek::from_file(text).ok())
        .ok_or_else(|| {
            Failure::file(path, &"the file is not a root key")
                .hint("put back your safe copy of the file that outlast init made")
        })
}

fn derive(costs: &Costs, passphrase: &Secret) -> Result<Box<dyn Kek>, Failure> {
    let key = costs.derive(passphrase, aead::KEY_LEN)?;
    Ok(Box::new(SoftwareKek::from_passphrase(key)?))
}

fn costs_of(parameters: &Map<String, Value>) -> Option<Costs> {
    let number = |name: &str| u32::try_from(parameters.get(name)?.as_u64()?).ok();
    Some(Costs {
        salt: hex::decode(parameters.get("salt")?.as_str()?).ok()?,
        memory_kib: number("memory_kib")?,
        passes: number("passes")?,
        lanes: number("lanes")?,
    })
}

fn map(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_read_and_shown() {
        let base = Path::new("/srv");
        for (text, shown) in [
            ("file:root.key", "file:/srv/root.key"),
            ("file:/etc/k", "file:/etc/k"),
            ("passphrase:", "passphrase:"),
            ("passphrase:env:NAME", "passphrase:env:NAME"),
            ("passphrase:file:p", "passphrase:file:/srv/p"),
        ] {
            assert_eq!(Provider::parse(text, base).unwrap().to_string(), shown);
        }
        for bad in ["", "root.key", "file:", "passphrase:env:", "passphrase:word", "hsm:x"] {
            assert!(Provider::parse(bad, base).is_err(), "{bad}");
        }
    }

    #[test]
    fn weakened_parameters_are_refused() {
        let provider = Provider::parse("passphrase:env:PATH", Path::new("")).unwrap();
        let (_, mut parameters) = provider.create().unwrap();
        assert!(provider.open_stated("passphrase", Some(&parameters)).is_ok());
        parameters.insert("memory_kib".into(), 8.into());
        let failure = provider.open_stated("passphrase", Some(&parameters)).err().unwrap();
        assert!(failure.message().contains("too weak"));
    }

    #[test]
    fn only_a_token_is_certified() {
        let base = Path::new("/srv");
        let token = "pkcs11:token=t;object=o?module-path=/m.so&pin-source=file:p";
        let level_3 = Some("FIPS_140_2_LEVEL_3_OR_HIGHER");
        for (text, setting, expected) in [
            ("file:root.key", None, Ok(None)),
            ("file:root.key", level_3, Err("no token keeps")),
            ("passphrase:env:P", level_3, Err("no token keeps")),
            (token, None, Ok(None)),
            (token, level_3, Ok(level_3)),
            (token, Some("FIPS_140_3"), Err("not a known standard")),
        ] {
            let found = Provider::parse(text, base).unwrap().certified_to(setting);
            match (found, expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found.map(|row| row.name), expected),
                (Err(failure), Err(what)) => assert!(failure.message().contains(what), "{what}"),
                (found, _) => panic!("{text} {setting:?}: {found:?}"),
            }
        }
    }
}
