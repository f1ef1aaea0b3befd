//! The commands, one file each.

pub(crate) mod agent;
pub(crate) mod audit;
pub(crate) mod backup;
pub(crate) mod cert;
pub(crate) mod credentials;
pub(crate) mod events;
pub(crate) mod forward;
pub(crate) mod init;
pub(crate) mod inspect;
pub(crate) mod lab;
pub(crate) mod ledger;
pub(crate) mod log;
pub(crate) mod man;
pub(crate) mod policy;
pub(crate) mod principal;
pub(crate) mod proxy;
pub(crate) mod quickstart;
pub(crate) mod restore;
pub(crate) mod root_key;
pub(crate) mod serve_echo;
pub(crate) mod server;
pub(crate) mod settings;
pub(crate) mod sign;
pub(crate) mod store;
pub(crate) mod tsa;
pub(crate) mod verify;
