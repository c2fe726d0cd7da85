//! A congestion control of Python: flows, ACKs, and what it may answer.

use crate::method::{Method, Object, fields};
use anabranch_policy::congestion::{Ack, Flow, WindowBased, WindowUpdate};
use anabranch_units::{Duration, Instant, Window};
use pyo3::prelude::*;

/// Asks an object of Python. What is `None` its class does not have.
pub struct PyCongestionControl {
    avoidance: Method,
    on_fast_retransmit: Method,
    on_ack: Option<Method>,
    on_rto: Option<Method>,
    on_rto_again: Option<Method>,
    on_recovered: Option<Method>,
    on_spurious: Option<Method>,
    on_unlimited: Option<Method>,
    on_reset: Option<Method>,
    on_restart: Option<Method>,
}

impl PyCongestionControl {
    /// Over this object.
    pub fn new(object: &Object<'_>) -> PyResult<Self> {
        Ok(PyCongestionControl {
            avoidance: object.method("avoidance")?,
            on_fast_retransmit: object.method("on_fast_retransmit")?,
            on_ack: object.own_method("on_ack")?,
            on_rto: object.own_method("on_rto")?,
            on_rto_again: object.own_method("on_rto_again")?,
            on_recovered: object.own_method("on_recovered")?,
            on_spurious: object.own_method("on_spurious")?,
            on_unlimited: object.own_method("on_unlimited")?,
            on_reset: object.own_method("on_reset")?,
            on_restart: object.own_method("on_restart")?,
        })
    }
}

fn told(method: Option<&Method>, now: Instant, on: usize, flows: &[Flow]) {
    if let Some(method) = method {
        method.tell(now, (now.as_secs_f64(), PyFlow(flows[on]), shown(flows)));
    }
}

fn shown(flows: &[Flow]) -> Vec<PyFlow> {
    flows.iter().map(|flow| PyFlow(*flow)).collect()
}

/// A number of bytes that may be negative.
fn growth(method: &Method, answer: &Bound<'_, PyAny>) -> PyResult<Window> {
    let accepted = "bytes to add to the window, a finite number";
    let growth: f64 = answer.extract().map_err(|_| method.refuse(answer, accepted))?;
    if growth.is_finite() { Ok(Window::new(growth)) } else { Err(method.refuse_value(answer, accepted)) }
}

fn threshold(method: &Method, answer: &Bound<'_, PyAny>) -> PyResult<Window> {
    let accepted = "the slow-start threshold in bytes, 0 or more";
    let threshold: f64 = answer.extract().map_err(|_| method.refuse(answer, accepted))?;
    if threshold >= 0.0 { Ok(Window::new(threshold)) } else { Err(method.refuse_value(answer, accepted)) }
}

fn window(method: &Method, answer: &Bound<'_, PyAny>) -> PyResult<Option<WindowUpdate>> {
    let accepted = "None or (cwnd_bytes, ssthresh_bytes), each 0 or more";
    let answered: Option<(f64, f64)> = answer.extract().map_err(|_| method.refuse(answer, accepted))?;
    match answered {
        Some((cwnd, ssthresh)) if cwnd >= 0.0 && ssthresh >= 0.0 => {
            Ok(Some(WindowUpdate { cwnd: Window::new(cwnd), ssthresh: Window::new(ssthresh) }))
        }
        None => Ok(None),
        Some(_) => Err(method.refuse_value(answer, accepted)),
    }
}

impl WindowBased for PyCongestionControl {
    fn on_ack(&mut self, now: Instant, on: usize, ack: &Ack, flows: &[Flow]) -> Option<WindowUpdate> {
        let method = self.on_ack.as_ref()?;
        method.ask(Some(now), (now.as_secs_f64(), PyFlow(flows[on]), PyAck(*ack), shown(flows)), window)
    }

    fn avoidance(&mut self, now: Instant, on: usize, acked: Window, flows: &[Flow]) -> Window {
        self.avoidance.ask(Some(now), (now.as_secs_f64(), PyFlow(flows[on]), acked.as_f64(), shown(flows)), growth)
    }

    fn on_fast_retransmit(&mut self, now: Instant, on: usize, in_flight: Window, flows: &[Flow]) -> Window {
        let arguments = (now.as_secs_f64(), PyFlow(flows[on]), in_flight.as_f64(), shown(flows));
        self.on_fast_retransmit.ask(Some(now), arguments, threshold)
    }

