//! A certificate authority's name, as AWS's `ASN1Subject` gives it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::CaError;

/// Named fields; or attributes by OID, instead of fields.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subject {
    /// Values by AWS's field name, see [`outlast_pki::name::FIELDS`].
    pub fields: BTreeMap<String, String>,
    /// `(object identifier, value)`.
    pub custom: Vec<(String, String)>,
}

impl Subject {
    /// The X.509 name.
    pub fn to_name(&self) -> Result<outlast_pki::name::Name, CaError> {
        if !self.fields.is_empty() && !self.custom.is_empty() {
            return Err(CaError::InvalidArgs(
                "CustomAttributes cannot be combined with other subject fields".into(),
            ));
        }
        if self.fields.is_empty() && self.custom.is_empty() {
            return Err(CaError::InvalidArgs("the subject must not be empty".into()));
        }
        let fields: Vec<_> =
            self.fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        outlast_pki::name::name(&fields, &self.custom)
            .map_err(|error| CaError::InvalidArgs(error.to_string()))
    }
}
