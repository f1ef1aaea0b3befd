//! Certificate authorities of the service, as commands make and use them: `quickstart` and `sign setup`.

use outlast_api::model::acm_pca::{
    ASN1Subject, CertificateAuthority, CertificateAuthorityConfiguration, CrlConfiguration,
    OcspConfiguration, RevocationConfiguration, Validity,
};
use outlast_api::ops::acm_pca::{
    create_certificate_authority, get_certificate, get_certificate_authority_csr,
    import_certificate_authority_certificate, issue_certificate, list_certificate_authorities,
};
use outlast_api::wire::Blob;

use crate::endpoint::Endpoint;
use crate::failure::Failure;

/// A CA that is to be made.
pub(crate) struct NewAuthority<'a> {
    /// Common name.
    pub(crate) name: &'a str,
    /// ARN and signing algorithm of the CA above; a root has none.
    pub(crate) parent: Option<(&'a str, &'a str)>,
    /// Private CA's `KeyAlgorithm`.
    pub(crate) key_algorithm: &'a str,
    /// Private CA's `SigningAlgorithm`.
    pub(crate) signing_algorithm: &'a str,
    /// Whether it publishes CRLs and answers OCSP requests.
    pub(crate) revocation: bool,
}

/// Years of a root's certificate.
const ROOT_YEARS: i64 = 10;
/// Years of a subordinate CA's certificate.
const SUBORDINATE_YEARS: i64 = 5;
/// Days for which a CRL is valid.
const CRL_DAYS: i64 = 7;

impl NewAuthority<'_> {
    /// Private CA's `CertificateAuthorityType`.
    pub(crate) fn kind(&self) -> &'static str {
        if self.parent.is_some() { "SUBORDINATE" } else { "ROOT" }
    }

    /// Years of its certificate.
    pub(crate) fn years(&self) -> i64 {
        if self.parent.is_some() { SUBORDINATE_YEARS } else { ROOT_YEARS }
    }

    /// Makes it, with its certificate; returns its ARN.
    pub(crate) async fn create(&self, endpoint: &mut Endpoint) -> Result<String, Failure> {
        let subject =
            ASN1Subject { common_name: Some(self.name.to_owned()), ..ASN1Subject::default() };
        let revocation = self.revocation.then(|| RevocationConfiguration {
            crl_configuration: Some(CrlConfiguration {
                enabled: true,
                expiration_in_days: Some(CRL_DAYS),
                ..CrlConfiguration::default()
            }),
            ocsp_configuration: Some(OcspConfiguration { enabled: true, ocsp_custom_cname: None }),
        });
        let new = create_certificate_authority::Input {
            certificate_authority_configuration: CertificateAuthorityConfiguration {
                key_algorithm: self.key_algorithm.to_owned(),
                signing_algorithm: self.signing_algorithm.to_owned(),
                subject,
                csr_extensions: None,
            },
            revocation_configuration: revocation,
            certificate_authority_type: self.kind().to_owned(),
            idempotency_token: None,
            key_storage_security_standard: None,
            tags: None,
            usage_mode: None,
        };
        type Create = create_certificate_authority::CreateCertificateAuthority;
        let arn = endpoint.call::<Create>(&new).await?.certificate_authority_arn;
        type Csr = get_certificate_authority_csr::GetCertificateAuthorityCsr;
        let get = get_certificate_authority_csr::Input { certificate_authority_arn: arn.clone() };
        let csr = endpoint.call::<Csr>(&get).await?.csr;
        let (issuer, signing_algorithm) =
            self.parent.unwrap_or((arn.as_str(), self.signing_algorithm));
        let template = match self.parent {
            None => "RootCACertificate",
            Some(_) => "SubordinateCACertificate_PathLen0",
        };
        let order = Order {
            authority: issuer,
            signing_algorithm,
            template,
            validity: Validity { value: self.years(), kind: "YEARS".into() },
        };
        let certificate = order.issue(endpoint, csr.into_bytes()).await?;
        let found = endpoint
            .call::<get_certificate::GetCertificate>(&get_certificate::Input {
                certificate_authority_arn: issuer.to_owned(),
                certificate_arn: certificate,
            })
            .await?;
        type Import =
            import_certificate_authority_certificate::ImportCertificateAuthorityCertificate;
        let import = import_certificate_authority_certificate::Input {
            certificate_authority_arn: arn.clone(),
            certificate: Blob(found.certificate.into_bytes()),
            certificate_chain: found.certificate_chain.map(|chain| Blob(chain.into_bytes())),
        };
        endpoint.call::<Import>(&import).await?;
        Ok(arn)
    }
}

/// A certificate that is to be issued.
pub(crate) struct Order<'a> {
    /// ARN of the issuer.
    pub(crate) authority: &'a str,
    /// The issuer's `SigningAlgorithm`.
    pub(crate) signing_algorithm: &'a str,
    /// Name of the template, without version.
    pub(crate) template: &'a str,
    pub(crate) validity: Validity,
}

impl Order<'_> {
    /// Issues it for a request in PEM; returns the certificate's ARN.
    pub(crate) async fn issue(
        self,
        endpoint: &mut Endpoint,
        request: Vec<u8>,
    ) -> Result<String, Failure> {
        Ok(endpoint
            .call::<issue_certificate::IssueCertificate>(&issue_certificate::Input {
                api_passthrough: None,
                certificate_authority_arn: self.authority.to_owned(),
                csr: Blob(request),
                paired_csr: None,
                signing_algorithm: self.signing_algorithm.to_owned(),
                template_arn: Some(format!("arn:aws:acm-pca:::template/{}/V1", self.template)),
                validity: self.validity,
                validity_not_before: None,
                idempotency_token: None,
            })
            .await?
            .certificate_arn)
    }
}

/// All CAs that the caller may list.
pub(crate) async fn list(endpoint: &mut Endpoint) -> Result<Vec<CertificateAuthority>, Failure> {
    let mut out = Vec::new();
    let mut next_token = None;
    loop {
        type List = list_certificate_authorities::ListCertificateAuthorities;
        let page = list_certificate_authorities::Input {
            max_results: None,
            next_token,
            resource_owner: None,
        };
        let page = endpoint.call::<List>(&page).await?;
        out.extend(page.certificate_authorities);
        next_token = page.next_token;
        if next_token.is_none() {
            return Ok(out);
        }
    }
}

/// Whether it can issue certificates that end at `end` (seconds since 1970).
pub(crate) fn lasts(found: &CertificateAuthority, end: i64) -> bool {
    found.status == "ACTIVE" && found.not_after.is_some_and(|time| time.ms.div_euclid(1000) > end)
}
