//! SLSA provenance, version 1 (<https://slsa.dev/spec/v1.0/provenance>), from options.

use clap::ValueHint;
use outlast_pki::time::rfc3339;
use serde_json::{Map, Value, json};

use crate::failure::{Failure, USAGE};
use crate::values;

/// What provenance says.
#[derive(clap::Args)]
pub(super) struct Provenance {
    /// Who built, of slsa-provenance: a URI that names the builder.
    #[arg(long, value_name = "URI", value_hint = ValueHint::Other)]
    builder: Option<String>,
    /// How it was built: a URI that says what the parameters mean.
    #[arg(long, value_name = "URI", value_hint = ValueHint::Other)]
    build_type: Option<String>,
    /// What it was built from: a URI, such as git+https://git.example/app@refs/tags/v1.
    #[arg(long, value_name = "URI", value_hint = ValueHint::Other)]
    source: Option<String>,
    /// The commit of --source, in hex.
    #[arg(long, value_name = "HEX", requires = "source", value_hint = ValueHint::Other)]
    source_commit: Option<String>,
    /// A parameter of the build, NAME=VALUE; may be repeated.
    #[arg(long, value_name = "NAME=VALUE", value_hint = ValueHint::Other)]
    parameter: Vec<String>,
    /// The builder's name of this build.
    #[arg(long, value_name = "ID", value_hint = ValueHint::Other)]
    invocation_id: Option<String>,
    /// When the build began, such as 2026-11-24T12:00:00Z.
    #[arg(long, value_name = "TIME", value_parser = values::time, value_hint = ValueHint::Other)]
    started: Option<i64>,
    /// When it ended.
    #[arg(long, value_name = "TIME", value_parser = values::time, value_hint = ValueHint::Other)]
    finished: Option<i64>,
}

impl Provenance {
    /// The predicate; `None` if no option is given.
    pub(super) fn predicate(&self) -> Result<Option<Value>, Failure> {
        let is_empty = self.builder.is_none()
            && self.build_type.is_none()
            && self.source.is_none()
            && self.parameter.is_empty()
            && self.invocation_id.is_none()
            && self.started.or(self.finished).is_none();
        if is_empty {
            return Ok(None);
        }
        let (Some(builder), Some(build_type)) = (&self.builder, &self.build_type) else {
            return Err(Failure::new("provenance has a builder and a build type")
                .hint("give --builder URI and --build-type URI")
                .code(USAGE));
        };
        let mut parameters = Map::new();
        if let Some(source) = &self.source {
            parameters.insert("source".into(), json!(source));
        }
        for parameter in &self.parameter {
            let wrong = |reason: &str| {
                Failure::new(format!("--parameter {parameter}: {reason}")).code(USAGE)
            };
            let (name, value) =
                parameter.split_once('=').ok_or_else(|| wrong("it is not NAME=VALUE"))?;
            if parameters.insert(name.to_owned(), json!(value)).is_some() {
                return Err(wrong("the name occurs twice"));
            }
        }
        let mut definition = json!({ "buildType": build_type, "externalParameters": parameters });
        if let Some(source) = &self.source {
            let mut dependency = json!({ "uri": source });
            if let Some(commit) = &self.source_commit {
                dependency["digest"] = json!({ "gitCommit": commit });
            }
            definition["resolvedDependencies"] = json!([dependency]);
        }
        let mut details = json!({ "builder": { "id": builder } });
        let mut metadata = Map::new();
        let texts = [
            ("invocationId", self.invocation_id.clone()),
            ("startedOn", self.started.map(rfc3339)),
            ("finishedOn", self.finished.map(rfc3339)),
        ];
        for (name, text) in texts {
            metadata.extend(text.map(|text| (name.to_owned(), json!(text))));
        }
        if !metadata.is_empty() {
            details["metadata"] = Value::Object(metadata);
        }
        Ok(Some(json!({ "buildDefinition": definition, "runDetails": details })))
    }
}
