//! Audit reports: every certificate that an authority has issued, as a file.
//!
//! Requesting a report only records it: [`pending`] lists what is to be written, and [`finish`] records the outcome.
//! Where buckets are is not known here.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use outlast_pki::certificate::Certificate;
use serde::{Deserialize, Serialize};

use super::authority::{Authority, arn};
use super::issued::{Issued, issued_prefix};
use super::revocation::{Revoked, revoked_prefix};
use super::{CaError, Status, told};
use crate::arn::{Arn, Scope, shown_in};
use crate::identity::{Permit, action};
use crate::work::Work;
use crate::{Fault, events, ids, limits};

/// Prefix of the reports that are requested and not written yet, each a [`Pending`].
pub const PENDING_PREFIX: &str = "ca/report-pending/";

/// Certificates read in one step.
const PAGE: usize = 500;

/// Format of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Format {
    /// One array of objects.
    #[serde(rename = "JSON")]
    Json,
    /// A heading and one line for each certificate.
    #[serde(rename = "CSV")]
    Csv,
}

/// `AuditReportStatus`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReportStatus {
    /// Not written yet.
    #[serde(rename = "CREATING")]
    Creating,
    /// Written.
    #[serde(rename = "SUCCESS")]
    Success,
    /// It could not be written.
    #[serde(rename = "FAILED")]
    Failed,
}

impl ReportStatus {
    /// All of them.
    pub const ALL: &[Self] = &[Self::Creating, Self::Success, Self::Failed];

    /// AWS's spelling.
    pub fn name(self) -> &'static str {
        match self {
            Self::Creating => "CREATING",
            Self::Success => "SUCCESS",
            Self::Failed => "FAILED",
        }
    }
}

/// A report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// Id, a UUID.
    pub id: String,
    /// `S3BucketName`
    pub bucket: String,
    /// `S3Key`
    pub key: String,
    /// Format.
    pub format: Format,
    /// Status.
    pub status: ReportStatus,
    /// Milliseconds since 1970.
    pub created_ms: i64,
}

/// A report that is to be written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pending {
    /// Record key of its [`Report`].
    pub report: String,
    /// ARN of the authority.
    #[serde(deserialize_with = "crate::arn::stored")]
    pub authority: String,
    /// Name of the bucket.
    pub bucket: String,
    /// Object key in the bucket.
    pub key: String,
    /// Format.
    pub format: Format,
}

impl Pending {
    /// The account of the authority.
    pub fn account(&self) -> String {
        let arn = Arn::parse(&self.authority);
        arn.map(|arn| arn.account().to_owned()).unwrap_or_default()
    }
}

/// Requests a report.
pub fn create(
    work: &mut Work<'_>,
    authority: &Authority,
    bucket: String,
    format: Format,
    permit: &Permit<action::acm_pca::CreateCertificateAuthorityAuditReport>,
) -> Result<Report, CaError> {
    permit.opens(&authority.arn())?;
    if matches!(authority.status(), Status::PendingCertificate | Status::Deleted) {
        return Err(authority.state_error("has nothing to report on"));
    }
    let (scope, ca) = (authority.scope(), authority.id());
    // One at a time: a request for a report that is pending already returns the pending one.
    let waiting = format!("{PENDING_PREFIX}{}/{}/{ca}", scope.account, scope.region);
    if work.exists(&waiting)? {
        return Err(CaError::InProgress(
            "Your request is already in progress: an audit report of this certificate authority is being written."
                .into(),
        ));
    }
    let id = ids::uuid()?;
    let ending = match format {
        Format::Json => "json",
        Format::Csv => "csv",
    };
    let report = Report {
        key: format!("audit-report/{ca}/{id}.{ending}"),
        id,
        bucket,
        format,
        status: ReportStatus::Creating,
        created_ms: work.now_ms(),
    };
    let at = record_key(scope, ca, &report.id);
    work.put(&at, &report)?;
    let pending = Pending {
        report: at,
        authority: authority.arn(),
        bucket: report.bucket.clone(),
        key: report.key.clone(),
        format,
    };
    work.put(&waiting, &pending)?;
    Ok(report)
}

