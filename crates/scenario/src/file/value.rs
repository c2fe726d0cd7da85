//! Values of a scenario file, each with its place in the file.

use super::recording::RecordingTable;
use anabranch_units::quantity::{self, Queue, Refusal};
use anabranch_units::{Bytes, Duration, Rate};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor, value::MapAccessDeserializer};
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;
use toml::Spanned;

/// A value with its place in the file.
#[derive(Clone, Debug)]
pub struct At<T> {
    /// Place in bytes from the start of the file; beyond its end for a `--set`.
    pub span: Range<usize>,
    /// The value.
    pub value: T,
}

/// Quantity with its unit and its place in the file.
pub type Of<T> = At<Unit<T>>;

/// Two quantities that bound something.
pub type Bounds<T> = At<[Unit<T>; 2]>;

/// Value written as text with a unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Unit<T>(pub T);

/// Value written as text, such as `"10ms"`.
pub trait Quantity: Sized {
    /// Name in the JSON schema.
    const NAME: &'static str;
    /// Description with examples.
    const ABOUT: &'static str;
    /// ECMA 262 regular expression that the text matches.
    const PATTERN: &'static str;
    /// Parses the text.
    fn parse(text: &str) -> Result<Self, Refusal>;
}

/// Rate of a link.
#[derive(Clone, Debug, PartialEq)]
pub enum Speed {
    /// Constant rate.
    Rate(Rate),
    /// Name of the file with a recording.
    Trace(String),
}

/// A share between 0 and 1.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Share(pub f64);

/// Span of time, or `None` if written as `false`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OrOff(pub Option<Duration>);

impl Quantity for Duration {
    const NAME: &'static str = "Time";
    const ABOUT: &'static str = "A time with its unit (ns, us, ms, s, min): \"10ms\".";
    const PATTERN: &'static str = r"^[0-9]+(\.[0-9]+)? *(ns|us|ms|s|min)$";
    fn parse(text: &str) -> Result<Self, Refusal> {
        quantity::duration(text)
    }
}

impl Quantity for Rate {
    const NAME: &'static str = "Rate";
    const ABOUT: &'static str = "Decimal bits per second (bit, kbit, mbit, gbit): \"25mbit\".";
    const PATTERN: &'static str = r"^[0-9]+(\.[0-9]+)? *(bit|kbit|mbit|gbit)$";
    fn parse(text: &str) -> Result<Self, Refusal> {
        quantity::rate(text)
    }
}

impl Quantity for Bytes {
    const NAME: &'static str = "Size";
    const ABOUT: &'static str = "An amount of data (B, kB, MB, GB; KiB, MiB, GiB): \"64KiB\".";
    const PATTERN: &'static str = r"^[0-9]+(\.[0-9]+)? *(B|kB|KB|MB|GB|KiB|MiB|GiB)$";
    fn parse(text: &str) -> Result<Self, Refusal> {
        quantity::size(text)
    }
}

impl Quantity for Share {
    const NAME: &'static str = "Share";
    const ABOUT: &'static str = "A percentage: \"0.5%\".";
    const PATTERN: &'static str = r"^[0-9]+(\.[0-9]+)? *%$";
    fn parse(text: &str) -> Result<Self, Refusal> {
        quantity::share(text).map(Share)
    }
}

impl Quantity for Queue {
    const NAME: &'static str = "Queue";
    const ABOUT: &'static str = "What a queue holds: packets \"100p\", bytes \"64KiB\", bandwidth-delay products \
                                 \"1bdp\", or what waits for a time \"50ms\".";
    const PATTERN: &'static str = r"^[0-9]+(\.[0-9]+)? *(ns|us|ms|s|min|p|bdp|B|kB|KB|MB|GB|KiB|MiB|GiB)$";
    fn parse(text: &str) -> Result<Self, Refusal> {
        quantity::queue(text)
    }
}

impl Quantity for Speed {
    const NAME: &'static str = "Speed";
    const ABOUT: &'static str =
        "A rate (\"25mbit\") or the name of a recording, relative to the scenario file (\"lte.down\").";
    const PATTERN: &'static str = r"^.+$";
    fn parse(text: &str) -> Result<Self, Refusal> {
        if text.is_empty() || quantity::is_quantity_like(text) {
            return quantity::rate(text).map(Speed::Rate).map_err(|refusal| Refusal {
                accepted: format!("{}, or the name of a recording", refusal.accepted),
                ..refusal
            });
        }
        Ok(Speed::Trace(text.to_owned()))
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for At<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<T>::deserialize(deserializer)?;
        Ok(At { span: spanned.span(), value: spanned.into_inner() })
    }
}

