//! Orders (RFC 8555, section 7.1.3): names that a certificate is wanted for.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::authorization::{self, AuthorizationStatus};
use super::validation::Domains;
use super::{
    Account, AcmeError, AuthorizationBehavior, DnsName, Kind, StoredProblem, Subproblem,
    authority_of, certificate, is_id, new_id, validation,
};
use crate::work::{Page, Work};
use crate::{Fault, limits};

/// Where an order stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum OrderStatus {
    /// `pending`: a name is not authorized yet.
    Pending,
    /// `ready`: to be finalized.
    Ready,
    /// `valid`: the certificate is there.
    Valid,
    /// `invalid`
    Invalid,
}

impl OrderStatus {
    /// Name in ACME.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Ready => "ready",
            Self::Valid => "valid",
            Self::Invalid => "invalid",
        }
    }
}

/// An order as stored.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Record {
    pub id: String,
    pub status: OrderStatus,
    pub names: Vec<DnsName>,
    /// Seconds since 1970.
    pub not_before: Option<i64>,
    /// Seconds since 1970.
    pub not_after: Option<i64>,
    pub authorizations: Vec<String>,
    pub expires_ms: i64,
    pub error: Option<StoredProblem>,
    /// Id of the certificate.
    pub certificate: Option<String>,
    /// Id of the certificate that this one is to replace.
    pub replaces: Option<String>,
}

impl Record {
    /// Whether nobody asks for it any more.
    pub fn is_old(&self, now_ms: i64) -> bool {
        self.expires_ms + limits::KEEP_ENDED_ACME_ORDER_MS <= now_ms
    }
}

/// Deletes the order at this place with its authorizations, if it is old.
pub(super) fn forget(work: &mut Work<'_>, at: &str) -> Result<(), Fault> {
    let now_ms = work.now_ms();
    let Some(record) = work.get::<Record>(at)?.filter(|record| record.is_old(now_ms)) else {
        return Ok(());
    };
    if let [_, _, endpoint, account, id] = at.split('/').collect::<Vec<_>>().as_slice() {
        for authorization in &record.authorizations {
            work.delete(&authorization::place(endpoint, account, authorization));
        }
        work.delete(&open_place(endpoint, account, id));
    }
    work.delete(at);
    Ok(())
}

/// An order.
#[derive(Debug, Clone)]
pub struct Order {
    pub(super) endpoint: String,
    pub(super) account: String,
    pub(super) record: Record,
}

impl Order {
    /// Id.
    pub fn id(&self) -> &str {
        &self.record.id
    }

    /// Id of the account.
    pub fn account(&self) -> &str {
        &self.account
    }

    /// Where it stands.
    pub fn status(&self) -> OrderStatus {
        self.record.status
    }

    /// The names.
    pub fn names(&self) -> &[DnsName] {
        &self.record.names
    }

    /// The beginning that was asked for, seconds since 1970.
    pub fn not_before(&self) -> Option<i64> {
        self.record.not_before
    }

    /// The end that was asked for, seconds since 1970.
    pub fn not_after(&self) -> Option<i64> {
        self.record.not_after
    }

    /// Ids of the authorizations.
    pub fn authorizations(&self) -> &[String] {
        &self.record.authorizations
    }

    /// When it expires, milliseconds since 1970.
    pub fn expires_ms(&self) -> i64 {
        self.record.expires_ms
    }

    /// Why it is invalid.
    pub fn error(&self) -> Option<&StoredProblem> {
        self.record.error.as_ref()
    }

    /// Id of the certificate.
    pub fn certificate(&self) -> Option<&str> {
        self.record.certificate.as_deref()
    }

    /// Id of the certificate that this one is to replace.
    pub fn replaces(&self) -> Option<&str> {
        self.record.replaces.as_deref()
    }

    pub(super) fn is_open(&self) -> bool {
        matches!(self.record.status, OrderStatus::Pending | OrderStatus::Ready)
    }

