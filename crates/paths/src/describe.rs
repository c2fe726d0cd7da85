//! A path in words, for captures.

use crate::{PathSpec, SharedLink};
use anabranch_net::{LinkConfig, LossModel, QueueLimit, Service};

impl PathSpec {
    /// Describes the path in one line: links, interface, shared link.
    pub fn describe(&self, shared: &[SharedLink]) -> String {
        let mut text = format!("down {}, up {}", link(&self.down), link(&self.up));
        if let Some(nic) = self.nic {
            text += &format!("; interface {nic}");
        }
        if let Some(via) = self.via.as_ref().and_then(|via| shared.iter().find(|link| link.name == *via)) {
            text += &format!("; through {}: down {}, up {}", via.name, link(&via.down), link(&via.up));
        }
        text
    }
}

fn link(config: &LinkConfig) -> String {
    let rate = match &config.service {
        Service::Rate(rate) => rate.to_string(),
        Service::Trace(trace) => format!("trace of {:.1} Mbit/s on average", trace.mean_rate().as_bps() as f64 / 1e6),
    };
    let mut text = format!("{rate} {}", config.delay);
    if !config.jitter.is_zero() {
        text += &format!(" jitter {}", config.jitter);
    }
    match config.queue {
        QueueLimit::Packets(packets) => text += &format!(" queue {packets} packets"),
        QueueLimit::Bytes(bytes) => text += &format!(" queue {bytes}"),
        QueueLimit::Time(time) => text += &format!(" queue {time}"),
        QueueLimit::Bdp { factor, .. } => text += &format!(" queue {factor} bdp"),
    }
    if let Some(discipline) = &config.discipline {
        text += &format!(" ({})", discipline.name());
    }
    if config.queue_counts_delay {
        text += ", those under delay included";
    }
    if config.loss != LossModel::None {
        text += &format!(" loss {:.3}%", config.loss.mean() * 100.0);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_units::{Bytes, Duration, Rate};

    #[test]
    fn an_interface_says_what_its_links_are() {
        let config = LinkConfig::new(Rate::from_mbps(10), Duration::from_millis(5));
        let lossy = LinkConfig {
            loss: LossModel::Bernoulli { p: 0.01 },
            queue: QueueLimit::Bytes(Bytes::new(65536)),
            ..config.clone()
        };
        let mut spec = PathSpec::new("a", lossy.clone(), config.clone());
        spec.via = Some("core".to_owned());
        let core = SharedLink { name: "core".to_owned(), down: config.clone(), up: config };
        let plain = "10mbit 5ms queue 100 packets";
        let expected = format!(
            "down 10mbit 5ms queue {} loss 1.000%, up {plain}; through core: down {plain}, up {plain}",
            Bytes::new(65536)
        );
        assert_eq!(spec.describe(&[core]), expected);
    }
}
