//! RFC 8684 options (kind 30), byte by byte. Reserved bits are sent as zero and ignored when received.

use super::writer::Writer;
use crate::error::EmitError;
use crate::{AddAddr, DataSeq, Dss, JoinAck, JoinSyn, JoinSynAck, Map, MpCapable, MpOption, RemoveAddr, ResetReason};
use anabranch_units::{AddressId, Dsn, Key, Nonce, Token};
use std::net::IpAddr;

/// The TCP option kind of MPTCP.
pub(crate) const KIND: u8 = 30;

/// An option as read.
pub(super) enum Read {
    Dss(Dss),
    Other(MpOption),
}

/// Reads one option, from its kind byte to its end. `None` for an unknown subtype, or a length that does not go with
/// what the option says about itself.
#[inline]
pub(super) fn read(option: &[u8]) -> Option<Read> {
    let &[_, _, third, ..] = option else { return None };
    if third >> 4 == DSS { read_dss(option).map(Read::Dss) } else { read_other(option, third).map(Read::Other) }
}

#[inline]
fn read_dss(option: &[u8]) -> Option<Dss> {
    let &[_, _, _, flags, ref fields @ ..] = option else { return None };
    let mut fields = Fields(fields);
    let mut dss = Dss { data_ack: None, map: None, data_fin: flags & DATA_FIN != 0 };
    if flags & ACK_PRESENT != 0 {
        dss.data_ack = Some(fields.data_seq(flags & ACK_LONG != 0)?);
    }
    if flags & MAP_PRESENT != 0 {
        let dsn = fields.data_seq(flags & DSN_LONG != 0)?;
        let (subflow_seq, length) = (u32::from_be_bytes(fields.take()?), u16::from_be_bytes(fields.take()?));
        // Only the length tells whether a checksum is present.
        let checksum = fields.take().map(u16::from_be_bytes);
        dss.map = Some(Map { dsn, subflow_seq, length, checksum });
    }
    fields.0.is_empty().then_some(dss)
}

fn read_other(option: &[u8], third: u8) -> Option<MpOption> {
    let (subtype, low) = (third >> 4, third & 0x0f);
    // The fields behind the subtype byte.
    let mut fields = Fields(&option[3..]);
    let read = match (subtype, option.len()) {
        (CAPABLE, 4 | 12 | 20 | 22 | 24) => {
            let [flags] = fields.take()?;
            MpOption::Capable(MpCapable {
                version: low,
                checksum_required: flags & CHECKSUM_REQUIRED != 0,
                extensibility: flags & EXTENSIBILITY != 0,
                no_join_to_source: flags & NO_JOIN_TO_SOURCE != 0,
                other_flags: (flags & OTHER_FLAGS) >> 1,
                hmac_sha256: flags & HMAC_SHA256 != 0,
                sender_key: fields.key(),
                receiver_key: fields.key(),
                data: fields.take().map(|length| (u16::from_be_bytes(length), fields.take().map(u16::from_be_bytes))),
            })
        }
        (JOIN, 12) => MpOption::JoinSyn(JoinSyn {
            backup: low & BACKUP != 0,
            address: fields.address_id()?,
            token: Token(u32::from_be_bytes(fields.take()?)),
            nonce: Nonce(u32::from_be_bytes(fields.take()?)),
        }),
        (JOIN, 16) => MpOption::JoinSynAck(JoinSynAck {
            backup: low & BACKUP != 0,
            address: fields.address_id()?,
            hmac: fields.take()?,
            nonce: Nonce(u32::from_be_bytes(fields.take()?)),
        }),
        (JOIN, 24) => {
            let [_reserved] = fields.take()?;
            MpOption::JoinAck(JoinAck { hmac: fields.take()? })
        }
        (ADD_ADDR, length) => {
            let echo = low & ECHO != 0;
            let (is_v4, has_port) = match length - if echo { 0 } else { HMAC.min(length) } {
                8 => (true, false),
                10 => (true, true),
                20 => (false, false),
                22 => (false, true),
                _ => return None,
            };
            MpOption::AddAddr(AddAddr {
                id: fields.address_id()?,
                address: if is_v4 { IpAddr::from(fields.take::<4>()?) } else { IpAddr::from(fields.take::<16>()?) },
                port: if has_port { Some(u16::from_be_bytes(fields.take()?)) } else { None },
                hmac: if echo { None } else { Some(fields.take()?) },
            })
        }
        (REMOVE_ADDR, 4..) => {
            let ids = std::mem::take(&mut fields.0).iter().copied().map(AddressId).collect();
            MpOption::RemoveAddr(RemoveAddr { ids })
        }
        (PRIO, 3) => MpOption::Prio { backup: low & BACKUP != 0 },
        (FAIL, 12) => {
            let [_reserved] = fields.take()?;
            MpOption::Fail { dsn: Dsn::new(u64::from_be_bytes(fields.take()?)) }
        }
        (FAST_CLOSE, 12) => {
            let [_reserved] = fields.take()?;
            MpOption::FastClose { receiver_key: fields.key()? }
        }
        (TCP_RESET, 4) => {
            let [code] = fields.take()?;
            MpOption::TcpReset { transient: low & TRANSIENT != 0, reason: ResetReason::from_code(code) }
        }
        _ => return None,
    };
    fields.0.is_empty().then_some(read)
}

