//! Options for the settings of the engine, one for each row of its table.

use anabranch_engine::settings::{Domain, SETTINGS, Setting, Value};
use anabranch_engine::{Config, Profile};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser, ValueParser};
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};
use std::fmt;

/// Settings given on the command line, in the order of the table.
#[derive(Clone, Default)]
pub struct SettingOptions(Vec<(Setting, Value)>);

impl SettingOptions {
    /// Applies them to `config`.
    pub fn apply(&self, config: &mut Config) {
        for (setting, value) in &self.0 {
            setting.put(config, *value).expect("the parser has checked the value");
        }
    }

    /// Returns true if this setting is given.
    pub fn gives(&self, name: &str) -> bool {
        self.0.iter().any(|(setting, _)| setting.name == name)
    }

    fn read(table: &[Setting], matches: &ArgMatches) -> Self {
        let given = |setting: &Setting| Some((*setting, *matches.get_one::<Value>(setting.name)?));
        SettingOptions(table.iter().filter_map(given).collect())
    }
}

/// Returns the option of a setting. `-h` leaves it out, because there are many.
fn option(setting: &'static Setting) -> Arg {
    let option = Arg::new(setting.name).long(setting.name).value_parser(parser(setting)).hide_short_help(true);
    let option = option.help(format!("{}{}", setting.about, default(setting)));
    match setting.domain {
        // `--rack` and `--rack=false`.
        Domain::Flag(_) => {
            option.value_name("true|false").num_args(0..=1).require_equals(true).default_missing_value("true")
        }
        Domain::Number(..) | Domain::NumberOrOff(..) => option.value_name("N").allow_negative_numbers(true),
        Domain::Size(_) | Domain::SizeOrOff(_) => option.value_name("SIZE"),
        Domain::Time(_) | Domain::TimeOrOff(_) => option.value_name("TIME"),
        Domain::Ports(_) => option.value_name("A-B"),
        Domain::Choice(_) => option.value_name("NAME"),
    }
}

fn parser(setting: &'static Setting) -> ValueParser {
    match setting.domain {
        Domain::Choice(words) => {
            let names = words.iter().map(|word| PossibleValue::new(word.name).help(word.about));
            let read = |name: String| setting.parse(&name).expect("only the names of the table are possible");
            PossibleValuesParser::new(names).map(read).into()
        }
        _ => ValueParser::new(|text: &str| setting.parse(text)),
    }
}

/// Returns the default in brackets.
fn default(setting: &Setting) -> String {
    let values = Profile::NAMES.iter().filter_map(|name| Profile::named(name));
    let mut values = values.map(|profile| setting.value(&Config::new(profile, Vec::new())));
    match values.next() {
        _ if setting.about.contains("unless given") => String::new(),
        Some(first) if values.all(|other| other == first) => format!(" [default: {first}]"),
        _ => " [default: the profile's]".to_owned(),
    }
}

impl Args for SettingOptions {
    fn augment_args(command: Command) -> Command {
        command.next_help_heading("Engine settings").args(SETTINGS.iter().map(option))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for SettingOptions {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(SettingOptions::read(SETTINGS, matches))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = SettingOptions::read(SETTINGS, matches);
        Ok(())
    }
}

impl fmt::Debug for SettingOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.0.iter().map(|(setting, value)| (setting.name, value))).finish()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    static DUMMY: Setting = Setting::new("dummy-flag", "Does nothing.", Domain::Flag(|config| &mut config.loss_oracle));

    fn config(words: &[&str]) -> Result<Config, String> {
        let words = [&["anabranch"], words].concat();
        let command = SettingOptions::augment_args(Command::new("anabranch")).arg(option(&DUMMY));
        let matches = command.try_get_matches_from(words).map_err(|error| error.to_string())?;
        let mut config = Config::new(Profile::anabranch(), Vec::new());
        SettingOptions::read(&[SETTINGS, &[DUMMY]].concat(), &matches).apply(&mut config);
        Ok(config)
    }

    /// The other places have such a test each: the document, scenario, schema, script, testbed.
    #[test]
    fn a_new_setting_is_found() {
        let on = |words: &[&str]| config(words).unwrap().loss_oracle;
        assert_eq!([on(&[]), on(&["--dummy-flag"]), on(&["--dummy-flag=false"])], [false, true, false]);
        let help = Command::new("anabranch").arg(option(&DUMMY)).render_long_help().to_string();
        assert!(
            help.contains("--dummy-flag[=<true|false>]") && help.contains("Does nothing. [default: false]"),
            "{help}"
        );
        assert!(config(&["--dummy-flag=maybe"]).err().unwrap().contains("accepted: true or false"));
    }

    #[test]
    fn every_setting_has_an_option_that_takes_its_value() {
        let start = Config::new(Profile::rfc(), Vec::new());
        for setting in SETTINGS {
            let value = setting.value(&start);
            let word = format!("--{}={value}", setting.name);
            assert_eq!(setting.value(&config(&[&word]).unwrap()), value, "{word}");
        }
    }

    #[test]
    fn a_wrong_value_is_refused_with_what_would_be_right() {
        for (words, says) in [
            (&["--mss", "63"][..], "accepted: 64 to 65495 bytes"),
            (&["--keepalive", "5"], "accepted: a time such as 40ms, or false"),
            (&["--rto", "linus"], "possible values: linux, rfc6298, mptcp-ns3"),
            (&["--ports", "9-5"], "accepted: ports such as 61000-65535, or false"),
            (&["--adv-win-scale", "-32"], "accepted: -31 to 31, or false"),
            (&["--max-subflow", "3"], "--max-subflows"),
        ] {
            let error = config(words).err().unwrap();
            assert!(error.contains(says), "{words:?}: {error}");
        }
    }
}
