//! Marks of a subflow's packets, in both directions.

use super::counters::{Received, Reported};
use super::{EcnRule, Feedback};
use anabranch_units::Ecn;
use anabranch_wire::{Flags, Segment, option_room};

/// Knowledge of two ends of a subflow about the marks of their packets.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Marks {
    /// Feedback that they agreed on.
    feedback: Feedback,
    /// ECN field of the peer's SYN or SYN/ACK, which the answer to it tells (RFC 9768 Tables 2 and 3).
    of_syn: Ecn,
    /// Our packets are not ECN-capable: something on the path changes ECN fields, or the peer may not know what was
    /// agreed on (RFC 9768 §3.1.5, §3.2.2.3).
    incapable: bool,
    /// The peer's reports mean nothing: something on the path wipes them out (RFC 9768 §3.2.2.1, §3.2.2.4).
    deaf: bool,
    /// A packet of ours that was not ECN-capable came unmarked.
    spared: bool,
    /// Round trips in which the window fell for marks of packets that were not ECN-capable.
    falls: u32,
    /// A SYN/ACK came marked, which counts once.
    syn_ack_marked: bool,
    /// The peer's SYN came again after our answer to it.
    syn_again: bool,
    /// The segment that came last had a timestamp later than all before.
    pub(crate) newer: bool,
    /// A segment after the handshake has told its ACE field.
    told_once: bool,
    /// Our packets that the peer reports as marked, modulo 8 (s.cep of RFC 9768, less its first value).
    reported: u8,
    /// Our bytes as the peer reports them by ECN field.
    reported_bytes: Reported,
    /// Marks told since the peer's last option.
    since_option: Told,
    /// Marked bytes of an option that were more than its ACK delivered.
    owed: u64,
    /// An option told marked bytes, and since the one before no packet was told.
    unexplained: bool,
    /// Segments that an ACK delivers on average, in 1/64; zero before the first.
    acked_at_once: u64,
    /// Offset whose acknowledgment ends the round trip in which the window fell for a mark.
    round_ends: Option<u64>,
    /// The window fell, and the next new data says so (CWR).
    slowed: bool,
    /// The peer's packets that came marked (r.cep, less its first value).
    received: u64,
    /// The peer's bytes by ECN field.
    received_bytes: Received,
    /// Marked packets that came since our last segment.
    untold: u64,
    /// ECN field of the latest packet.
    latest: Ecn,
    /// A mark is echoed until the peer says that it has slowed down (classic feedback).
    echoing: bool,
    /// A classic echo tells of the latest packets alone (RFC 8257 §3.2).
    precise: bool,
}

/// Consequences of an arriving segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Arrived {
    /// Packets that came marked.
    pub(crate) marked: u64,
    /// The peer should hear of it at once.
    pub(crate) at_once: bool,
    /// The peer's window may be small by now, so that ACKs should not be delayed.
    pub(crate) quick: bool,
}

/// Report of the peer with a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Told {
    /// Packets newly reported as marked; of classic feedback one for each echo.
    pub(crate) packets: u64,
    /// Bytes among those that the segment delivers which were marked.
    pub(crate) bytes: u64,
}

/// SYNs or SYN/ACKs that ask for ECN or agree to it, before one that does not.
const ATTEMPTS: u32 = 2;
/// First value of the counter of marked packets (RFC 9768 §3.2.1).
const FIRST: u64 = 5;
/// The ACE field counts modulo this.
const MODULUS: u64 = 8;
/// A peer whose ACKs deliver more segments than this on average merges what it receives: that the counter has not gone
/// around is likelier than that it has (Linux).
const MERGED: u64 = 4;
/// Something on the path marks all packets, ECN-capable or not, if the window fell for marks in so many round trips and
/// no packet came unmarked (RFC 9768 §3.2.2.3: three or four).
const FALLS: u32 = 3;
/// Number of ACKs over which segments for each ACK are averaged (Linux).
const WEIGHT: u64 = 64;

impl Marks {
    /// Marks of a subflow with this feedback, whose peer's SYN came with this field.
    pub(crate) fn agreed(feedback: Feedback, of_syn: Ecn) -> Self {
        Marks { feedback, of_syn, latest: of_syn, ..Marks::default() }
    }

    /// The feedback agreed on.
    pub(crate) fn feedback(&self) -> Feedback {
        self.feedback
    }