/// Unread rest of an option.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    #[inline]
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (field, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*field)
    }

    #[inline]
    fn data_seq(&mut self, long: bool) -> Option<DataSeq> {
        if long {
            Some(DataSeq::Long(Dsn::new(u64::from_be_bytes(self.take()?))))
        } else {
            Some(DataSeq::Short(u32::from_be_bytes(self.take()?)))
        }
    }

    fn key(&mut self) -> Option<Key> {
        Some(Key::new(u64::from_be_bytes(self.take()?)))
    }

    fn address_id(&mut self) -> Option<AddressId> {
        self.take().map(|[id]| AddressId(id))
    }
}

/// Writes a DSS, padding excluded.
#[inline]
pub(super) fn write_dss(dss: &Dss, out: &mut Writer) {
    let mut flags = if dss.data_fin { DATA_FIN } else { 0 };
    flags |= match dss.data_ack {
        Some(DataSeq::Long(_)) => ACK_PRESENT | ACK_LONG,
        Some(DataSeq::Short(_)) => ACK_PRESENT,
        None => 0,
    };
    flags |= match dss.map {
        Some(Map { dsn: DataSeq::Long(_), .. }) => MAP_PRESENT | DSN_LONG,
        Some(Map { dsn: DataSeq::Short(_), .. }) => MAP_PRESENT,
        None => 0,
    };
    out.put(&[KIND, dss.wire_length() as u8, DSS << 4, flags]);
    let data_seq = |seq: DataSeq, out: &mut Writer| match seq {
        DataSeq::Short(low) => out.put(&low.to_be_bytes()),
        DataSeq::Long(dsn) => out.put(&dsn.get().to_be_bytes()),
    };
    if let Some(ack) = dss.data_ack {
        data_seq(ack, out);
    }
    if let Some(map) = &dss.map {
        data_seq(map.dsn, out);
        out.put(&map.subflow_seq.to_be_bytes());
        out.put(&map.length.to_be_bytes());
        if let Some(checksum) = map.checksum {
            out.put(&checksum.to_be_bytes());
        }
    }
}

