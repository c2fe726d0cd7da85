//! Network of a run: paths, shared links, and changes to them.

use crate::{Affected, MiddleboxSpec, NetworkError};
use anabranch_net::{Change, LinkConfig};
use anabranch_units::{Duration, Rate};
use std::collections::BTreeSet;

/// Paths between a client and a server, and what happens to them.
///
/// The client has one address per path, and whatever is sent from or to it takes that path. A run may have several
/// clients ([`Topology::new`](crate::Topology::new)): each has copies of all of it.
#[derive(Clone)]
pub struct NetworkSpec {
    /// Paths, 1 to 255.
    pub paths: Vec<PathSpec>,
    /// Links in series with several paths; see [`PathSpec::via`].
    pub shared: Vec<SharedLink>,
    /// The path that a host uses unless told otherwise, as the first subflow of a connection: an index into `paths`.
    pub primary: usize,
    /// Changes to links.
    pub changes: Vec<TimedChange>,
}

/// One path between the hosts.
#[derive(Clone)]
pub struct PathSpec {
    /// Its name in results. Links are called `NAME/down`, `NAME/up` and `NAME/nic-down`, `NAME/nic-up`.
    pub name: String,
    /// From server to client.
    pub down: LinkConfig,
    /// From client to server.
    pub up: LinkConfig,
    /// The rate of the first hop of either host, whose departures TCP Small Queues waits for; `None` for no such hop
    /// and no such limit.
    pub nic: Option<Rate>,
    /// The name of a shared link in series with this path.
    pub via: Option<String>,
    /// The client announces subflows over this path as backups.
    pub backup: bool,
    /// Middleboxes of the path, in the order from the client to the server.
    pub middleboxes: Vec<MiddleboxSpec>,
}

/// A link that several paths cross, between the server's first hop and the paths' own links.
#[derive(Clone)]
pub struct SharedLink {
    /// Its name; the links are called `NAME/down` and `NAME/up`.
    pub name: String,
    /// From server to client.
    pub down: LinkConfig,
    /// From client to server.
    pub up: LinkConfig,
}

/// A change to the links of a path while the run goes on.
#[derive(Clone, Debug)]
pub struct TimedChange {
    /// Time since the beginning of the run.
    pub at: Duration,
    /// The name of a path or of a shared link.
    pub path: String,
    /// Directions of the path that change.
    pub affected: Affected,
    /// The change.
    pub change: Change,
    /// True if the client sees its interface on that path lose carrier (`Change::Down`) and regain it (`Change::Up`,
    /// and `Change::Restore` after a loss).
    pub notify: bool,
}

impl NetworkSpec {
    /// These paths: no shared links, the first path primary, no changes.
    pub fn new(paths: Vec<PathSpec>) -> Self {
        NetworkSpec { paths, shared: Vec::new(), primary: 0, changes: Vec::new() }
    }

    /// Checks numbers and names, as far as that needs no link.
    ///
    /// # Errors
    /// The first thing that is refused.
    pub(crate) fn check(&self, clients: usize) -> Result<(), NetworkError> {
        if !(1..=MAX_PATHS).contains(&self.paths.len()) {
            return Err(NetworkError::Paths(self.paths.len()));
        }
        if self.primary >= self.paths.len() {
            return Err(NetworkError::Primary(self.primary, self.paths.len()));
        }
        let mut names = BTreeSet::new();
        for name in self.paths.iter().map(|path| &path.name).chain(self.shared.iter().map(|link| &link.name)) {
            if !names.insert(name) {
                return Err(NetworkError::DuplicateName(name.clone()));
            }
        }
        // A path called `1/wlan` beside `wlan` is refused only where there is a client 1 whose copy is called so.
        let is_copy = |name: &str| {
            let (number, original) = name.split_once('/')?;
            let number = number.parse::<usize>().ok().filter(|number| (1..clients).contains(number))?;
            (copy_name(number, original) == name && names.contains(&original.to_owned())).then_some(())
        };
        if let Some(name) = names.iter().find(|name| is_copy(name).is_some()) {
            return Err(NetworkError::DuplicateName((*name).clone()));
        }
        for path in &self.paths {
            for middlebox in &path.middleboxes {
                let place = || format!("{}/{}", path.name, middlebox.kind.name());
                middlebox.kind.check().map_err(|what| NetworkError::Middlebox { place: place(), what })?;
            }
        }
        for timed in &self.changes {
            if let Change::Loss(model) = &timed.change {
                let place = format!("change of {} at {}", timed.path, timed.at);
                model.check().map_err(|error| NetworkError::Link { place, error })?;
            }
        }
        Ok(())
    }
}

impl PathSpec {
    /// A path over these links and nothing else.
    pub fn new(name: &str, down: LinkConfig, up: LinkConfig) -> Self {
        PathSpec { name: name.to_owned(), down, up, nic: None, via: None, backup: false, middleboxes: Vec::new() }
    }
}

/// The name of client `client`'s copy of something of a network or run: the first client's has the name itself, the
/// others' begin with their numbers. Random elements draw from streams named so (`link/3/wlan/down/loss`), and the
/// first client of many draws the same numbers as a single one.
pub fn copy_name(client: usize, name: &str) -> String {
    if client == 0 { name.to_owned() } else { format!("{client}/{name}") }
}

/// One octet of a client's address names the path; 255 is left out.
const MAX_PATHS: usize = 255;