    /// Flags of an ordinary segment that say nothing but how many packets came marked.
    pub(crate) fn counting_flags(&self) -> Flags {
        if self.feedback == Feedback::Accurate { Flags::ECE.with(Flags::CWR) } else { Flags::default() }
    }

    /// Adds what a SYN says that is repeated so often: boxes may drop what asks for ECN. It asks for accurate feedback
    /// twice (RFC 9768 §3.1.4.1), for the classic one once (Linux).
    pub(crate) fn ask(rule: EcnRule, retries: u32, syn: &mut Segment) {
        if retries == 0 || (rule.asks == Feedback::Accurate && retries < ATTEMPTS) {
            syn.set_ace(rule.of_syn());
        }
    }

    /// Adds what a SYN/ACK says that is repeated so often; from the third on nothing (Linux).
    pub(crate) fn answer(&self, retries: u32, syn_ack: &mut Segment) {
        match self.feedback {
            _ if retries >= ATTEMPTS => {}
            Feedback::Off => {}
            Feedback::Classic => syn_ack.set_ace(0b001),
            Feedback::Accurate => syn_ack.set_ace(reflected(self.of_syn)),
        }
    }

    /// Begins with what `syn`, the peer's SYN or SYN/ACK, agrees to. `precise` is true if a classic echo is to tell of
    /// the latest packets alone, as congestion control wants it; `crossed`, if ours is on its way (RFC 9293 §3.5).
    pub(crate) fn take_syn(&mut self, rule: EcnRule, precise: bool, crossed: bool, syn: &Segment) {
        let answer = syn.flags.has(Flags::ACK);
        // SYNs that cross agree to no more than either asks for.
        let rule = if crossed { EcnRule { accepts: rule.accepts.min(rule.asks), ..rule } } else { rule };
        let feedback = if answer { rule.on_syn_ack(syn) } else { rule.on_syn(syn) };
        *self = Marks { precise, ..Marks::agreed(feedback, syn.ip.ecn) };
        if answer && feedback == Feedback::Accurate {
            // Our SYN was not ECN-capable.
            self.incapable = !matches!(syn.ace(), 0b010 | 0b101);
            self.note_syn_ack(syn);
            self.reported_bytes.take(&syn.options);
        }
    }

    /// The peer's SYN/ACK came, maybe once more: our answer tells how this one came (RFC 9768 §3.1.5), and the first
    /// that is marked counts (§3.2.2.2).
    pub(crate) fn note_syn_ack(&mut self, syn_ack: &Segment) {
        self.of_syn = syn_ack.ip.ecn;
        let marked = syn_ack.ip.ecn == Ecn::Ce && self.feedback == Feedback::Accurate;
        self.received += u64::from(marked && !std::mem::replace(&mut self.syn_ack_marked, marked));
    }

    /// Takes the answer to our SYN/ACK, which was not ECN-capable (RFC 9768 Table 4), and repeated so often. From the
    /// third on it agreed to nothing, so that the peer may not know what was agreed on (§3.1.5); marks of its packets
    /// are told all the same.
    pub(crate) fn take_last_ack(&mut self, retries: u32, ack: &Segment) {
        self.incapable |= retries >= ATTEMPTS && self.feedback != Feedback::Off;
        if ack.flags.has(Flags::SYN) {
            // SYNs crossed: the flags of a SYN/ACK are no report (RFC 9768 §3.2.2).
            self.incapable |= self.feedback == Feedback::Accurate && ack.ace() == 0;
        } else if self.feedback == Feedback::Accurate && ack.payload.is_empty() && !ack.options.has_sack() {
            match ack.ace() {
                0b000 => (self.incapable, self.deaf) = (true, true),
                // Of no meaning, and legal.
                0b001 | 0b101 | 0b111 => {}
                told => {
                    self.incapable |= told != reflected(Ecn::NotEct);
                    self.reported = u8::from(told == reflected(Ecn::Ce));
                }
            }
        }
    }

    /// The peer repeats its SYN: the answer tells how this one came. One that asks for nothing shows that the peer may
    /// not know what was agreed on (RFC 9768 §3.1.5).
    pub(crate) fn take_syn_again(&mut self, syn: &Segment) {
        (self.of_syn, self.syn_again) = (syn.ip.ecn, true);
        self.incapable |= self.feedback == Feedback::Accurate && syn.ace() == 0;
    }

