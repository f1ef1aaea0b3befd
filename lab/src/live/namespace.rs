//! A network namespace, held by its file descriptor: when the last holder ends, however it dies, the kernel removes
//! it with all its devices.

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space};

use crate::error::LabError;

/// A network namespace.
#[derive(Debug)]
pub(super) struct Namespace {
    namespace: File,
}

impl Namespace {
    /// Makes a namespace, and runs `setup` in it.
    pub fn make<T: Send>(
        setup: impl FnOnce() -> Result<T, LabError> + Send,
    ) -> Result<(Self, T), LabError> {
        apart(|| {
            #[expect(
                deprecated,
                reason = "it is deprecated for the sake of FILES; NEWNET touches nothing that threads share in memory"
            )]
            rustix::thread::unshare(UnshareFlags::NEWNET).map_err(|error| {
                LabError::unavailable("a network namespace", format!("it needs root ({error})"))
            })?;
            let namespace = File::open(OWN).map_err(|error| LabError::file(OWN.as_ref(), error))?;
            loopback_up()?;
            Ok((Self { namespace }, setup()?))
        })
    }

    /// Runs a closure in this namespace: its sockets and child processes stay there.
    pub fn within<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, LabError> {
        apart(|| {
            enter(self.namespace.as_fd())?;
            Ok(work())
        })
    }

    /// The kernel's number of it.
    pub fn number(&self) -> u64 {
        self.namespace.metadata().map_or(0, |metadata| metadata.ino())
    }

    /// A path to the namespace, which other processes can open while this one lives.
    pub fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), self.namespace.as_raw_fd()))
    }
}

const OWN: &str = "/proc/thread-self/ns/net";

/// Moves this thread into a namespace.
pub(super) fn enter(namespace: BorrowedFd<'_>) -> Result<(), LabError> {
    move_into_link_name_space(namespace, Some(LinkNameSpaceType::Network)).map_err(|error| {
        LabError::failed(format!("the network namespace cannot be entered: {error}"))
    })
}

/// On a thread of its own: a namespace belongs to a thread, and the caller keeps its own.
fn apart<T: Send>(work: impl FnOnce() -> Result<T, LabError> + Send) -> Result<T, LabError> {
    std::thread::scope(|scope| {
        scope
            .spawn(work)
            .join()
            .unwrap_or_else(|_| Err(LabError::failed("a thread of the emulation ended")))
    })
}

/// Loopback starts down in a new namespace. One message of rtnetlink: RTM_NEWLINK with IFF_UP for interface 1.
fn loopback_up() -> Result<(), LabError> {
    use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
    let refused = |error: rustix::io::Errno| LabError::failed(format!("loopback: {error}"));
    let socket = rustix::net::socket_with(
        AddressFamily::NETLINK,
        SocketType::RAW,
        SocketFlags::CLOEXEC,
        // NETLINK_ROUTE is 0.
        None,
    )
    .map_err(refused)?;
    // struct nlmsghdr: length, type, flags, sequence, port.
    let mut message = Vec::new();
    message.extend(32_u32.to_ne_bytes());
    message.extend(16_u16.to_ne_bytes());
    message.extend(5_u16.to_ne_bytes());
    message.extend([0; 8]);
    // struct ifinfomsg: family, type, index, flags, change.
    message.extend([0; 4]);
    message.extend(1_u32.to_ne_bytes());
    message.extend(1_u32.to_ne_bytes());
    message.extend(1_u32.to_ne_bytes());
    rustix::net::send(&socket, &message, SendFlags::empty()).map_err(refused)?;
    let mut answer = [0_u8; 256];
    let (length, _) =
        rustix::net::recv(&socket, &mut answer[..], RecvFlags::empty()).map_err(refused)?;
    // struct nlmsgerr: its first field is 0 for success, or the negative error number.
    match answer.get(16..20).filter(|_| length >= 20) {
        Some([0, 0, 0, 0]) => Ok(()),
        _ => Err(LabError::failed("loopback does not come up in a new network namespace")),
    }
}
