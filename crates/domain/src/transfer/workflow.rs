//! Workflows: what happens to a file after it was uploaded.
//!
//! Source: Transfer Family User Guide, "AWS Transfer Family managed workflows". A workflow is never changed; a server names the one
//! that begins when an upload has ended, and the role that it runs with. Each execution has the steps of its beginning.

use serde::{Deserialize, Serialize};

use super::tag_set::{self, Tags};
use super::{TransferError, WORKFLOW, is_id, new_id};
use crate::arn::{Arn, Scope};
use crate::identity::{Permit, action};
use crate::work::{Page, Work};
use crate::{Fault, limits, quotas};

/// What the ids of workflows begin with.
const PREFIX: &str = "w-";

/// Source of a step: the file as it was uploaded.
const ORIGINAL: &str = "${original.file}";
/// Source of a step: the file that the step before has made or used. The default.
const PREVIOUS: &str = "${previous.file}";

/// The variables of a destination.
const USER_NAME: &str = "${transfer:UserName}";
const UPLOAD_DATE: &str = "${transfer:UploadDate}";

/// A workflow as stored.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) id: String,
    pub(super) description: Option<String>,
    pub(super) steps: Vec<Step>,
    pub(super) on_exception: Vec<Step>,
    pub(super) log_destinations: Vec<String>,
    pub(super) tags: Tags,
    created_ms: i64,
}

/// A step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// `Name`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// `SourceFileLocation`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// What it does.
    pub what: Deed,
}

/// What a step does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Deed {
    /// Copies the file.
    Copy {
        /// Bucket of the copy.
        bucket: String,
        /// Its key; one that ends with a slash, or is empty, is a folder, in which the copy has the name of the file.
        key: String,
        /// `OverwriteExisting`
        overwrite: Option<bool>,
    },
    /// Gives the file these tags, in place of those that it has.
    Tag(Vec<(String, String)>),
    /// Removes the file.
    Delete,
    /// Calls a function, which says by `SendWorkflowStepState` how it went.
    Custom {
        /// ARN of the function.
        target: String,
        /// `TimeoutSeconds`
        timeout_seconds: Option<u32>,
    },
}

impl Deed {
    /// The types of steps that are served, in AWS's words.
    pub const NAMES: [&'static str; 4] = ["COPY", "TAG", "DELETE", "CUSTOM"];

    /// `Type`
    pub fn name(&self) -> &'static str {
        match self {
            Self::Copy { .. } => "COPY",
            Self::Tag(_) => "TAG",
            Self::Delete => "DELETE",
            Self::Custom { .. } => "CUSTOM",
        }
    }
}

impl Step {
    /// Whether it uses the file as it was uploaded, whatever the steps before have made.
    pub(super) fn uses_original(&self) -> bool {
        self.source.as_deref() == Some(ORIGINAL)
    }

    fn check(&self, scope: &Scope) -> Result<(), TransferError> {
        if let Some(source) =
            self.source.as_deref().filter(|text| ![ORIGINAL, PREVIOUS].contains(text))
        {
            return Err(TransferError::invalid(format!(
                "SourceFileLocation is {PREVIOUS} or {ORIGINAL}, and not {source}"
            )));
        }
        match &self.what {
            Deed::Copy { key, .. } => check_key(key),
            Deed::Tag(tags) => {
                let mut keys: Vec<_> = tags.iter().map(|(key, _)| key).collect();
                keys.sort_unstable();
                match keys.windows(2).find(|pair| pair[0] == pair[1]) {
                    Some(pair) => Err(TransferError::invalid(format!(
                        "TagStepDetails has the key {} twice",
                        pair[0]
                    ))),
                    None => Ok(()),
                }
            }
            Deed::Delete => Ok(()),
            Deed::Custom { target, .. } => {
                // "Cross-account and cross-Region AWS Lambda functions are not supported."
                let arn = Arn::parse(target).filter(|arn| arn.is_in(scope));
                match arn.is_some_and(|arn| arn.of("lambda", "function:").is_some()) {
                    true => Ok(()),
                    false => Err(TransferError::invalid(format!(
                        "The target of a custom step must be the ARN of a function of account {} in {}",
                        scope.account, scope.region
                    ))),
                }
            }
        }
    }
}

