//! Evidence of revocation: CRLs and OCSP responses from files and from the URLs that certificates name.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use outlast_net::fetch::{self, FetchError};
use outlast_pki::certificate::Certificate;
use outlast_pki::crl::Crl;
use outlast_pki::describe;
use outlast_pki::object::{self, Kind};
use outlast_pki::ocsp::{self, OcspError, REQUEST_MEDIA_TYPE, Request, Response, Status};
use outlast_pki::validate::Revocation;

use crate::failure::Failure;
use crate::{objects, output};

/// URLs of one certificate that are fetched, at most.
const MAX_URLS: usize = 4;

/// CRLs in one answer, at most.
const MAX_CRLS: usize = 8;

/// How many times a busy responder is asked.
const MAX_ATTEMPTS: u32 = 5;

/// Pause before a busy responder is asked again.
const BUSY_PAUSE: Duration = Duration::from_millis(500);

/// Requests of one run, at most.
const MAX_REQUESTS: u32 = 1_000;

/// Bytes that one run fetches, at most; all of them may be kept. The last answer may exceed them.
const MAX_BYTES: usize = 256 << 20;

/// Time that one run waits for answers, at most.
const MAX_WAIT: Duration = Duration::from_secs(300);

/// How to check revocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Check {
    /// Not checked.
    Off,
    /// Certificates that are known to be revoked are refused.
    #[value(alias = "if-present")]
    IfAvailable,
    /// The status of every certificate below the root must be known.
    Required,
}

impl Check {
    /// The value of the option.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::IfAvailable => "if-available",
            Self::Required => "required",
        }
    }

    /// The rule of path validation.
    pub(crate) fn rule(self) -> Revocation {
        match self {
            Self::Off => Revocation::Off,
            Self::IfAvailable => Revocation::IfPresent,
            Self::Required => Revocation::Required,
        }
    }
}

/// CRLs and OCSP responses; nothing about them is verified yet.
#[derive(Clone, Default)]
pub(crate) struct Evidence {
    pub(crate) crls: Vec<Crl>,
    pub(crate) ocsp: Vec<Response>,
    /// Where each CRL comes from: a file or a URL.
    pub(crate) crl_sources: Vec<String>,
    /// Where each OCSP response comes from.
    pub(crate) ocsp_sources: Vec<String>,
    /// Whether CRLs are fetched even if OCSP responses are there.
    pub(crate) keeps_all: bool,
    /// Files and URLs that were read, for the output.
    pub(crate) sources: Vec<String>,
    /// What the run may still fetch.
    pub(crate) budget: Budget,
    /// URLs that did not answer; they are asked once.
    pub(crate) dead: BTreeSet<String>,
}

/// What a run may still fetch.
#[derive(Debug, Clone)]
pub(crate) struct Budget {
    requests: u32,
    bytes: usize,
    wait: Duration,
}

impl Default for Budget {
    fn default() -> Self {
        Self { requests: MAX_REQUESTS, bytes: MAX_BYTES, wait: MAX_WAIT }
    }
}

impl Budget {
    /// Takes one request; returns how long it may take, or nothing if nothing is left.
    fn take(&mut self) -> Option<Duration> {
        if self.bytes == 0 || self.wait.is_zero() {
            return None;
        }
        self.requests = self.requests.checked_sub(1)?;
        Some(self.wait)
    }

    /// What the request has used.
    fn spend(&mut self, bytes: usize, wait: Duration) {
        self.bytes = self.bytes.saturating_sub(bytes);
        self.wait = self.wait.saturating_sub(wait);
    }
}

