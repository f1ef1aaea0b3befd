//! Keys that a service of this program has made for an account (AWS managed keys): one for each service, account and
//! Region, under the alias `alias/aws/SERVICE`.
//!
//! Source: "AWS KMS keys" and "ViaService" of the KMS Developer Guide. Their policy lets principals of the account use
//! them through the service only, and lets nobody change them.

use std::collections::BTreeMap;

use outlast_crypto::keys::KeySpec;

use super::record::{Key, Material, Origin, Record, Rotation};
use super::{KmsError, alias, key};
use crate::arn::{self, Scope};
use crate::identity::unique::UniqueIds;
use crate::work::Work;
use crate::{Fault, ids, quotas};

/// A service that uses a key of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Manager {
    /// Name in endpoints, such as `secretsmanager`.
    pub service: &'static str,
    /// Name for people.
    pub title: &'static str,
    /// `Description` of the key (AWS's text).
    description: &'static str,
}

/// Secrets Manager.
pub const SECRETS_MANAGER: Manager = Manager {
    service: "secretsmanager",
    title: "AWS Secrets Manager",
    description: "Default key that protects my Secrets Manager data when no other key is defined",
};

impl Manager {
    /// Value of `kms:ViaService` for calls of this service in a Region.
    pub fn via(&self, region: &str) -> String {
        format!("{}.{region}.amazonaws.com", self.service)
    }

    /// The alias of its key in every account and Region.
    pub fn alias(&self) -> String {
        format!("alias/aws/{}", self.service)
    }
}

/// The key of a service, which its first use makes. Policies decide who may use it.
pub fn managed_key(work: &mut Work<'_>, scope: &Scope, manager: &Manager) -> Result<Key, KmsError> {
    let name = manager.alias();
    match key::find(work, scope, &name) {
        Err(KmsError::NotFound(_)) => make(work, scope, &name, manager),
        found => found,
    }
}

fn make(
    work: &mut Work<'_>,
    scope: &Scope,
    name: &str,
    manager: &Manager,
) -> Result<Key, KmsError> {
    work.admit::<KmsError>(&quotas::KMS_KEYS, &[&scope.account, &scope.region])?;
    let spec = KeySpec::by_name("SYMMETRIC_DEFAULT")
        .ok_or_else(|| Fault::Damaged("the table of key specs".into()))?;
    let material_id = ids::hex::<32>()?;
    let record = Record {
        id: ids::uuid()?,
        spec: spec.name.to_owned(),
        usage: spec.usages[0].name().to_owned(),
        description: manager.description.to_owned(),
        enabled: true,
        created_ms: work.now_ms(),
        deletion: None,
        materials: vec![Material::first(material_id.clone())],
        material_id,
        tags: BTreeMap::new(),
        origin: Origin::Own,
        policy: Some(policy(scope, manager)),
        principals: UniqueIds::new(),
        // "AWS KMS automatically rotates AWS managed keys every year."
        rotation: Some(Rotation {
            period_days: YEAR_DAYS,
            next_ms: work.now_ms() + YEAR_DAYS * 86_400_000,
        }),
        regions: None,
        approval_rule: None,
        after_replicas_days: None,
        manager: Some(manager.service.to_owned()),
    };
    let key = Key::new(scope, record, work.now_ms())?;
    work.put_secret(&key.material_record_key(key.material_id()), &spec.generate()?)?;
    key.save(work)?;
    alias::attach(work, scope, name, key.id())?;
    Ok(key)
}

const YEAR_DAYS: i64 = 365;

/// The policy of such a key, as AWS writes it.
fn policy(scope: &Scope, manager: &Manager) -> String {
    let Scope { account, region } = scope;
    let root = arn::shown_in(region, &arn::iam(account, "root"));
    let (title, via) = (manager.title, manager.via(region));
    let sid = format!(
        "Allow access through {title} for all principals in the account that are authorized to use {title}"
    );
    let statement = |sid: &str, principal: &str, actions: &str, condition: &str| {
        format!(
            "{{\n    \"Sid\" : \"{sid}\",\n    \"Effect\" : \"Allow\",\n    \"Principal\" : {{\n      \"AWS\" : \
             \"{principal}\"\n    }},\n    \"Action\" : {actions},\n    \"Resource\" : \"*\"{condition}\n  }}"
        )
    };
    let equals = format!(
        ",\n    \"Condition\" : {{\n      \"StringEquals\" : {{\n        \"kms:CallerAccount\" : \"{account}\",\n        \
         \"kms:ViaService\" : \"{via}\"\n      }}\n    }}"
    );
    let uses = "[ \"kms:Encrypt\", \"kms:Decrypt\", \"kms:ReEncrypt*\", \"kms:CreateGrant\", \"kms:DescribeKey\" ]";
    let reads = "[ \"kms:Describe*\", \"kms:Get*\", \"kms:List*\", \"kms:RevokeGrant\" ]";
    let statements = [
        statement(&sid, "*", uses, &equals),
        statement(&format!("{sid} to make data keys"), "*", "\"kms:GenerateDataKey*\"", &equals),
        statement("Allow direct access to key metadata to the account", &root, reads, ""),
    ];
    format!(
        "{{\n  \"Version\" : \"2012-10-17\",\n  \"Id\" : \"auto-{}-2\",\n  \"Statement\" : [ {} ]\n}}",
        manager.service,
        statements.join(", ")
    )
}
