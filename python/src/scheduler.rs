//! A scheduler of Python: what it sees, what it may answer, and how it is asked.

use crate::method::{Method, Object, fields, instant};
use anabranch_policy::scheduler::Scheduler;
use anabranch_policy::{Decision, Event, SubflowView, View};
use anabranch_units::{Bytes, Dsn, Instant, Seed, SubflowId};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// Asks an object of Python.
pub struct PyScheduler {
    decide: Method,
    /// `None` if its class does not want to know.
    observe: Option<Method>,
    seed: Option<Method>,
}

impl PyScheduler {
    /// Over this object.
    pub fn new(object: &Object<'_>) -> PyResult<Self> {
        Ok(PyScheduler {
            decide: object.method("decide")?,
            observe: object.own_method("observe")?,
            seed: object.own_method("seed")?,
        })
    }
}

impl Scheduler for PyScheduler {
    fn decide(&mut self, now: Instant, view: &View<'_>) -> Decision {
        self.decide.ask(Some(now), (now.as_secs_f64(), PyView::of(view)), decision)
    }

    fn observe(&mut self, now: Instant, event: &Event) {
        if let Some(observe) = &self.observe {
            observe.tell(now, (now.as_secs_f64(), PyEvent(*event)));
        }
    }

    fn seed(&mut self, seed: Seed) {
        if let Some(method) = &self.seed {
            method.ask(None, (seed.stream("python").next_u64(),), |_, _| Ok(()));
        }
    }
}

/// The answer of `decide`, checked.
fn decision(method: &Method, answer: &Bound<'_, PyAny>) -> PyResult<Decision> {
    if let Ok(subflow) = answer.cast::<PySubflow>() {
        return Ok(Decision::send(subflow.get().0.id));
    }
    if answer.is_none() {
        return Ok(Decision::WAIT);
    }
    if let Ok(decision) = answer.cast::<PyDecision>() {
        return Ok(decision.get().0);
    }
    if let Ok(id) = answer.extract::<u16>() {
        return Ok(Decision::send(SubflowId(id)));
    }
    Err(method.refuse(answer, "a subflow of the view, its id, None to wait, or anabranch.send, repeat or wait"))
}

/// State of the connection when a scheduler is asked.
#[pyclass(frozen, name = "View", module = "anabranch")]
#[derive(Clone)]
pub struct PyView {
    subflows: Vec<SubflowView>,
    unsent: Bytes,
    sendable: Bytes,
    window: Bytes,
    buffer: Bytes,
    data_una: Dsn,
    unsent_from: Dsn,
}

impl PyView {
    /// A copy that Python can keep.
    pub fn of(view: &View<'_>) -> Self {
        let View { subflows, unsent, sendable, window, buffer, data_una, unsent_from } = *view;
        PyView { subflows: subflows.to_vec(), unsent, sendable, window, buffer, data_una, unsent_from }
    }

    fn view(&self) -> View<'_> {
        let PyView { ref subflows, unsent, sendable, window, buffer, data_una, unsent_from } = *self;
        View { subflows, unsent, sendable, window, buffer, data_una, unsent_from }
    }
}

