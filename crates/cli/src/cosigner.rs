//! Asks the witnesses of the settings to cosign each head of a log, in the background: no call waits for it.

use std::sync::Arc;
use std::time::Duration;

use outlast_domain::audit::{self, LogKey, cosigned, prove};
use outlast_domain::work::Work;
use outlast_domain::{Fault, artifacts};
use outlast_net::server::system_clock;
use outlast_net::witness::{Witness, WitnessError, cosign};
use outlast_tlog::{Hash, NoteSignature, SignedCheckpoint, VerifierKey};
use tokio::task::JoinSet;

use crate::data::Data;

/// Interval between checks for a new head.
const PAUSE: Duration = Duration::from_secs(2);
/// Most checks that a failing witness is skipped for: about a minute.
const MAX_WAIT: u32 = 32;

/// A log of this service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OwnLog {
    /// The audit trail.
    Audit,
    /// The log of signatures.
    Artifacts,
}

impl OwnLog {
    /// The last head; `None` if the log has not begun.
    fn signed(self, work: &mut Work<'_>) -> Result<Option<SignedCheckpoint>, Fault> {
        match self {
            Self::Audit => {
                let key = LogKey::read(work)?;
                audit::signed_head(work, &key).map(Some)
            }
            Self::Artifacts => Ok(artifacts::read(work)?.map(|log| log.signed)),
        }
    }

    fn consistency(
        self,
        work: &mut Work<'_>,
        old_size: u64,
        signed: &SignedCheckpoint,
    ) -> Result<Vec<Hash>, Fault> {
        match self {
            Self::Audit => prove::consistency(work, old_size, signed),
            Self::Artifacts => artifacts::Log::consistency(work, old_size, signed),
        }
    }

    fn keep(
        self,
        work: &mut Work<'_>,
        signed: &SignedCheckpoint,
        signatures: &[NoteSignature],
        keys: &[VerifierKey],
    ) -> Result<usize, Fault> {
        match self {
            Self::Audit => cosigned::keep(work, signed, signatures, keys),
            Self::Artifacts => artifacts::keep(work, signed, signatures, keys),
        }
    }
}

/// Asks witnesses to cosign each head.
pub(crate) struct Cosigner {
    log: OwnLog,
    witnesses: Vec<(Arc<Witness>, Opinion)>,
    keys: Vec<VerifierKey>,
    quorum: usize,
}

/// What is known of a witness's view of the newest head.
#[derive(Default)]
struct Opinion {
    signatures: Vec<NoteSignature>,
    /// Why it says that the log was changed.
    dissent: Option<String>,
    /// Consecutive failures.
    failures: u32,
    /// Checks until it is asked again.
    wait: u32,
}

impl Opinion {
    /// Whether to ask the witness at this check. It is not asked again about a head that it has signed, and one that
    /// keeps failing is asked less and less often.
    fn is_due(&mut self) -> bool {
        if !self.signatures.is_empty() {
            return false;
        }
        let is_due = self.wait == 0;
        self.wait = self.wait.saturating_sub(1);
        is_due
    }

    fn signed(&mut self, signatures: Vec<NoteSignature>) {
        *self = Self { signatures, ..Self::default() };
    }

    fn failed(&mut self, dissent: Option<String>) {
        self.wait = (1 << self.failures.min(MAX_WAIT.ilog2())) - 1;
        self.failures = self.failures.saturating_add(1);
        self.dissent = dissent;
    }
}

impl Cosigner {
    /// Takes the keys that verify the witnesses' signatures, and the number of witnesses that verifiers require.
    pub(crate) fn new(
        log: OwnLog,
        witnesses: Vec<Arc<Witness>>,
        keys: Vec<VerifierKey>,
        quorum: usize,
    ) -> Self {
        let witnesses =
            witnesses.into_iter().map(|witness| (witness, Opinion::default())).collect();
        Self { log, witnesses, keys, quorum }
    }

