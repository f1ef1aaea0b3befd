//! A target of events: a URL that takes JSON, or a program that reads it from its standard input.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use http::HeaderValue;
use http::header::AUTHORIZATION;
use outlast_domain::events::{KINDS, Kind};
use outlast_domain::settings;
use outlast_negotiate::names::nearest;
use outlast_net::client::Connector;
use outlast_net::post::{Post, check_url};
use serde_json::Value;

use crate::failure::Failure;
use crate::settings::EventTarget;
use crate::{files, program, trust};

/// Targets at most.
const MAX_TARGETS: usize = 16;
/// Characters of a name.
const MAX_NAME: usize = 64;
/// Seconds that a delivery may take, unless the settings say otherwise.
const TIMEOUT_SECONDS: u32 = 30;
/// Seconds that a delivery may take at most.
const MAX_TIMEOUT_SECONDS: u32 = 300;
/// Longest token file, in bytes.
const MAX_TOKEN: usize = 8192;

/// A target.
pub(crate) struct Target {
    /// Its name.
    pub(crate) name: String,
    /// Longest delivery.
    pub(crate) timeout: Duration,
    way: Way,
    sources: BTreeSet<String>,
    detail_types: BTreeSet<String>,
}

/// How events get there.
enum Way {
    /// By HTTP.
    Url { url: String, tls: Option<Connector>, token: Option<PathBuf> },
    /// By a program, with its arguments.
    Program(Vec<String>),
}

/// Checks the targets.
pub(super) fn choose(targets: BTreeMap<String, EventTarget>) -> Result<Vec<Target>, Failure> {
    let about = |failure: Failure| failure.about("events.targets");
    if targets.len() > MAX_TARGETS {
        let failure = Failure::new(format!("there can be {MAX_TARGETS} targets at most"));
        return Err(about(failure.hint("let one program pass events on")));
    }
    let checked = targets.into_iter().map(|(name, target)| {
        let shown: String = name.chars().take(MAX_NAME).collect();
        check(name, target).map_err(|failure| about(failure.prefixed(&format!("target {shown}"))))
    });
    checked.collect()
}

fn check(name: String, target: EventTarget) -> Result<Target, Failure> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if name.is_empty() || name.len() > MAX_NAME || !name.chars().all(is_plain) {
        return Err(Failure::new("its name is not one of letters, digits, - and _")
            .hint(format!("choose a name of at most {MAX_NAME} characters, such as pager")));
    }
    let seconds = target.timeout_seconds.unwrap_or(TIMEOUT_SECONDS);
    if !(1..=MAX_TIMEOUT_SECONDS).contains(&seconds) {
        let text = format!("timeout_seconds must be between 1 and {MAX_TIMEOUT_SECONDS}");
        return Err(Failure::new(text).hint(format!("leave it out for {TIMEOUT_SECONDS}")));
    }
    let of_url = [
        ("ca_bundle", target.ca_bundle.is_some()),
        ("bearer_token_file", target.bearer_token_file.is_some()),
        ("allow_plain", target.allow_plain.is_some()),
    ];
    let way = match (target.url, target.program) {
        (Some(url), None) => {
            let allow_plain = target.allow_plain.unwrap_or(false);
            check_url(&url, allow_plain).map_err(|reason| {
                Failure::new(format!("its url cannot be used: {reason}")).hint(
                    "give an https:// URL, or set allow_plain = true if the network is trusted",
                )
            })?;
            let tls = target.ca_bundle.as_deref().map(trust::connector).transpose()?;
            if url.starts_with("https://") && tls.is_none() {
                return Err(Failure::new("ca_bundle is missing")
                    .hint("name a PEM file with the CA certificates that the URL's server has"));
            }
            if let Some(path) = &target.bearer_token_file {
                authorization(path)?;
            }
            Way::Url { url, tls, token: target.bearer_token_file }
        }
        (None, Some(words)) if !words.is_empty() => {
            if let Some((odd, _)) = of_url.iter().find(|(_, is_given)| *is_given) {
                return Err(Failure::new(format!("{odd} belongs to url"))
                    .hint("leave it out, or give a url instead of the program"));
            }
            Way::Program(words)
        }
        _ => {
            return Err(Failure::new("it needs either url or program")
                .hint("give a url that takes JSON, or a program with its arguments as a list"));
        }
    };
    let sources = known(target.sources, "source", |kind| kind.source)?;
    let detail_types = known(target.detail_types, "detail-type", |kind| kind.detail_type)?;
    let target =
        Target { name, timeout: Duration::from_secs(seconds.into()), way, sources, detail_types };
    if target.kind().is_none() {
        return Err(Failure::new("no event has both a source and a detail-type that it names")
            .hint("docs/guide/events.md lists the events; leave sources out to name types alone"));
    }
    Ok(target)
}

/// The names of a filter, which must all occur among the kinds.
fn known(
    names: Option<BTreeSet<String>>,
    what: &str,
    of: fn(&Kind) -> &'static str,
) -> Result<BTreeSet<String>, Failure> {
    let names = names.unwrap_or_default();
    let all: BTreeSet<_> = KINDS.iter().map(|kind| of(kind)).collect();
    match names.iter().find(|name| !all.contains(name.as_str())) {
        None => Ok(names),
        Some(odd) => {
            let shown: String = odd.chars().take(100).collect();
            let list = "docs/guide/events.md lists the events";
            Err(Failure::new(format!("no event has the {what} {shown}")).hint(
                match nearest(odd, all.iter().copied()) {
                    Some(meant) => format!("did you mean {meant}? {list}"),
                    None => list.to_owned(),
                },
            ))
        }
    }
}