/// Finds a report of an authority by its id.
pub fn find(
    work: &mut Work<'_>,
    authority: &Authority,
    id: &str,
    permit: &Permit<action::acm_pca::DescribeCertificateAuthorityAuditReport>,
) -> Result<Report, CaError> {
    permit.opens(&authority.arn())?;
    let found = match ids::uuid_bytes(id) {
        Some(_) => work.get(&record_key(authority.scope(), authority.id(), id))?,
        None => None,
    };
    found.ok_or_else(|| CaError::NotFound(format!("Could not find the audit report {id}.")))
}

/// Up to `limit` reports that are to be written, with the record keys of their requests, after the key `after`.
pub fn pending(
    work: &Work<'_>,
    after: &str,
    limit: usize,
) -> Result<Vec<(String, Pending)>, Fault> {
    work.scan(PENDING_PREFIX, after, limit)
}

/// Records that the report of `record_key` was written, or could not be.
pub fn finish(work: &mut Work<'_>, record_key: &str, written: bool) -> Result<(), Fault> {
    let Some(pending) = work.get::<Pending>(record_key)? else { return Ok(()) };
    work.delete(record_key);
    if let Some(mut report) = work.get::<Report>(&pending.report)? {
        report.status = if written { ReportStatus::Success } else { ReportStatus::Failed };
        work.put(&pending.report, &report)?;
        let (kind, arn, id) = (&events::REPORT_GENERATED, &pending.authority, Some(report.id));
        match written {
            true => told::tell_success(work, kind, arn, id)?,
            false => told::tell_failure(work, kind, arn, id, None)?,
        }
    }
    Ok(())
}

/// The report on the authority with this ARN, as of now. It is an error if it exceeds [`limits::MAX_REPORT_BYTES`].
pub fn render(work: &Work<'_>, authority: &str, format: Format) -> Result<Vec<u8>, Fault> {
    render_within(work, authority, format, limits::MAX_REPORT_BYTES)
}

fn render_within(
    work: &Work<'_>,
    authority: &str,
    format: Format,
    limit: usize,
) -> Result<Vec<u8>, Fault> {
    let damaged = || Fault::Damaged(authority.to_owned());
    let parsed = Arn::parse(authority).ok_or_else(damaged)?;
    let id = parsed.of("acm-pca", "certificate-authority/").ok_or_else(damaged)?;
    let scope = Scope { account: parsed.account().into(), region: parsed.region().into() };
    let revoked = all_revoked(work, &scope, id)?;
    let prefix = issued_prefix(&scope, id);
    let mut out = match format {
        Format::Json => "[".to_owned(),
        Format::Csv => COLUMNS.join(",") + "\n",
    };
    let (mut after, mut first) = (String::new(), true);
    loop {
        let page = work.scan::<Issued>(&prefix, &after, PAGE)?;
        let Some((last, _)) = page.last() else { break };
        last.clone_into(&mut after);
        for (record_key, issued) in page {
            let serial = record_key.strip_prefix(&prefix).unwrap_or_default();
            let row = row(&scope, id, serial, &issued, revoked.get(serial))
                .ok_or_else(|| Fault::Damaged(record_key.clone()))?;
            match format {
                Format::Json => {
                    let members: serde_json::Map<_, _> = COLUMNS
                        .iter()
                        .zip(row)
                        .filter_map(|(name, value)| Some(((*name).to_owned(), value?.into())))
                        .collect();
                    let separator = if first { "" } else { "," };
                    let _ = write!(out, "{separator}\n{}", serde_json::Value::Object(members));
                }
                Format::Csv => {
                    let cells: Vec<_> =
                        row.into_iter().map(|cell| cell.map_or_else(String::new, quoted)).collect();
                    out += &(cells.join(",") + "\n");
                }
            }
            first = false;
            if out.len() > limit {
                return Err(Fault::Encoding(format!(
                    "the audit report is longer than {limit} bytes"
                )));
            }
        }
    }
    if format == Format::Json {
        out += "\n]\n";
    }
    Ok(out.into_bytes())
}

/// Columns of a report ("Using audit reports with your private CA").
const COLUMNS: [&str; 11] = [
    "awsAccountId",
    "requestedByServicePrincipal",
    "certificateArn",
    "serial",
    "subject",
    "notBefore",
    "notAfter",
    "issuedAt",
    "revokedAt",
    "revocationReason",
    "templateArn",
];

