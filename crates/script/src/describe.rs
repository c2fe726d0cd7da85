//! Segments as scripts write them: relative numbers, and names for what both ends know.

use crate::names::COUNTERS;
use crate::parse::FLAGS;
use crate::pattern::{Side, matches, pattern};
use crate::peer::World;
use crate::statement::{Field, OptionText, SegmentText, field, flag};
use anabranch_units::{Ecn, Key, Token, add_addr_hmac, join_hmac};
use anabranch_wire::{DataSeq, Dss, Flags, MpCapable, MpOption, Segment, dss_checksum};

/// The control bits by letter.
pub(crate) const LETTERS: [(char, Flags); 8] = [
    ('S', Flags::SYN),
    ('F', Flags::FIN),
    ('R', Flags::RST),
    ('P', Flags::PSH),
    ('U', Flags::URG),
    ('E', Flags::ECE),
    ('W', Flags::CWR),
    ('.', Flags::ACK),
];

/// Describes a segment that `side` sent on subflow `at`.
pub(crate) fn describe(world: &World, at: usize, side: Side, segment: &Segment) -> SegmentText {
    Describer { world, at, side }.segment(segment)
}

/// The ECN field by name.
pub(crate) const ECN: [(&str, Ecn); 4] =
    [("not-ect", Ecn::NotEct), ("ect0", Ecn::Ect0), ("ect1", Ecn::Ect1), ("ce", Ecn::Ce)];

/// The flags as text.
pub(crate) fn flags_text(segment: &Segment) -> String {
    debug_assert_eq!(FLAGS.len(), LETTERS.len() + 1);
    let flags = segment.flags;
    let mut text: String = LETTERS.iter().filter(|(_, bit)| flags.has(*bit)).map(|(letter, _)| letter).collect();
    if segment.ace() & ACCURATE != 0 {
        text.push('A');
    }
    if text.is_empty() { "-".to_owned() } else { text }
}

/// AE, the highest bit of the ACE field.
pub(crate) const ACCURATE: u8 = 0b100;

struct Describer<'a> {
    world: &'a World,
    at: usize,
    side: Side,
}