/// The header with the token of a file.
fn authorization(path: &Path) -> Result<HeaderValue, Failure> {
    let bytes = files::read(path, MAX_TOKEN)?;
    let token = [b"Bearer ", bytes.trim_ascii()].concat();
    let mut value = HeaderValue::from_bytes(&token)
        .ok()
        .filter(|_| !bytes.trim_ascii().is_empty())
        .ok_or_else(|| {
            Failure::file(path, &"it does not hold a bearer token")
                .hint("write the token alone into the file, on one line")
        })?;
    value.set_sensitive(true);
    Ok(value)
}

impl Target {
    /// Which events it wants.
    pub(super) fn wanted(&self) -> settings::EventTarget {
        settings::EventTarget {
            name: self.name.clone(),
            sources: self.sources.clone(),
            detail_types: self.detail_types.clone(),
        }
    }

    /// A kind of event that it wants.
    pub(crate) fn kind(&self) -> Option<&'static Kind> {
        let wanted = self.wanted();
        KINDS.iter().copied().find(|kind| wanted.wants(kind.source, kind.detail_type))
    }

    /// Delivers an event.
    ///
    /// # Errors
    /// Why it was not delivered, for the log.
    pub(crate) async fn send(&self, event: &Value) -> Result<(), String> {
        match &self.way {
            Way::Program(words) => program::run(words, event, &[], self.timeout).await,
            Way::Url { url, tls, token } => {
                // Read for each delivery, so that a new token takes effect at once.
                let token = token.as_deref().map(authorization).transpose();
                let token = token.map_err(|failure| failure.message().to_owned())?;
                let post = Post {
                    url,
                    tls: tls.as_ref(),
                    headers: token.map(|token| (AUTHORIZATION, token)).into_iter().collect(),
                    json: event,
                    timeout: self.timeout,
                    max_answer: 0,
                    whom: "the target",
                };
                match post.send().await?.status() {
                    status if status.is_success() => Ok(()),
                    status => Err(format!("the target answered {}", status.as_u16())),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(entry: &str) -> Result<Vec<Target>, Failure> {
        choose(toml::from_str(&format!("[t]\n{entry}\n")).unwrap())
    }

    #[test]
    fn each_way_is_read() {
        let place = tempfile::tempdir().unwrap();
        let token = place.path().join("token");
        std::fs::write(&token, "secret\n").unwrap();
        for entry in [
            "url = 'http://127.0.0.1:9000/events'".to_owned(),
            "url = 'http://a.example/'\nallow_plain = true".to_owned(),
            format!("url = 'http://localhost/'\nbearer_token_file = '{}'", token.display()),
            "program = ['/bin/mail', '-v']\ntimeout_seconds = 300".to_owned(),
            "program = ['/bin/mail']\nsources = ['aws.acm', 'aws.kms']".to_owned(),
            "program = ['/bin/mail']\ndetail_types = ['KMS CMK Deletion']".to_owned(),
        ] {
            assert_eq!(parse(&entry).unwrap().len(), 1, "{entry}");
        }
        let header = authorization(&token).unwrap();
        assert_eq!(header, "Bearer secret");
        assert!(!format!("{header:?}").contains("secret"));
    }

    #[test]
    fn other_entries_are_refused() {
        for (entry, expected) in [
            ("", "either url or program"),
            ("program = []", "either url or program"),
            ("url = 'http://localhost'\nprogram = ['a']", "either url or program"),
            ("url = 'https://a.example'", "ca_bundle is missing"),
            ("url = 'http://a.example'", "plain HTTP"),
            ("url = 'https://a.example'\nca_bundle = '/none'", "/none"),
            ("url = 'http://localhost'\nbearer_token_file = '/none'", "/none"),
            ("program = ['a']\nbearer_token_file = '/none'", "bearer_token_file belongs to url"),
            ("program = ['a']\ntimeout_seconds = 0", "timeout_seconds"),
            ("program = ['a']\nsources = ['acm']", "no event has the source acm"),
            (
                "program = ['a']\ndetail_types = ['KMS CMK Deletoin']",
                "no event has the detail-type",
            ),
            (
                "program = ['a']\nsources = ['aws.acm']\ndetail_types = ['KMS CMK Deletion']",
                "both a source",
            ),
        ] {
            let failure = parse(entry).err().unwrap();
            assert!(failure.message().contains(expected), "{entry}: {}", failure.message());
            assert!(failure.message().starts_with("target t: "), "{}", failure.message());
        }
        for name in ["", "a/b", "a b", "ä", &"a".repeat(65)] {
            let entry = EventTarget { program: Some(vec!["a".into()]), ..EventTarget::default() };
            assert!(choose(BTreeMap::from([(name.to_owned(), entry)])).is_err(), "{name}");
        }
        let many = (0..17).map(|number| {
            let entry = EventTarget { program: Some(vec!["a".into()]), ..EventTarget::default() };
            (format!("t{number}"), entry)
        });
        assert!(choose(many.collect()).err().unwrap().message().contains("16 targets"));
    }
}
