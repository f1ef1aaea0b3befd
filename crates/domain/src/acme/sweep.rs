//! Sweeps: used nonces, old tokens, orders past their end, and the resources of deleted endpoints.

use super::endpoint::Deleted;
use super::nonce::Used;
use super::order::{Open, Record, find_order, open_record_key};
use super::token::Token;
use super::{authorization, certificate};
use crate::Fault;
use crate::work::{Sweep, Work};

/// Forgets nonces that would be refused for their age.
pub const FORGET_NONCES: Sweep = Sweep {
    find: |work, after, limit| work.due("acme/nonce/", after, limit, Used::is_old),
    // Such a record never changes, so it need not be read again.
    handle: |work, record_key, _| {
        work.delete(record_key);
        Ok(())
    },
};

/// Forgets idempotency tokens that are too old to count.
pub const FORGET_TOKENS: Sweep = Sweep {
    find: |work, after, limit| work.due("acme/token/", after, limit, Token::is_old),
    handle: |work, record_key, _| {
        if work.get::<Token>(record_key)?.is_some_and(|token| token.is_old(work.now_ms())) {
            work.delete(record_key);
        }
        Ok(())
    },
};

/// Ends orders whose time is over.
pub const EXPIRE_ORDERS: Sweep = Sweep {
    find: |work, after, limit| work.due("acme/open-order/", after, limit, Open::is_over),
    handle: |work, record_key, _| {
        let parts: Vec<_> = record_key.trim_start_matches("acme/open-order/").split('/').collect();
        if let [endpoint, account, id] = parts.as_slice() {
            match find_order(work, endpoint, account, id)? {
                // By now it reads as invalid.
                Some(order) if !order.is_open() => order.save(work)?,
                Some(_) => {}
                None => work.delete(&open_record_key(endpoint, account, id)),
            }
        }
        Ok(())
    },
};

/// Forgets orders long after their end, with their authorizations.
pub const FORGET_ORDERS: Sweep = Sweep {
    find: |work, after, limit| work.due("acme/order/", after, limit, Record::is_old),
    handle: |work, record_key, _| forget_order(work, record_key),
};

/// Forgets certificates long after their end.
pub const FORGET_CERTIFICATES: Sweep = Sweep {
    find: |work, after, limit| {
        work.due("acme/certificate/", after, limit, certificate::Record::is_old)
    },
    handle: |work, record_key, _| certificate::forget(work, record_key),
};

/// Prefixes of the records below an endpoint.
const BELOW: &[&str] = &[
    "account",
    "account-key",
    "authorization",
    "binding",
    "binding-accounts",
    "certificate",
    "certificate-digest",
    "challenge-task",
    "domain-task",
    "open-order",
    "order",
    "validation",
    "validation-of",
];
/// Records that are deleted in one step.
const STEP: usize = 200;

/// Deletes the resources of deleted endpoints, some in each round. Certificates stay in Certificate Manager and at
/// their CA.
pub const CLEAN_UP: Sweep = Sweep {
    find: |work, after, limit| work.due("acme/deleted/", after, limit, Deleted::is_due),
    handle: |work, record_key, _| {
        let id = record_key.trim_start_matches("acme/deleted/");
        let mut left = STEP;
        for kind in BELOW {
            let prefix = format!("acme/{kind}/{id}/");
            let found = work.store().scan(&prefix, "", left)?;
            left -= found.len().min(left);
            for (below, _) in found {
                work.delete(&below);
                // A MAC key never outlives its binding.
                if *kind == "binding" {
                    work.delete(&below.replacen("acme/binding/", "acme/binding-secret/", 1));
                }
            }
            if left == 0 {
                return Ok(());
            }
        }
        work.delete(&format!("acme/account-count/{id}"));
        work.delete(record_key);
        Ok(())
    },
};

/// Deletes the order with this record key and its authorizations, if it is old.
fn forget_order(work: &mut Work<'_>, at: &str) -> Result<(), Fault> {
    let now_ms = work.now_ms();
    let Some(record) = work.get::<Record>(at)?.filter(|record| record.is_old(now_ms)) else {
        return Ok(());
    };
    if let [_, _, endpoint, account, id] = at.split('/').collect::<Vec<_>>().as_slice() {
        for authorization in &record.authorizations {
            work.delete(&authorization::record_key(endpoint, account, authorization));
        }
        work.delete(&open_record_key(endpoint, account, id));
    }
    work.delete(at);
    Ok(())
}
