//! Structures that several operations share, in AWS's shape.

pub mod acm_pca;
pub mod kms;

use std::collections::BTreeMap;

use crate::wire::ApiError;

/// Tags from a list of pairs; a key that comes twice is an error of the given name.
fn unique_tags(
    pairs: impl IntoIterator<Item = (String, String)>,
    code: &'static str,
) -> Result<BTreeMap<String, String>, ApiError> {
    let mut tags = BTreeMap::new();
    for (key, value) in pairs {
        if tags.contains_key(&key) {
            return Err(ApiError::new(code, format!("the tag key '{key}' occurs twice")));
        }
        tags.insert(key, value);
    }
    Ok(tags)
}
