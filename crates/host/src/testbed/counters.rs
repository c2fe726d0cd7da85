//! Kernel counters of a namespace, as `nstat` shows them.

use crate::Namespace;
use std::collections::BTreeMap;
use std::fmt;
use std::io;

/// Counters of one namespace, or their increase. Names carry the prefix of their table, for instance
/// `MPTcpExtMPJoinAckRx` or `TcpExtTCPTimeouts`.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct KernelCounters(BTreeMap<String, u64>);

impl KernelCounters {
    /// Reads the current values.
    pub fn read(namespace: &Namespace) -> io::Result<Self> {
        namespace.run(|| {
            let mut counters = BTreeMap::new();
            for table in ["netstat", "snmp"] {
                parse(&std::fs::read_to_string(format!("/proc/thread-self/net/{table}"))?, &mut counters)?;
            }
            Ok(KernelCounters(counters))
        })
    }

    /// Returns the increase since `before`; gauges that fell count as 0.
    pub fn since(&self, before: &KernelCounters) -> KernelCounters {
        let grown = |(name, value): (&String, &u64)| (name.clone(), value.saturating_sub(before.get(name)));
        KernelCounters(self.0.iter().map(grown).collect())
    }

    /// One of them; 0 if this kernel has it not.
    pub fn get(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or(0)
    }

    /// One of the MPTCP counters, without its prefix.
    pub fn mptcp(&self, name: &str) -> u64 {
        self.get(&format!("MPTcpExt{name}"))
    }

    /// Those of the MPTCP counters that say that something went wrong, and are not 0.
    pub fn mptcp_trouble(&self) -> BTreeMap<&str, u64> {
        let named = self.0.iter().filter_map(|(name, value)| Some((name.strip_prefix("MPTcpExt")?, *value)));
        named.filter(|(name, value)| *value > 0 && TROUBLE.iter().any(|part| name.contains(part))).collect()
    }
}

/// The MPTCP counters that are not 0.
impl fmt::Display for KernelCounters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mptcp = self.0.iter().filter_map(|(name, value)| Some((name.strip_prefix("MPTcpExt")?, value)));
        let said: Vec<String> =
            mptcp.filter(|(_, value)| **value > 0).map(|(name, value)| format!("{name} {value}")).collect();
        write!(f, "{}", if said.is_empty() { "nothing".to_owned() } else { said.join(", ") })
    }
}

/// The same: there are hundreds, and most are of no interest.
impl fmt::Debug for KernelCounters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KernelCounters({self})")
    }
}

/// Parts of the names of counters that stay 0 while all is well: fallbacks, refusals, resets, wrong checksums and
/// mappings.
const TROUBLE: &[&str] = &[
    "Fallback",
    "NoToken",
    "HMacFailure",
    "Rejected",
    "Fail",
    "Infinite",
    "Csum",
    "DSSNo",
    "DSSCorruption",
    "Rst",
    "Fastclose",
    "Disabled",
    "Drop",
    "Blackhole",
    "MismatchPort",
    "BadOption",
];

/// Tables of two lines: `Table: name name …` and `Table: value value …`.
fn parse(text: &str, counters: &mut BTreeMap<String, u64>) -> io::Result<()> {
    let lines: Vec<&str> = text.lines().collect();
    for pair in lines.chunks(2) {
        let [names, values] = pair else { return Err(io::Error::other("a table without its values")) };
        let mut names = names.split_whitespace();
        let table = names.next().unwrap_or_default().trim_end_matches(':');
        for (name, value) in names.zip(values.split_whitespace().skip(1)) {
            // Some are signed; those that are negative are limits, not counters.
            counters.insert(format!("{table}{name}"), value.parse().unwrap_or(0));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn counters(text: &str) -> KernelCounters {
        let mut counters = BTreeMap::new();
        parse(text, &mut counters).unwrap();
        KernelCounters(counters)
    }

    #[test]
    fn differences_by_name() {
        let before = counters("TcpExt: A B\nTcpExt: 1 2\nMPTcpExt: MPJoinAckRx MPRstTx\nMPTcpExt: 5 0\n");
        let after = counters("TcpExt: A B\nTcpExt: 4 2\nMPTcpExt: MPJoinAckRx MPRstTx\nMPTcpExt: 6 3\n");
        let grown = after.since(&before);
        assert_eq!((grown.get("TcpExtA"), grown.get("TcpExtB"), grown.mptcp("MPJoinAckRx")), (3, 0, 1));
        assert_eq!(grown.mptcp_trouble(), BTreeMap::from([("MPRstTx", 3)]));
        assert_eq!(grown.to_string(), "MPJoinAckRx 1, MPRstTx 3");
    }
}
