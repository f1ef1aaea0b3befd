//! Which requests may run at the same time.

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::request::Request;

/// What a request touches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Lane {
    /// Nothing.
    Free,
    /// Names, without changing any.
    Look,
    /// Names or attributes of files by name: nothing else may run.
    Change,
    /// The content behind handles, without changing it.
    Read(Bytes),
    /// The content behind one handle or two: nothing else may use them.
    Write(Bytes, Option<Bytes>),
}

impl Lane {
    pub(super) fn of(request: &Request) -> Self {
        match request {
            Request::RealPath { .. }
            | Request::Limits
            | Request::ExpandPath { .. }
            | Request::HomeDirectory { .. }
            | Request::UsersGroups { .. }
            | Request::Unknown { .. } => Self::Free,
            Request::LStat { .. }
            | Request::Stat { .. }
            | Request::ReadLink { .. }
            | Request::OpenDir { .. }
            | Request::StatVfs { .. } => Self::Look,
            Request::Open { how, .. } if !how.changes() => Self::Look,
            Request::Open { .. }
            | Request::SetStat { .. }
            | Request::LSetStat { .. }
            | Request::Remove { .. }
            | Request::MkDir { .. }
            | Request::RmDir { .. }
            | Request::Rename { .. }
            | Request::PosixRename { .. }
            | Request::Symlink { .. }
            | Request::HardLink { .. } => Self::Change,
            Request::Read { handle, .. }
            | Request::FStat { handle }
            | Request::FStatVfs { handle } => Self::Read(handle.clone()),
            // A listing has a position.
            Request::ReadDir { handle }
            | Request::Close { handle }
            | Request::Write { handle, .. }
            | Request::FSetStat { handle, .. }
            | Request::FSync { handle } => Self::Write(handle.clone(), None),
            Request::CopyData { from, to, .. } => Self::Write(from.clone(), Some(to.clone())),
        }
    }
}

/// The handles of a request.
pub(super) fn handles(request: &Request) -> [Option<&Bytes>; 2] {
    match request {
        Request::Read { handle, .. }
        | Request::FStat { handle }
        | Request::FStatVfs { handle }
        | Request::ReadDir { handle }
        | Request::Close { handle }
        | Request::Write { handle, .. }
        | Request::FSetStat { handle, .. }
        | Request::FSync { handle } => [Some(handle), None],
        Request::CopyData { from, to, .. } => [Some(from), Some(to)],
        _ => [None, None],
    }
}

/// Uses of one handle.
#[derive(Debug, Default, Clone, Copy)]
struct Uses {
    reads: usize,
    writes: usize,
}

/// Lanes in use.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    looks: usize,
    changes: usize,
    reads: usize,
    writes: usize,
    handles: BTreeMap<Bytes, Uses>,
}

impl Lanes {
    /// Whether a request of this lane must wait for those that are in.
    pub(super) fn conflicts(&self, lane: &Lane) -> bool {
        let in_use = |handle: &Bytes| self.handles.get(handle).copied().unwrap_or_default();
        match lane {
            Lane::Free => false,
            // The size of a file that is being written, for instance.
            Lane::Look => self.changes > 0 || self.writes > 0,
            Lane::Change => self.looks + self.changes + self.reads + self.writes > 0,
            Lane::Read(handle) => self.changes > 0 || in_use(handle).writes > 0,
            Lane::Write(handle, other) => {
                let busy = |handle: &Bytes| {
                    let uses = in_use(handle);
                    uses.reads + uses.writes > 0
                };
                self.changes + self.looks > 0 || busy(handle) || other.as_ref().is_some_and(busy)
            }
        }
    }

    pub(super) fn enter(&mut self, lane: &Lane) {
        match lane {
            Lane::Free => {}
            Lane::Look => self.looks += 1,
            Lane::Change => self.changes += 1,
            Lane::Read(handle) => {
                self.reads += 1;
                self.handles.entry(handle.clone()).or_default().reads += 1;
            }
            Lane::Write(handle, other) => {
                self.writes += 1;
                for handle in std::iter::once(handle).chain(other) {
                    self.handles.entry(handle.clone()).or_default().writes += 1;
                }
            }
        }
    }

    pub(super) fn leave(&mut self, lane: &Lane) {
        match lane {
            Lane::Free => {}
            Lane::Look => self.looks -= 1,
            Lane::Change => self.changes -= 1,
            Lane::Read(handle) => {
                self.reads -= 1;
                self.leave_handle(handle, Uses { reads: 1, writes: 0 });
            }
            Lane::Write(handle, other) => {
                self.writes -= 1;
                for handle in std::iter::once(handle).chain(other) {
                    self.leave_handle(handle, Uses { reads: 0, writes: 1 });
                }
            }
        }
    }

    fn leave_handle(&mut self, handle: &Bytes, less: Uses) {
        let Some(uses) = self.handles.get_mut(handle) else { return };
        uses.reads -= less.reads;
        uses.writes -= less.writes;
        if uses.reads + uses.writes == 0 {
            self.handles.remove(handle);
        }
    }
}
