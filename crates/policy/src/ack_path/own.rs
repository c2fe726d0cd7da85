//! The path of the data: an ACK, DATA_ACK included, travels on the subflow on which the data arrived (RFC 8684 §3.3.2).

use super::AckPath;

/// Answers where the data came from.
#[derive(Clone, Copy, Debug, Default)]
pub struct Own;

impl AckPath for Own {}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;
    use anabranch_units::Instant;

    #[test]
    fn answers_on_the_path_of_the_data_though_another_is_faster() {
        let routes = [route(FIRST, Some(1)), route(SECOND, Some(90))];
        assert_eq!(Own.data_ack(Instant::ZERO, SECOND, &routes), SECOND);
        assert_eq!(Own.path(Instant::ZERO, SECOND, &routes), SECOND);
        assert_eq!(Own.probing(), None);
    }
}