#[pymethods]
impl PyView {
    /// Usable subflows, ordered by id.
    #[getter]
    fn subflows<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.subflows.iter().map(|subflow| PySubflow(*subflow)))
    }

    /// Bytes that the application has written and that no subflow has sent.
    #[getter]
    fn unsent_bytes(&self) -> u64 {
        self.unsent.get()
    }

    /// The first so many of them that the peer's window admits.
    #[getter]
    fn sendable_bytes(&self) -> u64 {
        self.sendable.get()
    }

    /// The peer's receive window, shared by all subflows (RFC 8684 §3.3.4).
    #[getter]
    fn window_bytes(&self) -> u64 {
        self.window.get()
    }

    /// The largest such window so far.
    #[getter]
    fn buffer_bytes(&self) -> u64 {
        self.buffer.get()
    }

    /// First data sequence number that is not acknowledged.
    #[getter]
    fn data_una(&self) -> u64 {
        self.data_una.get()
    }

    /// First data sequence number that was never sent.
    #[getter]
    fn unsent_from(&self) -> u64 {
        self.unsent_from.get()
    }

    /// The subflow with the lowest SRTT, whether or not it has room; None without subflows.
    fn fastest(&self) -> Option<PySubflow> {
        self.view().fastest().copied().map(PySubflow)
    }

    /// The subflow with the lowest SRTT among those with room; None if no subflow has room.
    fn fastest_with_room(&self) -> Option<PySubflow> {
        self.view().fastest_with_room().copied().map(PySubflow)
    }

    /// The subflow of that id, or None.
    fn subflow(&self, id: u16) -> Option<PySubflow> {
        self.view().subflow(SubflowId(id)).copied().map(PySubflow)
    }

    fn __repr__(&self) -> String {
        let (subflows, unsent) = (self.subflows.len(), self.unsent);
        format!("<anabranch.View: {subflows} subflows, {unsent} unsent, {} sendable>", self.sendable)
    }
}

/// A subflow as it was when a scheduler was asked.
#[pyclass(frozen, name = "Subflow", module = "anabranch")]
pub struct PySubflow(SubflowView);