/// Writes an option other than DSS, padding excluded.
pub(super) fn write(option: &MpOption, out: &mut Writer) -> Result<(), EmitError> {
    // Cannot exceed a byte: the caller has checked that all options fit 40.
    let length = option.wire_length() as u8;
    let mut head = |subtype: u8, low: u8| out.put(&[KIND, length, subtype << 4 | low]);
    let backup = |backup: bool| if backup { BACKUP } else { 0 };
    match option {
        MpOption::Capable(capable) => {
            if capable.version > 0x0f {
                return Err(EmitError::FieldTooWide { field: "the MPTCP version", bits: 4 });
            }
            if capable.other_flags > 0x0f {
                return Err(EmitError::FieldTooWide { field: "flags D to G of MP_CAPABLE", bits: 4 });
            }
            let keys = (capable.sender_key.is_some(), capable.receiver_key.is_some());
            if keys == (false, true) || (capable.data.is_some() && keys != (true, true)) {
                return Err(EmitError::NoLayout("MP_CAPABLE has its keys in order, and data after both"));
            }
            head(CAPABLE, capable.version);
            let mut flags = capable.other_flags << 1;
            for (set, flag) in [
                (capable.checksum_required, CHECKSUM_REQUIRED),
                (capable.extensibility, EXTENSIBILITY),
                (capable.no_join_to_source, NO_JOIN_TO_SOURCE),
                (capable.hmac_sha256, HMAC_SHA256),
            ] {
                flags |= if set { flag } else { 0 };
            }
            out.put_u8(flags);
            for key in [capable.sender_key, capable.receiver_key].into_iter().flatten() {
                out.put(&key.get().to_be_bytes());
            }
            if let Some((length, checksum)) = capable.data {
                out.put(&length.to_be_bytes());
                if let Some(checksum) = checksum {
                    out.put(&checksum.to_be_bytes());
                }
            }
        }
        MpOption::JoinSyn(join) => {
            head(JOIN, backup(join.backup));
            out.put_u8(join.address.0);
            out.put(&join.token.0.to_be_bytes());
            out.put(&join.nonce.0.to_be_bytes());
        }
        MpOption::JoinSynAck(join) => {
            head(JOIN, backup(join.backup));
            out.put_u8(join.address.0);
            out.put(&join.hmac);
            out.put(&join.nonce.0.to_be_bytes());
        }
        MpOption::JoinAck(join) => {
            head(JOIN, 0);
            out.put_u8(0);
            out.put(&join.hmac);
        }
        MpOption::AddAddr(add) => {
            head(ADD_ADDR, if add.hmac.is_none() { ECHO } else { 0 });
            out.put_u8(add.id.0);
            match add.address {
                IpAddr::V4(v4) => out.put(&v4.octets()),
                IpAddr::V6(v6) => out.put(&v6.octets()),
            }
            if let Some(port) = add.port {
                out.put(&port.to_be_bytes());
            }
            if let Some(hmac) = add.hmac {
                out.put(&hmac);
            }
        }
        MpOption::RemoveAddr(remove) => {
            if remove.ids.is_empty() {
                return Err(EmitError::NoLayout("REMOVE_ADDR names at least one address"));
            }
            head(REMOVE_ADDR, 0);
            remove.ids.iter().for_each(|id| out.put_u8(id.0));
        }
        MpOption::Prio { backup: wish } => head(PRIO, backup(*wish)),
        MpOption::Fail { dsn } => {
            head(FAIL, 0);
            out.put_u8(0);
            out.put(&dsn.get().to_be_bytes());
        }
        MpOption::FastClose { receiver_key } => {
            head(FAST_CLOSE, 0);
            out.put_u8(0);
            out.put(&receiver_key.get().to_be_bytes());
        }
        MpOption::TcpReset { transient, reason } => {
            head(TCP_RESET, if *transient { TRANSIENT } else { 0 });
            out.put_u8(reason.code());
        }
    }
    Ok(())
}

/// Option subtypes (RFC 8684 §7.2, table 3).
const CAPABLE: u8 = 0;
const JOIN: u8 = 1;
const DSS: u8 = 2;
const ADD_ADDR: u8 = 3;
const REMOVE_ADDR: u8 = 4;
const PRIO: u8 = 5;
const FAIL: u8 = 6;
const FAST_CLOSE: u8 = 7;
const TCP_RESET: u8 = 8;

/// Flags of MP_CAPABLE (RFC 8684 §3.1, figure 4): A, B, C, D to G, H.
const CHECKSUM_REQUIRED: u8 = 0x80;
const EXTENSIBILITY: u8 = 0x40;
const NO_JOIN_TO_SOURCE: u8 = 0x20;
const OTHER_FLAGS: u8 = 0x1e;
const HMAC_SHA256: u8 = 0x01;

/// Flags of DSS (RFC 8684 §3.3, figure 9): A, a, M, m, F.
const ACK_PRESENT: u8 = 0x01;
const ACK_LONG: u8 = 0x02;
const MAP_PRESENT: u8 = 0x04;
const DSN_LONG: u8 = 0x08;
const DATA_FIN: u8 = 0x10;

/// Flag B of MP_JOIN and MP_PRIO.
const BACKUP: u8 = 0x1;
/// Flag E of ADD_ADDR.
const ECHO: u8 = 0x1;
/// Flag T of MP_TCPRST.
const TRANSIENT: u8 = 0x1;
/// Bytes of the HMAC in ADD_ADDR.
const HMAC: usize = 8;
