//! Creates the first root key of a store, and takes over those of a restored store.

use outlast_crypto::Secret;
use serde_json::{Map, Value};

use super::{ROOT, RootKey, RootRecord, fingerprint, new_key, read_record, wrapped_record_key};
use crate::Fault;
use crate::work::Work;

impl RootKey {
    /// Creates the first root key of an empty store. `parameters` are what the provider needs to find its key.
    pub fn establish(
        &self,
        work: &mut Work<'_>,
        parameters: Map<String, Value>,
    ) -> Result<(), Fault> {
        let (id, key) = new_key()?;
        let record_key = wrapped_record_key(&hex::encode(id));
        work.put_bytes(&record_key, self.kek.wrap(&record_key, &key)?);
        self.remember(id, key);
        let record = RootRecord {
            current: hex::encode(id),
            previous: None,
            provider: self.kek.provider().to_owned(),
            parameters,
            created_ms: work.now_ms(),
        };
        work.put_root(&record)
    }

    /// Wraps the root keys from a restored backup with this key-encryption key.
    pub fn adopt(
        &self,
        work: &mut Work<'_>,
        parameters: Map<String, Value>,
        keys: &[(String, Secret)],
    ) -> Result<(), Fault> {
        for (record_key, key) in keys {
            work.put_bytes(record_key, self.kek.wrap(record_key, key)?);
            let key = Secret::new(key.expose().to_vec());
            self.remember(fingerprint(&key), key);
        }
        // A backup is authentic as a whole, and one of an earlier version contains a plain record.
        let record = read_record(work.store())?.ok_or_else(|| Fault::Damaged(ROOT.to_owned()))?;
        let provider = self.kek.provider().to_owned();
        work.replace_root(&RootRecord { provider, parameters, ..record })
    }
}
