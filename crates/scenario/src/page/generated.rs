//! Generated pages and sessions, since the low-latency paper (S. Ferlin et al., LOWLAT) publishes only counts and sums.

use anabranch_sim::page::{Activity, After, Moment, Object, Page};
use anabranch_units::{Bytes, Duration, Seed, Stream};

/// Site of LOWLAT Table III.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Site {
    pub(crate) name: &'static str,
    objects: usize,
    /// Size in units of 1000 bytes.
    kilobytes: u64,
}

/// LOWLAT Table III.
pub(crate) const SITES: [Site; 5] = [
    Site { name: "google", objects: 6, kilobytes: 906 },
    Site { name: "wikipedia", objects: 19, kilobytes: 132 },
    Site { name: "instagram", objects: 30, kilobytes: 1671 },
    Site { name: "amazon", objects: 59, kilobytes: 1234 },
    Site { name: "theguardian", objects: 228, kilobytes: 3166 },
];

/// Returns the site of that name.
pub(crate) fn site(name: &str) -> Option<Page> {
    let site = SITES.iter().find(|site| site.name == name)?;
    let total = Bytes::new(site.kilobytes * 1000);
    let stream = Seed(1).stream(&format!("page/{name}"));
    Some(Generated { objects: site.objects, total, shape: Shape::Tree, stream }.page())
}

/// Page with a given number of objects and bytes.
///
/// Sizes are log-normal (σ = 1.5) and scaled to the total, each at least one byte. The first object is the document,
/// which is requested first; the shape says which object names which.
pub(crate) struct Generated {
    pub(crate) objects: usize,
    pub(crate) total: Bytes,
    pub(crate) shape: Shape,
    pub(crate) stream: Stream,
}

/// Dependencies between the objects of a page, with their delays.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Shape {
    /// Three levels: the document; half of the other objects, which it names; and the rest, each named by one of that
    /// half, drawn uniformly. Naming an object takes 20 ms.
    Tree,
    /// Waves of `size` objects: the document names the first wave, and each object of a later one is named by one of
    /// the wave before, drawn uniformly. Objects compute before they name others, for an exponential time with this
    /// mean.
    Waves {
        /// Number of objects in a wave, at least one.
        size: usize,
        /// Mean time of the computations.
        computation: Duration,
    },
}

impl Generated {
    pub(crate) fn page(mut self) -> Page {
        let sizes = self.sizes();
        let delays: Vec<_> = (0..self.objects).map(|_| self.computation()).collect();
        let one = |(number, size): (usize, u64)| {
            let parent = (number > 0).then(|| self.parent(number));
            let after = parent.map(|activity| After { activity, moment: Moment::End, delay: delays[activity] });
            Activity { after: after.into_iter().collect(), ..Activity::download(Object::of_size(Bytes::new(size))) }
        };
        Page { activities: sizes.into_iter().enumerate().map(one).collect() }
    }

    /// Returns the time from the end of an object to the requests of those that it names.
    fn computation(&mut self) -> Duration {
        match self.shape {
            Shape::Tree => PROCESSING,
            Shape::Waves { computation, .. } => computation.mul_f64(-libm::log(1.0 - self.stream.unit())),
        }
    }

    /// Returns the object that names this one, which is not the document.
    fn parent(&mut self, number: usize) -> usize {
        let (first, last) = match self.shape {
            Shape::Tree if number <= self.objects / 2 => (0, 0),
            Shape::Tree => (1, self.objects / 2),
            Shape::Waves { size, .. } => match (number - 1) / size {
                0 => (0, 0),
                wave => (1 + (wave - 1) * size, wave * size),
            },
        };
        if first == last { first } else { self.stream.between(first as u64, last as u64) as usize }
    }

    /// Draws the sizes, which add up to the total.
    fn sizes(&mut self) -> Vec<u64> {
        let weights: Vec<f64> = (0..self.objects).map(|_| libm::exp(SIGMA * normal(&mut self.stream))).collect();
        let sum: f64 = weights.iter().sum();
        // One byte each, and the rest by weight: cumulative sums are rounded, so that the total stays exact.
        let spare = self.total.get().saturating_sub(self.objects as u64);
        let (mut before, mut cumulative) = (0, 0.0);
        let mut size = |weight: &f64| {
            cumulative += weight;
            let until = (cumulative / sum * spare as f64).round() as u64;
            let size = 1 + until.saturating_sub(before);
            before = before.max(until);
            size
        };
        weights.iter().map(&mut size).collect()
    }
}

