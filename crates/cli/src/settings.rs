//! Settings of `outlast server`: one row each, and what comes of it.
//!
//! `table.rs` has the rows. From a row come the option and its help, the variable, the key in `outlast.toml`, the default,
//! `docs/settings.md` and the manual page. Nothing here says what a value does: whoever uses it checks it.

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
    Acme, Audit, Backup, Buckets, Clients, Ledger, Metrics, PORT, Settings, Store, Tls,
};
pub(crate) use value::Located;
