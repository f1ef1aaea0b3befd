//! Finalizes orders (RFC 8555, section 7.4), revokes certificates (7.6), and says when to renew them (RFC 9773).

use std::collections::BTreeSet;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use outlast_crypto::digests;
use outlast_pki::certificate::{Certificate as X509, key_identifier};
use outlast_pki::csr::CertificateRequest;
use outlast_pki::general_name::{GeneralName, decode_names};
use outlast_pki::name::{self, Name};
use outlast_pki::pem;
use outlast_pki::templates::SUBJECT_ALT_NAME;
use serde::{Deserialize, Serialize};

use super::authorization::{self, AuthorizationStatus};
use super::order::{self, Order};
use super::validation::Domains;
use super::{
    Account, AcmeError, AuthorizationBehavior, DnsName, Endpoint, Kind, OrderStatus, account,
    authority_of, validation,
};
use crate::acm::certificate::{self as acm, Origin};
use crate::acm::conditions::{self, Wanted};
use crate::acm::{AcmError, details, template_arn};
use crate::acm::{AcmeOrder, issue_for_acme, revoke_for_acme};
use crate::ca;
use crate::ca::permission::CERTIFICATE_MANAGER;
use crate::identity::access::{at_issuing_authority, by_certificate_key};
use crate::identity::{Caller, Permit, PolicyCache, action, authorize};
use crate::keyring::KeyRing;
use crate::kms::Access;
use crate::policy::ConditionKeys;
use crate::work::Work;
use crate::{Fault, limits};

/// A certificate that ACME issued, as ACME records it; Certificate Manager has a record of its own.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Record {
    /// Id of the account that ordered it.
    account: String,
    /// ARN in Certificate Manager.
    #[serde(deserialize_with = "crate::arn::stored")]
    arn: String,
    /// ARN of the CA.
    #[serde(deserialize_with = "crate::arn::stored")]
    authority: String,
    /// Serial number in lower-case hexadecimal.
    serial: String,
    names: Vec<DnsName>,
    not_before: i64,
    not_after: i64,
    /// The certificate and those above it, without the root, PEM.
    chain: String,
    /// Id of the order that is to replace the certificate.
    replaced_by: Option<String>,
}

impl Record {
    /// Whether it is long past its end: Certificate Manager forgets it then, too.
    pub fn is_old(&self, now_ms: i64) -> bool {
        self.not_after * 1000 + limits::KEEP_ENDED_ACME_MS <= now_ms
    }
}

/// Deletes the record with this key, if it is old.
pub(super) fn forget(work: &mut Work<'_>, at: &str) -> Result<(), Fault> {
    let now_ms = work.now_ms();
    let Some(record) = work.get::<Record>(at)?.filter(|record| record.is_old(now_ms)) else {
        return Ok(());
    };
    work.delete(at);
    let endpoint = at.split('/').nth(2).unwrap_or_default();
    if let Some(leaf) = pem::read_certificates(record.chain.as_bytes())?.first() {
        work.delete(&digest_record_key(endpoint, leaf));
    }
    Ok(())
}

/// A certificate that an endpoint has issued.
#[derive(Debug, Clone)]
pub struct Certificate {
    endpoint: Endpoint,
    id: String,
    record: Record,
}

impl Certificate {
    /// Its id by RFC 9773, section 4.1.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Id of the account that ordered it.
    pub fn account(&self) -> &str {
        &self.record.account
    }

    /// ARN in Certificate Manager.
    pub fn arn(&self) -> &str {
        &self.record.arn
    }

    /// ARN of the CA that issued it.
    pub fn authority(&self) -> &str {
        &self.record.authority
    }

    /// The certificate and those above it, without the root, PEM.
    pub fn chain(&self) -> &str {
        &self.record.chain
    }
}

