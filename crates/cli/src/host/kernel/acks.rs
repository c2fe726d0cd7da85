//! `anabranch kernel acks`: ACKs on the shortest path, between stock kernels.

use crate::args::What;
use crate::completion::Names;
use crate::failure::Failure;
use crate::output;
use anabranch_host::Caught;
use anabranch_host::addresses::interface_between;
use anabranch_kernel::acks::{Acks, AcksError, HostSetup, PORT, PathSpec, Peer, Round, Setup};
use anabranch_lab::format::{KERNEL_ACKS, NoContents};
use anabranch_policy::Catalogue;
use anabranch_scenario::named_ack_path;
use clap::Args as ClapArgs;
use serde_json::json;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

/// Arguments of `kernel acks`.
#[derive(ClapArgs, Debug)]
#[command(after_help = "Examples:
  host A: sudo anabranch kernel acks --path 10.0.1.1,10.1.1.1 --path 10.0.2.1,10.1.1.1
  host B: sudo anabranch kernel acks --path 10.1.1.1,10.0.1.1 --path 10.1.1.1,10.0.2.1
  sudo anabranch kernel acks --path b=10.0.1.1,10.1.1.1 --path b=10.0.2.1,10.1.1.1 \
                             --path c=10.0.1.1,10.2.1.1 --path c=10.0.2.1,10.2.1.1
                                            with two other hosts, which each name their two paths
  sudo anabranch kernel acks --path … --path … --policy fixed:path=10.0.1.1
  sudo anabranch kernel acks --path … --path … --policy probed:tau=100,lambda=5 --json

Both hosts name the same paths in the same order, each with its own address first. ACKs of MPTCP connections that \
begin afterwards travel on the path with the shortest round trip, with its addresses and their own ports; the other \
host puts the addresses back. NAT between the hosts, and firewalls that follow connections, let no such ACKs pass: \
then they return to their own paths, as they do within three rounds of probes after either command ends. See \
docs/kernel.md.")]
pub struct AcksArgs {
    /// A path: our address, that of the other host, and the device if the route does not tell it. Give two to eight.
    /// With several other hosts, each needs a name, and two to eight paths.
    #[arg(long = "path", value_name = "[HOST=]LOCAL,REMOTE[,DEVICE]", required = true, value_parser = path)]
    pub paths: Vec<Ends>,
    /// ACK-path policy (`anabranch list ack-paths`).
    #[arg(long, value_name = "NAME[:…]", default_value = "probed", add = Names::one(What::AckPaths))]
    pub policy: String,
    /// UDP port of the probes, on both hosts.
    #[arg(long, value_name = "PORT", default_value_t = PORT, value_parser = clap::value_parser!(u16).range(1..))]
    pub port: u16,
    /// Move every ACK, as the paper does: none keeps its path, and a path that loses ACKs is left only when probes find
    /// it out, or the other host answers with a RST.
    #[arg(long)]
    pub no_caution: bool,
    /// Print each round of probes as a line of JSON, instead of a line for each change.
    #[arg(long)]
    pub json: bool,
}

/// Addresses of a path, and the name of the host and the device if they are given.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ends {
    host: Option<String>,
    local: IpAddr,
    remote: IpAddr,
    device: Option<String>,
}

fn path(text: &str) -> Result<Ends, String> {
    const ACCEPTED: &str = "accepted: our address, the other host's, and a device if need be, such as \
                            10.0.1.1,10.1.1.1 or 10.0.1.1,10.1.1.1,eth0; with a name for the host b=10.0.1.1,10.1.1.1";
    let (host, text) = match text.split_once('=') {
        Some((host, _)) if host.trim().is_empty() => return Err(format!("the host has no name; {ACCEPTED}")),
        Some((host, rest)) => (Some(host.trim().to_owned()), rest),
        None => (None, text),
    };
    let mut words = text.split(',').map(str::trim);
    let mut address = |whose: &str| {
        let word = words.next().filter(|word| !word.is_empty());
        let word = word.ok_or_else(|| format!("{whose} address is missing; {ACCEPTED}"))?;
        word.parse().map_err(|_| format!("`{word}` is no address; {ACCEPTED}"))
    };
    let (local, remote) = (address("our")?, address("the other host's")?);
    let device = words.next().filter(|word| !word.is_empty()).map(str::to_owned);
    match words.next() {
        Some(word) => Err(format!("`{word}` is one word too many; {ACCEPTED}")),
        None => Ok(Ends { host, local, remote, device }),
    }
}

