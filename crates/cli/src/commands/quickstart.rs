//! `outlast quickstart`: the main use case from scratch, with a real server and an ordinary client.
//!
//! A root CA, a subordinate CA, a code-signing key and its certificate; a detached signature of a file; its
//! verification without the service; and three attacks that must fail. Existing resources are used again.

use std::path::{Path, PathBuf};

use outlast_api::model::acm_pca::Validity;
use outlast_api::model::kms::Tag;
use outlast_api::ops::acm_pca::get_certificate_authority_certificate;
use outlast_api::ops::kms::{create_alias, create_key, describe_key, tag_resource};
use outlast_crypto::keys::KeySpec;
use outlast_crypto::signatures::ML_DSA_65;
use outlast_net::Negotiated;
use outlast_net::client::HandshakeBytes;
use outlast_net::policy::Policy;
use outlast_net::server::system_clock;
use outlast_pki::certificate::Certificate;
use outlast_pki::name::common_name;
use outlast_pki::pem;
use serde_json::{Value, json};

use crate::authorities::{self, NewAuthority, Order};
use crate::data::{self, Data, NewData};
use crate::endpoint::{CallError, Endpoint};
use crate::failure::Failure;
use crate::files;
use crate::location::StoreLocation;
use crate::output::{self, Output};
use crate::profile::Connection;
use crate::root_key::Provider;
use crate::running::Running;
use crate::signing::{
    CERTIFICATE_TAG, Signers, SigningIdentity, certificate_request, issued_certificate,
};
use crate::temporary::Pending;
use crate::tls::default_names;
use crate::verifying::{Signed, Subject, Verifier};

const ROOT_NAME: &str = "Outlast Quickstart Root CA";
const SUBORDINATE_NAME: &str = "Outlast Quickstart Code Signing CA";
const SIGNER_NAME: &str = "Outlast Quickstart Code Signer";
const ALIAS: &str = "alias/outlast-quickstart";
const ALGORITHM: &str = "ML_DSA_65";
/// A certificate that ends within this time is not used again, in seconds.
const MIN_LEFT: i64 = 86_400;

/// A CA that ends within this time is not used again, in seconds: it issues for a year.
const MIN_AUTHORITY_LEFT: i64 = 370 * 86_400;

/// Arguments of `quickstart`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// File to sign [default: this program].
    file: Option<PathBuf>,
    /// Folder for the results.
    #[arg(long, default_value = "outlast-quickstart")]
    out: PathBuf,
}

/// Runs all steps and reports them.
pub(crate) fn run(arguments: &Arguments, output: Output) -> Result<(), Failure> {
    let file = match &arguments.file {
        Some(file) => file.clone(),
        None => std::env::current_exe()
            .map_err(|error| Failure::new(format!("this program cannot be found: {error}")))?,
    };
    if !file.is_file() {
        return Err(Failure::file(&file, &"there is no such file"));
    }
    let out = arguments.out.clone();
    std::fs::create_dir_all(&out).map_err(|error| Failure::file(&out, &error))?;
    let folder = out.join("data");
    let mut report = Report::default();
    if StoreLocation::in_folder(&folder).is_initialised()? {
        report.step("store", format!("used the store in {}", folder.display()));
    } else {
        data::create(
            &folder,
            NewData {
                account: "123456789012".into(),
                access_key_id: None,
                secret: None,
                region: "us-east-1".into(),
                port: 8443,
                names: default_names(),
                root_key: None,
                database: None,
                audit_origin: None,
            },
        )?;
        report.step("store", format!("made a store in {}", folder.display()));
    }
    let opened = Data::open(&StoreLocation::in_folder(&folder), &Provider::default_in(&folder))?;
    let runtime = crate::runtime::runtime()?;
    let spinner = output::spinner("starting the server");
    let outcome = runtime.block_on(async {
        let running = Running::start_here(opened).await?;
        let outcome = work(&folder, &out, &file, running.address.port(), &spinner, &mut report);
        let outcome = outcome.await;
        running.stop().await;
        outcome
    });
    spinner.finish_and_clear();
    outcome?;
    report.finish(&file, &out, &folder, output)
}

