//! TOML of a scenario: the file, with the values that each `--set KEY=VALUE` overrides.
//!
//! Every value keeps its place, in the file or in the `--set`, so that an error can point at it.

use crate::ScenarioError;
use crate::error::{Problem, Sources};
use anabranch_units::suggest;
use serde::Deserialize;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeArray, DeString, DeTable, DeValue};

/// Texts that make up a scenario's TOML.
pub(crate) struct Tree {
    /// Valid TOML texts, with spaces in front of all but the first: a place in one is then a place in the whole.
    texts: Vec<Text>,
    pub(crate) sources: Sources,
}

struct Text {
    toml: String,
    within: Option<&'static str>,
    is_set: bool,
}

/// A file below the overrides.
#[derive(Clone, Copy, Debug)]
pub struct Layer<'a> {
    /// Name in errors.
    pub name: &'a str,
    /// Text of the file.
    pub text: &'a str,
    /// The only table of the file that counts, if the file has it.
    pub within: Option<&'static str>,
}

/// Returns several texts, each of which overrides those before it, and overrides by `KEY=VALUE` as one TOML text. It is
/// not checked to be a scenario.
///
/// # Errors
///
/// If a text is not TOML, or an override cannot be applied.
pub fn merged(layers: &[Layer<'_>], sets: &[String]) -> Result<String, ScenarioError> {
    let mut tree = Tree::read(layers)?;
    sets.iter().try_for_each(|set| tree.set(set))?;
    tree.text()
}

/// Tables whose entries a run takes as they are listed: the first path carries the first subflow, and of links with
/// something due at the same time the first listed acts first.
const LISTED: [&str; 2] = ["path", "link"];

/// Arrays of tables whose entries an override can take out: `change.0=false`.
const ENTRIES: [&str; 3] = ["workload", "change", "middlebox"];
/// Keys of a path or link that exclude each other: an override of one removes the others.
const RIVALS: [(&str, &[&str]); 7] = [
    ("rate", &["down", "up"]),
    ("down", &["rate"]),
    ("up", &["rate"]),
    ("delay", &["rtt"]),
    ("rtt", &["delay"]),
    ("trace", &["model"]),
    ("model", &["trace"]),
];

impl Tree {
    /// Reads files, each of which overrides those before it.
    pub(crate) fn read(layers: &[Layer<'_>]) -> Result<Tree, ScenarioError> {
        let mut tree = Tree { texts: Vec::new(), sources: Sources::default() };
        for Layer { name, text, within } in layers {
            let start = tree.sources.push_file(name, text);
            tree.texts.push(Text { toml: " ".repeat(start) + text, within: *within, is_set: false });
        }
        tree.merged().map_err(|problem| tree.sources.error(problem))?;
        Ok(tree)
    }

    /// Sets `KEY=VALUE`. The key is dotted, with a number for an entry of an array; missing keys are added, but a path
    /// or link only with all its keys, as an inline table: a dotted key that names none is a slip. The value is TOML,
    /// or else taken as a text, such as `20ms`. False takes out an entry of [`ENTRIES`].
    pub(crate) fn set(&mut self, assignment: &str) -> Result<(), ScenarioError> {
        let quoted = quoted(assignment).filter(|_| DeTable::parse(assignment).is_err());
        let text = quoted.as_deref().unwrap_or(assignment);
        let start = self.sources.push("--set", text);
        self.texts.push(Text { toml: " ".repeat(start) + text, within: None, is_set: true });
        self.merged().map(drop).map_err(|problem| self.sources.error(problem))
    }

    /// Decodes it as a `T`.
    pub(crate) fn decode<T: for<'de> Deserialize<'de>>(&self) -> Result<T, ScenarioError> {
        self.merged()
            .and_then(|root| T::deserialize(toml::de::Deserializer::from(root)).map_err(|e| Problem::from_toml(&e)))
            .map_err(|problem| self.sources.error(problem))
    }

    /// Returns the content as one TOML text, without comments: keys in alphabetical order, paths and links in that of
    /// the file.
    pub(crate) fn text(&self) -> Result<String, ScenarioError> {
        let mut whole: toml::Table = self.decode()?;
        let root = self.merged().map_err(|problem| self.sources.error(problem))?;
        let mut listed = Vec::new();
        for name in LISTED {
            let Some(DeValue::Table(table)) = root.get_ref().get(name).map(Spanned::get_ref) else { continue };
            let Some(toml::Value::Table(mut values)) = whole.remove(name) else { continue };
            for (key, _) in in_order(table, name) {
                let one = values.remove(key).map(|value| (key.to_owned(), value));
                let one = toml::Value::Table(one.into_iter().collect());
                listed.push(toml::Table::from_iter([(name.to_owned(), one)]).to_string());
            }
        }
        Ok([vec![whole.to_string()], listed].concat().join("\n"))
    }

    /// Returns the SHA-256 of the content: paths and links in the order of the file, other keys in alphabetical order,
    /// without comments, layout, seed and repetitions, and with the digest of a trace's content in place of its name.
    pub(crate) fn digest(&self, traces: &BTreeMap<String, String>) -> String {
        let mut canonical = String::new();
        if let Ok(root) = self.merged() {
            write_table(&mut canonical, root.get_ref(), traces, "");
        }
        anabranch_units::hex(&Sha256::digest(canonical.as_bytes()))
    }

    fn merged(&self) -> Result<Spanned<DeTable<'_>>, Problem> {
        let mut root = Spanned::new(0..0, DeTable::new());
        for (number, text) in self.texts.iter().enumerate() {
            let table = text.table()?;
            match number {
                0 => root = table,
                _ => lay_over(root.get_mut(), table.into_inner(), &mut Vec::new(), text.is_set)?,
            }
        }
        self.drop_entries(root.get_mut());
        Ok(root)
    }

    /// Takes out the entries of [`ENTRIES`] that an override made false: the numbers of the others hold until the end.
    fn drop_entries(&self, table: &mut DeTable<'_>) {
        let is_out = |value: &Spanned<DeValue<'_>>| {
            value.get_ref().as_bool() == Some(false) && !self.sources.is_in_file(&value.span())
        };
        for (key, value) in table.iter_mut() {
            match value.get_mut() {
                DeValue::Table(below) => self.drop_entries(below),
                DeValue::Array(items) if ENTRIES.contains(&key.get_ref().as_ref()) => {
                    *items = std::mem::replace(items, DeArray::new()).into_iter().filter(|it| !is_out(it)).collect();
                }
                _ => {}
            }
        }
    }
}

