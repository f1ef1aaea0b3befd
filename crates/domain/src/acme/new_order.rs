//! New orders: which are accepted, and the authorization for each name.

use std::collections::BTreeSet;

use super::order::{Open, Order, OrderStatus, Record, open_record_key};
use super::validation::Domains;
use super::{
    Account, AcmeError, AuthorizationBehavior, DnsName, Kind, Subproblem, authority_of,
    authorization, certificate, new_id, validation,
};
use crate::limits;
use crate::work::Work;

/// Properties of a new order.
pub struct NewOrder {
    /// The names to certify.
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
    let open = open_record_key(endpoint.id(), account.id(), "");
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

/// Checks that the endpoint's CA can issue for the requested period.
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
