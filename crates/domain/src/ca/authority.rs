//! Certificate authorities: making, finding, listing, activating, and their states.

use std::collections::BTreeMap;
use std::sync::Arc;

use outlast_crypto::keys::{Key, KeySpec};
use outlast_crypto::signatures::{Message, SignatureAlgorithm};
use outlast_pki::certificate::{Certificate, Extension};
use outlast_pki::csr;
use outlast_pki::templates::CA_KEY_USAGE;
use outlast_pki::{extensions, pem};
use serde::{Deserialize, Serialize};

use super::{CaError, Revocation, Subject, earlier_result, remember, token_record_key, told};
use crate::arn::{Arn, Scope};
use crate::identity::{Permit, action};
use crate::keyring::KeyRing;
use crate::work::{Page, Work};
use crate::{Fault, events, ids, limits, quotas};

/// Root or subordinate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    /// `ROOT`: signs itself.
    #[serde(rename = "ROOT")]
    Root,
    /// `SUBORDINATE`: signed by another authority, here or elsewhere.
    #[serde(rename = "SUBORDINATE")]
    Subordinate,
}

/// `CertificateAuthorityStatus`; AWS's other states do not occur here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Status {
    /// Has a key and a certificate request, but no certificate yet.
    #[serde(rename = "PENDING_CERTIFICATE")]
    PendingCertificate,
    /// Can issue.
    #[serde(rename = "ACTIVE")]
    Active,
    /// Disabled by its owner.
    #[serde(rename = "DISABLED")]
    Disabled,
    /// Its certificate has expired.
    #[serde(rename = "EXPIRED")]
    Expired,
    /// Deleted, and can be restored for some days.
    #[serde(rename = "DELETED")]
    Deleted,
}

impl Status {
    /// All states.
    pub const ALL: &[Self] =
        &[Self::PendingCertificate, Self::Active, Self::Disabled, Self::Expired, Self::Deleted];

    /// AWS's spelling.
    pub fn name(self) -> &'static str {
        match self {
            Self::PendingCertificate => "PENDING_CERTIFICATE",
            Self::Active => "ACTIVE",
            Self::Disabled => "DISABLED",
            Self::Expired => "EXPIRED",
            Self::Deleted => "DELETED",
        }
    }
}

impl Kind {
    /// AWS's spelling.
    pub fn name(self) -> &'static str {
        match self {
            Self::Root => "ROOT",
            Self::Subordinate => "SUBORDINATE",
        }
    }
}

/// An authority as stored, without its key.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) id: String,
    kind: Kind,
    key_algorithm: String,
    signing_algorithm: String,
    subject: Subject,
    pub(super) status: Status,
    created_ms: i64,
    changed_ms: i64,
    usage_mode: String,
    key_storage: String,
    /// Earlier builds had neither CRLs nor OCSP, and kept the setting as `revocation` in AWS's form.
    #[serde(default)]
    pub(super) revocation_settings: Revocation,
    csr: String,
    /// `CsrExtensions` as they were given, for display.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    csr_extensions: Option<serde_json::Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    certificate: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    chain: Option<String>,
    /// Id under which [`super::chain`] has `certificate` and `chain`, for the certificates that it issues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    chain_id: Option<String>,
    /// Whether the authority or a CA above it has name constraints.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    constrained: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) restorable_until_ms: Option<i64>,
    /// The status before the deletion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) deleted_from: Option<Status>,
    pub(super) tags: BTreeMap<String, String>,
}

impl Record {
    /// Its certificate, once imported, if it can be read.
    pub(super) fn certificate(&self) -> Option<Certificate> {
        Certificate::parse_one(self.certificate.as_ref()?.as_bytes()).ok()
    }

    /// Whether its certificate was imported.
    pub(super) fn has_certificate(&self) -> bool {
        self.certificate.is_some()
    }
}