    /// Adds the byte counters to a SYN/ACK that is repeated so often, unless one has left before: something on the path
    /// may drop what has them (RFC 9768 §3.2.3.2.2).
    pub(crate) fn answer_bytes(&mut self, retries: u32, syn_ack: &mut Segment) {
        if retries == 0 && !self.syn_again {
            self.tell_bytes(true, u64::MAX, syn_ack);
        }
    }

    /// Adds what each segment of an open subflow says; the last of a handshake says how the SYN/ACK came.
    pub(crate) fn say(&mut self, ends_handshake: bool, segment: &mut Segment) {
        self.untold = 0;
        match self.feedback {
            Feedback::Off => {}
            Feedback::Classic if self.echoing => segment.flags = segment.flags.with(Flags::ECE),
            Feedback::Classic => {}
            Feedback::Accurate if ends_handshake => segment.set_ace(reflected(self.of_syn)),
            Feedback::Accurate => segment.set_ace(((self.received + FIRST) % MODULUS) as u8),
        }
    }

    /// ECN field of a packet; of classic feedback only of new `data`. `wanted` is what congestion control asks for: the
    /// marks of L4S take accurate feedback (RFC 9331 §4.2).
    pub(crate) fn field(&self, data: bool, wanted: Ecn) -> Ecn {
        match self.feedback {
            _ if self.incapable => Ecn::NotEct,
            Feedback::Classic if data && wanted != Ecn::Ect1 => wanted,
            Feedback::Accurate => wanted,
            _ => Ecn::NotEct,
        }
    }

    /// Tells whether the next new data is to say CWR, which it says once.
    pub(crate) fn take_slowed(&mut self) -> bool {
        std::mem::take(&mut self.slowed) && self.feedback == Feedback::Classic
    }

    /// Notes how a segment has come that may be several packets in one, of at most `mss` bytes each.
    pub(crate) fn note(&mut self, segment: &Segment, mss: u64) -> Arrived {
        let (field, length) = (segment.ip.ecn, segment.payload.len() as u64);
        let (marked, has_data) = (field == Ecn::Ce, length > 0);
        let packets = if marked { length.div_ceil(mss.max(1)).max(1) } else { 0 };
        let changed = std::mem::replace(&mut self.latest, field) != field;
        match self.feedback {
            Feedback::Off => Arrived::default(),
            Feedback::Accurate => {
                self.received += packets;
                self.untold += packets;
                self.received_bytes.count(field, length);
                // ACKs of ACKs at most for each third mark (RFC 9768 §3.2.2.5.1).
                let many = self.untold >= if has_data { 2 } else { 3 };
                Arrived { marked: packets, at_once: (changed && has_data) || many, quick: false }
            }
            Feedback::Classic if !has_data => Arrived::default(),
            Feedback::Classic if self.precise => {
                let at_once = std::mem::replace(&mut self.echoing, marked) != marked;
                Arrived { marked: packets, at_once, quick: false }
            }
            Feedback::Classic => {
                // CWR first (RFC 3168 Erratum 3639).
                let slowed = segment.flags.has(Flags::CWR);
                let echoed = self.echoing && !slowed;
                self.echoing = echoed || marked;
                Arrived { marked: packets, at_once: slowed, quick: marked && !echoed }
            }
        }
    }

