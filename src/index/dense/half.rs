//! Stores non-negative numbers in two bytes: IEEE 754 binary16 without sign, infinities and NaN.

/// The largest value that [`encode`] produces.
pub(super) const MAX: f32 = 65504.0;

/// 2^112, the distance between the exponent biases of binary32 and binary16.
const REBIAS: f32 = f32::from_bits(0x7780_0000);

/// Rounds `value` to the nearest half, ties to even. Returns 0 for negative numbers and NaN, and [`MAX`] for numbers
/// that are too large.
pub(super) fn encode(value: f32) -> u16 {
    let bounded = if value > 0.0 { value.min(MAX) } else { 0.0 };
    let shifted = (bounded / REBIAS).to_bits();
    let halfway_to_even = 0x0fff + (shifted >> 13 & 1);
    ((shifted + halfway_to_even) >> 13) as u16
}

/// Returns true if [`encode`] can return `half`: it has no sign and is neither infinite nor NaN.
pub(super) fn is_finite(half: u16) -> bool {
    half < 0x7c00
}

/// Returns the value of `half`. Accepts all inputs, so data from a damaged file never breaks a comparison: ignores the
/// sign bit, and converts infinity and NaN to numbers above [`MAX`].
#[inline(always)]
pub(super) fn decode(half: u16) -> f32 {
    f32::from_bits(u32::from(half & 0x7fff) << 13) * REBIAS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_half_survives() {
        for half in 0..0x7c00 {
            assert_eq!(encode(decode(half)), half);
        }
        assert_eq!(
            (decode(0x3c00), decode(0x0001), decode(0x7bff)),
            (1.0, 2f32.powi(-24), MAX)
        );
    }

    #[test]
    fn every_pattern_decodes_to_a_finite_number() {
        assert!((0..=u16::MAX).all(|half| decode(half).is_finite() && decode(half) >= 0.0));
    }

    #[test]
    fn encoding_rounds_to_the_nearest() {
        for i in 1..5000 {
            let value = i as f32 * 0.0137;
            let half = encode(value);
            let distance = |half: u16| (decode(half) - value).abs();
            assert!(
                distance(half) <= distance(half + 1) && distance(half) <= distance(half - 1),
                "{value}"
            );
        }
        assert_eq!(
            (encode(-1.0), encode(f32::NAN), encode(f32::INFINITY)),
            (0, 0, encode(MAX))
        );
    }
}