/// A client's request to finalize an order, and what the decision depends on.
pub struct Finalize<'a> {
    /// PKCS #10 request in DER.
    pub csr: &'a [u8],
    /// The account's key, a DER `SubjectPublicKeyInfo`.
    pub account_key: &'a [u8],
    /// Cache of unsealed keys.
    pub ring: &'a KeyRing,
    /// Cache of parsed policies.
    pub policies: &'a PolicyCache,
    /// The principal of the account.
    pub caller: &'a Caller,
    /// Condition keys of the request.
    pub conditions: &'a ConditionKeys,
}

/// Issues the certificate of an order that is ready. The account's role needs `acm:RequestCertificate`, as at AWS,
/// and `acm-pca:IssueCertificate` on the CA.
pub fn finalize(
    work: &mut Work<'_>,
    account: &Account,
    order: &mut Order,
    given: &Finalize<'_>,
) -> Result<Certificate, AcmeError> {
    let endpoint = account.endpoint();
    if order.status() != OrderStatus::Ready {
        return Err(AcmeError::new(
            Kind::ORDER_NOT_READY,
            format!("The order is {}, not ready.", order.status().name()),
        ));
    }
    check_authorizations(work, endpoint, order)?;
    let request = check_request(order, given)?;
    let key_algorithm = details::key_algorithm(&request.public_key);
    let allowed_keys = &endpoint.authority().key_algorithms;
    if !allowed_keys.is_empty() && !allowed_keys.contains(&key_algorithm) {
        return Err(AcmeError::new(
            Kind::BAD_CSR,
            format!(
                "Keys of type {key_algorithm} are not allowed; use one of {}.",
                allowed_keys.join(", ")
            ),
        ));
    }
    let authority = authority_of(work, endpoint.scope(), endpoint.authority())?;
    let names: Vec<_> = order.names().iter().map(DnsName::to_string).collect();
    let mut conditions = given.conditions.clone();
    // ACM user guide, "Condition keys for ACME certificate requests".
    let wanted = Wanted {
        names: &names,
        key_algorithm: &key_algorithm,
        authority: &authority.arn(),
        origin: Origin::Acme,
        validation_method: "DNS",
        exportable: true,
        transparency: true,
    };
    wanted.set(&mut conditions);
    conditions.set("acm-pca:TemplateArn", template_arn());
    let tags = endpoint.certificate_tags();
    conditions.set_request_tags(tags);
    let certificates = endpoint.scope().arn("acm", "certificate/*");
    authorize(given.caller, &conditions, action::acm::RequestCertificate, &certificates)?;
    if !tags.is_empty() {
        authorize(given.caller, &conditions, action::acm::AddTagsToCertificate, &certificates)?;
    }
    conditions.forward(CERTIFICATE_MANAGER);
    let access = Access {
        caller: given.caller,
        conditions: &conditions,
        policies: given.policies,
        tokens: &[],
        context: None,
    };
    let allowed = ca::authorize(work, access, action::acm_pca::IssueCertificate, &authority)?;
    let wanted = AcmeOrder {
        authority: &authority,
        csr: given.csr,
        subject: subject(order, &request)?,
        names: &names,
        not_before: order.not_before(),
        not_after: order.not_after(),
        endpoint_arn: &endpoint.arn(),
        account_id: account.id(),
        tags: tags.clone(),
    };
    let handed = issue_for_acme(work, given.ring, endpoint.scope(), wanted, &allowed)?;
    let damaged = |_| Fault::Damaged(handed.certificate.arn());
    let leaf = X509::parse_one(handed.text.certificate.as_bytes()).map_err(damaged)?;
    let certificate = Certificate {
        endpoint: endpoint.clone(),
        id: renewal_id(&authority, &leaf)?,
        record: Record {
            account: account.id().to_owned(),
            arn: handed.certificate.arn(),
            authority: authority.arn(),
            serial: handed.certificate.record().details.serial.clone(),
            names: order.names().to_vec(),
            not_before: leaf.not_before(),
            not_after: leaf.not_after(),
            chain: chain(&handed.text.certificate, handed.text.chain.as_deref())?,
            replaced_by: None,
        },
    };
    work.put(&record_key(endpoint.id(), &certificate.id), &certificate.record)?;
    work.put(&digest_record_key(endpoint.id(), leaf.der()), &certificate.id)?;
    order.record.status = OrderStatus::Valid;
    order.record.certificate = Some(certificate.id.clone());
    order.save(work)?;
    Ok(certificate)
}

