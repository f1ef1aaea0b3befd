//! Settings of `outlast server`, one row each.
//!
//! `table.rs` has the rows. A row gives the option and its help, the variable, the key in `outlast.toml`, the
//! default, `docs/settings.md` and the manual page. What a value means is up to the code that uses and checks it.

mod file;
mod origin;
mod page;
#[macro_use]
mod row;
mod table;
mod value;

pub(crate) use origin::{from, located, name_variable};
pub(crate) use page::{manual, markdown};
pub(crate) use table::{
    Acm, Acme, ArtifactLog, Audit, Backup, Buckets, Clients, Connectors, Events, Ledger, Metrics,
    PORT, Settings, Sftp, SftpUploads, Store, Tls, Tsa,
};
pub(crate) use value::{EventTarget, Located};
