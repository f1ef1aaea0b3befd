//! Structures of workflows that several operations share.

use outlast_domain::arn::shown_in;
use outlast_domain::transfer::{
    self, Deed, Execution, StepResult, WORKFLOW, Workflow, WorkflowStep as Step,
};
use serde_json::{Map, Value};

use super::transfer::{DOMAIN, Tag, invalid, tag_list};
pub use crate::aws::transfer::{
    CopyStepDetails, CustomStepDetails, DeleteStepDetails, DescribedExecution, DescribedWorkflow,
    ExecutionError, ExecutionResults, ExecutionStepResult, FileLocation, InputFileLocation,
    ListedExecution, ListedWorkflow, LoggingConfiguration, S3FileLocation, S3InputFileLocation,
    S3Tag, ServiceMetadata, TagStepDetails, UserDetails, WorkflowStep,
};
use crate::call::Call;
use crate::wire::{ApiError, validate};

/// `OverwriteExisting`
pub const OVERWRITE: [&str; 2] = ["FALSE", "TRUE"];
/// The `Status` of a custom step that has succeeded.
pub const SUCCEEDED: &str = "SUCCESS";
/// The `Status` of one that has failed.
pub const FAILED: &str = "FAILURE";

/// Finds a workflow and notes it for the audit record.
pub fn find_workflow(call: &mut Call<'_>, id: &str) -> Result<Workflow, ApiError> {
    call.notes.parameter("workflowId", id);
    let found = transfer::find_workflow(&mut call.work, &call.scope, id)?;
    call.notes.resource(found.arn(), WORKFLOW.cloudtrail);
    Ok(found)
}

/// Reads the steps of a request.
pub fn read_steps(call: &Call<'_>, given: Vec<WorkflowStep>) -> Result<Vec<Step>, ApiError> {
    given.into_iter().map(|step| read_step(call, step)).collect()
}

fn read_step(call: &Call<'_>, given: WorkflowStep) -> Result<Step, ApiError> {
    let Some(kind) = given.kind else { return Err(invalid("A step needs a Type")) };
    if kind == "DECRYPT" || given.decrypt_step_details.is_some() {
        return Err(invalid(
            "Steps of type DECRYPT are not served: there is no PGP here. Let a custom step call a function that decrypts",
        ));
    }
    let details = (
        given.copy_step_details,
        given.tag_step_details,
        given.delete_step_details,
        given.custom_step_details,
    );
    let (name, source, what) = match (kind.as_str(), details) {
        ("COPY", (Some(copy), None, None, None)) => {
            let to = copy.destination_file_location.unwrap_or_default();
            if to.efs_file_location.is_some() {
                return Err(invalid(format!(
                    "EfsFileLocation is not served: the domain is {DOMAIN}"
                )));
            }
            let to = to.s3_file_location.unwrap_or_default();
            let bucket = to.bucket.ok_or_else(|| {
                invalid("A copy needs a bucket: DestinationFileLocation.S3FileLocation.Bucket")
            })?;
            let overwrite = copy.overwrite_existing.map(|text| text == OVERWRITE[1]);
            let what = Deed::Copy { bucket, key: to.key.unwrap_or_default(), overwrite };
            (copy.name, copy.source_file_location, what)
        }
        ("TAG", (None, Some(tag), None, None)) => {
            let tags = tag.tags.ok_or_else(|| invalid("A step of type TAG needs Tags"))?;
            let tags = tags.into_iter().map(|tag| (tag.key, tag.value)).collect();
            (tag.name, tag.source_file_location, Deed::Tag(tags))
        }
        ("DELETE", (None, None, Some(delete), None)) => {
            (delete.name, delete.source_file_location, Deed::Delete)
        }
        ("CUSTOM", (None, None, None, Some(custom))) => {
            let target = custom.target.ok_or_else(|| invalid("A custom step needs a Target"))?;
            let known = &call.settings.workflow_functions;
            if known.as_ref().is_some_and(|known| !known.contains(&target)) {
                return Err(invalid(format!(
                    "The function {} is not one of those that the operator has configured",
                    validate::shorten(&target)
                )));
            }
            // The model bounds it.
            let seconds = custom.timeout_seconds.and_then(|seconds| u32::try_from(seconds).ok());
            let what = Deed::Custom { target, timeout_seconds: seconds };
            (custom.name, custom.source_file_location, what)
        }
        _ => {
            return Err(invalid(format!(
                "A step of type {kind} has the details of this type, and no others"
            )));
        }
    };
    Ok(Step { name, source, what })
}

