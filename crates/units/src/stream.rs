//! Named, seeded streams of random numbers.
//!
//! Each random element of a run draws from a stream named after it, so that adding an element leaves the others' draws
//! as they were and two runs that differ in one policy meet the same losses (common random numbers). The generator is
//! PCG XSL RR 128/64 (O'Neill 2014), whose output is fixed by its definition; the real-number helpers use only
//! `+ - * /` so that they repeat on every platform.

use chacha20::ChaCha20Rng;
use rand_core::Rng;
use rand_pcg::Pcg64;
use sha2::{Digest, Sha256};

/// The seed of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, Default)]
pub struct Seed(pub u64);

/// One element's private random generator.
#[derive(Debug)]
pub struct Stream(Source);

#[derive(Debug)]
enum Source {
    /// Repeatable and fast; predictable from enough of its output.
    Seeded(Pcg64),
    /// Unpredictable ([`Entropy`](crate::Entropy)).
    Secret(Box<ChaCha20Rng>),
}

impl Seed {
    /// The stream of the element called `name`, for instance `link/wifi/loss`.
    pub fn stream(self, name: &str) -> Stream {
        let mut hash = Sha256::new();
        hash.update(self.0.to_be_bytes());
        hash.update(name.as_bytes());
        let digest: [u8; 32] = hash.finalize().into();
        let (state, increment) = digest.split_at(16);
        Stream(Source::Seeded(Pcg64::new(be_u128(state), be_u128(increment))))
    }

    /// The seed of the part called `name`, for instance one host of a run.
    pub fn child(self, name: &str) -> Seed {
        Seed(self.stream(name).next_u64())
    }
}

impl Stream {
    pub(crate) fn secret(generator: ChaCha20Rng) -> Self {
        Stream(Source::Secret(Box::new(generator)))
    }

    /// The next 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        match &mut self.0 {
            Source::Seeded(generator) => generator.next_u64(),
            Source::Secret(generator) => generator.next_u64(),
        }
    }

    /// The next 32 random bits.
    pub fn next_u32(&mut self) -> u32 {
        (self.next_u64() >> 32) as u32
    }

    /// A real number in [0, 1) with 53 random bits.
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// True with probability `p`. Always draws once, so that changing `p` does not shift later draws.
    pub fn chance(&mut self, p: f64) -> bool {
        self.unit() < p
    }

    /// A whole number in `0..n`; 0 if `n` is 0. The bias of the multiplication method is below 2⁻⁶⁴·n.
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(n)) >> 64) as u64
    }

    /// A whole number in `low..=high`; `low` if that is above `high`.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high.saturating_sub(low).saturating_add(1))
    }
}

fn be_u128(bytes: &[u8]) -> u128 {
    bytes.iter().fold(0, |n, &b| n << 8 | u128::from(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_and_a_seed_fix_the_stream() {
        let draw = |seed: u64, name: &str| Seed(seed).stream(name).next_u64();
        assert_eq!(draw(1, "link/wifi/loss"), draw(1, "link/wifi/loss"));
        assert_ne!(draw(1, "link/wifi/loss"), draw(1, "link/lte/loss"));
        assert_ne!(draw(1, "link/wifi/loss"), draw(2, "link/wifi/loss"));
    }

    #[test]
    fn chance_keeps_its_promise() {
        let mut stream = Seed(7).stream("test");
        let hits = (0..100_000).filter(|_| stream.chance(0.01)).count();
        // Mean 1000, standard deviation 31.5: five of them either way.
        assert!((843..=1157).contains(&hits), "{hits}");
        assert!((0..1000).all(|_| stream.below(3) < 3 && (5..=6).contains(&stream.between(5, 6))));
        assert_eq!(stream.below(0), 0);
    }
}
