//! Orders, authorizations, challenges and certificates (RFC 8555, sections 7.4 to 7.6; RFC 9773).

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use outlast_domain::acme::{
    self, AcmeError, Authorization, AuthorizationStatus, Certificate, ChallengeKind,
    ChallengeStatus, DnsName, Endpoint, Finalize, Holder, Kind, NewOrder, Order, OrderStatus,
    Problem, Revocation,
};
use outlast_domain::limits::MAX_ACME_IDENTIFIERS;
use outlast_domain::work::Work;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::objects::{self, AuthorizationRequest, FinalizeRequest, OrderRequest, RevokeRequest};
use super::{Call, RENEWAL_RETRY_AFTER, Reply};

/// newOrder (RFC 8555, section 7.4).
pub(super) fn create(call: &mut Call<'_>) -> Result<Reply, AcmeError> {
    let account = call.account()?.clone();
    let wanted: OrderRequest = call.jws.json()?;
    if wanted.identifiers.len() > MAX_ACME_IDENTIFIERS {
        return Err(AcmeError::malformed(format!(
            "An order has at most {MAX_ACME_IDENTIFIERS} identifiers."
        )));
    }
    let mut names = Vec::new();
    for identifier in &wanted.identifiers {
        if identifier.kind != "dns" {
            return Err(AcmeError::new(
                Kind::UNSUPPORTED_IDENTIFIER,
                "Identifiers must be of the type dns.",
            ));
        }
        let name = DnsName::parse(&identifier.value).map_err(|why| {
            // The value may be anything, so the message gives its position instead.
            let index = names.len() + 1;
            AcmeError::new(Kind::REJECTED_IDENTIFIER, format!("Identifier {index}: {why}."))
        })?;
        names.push(name);
    }
    let listed: Vec<_> = names.iter().map(DnsName::to_string).collect();
    call.notes.parameter("identifiers", listed);
    let new = NewOrder {
        names,
        not_before: time("notBefore", wanted.not_before.as_deref())?,
        not_after: time("notAfter", wanted.not_after.as_deref())?,
        replaces: wanted.replaces,
    };
    let order = acme::create_order(&mut call.work, &account, new)?;
    let url = call.urls.order(&order);
    call.notes.response("orderUrl", url.as_str());
    Ok(shown(call, &order, 201).at(url).changed())
}

fn time(name: &str, text: Option<&str>) -> Result<Option<i64>, AcmeError> {
    text.map(|text| {
        OffsetDateTime::parse(text, &Rfc3339).map(OffsetDateTime::unix_timestamp).map_err(|_| {
            AcmeError::malformed(format!("{name} is not a time in the format of RFC 3339."))
        })
    })
    .transpose()
}

fn shown(call: &Call<'_>, order: &Order, status: u16) -> Reply {
    let waits = order.status() == OrderStatus::Pending;
    Reply::json(status, &objects::order(order, &call.urls)).retry(waits)
}

fn find(call: &mut Call<'_>, account: &str, id: &str) -> Result<Order, AcmeError> {
    call.own_account(account)?;
    acme::find_order(&mut call.work, call.endpoint.id(), account, id)?
        .ok_or_else(|| AcmeError::not_found("order"))
}

/// An order's URL: reads it.
pub(super) fn show(call: &mut Call<'_>, account: &str, id: &str) -> Result<Reply, AcmeError> {
    let order = find(call, account, id)?;
    call.require_get()?;
    Ok(shown(call, &order, 200))
}

/// The URL that finalizes an order.
pub(super) fn finalize(call: &mut Call<'_>, account: &str, id: &str) -> Result<Reply, AcmeError> {
    let mut order = find(call, account, id)?;
    let wanted: FinalizeRequest = call.jws.json()?;
    let csr = URL_SAFE_NO_PAD
        .decode(&wanted.csr)
        .map_err(|_| AcmeError::malformed("`csr` is not base64url without padding."))?;
    let account = call.account()?.clone();
    let (caller, conditions) = call.caller(&account)?;
    call.notes.parameter("orderUrl", call.urls.order(&order));
    call.notes
        .resource(account.endpoint().authority().arn.clone(), "AWS::ACMPCA::CertificateAuthority");
    let given = Finalize {
        csr: &csr,
        account_key: call.key.spki(),
        ring: call.service.ring(),
        policies: call.service.policies(),
        caller: &caller,
        conditions: &conditions,
    };
    let certificate = acme::finalize(&mut call.work, &account, &mut order, &given)?;
    call.notes.response("certificateArn", certificate.arn());
    call.notes.resource(certificate.arn().to_owned(), "AWS::ACM::Certificate");
    Ok(shown(call, &order, 200).at(call.urls.order(&order)).changed())
}

fn find_authorization(
    call: &mut Call<'_>,
    account: &str,
    id: &str,
) -> Result<Authorization, AcmeError> {
    call.own_account(account)?;
    acme::find_authorization(&mut call.work, call.endpoint.id(), account, id)?
        .ok_or_else(|| AcmeError::not_found("authorization"))
}

