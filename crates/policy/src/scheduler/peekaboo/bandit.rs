//! One action's linear model of its reward (LinUCB with disjoint models: Li et al., WWW 2010, Algorithm 1).

/// Number of features of a situation.
const N: usize = 6;

/// A situation.
pub(super) type Features = [f64; N];

/// Ridge regression of rewards on features, with what is needed to say how sure it is.
pub(super) struct Bandit {
    /// A⁻¹, where A = I + Σ x·xᵀ. Symmetric.
    inverse: [Features; N],
    /// θ = A⁻¹·b, where b = Σ reward·x.
    theta: Features,
}

impl Bandit {
    pub(super) fn new() -> Self {
        let mut inverse = [[0.0; N]; N];
        (0..N).for_each(|at| inverse[at][at] = 1.0);
        Bandit { inverse, theta: [0.0; N] }
    }

    /// The reward expected, and `alpha` standard deviations of that.
    pub(super) fn score(&self, x: &Features, alpha: f64) -> f64 {
        let expected = dot(&self.theta, x);
        if alpha == 0.0 {
            return expected;
        }
        // Rounding may leave a hair less than nothing.
        expected + alpha * dot(x, &self.times(x)).max(0.0).sqrt()
    }

    /// The situation `x` brought this reward: A⁻¹ by Sherman and Morrison, and θ moved by the surprise.
    pub(super) fn learn(&mut self, x: &Features, reward: f64) {
        let ax = self.times(x);
        let scale = 1.0 / (1.0 + dot(x, &ax).max(0.0));
        let surprise = (reward - dot(&self.theta, x)) * scale;
        for (row, ax_row) in self.inverse.iter_mut().zip(&ax) {
            for (cell, ax_column) in row.iter_mut().zip(&ax) {
                *cell -= ax_row * ax_column * scale;
            }
        }
        for (theta, ax) in self.theta.iter_mut().zip(&ax) {
            *theta += ax * surprise;
        }
    }

    /// A⁻¹·x.
    fn times(&self, x: &Features) -> Features {
        let mut product = [0.0; N];
        for (out, row) in product.iter_mut().zip(&self.inverse) {
            *out = dot(row, x);
        }
        product
    }
}

fn dot(a: &Features, b: &Features) -> f64 {
    let mut sum = 0.0;
    for (a, b) in a.iter().zip(b) {
        sum += a * b;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Situations, rewards, and then what is expected of (4, 3, 15, 2, 1, 6), alone and with two standard deviations.
    /// Made by a throw-away Python script that keeps A and b and solves for both in exact fractions.
    #[test]
    fn it_is_ridge_regression() {
        let mut bandit = Bandit::new();
        let asked = [4.0, 3.0, 15.0, 2.0, 1.0, 6.0];
        for (x, reward, expected, optimistic) in [
            ([5.0, 4.0, 20.0, 2.0, 1.0, 8.0], 3.0, 2.260273972603, 4.190566022335),
            ([3.0, 3.0, 18.0, 2.0, 2.0, 7.0], 2.0, 2.177563415506, 4.009361467002),
            ([6.0, 6.0, 25.0, 3.0, 0.0, 9.0], 5.0, 2.351131681436, 4.045042699598),
            ([1.0, 1.0, 9.0, 4.0, 3.0, 3.0], 1.0, 2.415242322690, 3.878723488091),
            ([8.0, 2.0, 30.0, 1.0, 1.0, 12.0], 6.0, 2.584974376343, 3.943124975610),
        ] {
            bandit.learn(&x, reward);
            assert!((bandit.score(&asked, 0.0) - expected).abs() < 1e-9, "{expected}");
            assert!((bandit.score(&asked, 2.0) - optimistic).abs() < 1e-9, "{optimistic}");
        }
    }

    #[test]
    fn rounding_does_not_add_up() {
        let (mut bandit, mut digit) = (Bandit::new(), 1_u64);
        let mut next = || {
            digit = digit.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (digit >> 40) as f64 / 1000.0
        };
        for _ in 0..20_000 {
            let x: Features = std::array::from_fn(|_| next());
            bandit.learn(&x, x[0] + 2.0 * x[5]);
        }
        let x = [10.0, 20.0, 30.0, 40.0, 50.0, 60.0];
        assert!((bandit.score(&x, 1.0) - 130.0).abs() < 0.1, "{}", bandit.score(&x, 1.0));
    }
}
