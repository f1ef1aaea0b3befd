//! OpenSSL 3.5 or later, if its libraries are installed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use outlast_native::openssl::{Connection, Context, OpenSsl, Session, Setup, Side, load};

use super::chain::{self, SERVER_NAMES};
use super::exchange::{Peer, shake};
use super::helper;
use super::implementation::{Handshaker, Stack, wrong_group};
use crate::error::LabError;
use crate::subject::{Kind, Subject};
use crate::trace::Trace;
use crate::trusted::{own_peers, trusted};

/// Variable with the folder of `libssl.so.3` and `libcrypto.so.3`.
pub const FOLDER_VARIABLE: &str = "OUTLAST_OPENSSL_LIB";
/// Set if the program was started by another loader than the system's, so that it does not start itself again.
const UNDER_LOADER: &str = "OUTLAST_LAB_UNDER_LOADER";
/// Where `cargo xtask peers` installs it, below its folder.
const PEERS: &str = "openssl/tree/usr/lib";
const LIBRARIES: [&str; 2] = ["libcrypto.so.3", "libssl.so.3"];

/// The stack's row.
#[derive(Debug)]
pub struct OpenSslStack;

/// Folders to search before the system's, and why others are not used.
fn folders() -> (Vec<PathBuf>, Vec<String>) {
    let chosen = std::env::var_os(FOLDER_VARIABLE).map(PathBuf::from);
    let ours = own_peers().and_then(|peers| std::fs::read_dir(peers.join(PEERS)).ok());
    let ours = ours.into_iter().flatten().flatten().map(|entry| entry.path());
    let (mut folders, mut refused) = (Vec::new(), Vec::new());
    for folder in chosen.into_iter().chain(ours) {
        let files = LIBRARIES.map(|name| folder.join(name));
        if !files.iter().all(|file| file.exists()) {
            continue;
        }
        let found = files.iter().try_for_each(|file| trusted(file).map(drop));
        match found.and_then(|()| trusted(&folder)) {
            Ok(folder) => folders.push(folder),
            Err(error) => refused.push(error.to_string()),
        }
    }
    (folders, refused)
}

/// The program as a command. The libraries in the checkout may need a newer C library than the system's, which is
/// installed next to them with its own loader: then that loader starts the program.
pub fn command(executable: &Path) -> Command {
    let loader = |folder: &PathBuf| {
        let mut entries = std::fs::read_dir(folder).ok()?.flatten();
        let found =
            entries.find(|entry| entry.file_name().to_string_lossy().starts_with("ld-linux"))?;
        trusted(&found.path()).ok()
    };
    if library().is_err()
        && let Some((folder, loader)) =
            folders().0.into_iter().find_map(|folder| loader(&folder).map(|found| (folder, found)))
    {
        let mut command = Command::new(loader);
        command.arg("--library-path").arg(folder).arg(executable).env(UNDER_LOADER, "1");
        return command;
    }
    Command::new(executable)
}

/// This program, if it must be started by another loader to use OpenSSL, and was not.
fn elsewhere() -> Option<PathBuf> {
    let this = std::env::current_exe().ok()?;
    let helps = std::env::var_os(UNDER_LOADER).is_none() && command(&this).get_program() != this;
    helps.then_some(this)
}

fn library() -> Result<&'static OpenSsl, LabError> {
    let (folders, refused) = folders();
    load(&folders).map_err(|missing| {
        let reasons: Vec<String> = refused.into_iter().chain([missing.to_string()]).collect();
        LabError::unavailable(
            "OpenSSL 3.5 or later",
            format!(
                "its libraries: from the system, from cargo xtask peers next to the build, or in the folder that {FOLDER_VARIABLE} names ({})",
                reasons.join("; ")
            ),
        )
    })
}