/// All steps between the start and the stop of the server.
async fn work(
    folder: &Path,
    out: &Path,
    file: &Path,
    port: u16,
    spinner: &indicatif::ProgressBar,
    report: &mut Report,
) -> Result<(), Failure> {
    let url = format!("https://localhost:{port}");
    let connection = Connection::of_folder(folder, url);
    // The same handshake with classical groups only, for comparison.
    let mut classical = Endpoint::new(connection.settings()?, &Policy::classical())?;
    let classical = classical.connect().await?;
    let mut endpoint = Endpoint::new(connection.settings()?, &Policy::default())?;
    let negotiated = endpoint.connect().await?;
    if negotiated.0.group.as_deref() != Some("X25519MLKEM768") {
        return Err(Failure::new(format!(
            "the connection negotiated {:?} instead of X25519MLKEM768",
            negotiated.0.group
        )));
    }
    report.connection = Some((negotiated, classical));

    spinner.set_message("root CA");
    let root = authority(&mut endpoint, "ROOT", ROOT_NAME, None, report).await?;
    spinner.set_message("subordinate CA");
    let subordinate =
        authority(&mut endpoint, "SUBORDINATE", SUBORDINATE_NAME, Some(&root), report).await?;
    spinner.set_message("code-signing certificate");
    let (key_arn, chain) = signing_key(&mut endpoint, &subordinate, report).await?;
    let root_der = chain.last().cloned().unwrap_or_default();
    let root_pem = pem::certificate(&root_der);
    let leaf_pem = chain.first().map(|der| pem::certificate(der)).unwrap_or_default();
    let chain_pem = pem::chain(chain.iter().skip(1).map(Vec::as_slice));
    files::write(&out.join("root-ca.pem"), root_pem.as_bytes(), 0o644)?;
    files::write(&out.join("code-signing-cert.pem"), leaf_pem.as_bytes(), 0o644)?;
    files::write(&out.join("chain.pem"), chain_pem.as_bytes(), 0o644)?;

    spinner.set_message("signing");
    let identity = SigningIdentity::resolve(&mut endpoint, &key_arn, Some(chain), None).await?;
    let signers = Signers::from(identity.clone());
    let signature = signers.sign_file(&mut endpoint, file, spinner).await?;
    let signature_path = out.join("signature.p7s");
    files::write(&signature_path, &signature, 0o644)?;
    report.step(
        "signature",
        format!(
            "signed {} as a detached CMS of {} bytes (ML-DSA-65, {}) by \"{}\"",
            file.display(),
            signature.len(),
            identity.digest().name,
            identity.certificate().subject()
        ),
    );

    spinner.set_message("verifying");
    tokio::task::block_in_place(|| verify(file, out, &signature, &root_der, spinner, report))
}

/// Verifies the signature without the service, and shows that three forgeries are refused.
fn verify(
    file: &Path,
    out: &Path,
    signature: &[u8],
    root: &[u8],
    progress: &indicatif::ProgressBar,
    report: &mut Report,
) -> Result<(), Failure> {
    let now = system_clock().div_euclid(1000);
    let check = |file: &Path, signature: &[u8], root: &[u8]| {
        let subject = Subject { signed: Signed::File(file), signature, record: None };
        let outcome = Verifier::plain(&[root.to_vec()], now).file(&subject, progress);
        outcome.map_err(|refused| refused.failure)
    };
    check(file, signature, root)?;
    report.step(
        "verified",
        "verified it without the service: signature, chain to the root, validity at signing time, \
         key usage"
            .into(),
    );
    let (_pending, tampered) = Pending::create(|| tempfile::NamedTempFile::new_in(out))
        .map_err(|error| Failure::file(out, &error))?;
    flip_a_byte(file, tampered.path())?;
    let mut forged = signature.to_vec();
    if let Some(last) = forged.last_mut() {
        *last ^= 1;
    }
    let other_root = another_root()?;
    for (what, outcome) in [
        ("one byte of the file flipped", check(tampered.path(), signature, root)),
        ("one byte of the signature flipped", check(file, &forged, root)),
        ("another root trusted", check(file, signature, &other_root)),
    ] {
        match outcome {
            Ok(_) => {
                return Err(Failure::new(format!("{what}: the signature was still accepted")));
            }
            Err(failure) => {
                // The message begins with the file's name.
                let message = failure.message();
                let reason = message.split_once(": ").map_or(message, |(_, reason)| reason);
                report.step("refused", format!("refused with {what}: {reason}"));
            }
        }
    }
    Ok(())
}

