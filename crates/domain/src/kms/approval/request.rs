//! Requests for approval: made, found, judged, and gone some time after they have ended.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::files::{File, NewFile, check_together};
use super::rule::{Approver, Rule};
use super::statement::Statement;
use crate::arn::Scope;
use crate::identity::unique::unique_id;
use crate::identity::{Caller, Permit, action};
use crate::kms::record::Key;
use crate::kms::{KmsError, key};
use crate::quotas;
use crate::work::{Page, Sweep, Swept, Work};
use crate::{Fault, ids, limits};

/// A request for approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// A UUID.
    pub id: String,
    /// ARN of the key; of several that sign the same files together, the first.
    pub key: String,
    /// ARN of the user or session that made it.
    pub requester: String,
    /// Unique ids of that user or of the session's role, and of the user who began the chain of sessions.
    requester_ids: Vec<String>,
    /// The requester's reason; empty if there is none.
    pub reason: String,
    /// Milliseconds since 1970.
    pub created_ms: i64,
    /// When it ends at the latest, milliseconds since 1970: a rule that has become shorter ends it earlier.
    pub expires_ms: i64,
    /// What is asked for.
    pub subject: Subject,
    /// The approvals, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approvals: Vec<Approval>,
    /// The refusal that has ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub denial: Option<Denial>,
}

/// What a request asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Subject {
    /// Signatures.
    Files(Vec<File>),
    /// A new rule for the key, or none.
    Rule {
        /// The rule.
        rule: Option<Rule>,
        /// When the change was made, milliseconds since 1970.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        done_ms: Option<i64>,
    },
}

/// An approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approval {
    /// ARN of the user or session.
    pub principal: String,
    /// Unique ids of that user or of the session's role, and of the user who began the chain of sessions.
    pub(super) ids: Vec<String>,
    /// Milliseconds since 1970.
    pub at_ms: i64,
    /// The approver's signature, if the rule named a key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signed: Option<Signed>,
}

/// An approver's signature over [`approval_message`](super::approval_message), which was verified.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signed {
    /// KMS `SigningAlgorithm`.
    pub algorithm: String,
    /// In hexadecimal.
    pub signature: String,
    /// DER `SubjectPublicKeyInfo` in hexadecimal.
    pub public_key: String,
}

/// A refusal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Denial {
    /// ARN of the user or session.
    pub principal: String,
    /// Milliseconds since 1970.
    pub at_ms: i64,
    /// Its reason; empty if there is none.
    pub reason: String,
}

/// State of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Waits for approvals.
    Pending,
    /// Enough approvals count.
    Approved,
    /// Everything is signed, or the change is made.
    Finished,
    /// Denied, or withdrawn.
    Denied,
    /// Its time is over, or one of its keys has no rule any more.
    Expired,
}

impl State {
    /// Name in answers.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pending => "PENDING",
            Self::Approved => "APPROVED",
            Self::Finished => "FINISHED",
            Self::Denied => "DENIED",
            Self::Expired => "EXPIRED",
        }
    }
}

/// A request as the present rules of its keys see it.
#[derive(Debug, Clone)]
pub struct Verdict {
    /// The state.
    pub state: State,
    /// When it ends, milliseconds since 1970.
    pub ends_ms: i64,
    /// What each key's rule makes of it, the request's first key first.
    pub keys: Vec<KeyVerdict>,
}

/// A request as the present rule of one of its keys sees it.
#[derive(Debug, Clone)]
pub struct KeyVerdict {
    /// ARN of the key.
    pub key: String,
    /// For each approval, whether it counts.
    pub counts: Vec<bool>,
    /// The key's rule, if it has one.
    pub rule: Option<Rule>,
}

impl KeyVerdict {
    /// Number of approvals that count.
    pub fn counted(&self) -> usize {
        self.counts.iter().filter(|counts| **counts).count()
    }

    /// Whether the approval at this index counts.
    pub(super) fn counts_at(&self, index: usize) -> bool {
        self.counts.get(index) == Some(&true)
    }

    /// The rule's entry for a principal.
    pub(super) fn approver(&self, principal_id: &str) -> Option<&Approver> {
        self.rule.as_ref()?.approver(principal_id)
    }

    fn is_satisfied(&self) -> bool {
        self.rule.as_ref().is_some_and(|rule| self.counted() >= rule.required)
    }
}

impl Verdict {
    /// A key that too few approvals count for: this one, or else another.
    pub(super) fn lacking(&self, key: &str) -> Option<&KeyVerdict> {
        let lacking = || self.keys.iter().filter(|one| !one.is_satisfied());
        lacking().find(|one| one.key == key).or_else(|| lacking().next())
    }
}

