//! `outlast tsa request`: asks an authority for a timestamp of a file.

use std::path::PathBuf;

use clap::ValueHint;
use outlast_crypto::digests::{DIGESTS, Digest};
use outlast_crypto::random;
use outlast_net::client::Connector;
use outlast_net::fetch::{self, FetchError};
use outlast_net::policy::Policy;
use outlast_pki::ObjectIdentifier;
use outlast_pki::cms::verify::CLOCK_SKEW_SECONDS;
use outlast_pki::timestamp::{Imprint, Nonce, REQUEST_MEDIA_TYPE, Request, Response, Token};
use serde_json::json;

use super::shared::{instant, policy, token_path};
use crate::failure::Failure;
use crate::output::{self, Output};
use crate::timestamping;
use crate::{digest, files, trust};

/// Bytes of a nonce.
const NONCE_LEN: usize = 16;

/// Arguments of `tsa request`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// File of any size; only its digest is sent.
    file: PathBuf,
    /// URL of the authority, such as https://outlast.example:8443/tsa.
    #[arg(long, required_unless_present = "query")]
    url: Option<String>,
    /// Write the request, for curl or another client, instead of sending it.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["url", "out"])]
    query: Option<PathBuf>,
    /// Digest of the file: sha512, sha384, sha256 or another.
    #[arg(long, default_value = "sha512", value_parser = digest_row, value_hint = ValueHint::Other)]
    digest: &'static Digest,
    /// Policy under which the timestamp must be, an object identifier [default: the authority's choice].
    #[arg(long, value_name = "OID", value_parser = policy, value_hint = ValueHint::Other)]
    policy: Option<ObjectIdentifier>,
    /// Where to write the response [default: FILE.tsr].
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Replace an existing file.
    #[arg(long)]
    force: bool,
    /// PEM file with the CAs by which https:// is verified [default: the system's].
    #[arg(long, value_name = "PEM", env = "AWS_CA_BUNDLE")]
    ca_bundle: Option<PathBuf>,
}

fn digest_row(name: &str) -> Result<&'static Digest, String> {
    Digest::by_name(name).ok_or_else(|| {
        let names: Vec<_> = DIGESTS.iter().map(|row| row.name).collect();
        format!("not a digest: use {}", names.join(", "))
    })
}

/// Asks, checks the answer, and writes it.
pub(crate) fn run(arguments: &Arguments, output: Output) -> Result<(), Failure> {
    let progress = output::byte_bar(0);
    let digests = digest::file(&arguments.file, &[arguments.digest], &progress);
    progress.finish_and_clear();
    let digests = digests?;
    let value = digests.first().map_or(&[][..], Vec::as_slice);
    let imprint = Imprint::new(arguments.digest, value)?;
    let nonce: [u8; NONCE_LEN] =
        random::bytes().map_err(|error| Failure::new(error.to_string()))?;
    let request = Request {
        policy: arguments.policy,
        ..Request::new(imprint.clone(), Some(Nonce::new(&nonce)?))
    };
    let der = request.to_der()?;
    let write = if arguments.force { files::write } else { files::write_absent };
    if let Some(path) = &arguments.query {
        write(path, &der, 0o644)?;
        let text =
            format!("wrote a request for {}: {}\n", arguments.file.display(), path.display());
        output.result(
            &text,
            &json!({ "file": files::json_path(&arguments.file), "query": files::json_path(path) }),
        );
        return Ok(());
    }
    let url = arguments.url.as_deref().unwrap_or_default();
    timestamping::check_url(url)?;
    let roots = match &arguments.ca_bundle {
        Some(path) => trust::load(path)?,
        None if url.starts_with("https://") => trust::system_roots().map_err(|failure| {
            failure.hint("name the CAs of the authority's server: --ca-bundle PEM")
        })?,
        None => Vec::new(),
    };
    let tls = Connector::new(&Policy::default(), &roots)
        .map_err(|error| Failure::new(error.to_string()))?;
    let runtime = crate::runtime::runtime()?;
    let body = runtime.block_on(fetch::post_over(url, REQUEST_MEDIA_TYPE, der, &tls));
    let body = body.map_err(|error| explained(&error))?;
    let wrong = |reason: String| {
        Failure::new(format!("{url}: {reason}")).hint("nothing was written; ask another authority")
    };
    let response = Response::parse(&body).map_err(|error| wrong(error.to_string()))?;
    let Some(token) = &response.token else {
        return Err(wrong(format!("no timestamp was given: {}", response.explanation())));
    };
    let token = Token::parse(token).map_err(|error| wrong(error.to_string()))?;
    token.answers(&request).map_err(|error| wrong(error.to_string()))?;
    let signer = token.authenticate(&imprint, &[]).map_err(|error| wrong(error.to_string()))?;
    let at = token.time_ms().div_euclid(1000);
    let now = outlast_net::server::system_clock().div_euclid(1000);
    if at.abs_diff(now) > CLOCK_SKEW_SECONDS.unsigned_abs() {
        output::warning(&format!(
            "the timestamp says {}, which this machine's clock does not: check both",
            instant(token.time_ms())
        ));
    }
    let out = arguments.out.clone().unwrap_or_else(|| token_path(&arguments.file));
    write(&out, &body, 0o644)?;
    let subject = signer.certificate.subject().to_string();
    let text = format!(
        "timestamped {} at {} by \"{subject}\" (not verified against a root): {}\n",
        arguments.file.display(),
        instant(token.time_ms()),
        out.display()
    );
    let value = json!({
        "file": files::json_path(&arguments.file),
        "token": files::json_path(&out),
        "time": instant(token.time_ms()),
        "serial": hex::encode(token.serial()),
        "policy": token.policy().to_string(),
        "authority": subject,
    });
    output.result(&text, &value);
    Ok(())
}

fn explained(error: &FetchError) -> Failure {
    let failure = Failure::new(format!("no timestamp: {error}"));
    match error {
        FetchError::Connection { reason, .. } if reason.contains("certificate") => {
            failure.hint("name the CAs of the authority's server: --ca-bundle PEM")
        }
        FetchError::Status { status: 404, .. } => {
            failure.hint("the path of the authority is part of the URL, as in http://HOST/tsa")
        }
        FetchError::Status { status: 403, .. } => failure
            .hint("the authority wants signed requests: see callers in docs/guide/timestamps.md"),
        _ => failure.hint("nothing was written; check the URL, or ask another authority"),
    }
}
