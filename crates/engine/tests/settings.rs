//! docs/settings.md is what the table of settings says; `BLESS=1 cargo test -p anabranch-engine --test settings` writes
//! it anew.
#![allow(clippy::unwrap_used)]

use anabranch_engine::settings::{Domain, Kernel, SETTINGS, Setting, Value};
use anabranch_engine::{Config, Profile};
use anabranch_units::{Bytes, Duration};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

const HEAD: &str = "# Settings of a host

Look up a setting of a host here: its meaning, what it accepts, and its names in scenarios, scripts and Linux. This
file is made from `crates/engine/src/settings/config.rs` and `profile.rs` (`BLESS=1 cargo test -p anabranch-engine
--test settings`). A scenario has them in `[host]` (both hosts), `[client]` or `[server]`, beside `profile`, the
policies ([`policies.md`](policies.md)), `receive-buffer` and `addresses`; `--set host.KEY=VALUE` overrides one. A
script has them in its `host` statement ([`scripts.md`](scripts.md)), with `on` and `off` for true and false and
numbers of bytes for sizes. `anabranch serve`, `fetch` and `proxy` have an option for each, called like the key, or
like the name in scripts with hyphens. A testbed sets the kernel's counterpart ([`testbed.md`](testbed.md)). The
defaults are those of the profile `anabranch`; [`stacks.md`](stacks.md) has the other profiles. Scripts begin from the
profile `linux` without `tsq`, `delayed-ack`, `tlp` and `timestamps`, and without `announce` and `rejoin`.

| key | meaning | accepted | default | in scripts | kernel |
|---|---|---|---|---|---|
";

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

