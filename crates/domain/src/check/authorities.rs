//! Private CA's records: those of authorities and of the certificates that they issued.
//!
//! An erased authority leaves its certificates, their revocations, its reports and the entry of its key in the index by
//! issuers; its other records are erased with it.

use outlast_pki::certificate::Certificate;
use serde_json::Value;

use super::Look;
use crate::arn::{Arn, current};
use crate::ca::{REVOCATION_REASONS, report};
use crate::policy::{Kind, Policy};

impl Look<'_> {
    /// Checks a record, if it is one of these.
    pub(super) fn of_authorities(&mut self, record_key: &str, value: &Value) -> bool {
        let text = |name: &str| value.get(name).and_then(Value::as_str);
        // Account, Region and authority, and the rest.
        let below = |prefix: &str| {
            let rest = record_key.strip_prefix(prefix)?;
            let end = rest.match_indices('/').nth(2).map_or(rest.len(), |(at, _)| at);
            Some((rest[..end].to_owned(), rest[end..].trim_start_matches('/').to_owned()))
        };
        if let Some((owner, serial)) = below("ca/certificate/") {
            self.report.certificates += 1;
            let certificate = text("certificate").map(|pem| Certificate::parse_one(pem.as_bytes()));
            match certificate {
                Some(Ok(found)) if hex::encode(found.serial()) == serial => {}
                Some(Ok(_)) => self.problem(record_key, "it has another serial number"),
                _ => self.problem(record_key, "its certificate cannot be read"),
            }
            if let Some(id) = text("chain_id") {
                self.wanted_chains.insert(format!("ca/chain/{owner}/{id}"));
            }
            if let Some(partner) = text("paired_with")
                && !certificate_record_key(partner).is_some_and(|at| self.is_stored(&at))
            {
                self.problem(record_key, "the certificate that it is paired with is missing");
            }
        } else if let Some((owner, id)) = below("ca/chain/") {
            self.chains.insert(format!("ca/chain/{owner}/{id}"));
        } else if let Some((owner, serial)) = below("ca/revoked/") {
            if !text("reason").is_some_and(|reason| REVOCATION_REASONS.contains(&reason)) {
                self.problem(record_key, "its reason is unknown");
            }
            if !self.is_stored(&format!("ca/certificate/{owner}/{serial}")) {
                self.problem(record_key, "the revoked certificate is missing");
            }
        } else if let Some((owner, _)) = below("ca/policy/") {
            let policy = text("text").map(|text| Policy::parse_stored(text, Kind::Authority));
            if !matches!(policy, Some(Ok(_))) {
                self.problem(record_key, "the policy cannot be read");
            }
            let accounts = value.get("accounts").and_then(Value::as_array);
            let parts: Vec<_> = owner.split('/').collect();
            if let [account, region, id] = parts[..] {
                let named = accounts.into_iter().flatten().filter_map(Value::as_str);
                self.wanted_shares
                    .extend(named.map(|with| format!("ca/shared/{with}/{region}/{account}/{id}")));
            }
        } else if record_key.starts_with("ca/shared/") {
            self.shares.insert(record_key.to_owned());
        } else if record_key.starts_with(report::PENDING_PREFIX) {
            let report = text("report").map(str::to_owned);
            if !report.is_some_and(|at| self.is_stored(&at)) {
                self.problem(record_key, "the report that has to be written is missing");
            }
        } else if record_key.starts_with("ca/report/") {
            if serde_json::from_value::<report::Report>(value.clone()).is_err() {
                self.problem(record_key, "the report cannot be read");
            }
        } else if record_key.starts_with("ca/token/") {
            let made =
                text("arn").map(|arn| (arn.contains("/certificate/"), certificate_record_key(arn)));
            match made {
                None => self
                    .problem(record_key, "the token does not name the resource that was created"),
                Some((true, at)) if !at.as_ref().is_some_and(|at| self.is_stored(at)) => {
                    self.problem(
                        record_key,
                        "the certificate that was issued with this token is missing",
                    );
                }
                Some(_) => {}
            }
        } else {
            return record_key.starts_with("ca/permission/");
        }
        true
    }

    /// Checks that need all records.
    pub(super) fn authority_relations(&self, found: &mut Vec<(String, &'static str)>) {
        for record_key in self.wanted_chains.difference(&self.chains) {
            found.push((record_key.clone(), "the chain of issued certificates is missing"));
        }
        for record_key in self.wanted_shares.difference(&self.shares) {
            found.push((
                record_key.clone(),
                "a policy shares a CA with this account, but this record is missing",
            ));
        }
        for record_key in self.shares.difference(&self.wanted_shares) {
            found.push((record_key.clone(), "no policy shares this CA with the account"));
        }
    }

    /// Whether such a record exists. Called only for records that are never deleted.
    fn is_stored(&self, record_key: &str) -> bool {
        self.store.read(record_key).is_ok_and(|record| record.is_some())
    }
}

/// Record key of the certificate with this ARN.
fn certificate_record_key(arn: &str) -> Option<String> {
    let parsed = Arn::parse(&current(arn))?;
    let rest = parsed.of("acm-pca", "certificate-authority/")?;
    let (authority, serial) = rest.split_once("/certificate/")?;
    Some(format!("ca/certificate/{}/{}/{authority}/{serial}", parsed.account(), parsed.region()))
}
