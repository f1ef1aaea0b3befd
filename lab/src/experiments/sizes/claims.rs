//! Published sizes compared with the counted ones.

use super::flights::{self, Flights, packets};
use super::keys::{Group, Mechanism, Signing};
use super::published::{FIPS_203, FIPS_204, FIPS_205, PUBLISHED, Published, RFC_8032, SHARES};
use crate::error::LabError;
use crate::published::{STUDY_PACKETS_DILITHIUM as DILITHIUM, STUDY_PACKETS_FALCON as FALCON};
use crate::result::{ClaimKind, Finding, Verdict};
use crate::run::Run;

/// The study whose chains are counted.
const STUDY: &str = "The 2022 study of TLS 1.3 with post-quantum algorithms under loss (Fudan)";
/// Checks every claim.
pub fn check(
    run: &mut Run<'_>,
    groups: &[Group],
    mechanisms: &[Mechanism],
    signatures: &[Signing],
    flights: &[Flights],
) -> Result<(), LabError> {
    more_bytes(run, groups);
    let mut measured: Vec<(&str, [usize; 2])> = Vec::new();
    measured
        .extend(mechanisms.iter().map(|row| (row.name.as_str(), [row.public_key, row.ciphertext])));
    measured
        .extend(signatures.iter().map(|row| (row.name.as_str(), [row.public_key, row.signature])));
    for (source, what) in [
        (FIPS_203, "sizes of encapsulation keys and ciphertexts"),
        (FIPS_204, "sizes of public keys and signatures"),
        (FIPS_205, "sizes of public keys and signatures"),
    ] {
        let rows: Vec<_> = PUBLISHED.iter().filter(|row| row.source == source).collect();
        agreement(run, source, what, &rows, &measured);
    }
    shares(run, groups);
    if cfg!(feature = "legacy") {
        let standards = [FIPS_203, FIPS_204, FIPS_205, RFC_8032];
        let rows: Vec<_> = PUBLISHED
            .iter()
            .filter(|row| !standards.contains(&row.source))
            .filter(|row| measured.iter().any(|(name, _)| *name == row.name))
            .collect();
        let source = "Submissions to NIST's rounds 2 and 3 and to the Chinese competition";
        agreement(
            run,
            source,
            "sizes of public keys, and of ciphertexts or signatures",
            &rows,
            &measured,
        );
    }
    packets_of_chains(run, flights)
}

fn agreement(
    run: &mut Run<'_>,
    source: &str,
    what: &str,
    rows: &[&Published],
    measured: &[(&str, [usize; 2])],
) {
    let mut differ = Vec::new();
    let mut listed = Vec::new();
    for row in rows {
        let found = measured.iter().find(|(name, _)| *name == row.name).map(|(_, sizes)| *sizes);
        match found {
            Some([key, output]) if [key, output] == [row.public_key, row.output] => {
                listed.push(format!("{} {key} and {output}", row.name));
            }
            Some([key, output]) => differ.push(format!("{} {key} and {output}", row.name)),
            None => differ.push(format!("{} was not made", row.name)),
        }
    }
    let published: Vec<_> = rows
        .iter()
        .map(|row| format!("{} {} and {}", row.name, row.public_key, row.output))
        .collect();
    run.finding(Finding {
        kind: ClaimKind::Standard,
        source: source.to_owned(),
        claim: format!("{what}, of {} algorithms", rows.len()),
        published: published.join("; "),
        measured: if differ.is_empty() {
            format!("the same for all {} (objects made here, counted)", listed.len())
        } else {
            format!("differ: {}", differ.join("; "))
        },
        verdict: if differ.is_empty() { Verdict::Holds } else { Verdict::Differs },
        why: "Sizes follow from parameters: they agree, or the algorithm is another one."
            .to_owned(),
    });
}