/// Checks that every name is still authorized: a domain validation may have been deleted since.
fn check_authorizations(
    work: &mut Work<'_>,
    endpoint: &Endpoint,
    order: &Order,
) -> Result<(), AcmeError> {
    let domains = Domains::of(work, endpoint)?;
    for id in order.authorizations() {
        let found = authorization::find_authorization(work, endpoint.id(), order.account(), id)?;
        let refuse = |name: &str| {
            AcmeError::new(Kind::UNAUTHORIZED, format!("{name} is no longer authorized."))
        };
        let Some(found) = found else { return Err(refuse("A name")) };
        let name = found.name().clone();
        let must_be_covered = found.is_pre_approved()
            || endpoint.authorization() == AuthorizationBehavior::PreApproved;
        let holds = found.status() == AuthorizationStatus::Valid
            && (!must_be_covered
                || validation::covering(work, endpoint, &domains, &name)?.is_some());
        if !holds {
            return Err(refuse(&name.to_string()));
        }
    }
    Ok(())
}

/// Checks that the request is for exactly the names of the order (RFC 8555, section 7.4).
fn check_request(order: &Order, given: &Finalize<'_>) -> Result<CertificateRequest, AcmeError> {
    let bad = |detail: String| AcmeError::new(Kind::BAD_CSR, detail);
    if given.csr.len() > limits::MAX_ACME_CSR {
        return Err(bad(format!("The request is longer than {} bytes.", limits::MAX_ACME_CSR)));
    }
    let request =
        CertificateRequest::parse_and_verify(given.csr).map_err(|error| bad(error.to_string()))?;
    // RFC 8555, section 11.1: a certificate must not use an account key.
    if request.public_key == given.account_key {
        return Err(bad("The request has the key of the account; use another one.".into()));
    }
    let mut found = BTreeSet::new();
    for extension in &request.extensions {
        if extension.extn_id != SUBJECT_ALT_NAME {
            continue;
        }
        let names = decode_names(extension.extn_value.as_bytes())
            .map_err(|error| bad(error.to_string()))?;
        for name in names {
            let GeneralName::DnsName(name) = name else {
                return Err(bad("The request has a name that is not a DNS name.".into()));
            };
            found.insert(
                DnsName::parse(&name)
                    .map_err(|why| bad(format!("A DNS name is not valid: {why}.")))?,
            );
        }
    }
    if found.is_empty() {
        return Err(bad("The request has no subject alternative names.".into()));
    }
    for common in name::common_names(&request.subject) {
        let is_one = DnsName::parse(&common).is_ok_and(|common| found.contains(&common));
        if !is_one {
            return Err(bad("The common name is not among the alternative names.".into()));
        }
    }
    let ordered: BTreeSet<_> = order.names().iter().cloned().collect();
    if found != ordered {
        return Err(bad("The names of the request are not those of the order.".into()));
    }
    Ok(request)
}

/// The subject of the certificate: the common name of the request, if the order contains it and it is short enough;
/// otherwise empty. The request's other attributes were not proven.
fn subject(order: &Order, request: &CertificateRequest) -> Result<Name, Fault> {
    let common = name::common_names(&request.subject)
        .filter_map(|common| DnsName::parse(&common).ok())
        .filter(|common| order.names().contains(common))
        .map(|common| common.to_string())
        // RFC 5280, appendix A.1: ub-common-name.
        .find(|common| common.len() <= 64);
    Ok(match common {
        Some(common) => name::common_name(&common)?,
        None => name::name(&[], &[])?,
    })
}

