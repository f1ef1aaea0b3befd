//! `SSH_MSG_KEXINIT`: writing, reading, and choosing from two of them (RFC 4253, section 7.1).

use crate::algorithms::Algorithms;
use crate::cipher::{Cipher, Mac};
use crate::error::{Error, printable};
use crate::exchange::Exchange;
use crate::message;
use crate::negotiation::{Chosen, Direction, Disagreement, Lists};
use crate::signature::Algorithm;
use crate::wire::{Reader, Writer};

/// Marker of a client that takes `SSH_MSG_EXT_INFO` (RFC 8308, section 2.1).
pub(crate) const EXT_INFO_CLIENT: &str = "ext-info-c";
/// Markers of strict key exchange (OpenSSH's PROTOCOL, 1.10).
pub(crate) const STRICT_CLIENT: &str = "kex-strict-c-v00@openssh.com";
pub(crate) const STRICT_SERVER: &str = "kex-strict-s-v00@openssh.com";

/// What was chosen, as rows.
pub(crate) struct Rows {
    pub(crate) exchange: &'static Exchange,
    pub(crate) host_key: &'static Algorithm,
    /// Whether the host key comes with a certificate.
    pub(crate) certificate: bool,
    pub(crate) to_server: (&'static Cipher, Option<&'static Mac>),
    pub(crate) to_client: (&'static Cipher, Option<&'static Mac>),
    pub(crate) chosen: Chosen,
}

/// A peer's `SSH_MSG_KEXINIT`.
pub(crate) struct KexInit {
    pub(crate) lists: Lists,
    pub(crate) guess_follows: bool,
}

/// Writes a payload. `markers` follow the key exchange methods.
pub(crate) fn write(
    algorithms: &Algorithms,
    host_keys: &[&str],
    markers: &[&str],
) -> Result<Vec<u8>, Error> {
    let cookie = outlast_crypto::random::bytes::<16>().map_err(|_| Error::library())?;
    let mut methods: Vec<&str> = algorithms.key_exchanges.clone();
    methods.extend_from_slice(markers);
    let mut out = Vec::new();
    out.put_byte(message::KEXINIT);
    out.put(&cookie);
    let mut list = |names: &[&str]| out.put_string(names.join(",").as_bytes());
    list(&methods);
    list(host_keys);
    for _ in 0..2 {
        list(&algorithms.ciphers);
    }
    for _ in 0..2 {
        list(&algorithms.macs);
    }
    for _ in 0..2 {
        list(&["none"]);
    }
    // Languages.
    list(&[]);
    list(&[]);
    // This side never guesses.
    out.put_bool(false);
    out.put_u32(0);
    Ok(out)
}

impl KexInit {
    /// Reads a payload, message number included.
    pub(crate) fn read(payload: &[u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(payload);
        reader.byte()?;
        reader.bytes(16)?;
        let mut list = || reader.names().map(str::to_owned);
        let lists = Lists {
            key_exchanges: list()?,
            host_keys: list()?,
            ciphers_to_server: list()?,
            ciphers_to_client: list()?,
            macs_to_server: list()?,
            macs_to_client: list()?,
            compressions_to_server: list()?,
            compressions_to_client: list()?,
        };
        list()?;
        list()?;
        let guess_follows = reader.bool()?;
        reader.u32()?;
        // Room for what later versions may add.
        Ok(Self { lists, guess_follows })
    }

    pub(crate) fn has_marker(&self, marker: &str) -> bool {
        self.lists.key_exchanges.split(',').any(|name| name == marker)
    }

    /// Whether the sender guessed right: both sides prefer the same method and host key algorithm.
    pub(crate) fn guessed(&self, other: &Self) -> bool {
        let first = |list: &str| list.split(',').next().unwrap_or_default().to_owned();
        first(&self.lists.key_exchanges) == first(&other.lists.key_exchanges)
            && first(&self.lists.host_keys) == first(&other.lists.host_keys)
    }
}

/// Chooses: of each list the client's first that the server has, too.
pub(crate) fn choose(client: &Lists, server: &Lists) -> Result<Rows, Disagreement> {
    let exchange = common(&client.key_exchanges, &server.key_exchanges)
        .and_then(Exchange::by_name)
        .ok_or(Disagreement::KeyExchange)?;
    let (host_key, certificate) = common(&client.host_keys, &server.host_keys)
        .and_then(Algorithm::by_name)
        .ok_or(Disagreement::HostKey)?;
    let direction = |ciphers: (&str, &str), macs: (&str, &str)| {
        let cipher =
            common(ciphers.0, ciphers.1).and_then(Cipher::by_name).ok_or(Disagreement::Cipher)?;
        if cipher.authenticates() {
            return Ok((cipher, None));
        }
        let mac = common(macs.0, macs.1).and_then(Mac::by_name).ok_or(Disagreement::Mac)?;
        Ok((cipher, Some(mac)))
    };
    let to_server = direction(
        (&client.ciphers_to_server, &server.ciphers_to_server),
        (&client.macs_to_server, &server.macs_to_server),
    )?;
    let to_client = direction(
        (&client.ciphers_to_client, &server.ciphers_to_client),
        (&client.macs_to_client, &server.macs_to_client),
    )?;
    for (client, server) in [
        (&client.compressions_to_server, &server.compressions_to_server),
        (&client.compressions_to_client, &server.compressions_to_client),
    ] {
        if common(client, server) != Some("none") {
            return Err(Disagreement::Compression);
        }
    }
    let names = |(cipher, mac): (&Cipher, Option<&Mac>)| Direction {
        cipher: cipher.name,
        mac: mac.map(|mac| mac.name),
    };
    let chosen = Chosen {
        key_exchange: exchange.name,
        host_key: if certificate { host_key.with_certificate } else { host_key.name },
        to_server: names(to_server),
        to_client: names(to_client),
    };
    Ok(Rows { exchange, host_key, certificate, to_server, to_client, chosen })
}

/// The client's first name that the server has, too. Markers are in no table of algorithms, and only one side has each.
fn common<'a>(client: &'a str, server: &str) -> Option<&'a str> {
    client.split(',').find(|name| !name.is_empty() && server.split(',').any(|other| other == *name))
}

/// The identification string of a peer for logs.
pub(crate) fn version_text(version: &[u8]) -> String {
    printable(version)
}