fn flip_a_byte(from: &Path, to: &Path) -> Result<(), Failure> {
    use std::io::{Seek, SeekFrom, Write};
    use std::os::unix::fs::FileExt;
    let failed = |error: std::io::Error| Failure::file(to, &error);
    let len = std::fs::copy(from, to).map_err(failed)?;
    let mut file = std::fs::OpenOptions::new().read(true).write(true).open(to).map_err(failed)?;
    let mut byte = [0];
    if len == 0 {
        file.write_all(&[1]).map_err(failed)?;
        return Ok(());
    }
    file.read_exact_at(&mut byte, len / 2).map_err(failed)?;
    file.seek(SeekFrom::Start(len / 2)).map_err(failed)?;
    file.write_all(&[byte[0] ^ 1]).map_err(failed)
}

/// Another root, made on the spot, that nobody trusts.
fn another_root() -> Result<Vec<u8>, Failure> {
    use outlast_crypto::signatures::Message;
    use outlast_pki::certificate::{Content, SERIAL_LEN};
    use outlast_pki::templates::{Requested, Template};
    let missing = || Failure::new("ML_DSA_65 is missing");
    let spec = KeySpec::by_name(ALGORITHM).ok_or_else(missing)?;
    let key = spec.load(&spec.generate()?)?;
    let public_key = key.public_key().ok_or_else(missing)?.to_vec();
    let template =
        Template::by_arn("arn:aws:acm-pca:::template/RootCACertificate/V1").ok_or_else(missing)?;
    let now = system_clock().div_euclid(1000);
    let unsigned = Content {
        serial: outlast_crypto::random::bytes::<SERIAL_LEN>()?,
        issuer: common_name("Somebody else's root")?,
        subject: common_name("Somebody else's root")?,
        extensions: template
            .extensions(&Requested { public_key: &public_key, ..Requested::default() })?,
        public_key: public_key.clone(),
        not_before: now - 3600,
        not_after: now + 86_400,
    }
    .prepare(&ML_DSA_65, &public_key)?;
    let signature = key.sign(&ML_DSA_65, Message::Raw(&unsigned.to_be_signed))?;
    Ok(unsigned.assemble(&signature)?)
}

/// The ARN of an active CA with this name, which is made if there is none.
async fn authority(
    endpoint: &mut Endpoint,
    kind: &str,
    name: &str,
    parent: Option<&str>,
    report: &mut Report,
) -> Result<String, Failure> {
    if let Some(arn) = find_authority(endpoint, kind, name).await? {
        report.step("authority", format!("used the {} CA \"{name}\"", kind.to_lowercase()));
        return Ok(arn);
    }
    let new = NewAuthority {
        name,
        parent: parent.map(|arn| (arn, ALGORITHM)),
        key_algorithm: ALGORITHM,
        signing_algorithm: ALGORITHM,
        revocation: false,
    };
    let arn = new.create(endpoint).await?;
    let years = new.years();
    report.step(
        "authority",
        format!("made the {} CA \"{name}\" (ML-DSA-65, {years} years)", kind.to_lowercase()),
    );
    Ok(arn)
}

