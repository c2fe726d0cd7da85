//! BBR version 3: a model of the path that also heeds loss.
//!
//! N. Cardwell, I. Swett, J. Beshay (eds.). *BBR Congestion Control.* draft-ietf-ccwg-bbr. Sections are cited by their
//! titles, since their numbers move; names are the draft's.
//!
//! ```text
//! bw        = min(max_bw, bw_shortterm)                      largest rate of two probing cycles; what losses suggest
//! pacing    = 0.99 · pacing_gain · bw
//! cwnd     <= cwnd_gain · bw · min_rtt + extra_acked, inflight_longterm, inflight_shortterm
//!
//!                    pacing_gain  cwnd_gain  until
//! startup            2.77         2          three rounds without 25 % more, or a round with 2 % of loss in six gaps
//! drain              0.5          2          no more than one BDP is in flight, or three rounds are over
//! probe-bw-down      0.9          2          no more than one BDP and 85 % of inflight_longterm is in flight
//! probe-bw-cruise    1            2          2 to 3 s, or as many rounds as a Reno flow would take (63 at most)
//! probe-bw-refill    1            2          a round
//! probe-bw-up        1.25         2.25       three rounds without 25 % more, or 2 % of loss
//! probe-rtt          1            0.5        200 ms and a round, when no RTT was as small for 5 s
//! ```
//!
//! A loss rate above 2 % while probing sets `inflight_longterm`, the most that ever seems safe; losses at other times
//! set `bw_shortterm` and `inflight_shortterm`, which the next probing forgets. A recovery or a timeout that proves
//! spurious is undone. Subflows are not coupled.
//!
//! Where we differ, or choose:
//! - "Time Scale for Bandwidth Probing": the two random numbers are a hash of the clock, the flow's serial number and a
//!   count of draws, so that runs repeat and flows still part.
//! - "Saving State Upon Loss Recovery": state is saved once in a recovery, as its text says. `NoteLoss()` would save
//!   again in each round with a loss, and after `HandleInflightTooHigh()`, and so forget what is to be undone.
//! - "Send Quantum": one segment below 1.2 Mbit/s and two above, since the engine never lets more leave back to back.
//! - `probe_rtt_min_stamp` begins with the connection; the draft does not say, and 0 would begin with ProbeRTT.
//! - `C.is_cwnd_limited` is judged at each ACK by the flight before it, without the leniency of slow start.
//! - `MarkConnectionAppLimited()` during ProbeRTT is kept here as a range of delivered bytes (`held_back.rs`).
//! - "Updating the Model Upon Packet Loss": a tail loss that a probe repaired counts as a loss in the round.
//!
//! The draft specifies no response to ECN, and so data is not ECN-capable. A mark would enter where a loss does:
//! [`Path::note_loss`] for the short-term model, and [`Path::handle_inflight_too_high`] while probing.

#[cfg(test)]
mod bottleneck;
mod control;
mod long_term;
mod loss;
mod min_rtt;
mod path;
mod phase;
mod probe_bw;
mod probe_wait;
mod startup;
#[cfg(test)]
mod tests;

use super::{Ack, Capabilities, CongestionControl, Entry, Flow, LostSegment, Model, ModelBased, PerFlow};
use anabranch_units::{Duration, Instant, Rate, Window};
use path::Path;
use phase::Phase;

/// Entry in the table of its kind.
pub const ENTRY: Entry = Entry::new(
    "bbr3",
    "version 3: paces at the measured delivery rate, bounded by what losses suggest; each subflow by itself",
    include_str!("mod.rs"),
    |_| CongestionControl::model_based(Bbr3::default()),
)
.paper("draft-ietf-ccwg-bbr")
.capabilities(|_| Capabilities { no_marks: true, ..Capabilities::default() });

/// BBR version 3 for every subflow by itself.
#[derive(Clone, Debug, Default)]
pub struct Bbr3 {
    paths: PerFlow<Path>,
}

impl ModelBased for Bbr3 {
    fn on_ack(&mut self, now: Instant, flow: &Flow, ack: &Ack) -> Window {
        Window::new(self.paths.of(flow).on_ack(now, flow, ack))
    }

    fn model(&self, flow: &Flow, srtt: Option<Duration>) -> Model {
        let path = self.paths.get(flow);
        let pacing = path.map(|path| path.pacing_rate).filter(|pacing| *pacing > 0.0);
        let pacing = pacing.unwrap_or_else(|| control::initial_pacing(flow, srtt));
        let bdp = path.and_then(Path::bdp).map(|bdp| Window::new(bdp).whole());
        Model { pacing: Rate::from_bps(((8.0 * pacing) as u64).max(1)), bdp }
    }

    fn on_lost(&mut self, now: Instant, flow: &Flow, lost: &LostSegment) {
        self.paths.of(flow).handle_lost_packet(now, flow, lost);
    }

    fn on_fast_retransmit(&mut self, _now: Instant, flow: &Flow) {
        self.paths.of(flow).enter_recovery(flow);
    }

    fn on_rto(&mut self, _now: Instant, flow: &Flow) {
        self.paths.of(flow).enter_recovery(flow);
    }

    /// A timeout within a recovery: what can be undone was saved at its beginning.
    fn on_rto_again(&mut self, _now: Instant, flow: &Flow) {
        self.paths.of(flow).enter_recovery(flow);
    }

    fn on_recovered(&mut self, _now: Instant, flow: &Flow) {
        self.paths.of(flow).leave_recovery();
    }

    fn on_spurious(&mut self, _now: Instant, flow: &Flow) {
        self.paths.of(flow).handle_spurious_loss_detection();
    }

    fn on_restart(&mut self, now: Instant, flow: &Flow) -> Option<Window> {
        self.paths.of(flow).handle_restart_from_idle(now, flow).map(Window::new)
    }

    fn phase(&self, flow: &Flow) -> Option<&'static str> {
        Some(self.paths.get(flow).map_or(Phase::Startup, |path| path.phase).name())
    }

    fn variables(&self, flow: &Flow) -> Vec<(&'static str, f64)> {
        self.paths.get(flow).map_or_else(|| Path::default().variables(), Path::variables)
    }
}