fields! {
    PySubflow, |s| format!("<anabranch.Subflow {}: srtt {}, {} of {} in flight>", s.id.0, s.srtt, s.in_flight, s.cwnd);
    /// Id of the subflow; results of `decide` may name it by this.
    id: u16 = |s| s.id.0;
    /// Payload of a full segment [B].
    mss_bytes: u64 = |s| s.mss.get();
    /// Smoothed round-trip time [s] (RFC 6298).
    srtt_s: f64 = |s| s.srtt.as_secs_f64();
    /// Round-trip time variation [s] (RFC 6298), without floor.
    rttvar_s: f64 = |s| s.rttvar.as_secs_f64();
    /// Smallest RTT sample [s].
    rtt_min_s: f64 = |s| s.rtt_min.as_secs_f64();
    /// Largest RTT sample [s].
    rtt_max_s: f64 = |s| s.rtt_max.as_secs_f64();
    /// First RTT sample [s].
    rtt_first_s: f64 = |s| s.rtt_first.as_secs_f64();
    /// Latest RTT sample [s].
    rtt_last_s: f64 = |s| s.rtt_last.as_secs_f64();
    /// Retransmission timeout without backoff [s].
    rto_s: f64 = |s| s.rto.as_secs_f64();
    /// Congestion window [B].
    cwnd_bytes: u64 = |s| s.cwnd.get();
    /// Slow-start threshold [B]; None before the first loss.
    ssthresh_bytes: Option<u64> = |s| s.ssthresh.map(Bytes::get);
    /// Sent and neither acknowledged nor believed lost [B].
    in_flight_bytes: u64 = |s| s.in_flight.get();
    /// The largest congestion window at any loss [B]; None before the first.
    cwnd_at_loss_bytes: Option<u64> = |s| s.cwnd_at_loss.map(Bytes::get);
    /// Bytes that the congestion window still admits.
    room_bytes: u64 = |s| s.room().get();
    /// Estimated loss probability of a segment.
    loss: f64 = |s| s.loss;
    /// Bytes sent for the first time since the subflow began.
    sent_bytes: u64 = |s| s.sent;
    /// Bytes cumulatively acknowledged since the subflow began.
    acked_bytes: u64 = |s| s.acked;
    /// The highest DATA_ACK that came on this subflow; None before the first.
    data_acked: Option<u64> = |s| s.data_acked.map(Dsn::get);
    /// A full segment of new data may leave now.
    has_room: bool = |s| s.has_room();
    /// A full segment that another subflow has carried before may leave now.
    has_room_to_repeat: bool = |s| s.has_room_to_repeat();
    /// False while the subflow may carry no further data whatever its window (timeout, or a full window of the peer).
    open: bool = |s| s.open;
    /// Of the backup class; all subflows of a view are, or none.
    backup: bool = |s| s.backup;
    /// TCP Small Queues hold the subflow back.
    throttled: bool = |s| s.throttled;
    /// Time at which it last sent data [s of the run]; None if never.
    last_sent_s: Option<f64> = |s| s.last_sent.map(Instant::as_secs_f64);
    /// Time at which the oldest segment under way left [s of the run]; None if nothing is in flight.
    oldest_sent_s: Option<f64> = |s| s.oldest_sent.map(Instant::as_secs_f64);
    /// Rate that congestion control paces at [bit/s]; None if it does not pace.
    pacing_bps: Option<u64> = |s| s.pacing.map(|rate| rate.as_bps());
    /// Latest sample of the delivery rate [bit/s]; None before the first.
    delivery_bps: Option<u64> = |s| s.delivery.map(|delivery| delivery.rate.as_bps());
    /// The sender had too little to send for that sample: the path may be faster. False before the first.
    app_limited: bool = |s| s.delivery.is_some_and(|delivery| delivery.app_limited);
    /// The path's own rate, as data came out of a queue there [bit/s]; None while no queue was seen.
    path_rate_bps: Option<u64> = |s| s.path_rate.map(|rate| rate.as_bps());
    /// Bandwidth-delay product [B]; None unless congestion control models the path (BBR).
    bdp_bytes: Option<u64> = |s| s.bdp.map(Bytes::get);
    /// New data that its share of the peer's window still admits [B]; None if the window is not shared out.
    share_bytes: Option<u64> = |s| (s.share != Bytes::MAX).then(|| s.share.get());
    /// Time at which anything arrived on it last [s of the run].
    heard_s: f64 = |s| s.heard.as_secs_f64();
    /// Time from which on it is silent: data under way, and nothing heard for longer than a round trip and its
    /// variation [s of the run]; None if nothing is under way.
    silent_from_s: Option<f64> = |s| s.silent_from().map(Instant::as_secs_f64);
    /// Time beyond SRTT after which an acknowledgment is late [s] (4 RTTVAR, RFC 6298 §2).
    spread_s: f64 = |s| s.spread().as_secs_f64();
    /// Time from sending to arrival [s], if the queue stands in the direction of the data: srtt - rtt_min / 2.
    one_way_delay_s: f64 = |s| s.one_way_delay().as_secs_f64();
    /// Rate that it is paced at, or that Linux would pace it at where congestion control does not [bit/s].
    pace_bps: u64 = |s| s.pace().as_bps();
    /// For oracles: rate of the path's slowest link, which only the simulator knows [bit/s]; None elsewhere.
    true_rate_bps: Option<u64> = |s| s.truth.map(|truth| truth.rate.as_bps());
    /// For oracles: one-way propagation delay of the path [s]; None where nobody knows.
    true_delay_s: Option<f64> = |s| s.truth.map(|truth| truth.delay.as_secs_f64());
    /// For oracles: probability that the path loses a packet at random; None where nobody knows.
    true_loss: Option<f64> = |s| s.truth.map(|truth| truth.loss);
    /// Time that packets wait in the path's queue, by the latest RTT sample [s].
    queueing_delay_s: f64 = |s| s.queueing_delay().as_secs_f64();
}

// A field added to `SubflowView` stops the build here until `Subflow` has it.
const _: fn(SubflowView) = |view| {
    let SubflowView {
        id: _,
        mss: _,
        srtt: _,
        rttvar: _,
        rtt_min: _,
        rtt_max: _,
        rtt_first: _,
        rtt_last: _,
        rto: _,
        cwnd: _,
        ssthresh: _,
        in_flight: _,
        cwnd_at_loss: _,
        loss: _,
        sent: _,
        acked: _,
        data_acked: _,
        open: _,
        share: _,
        backup: _,
        throttled: _,
        last_sent: _,
        pacing: _,
        bdp: _,
        delivery: _,
        path_rate: _,
        oldest_sent: _,
        heard: _,
        truth: _,
    } = view;
};