async fn find_authority(
    endpoint: &mut Endpoint,
    kind: &str,
    name: &str,
) -> Result<Option<String>, Failure> {
    // It must outlive the certificates that it will issue.
    let end = system_clock().div_euclid(1000) + MIN_AUTHORITY_LEFT;
    let all = authorities::list(endpoint).await?;
    let found = all.into_iter().find(|found| {
        let configuration = &found.certificate_authority_configuration;
        let named = configuration.subject.common_name.as_deref() == Some(name);
        let lasts = authorities::lasts(found, end);
        lasts && named && found.kind == kind && configuration.key_algorithm == ALGORITHM
    });
    Ok(found.map(|found| found.arn))
}

/// The signing key and its certificate with all CAs up to the root; what is missing is made.
async fn signing_key(
    endpoint: &mut Endpoint,
    subordinate: &str,
    report: &mut Report,
) -> Result<(String, Vec<Vec<u8>>), Failure> {
    let describe = describe_key::Input { key_id: ALIAS.into(), grant_tokens: None };
    let key_arn = match endpoint.call::<describe_key::DescribeKey>(&describe).await {
        Ok(found) => {
            report.step("key", format!("used the signing key {ALIAS}"));
            found.key_metadata.arn
        }
        Err(CallError::Service(error)) if error.code == "NotFoundException" => {
            let arn = create_signing_key(endpoint).await?;
            report.step("key", format!("made the ML-DSA-65 signing key {ALIAS} (KMS)"));
            arn
        }
        Err(error) => return Err(error.into()),
    };
    let subordinate_pem = endpoint
        .call::<get_certificate_authority_certificate::GetCertificateAuthorityCertificate>(
            &get_certificate_authority_certificate::Input {
                certificate_authority_arn: subordinate.to_owned(),
            },
        )
        .await?
        .certificate;
    let issuer = Certificate::parse_one(subordinate_pem.as_bytes())?;
    if let Ok(identity) = SigningIdentity::resolve(endpoint, &key_arn, None, None).await {
        let certificate = identity.certificate();
        let left = certificate.not_after() - system_clock().div_euclid(1000);
        if left > MIN_LEFT && certificate.signed_by(&issuer) {
            let arn = certificate_arn(subordinate, certificate);
            let chain = issued_certificate(endpoint, &arn).await?;
            report.step(
                "certificate",
                format!("used the code-signing certificate of \"{}\"", certificate.subject()),
            );
            return Ok((key_arn, chain));
        }
    }
    let subject = common_name(SIGNER_NAME)?;
    let request = certificate_request(endpoint, &key_arn, subject, Vec::new()).await?;
    let request = pem::certificate_request(&request).into_bytes();
    let order = Order {
        authority: subordinate,
        signing_algorithm: ALGORITHM,
        template: "CodeSigningCertificate",
        validity: Validity { value: 1, kind: "YEARS".into() },
    };
    let arn = order.issue(endpoint, request).await?;
    let chain = issued_certificate(endpoint, &arn).await?;
    let tags = vec![Tag { tag_key: CERTIFICATE_TAG.into(), tag_value: arn }];
    let tag = tag_resource::Input { key_id: key_arn.clone(), tags };
    endpoint.call::<tag_resource::TagResource>(&tag).await?;
    report.step(
        "certificate",
        format!("issued \"{SIGNER_NAME}\" from CodeSigningCertificate/V1 (1 year)"),
    );
    Ok((key_arn, chain))
}

fn certificate_arn(authority: &str, certificate: &Certificate) -> String {
    format!("{authority}/certificate/{}", hex::encode(certificate.serial()))
}

async fn create_signing_key(endpoint: &mut Endpoint) -> Result<String, Failure> {
    let created = endpoint
        .call::<create_key::CreateKey>(&create_key::Input {
            policy: None,
            description: Some("Code signing key of outlast quickstart".into()),
            key_usage: Some("SIGN_VERIFY".into()),
            customer_master_key_spec: None,
            key_spec: Some(ALGORITHM.into()),
            origin: None,
            custom_key_store_id: None,
            bypass_policy_lockout_safety_check: None,
            tags: None,
            multi_region: None,
        })
        .await?
        .key_metadata;
    let alias =
        create_alias::Input { alias_name: ALIAS.into(), target_key_id: created.key_id.clone() };
    endpoint.call::<create_alias::CreateAlias>(&alias).await?;
    Ok(created.arn)
}