    /// Saves it, and files it among the open ones or takes it away from them.
    pub(super) fn save(&self, work: &mut Work<'_>) -> Result<(), Fault> {
        let open = open_place(&self.endpoint, &self.account, self.id());
        if self.is_open() {
            work.put(&open, &Open { expires_ms: self.record.expires_ms })?;
        } else {
            work.delete(&open);
        }
        work.put(&place(&self.endpoint, &self.account, self.id()), &self.record)
    }

    /// It has failed.
    pub(super) fn fail(&mut self, kind: &'static Kind, detail: impl Into<String>) {
        self.record.status = OrderStatus::Invalid;
        self.record.error =
            Some(StoredProblem { kind: kind.name.to_owned(), detail: detail.into() });
    }
}

/// An order that is pending or ready.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Open {
    expires_ms: i64,
}

impl Open {
    /// Whether its time is over.
    pub fn is_over(&self, now_ms: i64) -> bool {
        self.expires_ms <= now_ms
    }
}

/// What a new order shall be.
pub struct NewOrder {
    /// The names.
    pub names: Vec<DnsName>,
    /// Beginning of validity, seconds since 1970.
    pub not_before: Option<i64>,
    /// End of validity, seconds since 1970.
    pub not_after: Option<i64>,
    /// Id of the certificate that this one is to replace (RFC 9773, section 5).
    pub replaces: Option<String>,
}

/// Makes an order with an authorization for each name.
pub fn create_order(
    work: &mut Work<'_>,
    account: &Account,
    new: NewOrder,
) -> Result<Order, AcmeError> {
    let endpoint = account.endpoint();
    let names: Vec<_> = new.names.into_iter().collect::<BTreeSet<_>>().into_iter().collect();
    if names.is_empty() {
        return Err(AcmeError::malformed("The order has no identifiers."));
    }
    if names.len() > limits::MAX_ACME_IDENTIFIERS {
        return Err(AcmeError::malformed(format!(
            "An order has at most {} identifiers.",
            limits::MAX_ACME_IDENTIFIERS
        )));
    }
    let open = format!("acme/open-order/{}/{}/", endpoint.id(), account.id());
    if work.scan::<Open>(&open, "", limits::MAX_ACME_OPEN_ORDERS)?.len()
        >= limits::MAX_ACME_OPEN_ORDERS
    {
        return Err(AcmeError::new(Kind::RATE_LIMITED, "The account has too many open orders."));
    }
    let mut order = Order {
        endpoint: endpoint.id().to_owned(),
        account: account.id().to_owned(),
        record: Record {
            id: new_id()?,
            status: OrderStatus::Pending,
            names,
            not_before: new.not_before,
            not_after: new.not_after,
            authorizations: Vec::new(),
            expires_ms: work.now_ms() + limits::ACME_ORDER_MS,
            error: None,
            certificate: None,
            replaces: new.replaces,
        },
    };
    check_period(work, account, &order.record)?;
    if let Some(id) = &order.record.replaces {
        certificate::check_replaceable(work, account, &order.record.id, id, &order.record.names)?;
    }
    let mut refused = Vec::new();
    let mut all_valid = true;
    let domains = Domains::of(work, endpoint)?;
    for name in &order.record.names {
        let covering = validation::covering(work, endpoint, &domains, name)?;
        if covering.is_none() && endpoint.authorization() == AuthorizationBehavior::PreApproved {
            refused.push(Subproblem {
                kind: Kind::REJECTED_IDENTIFIER,
                detail: format!("No valid domain validation of this endpoint covers {name}."),
                name: name.clone(),
            });
            continue;
        }
        all_valid &= covering.is_some();
        let made = authorization::create(work, &order, name, covering.as_ref())?;
        order.record.authorizations.push(made);
    }
    if let Some(error) = AcmeError::from_subproblems(refused) {
        return Err(error);
    }
    if all_valid {
        order.record.status = OrderStatus::Ready;
    }
    order.save(work)?;
    Ok(order)
}

