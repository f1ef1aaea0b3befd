//! Session tickets, encrypted with keys that all servers of a store share.
//!
//! The keys are one sealed record. Each is used for [`USE_MS`] and accepted for as long again; the next one is stored
//! long before it is used, so that every server knows it by then. No handshake reads the store: [`refresh`] is called
//! periodically, and its result is passed to [`Tickets::replace`] once it is committed.
//!
//! A resumed session exchanges new keys (the door has no mode without that), so a leaked ticket key decrypts no
//! recorded TLS 1.3 traffic. It would in TLS 1.2, whose clients get no tickets: their sessions stay in the memory of
//! one server.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use outlast_crypto::{Secret, aead, random};
use outlast_domain::Fault;
use outlast_domain::work::Work;
use outlast_negotiate::Rules;
use rustls::server::ProducesTickets;

use crate::server::Clock;

/// How long a key is used for new tickets, and the lifetime of a ticket: RFC 8446, section 4.6.1, allows seven days,
/// and RFC 9325, section 3.4, wants regular key changes and tickets that last half as long as a key is accepted.
pub const USE_MS: i64 = 6 * 3_600_000;
/// How long a key is accepted, from its first use.
pub const ACCEPT_MS: i64 = 2 * USE_MS;

const PLACE: &str = "tls/ticket-keys";
const ID_LEN: usize = 16;
/// More than exist at a time: the previous, the current and the next key.
const MAX_KEYS: usize = 8;
/// Length of a key in the record: id, time, key.
const STORED_LEN: usize = ID_LEN + 8 + aead::KEY_LEN;
/// Longest ticket that is read: rustls' sessions without client certificates have about 200 bytes.
const MAX_TICKET: usize = 4096;

/// The keys at one moment.
#[derive(Default)]
pub struct Keys(Vec<Key>);

struct Key {
    id: [u8; ID_LEN],
    /// Start of its use, in milliseconds since 1970.
    from_ms: i64,
    secret: Secret,
}

impl Key {
    fn new(from_ms: i64) -> Result<Self, Fault> {
        Ok(Self { id: random::bytes()?, from_ms, secret: random::secret(aead::KEY_LEN)? })
    }

    fn is_in_use(&self, now_ms: i64) -> bool {
        (self.from_ms..self.from_ms + USE_MS).contains(&now_ms)
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ticket keys", self.0.len())
    }
}

impl Keys {
    fn read(bytes: &Secret) -> Option<Self> {
        let (stored, []) = bytes.expose().as_chunks::<STORED_LEN>() else { return None };
        let key = |stored: &[u8; STORED_LEN]| {
            let (id, rest) = stored.split_first_chunk()?;
            let (from, secret) = rest.split_first_chunk()?;
            let from_ms = i64::from_be_bytes(*from);
            Some(Key { id: *id, from_ms, secret: Secret::new(secret.to_vec()) })
        };
        stored.iter().map(key).collect::<Option<_>>().map(Self)
    }

    fn to_secret(&self) -> Secret {
        // Reserves the final size, because a growing buffer leaves copies behind.
        let mut out = Vec::with_capacity(self.0.len() * STORED_LEN);
        for key in &self.0 {
            out.extend_from_slice(&key.id);
            out.extend_from_slice(&key.from_ms.to_be_bytes());
            out.extend_from_slice(key.secret.expose());
        }
        Secret::new(out)
    }

    /// Removes expired keys and adds missing ones; returns whether anything changed.
    fn rotate(&mut self, now_ms: i64) -> Result<bool, Fault> {
        let before = self.0.len();
        // A key for the distant future was made with a wrong clock.
        self.0.retain(|key| {
            (key.from_ms..key.from_ms + ACCEPT_MS).contains(&now_ms)
                || (now_ms..=now_ms + ACCEPT_MS).contains(&key.from_ms)
        });
        let mut changed = self.0.len() != before;
        if !self.0.iter().any(|key| key.is_in_use(now_ms)) {
            self.0.push(Key::new(now_ms)?);
            changed = true;
        }
        let last = self.0.iter().map(|key| key.from_ms).max().unwrap_or(now_ms);
        if last <= now_ms && self.0.len() < MAX_KEYS {
            self.0.push(Key::new(last + USE_MS)?);
            changed = true;
        }
        Ok(changed)
    }
}

/// The store's keys at this time; adds missing ones. They may be used once the work is committed.
pub fn refresh(work: &mut Work<'_>) -> Result<Keys, Fault> {
    let mut keys = match work.secret(PLACE)? {
        Some(stored) => Keys::read(&stored).ok_or_else(|| Fault::Damaged(PLACE.to_owned()))?,
        None => Keys::default(),
    };
    if keys.rotate(work.now_ms())? {
        work.put_secret(PLACE, &keys.to_secret())?;
    }
    Ok(keys)
}

/// Makes and opens tickets with the current keys.
pub struct Tickets {
    keys: RwLock<Arc<Keys>>,
    clock: Clock,
}

impl Tickets {
    /// Without keys, and therefore without tickets.
    pub fn new(clock: Clock) -> Arc<Self> {
        Arc::new(Self { keys: RwLock::default(), clock })
    }

    /// Uses these keys from now on.
    pub fn replace(&self, keys: Keys) {
        *self.keys.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(keys);
    }

    /// Tickets for a listener under a policy: sessions from elsewhere are not resumed there.
    pub fn bound(self: &Arc<Self>, listener: &str, rules: &Rules) -> Arc<dyn ProducesTickets> {
        let parts = [listener, rules.policy.name, rules.mode.name()];
        let context = parts.join("\0").into_bytes();
        Arc::new(Bound { tickets: self.clone(), context })
    }

    fn keys(&self) -> Arc<Keys> {
        self.keys.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl fmt::Debug for Tickets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tickets")
    }
}

/// Makes one listener's tickets. A ticket is the key's id and the session sealed with the key, with the listener, the
/// policy and its mode as associated data.
#[derive(Debug)]
struct Bound {
    tickets: Arc<Tickets>,
    context: Vec<u8>,
}

impl ProducesTickets for Bound {
    fn enabled(&self) -> bool {
        true
    }

    fn lifetime(&self) -> u32 {
        u32::try_from((ACCEPT_MS - USE_MS) / 1000).unwrap_or(0)
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        let now_ms = (self.tickets.clock)();
        let keys = self.tickets.keys();
        let key = keys.0.iter().find(|key| key.is_in_use(now_ms))?;
        let sealed = aead::seal(key.secret.expose(), &self.context, plain).ok()?;
        let ticket = [&key.id[..], &sealed].concat();
        (ticket.len() <= MAX_TICKET).then_some(ticket)
    }

    fn decrypt(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        if ticket.len() > MAX_TICKET {
            return None;
        }
        let (id, sealed) = ticket.split_first_chunk::<ID_LEN>()?;
        let now_ms = (self.tickets.clock)();
        let keys = self.tickets.keys();
        // A key whose use begins later is accepted too, because another server's clock may be ahead.
        let key = keys.0.iter().find(|key| key.id == *id && now_ms < key.from_ms + ACCEPT_MS)?;
        let opened = aead::open(key.secret.expose(), &self.context, sealed).ok()?;
        Some(opened.expose().to_vec())
    }
}
