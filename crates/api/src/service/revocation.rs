//! Revocation's own work, every few seconds: CRLs, certificates of OCSP responders, responses to renew.

use std::collections::HashMap;
use std::sync::Arc;

use outlast_domain::Fault;
use outlast_domain::ca::crl::{self, How};
use outlast_domain::ca::{ocsp, responder};
use outlast_domain::work::Swept;
use outlast_pki::ocsp::Request;
use outlast_store::StoreError;

use super::Service;
use super::alone::events;
use super::answers::Kept;
use super::housekeeping::Round;
use super::shared::lock;
use crate::ops::ACM_PCA;

/// Records examined in one step.
const PAGE: usize = 500;
/// CRLs with slow signatures that are made in one round; others wait.
const SLOW: usize = 8;
/// Responses that are renewed in one round, and in one transaction.
const ANSWERS: usize = 512;
const TOGETHER: usize = 32;
/// Attempts to make a CRL while its mark changes; after them it is made of what is known by then.
const ATTEMPTS: u32 = 3;

impl Service {
    /// Makes the CRLs and responders that are due, and renews responses that are asked for repeatedly. Cheap when
    /// nothing is due. While the clock is wrong nothing is made: by a clock that is ahead a CRL would leave out
    /// certificates that have not expired yet.
    ///
    /// # Errors
    /// The first failure. Everything else is done nevertheless, and what failed is tried again in the next
    /// round.
    pub fn keep_revocation(&self, now_ms: i64) -> Result<(), Fault> {
        if self.may_sweep(now_ms).is_err() {
            // It is logged already, and the next round comes within seconds.
            return self.look_at_epochs(now_ms);
        }
        let mut round = Round::new(self, now_ms);
        round.sweep(&ACM_PCA, &crl::MARK_DUE);
        for outcome in
            [self.renew_responders(now_ms), self.make_crls(now_ms), self.look_at_epochs(now_ms)]
        {
            if let Err(fault) = outcome {
                round.failed(&ACM_PCA, "revocation", fault);
            }
        }
        self.renew_answers(now_ms);
        if let Err(fault) = self.sum_up_strangers(now_ms, false) {
            round.failed(&ACM_PCA, "revocation", fault);
        }
        round.outcome()
    }

    fn renew_responders(&self, now_ms: i64) -> Result<(), Fault> {
        let mut first = Ok(());
        let mut after = Some(String::new());
        while let Some(from) = after {
            let due = responder::due(&self.work(now_ms), &from, PAGE)?;
            for record_key in due.record_keys.iter().chain(&due.damaged) {
                let done = self.do_once(&ACM_PCA, now_ms, |work, swept| {
                    responder::renew(work, &self.ring, record_key, swept)
                });
                match done.map(|did| did.value) {
                    Ok(Some(reason)) => {
                        tracing::warn!(record_key, reason, "an authority does not answer OCSP");
                    }
                    // Another server was first, or the authority changed just now.
                    Ok(None) | Err(Fault::Store(StoreError::Conflict)) => {}
                    Err(fault) => {
                        tracing::warn!(record_key, %fault, "an OCSP responder could not be created");
                        first = first.and(Err(fault));
                    }
                }
            }
            after = due.next;
        }
        first
    }

    fn make_crls(&self, now_ms: i64) -> Result<(), Fault> {
        let mut first = Ok(());
        let mut slow = Vec::new();
        let mut after = String::new();
        loop {
            let marked = crl::marked(&self.work(now_ms), &after, PAGE)?;
            for record_key in &marked {
                match self.make_crl(now_ms, record_key, How::Quickly) {
                    Ok(true) => {}
                    Ok(false) => slow.push(record_key.clone()),
                    Err(fault) => first = first.and(Err(fault)),
                }
            }
            match marked.last() {
                Some(last) if marked.len() == PAGE => last.clone_into(&mut after),
                _ => break,
            }
        }
        let mut last = lock(&self.revocation.last_slow).clone();
        for record_key in whose_turn(slow, &mut last) {
            if let Err(fault) = self.make_crl(now_ms, &record_key, How::Patiently) {
                first = first.and(Err(fault));
            }
        }
        *lock(&self.revocation.last_slow) = last;
        first
    }

    fn make_crl(&self, now_ms: i64, record_key: &str, how: How) -> Result<bool, Fault> {
        let mut attempts = 0;
        let made = self.do_at_last(&ACM_PCA, now_ms, |work, swept| {
            attempts += 1;
            let how = if attempts > ATTEMPTS { How::Meanwhile } else { how };
            crl::make(work, &self.ring, record_key, how, swept)
        });
        match made.map(|did| did.value) {
            Err(Fault::Store(StoreError::Conflict)) => Ok(true),
            outcome => logged(record_key, outcome),
        }
    }