impl<T: JsonSchema> JsonSchema for At<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }
    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}

impl<'de, T: Quantity> Deserialize<'de> for Unit<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextVisitor(PhantomData::<T>)).map(Unit)
    }
}

impl<T: Quantity> JsonSchema for Unit<T> {
    fn schema_name() -> Cow<'static, str> {
        T::NAME.into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": T::PATTERN, "description": T::ABOUT })
    }
}

struct TextVisitor<T>(PhantomData<T>);

impl<T: Quantity> Visitor<'_> for TextVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::ABOUT)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        T::parse(text).map_err(refused)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<T, E> {
        T::parse(&number.to_string()).map_err(refused)
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<T, E> {
        T::parse(&number.to_string()).map_err(refused)
    }
}

/// Encodes the two parts of a refusal as two lines, in which they pass through serde.
pub(crate) fn refused<E: Error>(refusal: Refusal) -> E {
    E::custom(format_args!("{}\n{}", refusal.problem, refusal.accepted))
}

impl<'de> Deserialize<'de> for OrOff {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(OrOffVisitor)
    }
}

impl JsonSchema for OrOff {
    fn schema_name() -> Cow<'static, str> {
        "TimeOrFalse".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let time = generator.subschema_for::<Unit<Duration>>();
        json_schema!({ "anyOf": [time, { "const": false }] })
    }
}

struct OrOffVisitor;

impl Visitor<'_> for OrOffVisitor {
    type Value = OrOff;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a time such as \"40ms\", or false")
    }

    fn visit_bool<E: Error>(self, on: bool) -> Result<OrOff, E> {
        match on {
            false => Ok(OrOff(None)),
            true => Err(E::custom("`true` is not a time\naccepted: a time such as \"40ms\", or false")),
        }
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<OrOff, E> {
        quantity::duration(text).map(|span| OrOff(Some(span))).map_err(refused)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<OrOff, E> {
        self.visit_str(&number.to_string())
    }
}

/// Model of packet loss.
#[derive(Clone, Debug, PartialEq)]
pub enum Loss {
    /// Each packet with this probability.
    Bernoulli(f64),
    /// Model given by a table.
    Table(LossTable),
}

/// A model of loss with parameters.
#[derive(Clone, Debug, PartialEq, serde::Deserialize, JsonSchema)]
#[serde(tag = "model", rename_all = "kebab-case", deny_unknown_fields)]
pub enum LossTable {
    /// Two states, each with its own loss (Gilbert 1960, Elliott 1963).
    #[serde(rename_all = "kebab-case")]
    GilbertElliott {
        /// Probability of a change from good to bad after a packet.
        p_good_bad: Unit<Share>,
        /// Probability of a change from bad to good after a packet.
        p_bad_good: Unit<Share>,
        /// Loss in the good state; 0% unless given.
        #[serde(default = "no_loss")]
        loss_good: Unit<Share>,
        /// Loss in the bad state; 100% unless given.
        #[serde(default = "all_lost")]
        loss_bad: Unit<Share>,
    },
    /// As recorded.
    Recorded(RecordingTable),
    /// Exactly these packets.
    List {
        /// Numbers of the packets, counted from 0.
        packets: Vec<u64>,
    },
}

fn no_loss() -> Unit<Share> {
    Unit(Share(0.0))
}

fn all_lost() -> Unit<Share> {
    Unit(Share(1.0))
}

impl<'de> Deserialize<'de> for Loss {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(LossVisitor)
    }
}

impl JsonSchema for Loss {
    fn schema_name() -> Cow<'static, str> {
        "Loss".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let share = generator.subschema_for::<Unit<Share>>();
        let table = generator.subschema_for::<LossTable>();
        json_schema!({ "description": "A probability (\"1%\") or a table with a model.", "anyOf": [share, table] })
    }
}

struct LossVisitor;

impl<'de> Visitor<'de> for LossVisitor {
    type Value = Loss;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a percentage such as \"1%\", or a table { model = \"gilbert-elliott\", … }")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Loss, E> {
        quantity::share(text).map(Loss::Bernoulli).map_err(refused)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Loss, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Loss, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Loss, A::Error> {
        LossTable::deserialize(MapAccessDeserializer::new(map)).map(Loss::Table)
    }
}
