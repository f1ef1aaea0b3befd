//! `outlast principal`: users, roles, their policies and access keys.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use outlast_api::audit::operator_event;
use outlast_crypto::Secret;
use outlast_domain::change::Contended;
use outlast_domain::identity::{
    self, Entry, IdentityError, Role, User, add_access_key, create_role, create_user,
};
use outlast_domain::ids;
use outlast_domain::policy::{Kind, Policy as Document};
use outlast_domain::work::Work;
use outlast_net::server::system_clock;
use serde_json::{Value, json};

use crate::data::{self, Data, StoreArguments};
use crate::failure::Failure;
use crate::output::{self, Output};
use crate::{files, values};

/// Largest policy document that is read, in bytes.
const MAX_POLICY: usize = 64 * 1024;

/// Arguments of `principal`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Make a user with an access key, or a role that others may assume. The first principal of an account
    /// makes the account.
    Create(Create),
    /// List the users and roles of all accounts.
    List(List),
    /// Delete a user with its access keys, or a role; its sessions end at once.
    Delete(Named),
    /// Show, set or delete the policies that say what a user or role may do.
    #[command(subcommand)]
    Policy(Policy),
    /// Make, list, switch off or delete the access keys of a user: two at a time, so that they can be rotated.
    #[command(subcommand)]
    Key(Key),
}

#[derive(clap::Args)]
struct Create {
    #[command(flatten)]
    principal: Named,
    /// Let it do everything in its account.
    #[arg(long, conflicts_with = "policy")]
    admin: bool,
    /// File with a policy in IAM's JSON language; the policy is named after it. May be repeated.
    #[arg(long = "policy-file", alias = "policy", value_name = "FILE")]
    policy: Vec<PathBuf>,
    /// File with the trust policy: who may assume the role.
    #[arg(long = "trust-policy-file", alias = "trust", value_name = "FILE", requires = "role")]
    trust: Option<PathBuf>,
    /// Longest session of the role, in seconds.
    #[arg(long, default_value_t = 3600)]
    max_session_seconds: i64,
    /// Access key id of the user; generated if absent. The secret is generated, too, unless
    /// OUTLAST_SECRET_ACCESS_KEY holds it.
    #[arg(long, conflicts_with = "role", value_parser = values::access_key_id)]
    access_key_id: Option<String>,
}

#[derive(clap::Args)]
struct List {
    #[command(flatten)]
    store: StoreArguments,
}

#[derive(clap::Args)]
struct Named {
    /// Name.
    name: String,
    /// It is a role, not a user.
    #[arg(long)]
    role: bool,
    /// Account, 12 digits.
    #[arg(long, default_value = "123456789012", env = "OUTLAST_ACCOUNT", value_parser = values::account)]
    account: String,
    #[command(flatten)]
    store: StoreArguments,
}

#[derive(clap::Subcommand)]
enum Policy {
    /// Show all policies, with a role's trust policy.
    Get(Named),
    /// Add or replace a policy.
    Put {
        #[command(flatten)]
        principal: Named,
        /// File with the policy in IAM's JSON language.
        #[arg(long = "policy-file", alias = "file", value_name = "FILE")]
        file: PathBuf,
        /// Name of the policy [default: the file's name]; trust replaces a role's trust policy.
        #[arg(long)]
        policy_name: Option<String>,
    },
    /// Delete a policy.
    Delete {
        #[command(flatten)]
        principal: Named,
        /// Name of the policy.
        #[arg(long)]
        policy_name: String,
    },
}

#[derive(clap::Subcommand)]
enum Key {
    /// Make another access key.
    Create {
        #[command(flatten)]
        principal: Named,
        /// Access key id; generated if absent.
        #[arg(long, value_parser = values::access_key_id)]
        access_key_id: Option<String>,
    },
    /// List the access keys.
    List(Named),
    /// Switch an access key on.
    Activate(OneKey),
    /// Switch an access key off: nobody can sign with it any more.
    Deactivate(OneKey),
    /// Delete an access key.
    Delete(OneKey),
}

#[derive(clap::Args)]
struct OneKey {
    #[command(flatten)]
    principal: Named,
    /// Access key id.
    #[arg(long)]
    access_key_id: String,
}

/// What a change gives back: text for people, and a value.
type Outcome = (String, Value);

/// Does it.
pub(crate) fn run(arguments: &Arguments, output: Output) -> Result<(), Failure> {
    let (text, value) = match &arguments.command {
        Command::Create(create) => self::create(create)?,
        Command::List(list) => self::list(list)?,
        Command::Delete(named) => delete(named)?,
        Command::Policy(policy) => self::policy(policy)?,
        Command::Key(key) => self::key(key)?,
    };
    output.result(&text, &value);
    Ok(())
}

