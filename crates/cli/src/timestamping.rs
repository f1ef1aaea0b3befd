//! Asks time-stamping authorities for tokens (RFC 3161), and puts them into signatures. A token is checked completely before
//! anything is written.

use std::path::{Path, PathBuf};

use outlast_crypto::digests::Digest;
use outlast_crypto::random;
use outlast_net::client::Connector;
use outlast_net::fetch::{self, FetchError};
use outlast_net::policy::Policy;
use outlast_net::server::system_clock;
use outlast_pki::cms::attach;
use outlast_pki::cms::verify::{CLOCK_SKEW_SECONDS, Claim, SignedMessage};
use outlast_pki::path::check_leaf;
use outlast_pki::templates::TIME_STAMPING;
use outlast_pki::time::rfc3339;
use outlast_pki::timestamp::{
    self, Imprint, Nonce, REQUEST_MEDIA_TYPE, Request, Response, Token, Trust,
};
use outlast_pki::{pem, validate};
use serde_json::{Value, json};

use crate::failure::{Failure, USAGE};
use crate::{files, output, trust};

/// Bytes of a nonce.
const NONCE_LEN: usize = 16;

/// Digests that every authority takes (SP 800-57, RFC 3161's successors).
const USUAL: &[&str] = &["sha256", "sha384", "sha512"];

/// Whom to ask, and whom to trust.
#[derive(clap::Args, Clone, Default)]
pub(crate) struct Options {
    /// Trusted roots of time-stamping authorities: a PEM or DER file, or a folder of them. A token of another authority is
    /// kept, with a warning.
    #[arg(long, value_name = "PEM")]
    pub(crate) timestamp_trust: Option<PathBuf>,
    /// PEM file with the CAs by which https:// authorities are verified [default: the system's].
    #[arg(long, value_name = "PEM")]
    pub(crate) timestamp_ca: Option<PathBuf>,
}

/// Asks one or several authorities.
pub(crate) struct Client {
    urls: Vec<String>,
    tls: Connector,
    /// Trusted roots, DER.
    roots: Option<Vec<Vec<u8>>>,
}

/// A token that was checked.
#[derive(Debug, Clone)]
pub(crate) struct Taken {
    /// In DER.
    pub(crate) token: Vec<u8>,
    /// Where it is from.
    pub(crate) url: String,
    /// Its time, seconds since 1970.
    pub(crate) at: i64,
    /// Subject of the authority's certificate.
    pub(crate) authority: String,
    /// Whether it is trusted; `None` if no roots were given.
    pub(crate) is_trusted: Option<bool>,
}

impl Taken {
    /// For people.
    pub(crate) fn text(&self) -> String {
        let trusted = match self.is_trusted {
            Some(true) => "trusted",
            Some(false) => "not trusted by --timestamp-trust",
            None => "compared with no root",
        };
        format!("timestamp of {} by \"{}\" ({trusted})", rfc3339(self.at), self.authority)
    }

    /// For programs.
    pub(crate) fn json(&self) -> Value {
        json!({
            "url": self.url,
            "time": rfc3339(self.at),
            "authority": self.authority,
            "trusted": self.is_trusted,
        })
    }
}

impl Client {
    /// `ca_bundle` is trusted for https, too: the service's own.
    pub(crate) fn new(
        urls: &[String],
        options: &Options,
        ca_bundle: Option<&Path>,
    ) -> Result<Self, Failure> {
        let mut authorities = match &options.timestamp_ca {
            Some(path) => trust::load(path)?,
            None => Vec::new(),
        };
        if urls.iter().any(|url| url.starts_with("https://")) && options.timestamp_ca.is_none() {
            if let Some(path) = ca_bundle {
                let found = pem::read_certificates(&files::read(path, 4 << 20)?);
                authorities.extend(found.map_err(|error| Failure::file(path, &error))?);
            }
            match (trust::system_roots(), authorities.is_empty()) {
                (Ok(found), _) => authorities.extend(found),
                (Err(_), false) => {}
                (Err(failure), true) => {
                    return Err(failure.hint("name the CAs of the authority: --timestamp-ca PEM"));
                }
            }
        }
        for url in urls {
            check_url(url)?;
        }
        Ok(Self {
            urls: urls.to_vec(),
            tls: Connector::new(&Policy::default(), &authorities)
                .map_err(|error| Failure::new(error.to_string()))?,
            roots: options.timestamp_trust.as_deref().map(trust::authorities).transpose()?,
        })
    }

    /// The trusted roots, if some were given.
    pub(crate) fn roots(&self) -> Option<&[Vec<u8>]> {
        self.roots.as_deref()
    }

    /// The authorities.
    pub(crate) fn urls(&self) -> &[String] {
        &self.urls
    }

    /// A message with a token of each authority for each signer, in DER, and the tokens.
    pub(crate) async fn stamp(&self, message: &[u8]) -> Result<(Vec<u8>, Vec<Taken>), Failure> {
        let parsed = SignedMessage::parse(message)
            .map_err(|error| Failure::new(format!("it cannot be timestamped: {error}")))?;
        let mut tokens = Vec::new();
        let mut taken = Vec::new();
        for claim in parsed.claims() {
            let imprint = Imprint::of(imprint_digest(&claim)?, &claim.value);
            for url in &self.urls {
                let one = self.ask(url, imprint.clone()).await?;
                tokens.push((claim.value.clone(), one.token.clone()));
                taken.push(one);
            }
        }
        let out = attach::with_tokens(message, &tokens)
            .map_err(|error| Failure::new(error.to_string()))?;
        // What others will read must still be what was signed.
        let read = SignedMessage::parse(&out).map_err(|error| Failure::new(error.to_string()))?;
        let count: usize = read.claims().iter().map(|claim| claim.tokens.len()).sum();
        let before: usize = parsed.claims().iter().map(|claim| claim.tokens.len()).sum();
        if count != before + tokens.len() {
            return Err(Failure::new("the signature has no room for more timestamps")
                .hint("16 of each signer are read; renew the newest with outlast sign renew"));
        }
        Ok((out, taken))
    }