impl Stack for OpenSslStack {
    fn name(&self) -> &'static str {
        "OpenSSL"
    }

    fn version(&self) -> Result<String, LabError> {
        library().map(|found| found.version().to_owned()).or_else(|unavailable| {
            let offer = elsewhere().and_then(|this| helper::offer(&this, self, &[]).ok());
            offer.map(|offer| offer.version).ok_or(unavailable)
        })
    }

    fn command(&self, executable: &Path) -> Command {
        command(executable)
    }

    fn supports(&self, subject: &Subject) -> bool {
        static KNOWN: Mutex<BTreeMap<&'static str, bool>> = Mutex::new(BTreeMap::new());
        if subject.key_exchange.legacy || subject.authentication.legacy {
            return false;
        }
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        *known.entry(subject.key_exchange.name).or_insert_with(|| has_group(subject))
    }

    fn prepare(&self, subject: &Subject) -> Result<Box<dyn Handshaker>, LabError> {
        let openssl = match (library(), elsewhere()) {
            (Ok(openssl), _) => openssl,
            (Err(_), Some(this)) => return helper::remote(&this, self, subject),
            (Err(error), None) => return Err(error),
        };
        let server_chain = chain::server(subject.authentication, subject.certificates)?;
        let client_chain = match subject.kind {
            Kind::Mutual => Some(chain::client(subject.authentication, subject.certificates)?),
            _ => None,
        };
        let group = subject.key_exchange.name;
        let client_groups = match subject.kind {
            Kind::HelloRetry => format!("{}:{group}", wrong_group(subject)?.name),
            _ => group.to_owned(),
        };
        let (chain, key) = (server_chain.chain_pem(), server_chain.key_pem()?);
        let client_root = client_chain.as_ref().map(|chain| chain.root_pem());
        let server = Setup {
            side: Side::Server,
            groups: group,
            identity: Some((&chain, &key)),
            roots: client_root.as_deref(),
        };
        let server = Context::new(openssl, &server).map_err(LabError::failed)?;
        let identity = match &client_chain {
            Some(chain) => Some((chain.chain_pem(), chain.key_pem()?)),
            None => None,
        };
        let server_root = server_chain.root_pem();
        let client = Setup {
            side: Side::Client,
            groups: &client_groups,
            identity: identity.as_ref().map(|(chain, key)| (chain.as_str(), key.as_str())),
            roots: Some(&server_root),
        };
        let client = Context::new(openssl, &client).map_err(LabError::failed)?;
        let mut ready = Ready { subject: *subject, client, server, session: None };
        if subject.kind == Kind::Resumed {
            ready.session = Some(ready.shake()?.1);
        }
        Ok(Box::new(ready))
    }
}

fn has_group(subject: &Subject) -> bool {
    let groups = subject.key_exchange.name;
    let setup = Setup { side: Side::Client, groups, identity: None, roots: None };
    match (library(), elsewhere()) {
        (Ok(openssl), _) => Context::new(openssl, &setup).is_ok(),
        (Err(_), Some(this)) => helper::offer(&this, &OpenSslStack, &[*subject])
            .is_ok_and(|offer| offer.supported == [true]),
        (Err(_), None) => false,
    }
}

struct Ready {
    subject: Subject,
    client: Context,
    server: Context,
    session: Option<Session>,
}

impl Handshaker for Ready {
    fn handshake(&mut self) -> Result<Trace, LabError> {
        let (trace, session) = self.shake()?;
        if self.session.is_some() {
            self.session = Some(session);
        }
        Ok(trace)
    }
}

impl Ready {
    fn shake(&self) -> Result<(Trace, Session), LabError> {
        let connect = |context: &Context, session| {
            Connection::new(context, SERVER_NAMES[0], session)
                .map(|connection| Half { connection, done: false })
                .map_err(LabError::failed)
        };
        let (mut trace, client, server) =
            shake(|| connect(&self.client, self.session.as_ref()), || connect(&self.server, None))?;
        let expected = self.subject.key_exchange.name;
        for half in [&client, &server] {
            let group = half.connection.group().unwrap_or_default();
            if !group.eq_ignore_ascii_case(expected) {
                return Err(LabError::failed(format!("{group} instead of {expected}")));
            }
        }
        trace.resumed = client.connection.resumed();
        trace.hello_retry = trace.client_done == 4;
        let mutual = self.subject.kind == Kind::Mutual;
        if !client.connection.verified() || server.connection.verified() != mutual {
            return Err(LabError::failed("a certificate was not verified"));
        }
        if trace.resumed != self.session.is_some()
            || trace.hello_retry != (self.subject.kind == Kind::HelloRetry)
        {
            return Err(LabError::failed(format!("not {}", self.subject.name())));
        }
        Ok((trace, client.connection.session().map_err(LabError::failed)?))
    }
}

struct Half {
    connection: Connection,
    done: bool,
}

impl Peer for Half {
    fn turn(&mut self, input: &[u8], output: &mut Vec<u8>) -> Result<(), LabError> {
        if !input.is_empty() {
            self.connection.feed(input).map_err(LabError::failed)?;
        }
        if self.done {
            self.connection.settle().map_err(LabError::failed)?;
        } else {
            self.done = self.connection.handshake().map_err(LabError::failed)?;
        }
        self.connection.drain(output);
        Ok(())
    }

    fn done(&self) -> bool {
        self.done
    }
}
