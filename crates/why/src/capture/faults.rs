//! Faults of the set-up that packets show: options that are missing, joins that lead to nothing, flags.

use super::answer::{Fault, FaultKind};
use super::log::FlowLog;
use super::picture::{FlowPicture, NEVER, Packet};
use anabranch_inspect::{ConnectionReport, Offer};
use anabranch_wire::Flags;

/// The flows of a connection, with the names of their paths.
pub(crate) struct Group<'a> {
    pub flows: Vec<(&'a FlowLog, bool, usize)>,
    pub pictures: &'a [FlowPicture],
    pub names: &'a [String],
    pub multipath: bool,
    /// Findings of the inspector, for MPTCP.
    pub report: Option<&'a ConnectionReport>,
}

/// Remedy for a server without MPTCP.
const MPTCPIZE: &str = "Start the server with `mptcpize run`, or have it open IPPROTO_MPTCP sockets; check its \
                        sysctl net.mptcp.enabled.";

impl Group<'_> {
    /// All faults, the gravest first.
    pub(crate) fn faults(&self) -> Vec<Fault> {
        let mut faults = if self.multipath { self.of_mptcp() } else { self.of_plain().into_iter().collect() };
        faults.extend(self.black_hole());
        faults
    }

    /// Plain TCP: tells who gave MPTCP up, if it was asked for.
    fn of_plain(&self) -> Option<Fault> {
        let (flow, ..) = self.flows.first()?;
        let fault = |kind, text: &str, remedy: Option<&str>| Fault {
            kind,
            path: None,
            text: text.to_owned(),
            remedy: remedy.map(str::to_owned),
        };
        let both = flow.offers.len() > 1;
        let removed = |step: usize| flow.offers.values().any(|offers| offers[step] == Offer::Nothing);
        let has_answer = || flow.offers.values().any(|offers| matches!(offers[1], Offer::Capable(_)));
        let bypass = "A box on the way removes the option: use another port or path, or a tunnel.";
        Some(match (flow.syn, flow.syn_ack) {
            (Offer::Capable(_), _) if flow.bare_syns > 0 => fault(
                FaultKind::CapableUnanswered,
                "SYNs with MP_CAPABLE were not answered, and one without was: something on the way drops them",
                Some(bypass),
            ),
            (Offer::Capable(_), _) if both && removed(0) => {
                fault(FaultKind::OptionRemoved, "MP_CAPABLE was removed from the SYN on its way", Some(bypass))
            }
            (Offer::Capable(_), _) if both && has_answer() && removed(1) => {
                fault(FaultKind::OptionRemoved, "MP_CAPABLE was removed from the SYN/ACK on its way", Some(bypass))
            }
            (Offer::Capable(_), Offer::Nothing) if both => {
                fault(FaultKind::PlainServer, "the server answered without MP_CAPABLE", Some(MPTCPIZE))
            }
            (Offer::Capable(_), Offer::Nothing) => fault(
                FaultKind::PlainServer,
                "the server answered without MP_CAPABLE (or a box on the way removed it: a capture at the server \
                 would tell)",
                Some(MPTCPIZE),
            ),
            (Offer::Nothing, _) => fault(
                FaultKind::PlainClient,
                "the client asked for plain TCP (or a box on the way removed MP_CAPABLE from its SYN)",
                Some("Start the client with `mptcpize run`, or have it open IPPROTO_MPTCP sockets."),
            ),
            _ => return None,
        })
    }

    fn of_mptcp(&self) -> Vec<Fault> {
        let mut faults = Vec::new();
        if let Some(fallback) = self.report.and_then(|report| report.fallback.as_ref()) {
            faults.push(Fault {
                kind: FaultKind::FellBack,
                path: None,
                text: format!("the connection went on as plain TCP at the {}: {}", fallback.step, fallback.reason),
                remedy: None,
            });
            return faults;
        }
        for path in 0..self.names.len() {
            faults.extend(self.of_path(path));
        }
        if self.flows.iter().all(|(flow, ..)| !matches!(flow.syn, Offer::JoinSyn(_))) && self.names.len() == 1 {
            faults.push(self.no_join());
        }
        faults
    }

    /// Why no further subflow was begun.
    fn no_join(&self) -> Fault {
        let used = |address: &std::net::IpAddr| {
            self.flows.iter().any(|(flow, ..)| flow.key.src == *address || flow.key.dst == *address)
        };
        let announced = self.flows.iter().flat_map(|(flow, ..)| &flow.announced).find(|(_, ip)| !used(ip));
        let limits = "Check `ip mptcp limits` (subflows, add_addr_accepted) and `ip mptcp endpoint` on the client.";
        match announced {
            Some((_, address)) => Fault {
                kind: FaultKind::AddressUnused,
                path: None,
                text: format!("{address} was announced with ADD_ADDR, and no subflow was begun to it"),
                remedy: Some(limits.to_owned()),
            },
            None => Fault {
                kind: FaultKind::NoJoin,
                path: None,
                text: "no further subflow was begun: no MP_JOIN is in the capture".to_owned(),
                remedy: Some(limits.to_owned()),
            },
        }
    }

    /// Why a path carried nothing.
    fn of_path(&self, path: usize) -> Option<Fault> {
        let mine = || self.flows.iter().filter(move |(.., own)| *own == path);
        let data: u64 = mine().flat_map(|(flow, ..)| &flow.sides).map(|side| side.bytes).sum();
        (data == 0).then_some(())?;
        let (flow, ..) = mine().next_back()?;
        let opener = flow.opener?;
        let backup = mine().any(|(flow, ..)| {
            flow.syn.is_backup()
                || flow.syn_ack.is_backup()
                || flow.sides.iter().any(|side| side.priority == Some(true))
        });
        let syns = flow.syns.values().copied().max().unwrap_or(0);
        let fault = |kind, text: String, remedy: Option<&str>| {
            let path = Some(self.names[path].clone());
            Some(Fault { kind, path, text, remedy: remedy.map(str::to_owned) })
        };
        let refused = flow.sides[1 - opener].reset;
        let both = flow.offers.len() > 1;
        match (flow.syn, flow.syn_ack) {
            (Offer::JoinSyn(_), Offer::Unseen) if refused.is_some() => fault(
                FaultKind::JoinRefused,
                "its join was refused with a RST".to_owned(),
                Some("Look for a firewall that rejects it, and at `ip mptcp limits` on the side that refused."),
            ),
            (Offer::JoinSyn(_), Offer::Unseen) => {
                let text = match both && flow.syns.len() > 1 {
                    true => "its join arrived, and the peer never answered",
                    false => "its join was never answered",
                };
                let times = if syns > 1 { format!(" ({syns} SYNs)") } else { String::new() };
                fault(
                    FaultKind::JoinUnanswered,
                    format!("{text}{times}"),
                    Some("Check the route of this address (`ip rule`, `ip route get`, rp_filter) and firewalls."),
                )
            }
            (Offer::JoinSyn(_), Offer::Nothing) => fault(
                FaultKind::JoinRemoved,
                "its join was answered without MP_JOIN: a box on the way removes the option".to_owned(),
                None,
            ),
            (Offer::JoinSyn(_), _) if flow.sides.iter().any(|side| side.reset.is_some()) && !backup => fault(
                FaultKind::JoinRefused,
                "its join was refused with a RST after the SYN/ACK".to_owned(),
                Some("Look at `ip mptcp limits` on both sides."),
            ),
            (Offer::JoinSyn(_), _) if flow.third == Offer::Unseen => {
                let times = if flow.syn_acks > 1 { format!(", and {} SYN/ACKs", flow.syn_acks) } else { String::new() };
                fault(
                    FaultKind::JoinIncomplete,
                    format!("its join was not completed: the third ACK is missing{times}"),
                    Some("Check the route back to this address, and rp_filter."),
                )
            }
            _ if backup => fault(
                FaultKind::Backup,
                "it is marked as a backup".to_owned(),
                Some("Make it a regular one: `ip mptcp endpoint change ID nobackup`."),
            ),
            _ => {
                fault(FaultKind::Unused, "its subflow was established, and the sender gave it nothing".to_owned(), None)
            }
        }
    }

    /// Large segments that never arrive while small ones do.
    fn black_hole(&self) -> Vec<Fault> {
        let mut faults = Vec::new();
        for (path, name) in self.names.iter().enumerate() {
            for side in 0..2 {
                let data = || {
                    let mine = self.pictures.iter().filter(move |it| it.path == path);
                    mine.flat_map(move |it| &it.packets[side]).filter(|it| it.length > 0)
                };
                let most = data().filter(|it| it.arrived != NEVER).map(|it| it.length).max().unwrap_or(0);
                let large = |it: &&Packet| it.length > most;
                let (lost, smaller) = (data().filter(large).count(), most);
                let spread =
                    data().filter(large).map(|it| it.sent).fold((u64::MAX, 0), |(a, b), at| (a.min(at), b.max(at)));
                let small = self.pictures.iter().filter(|it| it.path == path).flat_map(|it| &it.packets[side]);
                // What arrived before the first of them was lost says nothing of the path as it is then.
                let heard = small.filter(|it| it.arrived != NEVER && it.sent > spread.0 && !it.is(Flags::SYN)).count();
                if lost >= 3 && heard > 0 && spread.1.saturating_sub(spread.0) > LONG {
                    let size = data().map(|it| it.length).max().unwrap_or(0);
                    let but = if smaller > 0 { format!(", and ones of {smaller} did") } else { String::new() };
                    faults.push(Fault {
                        kind: FaultKind::MtuBlackHole,
                        path: Some(name.clone()),
                        text: format!(
                            "segments of up to {size} bytes never arrived{but}: its MTU is smaller than \
                                       the hosts believe, and nothing tells them"
                        ),
                        remedy: Some(
                            "Lower the MTU of that interface, or set net.ipv4.tcp_mtu_probing to 1.".to_owned(),
                        ),
                    });
                }
            }
        }
        faults
    }
}

/// Losses over a shorter time are no black hole \[ns\].
const LONG: u64 = 150_000_000;
