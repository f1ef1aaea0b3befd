//! Certificates of Certificate Manager: their records, and the operations that all kinds of them share.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::AcmError;
use super::details::Details;
use super::proof::{Ended, Public};
use crate::acme::queue;
use crate::arn::{Arn, Scope};
use crate::ca::Authority;
use crate::identity::{Permit, action};
use crate::work::Work;
use crate::{Fault, ids};

/// Where a certificate and its key come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Origin {
    /// Certificate Manager made the key and had a private CA certify it.
    #[serde(rename = "AWS_MANAGED")]
    Managed,
    /// Both were imported.
    #[serde(rename = "CUSTOMER_PROVIDED")]
    Imported,
    /// An ACME client made the key and keeps it.
    #[serde(rename = "ACME")]
    Acme,
}

impl Origin {
    /// Every origin.
    pub const ALL: &[Self] = &[Self::Managed, Self::Imported, Self::Acme];

    /// `CertificateKeyPairOrigin`
    pub const fn name(self) -> &'static str {
        match self {
            Self::Managed => "AWS_MANAGED",
            Self::Imported => "CUSTOMER_PROVIDED",
            Self::Acme => "ACME",
        }
    }

    /// `Type` of a certificate whose request named a CA, or that was imported
    pub const fn kind(self) -> &'static str {
        match self {
            Self::Managed | Self::Acme => "PRIVATE",
            Self::Imported => "IMPORTED",
        }
    }
}

/// `Type` of a certificate whose request named no CA
pub const PUBLIC: &str = "AMAZON_ISSUED";

/// `Status` of a certificate. One from a CA that its request names is issued at once or not at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    /// Past its end.
    Expired,
    /// Its names were proved, but the CA has refused it.
    Failed,
    /// In force.
    Issued,
    /// Its names are not proved yet.
    PendingValidation,
    /// Revoked at its CA.
    Revoked,
    /// Its names were not proved in time.
    ValidationTimedOut,
}

impl Status {
    /// Every status.
    pub const ALL: &[Self] = &[
        Self::Expired,
        Self::Failed,
        Self::Issued,
        Self::PendingValidation,
        Self::Revoked,
        Self::ValidationTimedOut,
    ];

    /// AWS's spelling.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Expired => "EXPIRED",
            Self::Failed => "FAILED",
            Self::Issued => "ISSUED",
            Self::PendingValidation => "PENDING_VALIDATION",
            Self::Revoked => "REVOKED",
            Self::ValidationTimedOut => "VALIDATION_TIMED_OUT",
        }
    }
}

/// The revocation of a certificate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Revoked {
    /// Milliseconds since 1970.
    pub at_ms: i64,
    /// `RevocationReason` in Certificate Manager's spelling.
    pub reason: String,
}

/// The endpoint and account through which ACME issued a certificate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Acme {
    /// `AcmeEndpointArn`
    #[serde(deserialize_with = "crate::arn::stored")]
    pub endpoint_arn: String,
    /// `AcmeAccountId`
    pub account_id: String,
}

/// The partner of a certificate: for the same names, with a classical key if the other is post-quantum, or the other
/// way round. Beyond AWS.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Paired {
    /// ARN of its CA.
    #[serde(deserialize_with = "crate::arn::stored")]
    pub authority: String,
    /// Id of the private key.
    pub material: String,
    /// Contents of the certificate.
    pub details: Details,
}

/// A certificate as stored, without its PEM text and its key.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Record {
    /// Id, a UUID.
    pub id: String,
    /// Where certificate and key come from.
    pub origin: Origin,
    /// `DomainName`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
    /// ARN of its CA, unless it was imported; before it is issued, of the CA that is to issue it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "crate::arn::stored_option")]
    pub authority: Option<String>,
    /// Id of the private key, if the service keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub material: Option<String>,
    /// Contents of the certificate; before it is issued, what was requested.
    pub details: Details,
    /// The proofs of its names, if its request named no CA.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub public: Option<Public>,
    /// Its partner from the partner of its CA.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paired: Option<Paired>,
    /// Milliseconds since 1970.
    pub created_ms: i64,
    /// Milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issued_ms: Option<i64>,
    /// Milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imported_ms: Option<i64>,
    /// `Options.Export`: whether the key may be exported.
    pub exportable: bool,
    /// Whether the key has been exported.
    pub exported: bool,
    /// `Options.CertificateTransparencyLoggingPreference`: kept for display.
    pub transparency: bool,
    /// Its revocation, if it was revoked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked: Option<Revoked>,
    /// `RenewalSummary`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renewal: Option<RenewalSummary>,
    /// Endpoint and account, if ACME issued it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acme: Option<Acme>,
    /// Tags.
    pub tags: BTreeMap<String, String>,
}

