//! Pictures as SVG 1.1.

use super::picture::{Anchor, Item, Picture, Text, WIDTH, short};
use std::fmt::Write;

pub(super) fn write(picture: &Picture) -> String {
    let (width, height) = (short(WIDTH), short(picture.height));
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}pt\" height=\"{height}pt\" \
         viewBox=\"0 0 {width} {height}\" font-family=\"Helvetica, Arial, sans-serif\">\n<title>{}</title>\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n",
        escaped(&picture.title)
    );
    for item in &picture.items {
        match item {
            Item::Path { points, fill, stroke } => {
                let colour = |[r, g, b]: [u8; 3]| format!("#{r:02x}{g:02x}{b:02x}");
                let points: Vec<String> = points.iter().map(|[x, y]| format!("{},{}", short(*x), short(*y))).collect();
                let shape = if fill.is_some() { "polygon" } else { "polyline" };
                let fill = fill.map_or("none".to_owned(), |(it, opacity)| match opacity {
                    1.0 => colour(it),
                    _ => format!("{}\" fill-opacity=\"{}", colour(it), short(opacity)),
                });
                let stroke = stroke.map_or(String::new(), |pen| {
                    let dash = match pen.dash {
                        0.0 => String::new(),
                        dash => format!(" stroke-dasharray=\"{}\"", short(dash)),
                    };
                    format!(" stroke=\"{}\" stroke-width=\"{}\"{dash}", colour(pen.colour), short(pen.width))
                });
                svg += &format!("<{shape} points=\"{}\" fill=\"{fill}\"{stroke}/>\n", points.join(" "));
            }
            Item::Text(text) => svg += &words(text),
        }
    }
    svg + "</svg>\n"
}

fn words(text: &Text) -> String {
    let [x, y] = text.at.map(short);
    let anchor = match text.anchor {
        Anchor::Start => "",
        Anchor::Middle => " text-anchor=\"middle\"",
        Anchor::End => " text-anchor=\"end\"",
    };
    let mut tag = format!("<text x=\"{x}\" y=\"{y}\" font-size=\"{}\"{anchor}", short(text.size));
    if text.up {
        // Writing to a `String` cannot fail.
        let _ = write!(tag, " transform=\"rotate(-90 {x} {y})\"");
    }
    format!("{tag}>{}</text>\n", escaped(&text.words))
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
