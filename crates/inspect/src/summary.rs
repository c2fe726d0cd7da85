//! From what was counted to the report.

use crate::connection::Connection;
use crate::flow::{By, Flow, Member, Side};
use crate::inspector::{Inspector, Place};
use crate::offer::Offer;
use crate::race::{self, Lost};
use crate::report::{
    AttemptReport, CaptureReport, ConnectionReport, DirectionReport, EndReport, GapReport, KeyReport, PlainReport,
    ReinjectionReport, Report, RttReport, SignalReport, SubflowDirectionReport, SubflowReport,
};
use crate::samples::Samples;
use crate::signal::{Signal, What};
use crate::stream::{Gap, GapEnd, Stream};
use crate::unknown;
use crate::verdict::{compared, fallback, join_hmacs, outcome, reason_text};
use anabranch_units::{Dsn, Duration, Instant, Key, add_addr_hmac, same_mac};
use anabranch_wire::AddAddr;
use std::collections::{HashMap, HashSet};

/// Everything that was found, without files.
pub(crate) fn report(inspector: &Inspector) -> Report {
    let totals = &inspector.totals;
    let start = totals.first_at.unwrap_or(Instant::ZERO);
    let lost = race::lost(inspector);
    let raced: HashSet<usize> = lost.values().flatten().copied().collect();
    let summary = Summary { inspector, start, lost: &lost };
    let connections =
        shown(inspector, &raced).enumerate().map(|(nth, index)| summary.connection(nth + 1, index)).collect();
    let plain =
        (inspector.flows.iter().enumerate()).filter(|(index, flow)| flow.member.is_none() && !raced.contains(index));
    Report {
        files: Vec::new(),
        capture: CaptureReport {
            start_unix_ns: totals.first_at.map(Instant::as_nanos),
            duration_s: totals.last_at.map_or(0.0, |last| last.since(start).as_secs_f64()),
            tcp_packets: totals.packets,
            mptcp_packets: totals.mptcp,
            copies: totals.copies,
            notes: unknown::of_capture(totals),
        },
        connections,
        plain_tcp: plain.map(|(_, flow)| summary.plain(flow)).collect(),
    }
}

/// Indices of the connections that the report has, in its order.
fn shown<'a>(inspector: &'a Inspector, raced: &'a HashSet<usize>) -> impl Iterator<Item = usize> + 'a {
    let shown = |(_, connection): &(usize, &Connection)| connection.flows.iter().any(|flow| !raced.contains(flow));
    inspector.connections.iter().enumerate().filter(shown).map(|(index, _)| index)
}

/// Initial data sequence numbers, by connection of the report.
pub(crate) fn idsns(inspector: &Inspector) -> Vec<[Option<Dsn>; 2]> {
    let raced: HashSet<usize> = race::lost(inspector).into_values().flatten().collect();
    shown(inspector, &raced).map(|index| inspector.connections[index].idsns()).collect()
}

/// Place of each flow in the report, in the order of flows.
pub(crate) fn places(inspector: &Inspector) -> Vec<Place> {
    let raced: HashSet<usize> = race::lost(inspector).into_values().flatten().collect();
    let shown = shown(inspector, &raced);
    let numbers: HashMap<usize, usize> = shown.enumerate().map(|(nth, index)| (index, nth + 1)).collect();
    let mut plain = 0..;
    let place = |(index, flow): (usize, &Flow)| match flow.member {
        _ if raced.contains(&index) => Place::LostRace,
        Some(Member { connection, subflow, swapped, .. }) => numbers
            .get(&connection)
            .map_or(Place::LostRace, |&connection| Place::Subflow { connection, subflow, swapped }),
        None => Place::Plain { index: plain.next().unwrap_or_default(), swapped: flow.opener == Some(1) },
    };
    inspector.flows.iter().enumerate().map(place).collect()
}

struct Summary<'a> {
    inspector: &'a Inspector,
    start: Instant,
    lost: &'a Lost,
}

