//! Points of [0, 1)ⁿ for axes whose values are drawn, as a function of method, seed and count.

use super::file::Method;
use anabranch_units::Seed;

/// Coordinates of drawn points.
#[derive(Clone, Debug)]
pub(crate) struct Draws {
    method: Method,
    seed: u64,
    count: u64,
    /// Part of the range that each point is in, for each axis of a Latin hypercube.
    parts: Vec<Vec<u32>>,
}

impl Draws {
    /// Draws points for these axes. Each axis has random streams of its own: another axis leaves their values as they
    /// are.
    pub(crate) fn new(method: Method, seed: u64, count: u64, axes: &[&str]) -> Draws {
        let parts = match method {
            Method::LatinHypercube => axes.iter().map(|name| permutation(seed, name, count)).collect(),
            Method::Random | Method::Sobol => Vec::new(),
        };
        Draws { method, seed, count, parts }
    }

    /// Identifies the draws among others of the same number and axes: method and seed.
    pub(super) fn identity(&self) -> serde_json::Value {
        let method = match self.method {
            Method::Random => "random",
            Method::LatinHypercube => "latin-hypercube",
            Method::Sobol => "sobol",
        };
        serde_json::json!([method, self.seed])
    }

    /// Returns the coordinate of a point on the axis of that index and name.
    pub(crate) fn coordinate(&self, point: u64, place: usize, name: &str) -> f64 {
        let jitter = || Seed(self.seed).child(&format!("sweep/{name}/{point}")).stream("coordinate").unit();
        match self.method {
            Method::Random => jitter(),
            Method::LatinHypercube => {
                let part = self.parts[place][point as usize];
                ((f64::from(part) + jitter()) / self.count as f64).min(1.0 - f64::EPSILON)
            }
            // The sequence has 32-bit numbers; counts are limited to far less.
            Method::Sobol => {
                let scramble = Seed(self.seed).stream("sweep/sobol").next_u32();
                f64::from(sobol_burley::sample(point as u32, place as u32, scramble))
            }
        }
    }
}

/// Returns the numbers below `count` in random order (Fisher and Yates).
fn permutation(seed: u64, name: &str, count: u64) -> Vec<u32> {
    let mut stream = Seed(seed).stream(&format!("sweep/{name}/order"));
    let mut order: Vec<u32> = (0..count as u32).collect();
    for n in (1..order.len()).rev() {
        order.swap(n, stream.below(n as u64 + 1) as usize);
    }
    order
}

/// Maximum number of axes: the dimensions of Sobol's sequence.
pub(super) const SOBOL_AXES: usize = sobol_burley::NUM_DIMENSIONS as usize;
/// Maximum number of points of Sobol's sequence.
pub(super) const SOBOL_POINTS: u64 = 1 << 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(method: Method, count: u64) -> [Vec<f64>; 2] {
        let draws = Draws::new(method, 7, count, &["a", "b"]);
        let column = |place: usize, name: &str| (0..count).map(|n| draws.coordinate(n, place, name)).collect();
        [column(0, "a"), column(1, "b")]
    }

    /// Returns the number of points in each of `parts` equal parts.
    fn parts(column: &[f64], parts: usize) -> Vec<usize> {
        let mut counts = vec![0; parts];
        column.iter().for_each(|u| counts[(u * parts as f64) as usize] += 1);
        counts
    }

    #[test]
    fn a_latin_hypercube_has_one_point_in_each_part_of_each_axis() {
        for column in columns(Method::LatinHypercube, 100) {
            assert_eq!(parts(&column, 100), [1; 100]);
        }
        // The axes are independent: 100 points meet many of the 10 by 10 squares.
        let [a, b] = columns(Method::LatinHypercube, 100);
        let squares = a.iter().zip(&b).map(|(a, b)| ((a * 10.0) as u32, (b * 10.0) as u32));
        assert!(squares.collect::<std::collections::BTreeSet<_>>().len() > 50);
    }

    /// 64 points of a (0, 2)-sequence in base 2: one in each of 8 by 8 squares.
    #[test]
    fn sobol_fills_every_elementary_square() {
        let [a, b] = columns(Method::Sobol, 64);
        let squares = a.iter().zip(&b).map(|(a, b)| ((a * 8.0) as u32, (b * 8.0) as u32));
        assert_eq!(squares.collect::<std::collections::BTreeSet<_>>().len(), 64);
    }

    #[test]
    fn random_points_spread_and_depend_on_the_seed_and_their_own_axis_alone() {
        let [a, b] = columns(Method::Random, 1000);
        assert!(parts(&a, 10).iter().all(|n| (60..140).contains(n)) && a != b);
        let alone = Draws::new(Method::Random, 7, 1000, &["b"]);
        assert_eq!(alone.coordinate(3, 0, "b"), b[3]);
        let other = Draws::new(Method::Random, 8, 1000, &["b"]);
        assert_ne!(other.coordinate(3, 0, "b"), b[3]);
    }
}