/// An authority that was found.
#[derive(Debug, Clone)]
pub struct Authority {
    scope: Scope,
    pub(super) record: Record,
    spec: &'static KeySpec,
    algorithm: &'static SignatureAlgorithm,
    certificate: Option<Arc<Certificate>>,
    status: Status,
}

/// Properties of a new authority.
pub struct NewAuthority {
    /// Root or subordinate.
    pub kind: Kind,
    /// Type of its key.
    pub spec: &'static KeySpec,
    /// Algorithm that it signs with.
    pub algorithm: &'static SignatureAlgorithm,
    /// Its subject name.
    pub subject: Subject,
    /// Extensions for its certificate request. A key usage replaces the default one.
    pub csr_extensions: Vec<Extension>,
    /// `CsrExtensions` as they were given; kept for display.
    pub shown_csr_extensions: Option<serde_json::Value>,
    /// `UsageMode`, AWS's spelling.
    pub usage_mode: String,
    /// `KeyStorageSecurityStandard`, AWS's spelling; kept for display.
    pub key_storage: String,
    /// `RevocationConfiguration`
    pub revocation: Revocation,
    /// Tags.
    pub tags: BTreeMap<String, String>,
    /// Idempotency token.
    pub token: Option<String>,
    /// Digest of the whole request; it tells two uses of a token apart.
    pub request_digest: String,
}

impl Authority {
    fn new(scope: &Scope, record: Record, now: i64) -> Result<Self, Fault> {
        let damaged = || Fault::Damaged(record_key(scope, &record.id));
        let certificate = match &record.certificate {
            Some(text) => Some(match &record.chain_id {
                Some(id) => super::chain::first(id, text).ok_or_else(damaged)?,
                None => Arc::new(Certificate::parse_one(text.as_bytes()).map_err(|_| damaged())?),
            }),
            None => None,
        };
        let expired = certificate.as_ref().is_some_and(|found| found.not_after() < now);
        let status = match record.status {
            Status::Active if expired => Status::Expired,
            other => other,
        };
        Ok(Self {
            scope: scope.clone(),
            spec: KeySpec::by_pca_name(&record.key_algorithm).ok_or_else(damaged)?,
            algorithm: SignatureAlgorithm::by_pca_name(&record.signing_algorithm)
                .ok_or_else(damaged)?,
            certificate,
            status,
            record,
        })
    }

    /// ARN.
    pub fn arn(&self) -> String {
        arn(&self.scope, &self.record.id)
    }

    /// Id, a UUID.
    pub fn id(&self) -> &str {
        &self.record.id
    }

    /// Account and Region.
    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// Root or subordinate.
    pub fn kind(&self) -> Kind {
        self.record.kind
    }