/// The PEM texts of a certificate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Text {
    /// PEM.
    pub certificate: String,
    /// Issuer first, root last; PEM. Absent if it was imported without a chain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chain: Option<String>,
    /// Those of its partner, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paired: Option<Box<Text>>,
}

/// A certificate that was found.
#[derive(Debug, Clone)]
pub struct Certificate {
    pub(super) scope: Scope,
    pub(super) record: Record,
}

impl Certificate {
    /// ARN.
    pub fn arn(&self) -> String {
        arn(&self.scope, &self.record.id)
    }

    /// Account and Region.
    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// The stored record.
    pub fn record(&self) -> &Record {
        &self.record
    }

    /// Its status at a time, milliseconds since 1970.
    pub fn status(&self, now_ms: i64) -> Status {
        self.record.status(now_ms)
    }

    /// Reads its PEM texts.
    pub fn text(
        &self,
        work: &mut Work<'_>,
        permit: &Permit<impl action::ReadsCertificate>,
    ) -> Result<Text, AcmError> {
        permit.opens(&self.arn())?;
        self.check_issued(work.now_ms())?;
        Ok(text(work, &self.scope, &self.record.id)?)
    }

    /// Checks that there is a certificate, and not only a request for one.
    pub(super) fn check_issued(&self, now_ms: i64) -> Result<(), AcmError> {
        match self.status(now_ms) {
            Status::PendingValidation => Err(AcmError::RequestInProgress(format!(
                "The certificate {} has not been issued: not all of its domain names are validated.",
                self.arn()
            ))),
            status @ (Status::Failed | Status::ValidationTimedOut) => {
                Err(AcmError::Validation(format!(
                    "The certificate {} was not issued: its status is {}.",
                    self.arn(),
                    status.name()
                )))
            }
            Status::Expired | Status::Issued | Status::Revoked => Ok(()),
        }
    }

    /// Reads its PEM texts; `None` if it was deleted since a list found it.
    pub fn text_if_there(
        &self,
        work: &mut Work<'_>,
        permit: &Permit<action::acm::SearchCertificates>,
    ) -> Result<Option<Text>, AcmError> {
        permit.opens(&self.scope.arn("acm", "certificate/*"))?;
        Ok(work.get(&text_record_key(&self.scope, &self.record.id))?)
    }

    /// Record keys of the private keys: its own, and its partner's.
    pub(super) fn material_record_keys(&self) -> (Option<String>, Option<String>) {
        let at = |id: &String| material_record_key(&self.scope, &self.record.id, id);
        let paired = self.record.paired.as_ref().map(|paired| at(&paired.material));
        (self.record.material.as_ref().map(at), paired)
    }

    /// Record keys of the index by serial number: its own, and its partner's.
    fn serial_record_keys(&self) -> impl Iterator<Item = String> {
        let record = &self.record;
        let own = record.authority.iter().map(|arn| (arn, &record.details.serial));
        let paired = record.paired.iter().map(|paired| (&paired.authority, &paired.details.serial));
        // A request has no serial number yet.
        let known = own.chain(paired).filter(|(_, serial)| !serial.is_empty());
        known.map(|(arn, serial)| serial_record_key(arn, serial))
    }

    /// Erases the keys and the entries of the index by serial number.
    pub(super) fn release(&self, work: &mut Work<'_>) {
        let (own, paired) = self.material_record_keys();
        for record_key in own.into_iter().chain(paired).chain(self.serial_record_keys()) {
            work.delete(&record_key);
        }
    }

    pub(super) fn save(&self, work: &mut Work<'_>) -> Result<(), Fault> {
        work.put(&record_key(&self.scope, &self.record.id), &self.record)
    }
}

/// `RenewalSummary`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RenewalSummary {
    /// Whether the last renewal succeeded.
    pub succeeded: bool,
    /// Whether one is under way that waits for proofs of the names.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub validating: bool,
    /// `RenewalStatusReason` of one that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Milliseconds since 1970.
    pub updated_ms: i64,
}

impl RenewalSummary {
    /// `RenewalStatus`
    pub const fn status(&self) -> &'static str {
        match (self.validating, self.succeeded) {
            (true, _) => "PENDING_VALIDATION",
            (false, true) => "SUCCESS",
            (false, false) => "FAILED",
        }
    }
}

