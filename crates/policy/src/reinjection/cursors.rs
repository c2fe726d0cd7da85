//! Cursors: where on each subflow a search for data to copy goes on.

use super::{FlightView, Piece};
use anabranch_units::{Dsn, SubflowId};

/// Subflows, each with the DSN before which nothing is left for it to copy.
#[derive(Clone, Debug, Default)]
pub(super) struct Cursors {
    of: Vec<(SubflowId, Dsn)>,
}

impl Cursors {
    /// First wanted piece under way at or after the cursor of subflow `on`, which moves to it: to the end of what was
    /// sent if there is none. The cursor of a new subflow is the oldest unacknowledged byte.
    pub(super) fn next(
        &mut self,
        on: SubflowId,
        flight: &FlightView<'_>,
        wanted: impl Fn(&Piece) -> bool,
    ) -> Option<Piece> {
        let (una, end) = (flight.view.data_una, flight.view.unsent_from);
        let cursor = self.cursor(on, una);
        // Acknowledged data may lie beyond it by now.
        let from = if cursor.before(una) { una } else { *cursor };
        let piece = flight.first_piece(from, end, wanted);
        *cursor = piece.map_or(end, |piece| piece.from);
        piece
    }

    fn cursor(&mut self, on: SubflowId, una: Dsn) -> &mut Dsn {
        let known = self.of.iter().position(|(id, _)| *id == on);
        let at = known.unwrap_or_else(|| {
            self.of.push((on, una));
            self.of.len() - 1
        });
        &mut self.of[at].1
    }

    /// Moves cursors beyond `from` back to it.
    pub(super) fn back_to(&mut self, from: Dsn) {
        for (_, cursor) in &mut self.of {
            if from.before(*cursor) {
                *cursor = from;
            }
        }
    }

    /// Begins again with the oldest unacknowledged byte.
    pub(super) fn clear(&mut self) {
        self.of.clear();
    }
}