    /// Type of its key.
    pub fn spec(&self) -> &'static KeySpec {
        self.spec
    }

    /// Algorithm that it signs with.
    pub fn algorithm(&self) -> &'static SignatureAlgorithm {
        self.algorithm
    }

    /// Its subject name, as given.
    pub fn subject(&self) -> &Subject {
        &self.record.subject
    }

    /// `CsrExtensions` as they were given.
    pub fn csr_extensions(&self) -> Option<&serde_json::Value> {
        self.record.csr_extensions.as_ref()
    }

    /// State.
    pub fn status(&self) -> Status {
        self.status
    }

    /// Milliseconds since 1970.
    pub fn created_ms(&self) -> i64 {
        self.record.created_ms
    }

    /// Last change of state, milliseconds since 1970.
    pub fn changed_ms(&self) -> i64 {
        self.record.changed_ms
    }

    /// `UsageMode`.
    pub fn usage_mode(&self) -> &str {
        &self.record.usage_mode
    }

    /// `KeyStorageSecurityStandard`.
    pub fn key_storage(&self) -> &str {
        &self.record.key_storage
    }

    /// `RevocationConfiguration`.
    pub fn revocation(&self) -> &Revocation {
        &self.record.revocation_settings
    }

    /// End of the period in which it can be restored, milliseconds since 1970.
    pub fn restorable_until_ms(&self) -> Option<i64> {
        self.record.restorable_until_ms
    }

    /// Tags, in order of key.
    pub fn tags(&self) -> &BTreeMap<String, String> {
        &self.record.tags
    }

    /// Its certificate, once imported.
    pub fn certificate(&self) -> Option<&Certificate> {
        self.certificate.as_deref()
    }

    /// Its certificate request in PEM.
    pub fn csr_pem(&self) -> Result<&str, CaError> {
        match self.status {
            Status::Deleted => Err(self.wrong_state("have a certificate signing request")),
            _ => Ok(&self.record.csr),
        }
    }

    /// Its certificate and chain in PEM.
    pub fn certificate_pem(&self) -> Result<(&str, Option<&str>), CaError> {
        match &self.record.certificate {
            Some(certificate) if self.status != Status::Deleted => {
                Ok((certificate, self.record.chain.as_deref()))
            }
            // AWS's error speaks of the request here, too.
            _ => Err(self.wrong_state("have a certificate signing request")),
        }
    }

    /// Certificate and chain, as they accompany the certificates that it issues.
    pub(super) fn chain_pem(&self) -> Option<String> {
        let certificate = self.record.certificate.as_ref()?;
        Some(format!("{certificate}{}", self.record.chain.as_deref().unwrap_or_default()))
    }

    /// The id of certificate and chain in [`super::chain`]; authorities of the first version have none.
    pub(super) fn chain_id(&self) -> Option<&str> {
        self.record.chain_id.as_deref()
    }

    /// Whether the authority or a CA above it has name constraints, if that is known.
    pub(super) fn is_constrained(&self) -> Option<bool> {
        self.record.constrained
    }

    /// Its certificate and those of the CAs above it, nearest first. Parsing them takes long.
    pub(super) fn path(&self) -> Result<Vec<Certificate>, Fault> {
        let damaged = || Fault::Damaged(self.arn());
        let mut path: Vec<_> = self.certificate().cloned().into_iter().collect();
        if let Some(chain) = &self.record.chain {
            for der in pem::read_certificates(chain.as_bytes()).map_err(|_| damaged())? {
                path.push(Certificate::parse(&der).map_err(|_| damaged())?);
            }
        }
        Ok(path)
    }

    /// How many CAs may follow below, if its certificate or one above limits that (RFC 5280, section 4.2.1.9).
    pub(super) fn path_len(&self) -> Result<Option<usize>, Fault> {
        let path = self.path()?;
        let limits = path.iter().enumerate();
        let left = |(depth, certificate): (usize, &Certificate)| {
            certificate.path_len().map(|limit| limit.saturating_sub(depth))
        };
        Ok(limits.filter_map(left).min())
    }

    /// Replaces certificate and chain; the caller has checked them, and saves.
    pub(super) fn set_certificate(
        &mut self,
        work: &mut Work<'_>,
        certificate: &Certificate,
        chain: &[Vec<u8>],
    ) -> Result<(), Fault> {
        self.record.certificate = Some(pem::certificate(certificate.der()));
        self.record.chain =
            (!chain.is_empty()).then(|| pem::chain(chain.iter().map(Vec::as_slice)));
        let above = chain.iter().map(|der| Certificate::parse(der).map_err(Fault::from));
        let mut constrained = is_constrained(certificate);
        for issuer in above {
            constrained |= is_constrained(&issuer?);
        }
        self.record.constrained = Some(constrained);
        self.certificate = Some(Arc::new(certificate.clone()));
        if let Some(whole) = self.chain_pem() {
            self.record.chain_id = Some(super::chain::keep(work, &self.scope, self.id(), whole)?);
        }
        Ok(())
    }

    pub(super) fn load_key(
        &self,
        work: &mut Work<'_>,
        ring: &KeyRing,
    ) -> Result<Arc<dyn Key>, Fault> {
        ring.load(work, &material_record_key(&self.scope, &self.record.id), self.spec)
    }

    pub(crate) fn state_error(&self, what: &str) -> CaError {
        CaError::InvalidState(format!(
            "The certificate authority {} {what} (its status is {}).",
            self.arn(),
            self.status.name()
        ))
    }

    /// AWS's error for an authority that cannot do something in its state.
    pub(super) fn wrong_state(&self, what: &str) -> CaError {
        let arn = self.arn();
        CaError::InvalidState(format!(
            "The certificate authority {arn} is not in the correct state to {what}."
        ))
    }

    pub(super) fn require_not_deleted(&self) -> Result<(), CaError> {
        match self.status {
            Status::Deleted => Err(self.state_error("is deleted")),
            _ => Ok(()),
        }
    }

    /// Writes the record with this status, without the consequences of a change: see [`Self::save`].
    pub(super) fn store(&mut self, work: &mut Work<'_>, status: Status) -> Result<(), Fault> {
        if self.record.status != status {
            self.record.changed_ms = work.now_ms();
        }
        self.record.status = status;
        self.status = status;
        work.put(&record_key(&self.scope, &self.record.id), &self.record)
    }
}

