//! An expectation against what came: what is stated must hold; control bits, payload and the list of MPTCP options
//! always count.

use crate::describe::shorten;
use crate::statement::{Field, OptionText, SegmentText, field};
use crate::value;

/// Lists the differences between `got` and `expected`, field by field.
pub(crate) fn differences(expected: &SegmentText, got: &SegmentText) -> Vec<String> {
    let mut found = Vec::new();
    flags(expected, got, &mut found);
    payload(expected, got, &mut found);
    for wanted in &expected.fields {
        if ["data", "len", "payload", "mptcp"].contains(&wanted.name.as_str()) {
            continue;
        }
        let came = got.field(&wanted.name);
        if !holds(wanted, came) {
            found.push(differs(&wanted.name, wanted.value.as_deref(), came));
        }
    }
    for odd in got.fields.iter().filter(|field| field.name == "option" || field.name == "broken") {
        if expected.field(&odd.name).is_none() {
            found.push(format!("{}: expected none, got {}", odd.name, odd.value.as_deref().unwrap_or_default()));
        }
    }
    options(expected, got, &mut found);
    found
}

fn flags(expected: &SegmentText, got: &SegmentText, found: &mut Vec<String>) {
    // PSH says nothing that a peer may rely on (RFC 9293 §3.9.1).
    let relevant = |text: &str| {
        let mut letters: Vec<char> = text.chars().filter(|c| *c != '-' && *c != 'P').collect();
        letters.sort_unstable();
        letters
    };
    let pushed = expected.flags.contains('P') && !got.flags.contains('P');
    if relevant(&expected.flags) != relevant(&got.flags) || pushed {
        found.push(format!("flags: expected {}, got {}", expected.flags, got.flags));
    }
}

fn length(text: &SegmentText) -> Option<i128> {
    if let Some(length) = text.field("len") {
        return length.value.as_deref().and_then(value::number);
    }
    let (start, end) = text.field("data")?.value.as_deref()?.split_once(':')?;
    Some(value::number(end)? - value::number(start)?)
}

fn payload(expected: &SegmentText, got: &SegmentText, found: &mut Vec<String>) {
    let came = got.field("data").or_else(|| got.field("len"));
    match (expected.field("data"), expected.field("len")) {
        (None, None) => {
            if let Some(came) = came {
                found.push(format!("payload: expected none, got {came}"));
            }
        }
        (Some(data), _) if !holds(data, got.field("data")) => {
            found.push(differs("data", data.value.as_deref(), came));
        }
        (_, Some(wanted)) => {
            let there = got.clone();
            let there = field("len", length(&there).unwrap_or(0));
            if !holds(wanted, Some(&there)) {
                found.push(differs("len", wanted.value.as_deref(), Some(&there)));
            }
        }
        _ => {}
    }
    let any = expected.field("payload").is_some();
    if let Some(other) = got.field("payload").filter(|_| !any) {
        found.push(format!("payload: expected the bytes of the stream at that place, got {}", text(other)));
    }
}

fn options(expected: &SegmentText, got: &SegmentText, found: &mut Vec<String>) {
    let mut left: Vec<&OptionText> = got.options.iter().collect();
    for wanted in &expected.options {
        let Some(at) = left.iter().position(|option| option.name == wanted.name) else {
            found.push(format!("{}: expected {wanted}, got none", wanted.name));
            continue;
        };
        let came = left.remove(at);
        let wanted = completed(wanted, expected, got);
        arguments(&wanted, came, found);
    }
    if expected.field("mptcp").is_none() {
        for odd in left {
            let short = shorten(&SegmentText { options: vec![odd.clone()], ..SegmentText::default() });
            found.push(format!("{}: expected none, got {}", odd.name, short.options[0]));
        }
    }
}

/// Completes the expected option with its implied arguments: `map` stands for the segment's own mapping, a lone `fin`
/// for a mapping of one number and no byte.
fn completed(wanted: &OptionText, expected: &SegmentText, got: &SegmentText) -> OptionText {
    let mut full = wanted.clone();
    if wanted.name != "dss" {
        return full;
    }
    let fin = i128::from(wanted.arg("fin").is_some());
    let bytes = length(got).unwrap_or(0);
    if wanted.arg("map").is_some() {
        full.args.retain(|arg| arg.name != "map");
        let data = expected.field("data").or_else(|| got.field("data")).and_then(|field| field.value.as_deref());
        let start = data.and_then(|data| data.split_once(':')).map_or("*", |(start, _)| start);
        let seq = got.field("seq").and_then(|field| field.value.clone()).unwrap_or_default();
        for (name, value) in [("dsn", start.to_owned()), ("ssn", seq), ("len", (bytes + fin).to_string())] {
            if full.any(&[name, &format!("{name}4"), &format!("{name}8")]).is_none() {
                full.args.push(field(name, value));
            }
        }
    } else if fin == 1 && bytes == 0 && wanted.arg("len").is_none() && wanted.arg("ssn").is_none() {
        full.args.push(field("ssn", 0));
        full.args.push(field("len", 1));
    }
    full
}