impl Request {
    /// What approvers approve: SHA-256 of the request's [`Statement`] in hexadecimal.
    pub fn digest(&self, scope: &Scope) -> String {
        let lines = match &self.subject {
            Subject::Files(files) => {
                files.iter().map(|file| Statement::file(file.stated())).collect()
            }
            Subject::Rule { rule, .. } => vec![Statement::rule(rule.as_ref())],
        };
        Statement {
            request: &request_arn(scope, &self.id),
            key: &self.key,
            requester: &self.requester,
            expires: self.expires_ms.div_euclid(1000),
            reason: &self.reason,
            lines: &lines,
        }
        .digest()
    }

    /// Whether the user or role made it.
    pub(super) fn is_by(&self, principal_id: &str) -> bool {
        self.requester_ids.first().is_some_and(|id| id == principal_id)
    }

    fn is_finished(&self) -> bool {
        match &self.subject {
            Subject::Files(files) => files.iter().all(|file| file.signed_ms.is_some()),
            Subject::Rule { done_ms, .. } => done_ms.is_some(),
        }
    }

    pub(super) fn save(&self, work: &mut Work<'_>, scope: &Scope) -> Result<(), Fault> {
        work.put(&request_record_key(scope, &self.id), self)
    }

    /// ARNs of its keys, the first one first.
    fn keys(&self) -> Vec<&str> {
        let mut all = vec![self.key.as_str()];
        if let Subject::Files(files) = &self.subject {
            for key in files.iter().filter_map(|file| file.key.as_deref()) {
                if !all.contains(&key) {
                    all.push(key);
                }
            }
        }
        all
    }

    /// Keys of the index entries of what it asks for.
    fn index_keys(&self, scope: &Scope) -> Vec<String> {
        let requester = self.requester_ids.first().map_or("", String::as_str);
        let of = |key: &str, id: &str| {
            index_key(scope, key.rsplit('/').next().unwrap_or_default(), requester, id)
        };
        match &self.subject {
            Subject::Files(files) => {
                files.iter().map(|file| of(file.signed_by(&self.key), &file.id)).collect()
            }
            Subject::Rule { rule, .. } => {
                vec![of(&self.key, &super::rule::change_id(rule.as_ref()))]
            }
        }
    }
}

/// The unique ids that a caller counts as.
pub(super) fn ids_of(caller: &Caller) -> Vec<String> {
    let mut ids = vec![caller.principal.principal_id().to_owned()];
    ids.extend(caller.started_by.clone().filter(|id| !ids.contains(id)));
    ids
}

/// Which request something is part of.
#[derive(Debug, Serialize, Deserialize)]
struct Asked {
    request: String,
}

/// ARN of a request.
pub fn request_arn(scope: &Scope, id: &str) -> String {
    scope.arn("outlast", &format!("signing-request/{id}"))
}

/// The key as the resource of what concerns its approvals.
pub fn approval_arn(key: &Key) -> String {
    key.scope().arn("outlast", &format!("key/{}", key.id()))
}

/// What a key is asked to sign.
pub struct Wanted<'a> {
    /// The key.
    pub key: &'a Key,
    /// The files, with its messages.
    pub files: Vec<NewFile>,
    /// The caller may ask for its signatures.
    pub permit: &'a Permit<action::outlast::RequestSigningApproval>,
}

/// Asks the approvers of a key for signatures of these files; or of several keys, whose signatures of the same files belong
/// together. The rule of each key must be satisfied before any of them signs.
///
/// # Errors
/// [`KmsError::Validation`] if a message does not stand for its file, or a file is not there for every key.
pub fn request_approval(
    work: &mut Work<'_>,
    wanted: Vec<Wanted<'_>>,
    caller: &Caller,
    reason: String,
) -> Result<Request, KmsError> {
    if wanted.len() > limits::SIGNING_REQUEST_KEYS {
        return Err(KmsError::Validation(format!(
            "A request can name {} keys, and this one names {}.",
            limits::SIGNING_REQUEST_KEYS,
            wanted.len()
        )));
    }
    let (mut keys, mut checked) = (Vec::new(), Vec::new());
    let mut seen = BTreeSet::new();
    for Wanted { key, files, permit } in wanted {
        permit.opens(&approval_arn(key))?;
        key.require_enabled()?;
        let arn = key.arn();
        if keys.first().is_some_and(|first: &&Key| first.scope() != key.scope()) {
            return Err(KmsError::Validation(format!(
                "{arn} is of another account or Region than the request's first key."
            )));
        }
        if files.is_empty() {
            return Err(KmsError::Validation(format!("{arn} is named, and is to sign nothing.")));
        }
        let files =
            files.into_iter().map(|new| File::check(key, new)).collect::<Result<Vec<_>, _>>()?;
        if !files.iter().all(|file| seen.insert((arn.clone(), file.id.clone()))) {
            return Err(KmsError::Validation(
                "Two files of the request have the same message.".into(),
            ));
        }
        keys.push(key);
        checked.push((arn, files));
    }
    check_together(&checked)?;
    let mut all = Vec::new();
    for (index, (arn, files)) in checked.into_iter().enumerate() {
        let key = (index > 0).then_some(arn);
        all.extend(files.into_iter().map(|file| File { key: key.clone(), ..file }));
    }
    create(work, &keys, caller, Subject::Files(all), reason)
}