impl Summary<'_> {
    fn seconds(&self, at: Instant) -> f64 {
        at.since(self.start).as_secs_f64()
    }

    /// The connection at `index`, which is shown under `number`.
    fn connection(&self, number: usize, index: usize) -> ConnectionReport {
        let connection = &self.inspector.connections[index];
        let flows: Vec<(&Flow, Member)> = (connection.flows.iter())
            .filter_map(|&flow| Some((&self.inspector.flows[flow], self.inspector.flows[flow].member?)))
            .collect();
        let first_at = flows.iter().map(|(flow, _)| flow.first_at).min().unwrap_or(self.start);
        let last_at = flows.iter().map(|(flow, _)| flow.last_at).max().unwrap_or(self.start);
        let sides = if connection.opener_known { ["client", "server"] } else { ["A", "B"] };
        let mut signals: Vec<(Instant, SignalReport)> = (flows.iter())
            .flat_map(|(flow, member)| {
                // The end of a subflow tells the reason of its MP_TCPRST.
                let told = flow.signals.iter().filter(|signal| !matches!(signal.what, What::Reset(..)));
                told.map(|signal| (signal.at, self.signal(signal, *member, connection)))
            })
            .collect();
        signals.sort_by_key(|(at, _)| *at);
        let fallback = if flows.len() == 1 || flows.iter().any(|(flow, _)| is_infinite(flow)) {
            flows.iter().find_map(|(flow, _)| fallback(flow))
        } else {
            None
        };
        let captured = captured(&flows, sides);
        ConnectionReport {
            number,
            opener_known: connection.opener_known,
            sides,
            endpoints: flows.first().map_or_else(Default::default, |(flow, member)| endpoints(flow, *member)),
            start_s: self.seconds(first_at),
            duration_s: last_at.since(first_at).as_secs_f64(),
            version: connection.version,
            dss_checksum: checksum_in_use(connection, &flows),
            keys: [0, 1].map(|side| KeyReport {
                key: connection.keys[side].map(|key| format!("{:016x}", key.get())),
                token: connection.tokens[side].map(|token| format!("{:08x}", token.0)),
                idsn: connection.idsns()[side].map(|idsn| format!("{:016x}", idsn.get())),
            }),
            end: end(connection, &flows, sides),
            captured: captured.clone(),
            subflows: flows.iter().map(|(flow, member)| self.subflow(flow, *member, connection, sides)).collect(),
            lost_races: (self.lost.get(&index).into_iter().flatten())
                .map(|flow| self.attempt(&self.inspector.flows[*flow]))
                .collect(),
            directions: [0, 1].map(|side| {
                let unmapped = |(flow, member): &(&Flow, Member)| flow.sides[member.side(side)].mappings.unmapped;
                self.direction(side, &connection.streams[side], flows.iter().map(unmapped).sum())
            }),
            signals: signals.into_iter().map(|(_, signal)| signal).collect(),
            unknown: unknown::of_connection(connection, &flows, fallback.is_some(), captured.as_deref(), sides),
            fallback,
        }
    }

    fn attempt(&self, flow: &Flow) -> AttemptReport {
        let opener = flow.opener.unwrap_or(0);
        let ends = [flow.key.source().to_string(), flow.key.destination().to_string()];
        AttemptReport {
            endpoints: [opener, 1 - opener].map(|side| ends[side].clone()),
            start_s: self.seconds(flow.first_at),
            answered_after_ms: (flow.shake.syn_ack_at.zip(flow.shake.syn_at))
                .map(|(answer, syn)| answer.since(syn).as_millis_f64()),
            reset_s: flow.sides[opener].reset.map(|reset| self.seconds(reset.at)),
        }
    }

    fn subflow(&self, flow: &Flow, member: Member, connection: &Connection, sides: [&str; 2]) -> SubflowReport {
        // By side of the connection, like everything in a report.
        let by_side = [0, 1].map(|side| member.side(side));
        let hmac = join_hmacs(flow, member, connection);
        SubflowReport {
            number: member.subflow,
            endpoints: endpoints(flow, member),
            opened_by: flow.opener.map(|opener| member.side(opener)),
            origin: match (member.by, flow.shake.syn, flow.shake.syn_ack, flow.shake.ack) {
                (By::Capable, ..) => "MP_CAPABLE",
                (By::Token, ..) => "MP_JOIN",
                (_, Offer::JoinSyn(_), ..) | (_, _, Offer::JoinSynAck(_), _) | (.., Offer::JoinAck(_)) => "MP_JOIN",
                (_, Offer::Capable(_), ..) | (_, _, Offer::Capable(_), _) | (.., Offer::Capable(_)) => "MP_CAPABLE",
                (By::Numbers, ..) => "inferred",
                (By::Alone, ..) => "unknown",
            },
            outcome: outcome(flow, by_side.map(|side| sides[side])),
            address_ids: by_side.map(|side| join_facts(flow, side).map(|(id, _)| id)),
            backup: by_side.map(|side| join_facts(flow, side).map(|(_, backup)| backup)),
            hmac: by_side.map(|side| hmac[side]),
            start_s: self.seconds(flow.first_at),
            duration_s: flow.last_at.since(flow.first_at).as_secs_f64(),
            handshake_rtt_ms: flow.handshake_rtt().map(Duration::as_millis_f64),
            handshake_rtt_beyond_ms: flow.handshake_far().map(Duration::as_millis_f64),
            data_rtt: by_side.map(|side| rtt(&flow.sides[side])),
            sent: by_side.map(|side| sent(flow, side, member, &connection.streams[member.side(side)])),
            ends: by_side.map(|side| self.ended(&flow.sides[side])),
        }
    }

    fn ended(&self, side: &Side) -> Option<EndReport> {
        let at_s = |at| self.seconds(at);
        if let Some(reset) = side.reset {
            return Some(EndReport {
                kind: "RST",
                at_s: at_s(reset.at),
                reason: reset.reason.map(|(reason, _)| reason_text(reason)),
                reason_code: reset.reason.map(|(reason, _)| reason.code()),
                transient: reset.reason.map(|(_, transient)| transient),
                fast_close: reset.fast_close,
            });
        }
        side.fin_at.map(|at| EndReport {
            kind: "FIN",
            at_s: at_s(at),
            reason: None,
            reason_code: None,
            transient: None,
            fast_close: false,
        })
    }

    /// Report of one direction. `unmapped` bytes have passed without a known mapping.
    fn direction(&self, from: usize, stream: &Stream, unmapped: u64) -> DirectionReport {
        let duration = stream.first_at.zip(stream.last_at).map(|(first, last)| last.since(first));
        let bytes = stream.coverage.unique;
        let order = &stream.order;
        let unseen = stream.acked.zip(stream.first_ack).filter(|_| bytes == 0 && stream.coverage.missing == 0);
        DirectionReport {
            from,
            bytes,
            duration_s: duration.map(Duration::as_secs_f64),
            goodput_mbit_s: (duration.filter(|duration| !duration.is_zero()))
                .map(|duration| bytes as f64 * 8e-6 / duration.as_secs_f64()),
            unmapped_bytes: unmapped,
            missing_bytes: stream.coverage.missing.saturating_sub(unmapped),
            acknowledged_unseen_bytes: unseen
                .map(|(acked, first)| acked.min(stream.fin.unwrap_or(acked)) - first)
                .map(|bytes| bytes.max(0).unsigned_abs().saturating_sub(unmapped))
                .filter(|&bytes| bytes > 0),
            data_fin_s: stream.fin_at.map(|at| self.seconds(at)),
            data_fin_acknowledged: stream.fin_acked(),
            segments: order.of,
            out_of_order_segments: order.segments,
            out_of_order_bytes: order.bytes,
            reorder_depth_max_bytes: order.depth_max,
            reorder_depth_mean_bytes: (order.segments > 0).then(|| order.depth_sum as f64 / order.segments as f64),
            held_max_bytes: order.held_max,
            gaps: stream.gaps.count,
            hol_blocked_s: stream.gaps.blocked.as_secs_f64(),
            longest_gaps: stream.gaps.longest.iter().map(|gap| self.gap(gap)).collect(),
            reinjections: (stream.repeats.iter())
                .map(|(&(first_on, again_on), repeat)| ReinjectionReport {
                    first_on,
                    again_on,
                    segments: repeat.segments,
                    bytes: repeat.bytes,
                    already_acknowledged_bytes: repeat.acknowledged,
                    mean_delay_ms: (repeat.delay / repeat.segments.max(1)).as_millis_f64(),
                })
                .collect(),
        }
    }

    fn gap(&self, gap: &Gap) -> GapReport {
        let (end, filled_by) = match gap.end {
            GapEnd::Filled(subflow) => ("filled", Some(subflow)),
            GapEnd::Acknowledged => ("not in the capture", None),
            GapEnd::Open => ("open", None),
        };
        GapReport {
            at_s: self.seconds(gap.opened),
            duration_ms: gap.closed.since(gap.opened).as_millis_f64(),
            dsn: gap.range.start,
            bytes: crate::coverage::length(&gap.range),
            filled_by,
            end,
        }
    }

    /// Returns true if an authenticator is the leftmost part of the hash and not the rightmost (RFC 8684 §3.4.1).
    fn is_leftmost(add: &AddAddr, keys: Option<(Key, Key)>, hmac: &[u8; 8]) -> bool {
        keys.is_some_and(|(own, peer)| {
            same_mac(&add_addr_hmac(own, peer, add.id, add.address, add.port).first_8(), hmac)
        })
    }

    fn signal(&self, signal: &Signal, member: Member, connection: &Connection) -> SignalReport {
        let side = member.side(signal.from);
        // Without the handshake there are no keys, and no HMAC can be judged.
        let key = |side: usize| connection.keys[side];
        let address = |id: u8, address: std::net::IpAddr, port: Option<u16>| match port {
            Some(port) => format!("address {id} is {}", std::net::SocketAddr::new(address, port)),
            None => format!("address {id} is {address}"),
        };
        let (kind, text, verified) = match &signal.what {
            What::AddAddr(add) => {
                let text = address(add.id.0, add.address, add.port);
                let expected = key(side).zip(key(1 - side)).and_then(|(own, peer)| {
                    connection.hashing().add_addr_hmac(own, peer, add.id, add.address, add.port)
                });
                match &add.hmac {
                    Some(hmac) if Self::is_leftmost(add, key(side).zip(key(1 - side)), hmac) => {
                        let text = text + ", with the leftmost bits of the HMAC, an error of early Linux kernels";
                        ("ADD_ADDR", text, Some("bad"))
                    }
                    Some(hmac) => ("ADD_ADDR", text, Some(compared(expected.as_ref().map(<[u8; 8]>::as_slice), hmac))),
                    None => ("ADD_ADDR echo", text, None),
                }
            }
            What::AddAddrV0 { id, address: ip, port } => ("ADD_ADDR", address(id.0, *ip, *port), None),
            What::RemoveAddr(ids) => {
                let ids: Vec<String> = ids.iter().map(|id| id.to_string()).collect();
                ("REMOVE_ADDR", format!("address {} is gone", ids.join(", ")), None)
            }
            What::Prio { backup, address } => {
                let which = address.map_or("this subflow".to_owned(), |id| format!("the subflow of address {id}"));
                let text = if *backup { format!("{which} is backup") } else { format!("{which} is regular") };
                ("MP_PRIO", text, None)
            }
            What::Fail(dsn) => {
                let relative = key(1 - side).map(|key| dsn.distance(connection.hashing().idsn(key)));
                let text = relative.map_or(format!("at DSN {dsn}"), |relative| format!("at relative DSN {relative}"));
                ("MP_FAIL", text, None)
            }
            What::FastClose(named) => {
                let expected = key(1 - side).map(|key| key.get().to_be_bytes());
                let verdict = compared(expected.as_ref().map(<[u8; 8]>::as_slice), &named.get().to_be_bytes());
                ("MP_FASTCLOSE", "ends the connection at once".to_owned(), Some(verdict))
            }
            What::Reset(reason, transient) => {
                let again = if *transient { ", trying again later may help" } else { "" };
                ("MP_TCPRST", reason_text(*reason) + again, None)
            }
            What::InfiniteMapping => ("infinite mapping", "plain TCP from here on".to_owned(), None),
        };
        let (at_s, subflow) = (self.seconds(signal.at), member.subflow);
        SignalReport { at_s, from: side, subflow, kind, text, verified, count: signal.count }
    }

    fn plain(&self, flow: &Flow) -> PlainReport {
        let member = Member { connection: 0, subflow: 0, swapped: flow.opener == Some(1), by: By::Alone };
        let by_side = [0, 1].map(|side| member.side(side));
        let is_join = |offer| matches!(offer, Offer::JoinSyn(_) | Offer::JoinSynAck(_) | Offer::JoinAck(_));
        let shake = &flow.shake;
        let join = [shake.syn, shake.syn_ack, shake.ack].into_iter().any(is_join);
        // No connection is known, and no key: signals are told as they passed.
        let stranger = Connection::new();
        PlainReport {
            endpoints: endpoints(flow, member),
            opener_known: flow.opener.is_some(),
            start_s: self.seconds(flow.first_at),
            duration_s: flow.last_at.since(flow.first_at).as_secs_f64(),
            handshake_rtt_ms: flow.handshake_rtt().map(Duration::as_millis_f64),
            bytes: by_side.map(|side| flow.sides[side].sequence.unique()),
            retransmitted_segments: by_side.map(|side| retransmitted(flow, side).0),
            options_cut_packets: flow.sides.iter().map(|side| side.options_cut).sum(),
            fallback: fallback(flow),
            join: join.then(|| {
                format!(
                    "MP_JOIN to a connection that is not in the capture: {}",
                    outcome(flow, ["one side", "the other side"])
                )
            }),
            mptcp_packets: flow.sides.iter().map(|side| side.with_mptcp).sum(),
            signals: flow.signals.iter().map(|signal| self.signal(signal, member, &stranger)).collect(),
        }
    }
}

