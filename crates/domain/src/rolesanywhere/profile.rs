//! Profiles: the roles that certificates may begin sessions of, and what limits those sessions.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::alias::Alias;
use super::mapping::{self, Mapping};
use super::tag_set::{self, Tags};
use super::{PROFILE, RolesAnywhereError};
use crate::arn::{Arn, Scope};
use crate::identity::{Permit, action, managed};
use crate::policy::{Kind, Policy};
use crate::work::{Page, Work};
use crate::{Fault, ids, quotas};

/// Seconds of a session, unless the profile says otherwise.
const DURATION: i64 = 3600;

/// A profile as stored.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Record {
    id: String,
    name: String,
    enabled: bool,
    requires_instance_properties: bool,
    created_by: String,
    session_policy: Option<String>,
    /// Canonical ARNs.
    role_arns: Vec<String>,
    managed_policy_arns: Vec<String>,
    seconds: i64,
    accepts_session_name: bool,
    pub(super) mappings: Vec<Mapping>,
    created_ms: i64,
    updated_ms: i64,
    pub(super) tags: BTreeMap<String, String>,
    #[serde(default)]
    alias: Alias,
}

/// A profile that was found.
#[derive(Debug, Clone)]
pub struct Profile {
    scope: Scope,
    pub(super) record: Record,
}

/// Properties of a new profile.
pub struct NewProfile {
    /// Name.
    pub name: String,
    /// Whether it can be used at once.
    pub enabled: bool,
    /// `requireInstanceProperties`
    pub requires_instance_properties: bool,
    /// ARN of the caller.
    pub created_by: String,
    /// Session policy.
    pub session_policy: Option<String>,
    /// ARNs of roles.
    pub role_arns: Vec<Arn>,
    /// ARNs of managed policies.
    pub managed_policy_arns: Vec<String>,
    /// Longest session.
    pub seconds: Option<i64>,
    /// `acceptRoleSessionName`
    pub accepts_session_name: bool,
    /// Tags.
    pub tags: Tags,
    /// Alias.
    pub alias: Option<String>,
}

/// Changes of a profile.
#[derive(Default)]
pub struct ProfileUpdate {
    /// New name.
    pub name: Option<String>,
    /// New session policy.
    pub session_policy: Option<String>,
    /// New roles.
    pub role_arns: Option<Vec<Arn>>,
    /// New managed policies.
    pub managed_policy_arns: Option<Vec<String>>,
    /// New longest session.
    pub seconds: Option<i64>,
    /// `acceptRoleSessionName`
    pub accepts_session_name: Option<bool>,
    /// New alias; empty for none.
    pub alias: Option<String>,
}

impl Profile {
    /// Account and Region.
    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// Id, a UUID.
    pub fn id(&self) -> &str {
        &self.record.id
    }

    /// ARN.
    pub fn arn(&self) -> String {
        PROFILE.arn(&self.scope, &self.record.id)
    }

    /// Name.
    pub fn name(&self) -> &str {
        &self.record.name
    }

    /// Whether it can be used.
    pub fn enabled(&self) -> bool {
        self.record.enabled
    }

    /// `requireInstanceProperties`
    pub fn requires_instance_properties(&self) -> bool {
        self.record.requires_instance_properties
    }

    /// ARN of the caller who made it.
    pub fn created_by(&self) -> &str {
        &self.record.created_by
    }

    /// Session policy.
    pub fn session_policy(&self) -> Option<&str> {
        self.record.session_policy.as_deref()
    }

    /// ARNs of its roles.
    pub fn role_arns(&self) -> &[String] {
        &self.record.role_arns
    }

    /// ARNs of its managed policies.
    pub fn managed_policy_arns(&self) -> &[String] {
        &self.record.managed_policy_arns
    }

    /// Longest session, in seconds.
    pub fn seconds(&self) -> i64 {
        self.record.seconds
    }

    /// `acceptRoleSessionName`
    pub fn accepts_session_name(&self) -> bool {
        self.record.accepts_session_name
    }

