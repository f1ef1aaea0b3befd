//! Limits on what a client can make the server hold or do, and on what a server can make a client hold.

/// Longest packet, without its length field (OpenSSH's `SFTP_MAX_MSG_LENGTH`).
pub const MAX_PACKET: usize = 256 * 1024;

/// Most bytes of one READ or WRITE, as `limits@openssh.com` tells clients: OpenSSH leaves 1 KiB for the rest of the packet.
pub const MAX_DATA: usize = MAX_PACKET - 1024;

/// Open handles of a session, unless its owner chooses otherwise; OpenSSH and AWS allow about as many.
pub const MAX_HANDLES: usize = 100;

/// Requests that are parsed and not answered yet. A session that has this many wants no more input.
pub const MAX_REQUESTS: usize = 1024;

/// Bytes of requests that are not answered yet, above which a session wants no more input.
pub const MAX_REQUEST_BYTES: usize = 4 * 1024 * 1024;

/// Bytes of replies that wait for the client or are being made. No operation starts above it.
pub const MAX_REPLY_BYTES: usize = 4 * 1024 * 1024;

/// What a request that is not answered yet counts besides the bytes of its packet: its place in the queue.
pub const REQUEST_OVERHEAD: usize = 256;

/// What a reply that waits counts besides its bytes: its place in the queue and its allocation.
pub const REPLY_OVERHEAD: usize = 128;

/// Bytes of input that are not parsed yet: a caller that keeps to `wants_input` stays below it with windows of up to 4 MiB.
pub const MAX_INPUT: usize = 8 * 1024 * 1024;

/// Requests among which a session searches for one that can start before those in front of it.
pub const LOOKAHEAD: usize = 64;

/// Size of a reply to READDIR above which it takes no further name.
pub const MAX_NAMES_BYTES: usize = 32 * 1024;

/// Longest path of a request (Linux' `PATH_MAX`).
pub const MAX_PATH: usize = 4096;

/// Most identifiers of one `users-groups-by-id@openssh.com`; the reply must fit into a packet.
pub const MAX_IDS: usize = 1024;

/// Attempts to resolve a path while somebody renames the folders on it (`openat2` then fails with EAGAIN).
pub const RESOLVE_TRIES: usize = 64;

/// Bytes of `/etc/passwd` and of `/etc/group` that are read for names of owners.
pub const MAX_OWNERS: u64 = 4 * 1024 * 1024;

/// Buffer for copying from one handle to another when the volumes cannot do it themselves.
pub const COPY_BUFFER: usize = 256 * 1024;

/// Bytes of a READ or WRITE that every server takes (draft-ietf-secsh-filexfer-02, section 3: packets of 34,000 bytes).
pub const CLIENT_DATA: u32 = 32 * 1024;

/// Smallest limit of a server on a READ or WRITE that a client accepts: requests for less would be mostly overhead.
pub const MIN_CLIENT_DATA: u32 = 1024;

/// Requests for one file that a client has under way.
pub const CLIENT_REQUESTS: usize = 64;

/// Bytes that they ask for or carry; the last request may exceed it.
pub const CLIENT_WINDOW: usize = 4 * 1024 * 1024;

/// Longest handle of a server (draft-ietf-secsh-filexfer-02, section 6.3).
pub const MAX_HANDLE: usize = 256;

/// Extensions that a server may announce.
pub const MAX_EXTENSIONS: usize = 256;
