//! A reinjection policy of Python: what is under way, and the copies it asks for.

use crate::method::{Method, Object, fields, instant};
use crate::scheduler::{PyDecision, PyView};
use anabranch_policy::Decision;
use anabranch_policy::reinjection::{
    Carrier, Cause, FlightView, Opportunity, Piece, Reinjection, Repeat, Request, SubflowSet, SubflowState, Why,
};
use anabranch_units::{Instant, SubflowId};
use pyo3::prelude::*;

/// Asks an object of Python. What is `None` its class does not have.
pub struct PyReinjection {
    on_rto: Option<Method>,
    on_sent: Option<Method>,
    next: Option<Method>,
    wake: Option<Method>,
    on_wake: Option<Method>,
}

impl PyReinjection {
    /// Over this object.
    pub fn new(object: &Object<'_>) -> PyResult<Self> {
        Ok(PyReinjection {
            on_rto: object.own_method("on_rto")?,
            on_sent: object.own_method("on_sent")?,
            next: object.own_method("next")?,
            wake: object.own_method("wake")?,
            on_wake: object.own_method("on_wake")?,
        })
    }
}

impl Reinjection for PyReinjection {
    fn on_rto(&mut self, now: Instant, on: SubflowId) -> bool {
        let Some(method) = &self.on_rto else { return true };
        method.ask(Some(now), (now.as_secs_f64(), on.0), |method, answer| {
            answer.extract().map_err(|_| method.refuse(answer, "True or False"))
        })
    }

    fn on_sent(&mut self, now: Instant, sent: &Piece, on: SubflowId, flight: &FlightView<'_>) {
        if let Some(method) = &self.on_sent {
            let piece = PyPiece::of(sent, flight.states);
            method.tell(now, (now.as_secs_f64(), piece, on.0, PyFlightView::of(flight)));
        }
    }

    fn next(&mut self, now: Instant, flight: &FlightView<'_>) -> Request {
        let Some(method) = &self.next else { return Request::default() };
        method.ask(Some(now), (now.as_secs_f64(), PyFlightView::of(flight)), |method, answer| {
            request(method, answer, flight.opportunity.as_ref())
        })
    }

    fn wake(&mut self, now: Instant, flight: &FlightView<'_>) -> Option<Instant> {
        let method = self.wake.as_ref()?;
        method.ask(Some(now), (now.as_secs_f64(), PyFlightView::of(flight)), |method, answer| {
            let accepted = "None or seconds of the run, such as now + 0.01";
            let at: Option<f64> = answer.extract().map_err(|_| method.refuse(answer, accepted))?;
            at.map(|at| instant(at).ok_or_else(|| method.refuse_value(answer, accepted))).transpose()
        })
    }

    fn on_wake(&mut self, now: Instant, flight: &FlightView<'_>) -> SubflowSet {
        let Some(method) = &self.on_wake else { return SubflowSet::NONE };
        method.ask(Some(now), (now.as_secs_f64(), PyFlightView::of(flight)), |method, answer| {
            let accepted = "None or a list of ids of subflows that are stale";
            let stale: Option<Vec<u16>> = answer.extract().map_err(|_| method.refuse(answer, accepted))?;
            stale.unwrap_or_default().into_iter().try_fold(SubflowSet::NONE, |marks, id| {
                let state = flight.states.iter().find(|state| state.id.0 == id);
                state.map(|it| marks.with(it.mark)).ok_or_else(|| method.refuse_value(answer, accepted))
            })
        })
    }
}

/// The answer of `next`, checked.
fn request(method: &Method, answer: &Bound<'_, PyAny>, shown: Option<&Opportunity<'_>>) -> PyResult<Request> {
    let accepted = "None, anabranch.repeat(on, from_dsn) or anabranch.Request(repeat, penalise) with ids of carriers";
    let copy = |answer: &Bound<'_, PyAny>| match answer.cast::<PyDecision>().map(|decision| decision.get().0) {
        Ok(Decision::Repeat { on, from }) => Some(Repeat { on, from, why: Why::Own }),
        _ => None,
    };
    if answer.is_none() {
        return Ok(Request::default());
    }
    if let Some(repeat) = copy(answer) {
        return Ok(repeat.into());
    }
    let (repeat, ids): (Option<Bound<'_, PyAny>>, Vec<u16>) =
        answer.extract().map_err(|_| method.refuse(answer, accepted))?;
    let repeat = repeat.map(|it| copy(&it).ok_or_else(|| method.refuse(answer, accepted))).transpose()?;
    let mut penalise = SubflowSet::NONE;
    for id in ids {
        let carrier = shown.and_then(|shown| shown.carriers.iter().find(|carrier| carrier.id.0 == id));
        penalise = penalise.with(carrier.ok_or_else(|| method.refuse_value(answer, accepted))?.mark);
    }
    Ok(Request { repeat, penalise })
}

/// A moment in which repeating the oldest unacknowledged data may help: a subflow has room, and nothing new can leave.
#[pyclass(frozen, name = "Opportunity", module = "anabranch")]
#[derive(Clone)]
pub struct PyOpportunity {
    cause: Cause,
    send_buffer_full: bool,
    on: SubflowId,
    carriers: Vec<Carrier>,
}

impl PyOpportunity {
    fn of(opportunity: &Opportunity<'_>) -> Self {
        let Opportunity { cause, send_buffer_full, on, carriers } = *opportunity;
        PyOpportunity { cause, send_buffer_full, on, carriers: carriers.to_vec() }
    }
}