/// Checks the key of a destination.
fn check_key(key: &str) -> Result<(), TransferError> {
    let plain = key.replace(USER_NAME, "user").replace(UPLOAD_DATE, "date");
    if plain.contains("${") {
        return Err(TransferError::invalid(format!(
            "The key of a destination knows the variables {USER_NAME} and {UPLOAD_DATE} only"
        )));
    }
    let path = plain.strip_suffix('/').unwrap_or(&plain);
    let is_odd = |name: &str| name.is_empty() || name == "." || name == ".." || name.contains('\0');
    if !plain.is_empty() && path.split('/').any(is_odd) {
        return Err(TransferError::invalid(
            "The key of a destination is a path without empty names, . and ..; a folder ends with one slash",
        ));
    }
    Ok(())
}

/// The key of a copy.
///
/// # Errors
/// It would be too long.
pub(super) fn destination(
    key: &str,
    source: &str,
    user: &str,
    uploaded_ms: i64,
) -> Result<String, String> {
    let date = time::OffsetDateTime::from_unix_timestamp(uploaded_ms.div_euclid(1000));
    let date = date.map(|at| at.date().to_string()).unwrap_or_default();
    let mut made = key.replace(USER_NAME, user).replace(UPLOAD_DATE, &date);
    if made.is_empty() || made.ends_with('/') {
        made.push_str(source.rsplit('/').next().unwrap_or(source));
    }
    if made.len() > limits::MAX_FILE_KEY {
        return Err(format!(
            "the key of the copy would have more than {} bytes",
            limits::MAX_FILE_KEY
        ));
    }
    Ok(made)
}

/// Properties of a new workflow.
pub struct NewWorkflow {
    /// `Description`
    pub description: Option<String>,
    /// `Steps`
    pub steps: Vec<Step>,
    /// `OnExceptionSteps`
    pub on_exception: Vec<Step>,
    /// `StructuredLogDestinations`
    pub log_destinations: Vec<String>,
    /// Tags.
    pub tags: Tags,
}

/// A workflow that was found.
#[derive(Debug, Clone)]
pub struct Workflow {
    scope: Scope,
    pub(super) record: Record,
}

impl Workflow {
    /// Id, `w-` and 17 hexadecimal digits.
    pub fn id(&self) -> &str {
        &self.record.id
    }

    /// ARN.
    pub fn arn(&self) -> String {
        WORKFLOW.arn(&self.scope, &self.record.id)
    }

    /// Description.
    pub fn description(&self) -> Option<&str> {
        self.record.description.as_deref()
    }

    /// `Steps`
    pub fn steps(&self) -> &[Step] {
        &self.record.steps
    }

    /// `OnExceptionSteps`
    pub fn on_exception(&self) -> &[Step] {
        &self.record.on_exception
    }

    /// `StructuredLogDestinations`
    pub fn log_destinations(&self) -> &[String] {
        &self.record.log_destinations
    }

    /// Tags.
    pub fn tags(&self) -> &Tags {
        &self.record.tags
    }

    /// Account and Region.
    pub fn scope(&self) -> &Scope {
        &self.scope
    }
}

/// Creates a workflow.
pub fn create_workflow(
    work: &mut Work<'_>,
    scope: &Scope,
    new: NewWorkflow,
    permit: &Permit<action::transfer::CreateWorkflow>,
) -> Result<Workflow, TransferError> {
    permit.opens(&WORKFLOW.arn(scope, "*"))?;
    tag_set::check(&new.tags)?;
    if new.steps.is_empty() {
        return Err(TransferError::invalid("A workflow has at least one step"));
    }
    new.steps.iter().chain(&new.on_exception).try_for_each(|step| step.check(scope))?;
    work.admit::<TransferError>(&quotas::WORKFLOWS, &[&scope.account, &scope.region])?;
    let record = Record {
        id: new_id(PREFIX)?,
        description: new.description,
        steps: new.steps,
        on_exception: new.on_exception,
        log_destinations: new.log_destinations,
        tags: new.tags,
        created_ms: work.now_ms(),
    };
    let workflow = Workflow { scope: scope.clone(), record };
    save(work, &workflow)?;
    Ok(workflow)
}

