//! Policies written in one text: `ecf`, `ecf:beta=0.25`, `ratio:weights="0=3, 1=1"`. Errors point at the place, as in a
//! scenario.

use crate::error::{Problem, Sources};
use crate::file::Policy;
use crate::{ScenarioError, Variant, resolve};
use anabranch_engine::Factory;
use anabranch_policy::Table;
use anabranch_policy::ack_path::AckPath;
use anabranch_policy::registry::{Kind, Value};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::ops::Range;

/// Builds the policy that `text` names in `table`, and returns it with all its parameters. `option` is the source of
/// the text (`--scheduler`), for errors.
pub fn named<T: Kind + ?Sized>(
    table: &Table<T>,
    option: &str,
    text: &str,
) -> Result<(Factory<T>, Variant), ScenarioError> {
    blame(option, text, |whole| resolve::build(table, &read(text)?, whole))
}

/// Builds an ACK path policy, as [`named`]. Paths have no names outside of scenarios, so a `path` must be an address.
pub fn named_ack_path(
    table: &Table<dyn AckPath>,
    option: &str,
    text: &str,
) -> Result<(Factory<dyn AckPath>, Variant), ScenarioError> {
    blame(option, text, |whole| {
        let policy = read(text)?;
        if let Some(Value::Text(path)) = policy.parameters.get("path")
            && !path.is_empty()
            && path.parse::<IpAddr>().is_err()
        {
            let help = "accepted: an address of either end, such as \"10.78.1.2\"";
            return Err(Problem::at(whole, format!("`path` is `{path}`, which is not an address"), help));
        }
        resolve::build(table, &policy, whole)
    })
}

pub(crate) fn blame<T>(
    option: &str,
    text: &str,
    build: impl FnOnce(&Range<usize>) -> Result<T, Problem>,
) -> Result<T, ScenarioError> {
    build(&(0..text.len())).map_err(|problem| {
        let mut sources = Sources::default();
        sources.push(option, text);
        sources.error(problem)
    })
}

const ACCEPTED: &str = "accepted: NAME or NAME:PARAMETER=VALUE,… such as \"ecf:beta=0.25\"; see `anabranch list`";

/// Splits `A,B:x=1,y=2,C` into its policies: a part that sets a parameter and names no policy belongs to the policy
/// before it.
pub fn split(list: &str) -> Vec<String> {
    let mut policies: Vec<String> = Vec::new();
    let mut quoted = false;
    for part in list.split(',') {
        let names = part.find(':').unwrap_or(part.len()) < part.find('=').unwrap_or(part.len()) || !part.contains('=');
        match policies.last_mut() {
            Some(last) if quoted || !names => *last += &format!(",{part}"),
            _ => policies.push(part.trim().to_owned()),
        }
        quoted ^= part.matches('"').count() % 2 == 1;
    }
    policies
}

/// Parses the text of a policy: its name and the parameters that it sets.
pub(crate) fn read(text: &str) -> Result<Policy, Problem> {
    let name = text.split(':').next().unwrap_or_default();
    if name.is_empty() {
        return Err(Problem::at(&(0..text.len()), "no policy is named", ACCEPTED));
    }
    let mut parameters = BTreeMap::new();
    if name.len() < text.len() {
        for piece in pieces(text, name.len() + 1)? {
            let (key, value) = parameter(text, piece.clone())?;
            if parameters.insert(key.to_owned(), value).is_some() {
                return Err(Problem::at(&piece, format!("`{key}` is set twice"), ACCEPTED));
            }
        }
    }
    Ok(Policy { name: name.to_owned(), parameters })
}

/// Returns the places of the parameters: the parts between commas outside of quotes.
fn pieces(text: &str, start: usize) -> Result<Vec<Range<usize>>, Problem> {
    let (mut found, mut begin, mut quoted) = (Vec::new(), start, None);
    for (at, byte) in text.bytes().enumerate().skip(start) {
        match byte {
            b'"' => quoted = if quoted.is_some() { None } else { Some(at) },
            b',' if quoted.is_none() => {
                found.push(begin..at);
                begin = at + 1;
            }
            _ => {}
        }
    }
    if let Some(at) = quoted {
        return Err(Problem::at(&(at..text.len()), "a quotation mark is not closed", ACCEPTED));
    }
    found.push(begin..text.len());
    Ok(found)
}

