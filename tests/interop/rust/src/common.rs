//! Clients, checks, and the calls that many steps make.

use std::cell::RefCell;
use std::fmt::Debug;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aws_config::{BehaviorVersion, ConfigLoader, SdkConfig};
use aws_sdk_kms::Client;
use aws_sdk_kms::operation::create_key::builders::CreateKeyFluentBuilder;
use aws_sdk_kms::primitives::{Blob, DateTime};
use aws_sdk_kms::types::KeyMetadata;
use aws_smithy_http_client::{Builder, tls};

pub const HOUR: i64 = 3600;
pub const DAY: i64 = 24 * HOUR;

pub type Outcome<T = ()> = Result<T, Stop>;

/// Why a step ended early.
pub enum Stop {
    Failed(String),
    /// It cannot be done here.
    Skipped(String),
}

impl Stop {
    pub fn text(&self) -> &str {
        let (Self::Failed(text) | Self::Skipped(text)) = self;
        text
    }
}

/// With all causes: the SDK's own texts say little.
impl<E: std::error::Error> From<E> for Stop {
    fn from(error: E) -> Self {
        let mut text = error.to_string();
        let mut cause = error.source();
        while let Some(inner) = cause {
            text = format!("{text}: {inner}");
            cause = inner.source();
        }
        Self::Failed(text)
    }
}

macro_rules! check {
    ($condition:expr, $($text:tt)+) => {
        if !$condition {
            return Err($crate::common::Stop::Failed(format!($($text)+)));
        }
    };
}

/// The call must be answered with this error, by the SDK's own variant.
macro_rules! refused {
    ($call:expr, $is:ident) => {
        match $call.await {
            Ok(_) => check!(false, "no error, want {}", stringify!($is)),
            Err(error) => check!(
                error.as_service_error().is_some_and(|e| e.$is()),
                "got {}, want {}",
                $crate::common::Stop::from(error).text(),
                stringify!($is)
            ),
        }
    };
}

/// The call must be answered with one of these error codes.
macro_rules! refused_as {
    ($call:expr, $($code:literal),+) => {
        match $call.await {
            Ok(_) => check!(false, "no error, want {:?}", [$($code),+]),
            Err(error) => {
                let code = aws_sdk_kms::error::ProvideErrorMetadata::code(&error).unwrap_or_default().to_owned();
                check!([$($code),+].contains(&code.as_str()), "got {}, want {:?}",
                    $crate::common::Stop::from(error).text(), [$($code),+]);
            }
        }
    };
}

/// Waits for what may take effect later; AWS promises no more than that.
macro_rules! eventually {
    ($what:literal, $condition:expr) => {{
        let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while !$condition {
            check!(std::time::Instant::now() < until, "{}: not within 60 seconds", $what);
            tokio::time::sleep(std::time::Duration::from_millis(500)).await;
        }
    }};
}

pub fn equal<T: PartialEq<U> + Debug, U: Debug>(got: T, want: U, what: &str) -> Outcome {
    check!(got == want, "{what}: got {got:?}, want {want:?}");
    Ok(())
}

pub fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

pub fn within(got: Option<&DateTime>, want: i64, tolerance: i64, what: &str) -> Outcome {
    let got = present(got, what)?.secs();
    check!((got - want).abs() <= tolerance, "{what}: got {got}, want about {want}");
    Ok(())
}

pub fn present<T>(value: Option<T>, what: &str) -> Outcome<T> {
    value.ok_or_else(|| Stop::Failed(format!("no {what}")))
}

pub fn bytes(blob: Option<Blob>, what: &str) -> Outcome<Vec<u8>> {
    Ok(present(blob, what)?.into_inner())
}

pub fn random(size: usize) -> Vec<u8> {
    let mut bytes = vec![0; size];
    aws_lc_rs::rand::fill(&mut bytes).expect("randomness");
    bytes
}