/// An authorization's URL: reads it or deactivates it (RFC 8555, section 7.5.2).
pub(super) fn authorization(
    call: &mut Call<'_>,
    account: &str,
    id: &str,
) -> Result<Reply, AcmeError> {
    let mut found = find_authorization(call, account, id)?;
    let mut changed = false;
    if !call.is_get() {
        let wanted: AuthorizationRequest = call.jws.json()?;
        if wanted.status.as_deref() != Some("deactivated") {
            return Err(AcmeError::malformed(
                "An authorization's status can only be set to deactivated.",
            ));
        }
        acme::deactivate_authorization(&mut call.work, &mut found)?;
        changed = true;
    }
    let waits = found.status() == AuthorizationStatus::Pending;
    let mut reply = Reply::json(200, &objects::authorization(&found, &call.urls)).retry(waits);
    reply.changed = changed;
    Ok(reply)
}

/// A challenge's URL: reads it, or says that the client is ready (RFC 8555, section 7.5.1).
pub(super) fn challenge(
    call: &mut Call<'_>,
    account: &str,
    id: &str,
    kind: ChallengeKind,
) -> Result<Reply, AcmeError> {
    let mut found = find_authorization(call, account, id)?;
    let mut begun = false;
    if !call.is_get() {
        // An empty object; other members are ignored.
        let _: serde_json::Map<String, serde_json::Value> = call.jws.json()?;
        let was = found.challenge(kind).map(|challenge| challenge.status);
        let account = call.account()?.clone();
        acme::respond(&mut call.work, &account, &mut found, kind)?;
        let is = found.challenge(kind).map(|challenge| challenge.status);
        begun = was != is;
    }
    let shown = found.challenge(kind).ok_or_else(|| AcmeError::not_found("challenge"))?;
    let waits = shown.status == ChallengeStatus::Processing;
    let mut reply = Reply::json(200, &objects::challenge(shown, &found, &call.urls))
        .link(call.urls.authorization(account, id), "up")
        .retry(waits);
    (reply.changed, reply.has_job) = (begun, begun);
    Ok(reply)
}

/// A certificate's URL: downloads it (RFC 8555, section 7.4.2).
pub(super) fn certificate(call: &mut Call<'_>, id: &str) -> Result<Reply, AcmeError> {
    let endpoint = call.endpoint.clone();
    let found = acme::find_certificate(&mut call.work, &endpoint, id)?
        .ok_or_else(|| AcmeError::not_found("certificate"))?;
    call.own_account(found.account())?;
    call.require_get()?;
    let mut reply = Reply::json(200, &serde_json::Value::Null);
    reply.content_type = "application/pem-certificate-chain";
    reply.body = found.chain().as_bytes().to_vec();
    Ok(reply)
}

/// The renewal window of a certificate (RFC 9773, section 4); a GET without a signature.
pub(super) fn renewal_info(
    work: &mut Work<'_>,
    endpoint: &Endpoint,
    id: &str,
) -> Result<Reply, AcmeError> {
    let found = acme::find_certificate(work, endpoint, id)?
        .ok_or_else(|| AcmeError::not_found("certificate"))?;
    let window = acme::renewal(work, &found)?;
    let mut reply = Reply::json(200, &objects::renewal_info(window));
    reply.retry_after = Some(RENEWAL_RETRY_AFTER);
    Ok(reply)
}

/// revokeCert (RFC 8555, section 7.6): by an account, or by the certificate's own key.
pub(super) fn revoke(call: &mut Call<'_>) -> Result<Reply, AcmeError> {
    let wanted: RevokeRequest = call.jws.json()?;
    let der = URL_SAFE_NO_PAD
        .decode(&wanted.certificate)
        .map_err(|_| AcmeError::malformed("`certificate` is not base64url without padding."))?;
    let endpoint = call.endpoint.clone();
    let found = acme::find_certificate_by_der(&mut call.work, &endpoint, &der)?;
    let missing = || {
        AcmeError::Problem(Box::new(Problem {
            kind: Kind::UNAUTHORIZED,
            detail: "This endpoint did not issue that certificate.".into(),
            subproblems: Vec::new(),
            status: Some(404),
        }))
    };
    let found = found.ok_or_else(missing)?;
    let reason = wanted.reason.unwrap_or(0);
    let reason = u8::try_from(reason).unwrap_or(u8::MAX);
    call.notes.parameter("certificateArn", found.arn());
    call.notes.parameter("reason", reason);
    call.notes.resource(found.arn().to_owned(), "AWS::ACM::Certificate");
    match call.account.clone() {
        Some(account) => {
            let (caller, conditions) = call.caller(&account)?;
            let holder = Holder::Account(&account, &caller);
            let policies = call.service.policies();
            let asked = Revocation { holder, reason, conditions: &conditions, policies };
            acme::revoke(&mut call.work, &found, &asked)?;
        }
        None => revoke_by_key(call, &found, reason)?,
    }
    let mut reply = Reply::json(200, &serde_json::Value::Null);
    (reply.content_type, reply.body) = ("", Vec::new());
    Ok(reply.changed())
}

fn revoke_by_key(call: &mut Call<'_>, found: &Certificate, reason: u8) -> Result<(), AcmeError> {
    if found.public_key()? != call.key.spki() {
        return Err(AcmeError::new(
            Kind::UNAUTHORIZED,
            "The request is not signed with the certificate's key.",
        ));
    }
    // The event names the account that the certificate was issued to.
    call.account = found.holder(&mut call.work)?;
    call.notes.parameter("signedBy", "certificate key");
    let conditions = outlast_domain::policy::ConditionKeys::new();
    let (holder, policies) = (Holder::CertificateKey(call.key.spki()), call.service.policies());
    let asked = Revocation { holder, reason, conditions: &conditions, policies };
    acme::revoke(&mut call.work, found, &asked)
}
