//! Jitter that only depends on the packet's key, so that two runs meet the same.

use crate::link::{Draw, mix};
use crate::trace::Side;

/// A sample of an approximately normal distribution with standard deviation 1, for a packet: the sum of twelve
/// uniform numbers.
#[expect(clippy::cast_precision_loss, reason = "sums below 2^20")]
pub(super) fn normal(seed: u64, flow: u64, from: Side, packet: u32, retransmission: u32) -> f64 {
    // Bit 30 keeps these draws apart from those of losses, as in the model.
    let bits = Draw::new(seed, flow, from).bits(packet, retransmission | 1 << 30);
    let four = |bits: u64| {
        (0..4).map(|index| (bits >> (16 * index)).cast_signed() & 0xffff).sum::<i64>() - 4 * 32_767
    };
    // The variance of twelve uniform numbers of width 65,536 is 65,536 squared.
    (four(bits) + four(mix(bits)) + four(mix(!bits))) as f64 / 65_536.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_mean_is_0_and_its_deviation_1() {
        let values: Vec<f64> =
            (0..20_000).map(|packet| normal(1, 2, Side::Client, packet, 0)).collect();
        let mean = values.iter().sum::<f64>() / 20_000.0;
        let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / 20_000.0;
        assert!(mean.abs() < 0.03 && (variance.sqrt() - 1.0).abs() < 0.03, "{mean} {variance}");
        assert_eq!(values[7].to_bits(), normal(1, 2, Side::Client, 7, 0).to_bits());
    }
}
