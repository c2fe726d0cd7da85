//! The options of RFC 8684 (kind 30), one type each.

use anabranch_units::{AddressId, Dsn, Key, Nonce, Token};
use std::borrow::Cow;
use std::net::IpAddr;

/// A data sequence number or DATA_ACK as carried: whole, or its low half (RFC 8684 §3.3.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DataSeq {
    /// 4 bytes.
    Short(u32),
    /// 8 bytes.
    Long(Dsn),
}

impl DataSeq {
    /// The full number nearest to `near`.
    pub const fn near(self, near: Dsn) -> Dsn {
        match self {
            DataSeq::Short(low) => Dsn::from_low(low, near),
            DataSeq::Long(dsn) => dsn,
        }
    }

    const fn wire_length(self) -> u64 {
        match self {
            DataSeq::Short(_) => 4,
            DataSeq::Long(_) => 8,
        }
    }
}

/// Data sequence signal (RFC 8684 §3.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Dss {
    /// DATA_ACK: the next data sequence number expected.
    pub data_ack: Option<DataSeq>,
    /// A mapping of data sequence numbers onto this subflow.
    pub map: Option<Map>,
    /// DATA_FIN: the mapping's last sequence number closes the stream.
    pub data_fin: bool,
}

/// A data sequence mapping (RFC 8684 §3.3.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Map {
    /// Data sequence number of the first byte.
    pub dsn: DataSeq,
    /// Subflow sequence number of the first byte, relative to the initial sequence number; 0 for a lone DATA_FIN.
    pub subflow_seq: u32,
    /// Bytes covered, the DATA_FIN included; 0 makes the mapping infinite (§3.7).
    pub length: u16,
    /// DSS checksum, when negotiated.
    pub checksum: Option<u16>,
}

impl Dss {
    /// Bytes of the option, padding excluded.
    pub fn wire_length(&self) -> u64 {
        let ack = self.data_ack.map_or(0, DataSeq::wire_length);
        let map = self.map.map_or(0, |map| map.dsn.wire_length() + 6 + if map.checksum.is_some() { 2 } else { 0 });
        4 + ack + map
    }
}

/// MP_CAPABLE, version 1 (RFC 8684 §3.1). Which keys are there tells the form: SYN none, SYN/ACK the sender's, third
/// ACK both, first data both and a length.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MpCapable {
    /// Protocol version; 1 for RFC 8684.
    pub version: u8,
    /// Flag A: DSS checksums required.
    pub checksum_required: bool,
    /// Flag B: extensibility; must be 0.
    pub extensibility: bool,
    /// Flag C: open no subflows to this address and port.
    pub no_join_to_source: bool,
    /// Flags D to G (4 bits), which name no algorithm yet: to be sent as zero and ignored.
    pub other_flags: u8,
    /// Flag H: HMAC-SHA256; must be 1.
    pub hmac_sha256: bool,
    /// The sender's key.
    pub sender_key: Option<Key>,
    /// The receiver's key.
    pub receiver_key: Option<Key>,
    /// Length of the data in this and the following segments of the mapping, and its checksum.
    pub data: Option<(u16, Option<u16>)>,
}

impl MpCapable {
    /// Default offer of a SYN: version 1 with HMAC-SHA256, no keys, no other flag.
    pub const OFFER: MpCapable = MpCapable {
        version: 1,
        checksum_required: false,
        extensibility: false,
        no_join_to_source: false,
        other_flags: 0,
        hmac_sha256: true,
        sender_key: None,
        receiver_key: None,
        data: None,
    };
}

/// MP_JOIN on a SYN (RFC 8684 §3.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct JoinSyn {
    /// Flag B: use this subflow only when no other works.
    pub backup: bool,
    /// The sender's address identifier.
    pub address: AddressId,
    /// The receiver's token: which connection to join.
    pub token: Token,
    /// The sender's nonce.
    pub nonce: Nonce,
}

/// MP_JOIN on a SYN/ACK (RFC 8684 §3.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct JoinSynAck {
    /// Flag B: the sender's own wish for this subflow.
    pub backup: bool,
    /// The sender's address identifier.
    pub address: AddressId,
    /// First 8 bytes of the sender's HMAC.
    pub hmac: [u8; 8],
    /// The sender's nonce.
    pub nonce: Nonce,
}

/// MP_JOIN on the third ACK (RFC 8684 §3.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct JoinAck {
    /// First 20 bytes of the sender's HMAC.
    pub hmac: [u8; 20],
}

/// ADD_ADDR (RFC 8684 §3.4.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AddAddr {
    /// The identifier of the address.
    pub id: AddressId,
    /// The address announced.
    pub address: IpAddr,
    /// The port to connect to, if not that of the initial subflow.
    pub port: Option<u16>,
    /// Last 8 bytes of the HMAC; absent in an echo.
    pub hmac: Option<[u8; 8]>,
}

/// REMOVE_ADDR (RFC 8684 §3.4.2).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RemoveAddr {
    /// The identifiers withdrawn.
    pub ids: Vec<AddressId>,
}

/// Why a subflow is reset (RFC 8684 §3.6).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum ResetReason {
    /// 0: unspecified.
    Unspecified,
    /// 1: an MPTCP-specific error.
    MptcpError,
    /// 2: lack of resources.
    LackOfResources,
    /// 3: administratively prohibited.
    Prohibited,
    /// 4: too much outstanding data.
    TooMuchOutstanding,
    /// 5: unacceptable performance.
    UnacceptablePerformance,
    /// 6: middlebox interference.
    Middlebox,
    /// Any code that RFC 8684 does not define.
    Other(u8),
}

