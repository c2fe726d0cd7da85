//! Models of networks: rate, delay and loss that are drawn from the seed of the run, in place of a recording.
//!
//! A model draws a [`Recording`], which paths follow as they follow one from a file. Each draw comes from a stream
//! named after the path, in the order of time, so a longer run begins like a shorter one. Real numbers need `+ - * /
//! sqrt` and the logarithms of `libm` only: a seed gives the same bits on every platform.

mod blockage;
mod leo;
mod lte;
mod signal;
mod wander;
mod wifi;

pub use blockage::Blockage;
pub use leo::Leo;
pub use lte::Lte;
pub use wifi::Wifi;

use crate::ScenarioError;
use crate::error::Problem;
use crate::file::{At, Share, Unit};
use crate::tree::{Layer, Tree};
use anabranch_recording::{Level, Levels, Recording, Stretch, Supply};
use anabranch_units::quantity::Refusal;
use anabranch_units::{Duration, Rate, Seed, Stream, suggest};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor, value::MapAccessDeserializer};
use std::borrow::Cow;
use std::fmt;

/// A model of a network, whose rate, delay and loss are drawn anew for each run. All candidates of a comparison meet
/// the same draws. After ten minutes they repeat.
#[derive(Clone, Debug, PartialEq, serde::Deserialize, JsonSchema)]
#[serde(tag = "name")]
pub enum ModelTable {
    /// Satellites in low orbit, as of Starlink: every 15 s another satellite, with another delay and rate, and a burst
    /// of loss at the handover (Huston 2024; a drive of CoNEXT'23).
    #[serde(rename = "leo")]
    Leo(Leo),
    /// 5G in millimetre waves, whose signal people block (MacCartney and others 2017).
    #[serde(rename = "5g")]
    Blockage(Blockage),
    /// Wi-Fi: a rate that follows the signal, frames that are sent in bursts, and other stations between them (IEEE
    /// 802.11-2020).
    #[serde(rename = "wifi")]
    Wifi(Wifi),
    /// LTE: a rate that follows the signal, and blocks that are sent again 8 ms later (TS 36.213, TS 36.321).
    #[serde(rename = "lte")]
    Lte(Lte),
}

/// A model, by its name or with parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Model(pub ModelTable);

/// Names of all models.
pub const NAMES: [&str; 4] = ["leo", "5g", "wifi", "lte"];
/// Longest time that is drawn; what was drawn repeats after it.
pub const LONGEST: Duration = Duration::from_secs(600);

impl Model {
    /// Returns the model of this name, with default parameters.
    pub fn named(name: &str) -> Option<Model> {
        Some(Model(match name {
            "leo" => ModelTable::Leo(Leo::default()),
            "5g" => ModelTable::Blockage(Blockage::default()),
            "wifi" => ModelTable::Wifi(Wifi::default()),
            "lte" => ModelTable::Lte(Lte::default()),
            _ => return None,
        }))
    }

    /// Reads a model from the text of an option: its name, or the table that a scenario has.
    ///
    /// # Errors
    ///
    /// If there is no such model, or a parameter is unknown or out of range; the error points at the place.
    pub fn read(option: &str, text: &str) -> Result<Model, ScenarioError> {
        #[derive(serde::Deserialize)]
        struct Written {
            model: At<Model>,
        }
        let table = text.trim_start().starts_with('{');
        let value = if table { text.to_owned() } else { toml::Value::from(text).to_string() };
        let tree = Tree::read(&[Layer { name: option, text: &format!("model = {value}"), within: None }])?;
        let At { span, value } = tree.decode::<Written>()?.model;
        let refused = |refusal: Refusal| Problem::at(&span, refusal.problem, refusal.accepted);
        value.check().map_err(|refusal| tree.sources.error(refused(refusal)))?;
        Ok(value)
    }

    /// Returns its name.
    pub fn name(&self) -> &'static str {
        match &self.0 {
            ModelTable::Leo(_) => "leo",
            ModelTable::Blockage(_) => "5g",
            ModelTable::Wifi(_) => "wifi",
            ModelTable::Lte(_) => "lte",
        }
    }

    /// Refuses parameters out of range.
    pub fn check(&self) -> Result<(), Refusal> {
        match &self.0 {
            ModelTable::Leo(model) => model.check(),
            ModelTable::Blockage(model) => model.check(),
            ModelTable::Wifi(model) => model.check(),
            ModelTable::Lte(model) => model.check(),
        }
    }

    /// Draws what the path of this name meets in the run with this seed: `length` of it, at least a millisecond and at
    /// most [`LONGEST`].
    pub fn draw(&self, seed: Seed, path: &str, length: Duration) -> Recording {
        let length = length.clamp(Duration::from_millis(1), LONGEST);
        let source = Source { seed, path };
        match &self.0 {
            ModelTable::Leo(model) => model.draw(&source, length),
            ModelTable::Blockage(model) => model.draw(&source, length),
            ModelTable::Wifi(model) => model.draw(&source, length),
            ModelTable::Lte(model) => model.draw(&source, length),
        }
    }
}

