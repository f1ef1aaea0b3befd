//! A key with its certificate, ready to sign: what `outlast sign setup` and `outlast tsa setup` make.

use std::path::PathBuf;

use clap::ValueHint;
use outlast_api::model::acm_pca::{CertificateAuthority, Validity};
use outlast_api::model::kms::Tag;
use outlast_api::ops::kms::{create_alias, create_key, describe_key, tag_resource};
use outlast_crypto::keys::KeySpec;
use outlast_crypto::signatures::Family;
use outlast_net::policy::Policy;
use outlast_net::server::system_clock;
use outlast_pki::certificate::Certificate;
use outlast_pki::name::{self, Name};
use outlast_pki::pem;

use super::{CERTIFICATE_TAG, SECOND_KEY_TAG, certificate_request, issued_certificate, tags};
use crate::authorities::{self, NewAuthority, Order};
use crate::endpoint::{CallError, Endpoint};
use crate::failure::{Failure, USAGE};
use crate::files;
use crate::profile::Connection;

/// A kind of signing identity.
#[derive(Debug)]
pub(crate) struct Algorithm {
    /// Value of `--algorithm`.
    pub(crate) name: &'static str,
    /// `KeySpec` of each key; the first is the one that is named.
    keys: &'static [&'static str],
}

/// All values of `--algorithm`. In a dual signature both keys can sign SHA-384.
pub(crate) static ALGORITHMS: &[Algorithm] = &[
    Algorithm { name: "ml-dsa-44", keys: &["ML_DSA_44"] },
    Algorithm { name: "ml-dsa-65", keys: &["ML_DSA_65"] },
    Algorithm { name: "ml-dsa-87", keys: &["ML_DSA_87"] },
    Algorithm { name: "slh-dsa-sha2-128s", keys: &["SLH_DSA_SHA2_128S"] },
    Algorithm { name: "slh-dsa-sha2-256s", keys: &["SLH_DSA_SHA2_256S"] },
    Algorithm { name: "composite", keys: &["ML_DSA_65_ECDSA_P256"] },
    Algorithm { name: "ecdsa-p256", keys: &["ECC_NIST_P256"] },
    Algorithm { name: "ecdsa-p384", keys: &["ECC_NIST_P384"] },
    Algorithm { name: "rsa-3072", keys: &["RSA_3072"] },
    Algorithm { name: "dual", keys: &["ML_DSA_65", "ECC_NIST_P384"] },
];

impl Algorithm {
    /// The row with this name.
    pub(crate) fn by_name(name: &str) -> Result<&'static Self, Failure> {
        let mut rows = ALGORITHMS.iter();
        rows.find(|row| row.name == name)
            .ok_or_else(|| Failure::new(format!("{name} is not an algorithm")).code(USAGE))
    }

    /// Whether one key signs, and not two together.
    pub(crate) fn is_single(&self) -> bool {
        self.keys.len() == 1
    }
}

/// What a key is for.
#[derive(Debug)]
pub(crate) struct Purpose {
    /// Template of the certificate.
    template: &'static str,
    /// What the names of its CAs say.
    authority: &'static str,
    /// What the key's description says.
    key: &'static str,
}

/// Signs code.
pub(crate) static CODE_SIGNING: Purpose = Purpose {
    template: "CodeSigningCertificate",
    authority: "Code Signing CA",
    key: "Code signing key",
};

/// Makes timestamps.
pub(crate) static TIME_STAMPING: Purpose = Purpose {
    template: "TimeStampingCertificate",
    authority: "Time Stamping CA",
    key: "Time stamping key",
};

/// Most days for which a certificate is valid: ten years.
const MAX_DAYS: i64 = 3650;

