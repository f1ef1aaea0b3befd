//! Evidence records beside signatures: `FILE.ers` covers FILE and `FILE.p7s` together (RFC 4998).

use std::path::{Path, PathBuf};

use indicatif::ProgressBar;
use outlast_crypto::digests::Digest;
use outlast_pki::cms::MAX_MESSAGE_LEN;
use outlast_pki::cms::verify::SignedMessage;
use outlast_pki::evidence_record::tree::Tree;
use outlast_pki::evidence_record::{self, EvidenceRecord};
use outlast_pki::seen::Seen;
use outlast_pki::time::rfc3339;
use outlast_pki::timestamp::{Imprint, Token};
use outlast_pki::trusted_time::due::{self, Due};
use outlast_pki::trusted_time::{Authority, Trust};
use outlast_pki::validate::Revocation;

use crate::failure::{Failure, REFUSED};
use crate::timestamping::{Client, Taken};
use crate::{digest, files};

/// Extension of evidence records.
const EXTENSION: &str = "ers";

/// Digest of new records: RFC 9882 prefers SHA-512, too.
const USUAL: &str = "sha512";

/// A signature with its file and the place of its evidence record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Item {
    /// `FILE.p7s`
    pub(crate) signature: PathBuf,
    /// FILE
    pub(crate) file: PathBuf,
    /// `FILE.ers`
    pub(crate) record: PathBuf,
}

/// Path of the evidence record of a signature.
pub(crate) fn record_path(signature: &Path) -> PathBuf {
    match signature.extension().is_some_and(|kind| kind == "p7s") {
        true => signature.with_extension(EXTENSION),
        false => {
            let mut name = signature.as_os_str().to_owned();
            name.push(".");
            name.push(EXTENSION);
            PathBuf::from(name)
        }
    }
}

impl Item {
    /// The item of a signature; its file is beside it.
    pub(crate) fn of(signature: &Path) -> Result<Self, Failure> {
        if signature.extension().is_none_or(|kind| kind != "p7s") {
            return Err(Failure::file(signature, &"it is not named FILE.p7s")
                .hint("name the signature, or the folder with it; its file must be beside it"));
        }
        let mut file = signature.with_extension("");
        // FILE.classical.p7s is FILE's, too.
        if !file.exists() && file.extension().is_some_and(|kind| kind == "classical") {
            file.set_extension("");
        }
        Ok(Self { signature: signature.to_path_buf(), file, record: record_path(signature) })
    }
}

/// An evidence record in a file, if there is one.
pub(crate) fn read_record(path: &Path) -> Result<Option<EvidenceRecord>, Failure> {
    if !files::exists(path)? {
        return Ok(None);
    }
    let bytes = files::read(path, evidence_record::MAX_LEN)?;
    let record =
        EvidenceRecord::parse(&bytes).map_err(|error| Failure::file(path, &error).code(REFUSED))?;
    Ok(Some(record))
}

/// The digests of a file and its signature, for each of a record's digests: see [`EvidenceRecord::links`].
pub(crate) fn objects(
    record: &EvidenceRecord,
    file: &Path,
    signature: &[u8],
    progress: &ProgressBar,
) -> Result<Vec<Vec<Vec<u8>>>, Failure> {
    let hashes = Hashes::of(file, signature, record.digests(), progress)?;
    Ok(record.digests().iter().map(|row| hashes.under(row)).collect())
}

/// The digests of a file and its signature.
struct Hashes {
    rows: Vec<&'static Digest>,
    of_file: Vec<Vec<u8>>,
    of_signature: Vec<Vec<u8>>,
}

