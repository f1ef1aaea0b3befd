//! Files that say what functions are: TOML tables whose keys are the ARNs that AWS's APIs name.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use outlast_domain::arn::Arn;
use outlast_net::client::Connector;
use serde::de::DeserializeOwned;

use crate::failure::Failure;
use crate::{files, trust};

/// Largest file, in bytes.
const MAX_FILE: usize = 1 << 20;

/// What a function is whose event is a secret.
pub(crate) enum Reached {
    /// Lambda's invocation interface.
    Url { url: String, tls: Option<Connector> },
    /// A program, with its arguments.
    Program(Vec<String>),
}

impl Reached {
    /// That of an entry with these keys; the path begins at the folder `beside`.
    pub(crate) fn of(
        url: Option<String>,
        program: Option<Vec<String>>,
        ca_bundle: Option<PathBuf>,
        beside: &Path,
    ) -> Result<Self, Failure> {
        let tls = ca_bundle.map(|path| trust::connector(&beside.join(path))).transpose()?;
        match (url, program) {
            (Some(url), None) => {
                outlast_net::post::check_url(&url, false).map_err(|_| {
                    Failure::new("url must be one of HTTPS, or of HTTP on this machine")
                })?;
                if url.starts_with("https://") && tls.is_none() {
                    return Err(Failure::new("ca_bundle is needed to verify the URL's server"));
                }
                Ok(Self::Url { url, tls })
            }
            (None, Some(words)) if !words.is_empty() => Ok(Self::Program(words)),
            _ => Err(Failure::new("exactly one of url and program is needed")),
        }
    }
}

/// Reads a file. `make` makes a function of its entry; relative paths in it begin at the folder that `make` gets.
pub(crate) fn read<E: DeserializeOwned, F>(
    path: &Path,
    make: impl Fn(E, &Arn, &Path) -> Result<F, Failure>,
) -> Result<BTreeMap<String, F>, Failure> {
    let bytes = files::read(path, MAX_FILE)?;
    let text = String::from_utf8(bytes).map_err(|error| Failure::file(path, &error))?;
    let beside = path.parent().unwrap_or(Path::new("."));
    parse(&text, beside, make)
        .map_err(|failure| Failure::new(format!("{}: {}", path.display(), failure.message())))
}

/// Reads the text of such a file.
pub(crate) fn parse<E: DeserializeOwned, F>(
    text: &str,
    beside: &Path,
    make: impl Fn(E, &Arn, &Path) -> Result<F, Failure>,
) -> Result<BTreeMap<String, F>, Failure> {
    let entries: BTreeMap<String, E> =
        toml::from_str(text).map_err(|error| Failure::new(error.to_string().trim().to_owned()))?;
    let mut functions = BTreeMap::new();
    for (name, entry) in entries {
        let arn = Arn::parse(&name).filter(|arn| !arn.account().is_empty());
        let Some(arn) = arn.filter(|arn| arn.of("lambda", "function:").is_some()) else {
            return Err(Failure::new(format!("{name} is not the ARN of a function"))
                .hint("name functions as AWS does: arn:aws:lambda:REGION:ACCOUNT:function:NAME"));
        };
        let function = make(entry, &arn, beside)
            .map_err(|failure| Failure::new(format!("{name}: {}", failure.message())))?;
        functions.insert(name, function);
    }
    Ok(functions)
}
