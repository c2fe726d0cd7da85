//! Events of the endpoint, as scripts name them.

use anabranch_engine::Event;

/// The words of an event; `name` says what a subflow is called.
pub(crate) fn words(event: &Event, name: impl Fn(anabranch_units::SubflowId) -> String) -> Vec<String> {
    let mut words = vec![event.name().to_owned()];
    match event {
        Event::Connected { multipath } | Event::Reopened { multipath } | Event::Accepted { multipath } => {
            words.push(if *multipath { "mptcp" } else { "tcp" }.to_owned());
        }
        Event::Fallback(reason) => words.push(reason.name().to_owned()),
        Event::SchedulerOverruled(why) => words.push(why.name().to_owned()),
        Event::SubflowEstablished(id) | Event::SubflowClosed(id) => words.push(name(*id)),
        Event::CongestionPhase { subflow, phase } => words.extend([name(*subflow), (*phase).to_owned()]),
        _ => {}
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_engine::{FallbackReason, Misconduct};
    use anabranch_units::SubflowId;

    #[test]
    fn words_of_events() {
        let name = |id: SubflowId| format!("#{id}");
        assert_eq!(words(&Event::Accepted { multipath: true }, name), ["accepted", "mptcp"]);
        assert_eq!(words(&Event::Fallback(FallbackReason::ThirdAck), name), ["fallback", "third-ack"]);
        assert_eq!(words(&Event::SubflowClosed(SubflowId(2)), name), ["subflow-closed", "#2"]);
        assert_eq!(
            words(&Event::SchedulerOverruled(Misconduct::Looping), name),
            ["scheduler-overruled", "looping"],
            "what an endpoint tells can be waited for"
        );
    }
}
