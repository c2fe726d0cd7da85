//! Figures as the page's scripts read them: a column of numbers for each field that a series has, six digits each.
//!
//! Field names are short, and a field that no point of a series has is left out; panels and categories are numbers into
//! a list. Ten thousand points of a time-sequence diagram then take a tenth of the space that they take one by one.

use anabranch_study::figure::{Axis, Figure, Mark, Point, Series};
use serde_json::{Map, Value, json};

/// All figures of a section as JSON for a script element: no `<` stands in it, so no text can end the element.
pub(super) fn data(section: &str, systems: &[&str], figures: &[Figure]) -> String {
    let figures: Vec<Value> = figures.iter().map(|figure| one(section, figure)).collect();
    // Systems keep their colours in all figures of a section.
    json!({ "systems": systems, "figures": figures }).to_string().replace('<', "\\u003c")
}

fn one(section: &str, figure: &Figure) -> Value {
    let points = || figure.series.iter().flat_map(|series| &series.points);
    let panels = names(points().map(|point| point.panel.as_deref()));
    let categories = names(points().map(|point| point.category.as_deref()));
    let id = super::slug(&figure.id);
    json!({
        "file": if id.starts_with(section) { id } else { format!("{section}-{id}") },
        "title": figure.title,
        "mark": figure.mark,
        "x": axis(&figure.x),
        "y": axis(&figure.y),
        "panelLabel": figure.panels,
        "panels": panels,
        "columns": figure.columns,
        "first": figure.first,
        "categories": categories,
        "series": figure.series.iter().map(|it| series(figure.mark, it, &panels, &categories)).collect::<Vec<_>>(),
    })
}

fn axis(axis: &Axis) -> Value {
    json!({ "label": axis.label, "unit": axis.unit, "scale": axis.scale })
}

/// Each once, in the order of the first appearance.
fn names<'a>(all: impl Iterator<Item = Option<&'a str>>) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    for name in all.flatten() {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

fn series(mark: Mark, series: &Series, panels: &[&str], categories: &[&str]) -> Value {
    let index = |names: &[&str], name: &Option<String>| match name {
        Some(name) => json!(names.iter().position(|other| other == name)),
        None => Value::Null,
    };
    let column = |number: fn(&Point) -> Option<f64>| -> Vec<Value> {
        series.points.iter().map(|point| number(point).map_or(Value::Null, rounded)).collect()
    };
    let columns = [
        ("p", series.points.iter().map(|point| index(panels, &point.panel)).collect()),
        ("c", series.points.iter().map(|point| index(categories, &point.category)).collect()),
        ("x", column(|point| point.x)),
        ("e", if mark == Mark::Span { column(|point| point.x_end) } else { Vec::new() }),
        ("y", column(|point| point.y)),
        ("l", column(|point| point.low)),
        ("h", column(|point| point.high)),
        ("n", series.points.iter().map(|point| json!(point.n)).collect()),
        ("u", series.points.iter().map(|point| json!((point.unfinished > 0).then_some(point.unfinished))).collect()),
        ("t", series.points.iter().map(|point| json!(point.note)).collect()),
    ];
    let mut object = Map::new();
    object.insert("name".to_owned(), json!(series.name));
    object.insert("origin".to_owned(), json!(series.origin));
    object.insert("length".to_owned(), json!(series.points.len()));
    for (name, values) in columns {
        share_column(&mut object, name, values);
    }
    // A list for each point; if all were alike, one could be taken for the column.
    if series.points.iter().any(|point| !point.values.is_empty()) {
        object.insert("v".to_owned(), series.points.iter().map(|point| repetitions(&point.values)).collect());
    }
    Value::Object(object)
}

/// Adds a column; what all share stands once, and null in all of them is left out.
pub(super) fn share_column(object: &mut Map<String, Value>, name: &str, values: Vec<Value>) {
    match values.first() {
        Some(Value::Null) if values.iter().all(Value::is_null) => {}
        Some(first) if values.iter().all(|value| value == first) => {
            object.insert(name.to_owned(), first.clone());
        }
        Some(_) => {
            object.insert(name.to_owned(), Value::Array(values));
        }
        None => {}
    }
}

/// The values of repetitions; null where there are none.
fn repetitions(values: &[f64]) -> Value {
    if values.is_empty() { Value::Null } else { values.iter().map(|value| rounded(*value)).collect() }
}

/// Six significant digits; whole numbers without a point. What is not a number is a gap.
fn rounded(x: f64) -> Value {
    if !x.is_finite() {
        return Value::Null;
    }
    let x: f64 = format!("{x:.5e}").parse().expect("what was formatted as a number is one");
    if x.fract() == 0.0 && x.abs() < 1e15 { json!(x as i64) } else { json!(x) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_six_digits() {
        let show = |x: f64| rounded(x).to_string();
        assert_eq!([show(1.0), show(1234567.0), show(-0.012345678)], ["1", "1234570", "-0.0123457"]);
        assert_eq!([show(f64::NAN), show(0.1 + 0.2), show(2.5e-9)], ["null", "0.3", "2.5e-9"]);
    }

    #[test]
    fn what_all_points_share_stands_once() {
        let point = |x: f64| Point { x: Some(x), y: Some(2.0 * x), n: Some(30), ..Point::default() };
        let it = Series {
            name: "a".to_owned(),
            origin: anabranch_study::figure::SeriesOrigin::Measured,
            points: vec![point(1.0), point(2.0)],
        };
        let expected = r#"{"name":"a","origin":"measured","length":2,"x":[1,2],"y":[2,4],"n":30}"#;
        assert_eq!(series(Mark::Line, &it, &[], &[]).to_string(), expected);
    }
}
