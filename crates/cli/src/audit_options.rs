//! `[audit]` of the settings: the witnesses of the log, its readers, and its retention.

use outlast_domain::audit::LogKey;
use outlast_tlog::policy;

use crate::audit_retention::Retention;
use crate::failure::Failure;
use crate::log_witnesses::{Names, Witnesses};
use crate::settings::Audit;

const NAMES: Names =
    Names { witnesses: "audit.witnesses", quorum: "audit.quorum", ca: "audit.witness_ca" };

/// The section's values, checked.
#[derive(Default)]
pub(crate) struct Settings {
    /// Who cosigns the log's heads.
    pub(crate) witnesses: Witnesses,
    /// Whether heads and tiles are served.
    pub(crate) publish: bool,
    /// ARNs of the principals that may read entries.
    pub(crate) readers: Vec<String>,
    /// What to prune, and when.
    pub(crate) retention: Option<Retention>,
}

/// Checks the settings.
pub(crate) fn choose(said: Audit) -> Result<Settings, Failure> {
    let publish = said.publish();
    let witnesses = Witnesses::choose(&NAMES, said.witnesses, said.quorum, said.witness_ca)?;
    let retention = Retention::choose(said.retention_days, said.archive)?;
    let readers = said.readers.unwrap_or_default();
    Ok(Settings { witnesses, publish, readers, retention })
}

impl Settings {
    /// The policy that verifiers of this log need (C2SP tlog-policy).
    pub(crate) fn policy(&self, keys: &LogKey) -> String {
        let [ml_dsa_44, _] = keys.verifiers();
        policy::text(&ml_dsa_44, self.witnesses.list(), self.witnesses.quorum())
    }
}
