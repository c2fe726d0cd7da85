//! First record of a file.

use super::{SCHEMA, SIMULATION_SCHEMA};
use serde::Serialize;

/// Head of a file with one trace: its schemas, its origin, and the clock.
#[derive(Clone, Debug, Serialize)]
pub struct Head {
    file_schema: &'static str,
    serialization_format: &'static str,
    title: String,
    trace: Trace,
}

#[derive(Clone, Debug, Serialize)]
struct Trace {
    common_fields: CommonFields,
    vantage_point: VantagePoint,
    event_schemas: Vec<&'static str>,
}

#[derive(Clone, Debug, Serialize)]
struct CommonFields {
    time_format: &'static str,
    reference_time: ReferenceTime,
}

#[derive(Clone, Debug, Serialize)]
struct ReferenceTime {
    clock_type: &'static str,
    epoch: &'static str,
}

/// Origin of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct VantagePoint {
    name: &'static str,
    #[serde(rename = "type")]
    kind: &'static str,
}

impl VantagePoint {
    /// An endpoint that opens connections.
    pub const CLIENT: VantagePoint = VantagePoint { name: "anabranch fetch", kind: "client" };
    /// An endpoint that accepts connections.
    pub const SERVER: VantagePoint = VantagePoint { name: "anabranch serve", kind: "server" };
    /// All hosts of a simulated run; `group_id` names the one where an event happened.
    pub const SIMULATOR: VantagePoint = VantagePoint { name: "anabranch run", kind: "unknown" };
}

impl Head {
    /// Returns the head of a file from this vantage point. Times are milliseconds since the run or the program began.
    pub fn new(title: String, vantage_point: VantagePoint) -> Self {
        // The date is unknown on purpose: simulated time has none, and a run gives the same bytes each time.
        let reference_time = ReferenceTime { clock_type: "monotonic", epoch: "unknown" };
        let simulated = vantage_point == VantagePoint::SIMULATOR;
        let schemas = [Some(SCHEMA), simulated.then_some(SIMULATION_SCHEMA)];
        Head {
            file_schema: "urn:ietf:params:qlog:file:sequential",
            serialization_format: "application/qlog+json-seq",
            title,
            trace: Trace {
                common_fields: CommonFields { time_format: "relative_to_epoch", reference_time },
                vantage_point,
                event_schemas: schemas.into_iter().flatten().collect(),
            },
        }
    }
}