impl Text {
    fn table(&self) -> Result<Spanned<DeTable<'_>>, Problem> {
        let mut whole = DeTable::parse(&self.toml).map_err(|error| Problem::from_toml(&error))?;
        let Some(name) = self.within else { return Ok(whole) };
        let Some(held) = whole.get_mut().remove(name) else { return Ok(Spanned::new(0..0, DeTable::new())) };
        let span = held.span();
        match held.into_inner() {
            DeValue::Table(table) => Ok(Spanned::new(span, table)),
            _ => Err(Problem::at(
                &span,
                format!("`{name}` is not a table"),
                format!("accepted: [{name}] and tables below it"),
            )),
        }
    }
}

/// Returns `key="value"`, unless the value has special characters of TOML.
fn quoted(assignment: &str) -> Option<String> {
    let (key, value) = assignment.split_once('=')?;
    let plain = !value.trim().is_empty() && !value.contains(['"', '\'', '\\', '\n', '[', ']', '{', '}']);
    plain.then(|| format!("{}=\"{}\"", key.trim(), value.trim()))
}

fn lay_over<'i>(
    base: &mut DeTable<'i>,
    over: DeTable<'i>,
    path: &mut Vec<String>,
    is_set: bool,
) -> Result<(), Problem> {
    for (key, value) in over {
        let name = key.get_ref().to_string();
        if path.len() == 2 && (path[0] == "path" || path[0] == "link") {
            drop_rivals(base, &name);
        }
        path.push(name);
        match base.get_mut(&key) {
            Some(place) => replace(place, key.span(), value, path, is_set)?,
            None => {
                if is_set && is_dotted(&key.span(), &value).is_none() {
                    check_added(base, &key, &value, path)?;
                }
                base.insert(key, value);
            }
        }
        path.pop();
    }
    Ok(())
}

