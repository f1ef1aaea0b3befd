//! Verifies detached signatures of files, for the commands and the quickstart.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use indicatif::ProgressBar;
use outlast_pki::ObjectIdentifier;
use outlast_pki::certificate::Certificate;
use outlast_pki::cms::verify::{
    self, Authentic, SignedMessage, Signer, Time, TimeSource, VerifyError,
};
use outlast_pki::crl::Revoked;
use outlast_pki::path::PathError;
use outlast_pki::seen::Seen;
use outlast_pki::signing_policy::judge::{Context, Judged, Verdict, strictest};
use outlast_pki::signing_policy::rule::{Need, Rule};
use outlast_pki::time::rfc3339;
use outlast_pki::trusted_time::{self, Authority, Timed, Trust};
use outlast_pki::validate::{Proof, Revocation, Standing};
use serde_json::{Value, json};

use self::time::{Prepared, Record};
use crate::digest;
use crate::evidence::{Check, Evidence};
use crate::failure::{Failure, REFUSED};

pub(crate) mod time;

/// What is signed.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Signed<'a> {
    /// A file.
    File(&'a Path),
    /// Bytes in memory, with a name for messages.
    Bytes {
        /// The name.
        name: &'a Path,
        /// The bytes.
        content: &'a [u8],
    },
}

impl<'a> Signed<'a> {
    fn name(self) -> &'a Path {
        match self {
            Self::File(path) | Self::Bytes { name: path, .. } => path,
        }
    }
}

/// Signers whose signatures are right, in any format.
pub(crate) struct Bare {
    pub(crate) signers: Vec<Authentic>,
    /// The certificates that came with them.
    pub(crate) message: SignedMessage,
}

/// What files are verified with.
#[derive(Clone)]
pub(crate) struct Verifier {
    /// Trusted roots, DER.
    pub(crate) roots: Vec<Vec<u8>>,
    /// More certificates, DER.
    pub(crate) extra: Vec<Vec<u8>>,
    /// The clock, seconds since 1970.
    pub(crate) now: i64,
    /// When the signatures were made; without a time, the signers' claims count.
    pub(crate) time: Option<Time>,
    /// What was asked for; revoked certificates are refused if nothing was.
    pub(crate) revocation: Option<Check>,
    /// Whether CRLs and OCSP responses are fetched.
    pub(crate) fetch: bool,
    pub(crate) evidence: Evidence,
    /// Roots of time-stamping authorities, DER.
    pub(crate) timestamp_roots: Vec<Vec<u8>>,
    /// Signatures of certificates and evidence that earlier files had, too; of the message at hand, how many were verified.
    pub(crate) seen: Arc<Seen>,
}

/// A signature with what belongs to it.
#[derive(Clone, Copy)]
pub(crate) struct Subject<'a> {
    /// The file, or what else is signed.
    pub(crate) signed: Signed<'a>,
    /// Its signature.
    pub(crate) signature: &'a [u8],
    /// Its evidence record (RFC 4998), if there is one.
    pub(crate) record: Option<&'a Record>,
}

/// What was found about a file: the signers, and the outcome of its evidence record.
pub(crate) struct Found<T> {
    pub(crate) signers: T,
    pub(crate) record: Option<time::Outcome>,
}

/// A refusal of a message, with what is known of its time.
pub(crate) struct Refused {
    pub(crate) failure: Failure,
    /// The timestamps of each signer, if the signatures are right.
    pub(crate) tokens: Vec<Vec<trusted_time::Outcome>>,
    pub(crate) record: Option<Box<time::Outcome>>,
}

impl From<Failure> for Refused {
    fn from(failure: Failure) -> Self {
        Self { failure, tokens: Vec::new(), record: None }
    }
}

impl From<Refused> for Failure {
    fn from(refused: Refused) -> Self {
        refused.failure
    }
}

/// What a certificate has signed.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Holder {
    /// A file.
    Signature,
    /// A timestamp of a signature.
    Timestamp,
}

