//! Accounts (RFC 8555, section 7.3).

use outlast_domain::acme::{
    self, Account, AccountKey, AccountStatus, AcmeError, Kind, NewAccount, Problem,
};
use serde_json::{Value, json};

use super::jwk::PublicKey;
use super::jws::{HS256, Jws, Signer};
use super::objects::{self, AccountRequest, KeyChangeRequest};
use super::{Call, Reply};

/// Orders on a page of an account's list.
const PAGE: usize = 100;

/// Refuses an account that is deactivated or revoked (RFC 8555, section 7.3.6).
pub(super) fn require_valid(account: &Account) -> Result<(), AcmeError> {
    if account.status() == AccountStatus::Valid {
        return Ok(());
    }
    Err(AcmeError::new(Kind::UNAUTHORIZED, format!("The account is {}.", account.status().name())))
}

/// newAccount (RFC 8555, section 7.3).
pub(super) fn create(call: &mut Call<'_>) -> Result<Reply, AcmeError> {
    let wanted: AccountRequest = call.jws.json()?;
    let key = call.key.account_key();
    // RFC 8555, section 7.3.1: a key that has an account gets its URL, whatever else the request says.
    if let Some(account) = acme::account_by_key(&mut call.work, &call.endpoint, &key)? {
        let reply = Reply::json(200, &objects::account(&account, &call.urls))
            .at(call.urls.account(account.id()));
        let status = require_valid(&account);
        call.account = Some(account);
        return status.map(|()| reply);
    }
    if wanted.only_return_existing {
        return Err(AcmeError::new(
            Kind::ACCOUNT_DOES_NOT_EXIST,
            "There is no account with this key.",
        ));
    }
    let Some(binding_jws) = &wanted.external_account_binding else {
        return Err(AcmeError::new(
            Kind::EXTERNAL_ACCOUNT_REQUIRED,
            "An account can be created only with an external account binding.",
        ));
    };
    let binding = prove_binding(call, binding_jws)?;
    let new = NewAccount {
        key,
        contacts: wanted.contact.unwrap_or_default(),
        binding,
        binding_jws: binding_jws.to_string(),
    };
    call.notes.parameter("acmeExternalAccountBindingArn", new.binding.arn());
    let endpoint = call.endpoint.clone();
    let account = acme::create_account(&mut call.work, &endpoint, new)?;
    let url = call.urls.account(account.id());
    call.notes.response("accountUrl", url.as_str());
    let reply = Reply::json(201, &objects::account(&account, &call.urls)).at(url).changed();
    call.account = Some(account);
    Ok(reply)
}

/// RFC 8555, section 7.3.4: the inner JWS is made with the MAC key for this account key and this URL.
fn prove_binding(call: &mut Call<'_>, value: &Value) -> Result<acme::Binding, AcmeError> {
    let malformed =
        |why: &str| AcmeError::malformed(format!("The external account binding {why}."));
    let inner = Jws::from_value(value)?;
    if inner.algorithm != HS256 {
        return Err(AcmeError::new(
            Kind::BAD_SIGNATURE_ALGORITHM,
            "The external account binding must have the algorithm HS256.",
        ));
    }
    if inner.nonce.is_some() {
        return Err(malformed("must not have a nonce"));
    }
    if inner.url != call.jws.url {
        return Err(malformed("is for another URL"));
    }
    let Signer::Kid(kid) = &inner.signer else {
        return Err(malformed("must have the id of the key as `kid`"));
    };
    let bound = PublicKey::parse(&inner.json::<Value>()?)?;
    if bound != call.key {
        return Err(AcmeError::new(
            Kind::UNAUTHORIZED,
            "The external account binding is for another account key.",
        ));
    }
    let endpoint = call.endpoint.clone();
    acme::prove(&mut call.work, &endpoint, kid, &inner.signed, &inner.signature).inspect_err(
        |error| {
            // No account exists yet that the refusal could be recorded for.
            if let AcmeError::Problem(problem) = error {
                let (endpoint, why) = (endpoint.id(), problem.detail.as_str());
                tracing::info!(endpoint, why, "an ACME account was refused");
            }
        },
    )
}

