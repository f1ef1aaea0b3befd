//! `[audit]` of the settings: the witnesses of the log, and who may read it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use outlast_domain::audit::{self, LogKey, cosigned, prove};
use outlast_net::client::Connector;
use outlast_net::policy::Policy;
use outlast_net::server::system_clock;
use outlast_net::witness::{Witness, WitnessError, cosign};
use outlast_store::StoreError;
use outlast_tlog::{NoteSignature, SignedCheckpoint, VerifierKey};
use serde::Deserialize;
use tokio::task::JoinSet;

use crate::data::Data;
use crate::failure::Failure;
use crate::trust;

/// Time between two looks at whether there is a new head to cosign.
const PAUSE: Duration = Duration::from_secs(2);
/// How often cosignatures are written down anew while others write.
const MAX_TRIES: usize = 8;

/// The section.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct File {
    /// `VERIFIER-KEY URL` of each witness.
    #[serde(default)]
    witnesses: Vec<String>,
    /// How many of them must cosign a head for verifiers to believe it [default: all].
    quorum: Option<usize>,
    /// PEM file with the roots of witnesses at HTTPS.
    witness_ca: Option<PathBuf>,
    /// Whether heads and tiles of hashes are served to anybody below /tlog/.
    #[serde(default)]
    publish: bool,
    /// ARNs of the users and roles that may read entries there; each needs the permission outlast:GetAuditEntries, too.
    #[serde(default)]
    readers: Vec<String>,
}

/// What the section says, checked.
#[derive(Default)]
pub(crate) struct Settings {
    witnesses: Vec<(VerifierKey, String)>,
    quorum: usize,
    witness_ca: Option<PathBuf>,
    /// Whether heads and tiles are served.
    pub(crate) publish: bool,
    /// ARNs of those who may read entries.
    pub(crate) readers: Vec<String>,
}

impl File {
    /// Checks it; paths are relative to the data folder.
    pub(crate) fn choose(self, folder: &Path) -> Result<Settings, Failure> {
        let mut witnesses: Vec<(VerifierKey, String)> = Vec::new();
        for text in &self.witnesses {
            let wrong = |what: String| {
                Failure::new(format!("audit.witnesses: {what}"))
                    .hint("each is a verifier key and a URL with a space between: NAME+ID+KEY https://host/prefix")
            };
            let (key, url) =
                text.split_once(' ').ok_or_else(|| wrong(format!("\"{text}\" has no URL")))?;
            let key: VerifierKey = key.parse().map_err(|error| wrong(format!("{error}")))?;
            if witnesses.iter().any(|(other, _)| other.name() == key.name()) {
                return Err(wrong(format!("{} is there twice", key.name())));
            }
            witnesses.push((key, url.trim().to_owned()));
        }
        let quorum = self.quorum.unwrap_or(witnesses.len());
        if quorum > witnesses.len() || (quorum == 0 && !witnesses.is_empty()) {
            return Err(Failure::new(format!(
                "audit.quorum: {quorum} of {} witnesses cannot be asked for",
                witnesses.len()
            )));
        }
        let witness_ca = self.witness_ca.map(|path| folder.join(path));
        Ok(Settings { witnesses, quorum, witness_ca, publish: self.publish, readers: self.readers })
    }
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

    /// The witnesses, to be asked.
    fn connect(&self) -> Result<Vec<Arc<Witness>>, Failure> {
        let tls = match &self.witness_ca {
            Some(path) => {
                let connector = Connector::new(&Policy::default(), &trust::load(path)?);
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

    /// Whoever asks the witnesses for cosignatures; `None` if there are none.
    pub(crate) fn cosigner(&self) -> Result<Option<Cosigner>, Failure> {
        if self.witnesses.is_empty() {
            return Ok(None);
        }
        let keys = self.witnesses.iter().map(|(key, _)| key.clone()).collect();
        Ok(Some(Cosigner { witnesses: self.connect()?, keys, quorum: self.quorum }))
    }
}

/// Asks witnesses to cosign each head. No call waits for it.
pub(crate) struct Cosigner {
    witnesses: Vec<Arc<Witness>>,
    keys: Vec<VerifierKey>,
    quorum: usize,
}

impl Cosigner {
    /// Never ends.
    pub(crate) async fn run(self, data: Arc<Data>) {
        let mut done: Option<(u64, usize)> = None;
        loop {
            tokio::time::sleep(PAUSE).await;
            if data.service.audit_alarm().is_some() {
                continue;
            }
            let signed = tokio::task::block_in_place(|| {
                let mut work = data.service.work(system_clock());
                let key = LogKey::read(&mut work)?;
                audit::signed_head(&mut work, &key)
            });
            let signed = match signed {
                Ok(signed) => Arc::new(signed),
                Err(fault) => {
                    tracing::warn!(%fault, "there is no head to cosign");
                    continue;
                }
            };
            let size = signed.checkpoint().size();
            if size == 0 || done == Some((size, self.witnesses.len())) {
                continue;
            }
            let signatures = self.ask(&data, &signed).await;
            match keep(&data, &signed, &signatures, &self.keys) {
                Ok(count) => done = Some((size, count)),
                Err(fault) => tracing::error!(%fault, "cosignatures could not be written down"),
            }
        }
    }

    /// The cosignatures that there are after all have been asked.
    async fn ask(&self, data: &Arc<Data>, signed: &Arc<SignedCheckpoint>) -> Vec<NoteSignature> {
        let mut asked = JoinSet::new();
        for witness in &self.witnesses {
            let (witness, data, signed) = (witness.clone(), data.clone(), signed.clone());
            asked.spawn(async move {
                let prove = |old| {
                    tokio::task::block_in_place(|| {
                        prove::consistency(&mut data.service.work(system_clock()), old, &signed)
                    })
                };
                (cosign(&witness, &signed, prove).await, witness)
            });
        }
        let (mut signatures, mut alarms) = (Vec::new(), Vec::new());
        while let Some(answer) = asked.join_next().await {
            match answer {
                Ok((Ok(found), _)) => signatures.extend(found),
                Ok((Err(error), witness)) => {
                    let name = witness.name();
                    report(name, &error);
                    if error.is_alarm() {
                        alarms.push(format!("witness {name}: {error}"));
                    }
                }
                Err(error) => tracing::error!(%error, "a witness could not be asked"),
            }
        }
        // One witness of several may lie; as many as verifiers ask for are believed.
        if alarms.len() >= self.quorum {
            data.service.raise_alarm(&alarms.join("; "));
        }
        signatures
    }
}

fn report(witness: &str, error: &WitnessError) {
    if error.is_alarm() {
        tracing::error!(witness, %error, "AUDIT: a witness says that this log is not what it was");
    } else {
        tracing::warn!(witness, %error, "a head was not cosigned; it is tried again");
    }
}

/// Writes cosignatures down.
fn keep(
    data: &Data,
    signed: &SignedCheckpoint,
    signatures: &[NoteSignature],
    keys: &[VerifierKey],
) -> Result<usize, outlast_domain::Fault> {
    tokio::task::block_in_place(|| {
        for _ in 0..MAX_TRIES {
            let mut work = data.service.work(system_clock());
            let count = cosigned::keep(&mut work, signed, signatures, keys)?;
            if !work.writes_anything() {
                return Ok(count);
            }
            match data.service.store().commit_and_wait(work.into_transaction(Vec::new())) {
                Ok(()) => return Ok(count),
                Err(StoreError::Conflict) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(StoreError::Conflict.into())
    })
}
