//! Checks that the records match each other.

use std::collections::BTreeSet;

use super::Look;
use crate::records::{self, Protection};

impl Look<'_> {
    /// Checks that need all records.
    pub(super) fn relations(&mut self) {
        let mut found = Vec::new();
        for (record_key, key) in &self.keys {
            if key.present.iter().any(|material| !self.secrets.contains(material)) {
                found.push((record_key.clone(), "its key material is missing"));
            }
        }
        for (record_key, (owner, what)) in &self.belongings {
            if !self.owners.contains(owner) {
                found.push((record_key.clone(), *what));
            }
        }
        for (record_key, grant) in &self.pointers {
            if !self.grants.contains(grant) {
                found.push((record_key.clone(), "there is no such grant"));
            }
        }
        for (id, user) in &self.listed_access_keys {
            if !self.owners.contains(&format!("iam/access-key/{id}")) {
                found.push((user.clone(), "it lists an access key that does not exist"));
            }
        }
        for (id, user) in &self.access_keys {
            if self.listed_access_keys.get(id) != Some(user) {
                found.push((format!("iam/access-key/{id}"), "its user does not list it"));
            }
        }
        for record_key in self.public_keys.keys() {
            let key = record_key
                .replacen("tls/certificate/", "tls/key/", 1)
                .replacen("ca/authority/", "ca/material/", 1)
                .replacen("ca/responder-certificate/", "ca/responder-key/", 1);
            if !self.secrets.contains(&key) {
                found.push((record_key.clone(), "its private key is missing"));
            }
        }
        let with_secret: BTreeSet<_> = self
            .belongings
            .iter()
            .filter(|(record_key, _)| self.secrets.contains(*record_key))
            .map(|(_, (owner, _))| owner)
            .collect();
        for record_key in &self.owners {
            if has_secret(record_key) && !with_secret.contains(record_key) {
                found.push((record_key.clone(), "its secret is missing"));
            }
        }
        for (record_key, key) in &self.aliases {
            if !self.keys.contains_key(key) {
                found.push((record_key.clone(), "it points at a key that does not exist"));
            }
            let name = record_key.splitn(5, '/').last().unwrap_or_default();
            let listed = key.replacen("kms/key/", "kms/alias-of/", 1) + "/" + name;
            if !self.aliases_of.contains_key(&listed) {
                found.push((record_key.clone(), "it is missing in the list of its key"));
            }
        }
        for (record_key, (alias, key)) in &self.aliases_of {
            if self.aliases.get(alias) != Some(key) {
                found.push((record_key.clone(), "there is no such alias of this key"));
            }
        }
        self.authority_relations(&mut found);
        found.extend(self.register.end(self.has_register));
        let mut trail = self.trail.end();
        trail.extend(self.artifacts.end());
        trail.extend(self.certificates.end());
        trail.extend(self.values.end());
        for (record_key, what) in
            found.into_iter().map(|(at, what)| (at, what.to_owned())).chain(trail)
        {
            self.problem(&record_key, what);
        }
    }
}

/// Whether each record of this kind has a secret.
fn has_secret(record_key: &str) -> bool {
    records::kind(record_key).is_some_and(|kind| {
        records::KINDS.iter().any(|row| {
            row.protection == Protection::Sealed
                && row.owner.is_some_and(|owner| kind.has(owner.key))
        })
    })
}
