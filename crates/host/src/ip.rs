//! Answers of `ip -j` (iproute2), as far as they are needed.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// An interface (`ip -j address show`, `ip -j link show`).
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Link {
    pub(crate) ifname: String,
    pub(crate) flags: Vec<String>,
    pub(crate) mtu: Option<u32>,
    /// Its queue; absent or `noop` until it has one.
    pub(crate) qdisc: Option<String>,
    /// Addresses; none from `ip link`.
    pub(crate) addr_info: Vec<Address>,
}

/// An address of an interface.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Address {
    pub(crate) local: Option<IpAddr>,
}

/// A route (`ip -j route show`).
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Route {
    /// Kind of route; absent for an ordinary one.
    #[serde(rename = "type")]
    kind: Option<String>,
    /// Network, an address without a length if it is one address, or `default`.
    pub(crate) dst: String,
    pub(crate) gateway: Option<String>,
    /// Gateway of the other address family.
    via: Option<Via>,
    /// Interface; absent where the question names it.
    pub(crate) dev: Option<String>,
    protocol: Option<String>,
    scope: Option<String>,
    prefsrc: Option<String>,
    metric: Option<u32>,
    flags: Vec<String>,
    metrics: Vec<Metrics>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Via {
    family: String,
    host: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Metrics {
    mtu: Option<u32>,
}

/// A rule of the policy routing table (`ip -j rule show`).
#[derive(Debug, Deserialize)]
pub(crate) struct Rule {
    pub(crate) priority: u32,
    /// Address of the network that packets must come from, or `all`.
    pub(crate) src: String,
    /// Length of that network; absent for one address.
    #[serde(default)]
    pub(crate) srclen: Option<u32>,
    /// Routing table; absent for rules that do not look routes up.
    #[serde(default)]
    pub(crate) table: Option<String>,
    /// Origin of the rule.
    #[serde(default, rename = "protocol")]
    _protocol: Option<String>,
    /// Other conditions.
    #[serde(flatten)]
    pub(crate) others: BTreeMap<String, serde_json::Value>,
}

/// Reads an answer. With nothing to list, some versions print nothing at all.
///
/// # Errors
/// If it is not what this version of iproute2 is known to print.
pub(crate) fn read<T: DeserializeOwned>(answer: &str) -> Result<Vec<T>, serde_json::Error> {
    if answer.trim().is_empty() { Ok(Vec::new()) } else { serde_json::from_str(answer) }
}

impl Link {
    /// Returns true if it can send: until it has a carrier and a queue, an interface drops packets.
    pub(crate) fn is_ready(&self) -> bool {
        self.flags.iter().all(|flag| flag != "NO-CARRIER") && self.qdisc.as_deref() != Some("noop")
    }
}

impl Route {
    /// Returns true unless its interface has no carrier.
    pub(crate) fn is_up(&self) -> bool {
        self.flags.iter().all(|flag| flag != "linkdown")
    }

    /// Returns true if packets go to a gateway.
    pub(crate) fn has_gateway(&self) -> bool {
        self.gateway.is_some() || self.via.is_some()
    }

    /// Words that describe the route to `ip route replace`. Of its metrics only the MTU is kept: it alone matters to
    /// packets that are forwarded.
    pub(crate) fn words(&self) -> Vec<String> {
        let mut words: Vec<String> = self.kind.iter().cloned().collect();
        words.push(self.dst.clone());
        let mut put = |name: &str, values: &[&String]| {
            words.push(name.to_owned());
            words.extend(values.iter().map(|value| (*value).clone()));
        };
        if let Some(gateway) = &self.gateway {
            put("via", &[gateway]);
        }
        if let Some(via) = &self.via {
            put("via", &[&via.family, &via.host]);
        }
        for (name, value) in
            [("dev", &self.dev), ("proto", &self.protocol), ("scope", &self.scope), ("src", &self.prefsrc)]
        {
            if let Some(value) = value {
                put(name, &[value]);
            }
        }
        if let Some(metric) = self.metric {
            put("metric", &[&metric.to_string()]);
        }
        if self.flags.iter().any(|flag| flag == "onlink") {
            put("onlink", &[]);
        }
        if let Some(mtu) = self.metrics.iter().find_map(|metrics| metrics.mtu) {
            put("mtu", &[&mtu.to_string()]);
        }
        words
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Printed by iproute2 6.1.
    #[test]
    fn routes_are_said_again_as_they_were() {
        let routes: Vec<Route> = read(
            r#"[{"dst":"default","gateway":"10.1.2.1","metric":5,"flags":["onlink","linkdown"],"metrics":[{"mtu":1400}]},
                {"dst":"10.1.2.0/24","protocol":"kernel","scope":"link","prefsrc":"10.1.2.3","flags":[]},
                {"type":"unreachable","dst":"10.9.0.0/16","flags":[]},
                {"dst":"default","via":{"family":"inet6","host":"fe80::1"},"dev":"lan","flags":[],"pref":"medium"}]"#,
        )
        .unwrap();
        let said: Vec<String> = routes.iter().map(|route| route.words().join(" ")).collect();
        assert_eq!(
            said,
            [
                "default via 10.1.2.1 metric 5 onlink mtu 1400",
                "10.1.2.0/24 proto kernel scope link src 10.1.2.3",
                "unreachable 10.9.0.0/16",
                "default via inet6 fe80::1 dev lan"
            ]
        );
        assert_eq!(routes.iter().map(Route::is_up).collect::<Vec<_>>(), [false, true, true, true]);
        assert_eq!(routes.iter().map(Route::has_gateway).collect::<Vec<_>>(), [true, false, false, true]);
    }

    #[test]
    fn links_and_rules() {
        let links: Vec<Link> = read(
            r#"[{"ifname":"d0","flags":["NO-CARRIER","UP"],"mtu":1500,"qdisc":"pfifo_fast","addr_info":[{"local":"fd00::1"}]},
                {"ifname":"d1","flags":["UP","LOWER_UP"],"mtu":1500,"qdisc":"noop"},
                {"ifname":"lo","flags":["UP","LOWER_UP"],"mtu":65536,"qdisc":"noqueue"}, {}]"#,
        )
        .unwrap();
        assert_eq!(links.iter().map(Link::is_ready).collect::<Vec<_>>(), [false, false, true, true]);
        assert_eq!(links[0].addr_info[0].local, Some("fd00::1".parse().unwrap()));
        let rules: Vec<Rule> = read(
            r#"[{"priority":5,"src":"10.1.2.0","srclen":24,"table":"100","protocol":"static"},
                {"priority":6,"src":"all","fwmark":"0x3","table":"200"}]"#,
        )
        .unwrap();
        assert!(rules[0].others.is_empty() && !rules[1].others.is_empty());
        assert!(read::<Rule>(" \n").unwrap().is_empty() && read::<Rule>("Usage: ip").is_err());
    }
}
