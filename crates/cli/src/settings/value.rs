//! Kinds of values of settings.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::values::ListenAddress;

/// A kind of value.
pub(crate) trait Value: Sized {
    /// Name in the documentation.
    const KIND: &'static str;

    /// The value as read from a settings file: relative paths are below the data folder.
    fn below(self, _folder: &Path) -> Self {
        self
    }

    /// The value as text.
    fn shown(&self) -> String;
}

macro_rules! plain {
    ($($type:ty: $kind:literal),+) => {
        $(impl Value for $type {
            const KIND: &'static str = $kind;

            fn shown(&self) -> String {
                self.to_string()
            }
        })+
    };
}

plain!(ListenAddress: "address", SocketAddr: "address", String: "text", bool: "true or false");
plain!(u16: "number", u32: "number", u64: "number", usize: "number", i64: "number");

impl Value for PathBuf {
    const KIND: &'static str = "path";

    fn below(self, folder: &Path) -> Self {
        folder.join(self)
    }

    fn shown(&self) -> String {
        self.display().to_string()
    }
}

impl Value for Vec<PathBuf> {
    const KIND: &'static str = "list of paths";

    fn below(self, folder: &Path) -> Self {
        self.into_iter().map(|path| folder.join(path)).collect()
    }

    fn shown(&self) -> String {
        self.iter().map(Value::shown).collect::<Vec<_>>().join(",")
    }
}

impl Value for Vec<String> {
    const KIND: &'static str = "list of texts";

    fn shown(&self) -> String {
        self.join(",")
    }
}

/// Sets of names by their owner.
impl Value for BTreeMap<String, BTreeSet<String>> {
    const KIND: &'static str = "table of lists";

    fn shown(&self) -> String {
        let rows = self.iter().map(|(key, names)| {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            format!("{key}={}", names.join(","))
        });
        rows.collect::<Vec<_>>().join(" ")
    }
}

/// Texts by two names, such as an account and a Region.
impl Value for BTreeMap<String, BTreeMap<String, String>> {
    const KIND: &'static str = "table of tables";

    fn shown(&self) -> String {
        let rows = self.iter().flat_map(|(key, inner)| {
            inner.iter().map(move |(name, text)| format!("{key}/{name}={text}"))
        });
        rows.collect::<Vec<_>>().join(" ")
    }
}

/// Targets of events, by name.
#[derive(Clone, Default, Deserialize)]
#[serde(transparent)]
pub(crate) struct EventTargets(pub(crate) BTreeMap<String, EventTarget>);

/// A target of events, unchecked.
#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a target of events: a table with url or program")]
pub(crate) struct EventTarget {
    /// Where to post events.
    pub(crate) url: Option<String>,
    /// What to run instead, with its arguments.
    pub(crate) program: Option<Vec<String>>,
    /// PEM file with the certificates to trust.
    pub(crate) ca_bundle: Option<PathBuf>,
    /// File with a bearer token.
    pub(crate) bearer_token_file: Option<PathBuf>,
    /// Whether plain HTTP may leave this machine.
    pub(crate) allow_plain: Option<bool>,
    /// `source` of the events that are wanted.
    pub(crate) sources: Option<BTreeSet<String>>,
    /// `detail-type` of the events that are wanted.
    pub(crate) detail_types: Option<BTreeSet<String>>,
    /// Longest delivery.
    pub(crate) timeout_seconds: Option<u32>,
}

impl Value for EventTargets {
    const KIND: &'static str = "table of targets";

    fn below(mut self, folder: &Path) -> Self {
        for target in self.0.values_mut() {
            for path in [&mut target.ca_bundle, &mut target.bearer_token_file].into_iter().flatten()
            {
                *path = folder.join(&path);
            }
        }
        self
    }

    /// Without the paths of URLs: they may be secret.
    fn shown(&self) -> String {
        let where_to = |target: &EventTarget| match (&target.url, &target.program) {
            (Some(url), _) => url.split('/').take(3).collect::<Vec<_>>().join("/"),
            (None, Some(words)) => words.first().cloned().unwrap_or_default(),
            (None, None) => String::new(),
        };
        let rows = self.0.iter().map(|(name, target)| format!("{name}={}", where_to(target)));
        rows.collect::<Vec<_>>().join(" ")
    }
}

/// Text that may contain a path, and the folder that the path is relative to.
#[derive(Debug, Clone, Deserialize)]
#[serde(from = "String")]
pub(crate) struct Located {
    /// The text, as given.
    pub(crate) text: String,
    /// Folder for relative paths; empty for the working folder.
    pub(crate) base: PathBuf,
}

impl From<String> for Located {
    fn from(text: String) -> Self {
        Self { text, base: PathBuf::new() }
    }
}

impl Value for Located {
    const KIND: &'static str = "text";

    fn below(self, folder: &Path) -> Self {
        Self { base: folder.to_path_buf(), ..self }
    }

    fn shown(&self) -> String {
        self.text.clone()
    }
}
