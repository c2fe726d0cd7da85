//! Options shared by the commands on the wire: the engine's settings and its TUN device.

use super::setting_options::SettingOptions;
use crate::args::PolicyOptions;
use crate::failure::Failure;
use anabranch_engine::{Config, LocalAddress, Policies, Profile};
use anabranch_host::{Interface, Tun};
use anabranch_policy::Catalogue;
use anabranch_scenario::{Chosen, named, named_ack_path};
use anabranch_units::{Bytes, Rate, nearest, quantity};
use clap::Args as ClapArgs;
use std::io::{self, ErrorKind};
use std::net::IpAddr;

/// Settings of the engine.
#[derive(ClapArgs, Clone, Debug)]
#[command(next_help_heading = "Engine")]
pub struct WireOptions {
    /// Policies of the endpoint.
    #[command(flatten)]
    pub policies: PolicyOptions,
    /// The TUN device: one that is there, or the name for a new one; `%d` becomes a number.
    #[arg(long, value_name = "NAME", default_value = "anabranch%d", value_parser = interface_name)]
    pub tun: String,
    /// Disable offload of segmentation and checksums: every packet is whole, as on a wire.
    #[arg(long)]
    pub no_offload: bool,
    /// Network of the addresses that stand for borrowed ones on the device: an IPv4 /24, named by its first address.
    #[arg(long, value_name = "ADDR", default_value = "198.18.151.0")]
    pub inner: std::net::Ipv4Addr,
    /// The same for IPv6: a /64, named by its first address.
    #[arg(long, value_name = "ADDR", default_value = "fdab:7261:6e63:6800::")]
    pub inner6: std::net::Ipv6Addr,
    /// Settings of the engine's table.
    #[command(flatten)]
    pub settings: SettingOptions,
}

/// Timeouts in a row of full-sized segments, while smaller ones get through (RFC 8899 §4.3 has three probes).
const BLACK_HOLE_TIMEOUTS: u32 = 3;
/// Packets that may wait for us on the device; its default of 500 is a hidden drop-tail queue.
const QUEUE: u32 = 10_000;

impl WireOptions {
    /// The engine's settings with these addresses, and which policies they come to.
    pub fn config(&self, catalogue: &Catalogue, addresses: &[IpAddr]) -> Result<(Config, Chosen), Failure> {
        let given = &self.policies;
        let profile = profile(given.profile.as_deref().unwrap_or(Profile::DEFAULT))?;
        let or = |given: &Option<String>, default: &str| given.clone().unwrap_or_else(|| default.to_owned());
        let scheduler = or(&given.scheduler, profile.scheduler);
        let (scheduler, scheduler_is) = named(&catalogue.schedulers, "--scheduler", &scheduler)?;
        let congestion = or(&given.congestion, profile.congestion);
        let (congestion, congestion_is) = named(&catalogue.congestion, "--congestion", &congestion)?;
        let window = or(&given.window, Policies::RECEIVE_WINDOW);
        let (receive_window, window_is) = named(&catalogue.windows, "--window", &window)?;
        let ack_path = or(&given.ack_path, Policies::ACK_PATH);
        let (ack_path, ack_path_is) = named_ack_path(&catalogue.ack_paths, "--ack-path", &ack_path)?;
        let reinjection = or(&given.reinjection, profile.reinjection);
        let (reinjection, reinjection_is) = named(&catalogue.reinjections, "--reinjection", &reinjection)?;
        let first_path = or(&given.first_path, profile.first_path);
        let (first_path, first_path_is) = named(&catalogue.first_paths, "--first-path", &first_path)?;
        let chosen = Chosen {
            profile: profile.name.to_owned(),
            scheduler: scheduler_is,
            congestion: congestion_is,
            window: window_is,
            ack_path: ack_path_is,
            reinjection: reinjection_is,
            first_path: first_path_is,
        };
        let locals = addresses.iter().map(|ip| LocalAddress { ip: *ip, backup: false }).collect();
        let mut config = Config {
            // Routers that drop what is too big and do not say so are found out.
            black_hole_timeouts: Some(BLACK_HOLE_TIMEOUTS),
            ack_rewrite: chosen.ack_path.name != Policies::ACK_PATH,
            policies: Policies { scheduler, congestion, receive_window, ack_path, reinjection, first_path },
            ..Config::new(profile, locals)
        };
        self.settings.apply(&mut config);
        if !self.settings.gives("send-buffer") {
            // A smaller one could never fill the other host's receive buffer, if that is like ours (RFC 8684 §3.3.5).
            config.send_buffer = config.send_buffer.max(config.receive_buffer);
        } else if !self.settings.gives("subflow-send-buffer") {
            config.profile.subflow_send_buffer = None;
        }
        if self.settings.gives("receive-buffer") && !self.settings.gives("initial-receive-buffer") {
            config.initial_receive_buffer = None;
        }
        config.check().map_err(|error| Failure::Refused(miette::miette!("the engine's settings: {error}")))?;
        Ok((config, chosen))
    }

