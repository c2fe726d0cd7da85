//! `page`: the name of a site or file, or a table to generate a page from.

use super::value::Unit;
use anabranch_units::{Bytes, Duration};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor, value::MapAccessDeserializer};
use std::borrow::Cow;
use std::fmt;

/// Source of a page.
#[derive(Clone, Debug, PartialEq)]
pub enum PageSource {
    /// Name of a site or of a file.
    Named(String),
    /// Table from which a page is generated.
    Generated(PageTable),
}

/// A generated page: log-normal sizes (sigma 1.5) scaled to the total. Objects form a tree of three levels with 20 ms
/// of processing from one to the next; or, with `wave` and `computation`, a dependency graph of waves.
#[derive(Clone, Copy, Debug, PartialEq, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct PageTable {
    /// Number of objects.
    pub objects: usize,
    /// Size of all objects together.
    pub total: Unit<Bytes>,
    /// Seed of the page; 1 unless given. All runs have the same page.
    #[serde(default = "one")]
    pub seed: u64,
    /// Number of objects of a wave: each waits for one of the wave before. Needs `computation`.
    pub wave: Option<usize>,
    /// Mean of the exponential time from the end of an object to the requests of those that wait for it. Needs `wave`.
    pub computation: Option<Unit<Duration>>,
}

fn one() -> u64 {
    1
}

impl<'de> Deserialize<'de> for PageSource {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(PageVisitor)
    }
}

impl JsonSchema for PageSource {
    fn schema_name() -> Cow<'static, str> {
        "Page".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let table = generator.subschema_for::<PageTable>();
        json_schema!({
            "description": "A site (google, wikipedia, instagram, amazon, theguardian), the name of a HAR (\"x.har\") \
                            or of a dependency graph of WProf or Epload (\"x.json\") relative to the scenario, or a \
                            table to generate a page from.",
            "anyOf": [{ "type": "string" }, table]
        })
    }
}

struct PageVisitor;

impl<'de> Visitor<'de> for PageVisitor {
    type Value = PageSource;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "a site such as \"google\", a file such as \"x.har\", or a table { objects = 15, total = \"72kB\" }",
        )
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<PageSource, E> {
        Ok(PageSource::Named(text.to_owned()))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<PageSource, A::Error> {
        PageTable::deserialize(MapAccessDeserializer::new(map)).map(PageSource::Generated)
    }
}