/// Moves ACKs until a signal ends it.
pub(super) fn acks(catalogue: &Catalogue, args: &AcksArgs) -> Result<(), Failure> {
    let (policy, chosen) = named_ack_path(&catalogue.ack_paths, "--policy", &args.policy)?;
    let mut hosts: Vec<HostSetup> = Vec::new();
    for ends in &args.paths {
        let path = with_device(ends)?;
        match hosts.iter_mut().find(|host| host.name == ends.host) {
            Some(host) => host.paths.push(path),
            None => hosts.push(HostSetup { name: ends.host.clone(), paths: vec![path], policy: policy().policy }),
        }
    }
    if hosts.len() > 1 && hosts.iter().any(|host| host.name.is_none()) {
        let help = "with several other hosts each path has the name of its host: --path HOST=LOCAL,REMOTE";
        return Err(Failure::Refused(miette::miette!(help = help, "some paths have no host, and others have one")));
    }
    // From before the first change to the kernel: what a signal ends is ended in order.
    let mut caught =
        Caught::new().map_err(|error| Failure::Failed(miette::miette!("cannot catch signals: {error}")))?;
    let setup = Setup { hosts, port: args.port, caution: !args.no_caution };
    let mut acks = Acks::start(setup).map_err(failed)?;
    match args.json {
        true => output::print(&format!("{}\n", json!(KERNEL_ACKS.document(NoContents {}))))?,
        false => output::print(&format!("policy {}; waiting for the other host\n", chosen.name))?,
    }
    let (mut said, mut written) = (Said::default(), Ok(()));
    let is_over = || caught.wait(Duration::ZERO).unwrap_or(true);
    acks.run(is_over, |round| {
        let line = if args.json { Some(json!(round).to_string()) } else { said.news(round) };
        // If nobody reads it any more, that ends the command as a signal does.
        written = line.map_or(Ok(()), |line| output::print(&format!("{line}\n")));
        written.is_ok()
    })
    .map_err(failed)?;
    written
}

fn with_device(ends: &Ends) -> Result<PathSpec, Failure> {
    let (local, remote) = (ends.local, ends.remote);
    let device = match &ends.device {
        Some(device) => device.clone(),
        None => {
            let help = "our address comes first, --path LOCAL,REMOTE; `ip route get REMOTE from LOCAL` tells the \
                        device, which can be given as well: --path LOCAL,REMOTE,DEVICE";
            let found = interface_between(local, remote);
            let found = found.map_err(|error| Failure::Refused(miette::miette!(help = help, "{error}")))?;
            found.ok_or_else(|| Failure::Refused(miette::miette!(help = help, "{remote} is this host itself")))?
        }
    };
    Ok(PathSpec { local, remote, device })
}

/// State of a host: what it answers, and of each path whether it is up and which one its ACKs take.
type State = (Peer, Vec<(bool, usize)>);

/// State of each host that was printed last.
#[derive(Default)]
struct Said {
    states: BTreeMap<Option<String>, State>,
}

impl Said {
    /// A line about a round in which something changed.
    fn news(&mut self, round: &Round) -> Option<String> {
        let state = (round.peer, round.paths.iter().map(|path| (path.up, path.acks_on)).collect());
        if self.states.get(&round.host) == Some(&state) {
            return None;
        }
        self.states.insert(round.host.clone(), state);
        let peer = match round.peer {
            Peer::Silent => "does not answer",
            Peer::OtherPaths => "names other paths, or in another order",
            Peer::Agrees => "agrees",
        };
        let host = round.host.as_deref().map_or_else(|| "the other host".to_owned(), |name| format!("host {name}"));
        let mut line = format!("{:7.1} s  {host} {peer}", round.time);
        for (index, path) in round.paths.iter().enumerate() {
            let rtt = match path.rtt_ms {
                Some(rtt) if path.up => format!("{rtt:.1} ms"),
                _ => "down".to_owned(),
            };
            line += &format!("; path {}: {rtt}, ACKs on path {}", index + 1, path.acks_on);
        }
        Some(line)
    }
}

fn failed(error: AcksError) -> Failure {
    super::with_remedy(&error, error.remedy())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn paths_are_read() {
        let ends = |device: Option<&str>| Ends {
            host: None,
            local: [10, 0, 1, 1].into(),
            remote: [10, 1, 1, 1].into(),
            device: device.map(str::to_owned),
        };
        assert_eq!(path("10.0.1.1,10.1.1.1"), Ok(ends(None)));
        assert_eq!(path("10.0.1.1, 10.1.1.1,eth0"), Ok(ends(Some("eth0"))));
        let named = Ends { host: Some("b".to_owned()), ..ends(Some("eth0")) };
        assert_eq!(path("b=10.0.1.1,10.1.1.1,eth0"), Ok(named));
        for wrong in ["", "=10.0.1.1,10.1.1.1", "10.0.1.1", "10.0.1.1,", "10.0.1.1,x", "10.0.1.1,10.1.1.1,eth0,eth1"] {
            assert!(path(wrong).unwrap_err().contains("accepted"), "{wrong}");
        }
    }
}
