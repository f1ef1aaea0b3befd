//! Filters and sort orders of Certificate Manager's searches.

use outlast_domain::acm::certificate::Record;
use outlast_domain::acm::certificate::RenewalSummary;
use outlast_domain::acm::details::names;
use outlast_domain::acm::search::SortKey;
use outlast_domain::limits;
use outlast_pki::certificate::Certificate as X509;
use outlast_pki::general_name::GeneralName;

use super::acm_certificate::{eligibility, serial, told_algorithm};
pub use crate::aws::acm::{
    AcmCertificateMetadataFilter, CertificateFilter, CertificateFilterStatement, CommonNameFilter,
    GeneralName as AlternativeName, OtherName, SubjectAlternativeNameFilter, SubjectFilter,
    TimestampRange, X509AttributeFilter, X509Attributes,
};
use crate::wire::{ApiError, Timestamp};

/// Values of `ComparisonOperator`.
pub const OPERATORS: &[&str] = &["CONTAINS", "EQUALS"];

/// Whether a certificate matches, at a time in milliseconds since 1970.
pub type Test = Box<dyn Fn(&Record, i64) -> bool>;

/// The one member of a union that is set.
fn only<T>(name: &str, members: Vec<Option<T>>) -> Result<T, ApiError> {
    let mut given = members.into_iter().flatten();
    match (given.next(), given.next()) {
        (Some(one), None) => Ok(one),
        _ => Err(ApiError::validation(format!("{name} must have exactly one member."))),
    }
}

impl CertificateFilterStatement {
    /// Converts the filter into a test.
    pub fn test(self) -> Result<Test, ApiError> {
        let mut left = limits::MAX_FILTERS;
        self.at_depth(1, &mut left)
    }

    fn at_depth(self, depth: usize, left: &mut usize) -> Result<Test, ApiError> {
        if depth > limits::MAX_FILTER_DEPTH {
            let most = limits::MAX_FILTER_DEPTH;
            return Err(ApiError::validation(format!(
                "Filters can be nested at most {most} deep."
            )));
        }
        *left = left.checked_sub(1).ok_or_else(|| {
            ApiError::validation(format!("There can be at most {} filters.", limits::MAX_FILTERS))
        })?;
        let several = |list: Vec<Self>, left: &mut usize| {
            list.into_iter()
                .map(|statement| statement.at_depth(depth + 1, left))
                .collect::<Result<Vec<_>, _>>()
        };
        let mut tests: Vec<Option<Test>> = Vec::new();
        if let Some(list) = self.and {
            let parts = several(list, left)?;
            tests.push(Some(Box::new(move |r, now| parts.iter().all(|part| part(r, now)))));
        }
        if let Some(list) = self.or {
            let parts = several(list, left)?;
            tests.push(Some(Box::new(move |r, now| parts.iter().any(|part| part(r, now)))));
        }
        if let Some(inner) = self.not {
            let inner = inner.at_depth(depth + 1, left)?;
            tests.push(Some(Box::new(move |r, now| !inner(r, now))));
        }
        tests.push(self.filter.map(CertificateFilter::test).transpose()?);
        only("CertificateFilterStatement", tests)
    }
}

fn by(test: impl Fn(&Record) -> bool + 'static) -> Test {
    Box::new(move |record, _| test(record))
}

impl CertificateFilter {
    fn test(self) -> Result<Test, ApiError> {
        let arn = self.certificate_arn.map(|wanted| {
            // The ARN ends with the id; account and Region are those of the search.
            let id = wanted.rsplit('/').next().unwrap_or_default().to_owned();
            by(move |record| record.id == id)
        });
        let attribute = self.x509_attribute_filter.map(X509AttributeFilter::test).transpose()?;
        let metadata = self
            .acm_certificate_metadata_filter
            .map(AcmCertificateMetadataFilter::test)
            .transpose()?;
        only("CertificateFilter", vec![arn, attribute, metadata])
    }
}

impl X509AttributeFilter {
    fn test(self) -> Result<Test, ApiError> {
        let mut tests: Vec<Option<Test>> = vec![
            self.extended_key_usage.map(|name| by(move |r| has_purpose(r, &name))),
            self.key_usage.map(|name| by(move |r| has_usage(r, &name))),
            self.key_algorithm.map(|name| by(move |r| r.details.key_algorithm == name)),
            self.serial_number.map(|wanted| by(move |r| serial(r) == wanted)),
            self.not_after.map(|range| by(move |r| r.validity().is_some_and(|v| range.has(v.1)))),
            self.not_before.map(|range| by(move |r| r.validity().is_some_and(|v| range.has(v.0)))),
        ];
        if let Some(SubjectFilter { common_name }) = self.subject {
            tests.push(Some(by(move |r| {
                r.details.common_name.as_ref().is_some_and(|name| common_name.holds(name))
            })));
        }
        if let Some(SubjectAlternativeNameFilter { dns_name }) = self.subject_alternative_name {
            tests.push(Some(by(move |r| {
                r.details.dns_names.iter().any(|name| dns_name.holds(name))
            })));
        }
        only("X509AttributeFilter", tests)
    }
}