/// Makes an authority with its key and certificate request, and returns its ARN.
pub fn create(
    work: &mut Work<'_>,
    scope: &Scope,
    new: NewAuthority,
    permit: &Permit<action::acm_pca::CreateCertificateAuthority>,
) -> Result<String, CaError> {
    permit.opens(&scope.arn("acm-pca", "certificate-authority/*"))?;
    check_tags(&new.tags)?;
    if !new.spec.signing.contains(&new.algorithm) {
        let possible: Vec<_> = new.spec.signing.iter().filter_map(|row| row.pca_name).collect();
        return Err(CaError::InvalidArgs(format!(
            "the signing algorithm {} does not fit the key algorithm {}; use {}",
            new.algorithm.pca_name.unwrap_or_default(),
            new.spec.pca_name.unwrap_or_default(),
            possible.join(", ")
        )));
    }
    let token = new.token.as_deref().map(|token| token_record_key(scope, "create", token));
    if let Some(token) = &token
        && let Some(arn) = earlier_result(work, token, &new.request_digest)?
    {
        return Ok(arn);
    }
    work.admit::<CaError>(&quotas::PRIVATE_CAS, &[&scope.account, &scope.region])?;
    let name = new.subject.to_name()?;
    let stored = new.spec.generate()?;
    let key = new.spec.load(&stored)?;
    let id = ids::uuid()?;
    let public_key = key.public_key().ok_or_else(|| Fault::Damaged(id.clone()))?;
    let mut extensions = vec![
        extensions::basic_constraints(true, None, true).map_err(Fault::from)?,
        extensions::key_usage(CA_KEY_USAGE).map_err(Fault::from)?,
    ];
    for extension in new.csr_extensions {
        extensions.retain(|usual| usual.extn_id != extension.extn_id);
        extensions.push(extension);
    }
    let request = csr::Unsigned::new(name, public_key, extensions).map_err(Fault::from)?;
    let signature = key.sign(new.algorithm, Message::Raw(&request.to_be_signed))?;
    let csr = request.assemble(new.algorithm, &signature).map_err(Fault::from)?;
    let record = Record {
        kind: new.kind,
        key_algorithm: new.spec.pca_name.unwrap_or_default().to_owned(),
        signing_algorithm: new.algorithm.pca_name.unwrap_or_default().to_owned(),
        subject: new.subject,
        status: Status::PendingCertificate,
        created_ms: work.now_ms(),
        changed_ms: work.now_ms(),
        usage_mode: new.usage_mode,
        key_storage: new.key_storage,
        revocation_settings: new.revocation,
        csr: pem::certificate_request(&csr),
        csr_extensions: new.shown_csr_extensions,
        certificate: None,
        chain: None,
        chain_id: None,
        constrained: None,
        restorable_until_ms: None,
        deleted_from: None,
        tags: new.tags,
        id,
    };
    work.put_secret(&material_record_key(scope, &record.id), &stored)?;
    work.put(&record_key(scope, &record.id), &record)?;
    let arn = arn(scope, &record.id);
    told::tell_success(work, &events::AUTHORITY_CREATED, &arn, None)?;
    if let Some(token) = token {
        remember(work, &token, &new.request_digest, &arn)?;
    }
    Ok(arn)
}