fn is_infinite(flow: &Flow) -> bool {
    flow.signals.iter().any(|signal| signal.what == What::InfiniteMapping)
}

/// Address and port by side of the connection.
fn endpoints(flow: &Flow, member: Member) -> [String; 2] {
    let ends = [flow.key.source().to_string(), flow.key.destination().to_string()];
    [0, 1].map(|side| ends[member.side(side)].clone())
}

/// Address identifier and backup flag that a side of a flow gave in its MP_JOIN.
fn join_facts(flow: &Flow, side: usize) -> Option<(u8, bool)> {
    let opener = flow.opener?;
    match (side == opener, flow.shake.syn, flow.shake.syn_ack) {
        (true, Offer::JoinSyn(join), _) => Some((join.address.0, join.backup)),
        (false, _, Offer::JoinSynAck(join)) => Some((join.address.0, join.backup)),
        // The initial subflow's addresses have the identifier 0 (RFC 8684 §3.4.1).
        (_, Offer::Capable(_), _) => Some((0, false)),
        _ => None,
    }
}

/// Packets and bytes that were sent again.
fn retransmitted(flow: &Flow, side: usize) -> (u64, u64) {
    let count = flow.sides[side].sequence.retransmitted;
    if !flow.copies_undecided() {
        return (count.segments, count.bytes);
    }
    let copies = flow.undecided_data;
    (count.segments.saturating_sub(copies.segments), count.bytes.saturating_sub(copies.bytes))
}