impl AcmCertificateMetadataFilter {
    fn test(self) -> Result<Test, ApiError> {
        let status = self.status.map(|name| -> Test {
            Box::new(move |record, now_ms| record.status(now_ms).name() == name)
        });
        let renewal = |record: &Record| record.renewal.as_ref().map(RenewalSummary::status);
        let acme = |record: &Record| record.acme.clone();
        only(
            "AcmCertificateMetadataFilter",
            vec![
                status,
                self.renewal_status.map(|name| by(move |r| renewal(r) == Some(name.as_str()))),
                self.kind.map(|name| by(move |r| r.kind() == name)),
                // Nothing here uses certificates, so none is in use.
                self.in_use.map(|wanted| by(move |_| !wanted)),
                self.exported.map(|wanted| by(move |r| r.exported == wanted)),
                self.export_option.map(|name| by(move |r| r.exportable == (name == "ENABLED"))),
                // No other service manages one.
                self.managed_by.map(|_| by(|_| false)),
                self.validation_method.map(|name| {
                    by(move |r| {
                        r.public.as_ref().is_some_and(|public| public.method.name() == name)
                    })
                }),
                self.certificate_key_pair_origin.map(|name| by(move |r| r.origin.name() == name)),
                self.acme_endpoint_arn
                    .map(|arn| by(move |r| acme(r).is_some_and(|acme| acme.endpoint_arn == arn))),
                self.acme_account_id
                    .map(|id| by(move |r| acme(r).is_some_and(|acme| acme.account_id == id))),
            ],
        )
    }
}

/// Whether a certificate has an extended key usage; `NONE` matches a certificate without any.
pub fn has_purpose(record: &Record, name: &str) -> bool {
    let purposes = &record.details.extended_key_usages;
    if name == "NONE" {
        purposes.is_empty()
    } else {
        purposes.iter().any(|(known, _)| known == name)
    }
}

/// Whether a certificate has a key usage; `ANY` matches a certificate that does not restrict the usage of its key.
pub fn has_usage(record: &Record, name: &str) -> bool {
    let usages = &record.details.key_usages;
    if name == "ANY" { usages.is_empty() } else { usages.iter().any(|known| known == name) }
}

impl CommonNameFilter {
    /// Host names are compared without regard to case.
    fn holds(&self, name: &str) -> bool {
        let (name, wanted) = (name.to_ascii_lowercase(), self.value.to_ascii_lowercase());
        if self.comparison_operator == "EQUALS" { name == wanted } else { name.contains(&wanted) }
    }
}

impl TimestampRange {
    fn has(&self, seconds: i64) -> bool {
        let ms = seconds * 1000;
        self.start.is_none_or(|start| start.ms <= ms) && self.end.is_none_or(|end| ms <= end.ms)
    }
}

/// A sort order.
pub struct Order {
    /// Its name in `SearchCertificatesSortBy`.
    pub name: &'static str,
    /// The value to sort by, at a time in milliseconds since 1970.
    pub key: fn(&Record, i64) -> SortKey,
}