/// The certificate and those above it. Leaves out the root, which clients have already (RFC 8555, section 7.4.2),
/// unless nothing would be left above: clients such as certbot need at least one.
fn chain(certificate: &str, above: Option<&str>) -> Result<String, Fault> {
    let mut out = certificate.to_owned();
    let above = above.map(|pem| pem::read_certificates(pem.as_bytes())).transpose()?;
    let above = above.unwrap_or_default();
    let count = above.len();
    for (index, der) in above.iter().enumerate() {
        let parsed = X509::parse(der)?;
        let is_root = index + 1 == count && parsed.subject() == parsed.issuer();
        if !is_root || count == 1 {
            if !out.ends_with('\n') {
                out.push('\n');
            }
            out.push_str(&pem::certificate(der));
        }
    }
    Ok(out)
}

/// RFC 9773, section 4.1: key identifier of the issuer and serial number, both in base64url.
fn renewal_id(authority: &ca::Authority, leaf: &X509) -> Result<String, Fault> {
    let issuer = authority.certificate().ok_or_else(|| Fault::Damaged(authority.arn()))?;
    let key_id = match issuer.subject_key_identifier() {
        Some(id) => id,
        None => key_identifier(&issuer.public_key()?)?,
    };
    let serial = leaf.serial_number().as_bytes();
    Ok(format!("{}.{}", URL_SAFE_NO_PAD.encode(key_id), URL_SAFE_NO_PAD.encode(serial)))
}

/// The certificate of an endpoint with this id.
pub fn find_certificate(
    work: &mut Work<'_>,
    endpoint: &Endpoint,
    id: &str,
) -> Result<Option<Certificate>, Fault> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if id.len() > 128 || !id.bytes().all(fits) {
        return Ok(None);
    }
    let record = work.get::<Record>(&record_key(endpoint.id(), id))?;
    Ok(record.map(|record| Certificate { endpoint: endpoint.clone(), id: id.to_owned(), record }))
}

/// The certificate of an endpoint with these bytes.
pub fn find_certificate_by_der(
    work: &mut Work<'_>,
    endpoint: &Endpoint,
    der: &[u8],
) -> Result<Option<Certificate>, Fault> {
    match work.get::<String>(&digest_record_key(endpoint.id(), der))? {
        Some(id) => find_certificate(work, endpoint, &id),
        None => Ok(None),
    }
}

/// Lets an order of this account replace a certificate, if it may (RFC 9773, section 5).
pub(super) fn check_replaceable(
    work: &mut Work<'_>,
    account: &Account,
    order: &str,
    id: &str,
    names: &[DnsName],
) -> Result<(), AcmeError> {
    let endpoint = account.endpoint();
    let found = find_certificate(work, endpoint, id)?
        .filter(|found| found.record.account == account.id())
        .ok_or_else(|| {
            AcmeError::malformed("`replaces` does not name a certificate of this account.")
        })?;
    if !found.record.names.iter().any(|name| names.contains(name)) {
        return Err(AcmeError::malformed(
            "The order has no name in common with the certificate that it replaces.",
        ));
    }
    if let Some(other) = &found.record.replaced_by {
        let other = order::find_order(work, endpoint.id(), account.id(), other)?;
        if other.is_some_and(|other| other.status() != OrderStatus::Invalid) {
            return Err(AcmeError::new(
                Kind::ALREADY_REPLACED,
                "The certificate that `replaces` names has already been replaced.",
            ));
        }
    }
    let record = Record { replaced_by: Some(order.to_owned()), ..found.record };
    Ok(work.put(&record_key(endpoint.id(), id), &record)?)
}

/// When to renew a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RenewalWindow {
    /// Seconds since 1970.
    pub start: i64,
    /// Seconds since 1970.
    pub end: i64,
}