impl Hashes {
    fn of(
        file: &Path,
        signature: &[u8],
        digests: &[&'static Digest],
        progress: &ProgressBar,
    ) -> Result<Self, Failure> {
        let mut rows: Vec<&'static Digest> = Vec::new();
        for digest in digests {
            if !rows.iter().any(|known| known.oid == digest.oid) {
                rows.push(digest);
            }
        }
        let of_file = digest::file(file, &rows, progress)?;
        let of_signature = rows.iter().map(|row| row.digest(signature)).collect();
        Ok(Self { rows, of_file, of_signature })
    }

    fn under(&self, digest: &Digest) -> Vec<Vec<u8>> {
        let at = self.rows.iter().position(|row| row.oid == digest.oid);
        let of = |list: &Vec<Vec<u8>>| at.and_then(|at| list.get(at)).cloned();
        of(&self.of_file).into_iter().chain(of(&self.of_signature)).collect()
    }
}

/// The evidence of a signature as it is.
pub(crate) struct State {
    item: Item,
    signature: Vec<u8>,
    record: Option<EvidenceRecord>,
    /// The last moment for a renewal; `None` if nothing says so.
    pub(crate) due: Option<Due>,
}

impl State {
    /// Reads a signature and its record. Nothing is verified.
    pub(crate) fn read(item: &Item) -> Result<Self, Failure> {
        let signature = files::read(&item.signature, MAX_MESSAGE_LEN)?;
        let message = SignedMessage::parse(&signature)
            .map_err(|error| Failure::file(&item.signature, &error).code(REFUSED))?;
        std::fs::metadata(&item.file).map_err(|error| files::io_failure(&item.file, &error))?;
        let record = read_record(&item.record)?;
        let due = match &record {
            Some(record) => due::of_record(record),
            None => due::of_signature(&message),
        };
        Ok(Self { item: item.clone(), signature, record, due })
    }

    /// Whether there is a record already.
    pub(crate) fn has_record(&self) -> bool {
        self.record.is_some()
    }

    /// Whether something ends within so many days. What says nothing is due.
    pub(crate) fn is_due(&self, now: i64, days: i64) -> bool {
        let limit = now.saturating_add(days.saturating_mul(86_400));
        self.due.as_ref().is_none_or(|due| due.at <= limit)
    }

    /// Checks what is there, and says what a new timestamp must cover.
    pub(crate) fn plan(
        self,
        wanted: Option<&'static Digest>,
        roots: Option<&[Vec<u8>]>,
        now: i64,
        progress: &ProgressBar,
    ) -> Result<Plan, Failure> {
        let own = self.record.as_ref().and_then(|record| record.digests().last().copied());
        let digest = wanted
            .or(own)
            .or_else(|| Digest::by_name(USUAL))
            .ok_or_else(|| Failure::new("there is no digest for an evidence record"))?;
        let mut rows = vec![digest];
        rows.extend(self.record.iter().flat_map(EvidenceRecord::digests));
        let hashes = Hashes::of(&self.item.file, &self.signature, &rows, progress)?;
        let data = hashes.under(digest);
        let Some(record) = self.record else {
            return Ok(Plan { item: self.item, digest, covers: data, step: Step::New, hashes });
        };
        let refused = |reason: String| {
            Failure::file(&self.item.record, &reason).code(REFUSED).hint(
                "a renewal would not repair it; move it away to begin new evidence from today on",
            )
        };
        let objects: Vec<_> = record.digests().iter().map(|row| hashes.under(row)).collect();
        hold(&record, &objects, roots, now).map_err(refused)?;
        let is_same = own.is_some_and(|own| own.oid == digest.oid);
        let covers = match is_same {
            true => record.tokens_to_cover(),
            false => record.data_to_cover(digest, &data),
        };
        let covers = covers.map_err(|error| refused(error.to_string()))?;
        let step = if is_same { Step::Timestamp(record) } else { Step::HashTree(record) };
        Ok(Plan { item: self.item, digest, covers, step, hashes })
    }
}

/// Refuses a record that does not hold: with roots completely, otherwise as far as it is possible without.
fn hold(
    record: &EvidenceRecord,
    objects: &[Vec<Vec<u8>>],
    roots: Option<&[Vec<u8>]>,
    now: i64,
) -> Result<(), String> {
    if let Some(roots) = roots {
        let authorities = [Authority::Roots(roots.to_vec())];
        let seen = Seen::default().for_message();
        let trust = Trust {
            authorities: &authorities,
            least: 1,
            policies: &[],
            certificates: &[],
            now,
            holds_at: now,
            revocation: Revocation::IfPresent,
            crls: &[],
            ocsp: &[],
            seen: Some(&seen),
            suits: &|_, _| None,
        };
        let held = trust.evidence(record, objects);
        return held.map(|_| ()).map_err(|refusal| refusal.reason);
    }
    let links = record.links(objects).map_err(|error| error.to_string())?;
    for (index, link) in links.iter().enumerate() {
        let check = || -> Result<(), String> {
            let token = Token::parse(&link.token).map_err(|error| error.to_string())?;
            let found = link.imprints.iter().filter_map(|value| {
                let imprint = Imprint::new(link.digest, value).ok()?;
                Some(token.authenticate(&imprint, &[]))
            });
            let mut error = None;
            for outcome in found {
                match outcome {
                    Ok(_) => return Ok(()),
                    Err(reason) => error = Some(reason.to_string()),
                }
            }
            Err(error.unwrap_or_else(|| "it is over nothing".to_owned()))
        };
        check().map_err(|reason| format!("timestamp {} in it: {reason}", index + 1))?;
    }
    match due::of_record(record)
        .filter(|due| due.at < now && due.because.starts_with("the certificate"))
    {
        Some(due) => Err(format!("it was not renewed before {}", due.because)),
        None => Ok(()),
    }
}

/// A record to be made or renewed.
pub(crate) struct Plan {
    pub(crate) item: Item,
    pub(crate) digest: &'static Digest,
    covers: Vec<Vec<u8>>,
    step: Step,
    hashes: Hashes,
}

enum Step {
    New,
    /// A timestamp over those of the last chain.
    Timestamp(EvidenceRecord),
    /// A new chain with another digest, over the data and all that was before.
    HashTree(EvidenceRecord),
}

impl Plan {
    /// What is done, for people and programs.
    pub(crate) fn word(&self) -> &'static str {
        match self.step {
            Step::New => "new",
            Step::Timestamp(_) => "timestamp renewal",
            Step::HashTree(_) => "hash-tree renewal",
        }
    }

