//! Draws that depend on nothing but their key, so that two runs meet the same fate.

use crate::trace::Side;

/// Whether this packet is lost.
pub(super) fn lost(
    seed: u64,
    flow: u64,
    from: Side,
    tcp_sequence: u32,
    retransmission: u32,
    loss: f64,
) -> bool {
    loss > 0.0 && uniform(hash(seed, flow, from, tcp_sequence, retransmission)) < loss
}

/// A draw of the standard normal distribution, of a packet.
pub(super) fn normal(seed: u64, flow: u64, from: Side, place: u32, again: u32) -> f64 {
    let first = hash(seed ^ JITTER, flow, from, place, again);
    let (one, two) = (1.0 - uniform(first), uniform(mix(first)));
    // Box and Muller's transformation.
    (-2.0 * one.ln()).sqrt() * (std::f64::consts::TAU * two).cos()
}

fn hash(seed: u64, flow: u64, from: Side, place: u32, again: u32) -> u64 {
    let way = u64::from(from == Side::Server);
    let mut state = mix(seed);
    state = mix(state ^ flow);
    state = mix(state ^ (u64::from(place) << 1 | way));
    mix(state ^ u64::from(again))
}

/// The finaliser of SplitMix64 (Steele, Lea, Flood 2014).
fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ value >> 31
}

/// From 0 to 1, 1 excluded: the upper 53 bits.
#[expect(clippy::cast_precision_loss, reason = "53 bits are what f64 holds exactly")]
fn uniform(value: u64) -> f64 {
    (value >> 11) as f64 / (1_u64 << 53) as f64
}

/// Keeps the draws of jitter apart from those of loss.
const JITTER: u64 = 0x6a69_7474_6572;