impl Record {
    /// Its status at a time, milliseconds since 1970.
    pub fn status(&self, now_ms: i64) -> Status {
        if self.revoked.is_some() {
            Status::Revoked
        } else if let Some(public) = self.public.as_ref().filter(|_| !self.is_issued()) {
            match &public.ended {
                Some(Ended::Failed { .. }) => Status::Failed,
                Some(Ended::TimedOut) => Status::ValidationTimedOut,
                None if public.is_late(now_ms) => Status::ValidationTimedOut,
                None => Status::PendingValidation,
            }
        } else if self.details.not_after < now_ms.div_euclid(1000) {
            Status::Expired
        } else {
            Status::Issued
        }
    }

    /// Whether there is a certificate, and not only a request for one.
    pub fn is_issued(&self) -> bool {
        self.public.is_none() || self.issued_ms.is_some()
    }

    /// Begin and end of its validity, seconds since 1970, once it is issued.
    pub fn validity(&self) -> Option<(i64, i64)> {
        self.is_issued().then_some((self.details.not_before, self.details.not_after))
    }

    /// `Type`
    pub const fn kind(&self) -> &'static str {
        if self.public.is_some() { PUBLIC } else { self.origin.kind() }
    }

    /// `DomainName`, and the other `SubjectAlternativeNames`.
    pub fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.domain.as_deref().into_iter().collect();
        for name in &self.details.dns_names {
            if !names.iter().any(|known| known.eq_ignore_ascii_case(name)) {
                names.push(name);
            }
        }
        names
    }

    /// `RenewalEligibility`: whether Certificate Manager renews it. AWS renews private certificates only after they
    /// were exported or used; here every certificate is renewed whose key the service has.
    pub fn is_renewable(&self) -> bool {
        self.origin == Origin::Managed && self.revoked.is_none() && self.is_issued()
    }
}

/// Finds a certificate by ARN.
pub fn find(work: &mut Work<'_>, scope: &Scope, text: &str) -> Result<Certificate, AcmError> {
    let arn = parse_arn(text)?;
    let missing = || AcmError::NotFound(format!("Could not find certificate {arn}."));
    let id = arn.of("acm", PREFIX).filter(|_| arn.is_in(scope)).ok_or_else(missing)?;
    let record = work.get::<Record>(&record_key(scope, id))?.ok_or_else(missing)?;
    Ok(Certificate { scope: scope.clone(), record })
}

/// Prefix of the resource part of a certificate's ARN.
const PREFIX: &str = "certificate/";

fn parse_arn(text: &str) -> Result<Arn, AcmError> {
    let is_one = |arn: &Arn| arn.of("acm", PREFIX).is_some_and(|id| ids::uuid_bytes(id).is_some());
    Arn::parse(text).filter(is_one).ok_or_else(|| {
        AcmError::InvalidArn(format!("The ARN {text} is not that of a certificate."))
    })
}

/// Deletes a certificate with its key. The certificate stays valid, and its CA keeps a record of it.
pub fn delete(
    work: &mut Work<'_>,
    certificate: &Certificate,
    permit: &Permit<action::acm::DeleteCertificate>,
) -> Result<(), AcmError> {
    permit.opens(&certificate.arn())?;
    if certificate.record.origin == Origin::Acme {
        return Err(AcmError::Conflict(
            "A certificate whose private key an ACME client holds cannot be deleted; it is deleted automatically a \
             year after its end."
                .into(),
        ));
    }
    erase(work, certificate);
    Ok(())
}

pub(super) fn erase(work: &mut Work<'_>, certificate: &Certificate) {
    let (scope, record) = (&certificate.scope, &certificate.record);
    certificate.release(work);
    for number in record.public.iter().flat_map(Public::lookups) {
        queue::end_certificate(work, scope, &record.id, number);
    }
    work.delete(&due_record_key(scope, &record.id));
    work.delete(&ended_record_key(scope, &record.id));
    work.delete(&text_record_key(scope, &record.id));
    if record.origin == Origin::Imported {
        work.delete(&imported_record_key(scope, &record.id));
    }
    work.delete(&record_key(scope, &record.id));
}

/// The options of a certificate that are to change.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// `CertificateTransparencyLoggingPreference`
    pub transparency: Option<bool>,
    /// `Export`
    pub exportable: Option<bool>,
}

/// Changes the options of a requested certificate. Whether it can be exported cannot be changed.
pub fn set_options(
    work: &mut Work<'_>,
    mut certificate: Certificate,
    options: Options,
    permit: &Permit<action::acm::UpdateCertificateOptions>,
) -> Result<(), AcmError> {
    permit.opens(&certificate.arn())?;
    if certificate.record.origin != Origin::Managed {
        return Err(AcmError::InvalidState(format!(
            "Certificate {} was not requested from this service and has no options.",
            certificate.arn()
        )));
    }
    if options.exportable.is_some_and(|wanted| wanted != certificate.record.exportable) {
        return Err(AcmError::InvalidState(
            "The value of Export cannot be updated after the certificate was created.".into(),
        ));
    }
    if let Some(transparency) = options.transparency {
        certificate.record.transparency = transparency;
    }
    Ok(certificate.save(work)?)
}

