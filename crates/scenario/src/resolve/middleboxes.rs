//! Middleboxes with their defaults.

use super::workloads::way;
use crate::error::Problem;
use crate::file::{
    At, EndName, MiddleboxTable, SplitName, StrippedName, StrippedOptionsName, SynOptionName, Unit, UnmappedName,
};
use anabranch_paths::{
    End, Fault, Middlebox, MiddleboxSpec, SplitOptions, Stripped, StrippedOptions, SynOption, Unmapped,
};
use anabranch_units::{Bytes, Duration};

/// MSS that every IPv4 host accepts (RFC 9293 §3.7.1).
const PIECE: u16 = 536;
/// Payload of two full segments.
const MERGED: u16 = 2920;
/// Smallest MTU of an IPv6 link (RFC 8200 §5), and a common limit of tunnels.
const MTU: u16 = 1280;
/// Processing time of a box: short beside the delay of a path.
const MOMENT: Duration = Duration::from_millis(1);
/// Offset behind the handshake and the first windows.
const OFFSET: u32 = 100_000;
/// Delay beyond the first retransmission timeout (RFC 6298 §2.1).
const LATE: Duration = Duration::from_secs(3);
/// Number of bytes edited: a few, as of an address.
const EDIT: u16 = 4;

pub(super) fn middlebox(at: &At<MiddleboxTable>) -> Result<MiddleboxSpec, Problem> {
    let size = |given: Option<Unit<Bytes>>, default| match given {
        None => Ok(default),
        Some(Unit(size)) => u16::try_from(size.get())
            .map_err(|_| Problem::at(&at.span, format!("a packet of {size} cannot be"), "accepted: up to 65535B")),
    };
    let span = |given: Option<Unit<Duration>>, default| given.map_or(default, |Unit(span)| span);
    let way = |given: Option<crate::file::DirectionName>| given.map(way);
    let (kind, end) = match at.value.clone() {
        MiddleboxTable::Strip { from, options, after, direction, end } => {
            let (from, options, after) = (stripped(from), stripped_options(options), u64::from(after));
            (Middlebox::Strip { from, options, after, direction: way(direction) }, end)
        }
        MiddleboxTable::RewriteSequence { end } => (Middlebox::RewriteSequence, end),
        MiddleboxTable::Split { size: given, options, direction, end } => {
            let options = match options {
                SplitName::Copied => SplitOptions::Copied,
                SplitName::First => SplitOptions::First,
            };
            (Middlebox::Split { size: size(given, PIECE)?, options, direction: way(direction) }, end)
        }
        MiddleboxTable::Coalesce { size: given, wait, direction, end } => {
            let (size, wait) = (size(given, MERGED)?, span(wait, MOMENT));
            (Middlebox::Coalesce { size, wait, direction: way(direction) }, end)
        }
        MiddleboxTable::AlterPayload { offset, remove, insert, direction, end } => {
            let (remove, insert) = (remove.unwrap_or(EDIT), insert.unwrap_or(EDIT));
            let (offset, direction) = (offset.unwrap_or(OFFSET), way(direction));
            (Middlebox::AlterPayload { offset, remove, insert, direction }, end)
        }
        MiddleboxTable::EarlyAck { delay, lose, direction, end } => {
            (Middlebox::EarlyAck { delay: span(delay, MOMENT), lose, direction: way(direction) }, end)
        }
        MiddleboxTable::Nat { rebind, unmapped, end } => {
            let unmapped = match unmapped {
                UnmappedName::Dropped => Unmapped::Dropped,
                UnmappedName::Reset => Unmapped::Reset,
            };
            (Middlebox::Nat { rebind: rebind.map(|Unit(at)| at), unmapped }, end)
        }
        MiddleboxTable::MtuBlackhole { size: given, from, direction, end } => {
            let (size, from) = (size(given, MTU)?, span(from, Duration::ZERO));
            (Middlebox::MtuBlackhole { size, from, direction: way(direction) }, end)
        }
        MiddleboxTable::DropSyn { option, end } => {
            let option = match option {
                SynOptionName::MpCapable => SynOption::Capable,
                SynOptionName::MpJoin => SynOption::Join,
            };
            (Middlebox::DropSyn { option }, end)
        }
        MiddleboxTable::Faults { drop, duplicate, swap, delay, wait, direction, end } => {
            let all = [(drop, Fault::Drop), (duplicate, Fault::Duplicate), (swap, Fault::Swap), (delay, Fault::Delay)];
            let mut plan: Vec<_> =
                all.iter().flat_map(|(numbers, fault)| numbers.iter().map(|number| (*number, *fault))).collect();
            // Sorted, two faults of one segment are neighbours.
            plan.sort_unstable();
            if let Some(pair) = plan.windows(2).find(|pair| pair[0].0 == pair[1].0) {
                let problem = format!("segment {} meets two faults", pair[0].0);
                return Err(Problem::at(&at.span, problem, "accepted: one for each number"));
            }
            (Middlebox::Faults { plan, wait: span(wait, LATE), direction: way(direction) }, end)
        }
    };
    kind.check().map_err(|what| {
        Problem::at(&at.span, format!("this {} cannot be", kind.name()), format!("accepted: {what}"))
    })?;
    let end = match end {
        EndName::Client => End::Client,
        EndName::Server => End::Server,
    };
    Ok(MiddleboxSpec { kind, end })
}

fn stripped(name: StrippedName) -> Stripped {
    match name {
        StrippedName::Syn => Stripped::Syn,
        StrippedName::SynAck => Stripped::SynAck,
        StrippedName::ThirdAck => Stripped::ThirdAck,
        StrippedName::All => Stripped::All,
        StrippedName::AfterHandshake => Stripped::AfterHandshake,
    }
}

fn stripped_options(name: StrippedOptionsName) -> StrippedOptions {
    match name {
        StrippedOptionsName::Mptcp => StrippedOptions::Mptcp,
        StrippedOptionsName::Dss => StrippedOptions::Dss,
        StrippedOptionsName::AddAddr => StrippedOptions::AddAddr,
        StrippedOptionsName::Control => StrippedOptions::Control,
    }
}
