//! Wireshark's verdict on a capture: no malformed packet, no wrong checksum.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// Returns true if `tshark` is installed.
pub fn has_tshark() -> bool {
    Command::new("tshark").arg("--version").output().is_ok_and(|output| output.status.success())
}

/// Output of tshark for a capture.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dissection {
    /// Packets.
    pub packets: u64,
    /// Those with an MPTCP option, by subtype (RFC 8684 §8).
    pub subtypes: BTreeMap<u64, u64>,
    /// Packets that are not well-formed or have a wrong checksum, by what is wrong with them, the first few numbers
    /// each.
    pub faults: BTreeMap<String, Vec<String>>,
}

/// The outcome of the MPTCP options that tests look for.
pub mod subtype {
    /// MP_CAPABLE.
    pub const CAPABLE: u64 = 0;
    /// MP_JOIN.
    pub const JOIN: u64 = 1;
    /// DSS.
    pub const DSS: u64 = 2;
}

const FIELDS: &[&str] = &[
    "frame.number",
    "_ws.malformed",
    "_ws.expert.message",
    "_ws.expert.severity",
    "ip.checksum.status",
    "tcp.checksum.status",
    "tcp.checksum",
    "frame.packet_flags_direction",
    "tcp.options.mptcp.subtype",
];

/// `status` of a checksum that is wrong.
const BAD: &str = "0";
/// Minus zero: Linux writes it where the sum is zero, as UDP must. It means the same (RFC 1624 §3), but Wireshark
/// complains.
const MINUS_ZERO: &str = "0xffff";
/// `epb_flags` of a packet that came in.
const INBOUND: &str = "0x00000001";
/// `PI_ERROR`, Wireshark's severity of what a protocol forbids.
const ERROR: &str = "8388608";

impl Dissection {
    /// Has tshark dissect `capture`, checksums included.
    ///
    /// # Errors
    /// If it cannot be run, or cannot read the file.
    pub fn of(capture: &Path) -> Result<Dissection, String> {
        let mut command = Command::new("tshark");
        command.args(["-n", "-T", "fields", "-E", "aggregator=|", "-r"]).arg(capture);
        for preference in ["tcp.check_checksum:TRUE", "ip.check_checksum:TRUE", "tcp.desegment_tcp_streams:FALSE"] {
            command.args(["-o", preference]);
        }
        for field in FIELDS {
            command.args(["-e", field]);
        }
        // Ignores the settings of the current user.
        let settings = capture.parent().unwrap_or(Path::new("."));
        command.env("WIRESHARK_CONFIG_DIR", settings.join("no-wireshark-settings"));
        let output = command.output().map_err(|error| format!("tshark: {error}"))?;
        if !output.status.success() {
            return Err(format!("tshark: {}", String::from_utf8_lossy(&output.stderr)));
        }
        let mut dissection = Dissection::default();
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            dissection.add(line)?;
        }
        Ok(dissection)
    }

    /// Checks that no packet is faulty.
    ///
    /// # Errors
    /// The faults.
    pub fn check(&self) -> Result<(), String> {
        if self.packets == 0 {
            return Err("the capture is empty".to_owned());
        }
        if self.faults.is_empty() {
            return Ok(());
        }
        Err(format!("tshark complains about packets {:#?}", self.faults))
    }

    /// Packets with an MPTCP option of this subtype.
    pub fn with(&self, subtype: u64) -> u64 {
        self.subtypes.get(&subtype).copied().unwrap_or(0)
    }

    fn add(&mut self, line: &str) -> Result<(), String> {
        let values: Vec<&str> = line.split('\t').collect();
        let [number, malformed, messages, severities, ip, tcp, sum, direction, subtypes] = values[..] else {
            return Err(format!("tshark printed `{line}`"));
        };
        self.packets += 1;
        for subtype in subtypes.split('|').filter_map(|text| text.parse().ok()) {
            *self.subtypes.entry(subtype).or_default() += 1;
        }
        if !malformed.is_empty() {
            self.fault("malformed", number);
        }
        if ip == BAD {
            self.fault("IP checksum", number);
        }
        if tcp == BAD && !(sum == MINUS_ZERO && direction == INBOUND) {
            self.fault("TCP checksum", number);
        }
        for (message, _) in messages.split('|').zip(severities.split('|')).filter(|(_, severity)| *severity == ERROR) {
            self.fault(message, number);
        }
        Ok(())
    }

    fn fault(&mut self, what: &str, number: &str) {
        let numbers = self.faults.entry(what.to_owned()).or_default();
        if numbers.len() < FEW {
            numbers.push(number.to_owned());
        }
    }
}

const FEW: usize = 10;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_is_wrong_is_found_in_the_table() {
        let mut dissection = Dissection::default();
        dissection.add("1\t\t\t\t1\t1\t0x1234\t0x00000001\t0").unwrap();
        dissection.add("1\t\t\t\t1\t0\t0xffff\t0x00000001\t").unwrap();
        dissection.check().unwrap();
        dissection.add("2\t\tBad\t8388608\t1\t0\t0x1234\t0x00000001\t2|4").unwrap();
        dissection.add("3\t1\tOdd\t6291456\t\t1\t0x1234\t0x00000002\t").unwrap();
        let faults: Vec<(&str, &str)> =
            dissection.faults.iter().map(|(what, numbers)| (what.as_str(), numbers[0].as_str())).collect();
        assert_eq!(faults, [("Bad", "2"), ("TCP checksum", "2"), ("malformed", "3")]);
        assert_eq!((dissection.packets, dissection.with(subtype::CAPABLE), dissection.with(subtype::DSS)), (4, 1, 1));
        assert!(dissection.check().is_err());
    }
}