    /// Opens the TUN device, brings it up and routes these addresses to it.
    pub fn open_tun(&self, addresses: &[IpAddr]) -> Result<Tun, Failure> {
        let opened = if self.no_offload { Tun::open(&self.tun) } else { Tun::with_offload(&self.tun) };
        let tun = opened.map_err(|error| self.cannot_open(&error, addresses))?;
        let name = tun.name().to_owned();
        let prepare = || {
            let interface = Interface::named(&name)?;
            match interface.up(QUEUE, None) {
                // The device exists, prepared for us with its routes.
                Err(error) if error.kind() == ErrorKind::PermissionDenied && is_up(&name) => return Ok(()),
                result => result?,
            }
            addresses.iter().try_for_each(|address| interface.route(*address))
        };
        prepare().map_err(|error| {
            if error.kind() == ErrorKind::AlreadyExists {
                return claimed(&error);
            }
            let help = self.remedy(addresses);
            Failure::Failed(miette::miette!(
                help = help,
                "cannot bring the TUN device {name} up and route to it: {error}"
            ))
        })?;
        Ok(tun)
    }

    fn cannot_open(&self, error: &io::Error, addresses: &[IpAddr]) -> Failure {
        if let Some(failure) = closed_node(error) {
            return failure;
        }
        let name = &self.tun;
        let (what, help) = match error.kind() {
            ErrorKind::PermissionDenied => {
                (format!("cannot open the TUN device {name}: it takes CAP_NET_ADMIN"), self.remedy(addresses))
            }
            ErrorKind::NotFound => {
                let help = "load it with `sudo modprobe tun`; a container needs `--device /dev/net/tun`".to_owned();
                ("cannot open a TUN device: there is no /dev/net/tun".to_owned(), help)
            }
            ErrorKind::ResourceBusy => {
                let help = "end the other program, or name another device with --tun".to_owned();
                (format!("cannot open the TUN device {name}: another program has it open"), help)
            }
            _ => (format!("cannot open the TUN device {name}: {error}"), "accepted: --tun NAME".to_owned()),
        };
        Failure::Failed(miette::miette!(help = help, "{what}"))
    }

    /// Returns the commands that grant the missing capability.
    fn remedy(&self, addresses: &[IpAddr]) -> String {
        let program = std::env::current_exe().map_or_else(|_| "anabranch".into(), |path| path.display().to_string());
        let device = if self.tun.contains('%') { "anabranch0" } else { &self.tun };
        let flag = if self.no_offload { "" } else { " vnet_hdr" };
        let routes: String =
            addresses.iter().map(|address| format!("\n  sudo ip route add {address} dev {device}")).collect();
        format!(
            "run it as root, or give the program this one capability:\n  sudo setcap cap_net_admin+ep {program}\n\
             or have a device made for you, and name it with --tun {device}:\n  \
             sudo ip tuntap add dev {device} mode tun user $USER{flag}\n  sudo ip link set dev {device} up{routes}"
        )
    }
}

/// Name of an interface, as the kernel and its tools take it.
fn interface_name(text: &str) -> Result<String, String> {
    anabranch_host::check_interface(text).map(|()| text.to_owned())
}

/// Returns the profile of that name.
fn profile(name: &str) -> Result<Profile, Failure> {
    Profile::named(name).ok_or_else(|| {
        let near = nearest(name, Profile::NAMES.iter().copied());
        let near = near.map_or_else(String::new, |near| format!("did you mean `{near}`? "));
        let near = Profile::renamed(name).map_or(near, |new| format!("it was renamed to `{new}`; "));
        let help = format!("{near}accepted: {}", Profile::NAMES.join(", "));
        Failure::Refused(miette::miette!(help = help, "there is no profile `{name}`"))
    })
}

/// Another program has one of the addresses.
pub fn claimed(error: &io::Error) -> Failure {
    let help = "another program may have this address: end it, or use another address; \
                `ip route del` removes a route that was left behind";
    Failure::Failed(miette::miette!(help = help, "{error}"))
}

/// The node of TUN devices may not be opened, which no capability for networks changes.
pub fn closed_node(error: &io::Error) -> Option<Failure> {
    Tun::is_node_closed(error).then(|| {
        Failure::Failed(miette::miette!(
            help = "run it as root, or let users open it, as most distributions do:\n  sudo chmod 0666 /dev/net/tun",
            "cannot open /dev/net/tun: its permissions do not allow it"
        ))
    })
}