impl Evidence {
    /// Reads files with CRLs or OCSP responses.
    pub(crate) fn read<'a>(
        &mut self,
        files: impl IntoIterator<Item = &'a PathBuf>,
    ) -> Result<(), Failure> {
        for path in files {
            let source = path.display().to_string();
            for object in objects::read(path)? {
                let taken = self.take(object.kind, object.der.expose(), &source);
                taken.map_err(|failure| failure.prefixed(&source))?;
            }
            self.sources.push(source);
        }
        Ok(())
    }

    fn take(&mut self, kind: Kind, der: &[u8], source: &str) -> Result<(), Failure> {
        match kind {
            Kind::Crl => self.add_crl(Crl::parse(der)?, source),
            Kind::OcspResponse => {
                let read = Response::parse(der).map_err(|error| Failure::new(error.to_string()))?;
                self.add_ocsp(read, source);
            }
            // A responder's certificate may be in the same file as its response.
            Kind::Certificate => {}
            other => {
                return Err(Failure::new(format!(
                    "a {} says nothing about revocation",
                    other.name()
                )));
            }
        }
        Ok(())
    }

    /// Keeps a CRL, once.
    fn add_crl(&mut self, crl: Crl, source: &str) {
        if !self.crls.iter().any(|known| known.der() == crl.der()) {
            self.crls.push(crl);
            self.crl_sources.push(source.to_owned());
        }
    }

    /// Keeps an OCSP response, once.
    fn add_ocsp(&mut self, response: Response, source: &str) {
        if !self.ocsp.iter().any(|known| known.der() == response.der()) {
            self.ocsp.push(response);
            self.ocsp_sources.push(source.to_owned());
        }
    }

    /// Asks the responders and distribution points that the certificates name. Warns of what cannot be fetched;
    /// --revocation decides what that means. `now` is in seconds since 1970. A CRL is fetched if no responder answers,
    /// or if `keeps_all`.
    pub(crate) async fn fetch_all(
        &mut self,
        leaf: &Certificate,
        intermediates: &[Certificate],
        roots: &[Certificate],
        now: i64,
    ) {
        let issuers: Vec<_> = intermediates.iter().chain(roots).collect();
        let certificates: Vec<_> = std::iter::once(leaf)
            .chain(intermediates)
            .map(|one| (one, issuers.iter().find(|issuer| one.signed_by(issuer)).copied()))
            .collect();
        self.fetch(&certificates, &issuers, now).await;
    }

    /// The same for a chain that was verified, from its leaf to a root. `others` are certificates that may have signed CRLs,
    /// too, if a CA of the chain has certified them; nothing that they name is fetched.
    pub(crate) async fn fetch_chain(
        &mut self,
        chain: &[Certificate],
        others: &[Certificate],
        now: i64,
    ) {
        let certificates: Vec<_> = chain.iter().zip(chain.iter().skip(1).map(Some)).collect();
        let above: Vec<_> = chain.iter().skip(1).collect();
        let certified = others.iter().filter(|other| above.iter().any(|ca| other.signed_by(ca)));
        let issuers: Vec<_> = above.iter().copied().chain(certified).collect();
        self.fetch(&certificates, &issuers, now).await;
    }

    /// Fetches what is to be known of each certificate, which its issuer has signed.
    async fn fetch(
        &mut self,
        certificates: &[(&Certificate, Option<&Certificate>)],
        issuers: &[&Certificate],
        now: i64,
    ) {
        let below_root = |(found, _): &&(&Certificate, _)| found.issuer() != found.subject();
        let mut seen: BTreeSet<String> = self.sources.iter().cloned().collect();
        for (certificate, issuer) in certificates.iter().filter(below_root) {
            let urls = describe::revocation_urls(certificate);
            let mut known = self.knows(certificate, *issuer, now);
            if let Some(issuer) = issuer {
                for url in urls.ocsp.iter().take(MAX_URLS) {
                    known = known || self.ask(url, certificate, issuer, now).await;
                }
            }
            if known && !self.keeps_all {
                continue;
            }
            for url in urls.crl.iter().take(MAX_URLS).filter(|url| seen.insert((*url).clone())) {
                if self.get(url, certificate, issuers).await {
                    break;
                }
            }
        }
    }

    /// Whether a current OCSP response about it is here already: several files may have the same signer. A responder that
    /// does not know it leaves the question to others (RFC 6960, section 2.2).
    fn knows(&self, certificate: &Certificate, issuer: Option<&Certificate>, now: i64) -> bool {
        let Some(issuer) = issuer else { return false };
        let says = |read: &Response| read.verify(issuer, certificate, None, now);
        self.ocsp.iter().any(|read| says(read).is_ok_and(|said| said.status != Status::Unknown))
    }

    /// One OCSP request, by POST (RFC 6960, appendix A.1); returns whether the response can be used.
    async fn ask(
        &mut self,
        url: &str,
        certificate: &Certificate,
        issuer: &Certificate,
        now: i64,
    ) -> bool {
        if self.dead.contains(url) {
            return false;
        }
        let request = Request::new(issuer, certificate, None).and_then(|request| request.to_der());
        let outcome = match request {
            Ok(body) => self.answer(url, body).await.and_then(|read| {
                let said = read
                    .verify(issuer, certificate, None, now)
                    .map_err(|error| format!("{url}: {error}"))?;
                match said.status {
                    Status::Unknown => Err(format!("{url}: the responder does not know it")),
                    Status::Good | Status::Revoked { .. } => Ok(read),
                }
            }),
            Err(error) => Err(error.to_string()),
        };
        match outcome {
            Ok(response) => {
                self.add_ocsp(response, url);
                self.sources.push(url.to_owned());
                true
            }
            Err(reason) => {
                output::warning(&reason);
                false
            }
        }
    }

    /// The responder's answer. A busy responder (`tryLater`, RFC 6960, section 2.3) is asked again a few times.
    async fn answer(&mut self, url: &str, body: Vec<u8>) -> Result<Response, String> {
        let mut attempts = MAX_ATTEMPTS;
        loop {
            attempts -= 1;
            let asked = fetch::post(url, REQUEST_MEDIA_TYPE, body.clone());
            match Response::parse(&self.within_budget(url, asked).await?) {
                Err(OcspError::Failure(ocsp::Failure::TryLater)) if attempts > 0 => {
                    self.budget.spend(0, BUSY_PAUSE);
                    tokio::time::sleep(BUSY_PAUSE).await;
                }
                outcome => return outcome.map_err(|error| format!("{url}: {error}")),
            }
        }
    }

    /// One request, as far as the run has something left.
    async fn within_budget(
        &mut self,
        url: &str,
        request: impl Future<Output = Result<Vec<u8>, FetchError>>,
    ) -> Result<Vec<u8>, String> {
        let Some(wait) = self.budget.take() else {
            return Err(format!("{url}: it is not fetched, because this run has fetched too much"));
        };
        let started = tokio::time::Instant::now();
        let outcome = match tokio::time::timeout(wait, request).await {
            Ok(outcome) => outcome.map_err(|error| error.to_string()),
            Err(_) => Err(format!("{url}: no answer in the time that is left for this run")),
        };
        self.budget.spend(outcome.as_ref().map_or(0, Vec::len), started.elapsed());
        if outcome.is_err() {
            self.dead.insert(url.to_owned());
        }
        outcome
    }

    /// CRLs, of which only those that one of the issuers has signed are kept: others would only cost time later. Returns
    /// whether one is of the certificate's CA.
    async fn get(
        &mut self,
        url: &str,
        certificate: &Certificate,
        issuers: &[&Certificate],
    ) -> bool {
        if self.dead.contains(url) {
            return false;
        }
        let outcome = self.within_budget(url, fetch::get(url)).await;
        let outcome = outcome.and_then(|bytes| {
            let objects = object::read(&bytes).map_err(|error| format!("{url}: {error}"))?;
            let crls = objects.iter().filter(|object| object.kind != Kind::Certificate);
            if crls.clone().count() > MAX_CRLS {
                return Err(format!("{url}: more than {MAX_CRLS} CRLs in one answer"));
            }
            let mut is_about = false;
            for object in crls {
                let crl = signed_crl(object.kind, object.der.expose(), issuers);
                let crl = crl.map_err(|reason| format!("{url}: {reason}"))?;
                is_about |= crl.is_of(certificate.issuer());
                self.add_crl(crl, url);
            }
            match is_about {
                true => Ok(()),
                false => Err(format!("{url}: no CRL of the CA that names it")),
            }
        });
        match outcome {
            Ok(()) => {
                self.sources.push(url.to_owned());
                true
            }
            Err(reason) => {
                output::warning(&reason);
                false
            }
        }
    }
}

