//! The judge of one direction: puts the state of the connection together at each packet, as the simulator tells it to
//! the judge of a run, and has that judge attribute it.

use super::link::Link;
use super::picture::{FlowPicture, NEVER, Packet, UNKNOWN};
use super::sender::{Phase, Sender, Timeline};
use super::stream::{Arrived, Stream};
use super::trace::Flight;
use crate::judge::Trial;
use crate::{Bands, Cause, Limit};
use anabranch_engine::Wait;
use anabranch_paths::Direction;
use anabranch_sim::SessionState;
use anabranch_units::{Instant, Rate};
use anabranch_wire::Flags;

/// Time of one direction by limit.
#[derive(Clone, Debug)]
pub(crate) struct Verdict {
    pub bands: Bands,
    pub paths: Vec<Bands>,
    /// True if all of them arrived.
    pub finished: bool,
    /// Largest window that the peer advertised \[B\].
    pub widest_window: u64,
    /// Windows at which slow start ended on each path while nothing had been lost; 0 if it did not end so \[B\].
    pub settled: Vec<u64>,
    /// Bytes in flight on each subflow, after each change; empty unless asked for.
    pub flight: Vec<Flight>,
}

/// Something that happens to a packet.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Step {
    Arrives,
    Leaves,
    /// A link becomes busy; no packet of the connection need be the cause.
    Busy,
}

/// An event: time, step, flow, side that sent the packet, index of the packet.
type Event = (u64, Step, usize, usize, usize);

struct Subflow {
    sender: Sender,
    timeline: Timeline,
    /// The sender may use it.
    established: bool,
    /// Its SYN has left.
    begun: bool,
    /// The three steps: SYN arrived or left, SYN/ACK, ACK.
    confirmed: bool,
    gone: bool,
    backup: bool,
    /// The receiver's edge of this subflow alone.
    edge: i64,
    /// Bytes in flight and congestion window as they were taken down last.
    kept: Option<(u64, u64)>,
}

/// A path in the direction of the data.
#[derive(Clone, Debug)]
pub(crate) struct PathTraffic {
    /// Its slowest link.
    pub link: Link,
    /// Times in which nothing that was sent arrived.
    pub down: Vec<(u64, u64)>,
    next: usize,
}

impl PathTraffic {
    /// Looks at all packets of a path: those in the direction of the data, and those in the other. The transfer ends at
    /// `end`.
    pub(crate) fn of(data: &[&[Packet]], back: &[&[Packet]], end: u64) -> Self {
        let link = Link::of(data.iter().copied().flatten());
        let mut all: Vec<&Packet> = data.iter().chain(back).copied().flatten().collect();
        all.sort_by_key(|it| it.sent);
        let mut down = outages(&all);
        // Packets that were still on their way when the capture ended are not lost.
        down.retain(|(from, to)| *to != NEVER || from.saturating_add(LEAST_SILENCE) <= end);
        PathTraffic { link, down, next: 0 }
    }
}

struct Watch<'a> {
    flows: &'a [FlowPicture],
    side: usize,
    stream: Stream,
    subflows: Vec<Subflow>,
    traffic: Vec<PathTraffic>,
    sent: Arrived,
    arrived: Arrived,
    /// Next byte to be sent for the first time, and the first sending before it.
    nxt: i64,
    fresh: usize,
    piece: usize,
    acked: i64,
    /// The peer admits all below.
    edge: i64,
    last_window: i64,
    widest: i64,
    /// Bytes of the peer on their way: requests.
    asked: i64,
    open: Option<u64>,
    state: SessionState,
    /// Bytes in flight over time, if they are to be kept.
    flight: Option<Vec<Flight>>,
}

/// Time in which a host reacts to a packet \[ns\]: what leaves this soon after was set off by it. A simulated host
/// takes none, a real one some ten microseconds, and longer if an application has to wake up.
pub(crate) fn reaction(flows: &[FlowPicture]) -> u64 {
    let rtt = flows.iter().map(|flow| flow.rtt).filter(|rtt| *rtt > 0).min().unwrap_or(0);
    (rtt / 8).clamp(250_000, 1_000_000)
}