fn create(create: &Create) -> Result<Outcome, Failure> {
    let named = &create.principal;
    let policies = create
        .policy
        .iter()
        .map(|path| Ok((name_of(path)?, read_policy(path, Kind::Identity)?)))
        .collect::<Result<Vec<_>, Failure>>()?;
    let mut findings: Vec<_> =
        policies.iter().flat_map(|(_, policy)| policy.findings.clone()).collect();
    if named.role {
        let trust = create.trust.as_deref().ok_or_else(|| {
            Failure::new("a role needs a trust policy")
                .hint("say who may assume it with --trust-policy-file FILE")
        })?;
        let trust = read_policy(trust, Kind::Trust)?;
        findings.extend(trust.findings);
        let trust = trust.text;
        return change(named, "CreateRole", |work| {
            let seconds = create.max_session_seconds;
            let mut role = create_role(work, &named.account, &named.name, &trust, seconds)?;
            if create.admin {
                role = role.put_policy(
                    work,
                    identity::directory::ADMINISTRATOR_ACCESS,
                    identity::directory::ADMINISTRATOR,
                )?;
            }
            for (name, policy) in &policies {
                role = role.put_policy(work, name, &policy.text)?;
            }
            let arn = role.arn();
            Ok((format!("made the role {arn}"), with_findings(json!({ "arn": arn }), &findings)))
        });
    }
    let given = data::given_secret()?;
    change(named, "CreateUser", |work| {
        let mut user = create_user(work, &named.account, &named.name, BTreeMap::new())?;
        if create.admin {
            user = user.put_policy(
                work,
                identity::directory::ADMINISTRATOR_ACCESS,
                identity::directory::ADMINISTRATOR,
            )?;
        }
        for (name, policy) in &policies {
            user = user.put_policy(work, name, &policy.text)?;
        }
        let arn = user.arn();
        let (text, mut value) = new_key(work, user, create.access_key_id.clone(), given.as_ref())?;
        value["arn"] = arn.clone().into();
        Ok((format!("made the user {arn}\n{text}"), with_findings(value, &findings)))
    })
}

/// Makes an access key. A secret that was generated is shown this once: it cannot be read back. One that was
/// given is known, and not shown.
fn new_key(
    work: &mut Work<'_>,
    user: User,
    id: Option<String>,
    given: Option<&Secret>,
) -> Result<Outcome, IdentityError> {
    if let Some(secret) = given {
        let key = add_access_key(work, user, id, secret)?;
        let text = format!(
            "aws_access_key_id = {}\nits secret is what OUTLAST_SECRET_ACCESS_KEY holds",
            key.id
        );
        return Ok((text, json!({ "access_key_id": key.id })));
    }
    let secret = ids::base32("", 40)?;
    let key = add_access_key(work, user, id, &Secret::new(secret.clone().into_bytes()))?;
    let text = format!(
        "aws_access_key_id = {}\naws_secret_access_key = {secret}\n\
         keep the secret: it is not shown again",
        key.id
    );
    Ok((text, json!({ "access_key_id": key.id, "secret_access_key": secret })))
}

/// Opens the store for a look at it.
fn open(store: &StoreArguments) -> Result<Data, Failure> {
    Data::open_read_only(&store.location()?, &store.provider()?)
}

fn list(list: &List) -> Result<Outcome, Failure> {
    let data = open(&list.store)?;
    let mut work = data.service.work(system_clock());
    let mut rows = Vec::new();
    let mut marker = None;
    loop {
        let page = User::list(&work, marker.as_deref(), 100).map_err(failure)?;
        for user in page.items {
            let keys: Vec<_> = user
                .access_keys(&mut work)
                .map_err(failure)?
                .into_iter()
                .map(|key| json!({ "id": key.id, "active": key.active }))
                .collect();
            let policies: Vec<_> = user.policies.keys().collect();
            rows.push(json!({
                "type": "user", "arn": user.arn(), "policies": policies, "access_keys": keys,
            }));
        }
        marker = page.next;
        if marker.is_none() {
            break;
        }
    }
    loop {
        let page = Role::list(&work, marker.as_deref(), 100).map_err(failure)?;
        for role in page.items {
            let policies: Vec<_> = role.policies.keys().collect();
            rows.push(json!({ "type": "role", "arn": role.arn(), "policies": policies }));
        }
        marker = page.next;
        if marker.is_none() {
            break;
        }
    }
    let text: Vec<_> = rows.iter().map(line).collect();
    Ok((text.join("\n"), Value::Array(rows)))
}

