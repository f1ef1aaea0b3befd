//! Structures that several operations share, in AWS's shape.

pub mod acm_pca;
pub mod kms;

use std::collections::BTreeMap;

use outlast_domain::limits;

use crate::wire::{ApiError, validate};

/// Tags from a list of pairs; a key that comes twice is an error of the given name.
fn unique_tags(
    pairs: impl IntoIterator<Item = (String, String)>,
    code: &'static str,
) -> Result<BTreeMap<String, String>, ApiError> {
    let mut tags = BTreeMap::new();
    for (key, value) in pairs {
        let fits = (1..=limits::MAX_TAG_KEY).contains(&key.chars().count())
            && value.chars().count() <= limits::MAX_TAG_VALUE;
        if !fits || key.to_ascii_lowercase().starts_with("aws:") {
            let key = validate::shorten(&key);
            return Err(ApiError::new(
                code,
                format!("the tag key or value of '{key}' is not valid"),
            ));
        }
        if tags.len() == limits::MAX_TAGS {
            return Err(ApiError::new(code, format!("there are over {} tags", limits::MAX_TAGS)));
        }
        if tags.contains_key(&key) {
            return Err(ApiError::new(code, format!("the tag key '{key}' occurs twice")));
        }
        tags.insert(key, value);
    }
    Ok(tags)
}
