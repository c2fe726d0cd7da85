//! Comments on packets.

use anabranch_engine::{Choice, Purpose};
use anabranch_sim::Loss;

/// Describes why a packet was sent.
pub(super) fn purpose(purpose: Purpose, scheduler: Option<&str>) -> String {
    match (purpose, scheduler) {
        (Purpose::NewData(Choice::Scheduler), Some(name)) => format!("new data: {name} chose this subflow"),
        _ => purpose.to_string(),
    }
}

/// Describes how a packet was lost.
pub(super) fn loss(loss: &Loss<'_>) -> String {
    let Loss { link, cause, .. } = loss;
    // The time is left out because Wireshark counts equal comments.
    format!("lost: {cause} on {link}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_engine::{Detector, Reason};
    use anabranch_net::DropCause;
    use anabranch_units::{Duration, Instant, SubflowId};

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
}