/// A principal on one line.
fn line(row: &Value) -> String {
    let names = |name: &str, of: fn(&Value) -> String| {
        let list = row[name].as_array().into_iter().flatten().map(of).collect::<Vec<_>>();
        if list.is_empty() { "-".to_owned() } else { list.join(",") }
    };
    let key = |key: &Value| {
        let off = if key["active"] == true { "" } else { " (off)" };
        format!("{}{off}", key["id"].as_str().unwrap_or_default())
    };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    format!(
        "{:52} policies {}  keys {}",
        text(&row["arn"]),
        names("policies", |value| value.as_str().unwrap_or_default().to_owned()),
        names("access_keys", key)
    )
}

fn delete(named: &Named) -> Result<Outcome, Failure> {
    let event = if named.role { "DeleteRole" } else { "DeleteUser" };
    change(named, event, |work| {
        let arn = if named.role {
            let role = Role::find(work, &named.account, &named.name)?;
            let arn = role.arn();
            role.delete(work);
            arn
        } else {
            let user = User::find(work, &named.account, &named.name)?;
            let arn = user.arn();
            user.delete(work);
            arn
        };
        Ok((format!("deleted {arn}"), json!({ "arn": arn })))
    })
}

fn policy(policy: &Policy) -> Result<Outcome, Failure> {
    match policy {
        Policy::Get(named) => {
            let data = open(&named.store)?;
            let mut work = data.service.work(system_clock());
            let (policies, trust) = if named.role {
                let role = Role::find(&mut work, &named.account, &named.name).map_err(failure)?;
                let trust = role.shown_trust(&mut work).map_err(|fault| failure(fault.into()))?;
                (role.policies, Some(trust))
            } else {
                let user = User::find(&mut work, &named.account, &named.name).map_err(failure)?;
                (user.policies, None)
            };
            let parse = |text: &str| serde_json::from_str::<Value>(text).unwrap_or_default();
            let policies: BTreeMap<_, _> =
                policies.iter().map(|(name, text)| (name.clone(), parse(text))).collect();
            let value = json!({ "policies": policies, "trust": trust.as_deref().map(parse) });
            Ok((serde_json::to_string_pretty(&value).unwrap_or_default(), value))
        }
        Policy::Put { principal, file, policy_name } => {
            let name = match policy_name {
                Some(name) => name.clone(),
                None => name_of(file)?,
            };
            let is_trust = principal.role && name == "trust";
            let kind = if is_trust { Kind::Trust } else { Kind::Identity };
            let PolicyFile { text, findings } = read_policy(file, kind)?;
            change(principal, "PutPrincipalPolicy", |work| {
                let (account, of) = (&principal.account, &principal.name);
                let arn = if !principal.role {
                    User::find(work, account, of)?.put_policy(work, &name, &text)?.arn()
                } else if is_trust {
                    Role::find(work, account, of)?.put_trust(work, &text)?.arn()
                } else {
                    Role::find(work, account, of)?.put_policy(work, &name, &text)?.arn()
                };
                let value = with_findings(json!({ "arn": arn, "policy": name }), &findings);
                Ok((format!("{arn} has the policy {name}"), value))
            })
        }
        Policy::Delete { principal, policy_name } => {
            change(principal, "DeletePrincipalPolicy", |work| {
                let (account, of) = (&principal.account, &principal.name);
                let arn = if principal.role {
                    Role::find(work, account, of)?.delete_policy(work, policy_name)?.arn()
                } else {
                    User::find(work, account, of)?.delete_policy(work, policy_name)?.arn()
                };
                let text = format!("{arn} has no policy {policy_name} any more");
                Ok((text, json!({ "arn": arn, "policy": policy_name })))
            })
        }
    }
}

fn key(key: &Key) -> Result<Outcome, Failure> {
    match key {
        Key::Create { principal, access_key_id } => {
            let given = data::given_secret()?;
            change(principal, "CreateAccessKey", |work| {
                let user = User::find(work, &principal.account, &principal.name)?;
                new_key(work, user, access_key_id.clone(), given.as_ref())
            })
        }
        Key::List(named) => {
            let data = open(&named.store)?;
            let mut work = data.service.work(system_clock());
            let user = User::find(&mut work, &named.account, &named.name).map_err(failure)?;
            let keys = user.access_keys(&mut work).map_err(failure)?;
            let rfc3339 = |ms: i64| outlast_pki::time::rfc3339(ms.div_euclid(1000));
            let text: Vec<_> = keys
                .iter()
                .map(|key| {
                    let state = if key.active { "active" } else { "off" };
                    format!("{:24} {state:8} made {}", key.id, rfc3339(key.created_ms))
                })
                .collect();
            let rows: Vec<_> = keys
                .iter()
                .map(|key| {
                    let created = rfc3339(key.created_ms);
                    json!({ "id": key.id, "active": key.active, "created": created })
                })
                .collect();
            Ok((text.join("\n"), Value::Array(rows)))
        }
        Key::Activate(one) => set_active(one, true),
        Key::Deactivate(one) => set_active(one, false),
        Key::Delete(one) => change(&one.principal, "DeleteAccessKey", |work| {
            let user = User::find(work, &one.principal.account, &one.principal.name)?;
            user.delete_access_key(work, &one.access_key_id)?;
            let id = &one.access_key_id;
            Ok((format!("deleted the access key {id}"), json!({ "access_key_id": id })))
        }),
    }
}