/// Makes a request, of all these keys. What it asks for must not be part of another one that the same principal has made and that can still be
/// used.
pub(super) fn create(
    work: &mut Work<'_>,
    keys: &[&Key],
    caller: &Caller,
    subject: Subject,
    reason: String,
) -> Result<Request, KmsError> {
    let nothing = || KmsError::Validation("The request names no key.".into());
    let key = *keys.first().ok_or_else(nothing)?;
    let mut valid_minutes = i64::MAX;
    for key in keys {
        let rule = key.approval_rule().ok_or_else(|| no_rule(key))?;
        valid_minutes = valid_minutes.min(rule.valid_minutes);
    }
    let scope = key.scope();
    work.admit::<KmsError>(&quotas::SIGNING_REQUESTS, &[&scope.account, &scope.region])?;
    let now_ms = work.now_ms();
    let request = Request {
        id: ids::uuid()?,
        key: key.arn(),
        requester: caller.principal.arn(),
        requester_ids: ids_of(caller),
        reason,
        created_ms: now_ms,
        expires_ms: now_ms + valid_minutes * 60_000,
        subject,
        approvals: Vec::new(),
        denial: None,
    };
    for record_key in request.index_keys(scope) {
        if let Some(asked) = work.get::<Asked>(&record_key)? {
            let known = work.get::<Request>(&request_record_key(scope, &asked.request))?;
            if let Some(known) = known
                && is_open(judge(work, scope, &known)?.state)
            {
                return Err(KmsError::AlreadyExists(format!(
                    "The request {} is for the same.",
                    known.id
                )));
            }
        }
        work.put(&record_key, &Asked { request: request.id.clone() })?;
    }
    request.save(work, scope)?;
    Ok(request)
}

fn no_rule(key: &Key) -> KmsError {
    KmsError::InvalidState(format!(
        "{} has no rule of approvals: it signs without them.",
        key.arn()
    ))
}

fn is_open(state: State) -> bool {
    matches!(state, State::Pending | State::Approved)
}

/// Finds a request by its id.
pub(super) fn find(work: &mut Work<'_>, scope: &Scope, id: &str) -> Result<Request, KmsError> {
    let found =
        ids::uuid_bytes(id).map(|_| work.get(&request_record_key(scope, id))).transpose()?;
    found.flatten().ok_or_else(|| {
        KmsError::NotFound(format!("The request '{}' does not exist.", request_arn(scope, id)))
    })
}

/// Finds a request by its id, for a caller who may read it.
pub fn shown(
    work: &mut Work<'_>,
    scope: &Scope,
    id: &str,
    permit: &Permit<action::outlast::GetSigningRequest>,
) -> Result<Request, KmsError> {
    permit.opens(&request_arn(scope, id))?;
    find(work, scope, id)
}

/// The rule of a key, for a caller who may read it.
pub fn rule_of<'a>(
    key: &'a Key,
    permit: &Permit<action::outlast::GetSigningApprovalRule>,
) -> Result<Option<&'a Rule>, Fault> {
    permit.opens(&approval_arn(key))?;
    Ok(key.approval_rule())
}

/// The request of a principal that something is part of.
pub(super) fn find_by(
    work: &mut Work<'_>,
    key: &Key,
    principal_id: &str,
    id: &str,
) -> Result<Option<Request>, Fault> {
    let record_key = index_key(key.scope(), key.id(), principal_id, id);
    let Some(asked) = work.get::<Asked>(&record_key)? else { return Ok(None) };
    work.get(&request_record_key(key.scope(), &asked.request))
}