/// Source of the draws of one path.
struct Source<'a> {
    seed: Seed,
    path: &'a str,
}

impl Source<'_> {
    /// Returns the stream for this purpose.
    fn stream(&self, what: &str) -> Stream {
        self.seed.stream(&format!("path/{}/model/{what}", self.path))
    }

    /// Returns the stream for this purpose that all paths of the model have in common.
    fn common(&self, what: &str) -> Stream {
        self.seed.stream(&format!("model/{what}"))
    }
}

/// Puts what was drawn together. `interval` is the time between two draws.
fn recording(
    length: Duration,
    interval: Duration,
    rate: Supply,
    delay: Levels<Duration>,
    loss: Option<Levels<f64>>,
) -> Recording {
    let stretches = vec![Stretch { at: Duration::ZERO, length, clock: None }];
    Recording { form: None, rate: Some(rate), delay: Some(delay), loss, stretches, interval, remarks: Vec::new() }
}

/// Returns a value that holds for all of the time.
fn constant<T: Copy + PartialEq>(length: Duration, value: T) -> Levels<T> {
    Levels::new([Level { until: length, value }])
}

/// Returns this part of a rate.
fn part(rate: Rate, of: u64, whole: u64) -> Rate {
    let bps = u128::from(rate.as_bps()) * u128::from(of) / u128::from(whole);
    Rate::from_bps(u64::try_from(bps).unwrap_or(u64::MAX))
}

/// Draws a time from the exponential distribution of this mean.
fn exponential(stream: &mut Stream, mean: Duration) -> Duration {
    Duration::from_nanos((-libm::log(1.0 - stream.unit()) * mean.as_nanos() as f64) as u64)
}

/// Draws a time between zero and this, evenly.
fn up_to(stream: &mut Stream, most: Duration) -> Duration {
    Duration::from_nanos(stream.between(0, most.as_nanos()))
}

/// Refuses a parameter out of its range.
fn within<T: PartialOrd + fmt::Display>(name: &str, value: T, least: T, most: T) -> Result<(), Refusal> {
    if value >= least && value <= most {
        return Ok(());
    }
    Err(Refusal { problem: format!("`{name}` is {value}"), accepted: format!("accepted: {least} to {most}") })
}

/// Refuses a rate or a delay that all models have out of its range.
fn check_common(rate: Unit<Rate>, delay: Unit<Duration>) -> Result<(), Refusal> {
    within("rate", rate.0, Rate::from_mbps(1), Rate::from_mbps(10_000))?;
    within("delay", delay.0, Duration::ZERO, Duration::from_secs(1))
}

/// Refuses a share above this.
fn check_share(name: &str, share: Unit<Share>, most: f64) -> Result<(), Refusal> {
    if share.0.0 <= most {
        return Ok(());
    }
    let [held, most] = [share.0.0, most].map(|share| share * 100.0);
    Err(Refusal { problem: format!("`{name}` is {held} %"), accepted: format!("accepted: 0% to {most}%") })
}

impl<'de> Deserialize<'de> for Model {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ModelVisitor)
    }
}

impl JsonSchema for Model {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Model".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let table = generator.subschema_for::<ModelTable>();
        let names = NAMES.iter().map(|name| json_schema!({ "const": name }));
        let any: Vec<Schema> = names.chain([table]).collect();
        json_schema!({ "anyOf": any })
    }
}

struct ModelVisitor;

impl<'de> Visitor<'de> for ModelVisitor {
    type Value = Model;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a model such as \"leo\", or a table { name = \"leo\", … }")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Model, E> {
        let unknown = || E::custom(format!("there is no model `{text}`\n{}", suggest(text, NAMES)));
        Model::named(text).ok_or_else(unknown)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Model, A::Error> {
        ModelTable::deserialize(MapAccessDeserializer::new(map)).map(Model)
    }
}

#[cfg(test)]
mod tests;
