//! Ports for servers that are told theirs before they start.

use std::fs::{File, create_dir_all};
use std::net::{TcpListener, UdpSocket};
use std::os::unix::fs::MetadataExt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

/// Ports that no program gets unless it asks for one of them: those of port 0 and of clients begin at 32768
/// (`ip_local_port_range`, unless somebody has changed it).
const FIRST: u16 = 20_000;
const COUNT: u16 = 12_000;

/// Locks of this process's ports; they end with it.
static TAKEN: Mutex<Vec<File>> = Mutex::new(Vec::new());

/// A port of 127.0.0.1 at which nobody listens, for TCP and UDP. Until this process ends, no other call returns it, in
/// this process or another one.
///
/// # Panics
/// If all are taken, or the locks in the folder for temporary files belong to another user.
#[must_use]
#[expect(clippy::unwrap_used, reason = "a test may fail")]
pub fn free_port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    // Each user has locks of their own.
    let user = std::fs::metadata("/proc/self").unwrap().uid();
    let folder = std::env::temp_dir().join(format!("outlast-test-ports-{user}"));
    create_dir_all(&folder).unwrap();
    // Each process begins elsewhere, so that few look at ports of others.
    let begin = std::process::id().wrapping_mul(97);
    for _ in 0..COUNT {
        let next = begin.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
        let port = FIRST + u16::try_from(next % u32::from(COUNT)).unwrap();
        // Another open file of this process does not get the lock either.
        let Some(lock) =
            File::create(folder.join(port.to_string())).ok().filter(|lock| lock.try_lock().is_ok())
        else {
            continue;
        };
        let address = ("127.0.0.1", port);
        if TcpListener::bind(address).is_ok() && UdpSocket::bind(address).is_ok() {
            TAKEN.lock().unwrap().push(lock);
            return port;
        }
    }
    panic!("no port is free, or {} belongs to somebody else", folder.display());
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may fail")]

    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_port_is_given_once_and_is_none_that_others_get() {
        let ports: BTreeSet<_> = (0..100).map(|_| free_port()).collect();
        assert_eq!(ports.len(), 100);
        for port in ports {
            // Nobody listens, and the lock is held.
            drop(TcpListener::bind(("127.0.0.1", port)).unwrap());
            let user = std::fs::metadata("/proc/self").unwrap().uid();
            let lock = format!("outlast-test-ports-{user}/{port}");
            assert!(File::open(std::env::temp_dir().join(lock)).unwrap().try_lock().is_err());
        }
    }
}