fn size(size: Bytes) -> String {
    let units = [("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)];
    let (unit, factor) = units.into_iter().find(|(_, factor)| size.get().is_multiple_of(*factor)).unwrap();
    format!("{}{unit}", size.get() / factor)
}

fn row(setting: &Setting, defaults: &Config) -> String {
    let key = if setting.not_in_scenarios { "–".to_owned() } else { format!("`{}`", setting.name) };
    let default = match setting.value(defaults) {
        Value::Size(bytes) => size(bytes),
        value => value.to_string(),
    };
    let kernel = match setting.kernel {
        None => "–".to_owned(),
        Some(Kernel::Other(words)) => words.to_owned(),
        Some(kernel) => format!("`{}`", kernel.parameter().unwrap()),
    };
    let (script, accepted, about) = (setting.script(), cell(&setting.accepted()), cell(setting.about));
    format!("| {key} | {about} | {accepted} | {default} | `{script}` | {kernel} |\n")
}

fn document(settings: &[Setting]) -> String {
    let defaults = Config::new(Profile::anabranch(), Vec::new());
    let mut text = HEAD.to_owned() + &settings.iter().map(|setting| row(setting, &defaults)).collect::<String>();
    for setting in settings {
        let Domain::Choice(words) = setting.domain else { continue };
        text += &format!("\n## Values of `{}`\n\n| value | meaning |\n|---|---|\n", setting.name);
        for word in words {
            text += &format!("| `{}` | {} |\n", word.name, cell(word.about));
        }
    }
    text
}

#[test]
fn settings_md_is_what_the_table_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/settings.md");
    let wanted = document(SETTINGS);
    if std::env::var_os("BLESS").is_some() {
        fs::write(path, wanted).unwrap();
        return;
    }
    let held = fs::read_to_string(path).unwrap_or_default();
    assert!(held == wanted, "docs/settings.md is out of date: BLESS=1 cargo test -p anabranch-engine --test settings");
}

/// The other outputs have such a test each: `a_new_setting_is_found` in scenario, script and cli.
#[test]
fn a_new_setting_is_found_in_the_document() {
    let new = Setting::new("dummy", "Does nothing.", Domain::Flag(|config| &mut config.checksum))
        .in_kernel(Kernel::Switch("net.dummy", 1));
    let text = document(&[new]);
    let row = "| `dummy` | Does nothing. | true or false | false | `dummy` | `net.dummy` |\n";
    assert!(text.ends_with(row), "{text}");
}

#[test]
fn names_are_unique_kebab_case_and_sentences_end() {
    let unique = |names: Vec<String>| names.iter().collect::<BTreeSet<_>>().len() == SETTINGS.len();
    assert!(unique(SETTINGS.iter().map(|setting| setting.name.to_owned()).collect()));
    assert!(unique(SETTINGS.iter().map(Setting::script).collect()));
    for setting in SETTINGS {
        assert!(setting.name.chars().all(|c| c.is_ascii_lowercase() || c == '-'), "{}", setting.name);
        assert!(setting.about.ends_with('.'), "{}: {}", setting.name, setting.about);
    }
}

/// The values of a profile are accepted, and make it anew from any other.
#[test]
fn the_values_of_profiles_are_accepted() {
    for profile in Profile::NAMES.iter().filter_map(|name| Profile::named(name)) {
        let config = Config::new(profile, Vec::new());
        // What no setting has.
        let Profile { name, scheduler, congestion, reinjection, first_path, buffer, initial_buffer, .. } =
            config.profile;
        let other =
            Profile { name, scheduler, congestion, reinjection, first_path, buffer, initial_buffer, ..Profile::rfc() };
        let mut again = Config::new(other, Vec::new());
        for setting in SETTINGS {
            let value = setting.value(&config);
            setting.put(&mut again, value).unwrap_or_else(|error| panic!("{}: {error}", setting.name));
            assert_eq!(setting.value(&again), value, "{}", setting.name);
        }
        assert_eq!(again.profile, config.profile);
    }
}

/// A value at each end of a range arrives in its field, and one beyond it is refused.
#[test]
fn ranges_fit_into_their_fields() {
    for setting in SETTINGS {
        let (Domain::Number(_, min, max) | Domain::NumberOrOff(_, min, max)) = setting.domain else { continue };
        let mut config = Config::new(Profile::tcp(), Vec::new());
        for number in [min, max] {
            setting.put(&mut config, Value::Number(number)).unwrap();
            assert_eq!(setting.value(&config), Value::Number(number), "{}", setting.name);
        }
        for number in [min - 1, max + 1] {
            let error = setting.put(&mut config, Value::Number(number)).unwrap_err();
            assert_eq!(error.problem, format!("`{}` is {number}", setting.name));
            assert_eq!(error.accepted, setting.accepted());
        }
        assert_eq!(setting.value(&config), Value::Number(max), "a refused value changes nothing");
    }
}

#[test]
fn values_of_another_kind_are_refused() {
    let mut config = Config::new(Profile::tcp(), Vec::new());
    let values = |setting: &Setting| {
        [
            Value::Flag(true),
            Value::Number(match setting.domain {
                Domain::Number(_, min, _) | Domain::NumberOrOff(_, min, _) => min,
                _ => 3,
            }),
            Value::Size(Bytes::new(5)),
            Value::Time(Duration::from_secs(1)),
            Value::Ports(5, 5),
            Value::Off,
            Value::Word("nothing"),
        ]
    };
    for setting in SETTINGS {
        let taken = values(setting).into_iter().filter(|value| setting.put(&mut config, *value).is_ok()).count();
        let kinds = match setting.domain {
            _ if setting.can_be_off() => 2,
            Domain::Choice(_) => 0,
            _ => 1,
        };
        assert_eq!(taken, kinds, "{}", setting.name);
    }
}

/// A value is read as it is displayed, whatever its kind; what cannot be is refused with what could be.
#[test]
fn values_are_read_as_they_are_displayed() {
    let config = Config::new(Profile::tcp(), Vec::new());
    for setting in SETTINGS {
        let value = setting.value(&config);
        assert_eq!(setting.parse(&value.to_string()), Ok(value), "{}", setting.name);
        assert_eq!(setting.parse("false").is_ok(), setting.can_be_off() || matches!(setting.domain, Domain::Flag(_)));
    }
    let read = |name: &str, text: &str| {
        let setting = SETTINGS.iter().find(|setting| setting.name == name).unwrap();
        setting.parse(text).map_err(|error| error.to_string())
    };
    assert_eq!(read("ports", "61000-65535"), Ok(Value::Ports(61_000, 65_535)));
    assert_eq!(read("send-buffer", "64KiB"), Ok(Value::Size(Bytes::new(65_536))));
    for ports in ["5", "9-5", "0-5", "1-65536", "5-"] {
        let refused = format!("`ports` is {ports}; accepted: ports such as 61000-65535, or false");
        assert_eq!(read("ports", ports), Err(refused));
    }
    assert_eq!(read("mss", "63"), Err("`mss` is 63; accepted: 64 to 65495 bytes".to_owned()));
    assert_eq!(read("sack", "maybe"), Err("`sack` is maybe; accepted: true or false".to_owned()));
}

#[test]
fn kernel_parameters_are_in_the_units_of_the_kernel() {
    let text = |name: &str, value: Value| {
        SETTINGS.iter().find(|setting| setting.name == name).unwrap().kernel_parameter(value)
    };
    let found = |key, value: &str| Some((key, value.to_owned()));
    let ms = |ms| Value::Time(Duration::from_millis(ms));
    assert_eq!(text("sack", Value::Flag(false)), found("net.ipv4.tcp_sack", "0"));
    assert_eq!(text("tlp", Value::Flag(true)), found("net.ipv4.tcp_early_retrans", "3"));
    assert_eq!(text("min-rto", ms(200)), found("net.ipv4.tcp_rto_min_us", "200000"));
    assert_eq!(text("max-rto", ms(60_000)), found("net.ipv4.tcp_rto_max_ms", "60000"));
    assert_eq!(text("syn-retries", Value::Number(3)), found("net.ipv4.tcp_syn_retries", "3"));
    assert_eq!(text("mptcp-blackhole", Value::Off), found("net.mptcp.blackhole_timeout", "0"));
    assert_eq!(text("mss", Value::Number(1400)), None);
    assert_eq!(text("nagle", Value::Flag(true)), None);
}
