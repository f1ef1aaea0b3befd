//! `outlast sftp-server`: SFTP on standard input and output, for OpenSSH's `Subsystem`, `ForceCommand` and `sftp -D`.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use clap::builder::{PossibleValuesParser, RangedU64ValueParser};
use outlast_net::server::system_clock;
use outlast_sftp::error::Error;
use outlast_sftp::limits::MAX_HANDLES;
use outlast_sftp::local::{Folder, FolderOptions};
use outlast_sftp::operation::{KINDS, Operation, Outcome};
use outlast_sftp::owners::Owners;
use outlast_sftp::path::RemotePath;
use outlast_sftp::rights::Rights;
use outlast_sftp::session::Session;
use outlast_sftp::view::View;

use crate::failure::Failure;

/// Arguments of `sftp-server`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Folder to serve; clients see it as / and cannot leave it.
    #[arg(long, value_name = "DIR")]
    root: PathBuf,
    /// Folder, as clients see it, at which relative paths begin.
    #[arg(long, short = 'd', value_name = "PATH", default_value = "/")]
    start: PathBuf,
    /// Refuse everything that changes files.
    #[arg(long, short = 'R')]
    read_only: bool,
    /// Show an uploaded file when its client closes it, whole and on disk, or not at all.
    #[arg(long)]
    atomic: bool,
    /// Hide files and folders of this name, everywhere. Symbolic links are not followed then. May be repeated.
    #[arg(long, value_name = "NAME")]
    hide: Vec<String>,
    /// Serve only these requests, separated by commas, such as open,read,close,stat.
    #[arg(long, short = 'p', value_name = "REQUESTS", value_delimiter = ',', value_parser = PossibleValuesParser::new(KINDS.iter().copied()), hide_possible_values = true)]
    allow: Vec<String>,
    /// Refuse these requests, separated by commas.
    #[arg(long, short = 'P', value_name = "REQUESTS", value_delimiter = ',', value_parser = PossibleValuesParser::new(KINDS.iter().copied()), hide_possible_values = true)]
    deny: Vec<String>,
    /// Open files and folders, at most.
    #[arg(long, value_name = "NUMBER", default_value_t = MAX_HANDLES, value_parser = RangedU64ValueParser::<usize>::new().range(1..=65_536))]
    max_handles: usize,
    /// Threads that wait for the disk.
    #[arg(long, value_name = "NUMBER", default_value_t = 4, value_parser = clap::value_parser!(u8).range(1..=64))]
    threads: u8,
}

/// Bytes that are read at once.
const READ: usize = 256 * 1024;

/// Replies up to this length are joined before they are written.
const JOINED: usize = 16 * 1024;

/// Serves one client until the end of standard input.
pub(crate) fn run(arguments: Arguments) -> Result<(), Failure> {
    let Arguments { root, start, read_only, atomic, hide, allow, deny, max_handles, threads } =
        arguments;
    let folder = Folder::open(&root, FolderOptions { atomic_uploads: atomic })
        .map_err(|error| Failure::file(&root, &error))?;
    let home = start.as_os_str().as_encoded_bytes();
    let home = RemotePath::parse(home, &RemotePath::root())
        .map_err(|error| Failure::new(format!("--start: {error}")))?;
    let owners = Owners::of_system();
    let user = owners.user(rustix::process::geteuid().as_raw());
    let mut view = View::new(|| system_clock().div_euclid(1000))
        .owners(owners)
        .home(home)
        .user(user.as_bytes())
        .mount(RemotePath::root(), Arc::new(folder));
    for name in hide {
        view = view.hide(name.as_bytes());
    }
    if read_only {
        view = view.only(Rights::READ_ONLY);
    }
    let is_allowed = |kind: &str| {
        (allow.is_empty() || allow.iter().any(|name| name == kind))
            && !deny.iter().any(|name| name == kind)
    };
    let carry_out = |operation: Operation| {
        if is_allowed(operation.kind()) {
            return operation.run(&view);
        }
        let error = Error::denied(format!("{} is not allowed here", operation.kind()));
        operation.refuse(&view, error)
    };
    let withheld = KINDS.iter().copied().filter(|kind| !is_allowed(kind)).collect();
    let input = descriptor(&std::io::stdin(), "standard input")?;
    let output = descriptor(&std::io::stdout(), "standard output")?;
    let state = State {
        session: Session::new(max_handles).withhold(withheld),
        ended: false,
        failure: None,
    };
    let server = Arc::new(Server { state: Mutex::new(state), changed: Condvar::new() });
    // Not waited for: it may be reading when the others end.
    let reader = Arc::clone(&server);
    thread::spawn(move || reader.read(input));
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| server.work(&carry_out));
        }
        server.write(output);
    });
    let failure = server.lock().failure.take();
    failure.map_or(Ok(()), Err)
}

