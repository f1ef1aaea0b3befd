//! ACME accounts: a key, and the role that the account acts as.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::binding::{self, SERVICE_PRINCIPAL, binding_arn, binding_count_record_key};
use super::{AcmeError, Binding, Contact, Endpoint, Kind, is_id, new_id};
use crate::acm::AcmError;
use crate::identity::session::{ServiceRequest, trusts_service};
use crate::identity::{
    Caller, Entry, Identity, IdentityError, Permit, PolicyCache, Principal, Role, action,
};
use crate::policy::Kind as PolicyKind;
use crate::work::{Page, Work};
use crate::{Fault, limits};

/// The key of an account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccountKey {
    /// The JWK in its canonical form (RFC 7638, section 3).
    pub jwk: String,
    /// Its SHA-256 thumbprint in base64url.
    pub thumbprint: String,
}

/// Whether an account may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum AccountStatus {
    /// `valid`: may be used.
    Valid,
    /// `deactivated` by its holder.
    Deactivated,
    /// `revoked` by the endpoint's owner.
    Revoked,
}

impl AccountStatus {
    /// Name in ACME; AWS's is the same in capitals.
    pub fn name(self) -> &'static str {
        match self {
            Self::Valid => "valid",
            Self::Deactivated => "deactivated",
            Self::Revoked => "revoked",
        }
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Record {
    id: String,
    key: AccountKey,
    status: AccountStatus,
    contacts: Vec<String>,
    binding: String,
    /// `externalAccountBinding` as the client sent it: a JWS in JSON.
    binding_jws: String,
    role: String,
    role_id: String,
    created_ms: i64,
}

/// An account.
#[derive(Debug, Clone)]
pub struct Account {
    endpoint: Endpoint,
    record: Record,
}

impl Account {
    /// Id.
    pub fn id(&self) -> &str {
        &self.record.id
    }

    /// The account's endpoint.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Its key.
    pub fn key(&self) -> &AccountKey {
        &self.record.key
    }

    /// Whether the account may be used.
    pub fn status(&self) -> AccountStatus {
        self.record.status
    }

    /// Contact URLs.
    pub fn contacts(&self) -> &[String] {
        &self.record.contacts
    }

    /// ARN of the binding that the account was made with.
    pub fn binding_arn(&self) -> String {
        binding_arn(&self.endpoint, &self.record.binding)
    }

    /// The binding as the client sent it, a JWS in JSON.
    pub fn binding_jws(&self) -> &str {
        &self.record.binding_jws
    }

    /// Milliseconds since 1970.
    pub fn created_ms(&self) -> i64 {
        self.record.created_ms
    }

