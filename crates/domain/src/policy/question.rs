//! What is asked of a policy: who asks, for what, on what, and under which circumstances.

use std::collections::BTreeMap;

/// Who asks, as policies see it.
#[derive(Debug, Clone, Copy)]
pub struct Caller<'a> {
    /// Account that it belongs to.
    pub account: &'a str,
    /// ARN of an IAM user or account root, or `arn:aws:sts::account:assumed-role/role/session`; the name of a service
    /// that acts for itself.
    pub arn: &'a str,
    /// For sessions, `arn:aws:iam::account:role/role`.
    pub role_arn: Option<&'a str>,
    /// Whether it is the root user of its account.
    pub is_root: bool,
    /// Unique id, for sessions with `:session` at its end.
    pub user_id: &'a str,
    /// Name of an IAM user.
    pub user_name: &'a str,
}

/// One question.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// Who asks.
    pub caller: Caller<'a>,
    /// Action such as `kms:Decrypt`.
    pub action: &'a str,
    /// ARN of the resource.
    pub resource: &'a str,
    /// All else that is known of the request.
    pub keys: &'a ConditionKeys,
}

impl<'a> Question<'a> {
    /// The values of a condition key, whose name is in lower case. What the caller itself says of the
    /// caller cannot be overridden by [`ConditionKeys`].
    pub(super) fn values(&self, key: &str) -> Vec<&'a str> {
        if let Some((_, read)) = CALLER_KEYS.iter().find(|(name, _)| *name == key) {
            return read(&self.caller).into_iter().filter(|value| !value.is_empty()).collect();
        }
        let known = self.keys.0.get(key).map_or(&[][..], Vec::as_slice);
        known.iter().map(String::as_str).collect()
    }
}

/// Condition keys with one or several values. Names do not distinguish case.
#[derive(Debug, Clone, Default)]
pub struct ConditionKeys(BTreeMap<String, Vec<String>>);

impl ConditionKeys {
    /// No keys.
    pub fn new() -> Self {
        Self::default()
    }

    /// Gives a key one value, instead of any that it had.
    pub fn set(&mut self, name: &str, value: impl Into<String>) {
        self.set_many(name, vec![value.into()]);
    }

    /// Gives a key several values, instead of any that it had. A key without values counts as absent.
    pub fn set_many(&mut self, name: &str, values: Vec<String>) {
        self.0.insert(name.to_ascii_lowercase(), values);
    }

    /// What policies can ask about the tags of a request; nothing, if it has none.
    pub fn set_request_tags(&mut self, tags: &BTreeMap<String, String>) {
        if tags.is_empty() {
            return;
        }
        for (name, value) in tags {
            self.set(&format!("aws:RequestTag/{name}"), value.as_str());
        }
        self.set_many("aws:TagKeys", tags.keys().cloned().collect());
    }

    /// The values of a key.
    pub fn get(&self, name: &str) -> Option<&[String]> {
        self.0.get(&name.to_ascii_lowercase()).map(Vec::as_slice)
    }
}

type Read = for<'a> fn(&Caller<'a>) -> Option<&'a str>;

/// Keys that follow from who calls ("AWS global condition context keys", "Properties of the principal").
static CALLER_KEYS: &[(&str, Read)] = &[
    ("aws:principalaccount", |caller| Some(caller.account)),
    // For sessions it is the role's, not the session's.
    ("aws:principalarn", |caller| caller.role_arn.or(Some(caller.arn))),
    ("aws:principalisawsservice", |caller| {
        Some(if caller.arn.starts_with("arn:") { "false" } else { "true" })
    }),
    ("aws:principaltype", |caller| {
        Some(match caller {
            Caller { is_root: true, .. } => "Account",
            Caller { role_arn: Some(_), .. } => "AssumedRole",
            _ => "User",
        })
    }),
    ("aws:userid", |caller| Some(caller.user_id)),
    // "Principal key values": neither the root user nor a session has one.
    ("aws:username", |caller| {
        (!caller.is_root && caller.role_arn.is_none()).then_some(caller.user_name)
    }),
];