/// Standard input or output without Rust's buffers and locks.
fn descriptor(stream: &impl AsFd, what: &str) -> Result<File, Failure> {
    let owned = stream.as_fd().try_clone_to_owned();
    owned.map(File::from).map_err(|error| Failure::new(format!("{what}: {error}")))
}

/// What the threads share.
struct Server {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    session: Session,
    /// There is no more input.
    ended: bool,
    failure: Option<Failure>,
}

impl State {
    /// Whether there is nothing left to do.
    fn is_over(&self) -> bool {
        self.failure.is_some() || (self.ended && self.session.is_idle())
    }
}

impl Server {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    fn fail(&self, failure: Failure) {
        self.lock().failure.get_or_insert(failure);
        self.changed.notify_all();
    }

    /// Reads requests as long as the session wants them. The thread ends with the input.
    fn read(&self, mut input: File) {
        let mut buffer = vec![0; READ];
        loop {
            let mut state = self.lock();
            while !state.session.wants_input() && !state.is_over() {
                state = self.wait(state);
            }
            if state.is_over() {
                return;
            }
            drop(state);
            let read = match input.read(&mut buffer) {
                Ok(read) => read,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return self.fail(Failure::new(format!("standard input: {error}"))),
            };
            let mut state = self.lock();
            if read == 0 {
                state.ended = true;
                drop(state);
                return self.changed.notify_all();
            }
            let received = state.session.receive(&buffer[..read]);
            drop(state);
            match received {
                Ok(()) => self.changed.notify_all(),
                Err(violation) => return self.fail(Failure::new(violation.to_string())),
            }
        }
    }

    /// Runs operations until the session is over.
    fn work(&self, carry_out: &(impl Fn(Operation) -> Outcome + Sync)) {
        let mut state = self.lock();
        loop {
            if state.is_over() {
                break;
            }
            if let Some(violation) = state.session.violation() {
                drop(state);
                return self.fail(Failure::new(violation.to_string()));
            }
            let replies = state.session.waiting_replies();
            let operation = state.session.next_operation();
            if state.session.waiting_replies() > replies {
                // What was refused without an operation is to be written, too.
                self.changed.notify_all();
            }
            let Some(operation) = operation else {
                state = self.wait(state);
                continue;
            };
            drop(state);
            let outcome = carry_out(operation);
            state = self.lock();
            state.session.complete(outcome);
            self.changed.notify_all();
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Writes replies until the session is over.
    fn write(&self, mut output: File) {
        let mut joined = Vec::new();
        loop {
            let mut state = self.lock();
            let first = loop {
                if let Some(packet) = state.session.next_output() {
                    break packet;
                }
                if state.is_over() {
                    return;
                }
                state = self.wait(state);
            };
            joined.clear();
            let mut large = Some(first);
            while let Some(packet) = large.take_if(|packet| packet.len() <= JOINED) {
                joined.extend_from_slice(&packet);
                if joined.len() <= JOINED {
                    large = state.session.next_output();
                }
            }
            drop(state);
            // There is room for more replies.
            self.changed.notify_all();
            let large = large.as_deref().unwrap_or_default();
            if let Err(error) = output.write_all(&joined).and_then(|()| output.write_all(large)) {
                return self.fail(Failure::new(format!("standard output: {error}")));
            }
            // The others wait for the end of the output.
            self.changed.notify_all();
        }
    }
}
