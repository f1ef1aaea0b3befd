//! Private CA's records: what belongs to authorities and to the certificates that they have issued.
//!
//! An authority that was erased leaves its certificates, their revocations and its reports; the rest goes with it.

use outlast_pki::certificate::Certificate;
use serde_json::Value;

use super::Look;
use crate::arn::{Arn, current};
use crate::ca::{REVOCATION_REASONS, report};
use crate::policy::{Kind, Policy};

impl Look<'_> {
    /// Looks at a record, if it is one of these.
    pub(super) fn of_authorities(&mut self, place: &str, value: &Value) -> bool {
        let text = |name: &str| value.get(name).and_then(Value::as_str);
        // Account, region and authority, and what follows.
        let below = |prefix: &str| {
            let rest = place.strip_prefix(prefix)?;
            let end = rest.match_indices('/').nth(2).map_or(rest.len(), |(at, _)| at);
            Some((rest[..end].to_owned(), rest[end..].trim_start_matches('/').to_owned()))
        };
        if let Some((owner, serial)) = below("ca/certificate/") {
            self.report.certificates += 1;
            let certificate = text("certificate").map(|pem| Certificate::parse_one(pem.as_bytes()));
            match certificate {
                Some(Ok(found)) if hex::encode(found.serial()) == serial => {}
                Some(Ok(_)) => self.problem(place, "it has another serial number"),
                _ => self.problem(place, "its certificate cannot be read"),
            }
            if let Some(id) = text("chain_id") {
                self.wanted_chains.insert(format!("ca/chain/{owner}/{id}"));
            }
            if let Some(partner) = text("paired_with")
                && !certificate_place(partner).is_some_and(|at| self.is_stored(&at))
            {
                self.problem(place, "the certificate that it is paired with is missing");
            }
        } else if let Some((owner, id)) = below("ca/chain/") {
            self.chains.insert(format!("ca/chain/{owner}/{id}"));
        } else if let Some((owner, serial)) = below("ca/revoked/") {
            if !text("reason").is_some_and(|reason| REVOCATION_REASONS.contains(&reason)) {
                self.problem(place, "it has no known reason");
            }
            if !self.is_stored(&format!("ca/certificate/{owner}/{serial}")) {
                self.problem(place, "there is no certificate that was revoked");
            }
        } else if let Some((owner, _)) = below("ca/policy/") {
            let policy = text("text").map(|text| Policy::parse_stored(text, Kind::Authority));
            if !matches!(policy, Some(Ok(_))) {
                self.problem(place, "the policy cannot be read");
            }
            let accounts = value.get("accounts").and_then(Value::as_array);
            let parts: Vec<_> = owner.split('/').collect();
            if let [account, region, id] = parts[..] {
                let named = accounts.into_iter().flatten().filter_map(Value::as_str);
                self.wanted_shares
                    .extend(named.map(|with| format!("ca/shared/{with}/{region}/{account}/{id}")));
            }
        } else if place.starts_with("ca/shared/") {
            self.shares.insert(place.to_owned());
        } else if place.starts_with(report::PENDING_PREFIX) {
            let report = text("report").map(str::to_owned);
            if !report.is_some_and(|at| self.is_stored(&at)) {
                self.problem(place, "there is no report that has to be written");
            }
        } else if place.starts_with("ca/report/") {
            if serde_json::from_value::<report::Report>(value.clone()).is_err() {
                self.problem(place, "the report cannot be read");
            }
        } else if place.starts_with("ca/token/") {
            let made =
                text("arn").map(|arn| (arn.contains("/certificate/"), certificate_place(arn)));
            match made {
                None => self.problem(place, "the token does not say what was made"),
                Some((true, at)) if !at.as_ref().is_some_and(|at| self.is_stored(at)) => {
                    self.problem(place, "there is no certificate that was made with this token");
                }
                Some(_) => {}
            }
        } else {
            return place.starts_with("ca/permission/");
        }
        true
    }

    /// What can be said only when all records have been seen.
    pub(super) fn authority_relations(&self, found: &mut Vec<(String, &'static str)>) {
        for place in self.wanted_chains.difference(&self.chains) {
            found.push((place.clone(), "the chain of certificates that were issued is missing"));
        }
        for place in self.wanted_shares.difference(&self.shares) {
            found
                .push((place.clone(), "a policy shares an authority, and its account is not told"));
        }
        for place in self.shares.difference(&self.wanted_shares) {
            found.push((place.clone(), "there is no policy that shares this authority"));
        }
    }

    /// Whether there is such a record. It is asked for what is never deleted.
    fn is_stored(&self, place: &str) -> bool {
        self.store.read(place).is_ok_and(|record| record.is_some())
    }
}

/// Where the certificate with this ARN is kept.
fn certificate_place(arn: &str) -> Option<String> {
    let parsed = Arn::parse(&current(arn))?;
    let rest = parsed.of("acm-pca", "certificate-authority/")?;
    let (authority, serial) = rest.split_once("/certificate/")?;
    Some(format!("ca/certificate/{}/{}/{authority}/{serial}", parsed.account(), parsed.region()))
}
