//! An ACK-path policy of Python: the ways an acknowledgment can take, and probes of them.

use crate::method::{Method, Object, fields, span};
use anabranch_policy::ack_path::{AckPath, AckRoute, Probe, Probing};
use anabranch_units::{Duration, Instant, SubflowId};
use pyo3::prelude::*;

/// Asks an object of Python. What is `None` its class does not have.
pub struct PyAckPath {
    data_ack: Option<Method>,
    path: Option<Method>,
    probing: Option<Probing>,
    observe: Option<Method>,
}

impl PyAckPath {
    /// Over this object.
    pub fn new(object: &Object<'_>) -> PyResult<Self> {
        let probing = object.own_method("probing")?;
        Ok(PyAckPath {
            data_ack: object.own_method("data_ack")?,
            path: object.own_method("path")?,
            probing: probing.and_then(|method| method.ask(None, (), probing_asked)),
            observe: object.own_method("observe")?,
        })
    }
}

fn probing_asked(method: &Method, answer: &Bound<'_, PyAny>) -> PyResult<Option<Probing>> {
    let accepted = "None or anabranch.Probing(interval_s, probes, judged_late): 0.01 to 60 s, 1 to 16 probes";
    let asked: Option<(f64, u32, bool)> = answer.extract().map_err(|_| method.refuse(answer, accepted))?;
    let Some((interval_s, probes, judged_late)) = asked else { return Ok(None) };
    match span(interval_s).filter(|_| (0.01..=60.0).contains(&interval_s) && (1..=16).contains(&probes)) {
        Some(interval) => Ok(Some(Probing { interval, probes, judged_late })),
        None => Err(method.refuse_value(answer, accepted)),
    }
}

fn chosen(method: &Method, now: Instant, of: SubflowId, routes: &[AckRoute]) -> SubflowId {
    let shown: Vec<PyAckRoute> = routes.iter().map(|route| PyAckRoute(*route)).collect();
    method.ask(Some(now), (now.as_secs_f64(), of.0, shown), |method, answer| {
        let accepted = "the id of one of `routes`, or such a route";
        if let Ok(route) = answer.cast::<PyAckRoute>() {
            return Ok(route.get().0.id);
        }
        let id: u16 = answer.extract().map_err(|_| method.refuse(answer, accepted))?;
        let known = routes.iter().any(|route| route.id.0 == id);
        if known { Ok(SubflowId(id)) } else { Err(method.refuse_value(answer, accepted)) }
    })
}

impl AckPath for PyAckPath {
    fn data_ack(&mut self, now: Instant, arrived: SubflowId, routes: &[AckRoute]) -> SubflowId {
        self.data_ack.as_ref().map_or(arrived, |method| chosen(method, now, arrived, routes))
    }

    fn path(&mut self, now: Instant, of: SubflowId, routes: &[AckRoute]) -> SubflowId {
        self.path.as_ref().map_or(of, |method| chosen(method, now, of, routes))
    }

    fn probing(&self) -> Option<Probing> {
        self.probing
    }

    fn observe(&mut self, now: Instant, round: &[Probe]) {
        if let Some(observe) = &self.observe {
            observe.tell(now, (now.as_secs_f64(), round.iter().map(|probe| PyProbe(*probe)).collect::<Vec<_>>()));
        }
    }
}

/// An open subflow as the receiver of data sees it.
#[pyclass(frozen, name = "AckRoute", module = "anabranch")]
pub struct PyAckRoute(AckRoute);

fields! {
    PyAckRoute, |s| format!("<anabranch.AckRoute {}: {} to {}>", s.id.0, s.local, s.remote);
    /// Id of the subflow.
    id: u16 = |s| s.id.0;
    /// Smoothed round-trip time [s]; None without a sample. A host that only receives has one, from the handshake.
    srtt_s: Option<f64> = |s| s.srtt.map(Duration::as_secs_f64);
    /// Our address.
    local: String = |s| s.local.to_string();
    /// Address of the peer.
    remote: String = |s| s.remote.to_string();
}

/// The answers to the probes on one path since the last round.
#[pyclass(frozen, name = "Probe", module = "anabranch")]
pub struct PyProbe(Probe);

fields! {
    PyProbe, |s| format!("<anabranch.Probe of {}: {}>", s.id.0, if s.down { "down" } else { "up" });
    /// Id of the subflow whose path it is.
    id: u16 = |s| s.id.0;
    /// Shortest round trip of the replies [s]; None if none has come.
    best_s: Option<f64> = |s| s.best.map(Duration::as_secs_f64);
    /// Probes had time enough to be answered, and none was.
    down: bool = |s| s.down;
}
