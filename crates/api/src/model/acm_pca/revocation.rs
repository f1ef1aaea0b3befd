//! `RevocationConfiguration`, and the rules that AWS documents for it.

use outlast_domain::ca::{self, Crl, Ocsp, Revocation};
use outlast_domain::settings::Settings;

pub use crate::aws::acm_pca::{
    CrlConfiguration, CrlDistributionPointExtensionConfiguration, OcspConfiguration,
    RevocationConfiguration,
};
use crate::wire::ApiError;

/// Days that a CRL is valid if the caller does not say; the default of AWS's console.
const DEFAULT_EXPIRATION_DAYS: i64 = 7;

impl RevocationConfiguration {
    /// Applies the request to the configuration `before`; members that are left out keep their values.
    pub fn apply(self, before: &Revocation, settings: &Settings) -> Result<Revocation, ApiError> {
        let crl = match self.crl_configuration {
            None => before.crl.clone(),
            Some(crl) => crl.read(settings)?,
        };
        let ocsp = match self.ocsp_configuration {
            None => before.ocsp.clone(),
            Some(ocsp) => ocsp.read(settings)?,
        };
        Ok(Revocation { crl, ocsp })
    }
}

impl CrlConfiguration {
    fn read(self, settings: &Settings) -> Result<Option<Crl>, ApiError> {
        let Self {
            enabled,
            expiration_in_days,
            custom_cname,
            s3_bucket_name: bucket,
            s3_object_acl: acl,
            crl_distribution_point_extension_configuration: extension,
            crl_type,
            custom_path,
        } = self;
        if !enabled {
            let more = expiration_in_days.is_some() || extension.is_some();
            let texts = [&custom_cname, &bucket, &acl, &crl_type, &custom_path];
            if more || texts.iter().any(|text| text.is_some()) {
                return Err(only_enabled("CrlConfiguration"));
            }
            return Ok(None);
        }
        let expiration_days = expiration_in_days.unwrap_or(DEFAULT_EXPIRATION_DAYS);
        if let Some(name) = &custom_cname {
            check_cname("CustomCname", name)?;
        }
        if let Some(name) = &bucket {
            check_bucket(name)?;
        }
        let crl_type = crl_type.as_deref().unwrap_or("COMPLETE");
        if let Some(path) = &custom_path {
            check_path(path)?;
        }
        let omit_extension = extension.is_some_and(|extension| extension.omit_extension);
        if omit_extension && custom_cname.is_some() {
            return Err(invalid(
                "OmitExtension cannot be set together with CustomCname: without the extension the name is not used.",
            ));
        }
        let base_url = ca::crl::base_url(settings, custom_cname.as_deref(), custom_path.as_deref())
            .ok_or_else(|| no_listener("CRLs"))?;
        Ok(Some(Crl {
            expiration_days,
            custom_cname,
            bucket,
            acl,
            omit_extension,
            partitioned: crl_type == "PARTITIONED",
            custom_path,
            base_url,
        }))
    }
}

impl OcspConfiguration {
    fn read(self, settings: &Settings) -> Result<Option<Ocsp>, ApiError> {
        let custom_cname = self.ocsp_custom_cname;
        if !self.enabled {
            return match custom_cname {
                Some(_) => Err(only_enabled("OcspConfiguration")),
                None => Ok(None),
            };
        }
        if let Some(name) = &custom_cname {
            check_cname("OcspCustomCname", name)?;
        }
        let url = ca::ocsp::url(settings, custom_cname.as_deref());
        let url = url.ok_or_else(|| no_listener("OCSP"))?;
        Ok(Some(Ocsp { custom_cname, url }))
    }
}

impl From<&Revocation> for RevocationConfiguration {
    fn from(revocation: &Revocation) -> Self {
        let crl = revocation.crl.as_ref().map(|crl| CrlConfiguration {
            enabled: true,
            expiration_in_days: Some(crl.expiration_days),
            custom_cname: crl.custom_cname.clone(),
            s3_bucket_name: crl.bucket.clone(),
            s3_object_acl: crl.acl.clone(),
            crl_distribution_point_extension_configuration: Some(
                CrlDistributionPointExtensionConfiguration { omit_extension: crl.omit_extension },
            ),
            crl_type: Some(if crl.partitioned { "PARTITIONED" } else { "COMPLETE" }.into()),
            custom_path: crl.custom_path.clone(),
        });
        let ocsp = revocation.ocsp.as_ref().map(|ocsp| OcspConfiguration {
            enabled: true,
            ocsp_custom_cname: ocsp.custom_cname.clone(),
        });
        Self {
            crl_configuration: Some(crl.unwrap_or_default()),
            ocsp_configuration: Some(ocsp.unwrap_or_default()),
        }
    }
}

fn invalid(message: impl Into<String>) -> ApiError {
    ApiError::new("InvalidArgsException", message)
}

fn only_enabled(name: &str) -> ApiError {
    invalid(format!("{name} with Enabled false must have no other members."))
}

fn no_listener(what: &str) -> ApiError {
    invalid(format!(
        "{what} cannot be enabled without a custom name: this server does not listen for requests for CRLs and \
         OCSP. Start it with --revocation-listen."
    ))
}

/// "must conform to RFC2396 restrictions on the use of special characters [...] must not include a protocol
/// prefix"
fn check_cname(member: &str, name: &str) -> Result<(), ApiError> {
    let good = |c: char| c.is_ascii_alphanumeric() || "-;/?:@&=+$,%_.!~*()'".contains(c);
    if name.contains("://") {
        return Err(invalid(format!("{member} must not have a protocol prefix.")));
    }
    let url = format!("http://{name}");
    // Clients would resolve such segments (RFC 3986, section 5.2.4), and ask for another path.
    let dots = name.split('/').any(|segment| matches!(segment, "." | ".."));
    if dots
        || outlast_pki::general_name::uri(&url).is_err()
        || name.starts_with('/')
        || name.ends_with('/')
        || !name.chars().all(good)
    {
        return Err(invalid(format!("{member} is not a name that a URL can contain (RFC 2396).")));
    }
    Ok(())
}

/// "must conform to Amazon S3 bucket naming rules"
pub fn check_bucket(name: &str) -> Result<(), ApiError> {
    let label = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let good = (3..=63).contains(&name.len())
        && name.chars().all(|c| label(c) || matches!(c, '-' | '.'))
        && name.starts_with(label)
        && name.ends_with(label)
        && !name.contains("..")
        && name.parse::<std::net::Ipv4Addr>().is_err();
    if good {
        return Ok(());
    }
    Err(invalid("The S3 bucket name does not conform to the naming rules of buckets."))
}

/// `(/|segment(/segment)*)`
fn check_path(path: &str) -> Result<(), ApiError> {
    let good = |c: char| c.is_ascii_alphanumeric() || "-;?:@&=+$,%_.!~*()'".contains(c);
    let segment =
        |text: &str| !text.is_empty() && !matches!(text, "." | "..") && text.chars().all(good);
    if path == "/" || path.split('/').all(segment) {
        return Ok(());
    }
    Err(invalid("CustomPath must be / or path segments separated by /."))
}