/// Returns true if the interface is up, as far as sysfs can be read.
fn is_up(name: &str) -> bool {
    let flags = std::fs::read_to_string(format!("/sys/class/net/{name}/flags")).unwrap_or_default();
    u32::from_str_radix(flags.trim().trim_start_matches("0x"), 16).is_ok_and(|flags| flags & 1 == 1)
}

/// The addresses given, or else those that `anabranch testbed` has for an engine where we are.
pub fn addresses(given: &[IpAddr], option: &str) -> Result<Vec<IpAddr>, Failure> {
    let from = |name: &str| std::env::var(name).unwrap_or_default();
    let mut all = given.to_vec();
    if all.is_empty() {
        let names = match from("ANABRANCH_HOST").as_str() {
            "server" => ["ANABRANCH_ENGINE_SERVER", "ANABRANCH_ENGINE_SERVER6"],
            _ => ["ANABRANCH_ENGINE_ADDRESSES", "ANABRANCH_ENGINE_ADDRESSES6"],
        };
        let words = names.map(from).join(" ");
        all = words.split([' ', ',']).filter_map(|word| word.parse().ok()).collect();
    }
    if all.is_empty() {
        let help = format!(
            "accepted: {option} with addresses that no other host has, such as {option} 10.78.0.1; what is sent to \
             them is routed to the engine. In `anabranch testbed` there are some already."
        );
        return Err(Failure::Refused(miette::miette!(help = help, "the engine has no address")));
    }
    if let Some(wrong) = all.iter().find(|ip| ip.is_unspecified() || ip.is_multicast() || ip.is_loopback()) {
        let help = format!("accepted: {option} with the address of one host that no other host has");
        return Err(Failure::Refused(miette::miette!(help = help, "{wrong} cannot be the engine's address")));
    }
    let mut seen = std::collections::BTreeSet::new();
    all.retain(|ip| seen.insert(*ip));
    Ok(all)
}

/// Parses `64KiB`; 0 is refused.
pub fn size(text: &str) -> Result<Bytes, String> {
    let size = quantity::size(text).map_err(|refusal| format!("{}; {}", refusal.problem, refusal.accepted))?;
    if size.is_zero() { Err("accepted: a size from 1B".to_owned()) } else { Ok(size) }
}

/// Parses `16kbit`; 0 is taken.
pub fn rate(text: &str) -> Result<Rate, String> {
    quantity::rate(text).map_err(|refusal| format!("{}; {}", refusal.problem, refusal.accepted))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use clap::Parser;

    /// As in a scenario: a buffer that is given does not tune itself, unless its beginning is given too.
    #[test]
    fn a_buffer_that_is_given_is_of_fixed_size() {
        for (words, receive, send) in [
            (&["--profile", "linux"][..], Some(64), Some(4096)),
            (&["--profile", "linux", "--receive-buffer", "1MiB"], None, Some(4096)),
            (
                &["--profile", "linux", "--receive-buffer", "1MiB", "--initial-receive-buffer", "8KiB"],
                Some(8),
                Some(4096),
            ),
            (&["--profile", "linux", "--send-buffer", "1MiB"], Some(64), None),
            (&["--profile", "linux", "--send-buffer", "1MiB", "--subflow-send-buffer", "64KiB"], Some(64), Some(64)),
        ] {
            let only = Only::parse_from(["anabranch"].iter().chain(words));
            let (config, _) = only.options.config(&Catalogue::default(), &[]).unwrap();
            let kib = [config.initial_receive_buffer, config.profile.subflow_send_buffer];
            assert_eq!(kib.map(|size| size.map(|it| it.get() >> 10)), [receive, send], "{words:?}");
        }
    }

    #[derive(Parser)]
    struct Only {
        #[command(flatten)]
        options: WireOptions,
    }

    /// RFC 8684 §3.3.5; one that is given is kept.
    #[test]
    fn the_send_buffer_follows_the_receive_buffer() {
        for (words, send, receive) in [
            (&[][..], 32, 32),
            (&["--receive-buffer", "1MiB"], 32, 1),
            (&["--receive-buffer", "64MiB"], 64, 64),
            (&["--receive-buffer", "64MiB", "--send-buffer", "2MiB"], 2, 64),
        ] {
            let only = Only::parse_from(["anabranch"].iter().chain(words));
            let (config, _) = only.options.config(&Catalogue::default(), &[]).unwrap();
            assert_eq!(
                [config.send_buffer, config.receive_buffer].map(|it| it.get() >> 20),
                [send, receive],
                "{words:?}"
            );
        }
    }
}