fn row(
    scope: &Scope,
    id: &str,
    serial: &str,
    issued: &Issued,
    revoked: Option<&Revoked>,
) -> Option<[Option<String>; 11]> {
    let certificate = Certificate::parse_one(issued.certificate.as_bytes()).ok()?;
    let octets: Vec<_> = certificate.serial().iter().map(|byte| format!("{byte:02x}")).collect();
    let time = |seconds: i64| Some(outlast_pki::time::rfc3339(seconds).replace('Z', "+0000"));
    Some([
        Some(issued.account.clone().unwrap_or_else(|| scope.account.clone())),
        issued.service.clone(),
        Some(format!("{}/certificate/{serial}", arn(scope, id))),
        Some(octets.join(":")),
        Some(certificate.subject().to_string()),
        time(certificate.not_before()),
        time(certificate.not_after()),
        time(issued.issued_ms.div_euclid(1000)),
        revoked.and_then(|revoked| time(revoked.revoked_ms.div_euclid(1000))),
        revoked.map(|revoked| revoked.reason.clone()),
        Some(shown_in(
            &scope.region,
            &format!("arn:aws:acm-pca:::template/{}/V1", issued.template),
        )),
    ])
}

/// Revoked certificates by serial number.
fn all_revoked(
    work: &Work<'_>,
    scope: &Scope,
    id: &str,
) -> Result<BTreeMap<String, Revoked>, Fault> {
    let prefix = revoked_prefix(scope, id);
    let mut found = BTreeMap::new();
    let mut after = String::new();
    loop {
        let page = work.scan::<Revoked>(&prefix, &after, PAGE)?;
        let Some((last, _)) = page.last() else { return Ok(found) };
        last.clone_into(&mut after);
        for (record_key, revoked) in page {
            found.insert(record_key[prefix.len()..].to_owned(), revoked);
        }
    }
}

/// A cell of CSV (RFC 4180, section 2), escaped so that no spreadsheet takes it for a formula.
fn quoted(text: String) -> String {
    let text = if text.starts_with(['=', '+', '-', '@']) { format!("'{text}") } else { text };
    if text.contains(['"', ',', '\n', '\r']) {
        return format!("\"{}\"", text.replace('"', "\"\""));
    }
    text
}

fn record_key(scope: &Scope, authority: &str, id: &str) -> String {
    format!("ca/report/{}/{}/{authority}/{id}", scope.account, scope.region)
}

#[cfg(test)]
mod tests {
    use outlast_crypto::keys::KeySpec;
    use outlast_crypto::signatures::Message;
    use outlast_pki::certificate::Content;
    use outlast_pki::{name, pem};
    use outlast_store::Store;
    use outlast_store::memory::MemoryStore;

    use super::*;
    use crate::seal::RootKey;

    fn certificate() -> String {
        let spec = KeySpec::by_name("ECC_NIST_P256").unwrap();
        let key = spec.load(&spec.generate().unwrap()).unwrap();
        let public_key = key.public_key().unwrap();
        let subject = name::common_name("leaf").unwrap();
        let content = Content {
            serial: [1; outlast_pki::certificate::SERIAL_LEN],
            issuer: subject.clone(),
            subject,
            public_key: public_key.to_vec(),
            not_before: 0,
            not_after: 1,
            extensions: Vec::new(),
        };
        let unsigned = content.prepare(spec.signing[0], public_key).unwrap();
        let signature = key.sign(spec.signing[0], Message::Raw(&unsigned.to_be_signed)).unwrap();
        pem::certificate(&unsigned.assemble(&signature).unwrap())
    }

    #[test]
    fn a_report_that_takes_too_much_memory_is_an_error() {
        let (store, root) = (MemoryStore::new(), RootKey::generate().unwrap());
        let mut work = Work::new(&store, &root, 0);
        let scope = Scope { account: "123456789012".into(), region: "eu-west-1".into() };
        let issued = serde_json::json!({
            "certificate": certificate(), "template": "EndEntityCertificate", "issued_ms": 1,
        });
        for number in 0..10 {
            work.put(&format!("{}{number}", issued_prefix(&scope, "x")), &issued).unwrap();
        }
        store.commit_and_wait(work.into_transaction(Vec::new())).unwrap();
        let work = Work::new(&store, &root, 0);
        for format in [Format::Json, Format::Csv] {
            let render = |limit| render_within(&work, &arn(&scope, "x"), format, limit);
            let whole = render(limits::MAX_REPORT_BYTES).unwrap();
            assert_eq!(render(whole.len()).unwrap(), whole);
            assert!(matches!(render(whole.len() / 2), Err(Fault::Encoding(_))));
        }
    }
}
