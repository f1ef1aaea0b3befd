//! Whether the records fit together.

use std::collections::BTreeSet;

use super::Look;
use crate::records::{self, Protection};

impl Look<'_> {
    /// What can be said only when all records have been seen.
    pub(super) fn relations(&mut self) {
        let mut found = Vec::new();
        for (place, key) in &self.keys {
            if key.present.iter().any(|material| !self.secrets.contains(material)) {
                found.push((place.clone(), "its key material is missing"));
            }
        }
        for (place, (owner, what)) in &self.belongings {
            if !self.owners.contains(owner) {
                found.push((place.clone(), *what));
            }
        }
        for (place, grant) in &self.pointers {
            if !self.grants.contains(grant) {
                found.push((place.clone(), "there is no such grant"));
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
        for place in self.public_keys.keys() {
            let key = place
                .replacen("tls/certificate/", "tls/key/", 1)
                .replacen("ca/authority/", "ca/material/", 1)
                .replacen("ca/responder-certificate/", "ca/responder-key/", 1);
            if !self.secrets.contains(&key) {
                found.push((place.clone(), "its private key is missing"));
            }
        }
        let with_secret: BTreeSet<_> = self
            .belongings
            .iter()
            .filter(|(place, _)| self.secrets.contains(*place))
            .map(|(_, (owner, _))| owner)
            .collect();
        for place in &self.owners {
            if has_secret(place) && !with_secret.contains(place) {
                found.push((place.clone(), "its secret is missing"));
            }
        }
        for (place, key) in &self.aliases {
            if !self.keys.contains_key(key) {
                found.push((place.clone(), "it points at a key that does not exist"));
            }
            let name = place.splitn(5, '/').last().unwrap_or_default();
            let listed = key.replacen("kms/key/", "kms/alias-of/", 1) + "/" + name;
            if !self.aliases_of.contains_key(&listed) {
                found.push((place.clone(), "it is missing in the list of its key"));
            }
        }
        for (place, (alias, key)) in &self.aliases_of {
            if self.aliases.get(alias) != Some(key) {
                found.push((place.clone(), "there is no such alias of this key"));
            }
        }
        self.authority_relations(&mut found);
        found.extend(self.register.end(self.has_register));
        let mut trail = self.trail.end();
        trail.extend(self.certificates.end());
        for (place, what) in found.into_iter().map(|(at, what)| (at, what.to_owned())).chain(trail)
        {
            self.problem(&place, what);
        }
    }
}

/// Whether a secret goes with each record of this kind.
fn has_secret(place: &str) -> bool {
    records::kind(place).is_some_and(|kind| {
        records::KINDS.iter().any(|row| {
            row.protection == Protection::Sealed
                && row.owner.is_some_and(|owner| kind.has(owner.key))
        })
    })
}