/// An account's URL: reads it, changes its contacts or deactivates it.
pub(super) fn update(call: &mut Call<'_>, id: &str) -> Result<Reply, AcmeError> {
    let mut account = call.own_account(id)?.clone();
    let mut changed = false;
    if !call.is_get() {
        let wanted: AccountRequest = call.jws.json()?;
        match wanted.status.as_deref() {
            None => {}
            Some("deactivated") => {
                acme::deactivate_account(&mut call.work, &mut account)?;
                call.notes.parameter("status", "deactivated");
                changed = true;
            }
            // "The server SHOULD ignore" what a client cannot change; but a wrong status must not be ignored.
            Some("valid") => {}
            Some(_) => {
                return Err(AcmeError::malformed(
                    "An account's status can only be set to deactivated.",
                ));
            }
        }
        if let Some(contacts) = wanted.contact {
            acme::set_contacts(&mut call.work, &mut account, contacts)?;
            changed = true;
        }
    }
    let mut reply = Reply::json(200, &objects::account(&account, &call.urls));
    reply.changed = changed;
    Ok(reply)
}

/// The orders of an account (RFC 8555, section 7.1.2.1).
pub(super) fn orders(call: &mut Call<'_>, id: &str) -> Result<Reply, AcmeError> {
    let account = call.own_account(id)?.clone();
    call.require_get()?;
    let cursor = call.request.query.strip_prefix("cursor=");
    let page = acme::orders(&call.work, &account, cursor, PAGE)?;
    let url = |order: &String| call.urls.below(&format!("order/{}/{order}", account.id()));
    let urls: Vec<_> = page.items.iter().map(url).collect();
    let reply = Reply::json(200, &json!({ "orders": urls }));
    Ok(match page.next {
        Some(next) => reply.link(format!("{}/orders?cursor={next}", call.urls.account(id)), "next"),
        None => reply,
    })
}

/// keyChange (RFC 8555, section 7.3.5).
pub(super) fn change_key(call: &mut Call<'_>) -> Result<Reply, AcmeError> {
    let mut account = call.account()?.clone();
    let inner = Jws::parse(call.jws.payload())?;
    let Signer::Jwk(jwk) = &inner.signer else {
        return Err(AcmeError::malformed("The inner JWS must have the new key as `jwk`."));
    };
    let new_key = PublicKey::parse(jwk)?;
    new_key.verify(&inner.algorithm, &inner.signed, &inner.signature)?;
    if inner.nonce.is_some() {
        return Err(AcmeError::malformed("The inner JWS must not have a nonce."));
    }
    if inner.url != call.jws.url {
        return Err(AcmeError::malformed("The inner JWS is for another URL."));
    }
    let wanted: KeyChangeRequest = inner.json()?;
    let is_account = |url: &str| match &call.jws.signer {
        Signer::Kid(kid) => kid == url,
        Signer::Jwk(_) => false,
    };
    if !is_account(&wanted.account) {
        return Err(AcmeError::malformed("The inner JWS is for another account."));
    }
    if PublicKey::parse(&wanted.old_key)? != call.key {
        return Err(AcmeError::malformed("`oldKey` is not the key of the account."));
    }
    let key: AccountKey = new_key.account_key();
    if let Some(other) = acme::account_by_key(&mut call.work, &call.endpoint, &key)? {
        // "The server MUST return 409 (Conflict) and Location of the account that has the key."
        let problem = Problem {
            kind: Kind::MALFORMED,
            detail: "An account already has this key.".into(),
            subproblems: Vec::new(),
            status: None,
        };
        let mut reply = Reply::json(409, &objects::problem(&problem, 409, None));
        reply.content_type = "application/problem+json";
        return Ok(reply.at(call.urls.account(other.id())));
    }
    call.notes.parameter("publicKeyThumbprint", key.thumbprint.as_str());
    acme::change_key(&mut call.work, &mut account, key)?;
    let reply = Reply::json(200, &objects::account(&account, &call.urls))
        .at(call.urls.account(account.id()));
    Ok(reply.changed())
}