/// The options that both commands have.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Name of the key: its alias is alias/NAME.
    #[arg(long)]
    pub(crate) name: String,
    /// ARN of the CA that issues the certificate; for dual, of both [default: the only active CA that suits].
    #[arg(long, value_name = "ARN", value_hint = ValueHint::Other)]
    ca: Vec<String>,
    /// Make a root and a CA below it if no CA suits.
    #[arg(long, conflicts_with = "ca")]
    create_ca: bool,
    /// Subject of the certificate in the notation of RFC 4514 [default: CN=NAME].
    #[arg(long, value_parser = subject)]
    subject: Option<Name>,
    /// Days for which the certificate is valid.
    #[arg(long, default_value_t = 365, value_parser = clap::value_parser!(i64).range(1..=MAX_DAYS))]
    days: i64,
    /// Write the root's certificate, for --trust of the verifying command, to this file [default: NAME-root.pem].
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Replace an --out file with another root.
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    connection: Connection,
}

fn subject(text: &str) -> Result<Name, String> {
    name::parse(text).map_err(|error| error.to_string())
}

impl Options {
    /// Makes everything, and writes the root. Returns what was done, and the file.
    pub(crate) fn run(
        &self,
        algorithm: &'static Algorithm,
        purpose: &'static Purpose,
    ) -> Result<(Done, PathBuf), Failure> {
        let subject = match &self.subject {
            Some(subject) => subject.clone(),
            None => name::common_name(&self.name)?,
        };
        let setup = Setup {
            name: &self.name,
            algorithm,
            purpose,
            subject,
            authorities: &self.ca,
            create_authority: self.create_ca,
            days: self.days,
        };
        let runtime = crate::runtime::runtime()?;
        let done = runtime.block_on(async {
            let mut endpoint = Endpoint::new(self.connection.settings()?, &Policy::default())?;
            setup.run(&mut endpoint).await
        })?;
        let default = || PathBuf::from(format!("{}-root.pem", self.name.replace('/', "-")));
        let out = self.out.clone().unwrap_or_else(default);
        let same = files::exists(&out)? && files::read(&out, 1 << 20)? == done.roots.as_bytes();
        if !same {
            let write = if self.force { files::write } else { files::write_absent };
            write(&out, done.roots.as_bytes(), 0o644)?;
        }
        Ok((done, out))
    }
}

/// What is asked for.
struct Setup<'a> {
    /// Name of the alias, without `alias/`.
    name: &'a str,
    algorithm: &'static Algorithm,
    purpose: &'static Purpose,
    subject: Name,
    /// ARNs of CAs to choose from; all, if there is none.
    authorities: &'a [String],
    /// Whether a missing CA is made.
    create_authority: bool,
    /// Days for which the certificate is valid.
    days: i64,
}

/// What was done.
#[derive(Default)]
pub(crate) struct Done {
    /// The steps, in words.
    pub(crate) steps: Vec<String>,
    /// The roots for `verify --trust`, in PEM.
    pub(crate) roots: String,
    /// ARNs of the certificates, the named key's first.
    pub(crate) certificates: Vec<String>,
    /// ARNs of the keys, in the same order.
    pub(crate) keys: Vec<String>,
}

