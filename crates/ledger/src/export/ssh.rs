//! Records of SSH connections.

use outlast_negotiate::ssh::SshOffer;
use serde_json::{Map, Value, json};

use super::fields::{FIELDS as COMMON, of_end, rfc3339};
use crate::event::{End, SshHandshake, SshOutcome, SshServed};
use crate::known_ssh;
use crate::verdict::Verdict;

/// Further fields of a record of SSH, after those of all records.
pub const FIELDS: &[&str] = &[
    "identification",
    "hassh",
    "hostKeyAlgorithm",
    "cipherToServer",
    "macToServer",
    "cipherToClient",
    "macToClient",
    "strict",
    "firstGuess",
    "blind",
    "offeredKeyExchanges",
    "offeredHostKeyAlgorithms",
    "offeredCiphersToServer",
    "offeredCiphersToClient",
    "offeredMacsToServer",
    "offeredMacsToClient",
    "offeredCompressionsToServer",
    "offeredCompressionsToClient",
    "offerCut",
];

pub(super) fn record(
    process: &str,
    handshake: &SshHandshake,
    end: Option<&End>,
) -> Map<String, Value> {
    let (outcome, reason, served) = match &handshake.outcome {
        SshOutcome::Served(served) => ("served", None, Some(served)),
        SshOutcome::Refused(refusal) => ("refused", Some(refusal.to_string()), None),
        SshOutcome::Failed(reason) => ("failed", Some(reason.clone()), None),
    };
    let offer = handshake.offer.as_ref();
    let outgoing = handshake.outgoing.as_ref();
    let hassh = if outgoing.is_some() { SshOffer::hassh_server } else { SshOffer::hassh };
    // A connection that failed has no end.
    let principal = end.and_then(|end| end.principal.as_ref());
    let principal = principal.or(outgoing.map(|outgoing| &outgoing.principal));
    let value = |field: &str| match field {
        "time" => rfc3339(handshake.time_ms),
        "process" => json!(process),
        "connection" => json!(handshake.connection),
        "listener" => json!(handshake.listener),
        "address" => json!(handshake.peer.map(|peer| peer.to_string())),
        "serverName" => json!(outgoing.map(|outgoing| &outgoing.destination)),
        "principal" => json!(principal),
        "hassh" => json!(offer.and_then(hassh)),
        "verdict" => json!(Verdict::of_ssh(handshake)),
        "outcome" => json!(outcome),
        "reason" => json!(reason),
        "policy" => json!(handshake.policy),
        "mode" => json!(handshake.mode),
        "version" => json!(served.map(|_| "SSH-2.0")),
        "group" => json!(served.map(|served| &served.key_exchange)),
        "postQuantum" => json!(served.map(|served| served.post_quantum)),
        "transport" => json!("ssh"),
        "software" => json!(offer.and_then(known_ssh::software)),
        "handshakeMicros" => json!(handshake.micros),
        "firstGuess" => json!(handshake.first_guess),
        "blind" => json!(handshake.blind),
        field => of_served(field, served)
            .or_else(|| of_offer(field, offer))
            .unwrap_or_else(|| of_end(field, end)),
    };
    COMMON.iter().chain(FIELDS).map(|field| ((*field).to_owned(), value(field))).collect()
}

/// A field of what was negotiated; `None` if it is none, or if nothing was.
fn of_served(field: &str, served: Option<&SshServed>) -> Option<Value> {
    let served = served?;
    match field {
        "hostKeyAlgorithm" => Some(json!(served.host_key)),
        "cipherToServer" => Some(json!(served.cipher_to_server)),
        "macToServer" => Some(json!(served.mac_to_server)),
        "cipherToClient" => Some(json!(served.cipher_to_client)),
        "macToClient" => Some(json!(served.mac_to_client)),
        "strict" => Some(json!(served.strict)),
        _ => None,
    }
}

/// A field of the offer; `None` if it is none, or if there was no offer.
fn of_offer(field: &str, offer: Option<&SshOffer>) -> Option<Value> {
    let offer = offer?;
    match field {
        "identification" => Some(json!(offer.identification)),
        "offeredKeyExchanges" => Some(json!(offer.key_exchanges)),
        "offeredHostKeyAlgorithms" => Some(json!(offer.host_keys)),
        "offeredCiphersToServer" => Some(json!(offer.ciphers_to_server)),
        "offeredCiphersToClient" => Some(json!(offer.ciphers_to_client)),
        "offeredMacsToServer" => Some(json!(offer.macs_to_server)),
        "offeredMacsToClient" => Some(json!(offer.macs_to_client)),
        "offeredCompressionsToServer" => Some(json!(offer.compressions_to_server)),
        "offeredCompressionsToClient" => Some(json!(offer.compressions_to_client)),
        "offerCut" => Some(json!(offer.cut)),
        // The columns of CSV have the groups only.
        "offeredGroups" => Some(json!(offer.methods().collect::<Vec<_>>())),
        _ => None,
    }
}