/// The renewal window of a certificate: around two thirds of its lifetime, give or take a sixtieth, so that not all
/// renew at once; a revoked certificate is renewed at once.
pub fn renewal(work: &mut Work<'_>, certificate: &Certificate) -> Result<RenewalWindow, AcmeError> {
    let record = &certificate.record;
    if is_revoked(work, certificate)? {
        let now = work.now();
        return Ok(RenewalWindow { start: now - 7200, end: now - 3600 });
    }
    let life = record.not_after - record.not_before;
    let (middle, spread) = (record.not_after - life / 3, (life / 60).max(1));
    Ok(RenewalWindow { start: middle - spread, end: middle + spread })
}

fn is_revoked(work: &mut Work<'_>, certificate: &Certificate) -> Result<bool, AcmeError> {
    let scope = certificate.endpoint.scope();
    match ca::find(work, scope, &certificate.record.authority) {
        Ok(authority) => Ok(ca::revoked(work, &authority, &certificate.record.serial)?.is_some()),
        Err(ca::CaError::Fault(fault)) => Err(fault.into()),
        // A certificate of a deleted CA cannot be relied on.
        Err(_) => Ok(true),
    }
}

/// The client that asks for a revocation.
pub enum Holder<'a> {
    /// An account, and its principal.
    Account(&'a Account, &'a Caller),
    /// The holder of this key, a DER `SubjectPublicKeyInfo`, who has signed the request; it must be the certificate's
    /// own key (RFC 8555, section 7.6).
    CertificateKey(&'a [u8]),
}

/// A request to revoke.
pub struct Revocation<'a> {
    /// The client that asks.
    pub holder: Holder<'a>,
    /// The number of the reason (RFC 5280, section 5.3.1).
    pub reason: u8,
    /// Condition keys of the request.
    pub conditions: &'a ConditionKeys,
    /// Parsed policies.
    pub policies: &'a PolicyCache,
}

/// Reason codes of RFC 5280, section 5.3.1, in Private CA's spelling. Certificates are never put on hold.
const REASONS: &[(u8, &str)] = &[
    (0, "UNSPECIFIED"),
    (1, "KEY_COMPROMISE"),
    (2, "CERTIFICATE_AUTHORITY_COMPROMISE"),
    (3, "AFFILIATION_CHANGED"),
    (4, "SUPERSEDED"),
    (5, "CESSATION_OF_OPERATION"),
    (9, "PRIVILEGE_WITHDRAWN"),
    (10, "A_A_COMPROMISE"),
];

/// The permits to revoke a certificate in Certificate Manager and, where needed, at the CA.
type MayRevoke =
    (Permit<action::acm::RevokeCertificate>, Option<Permit<action::acm_pca::RevokeCertificate>>);

/// The permits of an account's role to revoke: the same that Certificate Manager's RevokeCertificate takes, except
/// that a CA of its own account needs no further permission.
fn authorize_revocation(
    work: &mut Work<'_>,
    caller: &Caller,
    certificate: &Certificate,
    revocation: &Revocation<'_>,
) -> Result<MayRevoke, AcmeError> {
    let scope = certificate.endpoint.scope();
    let mut keys = revocation.conditions.clone();
    match acm::find(work, scope, certificate.arn()) {
        Ok(kept) => conditions::of_certificate(&mut keys, &kept),
        // Certificate Manager no longer has a record of it.
        Err(AcmError::NotFound(_)) => {
            let names: Vec<_> = certificate.record.names.iter().map(DnsName::to_string).collect();
            conditions::names(&mut keys, names.iter().map(String::as_str));
            keys.set("acm:CertificateAuthority", certificate.record.authority.as_str());
        }
        Err(error) => return Err(error.into()),
    }
    keys.set("acm:CertificateKeyPairOrigin", Origin::Acme.name());
    let permit = authorize(caller, &keys, action::acm::RevokeCertificate, certificate.arn())?;
    let at_authority = match ca::find(work, scope, &certificate.record.authority) {
        Ok(authority) if authority.scope().account != scope.account => {
            keys.forward(CERTIFICATE_MANAGER);
            let access = Access {
                caller,
                conditions: &keys,
                policies: revocation.policies,
                tokens: &[],
                context: None,
            };
            Some(ca::authorize(work, access, action::acm_pca::RevokeCertificate, &authority)?)
        }
        // A CA that is gone cannot revoke.
        Ok(_) | Err(ca::CaError::NotFound(_)) => None,
        Err(error) => return Err(error.into()),
    };
    Ok((permit, at_authority))
}