    fn on_rto(&mut self, now: Instant, on: usize, in_flight: Window, flows: &[Flow]) -> Window {
        let method = self.on_rto.as_ref().unwrap_or(&self.on_fast_retransmit);
        method.ask(Some(now), (now.as_secs_f64(), PyFlow(flows[on]), in_flight.as_f64(), shown(flows)), threshold)
    }

    fn on_rto_again(&mut self, now: Instant, on: usize, flows: &[Flow]) {
        told(self.on_rto_again.as_ref().or(self.on_reset.as_ref()), now, on, flows);
    }

    fn on_recovered(&mut self, now: Instant, on: usize, flows: &[Flow]) {
        told(self.on_recovered.as_ref(), now, on, flows);
    }

    fn on_spurious(&mut self, now: Instant, on: usize, flows: &[Flow]) {
        told(self.on_spurious.as_ref().or(self.on_reset.as_ref()), now, on, flows);
    }

    fn on_unlimited(&mut self, now: Instant, on: usize, flows: &[Flow]) {
        told(self.on_unlimited.as_ref(), now, on, flows);
    }

    fn on_reset(&mut self, now: Instant, on: usize, flows: &[Flow]) {
        told(self.on_reset.as_ref(), now, on, flows);
    }

    fn on_restart(&mut self, now: Instant, on: usize, flows: &[Flow]) {
        told(self.on_restart.as_ref(), now, on, flows);
    }
}

/// A subflow as its congestion control sees it. Windows have their fraction.
#[pyclass(frozen, name = "Flow", module = "anabranch")]
pub struct PyFlow(Flow);

fields! {
    PyFlow, |s| {
        let (cwnd, ssthresh) = (s.cwnd.as_f64(), s.ssthresh.as_f64());
        format!("<anabranch.Flow {}: cwnd {cwnd:.0}, ssthresh {ssthresh:.0}>", s.id.0)
    };
    /// Id of the subflow: never given twice within a connection.
    id: u16 = |s| s.id.0;
    /// Payload of a full segment [B].
    mss_bytes: f64 = |s| s.mss.as_f64();
    /// Congestion window [B].
    cwnd_bytes: f64 = |s| s.cwnd.as_f64();
    /// Slow-start threshold [B]; infinite before the first loss.
    ssthresh_bytes: f64 = |s| s.ssthresh.as_f64();
    /// Smoothed round-trip time [s] (RFC 6298); None before the first sample.
    srtt_s: Option<f64> = |s| s.srtt.map(Duration::as_secs_f64);
    /// In loss recovery: what couples to it takes its ssthresh.
    recovering: bool = |s| s.recovering;
    /// Counts in coupled sums: established, has an RTT sample, neither failed nor an idle backup.
    counted: bool = |s| s.counted;
}

/// An acknowledgment as congestion control learns of it.
#[pyclass(frozen, name = "Ack", module = "anabranch")]
pub struct PyAck(Ack);

fields! {
    PyAck, |s| format!("<anabranch.Ack of {}, {} in flight>", s.acked, s.in_flight);
    /// Bytes known to have arrived that were not before, SACKed ones included.
    acked_bytes: u64 = |s| s.acked.get();
    /// Bytes found lost with it.
    lost_bytes: u64 = |s| s.lost.get();
    /// Smoothed round-trip time [s], this one included; None before the first sample.
    srtt_s: Option<f64> = |s| s.srtt.map(Duration::as_secs_f64);
    /// Its RTT sample [s]; None if it gives none (RFC 6298 §3, Karn).
    rtt_s: Option<f64> = |s| s.rtt.map(Duration::as_secs_f64);
    /// In flight before it was counted [B].
    in_flight_before_bytes: u64 = |s| s.in_flight_before.get();
    /// In flight now [B]: neither acknowledged, SACKed nor lost, plus retransmissions under way.
    in_flight_bytes: u64 = |s| s.in_flight.get();
    /// The window was in full use when this data left.
    cwnd_limited: bool = |s| s.cwnd_limited;
    /// Fast recovery goes on, or begins with it.
    in_recovery: bool = |s| s.in_recovery;
    /// All bytes ever delivered on this subflow, with it.
    delivered_bytes: u64 = |s| s.delivered;
    /// Delivery rate over the flight of the latest segment that it delivers [bit/s]; None if it tells none.
    delivery_bps: Option<u64> = |s| s.delivery_rate().map(|rate| rate.as_bps());
    /// The sender had too little to send when that segment left: the path may be faster.
    app_limited: bool = |s| s.sample.is_some_and(|sample| sample.app_limited);
}