    /// A token of one authority.
    pub(crate) async fn ask(&self, url: &str, imprint: Imprint) -> Result<Taken, Failure> {
        let wrong = |reason: String| {
            Failure::new(format!("{url}: {reason}"))
                .hint("nothing was written; ask another authority, or try again later")
        };
        let nonce: [u8; NONCE_LEN] =
            random::bytes().map_err(|error| Failure::new(error.to_string()))?;
        let request = Request::new(imprint.clone(), Some(Nonce::new(&positive(nonce))?));
        let body = fetch::post_over(url, REQUEST_MEDIA_TYPE, request.to_der()?, &self.tls).await;
        let body = body.map_err(|error| unreachable_failure(&error))?;
        let response = Response::parse(&body).map_err(|error| wrong(error.to_string()))?;
        let Some(token) = &response.token else {
            return Err(wrong(format!("no timestamp was given: {}", response.explanation())));
        };
        let token = Token::parse(token).map_err(|error| wrong(error.to_string()))?;
        token.answers(&request).map_err(|error| wrong(error.to_string()))?;
        let signer = token.authenticate(&imprint, &[]).map_err(|error| wrong(error.to_string()))?;
        check_leaf(&signer.certificate, TIME_STAMPING).map_err(|error| wrong(error.to_string()))?;
        let at = token.time_ms().div_euclid(1000);
        let now = system_clock().div_euclid(1000);
        if at.abs_diff(now) > CLOCK_SKEW_SECONDS.unsigned_abs() {
            return Err(wrong(format!(
                "the timestamp says {}, and this machine's clock says {}",
                rfc3339(at),
                rfc3339(now)
            ))
            .hint("check this machine's clock; if it is right, ask another authority"));
        }
        if at < signer.certificate.not_before() || at > signer.certificate.not_after() {
            return Err(wrong("the authority's certificate is not valid now".to_owned()));
        }
        let is_trusted = self.roots.as_ref().map(|roots| {
            let trust = Trust {
                roots,
                now,
                existed_at: Some(now.max(at)),
                nonce: request.nonce.as_ref(),
                revocation: validate::Revocation::IfPresent,
                ..Trust::default()
            };
            let outcome = token.verify(&imprint, &trust);
            if let Err(error) = &outcome {
                output::warning(&format!(
                    "{url}: verifiers with --timestamp-trust will ignore its timestamp: {error}"
                ));
            }
            outcome.is_ok()
        });
        Ok(Taken {
            token: token.der().to_vec(),
            url: url.to_owned(),
            at,
            authority: signer.certificate.subject().to_string(),
            is_trusted,
        })
    }
}

/// The digest of a signature to be timestamped: as strong as that of the file, if authorities know it.
fn imprint_digest(claim: &Claim) -> Result<&'static Digest, Failure> {
    let own = Digest::by_oid(claim.digest).filter(|row| USUAL.contains(&row.name));
    own.or_else(|| Digest::by_name("sha512"))
        .ok_or_else(|| Failure::new("there is no digest for a timestamp"))
}

/// Refuses a URL at which no authority can be asked.
pub(crate) fn check_url(url: &str) -> Result<(), Failure> {
    if names_user(url) {
        // The URL is not shown: it may contain a password.
        return Err(Failure::new("the URL of a time-stamping authority has a user name")
            .hint("leave out what is before the @: authorities are asked without a login")
            .code(USAGE));
    }
    if !url.starts_with("http://") && !url.starts_with("https://") {
        return Err(Failure::new(FetchError::AnyUrl(url.to_owned()).to_string())
            .hint("such as http://tsa.example/tsa")
            .code(USAGE));
    }
    Ok(())
}

/// Whether a user name, with or without a password, is before the host of a URL.
fn names_user(url: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split(['/', '?', '#']).next().is_some_and(|authority| authority.contains('@'))
}

/// The bytes as a positive number without leading zeros.
fn positive(mut bytes: [u8; NONCE_LEN]) -> [u8; NONCE_LEN] {
    if let Some(first) = bytes.first_mut() {
        *first = *first & 0x7f | 0x40;
    }
    bytes
}

fn unreachable_failure(error: &FetchError) -> Failure {
    let failure = Failure::new(format!("no timestamp: {error}"));
    match error {
        FetchError::Connection { reason, .. } if reason.contains("certificate") => {
            failure.hint("name the CAs of the authority's server: --timestamp-ca PEM")
        }
        FetchError::Status { status: 404, .. } => {
            failure.hint("the path of the authority is part of the URL, as in http://HOST/tsa")
        }
        _ => failure.hint("nothing was written; check the URL, or ask another authority"),
    }
}

/// Which parts of a timestamp's accuracy are shown.
pub(crate) fn accuracy(accuracy: Option<timestamp::Accuracy>) -> Option<String> {
    accuracy.map(|found| found.to_string())
}
