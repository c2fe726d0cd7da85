//! Texts that several crates print alike.

/// Bytes as hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The accepted name that `wrong` is most likely meant to be, if one is near enough: at most a third of its letters are
/// missing, superfluous, other ones or swapped with a neighbour.
pub fn nearest<'a>(wrong: &str, accepted: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (wrong.len() / 3).max(1);
    let with_distance = accepted.into_iter().map(|name| (strsim::osa_distance(wrong, name), name));
    let best = with_distance.min_by_key(|(distance, _)| *distance)?;
    (best.0 <= limit).then_some(best.1)
}

/// "did you mean …? accepted: …"
pub fn suggest<'a>(wrong: &str, accepted: impl IntoIterator<Item = &'a str>) -> String {
    let accepted: Vec<&str> = accepted.into_iter().collect();
    let list =
        if accepted.is_empty() { "nothing, since there is none to name".to_owned() } else { accepted.join(", ") };
    match nearest(wrong, accepted.iter().copied()) {
        Some(name) => format!("did you mean `{name}`? accepted: {list}"),
        None => format!("accepted: {list}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_finger_is_understood() {
        assert_eq!(nearest("dealy", ["rate", "delay", "rtt"]), Some("delay"));
        assert_eq!(nearest("shedulr", ["scheduler", "path"]), Some("scheduler"));
        assert_eq!(nearest("bandwidth", ["rate", "delay"]), None);
        assert_eq!(
            suggest("mp_capabel", ["dss", "mp_capable"]),
            "did you mean `mp_capable`? accepted: dss, mp_capable"
        );
        assert_eq!(suggest("zebra", ["seq", "ack"]), "accepted: seq, ack");
    }
}
