//! The state of an endpoint's connections, for those who explain a run. Asking changes nothing and keeps nothing.

use super::Endpoint;
use crate::{ConnectionId, ConnectionInfo, SubflowMetrics};
use anabranch_units::SubflowId;

impl Endpoint {
    /// Fills in what this end of a connection waits for now. To be asked when [`Endpoint::poll_transmit`] has nothing
    /// more. Returns false, and leaves `info` as it is, if there is no such connection.
    pub fn connection_info(&self, id: ConnectionId, info: &mut ConnectionInfo) -> bool {
        let connection = self.get(id);
        if let Some(connection) = connection {
            connection.info(info);
        }
        connection.is_some()
    }

    /// Returns the variables of a congestion control that models the path, on one subflow, with their names and units
    /// as [`ModelBased::variables`](anabranch_policy::congestion::ModelBased::variables) says. Empty for other
    /// controls, and where there is no such connection.
    pub fn congestion_variables(&self, id: ConnectionId, subflow: SubflowId) -> Vec<(&'static str, f64)> {
        self.get(id).map_or(Vec::new(), |connection| connection.congestion_variables(subflow))
    }

    /// Returns the state of loss recovery and congestion control of each subflow that is established, in the order of
    /// their identifiers. Empty where there is no such connection.
    pub fn subflow_metrics(&self, id: ConnectionId) -> Vec<SubflowMetrics> {
        self.get(id).map_or(Vec::new(), |connection| connection.subflow_metrics())
    }

    /// Returns the subflow on which the byte at `offset` of our stream left first; `None` if it has not left, or was
    /// acknowledged at the data level.
    pub fn first_carrier(&self, id: ConnectionId, offset: u64) -> Option<SubflowId> {
        self.get(id)?.first_carrier(offset)
    }
}
