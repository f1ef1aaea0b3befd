//! SFTP version 3 as OpenSSH speaks it, without sockets and without threads.
//!
//! [`session::Session`] takes a client's bytes and gives replies; the work in between are [`operation::Operation`]s, which the
//! caller runs on threads of its own, because they block. An operation acts on a [`view::View`]: what one user sees,
//! composed of [`volume::Volume`]s, with rights and a quota. [`local::Folder`] is the volume of a local folder.
//! [`client::Client`] is the other side, for files on other servers.
//!
//! The wire formats ([`request`], [`reply`], [`attributes`]) are of draft-ietf-secsh-filexfer-02, with OpenSSH's extensions
//! and its one deviation (`PROTOCOL` of its sources, section 4.1): the arguments of SYMLINK are swapped.

pub mod arrival;
pub mod attributes;
pub mod below;
pub mod client;
pub mod error;
pub mod handles;
pub mod limits;
pub mod local;
pub mod longname;
pub mod operation;
pub mod owners;
pub mod path;
pub mod quota;
pub mod reply;
pub mod request;
pub mod rights;
pub mod session;
pub mod view;
pub mod volume;
pub mod wire;