pub fn flip(data: &[u8]) -> Vec<u8> {
    let mut changed = data.to_vec();
    if let Some(last) = changed.last_mut() {
        *last ^= 1;
    }
    changed
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub fn variable(name: &str) -> Outcome<String> {
    std::env::var(name).map_err(|_| Stop::Failed(format!("the environment lacks {name}")))
}

/// What the SDK does not find by itself.
pub fn loader() -> Outcome<ConfigLoader> {
    let loader = aws_config::defaults(BehaviorVersion::latest());
    let Ok(ca) = std::env::var("OUTLAST_CA") else { return Ok(loader) };
    let trust = tls::TrustStore::empty().with_pem_certificate(std::fs::read(ca)?);
    let context = tls::TlsContext::builder().with_trust_store(trust).build()?;
    Ok(loader.http_client(
        Builder::new()
            .tls_provider(tls::Provider::Rustls(tls::rustls_provider::CryptoMode::AwsLc))
            .tls_context(context)
            .build_https(),
    ))
}

/// A key as CreateKey answers it.
#[derive(Debug, Clone, PartialEq)]
pub struct Key {
    pub id: String,
    pub arn: String,
    pub account: String,
    pub metadata: KeyMetadata,
}

pub struct World {
    pub config: SdkConfig,
    pub kms: Client,
    pub secrets: aws_sdk_secretsmanager::Client,
    pub sts: aws_sdk_sts::Client,
    pub region: String,
    /// Distinguishes this run's names.
    pub run: String,
    made: RefCell<Vec<(Client, String)>>,
    made_secrets: RefCell<Vec<String>>,
}

impl World {
    pub async fn connect() -> Outcome<Self> {
        for name in ["AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE", "AWS_PROFILE"] {
            variable(name)?;
        }
        let config = loader()?.load().await;
        check!(config.endpoint_url().is_some(), "the profile has no endpoint_url");
        Ok(Self {
            kms: Client::new(&config),
            secrets: aws_sdk_secretsmanager::Client::new(&config),
            sts: aws_sdk_sts::Client::new(&config),
            region: present(config.region(), "region")?.to_string(),
            run: hex(&random(6)),
            made: RefCell::default(),
            made_secrets: RefCell::default(),
            config,
        })
    }

    /// The key is to be deleted in the end.
    pub fn note(&self, client: &Client, id: &str) {
        self.made.borrow_mut().push((client.clone(), id.to_owned()));
    }

    /// The secret is to be deleted in the end.
    pub fn note_secret(&self, name: &str) {
        self.made_secrets.borrow_mut().push(name.to_owned());
    }

    pub async fn clean_up(&self) {
        for name in self.made_secrets.take() {
            let delete = self.secrets.delete_secret().secret_id(name);
            let _ = delete.force_delete_without_recovery(true).send().await;
        }
        for (client, id) in self.made.take() {
            let _ =
                client.schedule_key_deletion().key_id(id).pending_window_in_days(7).send().await;
        }
    }

    pub async fn key(&self) -> Outcome<Key> {
        self.key_of(|new| new).await
    }

    pub async fn key_of(
        &self,
        with: impl FnOnce(CreateKeyFluentBuilder) -> CreateKeyFluentBuilder,
    ) -> Outcome<Key> {
        let new = self.kms.create_key().description(format!("kms-whole {}", self.run));
        let metadata = present(with(new).send().await?.key_metadata, "KeyMetadata")?;
        self.note(&self.kms, &metadata.key_id);
        Ok(Key {
            id: metadata.key_id.clone(),
            arn: present(metadata.arn.clone(), "Arn")?,
            account: present(metadata.aws_account_id.clone(), "AWSAccountId")?,
            metadata,
        })
    }

    pub async fn describe(&self, key: &str) -> Outcome<KeyMetadata> {
        describe_by(&self.kms, key).await
    }

    pub async fn encrypt(&self, key: &str, text: &str) -> Outcome<Blob> {
        let answer = self.kms.encrypt().key_id(key).plaintext(Blob::new(text)).send().await?;
        present(answer.ciphertext_blob, "CiphertextBlob")
    }

    pub async fn decrypt(&self, blob: &Blob) -> Outcome<String> {
        let answer = self.kms.decrypt().ciphertext_blob(blob.clone()).send().await?;
        Ok(String::from_utf8_lossy(&bytes(answer.plaintext, "Plaintext")?).into_owned())
    }

    pub async fn public_key(&self, key: &Key) -> Outcome<Vec<u8>> {
        bytes(self.kms.get_public_key().key_id(&key.id).send().await?.public_key, "PublicKey")
    }
}

pub async fn describe_by(client: &Client, key: &str) -> Outcome<KeyMetadata> {
    present(client.describe_key().key_id(key).send().await?.key_metadata, "KeyMetadata")
}
