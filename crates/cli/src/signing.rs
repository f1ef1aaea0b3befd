//! Signs files, for the commands and the quickstart: keys with their certificates, alone or together.

pub(crate) mod approval;
pub(crate) mod check;
pub(crate) mod jobs;
pub(crate) mod setup;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use indicatif::ProgressBar;
use outlast_api::ops::acm_pca::get_certificate;
use outlast_api::ops::kms::{describe_key, get_public_key, list_resource_tags, sign};
use outlast_api::wire::Blob;
use outlast_crypto::digests::Digest;
use outlast_crypto::keys::KeySpec;
use outlast_crypto::keys::ml_dsa::external_mu;
use outlast_crypto::signatures::{Family, SignatureAlgorithm};
use outlast_net::server::system_clock;
use outlast_pki::certificate::{Certificate, Extension};
use outlast_pki::cms::sign::{Request, Unsigned, suitable};
use outlast_pki::crl::Crl;
use outlast_pki::name::Name;
use outlast_pki::ocsp::Response;
use outlast_pki::{csr, pem};

use crate::digest;
use crate::endpoint::{CallError, Endpoint};
use crate::evidence::Evidence;
use crate::failure::{Failure, USAGE};

/// Tag of a KMS key that names its certificate, by which `outlast sign` and time-stamping authorities find it.
pub(crate) use outlast_domain::certified_key::CERTIFICATE_TAG;

/// Tag of a KMS key that names the second key of a dual signature, by its ARN.
pub(crate) const SECOND_KEY_TAG: &str = "outlast:second-key-arn";

/// Longest message of a key that signs whole messages alone, in bytes: KMS's limit of `Message`.
const MAX_RAW: usize = 4096;

/// Digests that `outlast sign` prefers, in this order: RFC 9882 prefers SHA-512.
const PREFERRED: &[&str] = &["sha512", "sha384", "sha256"];

/// A KMS key with its certificate.
#[derive(Clone)]
pub(crate) struct SigningIdentity {
    key_arn: String,
    key_spec: String,
    algorithm: &'static SignatureAlgorithm,
    digest: &'static Digest,
    certificate: Certificate,
    /// The CAs between leaf and root, in DER.
    chain: Vec<Vec<u8>>,
    /// The CAs that came with the signer's certificate, with the root if it is among them.
    authorities: Vec<Certificate>,
    /// The second key of a dual signature, if a tag names one.
    second_key: Option<String>,
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
        let mut second_key = None;
        let certificates = match given {
            Some(certificates) => certificates,
            None => {
                let tags = tags(endpoint, &described.arn).await?;
                second_key = tags.get(SECOND_KEY_TAG).cloned();
                let arn =
                    tags.get(CERTIFICATE_TAG).ok_or_else(|| no_certificate(&described.arn))?;
                issued_certificate(endpoint, arn).await?
            }
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
        Ok(Self {
            key_arn: described.arn,
            key_spec: described.key_spec,
            algorithm,
            digest,
            certificate,
            chain,
            authorities,
            second_key,
        })
    }

    /// The signer's certificate.
    pub(crate) fn certificate(&self) -> &Certificate {
        &self.certificate
    }

    /// The CAs that came with it, in no certain order.
    pub(crate) fn authorities(&self) -> &[Certificate] {
        &self.authorities
    }

    /// The CAs between its certificate and the root, in DER.
    pub(crate) fn chain(&self) -> &[Vec<u8>] {
        &self.chain
    }

