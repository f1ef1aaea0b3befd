//! Orders (RFC 8555, section 7.1.3): requests for a certificate for some names.

use serde::{Deserialize, Serialize};

use super::{Account, DnsName, Kind, StoredProblem, is_id};
use crate::work::{Page, Work};
use crate::{Fault, limits};

/// Status of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum OrderStatus {
    /// `pending`: a name is not authorized yet.
    Pending,
    /// `ready`: can be finalized.
    Ready,
    /// `valid`: the certificate is issued.
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
    /// Whether it is long past its end.
    pub fn is_old(&self, now_ms: i64) -> bool {
        self.expires_ms + limits::KEEP_ENDED_ACME_ORDER_MS <= now_ms
    }
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

    /// Status.
    pub fn status(&self) -> OrderStatus {
        self.record.status
    }

    /// The names.
    pub fn names(&self) -> &[DnsName] {
        &self.record.names
    }

    /// Requested start of validity, seconds since 1970.
    pub fn not_before(&self) -> Option<i64> {
        self.record.not_before
    }

    /// Requested end of validity, seconds since 1970.
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

    /// Saves the order and updates the list of open ones.
    pub(super) fn save(&self, work: &mut Work<'_>) -> Result<(), Fault> {
        let open = open_record_key(&self.endpoint, &self.account, self.id());
        if self.is_open() {
            work.put(&open, &Open { expires_ms: self.record.expires_ms })?;
        } else {
            work.delete(&open);
        }
        work.put(&record_key(&self.endpoint, &self.account, self.id()), &self.record)
    }

    /// Marks the order as failed.
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
    /// Whether it is past its end.
    pub fn is_over(&self, now_ms: i64) -> bool {
        self.expires_ms <= now_ms
    }
}

/// Finds an order of an account. An open order past its end reads as invalid.
pub fn find_order(
    work: &mut Work<'_>,
    endpoint: &str,
    account: &str,
    id: &str,
) -> Result<Option<Order>, Fault> {
    if !is_id(endpoint) || !is_id(account) || !is_id(id) {
        return Ok(None);
    }
    let Some(record) = work.get::<Record>(&record_key(endpoint, account, id))? else {
        return Ok(None);
    };
    let mut order = Order { endpoint: endpoint.to_owned(), account: account.to_owned(), record };
    if order.is_open() && order.record.expires_ms <= work.now_ms() {
        order.fail(Kind::MALFORMED, "The order has expired.");
    }
    Ok(Some(order))
}

/// Ids of an account's orders that are not invalid, after the marker of the previous page.
pub fn orders(
    work: &Work<'_>,
    account: &Account,
    marker: Option<&str>,
    limit: usize,
) -> Result<Page<String>, Fault> {
    let prefix = record_key(account.endpoint().id(), account.id(), "");
    let page = work.page::<Record>(&prefix, marker.filter(|id| is_id(id)), limit)?;
    let items = page.items.into_iter().filter(|order| order.status != OrderStatus::Invalid);
    Ok(Page { items: items.map(|order| order.id).collect(), next: page.next })
}

pub(super) fn record_key(endpoint: &str, account: &str, id: &str) -> String {
    format!("acme/order/{endpoint}/{account}/{id}")
}

pub(super) fn open_record_key(endpoint: &str, account: &str, id: &str) -> String {
    format!("acme/open-order/{endpoint}/{account}/{id}")
}
