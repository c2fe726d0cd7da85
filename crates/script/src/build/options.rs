//! MPTCP options from their text.

use super::{Builder, Built};
use crate::compare::plain;
use crate::pattern::{Side, pattern};
use crate::statement::{Field, OptionText};
use crate::value;
use anabranch_units::{AddressId, Dsn, Key, Nonce, Token, add_addr_hmac, join_hmac};
use anabranch_wire::{
    AddAddr, DataSeq, Dss, Flags, JoinAck, JoinSyn, JoinSynAck, Map, MpCapable, MpOption, RemoveAddr, ResetReason,
    Segment, dss_checksum,
};

impl Builder<'_> {
    fn key(&self, side: Side) -> Built<Key> {
        match self.world.key(self.at, side) {
            Some(key) => Ok(key),
            None => self.unknown("the host's key"),
        }
    }

    /// A key by name; `usual` is whose goes here, which `bad` spoils.
    fn named_key(&self, arg: Option<&Field>, usual: Side) -> Built<Option<Key>> {
        let Some(arg) = arg else { return self.key(usual).map(Some) };
        match arg.value.as_deref().map(plain) {
            Some("none") => Ok(None),
            Some("host") => self.key(Side::Host).map(Some),
            Some("peer") => self.key(Side::Peer).map(Some),
            Some("bad") => Ok(Some(Key::new(self.key(usual)?.get() ^ 1))),
            Some(text) => match value::number(text).and_then(|raw| u64::try_from(raw).ok()) {
                Some(raw) => Ok(Some(Key::new(raw))),
                None => self.refuse(arg, "host, peer, bad, none or 64 bits such as 0x0011223344556677"),
            },
            None => self.refuse(arg, "host, peer, bad, none or 64 bits such as 0x0011223344556677"),
        }
    }

    fn idsn(&self, side: Side) -> Built<Dsn> {
        match self.world.idsn(self.at, side) {
            Some(idsn) => Ok(idsn),
            None => self.unknown("the host's initial data sequence number"),
        }
    }

    /// A data-level number of `side`'s stream: relative, or absolute after `abs:`.
    fn dsn(&self, arg: &Field, side: Side) -> Built<Dsn> {
        let text = arg.value.as_deref().unwrap_or_default();
        if let Some(absolute) = text.strip_prefix("abs:") {
            return match value::number(absolute).and_then(|raw| u64::try_from(raw).ok()) {
                Some(raw) => Ok(Dsn::new(raw)),
                None => self.refuse(arg, "abs: takes 64 bits"),
            };
        }
        let number = self.number(arg)?;
        Ok(Dsn::new(self.idsn(side)?.get().wrapping_add(number as u64)))
    }

    /// The data-level number called `name`, `name8` or (32 bits) `name4`.
    fn data_seq(&self, option: &OptionText, name: &str, side: Side) -> Built<Option<DataSeq>> {
        if let Some(arg) = option.any(&[name, &format!("{name}8")]) {
            return self.dsn(arg, side).map(|dsn| Some(DataSeq::Long(dsn)));
        }
        match option.arg(&format!("{name}4")) {
            Some(arg) if arg.value.as_deref().is_some_and(|text| text.starts_with("abs:")) => {
                let raw = self.dsn(arg, side)?.get();
                Ok(Some(DataSeq::Short(raw as u32)))
            }
            Some(arg) => self.dsn(arg, side).map(|dsn| Some(DataSeq::Short(dsn.low()))),
            None => Ok(None),
        }
    }

    fn checksum(&self, option: &OptionText, dsn: Dsn, ssn: u32, length: u16, bytes: usize) -> Built<Option<u16>> {
        let Some(arg) = option.arg("csum") else { return Ok(None) };
        let start = dsn.distance(self.idsn(Side::Peer)?);
        let right = || dss_checksum(dsn, ssn, length, [&pattern(Side::Peer, start, bytes)[..]]);
        match arg.value.as_deref() {
            None | Some("ok") => Ok(Some(right())),
            Some("bad") => Ok(Some(right() ^ 0x0101)),
            Some("none") => Ok(None),
            Some(_) => self.fit(arg).map(Some),
        }
    }

    pub(super) fn dss(&self, option: &OptionText, segment: &Segment, start: i64) -> Built<Dss> {
        let data_fin = option.arg("fin").is_some();
        let data_ack = self.data_seq(option, "ack", Side::Host)?;
        let fin = u16::from(data_fin);
        let own = option.arg("map").is_some();
        let dsn = match self.data_seq(option, "dsn", Side::Peer)? {
            Some(dsn) => Some(dsn),
            None if own => Some(DataSeq::Long(Dsn::new(self.idsn(Side::Peer)?.get().wrapping_add(start as u64)))),
            None if data_fin => {
                let next = self.text.field("data").map(|_| start.wrapping_add(segment.payload.len() as i64));
                let Some(next) = next else {
                    let arg = option.arg("fin").expect("DATA_FIN was just seen");
                    return self.refuse(arg, "fin says where: dss(fin, dsn=1001), or dss(map, fin) with data");
                };
                Some(DataSeq::Long(Dsn::new(self.idsn(Side::Peer)?.get().wrapping_add(next as u64))))
            }
            None => None,
        };
        let Some(dsn) = dsn else { return Ok(Dss { data_ack, map: None, data_fin }) };
        let payload = segment.payload.len();
        let lone = data_fin && !own;
        let length = match self.maybe::<u16>(option, "len")? {
            Some(length) => length,
            None if lone => 1,
            None => (payload as u16).saturating_add(fin),
        };
        let ssn = match option.arg("ssn") {
            Some(arg) => self.fit::<i32>(arg)? as u32,
            None if lone => 0,
            None => {
                let line = &self.world.lines[self.at];
                segment.seq.distance(line.peer_isn).wrapping_add(i32::from(segment.flags.has(Flags::SYN))) as u32
            }
        };
        let near = Dsn::new(self.idsn(Side::Peer)?.get().wrapping_add(start as u64));
        let bytes = usize::from(length.saturating_sub(fin));
        let checksum = self.checksum(option, dsn.near(near), ssn, length, bytes)?;
        Ok(Dss { data_ack, map: Some(Map { dsn, subflow_seq: ssn, length, checksum }), data_fin })
    }

    fn capable(&self, option: &OptionText, segment: &Segment) -> Built<MpCapable> {
        let flags = option.arg("flags").map_or("H", |arg| arg.value.as_deref().unwrap_or(""));
        if let Some(arg) = option.arg("flags").filter(|_| !flags.chars().all(|c| "ABCDEFGH-".contains(c))) {
            return self.refuse(arg, "letters A to H, for example AH, or -");
        }
        let (syn, ack) = (segment.flags.has(Flags::SYN), segment.flags.has(Flags::ACK));
        let sender = option.arg("sender");
        let receiver = option.arg("receiver");
        let sender_key = if syn && !ack && sender.is_none() { None } else { self.named_key(sender, Side::Peer)? };
        let receiver_key = if syn && receiver.is_none() { None } else { self.named_key(receiver, Side::Host)? };
        let length = match option.arg("len") {
            Some(arg) if arg.value.as_deref() == Some("none") => None,
            Some(arg) => Some(self.fit::<u16>(arg)?),
            None if !syn && !segment.payload.is_empty() => Some(segment.payload.len() as u16),
            None => None,
        };
        let data = match length {
            Some(length) => {
                let first = self.idsn(Side::Peer)? + 1;
                Some((length, self.checksum(option, first, 1, length, usize::from(length))?))
            }
            None => None,
        };
        let other_flags =
            "DEFG".chars().zip([8, 4, 2, 1]).filter(|(c, _)| flags.contains(*c)).map(|(_, bit)| bit).sum();
        Ok(MpCapable {
            version: self.maybe(option, "v")?.unwrap_or(1),
            checksum_required: flags.contains('A'),
            extensibility: flags.contains('B'),
            no_join_to_source: flags.contains('C'),
            other_flags,
            hmac_sha256: flags.contains('H'),
            sender_key,
            receiver_key,
            data,
        })
    }

    /// An HMAC, spoiled if the script says so.
    fn hmac<const N: usize>(&self, option: &OptionText, right: impl FnOnce() -> Built<[u8; N]>) -> Built<[u8; N]> {
        match option.arg("hmac") {
            None => right(),
            Some(arg) => match arg.value.as_deref() {
                None | Some("ok") => right(),
                Some("bad") => right().map(|mut bytes| {
                    bytes[N - 1] ^= 1;
                    bytes
                }),
                Some(_) => self.refuse(arg, "hmac=ok or hmac=bad"),
            },
        }
    }

    fn join_hmac(&self) -> Built<anabranch_units::Hmac> {
        let line = &self.world.lines[self.at];
        let Some(host) = line.host_nonce else { return self.unknown("the host's nonce") };
        Ok(join_hmac(self.key(Side::Peer)?, self.key(Side::Host)?, line.peer_nonce, host))
    }

    fn join(&self, option: &OptionText, segment: &Segment) -> Built<MpOption> {
        let line = &self.world.lines[self.at];
        let nonce = Nonce(self.maybe(option, "nonce")?.unwrap_or(line.peer_nonce.0));
        let address = AddressId(self.maybe(option, "id")?.unwrap_or(1));
        let backup = option.arg("backup").is_some();
        Ok(match (segment.flags.has(Flags::SYN), segment.flags.has(Flags::ACK)) {
            (true, false) => {
                let token = match option.arg("token") {
                    None => self.key(Side::Host)?.token(),
                    Some(arg) => match arg.value.as_deref().map(plain) {
                        Some("host") => self.key(Side::Host)?.token(),
                        Some("peer") => self.key(Side::Peer)?.token(),
                        Some("bad") => Token(self.key(Side::Host)?.token().0 ^ 1),
                        _ => Token(self.fit(arg)?),
                    },
                };
                MpOption::JoinSyn(JoinSyn { backup, address, token, nonce })
            }
            (true, true) => {
                let hmac = self.hmac(option, || Ok(self.join_hmac()?.first_8()))?;
                MpOption::JoinSynAck(JoinSynAck { backup, address, hmac, nonce })
            }
            _ => MpOption::JoinAck(JoinAck { hmac: self.hmac(option, || Ok(self.join_hmac()?.first_20()))? }),
        })
    }

    pub(super) fn option(&self, option: &OptionText, segment: &Segment) -> Built<MpOption> {
        let whole = Field { name: option.name.clone(), value: None, at: option.at.clone() };
        Ok(match option.name.as_str() {
            "mp_capable" => MpOption::Capable(self.capable(option, segment)?),
            "mp_join" => self.join(option, segment)?,
            "add_addr" => {
                let address = option.arg("addr").and_then(|arg| arg.value.as_deref()?.parse().ok());
                let (Some(id), Some(address)) = (self.maybe(option, "id")?.map(AddressId), address) else {
                    return self.refuse(&whole, "add_addr(id=2, addr=10.0.1.1) with port=80, hmac=bad or echo");
                };
                let port = self.maybe(option, "port")?;
                let right = || {
                    let (own, peer) = (self.key(Side::Peer)?, self.key(Side::Host)?);
                    Ok(add_addr_hmac(own, peer, id, address, port).last_8())
                };
                let hmac = if option.arg("echo").is_some() { None } else { Some(self.hmac(option, right)?) };
                MpOption::AddAddr(AddAddr { id, address, port, hmac })
            }
            "remove_addr" => {
                let ids = option.arg("ids").and_then(|arg| {
                    let ids = arg.value.as_deref()?.split('+').map(value::number);
                    ids.map(|id| id.and_then(|id| u8::try_from(id).ok()).map(AddressId)).collect()
                });
                match ids {
                    Some(ids) => MpOption::RemoveAddr(RemoveAddr { ids }),
                    None => return self.refuse(&whole, "remove_addr(2) or remove_addr(2, 3)"),
                }
            }
            "mp_prio" => MpOption::Prio { backup: option.arg("backup").is_some() },
            "mp_fail" => match option.arg("dsn") {
                Some(arg) => MpOption::Fail { dsn: self.dsn(arg, Side::Host)? },
                None => return self.refuse(&whole, "mp_fail(dsn=1), a number of the host's data"),
            },
            "mp_fastclose" => match self.named_key(option.arg("key"), Side::Host)? {
                Some(receiver_key) => MpOption::FastClose { receiver_key },
                None => return self.refuse(&whole, "mp_fastclose has a key: host, bad or 0x…"),
            },
            "mp_tcprst" => {
                let reason = ResetReason::from_code(self.maybe(option, "reason")?.unwrap_or(0));
                let transient = option.arg("transient").is_some_and(|arg| arg.value.as_deref() != Some("no"));
                MpOption::TcpReset { transient, reason }
            }
            _ => return self.refuse(&whole, "one of the options of RFC 8684"),
        })
    }
}