fn shares(run: &mut Run<'_>, groups: &[Group]) {
    let mut differ = Vec::new();
    for (name, sizes, source) in SHARES {
        let found = groups.iter().find(|row| row.name == *name);
        if found.is_none_or(|row| [row.client_share, row.server_share] != *sizes) {
            differ.push(format!("{name} ({source})"));
        }
    }
    run.finding(Finding {
        kind: ClaimKind::Standard,
        source: "RFC 10024, RFC 8446, RFC 7748, FIPS 203".to_owned(),
        claim: "bytes of the shares of the groups that Outlast serves".to_owned(),
        published: SHARES
            .iter()
            .map(|(name, [client, server], _)| format!("{name} {client} and {server}"))
            .collect::<Vec<_>>()
            .join("; "),
        measured: if differ.is_empty() {
            format!("the same for all {}", SHARES.len())
        } else {
            format!("differ: {}", differ.join("; "))
        },
        verdict: if differ.is_empty() { Verdict::Holds } else { Verdict::Differs },
        why: "Sizes follow from parameters.".to_owned(),
    });
}

/// What the hybrid adds; `handshake-cost` compares it with the published figures.
fn more_bytes(run: &mut Run<'_>, groups: &[Group]) {
    let by_name = |name: &str| groups.iter().find(|row| row.name == name);
    let (Some(classical), Some(hybrid)) = (by_name("x25519"), by_name("X25519MLKEM768")) else {
        return;
    };
    let client = hybrid.client_hello.saturating_sub(classical.client_hello);
    let server = hybrid.server_flight.saturating_sub(classical.server_flight);
    run.summary(format!(
        "X25519MLKEM768 adds {} bytes to a rustls handshake: {client} of the client's, {server} of the server's.",
        client + server
    ));
}

/// The study's chain: root, intermediate, leaf, of which two are sent.
const SENT: u8 = 2;

/// The packets that explain the crossing at 10 % loss.
fn packets_of_chains(run: &mut Run<'_>, flights: &[Flights]) -> Result<(), LabError> {
    let (dilithium, falcon, how) = if cfg!(feature = "legacy") {
        let mut of = |signature: &str| -> Result<u64, LabError> {
            let key = format!("flights p256_kyber512_r2 + {signature} x{SENT}");
            let measure = || flights::measure("p256_kyber512_r2", signature, SENT);
            let flight: Flights = run.point(&key, std::time::Duration::from_millis(50), measure)?;
            Ok(flight.server)
        };
        let both = (of("p256_dilithium2_r2")?, of("p256_falcon512")?);
        (both.0, both.1, "counted in handshakes with p256_kyber512")
    } else {
        let known = flights
            .iter()
            .find(|row| row.authentication == "ML-DSA-44" && row.certificates == SENT);
        let Some(known) = known else { return Ok(()) };
        let of = |name: &str| {
            let row = Published::by_name(name)?;
            let from = Published::by_name("ML-DSA-44")?;
            let kyber = Published::by_name("kyber512_r2")?;
            // Each certificate has a key and a signature, CertificateVerify another signature; each comes with one of
            // ECDSA.
            let objects = usize::from(SENT) * (row.public_key + 4 + 65 + row.output + 4 + 72)
                + row.output
                + 4
                + 72;
            let before = usize::from(SENT) * (from.public_key + from.output) + from.output;
            let share = kyber.output + 65;
            (known.server + (objects + share) as u64).checked_sub((before + 1120) as u64)
        };
        let (Some(dilithium), Some(falcon)) = (of("dilithium2_r2"), of("falcon512")) else {
            return Ok(());
        };
        (dilithium, falcon, "by arithmetic from the flight with ML-DSA-44")
    };
    let (eight, five) = (packets(dilithium), packets(falcon));
    run.finding(Finding {
        kind: ClaimKind::Published,
        source: STUDY.to_owned(),
        claim: format!(
            "The server's flight takes {} packets with Dilithium2 and {} with Falcon-512",
            DILITHIUM.value, FALCON.value
        ),
        published: format!("{} against {} packets", DILITHIUM.value, FALCON.value),
        measured: format!("server's flight {dilithium} bytes in {eight} packets against {falcon} bytes in {five}, {how}"),
        verdict: if [eight, five] == [DILITHIUM.whole(), FALCON.whole()] {
            Verdict::Holds
        } else if eight > five {
            Verdict::Partly
        } else {
            Verdict::Differs
        },
        why: "Round 2's sizes (Dilithium2 1184 and 2044 bytes), an intermediate and a leaf sent, packets of 1448 bytes. The count depends on \
              what else is in the certificates, and on how a stack cuts its records into packets: one that flushes after ServerHello has \
              one packet more."
            .to_owned(),
    });
    Ok(())
}