/// Refuses the table that the dots of an override would add, where that is a slip: a path or link of another name, or
/// an entry of an array that is not there.
fn check_added(
    base: &DeTable<'_>,
    key: &Spanned<DeString<'_>>,
    value: &Spanned<DeValue<'_>>,
    path: &[String],
) -> Result<(), Problem> {
    let [.., name] = path else { return Ok(()) };
    // Neither has the file any: it is the name in the table that is added.
    if let ([table], Some(added)) = (path, value.get_ref().as_table())
        && LISTED.contains(&table.as_str())
    {
        let dotted =
            |(key, value): &(&Spanned<DeString<'_>>, &Spanned<DeValue<'_>>)| is_dotted(&key.span(), value).is_none();
        let inner = added.iter().find(dotted);
        return inner.map_or(Ok(()), |(key, value)| {
            check_added(&DeTable::new(), key, value, &[table.clone(), key.get_ref().to_string()])
        });
    }
    if let [table, _] = path
        && LISTED.contains(&table.as_str())
    {
        let names: Vec<&str> = in_order(base, table).into_iter().map(|(name, _)| name).collect();
        let example = if table == "path" { "rate = \"25mbit\", delay = \"10ms\"" } else { "rate = \"25mbit\"" };
        let help =
            format!("{}; a new one takes its keys at once: {table}.{name}={{ {example} }}", suggest(name, names));
        return Err(Problem::at(&key.span(), format!("there is no {table} `{name}`"), help));
    }
    let first = value.get_ref().as_table().and_then(|table| table.keys().next());
    match first.filter(|first| first.get_ref().parse::<usize>().is_ok()) {
        None => Ok(()),
        Some(first) => {
            let problem = format!("`{}` has no entry `{}`", path.join("."), first.get_ref());
            let help = format!("there is none; accepted: {name}=[{{ … }}], with the keys of each entry");
            Err(Problem::at(&first.span(), problem, help))
        }
    }
}

fn replace<'i>(
    place: &mut Spanned<DeValue<'i>>,
    key: Range<usize>,
    value: Spanned<DeValue<'i>>,
    path: &mut Vec<String>,
    is_set: bool,
) -> Result<(), Problem> {
    let dotted = is_dotted(&key, &value);
    match (place.get_mut(), value.into_inner()) {
        (DeValue::Table(below), DeValue::Table(table)) if dotted.is_none() => lay_over(below, table, path, is_set),
        (DeValue::Array(items), DeValue::Table(table)) if dotted.is_none() => {
            let count = items.len();
            for (index, value) in table {
                let at = index.get_ref().parse().ok().and_then(|n: usize| items.get_mut(n));
                let Some(item) = at else {
                    let held = match count {
                        0 => "the array is empty".to_owned(),
                        n => format!("accepted: a number from 0 to {}", n - 1),
                    };
                    let problem = format!("`{}` has no entry `{}`", path.join("."), index.get_ref());
                    return Err(Problem::at(&index.span(), problem, held));
                };
                path.push(index.get_ref().to_string());
                replace(item, index.span(), value, path, is_set)?;
                path.pop();
            }
            Ok(())
        }
        (_, value) => {
            *place = Spanned::new(dotted.unwrap_or(key), value);
            Ok(())
        }
    }
}

