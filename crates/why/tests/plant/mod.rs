//! Drawn networks in which one fault is planted: each scenario once as it should be, and once with the fault.

#![allow(dead_code)]

mod base;
mod faults;
mod hosts;

use anabranch_units::{Seed, Stream};
pub use base::Base;

/// A drawn scenario with its fault.
pub struct Planted {
    /// Name of the kind of fault, with the number of the draw.
    pub name: String,
    /// The scenario without the fault.
    pub clean: String,
    /// The scenario with it.
    pub text: String,
    /// Words of the sentence that names it: of each group one.
    pub words: Words,
    /// True for a fault that no change of the scenario takes away: the application's own rhythm.
    pub is_rhythm: bool,
}

/// Words of a sentence: of each group one.
pub type Words = Vec<Vec<String>>;

/// A kind of fault: its name, and the way to plant it, which may not fit a base.
pub type Kind = (&'static str, fn(&mut Stream, &mut Base) -> Option<Words>);

/// Makes words of one alternative each.
pub fn words(all: &[&str]) -> Words {
    all.iter().map(|word| word.split('|').map(str::to_owned).collect()).collect()
}

/// Returns all kinds of faults.
pub fn kinds() -> Vec<Kind> {
    [faults::KINDS, hosts::KINDS].concat()
}

/// Draws a scenario with a fault of this kind.
pub fn draw(kind: &Kind, seed: Seed, number: u64) -> Option<Planted> {
    let mut stream = seed.stream(&format!("{}/{number}", kind.0));
    let clean = Base::draw(&mut stream);
    let mut with = clean.clone();
    let words = kind.1(&mut stream, &mut with)?;
    // A fault may need another workload than was drawn, or links that are there without it too.
    let clean = with.clean.take().map_or(clean, |it| *it);
    let name = format!("{} {number}", kind.0);
    Some(Planted { name, clean: clean.text(), text: with.text(), words, is_rhythm: with.is_rhythm })
}