impl Holder {
    fn name(self) -> &'static str {
        match self {
            Self::Signature => "signature",
            Self::Timestamp => "timestamp",
        }
    }
}

impl Verifier {
    /// A verifier by the signers' claims, without revocation.
    pub(crate) fn plain(roots: &[Vec<u8>], now: i64) -> Self {
        Self {
            roots: roots.to_vec(),
            extra: Vec::new(),
            now,
            time: None,
            revocation: Some(Check::Off),
            fetch: false,
            evidence: Evidence::default(),
            timestamp_roots: roots.to_vec(),
            seen: Arc::default(),
        }
    }

    /// Each message may cost as much as any other one, whatever was verified before it.
    fn begin_message(&mut self) {
        self.seen = Arc::new(self.seen.for_message());
    }

    /// Verifies a detached signature of a file. A refusal has exit code 3.
    pub(crate) fn file(
        &mut self,
        subject: &Subject<'_>,
        progress: &ProgressBar,
    ) -> Result<Found<Vec<Timed<Signer>>>, Refused> {
        self.begin_message();
        let path = subject.signed.name();
        let (message, values) = self.message(subject.signed, subject.signature, progress)?;
        let prepared = time::prepare(subject, progress)?;
        if self.fetch {
            let signers = message.authenticate(&values, &self.extra).unwrap_or_default();
            self.fetch(&message, &signers, None, prepared.as_ref())?;
        }
        let authorities = [Authority::Roots(self.timestamp_roots.clone())];
        let verifier = self.material();
        let trust = self.trust(&authorities);
        let record = prepared.map(|prepared| prepared.judge(&trust));
        let evidence = record.as_ref().and_then(time::Outcome::evidence);
        match trusted_time::verify(&message, &values, &verifier, &trust, evidence) {
            Ok(signers) => Ok(Found { signers, record }),
            Err(error) => {
                let signers = message.authenticate(&values, &self.extra).unwrap_or_default();
                let tokens = signers.iter().map(|signer| trust.tokens(signer, evidence)).collect();
                Err(Refused { failure: refused(path, error), tokens, record: record.map(Box::new) })
            }
        }
    }

    /// Whose timestamps count without a policy.
    fn trust<'a>(&'a self, authorities: &'a [Authority]) -> Trust<'a> {
        Trust {
            authorities,
            least: 1,
            policies: &[],
            certificates: &self.extra,
            now: self.now,
            holds_at: self.now,
            revocation: self.material().revocation,
            crls: &self.evidence.crls,
            ocsp: &self.evidence.ocsp,
            seen: Some(&self.seen),
            suits: &|_, _| None,
        }
    }