/// A page of the requests of an account and Region, in order of their ids.
pub fn requests(
    work: &Work<'_>,
    scope: &Scope,
    after: Option<&str>,
    limit: usize,
    permit: &Permit<action::outlast::ListSigningRequests>,
) -> Result<Page<Request>, KmsError> {
    permit.opens(&request_arn(scope, "*"))?;
    Ok(work.page(&request_record_key(scope, ""), after, limit)?)
}

/// What the present rules of the request's keys make of a request.
pub fn judge(work: &mut Work<'_>, scope: &Scope, request: &Request) -> Result<Verdict, KmsError> {
    let mut keys = Vec::new();
    let mut ends_ms = request.expires_ms;
    for key in request.keys() {
        let rule = match key::find(work, scope, key) {
            Ok(key) => key.approval_rule().cloned(),
            Err(KmsError::NotFound(_)) => None,
            Err(error) => return Err(error),
        };
        let counts = match &rule {
            Some(rule) => {
                ends_ms = ends_ms.min(request.created_ms + rule.valid_minutes * 60_000);
                counts(work, rule, request)?
            }
            None => vec![false; request.approvals.len()],
        };
        keys.push(KeyVerdict { key: key.to_owned(), counts, rule });
    }
    let state = if request.is_finished() {
        State::Finished
    } else if request.denial.is_some() {
        State::Denied
    } else if keys.iter().any(|key| key.rule.is_none()) || work.now_ms() >= ends_ms {
        State::Expired
    } else if keys.iter().all(KeyVerdict::is_satisfied) {
        State::Approved
    } else {
        State::Pending
    };
    Ok(Verdict { state, ends_ms, keys })
}

/// Which approvals count: of a present approver that still exists, with the signature that the rule asks for, and not of a
/// person whose approval is counted already or who must not be counted.
fn counts(work: &mut Work<'_>, rule: &Rule, request: &Request) -> Result<Vec<bool>, Fault> {
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    if !rule.requester_may_approve {
        seen.extend(request.requester_ids.iter().map(String::as_str));
    }
    let mut all = Vec::with_capacity(request.approvals.len());
    for approval in &request.approvals {
        let approver = approval.ids.first().and_then(|id| rule.approver(id));
        let is_one = match approver {
            None => false,
            Some(approver) => {
                let key = approval.signed.as_ref().map(|signed| &signed.public_key);
                // Deleted, or deleted and made again under the same name: another principal.
                (approver.public_key.is_none() || approver.public_key.as_ref() == key)
                    && unique_id(work, &approver.principal)?.as_ref() == Some(&approver.id)
            }
        };
        let is_new = !approval.ids.iter().any(|id| seen.contains(id.as_str()));
        if is_one && is_new {
            seen.extend(approval.ids.iter().map(String::as_str));
        }
        all.push(is_one && is_new);
    }
    Ok(all)
}

/// Forgets requests a week after they have ended at the latest. The audit log keeps what was asked, approved and signed.
pub const FORGET_ENDED: Sweep = Sweep {
    find: |work, after, limit| {
        work.due("kms/signing-request/", after, limit, |request: &Request, now_ms| {
            is_over(request, now_ms)
        })
    },
    handle: forget,
};

fn is_over(request: &Request, now_ms: i64) -> bool {
    request.expires_ms + limits::SIGNING_REQUEST_KEPT_MS <= now_ms
}

fn forget(work: &mut Work<'_>, record_key: &str, swept: &mut Swept) -> Result<(), Fault> {
    let Some(request) = work.get::<Request>(record_key)? else { return Ok(()) };
    if !is_over(&request, work.now_ms()) {
        return Ok(());
    }
    let parts: Vec<_> = record_key.split('/').collect();
    let [_, _, account, region, _] = parts.as_slice() else {
        return Err(Fault::Damaged(record_key.to_owned()));
    };
    let scope = Scope { account: (*account).to_owned(), region: (*region).to_owned() };
    for entry in request.index_keys(&scope) {
        // A later request may have taken the entry over.
        if work.get::<Asked>(&entry)?.is_some_and(|asked| asked.request == request.id) {
            work.delete(&entry);
        }
    }
    work.delete(record_key);
    swept.done(&scope, request_arn(&scope, &request.id), "DeleteSigningRequest");
    Ok(())
}

fn request_record_key(scope: &Scope, id: &str) -> String {
    format!("kms/signing-request/{}/{}/{id}", scope.account, scope.region)
}

fn index_key(scope: &Scope, key: &str, requester: &str, id: &str) -> String {
    format!("kms/signing-message/{}/{}/{key}/{requester}/{id}", scope.account, scope.region)
}