/// Puts together what `side` sent, on each subflow and in all.
pub(crate) fn stream(flows: &[FlowPicture], side: usize) -> (Vec<Timeline>, Stream) {
    let reaction = reaction(flows);
    let timelines = Timeline::of_all(flows, side, reaction);
    let opened = flows.iter().filter_map(|flow| established_at(flow, side)).min();
    // Times at a sender that was not captured are as rough as its timestamps, and as the half of a round trip.
    let seen = |flow: &FlowPicture| if side == 0 { flow.seen.own } else { flow.seen.other };
    let rough = if flows.iter().all(seen) { reaction } else { ROUGH.max(4 * reaction) };
    let stream = Stream::of(flows, side, &timelines, opened.unwrap_or(0), rough);
    (timelines, stream)
}

/// Judges what `side` sent; `keeps` says that what is in flight is wanted as well.
pub(crate) fn judge(flows: &[FlowPicture], side: usize, traffic: Vec<PathTraffic>, keeps: bool) -> Option<Verdict> {
    let paths = traffic.len();
    let (timelines, stream) = stream(flows, side);
    (!stream.fresh.is_empty()).then_some(())?;
    let events = events(flows, &traffic);
    let begin = events.first()?.0;
    let subflows = timelines.into_iter().zip(flows).map(|(timeline, flow)| Subflow {
        sender: Sender::new(),
        timeline,
        established: flow.opener.is_none(),
        begun: flow.opener.is_none(),
        confirmed: flow.opener.is_none(),
        gone: false,
        backup: flow.backup,
        edge: i64::MAX,
        kept: None,
    });
    let mut watch = Watch {
        flows,
        side,
        subflows: subflows.collect(),
        traffic,
        sent: Arrived::from(stream.begin),
        arrived: Arrived::from(stream.begin),
        nxt: stream.begin,
        fresh: 0,
        piece: 0,
        acked: stream.begin,
        edge: stream.begin,
        last_window: 0,
        widest: 0,
        asked: 0,
        open: None,
        state: SessionState::new(0, Direction::Down, paths),
        flight: keeps.then(Vec::new),
        stream,
    };
    let mut trial: Option<Trial> = None;
    let mut end = begin;
    let mut index = 0;
    while index < events.len() {
        let now = events[index].0;
        while let Some(event) = events.get(index).filter(|event| event.0 == now) {
            watch.apply(*event);
            index += 1;
        }
        watch.look(now);
        match &mut trial {
            Some(trial) => trial.advance(&watch.state),
            None => trial = Some(Trial::new(&watch.state)),
        }
        if watch.arrived.edge >= watch.stream.end {
            end = now;
            break;
        }
        end = now;
    }
    let finished = watch.arrived.edge >= watch.stream.end;
    let mut trial = trial?;
    let settled = |path: usize| {
        let mine = watch.subflows.iter().zip(flows).filter(|(_, flow)| flow.path == path);
        mine.map(|(it, _)| it.sender.settled.max(0).unsigned_abs()).max().unwrap_or(0)
    };
    let settled = (0..paths).map(settled).collect();
    let (from, to) = (Instant::from_nanos(begin), Instant::from_nanos(end));
    trial.flush(to);
    if paths == 1 {
        // No scheduler has a choice there: what did not leave was not written.
        let unwritten =
            |cause: Cause| (cause.limit == Limit::Scheduler).then_some(Cause::of_all(Limit::ApplicationSends));
        trial.bands.reassign(from, unwritten);
        trial.paths.iter_mut().for_each(|bands| bands.reassign(from, unwritten));
    }
    let unused = |(path, bands): (usize, &Bands)| bands.between(from, to, Cause::of(Limit::Unused, path));
    Some(Verdict {
        bands: trial.bands.between(from, to, Cause::of_all(Limit::Handshake)),
        paths: trial.paths.iter().enumerate().map(unused).collect(),
        finished,
        widest_window: watch.widest.max(0).unsigned_abs(),
        settled,
        flight: watch.flight.unwrap_or_default(),
    })
}

/// Error of estimated times \[ns\]: the clock of timestamps has a millisecond, or four.
const ROUGH: u64 = 4_000_000;

