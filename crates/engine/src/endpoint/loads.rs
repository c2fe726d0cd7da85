//! The loads of an endpoint's connections, for an application that bounds what its peers may take up.

use super::{Endpoint, Remains};
use crate::connection::Connection;
use crate::{ConnectionId, Load};

impl Endpoint {
    /// Memory that a connection takes up now; `None` once it is gone and all that it received was read.
    pub fn load(&self, id: ConnectionId) -> Option<Load> {
        match self.get(id) {
            Some(connection) => Some(connection).filter(|it| !it.is_gone() || it.unread() > 0).map(Connection::load),
            None => self.closed.get(&id).and_then(Remains::load),
        }
    }

    /// Starts recording connections whose load may have changed, for [`Endpoint::poll_changed`].
    pub fn watch_loads(&mut self) {
        self.changed.get_or_insert_default();
    }

    /// A connection whose load may have changed since it was named here last, or which is gone since; each once.
    pub fn poll_changed(&mut self) -> Option<ConnectionId> {
        let index = self.changed.as_mut()?.pop()?;
        let slot = &mut self.connections[index as usize];
        slot.changed = false;
        Some(ConnectionId { index, generation: slot.generation })
    }

    /// Connection `index` may take up more now, or less.
    pub(super) fn note_change(&mut self, index: u32) {
        if let Some(changed) = &mut self.changed
            && !std::mem::replace(&mut self.connections[index as usize].changed, true)
        {
            changed.push(index);
        }
    }
}
