//! Faults of the set-up that packets show: options that are missing, joins that lead to nothing, flags.

use super::answer::{Fault, FaultKind};
use super::log::{FlowLog, Passed};
use super::picture::{FlowPicture, NEVER, Packet};
use super::stream::Arrived;
use super::verdict::reaction;
use anabranch_inspect::{ConnectionReport, FallbackReport, Offer};
use anabranch_wire::Flags;

/// The flows of a connection, with the names of their paths.
pub(crate) struct Group<'a> {
    pub flows: Vec<(&'a FlowLog, bool, usize)>,
    pub pictures: &'a [FlowPicture],
    pub names: &'a [String],
    pub multipath: bool,
    /// Names of the interfaces of each file.
    pub interfaces: &'a [Vec<Option<String>>],
    /// Findings of the inspector, for MPTCP.
    pub report: Option<&'a ConnectionReport>,
}

/// Round trip that a path may have of which nothing is known \[ns\].
const LONG_TRIP: u64 = 100_000_000;

/// Remedy for a server without MPTCP.
const MPTCPIZE: &str = "Start the server with `mptcpize run`, or have it open IPPROTO_MPTCP sockets; check its \
                        sysctl net.mptcp.enabled.";

/// Remedy for a box on the way.
const BYPASS: &str = "Use another port or path, or a tunnel around the box that removes the option.";