impl Describer<'_> {
    fn segment(&self, segment: &Segment) -> SegmentText {
        let line = &self.world.lines[self.at];
        let options = &segment.options;
        // Scripts count from the initial sequence number, which is known only once a SYN was seen.
        let number = |seq: anabranch_units::SubflowSeq, side| match line.isn(side) {
            Some(isn) => i64::from(seq.distance(isn)).to_string(),
            None => format!("abs:{seq}"),
        };
        let mut fields = vec![field("seq", number(segment.seq, self.side))];
        if segment.flags.has(Flags::ACK) {
            fields.push(field("ack", number(segment.ack, self.side.other())));
        }
        fields.push(field("win", segment.window));
        if segment.flags.has(Flags::URG) {
            fields.push(field("urg", segment.urgent));
        }
        if let Some((name, _)) = ECN.iter().find(|(_, field)| *field == segment.ip.ecn) {
            fields.push(field("ecn", name));
        }
        if !segment.payload.is_empty() {
            self.payload(segment, &mut fields);
        }
        let handshake = options.handshake();
        fields.extend(handshake.mss.map(|mss| field("mss", mss)));
        fields.extend(handshake.window_scale.map(|scale| field("wscale", scale)));
        fields.extend(handshake.sack_permitted.then(|| flag("sack_ok")));
        if let Some(timestamps) = options.timestamps() {
            fields.push(field("ts", format!("{}:{}", timestamps.value, timestamps.echo)));
        }
        if options.has_sack() {
            let side = self.side.other();
            let sack = options.sack();
            let texts: Vec<String> = sack
                .as_slice()
                .iter()
                .map(|block| format!("{}:{}", number(block.start, side), number(block.end, side)))
                .collect();
            fields.push(field("sack", texts.join(",")));
        }
        let counters: Vec<_> = options.byte_counters().into_iter().flatten().collect();
        let names = |first| COUNTERS.iter().find(|order| order[0].1 == first);
        if let Some(order) = counters.first().and_then(|(first, _)| names(*first)) {
            let texts = counters.iter().zip(order).map(|((_, bytes), (name, _))| format!("{name}:{bytes}"));
            fields.push(field("accecn", texts.collect::<Vec<_>>().join(",")));
        }
        for unknown in options.unknown().iter().filter(|option| counters.is_empty() || !option.counts_bytes()) {
            fields.push(field("option", format!("{},{}", unknown.kind, anabranch_units::hex(&unknown.data))));
        }
        if !options.broken().is_empty() {
            fields.push(field("broken", anabranch_units::hex(options.broken())));
        }
        let mut texts = Vec::new();
        texts.extend(options.dss().map(|dss| self.dss(&dss)));
        texts.extend(options.mptcp().iter().map(|option| self.option(segment, option)));
        SegmentText { flags: flags_text(segment), fields, options: texts }
    }

    fn payload(&self, segment: &Segment, fields: &mut Vec<Field>) {
        let length = segment.payload.len() as i64;
        let Some(isn) = self.world.lines[self.at].isn(self.side) else {
            return fields.push(field("len", length));
        };
        let seq = i64::from(segment.seq.distance(isn)) + i64::from(segment.flags.has(Flags::SYN));
        let own = segment.options.dss().and_then(|dss| dss.map).and_then(|map| {
            let data = self.world.relative(self.at, self.side, map.dsn)?;
            Some(data.wrapping_add(seq - i64::from(map.subflow_seq as i32)))
        });
        let data = own.unwrap_or_else(|| self.world.data_at(self.at, self.side, seq));
        fields.push(field("data", format!("{data}:{}", data.wrapping_add(length))));
        if !matches(self.side, data, &segment.payload) {
            fields.push(field("payload", "other"));
        }
    }

    fn data_number(&self, name: &str, side: Side, number: DataSeq) -> Field {
        let (suffix, absolute) = match number {
            DataSeq::Long(dsn) => ("8", dsn.get()),
            DataSeq::Short(low) => ("4", u64::from(low)),
        };
        let text = self.world.relative(self.at, side, number);
        field(&format!("{name}{suffix}"), text.map_or_else(|| format!("abs:{absolute:#x}"), |n| n.to_string()))
    }

    fn dss(&self, dss: &Dss) -> OptionText {
        let mut args = Vec::new();
        args.extend(dss.data_ack.map(|ack| self.data_number("ack", self.side.other(), ack)));
        if let Some(map) = dss.map {
            args.push(self.data_number("dsn", self.side, map.dsn));
            args.push(field("ssn", map.subflow_seq as i32));
            args.push(field("len", map.length));
            if let Some(checksum) = map.checksum {
                let bytes = i64::from(map.length) - i64::from(dss.data_fin);
                let right = self.checksum(map.dsn, map.subflow_seq, map.length, bytes);
                args.push(self.checksum_text(checksum, right, map.length));
            }
        }
        args.extend(dss.data_fin.then(|| flag("fin")));
        option("dss", args)
    }

    /// Computes the DSS checksum expected of a mapping of `bytes`.
    fn checksum(&self, dsn: DataSeq, subflow_seq: u32, length: u16, bytes: i64) -> Option<u16> {
        let relative = self.world.relative(self.at, self.side, dsn)?;
        let idsn = self.world.idsn(self.at, self.side)?;
        let bytes = pattern(self.side, relative, bytes.max(0) as usize);
        let dsn = anabranch_units::Dsn::new(idsn.get().wrapping_add(relative as u64));
        Some(dss_checksum(dsn, subflow_seq, length, [&bytes[..]]))
    }

    fn checksum_text(&self, checksum: u16, right: Option<u16>, length: u16) -> Field {
        match right {
            // Of an infinite mapping it covers nothing that could be checked (RFC 8684 §3.7).
            _ if length == 0 => field("csum", format!("{checksum:#x}")),
            Some(right) if right == checksum => field("csum", "ok"),
            _ => field("csum", "bad"),
        }
    }

    fn key(&self, key: Key) -> String {
        let is = |side| self.world.key(self.at, side) == Some(key);
        match () {
            () if is(Side::Host) => "host".to_owned(),
            () if is(Side::Peer) => "peer".to_owned(),
            () => format!("{:#018x}", key.get()),
        }
    }

    fn token(&self, token: Token) -> String {
        let is = |side| self.world.key(self.at, side).is_some_and(|key| key.token() == token);
        match () {
            () if is(Side::Host) => "host".to_owned(),
            () if is(Side::Peer) => "peer".to_owned(),
            () => format!("{:#010x}", token.0),
        }
    }

    fn capable(&self, capable: &MpCapable) -> Vec<Field> {
        let mut args = vec![field("v", capable.version), field("flags", capable_flags(capable))];
        args.extend(capable.sender_key.map(|key| field("sender", self.key(key))));
        args.extend(capable.receiver_key.map(|key| field("receiver", self.key(key))));
        if let Some((length, checksum)) = capable.data {
            args.push(field("len", length));
            if let Some(checksum) = checksum {
                let first = self.world.idsn(self.at, self.side).map(|idsn| DataSeq::Long(idsn + 1));
                let right = first.and_then(|first| self.checksum(first, 1, length, i64::from(length)));
                args.push(self.checksum_text(checksum, right, length));
            }
        }
        args
    }

    /// The join HMAC that `side` of this subflow should send.
    fn join_hmac(&self) -> Option<anabranch_units::Hmac> {
        let line = &self.world.lines[self.at];
        let (own, peer) = (self.world.key(self.at, self.side)?, self.world.key(self.at, self.side.other())?);
        let (host, theirs) = (line.host_nonce?, line.peer_nonce);
        let (own_nonce, peer_nonce) = if self.side == Side::Host { (host, theirs) } else { (theirs, host) };
        Some(join_hmac(own, peer, own_nonce, peer_nonce))
    }

    fn option(&self, segment: &Segment, given: &MpOption) -> OptionText {
        let verdict = |good: bool| field("hmac", if good { "ok" } else { "bad" });
        let backup = |on: bool| on.then(|| flag("backup"));
        match given {
            MpOption::Capable(capable) => option("mp_capable", self.capable(capable)),
            MpOption::JoinSyn(join) => {
                let mut args = vec![field("id", join.address.0), field("token", self.token(join.token))];
                args.push(field("nonce", format!("{:#x}", join.nonce.0)));
                args.extend(backup(join.backup));
                option("mp_join", args)
            }
            MpOption::JoinSynAck(join) => {
                let good = self.join_hmac().is_some_and(|hmac| hmac.first_8() == join.hmac);
                let mut args = vec![field("id", join.address.0), verdict(good)];
                args.push(field("nonce", format!("{:#x}", join.nonce.0)));
                args.extend(backup(join.backup));
                option("mp_join", args)
            }
            MpOption::JoinAck(join) => {
                option("mp_join", vec![verdict(self.join_hmac().is_some_and(|hmac| hmac.first_20() == join.hmac))])
            }
            MpOption::AddAddr(add) => {
                let mut args = vec![field("id", add.id.0), field("addr", add.address)];
                args.extend(add.port.map(|port| field("port", port)));
                match add.hmac {
                    None => args.push(flag("echo")),
                    Some(hmac) => {
                        let keys = self.world.key(self.at, self.side).zip(self.world.key(self.at, self.side.other()));
                        let right = keys.map(|(own, peer)| add_addr_hmac(own, peer, add.id, add.address, add.port));
                        args.push(verdict(right.is_some_and(|right| right.last_8() == hmac)));
                    }
                }
                option("add_addr", args)
            }
            MpOption::RemoveAddr(remove) => {
                let ids: Vec<String> = remove.ids.iter().map(|id| id.0.to_string()).collect();
                option("remove_addr", vec![field("ids", ids.join("+"))])
            }
            MpOption::Prio { backup: on } => option("mp_prio", backup(*on).into_iter().collect()),
            MpOption::Fail { dsn } => {
                // Names the receiver's data: the mapping that failed came from there (RFC 8684 §3.7).
                let number = self.data_number("dsn", self.side.other(), DataSeq::Long(*dsn));
                option("mp_fail", vec![Field { name: "dsn".to_owned(), ..number }])
            }
            MpOption::FastClose { receiver_key } => option("mp_fastclose", vec![field("key", self.key(*receiver_key))]),
            MpOption::TcpReset { transient, reason } => {
                debug_assert!(segment.options.has_mptcp());
                let transient = field("transient", if *transient { "yes" } else { "no" });
                option("mp_tcprst", vec![field("reason", reason.code()), transient])
            }
        }
    }
}

