//! Gain of ACKs on the shortest path: the closed forms of the paper behind `fixed` and `probed`.
//!
//! J. Cheng, J. Hwang, A. Tang. *Acceleration of Multipath TCP by Letting ACKs Take the Shortest Path.* IEEE Sarnoff
//! Symposium 2019 (section III). Loss alone limits, nothing times out, delays are alike in both directions, segments
//! are of one size. With one-way delay `d_i`, loss `p_i` and `g_i = √(1/p_i)` the rate of subflow i is proportional to
//! `g_i / rtt_i`, where `rtt_i` is `2 d_i`, or `d_i + d_m` with ACKs on path m. The improvement I is the gain in rate:
//! 0.1 for 10 %.
//!
//! ```text
//! Reno   I = Σ g_i/(d_m + d_i) / Σ g_i/(2 d_i) − 1                                  (5)
//!        all d_k = β d_0, α = g_0/Σ_{i>0} g_i:  I = (β − 1)/(α β² + (α + 1) β + 1)   (11)
//!        at most 1/(3α + 1 + 2√2 √(α(α + 1))), where β = 1 + √2 √(1 + 1/α)
//! LIA    I = max g_i/(d_m + d_i) / max g_i/(2 d_i) − 1                              (14)
//! ```
//!
//! Where we differ: (6) lacks a factor g_k, and is not used; (7) follows without it. The paper has m = 0, the shortest;
//! here any, since its second experiment needs that too.

/// A path of the analysis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Path {
    /// One-way delay `d_i`, in any unit.
    pub delay: f64,
    /// Loss rate `p_i` of the data.
    pub loss: f64,
}

impl Path {
    fn weight(&self) -> f64 {
        (1.0 / self.loss).sqrt()
    }

    /// Proportional to the rate, with ACKs on `via` or on the own path.
    fn rate(&self, via: Option<&Path>) -> f64 {
        self.weight() / (self.delay + via.unwrap_or(self).delay)
    }
}

/// Eq. (5): the improvement under Reno on each subflow, with ACKs on path `via` of `paths`.
///
/// # Panics
/// If there is no such path.
pub fn reno(paths: &[Path], via: usize) -> f64 {
    let total = |via: Option<&Path>| paths.iter().map(|path| path.rate(via)).sum::<f64>();
    total(Some(&paths[via])) / total(None) - 1.0
}

/// α: the weight of the first path over that of all others.
pub fn alpha(paths: &[Path]) -> f64 {
    let mut weights = paths.iter().map(Path::weight);
    weights.next().unwrap_or(0.0) / weights.sum::<f64>()
}

/// Eq. (11): the improvement under Reno when all other paths are `beta` times as long as the one with the ACKs.
pub fn reno_alike(alpha: f64, beta: f64) -> f64 {
    (beta - 1.0) / (alpha * beta * beta + (alpha + 1.0) * beta + 1.0)
}

/// β at which Eq. (11) is largest.
pub fn best_ratio(alpha: f64) -> f64 {
    1.0 + (2.0 * (1.0 + 1.0 / alpha)).sqrt()
}

/// The largest value of Eq. (11).
pub fn best(alpha: f64) -> f64 {
    1.0 / (3.0 * alpha + 1.0 + (8.0 * alpha * (alpha + 1.0)).sqrt())
}

/// Eq. (14): the improvement under LIA or OLIA if they got exactly what the best single path gives, with ACKs on `via`.
///
/// # Panics
/// If there is no such path.
pub fn lia(paths: &[Path], via: usize) -> f64 {
    let most = |via: Option<&Path>| paths.iter().map(|path| path.rate(via)).fold(0.0, f64::max);
    most(Some(&paths[via])) / most(None) - 1.0
}

