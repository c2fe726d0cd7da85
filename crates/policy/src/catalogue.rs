//! The policies that a program knows: those of the [`registry`](crate::registry), and what it adds at run time.
//!
//! A catalogue is passed to the code that looks a policy up by name; there is no global one.
//!
//! ```
//! use anabranch_policy::Catalogue;
//! use anabranch_policy::scheduler::{Entry, MinRtt};
//!
//! const MINE: Entry = Entry::new("mine", "like min-rtt", "", |_| Box::new(MinRtt));
//!
//! let mut catalogue = Catalogue::default();
//! catalogue.schedulers.add(MINE).expect("no other is called so");
//! assert!(catalogue.schedulers.find("mine").is_ok());
//! ```

use crate::ack_path::AckPath;
use crate::congestion::CongestionControl;
use crate::first_path::FirstPath;
use crate::queue::QueueDiscipline;
use crate::receive_window::ReceiveWindow;
use crate::registry::{
    ACK_PATHS, CONGESTION, Entry, FIRST_PATHS, Kind, ParamError, QUEUES, REINJECTIONS, SCHEDULERS, WINDOWS, find,
};
use crate::reinjection::Reinjection;
use crate::scheduler::Scheduler;

/// All policies by name, one table for each seam.
pub struct Catalogue {
    /// Schedulers: choose the bytes that leave next and their subflow.
    pub schedulers: Table<dyn Scheduler>,
    /// Congestion controls: limit the bytes in flight.
    pub congestion: Table<CongestionControl>,
    /// Window policies: share out the peer's window.
    pub windows: Table<dyn ReceiveWindow>,
    /// ACK-path policies: choose the path of an ACK.
    pub ack_paths: Table<dyn AckPath>,
    /// Reinjection policies: repeat bytes in flight on other subflows.
    pub reinjections: Table<dyn Reinjection>,
    /// First-path policies: choose the path on which a connection begins.
    pub first_paths: Table<dyn FirstPath>,
    /// Queue disciplines: choose the packet that leaves a link next, and what is dropped or marked.
    pub queues: Table<dyn QueueDiscipline>,
}

/// The policies of one kind, in the order of the registry, then in that of their adding.
pub struct Table<T: Kind + ?Sized> {
    kind: &'static str,
    entries: Vec<Entry<T>>,
}

/// An entry that a table does not take: its name is not free.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is a {kind} called `{name}` already")]
pub struct NameTaken {
    /// Kind of the entry: scheduler, congestion control, ….
    pub kind: &'static str,
    /// Its name.
    pub name: String,
}

impl Default for Catalogue {
    /// The policies of the registry.
    fn default() -> Self {
        Catalogue {
            schedulers: Table::new("scheduler", SCHEDULERS),
            congestion: Table::new("congestion control", CONGESTION),
            windows: Table::new("receive window", WINDOWS),
            ack_paths: Table::new("ACK path", ACK_PATHS),
            reinjections: Table::new("reinjection", REINJECTIONS),
            first_paths: Table::new("first path", FIRST_PATHS),
            queues: Table::new("queue discipline", QUEUES),
        }
    }
}

impl<T: Kind + ?Sized> Table<T> {
    fn new(kind: &'static str, entries: &[Entry<T>]) -> Self {
        Table { kind, entries: entries.to_vec() }
    }

    /// Kind of its entries: scheduler, congestion control, ….
    pub fn kind(&self) -> &'static str {
        self.kind
    }

    /// Adds a policy at the end.
    ///
    /// # Errors
    /// If there is one of that name.
    pub fn add(&mut self, entry: Entry<T>) -> Result<(), NameTaken> {
        if self.names().any(|name| name == entry.name) {
            return Err(NameTaken { kind: self.kind, name: entry.name.into_owned() });
        }
        self.entries.push(entry);
        Ok(())
    }

    /// The entry called `name`.
    ///
    /// # Errors
    /// If there is none; the error lists the names there are.
    pub fn find(&self, name: &str) -> Result<&Entry<T>, ParamError> {
        find(&self.entries, self.kind, name)
    }

    /// All entries.
    pub fn entries(&self) -> &[Entry<T>] {
        &self.entries
    }

    /// The names of all entries.
    pub fn names(&self) -> impl Iterator<Item = &str> + '_ {
        self.entries.iter().map(|entry| &*entry.name)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::scheduler::{Entry, MinRtt};

    /// An entry of which everything was made at run time.
    fn mine(name: &str) -> Entry {
        let owned = name.to_owned();
        Entry::found(name.to_owned(), String::new(), move |_| {
            assert!(!owned.is_empty(), "the closure owns what it was made with");
            Box::new(MinRtt)
        })
    }

    #[test]
    fn what_is_added_is_found_behind_the_built_in_ones() {
        let mut catalogue = Catalogue::default();
        catalogue.schedulers.add(mine("mine")).unwrap();
        assert_eq!(catalogue.schedulers.names().last(), Some("mine"));
        assert_eq!(catalogue.schedulers.entries().len(), SCHEDULERS.len() + 1);
        assert_eq!(catalogue.schedulers.find("mine").unwrap().name, "mine");
        catalogue.schedulers.find("mine").unwrap().clone().build_default();
        assert!(Catalogue::default().schedulers.find("mine").is_err(), "another catalogue knows nothing of it");
    }

    /// No policy asks for a parameter that is not set.
    #[test]
    fn every_policy_can_be_made_from_nothing() {
        fn make<T: Kind + ?Sized>(table: &Table<T>) {
            table.entries().iter().for_each(|entry| drop(entry.build_default()));
        }
        let Catalogue { schedulers, congestion, windows, ack_paths, reinjections, first_paths, queues } =
            Catalogue::default();
        make(&schedulers);
        make(&congestion);
        make(&windows);
        make(&ack_paths);
        make(&reinjections);
        make(&first_paths);
        make(&queues);
    }

    #[test]
    fn a_name_is_given_once() {
        let mut catalogue = Catalogue::default();
        let taken = |name: &str| Err(NameTaken { kind: "scheduler", name: name.to_owned() });
        assert_eq!(catalogue.schedulers.add(mine("min-rtt")), taken("min-rtt"));
        catalogue.schedulers.add(mine("mine")).unwrap();
        assert_eq!(catalogue.schedulers.add(mine("mine")), taken("mine"));
        assert_eq!(catalogue.schedulers.names().filter(|name| *name == "mine").count(), 1);
    }
}