impl Setup<'_> {
    /// Makes what is missing, and a new certificate for each key.
    async fn run(&self, endpoint: &mut Endpoint) -> Result<Done, Failure> {
        let mut done = Done::default();
        let mut keys = Vec::new();
        for (index, spec) in self.algorithm.keys.iter().enumerate() {
            let alias = match index {
                0 => format!("alias/{}", self.name),
                _ => format!("alias/{}-classical", self.name),
            };
            // The CA comes first: without one no key is made.
            let issuer = self.issuer(endpoint, spec, &mut done).await?;
            let key = self.key(endpoint, &alias, spec, &mut done).await?;
            let subject = self.subject.clone();
            let request = certificate_request(endpoint, &key, subject, Vec::new()).await?;
            let order = Order {
                authority: &issuer.arn,
                signing_algorithm: &issuer.signing_algorithm,
                template: self.purpose.template,
                validity: Validity { value: self.days, kind: "DAYS".into() },
            };
            let request = pem::certificate_request(&request).into_bytes();
            let arn = order.issue(endpoint, request).await?;
            let chain = issued_certificate(endpoint, &arn).await?;
            let leaf = chain.first().map(|der| Certificate::parse(der)).transpose()?;
            if let Some(leaf) = leaf {
                let until = outlast_pki::time::rfc3339(leaf.not_after());
                done.steps.push(format!(
                    "issued a certificate of {alias} for \"{}\" by \"{}\", until {until}",
                    leaf.subject(),
                    leaf.issuer()
                ));
            }
            let root = chain.last().map(|der| pem::certificate(der)).unwrap_or_default();
            if !done.roots.contains(&root) {
                done.roots.push_str(&root);
            }
            tag(endpoint, &key, CERTIFICATE_TAG, &arn).await?;
            done.certificates.push(arn);
            keys.push(key);
        }
        if let [first, second] = &keys[..] {
            tag(endpoint, first, SECOND_KEY_TAG, second).await?;
        }
        done.keys = keys;
        Ok(done)
    }

    /// The key behind the alias; made if there is none.
    async fn key(
        &self,
        endpoint: &mut Endpoint,
        alias: &str,
        spec: &str,
        done: &mut Done,
    ) -> Result<String, Failure> {
        let describe = describe_key::Input { key_id: alias.to_owned(), grant_tokens: None };
        match endpoint.call::<describe_key::DescribeKey>(&describe).await {
            Ok(found) if found.key_metadata.key_spec == spec => {
                let arn = found.key_metadata.arn;
                let second = tags(endpoint, &arn).await?.contains_key(SECOND_KEY_TAG);
                if second && self.algorithm.keys.len() == 1 {
                    return Err(Failure::new(format!("{alias} is the key of a dual signature"))
                        .hint("say --algorithm dual, or choose another --name")
                        .code(USAGE));
                }
                done.steps.push(format!("used the key {alias} ({spec})"));
                Ok(arn)
            }
            Ok(found) => Err(Failure::new(format!(
                "{alias} is a key of type {}, and {} needs {spec}",
                found.key_metadata.key_spec, self.algorithm.name
            ))
            .hint("choose another --name, or the --algorithm of this key")
            .code(USAGE)),
            Err(CallError::Service(error)) if error.code == "NotFoundException" => {
                let arn = self.new_key(endpoint, alias, spec).await?;
                done.steps.push(format!("made the key {alias} ({spec})"));
                Ok(arn)
            }
            Err(error) => Err(error.into()),
        }
    }

    async fn new_key(
        &self,
        endpoint: &mut Endpoint,
        alias: &str,
        spec: &str,
    ) -> Result<String, Failure> {
        let new = create_key::Input {
            policy: None,
            description: Some(format!("{} of {}", self.purpose.key, self.subject)),
            key_usage: Some("SIGN_VERIFY".into()),
            customer_master_key_spec: None,
            key_spec: Some(spec.to_owned()),
            origin: None,
            custom_key_store_id: None,
            bypass_policy_lockout_safety_check: None,
            tags: None,
            multi_region: None,
        };
        let made = endpoint.call::<create_key::CreateKey>(&new).await?.key_metadata;
        let alias = create_alias::Input {
            alias_name: alias.to_owned(),
            target_key_id: made.key_id.clone(),
        };
        endpoint.call::<create_alias::CreateAlias>(&alias).await?;
        Ok(made.arn)
    }

    /// The only CA that suits a key; made if that is wanted.
    async fn issuer(
        &self,
        endpoint: &mut Endpoint,
        spec: &str,
        done: &mut Done,
    ) -> Result<Issuer, Failure> {
        let end = system_clock().div_euclid(1000) + self.days * 86_400;
        let all = authorities::list(endpoint).await?;
        if let Some(unknown) =
            self.authorities.iter().find(|arn| !all.iter().any(|found| found.arn == **arn))
        {
            return Err(Failure::new(format!("there is no CA {unknown}"))
                .hint("aws acm-pca list-certificate-authorities lists them"));
        }
        let suits = |found: &&CertificateAuthority| {
            let configuration = &found.certificate_authority_configuration;
            (self.authorities.is_empty() || self.authorities.contains(&found.arn))
                && found.status == "ACTIVE"
                && found.usage_mode == "GENERAL_PURPOSE"
                && is_classical_authority(&configuration.key_algorithm) == Some(is_classical(spec))
        };
        let found: Vec<_> = all.iter().filter(suits).collect();
        // A root is for issuing CAs; where there are CAs below it, they issue.
        let has_below = found.iter().any(|found| found.kind == "SUBORDINATE");
        let candidates: Vec<_> = found
            .into_iter()
            .filter(|found| !has_below || found.kind == "SUBORDINATE")
            .filter(|found| authorities::lasts(found, end))
            .collect();
        match &candidates[..] {
            [only] => Ok(Issuer {
                arn: only.arn.clone(),
                signing_algorithm: only
                    .certificate_authority_configuration
                    .signing_algorithm
                    .clone(),
            }),
            [] if self.create_authority => self.new_issuer(endpoint, spec, done).await,
            [] => Err(Failure::new(format!(
                "no active CA suits a key of type {spec} for {} days",
                self.days
            ))
            .hint("make one with --create-ca, or shorten the certificate with --days")),
            several => {
                let names: Vec<_> = several
                    .iter()
                    .map(|found| {
                        let subject = &found.certificate_authority_configuration.subject;
                        let name = subject.common_name.as_deref().unwrap_or("without a name");
                        format!("{} ({name})", found.arn)
                    })
                    .collect();
                Err(Failure::new(format!(
                    "{} CAs suit a key of type {spec}: {}",
                    several.len(),
                    names.join(", ")
                ))
                .hint("choose one with --ca ARN"))
            }
        }
    }

    /// A root, and below it a CA that issues; both publish CRLs and answer OCSP requests.
    async fn new_issuer(
        &self,
        endpoint: &mut Endpoint,
        spec: &str,
        done: &mut Done,
    ) -> Result<Issuer, Failure> {
        let row = KeySpec::by_name(spec);
        let names = row.and_then(|row| {
            Some((row.pca_name?, row.signing.iter().find_map(|signing| signing.pca_name)?))
        });
        let (key_algorithm, signing_algorithm) =
            names.ok_or_else(|| Failure::new(format!("no CA can have a key of type {spec}")))?;
        let kind = if is_classical(spec) { " (classical)" } else { "" };
        let root_name = format!("{} Root{kind}", self.name);
        let root = NewAuthority {
            name: &root_name,
            parent: None,
            key_algorithm,
            signing_algorithm,
            revocation: true,
        };
        let root_arn = root.create(endpoint).await?;
        let name = format!("{} {}{kind}", self.name, self.purpose.authority);
        let below =
            NewAuthority { name: &name, parent: Some((&root_arn, signing_algorithm)), ..root };
        let arn = below.create(endpoint).await?;
        done.steps
            .push(format!("made the root \"{root_name}\" and the CA \"{name}\" ({key_algorithm})"));
        Ok(Issuer { arn, signing_algorithm: signing_algorithm.to_owned() })
    }
}

