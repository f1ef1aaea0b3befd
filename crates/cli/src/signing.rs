//! Signs and verifies single files, for the commands and the quickstart.

pub(crate) mod check;
pub(crate) mod jobs;

use std::path::{Path, PathBuf};

use indicatif::ProgressBar;
use outlast_api::ops::acm_pca::get_certificate;
use outlast_api::ops::kms::{describe_key, get_public_key, list_resource_tags, sign};
use outlast_api::wire::Blob;
use outlast_crypto::digests::Digest;
use outlast_crypto::keys::KeySpec;
use outlast_crypto::signatures::SignatureAlgorithm;
use outlast_net::server::system_clock;
use outlast_pki::certificate::Certificate;
use outlast_pki::cms::sign::{Request, Unsigned};
use outlast_pki::cms::verify::{SignedMessage, Signer, ValidAt, VerifyError};
use outlast_pki::name::Name;
use outlast_pki::path::PathError;
use outlast_pki::time::rfc3339;
use outlast_pki::{csr, pem};
use serde_json::{Value, json};

use crate::digest;
use crate::endpoint::{CallError, Endpoint};
use crate::failure::{Failure, REFUSED, USAGE};

/// Tag of a KMS key that names its certificate, by which `outlast sign` finds it.
pub(crate) const CERTIFICATE_TAG: &str = "outlast:certificate-arn";

/// A KMS key with its certificate.
#[derive(Clone)]
pub(crate) struct SigningIdentity {
    key_arn: String,
    algorithm: &'static SignatureAlgorithm,
    digest: &'static Digest,
    certificate: Certificate,
    /// The CAs between leaf and root, in DER.
    chain: Vec<Vec<u8>>,
    /// The CAs that came with the signer's certificate, with the root if it is among them.
    authorities: Vec<Certificate>,
}

impl SigningIdentity {
    /// Looks up a key and its certificate: the one in `given` (DER, the signer's first), or the one that the key's
    /// tag names. If `digest` is absent, the key decides.
    pub(crate) async fn resolve(
        endpoint: &mut Endpoint,
        key: &str,
        given: Option<Vec<Vec<u8>>>,
        digest: Option<&'static Digest>,
    ) -> Result<Self, Failure> {
        let described = endpoint
            .call::<describe_key::DescribeKey>(&describe_key::Input {
                key_id: key.to_owned(),
                grant_tokens: None,
            })
            .await?
            .key_metadata;
        let certificates = match given {
            Some(certificates) => certificates,
            None => tagged_certificate(endpoint, &described.arn).await?,
        };
        let public_key = endpoint
            .call::<get_public_key::GetPublicKey>(&get_public_key::Input {
                key_id: described.arn.clone(),
                grant_tokens: None,
            })
            .await?
            .public_key
            .0;
        let (first, rest) = certificates.split_first().ok_or_else(|| {
            Failure::new("there is no certificate").hint("give one with --certificate")
        })?;
        let certificate = Certificate::parse(first)?;
        if certificate.public_key()? != public_key {
            return Err(Failure::new(format!(
                "the certificate of \"{}\" is not for the key {}",
                certificate.subject(),
                described.arn
            ))
            .hint("the signer's certificate comes first in the file"));
        }
        let (algorithm, digest) = choose(&described.key_spec, digest)?;
        // The verifier has the root already, and would not trust one in the message.
        let chain = rest
            .iter()
            .filter(|der| {
                Certificate::parse(der).is_ok_and(|found| found.issuer() != found.subject())
            })
            .cloned()
            .collect();
        let authorities =
            rest.iter().map(|der| Certificate::parse(der)).collect::<Result<_, _>>()?;
        Ok(Self { key_arn: described.arn, algorithm, digest, certificate, chain, authorities })
    }

    /// The signer's certificate.
    pub(crate) fn certificate(&self) -> &Certificate {
        &self.certificate
    }

    /// The CAs that came with it, in no certain order.
    pub(crate) fn authorities(&self) -> &[Certificate] {
        &self.authorities
    }

