//! The table of hostile patterns.

use futures_util::FutureExt as _;

use super::door::Door;
use super::pattern::Pattern;
use super::{calls, http1, http2, quic, tcp};

/// Values that most rows share.
const USUAL: Pattern = Pattern {
    name: "",
    what: "",
    stopped_by: "",
    door: Door::Api,
    needs_own: false,
    connections: 20,
    files: 1,
    lives_per_second: 200,
    life: |attack| tcp::idle(attack).boxed(),
};

/// All patterns.
pub static PATTERNS: &[Pattern] = &[
    Pattern {
        name: "slow-hello",
        what: "sends the first bytes of a ClientHello, then one a second",
        stopped_by: "HANDSHAKE ends it after 10 s; above MAX_HANDSHAKES the oldest is closed",
        connections: 2500,
        lives_per_second: 1000,
        life: |attack| tcp::slow_hello(attack).boxed(),
        ..USUAL
    },
    Pattern {
        name: "half-handshake",
        what: "sends a whole ClientHello, for which the server signs, and never goes on",
        stopped_by: "HANDSHAKE and MAX_HANDSHAKES; each costs a signature and a key exchange",
        connections: 1000,
        lives_per_second: 100,
        life: |attack| tcp::half_handshake(attack).boxed(),
        ..USUAL
    },
    Pattern {
        name: "idle",
        what: "opens as many connections as the server allows, and asks nothing on them",
        stopped_by: "PEER_SHARE of MAX_CONNECTIONS for one peer; the longest unused makes room, and REQUEST_HEAD ends an idle one",
        connections: 4200,
        lives_per_second: 400,
        ..USUAL
    },
    Pattern {
        name: "slow-head",
        what: "sends a request's head, a byte a second",
        stopped_by: "REQUEST_HEAD; PEER_SHARE of MAX_CONNECTIONS for one peer, and the longest unused makes room",
        connections: 500,
        life: |attack| http1::slow_head(attack).boxed(),
        ..USUAL
    },
    Pattern {
        name: "slow-body",
        what: "announces a body of 60 kB and sends it a byte a second",
        stopped_by: "BODY_RATE after BODY_GRACE, and REQUEST_BODY; BODY_BUDGET counts what has come, and a peer has a share of it",
        connections: 500,
        life: |attack| http1::slow_body(attack).boxed(),
        ..USUAL
    },
    Pattern {
        name: "h2-announced-bodies",
        what: "announces 32 bodies of 64 KiB on each of 64 HTTP/2 connections, and sends none",
        stopped_by: "BODY_RATE after BODY_GRACE, and REQUEST_BODY; BODY_BUDGET counts what has come, and a peer has a share of it",
        connections: 64,
        life: |attack| http2::announced_bodies(attack).boxed(),
        ..USUAL
    },
    Pattern {
        name: "h2-slow-bodies",
        what: "the same, with a byte of each body a second",
        stopped_by: "REQUEST_BODY, and a minimum rate",
        connections: 64,
        life: |attack| http2::slow_bodies(attack).boxed(),
        ..USUAL
    },
    Pattern {
        name: "h2-rapid-reset",
        what: "sends requests over HTTP/2 and takes them back at once (CVE-2023-44487)",
        stopped_by: "the HTTP/2 library ends the connection after some tens of resets that it has not seen to",
        life: |attack| http2::rapid_reset(attack).boxed(),
        ..USUAL
    },
    Pattern {
        name: "h2-continuation",
        what: "sends a head over HTTP/2 that never ends, in CONTINUATION frames (CVE-2024-27316)",
        stopped_by: "the HTTP/2 library, once the head has passed MAX_HEAD",
        life: |attack| http2::continuations(attack).boxed(),
        ..USUAL
    },
    Pattern {
        name: "h2-unread-pings",
        what: "sends PING frames over HTTP/2 and reads no answer",
        stopped_by: "the HTTP/2 library, which reads no further while its answers are not taken",
        life: |attack| http2::unread_pings(attack).boxed(),
        ..USUAL
    },
    Pattern {
        name: "header-flood",
        what: "sends requests whose heads have 900 headers and 48 kB",
        stopped_by: "MAX_HEAD, and the HTTP/1.1 library's limit of 100 headers",
        life: |attack| http1::header_flood(attack).boxed(),
        ..USUAL
    },
    Pattern {
        name: "pipelining",
        what: "sends 64 requests at a time over HTTP/1.1, and reads the answers a few bytes at a time",
        stopped_by: "requests are not read on while answers wait to be taken",
        life: |attack| http1::pipeline(attack).boxed(),
        ..USUAL
    },
    Pattern {
        name: "unknown-operations",
        what: "calls operations that there are not, with bodies of 50 kB",
        stopped_by: "UNKNOWN_CALLER_BODY, MAX_DISCARDED and DISCARD",
        life: |attack| http1::unknown_operations(attack).boxed(),
        ..USUAL
    },
    Pattern {
        name: "unsigned",
        what: "calls operations without a signature",
        stopped_by: "a call without a signature is refused before anything is read or written",
        life: |attack| calls::unsigned(attack).boxed(),
        ..USUAL
    },
    Pattern {
        name: "badly-signed",
        what: "calls operations with another's access key and a wrong secret",
        stopped_by: "a call that does not verify is refused before its operation begins",
        life: |attack| calls::badly_signed(attack).boxed(),
        ..USUAL
    },
    Pattern {
        name: "expensive-policy",
        what: "a tenant calls with a User-Agent of 60 kB, which its key policy holds against 128 patterns *aaa...b",
        stopped_by: "MAX_POLICY_STEPS for each decision, and MAX_CONDITION_VALUES on what conditions compare",
        needs_own: true,
        connections: 4,
        life: |attack| calls::expensive_policy(attack).boxed(),
        ..USUAL
    },
    Pattern {
        name: "slow-keys",
        what: "a tenant asks for RSA_4096 key pairs, the next one as soon as it has one",
        stopped_by: "calls that take long take turns by principal, with a core left to the others; SLOW_WAITING of one principal wait",
        needs_own: true,
        connections: 100,
        life: |attack| calls::slow_keys(attack).boxed(),
        ..USUAL
    },
    Pattern {
        name: "acme-nonces",
        what: "gets nonces of ACME and uses none",
        stopped_by: "nonces are not remembered until they are used",
        life: |attack| calls::acme_nonces(attack).boxed(),
        ..USUAL
    },
    Pattern {
        name: "acme-accounts",
        what: "asks for accounts of ACME with signatures that do not verify",
        stopped_by: "a request whose signature does not verify makes nothing",
        life: |attack| calls::acme_accounts(attack).boxed(),
        ..USUAL
    },
    Pattern {
        name: "ocsp-nonces",
        what: "asks OCSP with a new nonce each time, so that each answer is signed and recorded for nobody else",
        stopped_by: "OCSP_SIGNINGS_OF_PEER and OCSP_SIGNINGS, above which the kept answer is given without a turn; MAX_SIGNING and MAX_QUESTIONS; answers are summed up in the audit log by the minute",
        door: Door::Plain,
        life: |attack| calls::nonces(attack).boxed(),
        ..USUAL
    },
    Pattern {
        name: "plain-slow-head",
        what: "opens more connections over plain HTTP than there may be, and sends heads a byte a second",
        stopped_by: "PLAIN_IDLE; above MAX_PLAIN_CONNECTIONS the longest idle is closed",
        door: Door::Plain,
        connections: 2100,
        lives_per_second: 1000,
        life: |attack| http1::plain_slow_head(attack).boxed(),
        ..USUAL
    },
    Pattern {
        name: "quic-initials",
        what: "begins handshakes over QUIC and acknowledges nothing",
        stopped_by: "above RETRY_ABOVE a client must first show that it is where it says; HANDSHAKE",
        door: Door::Quic,
        connections: 50,
        files: 3,
        life: |attack| quic::initials(attack).boxed(),
        ..USUAL
    },
    Pattern {
        name: "quic-idle",
        what: "opens connections over QUIC, keeps them alive, and asks nothing",
        stopped_by: "PEER_SHARE of MAX_CONNECTIONS for one peer; the longest unused makes room, and REQUEST_HEAD ends an idle one",
        door: Door::Quic,
        connections: 500,
        lives_per_second: 100,
        life: |attack| quic::idle(attack).boxed(),
        ..USUAL
    },
    Pattern {
        name: "quic-silent-streams",
        what: "opens all the streams that it may over HTTP/3, with one byte on each",
        stopped_by: "STREAM_HEAD, after which a connection ends that is of no other use; HEADS_AT_A_TIME and STREAMS_WITHOUT_REQUEST",
        door: Door::Quic,
        connections: 100,
        lives_per_second: 50,
        life: |attack| quic::silent_streams(attack).boxed(),
        ..USUAL
    },
    Pattern {
        name: "proxy-slow-head",
        what: "sends heads through the proxy, a byte a second",
        stopped_by: "REQUEST_HEAD; MAX_PROXIED",
        door: Door::Proxy,
        needs_own: true,
        connections: 500,
        life: |attack| http1::slow_head(attack).boxed(),
        ..USUAL
    },
    Pattern {
        name: "proxy-slow-body",
        what: "sends bodies through the proxy, a byte a second, for each of which it has a connection to the server behind",
        stopped_by: "MAX_PROXIED; the server behind has limits of its own",
        door: Door::Proxy,
        needs_own: true,
        connections: 500,
        life: |attack| http1::slow_body(attack).boxed(),
        ..USUAL
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_rows_say_something() {
        for (index, row) in PATTERNS.iter().enumerate() {
            assert!(!row.what.is_empty() && !row.stopped_by.is_empty(), "{}", row.name);
            assert!(row.connections > 0 && row.files > 0 && row.lives_per_second > 0);
            assert!(PATTERNS.iter().skip(index + 1).all(|other| other.name != row.name));
        }
    }
}