/// Answer of a scheduler: made by `anabranch.send`, `anabranch.repeat` and `anabranch.wait`.
#[pyclass(frozen, name = "Decision", module = "anabranch")]
pub struct PyDecision(pub Decision);

#[pymethods]
impl PyDecision {
    fn __repr__(&self) -> String {
        format!("<anabranch.Decision {:?}>", self.0)
    }
}

/// Sends the unsent bytes that begin `skip_bytes` from the front on the subflow of that id, which must have room.
#[pyfunction]
#[pyo3(signature = (on, skip_bytes=0))]
pub fn send(on: u16, skip_bytes: u64) -> PyDecision {
    PyDecision(Decision::Send { on: SubflowId(on), skip: Bytes::new(skip_bytes) })
}

/// Sends, on the subflow of that id, a copy of the first data from `from_dsn` on that is not acknowledged.
#[pyfunction]
pub fn repeat(on: u16, from_dsn: u64) -> PyDecision {
    PyDecision(Decision::Repeat { on: SubflowId(on), from: Dsn::new(from_dsn) })
}

/// Sends nothing now. Asked again at the next event, or at `until_s` of the run if that is sooner.
#[pyfunction]
#[pyo3(signature = (until_s=None))]
pub fn wait(until_s: Option<f64>) -> PyResult<PyDecision> {
    let refused =
        |time| PyValueError::new_err(format!("until_s is {time}; accepted: seconds of the run, such as now + 0.01"));
    let until = until_s.map(|time| instant(time).ok_or_else(|| refused(time))).transpose()?;
    Ok(PyDecision(Decision::Wait { until }))
}

/// Event on a connection, told to `observe` in order.
#[pyclass(frozen, name = "Event", module = "anabranch")]
pub struct PyEvent(Event);

#[pymethods]
impl PyEvent {
    /// sent, repeated, fast-retransmit, rto, subflows-changed, data-written, window-blocked or reinjected.
    #[getter]
    fn kind(&self) -> &'static str {
        match self.0 {
            Event::Sent { .. } => "sent",
            Event::Repeated { .. } => "repeated",
            Event::FastRetransmit { .. } => "fast-retransmit",
            Event::Rto { .. } => "rto",
            Event::SubflowsChanged => "subflows-changed",
            Event::DataWritten => "data-written",
            Event::WindowBlocked { .. } => "window-blocked",
            Event::Reinjected { .. } => "reinjected",
        }
    }

    /// The id of the subflow; None where the event is of no subflow.
    #[getter]
    fn on(&self) -> Option<u16> {
        match self.0 {
            Event::Sent { on, .. }
            | Event::Repeated { on, .. }
            | Event::FastRetransmit { on }
            | Event::Rto { on }
            | Event::WindowBlocked { on }
            | Event::Reinjected { on } => Some(on.0),
            Event::SubflowsChanged | Event::DataWritten => None,
        }
    }

    /// Data sequence number of the first byte (sent, repeated); otherwise None.
    #[getter]
    fn dsn(&self) -> Option<u64> {
        match self.0 {
            Event::Sent { dsn, .. } | Event::Repeated { dsn, .. } => Some(dsn.get()),
            _ => None,
        }
    }

    /// Number of bytes (sent, repeated); otherwise None.
    #[getter]
    fn length_bytes(&self) -> Option<u64> {
        match self.0 {
            Event::Sent { length, .. } | Event::Repeated { length, .. } => Some(length.get()),
            _ => None,
        }
    }

    /// Offset of the bytes in the unsent data (sent); otherwise None.
    #[getter]
    fn skip_bytes(&self) -> Option<u64> {
        match self.0 {
            Event::Sent { skip, .. } => Some(skip.get()),
            _ => None,
        }
    }

    fn __repr__(&self) -> String {
        format!("<anabranch.Event {:?}>", self.0)
    }
}