    /// Adds the token, checks the whole once more, and writes it.
    fn finish(self, path: &evidence_record::tree::Path, token: &[u8]) -> Result<Done, Failure> {
        let word = self.word();
        let Self { item, digest, step, hashes, .. } = self;
        let failed = |error: evidence_record::EvidenceError| Failure::file(&item.record, &error);
        let record = match step {
            Step::New => EvidenceRecord::new(digest, path, token),
            Step::Timestamp(mut record) => record.renew(path, token).map(|()| record),
            Step::HashTree(mut record) => record.rehash(digest, path, token).map(|()| record),
        };
        let record = record.map_err(failed)?;
        let der = record.to_der().map_err(failed)?;
        let read = EvidenceRecord::parse(&der).map_err(failed)?;
        let objects: Vec<_> = read.digests().iter().map(|row| hashes.under(row)).collect();
        read.links(&objects).map_err(failed)?;
        files::write(&item.record, &der, 0o644)?;
        Ok(Done { due: due::of_record(&read), count: read.len(), word })
    }
}

/// A record that was written.
pub(crate) struct Done {
    /// What was done.
    pub(crate) word: &'static str,
    /// Archive timestamps in it.
    pub(crate) count: usize,
    /// The last moment for the next renewal.
    pub(crate) due: Option<Due>,
}

impl Done {
    /// Until when it holds, for people.
    pub(crate) fn until(&self) -> String {
        match &self.due {
            Some(due) => format!("holds until {}: {}", rfc3339(due.at), due.because),
            None => "holds for an unknown time".to_owned(),
        }
    }
}

/// What became of a plan.
type Outcome = (Item, Result<Done, Failure>);

/// Renews all plans, with one timestamp for each digest.
pub(crate) async fn renew(
    plans: Vec<Plan>,
    client: &Client,
) -> Result<(Vec<Outcome>, Vec<Taken>), Failure> {
    let Some(url) = client.urls().first() else {
        return Err(
            Failure::new("no time-stamping authority is named").hint("give --timestamp URL")
        );
    };
    let mut by_digest: Vec<Vec<Plan>> = Vec::new();
    for plan in plans {
        let same = |group: &&mut Vec<Plan>| {
            group.first().is_some_and(|first| first.digest.oid == plan.digest.oid)
        };
        match by_digest.iter_mut().find(same) {
            Some(group) => group.push(plan),
            None => by_digest.push(vec![plan]),
        }
    }
    let (mut done, mut taken) = (Vec::new(), Vec::new());
    for group in by_digest {
        let Some(digest) = group.first().map(|plan| plan.digest) else { continue };
        let covers: Vec<_> = group.iter().map(|plan| plan.covers.clone()).collect();
        let tree = Tree::new(digest, &covers)
            .ok_or_else(|| Failure::new("there is nothing to timestamp"))?;
        let token = client.ask(url, Imprint::new(digest, &tree.root)?).await?;
        for (plan, path) in group.into_iter().zip(&tree.paths) {
            let item = plan.item.clone();
            done.push((item, plan.finish(path, &token.token)));
        }
        taken.push(token);
    }
    Ok((done, taken))
}