fn parameter(text: &str, piece: Range<usize>) -> Result<(&str, Value), Problem> {
    let here = &text[piece.clone()];
    let (key, value) = here.split_once('=').unwrap_or_default();
    let (key, value) = (key.trim(), value.trim());
    if key.is_empty() || value.is_empty() {
        return Err(Problem::at(&piece, format!("`{here}` is not PARAMETER=VALUE"), ACCEPTED));
    }
    let quoted = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    let value = match (quoted, value) {
        (Some(text), _) => Value::Text(text.to_owned()),
        (None, "true") => Value::Flag(true),
        (None, "false") => Value::Flag(false),
        (None, plain) => match plain.parse::<f64>() {
            Ok(number) if number.is_finite() => Value::Number(number),
            _ => Value::Text(plain.to_owned()),
        },
    };
    Ok((key, value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_policy::Catalogue;

    fn scheduler(text: &str) -> Result<String, String> {
        let found = named(&Catalogue::default().schedulers, "--scheduler", text);
        let said = |error: ScenarioError| {
            let help = error.help().unwrap_or_default().split([';', ',']).next().unwrap_or_default().to_owned();
            format!("{error} @{} ?{help}", error.quoted().unwrap_or_default())
        };
        found.map(|(_, variant)| variant.to_string()).map_err(said)
    }

    #[test]
    fn names_and_parameters() {
        assert_eq!(scheduler("min-rtt").as_deref(), Ok("min-rtt"));
        assert_eq!(scheduler("ecf:beta=0.5").as_deref(), Ok("ecf (beta=0.5)"));
        let weighted = r#"ratio:weights="0=3, 1=1", cwnd_limited=false"#;
        assert_eq!(scheduler(weighted).as_deref(), Ok(r#"ratio (weights="0=3, 1=1", cwnd_limited=false)"#));
    }

    #[test]
    fn a_list_is_cut_between_policies() {
        assert_eq!(split("min-rtt,ecf"), ["min-rtt", "ecf"]);
        assert_eq!(split("ecf:beta=0.5,ecf"), ["ecf:beta=0.5", "ecf"]);
        assert_eq!(
            split("late:tlp=true,strict=true,rbp, ecf:beta=1"),
            ["late:tlp=true,strict=true", "rbp", "ecf:beta=1"]
        );
        assert_eq!(split("ratio:weights=\"0=3, 1=1\",ecf"), ["ratio:weights=\"0=3, 1=1\"", "ecf"]);
    }

    #[test]
    fn a_slip_is_shown_where_it_is() {
        for (text, said) in [
            ("", "no policy is named @ ?accepted: NAME or NAME:PARAMETER=VALUE"),
            ("min-rt", "there is no scheduler called `min-rt` @min-rt ?did you mean `min-rtt`? there are: single"),
            ("ecf:beta", "`beta` is not PARAMETER=VALUE @beta ?accepted: NAME or NAME:PARAMETER=VALUE"),
            ("ecf:beta=1,beta=2", "`beta` is set twice @beta=2 ?accepted: NAME or NAME:PARAMETER=VALUE"),
            ("ratio:weights=\"0=3", "a quotation mark is not closed @\"0=3 ?accepted: NAME or NAME:PARAMETER=VALUE"),
            ("ecf:beta=fast", "`ecf.beta` is \"fast\" @ecf:beta=fast ?it must be a number from 0 to 10"),
        ] {
            assert_eq!(scheduler(text), Err(said.to_owned()), "{text}");
        }
    }

    #[test]
    fn an_ack_path_is_an_address() {
        let table = &Catalogue::default().ack_paths;
        assert!(named_ack_path(table, "--ack-path", "fixed:path=10.78.1.2").is_ok());
        assert!(named_ack_path(table, "--ack-path", "fixed").is_ok());
        assert!(named_ack_path(table, "--ack-path", "fixed:path=wlan").is_err());
    }
}
