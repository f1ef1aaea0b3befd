//! Witnesses of a log of this service, as the settings name them: of the audit log, or of the artifact log.

use std::path::PathBuf;
use std::sync::Arc;

use outlast_net::client::Connector;
use outlast_net::policy::Policy;
use outlast_net::witness::Witness;
use outlast_tlog::VerifierKey;

use crate::cosigner::{Cosigner, OwnLog};
use crate::failure::Failure;
use crate::trust;

/// Names of the settings of one log, for messages.
pub(crate) struct Names {
    pub(crate) witnesses: &'static str,
    pub(crate) quorum: &'static str,
    pub(crate) ca: &'static str,
}

/// The witnesses of a log.
#[derive(Default)]
pub(crate) struct Witnesses {
    list: Vec<(VerifierKey, String)>,
    quorum: usize,
    ca: Option<PathBuf>,
    ca_name: &'static str,
}

impl Witnesses {
    /// Checks what the settings say.
    pub(crate) fn choose(
        names: &Names,
        said: Option<Vec<String>>,
        quorum: Option<usize>,
        ca: Option<PathBuf>,
    ) -> Result<Self, Failure> {
        let mut list: Vec<(VerifierKey, String)> = Vec::new();
        for text in said.iter().flatten() {
            let wrong = |what: String| {
                Failure::new(format!("{}: {what}", names.witnesses))
                    .hint("give a verifier key and a URL, separated by a space: NAME+ID+KEY https://host/prefix")
                    .about(names.witnesses)
            };
            let (key, url) =
                text.split_once(' ').ok_or_else(|| wrong(format!("\"{text}\" has no URL")))?;
            let key: VerifierKey = key.parse().map_err(|error| wrong(format!("{error}")))?;
            if list.iter().any(|(other, _)| other.name() == key.name()) {
                return Err(wrong(format!("{} is listed twice", key.name())));
            }
            list.push((key, url.trim().to_owned()));
        }
        let quorum = quorum.unwrap_or(list.len());
        if quorum > list.len() || (quorum == 0 && !list.is_empty()) {
            return Err(Failure::new(format!(
                "{}: {quorum} of {} witnesses is not possible",
                names.quorum,
                list.len()
            ))
            .about(names.quorum));
        }
        Ok(Self { list, quorum, ca, ca_name: names.ca })
    }

    /// Verifier keys and URLs.
    pub(crate) fn list(&self) -> &[(VerifierKey, String)] {
        &self.list
    }

    /// How many of them must cosign a head.
    pub(crate) fn quorum(&self) -> usize {
        self.quorum
    }

    /// Clients of the witnesses.
    fn connect(&self) -> Result<Vec<Arc<Witness>>, Failure> {
        let tls = match &self.ca {
            Some(path) => {
                let roots = trust::load(path).map_err(|failure| failure.about(self.ca_name))?;
                let connector = Connector::new(&Policy::default(), &roots);
                Some(connector.map_err(|error| Failure::file(path, &error))?)
            }
            None => None,
        };
        let one = |(key, url): &(VerifierKey, String)| {
            let witness = Witness::new(key.clone(), url, tls.clone()).map_err(|error| {
                Failure::new(error.to_string())
                    .hint(format!("witnesses at https:// need {}", self.ca_name))
            })?;
            Ok(Arc::new(witness))
        };
        self.list.iter().map(one).collect()
    }

    /// The task that asks the witnesses for cosignatures; `None` if there are none.
    pub(crate) fn cosigner(&self, log: OwnLog) -> Result<Option<Cosigner>, Failure> {
        if self.list.is_empty() {
            return Ok(None);
        }
        let keys = self.list.iter().map(|(key, _)| key.clone()).collect();
        Ok(Some(Cosigner::new(log, self.connect()?, keys, self.quorum)))
    }
}
