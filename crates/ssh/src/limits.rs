//! Limits on what a peer controls. Values that operators change are in [`Limits`].

/// Key exchanges that a peer may begin one after the other without data in between.
pub(crate) const EXCHANGES: u32 = 16;
/// Milliseconds after which it may begin one more.
pub(crate) const EXCHANGE_MS: u64 = 1000;
/// Bytes, of both directions together, after which it may begin one more. OpenSSH with `RekeyLimit=64K` moves 134 KB for three
/// exchanges, one of which follows another at once.
pub(crate) const EXCHANGE_BYTES: u64 = 16 * 1024;
/// Longest version line (RFC 4253, section 4.2), with its line ending.
pub(crate) const MAX_VERSION_LEN: usize = 255;
/// Bytes of other lines that a server may send before its version.
pub(crate) const MAX_GREETING_LEN: usize = 8 * 1024;
/// `packet_length` before authentication: a client's key exchange and a signature with an ML-DSA certificate fit.
pub(crate) const MAX_EARLY_PACKET_LEN: usize = 16 * 1024;
/// Bytes that the input may hold beyond a packet of that size.
pub(crate) const EARLY_READ: usize = 1024;
/// `packet_length` after it, at least; OpenSSH has the same.
pub(crate) const MAX_PACKET_LEN: usize = 256 * 1024;
/// Bytes of what a packet has around a channel's data.
pub(crate) const PACKET_OVERHEAD: usize = 1024;
/// Longest name-list of a `SSH_MSG_KEXINIT`, in bytes.
pub(crate) const MAX_NAME_LIST_LEN: usize = 4 * 1024;
/// Names in a name-list.
pub(crate) const MAX_NAMES: usize = 128;
/// Longest name of an algorithm (RFC 4251, section 6).
pub(crate) const MAX_NAME_LEN: usize = 64;
/// Longest text of a peer in an event, in characters.
pub(crate) const MAX_TEXT_LEN: usize = 256;
/// Longest user name, in bytes.
pub(crate) const MAX_USER_LEN: usize = 256;
/// Longest password or response, in bytes.
pub(crate) const MAX_PASSWORD_LEN: usize = 1024;
/// Questions of a keyboard-interactive round, and so responses.
pub(crate) const MAX_PROMPTS: usize = 8;
/// Longest command of an `exec` request, in bytes.
pub(crate) const MAX_COMMAND_LEN: usize = 32 * 1024;
/// Host keys that a client takes from `hostkeys-00@openssh.com`, or asks to be proved.
pub(crate) const MAX_ANNOUNCED_KEYS: usize = 16;
/// Bytes of replies that wait for a key exchange to end.
pub(crate) const MAX_HELD: usize = 256 * 1024;
/// Packets that neither carry nor cause anything (`SSH_MSG_IGNORE`, `SSH_MSG_DEBUG`, unknown ones) before authentication.
pub(crate) const MAX_IDLE_PACKETS: u32 = 64;
/// Packets under one key. GCM's counter and the sequence number must not repeat (RFC 4344, section 3.1).
pub(crate) const MAX_PACKETS_BY_KEY: u64 = 1 << 31;
/// Principals, and critical options or extensions, of a certificate.
pub(crate) const MAX_CERTIFICATE_ITEMS: usize = 256;
/// Longest line of a public key, in bytes.
pub(crate) const MAX_KEY_LINE_LEN: usize = 16 * 1024;
/// Longest private key file, in bytes.
pub(crate) const MAX_KEY_FILE_LEN: usize = 64 * 1024;
/// Longest answer of an agent, in bytes; OpenSSH has the same.
pub(crate) const MAX_AGENT_MESSAGE: usize = 256 * 1024;
/// Longest key revocation list, in bytes.
pub const MAX_KRL_LEN: usize = 16 * 1024 * 1024;
/// Ranges of serial numbers, key ids, keys and fingerprints of a key revocation list.
pub(crate) const MAX_KRL_ENTRIES: usize = 1_000_000;

/// Limits of a connection.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Failed tries to authenticate; the connection ends with the last one. The method `none` is not counted.
    pub auth_tries: u32,
    /// Channels that are open at a time.
    pub channels: usize,
    /// Receive window of a channel, in bytes.
    pub window: u32,
    /// Receive window that a channel opens with, in bytes, if it is smaller; [`crate::Server::widen`] makes it the whole one.
    pub first_window: u32,
    /// Most data that the peer may send in a packet, in bytes. At most 255 KiB are used.
    pub packet: u32,
    /// Bytes that wait to be sent, in all channels together.
    pub queued: usize,
    /// Bytes in either direction after which keys are exchanged again.
    pub rekey_bytes: u64,
    /// Milliseconds after which keys are exchanged again.
    pub rekey_ms: u64,
    /// Milliseconds that a key exchange may take, as long as nobody has authenticated.
    pub exchange_ms: u64,
    /// The same afterwards. A slow client must first take what was sent before it, up to some megabytes.
    pub rekeying_ms: u64,
    /// Milliseconds that a server with [`crate::ServerConfig::preferred`] methods waits for a client's list before it sends its own.
    pub offer_ms: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            auth_tries: 6,
            channels: 10,
            window: 2 * 1024 * 1024,
            first_window: u32::MAX,
            packet: 32 * 1024,
            queued: 4 * 1024 * 1024,
            rekey_bytes: 1 << 30,
            rekey_ms: 60 * 60 * 1000,
            exchange_ms: 60 * 1000,
            rekeying_ms: 10 * 60 * 1000,
            // JSch sends its list after the server's identification string, sometimes more than a second later.
            offer_ms: 5000,
        }
    }
}

impl Limits {
    /// The receive window of a channel that opens.
    pub(crate) fn opening_window(&self) -> u32 {
        self.window.min(self.first_window)
    }

    /// `packet` as it is announced.
    pub(crate) fn announced_packet(&self) -> u32 {
        let most = u32::try_from(MAX_PACKET_LEN - PACKET_OVERHEAD).unwrap_or(u32::MAX);
        self.packet.clamp(1024, most)
    }
}