    /// Takes what a segment reports that acknowledges offset `ack`, where all before `una` was acknowledged, and newly
    /// delivers so many segments and bytes of ours. A repeated or overtaken one says nothing new, unless its timestamp
    /// is the latest (Linux, RFC 9768 §3.2.2.5.2).
    pub(crate) fn take(&mut self, segment: &Segment, ack: u64, una: u64, (segments, bytes): (u64, u64)) -> Told {
        match self.feedback {
            Feedback::Off => Told::default(),
            // A classic echo does not say how many were marked, and counts for all (RFC 8257 §3.3).
            Feedback::Classic if ack >= una && segment.flags.has(Flags::ECE) => Told { packets: 1, bytes },
            Feedback::Classic => Told::default(),
            // Until our first data is acknowledged it may be a repetition of the handshake's last ACK, which has no
            // SACK blocks.
            Feedback::Accurate if ack <= 1 && !segment.options.has_sack() => Told::default(),
            Feedback::Accurate if segments == 0 && !self.newer => Told::default(),
            Feedback::Accurate => {
                let ace = segment.ace();
                let marked = self.reported_bytes.take(&segment.options);
                // Of three marked packets the first report is zero as well: marked bytes tell the two apart.
                let first = !std::mem::replace(&mut self.told_once, true);
                if first && ace == 0 && marked.is_none_or(|marked| marked == 0) {
                    (self.incapable, self.deaf) = (true, true);
                }
                self.deaf |= self.falls >= FALLS && !self.spared;
                if self.deaf {
                    return Told::default();
                }
                let expected = (u64::from(self.reported) + FIRST) % MODULUS;
                let least = (u64::from(ace) + MODULUS - expected) % MODULUS;
                // What earlier ACKs without an option told is told already; what was too much for one comes later.
                let newly = marked.map(|marked| (marked + self.owed).saturating_sub(self.since_option.bytes));
                let packets = self.packets(least, (segments, bytes), newly);
                self.reported = ((u64::from(self.reported) + packets) % MODULUS) as u8;
                // Packets without data have no bytes.
                let share = (bytes * packets.min(segments)).checked_div(segments).unwrap_or(0);
                let told = Told { packets, bytes: newly.unwrap_or(share).min(bytes) };
                self.owed = newly.map_or(self.owed, |newly| newly - told.bytes);
                let certain = segments < MODULUS || marked.is_some();
                self.spared |= self.incapable && certain && packets < segments;
                // Where the counter may have gone around, a packet may have been marked.
                let since = &mut self.since_option;
                since.packets += packets + segments / MODULUS;
                since.bytes += told.bytes;
                if let Some(marked) = marked {
                    // Bytes were marked, and no packet was. Once, ACKs of ours that were marked as well may have had
                    // the counter go around; twice in a row, something changes what is reported
                    // (RFC 9768 §3.2.3.2.5).
                    let unexplained = marked > 0 && since.packets == 0;
                    self.incapable |= unexplained && self.unexplained;
                    self.unexplained = since.packets == 0 && (unexplained || self.unexplained);
                    *since = Told::default();
                }
                told
            }
        }
    }

    /// Packets newly marked: `least`, or some rounds of the counter more. Marked bytes decide how many, where the peer
    /// tells them (RFC 9768 §3.2.3.2.5). Otherwise it is as many as fit, as if all were marked (§3.2.2.5.2), unless
    /// another case is likelier: the peer merges what it receives, or our packets are not ECN-capable.
    fn packets(&mut self, least: u64, (segments, bytes): (u64, u64), marked: Option<u64>) -> u64 {
        let before = if self.acked_at_once == 0 { segments * WEIGHT } else { self.acked_at_once };
        self.acked_at_once = if segments > 0 { (before * (WEIGHT - 1)) / WEIGHT + segments } else { before };
        if segments < MODULUS {
            return least;
        }
        let most = segments - (segments - least) % MODULUS;
        match marked {
            Some(marked) => {
                let estimate = (marked.min(bytes) * segments).div_ceil(bytes.max(1));
                let rounds = (estimate.saturating_sub(least) + MODULUS / 2) / MODULUS;
                (least + rounds * MODULUS).min(most)
            }
            None if self.incapable || self.acked_at_once > MERGED * WEIGHT => least,
            None => most,
        }
    }

    /// Adds the byte counters to a segment that acknowledges, in at most `room` bytes, if they have changed or are to
    /// show whether the option gets through.
    pub(crate) fn tell_bytes(&mut self, probes: bool, room: u64, segment: &mut Segment) {
        if self.feedback == Feedback::Accurate {
            let room = room.min(option_room(&segment.options));
            self.received_bytes.tell(probes, room, &mut segment.options);
        }
    }

    /// Notes that our first data leaves, which ends at offset `end`.
    pub(crate) fn on_first_data(&mut self, end: u64) {
        self.received_bytes.on_first_data(end);
    }

    /// Notes that data came; `again` is its begin if it was there before.
    #[inline]
    pub(crate) fn on_data(&mut self, again: Option<u64>) {
        if self.feedback == Feedback::Accurate {
            self.received_bytes.on_data(again);
        }
    }

    /// Notes that nothing beyond offset `una` was acknowledged in time. The window falls for it as for any loss.
    pub(crate) fn on_timeout(&mut self, una: u64) {
        self.received_bytes.on_timeout(una);
        self.on_loss();
    }

    /// Tells whether the window has fallen for a mark, and its round trip is not over yet.
    pub(crate) fn is_answered(&self) -> bool {
        self.round_ends.is_some()
    }