/// Returns `None` for a table made by the dots of a key, which is merged with the existing one; for anything else, `{ …
/// }` included, the place of the value that replaces it.
fn is_dotted(key: &Range<usize>, value: &Spanned<DeValue<'_>>) -> Option<Range<usize>> {
    let inline = value.span().start > key.end;
    (inline || !matches!(value.get_ref(), DeValue::Table(_))).then(|| value.span())
}

fn drop_rivals(table: &mut DeTable<'_>, name: &str) {
    let Some((_, rivals)) = RIVALS.iter().find(|(key, _)| *key == name) else { return };
    // If one direction is replaced, the other keeps its rate.
    if let ("down" | "up", Some(rate)) = (name, table.get("rate").cloned()) {
        let other = if name == "down" { "up" } else { "down" };
        table.insert(Spanned::new(rate.span(), other.into()), rate);
    }
    for rival in *rivals {
        table.remove(*rival);
    }
}

/// Returns the entries of the table at this place: those of [`LISTED`] as they are listed, others by their keys.
fn in_order<'t, 'i>(table: &'t DeTable<'i>, place: &str) -> Vec<(&'t str, &'t Spanned<DeValue<'i>>)> {
    let mut entries: Vec<_> = table.iter().map(|(key, value)| (key.get_ref().as_ref(), value)).collect();
    if LISTED.contains(&place) {
        entries.sort_by_key(|(_, value)| value.span().start);
    }
    entries
}

fn write_table(out: &mut String, table: &DeTable<'_>, traces: &BTreeMap<String, String>, path: &str) {
    out.push('{');
    for (key, value) in in_order(table, path.strip_prefix('.').unwrap_or(path)) {
        let path = format!("{path}.{key}");
        let mut held = String::new();
        if path != ".run.seed" && path != ".run.repeat" && path != ".codec" && path != ".about" {
            write_value(&mut held, value.get_ref(), traces, &path);
        }
        // An empty table is the same as none.
        if !held.is_empty() && held != "{}" {
            out.push_str(&format!("{key:?}:{held},"));
        }
    }
    out.push('}');
}

