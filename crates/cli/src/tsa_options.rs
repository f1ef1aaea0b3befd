//! Time-stamping authorities, according to the settings.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use outlast_api::service::tsa::{ClockCheck, Settings};
use outlast_domain::limits::Rate;
use outlast_domain::tsa::Authority;
use outlast_net::server::system_clock;
use outlast_pki::ObjectIdentifier;
use outlast_pki::timestamp::Accuracy;

use crate::failure::Failure;
use crate::settings::Tsa;

/// `anyPolicy` (RFC 5280, section 4.2.1.4): the policy of tokens whose authority has none of its own.
const ANY_POLICY: &str = "2.5.29.32.0";

/// Requests at once, in seconds of the rate.
const BURST_SECONDS: i64 = 5;

/// How far the file may be ahead of the clock, in milliseconds: its file system has coarse times.
const AHEAD_MS: i64 = 1000;

/// Checks the settings. Whether the keys can sign is known when somebody asks for a token.
pub(crate) fn choose(said: Tsa) -> Result<Settings, Failure> {
    let default = Settings::default();
    let seconds = said.synchronised_seconds();
    let ordering = said.ordering();
    let rate = |wanted: Option<u32>, key: &'static str, otherwise: Rate| match wanted {
        None => Ok(otherwise),
        Some(0) => Err(Failure::new("no token could be made").hint("name at least one").about(key)),
        Some(wanted) => {
            let per_second = i64::from(wanted);
            Ok(Rate { at_once: per_second * BURST_SECONDS, per_second })
        }
    };
    let accuracy = said.accuracy_ms.map(|ms| Accuracy { micros: u64::from(ms) * 1000 });
    Ok(Settings {
        authorities: authorities(
            &said.authorities.unwrap_or_default(),
            said.default_authority.as_deref(),
        )?,
        callers: said.callers.unwrap_or_default(),
        accuracy,
        ordering,
        clock: said.synchronised_file.map(|path| check(path, i64::from(seconds))),
        rate: rate(said.per_second, "tsa.per_second", default.rate)?,
        rate_of_peer: rate(said.per_address, "tsa.per_address", default.rate_of_peer)?,
    })
}

/// The authorities, the one of `/tsa` first.
fn authorities(
    said: &BTreeMap<String, BTreeMap<String, String>>,
    default: Option<&str>,
) -> Result<Vec<Authority>, Failure> {
    const ROW: &str = "tsa.authorities";
    let form = "write { release = { key = \"arn:aws:kms:...:alias/tsa\", policies = \"1.3.6.1.4.1.99999.1\" } }";
    let refuse = |what: String| Failure::new(what).hint(form).about(ROW);
    let mut out = Vec::new();
    for (name, members) in said {
        if let Some(odd) = members.keys().find(|key| !matches!(key.as_str(), "key" | "policies")) {
            return Err(refuse(format!("{name} has the unknown key {odd}")));
        }
        let key = members.get("key").ok_or_else(|| refuse(format!("{name} has no key")))?;
        let policies = members.get("policies").map_or(ANY_POLICY, String::as_str);
        let policies = policies
            .split([' ', ','])
            .filter(|text| !text.is_empty())
            .map(|text| {
                let parsed = ObjectIdentifier::new(text);
                parsed.map_err(|_| refuse(format!("{text} is not an object identifier")))
            })
            .collect::<Result<Vec<_>, _>>()?;
        let authority = Authority::new(name, key, policies);
        out.push(authority.map_err(|reason| refuse(format!("{name}: {reason}")))?);
    }
    match default {
        Some(wanted) => {
            let at =
                out.iter().position(|authority| authority.name == wanted).ok_or_else(|| {
                    Failure::new(format!("there is no authority {wanted}"))
                        .hint("name one of tsa.authorities")
                        .about("tsa.default_authority")
                })?;
            out.swap(0, at);
        }
        None if out.len() > 1 => {
            return Err(Failure::new("several authorities, and none is that of /tsa")
                .hint("name one with default_authority")
                .about("tsa.default_authority"));
        }
        None => {}
    }
    Ok(out)
}

/// Compares the age of the file at each token.
fn check(path: PathBuf, seconds: i64) -> ClockCheck {
    Arc::new(move || synchronised(&path, seconds, system_clock()))
}

fn synchronised(path: &Path, seconds: i64, now_ms: i64) -> Result<(), String> {
    let touched = std::fs::metadata(path)
        .and_then(|metadata| metadata.modified())
        .map_err(|error| format!("{}: {error}", path.display()))?;
    let touched = touched.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis());
    let age_ms = now_ms.saturating_sub(i64::try_from(touched).unwrap_or(i64::MAX));
    if age_ms < -AHEAD_MS {
        return Err(format!("{} is from the future: the clock was set back", path.display()));
    }
    if age_ms > seconds.saturating_mul(1000) {
        return Err(format!("{} is {} s old", path.display(), age_ms / 1000));
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may fail")]
mod tests {
    use super::*;

    #[test]
    fn authorities_and_rates_are_checked() {
        let parse = |text: &str| choose(toml::from_str(text).unwrap());
        let key = "arn:aws:kms:us-east-1:123456789012:alias/tsa";
        let one = format!("authorities = {{ a = {{ key = '{key}' }} }}\n");
        let found = parse(&one).unwrap();
        assert_eq!(found.authorities.len(), 1);
        let two = format!(
            "authorities = {{ a = {{ key = '{key}' }}, b = {{ key = '{key}', policies = '1.2.3, 1.2.4' }} }}\n"
        );
        let found = parse(&format!("{two}default_authority = 'b'\nper_address = 3")).unwrap();
        assert_eq!(found.authorities[0].name, "b");
        assert_eq!(found.rate_of_peer, Rate { at_once: 15, per_second: 3 });
        assert!(parse("").unwrap().authorities.is_empty());
        for (text, reason) in [
            (two.as_str(), "several authorities"),
            (&format!("{one}default_authority = 'c'"), "no authority c"),
            (&format!("{one}per_second = 0"), "no token"),
            ("authorities = { a = { key = 'alias/tsa' } }", "not the ARN of a KMS key"),
            ("authorities = { a = { } }", "a has no key"),
            (&format!("authorities = {{ a = {{ key = '{key}', x = '1' }} }}"), "unknown key x"),
            (&format!("authorities = {{ 'a/b' = {{ key = '{key}' }} }}"), "letters"),
            (&format!("authorities = {{ a = {{ key = '{key}', policies = '1.x' }} }}"), "1.x"),
            (&format!("authorities = {{ a = {{ key = '{key}', policies = '' }} }}"), "a policy"),
        ] {
            let Err(failure) = parse(text) else { panic!("{text}") };
            assert!(failure.message().contains(reason), "{text}: {}", failure.message());
        }
    }

    #[test]
    fn a_file_shows_that_the_clock_is_synchronised() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("synchronised");
        let now = system_clock();
        assert!(synchronised(&path, 100, now).is_err());
        std::fs::write(&path, b"").unwrap();
        let metadata = std::fs::metadata(&path).unwrap().modified().unwrap();
        let touched = metadata.duration_since(UNIX_EPOCH).unwrap().as_millis();
        let touched = i64::try_from(touched).unwrap();
        for (later_ms, is_good) in [(0, true), (99_000, true), (101_000, false), (-5000, false)] {
            assert_eq!(synchronised(&path, 100, touched + later_ms).is_ok(), is_good, "{later_ms}");
        }
    }
}
