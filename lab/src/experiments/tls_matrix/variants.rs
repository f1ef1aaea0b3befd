//! Chain lengths and kinds of handshakes: full, after a HelloRetryRequest, resumed, mutual.

use super::grid;
use super::pairs::at;
use crate::error::LabError;
use crate::experiments::play;
use crate::experiments::play::Seen;
use crate::experiments::tables::{self, short};
use crate::model::Profile;
use crate::result::{Axis, Chart, Marks};
use crate::run::Run;
use crate::subject::Kind;
use crate::tls::Stack;

/// A kind of handshake and a chain length, with its points.
pub(super) struct Variant {
    kind: Kind,
    certificates: u8,
    seen: Vec<Seen>,
}

/// Plays the chosen pairs with every chain and kind.
pub(super) fn measure(
    run: &mut Run<'_>,
    stack: &dyn Stack,
    profile: &'static Profile,
) -> Result<Vec<Variant>, LabError> {
    let (shape, chains) = grid::variants(run.quick());
    let mut variants = Vec::new();
    for kind in grid::KINDS {
        for &certificates in chains {
            let subjects = grid::chosen(kind, certificates)?;
            let contenders: Vec<_> = play::contenders(run, stack, &subjects)?
                .into_iter()
                .map(|(_, contender)| contender)
                .collect();
            let part = format!("variants/{}/x{certificates}", word(kind));
            let places = grid::places(&part, &shape, profile, grid::HANDSHAKE);
            let seen = play::over(run, &places, &contenders)?;
            variants.push(Variant { kind, certificates, seen });
        }
    }
    Ok(variants)
}

fn word(kind: Kind) -> &'static str {
    match kind {
        Kind::Full => "full",
        Kind::HelloRetry => "hello-retry",
        Kind::Resumed => "resumed",
        Kind::Mutual => "mutual",
    }
}

/// The table, and bars of the medians at one round-trip time.
pub(super) fn tell(run: &mut Run<'_>, variants: &[Variant]) {
    let all: Vec<Seen> = variants.iter().flat_map(|variant| variant.seen.clone()).collect();
    run.table(tables::table(
        "variants",
        "Chain lengths and kinds of handshakes",
        "x2 is a chain of two certificates, the root not counted. Differences are to the classical pair of the same kind and \
         chain.",
        &all,
    ));
    let categories: Vec<String> = variants
        .iter()
        .map(|variant| format!("{}, x{}", word(variant.kind), variant.certificates))
        .collect();
    let parts = grid::CHOSEN
        .iter()
        .map(|(group, signature)| {
            let values = variants
                .iter()
                .map(|variant| value(variant, group, signature, 0.0).unwrap_or_default())
                .collect();
            (format!("{group} + {signature}"), values)
        })
        .collect();
    run.chart(Chart {
        name: "variants".to_owned(),
        title: "Median handshake at RTT 30 ms without loss, by kind and chain".to_owned(),
        x: Axis::linear("kind of handshake, certificates of the server"),
        y: Axis::linear("handshake since the SYN (ms)"),
        marks: Marks::Bars { categories, parts, grouped: true },
        rules: [("2 round trips: TCP and TLS", 60.0), ("3 round trips", 90.0)]
            .map(|(label, at)| crate::result::Rule { label: label.to_owned(), at })
            .to_vec(),
        caption: "A HelloRetryRequest costs a round trip whatever the algorithms; so does a flight over TCP's first window. A \
                  resumed handshake has no certificates, so only the key exchange is left to pay."
            .to_owned(),
    });
    if let Some(sentence) = resumed(variants) {
        run.summary(sentence);
    }
}

fn value(variant: &Variant, group: &str, signature: &str, loss: f64) -> Option<f64> {
    let point = at(&variant.seen, grid::CLOSE_RTT_US, loss)?;
    let pair = format!("{group} + {signature}");
    let row = point.played.rows.iter().find(|row| named(&row.name, &pair))?;
    Some(row.syn.at(50))
}

/// Whether a subject is this pair, whatever its chain and kind.
fn named(name: &str, pair: &str) -> bool {
    name.strip_prefix(pair)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(" x") || rest.starts_with(','))
}

fn resumed(variants: &[Variant]) -> Option<String> {
    let find = |kind: Kind| {
        variants.iter().find(|row| row.kind == kind && row.certificates == grid::CERTIFICATES)
    };
    let (full, again) = (find(Kind::Full)?, find(Kind::Resumed)?);
    let (group, signature) = grid::HYBRID_65;
    let base = grid::CLASSICAL;
    let extra = |variant: &Variant| {
        Some(value(variant, group, signature, 0.0)? - value(variant, base.0, base.1, 0.0)?)
    };
    Some(format!(
        "Resumption takes the certificates away: {group} + {signature} costs {:+} ms over {} + {} in a full handshake and {:+} ms \
         in a resumed one (medians, RTT 30 ms, no loss, chain of two).",
        short(extra(full)?),
        base.0,
        base.1,
        short(extra(again)?)
    ))
}

#[cfg(test)]
mod tests {
    use super::named;

    #[test]
    fn a_pair_is_known_by_its_name_whatever_its_chain() {
        assert!(named("x25519 + ML-DSA-65 x2, resumed", "x25519 + ML-DSA-65"));
        assert!(named("x25519 + ML-DSA-65, resumed", "x25519 + ML-DSA-65"));
        assert!(named("x25519 + ML-DSA-65", "x25519 + ML-DSA-65"));
        assert!(!named("x25519 + ML-DSA-655", "x25519 + ML-DSA-65"));
    }
}