    /// Other servers on the same database revoke certificates, too.
    fn look_at_epochs(&self, now_ms: i64) -> Result<(), Fault> {
        let record_keys: Vec<_> = lock(&self.revocation.epochs).keys().cloned().collect();
        let work = self.work(now_ms);
        for record_key in record_keys {
            let epoch = ocsp::epoch(&work, &record_key)?;
            lock(&self.revocation.epochs).insert(record_key, (epoch, now_ms));
        }
        Ok(())
    }

    fn renew_answers(&self, now_ms: i64) {
        let due = self.revocation.answers.due(now_ms.div_euclid(1000), ANSWERS);
        for together in due.chunks(TOGETHER) {
            match self.renew_together(together, now_ms) {
                Ok(()) => {}
                // One response that cannot be renewed, or has just changed, does not stop the others.
                Err(_) => {
                    for kept in together {
                        self.renew_alone(kept, now_ms);
                    }
                }
            }
        }
    }

    fn renew_alone(&self, kept: &Arc<Kept>, now_ms: i64) {
        match self.renew_together(std::slice::from_ref(kept), now_ms) {
            // A response that changes in the meantime is signed when a client asks for it.
            Ok(()) | Err(Fault::Store(StoreError::Conflict)) => {}
            Err(fault) => {
                tracing::warn!(of = kept.epoch_record_key, %fault, "an OCSP answer could not be renewed");
            }
        }
    }

    fn renew_together(&self, due: &[Arc<Kept>], now_ms: i64) -> Result<(), Fault> {
        let mut renewed = Vec::with_capacity(due.len());
        // Responses about several certificates are signed when clients ask for them.
        let terms = ocsp::Terms { validity_seconds: self.ocsp_validity(), admit: &|_| false };
        let mut work = self.work(now_ms);
        let mut swept = Swept::default();
        for kept in due {
            let request = Request { ids: kept.ids.clone(), nonce: None };
            let answer = ocsp::answer(&mut work, &self.ring, &request, &terms, &mut swept)?;
            if let Ok(answer) = answer {
                renewed.push(Kept::new(request.ids, answer));
            }
        }
        if renewed.is_empty() {
            return Ok(());
        }
        let events = events(&ACM_PCA, now_ms, &swept)?;
        self.store.commit_and_wait(work.into_transaction(events))?;
        for kept in renewed {
            self.keep(Arc::new(kept), now_ms);
        }
        Ok(())
    }
}

fn logged(record_key: &str, outcome: Result<bool, Fault>) -> Result<bool, Fault> {
    if let Err(fault) = &outcome {
        tracing::warn!(record_key, %fault, "a CRL could not be created; it will be tried again");
    }
    outcome
}

/// The CRLs to make in this round (record keys of their marks, in order): one of each authority before the second of
/// any, beginning after the one that was made `last`. So nobody waits for as long as others keep revoking.
fn whose_turn(mut record_keys: Vec<String>, last: &mut String) -> Vec<String> {
    let from = record_keys.partition_point(|record_key| record_key <= last);
    record_keys.rotate_left(from);
    let mut seen: HashMap<String, usize> = HashMap::new();
    let mut turns = Vec::new();
    for record_key in record_keys {
        let (authority, _) = record_key.rsplit_once('/').unwrap_or((&record_key, ""));
        let turn = seen.entry(authority.to_owned()).or_default();
        turns.push((*turn, record_key));
        *turn += 1;
    }
    turns.sort_by_key(|(turn, _)| *turn);
    let chosen: Vec<_> = turns.into_iter().take(SLOW).map(|(_, record_key)| record_key).collect();
    if let Some(record_key) = chosen.last() {
        last.clone_from(record_key);
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequent_revocation_delays_no_other_account() {
        // One authority is due with all its partitions in every round; the others follow it.
        let busy = |part: usize| format!("ca/crl-mark/1/eu/a/{part:02}");
        let others: Vec<_> =
            (0..20).map(|n| format!("ca/crl-mark/2/eu/b{n:02}/complete")).collect();
        let mut waiting = others.clone();
        let (mut last, mut made_of_busy) = (String::new(), 0);
        for _ in 0..4 {
            let record_keys = (0..64).map(busy).chain(waiting.iter().cloned()).collect();
            let chosen = whose_turn(record_keys, &mut last);
            assert_eq!(chosen.len(), SLOW);
            made_of_busy += chosen.iter().filter(|record_key| record_key.contains("/a/")).count();
            waiting.retain(|record_key| !chosen.contains(record_key));
        }
        assert!(waiting.is_empty(), "{waiting:?}");
        assert!(made_of_busy > 0, "nor does that one wait for the others");
        // Alone it goes through all of its own.
        let mut left: Vec<_> = (0..64).map(busy).collect();
        for _ in 0..64 / SLOW {
            let chosen = whose_turn((0..64).map(busy).collect(), &mut last);
            left.retain(|record_key| !chosen.contains(record_key));
        }
        assert!(left.is_empty(), "{left:?}");
        assert!(whose_turn(Vec::new(), &mut last).is_empty());
    }
}