/// The period that is asked for is one that the endpoint's CA can give.
fn check_period(work: &mut Work<'_>, account: &Account, order: &Record) -> Result<(), AcmeError> {
    let now = work.now();
    let latest = now + limits::MANAGED_SECONDS;
    let start = order.not_before.unwrap_or(now);
    if start < now - limits::MAX_ACME_BACKDATING_SECONDS {
        return Err(AcmeError::malformed("notBefore is more than an hour ago."));
    }
    if order.not_after.is_some_and(|end| end <= now) || order.not_after.unwrap_or(latest) <= start {
        return Err(AcmeError::malformed("notAfter is in the past, or not after notBefore."));
    }
    let Some(end) = order.not_after else { return Ok(()) };
    if end > latest {
        return Err(AcmeError::malformed("notAfter is more than 395 days from now."));
    }
    let endpoint = account.endpoint();
    let authority = authority_of(work, endpoint.scope(), endpoint.authority())?;
    if authority.certificate().is_some_and(|own| end > own.not_after()) {
        return Err(AcmeError::malformed("notAfter is after the end of the CA."));
    }
    Ok(())
}

/// An order of an account. One whose time is over reads as invalid.
pub fn find_order(
    work: &mut Work<'_>,
    endpoint: &str,
    account: &str,
    id: &str,
) -> Result<Option<Order>, Fault> {
    if !is_id(endpoint) || !is_id(account) || !is_id(id) {
        return Ok(None);
    }
    let Some(record) = work.get::<Record>(&place(endpoint, account, id))? else { return Ok(None) };
    let mut order = Order { endpoint: endpoint.to_owned(), account: account.to_owned(), record };
    if order.is_open() && order.record.expires_ms <= work.now_ms() {
        order.fail(Kind::MALFORMED, "The order has expired.");
    }
    Ok(Some(order))
}

/// Ids of an account's orders that are not invalid, beginning after the marker of the page before.
pub fn orders(
    work: &Work<'_>,
    account: &Account,
    marker: Option<&str>,
    limit: usize,
) -> Result<Page<String>, Fault> {
    let prefix = place(account.endpoint().id(), account.id(), "");
    let page = work.page::<Record>(&prefix, marker.filter(|id| is_id(id)), limit)?;
    let items = page.items.into_iter().filter(|order| order.status != OrderStatus::Invalid);
    Ok(Page { items: items.map(|order| order.id).collect(), next: page.next })
}

/// Carries what has become of an authorization over to its order.
pub(super) fn authorization_changed(
    work: &mut Work<'_>,
    endpoint: &str,
    account: &str,
    id: &str,
    failed: Option<&StoredProblem>,
) -> Result<(), Fault> {
    let Some(mut order) = find_order(work, endpoint, account, id)? else { return Ok(()) };
    if order.record.status != OrderStatus::Pending && failed.is_none() {
        return Ok(());
    }
    if !order.is_open() {
        return Ok(());
    }
    match failed {
        Some(problem) => {
            order.record.status = OrderStatus::Invalid;
            order.record.error = Some(problem.clone());
        }
        None => {
            for authorization in &order.record.authorizations {
                let found =
                    authorization::find_authorization(work, endpoint, account, authorization)?;
                if found.is_none_or(|found| found.status() != AuthorizationStatus::Valid) {
                    return Ok(());
                }
            }
            order.record.status = OrderStatus::Ready;
        }
    }
    order.save(work)
}

pub(super) fn place(endpoint: &str, account: &str, id: &str) -> String {
    format!("acme/order/{endpoint}/{account}/{id}")
}

pub(super) fn open_place(endpoint: &str, account: &str, id: &str) -> String {
    format!("acme/open-order/{endpoint}/{account}/{id}")
}