    fn save(&self, work: &mut Work<'_>) -> Result<(), Fault> {
        work.put(&record_key(self.endpoint.id(), self.id()), &self.record)
    }
}

/// Properties of a new account.
pub struct NewAccount {
    /// Its key.
    pub key: AccountKey,
    /// Contact URLs.
    pub contacts: Vec<String>,
    /// The binding that was proved.
    pub binding: Binding,
    /// The proof, a JWS in JSON.
    pub binding_jws: String,
}

/// Makes an account for a client that has proved possession of the binding's key.
pub fn create_account(
    work: &mut Work<'_>,
    endpoint: &Endpoint,
    new: NewAccount,
) -> Result<Account, AcmeError> {
    check_contacts(endpoint, &new.contacts)?;
    let count_record_key = count_record_key(endpoint.id());
    let count = work.get::<u64>(&count_record_key)?.unwrap_or(0);
    if count >= limits::MAX_ACME_ACCOUNTS {
        return Err(AcmeError::new(Kind::RATE_LIMITED, "The endpoint has too many accounts."));
    }
    work.put(&count_record_key, &(count + 1))?;
    let of_binding = binding_count_record_key(endpoint.id(), new.binding.id());
    let count = work.get::<u64>(&of_binding)?.unwrap_or(0);
    if count >= limits::MAX_ACME_BINDING_ACCOUNTS {
        return Err(AcmeError::new(
            Kind::RATE_LIMITED,
            "The external account binding has created too many accounts; use another one.",
        ));
    }
    work.put(&of_binding, &(count + 1))?;
    let (role, role_id) = new.binding.role();
    let record = Record {
        id: new_id()?,
        status: AccountStatus::Valid,
        contacts: new.contacts,
        binding: new.binding.id().to_owned(),
        binding_jws: new.binding_jws,
        role: role.to_owned(),
        role_id: role_id.to_owned(),
        created_ms: work.now_ms(),
        key: new.key,
    };
    binding::used(work, new.binding)?;
    let account = Account { endpoint: endpoint.clone(), record };
    work.put(&key_record_key(endpoint.id(), &account.record.key), &account.record.id)?;
    account.save(work)?;
    Ok(account)
}

/// Contacts are `mailto:` URLs with one address each (RFC 8555, section 7.3).
fn check_contacts(endpoint: &Endpoint, contacts: &[String]) -> Result<(), AcmeError> {
    let invalid = |why: &str| AcmeError::new(Kind::INVALID_CONTACT, why);
    if contacts.is_empty() && endpoint.contact() == Contact::Required {
        return Err(invalid("This endpoint requires a contact."));
    }
    if contacts.len() > limits::MAX_ACME_CONTACTS {
        return Err(invalid("There are too many contacts."));
    }
    for contact in contacts {
        if contact.len() > limits::MAX_ACME_CONTACT || contact.contains(char::is_control) {
            return Err(invalid("A contact is too long or has control characters."));
        }
        let Some(address) = contact.strip_prefix("mailto:") else {
            return Err(AcmeError::new(
                Kind::UNSUPPORTED_CONTACT,
                "A contact must be a mailto URL.",
            ));
        };
        let is_one = address.split_once('@').is_some_and(|(user, host)| {
            !user.is_empty() && !host.is_empty() && !host.contains('@')
        });
        // "Clients MUST NOT include hfields or more than one addr-spec."
        if !is_one || address.contains(['?', ',', ' ']) {
            return Err(invalid("A contact must be one mail address without header fields."));
        }
    }
    Ok(())
}

/// The account of an endpoint with this id.
pub fn find_account(
    work: &mut Work<'_>,
    endpoint: &Endpoint,
    id: &str,
) -> Result<Option<Account>, Fault> {
    if !is_id(id) {
        return Ok(None);
    }
    let record = work.get::<Record>(&record_key(endpoint.id(), id))?;
    Ok(record.map(|record| Account { endpoint: endpoint.clone(), record }))
}

/// The account of an endpoint with this key.
pub fn account_by_key(
    work: &mut Work<'_>,
    endpoint: &Endpoint,
    key: &AccountKey,
) -> Result<Option<Account>, Fault> {
    match work.get::<String>(&key_record_key(endpoint.id(), key))? {
        Some(id) => find_account(work, endpoint, &id),
        None => Ok(None),
    }
}

/// Accounts of an endpoint, after the marker of the previous page.
pub fn accounts(
    work: &Work<'_>,
    endpoint: &Endpoint,
    marker: Option<&str>,
    limit: usize,
    permit: &Permit<action::acm::ListAcmeAccounts>,
) -> Result<Page<Account>, AcmError> {
    permit.opens(&endpoint.arn())?;
    let page = work.page::<Record>(&prefix(endpoint.id()), marker, limit)?;
    let items = page.items.into_iter();
    let items = items.map(|record| Account { endpoint: endpoint.clone(), record }).collect();
    Ok(Page { items, next: page.next })
}

/// Replaces the contacts.
pub fn set_contacts(
    work: &mut Work<'_>,
    account: &mut Account,
    contacts: Vec<String>,
) -> Result<(), AcmeError> {
    check_contacts(&account.endpoint, &contacts)?;
    account.record.contacts = contacts;
    Ok(account.save(work)?)
}

/// Replaces the account's key. The old key identifies nobody from then on.
pub fn change_key(
    work: &mut Work<'_>,
    account: &mut Account,
    key: AccountKey,
) -> Result<(), AcmeError> {
    let endpoint = account.endpoint.id().to_owned();
    work.delete(&key_record_key(&endpoint, &account.record.key));
    work.put(&key_record_key(&endpoint, &key), &account.record.id)?;
    account.record.key = key;
    Ok(account.save(work)?)
}

/// Deactivates the account on behalf of its holder.
pub fn deactivate_account(work: &mut Work<'_>, account: &mut Account) -> Result<(), AcmeError> {
    account.record.status = AccountStatus::Deactivated;
    Ok(account.save(work)?)
}

/// Revokes the account on behalf of the endpoint's owner, for good. It no longer counts against the binding's limit.
/// A deactivated account still counts: otherwise a client could make and deactivate accounts without end.
pub fn revoke_account(
    work: &mut Work<'_>,
    mut account: Account,
    permit: &Permit<action::acm::RevokeAcmeAccount>,
) -> Result<(), AcmError> {
    permit.opens(&account.endpoint.arn())?;
    match account.record.status {
        AccountStatus::Revoked => Ok(()),
        AccountStatus::Deactivated => {
            Err(AcmError::Conflict("The ACME account is already deactivated.".into()))
        }
        AccountStatus::Valid => {
            account.record.status = AccountStatus::Revoked;
            let endpoint = account.endpoint.id();
            let of_binding = binding_count_record_key(endpoint, &account.record.binding);
            for record_key in [count_record_key(endpoint), of_binding] {
                // The binding may be deleted, and its count with it.
                if let Some(count) = work.get::<u64>(&record_key)? {
                    work.put(&record_key, &count.saturating_sub(1))?;
                }
            }
            Ok(account.save(work)?)
        }
    }
}

/// The principal that acts for the account: a session of its role.
pub fn principal_of(account: &Account) -> Principal {
    Principal {
        account: account.endpoint.scope().account.clone(),
        access_key_id: String::new(),
        identity: Identity::Session {
            role: account.record.role.clone(),
            role_id: account.record.role_id.clone(),
            session: format!("acm-acme-{}", account.record.id),
            issued_ms: account.record.created_ms,
        },
    }
}

/// The same with the role's policies. A role that is gone, or was made again, has no permissions.
pub fn find_caller(
    work: &mut Work<'_>,
    cache: &PolicyCache,
    account: &Account,
) -> Result<Caller, AcmeError> {
    let gone = || {
        AcmeError::new(
            Kind::UNAUTHORIZED,
            "The role of the external account binding no longer exists.",
        )
    };
    let owner = &account.endpoint.scope().account;
    let role = match Role::find(work, owner, &account.record.role) {
        Ok(role) if role.id == account.record.role_id => role,
        Err(IdentityError::Fault(fault)) => return Err(fault.into()),
        Ok(_) | Err(_) => return Err(gone()),
    };
    let source_identity = format!("acm-acme-{}", account.id());
    let asked = ServiceRequest {
        service: SERVICE_PRINCIPAL,
        source_arn: &account.endpoint.arn(),
        source_identity: &source_identity,
        session_name: None,
        tags: None,
        now_ms: work.now_ms(),
    };
    if !trusts_service(cache, &role, &asked)? {
        return Err(AcmeError::new(
            Kind::UNAUTHORIZED,
            format!("The role of the external account binding does not trust {SERVICE_PRINCIPAL}."),
        ));
    }
    let arn = role.arn();
    let policies = role
        .policies
        .values()
        .map(|text| cache.parse(PolicyKind::Identity, text, &arn))
        .collect::<Result<_, _>>()?;
    Ok(Caller {
        principal: principal_of(account),
        tags: role.tags,
        started_by: None,
        source_identity: Some(source_identity),
        transitive_tags: BTreeMap::new(),
        policies,
        session: Vec::new(),
    })
}

fn prefix(endpoint: &str) -> String {
    format!("acme/account/{endpoint}/")
}

fn record_key(endpoint: &str, id: &str) -> String {
    format!("{}{id}", prefix(endpoint))
}

fn count_record_key(endpoint: &str) -> String {
    format!("acme/account-count/{endpoint}")
}

fn key_record_key(endpoint: &str, key: &AccountKey) -> String {
    format!("acme/account-key/{endpoint}/{}", key.thumbprint)
}
