//! `receive-buffer`: a size, or a table with the initial and the maximum size.

use super::value::{Quantity, Unit, refused};
use anabranch_units::Bytes;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor, value::MapAccessDeserializer};
use std::borrow::Cow;
use std::fmt;

/// Capacity of a receive buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceiveBuffer {
    /// Constant.
    Fixed(Bytes),
    /// Grows with the amount read per round trip (Linux `tcp_moderate_rcvbuf`).
    Tuned {
        /// Initial size.
        initial: Bytes,
        /// Maximum size.
        max: Bytes,
    },
}

/// Receive buffer that tunes itself.
#[derive(Clone, Copy, Debug, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct TunedBuffer {
    /// Initial size; 64KiB unless given.
    #[serde(default = "initial")]
    initial: Unit<Bytes>,
    /// Maximum size; 32MiB unless given, as Linux 6.18 has it.
    #[serde(default = "most")]
    max: Unit<Bytes>,
}

/// Payload that fits into the 131072 bytes of memory of the second `tcp_rmem`.
fn initial() -> Unit<Bytes> {
    Unit(Bytes::new(64 << 10))
}

fn most() -> Unit<Bytes> {
    Unit(Bytes::new(32 << 20))
}

impl<'de> Deserialize<'de> for ReceiveBuffer {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(BufferVisitor)
    }
}

impl JsonSchema for ReceiveBuffer {
    fn schema_name() -> Cow<'static, str> {
        "ReceiveBuffer".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let size = generator.subschema_for::<Unit<Bytes>>();
        let tuned = generator.subschema_for::<TunedBuffer>();
        json_schema!({
            "description": "A size (\"256KiB\"), or a table with the initial and the maximum size.",
            "anyOf": [size, tuned],
        })
    }
}

struct BufferVisitor;

impl<'de> Visitor<'de> for BufferVisitor {
    type Value = ReceiveBuffer;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a size such as \"256KiB\", or a table { initial = \"64KiB\", max = \"32MiB\" }")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<ReceiveBuffer, E> {
        Bytes::parse(text).map(ReceiveBuffer::Fixed).map_err(refused)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<ReceiveBuffer, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<ReceiveBuffer, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<ReceiveBuffer, A::Error> {
        let TunedBuffer { initial, max } = TunedBuffer::deserialize(MapAccessDeserializer::new(map))?;
        Ok(ReceiveBuffer::Tuned { initial: initial.0, max: max.0 })
    }
}
