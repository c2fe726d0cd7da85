//! Arithmetic that repeats on every platform.

/// `base` to the power `exponent` by repeated squaring: multiplications only, in an order that the exponent fixes.
pub(crate) fn powi(mut base: f64, mut exponent: u32) -> f64 {
    let mut power = 1.0;
    while exponent > 0 {
        if exponent & 1 == 1 {
            power *= base;
        }
        base *= base;
        exponent >>= 1;
    }
    power
}

#[cfg(test)]
mod tests {
    use super::powi;

    #[test]
    fn powers() {
        assert_eq!(powi(2.0, 10), 1024.0);
        assert_eq!(powi(0.0, 0), 1.0);
        assert_eq!(powi(0.5, u32::MAX), 0.0);
        let by_hand = (0..137).fold(1.0, |power, _| power * 0.97);
        assert!((powi(0.97, 137) / by_hand - 1.0).abs() < 1e-13);
    }
}