type Handshake = (Negotiated, HandshakeBytes);

/// The steps, in order.
#[derive(Default)]
struct Report {
    steps: Vec<(&'static str, String)>,
    connection: Option<(Handshake, Handshake)>,
}

impl Report {
    fn step(&mut self, kind: &'static str, text: String) {
        self.steps.push((kind, text));
    }

    fn finish(
        &self,
        file: &Path,
        out: &Path,
        folder: &Path,
        output: Output,
    ) -> Result<(), Failure> {
        let Some(((hybrid, hybrid_bytes), (classical, classical_bytes))) = &self.connection else {
            return Err(Failure::new("there was no connection"));
        };
        let shell = |path: &Path| shell_quote(&path.display().to_string());
        let openssl = format!(
            "openssl cms -verify -binary -inform DER -in {} -content {} -CAfile {} \
             -purpose codesign -out /dev/null",
            shell(&out.join("signature.p7s")),
            shell(file),
            shell(&out.join("root-ca.pem")),
        );
        let serve = format!("outlast server --data {}", shell(folder));
        let client = folder.join("client");
        let profile = format!(
            "export AWS_CONFIG_FILE={} AWS_SHARED_CREDENTIALS_FILE={} AWS_PROFILE=outlast",
            shell(&client.join("config")),
            shell(&client.join("credentials")),
        );
        let outlast = format!(
            "outlast verify {} --signature {} --trust {}",
            shell(file),
            shell(&out.join("signature.p7s")),
            shell(&out.join("root-ca.pem")),
        );
        let mut text = String::new();
        for (_, step) in &self.steps {
            text.push_str(&format!("  {step}\n"));
        }
        let retry = match hybrid.handshake {
            outlast_net::HandshakeKind::FullWithHelloRetryRequest => "with a HelloRetryRequest",
            _ => "without HelloRetryRequest",
        };
        text.push_str(&format!(
            "\nthe connection to the service, and the bytes of its handshake beside a classical one:\n\
             negotiated  {} {} {}, {retry}\n",
            hybrid.version,
            hybrid.group.as_deref().unwrap_or("?"),
            hybrid.cipher_suite,
        ));
        text.push_str(&format!(
            "handshake   {:>5} bytes from the client, {:>5} from the server\n\
             classical   {:>5} bytes from the client, {:>5} from the server ({})\n",
            hybrid_bytes.sent,
            hybrid_bytes.received,
            classical_bytes.sent,
            classical_bytes.received,
            classical.group.as_deref().unwrap_or("?"),
        ));
        text.push_str(&format!(
            "\nresults in {}: signature.p7s, root-ca.pem, code-signing-cert.pem, chain.pem, data/\n\
             \ncheck it independently (OpenSSL 3.5 or newer):\n  {openssl}\n\
             check it with outlast:\n  {outlast}\n\
             \npoint an AWS SDK or CLI at this store:\n  {serve}\n  {profile}\n  \
             aws kms list-aliases\n",
            out.display(),
        ));
        let steps: Vec<Value> =
            self.steps.iter().map(|(kind, text)| json!({ "step": kind, "text": text })).collect();
        output.result(
            &text,
            &json!({
                "steps": steps,
                "connection": hybrid,
                "handshake_bytes": hybrid_bytes,
                "classical_connection": classical,
                "classical_handshake_bytes": classical_bytes,
                "out": files::json_path(out),
                "openssl": openssl,
                "server": serve,
                "profile": profile,
            }),
        );
        Ok(())
    }
}

/// Quotes what a shell would split or expand.
fn shell_quote(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+:,@%".contains(&byte);
    if !text.is_empty() && text.bytes().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}
