//! Aliases: names that identify a trust anchor, a profile or a CRL in place of its id.

use serde::{Deserialize, Serialize};

use super::{Kind, RolesAnywhereError};
use crate::Fault;
use crate::arn::Scope;
use crate::work::Work;

#[derive(Serialize, Deserialize)]
struct Record {
    id: String,
}

/// The alias of a resource, as its record has it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Alias {
    /// The name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The name before the last change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<String>,
}

impl Alias {
    /// Gives the resource this name; an empty one takes its name away. No two resources of a kind have the same.
    pub(super) fn set(
        &mut self,
        work: &mut Work<'_>,
        scope: &Scope,
        kind: &Kind,
        id: &str,
        name: Option<String>,
    ) -> Result<(), RolesAnywhereError> {
        let Some(name) = name.filter(|name| self.name.as_deref().unwrap_or_default() != name)
        else {
            return Ok(());
        };
        // The model says so with a lookahead, which its translation does not check.
        if name.contains("//") {
            return Err(RolesAnywhereError::validation("aliasName must not contain //"));
        }
        if !name.is_empty() {
            let record_key = record_key(scope, kind, &name);
            if work.exists(&record_key)? {
                let text = format!("The alias {} already exists", kind.alias_arn(scope, &name));
                return Err(RolesAnywhereError::Validation(text));
            }
            work.put(&record_key, &Record { id: id.to_owned() })?;
        }
        self.remove(work, scope, kind);
        self.previous = self.name.take();
        self.name = Some(name).filter(|name| !name.is_empty());
        Ok(())
    }

    /// Forgets the name, because its resource is deleted or gets another one.
    pub(super) fn remove(&self, work: &mut Work<'_>, scope: &Scope, kind: &Kind) {
        if let Some(name) = &self.name {
            work.delete(&record_key(scope, kind, name));
        }
    }
}

/// The id of the resource with this alias.
pub(super) fn id_of(
    work: &mut Work<'_>,
    scope: &Scope,
    kind: &Kind,
    name: &str,
) -> Result<Option<String>, Fault> {
    let record = work.get::<Record>(&record_key(scope, kind, name))?;
    Ok(record.map(|record| record.id))
}

fn record_key(scope: &Scope, kind: &Kind, name: &str) -> String {
    format!("rolesanywhere/alias/{}/{}/{}/{name}", scope.account, scope.region, kind.noun)
}