    /// The digest of files.
    pub(crate) fn digest(&self) -> &'static Digest {
        self.digest
    }

    /// Asks the service whether the caller may sign with the key; nothing is signed.
    pub(crate) async fn may_sign(&self, endpoint: &mut Endpoint) -> Result<(), Failure> {
        let asked = sign::Input {
            key_id: self.key_arn.clone(),
            message: Blob(vec![0]),
            message_type: None,
            grant_tokens: None,
            signing_algorithm: self.algorithm.kms_name.to_owned(),
            dry_run: Some(true),
        };
        match endpoint.call::<sign::Sign>(&asked).await {
            // KMS's answer to a dry run that would succeed.
            Err(CallError::Service(error)) if error.code == "DryRunOperationException" => Ok(()),
            Ok(_) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Signs a file and returns the CMS message in DER. Only the digest leaves this process.
    pub(crate) async fn sign_file(
        &self,
        endpoint: &mut Endpoint,
        path: &Path,
        progress: &ProgressBar,
    ) -> Result<Vec<u8>, Failure> {
        let message_digest =
            tokio::task::block_in_place(|| file_digest(path, self.digest, progress))?;
        self.sign_digest(endpoint, &message_digest).await
    }

    /// Signs a file, given its digest by [`SigningIdentity::digest`].
    pub(crate) async fn sign_digest(
        &self,
        endpoint: &mut Endpoint,
        message_digest: &[u8],
    ) -> Result<Vec<u8>, Failure> {
        let unsigned = Unsigned::new(&Request {
            message_digest,
            digest: self.digest,
            algorithm: self.algorithm,
            signing_time: system_clock().div_euclid(1000),
            signer: &self.certificate,
            chain: &self.chain,
        })?;
        let signed = endpoint
            .call::<sign::Sign>(&sign::Input {
                key_id: self.key_arn.clone(),
                message: Blob(unsigned.to_be_signed.clone()),
                message_type: None,
                grant_tokens: None,
                signing_algorithm: self.algorithm.kms_name.to_owned(),
                dry_run: None,
            })
            .await?;
        Ok(unsigned.assemble(&signed.signature.0)?)
    }
}

/// The digest of a file.
pub(crate) fn file_digest(
    path: &Path,
    digest: &'static Digest,
    progress: &ProgressBar,
) -> Result<Vec<u8>, Failure> {
    Ok(digest::file(path, &[digest], progress)?.pop().unwrap_or_default())
}

/// The digest of standard input.
pub(crate) fn stdin_digest(
    digest: &'static Digest,
    progress: &ProgressBar,
) -> Result<Vec<u8>, Failure> {
    // Not the locked handle: another thread reads it.
    let values = digest::reader(std::io::stdin(), &[digest], progress);
    let values = values.map_err(|error| Failure::new(format!("standard input: {error}")))?;
    Ok(values.into_iter().next().unwrap_or_default())
}

/// A certificate request in DER for a key of the service, which signs it.
pub(crate) async fn certificate_request(
    endpoint: &mut Endpoint,
    key: &str,
    subject: Name,
) -> Result<Vec<u8>, Failure> {
    let asked = get_public_key::Input { key_id: key.to_owned(), grant_tokens: None };
    let found = endpoint.call::<get_public_key::GetPublicKey>(&asked).await?;
    let (algorithm, _) = choose(&found.key_spec, None)?;
    let request = csr::Unsigned::new(subject, &found.public_key.0, Vec::new())?;
    let signature = endpoint
        .call::<sign::Sign>(&sign::Input {
            key_id: key.to_owned(),
            message: Blob(request.to_be_signed.clone()),
            message_type: None,
            grant_tokens: None,
            signing_algorithm: algorithm.kms_name.to_owned(),
            dry_run: None,
        })
        .await?
        .signature
        .0;
    Ok(request.assemble(algorithm, &signature)?)
}

/// The signature algorithm and digest for a key type; RFC 9882 prefers SHA-512.
fn choose(
    key_spec: &str,
    digest: Option<&'static Digest>,
) -> Result<(&'static SignatureAlgorithm, &'static Digest), Failure> {
    let spec = KeySpec::by_name(key_spec)
        .ok_or_else(|| Failure::new(format!("keys of type {key_spec} are not supported")))?;
    let rows: Vec<_> = spec.signing.iter().copied().filter(|row| row.oid.is_some()).collect();
    let wanted = digest.map(|digest| digest.name);
    let suits = |row: &&&SignatureAlgorithm, name| row.cms_digests.contains(&name);
    let found = match wanted {
        Some(name) => rows.iter().find(|row| suits(row, name)).map(|row| (*row, name)),
        None => rows
            .iter()
            .find(|row| suits(row, "sha512"))
            .map(|row| (*row, "sha512"))
            .or_else(|| rows.first().and_then(|row| Some((*row, *row.cms_digests.first()?)))),
    };
    found.and_then(|(row, name)| Some((row, Digest::by_name(name)?))).ok_or_else(|| {
        let possible: Vec<_> = rows.iter().flat_map(|row| row.cms_digests).copied().collect();
        let failure = Failure::new(match wanted {
            Some(name) => format!("the digest {name} does not suit a key of type {key_spec}"),
            None => format!("a key of type {key_spec} cannot sign"),
        });
        if possible.is_empty() {
            failure.hint("use a key with KeyUsage SIGN_VERIFY")
        } else {
            failure.hint(format!("suitable are {}", possible.join(", "))).code(USAGE)
        }
    })
}

async fn tagged_certificate(
    endpoint: &mut Endpoint,
    key_arn: &str,
) -> Result<Vec<Vec<u8>>, Failure> {
    let mut marker = None;
    loop {
        let page = endpoint
            .call::<list_resource_tags::ListResourceTags>(&list_resource_tags::Input {
                key_id: key_arn.to_owned(),
                limit: None,
                marker,
            })
            .await?;
        if let Some(tag) = page.tags.iter().find(|tag| tag.tag_key == CERTIFICATE_TAG) {
            return issued_certificate(endpoint, &tag.tag_value).await;
        }
        marker = page.next_marker;
        if marker.is_none() {
            return Err(Failure::new(format!("no certificate is known for the key {key_arn}"))
                .hint(format!(
                    "make a request with outlast cert request and let a CA issue the certificate; then give it \
                     with --certificate FILE, or tag the key: {CERTIFICATE_TAG} = ARN. docs/guide/signing.md shows \
                     every step"
                )));
        }
    }
}

/// A certificate issued by Private CA, and its chain, in DER.
pub(crate) async fn issued_certificate(
    endpoint: &mut Endpoint,
    arn: &str,
) -> Result<Vec<Vec<u8>>, Failure> {
    let authority = arn
        .split_once("/certificate/")
        .map(|(authority, _)| authority.to_owned())
        .ok_or_else(|| Failure::new(format!("{arn} is not the ARN of a certificate")))?;
    let found = endpoint
        .call::<get_certificate::GetCertificate>(&get_certificate::Input {
            certificate_authority_arn: authority,
            certificate_arn: arn.to_owned(),
        })
        .await?;
    let chain = found.certificate_chain.unwrap_or_default();
    let text = pem::join([found.certificate.as_str(), chain.as_str()]);
    Ok(pem::read_certificates(text.as_bytes())?)
}

/// Verifies a detached signature of a file. A refusal has exit code 3.
pub(crate) fn verify_file(
    path: &Path,
    signature: &[u8],
    roots: &[Vec<u8>],
    extra: &[Vec<u8>],
    valid_at: ValidAt,
    progress: &ProgressBar,
) -> Result<Vec<Signer>, Failure> {
    let refused = |error: VerifyError| {
        let failure = Failure::file(path, &error).code(REFUSED);
        match error {
            VerifyError::Path(PathError::UnknownIssuer { .. }) => failure.hint(
                "give the certificates in between with --certificates, the roots with --trust",
            ),
            _ => failure,
        }
    };
    let message = SignedMessage::parse(signature).map_err(refused)?;
    let digests = message.digests().map_err(refused)?;
    let values = digest::file(path, &digests, progress)?;
    message.verify(&values, roots, extra, valid_at).map_err(refused)
}

/// One signer as JSON.
pub(crate) fn signer_json(signer: &Signer) -> Value {
    json!({
        "subject": signer.certificate.subject().to_string(),
        "issuer": signer.certificate.issuer().to_string(),
        "serial": hex::encode(signer.certificate.serial()),
        "algorithm": format!("{:?}", signer.algorithm),
        "digest": signer.digest.name,
        "signing_time": signer.signing_time.map(rfc3339),
        "valid_at": rfc3339(signer.valid_at),
        "certificate_not_after": rfc3339(signer.certificate.not_after()),
    })
}

/// Path of a file's signature: the file's, with `.p7s` added.
pub(crate) fn signature_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".p7s");
    PathBuf::from(name)
}