    fn material(&self) -> verify::Verifier<'_> {
        verify::Verifier {
            roots: &self.roots,
            purpose: None,
            certificates: &self.extra,
            now: self.now,
            time: self.time.clone(),
            revocation: self.revocation.unwrap_or(Check::IfAvailable).rule(),
            crls: &self.evidence.crls,
            ocsp: &self.evidence.ocsp,
            seen: Some(&self.seen),
        }
    }

    /// Verifies the chains of signers. If their format has no time of signing, and the verifier knows none, the present
    /// counts, because the signatures are here.
    pub(crate) fn bare(&mut self, path: &Path, bare: &Bare) -> Result<Vec<Timed<Signer>>, Failure> {
        self.begin_message();
        self.fetch(&bare.message, &bare.signers, None, None)?;
        let authorities = [Authority::Roots(self.timestamp_roots.clone())];
        let trust = self.trust(&authorities);
        let one = |signer: &Authentic| {
            let Timed { signer, tokens, proven } = trust.timed(signer.clone(), None)?;
            let time = self.time.clone().or_else(|| proven.clone());
            let time = time.or_else(|| self.present(&signer));
            let verifier = verify::Verifier { time, ..self.material() };
            let signer = bare.message.trust(&signer, &verifier)?;
            Ok(Timed { signer, tokens, proven })
        };
        let timed: Result<_, VerifyError> = bare.signers.iter().map(one).collect();
        timed.map_err(|error| refused(path, error))
    }

    /// Judges them by a rule.
    pub(crate) fn judge_bare(
        &mut self,
        rule: &Rule,
        as_of: i64,
        path: &Path,
        bare: &Bare,
    ) -> Result<Verdict, Failure> {
        self.begin_message();
        self.fetch(&bare.message, &bare.signers, Some((rule, as_of)), None)?;
        let context = Context { without_times: true, ..self.context(as_of) };
        rule.judge_authentic(&bare.message, bare.signers.clone(), &context)
            .map_err(|error| refused(path, error))
    }

    /// The present, for a signer that states no time.
    fn present(&self, signer: &Authentic) -> Option<Time> {
        let present = Time { at: self.now, source: TimeSource::Present };
        signer.signing_time.is_none().then_some(present)
    }

    /// Judges the signers of a file by a rule, as of a date. Only a message that is wrong in itself is a failure.
    pub(crate) fn judge(
        &mut self,
        rule: &Rule,
        as_of: i64,
        subject: &Subject<'_>,
        progress: &ProgressBar,
    ) -> Result<Found<Verdict>, Refused> {
        self.begin_message();
        let path = subject.signed.name();
        let (message, values) = self.message(subject.signed, subject.signature, progress)?;
        let prepared = match rule.timestamp {
            Need::Off => None,
            Need::IfAvailable | Need::Required => time::prepare(subject, progress)?,
        };
        if self.fetch {
            let signers = message.authenticate(&values, &self.extra).unwrap_or_default();
            self.fetch(&message, &signers, Some((rule, as_of)), prepared.as_ref())?;
        }
        let mut context = self.context(as_of);
        let authorities = rule.authorities(&context);
        let suits = |at, chain: &[Certificate]| rule.unsuited(at, chain);
        let trust = rule.trust(&authorities, &suits, &context);
        let record = prepared.map(|prepared| prepared.judge(&trust));
        context.evidence = record.as_ref().and_then(time::Outcome::evidence);
        match rule.judge(&message, &values, &context) {
            Ok(signers) => Ok(Found { signers, record }),
            Err(error) => {
                let signers = message.authenticate(&values, &self.extra).unwrap_or_default();
                let tokens =
                    signers.iter().map(|signer| trust.tokens(signer, context.evidence)).collect();
                Err(Refused { failure: refused(path, error), tokens, record: record.map(Box::new) })
            }
        }
    }

    fn context(&self, as_of: i64) -> Context<'_> {
        Context {
            roots: &self.roots,
            certificates: &self.extra,
            now: self.now,
            as_of,
            trusted: self.time.as_ref().map(|time| time.at),
            without_times: false,
            revocation: self.revocation.map(Check::rule),
            crls: &self.evidence.crls,
            ocsp: &self.evidence.ocsp,
            seen: Some(&self.seen),
            timestamp_roots: &self.timestamp_roots,
            evidence: None,
        }
    }

    /// The message, and the digests of the file that it needs.
    fn message(
        &self,
        signed: Signed<'_>,
        signature: &[u8],
        progress: &ProgressBar,
    ) -> Result<(SignedMessage, Vec<Vec<u8>>), Failure> {
        let path = signed.name();
        let message = SignedMessage::parse(signature).map_err(|error| refused(path, error))?;
        let digests = message.digests().map_err(|error| refused(path, error))?;
        let values = match signed {
            Signed::File(path) => digest::file(path, &digests, progress)?,
            Signed::Bytes { content, .. } => {
                digests.iter().map(|row| row.digest(content)).collect()
            }
        };
        Ok((message, values))
    }

    /// Fetches what the certificates of the signers and of the authorities of their timestamps name, if it is asked to. The
    /// signatures are right, and only chains that end at a root of the verifier or the rule count: nobody else decides which
    /// URLs are fetched.
    fn fetch(
        &mut self,
        message: &SignedMessage,
        signers: &[Authentic],
        rule: Option<(&Rule, i64)>,
        record: Option<&Prepared<'_>>,
    ) -> Result<(), Failure> {
        let of_rule = rule.and_then(|(rule, _)| rule.revocation);
        let revocation = strictest(of_rule, self.revocation.map(Check::rule));
        if !self.fetch || revocation == Revocation::Off {
            return Ok(());
        }
        let mut chains = self.chains(message, signers, rule, record);
        // Of a certificate that is trusted by itself no CA is known that could revoke it.
        chains.retain(|chain| chain.len() > 1);
        if chains.is_empty() {
            return Ok(());
        }
        let others: Vec<_> = message
            .certificates
            .iter()
            .chain(&self.extra)
            .filter_map(|der| Certificate::parse(der).ok())
            .filter(Certificate::may_issue)
            .take(outlast_pki::path::MAX_INTERMEDIATES)
            .collect();
        let runtime = crate::runtime::small()?;
        for chain in &chains {
            runtime.block_on(self.evidence.fetch_chain(chain, &others, self.now));
        }
        // A name that is still being resolved must not keep the verifier waiting.
        runtime.shutdown_background();
        Ok(())
    }

    /// The chains of the signers at each time at which they may be judged, and of the authorities whose timestamps would count
    /// but for revocation.
    fn chains(
        &self,
        message: &SignedMessage,
        signers: &[Authentic],
        rule: Option<(&Rule, i64)>,
        record: Option<&Prepared<'_>>,
    ) -> Vec<Vec<Certificate>> {
        let mut roots = self.roots.clone();
        let mut purpose = None;
        if let Some((rule, _)) = rule {
            roots.extend(rule.roots.iter().cloned());
            purpose = Some(rule.purpose);
            // Of a signer who is trusted without a root, the CAs that the caller names say what they have revoked.
            if rule.trust.is_empty() && rule.has_pins() {
                let may_issue =
                    |der: &&Vec<u8>| Certificate::parse(der).is_ok_and(|found| found.may_issue());
                roots.extend(self.extra.iter().filter(may_issue).cloned());
            }
        }
        let stamps = match rule {
            None => {
                let authorities = [Authority::Roots(self.timestamp_roots.clone())];
                time::stamps(signers, record, &self.trust(&authorities))
            }
            Some((rule, _)) if rule.timestamp == Need::Off => Vec::new(),
            Some((rule, as_of)) => {
                let context = self.context(as_of);
                let authorities = rule.authorities(&context);
                let suits = |at, chain: &[Certificate]| rule.unsuited(at, chain);
                time::stamps(signers, record, &rule.trust(&authorities, &suits, &context))
            }
        };
        let of_record = stamps.last().map(Vec::as_slice).unwrap_or_default();
        let mut chains: Vec<Vec<Certificate>> = Vec::new();
        for (index, signer) in signers.iter().enumerate() {
            let own = stamps.get(index).map(Vec::as_slice).unwrap_or_default();
            let proven = own.iter().chain(of_record).map(|stamp| stamp.at);
            let times: BTreeSet<i64> = proven
                .chain(self.time.as_ref().map(|time| time.at))
                .chain(rule.map(|(_, as_of)| as_of))
                .chain(signer.signing_time)
                .chain([self.now, signer.certificate.not_before()])
                .collect();
            for at in times {
                let Some(found) = self.chain(message, signer, &roots, purpose, at) else {
                    continue;
                };
                let same = |known: &Vec<Certificate>| {
                    known.iter().map(Certificate::der).eq(found.iter().map(Certificate::der))
                };
                if !chains.iter().any(same) {
                    chains.push(found);
                }
            }
        }
        chains.extend(time::chains(stamps));
        chains
    }

    /// The chain of a signer to one of these roots, at one of the times at which it may be judged.
    fn chain(
        &self,
        message: &SignedMessage,
        signer: &Authentic,
        roots: &[Vec<u8>],
        purpose: Option<ObjectIdentifier>,
        at: i64,
    ) -> Option<Vec<Certificate>> {
        let verifier = verify::Verifier {
            roots,
            purpose,
            time: Some(Time { at, source: TimeSource::Verifier }),
            revocation: Revocation::Off,
            ..self.material()
        };
        message.trust(signer, &verifier).ok().map(|found| found.chain)
    }

    /// One signer as JSON.
    pub(crate) fn signer_json(&self, signer: &Signer) -> Value {
        let chain: Vec<_> = signer
            .chain
            .iter()
            .map(|certificate| {
                json!({
                    "subject": certificate.subject().to_string(),
                    "serial": hex::encode(certificate.serial()),
                    "not_after": rfc3339(certificate.not_after()),
                })
            })
            .collect();
        json!({
            "subject": signer.certificate.subject().to_string(),
            "issuer": signer.certificate.issuer().to_string(),
            "serial": hex::encode(signer.certificate.serial()),
            "algorithm": format!("{:?}", signer.algorithm),
            "digest": signer.digest.name,
            "signing_time": signer.signing_time.map(rfc3339),
            "valid_at": rfc3339(signer.time.at),
            "time_source": signer.time.source.name(),
            "time_trusted": signer.time.source.is_trusted(),
            "certificate_not_after": rfc3339(signer.certificate.not_after()),
            "chain": chain,
            "revocation": self.revocation_json(&signer.statuses, Holder::Signature),
        })
    }

    /// One signer that a rule has judged, as JSON.
    pub(crate) fn judged_json(&self, judged: &Judged) -> Value {
        let signer = &judged.signer;
        let mut value = match &judged.verified {
            Some(verified) => self.signer_json(verified),
            None => json!({
                "subject": signer.certificate.subject().to_string(),
                "issuer": signer.certificate.issuer().to_string(),
                "serial": hex::encode(signer.certificate.serial()),
                "algorithm": format!("{:?}", signer.algorithm),
                "digest": signer.digest.name,
                "signing_time": signer.signing_time.map(rfc3339),
                "certificate_not_after": rfc3339(signer.certificate.not_after()),
            }),
        };
        if let Value::Object(members) = &mut value {
            members.insert("counts".into(), json!(judged.counts()));
            members.insert("against".into(), json!(judged.against));
            members.insert("warnings".into(), json!(judged.warnings));
            members.insert("timestamps".into(), time::tokens_json(&judged.tokens, self));
            if let Some(reason) = &judged.lacks_timestamps {
                members.insert("lacks_timestamps".into(), json!(reason));
            }
        }
        value
    }

    fn revocation_json(&self, statuses: &[verify::Status], holder: Holder) -> Value {
        let certificates: Vec<_> = statuses
            .iter()
            .map(|status| {
                let subject = status.certificate.subject().to_string();
                match &status.standing {
                    Standing::Exempt => json!({ "subject": subject, "status": "exempt" }),
                    Standing::Unknown(why) => {
                        json!({ "subject": subject, "status": "unknown", "reason": why })
                    }
                    Standing::Known { as_of, later, .. } => json!({
                        "subject": subject,
                        "status": if later.is_some() { "revoked later" } else { "good" },
                        "as_of": rfc3339(*as_of),
                        "source": self.source(status, holder),
                        "revoked_at": later.map(|revoked| rfc3339(revoked.at)),
                        "reason": later.map(|revoked| revoked.reason.rfc_name),
                    }),
                }
            })
            .collect();
        json!({ "status": summary(statuses), "certificates": certificates })
    }

    /// Where the evidence about a certificate came from, in words.
    fn source(&self, status: &verify::Status, holder: Holder) -> Option<String> {
        Some(match status.evidence? {
            verify::Evidence::Embedded(Proof::Crl(_)) => format!("CRL in the {}", holder.name()),
            verify::Evidence::Embedded(Proof::Ocsp(_)) => {
                format!("OCSP response in the {}", holder.name())
            }
            verify::Evidence::Given(Proof::Crl(index)) => {
                format!("CRL {}", self.evidence.crl_sources.get(index)?)
            }
            verify::Evidence::Given(Proof::Ocsp(index)) => {
                format!("OCSP response {}", self.evidence.ocsp_sources.get(index)?)
            }
        })
    }

    /// What is known about revocation, in words for the end of a line.
    pub(crate) fn revocation_text(&self, statuses: &[verify::Status], holder: Holder) -> String {
        let unknown: Vec<_> = statuses
            .iter()
            .filter_map(|status| match &status.standing {
                Standing::Unknown(why) => {
                    Some(format!("\"{}\" ({why})", status.certificate.subject()))
                }
                _ => None,
            })
            .collect();
        let known = statuses.iter().find_map(|status| match &status.standing {
            Standing::Known { as_of, later: None, .. } => Some((status, *as_of)),
            _ => None,
        });
        let later = statuses.iter().find_map(|status| match &status.standing {
            Standing::Known { later: Some(revoked), .. } => Some((status, revoked)),
            _ => None,
        });
        let later_text = |(status, revoked): (&verify::Status, &Revoked)| {
            format!(
                "\"{}\" was revoked after that, at {revoked}, by the {}",
                status.certificate.subject(),
                self.source(status, holder).unwrap_or_default()
            )
        };
        match summary(statuses) {
            NOT_CHECKED => "revocation not checked".to_owned(),
            UNKNOWN => {
                let unknown = format!("revocation not known of {}", unknown.join(", "));
                match later {
                    Some(later) => format!("{}; {unknown}", later_text(later)),
                    None => unknown,
                }
            }
            _ => match (later, known) {
                (Some(later), _) => later_text(later),
                (None, Some((status, as_of))) => format!(
                    "not revoked as of {}, by the {}",
                    rfc3339(as_of),
                    self.source(status, holder).unwrap_or_default()
                ),
                (None, None) => "never revoked by its CA".to_owned(),
            },
        }
    }
}