/// Flags A to H of MP_CAPABLE by letter.
fn capable_flags(capable: &MpCapable) -> String {
    let mut text = String::new();
    let bits = [(capable.checksum_required, 'A'), (capable.extensibility, 'B'), (capable.no_join_to_source, 'C')];
    text.extend(bits.iter().filter(|(on, _)| *on).map(|(_, letter)| letter));
    text.extend("DEFG".chars().zip([8, 4, 2, 1]).filter(|(_, bit)| capable.other_flags & bit != 0).map(|(c, _)| c));
    text.extend(capable.hmac_sha256.then_some('H'));
    if text.is_empty() { "-".to_owned() } else { text }
}

fn option(name: &str, args: Vec<Field>) -> OptionText {
    OptionText { name: name.to_owned(), args, at: 0..0 }
}

/// The same more shortly, for people: 8-byte numbers are the rule, and a mapping that is the segment's own is `map`.
pub(crate) fn shorten(text: &SegmentText) -> SegmentText {
    let mut short = text.clone();
    let seq = text.field("seq").and_then(|field| field.value.clone());
    let data = text.field("data").and_then(|field| field.value.as_deref()?.split_once(':'));
    let (start, length) = data.map_or((None, 0), |(start, end)| {
        let length =
            start.parse::<i64>().ok().zip(end.parse::<i64>().ok()).map_or(0, |(start, end)| end.wrapping_sub(start));
        (Some(start.to_owned()), length)
    });
    for option in short.options.iter_mut().filter(|option| option.name == "dss") {
        let value = |option: &OptionText, name: &str| option.arg(name).and_then(|arg| arg.value.clone());
        let own = start.is_some()
            && value(option, "dsn8") == start
            && value(option, "ssn") == seq
            && value(option, "len") == Some(length.wrapping_add(i64::from(option.arg("fin").is_some())).to_string());
        if own {
            option.args.retain(|arg| !["ssn", "len"].contains(&arg.name.as_str()));
        }
        for arg in &mut option.args {
            match arg.name.as_str() {
                "dsn8" if own => *arg = flag("map"),
                "dsn8" => arg.name = "dsn".to_owned(),
                "ack8" => arg.name = "ack".to_owned(),
                _ => {}
            }
        }
    }
    short.fields.retain(|field| field.name != "ecn" || field.value.as_deref() != Some(ECN[0].0));
    for field in &mut short.fields {
        // As options are written: `option(30, 0011)`.
        if ["option", "broken"].contains(&field.name.as_str()) {
            *field = flag(&format!("{}({})", field.name, field.value.as_deref().unwrap_or_default()));
        }
    }
    short
}
