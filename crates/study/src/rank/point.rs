//! Point of the space that conditions are drawn from: one number of [0, 1) for each choice.
//!
//! [`Condition::at`](super::Condition::at) maps a point to a condition, so moving the point searches the space. A
//! choice that does not apply (the third of two paths, the length of bursts without bursts) still has a number, which
//! changes nothing.

use anabranch_units::Seed;

/// Maximum number of paths of a condition.
pub(super) const MOST_PATHS: usize = 4;

macro_rules! choices {
    ($(#[$doc:meta])* $name:ident: $($variant:ident $text:literal $($class:ident)?,)*) => {
        $(#[$doc])*
        #[derive(Clone, Copy)]
        pub(super) enum $name { $($variant),* }

        impl $name {
            /// Names of the random streams of the choices: a further choice leaves the others as they were.
            const NAMES: &[&str] = &[$($text),*];
            /// True for a choice among classes rather than of an amount.
            const CLASSES: &[bool] = &[$(!concat!("", $(stringify!($class))?).is_empty()),*];
        }
    };
}

choices! {
    /// Choices made once per condition.
    Choice:
    Paths "paths" class,
    Similar "similar" class,
    BaseRate "base-rate",
    BaseRtt "base-rtt",
    Loss "loss" class,
    LossBothWays "loss-both-ways" class,
    CommonLoss "common-loss",
    BurstPath "burst-path" class,
    BurstLoss "burst-loss",
    BurstLength "burst-length",
    Dynamics "dynamics" class,
    Target "target" class,
    CellularSeed "cellular-seed" class,
    CellularDown "cellular-down",
    CellularUp "cellular-up",
    CellularRtt "cellular-rtt",
    CellularQueue "cellular-queue" class,
    CellularHandover "cellular-handover",
    VaryEvery "vary-every",
    VaryRate "vary-rate",
    VaryRtt "vary-rtt",
    FailAt "fail-at",
    FailSilently "fail-silently" class,
    FailBack "fail-back" class,
    FailFor "fail-for",
    SharedRate "shared-rate",
    SharedQueue "shared-queue" class,
    CrossKind "cross-kind" class,
    CrossCongestion "cross-congestion" class,
    CrossRate "cross-rate",
    CrossOn "cross-on",
    CrossOff "cross-off",
    Workload "workload" class,
    Size "size",
    Bursts "bursts",
    Interval "interval",
    Bulk "bulk" class,
    Page "page" class,
    PageObjects "page-objects",
    PageBytes "page-bytes",
    PageSeed "page-seed" class,
    Protocol "protocol" class,
    Session "session" class,
    ReceiveTuned "receive-tuned" class,
    ReceiveBuffer "receive-buffer",
    SendSmall "send-small" class,
    SendBuffer "send-buffer",
    Congestion "congestion" class,
}

choices! {
    /// Choices made for each path.
    PathChoice:
    Rate "rate",
    Rtt "rtt",
    SlowUp "slow-up" class,
    Jitters "jitters" class,
    Jitter "jitter",
    Reorders "reorders" class,
    Bloated "bloated" class,
    Bloat "bloat" class,
    Queue "queue",
    Lossy "lossy" class,
    Loss "loss",
}

/// One number of [0, 1) for each choice.
#[derive(Clone, Debug, PartialEq)]
pub struct Point(Vec<f64>);

impl Point {
    /// Number of choices.
    pub const DIMENSIONS: usize = Choice::NAMES.len() + MOST_PATHS * PathChoice::NAMES.len();

    /// Returns the point of condition `number` of `seed`.
    pub fn drawn(seed: u64, number: u64) -> Point {
        let once = Choice::NAMES.iter().map(|name| (*name).to_owned());
        let of_path = |path: usize| PathChoice::NAMES.iter().map(move |name| format!("path/{path}/{name}"));
        let names = once.chain((0..MOST_PATHS).flat_map(of_path));
        Point(names.map(|name| Seed(seed).stream(&format!("condition/{number}/{name}")).unit()).collect())
    }

    /// Returns the point with these coordinates, each moved to the nearest number of [0, 1); missing ones are 0.
    pub fn of(coordinates: &[f64]) -> Point {
        let inside = |x: f64| if x > 0.0 { x.min(LARGEST) } else { 0.0 };
        let mut all: Vec<f64> = coordinates.iter().copied().map(inside).collect();
        all.resize(Point::DIMENSIONS, 0.0);
        Point(all)
    }

    /// Returns for each coordinate true if it chooses among classes, of which neighbours have nothing in common, rather
    /// than an amount.
    pub fn classes() -> impl Iterator<Item = bool> {
        let of_paths = (0..MOST_PATHS).flat_map(|_| PathChoice::CLASSES);
        Choice::CLASSES.iter().chain(of_paths).copied()
    }

    /// Returns the coordinates.
    pub fn coordinates(&self) -> &[f64] {
        &self.0
    }

    pub(super) fn once(&self, choice: Choice) -> Draw {
        Draw(self.0[choice as usize])
    }

    pub(super) fn path(&self, path: usize, choice: PathChoice) -> Draw {
        Draw(self.0[Choice::NAMES.len() + path * PathChoice::NAMES.len() + choice as usize])
    }
}

/// Largest number below 1.
const LARGEST: f64 = 1.0 - f64::EPSILON / 2.0;

/// Number of [0, 1), which can be mapped to a distribution.
#[derive(Clone, Copy)]
pub(super) struct Draw(f64);

impl Draw {
    /// Returns the draw of this number of [0, 1).
    pub(super) fn of(number: f64) -> Draw {
        Draw(number)
    }

    pub(super) fn chance(self, p: f64) -> bool {
        self.0 < p
    }

    pub(super) fn uniform(self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.0
    }

    pub(super) fn log_uniform(self, low: f64, high: f64) -> f64 {
        low * libm::exp(libm::log(high / low) * self.0)
    }

    /// Returns a whole number of `low..=high`.
    pub(super) fn whole(self, low: u64, high: u64) -> u64 {
        low + (self.0 * (high - low + 1) as f64) as u64
    }

    /// Returns one of these, all equally likely.
    pub(super) fn any<T: Copy>(self, of: &[T]) -> T {
        of[(self.0 * of.len() as f64) as usize]
    }

    /// Returns one of these, with weights.
    pub(super) fn weighted<T: Copy>(self, of: &[(T, f64)]) -> T {
        let mut left = self.0 * of.iter().map(|(_, weight)| weight).sum::<f64>();
        for (value, weight) in of {
            left -= weight;
            if left < 0.0 {
                return *value;
            }
        }
        of[of.len() - 1].0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_is_a_function_of_seed_and_number() {
        let point = Point::drawn(1, 7);
        assert_eq!(point, Point::drawn(1, 7));
        assert_ne!(point, Point::drawn(1, 8));
        assert_ne!(point, Point::drawn(2, 7));
        assert_eq!(point.coordinates().len(), Point::DIMENSIONS);
        assert!(point.coordinates().iter().all(|x| (0.0..1.0).contains(x)));
    }

    #[test]
    fn coordinates_outside_are_moved_inside() {
        let point = Point::of(&[-1.0, 2.0, f64::NAN, 0.25]);
        assert_eq!(&point.coordinates()[..5], [0.0, LARGEST, 0.0, 0.25, 0.0]);
        assert!(LARGEST < 1.0 && point.coordinates().len() == Point::DIMENSIONS);
    }

    #[test]
    fn draws_reach_their_ends_and_nothing_beyond() {
        let (low, high) = (Draw(0.0), Draw(LARGEST));
        assert_eq!((low.whole(4, 12), high.whole(4, 12)), (4, 12));
        assert_eq!((low.any(&[1, 2, 3]), high.any(&[1, 2, 3])), (1, 3));
        let table = [("rare", 1.0), ("never", 0.0), ("often", 3.0)];
        assert_eq!(
            [low, Draw(0.249), Draw(0.25), high].map(|draw| draw.weighted(&table)),
            ["rare", "rare", "often", "often"]
        );
        assert!((low.log_uniform(0.5, 1000.0) - 0.5).abs() < 1e-12);
        assert!((high.log_uniform(0.5, 1000.0) - 1000.0).abs() < 1e-9);
        assert!((Draw(0.5).log_uniform(1.0, 100.0) - 10.0).abs() < 1e-9);
        assert!(low.chance(0.1) && !high.chance(0.9) && !low.chance(0.0));
    }
}