#[pymethods]
impl PyOpportunity {
    /// Reason why nothing new leaves: "window" (the peer's window admits nothing) or "drained" (nothing is unsent).
    #[getter]
    fn cause(&self) -> &'static str {
        match self.cause {
            Cause::Window => "window",
            Cause::Drained => "drained",
        }
    }

    /// The application waits for space in the send buffer.
    #[getter]
    fn send_buffer_full(&self) -> bool {
        self.send_buffer_full
    }

    /// Id of the subflow with the lowest SRTT of those with room.
    #[getter]
    fn on(&self) -> u16 {
        self.on.0
    }

    /// Ids of the subflows that carried the oldest unacknowledged data.
    #[getter]
    fn carriers(&self) -> Vec<u16> {
        self.carriers.iter().map(|carrier| carrier.id.0).collect()
    }

    /// Ids of those carriers that are neither in recovery nor have anything out of order (TCP's Open state).
    #[getter]
    fn calm(&self) -> Vec<u16> {
        self.carriers.iter().filter(|carrier| carrier.open).map(|carrier| carrier.id.0).collect()
    }

    fn __repr__(&self) -> String {
        format!("<anabranch.Opportunity: {}, room on {}>", self.cause(), self.on.0)
    }
}

/// The connection at a moment in which copies can be asked for.
#[pyclass(frozen, name = "FlightView", module = "anabranch")]
pub struct PyFlightView {
    view: PyView,
    states: Vec<SubflowState>,
    pieces: Vec<Piece>,
    opportunity: Option<PyOpportunity>,
}

impl PyFlightView {
    fn of(flight: &FlightView<'_>) -> Self {
        let mut pieces = Vec::new();
        let mut at = flight.view.data_una;
        while let Some(piece) = flight.outstanding.piece(at) {
            at = piece.end();
            pieces.push(piece);
        }
        let opportunity = flight.opportunity.as_ref().map(PyOpportunity::of);
        PyFlightView { view: PyView::of(flight.view), states: flight.states.to_vec(), pieces, opportunity }
    }
}

#[pymethods]
impl PyFlightView {
    /// Usable subflows, unsent data and the peer's window, as schedulers see them.
    #[getter]
    fn view(&self) -> PyView {
        self.view.clone()
    }

    /// All open subflows, usable or not, ordered by id.
    #[getter]
    fn states(&self) -> Vec<PySubflowState> {
        self.states.iter().map(|state| PySubflowState(*state)).collect()
    }

    /// All that was sent and that no DATA_ACK covers, in the order of the stream.
    #[getter]
    fn pieces(&self) -> Vec<PyPiece> {
        self.pieces.iter().map(|piece| PyPiece::of(piece, &self.states)).collect()
    }

    /// Reason to ask although nothing new can leave; None before a scheduling decision.
    #[getter]
    fn opportunity(&self) -> Option<PyOpportunity> {
        self.opportunity.clone()
    }

    fn __repr__(&self) -> String {
        format!("<anabranch.FlightView: {} subflows, {} pieces>", self.states.len(), self.pieces.len())
    }
}

/// A piece of the stream that was sent and that no DATA_ACK covers.
#[pyclass(frozen, name = "Piece", module = "anabranch")]
pub struct PyPiece(Piece, Vec<u16>);

impl PyPiece {
    fn of(piece: &Piece, states: &[SubflowState]) -> Self {
        let carriers = states.iter().filter(|state| state.mark.meets(piece.carriers));
        PyPiece(*piece, carriers.map(|state| state.id.0).collect())
    }
}

#[pymethods]
impl PyPiece {
    /// Data sequence number of its first byte.
    #[getter]
    fn dsn(&self) -> u64 {
        self.0.from.get()
    }

    /// Number of its bytes.
    #[getter]
    fn length_bytes(&self) -> u64 {
        self.0.length.get()
    }

    /// Time at which it was sent first [s of the run].
    #[getter]
    fn sent_s(&self) -> f64 {
        self.0.sent.as_secs_f64()
    }

    /// Ids of the open subflows that have carried it; none if those are gone: the engine repeats it by itself then.
    #[getter]
    fn carriers(&self) -> Vec<u16> {
        self.1.clone()
    }

    fn __repr__(&self) -> String {
        format!("<anabranch.Piece {} of {}, carried by {:?}>", self.0.from.get(), self.0.length, self.1)
    }
}

/// An open subflow, usable or not.
#[pyclass(frozen, name = "SubflowState", module = "anabranch")]
pub struct PySubflowState(SubflowState);

fields! {
    PySubflowState, |s| {
        format!("<anabranch.SubflowState of {}: {}>", s.id.0, if s.usable { "usable" } else { "not usable" })
    };
    /// Id of the subflow.
    id: u16 = |s| s.id.0;
    /// One of the two ends asked to use it only when no other works (MP_PRIO, or B in MP_JOIN).
    backup: bool = |s| s.backup;
    /// It may carry data: neither potentially failed nor stale nor suspected of losing what it acknowledges.
    usable: bool = |s| s.usable;
    /// A full segment may leave on it now.
    has_room: bool = |s| s.has_room;
    /// All that it has sent is acknowledged, and it has nothing to retransmit.
    idle: bool = |s| s.idle;
    /// Time at which its retransmission timer runs out, backoff included [s of the run]; None while it does not run.
    timeout_s: Option<f64> = |s| s.timeout.map(Instant::as_secs_f64);
    /// Timeouts in a row without an acknowledgment of anything new.
    timeouts: u32 = |s| s.timeouts;
    /// Time at which anything arrived on it last [s of the run].
    heard_s: f64 = |s| s.heard.as_secs_f64();
}
