//! Structures that several operations share, in AWS's shape.

pub mod acm;
pub mod acm_acme;
pub mod acm_certificate;
pub mod acm_pca;
pub mod acm_search;
pub mod artifact_log;
pub mod connectors;
pub mod create_session;
pub mod kms;
pub mod outlast;
pub mod rolesanywhere;
pub mod secretsmanager;
pub mod ssh_ca;
pub mod transfer;
pub mod workflows;

use std::collections::BTreeMap;

use outlast_domain::policy::ConditionKeys;
use outlast_domain::{limits, tags};

use crate::wire::{ApiError, validate};

/// Reads tags from a list of pairs; a repeated key is an error with the given name.
pub fn unique_tags(
    pairs: impl IntoIterator<Item = (String, String)>,
    code: &'static str,
) -> Result<BTreeMap<String, String>, ApiError> {
    unique_tags_or(pairs, code, &[])
}

/// The same where callers may set some of the keys that AWS reserves.
pub fn unique_tags_or(
    pairs: impl IntoIterator<Item = (String, String)>,
    code: &'static str,
    of_callers: &[&str],
) -> Result<BTreeMap<String, String>, ApiError> {
    let mut tags = BTreeMap::new();
    for (key, value) in pairs {
        let fits = (1..=limits::MAX_TAG_KEY).contains(&key.chars().count())
            && value.chars().count() <= limits::MAX_TAG_VALUE;
        if key.to_ascii_lowercase().starts_with("aws:") && !of_callers.contains(&key.as_str()) {
            return Err(ApiError::new(code, "Tags beginning with aws: are reserved"));
        }
        if !fits {
            let key = validate::shorten(&key);
            return Err(ApiError::new(
                code,
                format!("the tag key or value of '{key}' is not valid"),
            ));
        }
        if tags.len() == limits::MAX_TAGS {
            return Err(ApiError::new(code, "Too many tags"));
        }
        if tags.contains_key(&key) {
            return Err(ApiError::new(code, "Duplicate tag keys"));
        }
        tags.insert(key, value);
    }
    match tags::clash(&tags, tags.keys()) {
        None => Ok(tags),
        Some(clash) => Err(ApiError::new(code, tags::refusal(clash))),
    }
}

/// Sets the condition keys about the tags of a request.
pub fn request_tags(conditions: &mut ConditionKeys, tags: &BTreeMap<String, String>) {
    conditions.set_request_tags(tags);
}

/// A page of up to `limit` tags, in order of key, that come after the key `after`; and the marker of the next page,
/// if there is one.
pub fn page_of_tags(
    tags: &BTreeMap<String, String>,
    after: Option<&str>,
    limit: usize,
) -> (Vec<(String, String)>, Option<String>) {
    let mut rest = tags.iter().filter(|(name, _)| after.is_none_or(|after| name.as_str() > after));
    let page: Vec<_> =
        rest.by_ref().take(limit).map(|(name, value)| (name.clone(), value.clone())).collect();
    let next = match (rest.next(), page.last()) {
        (Some(_), Some((last, _))) => Some(marker::wrap(last)),
        _ => None,
    };
    (page, next)
}

/// Markers of lists: the last item of the previous page, in base64 so that nobody relies on their contents.
pub mod marker {
    use base64::Engine;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;

    use crate::wire::ApiError;

    /// AWS's limit on the length of a marker, in bytes. The longest item is a tag key of 128 characters.
    const MAX_LEN: usize = 1024;

    /// Encodes the last item of a page.
    pub fn wrap(last: &str) -> String {
        URL_SAFE_NO_PAD.encode(last)
    }

    /// Reverses [`wrap`]; `code` names the service's error for an invalid marker.
    pub fn unwrap(marker: Option<&str>, code: &'static str) -> Result<Option<String>, ApiError> {
        let Some(marker) = marker else { return Ok(None) };
        let bytes = (marker.len() <= MAX_LEN).then(|| URL_SAFE_NO_PAD.decode(marker).ok());
        bytes
            .flatten()
            .and_then(|bytes| String::from_utf8(bytes).ok())
            .filter(|text| !text.is_empty() && !text.contains(char::is_control))
            .map(Some)
            .ok_or_else(|| ApiError::new(code, "The marker was not issued by this service."))
    }
}