    /// The algorithm of its signatures.
    pub(crate) fn algorithm(&self) -> &'static SignatureAlgorithm {
        self.algorithm
    }

    /// The signature of a message of any length: KMS gets a digest of it, or the representative of ML-DSA, because it
    /// takes messages of at most 4,096 bytes.
    pub(crate) async fn sign_bytes(
        &self,
        endpoint: &mut Endpoint,
        message: &[u8],
    ) -> Result<Vec<u8>, Failure> {
        let public_key = self.certificate.public_key()?;
        let (bytes, kind) = match hashed(self.algorithm, &public_key, message)? {
            Some(found) => found,
            None if message.len() > MAX_RAW => return Err(too_long(&self.key_spec, message.len())),
            None => (message.to_vec(), "RAW"),
        };
        let order = sign::Input { message_type: Some(kind.to_owned()), ..self.order(bytes) };
        Ok(endpoint.call::<sign::Sign>(&order).await?.signature.0)
    }

    /// The digest of files.
    pub(crate) fn digest(&self) -> &'static Digest {
        self.digest
    }

    /// ARN of the key.
    pub(crate) fn key_arn(&self) -> &str {
        &self.key_arn
    }

    /// Signs a message.
    pub(crate) async fn sign(
        &self,
        endpoint: &mut Endpoint,
        message: Vec<u8>,
    ) -> Result<Vec<u8>, Failure> {
        Ok(endpoint.call::<sign::Sign>(&self.order(message)).await?.signature.0)
    }

    /// Whether a quantum computer could forge its signatures.
    fn is_classical(&self) -> bool {
        matches!(self.algorithm.family, Family::Ec | Family::Rsa | Family::Ed25519)
    }

    /// Asks the service whether the caller may sign with the key; nothing is signed.
    async fn may_sign(&self, endpoint: &mut Endpoint) -> Result<(), Failure> {
        let asked = sign::Input { dry_run: Some(true), ..self.order(vec![0]) };
        match endpoint.call::<sign::Sign>(&asked).await {
            // KMS's answer to a dry run that would succeed.
            Err(CallError::Service(error)) if error.code == "DryRunOperationException" => Ok(()),
            Ok(_) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn order(&self, message: Vec<u8>) -> sign::Input {
        sign::Input {
            key_id: self.key_arn.clone(),
            message: Blob(message),
            message_type: None,
            grant_tokens: None,
            signing_algorithm: self.algorithm.kms_name.to_owned(),
            dry_run: None,
        }
    }
}

/// The signers of a message: one, or several whose signatures belong together.
#[derive(Clone)]
pub(crate) struct Signers {
    identities: Vec<SigningIdentity>,
    /// What is put into the messages about revocation.
    crls: Vec<Crl>,
    ocsp: Vec<Response>,
}

impl From<SigningIdentity> for Signers {
    fn from(identity: SigningIdentity) -> Self {
        Self { identities: vec![identity], crls: Vec::new(), ocsp: Vec::new() }
    }
}

impl Signers {
    /// Looks up the keys and their certificates, the ones in `given` (one list for each key) or those that tags name.
    /// A single key whose tag names a second one stands for both. The file is hashed with one digest if all keys
    /// can sign the same.
    pub(crate) async fn resolve(
        endpoint: &mut Endpoint,
        keys: &[String],
        given: Vec<Vec<Vec<u8>>>,
        digest: Option<&'static Digest>,
    ) -> Result<Self, Failure> {
        if !given.is_empty() && given.len() != keys.len() {
            return Err(Failure::new(format!(
                "{} certificate files are given for {} keys",
                given.len(),
                keys.len()
            ))
            .hint("give one --certificate for each --key, in the same order, or none")
            .code(USAGE));
        }
        // With several keys a digest is for those that it suits.
        let sole = digest.filter(|_| keys.len() == 1);
        let mut given = given.into_iter();
        let mut identities: Vec<SigningIdentity> = Vec::new();
        let mut waiting: std::collections::VecDeque<_> = keys.iter().cloned().collect();
        while let Some(key) = waiting.pop_front() {
            let found = SigningIdentity::resolve(endpoint, &key, given.next(), sole);
            let identity = found.await.map_err(|failure| match keys.len() {
                1 => failure,
                _ => failure.prefixed(&key),
            })?;
            if identities.iter().any(|known| known.key_arn == identity.key_arn) {
                return Err(Failure::new(format!("the key {key} is given more than once"))
                    .hint("name each key once")
                    .code(USAGE));
            }
            if let (1, true, Some(second)) =
                (keys.len(), identities.is_empty(), &identity.second_key)
            {
                waiting.push_back(second.clone());
            }
            identities.push(identity);
        }
        let mut signers = Self { identities, crls: Vec::new(), ocsp: Vec::new() };
        if signers.identities.len() > 1 {
            signers.share_digest(digest)?;
        }
        Ok(signers)
    }

    /// Lets all keys sign the same digest if they can, or those that can sign `wanted`.
    fn share_digest(&mut self, wanted: Option<&'static Digest>) -> Result<(), Failure> {
        let can = |identity: &SigningIdentity, row| choose(&identity.key_spec, Some(row)).ok();
        let mut common = PREFERRED.iter().filter_map(|name| Digest::by_name(name));
        let common = common.find(|row| self.identities.iter().all(|one| can(one, row).is_some()));
        let mut suits_one = false;
        for identity in &mut self.identities {
            let chosen = wanted.or(common).and_then(|row| can(identity, row));
            if let Some((algorithm, digest)) = chosen {
                (identity.algorithm, identity.digest) = (algorithm, digest);
                suits_one = true;
            }
        }
        match wanted {
            Some(row) if !suits_one => {
                Err(Failure::new(format!("the digest {} suits none of the keys", row.name))
                    .hint("leave --digest out: each key then gets one that suits it")
                    .code(USAGE))
            }
            _ => Ok(()),
        }
    }

    /// The keys with their certificates.
    pub(crate) fn identities(&self) -> &[SigningIdentity] {
        &self.identities
    }

    /// Puts CRLs and OCSP responses into the messages.
    pub(crate) fn embed(&mut self, evidence: Evidence) -> Result<(), Failure> {
        if evidence.crls.is_empty() && evidence.ocsp.is_empty() {
            return Err(Failure::new(
                "there is nothing to embed: no CRL and no OCSP response can be had",
            )
            .hint("configure CRLs or OCSP for the CA, or sign without --embed-revocation"));
        }
        (self.crls, self.ocsp) = (evidence.crls, evidence.ocsp);
        Ok(())
    }

    /// The classical signers alone, for verifiers that refuse a message with an algorithm that they do not know.
    pub(crate) fn classical(&self) -> Result<Self, Failure> {
        let (classical, other): (Vec<_>, Vec<_>) =
            self.identities.iter().cloned().partition(SigningIdentity::is_classical);
        if classical.is_empty() || other.is_empty() {
            return Err(Failure::new("a classical copy is for dual signatures")
                .hint("name a classical and a post-quantum key: --key alias/a --key alias/b")
                .code(USAGE));
        }
        Ok(Self { identities: classical, ..self.clone() })
    }

    /// The same keys, each with the digest that `of` names for it by its ARN.
    pub(crate) fn with_digests(
        &self,
        of: impl Fn(&str) -> Option<&'static Digest>,
    ) -> Result<Self, Failure> {
        let mut signers = self.clone();
        for identity in &mut signers.identities {
            let wanted = of(&identity.key_arn);
            (identity.algorithm, identity.digest) = choose(&identity.key_spec, wanted)?;
        }
        Ok(signers)
    }

    /// The digests of files that are needed, each once.
    pub(crate) fn digests(&self) -> Vec<&'static Digest> {
        let mut rows: Vec<&'static Digest> = Vec::new();
        for identity in &self.identities {
            if !rows.iter().any(|row| row.oid == identity.digest.oid) {
                rows.push(identity.digest);
            }
        }
        rows
    }

    /// Asks the service whether the caller may sign with all keys; nothing is signed.
    pub(crate) async fn may_sign(&self, endpoint: &mut Endpoint) -> Result<(), Failure> {
        for identity in &self.identities {
            identity.may_sign(endpoint).await?;
        }
        Ok(())
    }

    /// Signs a file and returns the CMS message in DER. Only the digest leaves this process.
    pub(crate) async fn sign_file(
        &self,
        endpoint: &mut Endpoint,
        path: &Path,
        progress: &ProgressBar,
    ) -> Result<Vec<u8>, Failure> {
        let rows = self.digests();
        let digests = tokio::task::block_in_place(|| digest::file(path, &rows, progress))?;
        self.sign_digests(endpoint, &rows, &digests).await
    }

    /// Signs a file, given its digests: `rows` are at least [`Signers::digests`].
    pub(crate) async fn sign_digests(
        &self,
        endpoint: &mut Endpoint,
        rows: &[&'static Digest],
        digests: &[Vec<u8>],
    ) -> Result<Vec<u8>, Failure> {
        let unsigned = self.unsigned(rows, digests, system_clock().div_euclid(1000))?;
        let mut signatures = Vec::with_capacity(self.identities.len());
        for (identity, message) in self.identities.iter().zip(&unsigned.to_be_signed) {
            signatures.push(identity.sign(endpoint, message.clone()).await?);
        }
        Ok(unsigned.assemble(&signatures)?)
    }

    /// The message without its signatures, given the file's digests and the claimed time of signing in seconds since 1970.
    pub(crate) fn unsigned(
        &self,
        rows: &[&'static Digest],
        digests: &[Vec<u8>],
        signing_time: i64,
    ) -> Result<Unsigned, Failure> {
        let missing = || Failure::new("a digest of the file is missing");
        let request = |identity: &'_ SigningIdentity| {
            let at = rows.iter().position(|row| row.oid == identity.digest.oid);
            at.and_then(|at| digests.get(at)).ok_or_else(missing)
        };
        let values = self.identities.iter().map(request).collect::<Result<Vec<_>, _>>()?;
        let requests: Vec<_> = self
            .identities
            .iter()
            .zip(values)
            .map(|(identity, message_digest)| Request {
                message_digest,
                digest: identity.digest,
                algorithm: identity.algorithm,
                signing_time,
                signer: &identity.certificate,
                chain: &identity.chain,
            })
            .collect();
        Ok(Unsigned::new(&requests)?.with_revocation(&self.crls, &self.ocsp)?)
    }
}

/// Signs a message with any key: the KMS `SigningAlgorithm`, and the signature.
pub(crate) async fn sign_message(
    endpoint: &mut Endpoint,
    key: &str,
    message: Vec<u8>,
) -> Result<(String, Vec<u8>), Failure> {
    let asked = get_public_key::Input { key_id: key.to_owned(), grant_tokens: None };
    let found = endpoint.call::<get_public_key::GetPublicKey>(&asked).await?;
    let (algorithm, _) = choose(&found.key_spec, None)?;
    let input = sign::Input {
        key_id: key.to_owned(),
        message: Blob(message),
        message_type: None,
        grant_tokens: None,
        signing_algorithm: algorithm.kms_name.to_owned(),
        dry_run: None,
    };
    let signed = endpoint.call::<sign::Sign>(&input).await?;
    Ok((algorithm.kms_name.to_owned(), signed.signature.0))
}

/// A certificate request in DER for a key of the service, which signs it.
pub(crate) async fn certificate_request(
    endpoint: &mut Endpoint,
    key: &str,
    subject: Name,
    extensions: Vec<Extension>,
) -> Result<Vec<u8>, Failure> {
    let asked = get_public_key::Input { key_id: key.to_owned(), grant_tokens: None };
    let found = endpoint.call::<get_public_key::GetPublicKey>(&asked).await?;
    let (algorithm, _) = choose(&found.key_spec, None)?;
    let request = csr::Unsigned::new(subject, &found.public_key.0, extensions)?;
    // Many alternative names make a message that is too long for KMS.
    let whole = &request.to_be_signed;
    let (message, kind) = match whole.len() > MAX_RAW {
        true => hashed(algorithm, &found.public_key.0, whole)?
            .ok_or_else(|| too_long(&found.key_spec, whole.len()))?,
        false => (whole.clone(), "RAW"),
    };
    let signature = endpoint
        .call::<sign::Sign>(&sign::Input {
            key_id: key.to_owned(),
            message: Blob(message),
            message_type: Some(kind.to_owned()),
            grant_tokens: None,
            signing_algorithm: algorithm.kms_name.to_owned(),
            dry_run: None,
        })
        .await?
        .signature
        .0;
    Ok(request.assemble(algorithm, &signature)?)
}

/// What KMS is given of a message of any length, with the `MessageType`; `None` for a key that signs whole messages.
fn hashed(
    algorithm: &SignatureAlgorithm,
    public_key: &[u8],
    message: &[u8],
) -> Result<Option<(Vec<u8>, &'static str)>, Failure> {
    Ok(match (algorithm.digest.and_then(Digest::by_name), algorithm.family) {
        (Some(row), _) => Some((row.digest(message), "DIGEST")),
        (None, Family::MlDsa) => Some((external_mu(public_key, message)?.to_vec(), "EXTERNAL_MU")),
        (None, _) => None,
    })
}

fn too_long(key_spec: &str, len: usize) -> Failure {
    Failure::new(format!(
        "a key of type {key_spec} signs at most {MAX_RAW} bytes, and these are {len}"
    ))
    .hint("use a key for ML-DSA, ECDSA or RSA")
}

/// The signature algorithm and digest for a key type; RFC 9882 prefers SHA-512.
fn choose(
    key_spec: &str,
    digest: Option<&'static Digest>,
) -> Result<(&'static SignatureAlgorithm, &'static Digest), Failure> {
    let spec = KeySpec::by_name(key_spec)
        .ok_or_else(|| Failure::new(format!("keys of type {key_spec} are not supported")))?;
    suitable(spec, digest).ok_or_else(|| {
        let rows: Vec<_> = spec.signing.iter().copied().filter(|row| row.oid.is_some()).collect();
        let wanted = digest.map(|digest| digest.name);
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

/// All tags of a key.
pub(crate) async fn tags(
    endpoint: &mut Endpoint,
    key_arn: &str,
) -> Result<BTreeMap<String, String>, Failure> {
    let mut out = BTreeMap::new();
    let mut marker = None;
    loop {
        let page = endpoint
            .call::<list_resource_tags::ListResourceTags>(&list_resource_tags::Input {
                key_id: key_arn.to_owned(),
                limit: None,
                marker,
            })
            .await?;
        out.extend(page.tags.into_iter().map(|tag| (tag.tag_key, tag.tag_value)));
        marker = page.next_marker;
        if marker.is_none() {
            return Ok(out);
        }
    }
}

fn no_certificate(key_arn: &str) -> Failure {
    Failure::new(format!("no certificate is known for the key {key_arn}")).hint(format!(
        "make a request with outlast cert request and let a CA issue the certificate; then give it with \
         --certificate FILE, or tag the key: {CERTIFICATE_TAG} = ARN. docs/guide/signing.md shows every step"
    ))
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

/// Path of a file's signature: the file's, with `.p7s` added.
pub(crate) fn signature_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".p7s");
    PathBuf::from(name)
}