    /// Never ends.
    pub(crate) async fn run(mut self, data: Arc<Data>) {
        let mut newest: Option<Arc<SignedCheckpoint>> = None;
        loop {
            tokio::time::sleep(PAUSE).await;
            if data.service.audit_alarm().is_some() {
                continue;
            }
            let signed = tokio::task::block_in_place(|| {
                self.log.signed(&mut data.service.work(system_clock()))
            });
            let signed = match signed {
                Ok(Some(signed)) => Arc::new(signed),
                Ok(None) => continue,
                Err(fault) => {
                    tracing::warn!(%fault, "there is no head to cosign");
                    continue;
                }
            };
            if signed.checkpoint().size() == 0 {
                continue;
            }
            if newest.as_ref().is_none_or(|old| old.checkpoint() != signed.checkpoint()) {
                for (_, opinion) in &mut self.witnesses {
                    opinion.signatures.clear();
                    opinion.dissent = None;
                }
                newest = Some(signed.clone());
            }
            if !self.ask(&data, &signed).await {
                continue;
            }
            let signatures: Vec<_> =
                self.witnesses.iter().flat_map(|(_, found)| found.signatures.clone()).collect();
            if let Err(fault) = self.keep(&data, &signed, &signatures) {
                tracing::error!(%fault, "cosignatures could not be stored");
                // So that they are asked for again.
                newest = None;
            }
        }
    }

    /// Asks the witnesses that are due; returns whether there are new signatures.
    async fn ask(&mut self, data: &Arc<Data>, signed: &Arc<SignedCheckpoint>) -> bool {
        let mut asked = JoinSet::new();
        let log = self.log;
        for (number, (witness, opinion)) in self.witnesses.iter_mut().enumerate() {
            if !opinion.is_due() {
                continue;
            }
            let (witness, data, signed) = (witness.clone(), data.clone(), signed.clone());
            asked.spawn(async move {
                let prove = |old| {
                    tokio::task::block_in_place(|| {
                        log.consistency(&mut data.service.work(system_clock()), old, &signed)
                    })
                };
                (number, cosign(&witness, &signed, prove).await)
            });
        }
        let mut is_new = false;
        while let Some(answer) = asked.join_next().await {
            let (number, answer) = match answer {
                Ok(answer) => answer,
                Err(error) => {
                    tracing::error!(%error, "a witness could not be asked");
                    continue;
                }
            };
            let Some((witness, opinion)) = self.witnesses.get_mut(number) else { continue };
            match answer {
                Ok(signatures) => {
                    is_new |= !signatures.is_empty();
                    opinion.signed(signatures);
                }
                Err(error) => {
                    report(witness.name(), &error);
                    let dissent = format!("witness {}: {error}", witness.name());
                    opinion.failed(error.is_alarm().then_some(dissent));
                }
            }
        }
        let dissents: Vec<&str> =
            self.witnesses.iter().filter_map(|(_, found)| found.dissent.as_deref()).collect();
        // A single witness may lie; as many as verifiers require are believed.
        if dissents.len() >= self.quorum {
            data.service.raise_alarm(&dissents.join("; "));
        }
        is_new
    }

    /// Stores cosignatures.
    fn keep(
        &self,
        data: &Data,
        signed: &SignedCheckpoint,
        signatures: &[NoteSignature],
    ) -> Result<usize, Fault> {
        tokio::task::block_in_place(|| {
            data.change(|work| {
                Ok((self.log.keep(work, signed, signatures, &self.keys)?, Vec::new()))
            })
        })
    }
}

fn report(witness: &str, error: &WitnessError) {
    if error.is_alarm() {
        tracing::error!(witness, %error, "AUDIT: a witness says that this log does not continue the one it cosigned");
    } else {
        tracing::warn!(witness, %error, "a head was not cosigned; the server tries again");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The checks, among the first ones, at which a witness with these answers is asked.
    fn asked(looks: u32, mut answer: impl FnMut(&mut Opinion)) -> Vec<u32> {
        let mut opinion = Opinion::default();
        (0..looks).filter(|_| opinion.is_due().then(|| answer(&mut opinion)).is_some()).collect()
    }

    #[test]
    fn a_witness_that_has_signed_is_not_asked_again() {
        let signature = || NoteSignature::new("witness.example/1", [0; 4], vec![1]).unwrap();
        assert_eq!(asked(100, |opinion| opinion.signed(vec![signature()])), [0]);
    }

    #[test]
    fn absent_witness_is_asked_with_back_off() {
        let asked = asked(200, |opinion| opinion.failed(None));
        assert_eq!(asked[..6], [0, 1, 3, 7, 15, 31]);
        assert!(asked[6..].windows(2).all(|pair| pair[1] - pair[0] == MAX_WAIT), "{asked:?}");
        assert!(asked.len() > 8);
    }
}
