//! Middleboxes as a scenario writes them: `{ kind = "split", size = "536B" }`.

use super::{DirectionName, Unit};
use anabranch_units::{Bytes, Duration};
use schemars::JsonSchema;
use serde::Deserialize;

/// A middlebox. Its keys depend on `kind`. Each kind has `end` (client unless given), and some have `direction` (both
/// unless given).
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum MiddleboxTable {
    /// Removes MPTCP options.
    #[serde(rename_all = "kebab-case")]
    Strip {
        /// Segments that lose options; all unless given.
        #[serde(default)]
        from: StrippedName,
        /// Options that are removed; all MPTCP options unless given.
        #[serde(default)]
        options: StrippedOptionsName,
        /// Number of segments of each flow and direction that pass unchanged first; 0 unless given.
        #[serde(default)]
        after: u32,
        /// The direction of the segments.
        direction: Option<DirectionName>,
        /// Position on the path.
        #[serde(default)]
        end: EndName,
    },
    /// Gives each flow random initial sequence numbers of its own.
    RewriteSequence {
        /// Position on the path.
        #[serde(default)]
        end: EndName,
    },
    /// Cuts segments into pieces.
    Split {
        /// Maximum payload of a piece; 536B unless given.
        size: Option<Unit<Bytes>>,
        /// Pieces that keep the MPTCP options; every piece unless given.
        #[serde(default)]
        options: SplitName,
        /// The direction of the segments.
        direction: Option<DirectionName>,
        /// Position on the path.
        #[serde(default)]
        end: EndName,
    },
    /// Merges segments that continue each other; the first one's options stay.
    Coalesce {
        /// Maximum payload of a merged segment; 2920B unless given.
        size: Option<Unit<Bytes>>,
        /// Time that a segment is held for the next one; 1ms unless given.
        wait: Option<Unit<Duration>>,
        /// The direction of the segments.
        direction: Option<DirectionName>,
        /// Position on the path.
        #[serde(default)]
        end: EndName,
    },
    /// Replaces bytes of each flow's stream once.
    AlterPayload {
        /// Offset in the subflow's stream in bytes; 100000 unless given.
        offset: Option<u32>,
        /// Number of bytes replaced; 4 unless given.
        remove: Option<u16>,
        /// Number of bytes put in their place; 4 unless given.
        insert: Option<u16>,
        /// Direction of the data.
        direction: Option<DirectionName>,
        /// Position on the path.
        #[serde(default)]
        end: EndName,
    },
    /// Acknowledges data before the receiver has them.
    EarlyAck {
        /// Delay of the early acknowledgment; 1ms unless given.
        delay: Option<Unit<Duration>>,
        /// Loses every N-th of the segments that it has acknowledged; 0 (none) unless given.
        #[serde(default)]
        lose: u32,
        /// Direction of the data.
        direction: Option<DirectionName>,
        /// Position on the path.
        #[serde(default)]
        end: EndName,
    },
    /// Rewrites the client's address and ports.
    Nat {
        /// Time at which all mappings are lost; never unless given.
        rebind: Option<Unit<Duration>>,
        /// Treatment of packets to a port without a mapping; dropped unless given.
        #[serde(default)]
        unmapped: UnmappedName,
        /// Position on the path.
        #[serde(default)]
        end: EndName,
    },
    /// Drops large packets without an ICMP error.
    MtuBlackhole {
        /// Largest IP packet that passes; 1280B unless given.
        size: Option<Unit<Bytes>>,
        /// Time from which packets are dropped; the beginning unless given.
        from: Option<Unit<Duration>>,
        /// Direction of the packets.
        direction: Option<DirectionName>,
        /// Position on the path.
        #[serde(default)]
        end: EndName,
    },
    /// Drops SYNs that carry an MPTCP option.
    DropSyn {
        /// The option; mp-capable unless given.
        #[serde(default)]
        option: SynOptionName,
        /// Position on the path.
        #[serde(default)]
        end: EndName,
    },
    /// Treats single segments, given by their numbers: counted from 0 in each direction.
    Faults {
        /// Segments that are lost.
        #[serde(default)]
        drop: Vec<u64>,
        /// Segments that arrive twice.
        #[serde(default)]
        duplicate: Vec<u64>,
        /// Segments that arrive after the next one.
        #[serde(default)]
        swap: Vec<u64>,
        /// Segments that are delayed by `wait`.
        #[serde(default)]
        delay: Vec<u64>,
        /// Delay of a segment in `delay`, and of one in `swap` that no other follows; 3s unless given.
        wait: Option<Unit<Duration>>,
        /// The direction of the segments.
        direction: Option<DirectionName>,
        /// Position on the path.
        #[serde(default)]
        end: EndName,
    },
}

/// Position of a middlebox.
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
    /// Third segment of the handshake.
    ThirdAck,
    /// All segments.
    #[default]
    All,
    /// All segments but those of the handshake.
    AfterHandshake,
}

/// The options that are removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StrippedOptionsName {
    /// All MPTCP options.
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
    /// Every piece.
    #[default]
    Copied,
    /// The first piece.
    First,
}

/// Treatment of packets without a mapping.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum UnmappedName {
    /// Dropped silently.
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
