//! `[host]`, `[client]` and `[server]`: a profile, policies, and settings of the engine.
//!
//! The keys that the engine describes itself (`anabranch_engine::settings`) are kept as they are written, and checked
//! against their descriptions when the file is resolved.

use super::buffer::ReceiveBuffer;
use super::policy::Policy;
use super::value::At;
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeSeed, Deserializer, IntoDeserializer, MapAccess, Visitor};
use std::fmt;

/// A host: its profile, single settings, buffers and policies.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(remote = "Self", rename_all = "kebab-case", deny_unknown_fields)]
pub struct HostTable {
    /// The stack it resembles: anabranch (our own, the default), linux, linux-4.1, linux-3.14, newreno, mptcp-ns3 or
    /// rfc; see docs/stacks.md.
    pub profile: Option<At<String>>,
    /// Scheduler: chooses a subflow for each segment; the profile's unless given.
    pub scheduler: Option<At<Policy>>,
    /// Congestion control: limits the data in flight; the profile's unless given.
    pub congestion: Option<At<Policy>>,
    /// Window policy: divides the peer's receive window among subflows; the profile's unless given.
    pub window: Option<At<Policy>>,
    /// ACK path policy: chooses the path of each ACK; the profile's unless given.
    pub ack_path: Option<At<Policy>>,
    /// Reinjection policy: repeats bytes in flight on another subflow; the profile's unless given.
    pub reinjection: Option<At<Policy>>,
    /// First-path policy: chooses the path on which a connection begins. Only the client's has an effect; the profile's
    /// unless given.
    pub first_path: Option<At<Policy>>,
    /// Bytes received and not yet read, per connection: a fixed size, or a table for a buffer that tunes itself.
    pub receive_buffer: Option<At<ReceiveBuffer>>,
    /// Number of the server's addresses; the client has one per path.
    pub addresses: Option<At<usize>>,
    /// All other keys, in the order of the file.
    #[serde(skip)]
    pub others: Vec<Assignment>,
}

/// A key of a host with its value, as written.
#[derive(Clone, Debug)]
pub struct Assignment {
    /// The key.
    pub key: At<String>,
    /// The value.
    pub value: At<toml::Value>,
}

impl HostTable {
    /// Keys of the fields.
    pub(crate) const KEYS: &[&str] = &[
        "profile",
        "scheduler",
        "congestion",
        "window",
        "ack-path",
        "reinjection",
        "first-path",
        "receive-buffer",
        "addresses",
    ];
}

impl<'de> Deserialize<'de> for HostTable {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(HostVisitor)
    }
}

struct HostVisitor;

impl<'de> Visitor<'de> for HostVisitor {
    type Value = HostTable;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("struct HostTable")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<HostTable, A::Error> {
        let mut others = Vec::new();
        let table = HostTable::deserialize(MapAccessDeserializer::new(Fields { map, others: &mut others }))?;
        Ok(HostTable { others, ..table })
    }
}

/// The entries of a map that are fields of [`HostTable`]; sets the others aside.
struct Fields<'a, A> {
    map: A,
    others: &'a mut Vec<Assignment>,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Fields<'_, A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, A::Error> {
        while let Some(key) = self.map.next_key::<At<String>>()? {
            if HostTable::KEYS.contains(&key.value.as_str()) {
                return seed.deserialize(key.value.into_deserializer()).map(Some);
            }
            let value = self.map.next_value()?;
            self.others.push(Assignment { key, value });
        }
        Ok(None)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        self.map.next_value_seed(seed)
    }
}