/// Names that a number may have, by its width.
fn names(name: &str) -> [String; 3] {
    let plain = name.trim_end_matches(['4', '8']);
    match name {
        "ack" | "dsn" => [plain.to_owned(), format!("{plain}4"), format!("{plain}8")],
        "ack4" | "dsn4" | "ack8" | "dsn8" => [name.to_owned(), name.to_owned(), name.to_owned()],
        _ => [name.to_owned(), name.to_owned(), name.to_owned()],
    }
}

fn arguments(wanted: &OptionText, came: &OptionText, found: &mut Vec<String>) {
    for arg in &wanted.args {
        let there = names(&arg.name).iter().find_map(|name| came.arg(name));
        let none = arg.value.as_deref() == Some("none");
        if none && there.is_none() {
            continue;
        }
        let arg = match (arg.name.as_str(), &arg.value) {
            ("csum" | "hmac", None) => field(&arg.name, "ok"),
            _ => arg.clone(),
        };
        let arg = Field { value: arg.value.map(|value| plain(&value).to_owned()), ..arg };
        if !holds(&arg, there) {
            found.push(differs(&format!("{} {}", wanted.name, arg.name), arg.value.as_deref(), there));
        }
    }
    for arg in &came.args {
        let stated = wanted.args.iter().any(|other| names(&other.name).contains(&arg.name));
        if !stated && let Some(wanted_value) = unsaid(&wanted.name, arg) {
            found.push(differs(&format!("{} {}", wanted.name, arg.name), Some(wanted_value), Some(arg)));
        }
    }
}

/// Returns the value required of an argument that the script does not mention, if the argument has another.
fn unsaid(option: &str, arg: &Field) -> Option<&'static str> {
    let value = arg.value.as_deref().unwrap_or_default();
    match arg.name.as_str() {
        "hmac" | "csum" if value == "bad" => Some("ok"),
        "sender" | "receiver" | "key" | "token" if value.starts_with("0x") => Some("that of host or peer"),
        "v" if value != "1" => Some("1"),
        "flags" if !["H", "AH", "CH", "ACH"].contains(&value) => Some("H"),
        "dsn4" | "dsn8" if option == "dss" => Some("no mapping"),
        "fin" | "echo" | "backup" | "port" => Some("none"),
        _ => None,
    }
}

/// `key(host)` and `token(peer)` are other ways to write `host` and `peer`.
pub(crate) fn plain(value: &str) -> &str {
    let inner = ["key(", "token(", "hmac("].iter().find_map(|prefix| value.strip_prefix(prefix)?.strip_suffix(')'));
    inner.unwrap_or(value)
}

fn holds(wanted: &Field, came: Option<&Field>) -> bool {
    let Some(came) = came else { return wanted.value.as_deref() == Some("none") };
    match (wanted.value.as_deref(), came.value.as_deref()) {
        (None | Some("*"), _) => true,
        (Some(wanted), Some(came)) => same(wanted, came),
        (Some(wanted), None) => wanted == "yes" || wanted == "on",
    }
}

fn same(wanted: &str, came: &str) -> bool {
    if wanted == came {
        return true;
    }
    match (value::range(wanted), value::number(came)) {
        (Some((low, high)), Some(came)) => low <= came && came <= high,
        _ => {
            // Lists and pairs, part by part: `1:1001`, `100:*`, `2+3`.
            let split = |text: &str| text.split([':', ',', '+']).map(str::to_owned).collect::<Vec<_>>();
            let (wanted, came) = (split(wanted), split(came));
            let all = wanted.len() == came.len() && wanted.len() > 1;
            all && wanted.iter().zip(&came).all(|(wanted, came)| wanted == "*" || same(wanted, came))
        }
    }
}

fn text(field: &Field) -> String {
    field.value.clone().unwrap_or_else(|| "yes".to_owned())
}

fn differs(name: &str, wanted: Option<&str>, came: Option<&Field>) -> String {
    let got = came.map_or("none".to_owned(), text);
    format!("{name}: expected {}, got {got}", wanted.unwrap_or("it to be there"))
}
