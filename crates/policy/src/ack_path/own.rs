//! The path of the data: an ACK, DATA_ACK included, travels on the subflow on which the data arrived (RFC 8684 §3.3.2).

use super::{AckPath, Capabilities, Entry};

/// Entry in the table of its kind.
pub const ENTRY: Entry =
    Entry::new("own", "the path on which the data came", include_str!("own.rs"), |_| Box::new(Own))
        .paper("RFC 8684 §3.3.2")
        .capabilities(|_| Capabilities { moves: false });

/// Every ACK where its data came from.
#[derive(Clone, Copy, Debug, Default)]
pub struct Own;

impl AckPath for Own {}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;
    use anabranch_units::Instant;

    #[test]
    fn stays_on_the_path_of_the_data_though_another_is_faster() {
        assert!(!ENTRY.build_default().capabilities.moves);
        let routes = [route(FIRST, Some(1)), route(SECOND, Some(90))];
        assert_eq!(Own.data_ack(Instant::ZERO, SECOND, &routes), SECOND);
        assert_eq!(Own.path(Instant::ZERO, SECOND, &routes), SECOND);
        assert_eq!(Own.probing(), None);
    }
}