/// Finds an authority of the Region by ARN. It may belong to another account: [`super::authorize`] decides then.
pub fn find(work: &mut Work<'_>, scope: &Scope, text: &str) -> Result<Authority, CaError> {
    let invalid =
        || CaError::InvalidArn(format!("{text} is not the ARN of a certificate authority"));
    let parsed = Arn::parse(text).ok_or_else(invalid)?;
    let id = parsed.of("acm-pca", "certificate-authority/").ok_or_else(invalid)?;
    if ids::uuid_bytes(id).is_none() {
        return Err(invalid());
    }
    let missing =
        || CaError::NotFound(format!("Could not find Certificate Authority with Arn {parsed}"));
    if parsed.region() != scope.region || parsed.account().is_empty() {
        return Err(missing());
    }
    let scope = &Scope { account: parsed.account().to_owned(), region: scope.region.clone() };
    let record = work.get::<Record>(&record_key(scope, id))?.ok_or_else(missing)?;
    // After its date a deleted authority is gone, even if no sweep has run.
    if record.restorable_until_ms.is_some_and(|until| until <= work.now_ms()) {
        return Err(missing());
    }
    Ok(Authority::new(scope, record, work.now())?)
}

/// The authority with this id, if there is one.
pub(super) fn authority_by_id(
    work: &mut Work<'_>,
    scope: &Scope,
    id: &str,
) -> Result<Option<Authority>, Fault> {
    match find(work, scope, &arn(scope, id)) {
        Ok(authority) => Ok(Some(authority)),
        Err(CaError::Fault(fault)) => Err(fault),
        Err(_) => Ok(None),
    }
}

/// Lists authorities, after the marker of the previous page.
pub fn authorities(
    work: &Work<'_>,
    scope: &Scope,
    marker: Option<&str>,
    limit: usize,
    permit: &Permit<action::acm_pca::ListCertificateAuthorities>,
) -> Result<Page<Authority>, CaError> {
    permit.opens(&scope.arn("acm-pca", "certificate-authority/*"))?;
    let page = work.page::<Record>(&prefix(scope), marker, limit)?;
    let now_ms = work.now_ms();
    let authorities = page
        .items
        .into_iter()
        .filter(|record| record.restorable_until_ms.is_none_or(|until| until > now_ms))
        .map(|record| Authority::new(scope, record, work.now()))
        .collect::<Result<_, _>>()?;
    Ok(Page { items: authorities, next: page.next })
}

pub(super) fn arn(scope: &Scope, id: &str) -> String {
    scope.arn("acm-pca", &format!("certificate-authority/{id}"))
}

fn prefix(scope: &Scope) -> String {
    format!("ca/authority/{}/{}/", scope.account, scope.region)
}

pub(super) fn record_key(scope: &Scope, id: &str) -> String {
    format!("{}{id}", prefix(scope))
}

pub(super) fn material_record_key(scope: &Scope, id: &str) -> String {
    format!("ca/material/{}/{}/{id}", scope.account, scope.region)
}

/// Whether a CA is restricted to some names.
fn is_constrained(certificate: &Certificate) -> bool {
    let id = const_oid::db::rfc5280::ID_CE_NAME_CONSTRAINTS;
    certificate.extensions().iter().any(|extension| extension.extn_id == id)
}

pub(super) fn check_tags(tags: &BTreeMap<String, String>) -> Result<(), CaError> {
    if tags.len() > limits::MAX_TAGS {
        return Err(CaError::TooManyTags(format!(
            "a certificate authority has at most {} tags",
            limits::MAX_TAGS
        )));
    }
    Ok(())
}