fn shown_step(step: &Step) -> WorkflowStep {
    let (name, source_file_location) = (step.name.clone(), step.source.clone());
    let kind = Some(step.what.name().to_owned());
    let of = WorkflowStep { kind, ..WorkflowStep::default() };
    match &step.what {
        Deed::Copy { bucket, key, overwrite } => {
            let to = S3InputFileLocation { bucket: Some(bucket.clone()), key: Some(key.clone()) };
            let to = InputFileLocation { s3_file_location: Some(to), efs_file_location: None };
            let overwrite = OVERWRITE[usize::from(overwrite.unwrap_or_default())];
            let details = CopyStepDetails {
                name,
                source_file_location,
                destination_file_location: Some(to),
                overwrite_existing: Some(overwrite.to_owned()),
            };
            WorkflowStep { copy_step_details: Some(details), ..of }
        }
        Deed::Tag(tags) => {
            let tag =
                |(key, value): &(String, String)| S3Tag { key: key.clone(), value: value.clone() };
            let tags = Some(tags.iter().map(tag).collect());
            let details = TagStepDetails { name, source_file_location, tags };
            WorkflowStep { tag_step_details: Some(details), ..of }
        }
        Deed::Delete => {
            let details = DeleteStepDetails { name, source_file_location };
            WorkflowStep { delete_step_details: Some(details), ..of }
        }
        Deed::Custom { target, timeout_seconds } => {
            let details = CustomStepDetails {
                name,
                source_file_location,
                target: Some(target.clone()),
                timeout_seconds: timeout_seconds.map(i64::from),
            };
            WorkflowStep { custom_step_details: Some(details), ..of }
        }
    }
}

fn some<T>(list: Vec<T>) -> Option<Vec<T>> {
    Some(list).filter(|list| !list.is_empty())
}

/// Describes a workflow.
pub fn described_workflow(found: &Workflow) -> DescribedWorkflow {
    let tags: Vec<Tag> = tag_list(found.tags());
    DescribedWorkflow {
        arn: found.arn(),
        description: found.description().map(str::to_owned),
        steps: found.steps().iter().map(shown_step).collect(),
        on_exception_steps: some(found.on_exception().iter().map(shown_step).collect()),
        workflow_id: found.id().to_owned(),
        tags: some(tags),
        structured_log_destinations: some(found.log_destinations().to_vec()),
    }
}

/// Describes a workflow in a list.
pub fn listed_workflow(found: &Workflow) -> ListedWorkflow {
    ListedWorkflow {
        workflow_id: found.id().to_owned(),
        description: found.description().map(str::to_owned),
        arn: found.arn(),
    }
}

fn location(at: &transfer::FileLocation) -> FileLocation {
    FileLocation {
        s3_file_location: S3FileLocation { bucket: at.bucket.clone(), key: at.key.clone() },
    }
}

fn metadata(found: &Execution) -> ServiceMetadata {
    ServiceMetadata {
        user_details: UserDetails {
            user_name: found.user().to_owned(),
            server_id: found.server().to_owned(),
            session_id: Some(found.session().to_owned()),
        },
    }
}

fn result(of: &StepResult) -> Result<ExecutionStepResult, ApiError> {
    let tags: Map<String, Value> =
        of.tags.iter().map(|(key, value)| (key.clone(), value.as_str().into())).collect();
    Ok(ExecutionStepResult {
        step_type: of.kind.clone(),
        // "The values for the key/value pair applied as a tag to the file."
        outputs: (!tags.is_empty()).then(|| Value::Object(tags).to_string()),
        error: of.error.as_ref().map(|error| ExecutionError {
            kind: error.cause.name().to_owned(),
            message: error.message.clone(),
        }),
    })
}

fn results(of: &[StepResult]) -> Result<Option<Vec<ExecutionStepResult>>, ApiError> {
    Ok(some(of.iter().map(result).collect::<Result<_, _>>()?))
}

/// Describes an execution.
pub fn described_execution(
    call: &Call<'_>,
    found: &Execution,
) -> Result<DescribedExecution, ApiError> {
    let region = &call.scope.region;
    Ok(DescribedExecution {
        execution_id: found.id().to_owned(),
        initial_file_location: location(found.original()),
        service_metadata: metadata(found),
        execution_role: shown_in(region, found.role()),
        logging_configuration: found
            .logging_role()
            .map(|role| LoggingConfiguration { logging_role: Some(shown_in(region, role)) }),
        status: found.status().name().to_owned(),
        results: ExecutionResults {
            steps: results(found.results())?,
            on_exception_steps: results(found.exception_results())?,
        },
    })
}

/// Describes an execution in a list.
pub fn listed_execution(found: &Execution) -> ListedExecution {
    ListedExecution {
        execution_id: found.id().to_owned(),
        initial_file_location: location(found.original()),
        service_metadata: metadata(found),
        status: found.status().name().to_owned(),
    }
}