fn rtt(side: &Side) -> RttReport {
    // Where acknowledgments were captured twice, the first copy may be from the far end.
    let (near, far) = (&side.sequence.rtt, &side.sequence.rtt_far);
    let whole_path = far.count() * 2 > near.count();
    let samples: &Samples = if whole_path { far } else { near };
    RttReport {
        whole_path,
        samples: samples.count(),
        min_ms: samples.min().map(Duration::as_millis_f64),
        median_ms: samples.median().map(Duration::as_millis_f64),
    }
}

fn sent(flow: &Flow, index: usize, member: Member, stream: &Stream) -> SubflowDirectionReport {
    let side = &flow.sides[index];
    let (sequence, mappings) = (&side.sequence, &side.mappings);
    let carried = stream.carried.get(&member.subflow).copied().unwrap_or_default();
    let all = stream.coverage.unique;
    let (retransmitted_segments, retransmitted_bytes) = retransmitted(flow, index);
    SubflowDirectionReport {
        packets: side.packets,
        data_segments: sequence.sent.segments,
        bytes: sequence.unique(),
        data_bytes: carried.first,
        share: (all > 0).then(|| carried.first as f64 / all as f64),
        repeated_data_bytes: carried.again,
        retransmitted_segments,
        retransmitted_bytes,
        retransmitted_unseen_segments: sequence.filled.segments,
        reordered_segments: sequence.reordered.segments,
        keep_alives: sequence.keep_alives,
        missing_bytes: sequence.missing(),
        unmapped_bytes: mappings.unmapped,
        mappings: mappings.count,
        conflicting_mappings: mappings.conflicts,
        dss_checksums_good: mappings.checksums.good,
        dss_checksums_bad: mappings.checksums.bad,
        dss_checksums_unverifiable: mappings.checksums.unverifiable,
        bad_tcp_checksums: side.bad_checksums,
        zero_windows: side.zero_window.episodes,
        zero_window_s: side.zero_window.total.as_secs_f64(),
    }
}