/// Whether the certificate is the account's, or the account has valid authorizations for all its names.
pub fn may_revoke(
    work: &Work<'_>,
    account: &Account,
    certificate: &Certificate,
) -> Result<bool, Fault> {
    if certificate.record.account == account.id() {
        return Ok(true);
    }
    let endpoint = account.endpoint().id();
    authorization::holds_all(work, endpoint, account.id(), &certificate.record.names)
}

/// Revokes a certificate. An account's role needs `acm:RevokeCertificate`, as at AWS; the holder of the certificate's
/// key needs no permission.
pub fn revoke(
    work: &mut Work<'_>,
    certificate: &Certificate,
    revocation: &Revocation<'_>,
) -> Result<(), AcmeError> {
    let Some((_, reason)) = REASONS.iter().find(|(number, _)| *number == revocation.reason) else {
        return Err(AcmeError::new(
            Kind::BAD_REVOCATION_REASON,
            "The reason must be 0 to 5, 9 or 10: certificates cannot be put on hold.",
        ));
    };
    let (permit, at_authority) = match &revocation.holder {
        Holder::CertificateKey(signer) => {
            let permit = by_certificate_key(certificate, signer)?.ok_or_else(|| {
                let why = "The request is not signed with the certificate's key.";
                AcmeError::new(Kind::UNAUTHORIZED, why)
            })?;
            (permit, None)
        }
        Holder::Account(account, caller) => {
            if !may_revoke(work, account, certificate)? {
                return Err(AcmeError::new(
                    Kind::UNAUTHORIZED,
                    "The account has neither the certificate nor authorizations for its names.",
                ));
            }
            authorize_revocation(work, caller, certificate, revocation)?
        }
    };
    if is_revoked(work, certificate)? {
        return Err(AcmeError::new(Kind::ALREADY_REVOKED, "The certificate is already revoked."));
    }
    let scope = certificate.endpoint.scope();
    let authority = ca::find(work, scope, &certificate.record.authority)?;
    let at_authority = match at_authority {
        Some(permit) => permit,
        None => at_issuing_authority(&permit, certificate, &authority)?,
    };
    let at = ca::RevokeAt { authority: &at_authority, partner: None };
    match acm::by_serial(work, &authority, &certificate.record.serial)? {
        Some(kept) => revoke_for_acme(work, kept, &authority, reason, &permit, at)?,
        // Certificate Manager no longer has a record of it.
        None => ca::revoke(work, &authority, &certificate.record.serial, reason, at)?,
    }
    Ok(())
}

/// The account that ordered a certificate.
impl Certificate {
    /// Finds the account, if it still exists.
    pub fn holder(&self, work: &mut Work<'_>) -> Result<Option<Account>, Fault> {
        account::find_account(work, &self.endpoint, &self.record.account)
    }

    /// The certificate's public key, a DER `SubjectPublicKeyInfo`.
    pub fn public_key(&self) -> Result<Vec<u8>, Fault> {
        let all = pem::read_certificates(self.record.chain.as_bytes())?;
        let leaf = all.first().ok_or_else(|| Fault::Damaged(self.record.arn.clone()))?;
        Ok(X509::parse(leaf)?.public_key()?)
    }
}

fn record_key(endpoint: &str, id: &str) -> String {
    format!("acme/certificate/{endpoint}/{id}")
}

fn digest_record_key(endpoint: &str, der: &[u8]) -> String {
    format!("acme/certificate-digest/{endpoint}/{}", hex::encode(digests::sha256(der)))
}
