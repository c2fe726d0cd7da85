//! Kernel counters of an interface.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// The counters of one interface, readable from any network namespace once they are open.
#[derive(Debug)]
pub(crate) struct InterfaceCounters {
    /// `/proc/net/dev` of the namespace in which it was opened.
    table: File,
    name: String,
}

impl InterfaceCounters {
    /// Opens the counters of interface `name` in the caller's network namespace.
    pub(crate) fn open(name: &str) -> io::Result<Self> {
        Ok(InterfaceCounters { table: File::open("/proc/thread-self/net/dev")?, name: name.to_owned() })
    }

    /// Packets that the host sent and its interface dropped.
    pub(crate) fn transmit_drops(&self) -> io::Result<Option<u64>> {
        let mut text = Vec::new();
        let mut chunk = [0; 4096];
        loop {
            match self.table.read_at(&mut chunk, text.len() as u64)? {
                0 => break,
                length => text.extend_from_slice(&chunk[..length]),
            }
        }
        Ok(transmit_drops(&String::from_utf8_lossy(&text), &self.name))
    }
}

/// Reads the table: a name, a colon, eight numbers of packets received and eight of packets sent, of which the fourth
/// are drops (`proc(5)`).
fn transmit_drops(table: &str, name: &str) -> Option<u64> {
    let mut rows = table.lines().filter_map(|line| line.split_once(':'));
    let (_, numbers) = rows.find(|(interface, _)| interface.trim() == name)?;
    numbers.split_whitespace().nth(8 + 3)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_drops_are_in_the_twelfth_column() {
        let table = "Inter-|   Receive                            |  Transmit\n \
                      face |bytes    packets errs drop fifo frame compressed multicast|bytes packets errs drop fifo colls carrier compressed\n    \
                        lo: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n  \
                      wlan: 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36\n";
        assert_eq!(transmit_drops(table, "wlan"), Some(32));
        assert_eq!(transmit_drops(table, "lo"), Some(12));
        assert_eq!(transmit_drops(table, "lan"), None);
        assert_eq!(transmit_drops("wlan: 1 2", "wlan"), None);
    }
}
