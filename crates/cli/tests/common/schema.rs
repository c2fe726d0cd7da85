//! A schema as the program prints it, and what it accepts and refuses.

use super::succeed;
use anabranch_lab::format::Format;
use jsonschema::Validator;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;

/// A schema as the program prints it.
pub struct Schema {
    format: &'static Format,
    validator: Validator,
}

impl Schema {
    /// Asks the program for the schema of a format.
    pub fn of(name: &str) -> Schema {
        let text = succeed(Path::new("."), &["schema", name]);
        let schema: Value = serde_json::from_str(&text).unwrap();
        jsonschema::meta::validate(&schema).unwrap_or_else(|error| panic!("the schema of {name}: {error}"));
        Schema { format: Format::named(name).unwrap(), validator: jsonschema::validator_for(&schema).unwrap() }
    }

    /// Returns the document. Panics unless it is valid and begins with its format.
    pub fn valid(&self, text: &str, about: &str) -> Value {
        let document = self.accepts(text, about);
        let head: Vec<_> = document.as_object().unwrap().iter().take(2).collect();
        let (name, version) = (json!(self.format.name), json!(self.format.version));
        assert_eq!(head, [(&"format".to_owned(), &name), (&"format_version".to_owned(), &version)], "{about}");
        document
    }

    fn accepts(&self, text: &str, about: &str) -> Value {
        let value: Value = serde_json::from_str(text).unwrap_or_else(|error| panic!("{about}: {error}: {text}"));
        let errors: Vec<String> = self
            .validator
            .iter_errors(&value)
            .take(5)
            .map(|it| format!("{}: {:.300}", it.instance_path(), it.to_string()))
            .collect();
        assert!(errors.is_empty(), "{about}, {}: {text}\n{}", self.format.name, errors.join("\n"));
        value
    }

    /// Panics unless the first line begins with its format and each line is valid, and is not valid any more with a
    /// further field, or with another value in one of its fields.
    pub fn check_lines(&self, text: &str, about: &str) {
        self.valid(text.lines().next().unwrap_or_default(), about);
        for line in text.lines() {
            let value = self.accepts(line, about);
            let mut wrong = value.clone();
            wrong["no-such-field"] = json!(1);
            assert!(
                !self.validator.is_valid(&wrong),
                "{about}, {}: valid with another field: {line}",
                self.format.name
            );
            for pointer in pointers(&value) {
                let mut wrong = value.clone();
                *wrong.pointer_mut(&pointer).unwrap() = json!([[[[]]]]);
                assert!(!self.validator.is_valid(&wrong), "{about}, {}: {pointer} in {line}", self.format.name);
            }
        }
    }

    /// Panics unless the document is valid, and is not valid any more when something in it is changed.
    pub fn check(&self, text: &str, about: &str) {
        let document = &self.valid(text, about);
        let refuses = |wrong: &Value, what: &str| {
            assert!(!self.validator.is_valid(wrong), "{about}, {}: valid though {what}", self.format.name);
        };
        for pointer in pointers(document) {
            let mut wrong = document.clone();
            // No field of any document is a list of lists of lists.
            *wrong.pointer_mut(&pointer).unwrap() = json!([[[[]]]]);
            refuses(&wrong, &format!("{pointer} has another type"));
            let mut wrong = document.clone();
            if let Value::Object(fields) = wrong.pointer_mut(&pointer).unwrap() {
                fields.insert("no-such-field".to_owned(), json!([[[[]]]]));
                refuses(&wrong, &format!("{pointer} has a further field"));
            }
        }
        for field in document.as_object().unwrap().keys() {
            let mut wrong = document.clone();
            wrong.as_object_mut().unwrap().remove(field);
            refuses(&wrong, &format!("{field} is missing"));
        }
    }
}

/// Pointers to a value and all in it; of lists the first and the last element.
fn pointers(value: &Value) -> Vec<String> {
    let inner: Vec<(String, &Value)> = match value {
        Value::Object(fields) => {
            let escaped = |key: &str| key.replace('~', "~0").replace('/', "~1");
            fields.iter().map(|(key, value)| (escaped(key), value)).collect()
        }
        Value::Array(items) => {
            let chosen = [0, items.len().saturating_sub(1)].into_iter().collect::<BTreeSet<_>>();
            chosen.into_iter().filter_map(|index| Some((index.to_string(), items.get(index)?))).collect()
        }
        _ => Vec::new(),
    };
    let mut all = vec![String::new()];
    for (key, value) in inner {
        all.extend(pointers(value).into_iter().map(|rest| format!("/{key}{rest}")));
    }
    all
}
