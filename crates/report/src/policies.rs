//! Policies of a run with all their parameters, as shown below every result.

use crate::rows::Header;
use crate::wrap::wrap;
use anabranch_scenario::{Chosen, Variant};

/// Lines longer than this are broken.
const WIDTH: usize = 110;

/// All five policies of the run, and what took their place later.
pub(crate) fn policies(header: &Header) -> String {
    let mut text = "Policies, with all their parameters:\n".to_owned();
    for (seam, policy) in header.policies.seams() {
        if seam == "scheduler" && !header.schedulers.is_empty() {
            text += &candidates(&header.schedulers);
            continue;
        }
        text += &line(seam, policy.to_string());
        let receiver = header.receiver_policies.as_ref().map(|host| host.seams());
        let receiver = receiver.into_iter().flatten().find(|(other, _)| *other == seam);
        if let Some((_, other)) = receiver.filter(|(_, other)| *other != policy) {
            text += &line("", format!("{other} at the receiver"));
        }
    }
    for (n, switched) in header.switched.iter().enumerate() {
        let what = format!("{} {} from {} s on, {}", switched.seam, switched.policy, switched.at_s, switched.host);
        text += &line(if n == 0 { "switched to" } else { "" }, what);
    }
    text
}

/// A line each, and one for all that have nothing to be set.
pub(crate) fn candidates(schedulers: &[Variant]) -> String {
    let (plain, others): (Vec<&Variant>, Vec<&Variant>) =
        schedulers.iter().partition(|scheduler| scheduler.parameters.0.is_empty());
    let mut lines: Vec<String> = others.iter().map(|scheduler| scheduler.to_string()).collect();
    if !plain.is_empty() {
        let names: Vec<&str> = plain.iter().map(|scheduler| scheduler.name.as_str()).collect();
        let none = if others.is_empty() { "" } else { "without parameters: " };
        lines.push(format!("{none}{}", names.join(", ")));
    }
    lines.into_iter().enumerate().map(|(n, text)| line(if n == 0 { "schedulers" } else { "" }, text)).collect()
}

/// All seams but the scheduler over several scenarios, each policy once, with the letters of those in which it ran.
pub(crate) fn of_scenarios(scenarios: &[(char, &Chosen)]) -> String {
    let mut text = String::new();
    for (at, (seam, _)) in scenarios.first().map(|(_, chosen)| chosen.seams()).into_iter().flatten().enumerate().skip(1)
    {
        let mut seen: Vec<(&Variant, String)> = Vec::new();
        for (letter, chosen) in scenarios {
            let (_, policy) = chosen.seams()[at];
            match seen.iter_mut().find(|(other, _)| *other == policy) {
                Some((_, letters)) => letters.push(*letter),
                None => seen.push((policy, letter.to_string())),
            }
        }
        for (n, (policy, letters)) in seen.iter().enumerate() {
            let letters = if letters.len() == scenarios.len() { String::new() } else { format!(" in {letters}") };
            text += &line(if n == 0 { seam } else { "" }, format!("{policy}{letters}"));
        }
    }
    text
}

fn line(label: &str, text: String) -> String {
    // Continued lines of one policy stand further in than the next policy.
    let lines = wrap(&text, WIDTH - 17).join(&format!("\n{:17}", ""));
    format!("  {label:<11}  {lines}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_policy::registry::Value;
    use anabranch_scenario::{Settings, Switched};

    fn variant(name: &str, parameters: &[(&str, Value)]) -> Variant {
        let parameters = parameters.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        Variant { name: name.to_owned(), parameters: Settings(parameters) }
    }

    #[test]
    fn everything_that_ran_is_named_once() {
        let mut header = Header::for_tests();
        let mut receiver = header.policies.clone();
        receiver.ack_path = variant("probed", &[("interval_ms", Value::Number(10.0))]);
        header.receiver_policies = Some(receiver);
        header.switched = vec![Switched {
            at_s: 2.5,
            host: "both hosts",
            seam: "scheduler",
            policy: variant("late", &[("overshoot", Value::Flag(true))]),
        }];
        insta::assert_snapshot!(policies(&header), @r"
        Policies, with all their parameters:
          scheduler    min-rtt
          congestion   cubic (beta=0.7)
          window       shared
          ack-path     own
                       probed (interval_ms=10) at the receiver
          reinjection  opportunistic
          first-path   as-listed
          switched to  scheduler late (overshoot=true) from 2.5 s on, both hosts
        ");
    }

    #[test]
    fn compared_schedulers_stand_in_the_place_of_the_scenarios_own() {
        let late = variant("late", &[("overshoot", Value::Flag(false)), ("rounds", Value::Number(9.0))]);
        let header = Header::for_tests().comparing(vec![variant("min-rtt", &[]), late, variant("lts", &[])]);
        let text = policies(&header);
        assert!(text.contains("  schedulers   late (overshoot=false, rounds=9)\n"), "{text}");
        assert!(text.contains("               without parameters: min-rtt, lts\n"), "{text}");
        assert!(!text.contains("  scheduler "), "{text}");
    }
}