/// Finds the certificate that a record below `prefix` belongs to; both have the same suffix.
pub(super) fn at(
    work: &mut Work<'_>,
    key: &str,
    prefix: &str,
) -> Result<Option<Certificate>, Fault> {
    let damaged = || Fault::Damaged(key.to_owned());
    let parts: Vec<_> = key.strip_prefix(prefix).ok_or_else(damaged)?.split('/').collect();
    let [account, region, id] = parts.as_slice() else { return Err(damaged()) };
    let scope = Scope { account: (*account).to_owned(), region: (*region).to_owned() };
    by_id(work, &scope, id)
}

/// The certificate with this id, if there is one.
pub(super) fn by_id(
    work: &mut Work<'_>,
    scope: &Scope,
    id: &str,
) -> Result<Option<Certificate>, Fault> {
    let record = work.get::<Record>(&record_key(scope, id))?;
    Ok(record.map(|record| Certificate { scope: scope.clone(), record }))
}

/// Certificate Manager's certificate with this serial number (lower-case hexadecimal) from a private CA, if there is
/// one. After a renewal only the new number finds it.
pub fn by_serial(
    work: &mut Work<'_>,
    authority: &Authority,
    serial: &str,
) -> Result<Option<Certificate>, AcmError> {
    let Some(owner) = work.get::<Owner>(&serial_record_key(&authority.arn(), serial))? else {
        return Ok(None);
    };
    let scope = Scope { account: owner.account, region: owner.region };
    let record = work.get::<Record>(&record_key(&scope, &owner.id))?;
    Ok(record.map(|record| Certificate { scope, record }))
}

/// Writes a certificate, its text and its entry in the index by serial number.
pub(super) fn file(
    work: &mut Work<'_>,
    certificate: &Certificate,
    text: &Text,
) -> Result<(), Fault> {
    let (scope, record) = (&certificate.scope, &certificate.record);
    for record_key in certificate.serial_record_keys() {
        let owner = Owner {
            account: scope.account.clone(),
            region: scope.region.clone(),
            id: record.id.clone(),
        };
        work.put(&record_key, &owner)?;
    }
    work.put(&text_record_key(scope, &record.id), text)?;
    certificate.save(work)
}

/// Entry of the index by serial number.
#[derive(Serialize, Deserialize)]
struct Owner {
    account: String,
    region: String,
    id: String,
}

pub(super) fn text(work: &mut Work<'_>, scope: &Scope, id: &str) -> Result<Text, Fault> {
    let record_key = text_record_key(scope, id);
    work.get(&record_key)?.ok_or(Fault::Damaged(record_key))
}

pub(super) fn arn(scope: &Scope, id: &str) -> String {
    scope.arn("acm", &format!("certificate/{id}"))
}

pub(super) fn prefix(scope: &Scope) -> String {
    format!("acm/certificate/{}/{}/", scope.account, scope.region)
}

fn record_key(scope: &Scope, id: &str) -> String {
    format!("{}{id}", prefix(scope))
}

fn text_record_key(scope: &Scope, id: &str) -> String {
    format!("acm/text/{}/{}/{id}", scope.account, scope.region)
}

pub(super) fn material_record_key(scope: &Scope, id: &str, material: &str) -> String {
    format!("acm/material/{}/{}/{id}/{material}", scope.account, scope.region)
}

/// Record key of a serial number: by the authority's account, Region and id.
pub(crate) fn serial_record_key(authority: &str, serial: &str) -> String {
    let arn = Arn::parse(authority);
    let (region, account, id) = arn.as_ref().map_or(("", "", ""), |arn| {
        let id = arn.resource().rsplit('/').next().unwrap_or_default();
        (arn.region(), arn.account(), id)
    });
    format!("acm/serial/{account}/{region}/{id}/{serial}")
}

/// Prefix of the records that say when a certificate is to be renewed, by account and Region.
pub(super) const DUE: &str = "acm/renewal/";

pub(super) fn due_record_key(scope: &Scope, id: &str) -> String {
    format!("{DUE}{}/{}/{id}", scope.account, scope.region)
}

pub(super) fn imported_record_key(scope: &Scope, id: &str) -> String {
    format!("acm/imported/{}/{}/{id}", scope.account, scope.region)
}

pub(super) fn ended_record_key(scope: &Scope, id: &str) -> String {
    format!("acm/ended/{}/{}/{id}", scope.account, scope.region)
}
