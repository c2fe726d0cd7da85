//! Middleboxes as a scenario writes them: `{ kind = "split", size = "536B" }`.

use super::{DirectionName, Unit};
use anabranch_units::{Bytes, Duration};
use schemars::JsonSchema;
use serde::Deserialize;

/// A middlebox. Which keys there are depends on `kind`; each kind has `end` (client, unless given), and where it matters
/// `direction` (both, unless given).
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum MiddleboxTable {
    /// Removes MPTCP options.
    #[serde(rename_all = "kebab-case")]
    Strip {
        /// From which segments; all unless given.
        #[serde(default)]
        from: StrippedName,
        /// Which of them; all MPTCP options unless given.
        #[serde(default)]
        options: StrippedOptionsName,
        /// It begins after so many segments of a flow and direction; 0 unless given.
        #[serde(default)]
        after: u32,
        /// The direction of the segments.
        direction: Option<DirectionName>,
        /// Where it stands.
        #[serde(default)]
        end: EndName,
    },
    /// Gives each flow random initial sequence numbers of its own.
    RewriteSequence {
        /// Where it stands.
        #[serde(default)]
        end: EndName,
    },
    /// Cuts segments into pieces.
    Split {
        /// Most payload of a piece; 536B unless given.
        size: Option<Unit<Bytes>>,
        /// Which pieces keep the MPTCP options; each unless given.
        #[serde(default)]
        options: SplitName,
        /// The direction of the segments.
        direction: Option<DirectionName>,
        /// Where it stands.
        #[serde(default)]
        end: EndName,
    },
    /// Merges segments that continue each other; the first one's options stay.
    Coalesce {
        /// Most payload of a merged segment; 2920B unless given.
        size: Option<Unit<Bytes>>,
        /// How long a segment is held for the next; 1ms unless given.
        wait: Option<Unit<Duration>>,
        /// The direction of the segments.
        direction: Option<DirectionName>,
        /// Where it stands.
        #[serde(default)]
        end: EndName,
    },
    /// Replaces bytes of each flow's stream once.
    AlterPayload {
        /// Where in the subflow's stream; 100000 unless given.
        offset: Option<u32>,
        /// How many bytes are replaced; 4 unless given.
        remove: Option<u16>,
        /// By how many; 4 unless given.
        insert: Option<u16>,
        /// Which way the data travel.
        direction: Option<DirectionName>,
        /// Where it stands.
        #[serde(default)]
        end: EndName,
    },
    /// Acknowledges data before their receiver has them.
    EarlyAck {
        /// How long its acknowledgment takes; 1ms unless given.
        delay: Option<Unit<Duration>>,
        /// Of the segments it has acknowledged, each that many-th is lost; 0, for none, unless given.
        #[serde(default)]
        lose: u32,
        /// Which way the data travel.
        direction: Option<DirectionName>,
        /// Where it stands.
        #[serde(default)]
        end: EndName,
    },
    /// Rewrites the client's address and ports.
    Nat {
        /// When all mappings are lost; never unless given.
        rebind: Option<Unit<Duration>>,
        /// What becomes of packets to a port without a mapping; dropped unless given.
        #[serde(default)]
        unmapped: UnmappedName,
        /// Where it stands.
        #[serde(default)]
        end: EndName,
    },
    /// Swallows large packets without a word.
    MtuBlackhole {
        /// The largest IP packet that passes; 1280B unless given.
        size: Option<Unit<Bytes>>,
        /// From when on; from the beginning unless given.
        from: Option<Unit<Duration>>,
        /// Which way the packets travel.
        direction: Option<DirectionName>,
        /// Where it stands.
        #[serde(default)]
        end: EndName,
    },
    /// Drops SYNs that carry an MPTCP option.
    DropSyn {
        /// Which one; mp-capable unless given.
        #[serde(default)]
        option: SynOptionName,
        /// Where it stands.
        #[serde(default)]
        end: EndName,
    },
    /// Does something to single segments, named by their numbers: counted from 0 in each direction.
    Faults {
        /// Lost.
        #[serde(default)]
        drop: Vec<u64>,
        /// Arrive twice.
        #[serde(default)]
        duplicate: Vec<u64>,
        /// Come after the next one.
        #[serde(default)]
        swap: Vec<u64>,
        /// Come after `wait`.
        #[serde(default)]
        delay: Vec<u64>,
        /// The time that a delayed segment is held, and a swapped one that none follows; 3s unless given.
        wait: Option<Unit<Duration>>,
        /// The direction of the segments.
        direction: Option<DirectionName>,
        /// Where it stands.
        #[serde(default)]
        end: EndName,
    },
}

/// Where a middlebox stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EndName {
    /// Between the client and the path's first link.
    #[default]
    Client,
    /// Between the path's last link and the server.
    Server,
}

/// The segments from which options are removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StrippedName {
    /// SYN.
    Syn,
    /// SYN/ACK.
    SynAck,
    /// The third of the handshake.
    ThirdAck,
    /// All.
    #[default]
    All,
    /// All but those of the handshake.
    AfterHandshake,
}

/// The options that are removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StrippedOptionsName {
    /// All of MPTCP.
    #[default]
    Mptcp,
    /// DSS.
    Dss,
    /// ADD_ADDR.
    AddAddr,
    /// All but MP_CAPABLE, MP_JOIN and DSS.
    Control,
}

/// The pieces of a cut segment that keep its options.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SplitName {
    /// Each.
    #[default]
    Copied,
    /// The first.
    First,
}

/// What becomes of packets without a mapping.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum UnmappedName {
    /// Dropped in silence.
    #[default]
    Dropped,
    /// Answered with a RST.
    Reset,
}

/// The option whose SYNs are dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SynOptionName {
    /// MP_CAPABLE.
    #[default]
    MpCapable,
    /// MP_JOIN.
    MpJoin,
}