/// Finds a workflow by its id.
pub fn find_workflow(
    work: &mut Work<'_>,
    scope: &Scope,
    id: &str,
) -> Result<Workflow, TransferError> {
    let missing = || TransferError::not_found("Unknown workflow", "Workflow", id);
    if !is_id(id, PREFIX) {
        return Err(missing());
    }
    let record = work.get::<Record>(&WORKFLOW.record_key(scope, id))?.ok_or_else(missing)?;
    Ok(Workflow { scope: scope.clone(), record })
}

/// Lists workflows, after the marker of the previous page.
pub fn workflows(
    work: &Work<'_>,
    scope: &Scope,
    marker: Option<&str>,
    limit: usize,
    permit: &Permit<action::transfer::ListWorkflows>,
) -> Result<Page<Workflow>, TransferError> {
    permit.opens(&WORKFLOW.arn(scope, "*"))?;
    let page = work.page::<Record>(&WORKFLOW.prefix(scope), marker, limit)?;
    let of = |record| Workflow { scope: scope.clone(), record };
    Ok(Page { items: page.items.into_iter().map(of).collect(), next: page.next })
}

/// Checks that a workflow which a server is to name exists, and lets a deletion at the same time fail.
pub(super) fn attach(work: &mut Work<'_>, scope: &Scope, id: &str) -> Result<(), TransferError> {
    match find_workflow(work, scope, id) {
        Ok(found) => Ok(save(work, &found)?),
        Err(TransferError::NotFound(_)) => {
            Err(TransferError::invalid(format!("There is no workflow {id}")))
        }
        Err(error) => Err(error),
    }
}

/// Whether this is an id that a workflow could have.
pub(super) fn is_workflow_id(text: &str) -> bool {
    is_id(text, PREFIX)
}

/// Writes a workflow.
pub(super) fn save(work: &mut Work<'_>, workflow: &Workflow) -> Result<(), Fault> {
    work.put(&WORKFLOW.record_key(&workflow.scope, workflow.id()), &workflow.record)
}

/// The workflows that a server begins, as stored.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attached {
    /// When a file was uploaded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_upload: Option<Attachment>,
    /// When the connection was lost while a file was open for writing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_partial_upload: Option<Attachment>,
}

/// A workflow, and the role that it runs with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attachment {
    /// Id of the workflow.
    pub workflow: String,
    /// Canonical ARN of the role.
    pub role: String,
}

impl Attached {
    /// Both.
    pub fn all(&self) -> impl Iterator<Item = &Attachment> {
        self.on_upload.iter().chain(&self.on_partial_upload)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.all().next().is_none()
    }

    pub(super) fn names(&self, workflow: &str) -> bool {
        self.all().any(|attached| attached.workflow == workflow)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_destination_is_a_file_or_a_folder() {
        // 2022-02-01, AWS's example.
        let at = 1_643_673_600_000;
        for (key, expected) in [
            ("test/", "test/a.txt"),
            ("test/today", "test/today"),
            ("", "a.txt"),
            ("${transfer:UserName}/processed/", "richard-roe/processed/a.txt"),
            ("${transfer:UploadDate}/processed/x", "2022-02-01/processed/x"),
        ] {
            check_key(key).unwrap();
            assert_eq!(destination(key, "home/a.txt", "richard-roe", at).unwrap(), expected);
        }
        assert!(destination(&"x".repeat(1025), "a", "u", at).is_err());
    }

    #[test]
    fn a_destination_leads_nowhere_else() {
        for key in
            ["/", "/x", "a//b", "../x", "a/../b", "a/.", "./", "a//", "${transfer:HomeFolder}/"]
        {
            assert!(check_key(key).is_err(), "{key}");
        }
    }
}
