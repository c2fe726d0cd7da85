//! Events of the endpoint, as scripts name them.

use anabranch_engine::Event;
use std::fmt::Debug;

/// The first word of each event.
pub(crate) const NAMES: &[&str] = &[
    "connected",
    "reopened",
    "accepted",
    "readable",
    "writable",
    "peer-finished",
    "closed",
    "reset",
    "fallback",
    "subflow-established",
    "subflow-closed",
    "subflow-reset",
];

/// `ThirdAck` as `third-ack`.
pub(crate) fn kebab(value: &impl Debug) -> String {
    let text = format!("{value:?}");
    let name: String = text.chars().take_while(char::is_ascii_alphanumeric).collect();
    let mut kebab = String::new();
    for c in name.chars() {
        if c.is_ascii_uppercase() && !kebab.is_empty() {
            kebab.push('-');
        }
        kebab.push(c.to_ascii_lowercase());
    }
    // `Other(9)` keeps its number.
    if let Some(rest) = text.strip_prefix("Other") {
        kebab += rest;
    }
    kebab
}

/// The words of an event; `name` says what a subflow is called.
pub(crate) fn words(event: &Event, name: impl Fn(anabranch_units::SubflowId) -> String) -> Vec<String> {
    let mut words = vec![kebab(event)];
    match event {
        Event::Connected { multipath } | Event::Reopened { multipath } | Event::Accepted { multipath } => {
            words.push(if *multipath { "mptcp" } else { "tcp" }.to_owned());
        }
        Event::Fallback(reason) => words.push(kebab(reason)),
        Event::SchedulerOverruled(why) => words.push(kebab(why)),
        Event::SubflowEstablished(id) | Event::SubflowClosed(id) => words.push(name(*id)),
        _ => {}
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_engine::FallbackReason;
    use anabranch_units::SubflowId;
    use anabranch_wire::ResetReason;

    #[test]
    fn words_of_events() {
        let name = |id: SubflowId| format!("#{id}");
        assert_eq!(words(&Event::Accepted { multipath: true }, name), ["accepted", "mptcp"]);
        assert_eq!(words(&Event::Fallback(FallbackReason::ThirdAck), name), ["fallback", "third-ack"]);
        assert_eq!(words(&Event::SubflowClosed(SubflowId(2)), name), ["subflow-closed", "#2"]);
        assert_eq!(
            (kebab(&ResetReason::MptcpError), kebab(&ResetReason::Other(9))),
            ("mptcp-error".into(), "other(9)".into())
        );
    }
}