fn write_value(out: &mut String, value: &DeValue<'_>, traces: &BTreeMap<String, String>, path: &str) {
    match value {
        DeValue::String(text) => match traces.get(text.as_ref()) {
            Some(digest) => out.push_str(&format!("trace({digest})")),
            None => out.push_str(&format!("{text:?}")),
        },
        DeValue::Integer(number) => out.push_str(&number.to_string()),
        DeValue::Float(number) => out.push_str(&number.to_string()),
        DeValue::Boolean(flag) => out.push_str(&flag.to_string()),
        DeValue::Datetime(time) => out.push_str(&time.to_string()),
        DeValue::Array(items) => {
            out.push('[');
            for item in items {
                write_value(out, item.get_ref(), traces, path);
                out.push(',');
            }
            out.push(']');
        }
        DeValue::Table(table) => write_table(out, table, traces, path),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const FILE: &str = "[path.wlan]\nrate = \"25mbit\"\ndelay = \"10ms\"\n[[workload]]\nkind = \"bulk\"\n[host]\n";

    fn after(sets: &[&str]) -> Result<String, ScenarioError> {
        let mut tree = Tree::read(&[Layer { name: "test.toml", text: FILE, within: None }])?;
        sets.iter().try_for_each(|set| tree.set(set))?;
        let mut text = String::new();
        write_table(&mut text, tree.merged().unwrap().get_ref(), &BTreeMap::new(), "");
        Ok(text)
    }

    #[test]
    fn an_override_replaces_adds_and_reaches_into_arrays() {
        let wlan = r#""path":{"wlan":{"delay":"10ms","rate":"25mbit",},},"#;
        let bulk = r#""workload":[{"kind":"bulk",},],"#;
        for (set, expected) in [
            ("path.wlan.delay=\"20ms\"", format!(r#"{{{}{bulk}}}"#, wlan.replace("10ms", "20ms"))),
            ("path.wlan.delay=20ms", format!(r#"{{{}{bulk}}}"#, wlan.replace("10ms", "20ms"))),
            ("host.sack = false", format!(r#"{{"host":{{"sack":false,}},{wlan}{bulk}}}"#)),
            ("run.stop=5s", format!(r#"{{{wlan}"run":{{"stop":"5s",}},{bulk}}}"#)),
            ("workload.0.kind=files", format!(r#"{{{wlan}{}}}"#, bulk.replace("bulk", "files"))),
            ("workload.0.count=3", format!(r#"{{{wlan}"workload":[{{"count":3,"kind":"bulk",}},],}}"#)),
            ("path.wlan={rate=\"1mbit\"}", format!(r#"{{"path":{{"wlan":{{"rate":"1mbit",}},}},{bulk}}}"#)),
        ] {
            assert_eq!(after(&[set]).unwrap(), expected, "{set}");
        }
    }

    #[test]
    fn an_override_takes_an_entry_out_and_the_numbers_hold() {
        let boxes = "path.wlan.middlebox=[{kind=\"nat\"}, {kind=\"strip\"}, {kind=\"split\"}]";
        let text = after(&[boxes, "path.wlan.middlebox.0=false", "path.wlan.middlebox.2.size=600B"]).unwrap();
        assert!(text.contains(r#""middlebox":[{"kind":"strip",},{"kind":"split","size":"600B",},]"#), "{text}");
        assert!(!after(&["workload.0=false"]).unwrap().contains("bulk"));
        assert_eq!(after(&["workload.1=false"]).unwrap_err().to_string(), "`workload` has no entry `1`");
        // Only an override does, and only to a whole entry.
        let file = format!("{FILE}[[change]]\nat = \"1s\"\nnotify = false\n").replace("[host]", "[host]\nsack = false");
        let tree = Tree::read(&[Layer { name: "test.toml", text: &file, within: None }]).unwrap();
        let merged = tree.text().unwrap();
        assert!(merged.contains("notify = false") && merged.contains("sack = false"), "{merged}");
    }

    #[test]
    fn an_override_drops_what_it_contradicts() {
        let path = |set| after(&[set]).unwrap().split("}").next().unwrap().to_owned();
        assert_eq!(path("path.wlan.rtt=30ms"), r#"{"path":{"wlan":{"rate":"25mbit","rtt":"30ms","#);
        assert_eq!(path("path.wlan.down=x.down"), r#"{"path":{"wlan":{"delay":"10ms","down":"x.down","up":"25mbit","#);
    }

    #[test]
    fn a_layer_lies_over_the_one_before_and_is_pointed_at() {
        let base = Layer { name: "base", text: FILE, within: None };
        let text = "title = \"x\"\n[scenario.path.wlan]\nrtt = \"30ms\"\n[scenario.host]\nmss = 1400\n";
        let upper = Layer { name: "upper", text, within: Some("scenario") };
        let tree = Tree::read(&[base, upper]).unwrap();
        let mut canonical = String::new();
        write_table(&mut canonical, tree.merged().unwrap().get_ref(), &BTreeMap::new(), "");
        assert_eq!(
            canonical,
            r#"{"host":{"mss":1400,},"path":{"wlan":{"rate":"25mbit","rtt":"30ms",},},"workload":[{"kind":"bulk",},],}"#
        );
        let root = tree.merged().unwrap();
        let mss = root.get_ref()["host"].get_ref().get("mss").unwrap().span();
        assert!(tree.sources.is_in_file(&mss));
        assert_eq!(tree.sources.error(Problem::at(&mss, "", "")).quoted(), Some("1400"));
    }

    #[test]
    fn the_merged_text_has_the_digest_of_its_parts() {
        let layer = Layer { name: "test.toml", text: FILE, within: None };
        let sets = ["path.wlan.rtt=30ms", "path.wlan.down=x.down", "workload.0.count=3"].map(str::to_owned);
        let mut tree = Tree::read(&[layer]).unwrap();
        sets.iter().try_for_each(|set| tree.set(set)).unwrap();
        let text = merged(&[layer], &sets).unwrap();
        let again = Tree::read(&[Layer { name: "merged", text: &text, within: None }]).unwrap();
        assert_eq!(again.digest(&BTreeMap::new()), tree.digest(&BTreeMap::new()), "{text}");
        let two = Layer { text: "[path.b]\nrate = \"1mbit\"\n[path.a]\nrate = \"2mbit\"\n", ..layer };
        let sets = ["path.b.rtt=1ms".to_owned()];
        let listed = merged(&[two], &sets).unwrap();
        assert!(listed.find("[path.b]") < listed.find("[path.a]"), "{listed}");
        let mut tree = Tree::read(&[two]).unwrap();
        sets.iter().try_for_each(|set| tree.set(set)).unwrap();
        let again = Tree::read(&[Layer { text: &listed, ..two }]).unwrap();
        assert_eq!(again.digest(&BTreeMap::new()), tree.digest(&BTreeMap::new()), "{listed}");
        assert!(!text.contains("delay") && text.contains("up = \"25mbit\""), "{text}");
    }

    #[test]
    fn the_last_override_wins() {
        assert_eq!(after(&["host.mss=1000", "host.mss=1400"]).unwrap(), after(&["host.mss=1400"]).unwrap());
    }

    #[test]
    fn what_cannot_be_set_is_pointed_at() {
        let error = after(&["workload.3.kind=\"bulk\""]).unwrap_err();
        assert_eq!((error.to_string().as_str(), error.quoted()), ("`workload` has no entry `3`", Some("3")));
        let error = after(&["path.wlan.rate"]).unwrap_err();
        assert!(error.quoted().is_some(), "{error}");
    }

    #[test]
    fn an_override_makes_no_path_by_a_slip() {
        let refused = |set: &str| {
            let error = after(&[set]).unwrap_err();
            let help = error.help().unwrap_or_default().to_owned();
            (error.to_string(), error.quoted().unwrap_or_default().to_owned(), help)
        };
        let (said, at, help) = refused("path.wlna.delay=40ms");
        assert_eq!((said.as_str(), at.as_str()), ("there is no path `wlna`", "wlna"));
        assert!(help.starts_with("did you mean `wlan`? accepted: wlan; a new one takes its keys at once: "), "{help}");
        let (said, at, help) = refused("link.x.rate=1mbit");
        assert_eq!((said.as_str(), at.as_str()), ("there is no link `x`", "x"));
        assert!(help.contains("a new one takes its keys at once: link.x={ "), "{help}");
        let (said, at, _) = refused("change.0.at=1s");
        assert_eq!((said.as_str(), at.as_str()), ("`change` has no entry `0`", "0"));
        let (said, ..) = refused("path.wlan.middlebox.2.kind=nat");
        assert_eq!(said, "`path.wlan.middlebox` has no entry `2`");
        assert!(after(&["link.x={rate=\"1mbit\"}"]).is_ok());
        let added = after(&["path.b={rate=\"1mbit\"}", "path.b.delay=5ms"]).unwrap();
        assert!(added.contains(r#""b":{"delay":"5ms","rate":"1mbit",}"#), "{added}");
        assert!(after(&["path.wlan.vary.every=1s", "host.receive-buffer.start=1MiB"]).is_ok());
    }

    #[test]
    fn the_digest_sees_content_and_not_layout() {
        let digest = |text: &str, trace: &str| {
            let tree = Tree::read(&[Layer { name: "x", text, within: None }]).unwrap();
            tree.digest(&BTreeMap::from([("lte.down".to_owned(), trace.to_owned())]))
        };
        let base = digest("a.down = \"lte.down\"\nb = 1", "1");
        assert_eq!(digest("# why\nb = 1\nrun.seed = 9\n[a]\ndown = 'lte.down'", "1"), base);
        assert_ne!(digest("a.down = \"lte.down\"\nb = 1", "2"), base);
        assert_ne!(digest("a.down = \"lte.down\"\nb = 2", "1"), base);
    }
}
