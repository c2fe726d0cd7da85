//! Settings of hosts that the engine describes.
#![allow(clippy::unwrap_used)]
use super::*;
use anabranch_engine::settings::{Domain, Value};

/// A setting that is not in the engine's table, on a field that the test can see.
const DUMMY: Setting = Setting::new("dummy-flag", "Does nothing.", Domain::Flag(|config| &mut config.loss_oracle));

/// Reads a scenario whose hosts also have the setting `dummy-flag`.
fn with_dummy(hosts: &str, sets: &[&str]) -> Result<Scenario, ScenarioError> {
    let origin = Origin { scenario: "test.toml".into(), sets: sets.iter().map(|set| (*set).to_owned()).collect() };
    let text = format!("[path.wlan]\nrate = \"25mbit\"\nrtt = \"20ms\"\n{hosts}\n{BULK}");
    let settings = [SETTINGS, &[DUMMY]].concat();
    let layer = Layer { name: "test.toml", text: &text, within: None };
    Scenario::with_settings(&built_in(), &settings, "test", &[layer], origin, &|_, _| unreachable!("no trace is named"))
}

#[test]
fn a_new_setting_is_found() {
    let flags = |scenario: &Scenario| [&scenario.spec.client, &scenario.spec.server].map(|it| it.config.loss_oracle);
    assert_eq!(flags(&with_dummy("", &[]).unwrap()), [false, false]);
    assert_eq!(flags(&with_dummy("[host]\ndummy-flag = true", &[]).unwrap()), [true, true]);
    assert_eq!(flags(&with_dummy("", &["server.dummy-flag=true"]).unwrap()), [false, true]);
    let both = with_dummy("[host]\ndummy-flag = true\n[client]\ndummy-flag = false", &[]).unwrap();
    assert_eq!(flags(&both), [false, true]);

    // The testbed sees what is given, and by whom.
    let given =
        both.host_tables(true).map(|host| host.given.iter().map(|it| (it.setting.name, it.value)).collect::<Vec<_>>());
    assert_eq!(given, [vec![("dummy-flag", Value::Flag(true))], vec![("dummy-flag", Value::Flag(false))]]);

    let error = with_dummy("[host]\ndummy-flag = \"yes\"", &[]).err().unwrap();
    let said = (error.to_string(), error.help().unwrap().to_owned(), error.quoted());
    assert_eq!(said, ("this is a string \"yes\"".into(), "accepted: true or false".into(), Some("\"yes\"")));
    let error = with_dummy("", &["host.dumy-flag=true"]).err().unwrap();
    assert_eq!((error.to_string().as_str(), error.quoted()), ("unknown key `dumy-flag`", Some("dumy-flag")));
    assert!(error.help().unwrap().starts_with("did you mean `dummy-flag`? accepted: profile, "), "{error:?}");
}

/// Wrong values, each with the problem, what is accepted, and the place.
#[test]
fn a_wrong_value_is_pointed_at() {
    for (line, problem, accepted, place) in [
        ("initial-window = -1", "`initial-window` is -1", "0 segments or more", "-1"),
        ("initial-window = \"4\"", "this is a string \"4\"", "0 segments or more", "\"4\""),
        ("mss = 63", "`mss` is 63", "64 to 65495 bytes", "63"),
        ("send-buffer = \"0B\"", "`send-buffer` is empty", "any size from 1B", "\"0B\""),
        ("min-rto = \"1 hour\"", "`hour` is not a unit accepted here", "a time with its unit", "\"1 hour\""),
        ("rejoin = true", "`true` is not a time", "a time such as \"40ms\", or false", "true"),
        ("rto = \"linus\"", "unknown value `linus`", "linux, rfc6298, mptcp-ns3", "\"linus\""),
        ("rto = 3", "this is an integer `3`", "a text in quotes", "3"),
        ("deny-join = true", "unknown key `deny-join`", "profile, ", "deny-join"),
    ] {
        let error = with_dummy(&format!("[host]\n{line}"), &[]).err().unwrap();
        assert_eq!((error.to_string().as_str(), error.quoted()), (problem, Some(place)), "{line}");
        assert!(error.help().unwrap().contains(&format!("accepted: {accepted}")), "{line}: {error:?}");
    }
}

/// The minimum of the timeout belongs to the rule, in whichever order the two are written.
#[test]
fn the_order_of_settings_in_a_file_does_not_matter() {
    for hosts in ["rto = \"rfc6298\"\nmin-rto = \"300ms\"", "min-rto = \"300ms\"\nrto = \"rfc6298\""] {
        let scenario = with_dummy(&format!("[host]\n{hosts}"), &[]).unwrap();
        let rule = RtoRule::Rfc6298 { min: Duration::from_millis(300), granularity: Duration::from_millis(1) };
        assert_eq!(scenario.spec.server.config.profile.rto, rule, "{hosts}");
    }
}
