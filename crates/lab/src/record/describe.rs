//! The words beside packets and interfaces.

use anabranch_engine::{Choice, Purpose};
use anabranch_net::{DropCause, LinkConfig, LossModel, QueueLimit, Service};
use anabranch_sim::{Loss, PathSpec, SharedLink};

/// Why a packet was sent.
pub(super) fn purpose(purpose: Purpose, scheduler: Option<&str>) -> String {
    match (purpose, scheduler) {
        (Purpose::NewData(Choice::Scheduler), Some(name)) => format!("new data: {name} chose this subflow"),
        _ => purpose.to_string(),
    }
}

/// How it was lost.
pub(super) fn loss(loss: &Loss<'_>) -> String {
    let Loss { link, cause, .. } = loss;
    let why = match cause {
        DropCause::QueueFull => "queue full",
        DropCause::Loss => "random loss",
        DropCause::Down => "link down",
        DropCause::Blackhole => "black hole",
    };
    // Without the time: Wireshark counts equal comments.
    format!("lost: {why} on {link}")
}

/// What an interface leads to.
pub(super) fn path(path: &PathSpec, shared: &[SharedLink]) -> String {
    let mut text = format!("down {}, up {}", link(&path.down), link(&path.up));
    if let Some(nic) = path.nic {
        text += &format!("; interface {nic}");
    }
    if let Some(via) = path.via.as_ref().and_then(|via| shared.iter().find(|link| link.name == *via)) {
        text += &format!("; through {}: down {}, up {}", via.name, link(&via.down), link(&via.up));
    }
    text
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
        QueueLimit::Bdp { factor, .. } => text += &format!(" queue {factor} bdp"),
    }
    if config.loss != LossModel::None {
        text += &format!(" loss {:.3}%", config.loss.mean() * 100.0);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_engine::{Detector, Reason};
    use anabranch_units::{Bytes, Duration, Instant, Rate, SubflowId};

    #[test]
    fn a_comment_names_the_scheduler_and_the_link() {
        for (why, expected) in [
            (Purpose::NewData(Choice::Scheduler), "new data: late chose this subflow"),
            (Purpose::NewData(Choice::OnlySubflow), "new data: no other subflow to choose"),
            (Purpose::Retransmission(Detector::Rack), "retransmission: found lost by RACK"),
            (Purpose::Reinjection(Reason::Rto(SubflowId(1))), "reinjection: RTO of subflow 1"),
        ] {
            assert_eq!(purpose(why, Some("late")), expected);
        }
        let at = Instant::ZERO + Duration::from_millis(1500);
        let lost = Loss { at, link: "wlan/down", cause: DropCause::QueueFull };
        assert_eq!(loss(&lost), "lost: queue full on wlan/down");
    }

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
        assert_eq!(path(&spec, &[core]), expected);
    }
}