    /// Attribute mappings.
    pub fn mappings(&self) -> &[Mapping] {
        &self.record.mappings
    }

    /// Milliseconds since 1970.
    pub fn created_ms(&self) -> i64 {
        self.record.created_ms
    }

    /// Milliseconds since 1970.
    pub fn updated_ms(&self) -> i64 {
        self.record.updated_ms
    }

    /// Tags.
    pub fn tags(&self) -> &Tags {
        &self.record.tags
    }

    /// Alias.
    pub fn alias(&self) -> &Alias {
        &self.record.alias
    }

    /// Names of its managed policies. One that is not known any more is an error: without it the session would have more
    /// rights.
    pub(super) fn managed_policies(&self) -> Result<Vec<String>, RolesAnywhereError> {
        let name = |arn: &String| {
            let found = managed::by_arn(arn).map(|policy| policy.name.to_owned());
            found.ok_or_else(|| {
                RolesAnywhereError::Refused(format!(
                    "The managed policy {arn} of the profile is not known here: change the profile"
                ))
            })
        };
        self.record.managed_policy_arns.iter().map(name).collect()
    }

    /// Checks the permits to pass its roles on; `given` are those of the request.
    fn may_pass(given: &[Arn], permits: &[Permit<action::iam::PassRole>]) -> Result<(), Fault> {
        for arn in given {
            let arn = arn.to_string();
            let permit = permits.iter().find(|permit| permit.opens(&arn).is_ok());
            Permit::required(permit, &arn)?;
        }
        Ok(())
    }
}

/// Checks roles, session policy and managed policies.
fn check(
    scope: &Scope,
    roles: &[Arn],
    session_policy: Option<&str>,
    managed_policies: &[String],
) -> Result<(), RolesAnywhereError> {
    for arn in roles {
        if arn.account() != scope.account {
            let text = format!("The role {arn} is not one of the account of the profile");
            return Err(RolesAnywhereError::Validation(text));
        }
    }
    if let Some(text) = session_policy {
        Policy::parse(text, Kind::Identity).map_err(|error| {
            RolesAnywhereError::Validation(format!("The session policy is not valid: {error}"))
        })?;
    }
    for arn in managed_policies {
        if managed::by_arn(arn).is_none() {
            return Err(RolesAnywhereError::Validation(format!(
                "The managed policy {arn} is not known here"
            )));
        }
    }
    Ok(())
}

/// Makes a profile. The permits allow making one, and passing each of its roles.
pub fn create_profile(
    work: &mut Work<'_>,
    scope: &Scope,
    new: NewProfile,
    permit: &Permit<action::rolesanywhere::CreateProfile>,
    may_pass: &[Permit<action::iam::PassRole>],
) -> Result<Profile, RolesAnywhereError> {
    permit.opens(&PROFILE.arn(scope, "*"))?;
    tag_set::check(&new.tags)?;
    check(scope, &new.role_arns, new.session_policy.as_deref(), &new.managed_policy_arns)?;
    Profile::may_pass(&new.role_arns, may_pass)?;
    work.admit::<RolesAnywhereError>(&quotas::PROFILES, &[&scope.account, &scope.region])?;
    let now_ms = work.now_ms();
    let mut record = Record {
        id: ids::uuid()?,
        name: new.name,
        enabled: new.enabled,
        requires_instance_properties: new.requires_instance_properties,
        created_by: new.created_by,
        session_policy: new.session_policy,
        role_arns: new.role_arns.iter().map(Arn::to_string).collect(),
        managed_policy_arns: new.managed_policy_arns,
        seconds: new.seconds.unwrap_or(DURATION),
        accepts_session_name: new.accepts_session_name,
        mappings: mapping::defaults(),
        created_ms: now_ms,
        updated_ms: now_ms,
        tags: new.tags,
        alias: Alias::default(),
    };
    record.alias.set(work, scope, &PROFILE, &record.id, new.alias)?;
    work.put(&PROFILE.record_key(scope, &record.id), &record)?;
    Ok(Profile { scope: scope.clone(), record })
}

