//! What concerns a server together with its host keys, users and workflows: creating and deleting one, importing keys, and
//! deleting a workflow.

use outlast_crypto::Secret;

use super::host_key::{self, HostKey, NewHostKey};
use super::material::{GENERATED, Material};
use super::provider::Provider;
use super::server::{PREFIX, Record, Server, ServerChange, save};
use super::tag_set::{self, Tags};
use super::user;
use super::workflow::{Attached, Workflow};
use super::{SERVER, TransferError, WORKFLOW, new_id};
use crate::arn::Scope;
use crate::identity::{Permit, action};
use crate::limits::MAX_PAGE;
use crate::quotas;
use crate::work::Work;

/// Properties of a new server.
pub struct NewServer<'a> {
    /// Its settings.
    pub change: ServerChange,
    /// Its host key, if it does not get new ones.
    pub host_key: Option<&'a str>,
    /// Tags.
    pub tags: Tags,
}

/// Creates a server, which serves at once: with this host key, or with new ones. The permits allow creating one, and
/// passing each of its roles.
pub fn create_server(
    work: &mut Work<'_>,
    scope: &Scope,
    new: NewServer<'_>,
    permit: &Permit<action::transfer::CreateServer>,
    may_pass: &[Permit<action::iam::PassRole>],
) -> Result<Server, TransferError> {
    permit.opens(&SERVER.arn(scope, "*"))?;
    let NewServer { change, host_key, tags } = new;
    tag_set::check(&tags)?;
    work.admit::<TransferError>(&quotas::TRANSFER_SERVERS, &[&scope.account, &scope.region])?;
    let mut record = Record {
        id: new_id(PREFIX)?,
        online: true,
        endpoint_type: "PUBLIC".into(),
        endpoint: None,
        provider: Provider::ServiceManaged,
        logging_role: None,
        log_destinations: Vec::new(),
        banner: None,
        welcome: None,
        security_policy: String::new(),
        passive_ip: None,
        resumption: None,
        ignores_set_stat: false,
        listing: None,
        address_type: "IPV4".into(),
        created_ms: work.now_ms(),
        tags,
        workflows: Attached::default(),
    };
    change.apply(work, &mut record, scope, may_pass)?;
    let server = Server::new(scope, record);
    save(work, &server)?;
    match host_key {
        Some(text) => {
            host_key::store(work, &server, &Material::parse(text)?, NewHostKey::default())?;
        }
        None => {
            for kind in GENERATED {
                let made = Material::generate(*kind)?;
                host_key::store(work, &server, &made, NewHostKey::default())?;
            }
        }
    }
    Ok(server)
}

/// Replaces all host keys of a server by this one, as `UpdateServer` with `HostKey` does.
pub fn set_host_key(
    work: &mut Work<'_>,
    server: &Server,
    text: &str,
    permit: &Permit<action::transfer::UpdateServer>,
) -> Result<HostKey, TransferError> {
    permit.opens(&server.arn())?;
    let made = Material::parse(text)?;
    for key in host_key::page(work, server, None, MAX_PAGE)?.items {
        // Read in conflict detection, so that two updates at once leave one key.
        let key = host_key::find_host_key(work, server, key.id())?;
        host_key::forget(work, &key);
    }
    host_key::store(work, server, &made, NewHostKey::default())
}

/// Imports a host key beside those that the server has.
pub fn import_host_key(
    work: &mut Work<'_>,
    server: &Server,
    text: &str,
    new: NewHostKey,
    permit: &Permit<action::transfer::ImportHostKey>,
) -> Result<HostKey, TransferError> {
    permit.opens(&server.arn())?;
    let made = Material::parse(text)?;
    let there = host_key::page(work, server, None, MAX_PAGE)?;
    let public = hex::encode(made.public.blob());
    if there.items.iter().any(|key| key.record.public == public) {
        return Err(TransferError::exists(
            "Host key already exists",
            "HostKey",
            &made.public.fingerprint(),
        ));
    }
    host_key::store(work, server, &made, new)
}

/// Deletes a server with its users and host keys.
pub fn delete_server(
    work: &mut Work<'_>,
    server: &Server,
    permit: &Permit<action::transfer::DeleteServer>,
) -> Result<(), TransferError> {
    permit.opens(&server.arn())?;
    for key in host_key::page(work, server, None, MAX_PAGE)?.items {
        host_key::forget(work, &key);
    }
    let mut after = None;
    loop {
        let page = user::page(work, server, after.as_deref(), MAX_PAGE)?;
        for user in &page.items {
            user::forget(work, user);
        }
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    work.delete(&SERVER.record_key(server.scope(), server.id()));
    Ok(())
}

/// Deletes a workflow that no server names. Executions that have begun go on.
pub fn delete_workflow(
    work: &mut Work<'_>,
    workflow: &Workflow,
    permit: &Permit<action::transfer::DeleteWorkflow>,
) -> Result<(), TransferError> {
    permit.opens(&workflow.arn())?;
    let (scope, id) = (workflow.scope(), workflow.id());
    let mut after = None;
    loop {
        // A server that names it meanwhile writes its record again: see `attach`.
        let prefix = SERVER.prefix(scope);
        let page = work.page::<Record>(&prefix, after.as_deref(), MAX_PAGE)?;
        if let Some(server) = page.items.iter().find(|server| server.workflows.names(id)) {
            // AWS's words.
            let server = &server.id;
            let text = format!("Workflow is still in use by server {server}");
            return Err(TransferError::invalid(text));
        }
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    work.delete(&WORKFLOW.record_key(scope, id));
    Ok(())
}

/// A private key that was opened, for the server that uses it.
pub(super) fn open(work: &mut Work<'_>, key: &HostKey) -> Result<Option<Secret>, TransferError> {
    Ok(work.secret(&key.secret_record_key())?)
}