/// DSS checksums are in use if either side asked for them (RFC 8684 §3.1); without a handshake, if mappings carry them.
fn checksum_in_use(connection: &Connection, flows: &[(&Flow, Member)]) -> Option<bool> {
    if let [Some(a), Some(b)] = connection.checksums {
        return Some(a || b);
    }
    let sides = || flows.iter().flat_map(|(flow, _)| &flow.sides);
    let seen = |side: &Side| {
        let sums = side.mappings.checksums;
        sums.good + sums.bad + sums.unverifiable > 0
    };
    if sides().any(seen) {
        return Some(true);
    }
    sides().any(|side| side.mappings.count > 0).then_some(false)
}

/// Describes the end of a connection.
fn end(connection: &Connection, flows: &[(&Flow, Member)], sides: [&str; 2]) -> String {
    let fast_close = flows.iter().find_map(|(flow, member)| {
        let signal = flow.signals.iter().find(|signal| matches!(signal.what, What::FastClose(_)))?;
        Some(member.side(signal.from))
    });
    if let Some(side) = fast_close {
        return format!("MP_FASTCLOSE from {}", article(sides[side]));
    }
    let fins = connection.streams.each_ref().map(|stream| (stream.fin.is_some(), stream.fin_acked()));
    match fins {
        [(true, true), (true, true)] => return "closed: DATA_FIN from both sides, both acknowledged".to_owned(),
        [(true, _), (true, _)] => return "closing: DATA_FIN from both sides, not all acknowledged".to_owned(),
        _ => {}
    }
    let over = flows.iter().all(|(flow, _)| flow.is_over());
    let resets = flows.iter().filter(|(flow, _)| flow.sides.iter().any(|side| side.reset.is_some())).count();
    match (over, resets) {
        (true, 0) => "all subflows closed by FIN".to_owned(),
        (true, _) => "all subflows closed or reset".to_owned(),
        (false, _) if fins[0].0 || fins[1].0 => {
            let side = usize::from(!fins[0].0);
            format!("half closed when the capture ends: DATA_FIN from {} only", article(sides[side]))
        }
        (false, _) => "open when the capture ends".to_owned(),
    }
}

