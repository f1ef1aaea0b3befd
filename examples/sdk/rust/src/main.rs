//! Signs with ML-DSA-65 by the AWS SDK for Rust. Set-up: AWS_CONFIG_FILE, AWS_SHARED_CREDENTIALS_FILE and AWS_PROFILE; and
//! OUTLAST_CA names client/ca.pem, since the SDK does not read the profile's `ca_bundle`.

use std::error::Error;

use aws_config::BehaviorVersion;
use aws_sdk_kms::Client;
use aws_sdk_kms::primitives::Blob;
use aws_sdk_kms::types::{KeySpec, KeyUsageType, SigningAlgorithmSpec};
use aws_smithy_http_client::{Builder, tls};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let ca = std::fs::read(std::env::var("OUTLAST_CA")?)?;
    let trust = tls::TrustStore::empty().with_pem_certificate(ca);
    let http = Builder::new()
        .tls_provider(tls::Provider::Rustls(tls::rustls_provider::CryptoMode::AwsLc))
        .tls_context(tls::TlsContext::builder().with_trust_store(trust).build()?)
        .build_https();
    let config = aws_config::defaults(BehaviorVersion::latest()).http_client(http).load().await;
    let kms = Client::new(&config);

    let made = kms.create_key().key_spec(KeySpec::MlDsa65).key_usage(KeyUsageType::SignVerify);
    let key = made.send().await?.key_metadata.ok_or("no key")?.key_id;
    let (message, algorithm) = (Blob::new("release 1"), SigningAlgorithmSpec::MlDsaShake256);
    let sign = kms.sign().key_id(&key).message(message.clone()).signing_algorithm(algorithm.clone());
    let signature = sign.send().await?.signature.ok_or("no signature")?;
    let len = signature.as_ref().len();
    let verify = kms.verify().key_id(&key).message(message).signature(signature);
    let valid = verify.signing_algorithm(algorithm).send().await?.signature_valid;
    println!("key {key}: a signature of {len} bytes, valid: {valid}");
    Ok(())
}
