//! Paths that carried nothing, each with its reason.

use crate::alternative::subflow_limit;
use crate::answer::{IdlePath, Reason};
use crate::inquiry::Case;
use crate::{Band, Bands, Limit};
use anabranch_sim::Spec;
use anabranch_units::Duration;
use std::collections::BTreeMap;

/// Time after which a SYN is repeated (RFC 6298 §2.1).
const FIRST_RTO: Duration = Duration::from_secs(1);

/// The paths that carried nothing in any run.
pub(crate) fn idle_paths(spec: &Spec, cases: &[Case], names: &[String]) -> Vec<IdlePath> {
    let carried = |path: usize| cases.iter().any(|case| case.run.measured.path_bytes[path] > 0);
    let idle = |(path, name): (usize, &String)| {
        let (reason, because) = reason(spec, cases, path);
        IdlePath { path: name.clone(), reason, because }
    };
    let any = cases.iter().any(|case| case.run.measured.path_bytes.iter().any(|bytes| *bytes > 0));
    names.iter().enumerate().filter(|(path, _)| any && !carried(*path)).map(idle).collect()
}

fn reason(spec: &Spec, cases: &[Case], path: usize) -> (Reason, String) {
    let connections = || cases.iter().flat_map(|case| &case.run.outcome.connections);
    if connections().all(|connection| !connection.multipath) {
        let of_end = |end: &Option<anabranch_engine::ConnectionStats>| end.as_ref().and_then(|end| end.fallback);
        let fallback = connections().find_map(|it| of_end(&it.receiver).or(of_end(&it.sender)));
        let because = match fallback {
            _ if !spec.client.config.multipath => "the client is set to plain TCP".to_owned(),
            _ if !spec.server.config.multipath => "the server answered without MP_CAPABLE".to_owned(),
            Some(fallback) => format!("the connection went on as plain TCP, since {}", words(fallback)),
            None => "the connection is plain TCP".to_owned(),
        };
        return (Reason::PlainTcp, because);
    }
    if spec.network.paths[path].backup {
        return (Reason::Backup, "it is marked as a backup".to_owned());
    }
    carried_nothing(spec, cases, path)
}

/// The reason for which a regular path of an MPTCP connection carried nothing, by what it waited for.
fn carried_nothing(spec: &Spec, cases: &[Case], path: usize) -> (Reason, String) {
    let bands = || cases.iter().flat_map(|case| &case.judged).filter_map(|judged| judged.paths.get(path));
    let mut times: BTreeMap<Limit, Duration> = BTreeMap::new();
    for (cause, time) in bands().flat_map(|bands| bands.times()) {
        *times.entry(cause.limit).or_insert(Duration::ZERO) += time;
    }
    let join = times.remove(&Limit::Join);
    times.retain(|limit, _| !matches!(limit, Limit::Unused | Limit::Handshake));
    let (reason, because) = match times.into_iter().max_by_key(|(_, time)| *time).map(|(limit, _)| limit) {
        Some(Limit::PeerWindow) => {
            (Reason::WindowUsedUp, "most of the time data on other paths used up the receiver's window")
        }
        Some(Limit::SendBuffer) => {
            (Reason::SendBufferFull, "most of the time data on other paths filled the send buffer")
        }
        Some(Limit::HeadOfLine | Limit::ApplicationReads) => {
            (Reason::OthersAwaited, "most of the time the receiver waited for data on other paths")
        }
        Some(Limit::InFlight | Limit::ApplicationSends | Limit::Request) => {
            (Reason::NothingLeft, "most of the time no data was left to send")
        }
        Some(_) => (Reason::NotChosen, "the scheduler gave it nothing"),
        None if join.is_some() => {
            // A SYN that is repeated has failed once; so has a join that was under way and no longer is.
            let of_join = |bands: &&Bands| bands.iter().any(|band| band.cause.limit == Limit::Join);
            let is_open = |last: &Band| last.cause.limit == Limit::Join && last.length() < FIRST_RTO;
            match bands().filter(of_join).filter_map(|bands| bands.iter().next_back()).all(is_open) {
                true => (Reason::JoinUnfinished, "the transfers ended before its join was complete"),
                false => (Reason::JoinFailed, "its join was never completed"),
            }
        }
        None => {
            let limit = subflow_limit(spec);
            let mut connections = cases.iter().flat_map(|case| &case.run.outcome.connections);
            if connections.all(|connection| connection.subflows.len() >= limit) {
                let because = format!("each connection had the {limit} subflows that `max-subflows` admits");
                return (Reason::SubflowLimit, because);
            }
            (Reason::NoSubflow, "no subflow was begun there")
        }
    };
    (reason, because.to_owned())
}

fn words(fallback: anabranch_engine::FallbackReason) -> &'static str {
    use anabranch_engine::FallbackReason as F;
    match fallback {
        F::Syn => "the SYN arrived without MP_CAPABLE",
        F::SynAck => "the SYN/ACK carried no MP_CAPABLE",
        F::SynLost => "SYNs with MP_CAPABLE were not answered",
        F::Remembered => "earlier connections on the path had lost MP_CAPABLE",
        F::ThirdAck => "the third ACK carried no MP_CAPABLE",
        F::FirstData | F::OptionsLost => "MPTCP options were lost on the way",
        F::InfiniteMapping | F::PeerFailed => "the peer asked for it",
        F::ChecksumFailed => "payload was altered on the way",
        _ => "MPTCP was not agreed on",
    }
}
