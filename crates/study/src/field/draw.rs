//! Draws of what was not recorded: a Latin hypercube, so that few draws cover each range.

use super::file::UnrecordedTable;
use crate::study::fill;
use crate::sweep::{Draws, Method};

/// Draws of several quantities.
pub(super) struct Drawn {
    draws: Draws,
}

impl Drawn {
    /// Draws `count` values of each quantity.
    pub(super) fn new(quantities: &[&UnrecordedTable], count: usize) -> Drawn {
        let names: Vec<&str> = quantities.iter().map(|it| it.name.as_str()).collect();
        Drawn { draws: Draws::new(Method::LatinHypercube, SEED, count as u64, &names) }
    }

    /// Returns the settings of a quantity in a draw. `place` is its place among the quantities.
    pub(super) fn sets(&self, quantity: &UnrecordedTable, place: usize, draw: usize) -> Vec<String> {
        let share = self.draws.coordinate(draw as u64, place, &quantity.name);
        match (&quantity.choices, quantity.range) {
            (Some(choices), _) => {
                let value = &choices[(share * choices.len() as f64) as usize];
                quantity.set.iter().map(|set| set.value.replace("{}", value)).collect()
            }
            (None, range) => {
                let value = within(range.unwrap_or_default(), quantity.step, share);
                // All templates were filled once when the file was checked.
                quantity.set.iter().filter_map(|set| fill(set, value).ok()).collect()
            }
        }
    }
}

/// Returns the value at this share of a range, rounded to a multiple of `step`.
fn within([low, high]: [f64; 2], step: Option<f64>, share: f64) -> f64 {
    let value = low + (high - low) * share;
    if let Some(step) = step {
        return ((value / step).round() * step).clamp(low, high);
    }
    // A millionth of the range is more than a setting needs.
    let part = 1e6 / (high - low);
    (value * part).round() / part
}

/// Seed of all draws. Another would do as well; it was chosen before the first run.
const SEED: u64 = 1;

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_scenario::file::At;

    fn quantity(name: &str) -> UnrecordedTable {
        UnrecordedTable {
            name: name.to_owned(),
            unit: "p".to_owned(),
            set: vec![At { span: 0..0, value: "path.a.queue={}p".to_owned() }],
            range: Some([100.0, 200.0]),
            step: Some(1.0),
            choices: None,
            reason: String::new(),
        }
    }

    /// Each tenth of the range has one of ten draws, which do not depend on other quantities.
    #[test]
    fn draws_cover_the_range() {
        let (queue, other) = (quantity("queue"), quantity("other"));
        let values = |drawn: &Drawn| -> Vec<u32> {
            let one = |draw| drawn.sets(&queue, 0, draw).concat();
            let value =
                |set: String| set.trim_start_matches("path.a.queue=").trim_end_matches('p').parse().unwrap_or(0);
            (0..10).map(one).map(value).collect()
        };
        let drawn = values(&Drawn::new(&[&queue], 10));
        assert_eq!(drawn, values(&Drawn::new(&[&queue, &other], 10)));
        let mut in_order = drawn.clone();
        in_order.sort_unstable();
        assert_ne!(drawn, in_order);
        for (n, value) in in_order.iter().enumerate() {
            let low = 100 + 10 * n as u32;
            assert!((low..=low + 10).contains(value), "{in_order:?}");
        }
    }

    #[test]
    fn choices_are_drawn_as_often_as_one_another() {
        let choices = vec!["cubic".to_owned(), "lia".to_owned()];
        let set = vec![At { span: 0..0, value: "host.congestion={}".to_owned() }];
        let quantity = UnrecordedTable { choices: Some(choices), set, ..quantity("congestion") };
        let drawn = Drawn::new(&[&quantity], 10);
        let cubic = (0..10).filter(|draw| drawn.sets(&quantity, 0, *draw) == ["host.congestion=cubic"]).count();
        assert_eq!(cubic, 5);
    }
}
