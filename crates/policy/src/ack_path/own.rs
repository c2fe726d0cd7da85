//! The path of the data: a DATA_ACK travels with the TCP ACK of the subflow it arrived on (RFC 8684 §3.3.2).

use super::{AckPath, AckRoute};
use anabranch_units::{Instant, SubflowId};

/// Answers where the data came from.
#[derive(Clone, Copy, Debug, Default)]
pub struct Own;

impl AckPath for Own {
    fn choose(&mut self, _now: Instant, arrived: SubflowId, _routes: &[AckRoute]) -> SubflowId {
        arrived
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_units::Duration;

    #[test]
    fn answers_on_the_path_of_the_data_though_another_is_faster() {
        let route = |id, ms| AckRoute { id: SubflowId(id), srtt: Some(Duration::from_millis(ms)) };
        assert_eq!(Own.choose(Instant::ZERO, SubflowId(1), &[route(0, 1), route(1, 90)]), SubflowId(1));
    }
}