/// All that happens, in the order of time; what arrives comes before what it sets off.
fn events(flows: &[FlowPicture], traffic: &[PathTraffic]) -> Vec<Event> {
    let mut events = Vec::new();
    let packets = || flows.iter().flat_map(|flow| flow.packets.iter().flatten());
    let begin = packets().map(|it| it.sent).min().unwrap_or(0);
    let end = packets().map(|it| if it.arrived == NEVER { it.sent } else { it.arrived }).max().unwrap_or(0);
    for (path, traffic) in traffic.iter().enumerate() {
        let times =
            traffic.link.busy.iter().map(|(from, _)| *from).chain(traffic.down.iter().flat_map(|it| [it.0, it.1]));
        events.extend(times.filter(|at| (begin..end).contains(at)).map(|at| (at, Step::Busy, path, 0, 0)));
    }
    for (number, flow) in flows.iter().enumerate() {
        for (side, packets) in flow.packets.iter().enumerate() {
            for (index, it) in packets.iter().enumerate() {
                events.push((it.sent, Step::Leaves, number, side, index));
                if it.arrived != NEVER {
                    events.push((it.arrived, Step::Arrives, number, side, index));
                }
            }
        }
    }
    events.sort_unstable();
    events
}

/// Times in which nothing that was sent arrived: at least two packets with time between, or data at the end after which
/// the path was silent for good.
fn outages(packets: &[&Packet]) -> Vec<(u64, u64)> {
    let mut outages = Vec::new();
    let mut run: Option<Outage> = None;
    for it in packets {
        match &mut run {
            _ if it.arrived == NEVER => {
                let run = run.get_or_insert(Outage { from: it.sent, last: it.sent, apart: 1, data: false });
                run.apart += u32::from(it.sent > run.last + LEAST_OUTAGE);
                run.last = it.sent;
                run.data |= it.length > 0;
            }
            Some(Outage { from, apart: 2.., .. }) => {
                outages.push((*from, it.sent));
                run = None;
            }
            _ => run = None,
        }
    }
    outages.extend(run.filter(|run| run.apart >= 2 || run.data).map(|run| (run.from, NEVER)));
    outages
}

/// Packets in a row that did not arrive.
struct Outage {
    from: u64,
    last: u64,
    /// Number of them with time between.
    apart: u32,
    data: bool,
}

/// Time between two lost packets that is no burst of losses any more \[ns\].
const LEAST_OUTAGE: u64 = 180_000_000;
/// An outage at the end counts if so much time follows it \[ns\].
const LEAST_SILENCE: u64 = 1_000_000_000;

/// Time from which `side` may send on a flow.
fn established_at(flow: &FlowPicture, side: usize) -> Option<u64> {
    let Some(opener) = flow.opener else { return flow.packets[side].first().map(|it| it.sent) };
    let from_opener = &flow.packets[opener];
    let answer = flow.packets[1 - opener].iter().find(|it| it.is(Flags::SYN) && it.arrived != NEVER)?;
    if side == opener {
        return Some(answer.arrived);
    }
    let third = |it: &&Packet| !it.is(Flags::SYN) && !it.is(Flags::RST) && it.arrived != NEVER;
    from_opener.iter().find(third).map(|it| it.arrived)
}