impl Group<'_> {
    /// All faults, the gravest first.
    pub(crate) fn faults(&self) -> Vec<Fault> {
        let mut faults = if self.multipath { self.of_mptcp() } else { self.of_plain().into_iter().collect() };
        faults.extend(self.black_hole());
        faults.extend(self.wrong_route());
        faults
    }

    /// Plain TCP: tells who gave MPTCP up, if it was asked for.
    fn of_plain(&self) -> Option<Fault> {
        let (flow, ..) = self.flows.first()?;
        if let Some(removed) = self.removed_in_handshake() {
            return Some(removed);
        }
        let fault = |kind, text: &str, remedy: Option<&str>| Fault {
            kind,
            path: None,
            text: text.to_owned(),
            remedy: remedy.map(str::to_owned),
        };
        let both = flow.offers.len() > 1;
        Some(match (flow.syn, flow.syn_ack) {
            (Offer::Capable(_), _) if flow.bare_syns > 0 => fault(
                FaultKind::CapableUnanswered,
                "SYNs with MP_CAPABLE were not answered, and one without was: something on the way drops them",
                Some(BYPASS),
            ),
            (Offer::Capable(_), Offer::Nothing) if both => {
                fault(FaultKind::PlainServer, "the server answered without MP_CAPABLE", Some(MPTCPIZE))
            }
            (Offer::Capable(_), Offer::Nothing) => fault(
                FaultKind::PlainServer,
                "the server answered without MP_CAPABLE (or a box on the way removed it: a capture at the server \
                 would tell)",
                Some(MPTCPIZE),
            ),
            (Offer::Nothing, _) => fault(
                FaultKind::PlainClient,
                "the client asked for plain TCP (or a box on the way removed MP_CAPABLE from its SYN)",
                Some("Start the client with `mptcpize run`, or have it open IPPROTO_MPTCP sockets."),
            ),
            _ => return None,
        })
    }

    /// MP_CAPABLE that was seen to leave and not to arrive.
    fn removed_in_handshake(&self) -> Option<Fault> {
        let (flow, ..) = self.flows.first()?;
        let at_some = |step: usize, wanted: fn(&Offer) -> bool| flow.offers.values().any(|it| wanted(&it[step]));
        let removed = |step: &usize| {
            at_some(*step, |it| matches!(it, Offer::Capable(_))) && at_some(*step, |it| *it == Offer::Nothing)
        };
        let step = (0..2).find(removed)?;
        let name = ["SYN", "SYN/ACK"][step];
        Some(Fault {
            kind: FaultKind::OptionRemoved,
            path: None,
            text: format!("MP_CAPABLE was removed from the {name} on its way, by a box"),
            remedy: Some(BYPASS.to_owned()),
        })
    }

    fn of_mptcp(&self) -> Vec<Fault> {
        let mut faults = Vec::new();
        let fallback = || self.report.and_then(|report| report.fallback.as_ref()).map(Self::fell_back);
        let removed = self.removed_in_handshake().or_else(|| self.removed_later());
        if let Some(fault) = removed.or_else(fallback).or_else(|| self.silent_side()) {
            return vec![fault];
        }
        for path in 0..self.names.len() {
            faults.extend(self.of_path(path));
        }
        if self.flows.iter().all(|(flow, ..)| !matches!(flow.syn, Offer::JoinSyn(_))) && self.names.len() == 1 {
            faults.extend(self.no_join());
        }
        faults
    }

    /// Options that left one end and did not arrive at the other, after the handshake.
    fn removed_later(&self) -> Option<Fault> {
        let (flow, ..) = self.flows.first()?;
        let at_some = |wanted: &dyn Fn(&Passed) -> bool| flow.passed.values().any(wanted);
        let removed = |side: usize| {
            at_some(&|it| it.with_option[side] > 0) && at_some(&|it| it.with_option[side] == 0 && it.bare[side] > 0)
        };
        let third = |wanted: fn(&Offer) -> bool| flow.offers.values().any(|it| wanted(&it[2]));
        let removed_third = third(|it| matches!(it, Offer::Capable(_))) && third(|it| *it == Offer::Nothing);
        let step = match () {
            () if removed_third => "from the third ACK",
            () if removed(0) || removed(1) => "from packets after the handshake",
            () => return None,
        };
        Some(Fault {
            kind: FaultKind::OptionRemoved,
            path: None,
            text: format!("a box on the way removed MPTCP's options {step}, which leaves plain TCP"),
            remedy: Some(BYPASS.to_owned()),
        })
    }

    /// The same seen from one end: one side goes on with MPTCP, and of the other no packet has an option any more.
    fn silent_side(&self) -> Option<Fault> {
        let (flow, ..) = self.flows.first()?;
        let silent = |it: &Passed, side: usize| {
            it.with_option[side] <= 1 && it.bare[side] >= MANY && it.with_option[1 - side] >= MANY
        };
        (0..2).any(|side| flow.passed.values().any(|it| silent(it, side))).then(|| Fault {
            kind: FaultKind::FellBack,
            path: None,
            text:
                "after the handshake no packet of one side has an option of MPTCP, which leaves plain TCP; most likely \
                   a box on the way removes them"
                    .to_owned(),
            remedy: Some(BYPASS.to_owned()),
        })
    }

    /// Reason for which a connection fell back from MPTCP, as the inspector says.
    fn fell_back(fallback: &FallbackReport) -> Fault {
        let step = fallback.step;
        let blame = match step {
            "third ACK" => "removed the option, from the SYN/ACK or from there on",
            _ => "removes options or changes data",
        };
        Fault {
            kind: FaultKind::FellBack,
            path: None,
            text: format!(
                "the connection went on as plain TCP at the {step}: {}; most likely a box on the way {blame}",
                fallback.reason
            ),
            remedy: Some(BYPASS.to_owned()),
        }
    }

    /// Why no further subflow was begun.
    fn no_join(&self) -> Option<Fault> {
        let used = |address: &std::net::IpAddr| {
            self.flows.iter().any(|(flow, ..)| flow.key.src == *address || flow.key.dst == *address)
        };
        let announced = self.flows.iter().flat_map(|(flow, ..)| &flow.announced).find(|(_, ip)| !used(ip));
        let limits = "Check `ip mptcp limits` (subflows, add_addr_accepted) and `ip mptcp endpoint` on the client.";
        Some(match announced {
            Some((_, address)) => Fault {
                kind: FaultKind::AddressUnused,
                path: None,
                text: format!(
                    "{address} was announced with ADD_ADDR, and no subflow was begun to it: `ip mptcp limits` of the \
                     client admit none, or it has no route there"
                ),
                remedy: Some(limits.to_owned()),
            },
            // A join may have been on its way, or the end nearer than a further subflow.
            None if self.is_brief() => return None,
            None => Fault {
                kind: FaultKind::NoJoin,
                path: None,
                text:
                    "no further subflow was begun, no MP_JOIN is in the capture: `ip mptcp limits` of 0, no `ip mptcp \
                       endpoint` or no route"
                        .to_owned(),
                remedy: Some(limits.to_owned()),
            },
        })
    }

    /// True if all data had been sent before the handshake and a join on a path with a long round trip could be
    /// complete.
    fn is_brief(&self) -> bool {
        let packets = || self.pictures.iter().flat_map(|it| it.packets.iter().flatten());
        let last = packets().filter(|it| it.length > 0).map(|it| it.sent).max();
        let rtt = self.pictures.iter().map(|it| it.rtt).max().unwrap_or(0).max(LONG_TRIP);
        packets().map(|it| it.sent).min().zip(last).is_none_or(|(first, last)| last < first + 4 * rtt)
    }

    /// Why a path carried nothing.
    fn of_path(&self, path: usize) -> Option<Fault> {
        let mine = || self.flows.iter().filter(move |(.., own)| *own == path);
        let data: u64 = mine().flat_map(|(flow, ..)| &flow.sides).map(|side| side.bytes).sum();
        (data == 0).then_some(())?;
        let (flow, ..) = mine().next_back()?;
        let opener = flow.opener?;
        let backup = mine().any(|(flow, ..)| {
            flow.syn.is_backup()
                || flow.syn_ack.is_backup()
                || flow.sides.iter().any(|side| side.priority == Some(true))
        });
        let syns = flow.syns.values().copied().max().unwrap_or(0);
        let fault = |kind, text: String, remedy: Option<&str>| {
            let path = Some(self.names[path].clone());
            Some(Fault { kind, path, text, remedy: remedy.map(str::to_owned) })
        };
        let refused = flow.sides[1 - opener].reset;
        match (flow.syn, flow.syn_ack) {
            (Offer::JoinSyn(_), _) if self.is_over(path) => {
                fault(FaultKind::JoinLate, "all data had been sent before its join could be complete".to_owned(), None)
            }
            (Offer::JoinSyn(_), Offer::Unseen) if refused == Some(true) => fault(
                FaultKind::JoinRefused,
                "its join was refused by the peer's MPTCP, with a RST".to_owned(),
                Some("Look at `ip mptcp limits` on the side that refused."),
            ),
            (Offer::JoinSyn(_), Offer::Unseen) if refused.is_some() => fault(
                FaultKind::JoinRefused,
                "its join was refused with a RST that is not of MPTCP, as by a firewall or where nothing listens"
                    .to_owned(),
                Some("Look for a firewall that rejects it, and for a listening socket at that address and port."),
            ),
            (Offer::JoinSyn(_), Offer::Unseen) => {
                let times = if syns > 1 { format!(" ({syns} SYNs)") } else { String::new() };
                let text = match self.arrived(flow, opener) {
                    true => format!(
                        "its join arrived at the peer, which never answered{times}: rp_filter, a firewall or the route \
                         back keeps it from that"
                    ),
                    false => format!(
                        "its join was never answered{times}: it or the answer is dropped, by a firewall, by rp_filter \
                         or for want of a route"
                    ),
                };
                let remedy = "Check the route of this address (`ip rule`, `ip route get`), rp_filter and firewalls.";
                fault(FaultKind::JoinUnanswered, text, Some(remedy))
            }
            (Offer::JoinSyn(_), Offer::Nothing) => fault(
                FaultKind::JoinRemoved,
                "its join was answered without MP_JOIN: a box on the way removes the option".to_owned(),
                None,
            ),
            (Offer::JoinSyn(_), _) if flow.sides.iter().any(|side| side.reset.is_some()) && !backup => {
                let by = if refused.is_some() { "the peer" } else { "its own side" };
                fault(
                    FaultKind::JoinRefused,
                    format!("its join was refused by {by} with a RST after the SYN/ACK"),
                    Some("Look at `ip mptcp limits` on both sides."),
                )
            }
            (Offer::JoinSyn(_), _) if flow.third == Offer::Unseen => {
                let times = if flow.syn_acks > 1 { format!(" ({} SYN/ACKs)", flow.syn_acks) } else { String::new() };
                fault(
                    FaultKind::JoinIncomplete,
                    format!(
                        "its join was not completed{times}: the SYN/ACK or the third ACK is dropped, by rp_filter, by \
                         a firewall or for want of a route"
                    ),
                    Some("Check the route back to this address, and rp_filter."),
                )
            }
            _ if backup => fault(
                FaultKind::Backup,
                "it is marked as a backup".to_owned(),
                Some("Make it a regular one: `ip mptcp endpoint change ID nobackup`."),
            ),
            _ => {
                let sender_seen = self.pictures.iter().filter(|it| it.path == path).all(|it| self.sees_sender(it));
                let text = match sender_seen {
                    true => "its subflow was established, and the sender gave it nothing",
                    false => {
                        "its subflow was established, and no data came by it: the sender gave it nothing, or large \
                         segments do not pass (MTU)"
                    }
                };
                fault(FaultKind::Unused, text.to_owned(), None)
            }
        }
    }

    /// True if nothing was left to be sent when the last join of a path was refused, or could have been complete at
    /// best. Whatever kept it from that then cost nothing, and says nothing of limits: Linux refuses a join of a
    /// connection that is closing with reason 3.
    fn is_over(&self, path: usize) -> bool {
        let mine = self.flows.iter().zip(self.pictures).rfind(|((.., on), _)| *on == path);
        let Some(((flow, ..), picture)) = mine else { return false };
        let packets = || picture.packets.iter().flatten();
        let refused = packets().filter(|it| it.is(Flags::RST) && flow.syn_ack == Offer::Unseen).map(|it| it.sent).min();
        let shortest = self.pictures.iter().map(|it| it.rtt).filter(|rtt| *rtt > 0).min().unwrap_or(0);
        // Nothing says that a step was dropped before its sender repeats it, or a long round trip is over.
        let syns = flow.syns.values().copied().max().unwrap_or(0);
        let is_open = (flow.syn_ack == Offer::Unseen || flow.third == Offer::Unseen) && syns.max(flow.syn_acks) <= 1;
        let wait = if is_open { 3 * picture.rtt.max(shortest).max(LONG_TRIP) } else { picture.rtt.max(shortest) };
        let complete = packets().map(|it| it.sent + wait).min();
        let Some(carries) = refused.or(complete) else { return false };
        let data = self.pictures.iter().flat_map(|it| it.packets.iter().flatten()).filter(|it| it.length > 0);
        data.map(|it| it.sent).max().is_some_and(|last| last < carries)
    }

    /// The same where only what arrived was seen: a gap in a subflow that never closes, while all that comes is small.
    fn hole_at_receiver(&self, path: usize, side: usize) -> Option<Fault> {
        let data = |on: usize| {
            let there = self.pictures.iter().filter(move |it| it.path == on);
            there.flat_map(move |it| &it.packets[side]).filter(|it| it.length > 0 && it.arrived != NEVER)
        };
        let picture = self.pictures.iter().find(|it| it.path == path)?;
        let seen = if side == 0 { picture.seen.own } else { picture.seen.other };
        if seen || self.flows.iter().filter(|(.., on)| *on == path).count() > 1 {
            return None;
        }
        let usual = (0..self.names.len()).flat_map(data).map(|it| it.length).max()?;
        (usual > self.least_payload(path)).then_some(())?;
        let largest = data(path).map(|it| it.length).max()?;
        let mut arrived = Arrived::from(1);
        let mut missing_since = None;
        let mut in_order: Vec<&Packet> = data(path).collect();
        in_order.sort_by_key(|it| it.arrived);
        for it in &in_order {
            arrived.insert(it.seq, it.end());
            missing_since = if arrived.holds() { missing_since.or(Some(it.arrived)) } else { None };
        }
        let end = self.pictures.iter().flat_map(|it| &it.packets[side]).map(|it| it.arrived).filter(|at| *at != NEVER);
        let is_long = end.max()?.saturating_sub(missing_since?) > LONG;
        (is_long && largest * 10 < usual * 9 && arrived.missing() >= 3 * usual).then(|| Fault {
            kind: FaultKind::MtuBlackHole,
            path: Some(self.names[path].clone()),
            text: format!(
                "segments of more than {largest} bytes never arrived: {} bytes of its stream are missing for good, its \
                 MTU is smaller than the hosts believe",
                arrived.missing()
            ),
            remedy: Some("Lower the MTU of that interface, or set net.ipv4.tcp_mtu_probing to 1.".to_owned()),
        })
    }

    /// Payload that fits into the smallest packets that every link of this path carries: 576 bytes is what hosts rely
    /// on in IPv4 (RFC 1122 §3.3.3), 1280 the least MTU of IPv6 (RFC 8200 §5); headers and options take up to a
    /// hundred.
    fn least_payload(&self, path: usize) -> i64 {
        let is_v4 = self.flows.iter().any(|(flow, _, on)| *on == path && flow.key.src.is_ipv4());
        if is_v4 { 476 } else { 1180 }
    }

    /// True if the picture was taken at the side that sends most data.
    fn sees_sender(&self, picture: &FlowPicture) -> bool {
        let sum =
            |side: usize| -> i64 { self.pictures.iter().flat_map(|it| &it.packets[side]).map(|it| it.length).sum() };
        if sum(0) >= sum(1) { picture.seen.own } else { picture.seen.other }
    }

    /// True if the SYN of a join was seen near its receiver.
    fn arrived(&self, flow: &FlowLog, opener: usize) -> bool {
        if flow.syns.len() > 1 {
            return true;
        }
        // The first subflow tells at which end a single capture was made.
        let first = self.flows.iter().zip(self.pictures).find(|((it, ..), _)| it.key != flow.key);
        first.is_some_and(|((it, swapped, _), picture)| {
            let side = usize::from(it.opener != Some(opener)) ^ opener ^ usize::from(*swapped);
            let near = [picture.seen.own, picture.seen.other];
            !picture.between && near == [side == 1, side == 0]
        })
    }

    /// Subflows whose packets leave by the interface of another path.
    fn wrong_route(&self) -> Vec<Fault> {
        let mut faults = Vec::new();
        for (flow, swapped, path) in &self.flows {
            for (file, passed) in &flow.passed {
                let [Some(a), Some(b)] = passed.interface else { continue };
                // Each of the two ways is that of the same subflow; one of them belongs to another subflow.
                let whose = |interface: u32| {
                    self.flows.iter().find(|(other, _, on)| {
                        on != path && other.passed.get(file).is_some_and(|it| it.interface == [Some(interface); 2])
                    })
                };
                let name = |interface: u32| self.interfaces.get(*file)?.get(interface as usize)?.clone();
                let (Some(one), Some(other)) = (name(a), name(b)) else { continue };
                if a == b || (whose(a).is_none() && whose(b).is_none()) {
                    continue;
                }
                let ends = if *swapped { [flow.key.dst, flow.key.src] } else { [flow.key.src, flow.key.dst] };
                let (from, back) = if *swapped { (other, one) } else { (one, other) };
                let [from, back] = [from, back].map(|it| it.rsplit('/').next().unwrap_or(&it).to_owned());
                let [own, peer] = ends;
                faults.push(Fault {
                    kind: FaultKind::WrongRoute,
                    path: Some(self.names[*path].clone()),
                    text: format!(
                        "packets from {own} pass {from}, and those back from {peer} pass {back}: a route leads them to \
                         the interface of another path"
                    ),
                    remedy: Some(format!(
                        "Check `ip rule` and `ip route get {peer} from {own}` on the client, and the route back on the \
                         server."
                    )),
                });
                break;
            }
        }
        faults
    }

    /// Large segments that never arrive while small ones do.
    fn black_hole(&self) -> Vec<Fault> {
        let mut faults = Vec::new();
        for (path, name) in self.names.iter().enumerate() {
            for side in 0..2 {
                let data = || {
                    let mine = self.pictures.iter().filter(move |it| it.path == path);
                    mine.flat_map(move |it| &it.packets[side]).filter(|it| it.length > 0)
                };
                let most = data().filter(|it| it.arrived != NEVER).map(|it| it.length).max().unwrap_or(0);
                // Every link carries packets of this size: their loss has another reason.
                let large = |it: &&Packet| it.length > most.max(self.least_payload(path));
                let (lost, smaller) = (data().filter(large).count(), most);
                let spread =
                    data().filter(large).map(|it| it.sent).fold((u64::MAX, 0), |(a, b), at| (a.min(at), b.max(at)));
                let small = self.pictures.iter().filter(|it| it.path == path).flat_map(|it| &it.packets[side]);
                // What left before the first of them was lost says nothing of the path as it is then, unless the host
                // sent it for the same reason.
                let since = spread.0.saturating_sub(reaction(self.pictures));
                let heard = small.filter(|it| it.arrived != NEVER && it.sent >= since && !it.is(Flags::SYN)).count();
                if let Some(fault) = self.hole_at_receiver(path, side) {
                    faults.push(fault);
                } else if lost >= 3 && heard > 0 && spread.1.saturating_sub(spread.0) > LONG {
                    let size = data().map(|it| it.length).max().unwrap_or(0);
                    let but = if smaller > 0 { format!(", and ones of {smaller} did") } else { String::new() };
                    faults.push(Fault {
                        kind: FaultKind::MtuBlackHole,
                        path: Some(name.clone()),
                        text: format!(
                            "segments of up to {size} bytes never arrived{but}: its MTU is smaller than \
                                       the hosts believe, and nothing tells them"
                        ),
                        remedy: Some(
                            "Lower the MTU of that interface, or set net.ipv4.tcp_mtu_probing to 1.".to_owned(),
                        ),
                    });
                }
            }
        }
        faults
    }
}

/// Packets that are no accident.
const MANY: u64 = 10;
/// Losses over a shorter time are no black hole \[ns\].
const LONG: u64 = 150_000_000;