fn refused(path: &Path, error: VerifyError) -> Failure {
    let failure = Failure::file(path, &error).code(REFUSED);
    match error {
        VerifyError::Path(PathError::UnknownIssuer { .. }) => failure
            .hint("give the certificates in between with --certificates, the roots with --trust"),
        VerifyError::Path(PathError::RevocationUnknown(_)) => failure
            .hint("give CRLs with --crl or OCSP responses with --ocsp, or fetch them with --fetch"),
        _ => failure,
    }
}

/// The signers of a message that was refused, as they claim to be. Nothing about them is verified.
pub(crate) fn claimed_json(signature: &[u8]) -> Vec<Value> {
    let Ok(message) = SignedMessage::parse(signature) else { return Vec::new() };
    let claims = message.claims();
    let claim = |claim: &verify::Claim| {
        json!({
            "subject": claim.certificate.as_ref().map(|found| found.subject().to_string()),
            "issuer": claim.certificate.as_ref().map(|found| found.issuer().to_string()),
            "serial": claim.certificate.as_ref().map(|found| hex::encode(found.serial())),
            "algorithm": outlast_pki::describe::algorithm_name(claim.signature),
            "digest": outlast_pki::describe::algorithm_name(claim.digest),
            "signing_time": claim.signing_time.map(rfc3339),
            "counts": false,
        })
    };
    claims.iter().map(claim).collect()
}

/// No status was asked for, or nothing says anything about one.
pub(crate) const NOT_CHECKED: &str = "not checked";
const UNKNOWN: &str = "unknown";

/// What is known about the revocation of a chain, in a word.
pub(crate) fn summary(statuses: &[verify::Status]) -> &'static str {
    let is_unknown = |status: &&verify::Status| matches!(status.standing, Standing::Unknown(_));
    let later = statuses
        .iter()
        .any(|status| matches!(status.standing, Standing::Known { later: Some(_), .. }));
    match statuses.iter().filter(is_unknown).count() {
        count if count == statuses.len() => NOT_CHECKED,
        0 if later => "revoked later",
        0 => "good",
        _ => UNKNOWN,
    }
}