impl Watch<'_> {
    fn apply(&mut self, (now, step, number, from, index): Event) {
        if step == Step::Busy {
            return;
        }
        let it = self.flows[number].packets[from][index];
        let subflow = &mut self.subflows[number];
        let opener = self.flows[number].opener;
        let is_syn = it.is(Flags::SYN);
        if is_syn && step == Step::Leaves && opener == Some(from) {
            subflow.begun = true;
        }
        if it.is(Flags::RST) {
            subflow.gone |= step == Step::Arrives || from == self.side;
            return;
        }
        if step == Step::Arrives && opener.is_some() {
            if is_syn && opener != Some(from) {
                // The answer arrives at the opener.
                subflow.confirmed = true;
                subflow.established |= opener == Some(self.side) && (number == 0 || self.flows[number].plain[0]);
            } else if !is_syn && opener == Some(from) {
                // The third ACK arrives.
                subflow.established |= opener != Some(self.side);
            } else if !is_syn && subflow.confirmed {
                // A join may carry data once the third ACK is acknowledged (RFC 8684 §3.2).
                subflow.established = true;
            }
        }
        match (from == self.side, step) {
            (true, Step::Leaves) if it.length > 0 => self.sends(now, number, index, &it),
            (true, Step::Arrives) if it.length > 0 && it.dsn != UNKNOWN => {
                self.arrived.insert(it.dsn, it.dsn + it.length);
            }
            (false, Step::Leaves) => {
                self.asked += it.length;
                // What the receiver says that it has has come, even if the capture missed the packets that brought it.
                self.arrived.insert(self.arrived.edge, it.data_ack.min(self.stream.end));
            }
            (false, Step::Arrives) => {
                self.hears(number, &it);
                self.keep_flight(now, number);
            }
            _ => {}
        }
        if from != self.side && it.arrived == NEVER && step == Step::Leaves {
            // It will not come; what carries the same again does.
            self.asked -= it.length;
        }
    }

    fn sends(&mut self, now: u64, number: usize, index: usize, it: &Packet) {
        let rtt = self.flows[number].rtt;
        let subflow = &mut self.subflows[number];
        subflow.timeline.advance(now.saturating_sub(1));
        let sending = subflow.timeline.sendings.iter().skip(subflow.timeline.next_sending).find(|it| it.index == index);
        let sending = sending.copied().unwrap_or_default();
        subflow.sender.send(it, &sending, rtt);
        self.keep_flight(now, number);
        if it.dsn != UNKNOWN {
            self.sent.insert(it.dsn, it.dsn + it.length);
            self.nxt = self.nxt.max(it.dsn + it.length);
        }
        while self.stream.fresh.get(self.fresh).is_some_and(|fresh| fresh.at <= now) {
            self.fresh += 1;
        }
    }

    fn hears(&mut self, number: usize, it: &Packet) {
        self.asked -= it.length;
        let subflow = &mut self.subflows[number];
        subflow.sender.hear(it);
        if it.ack != UNKNOWN && !it.is(Flags::SYN) {
            subflow.edge = it.ack.saturating_add(it.window);
        }
        if it.data_ack == UNKNOWN && it.ack <= 1 {
            // SYN/ACK and third ACK have no DSS, and their window is that of the connection.
            self.edge = self.edge.max(self.acked.saturating_add(it.window));
        }
        if it.data_ack != UNKNOWN {
            self.acked = self.acked.max(it.data_ack);
            self.sent.insert(self.sent.edge, it.data_ack.min(self.nxt));
            self.edge = self.edge.max(it.data_ack.saturating_add(it.window));
            self.last_window = it.window;
            self.widest = self.widest.max(it.window);
        }
    }

    /// Takes down what is in flight on a subflow, if that is wanted.
    fn keep_flight(&mut self, at: u64, subflow: usize) {
        let Some(flight) = &mut self.flight else { return };
        let Subflow { sender, kept, .. } = &mut self.subflows[subflow];
        let size = |bytes: i64| bytes.max(0).unsigned_abs();
        let (in_flight, window) = (size(sender.flight()), size(sender.window));
        if kept.replace((in_flight, window)) != Some((in_flight, window)) {
            flight.push(Flight { at, subflow, in_flight, window });
        }
    }

    /// Fills in the state as it is now, until the next event.
    fn look(&mut self, now: u64) {
        let at = Instant::from_nanos(now);
        let emptied = self.fresh > 0 && self.stream.fresh[self.fresh - 1].empties;
        let full = self.fresh > 0 && self.stream.fresh[self.fresh - 1].full;
        while self.stream.pieces.get(self.piece + 1).is_some_and(|piece| piece.at <= now) {
            self.piece += 1;
        }
        let piece = self.stream.pieces[self.piece];
        let wanted = if piece.at <= now { piece.end } else { self.stream.begin };
        let base = self.stream.begin;
        let position = |dsn: i64| (dsn - base).max(0).unsigned_abs();
        self.state.at = at;
        self.state.wanted = position(wanted);
        self.state.read = position(self.arrived.edge);
        self.state.written = if full { position(self.nxt) } else { position(wanted) };
        self.state.asked = self.asked.max(0).unsigned_abs();
        let waiting = !emptied && (self.nxt < wanted || self.fresh > 0);
        // A scheduler may leave bytes out, and send others first.
        let left_out = self.sent.missing();
        let waiting = waiting || left_out > 0;
        let unsent = if waiting { (self.stream.end - self.nxt + left_out).max(1) } else { 0 };
        if !waiting {
            self.subflows.iter_mut().for_each(|subflow| subflow.sender.starved = true);
        }
        let any = self.subflows.iter().any(|subflow| subflow.established);
        if any && self.open.is_none() {
            self.open = Some(now);
        }
        let mut sender = self.state.sender.take().unwrap_or_default();
        sender.open = any;
        sender.unsent = unsent.max(0).unsigned_abs();
        sender.sendable = unsent.min((self.edge - self.nxt).max(0) + left_out).max(0).unsigned_abs();
        sender.outstanding = (self.nxt - self.acked).max(0).unsigned_abs();
        self.state.sender = Some(sender);
        let mut receiver = self.state.receiver.take().unwrap_or_default();
        receiver.held = u64::from(self.arrived.holds());
        // A window that shrinks while all has come: the application does not read.
        let unread =
            !self.arrived.holds() && self.last_window * 4 < self.widest && self.edge - self.nxt < self.widest / 4;
        receiver.unread = u64::from(unread && self.arrived.edge > self.acked - 1);
        self.state.receiver = Some(receiver);
        self.state.missing_on = self.stream.carrier(self.arrived.edge, now).map(|flow| self.flows[flow].path);
        self.paths(now);
    }

    fn paths(&mut self, now: u64) {
        let Watch { flows, subflows, state, traffic, .. } = self;
        for (path, traffic) in state.paths.iter_mut().zip(traffic) {
            *path = anabranch_sim::PathInfo::default();
            let is_down = traffic.down.iter().any(|(from, to)| (*from..*to).contains(&now));
            if !is_down {
                path.rate = Rate::from_bps((traffic.link.rate as u64).max(1));
            }
            while traffic.link.busy.get(traffic.next).is_some_and(|(_, to)| *to <= now) {
                traffic.next += 1;
            }
            let busy = traffic.link.busy.get(traffic.next).filter(|(from, _)| *from <= now);
            path.busy_until = busy.map(|(_, to)| Instant::from_nanos(*to));
        }
        let regular = subflows.iter().any(|it| it.established && !it.gone && !it.backup);
        for (number, subflow) in subflows.iter_mut().enumerate() {
            subflow.timeline.advance(now);
            let flow = &flows[number];
            let path = &mut state.paths[flow.path];
            path.timeouts += subflow.sender.timeouts;
            path.heard = path.heard.max(Instant::from_nanos(subflow.sender.heard));
            if !subflow.begun || subflow.gone {
                continue;
            }
            path.mss = path.mss.max(subflow.sender.mss.max(1).unsigned_abs());
            let wait = match () {
                () if !subflow.established => Wait::Handshake,
                () if subflow.backup && regular => Wait::SetAside,
                () => wait(subflow, now, flow.rtt),
            };
            path.wait = path.wait.max(Some(wait));
        }
    }
}

