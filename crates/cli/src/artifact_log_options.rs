//! `[artifact_log]` of the settings: the witnesses of the log of signatures, and whether it is published.

use outlast_domain::settings::ArtifactLog;

use crate::failure::Failure;
use crate::log_witnesses::{Names, Witnesses};
use crate::settings::ArtifactLog as Said;

const NAMES: Names = Names {
    witnesses: "artifact_log.witnesses",
    quorum: "artifact_log.quorum",
    ca: "artifact_log.witness_ca",
};

/// The section's values, checked.
#[derive(Default)]
pub(crate) struct Settings {
    /// Who cosigns the log's heads.
    pub(crate) witnesses: Witnesses,
    publish: bool,
}

/// Checks the settings.
pub(crate) fn choose(said: Said) -> Result<Settings, Failure> {
    let publish = said.publish();
    let witnesses = Witnesses::choose(&NAMES, said.witnesses, said.quorum, said.witness_ca)?;
    Ok(Settings { witnesses, publish })
}

impl Settings {
    /// What the service must know of it.
    pub(crate) fn of_service(&self) -> ArtifactLog {
        ArtifactLog {
            is_published: self.publish,
            witnesses: self.witnesses.list().to_vec(),
            quorum: self.witnesses.quorum(),
        }
    }
}
