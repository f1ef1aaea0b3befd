//! `[audit]` of the settings: the witnesses of the log, its readers, and its retention.

use std::path::PathBuf;
use std::sync::Arc;

use outlast_domain::audit::LogKey;
use outlast_net::client::Connector;
use outlast_net::policy::Policy;
use outlast_net::witness::Witness;
use outlast_tlog::VerifierKey;

use crate::audit_retention::Retention;
use crate::cosigner::Cosigner;
use crate::failure::Failure;
use crate::settings::Audit;
use crate::trust;

/// The section's values, checked.
#[derive(Default)]
pub(crate) struct Settings {
    witnesses: Vec<(VerifierKey, String)>,
    quorum: usize,
    witness_ca: Option<PathBuf>,
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
    let mut witnesses: Vec<(VerifierKey, String)> = Vec::new();
    for text in said.witnesses.iter().flatten() {
        let wrong = |what: String| {
            Failure::new(format!("audit.witnesses: {what}"))
                .hint("give a verifier key and a URL, separated by a space: NAME+ID+KEY https://host/prefix")
                .about("audit.witnesses")
        };
        let (key, url) =
            text.split_once(' ').ok_or_else(|| wrong(format!("\"{text}\" has no URL")))?;
        let key: VerifierKey = key.parse().map_err(|error| wrong(format!("{error}")))?;
        if witnesses.iter().any(|(other, _)| other.name() == key.name()) {
            return Err(wrong(format!("{} is listed twice", key.name())));
        }
        witnesses.push((key, url.trim().to_owned()));
    }
    let quorum = said.quorum.unwrap_or(witnesses.len());
    if quorum > witnesses.len() || (quorum == 0 && !witnesses.is_empty()) {
        return Err(Failure::new(format!(
            "audit.quorum: {quorum} of {} witnesses is not possible",
            witnesses.len()
        ))
        .about("audit.quorum"));
    }
    let retention = Retention::choose(said.retention_days, said.archive)?;
    let readers = said.readers.unwrap_or_default();
    Ok(Settings { witnesses, quorum, witness_ca: said.witness_ca, publish, readers, retention })
}

impl Settings {
    /// The policy that verifiers of this log need (C2SP tlog-policy).
    pub(crate) fn policy(&self, keys: &LogKey) -> String {
        let [ml_dsa_44, _] = keys.verifiers();
        let mut text = format!("log {ml_dsa_44}\n");
        for (key, url) in &self.witnesses {
            text.push_str(&format!("witness {} {key} {url}\n", key.name()));
        }
        if self.witnesses.is_empty() {
            text.push_str("quorum none\n");
            return text;
        }
        let names: Vec<_> = self.witnesses.iter().map(|(key, _)| key.name()).collect();
        text.push_str(&format!(
            "group enough {} {}\nquorum enough\n",
            self.quorum,
            names.join(" ")
        ));
        text
    }

    /// Clients of the witnesses.
    fn connect(&self) -> Result<Vec<Arc<Witness>>, Failure> {
        let tls = match &self.witness_ca {
            Some(path) => {
                let roots =
                    trust::load(path).map_err(|failure| failure.about("audit.witness_ca"))?;
                let connector = Connector::new(&Policy::default(), &roots);
                Some(connector.map_err(|error| Failure::file(path, &error))?)
            }
            None => None,
        };
        self.witnesses
            .iter()
            .map(|(key, url)| {
                let witness = Witness::new(key.clone(), url, tls.clone()).map_err(|error| {
                    Failure::new(error.to_string())
                        .hint("witnesses at https:// need audit.witness_ca")
                })?;
                Ok(Arc::new(witness))
            })
            .collect()
    }

    /// The task that asks the witnesses for cosignatures; `None` if there are none.
    pub(crate) fn cosigner(&self) -> Result<Option<Cosigner>, Failure> {
        if self.witnesses.is_empty() {
            return Ok(None);
        }
        let keys = self.witnesses.iter().map(|(key, _)| key.clone()).collect();
        Ok(Some(Cosigner::new(self.connect()?, keys, self.quorum)))
    }
}
