//! Tests of files: texts are texts, nothing breaks a file, and the same figure gives the same bytes.
#![allow(clippy::unwrap_used)]

use super::*;
use anabranch_study::figure::{Axis, Mark, Point, Scale, Series, SeriesOrigin};

fn axis(label: &str, unit: &str, scale: Scale) -> Axis {
    Axis { label: label.to_owned(), unit: unit.to_owned(), scale }
}

fn series(name: &str, points: Vec<Point>) -> Series {
    Series { name: name.to_owned(), origin: SeriesOrigin::Measured, points }
}

fn figure(mark: Mark, x: Axis, y: Axis, series: Vec<Series>) -> Figure {
    let (id, title) = ("a".to_owned(), "Delay & <loss> 5 %".to_owned());
    Figure { id, title, mark, x, y, panels: None, columns: None, series, first: Vec::new(), notes: Vec::new() }
}

fn bars() -> Figure {
    let bar = |category: &str, y: f64| Point {
        category: Some(category.to_owned()),
        y: Some(y),
        low: Some(y - 0.1),
        high: Some(y + 0.1),
        values: vec![y - 0.2, y + 0.2],
        ..Point::default()
    };
    let bound = Point { at_least: true, low: None, high: None, ..bar("ecf:beta=0.5", 3.0) };
    let all = vec![
        series("schedulers", vec![bar("min_rtt", 1.0), bar("späť \u{202e}\u{7}(x)", 2.0)]),
        series("bounds", vec![bound]),
    ];
    figure(Mark::Bar, axis("scheduler", "", Scale::Category), axis("completion time", "s", Scale::Linear), all)
}

fn lines(mark: Mark) -> Figure {
    let point = |x: f64, y: Option<f64>| Point {
        panel: Some("10 ms".to_owned()),
        x: Some(x),
        y,
        low: y.map(|y| y * 0.9),
        high: y.map(|y| y * 1.1),
        ..Point::default()
    };
    let all = vec![series(
        "late",
        vec![point(1.0, Some(4.0)), point(10.0, Some(5.0)), point(50.0, None), point(100.0, Some(f64::NAN))],
    )];
    let panels = Some("RTT".to_owned());
    Figure { panels, ..figure(mark, axis("rate", "Mbit/s", Scale::Log), axis("time × 2", "s", Scale::Linear), all) }
}

fn text(figures: &[Figure], form: Form) -> String {
    String::from_utf8_lossy(&plot(figures, form)).into_owned()
}