struct Issuer {
    arn: String,
    signing_algorithm: String,
}

async fn tag(endpoint: &mut Endpoint, key: &str, name: &str, value: &str) -> Result<(), Failure> {
    let tags = vec![Tag { tag_key: name.to_owned(), tag_value: value.to_owned() }];
    let input = tag_resource::Input { key_id: key.to_owned(), tags };
    endpoint.call::<tag_resource::TagResource>(&input).await?;
    Ok(())
}

/// Whether a key of this `KeySpec` makes signatures that a quantum computer could forge. A chain is as weak as its
/// weakest signature, so both kinds keep apart; old verifiers need a chain that is classical as a whole.
fn is_classical(spec: &str) -> bool {
    KeySpec::by_name(spec).is_some_and(of_classical_family)
}

/// The same for Private CA's `KeyAlgorithm`; `None` if the tables lack it.
fn is_classical_authority(key_algorithm: &str) -> Option<bool> {
    let mut rows = outlast_crypto::keys::KEY_SPECS.iter();
    rows.find(|row| row.pca_name == Some(key_algorithm)).map(of_classical_family)
}

fn of_classical_family(row: &KeySpec) -> bool {
    row.signing.iter().any(|one| matches!(one.family, Family::Ec | Family::Rsa | Family::Ed25519))
}