/// Infers the place of the capture from how it divides a handshake's round trip.
fn captured(flows: &[(&Flow, Member)], sides: [&str; 2]) -> Option<String> {
    let packets: u64 = flows.iter().map(|(flow, _)| flow.sides[0].packets + flow.sides[1].packets).sum();
    let copies: u64 = flows.iter().map(|(flow, _)| flow.copies).sum();
    if copies * 2 > packets || flows.iter().any(|(flow, _)| flow.copies_undecided()) {
        return Some(TWO_POINTS.to_owned());
    }
    let by_handshake = flows.iter().find_map(|(flow, member)| {
        let (all, beyond) = (flow.handshake_rtt()?, flow.handshake_far()?);
        (all >= MEANINGFUL).then(|| (beyond.per(all), member.side(flow.opener.unwrap_or(0))))
    });
    let by_data = || {
        flows.iter().find_map(|(flow, member)| {
            let least = [0, 1].map(|side| flow.sides[member.side(side)].sequence.rtt.min());
            let (a, b) = (least[0]?.as_secs_f64(), least[1]?.as_secs_f64());
            (a + b >= MEANINGFUL.as_secs_f64()).then(|| (a / (a + b), 0))
        })
    };
    let (beyond, opener) = by_handshake.or_else(by_data)?;
    Some(match beyond {
        x if x > 0.85 => format!("near {}", article(sides[opener])),
        x if x < 0.15 => format!("near {}", article(sides[1 - opener])),
        _ => "in between".to_owned(),
    })
}

/// Below this, a round trip is what hosts take to think and says nothing about distance.
const MEANINGFUL: Duration = Duration::from_millis(1);

/// Place of a capture that contains most packets twice.
pub(crate) const TWO_POINTS: &str = "at two points, or twice at one";

/// A side of a connection in a sentence: `the client`, but `A`.
pub fn article(side: &str) -> String {
    if side.len() == 1 { side.to_owned() } else { format!("the {side}") }
}