/// Reads the tags of an XML document, with entities replaced in its texts.
fn texts(svg: &str) -> Vec<String> {
    let (mut open, mut texts, mut rest) = (Vec::new(), Vec::new(), svg);
    while let Some((before, after)) = rest.split_once('<') {
        assert!(!before.contains('>'), "a bare > in {before}");
        for entity in before.split('&').skip(1) {
            assert!(["amp;", "lt;", "gt;"].iter().any(|it| entity.starts_with(it)), "{entity}");
        }
        if open.last().is_some_and(|tag| tag == "text") {
            texts.push(before.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"));
        }
        let (tag, after) = after.split_once('>').unwrap();
        assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
        match tag.strip_prefix('/') {
            Some(name) => assert_eq!(open.pop().as_deref(), Some(name)),
            None if tag.ends_with('/') => {}
            None => open.push(tag.split(' ').next().unwrap().to_owned()),
        }
        rest = after;
    }
    assert_eq!((open.len(), rest.trim()), (0, ""));
    texts
}

#[test]
fn an_svg_is_well_formed_and_its_words_are_texts() {
    let svg = text(&[bars(), lines(Mark::Line)], Form::Svg);
    let texts = texts(&svg);
    for word in [
        "Delay & <loss> 5 %",
        "min_rtt",
        "späť (x)",
        "completion time [s]",
        "hollow: at least",
        "RTT: 10 ms",
        "time × 2 [s]",
    ] {
        assert!(texts.iter().any(|it| it == word), "{word} is missing: {texts:?}");
    }
    assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
}

/// Strings of a PDF's contents, without the backslashes.
fn strings(pdf: &[u8]) -> Vec<String> {
    let latin: String = pdf.iter().map(|byte| char::from(*byte)).collect();
    let shown = latin
        .split(" Tj")
        .filter_map(|part| part.rsplit_once(" Tm ("))
        .map(|(_, it)| it.strip_suffix(')').unwrap_or(it));
    shown.map(|it| it.replace("\\(", "(").replace("\\)", ")").replace("\\\\", "\\")).collect()
}

#[test]
fn a_pdf_finds_its_objects_and_its_words_are_texts() {
    let pdf = plot(&[bars(), lines(Mark::Step)], Form::Pdf);
    let strings = strings(&pdf);
    for word in ["Delay & <loss> 5 %", "min_rtt", "sp\u{e4}? (x)", "completion time [s]", "time \u{d7} 2 [s]"] {
        assert!(strings.iter().any(|it| it == word), "{word} is missing: {strings:?}");
    }
    // The table at the end names the byte at which each object begins.
    let latin: String = pdf.iter().map(|byte| char::from(*byte)).collect();
    let start: usize = latin.rsplit_once("startxref\n").unwrap().1.lines().next().unwrap().parse().unwrap();
    let table: Vec<&str> = latin[latin.char_indices().nth(start).unwrap().0..].lines().collect();
    assert_eq!(table[0], "xref");
    let count: usize = table[1].strip_prefix("0 ").unwrap().parse().unwrap();
    for n in 1..count {
        let offset: usize = table[2 + n].split(' ').next().unwrap().parse().unwrap();
        assert!(pdf[offset..].starts_with(format!("{n} 0 obj").as_bytes()), "object {n}");
    }
    // So does the length of the contents.
    let length: usize = latin.split_once("/Length ").unwrap().1.split(' ').next().unwrap().parse().unwrap();
    let begin = pdf.windows(7).position(|it| it == b"stream\n").unwrap() + 7;
    assert!(pdf[begin + length..].starts_with(b"\nendstream"));
}

#[test]
fn a_pgf_closes_what_it_opens_and_escapes_words() {
    let pgf = text(&[bars(), lines(Mark::Point)], Form::Pgf);
    let (mut depth, mut before) = (0i32, ' ');
    for c in pgf.chars() {
        match c {
            '{' if before != '\\' => depth += 1,
            '}' if before != '\\' => depth -= 1,
            _ => {}
        }
        assert!(depth >= 0);
        before = c;
    }
    assert_eq!(depth, 0);
    for name in ["pgfscope", "pgfpicture"] {
        let [begins, ends] = ["begin", "end"].map(|it| pgf.matches(&format!("\\{it}{{{name}}}")).count());
        assert_eq!(begins, ends);
    }
    for words in ["min\\_rtt", "5 \\%", "\\&", "\\textless{}loss\\textgreater{}", "time $\\times$ 2"] {
        assert!(pgf.contains(words), "{words} is missing: {pgf}");
    }
}

/// Tops and bottoms are the other way round on paper: a greater value is higher up, and more to the right.
#[test]
fn greater_is_higher_and_further_right() {
    let svg = text(&[lines(Mark::Line)], Form::Svg);
    let line = svg.lines().find(|it| it.contains("polyline") && it.contains("stroke-width=\"1.2\"")).unwrap();
    let points = line.split('"').nth(1).unwrap();
    let numbers: Vec<f64> = points.split([' ', ',']).map(|it| it.parse().unwrap()).collect();
    let [x1, y1, x2, y2] = numbers[..] else { panic!("{numbers:?}: the gap and the NaN are no points") };
    assert!(x2 > x1 && y2 < y1, "{numbers:?}");
}

#[test]
fn the_same_figure_gives_the_same_bytes() {
    for form in [Form::Svg, Form::Pdf, Form::Pgf] {
        assert_eq!(plot(&[bars()], form), plot(&[bars()], form));
        // Without figures or points there is an empty picture, and no panic.
        assert!(!plot(&[], form).is_empty());
        assert!(!plot(&[Figure { series: Vec::new(), ..bars() }], form).is_empty());
    }
    assert_eq!(
        ["a.svg", "b.c.pdf", "pgf", "x.png"].map(|name| Form::of(Path::new(name))),
        [Some(Form::Svg), Some(Form::Pdf), None, None]
    );
}