/// All sort orders.
pub static ORDERS: &[Order] = &[
    Order { name: "CREATED_AT", key: |r, _| SortKey::Number(r.created_ms) },
    Order { name: "NOT_AFTER", key: |r, _| r.validity().map(|v| v.1).into() },
    Order { name: "STATUS", key: |r, now_ms| Some(r.status(now_ms).name()).into() },
    Order {
        name: "RENEWAL_STATUS",
        key: |r, _| r.renewal.as_ref().map(RenewalSummary::status).into(),
    },
    Order { name: "EXPORTED", key: |r, _| r.exported.into() },
    Order { name: "IN_USE", key: |_, _| false.into() },
    Order { name: "NOT_BEFORE", key: |r, _| r.validity().map(|v| v.0).into() },
    Order { name: "KEY_ALGORITHM", key: |r, _| Some(r.details.key_algorithm.as_str()).into() },
    Order { name: "TYPE", key: |r, _| Some(r.kind()).into() },
    // All ARNs of one account and Region have the same prefix.
    Order { name: "CERTIFICATE_ARN", key: |r, _| Some(r.id.as_str()).into() },
    Order { name: "COMMON_NAME", key: |r, _| r.details.common_name.as_deref().into() },
    Order {
        name: "REVOKED_AT",
        key: |r, _| r.revoked.as_ref().map(|revoked| revoked.at_ms).into(),
    },
    Order { name: "RENEWAL_ELIGIBILITY", key: |r, _| Some(eligibility(r).as_str()).into() },
    Order { name: "ISSUED_AT", key: |r, _| r.issued_ms.into() },
    Order { name: "MANAGED_BY", key: |_, _| SortKey::None },
    Order { name: "EXPORT_OPTION", key: |r, _| r.exportable.into() },
    Order {
        name: "VALIDATION_METHOD",
        key: |r, _| r.public.as_ref().map(|public| public.method.name()).into(),
    },
    Order { name: "IMPORTED_AT", key: |r, _| r.imported_ms.into() },
    Order {
        name: "ACME_ENDPOINT_ARN",
        key: |r, _| r.acme.as_ref().map(|acme| acme.endpoint_arn.as_str()).into(),
    },
    Order {
        name: "ACME_ACCOUNT_ID",
        key: |r, _| r.acme.as_ref().map(|acme| acme.account_id.as_str()).into(),
    },
    Order { name: "CERTIFICATE_KEY_PAIR_ORIGIN", key: |r, _| Some(r.origin.name()).into() },
];

/// A position in a sorted list, as the marker encodes it.
pub fn position_text((key, id): &(SortKey, String)) -> String {
    let value = match key {
        SortKey::None => serde_json::Value::Null,
        SortKey::Number(number) => (*number).into(),
        SortKey::Text(text) => text.as_str().into(),
    };
    serde_json::json!([value, id]).to_string()
}

/// Reverses [`position_text`].
pub fn read_position(text: &str) -> Option<(SortKey, String)> {
    let (value, id): (serde_json::Value, String) = serde_json::from_str(text).ok()?;
    let key = match value {
        serde_json::Value::Null => SortKey::None,
        serde_json::Value::Number(number) => SortKey::Number(number.as_i64()?),
        serde_json::Value::String(text) => SortKey::Text(text),
        _ => return None,
    };
    Some((key, id))
}

impl X509Attributes {
    /// Describes a certificate; `pem` is its text, if it is still stored.
    pub fn new(record: &Record, pem: Option<&str>) -> Self {
        let x509 = pem.and_then(|pem| X509::parse_one(pem.as_bytes()).ok());
        let details = &record.details;
        Self {
            issuer: x509.as_ref().map(|x509| x509.issuer().into()),
            subject: x509.as_ref().map(|x509| x509.subject().into()),
            subject_alternative_names: x509
                .as_ref()
                .map(|x509| names(x509).iter().filter_map(alternative_name).collect()),
            extended_key_usages: details.extended_key_usages.iter().map(|u| u.0.clone()).collect(),
            key_algorithm: told_algorithm(&details.key_algorithm),
            key_usages: details.key_usages.clone(),
            serial_number: record.is_issued().then(|| serial(record)),
            not_after: record.validity().map(|(_, end)| Timestamp::from_seconds(end)),
            not_before: record.validity().map(|(begin, _)| Timestamp::from_seconds(begin)),
        }
    }
}

/// AWS has no member for the other kinds.
fn alternative_name(name: &GeneralName) -> Option<AlternativeName> {
    let mut out = AlternativeName::default();
    match name {
        GeneralName::OtherName { type_id, value } => {
            let (object_identifier, value) = (type_id.to_string(), hex::encode(value));
            out.other_name = Some(OtherName { object_identifier, value });
        }
        GeneralName::Rfc822Name(text) => out.rfc822_name = Some(text.clone()),
        GeneralName::DnsName(text) => out.dns_name = Some(text.clone()),
        GeneralName::DirectoryName(name) => out.directory_name = Some(name.into()),
        GeneralName::UniformResourceIdentifier(text) => {
            out.uniform_resource_identifier = Some(text.clone());
        }
        GeneralName::IpAddress(address) => out.ip_address = Some(address.to_string()),
        GeneralName::RegisteredId(oid) => out.registered_id = Some(oid.to_string()),
        GeneralName::EdiPartyName { .. } | GeneralName::Other(..) => return None,
    }
    Some(out)
}
