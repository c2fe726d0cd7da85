//! A receive-window policy of Python: the buffers, each subflow's use of them, and the shares.

use crate::method::{Method, Object, fields};
use anabranch_policy::receive_window::{Buffers, ReceiveWindow, Usage};
use anabranch_units::{Bytes, Instant};
use pyo3::prelude::*;

/// Asks an object of Python.
pub struct PyReceiveWindow {
    share: Method,
}

impl PyReceiveWindow {
    /// Over this object.
    pub fn new(object: &Object<'_>) -> PyResult<Self> {
        Ok(PyReceiveWindow { share: object.method("share")? })
    }
}

impl ReceiveWindow for PyReceiveWindow {
    fn share(&mut self, now: Instant, buffers: &Buffers, usage: &[Usage], shares: &mut [Bytes]) {
        let used: Vec<PyUsage> = usage.iter().map(|one| PyUsage(*one)).collect();
        let answer = self.share.ask(Some(now), (now.as_secs_f64(), PyBuffers(*buffers), used), |method, answer| {
            let accepted =
                format!("{} shares, one for each of `usage`: bytes of 0 or more, or None for no limit", usage.len());
            let answered: Vec<Option<u64>> = answer.extract().map_err(|_| method.refuse(answer, &accepted))?;
            if answered.len() == usage.len() { Ok(answered) } else { Err(method.refuse_value(answer, &accepted)) }
        });
        for (share, answered) in shares.iter_mut().zip(answer) {
            *share = answered.map_or(Bytes::MAX, Bytes::new);
        }
    }
}

/// Buffers at both ends of the connection, as the sender knows them.
#[pyclass(frozen, name = "Buffers", module = "anabranch")]
pub struct PyBuffers(Buffers);

fields! {
    PyBuffers, |s| format!("<anabranch.Buffers: window {} of {}, send {}>", s.window, s.receive, s.send);
    /// Bytes that the peer admits now, from the first one on that it has not acknowledged at the data level.
    window_bytes: u64 = |s| s.window.get();
    /// The largest window it ever advertised [B]: its receive buffer.
    receive_bytes: u64 = |s| s.receive.get();
    /// The sender's own buffer [B] for what is not acknowledged at the data level.
    send_bytes: u64 = |s| s.send.get();
}

/// A subflow's use of the window.
#[pyclass(frozen, name = "Usage", module = "anabranch")]
pub struct PyUsage(Usage);

fields! {
    PyUsage, |s| format!("<anabranch.Usage of {}: {} unacknowledged>", s.id.0, s.unacked);
    /// Id of the subflow.
    id: u16 = |s| s.id.0;
    /// Payload of a full segment [B].
    mss_bytes: u64 = |s| s.mss.get();
    /// Smoothed round-trip time [s] (RFC 6298).
    srtt_s: f64 = |s| s.srtt.as_secs_f64();
    /// Congestion window [B].
    cwnd_bytes: u64 = |s| s.cwnd.get();
    /// Sent here and not cumulatively acknowledged by the subflow [B] (FlightSize, RFC 5681 §2), copies included.
    outstanding_bytes: u64 = |s| s.outstanding.get();
    /// First sent here and not acknowledged at the data level [B]: in flight, or out of order at the peer.
    unacked_bytes: u64 = |s| s.unacked.get();
    /// Cumulatively acknowledged by the subflow since it began [B].
    acked_bytes: u64 = |s| s.acked;
}
