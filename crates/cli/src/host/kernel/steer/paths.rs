//! The paths of a policy in the kernel: addresses, endpoints, and their treatment.

use super::output::Events;
use crate::failure::Failure;
use crate::output::remark;
use anabranch_host::addresses::addresses_of;
use anabranch_host::steered::{Steered, Treatment};
use anabranch_host::{Endpoint, PathManager};
use anabranch_kernel::Gates;
use anabranch_kernel::steer::{Action, Event, Place, Rule, State, Steering};
use anabranch_units::Duration;
use miette::miette;
use std::collections::BTreeSet;
use std::net::IpAddr;

/// The kernel's path manager.
pub(super) enum World {
    /// Only looked at.
    Seen(PathManager),
    /// Changed.
    Steered(Steered),
}

/// The paths of a policy.
pub(super) struct Paths {
    world: World,
    addresses: Vec<BTreeSet<IpAddr>>,
    /// Endpoints of each path, as they were before they were changed.
    endpoints: Vec<Vec<Endpoint>>,
    /// Treatment that each path has.
    states: Vec<State>,
    /// Paths of which it was said that they have no endpoint.
    told: BTreeSet<usize>,
    /// Gates, if there are any, and the addresses that are closed.
    gates: Option<Gates>,
    gated: BTreeSet<IpAddr>,
}

/// A gate opens by itself after this time, or after so many intervals between two looks, whichever is longer.
const GATED: Duration = Duration::from_secs(1);
const GATED_LOOKS: u64 = 3;

impl Paths {
    pub(super) fn new(world: World, gates: Option<Gates>, steering: &Steering) -> Self {
        let count = steering.policy().paths.len();
        Paths {
            world,
            addresses: vec![BTreeSet::new(); count],
            endpoints: vec![Vec::new(); count],
            states: vec![State::Open; count],
            told: BTreeSet::new(),
            gates,
            gated: BTreeSet::new(),
        }
    }

    /// Addresses of each path at the last look for them.
    pub(super) fn addresses(&self) -> &[BTreeSet<IpAddr>] {
        &self.addresses
    }

    /// Looks for addresses and endpoints, which come and go with interfaces. An endpoint that has come to a path is
    /// treated as the path is.
    pub(super) fn refresh(&mut self, now: Duration, steering: &Steering, events: &mut Events) -> Result<(), Failure> {
        let there = match &self.world {
            World::Seen(manager) => manager.endpoints(),
            World::Steered(steered) => steered.endpoints(),
        };
        let there = there.map_err(super::refused)?;
        let originals = match &self.world {
            World::Seen(_) => &[],
            World::Steered(steered) => steered.originals(),
        };
        // What was changed stands for what is there now, also where it is closed.
        let untouched = there.iter().filter(|it| originals.iter().all(|own| own.address != it.address));
        let all: Vec<Endpoint> = originals.iter().chain(untouched).copied().collect();
        for (index, path) in steering.policy().paths.iter().enumerate() {
            let addresses: BTreeSet<IpAddr> = match &path.place {
                Place::Address(address) => BTreeSet::from([*address]),
                Place::Interface(name) => addresses_of(name)
                    .map_err(|error| Failure::Failed(miette!("cannot ask for the addresses of {name}: {error}")))?
                    .into_iter()
                    .collect(),
            };
            let endpoints: Vec<Endpoint> = all.iter().filter(|it| addresses.contains(&it.address)).copied().collect();
            let is_new = addresses != self.addresses[index] || endpoints != self.endpoints[index] || now.is_zero();
            let has_new = endpoints.iter().any(|it| !self.endpoints[index].contains(it));
            (self.addresses[index], self.endpoints[index]) = (addresses, endpoints);
            if is_new {
                let own = &self.endpoints[index];
                events.path(&Event::Path {
                    time: now.as_secs_f64(),
                    path: path.name.clone(),
                    addresses: self.addresses[index].iter().copied().collect(),
                    endpoints: own.iter().map(|it| it.id).collect(),
                })?;
            }
            // A gate takes no endpoint.
            let needs_endpoint = |rule: &Rule| rule.path.is_none_or(|own| own == index) && rule.then != Action::Gate;
            if steering.policy().rules.iter().any(needs_endpoint) {
                self.tell(index, &path.name);
            }
            if has_new && self.states[index] != State::Open {
                self.treat(index, self.states[index]);
            }
        }
        Ok(())
    }

    /// Says once that a path has no endpoint, and the remedy.
    fn tell(&mut self, index: usize, name: &str) {
        if !self.endpoints[index].is_empty() {
            self.told.remove(&index);
        } else if self.told.insert(index) {
            remark(&match self.addresses[index].first() {
                Some(address) => format!(
                    "path {name}: {address} is no endpoint, so that nothing can be done to its subflows; `ip mptcp \
                     endpoint add {address} subflow` makes it one"
                ),
                None => format!("path {name}: its interface has no address now"),
            });
        }
    }

    /// Treats the endpoints of a path in this way from now on. Returns true if the kernel was told.
    pub(super) fn treat(&mut self, path: usize, state: State) -> bool {
        self.states[path] = state;
        let World::Steered(steered) = &mut self.world else { return false };
        let treatment = match state {
            State::Open | State::Gated => Treatment::AsItWas,
            State::Backup => Treatment::Backup,
            State::Closed => Treatment::Closed,
        };
        let mut done = !self.endpoints[path].is_empty();
        for endpoint in &self.endpoints[path] {
            if let Err(error) = steered.treat(endpoint, treatment) {
                remark(&format!("cannot change the endpoint {}: {error}", endpoint.address));
                done = false;
            }
        }
        if state == State::Gated { self.gates.is_some() && !self.addresses[path].is_empty() } else { done }
    }

    /// Keeps the gates of paths closed that are to be, and opens the others. To be called at each look.
    pub(super) fn hold_gates(&mut self, interval: Duration) {
        let Some(gates) = &self.gates else { return };
        let paths = self.states.iter().zip(&self.addresses).filter(|(state, _)| **state == State::Gated);
        let closed: BTreeSet<IpAddr> = paths.flat_map(|(_, addresses)| addresses).copied().collect();
        let time = GATED.max(interval * GATED_LOOKS);
        let opened = self.gated.difference(&closed).map(|address| (address, gates.open(*address)));
        let kept = closed.iter().map(|address| (address, gates.close(*address, time)));
        for (address, result) in opened.chain(kept) {
            if let Err(error) = result {
                remark(&format!("cannot move the gate of {address}: {error}"));
            }
        }
        self.gated = closed;
    }

    /// Opens all gates, and puts all endpoints back: their number, and the reason for each that is not there again.
    pub(super) fn put_back(&mut self) -> (usize, Vec<String>) {
        for address in std::mem::take(&mut self.gated) {
            // It opens by itself in any case.
            _ = self.gates.as_ref().map(|gates| gates.open(address));
        }
        match &mut self.world {
            World::Seen(_) => (0, Vec::new()),
            World::Steered(steered) => steered.put_back(),
        }
    }
}