/// Eq. (14) for two paths in closed form: the second is `beta` ≥ 1 times as long, and `c = g_1/g_0`.
pub fn lia_two(c: f64, beta: f64) -> f64 {
    if c <= 1.0 || beta >= 2.0 * c - 1.0 {
        0.0 // The first path is the best either way.
    } else if beta <= c {
        (beta - 1.0) / (beta + 1.0) // The second is, either way.
    } else {
        2.0 * c / (1.0 + beta) - 1.0 // The first was, the second becomes.
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(delays_and_losses: &[(f64, f64)]) -> Vec<Path> {
        delays_and_losses.iter().map(|&(delay, loss)| Path { delay, loss }).collect()
    }

    fn close(ours: f64, theirs: f64, tolerance: f64) {
        assert!((ours - theirs).abs() <= tolerance, "{ours} against {theirs}");
    }

    /// Vectors of an independent script: p_0 = 1 %, p_1 = 0.02 %.
    #[test]
    fn vectors_of_a_script() {
        let pair = |beta: f64| paths(&[(10.0, 0.01), (10.0 * beta, 0.0002)]);
        let a = alpha(&pair(1.0));
        close(a, 0.1414, 5e-5);
        close(best_ratio(a), 5.0177, 5e-5);
        close(best(a), 0.3905, 5e-5);
        for (beta, expected) in [(2.0, 0.2598), (3.0, 0.3511), (5.0, 0.3905), (10.0, 0.3389), (20.0, 0.2363)] {
            close(reno(&pair(beta), 0), expected, 5e-5);
            close(reno_alike(a, beta), expected, 5e-5);
        }
        for (beta, expected) in [(2.0, 0.3333), (3.0, 0.5), (5.0, 0.6667), (7.07, 0.7522), (10.0, 0.2856), (14.0, 0.0)]
        {
            close(lia(&pair(beta), 0), expected, 5e-5);
            close(lia_two(50_f64.sqrt(), beta), expected, 5e-5);
        }
        // The dynamic network: one loss rate, 10 and 20 ms, then 30 and 20 ms.
        let (before, after) = (paths(&[(10.0, 0.001), (20.0, 0.001)]), paths(&[(30.0, 0.001), (20.0, 0.001)]));
        close(reno(&before, 0), 0.111, 5e-4);
        close(reno(&after, 1), 0.080, 5e-4);
        close(reno(&after, 0), -0.120, 5e-4);
    }

    /// Vectors of a search over all delays by golden sections, which knows rates but not Eqs. (7) to (11) (Python
    /// script).
    #[test]
    fn vectors_of_a_numeric_search() {
        for (losses, a, beta, most) in [
            (&[0.01, 0.0002][..], 0.141421, 5.0177, 0.390526),
            (&[0.01, 0.0002, 0.005], 0.117851, 5.3555, 0.42014),
            (&[0.02, 0.015], 0.866025, 3.0759, 0.139011),
            (&[0.001, 0.03, 0.002, 0.01], 0.82925, 3.1004, 0.143445),
        ] {
            let at = |beta: f64| -> Vec<(f64, f64)> {
                losses.iter().enumerate().map(|(n, &p)| (if n == 0 { 1.0 } else { beta }, p)).collect()
            };
            close(alpha(&paths(&at(1.0))), a, 5e-6);
            close(best_ratio(a), beta, 1e-4);
            close(best(a), most, 2e-6);
            close(reno(&paths(&at(best_ratio(a))), 0), most, 2e-6);
        }
        let uneven = paths(&[(10.0, 0.01), (25.0, 0.002), (40.0, 0.0005)]);
        close(reno(&uneven, 0), 0.349929, 1e-6);
        close(reno(&uneven, 1), -0.056619, 1e-6);
        close(lia(&uneven, 0), 0.6, 1e-6);
        for (c, beta, expected) in
            [(3.0, 1.5, 0.2), (3.0, 4.0, 0.2), (3.0, 4.9, 0.016949), (3.0, 5.1, 0.0), (0.7, 4.0, 0.0)]
        {
            close(lia_two(c, beta), expected, 1e-6);
        }
    }

    #[test]
    fn the_gain_ends_at_everything_and_at_nothing() {
        close(best(1e-9), 1.0, 1e-3);
        close(best(1e9), 0.0, 1e-3);
        for alpha in [0.001, 0.1, 1.0, 10.0] {
            close(reno_alike(alpha, best_ratio(alpha)), best(alpha), 1e-12);
            assert!(reno_alike(alpha, 1.01 * best_ratio(alpha)) < best(alpha));
            assert!(reno_alike(alpha, 0.99 * best_ratio(alpha)) < best(alpha));
        }
    }
}