    /// A mark was answered when all before offset `nxt` had been sent.
    pub(crate) fn on_answered(&mut self, nxt: u64) {
        (self.round_ends, self.slowed) = (Some(nxt), true);
        self.falls = self.falls.saturating_add(u32::from(self.incapable));
    }

    /// All before offset `una` is acknowledged: tells whether that ends the round trip of a mark.
    pub(crate) fn is_over(&self, una: u64) -> bool {
        self.round_ends.is_some_and(|end| una > end)
    }

    /// The round trip of a mark, or the repair of losses, is over: the next mark counts.
    pub(crate) fn on_round_over(&mut self) {
        self.round_ends = None;
    }

    /// The window fell for a loss, which answers marks as well; its repair says when the next one counts.
    pub(crate) fn on_loss(&mut self) {
        (self.round_ends, self.slowed) = (None, true);
    }

    /// The fall for a loss was taken back; one for a mark stays.
    pub(crate) fn on_undo(&mut self) {
        self.slowed &= self.is_answered();
    }
}

/// ACE field that tells how a SYN or SYN/ACK came (RFC 9768 Tables 2 and 3).
fn reflected(ecn: Ecn) -> u8 {
    match ecn {
        Ecn::NotEct => 0b010,
        Ecn::Ect1 => 0b011,
        Ecn::Ect0 => 0b100,
        Ecn::Ce => 0b110,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_units::SubflowSeq;
    use anabranch_wire::{FlowKey, Payload};

    fn segment(flags: Flags, ace: u8, ecn: Ecn, length: usize) -> Segment {
        let flow = FlowKey::new(([10, 0, 0, 1], 1).into(), ([10, 1, 0, 1], 2).into());
        let mut segment = Segment::new(flow, flags, SubflowSeq::new(1), SubflowSeq::new(2));
        segment.set_ace(ace);
        segment.ip.ecn = ecn;
        segment.payload = Payload::from(vec![0; length]);
        segment
    }

    fn agreed(rule: EcnRule, ace: u8) -> Marks {
        let mut marks = Marks::default();
        marks.take_syn(rule, false, false, &segment(Flags::SYN, ace, Ecn::NotEct, 0));
        marks
    }

    /// RFC 3168 §6.1: an echo on each ACK until CWR, which with a mark on it begins the next.
    #[test]
    fn a_classic_mark_is_echoed_until_the_sender_has_slowed_down() {
        let mut marks = agreed(EcnRule::CLASSIC, 0b011);
        let echo = |marks: &mut Marks| {
            let mut ack = segment(Flags::ACK, 0, Ecn::NotEct, 0);
            marks.say(false, &mut ack);
            ack.flags.has(Flags::ECE)
        };
        assert!(!echo(&mut marks));
        let first = marks.note(&segment(Flags::ACK, 0, Ecn::Ce, 1000), 1000);
        assert_eq!(first, Arrived { marked: 1, at_once: false, quick: true });
        marks.note(&segment(Flags::ACK, 0, Ecn::Ect0, 1000), 1000);
        assert!(echo(&mut marks));
        marks.note(&segment(Flags::ACK.with(Flags::CWR), 0b010, Ecn::Ce, 1000), 1000);
        assert!(echo(&mut marks), "CWR counts before the mark");
        let last = marks.note(&segment(Flags::ACK.with(Flags::CWR), 0b010, Ecn::Ect0, 1000), 1000);
        assert!(last.at_once && !echo(&mut marks));
    }

    /// RFC 8257 §3.2.
    #[test]
    fn a_precise_echo_tells_of_the_latest_packets() {
        let mut marks = agreed(EcnRule::CLASSIC, 0b011);
        marks.precise = true;
        let mut arrive = |ecn| marks.note(&segment(Flags::ACK, 0, ecn, 1000), 1000).at_once;
        let fields = [Ecn::Ect0, Ecn::Ce, Ecn::Ce, Ecn::Ect0, Ecn::Ect0];
        assert_eq!(fields.map(&mut arrive), [false, true, false, true, false]);
    }

    #[test]
    fn accurate_feedback_counts_packets_of_a_merged_segment() {
        let mut marks = agreed(EcnRule::ACCURATE, 0b111);
        let told = |marks: &mut Marks| {
            let mut ack = segment(Flags::ACK, 0, Ecn::NotEct, 0);
            marks.say(false, &mut ack);
            ack.ace()
        };
        assert_eq!(told(&mut marks), 5);
        let arrived = marks.note(&segment(Flags::ACK, 5, Ecn::Ce, 3500), 1000);
        assert_eq!((arrived.marked, arrived.at_once, told(&mut marks)), (4, true, 1));
        assert_eq!(marks.note(&segment(Flags::ACK, 5, Ecn::Ce, 0), 1000).marked, 1, "a pure ACK counts");
    }

    /// An ACK of fewer than eight segments says exactly how many were marked; of more, the most that fits.
    #[test]
    fn what_the_counter_leaves_open_counts_as_marked() {
        let mut marks = agreed(EcnRule::ACCURATE, 0b111);
        let mut told =
            |ace, segments| marks.take(&segment(Flags::ACK, ace, Ecn::NotEct, 0), 2, 2, (segments, 0)).packets;
        assert_eq!(told(5, 1), 0);
        assert_eq!(told(0, 4), 3);
        assert_eq!(told(0, 1), 0);
        assert_eq!(told(1, 20), 17);
        assert_eq!(told(1, 7), 0);
        assert_eq!(told(1, 8), 8);
        assert_eq!(told(3, 0), 0, "nothing new");
        marks.newer = true;
        let more = marks.take(&segment(Flags::ACK, 3, Ecn::NotEct, 0), 2, 2, (0, 0));
        assert_eq!(more, Told { packets: 2, bytes: 0 }, "packets without data have no bytes");
    }

    /// A peer whose ACKs deliver more than four segments on average has marked the fewest that fit (Linux).
    #[test]
    fn a_peer_that_merges_what_it_receives_is_believed() {
        let mut marks = agreed(EcnRule::ACCURATE, 0b111);
        let mut told =
            |ace, segments| marks.take(&segment(Flags::ACK, ace, Ecn::NotEct, 0), 2, 2, (segments, 0)).packets;
        assert_eq!(told(6, 20), 1);
        assert_eq!(told(6, 8), 0);
        for _ in 0..200 {
            assert_eq!(told(6, 2), 0);
        }
        assert_eq!(told(6, 8), 8, "it merges no more");
    }

    /// Bytes that were marked say how often the counter has gone around.
    #[test]
    fn marked_bytes_rule_rounds_of_the_counter_out() {
        let mut marks = agreed(EcnRule::ACCURATE, 0b111);
        let mut told = |ace, ce: u64, segments: u64| {
            let mut ack = segment(Flags::ACK, ace, Ecn::NotEct, 0);
            ack.options.push_byte_counters(Ecn::Ect0, [1, ce]);
            marks.take(&ack, 2, 2, (segments, segments * 1000))
        };
        assert_eq!(told(5, 0, 1), Told::default());
        assert_eq!(told(5, 0, 20), Told::default());
        assert_eq!(told(1, 12_000, 20), Told { packets: 12, bytes: 12_000 });
        assert_eq!(told(1, 20_000, 20), Told { packets: 8, bytes: 8000 });
        assert_eq!(told(2, 20_000, 20), Told { packets: 1, bytes: 0 }, "an ACK of ours");
        assert_eq!(told(2, 40_000, 20), Told { packets: 16, bytes: 20_000 });
        assert_eq!(told(4, 42_000, 1), Told { packets: 2, bytes: 1000 }, "more than it delivers");
        assert_eq!(told(4, 42_000, 1), Told { packets: 0, bytes: 1000 }, "the rest");
        let alone = marks.take(&segment(Flags::ACK, 6, Ecn::NotEct, 0), 2, 2, (4, 4000));
        assert_eq!(alone, Told { packets: 2, bytes: 2000 }, "an ACK without an option");
        let mut told = |ace, ce: u64| {
            let mut ack = segment(Flags::ACK, ace, Ecn::NotEct, 0);
            ack.options.push_byte_counters(Ecn::Ect0, [1, ce]);
            let told = marks.take(&ack, 2, 2, (1, 1000));
            (told, marks.field(true, Ecn::Ect0))
        };
        assert_eq!(told(6, 44_000), (Told::default(), Ecn::Ect0), "nothing new in the next option");
        let alone = Told { packets: 0, bytes: 1000 };
        assert_eq!(told(6, 45_000), (alone, Ecn::Ect0), "bytes without a packet: our ACKs may have been marked");
        assert_eq!(told(7, 46_000), (Told { packets: 1, bytes: 1000 }, Ecn::Ect0));
        assert_eq!(told(7, 47_000), (alone, Ecn::Ect0));
        assert_eq!(told(7, 47_000), (Told::default(), Ecn::Ect0), "nothing new");
        assert_eq!(told(7, 48_000), (alone, Ecn::NotEct), "twice in a row");
    }

    /// Bytes that were marked, of those that an ACK delivers: by accurate feedback the share of its packets, by a
    /// classic echo all (RFC 8257 §3.3). An ACK that another has overtaken tells an echo no more.
    #[test]
    fn an_ack_says_how_many_bytes_were_marked() {
        let mut accurate = agreed(EcnRule::ACCURATE, 0b111);
        let told = accurate.take(&segment(Flags::ACK, 6, Ecn::NotEct, 0), 2, 1, (4, 3500));
        assert_eq!(told, Told { packets: 1, bytes: 875 });
        let told = accurate.take(&segment(Flags::ACK, 1, Ecn::NotEct, 0), 2, 1, (2, 2000));
        assert_eq!(told, Told { packets: 3, bytes: 2000 }, "our ACKs are packets as well");
        let mut classic = agreed(EcnRule::CLASSIC, 0b011);
        let echo = segment(Flags::ACK.with(Flags::ECE), 0b001, Ecn::NotEct, 0);
        let no_echo = segment(Flags::ACK, 0, Ecn::NotEct, 0);
        assert_eq!(classic.take(&echo, 2000, 1000, (4, 3500)), Told { packets: 1, bytes: 3500 });
        assert_eq!(classic.take(&echo, 2000, 2000, (0, 0)), Told { packets: 1, bytes: 0 });
        assert_eq!(classic.take(&echo, 1999, 2000, (0, 0)), Told::default());
        assert_eq!(classic.take(&no_echo, 3000, 2000, (1, 1000)), Told::default());
    }

    /// A mark that begins or ends a row of them is told at once, and so is each second marked packet with data and each
    /// third without (RFC 9768 §3.2.2.5.1).
    #[test]
    fn accurate_feedback_comes_before_the_counter_can_wrap() {
        for (length, expected) in [(1000, [true, true, true, true, true]), (0, [false, false, true, true, true])] {
            let mut marks = agreed(EcnRule::ACCURATE, 0b111);
            let at_once = [(); 5].map(|()| marks.note(&segment(Flags::ACK, 5, Ecn::Ce, length), 1000).at_once);
            assert_eq!(at_once, expected, "{length} bytes, and nothing is said meanwhile");
        }
        let mut marks = agreed(EcnRule::ACCURATE, 0b111);
        let mut spoken = |ecn| {
            let at_once = marks.note(&segment(Flags::ACK, 5, ecn, 1000), 1000).at_once;
            if at_once {
                marks.say(false, &mut segment(Flags::ACK, 0, Ecn::NotEct, 0));
            }
            at_once
        };
        let fields = [Ecn::Ect0, Ecn::Ce, Ecn::Ce, Ecn::Ce, Ecn::Ce, Ecn::Ect0, Ecn::Ect0];
        assert_eq!(fields.map(&mut spoken), [true, true, false, true, false, true, false]);
    }

    /// Marks of packets that are not ECN-capable count at first, and no more if all are marked (RFC 9768 §3.2.2.3).
    #[test]
    fn a_path_that_marks_everything_is_not_believed() {
        for spared in [false, true] {
            let mut marks = agreed(EcnRule::ACCURATE, 0b111);
            marks.take_last_ack(0, &segment(Flags::ACK, 0b110, Ecn::NotEct, 0));
            let mut told = |ace, segments| {
                let told = marks.take(&segment(Flags::ACK, ace, Ecn::NotEct, 0), 2, 2, (segments, segments * 1000));
                if told.packets > 0 {
                    marks.on_answered(2);
                }
                told.packets
            };
            let expected = if spared { [1, 2, 1, 2] } else { [1, 2, 1, 0] };
            let segments = if spared { 2 } else { 1 };
            assert_eq!([told(7, segments), told(1, 2), told(2, 1), told(4, 2)], expected, "{spared}");
        }
    }

    /// Mangled fields leave packets that are not ECN-capable any more, and reports that mean nothing (RFC 9768 §3.1.5,
    /// §3.2.2.1, §3.2.2.3 and §3.2.2.4).
    #[test]
    fn mangled_fields_end_it() {
        for (rule, syn_ack, capable) in [
            (EcnRule::ACCURATE, 0b010, Ecn::Ect0),
            (EcnRule::ACCURATE, 0b100, Ecn::NotEct),
            (EcnRule::ACCURATE, 0b110, Ecn::NotEct),
            (EcnRule::CLASSIC, 0b001, Ecn::Ect0),
        ] {
            let mut marks = Marks::default();
            marks.take_syn(rule, false, false, &segment(Flags::SYN.with(Flags::ACK), syn_ack, Ecn::NotEct, 0));
            assert_eq!(marks.field(true, Ecn::Ect0), capable, "{syn_ack:03b}");
        }
        // What the last ACK says, after how many repetitions; then our packets, and marks of a report of 7.
        for (last, retries, capable, marks_told) in [
            (0b010, 0, Ecn::Ect0, 2),
            (0b010, 2, Ecn::NotEct, 2),
            (0b000, 0, Ecn::NotEct, 0),
            (0b000, 2, Ecn::NotEct, 0),
            (0b100, 0, Ecn::NotEct, 2),
            (0b110, 0, Ecn::NotEct, 1),
            (0b101, 0, Ecn::Ect0, 2),
        ] {
            let mut marks = agreed(EcnRule::ACCURATE, 0b111);
            marks.take_last_ack(retries, &segment(Flags::ACK, last, Ecn::NotEct, 0));
            assert_eq!(marks.field(false, Ecn::Ect0), capable, "{last:03b}");
            let told = marks.take(&segment(Flags::ACK, 7, Ecn::NotEct, 0), 2, 2, (3, 3000));
            assert_eq!(told.packets, marks_told, "{last:03b}");
            marks.note(&segment(Flags::ACK, 5, Ecn::Ce, 1000), 1000);
            let mut ack = segment(Flags::ACK, 0, Ecn::NotEct, 0);
            marks.say(false, &mut ack);
            assert_eq!(ack.ace(), 6, "{last:03b}: the peer is told all the same");
        }
        // SYNs crossed, and a SYN/ACK answers ours: its flags are no report, and zeros show that the peer may not know.
        for (flags, capable) in [(0b110, Ecn::Ect0), (0b000, Ecn::NotEct)] {
            let mut marks = agreed(EcnRule::ACCURATE, 0b111);
            marks.take_last_ack(0, &segment(Flags::SYN.with(Flags::ACK), flags, Ecn::NotEct, 0));
            assert_eq!(marks.field(false, Ecn::Ect0), capable, "{flags:03b}");
            assert_eq!(marks.take(&segment(Flags::ACK, 7, Ecn::NotEct, 0), 2, 2, (3, 3000)).packets, 2, "{flags:03b}");
        }
        let mut marks = agreed(EcnRule::ACCURATE, 0b111);
        marks.take_syn_again(&segment(Flags::SYN, 0b111, Ecn::NotEct, 0));
        assert_eq!(marks.field(false, Ecn::Ect0), Ecn::Ect0);
        marks.take_syn_again(&segment(Flags::SYN, 0b000, Ecn::NotEct, 0));
        assert_eq!(marks.field(false, Ecn::Ect0), Ecn::NotEct, "it asks for nothing any more");
        let mut marks = agreed(EcnRule::ACCURATE, 0b111);
        assert_eq!(marks.field(false, Ecn::Ect1), Ecn::Ect1);
        let zeroed = marks.take(&segment(Flags::ACK, 0, Ecn::NotEct, 0), 2, 2, (3, 3000));
        assert_eq!(zeroed, Told::default(), "zeroed on the way");
        assert_eq!(marks.field(false, Ecn::Ect1), Ecn::NotEct);
        for (ce, packets, capable) in [(0, 0, Ecn::NotEct), (1000, 3, Ecn::Ect0)] {
            let mut marks = agreed(EcnRule::ACCURATE, 0b111);
            let mut ack = segment(Flags::ACK, 0, Ecn::NotEct, 0);
            ack.options.push_byte_counters(Ecn::Ect0, [1, ce]);
            assert_eq!(marks.take(&ack, 2, 2, (3, 3000)).packets, packets, "{ce} bytes");
            assert_eq!(marks.field(false, Ecn::Ect0), capable, "{ce} bytes");
        }
    }
}
