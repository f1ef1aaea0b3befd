//! `[limits]` of the settings: the quotas of accounts.

use std::collections::BTreeMap;

use outlast_domain::quotas::{QUOTAS, Quotas};

use crate::failure::Failure;

/// Checks the section: numbers by the names of quotas.
pub(crate) fn choose(said: &BTreeMap<String, u64>) -> Result<Quotas, Failure> {
    let mut quotas = Quotas::default();
    for (name, most) in said {
        if !quotas.set(name, *most) {
            let known: Vec<_> = QUOTAS.iter().map(|quota| quota.name).collect();
            return Err(Failure::new(format!("there is no limit limits.{name}"))
                .hint(format!("choose one of {}", known.join(", ")))
                .about("limits"));
        }
    }
    Ok(quotas)
}
