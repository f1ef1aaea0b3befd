//! What a peer offers: its identification string and the name-lists of its first `SSH_MSG_KEXINIT`.

use md5::{Digest, Md5};
use outlast_crypto::ssh::{Algorithm, Kind};
use serde::{Deserialize, Serialize};

/// Names in a list; further ones are left out.
pub const MAX_NAMES: usize = 128;
/// Bytes of a list with its commas: clients of today send 800 at most.
pub const MAX_LIST: usize = 2048;
/// Bytes of a name (RFC 4251, section 6).
const MAX_NAME: usize = 64;
/// Bytes of an identification string (RFC 4253, section 4.2).
pub const MAX_IDENTIFICATION: usize = 253;

/// Marker of a client that takes `SSH_MSG_EXT_INFO` (RFC 8308, section 2.1).
const EXT_INFO: &str = "ext-info-c";
/// Marker of strict key exchange, without which Terrapin can cut messages off (OpenSSH's PROTOCOL, 1.10).
const STRICT: &str = "kex-strict-c-v00@openssh.com";

/// Parts of the names of post-quantum methods, drafts included.
const LATTICES: [&str; 4] = ["mlkem", "sntrup", "kyber", "frodo"];

/// The offer of a client or of a server, the preferred names first.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SshOffer {
    /// Identification string, `SSH-2.0-OpenSSH_10.0 Debian-7`, in printable US-ASCII.
    pub identification: String,
    /// Key exchange methods, markers such as `ext-info-c` included; empty if no `SSH_MSG_KEXINIT` was read.
    pub key_exchanges: Vec<String>,
    /// Host key algorithms.
    pub host_keys: Vec<String>,
    /// Ciphers from the client to the server.
    pub ciphers_to_server: Vec<String>,
    /// Ciphers from the server to the client.
    pub ciphers_to_client: Vec<String>,
    /// MACs from the client to the server.
    pub macs_to_server: Vec<String>,
    /// MACs from the server to the client.
    pub macs_to_client: Vec<String>,
    /// Compressions from the client to the server.
    pub compressions_to_server: Vec<String>,
    /// Compressions from the server to the client.
    pub compressions_to_client: Vec<String>,
    /// Whether names were left out: too many, too long, or with characters that no name has.
    pub cut: bool,
}

impl SshOffer {
    /// From the identification string and the first eight name-lists of the message, as on the wire: key exchange
    /// methods, host key algorithms, ciphers, MACs and compressions, of these three first those to the server.
    pub fn new(identification: &str, lists: [&str; 8]) -> Self {
        let mut cut = false;
        let mut read = |list| names(list, &mut cut);
        let [
            key_exchanges,
            host_keys,
            to_server,
            to_client,
            macs_to_server,
            macs_to_client,
            up,
            down,
        ] = lists;
        Self {
            identification: printable(identification),
            key_exchanges: read(key_exchanges),
            host_keys: read(host_keys),
            ciphers_to_server: read(to_server),
            ciphers_to_client: read(to_client),
            macs_to_server: read(macs_to_server),
            macs_to_client: read(macs_to_client),
            compressions_to_server: read(up),
            compressions_to_client: read(down),
            cut,
        }
    }

    /// The lists in the order of the message.
    pub fn lists(&self) -> [&[String]; 8] {
        [
            &self.key_exchanges,
            &self.host_keys,
            &self.ciphers_to_server,
            &self.ciphers_to_client,
            &self.macs_to_server,
            &self.macs_to_client,
            &self.compressions_to_server,
            &self.compressions_to_client,
        ]
    }

    /// Software and version, without `SSH-2.0-` and without the comment after them.
    pub fn software(&self) -> &str {
        let text = self.identification.splitn(3, '-').nth(2).unwrap_or_default();
        text.split(' ').next().unwrap_or_default()
    }

    /// Key exchange methods without markers, which are none.
    pub fn methods(&self) -> impl Iterator<Item = &str> {
        let names = self.key_exchanges.iter().map(String::as_str);
        names.filter(|name| !name.starts_with("ext-info-") && !name.starts_with("kex-strict-"))
    }

    /// Whether it has strict key exchange.
    pub fn is_strict(&self) -> bool {
        self.key_exchanges.iter().any(|name| name == STRICT)
    }

    /// Whether it takes `SSH_MSG_EXT_INFO`.
    pub fn takes_ext_info(&self) -> bool {
        self.key_exchanges.iter().any(|name| name == EXT_INFO)
    }

    /// Whether it names a post-quantum method, served or not, known or not.
    pub fn names_post_quantum(&self) -> bool {
        self.methods().any(|name| {
            row(name, Kind::KeyExchange).is_some_and(|row| row.post_quantum)
                || LATTICES.iter().any(|part| name.contains(part))
        })
    }

    /// HASSH, the usual fingerprint of SSH clients ("HASSH", Salesforce, github.com/salesforce/hassh): 32 hexadecimal
    /// digits. `None` if names were left out, or if there are none.
    ///
    /// Its definition is the MD5 of four lists. It identifies, and protects nothing.
    pub fn hassh(&self) -> Option<String> {
        self.fingerprint([
            &self.key_exchanges,
            &self.ciphers_to_server,
            &self.macs_to_server,
            &self.compressions_to_server,
        ])
    }

    /// The same for the offer of a server (`hasshServer`): with the lists of what is sent to the client.
    pub fn hassh_server(&self) -> Option<String> {
        self.fingerprint([
            &self.key_exchanges,
            &self.ciphers_to_client,
            &self.macs_to_client,
            &self.compressions_to_client,
        ])
    }

    fn fingerprint(&self, lists: [&Vec<String>; 4]) -> Option<String> {
        if self.cut || self.key_exchanges.is_empty() {
            return None;
        }
        let text: Vec<_> = lists.iter().map(|list| list.join(",")).collect();
        Some(hex::encode(Md5::digest(text.join(";"))))
    }
}

/// Whether this can be a name of a list: at most 64 printable characters of US-ASCII without comma (RFC 4251, section
/// 6). Quotes and backslashes, which no registered name has, are left out as well, so that a list in JSON is as long as
/// on the wire.
pub fn is_name(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b',' | b'"' | b'\\');
    !name.is_empty() && name.len() <= MAX_NAME && name.bytes().all(fits)
}

/// The names of a comma-separated list, within the limits.
fn names(list: &str, cut: &mut bool) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let mut len = 0;
    for name in list.split(',').filter(|name| !name.is_empty()) {
        len += name.len() + 1;
        if out.len() >= MAX_NAMES || len > MAX_LIST {
            *cut = true;
            break;
        }
        if is_name(name) {
            out.push(name.to_owned());
        } else {
            *cut = true;
        }
    }
    out
}

/// An identification string for people and logs.
fn printable(text: &str) -> String {
    let fits = |c: char| c == ' ' || c.is_ascii_graphic() && c != '"' && c != '\\';
    let chars = text.trim_end_matches(['\r', '\n']).chars().take(MAX_IDENTIFICATION);
    chars.map(|c| if fits(c) { c } else { '?' }).collect()
}

/// A row, if the name is known and of this kind.
pub(super) fn row(name: &str, kind: Kind) -> Option<&'static Algorithm> {
    Algorithm::by_name(name).filter(|row| row.kind == kind)
}
