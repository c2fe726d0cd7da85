//! Sentences about multipath that did not come about: connections that are plain TCP, paths that carried no data, and
//! why.
//!
//! An observer of connections (a testbed, a server, a simulation, the reader of a capture) fills in a [`PathUse`] with
//! what it can tell; the words are made here.

use crate::FallbackReason;
use crate::{ConnectionStats, SubflowStats};
use std::collections::BTreeMap;

/// Use of multipath in one transfer or run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PathUse {
    /// Connections that were seen.
    pub connections: u64,
    /// Connections in plain TCP that could have been MPTCP, by reason.
    pub plain: BTreeMap<FallbackReason, u64>,
    /// MPTCP connections with data, all of which one subflow carried.
    pub on_one_subflow: u64,
    /// Paths, by the name that a reader knows them by.
    pub paths: Vec<Path>,
}

/// Data on one path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    /// Name, for instance `lte`, or an address.
    pub name: String,
    /// Payload bytes both ways, repeated ones included.
    pub bytes: u64,
    /// The furthest that a subflow came there.
    pub subflow: Subflow,
}

/// State of a subflow on a path that may have carried no data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subflow {
    /// No subflow was opened.
    Absent,
    /// A subflow was tried and not established.
    Failed,
    /// A subflow was established, as a backup.
    Backup,
    /// A subflow was established.
    Established,
    /// Not known: packets of some kind went there.
    Unknown,
}

/// Returns the name of a subflow's path: the pair of addresses.
pub fn path_name(subflow: &SubflowStats) -> String {
    format!("{} to {}", subflow.local.ip(), subflow.remote.ip())
}

impl PathUse {
    /// Summarises one connection as an engine counted it; a path is a pair of addresses.
    pub fn of(stats: &ConnectionStats, subflows: &[SubflowStats]) -> PathUse {
        let path = |subflow: &SubflowStats| Path {
            name: path_name(subflow),
            bytes: subflow.bytes_sent + subflow.bytes_received,
            subflow: Subflow::of(subflow),
        };
        let mut usage = PathUse { connections: 1, ..PathUse::default() };
        usage.plain.extend(stats.fallback.map(|reason| (reason, 1)));
        subflows.iter().for_each(|subflow| usage.add(path(subflow)));
        usage
    }

    /// Adds what a subflow carried to its path.
    pub fn add(&mut self, path: Path) {
        match self.paths.iter_mut().find(|known| known.name == path.name) {
            Some(known) => {
                known.bytes += path.bytes;
                known.subflow = known.subflow.max(path.subflow);
            }
            None => self.paths.push(path),
        }
    }

    /// Returns one sentence for each unexpected fact; none where every connection is MPTCP and every path carried data,
    /// or where no data was seen at all.
    pub fn remarks(&self) -> Vec<String> {
        let mut remarks: Vec<String> = self
            .plain
            .iter()
            .filter(|(_, count)| **count > 0)
            .map(|(reason, count)| self.plain(*reason, *count))
            .collect();
        if self.on_one_subflow > 0 {
            let multipath = self.connections.saturating_sub(self.plain_count());
            let (subject, verb) = subject(self.on_one_subflow, multipath, "MPTCP connection");
            remarks.push(format!("{subject} {verb} carried by one subflow alone"));
        }
        if self.paths.iter().any(|path| path.bytes > 0) {
            remarks.extend(self.paths.iter().filter(|path| path.bytes == 0).map(|path| self.unused(path)));
        }
        remarks
    }

    fn plain_count(&self) -> u64 {
        self.plain.values().sum()
    }

    fn plain(&self, reason: FallbackReason, count: u64) -> String {
        let (subject, verb) = subject(count, self.connections, "connection");
        format!("{subject} {verb} plain TCP: {reason}")
    }

    fn unused(&self, path: &Path) -> String {
        let why = if self.connections > 0 && self.plain_count() >= self.connections {
            ": plain TCP uses one path"
        } else {
            match path.subflow {
                Subflow::Absent => ": no subflow was opened there",
                Subflow::Failed => ": the subflow that was tried there did not come about",
                Subflow::Backup => ": it is a backup, and another path worked",
                Subflow::Established => ": its subflow was there, and the data went elsewhere or was over before",
                Subflow::Unknown => "",
            }
        };
        format!("path {} carried no data{why}", path.name)
    }
}

/// `2 of 3 connections` and `are`, or `the connection` and `is`.
fn subject(count: u64, of: u64, what: &str) -> (String, &'static str) {
    match (count, of) {
        (1, 0 | 1) => (format!("the {what}"), "is"),
        (1, _) => (format!("1 of {of} {what}s"), "is"),
        _ if count >= of => (format!("all {count} {what}s"), "are"),
        _ => (format!("{count} of {of} {what}s"), "are"),
    }
}

impl Subflow {
    /// Summarises an engine's subflow, which may be over.
    pub fn of(stats: &SubflowStats) -> Subflow {
        match (stats.backup, stats.srtt) {
            (true, _) => Subflow::Backup,
            // A handshake that went through has measured one.
            (false, None) => Subflow::Failed,
            (false, Some(_)) => Subflow::Established,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(name: &str, bytes: u64, subflow: Subflow) -> Path {
        Path { name: name.to_owned(), bytes, subflow }
    }

    #[test]
    fn nothing_is_said_where_all_is_as_expected() {
        let paths = vec![path("wlan", 1, Subflow::Established), path("lte", 1, Subflow::Unknown)];
        let used = PathUse { connections: 2, paths, ..PathUse::default() };
        assert_eq!(used.remarks(), [""; 0]);
        let idle = PathUse { paths: vec![path("wlan", 0, Subflow::Absent)], ..PathUse::default() };
        assert_eq!(idle.remarks(), [""; 0], "nothing was sent at all");
    }

    #[test]
    fn a_path_says_why_it_carried_nothing() {
        for (state, why) in [
            (Subflow::Absent, "path lte carried no data: no subflow was opened there"),
            (Subflow::Failed, "path lte carried no data: the subflow that was tried there did not come about"),
            (Subflow::Backup, "path lte carried no data: it is a backup, and another path worked"),
            (Subflow::Unknown, "path lte carried no data"),
        ] {
            let paths = vec![path("wlan", 9, Subflow::Established), path("lte", 0, state)];
            assert_eq!(PathUse { connections: 1, paths, ..PathUse::default() }.remarks(), [why]);
        }
    }

    #[test]
    fn plain_tcp_is_counted_with_its_reason() {
        let paths = vec![path("wlan", 9, Subflow::Unknown), path("lte", 0, Subflow::Absent)];
        let plain = BTreeMap::from([(FallbackReason::SynLost, 2), (FallbackReason::Syn, 0)]);
        let mut use_ = PathUse { connections: 2, plain, on_one_subflow: 0, paths };
        let why = "SYNs with MP_CAPABLE had no answer, and one without had";
        let remarks = [
            format!("all 2 connections are plain TCP: {why}"),
            "path lte carried no data: plain TCP uses one path".into(),
        ];
        assert_eq!(use_.remarks(), remarks);
        (use_.connections, use_.on_one_subflow) = (5, 1);
        let remarks = [
            format!("2 of 5 connections are plain TCP: {why}"),
            "1 of 3 MPTCP connections is carried by one subflow alone".to_owned(),
            "path lte carried no data: no subflow was opened there".to_owned(),
        ];
        assert_eq!(use_.remarks(), remarks);
    }

    #[test]
    fn each_reason_has_a_name_of_its_own() {
        for reason in FallbackReason::ALL {
            assert_eq!(FallbackReason::named(reason.name()), Some(reason));
        }
    }
}
