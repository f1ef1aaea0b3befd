//! Whether the records fit together.

use super::{Look, PAIRED, below, paired_secret};

impl Look<'_> {
    /// What can be said only when all records have been seen.
    pub(super) fn relations(&mut self) {
        let mut found = Vec::new();
        for (place, key) in &self.keys {
            if key.present.iter().any(|material| !self.secrets.contains(material)) {
                found.push((place.clone(), "its key material is missing"));
            }
        }
        for (place, (key, what)) in &self.belongings {
            if !self.keys.contains_key(key) {
                found.push((place.clone(), *what));
            }
        }
        for (place, grant) in &self.pointers {
            if !self.grants.contains(grant) {
                found.push((place.clone(), "there is no such grant"));
            }
        }
        for (id, user) in &self.listed_access_keys {
            if !self.paired.contains(&format!("iam/access-key/{id}")) {
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
        for place in &self.paired {
            let secret = PAIRED.iter().find_map(|prefix| {
                below(place, prefix).map(|rest| format!("{prefix}-secret/{rest}"))
            });
            if secret.is_some_and(|secret| !self.secrets.contains(&secret)) {
                found.push((place.clone(), "its secret is missing"));
            }
        }
        for place in &self.secrets {
            if paired_secret(place).is_some_and(|owner| !self.paired.contains(&owner)) {
                found.push((place.clone(), "there is nothing that this secret belongs to"));
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
