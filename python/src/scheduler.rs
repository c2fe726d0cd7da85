//! A scheduler of Python: what it sees, what it may answer, and how it is asked.

use crate::policies::traceback;
use anabranch_policy::scheduler::Scheduler;
use anabranch_policy::{Decision, Event, Failure, SubflowView, View};
use anabranch_units::{Bytes, Dsn, Duration, Instant, SubflowId};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyTuple, PyType};

/// Asks an object of Python.
pub struct PyScheduler {
    name: String,
    decide: Py<PyAny>,
    /// `None` if its class does not want to know.
    observe: Option<Py<PyAny>>,
}

impl PyScheduler {
    /// An object of `class` for one connection.
    pub fn new(class: &Bound<'_, PyType>, name: &str) -> PyResult<Self> {
        let object = class.call0()?;
        let base = class.py().import("anabranch._policies")?.getattr("Scheduler")?;
        let observes = !class.getattr("observe")?.is(&base.getattr("observe")?);
        Ok(PyScheduler {
            name: name.to_owned(),
            decide: object.getattr("decide")?.unbind(),
            observe: if observes { Some(object.getattr("observe")?.unbind()) } else { None },
        })
    }

    fn fail(&self, py: Python<'_>, now: Instant, error: &PyErr) -> ! {
        Failure { policy: self.name.clone(), at: Some(now), why: traceback(py, error) }.raise()
    }
}

impl Scheduler for PyScheduler {
    fn decide(&mut self, now: Instant, view: &View<'_>) -> Decision {
        Python::attach(|py| {
            let answer = self.decide.bind(py).call1((now.as_secs_f64(), PyView::of(view)));
            match answer.and_then(|answer| decision(&answer, &self.name)) {
                Ok(decision) => decision,
                Err(error) => self.fail(py, now, &error),
            }
        })
    }

    fn observe(&mut self, now: Instant, event: &Event) {
        let Some(observe) = &self.observe else { return };
        Python::attach(|py| {
            let told = observe.bind(py).call1((now.as_secs_f64(), PyEvent(*event)));
            if let Err(error) = told {
                self.fail(py, now, &error);
            }
        });
    }
}

/// The answer of `decide` of `policy`, checked.
fn decision(answer: &Bound<'_, PyAny>, policy: &str) -> PyResult<Decision> {
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
    let accepted = "accepted: a subflow of the view, its id, None to wait, or anabranch.send, repeat or wait";
    Err(PyTypeError::new_err(format!("`{policy}.decide` returned {}; {accepted}", answer.repr()?)))
}

/// State of the connection when a scheduler is asked.
#[pyclass(frozen, name = "View", module = "anabranch")]
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
    fn of(view: &View<'_>) -> Self {
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

macro_rules! fields {
    ($($(#[doc = $doc:literal])+ $name:ident: $type:ty = |$s:ident| $value:expr;)+) => {
        #[pymethods]
        impl PySubflow {
            $($(#[doc = $doc])+
            #[getter]
            fn $name(&self) -> $type {
                let $s = &self.0;
                $value
            })+

            fn __repr__(&self) -> String {
                let s = &self.0;
                format!("<anabranch.Subflow {}: srtt {}, {} of {} in flight>", s.id.0, s.srtt, s.in_flight, s.cwnd)
            }
        }
    };
}

fields! {
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
    /// Time that packets wait in the path's queue, by the latest RTT sample [s].
    queueing_delay_s: f64 = |s| s.queueing_delay().as_secs_f64();
}

/// Answer of a scheduler: made by `anabranch.send`, `anabranch.repeat` and `anabranch.wait`.
#[pyclass(frozen, name = "Decision", module = "anabranch")]
pub struct PyDecision(Decision);

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
    let until = match until_s {
        Some(time) if time.is_finite() && (0.0..1e9).contains(&time) => {
            Some(Instant::ZERO + Duration::from_nanos((time * 1e9).round() as u64))
        }
        Some(time) => {
            return Err(PyValueError::new_err(format!(
                "until_s is {time}; accepted: seconds of the run, such as now + 0.01"
            )));
        }
        None => None,
    };
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
