//! A question to a policy: the caller, the action, the resource and the condition keys.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::arn::account_of;

/// The caller as policies see it.
#[derive(Debug, Clone, Copy)]
pub struct Caller<'a> {
    /// Account of the caller.
    pub account: &'a str,
    /// ARN of an IAM user or account root, or `arn:aws:sts::account:assumed-role/role/session`; or the name of a
    /// service that acts for itself.
    pub arn: &'a str,
    /// For sessions, `arn:aws:iam::account:role/role`.
    pub role_arn: Option<&'a str>,
    /// Whether the caller is the root user of its account.
    pub is_root: bool,
    /// Unique id; for a session, followed by `:session`.
    pub user_id: &'a str,
    /// Name of an IAM user.
    pub user_name: &'a str,
}

impl<'a> Caller<'a> {
    /// The name of a service that acts for itself.
    fn service(&self) -> Option<&'a str> {
        (!self.arn.starts_with("arn:")).then_some(self.arn)
    }

    /// Whether this is the caller's unique id, or its role's. A principal without one matches everybody of that name.
    pub(super) fn has_id(&self, id: Option<&str>) -> bool {
        id.is_none() || self.user_id.split(':').next() == id
    }
}

/// A question.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// The caller.
    pub caller: Caller<'a>,
    /// Action such as `kms:Decrypt`.
    pub action: &'a str,
    /// ARN of the resource.
    pub resource: &'a str,
    /// Condition keys of the request.
    pub keys: &'a ConditionKeys,
}

impl<'a> Question<'a> {
    /// The values of a condition key, given in lower case. Keys that follow from the caller cannot be overridden by
    /// [`ConditionKeys`].
    pub(super) fn values(&self, key: &str) -> Vec<&'a str> {
        if let Some((_, read)) = CALLER_KEYS.iter().find(|(name, _)| *name == key) {
            return read(&self.caller).into_iter().filter(|value| !value.is_empty()).collect();
        }
        let key = OLD_NAMES.iter().find(|(old, _)| *old == key).map_or(key, |(_, name)| *name);
        if let Some(known) = self.keys.0.get(key) {
            return known.iter().map(String::as_str).collect();
        }
        let default = DEFAULTS.iter().find(|(name, _)| *name == key);
        default.and_then(|(_, read)| read(self)).into_iter().collect()
    }
}

/// Condition keys with one or several values. Names ignore case.
///
/// A call copies those of its request for each resource that it asks about, so copies share names and values.
#[derive(Debug, Clone, Default)]
pub struct ConditionKeys(BTreeMap<Arc<str>, Arc<Vec<String>>>);

impl ConditionKeys {
    /// No keys.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets a key to one value.
    pub fn set(&mut self, name: &str, value: impl Into<String>) {
        self.set_many(name, vec![value.into()]);
    }

    /// Sets a key to several values. A key without values counts as absent.
    pub fn set_many(&mut self, name: &str, values: Vec<String>) {
        self.0.insert(name.to_ascii_lowercase().into(), Arc::new(values));
    }

    /// Sets the keys about the tags of a request, if it has any.
    pub fn set_request_tags(&mut self, tags: &BTreeMap<String, String>) {
        if tags.is_empty() {
            return;
        }
        self.set_tags("aws:RequestTag", tags);
        self.set_many("aws:TagKeys", tags.keys().cloned().collect());
    }

    /// Sets the keys about tags, such as `aws:ResourceTag/team`. Tags whose keys differ only in case, which only old
    /// resources have, become one key with several values.
    pub fn set_tags(&mut self, kind: &str, tags: &BTreeMap<String, String>) {
        let mut values: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (name, value) in tags {
            values.entry(name.to_ascii_lowercase()).or_default().push(value.clone());
        }
        for (name, values) in values {
            self.set_many(&format!("{kind}/{name}"), values);
        }
    }

    /// Sets the time, in milliseconds since 1970, to the second.
    pub fn set_time(&mut self, now_ms: i64) {
        let seconds = now_ms.div_euclid(1000);
        self.set("aws:CurrentTime", outlast_pki::time::rfc3339(seconds));
        self.set("aws:EpochTime", seconds.to_string());
    }

    /// Marks a request that a service makes with the caller's rights ("forward access sessions").
    pub fn forward(&mut self, service: &str) {
        let mut chain = self.get("aws:CalledVia").unwrap_or_default().to_vec();
        chain.push(service.to_owned());
        self.set("aws:CalledViaFirst", chain[0].as_str());
        self.set("aws:CalledViaLast", service);
        self.set_many("aws:CalledVia", chain);
        self.set("aws:ViaAWSService", "true");
    }

    /// The values of a key.
    pub fn get(&self, name: &str) -> Option<&[String]> {
        self.0.get(name.to_ascii_lowercase().as_str()).map(|values| values.as_slice())
    }
}

/// Former names of keys.
static OLD_NAMES: &[(&str, &str)] =
    &[("kms:customermasterkeyspec", "kms:keyspec"), ("kms:customermasterkeyusage", "kms:keyusage")];

type Default = for<'a> fn(&Question<'a>) -> Option<&'a str>;

/// Keys that have a value unless another one is set.
static DEFAULTS: &[(&str, Default)] = &[
    ("aws:resourceaccount", |question| {
        account_of(question.resource).filter(|account| !account.is_empty())
    }),
    // "The context key returns false if the service uses a service role or service-linked role to make a call on the
    // principal's behalf."
    ("aws:viaawsservice", |_| Some("false")),
    ("kms:calleraccount", |question| {
        question.action.starts_with("kms:").then_some(question.caller.account)
    }),
    ("kms:grantisforawsresource", |question| {
        let actions = ["kms:CreateGrant", "kms:ListGrants", "kms:RevokeGrant"];
        actions.contains(&question.action).then_some("false")
    }),
];

type Read = for<'a> fn(&Caller<'a>) -> Option<&'a str>;

/// Keys that follow from the caller ("AWS global condition context keys", "Properties of the principal").
static CALLER_KEYS: &[(&str, Read)] = &[
    ("aws:principalaccount", |caller| Some(caller.account)),
    // For a session it is the role's, not the session's.
    ("aws:principalarn", |caller| caller.role_arn.or(Some(caller.arn))),
    ("aws:principalisawsservice", |caller| {
        Some(if caller.service().is_none() { "false" } else { "true" })
    }),
    ("aws:principalservicename", |caller| caller.service()),
    ("aws:principalservicenameslist", |caller| caller.service()),
    ("aws:principaltype", |caller| match caller {
        Caller { is_root: true, .. } => Some("Account"),
        Caller { role_arn: Some(_), .. } => Some("AssumedRole"),
        _ => caller.service().is_none().then_some("User"),
    }),
    // "This key is included in the request context only when the principal uses temporary credentials"; there is no
    // second factor here.
    ("aws:multifactorauthpresent", |caller| caller.role_arn.map(|_| "false")),
    ("aws:userid", |caller| Some(caller.user_id)),
    // "Principal key values": neither the root user nor a session has one.
    ("aws:username", |caller| {
        (!caller.is_root && caller.role_arn.is_none()).then_some(caller.user_name)
    }),
];
