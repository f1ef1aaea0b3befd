//! Tags of all kinds of resources, as rows.

use super::server::find_server;
use super::tag_set::{Tags, check};
use super::workflow::{self, find_workflow};
use super::{
    CONNECTOR, HOST_KEY, Kind, SERVER, TransferError, USER, WORKFLOW, connector, host_key, server,
    user,
};
use crate::arn::{Arn, Scope};
use crate::identity::{Permit, action};
use crate::tags;
use crate::work::Work;

/// Finds the resource with the id in an ARN, and returns the ARN from its record and its tags.
pub type Find = fn(&mut Work<'_>, &Scope, &str) -> Result<(String, Tags), TransferError>;

/// A kind of resource that has tags.
pub struct Taggable {
    /// The kind.
    pub kind: &'static Kind,
    find: Find,
    /// Replaces the tags.
    set: fn(&mut Work<'_>, &Scope, &str, Tags) -> Result<(), TransferError>,
}

/// All kinds.
pub static TAGGABLE: &[Taggable] = &[
    Taggable {
        kind: &SERVER,
        find: |work, scope, id| {
            let found = find_server(work, scope, id)?;
            Ok((found.arn(), found.record.tags))
        },
        set: |work, scope, id, tags| {
            let mut found = find_server(work, scope, id)?;
            found.record.tags = tags;
            Ok(server::save(work, &found)?)
        },
    },
    Taggable {
        kind: &USER,
        find: |work, scope, id| {
            let found = user_of(work, scope, id)?;
            Ok((found.arn(), found.record.tags))
        },
        set: |work, scope, id, tags| {
            let mut found = user_of(work, scope, id)?;
            found.record.tags = tags;
            Ok(user::save(work, &found)?)
        },
    },
    Taggable {
        kind: &HOST_KEY,
        find: |work, scope, id| {
            let found = host_key_of(work, scope, id)?;
            Ok((found.arn(), found.record.tags))
        },
        set: |work, scope, id, tags| {
            let mut found = host_key_of(work, scope, id)?;
            found.record.tags = tags;
            Ok(host_key::save(work, &found)?)
        },
    },
    Taggable {
        kind: &WORKFLOW,
        find: |work, scope, id| {
            let found = find_workflow(work, scope, id)?;
            Ok((found.arn(), found.record.tags))
        },
        set: |work, scope, id, tags| {
            let mut found = find_workflow(work, scope, id)?;
            found.record.tags = tags;
            Ok(workflow::save(work, &found)?)
        },
    },
    Taggable {
        kind: &CONNECTOR,
        find: |work, scope, id| {
            let found = connector::find_connector(work, scope, id)?;
            Ok((found.arn(), found.tags().clone()))
        },
        set: |work, scope, id, tags| {
            let found = connector::find_connector(work, scope, id)?;
            Ok(connector::set_tags(work, found, tags)?)
        },
    },
];

fn user_of(work: &mut Work<'_>, scope: &Scope, id: &str) -> Result<user::User, TransferError> {
    let (server, name) = id.split_once('/').ok_or_else(|| unknown(id))?;
    let server = find_server(work, scope, server)?;
    user::find_user(work, &server, name)
}

fn host_key_of(
    work: &mut Work<'_>,
    scope: &Scope,
    id: &str,
) -> Result<host_key::HostKey, TransferError> {
    let (server, id) = id.split_once('/').ok_or_else(|| unknown(id))?;
    let server = find_server(work, scope, server)?;
    host_key::find_host_key(work, &server, id)
}

fn unknown(id: &str) -> TransferError {
    TransferError::not_found("Unknown resource", "Resource", id)
}

impl Taggable {
    /// Finds the resource with this ARN: its kind, the ARN from its record, and its tags.
    pub fn find(
        work: &mut Work<'_>,
        scope: &Scope,
        text: &str,
    ) -> Result<(&'static Self, String, Tags), TransferError> {
        let (row, id) = Self::of(scope, text)?;
        let (arn, tags) = (row.find)(work, scope, &id)?;
        Ok((row, arn, tags))
    }

    fn of(scope: &Scope, text: &str) -> Result<(&'static Self, String), TransferError> {
        let arn = Arn::parse(text).ok_or_else(|| unknown(text))?;
        let found = TAGGABLE.iter().find_map(|row| {
            let id = row.kind.id_in(&arn, scope)?;
            Some((row, id.to_owned()))
        });
        found.ok_or_else(|| unknown(text))
    }
}

/// Adds or replaces tags.
pub fn add_tags(
    work: &mut Work<'_>,
    scope: &Scope,
    arn: &str,
    more: Tags,
    permit: &Permit<action::transfer::TagResource>,
) -> Result<(), TransferError> {
    permit.opens(arn)?;
    let (row, id) = Taggable::of(scope, arn)?;
    let (_, mut all) = (row.find)(work, scope, &id)?;
    if let Some(clash) = tags::clash(&all, more.keys()) {
        return Err(TransferError::InvalidRequest(tags::refusal(clash)));
    }
    all.extend(more);
    check(&all)?;
    (row.set)(work, scope, &id, all)
}

/// Removes tags.
pub fn remove_tags(
    work: &mut Work<'_>,
    scope: &Scope,
    arn: &str,
    keys: &[String],
    permit: &Permit<action::transfer::UntagResource>,
) -> Result<(), TransferError> {
    permit.opens(arn)?;
    let (row, id) = Taggable::of(scope, arn)?;
    let (_, mut all) = (row.find)(work, scope, &id)?;
    all.retain(|key, _| !keys.contains(key));
    (row.set)(work, scope, &id, all)
}