/// Session on a map: every 3 s ± 1 s the user acts, and within 300 ms 8 to 20 objects of 5 to 40 kB are requested,
/// whose sizes are log-normal (σ = 0.6) around 15 kB.
pub(crate) struct Session {
    pub(crate) duration: Duration,
    pub(crate) stream: Stream,
}

impl Session {
    pub(crate) fn objects(mut self) -> Vec<(Duration, Bytes)> {
        let stream = &mut self.stream;
        let mut all = Vec::new();
        let mut time = gap(stream);
        while time < self.duration {
            for _ in 0..stream.between(8, 20) {
                let at = time + Duration::from_nanos(stream.below(WITHIN.as_nanos()));
                all.push((at, Bytes::new(tile(stream))));
            }
            time += gap(stream);
        }
        all.sort_by_key(|(at, _)| *at);
        all
    }
}

/// Draws the time from one action to the next.
fn gap(stream: &mut Stream) -> Duration {
    Duration::from_nanos(stream.between(2_000_000_000, 4_000_000_000))
}

/// Draws the size of an object, until it lies within the bounds.
fn tile(stream: &mut Stream) -> u64 {
    loop {
        let size = MEDIAN * libm::exp(TILE_SIGMA * normal(stream));
        if (5_000.0..=40_000.0).contains(&size) {
            return size.round() as u64;
        }
    }
}

/// Draws a standard normal number (Box and Muller 1958), the same on every platform.
fn normal(stream: &mut Stream) -> f64 {
    let (radius, angle) = (1.0 - stream.unit(), stream.unit());
    (-2.0 * libm::log(radius)).sqrt() * libm::cos(2.0 * std::f64::consts::PI * angle)
}

