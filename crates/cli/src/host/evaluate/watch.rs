//! Packets of a testbed as its flows are measured from.

use anabranch_host::emulator::{Glimpse, Witness};
use anabranch_lab::{LiveFlows, Place};
use anabranch_paths::{End, PacketId};
use anabranch_units::Instant;

/// Passes what the emulator sees on to the flows.
#[derive(Debug)]
pub struct Watch(pub Option<LiveFlows>);

impl Watch {
    fn see(&mut self, glimpse: Glimpse<'_>, at_sender: bool) {
        let Glimpse { id, path, end, at, bytes } = glimpse;
        let from_server = (end == End::Server) == at_sender;
        if let Some(flows) = &mut self.0 {
            flows.see(Place { id, path, at_sender, from_server, at }, bytes);
        }
    }
}

impl Witness for Watch {
    fn on_begin(&mut self, at: Instant) {
        self.0.iter_mut().for_each(|flows| flows.begin(at));
    }

    fn on_sent(&mut self, glimpse: Glimpse<'_>) {
        self.see(glimpse, true);
    }

    fn on_received(&mut self, glimpse: Glimpse<'_>) {
        self.see(glimpse, false);
    }

    fn on_lost(&mut self, id: PacketId) {
        self.0.iter_mut().for_each(|flows| flows.lose(id));
    }

    fn on_ended(&mut self, id: PacketId) {
        self.0.iter_mut().for_each(|flows| flows.end(id));
    }
}