/// Returns the obstacle to new data on a subflow, if data is there and its link idles.
fn wait(subflow: &Subflow, now: u64, rtt: u64) -> Wait {
    let Subflow { sender, timeline, edge, .. } = subflow;
    if let Phase::Loss(_) = sender.phase {
        return Wait::Timeout;
    }
    let flight = sender.flight();
    let full = if sender.grows && !sender.recovers() { Wait::SlowStart } else { Wait::CongestionWindow };
    let is_full = || if flight > 0 && flight + sender.mss > sender.window { full } else { Wait::Room };
    if sender.nxt >= *edge {
        return Wait::PeerWindow;
    }
    let Some(next) = timeline.upcoming() else { return is_full() };
    let idle = timeline.next_idle() < next.at;
    // Every window has room for a segment where nothing is in flight; but times at a sender that was not captured are
    // as rough as the half of a round trip.
    let empty = flight == 0 && (next.by_other || !timeline.seen && next.at.saturating_sub(now) > rtt / 2);
    match () {
        () if empty => Wait::Room,
        () if next.by_own && !idle => full,
        () if idle && sender.recovers() => full,
        () if idle => is_full(),
        () if next.by_other => is_full(),
        () if next.at.saturating_sub(now) > LONGEST_PAUSE => is_full(),
        () => Wait::Pacing,
    }
}

/// Pacing holds a segment back for a part of a round trip.
const LONGEST_PAUSE: u64 = 200_000_000;