/// A CRL that one of these has signed.
fn signed_crl(kind: Kind, der: &[u8], issuers: &[&Certificate]) -> Result<Crl, String> {
    if kind != Kind::Crl {
        return Err(format!("a {} is no CRL", kind.name()));
    }
    let crl = Crl::parse(der).map_err(|error| error.to_string())?;
    match issuers.iter().any(|issuer| crl.is_of(issuer.subject()) && crl.signed_by(issuer)) {
        true => Ok(crl),
        false => Err("the CRL is not signed by the CA of a certificate that names it".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_fetches_no_more_than_its_limits() {
        let second = Duration::from_secs(1);
        let all = Budget::default();
        let used = |requests: u32, bytes: usize, wait: Duration| {
            let mut budget = all.clone();
            for _ in 0..requests {
                budget.take();
            }
            budget.spend(bytes, wait);
            budget.take()
        };
        assert_eq!(used(0, 0, second), Some(MAX_WAIT - second));
        assert_eq!(used(MAX_REQUESTS - 1, MAX_BYTES - 1, Duration::ZERO), Some(MAX_WAIT));
        assert_eq!(used(MAX_REQUESTS, 0, Duration::ZERO), None);
        assert_eq!(used(1, MAX_BYTES + 1, Duration::ZERO), None);
        assert_eq!(used(1, 0, MAX_WAIT + second), None);
    }
}
