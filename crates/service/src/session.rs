//! Interface between a service and one connection.

use crate::stream::Stream;
use anabranch_units::Instant;

/// One connection of a service.
pub(crate) trait Session {
    /// The connection has opened, or data has come, or there is room to write: does all that can be done now.
    fn advance(&mut self, stream: &mut Stream<'_>);

    /// The peer has closed its direction, and everything before was read.
    fn on_end(&mut self, stream: &mut Stream<'_>);

    /// Returns the time at which [`Session::on_deadline`] is to be called, if it is in a hurry.
    fn deadline(&self) -> Option<Instant> {
        None
    }

    /// The deadline has passed.
    fn on_deadline(&mut self, _stream: &mut Stream<'_>) {}

    /// No further request is to be served: ends the connection when the one under way is done.
    fn drain(&mut self, _stream: &mut Stream<'_>) {}
}