impl ResetReason {
    /// Name in machine-readable output, in kebab-case; a code that RFC 8684 does not define is `other(CODE)`.
    pub fn name(self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            ResetReason::Unspecified => "unspecified",
            ResetReason::MptcpError => "mptcp-error",
            ResetReason::LackOfResources => "lack-of-resources",
            ResetReason::Prohibited => "prohibited",
            ResetReason::TooMuchOutstanding => "too-much-outstanding",
            ResetReason::UnacceptablePerformance => "unacceptable-performance",
            ResetReason::Middlebox => "middlebox",
            ResetReason::Other(code) => return Cow::Owned(format!("other({code})")),
        })
    }

    /// The reason with this code.
    pub const fn from_code(code: u8) -> Self {
        match code {
            0 => ResetReason::Unspecified,
            1 => ResetReason::MptcpError,
            2 => ResetReason::LackOfResources,
            3 => ResetReason::Prohibited,
            4 => ResetReason::TooMuchOutstanding,
            5 => ResetReason::UnacceptablePerformance,
            6 => ResetReason::Middlebox,
            code => ResetReason::Other(code),
        }
    }

    /// Its code (RFC 8684 §3.6, table 1).
    pub const fn code(self) -> u8 {
        match self {
            ResetReason::Unspecified => 0,
            ResetReason::MptcpError => 1,
            ResetReason::LackOfResources => 2,
            ResetReason::Prohibited => 3,
            ResetReason::TooMuchOutstanding => 4,
            ResetReason::UnacceptablePerformance => 5,
            ResetReason::Middlebox => 6,
            ResetReason::Other(code) => code,
        }
    }
}

/// An MPTCP option other than DSS.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MpOption {
    /// MP_CAPABLE (§3.1).
    Capable(MpCapable),
    /// MP_JOIN on a SYN (§3.2).
    JoinSyn(JoinSyn),
    /// MP_JOIN on a SYN/ACK (§3.2).
    JoinSynAck(JoinSynAck),
    /// MP_JOIN on the third ACK (§3.2).
    JoinAck(JoinAck),
    /// ADD_ADDR (§3.4.1).
    AddAddr(AddAddr),
    /// REMOVE_ADDR (§3.4.2).
    RemoveAddr(RemoveAddr),
    /// MP_PRIO: the sender's wish for this subflow (§3.3.8).
    Prio {
        /// Flag B: backup.
        backup: bool,
    },
    /// MP_FAIL: checksum failure from this data sequence number on (§3.7).
    Fail {
        /// First byte of the mapping that failed.
        dsn: Dsn,
    },
    /// MP_FASTCLOSE (§3.5).
    FastClose {
        /// The key of the receiver of this option.
        receiver_key: Key,
    },
    /// MP_TCPRST (§3.6); only on RST.
    TcpReset {
        /// Flag T: trying again later may work.
        transient: bool,
        /// Reason code of the reset.
        reason: ResetReason,
    },
}

impl MpOption {
    /// Bytes of the option, padding excluded.
    pub fn wire_length(&self) -> u64 {
        match self {
            MpOption::Capable(capable) => {
                let keys = u64::from(capable.sender_key.is_some()) + u64::from(capable.receiver_key.is_some());
                let data = capable.data.map_or(0, |(_, checksum)| if checksum.is_some() { 4 } else { 2 });
                4 + 8 * keys + data
            }
            MpOption::JoinSyn(_) => 12,
            MpOption::JoinSynAck(_) => 16,
            MpOption::JoinAck(_) => 24,
            MpOption::AddAddr(add) => {
                let address = if add.address.is_ipv4() { 4 } else { 16 };
                let port = if add.port.is_some() { 2 } else { 0 };
                4 + address + port + if add.hmac.is_some() { 8 } else { 0 }
            }
            MpOption::RemoveAddr(remove) => 3 + remove.ids.len() as u64,
            MpOption::Prio { .. } => 3,
            MpOption::Fail { .. } | MpOption::FastClose { .. } => 12,
            MpOption::TcpReset { .. } => 4,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lengths that Linux 6.18 puts on the wire (`TCPOLEN_MPTCP_*` in `net/mptcp/protocol.h`).
    #[test]
    fn lengths_match_the_kernel() {
        let capable = MpCapable::OFFER;
        let key = Some(Key::new(1));
        for (option, length) in [
            (capable, 4),
            (MpCapable { sender_key: key, ..capable }, 12),
            (MpCapable { sender_key: key, receiver_key: key, ..capable }, 20),
            (MpCapable { sender_key: key, receiver_key: key, data: Some((1, None)), ..capable }, 22),
            (MpCapable { sender_key: key, receiver_key: key, data: Some((1, Some(0))), ..capable }, 24),
        ] {
            assert_eq!(MpOption::Capable(option).wire_length(), length);
        }
        let map = Map { dsn: DataSeq::Long(Dsn::new(0)), subflow_seq: 1, length: 1, checksum: None };
        let ack = Some(DataSeq::Long(Dsn::new(0)));
        assert_eq!(Dss { data_ack: ack, map: Some(map), data_fin: false }.wire_length(), 26);
        assert_eq!(Dss { data_ack: ack, map: None, data_fin: false }.wire_length(), 12);
        assert_eq!(Dss { data_ack: Some(DataSeq::Short(0)), map: None, data_fin: false }.wire_length(), 8);
    }

    #[test]
    fn each_reset_reason_has_a_name_of_its_own() {
        let names: Vec<Cow<'_, str>> = (0..8).map(|code| ResetReason::from_code(code).name()).collect();
        assert_eq!((&*names[1], &*names[2], &*names[7]), ("mptcp-error", "lack-of-resources", "other(7)"));
        assert_eq!(names.iter().collect::<std::collections::BTreeSet<_>>().len(), names.len());
    }
}