fn set_active(one: &OneKey, active: bool) -> Result<Outcome, Failure> {
    change(&one.principal, "UpdateAccessKey", |work| {
        let user = User::find(work, &one.principal.account, &one.principal.name)?;
        user.set_access_key_active(work, &one.access_key_id, active)?;
        let state = if active { "on" } else { "off" };
        let text = format!("the access key {} is {state}", one.access_key_id);
        Ok((text, json!({ "access_key_id": one.access_key_id, "active": active })))
    })
}

/// Changes the directory and records it in the same durable step; beside a server that may be running.
fn change(
    named: &Named,
    event: &str,
    change: impl Fn(&mut Work<'_>) -> Result<Outcome, IdentityError>,
) -> Result<Outcome, Failure> {
    let data = Data::open_beside(&named.store.location()?, &named.store.provider()?)?;
    let changed = data.change(|work| {
        let outcome = change(work).map_err(failure)?;
        let (now_ms, parameters) = (work.now_ms(), parameters(named, &outcome.1));
        let (source, account) = ("iam.amazonaws.com", named.account.as_str());
        let id = ids::event_id(now_ms)?;
        let record = operator_event(now_ms, &id, source, event, account, &parameters);
        Ok((outcome, vec![record]))
    });
    changed.map_err(|failure: Failure| match failure.is_conflict() {
        true => Failure::new("others keep changing the same principal").hint("try again"),
        false => failure,
    })
}

/// What the audit event says of a change. Only what is listed here: a secret is not.
fn parameters(named: &Named, outcome: &Value) -> Value {
    let mut parameters = json!({
        "name": named.name,
        "type": if named.role { "role" } else { "user" },
    });
    for (name, from) in [
        ("accessKeyId", "access_key_id"),
        ("active", "active"),
        ("policyName", "policy"),
        ("policyFindings", "policy_findings"),
    ] {
        if let Some(value) = outcome.get(from) {
            parameters[name] = value.clone();
        }
    }
    parameters
}

fn failure(error: IdentityError) -> Failure {
    let error = match error {
        IdentityError::Fault(fault) => return fault.into(),
        error => error,
    };
    let hint = match &error {
        IdentityError::NotFound(_) => {
            Some("see what is there with: outlast principal list --data DIR")
        }
        IdentityError::LimitExceeded(_) => {
            Some("see what is there with: outlast principal list --data DIR")
        }
        IdentityError::AlreadyExists(_) => Some("choose another name, or delete it first"),
        _ => None,
    };
    let failure = Failure::new(error.to_string());
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

/// A policy as a file has it.
struct PolicyFile {
    text: String,
    /// What its author should know.
    findings: Vec<String>,
}

/// Reads a policy, and says of which file it is if it is not valid. What it does not do, though it looks as if, is a
/// warning.
fn read_policy(path: &Path, kind: Kind) -> Result<PolicyFile, Failure> {
    let text = String::from_utf8(files::read(path, MAX_POLICY)?)
        .map_err(|_| Failure::file(path, &"the policy is not UTF-8 text"))?;
    let policy = Document::parse(&text, kind)
        .map_err(|error| Failure::file(path, &format!("the policy is not valid: {error}")))?;
    let findings = policy.findings();
    for finding in &findings {
        output::warning(&format!("{}: {finding}", path.display()));
    }
    Ok(PolicyFile { text, findings })
}

/// A result with what is to be said of its policies, if there is something.
fn with_findings(mut value: Value, findings: &[String]) -> Value {
    if !findings.is_empty() {
        value["policy_findings"] = findings.into();
    }
    value
}

fn name_of(path: &Path) -> Result<String, Failure> {
    path.file_stem()
        .and_then(|stem| stem.to_str())
        .map(str::to_owned)
        .ok_or_else(|| Failure::file(path, &"the file has no usable name; give --policy-name"))
}