/// Time from the end of an object to the requests of those that it names.
const PROCESSING: Duration = Duration::from_millis(20);
/// Standard deviation of the logarithms of a page's sizes.
const SIGMA: f64 = 1.5;
/// Standard deviation of the logarithms of a map's sizes: nine in ten then lie within the bounds.
const TILE_SIGMA: f64 = 0.6;
/// Median size of a map's objects in bytes.
const MEDIAN: f64 = 15_000.0;
/// Time from the first to the last request of an action.
const WITHIN: Duration = Duration::from_millis(300);

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use anabranch_sim::page::Work;

    fn sizes(page: &Page) -> Vec<u64> {
        let size = |it: &Activity| match it.work {
            Work::Download(object) => object.size.get(),
            Work::Compute(_) => panic!("only downloads are generated"),
        };
        page.activities.iter().map(size).collect()
    }

    /// LOWLAT Table III.
    #[test]
    fn sites_have_the_objects_and_bytes_of_the_table() {
        let table = [
            ("google", 6, 906),
            ("wikipedia", 19, 132),
            ("instagram", 30, 1671),
            ("amazon", 59, 1234),
            ("theguardian", 228, 3166),
        ];
        for (name, objects, kilobytes) in table {
            let page = site(name).unwrap();
            page.check().unwrap();
            assert_eq!((page.activities.len(), page.total()), (objects, Bytes::new(kilobytes * 1000)), "{name}");
            assert_eq!(site(name).unwrap(), page, "the same each time");
            assert!(sizes(&page).iter().all(|&size| size > 0));
        }
        assert!(site("gogle").is_none());
    }

    #[test]
    fn a_tree_has_three_levels_and_twenty_milliseconds_between_them() {
        let page = site("theguardian").unwrap();
        let mut levels = Vec::new();
        for activity in &page.activities {
            levels.push(match activity.after.as_slice() {
                [] => 1,
                [after] => {
                    assert_eq!((after.moment, after.delay), (Moment::End, Duration::from_millis(20)));
                    levels[after.activity] + 1
                }
                _ => panic!("a tree: {activity:?}"),
            });
        }
        let count = |level| levels.iter().filter(|&&it| it == level).count();
        assert_eq!((count(1), count(2), count(3)), (1, 114, 113));
    }

    fn waves(size: usize, mean: u64) -> Shape {
        Shape::Waves { size, computation: Duration::from_millis(mean) }
    }

    /// 61 objects in waves of six are a document and ten waves, each of which waits for the one before.
    #[test]
    fn waves_wait_for_each_other() {
        let stream = Seed(3).stream("x");
        let page = Generated { objects: 61, total: Bytes::new(61_000), shape: waves(6, 50), stream }.page();
        page.check().unwrap();
        let mut wave: Vec<usize> = Vec::new();
        for activity in &page.activities {
            wave.push(match activity.after.as_slice() {
                [] => 0,
                [after] => wave[after.activity] + 1,
                _ => panic!("a tree: {activity:?}"),
            });
        }
        assert_eq!(wave, (0..61).map(|number: usize| number.div_ceil(6)).collect::<Vec<_>>());
    }

    /// The mean of an exponential distribution equals its deviation, and 1/e of it lies above the mean.
    #[test]
    fn computations_are_exponential() {
        let stream = Seed(3).stream("x");
        let page = Generated { objects: 20_000, total: Bytes::new(1 << 31), shape: waves(1, 50), stream }.page();
        let after = page.activities.iter().flat_map(|activity| &activity.after);
        let times: Vec<f64> = after.map(|after| after.delay.as_secs_f64() * 1e3).collect();
        let mean = times.iter().sum::<f64>() / times.len() as f64;
        let above = times.iter().filter(|&&time| time > 50.0).count() as f64 / times.len() as f64;
        assert!((mean - 50.0).abs() < 1.0 && (above - (-1.0_f64).exp()).abs() < 0.01, "{mean} ms, {above}");
    }

    /// The logarithms of many sizes deviate by 1.5.
    #[test]
    fn sizes_are_log_normal() {
        let generated =
            Generated { objects: 20_000, total: Bytes::new(1 << 31), shape: Shape::Tree, stream: Seed(7).stream("x") };
        let logs: Vec<f64> = sizes(&generated.page()).iter().map(|&size| libm::log(size as f64)).collect();
        let mean = logs.iter().sum::<f64>() / logs.len() as f64;
        let deviation = (logs.iter().map(|log| (log - mean) * (log - mean)).sum::<f64>() / logs.len() as f64).sqrt();
        assert!((deviation - 1.5).abs() < 0.03, "{deviation}");
    }

    #[test]
    fn small_pages_are_pages_too() {
        for objects in 1..6 {
            for shape in [Shape::Tree, waves(1, 10), waves(6, 0)] {
                let total = Bytes::new(objects as u64);
                let page = Generated { objects, total, shape, stream: Seed(1).stream("x") }.page();
                page.check().unwrap();
                assert_eq!(sizes(&page), vec![1; objects]);
            }
        }
    }

    #[test]
    fn a_session_has_bursts_of_tiles() {
        let objects = Session { duration: Duration::from_secs(600), stream: Seed(1).stream("session") }.objects();
        assert!(objects.iter().all(|(_, size)| (5_000..=40_000).contains(&size.get())));
        let mut sizes: Vec<u64> = objects.iter().map(|(_, size)| size.get()).collect();
        sizes.sort_unstable();
        let median = sizes[sizes.len() / 2];
        assert!((14_000..16_000).contains(&median), "{median}");
        // A pause of more than a second separates two bursts.
        let mut bursts = vec![vec![objects[0].0]];
        for pair in objects.windows(2) {
            if pair[1].0.saturating_sub(pair[0].0) > Duration::from_secs(1) {
                bursts.push(Vec::new());
            }
            bursts.last_mut().unwrap().push(pair[1].0);
        }
        assert!((170..=230).contains(&bursts.len()), "every three seconds: {}", bursts.len());
        for burst in &bursts {
            assert!((8..=20).contains(&burst.len()), "{}", burst.len());
            assert!(burst.last().unwrap().saturating_sub(burst[0]) < WITHIN);
        }
        let count = |n: usize| bursts.iter().filter(|burst| burst.len() == n).count();
        assert!(count(8) > 0 && count(20) > 0, "both ends occur");
    }
}