/// Finds a profile by its id, its ARN or the ARN of its alias.
pub fn find_profile(
    work: &mut Work<'_>,
    scope: &Scope,
    text: &str,
) -> Result<Profile, RolesAnywhereError> {
    let id = PROFILE.id_of(work, scope, text)?;
    let record = work.get::<Record>(&PROFILE.record_key(scope, &id))?;
    let record = record.ok_or_else(|| PROFILE.missing(text))?;
    Ok(Profile { scope: scope.clone(), record })
}

/// Lists profiles, after the marker of the previous page.
pub fn profiles(
    work: &Work<'_>,
    scope: &Scope,
    marker: Option<&str>,
    limit: usize,
    permit: &Permit<action::rolesanywhere::ListProfiles>,
) -> Result<Page<Profile>, RolesAnywhereError> {
    permit.opens(&PROFILE.arn(scope, "*"))?;
    let page = work.page::<Record>(&PROFILE.prefix(scope), marker, limit)?;
    let of = |record| Profile { scope: scope.clone(), record };
    Ok(Page { items: page.items.into_iter().map(of).collect(), next: page.next })
}

/// Changes a profile. The permits allow that, and passing each of the new roles.
pub fn update_profile(
    work: &mut Work<'_>,
    mut profile: Profile,
    update: ProfileUpdate,
    permit: &Permit<action::rolesanywhere::UpdateProfile>,
    may_pass: &[Permit<action::iam::PassRole>],
) -> Result<Profile, RolesAnywhereError> {
    permit.opens(&profile.arn())?;
    let roles = update.role_arns.as_deref().unwrap_or_default();
    let managed_policies = update.managed_policy_arns.as_deref().unwrap_or_default();
    check(&profile.scope, roles, update.session_policy.as_deref(), managed_policies)?;
    Profile::may_pass(roles, may_pass)?;
    let record = &mut profile.record;
    if let Some(roles) = &update.role_arns {
        record.role_arns = roles.iter().map(Arn::to_string).collect();
    }
    if let Some(name) = update.name {
        record.name = name;
    }
    if let Some(policy) = update.session_policy {
        record.session_policy = Some(policy);
    }
    if let Some(arns) = update.managed_policy_arns {
        record.managed_policy_arns = arns;
    }
    record.seconds = update.seconds.unwrap_or(record.seconds);
    record.accepts_session_name =
        update.accepts_session_name.unwrap_or(record.accepts_session_name);
    record.alias.set(work, &profile.scope, &PROFILE, &record.id, update.alias)?;
    save(work, &mut profile)?;
    Ok(profile)
}

/// Enables or disables a profile.
pub fn set_profile_enabled(
    work: &mut Work<'_>,
    mut profile: Profile,
    enabled: bool,
    permit: &Permit<impl action::EnablesProfile>,
) -> Result<Profile, RolesAnywhereError> {
    permit.opens(&profile.arn())?;
    profile.record.enabled = enabled;
    save(work, &mut profile)?;
    Ok(profile)
}

/// Deletes a profile.
pub fn delete_profile(
    work: &mut Work<'_>,
    profile: Profile,
    permit: &Permit<action::rolesanywhere::DeleteProfile>,
) -> Result<Profile, RolesAnywhereError> {
    permit.opens(&profile.arn())?;
    profile.record.alias.remove(work, &profile.scope, &PROFILE);
    work.delete(&PROFILE.record_key(&profile.scope, profile.id()));
    Ok(profile)
}

/// Writes a profile that was changed.
pub(super) fn save(work: &mut Work<'_>, profile: &mut Profile) -> Result<(), Fault> {
    profile.record.updated_ms = work.now_ms();
    work.put(&PROFILE.record_key(&profile.scope, &profile.record.id), &profile.record)
}
