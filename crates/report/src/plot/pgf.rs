//! Pictures as commands of PGF's basic layer, for `\input` in LaTeX.

use super::picture::{Anchor, Item, Picture, Text, WIDTH, short};
use std::fmt::Write;

pub(super) fn write(picture: &Picture) -> String {
    let mut pgf = format!(
        "% {}\n% \\usepackage{{pgf}} in the preamble, and \\input of this file.\n\\begingroup\n\\begin{{pgfpicture}}\n\
         \\pgfpathrectangle{{\\pgfpointorigin}}{{{}}}\\pgfusepath{{use as bounding box}}\n",
        picture.title,
        point([WIDTH, picture.height])
    );
    for item in &picture.items {
        match item {
            Item::Path { points, fill, stroke } => {
                pgf += "\\begin{pgfscope}";
                if let Some((colour, opacity)) = fill {
                    pgf += &format!("{}\\pgfsetfillcolor{{anabranch}}", defined(*colour));
                    pgf += &format!("\\pgfsetfillopacity{{{}}}", short(*opacity));
                }
                if let Some(pen) = stroke {
                    pgf += &format!("{}\\pgfsetstrokecolor{{anabranch}}", defined(pen.colour));
                    pgf += &format!("\\pgfsetlinewidth{{{}bp}}", short(pen.width));
                    if pen.dash > 0.0 {
                        pgf += &format!("\\pgfsetdash{{{{{0}bp}}{{{0}bp}}}}{{0bp}}", short(pen.dash));
                    }
                }
                for (n, [x, y]) in points.iter().enumerate() {
                    let to = if n == 0 { "move" } else { "line" };
                    pgf += &format!("\\pgfpath{to}to{{{}}}", point([*x, picture.height - y]));
                }
                pgf += match (fill.is_some(), stroke.is_some()) {
                    (true, true) => "\\pgfpathclose\\pgfusepath{fill,stroke}",
                    (true, false) => "\\pgfpathclose\\pgfusepath{fill}",
                    _ => "\\pgfusepath{stroke}",
                };
                pgf += "\\end{pgfscope}\n";
            }
            Item::Text(text) => pgf += &words(text, picture.height),
        }
    }
    pgf + "\\end{pgfpicture}\n\\endgroup\n"
}

fn point([x, y]: [f64; 2]) -> String {
    format!("\\pgfpoint{{{}bp}}{{{}bp}}", short(x), short(y))
}

fn defined(colour: [u8; 3]) -> String {
    let [r, g, b] = colour.map(|part| short(f64::from(part) / 255.0));
    format!("\\definecolor{{anabranch}}{{rgb}}{{{r},{g},{b}}}")
}

fn words(text: &Text, height: f64) -> String {
    let [x, y] = [text.at[0], height - text.at[1]].map(short);
    let anchor = match text.anchor {
        Anchor::Start => "left,",
        Anchor::Middle => "",
        Anchor::End => "right,",
    };
    let turn = if text.up { ",rotate=90" } else { "" };
    let (size, skip) = (short(text.size), short(text.size * 1.2));
    let words = escaped(&text.words);
    format!("\\pgftext[{anchor}base,x={x}bp,y={y}bp{turn}]{{\\fontsize{{{size}}}{{{skip}}}\\selectfont {words}}}\n")
}

/// Returns text that LaTeX sets as it stands.
fn escaped(text: &str) -> String {
    let mut latex = String::new();
    for c in text.chars() {
        let written = match c {
            '\\' => "\\textbackslash{}",
            '~' => "\\textasciitilde{}",
            '^' => "\\textasciicircum{}",
            '<' => "\\textless{}",
            '>' => "\\textgreater{}",
            '|' => "\\textbar{}",
            '"' => "''",
            '×' => "$\\times$",
            '±' => "$\\pm$",
            '≤' => "$\\leq$",
            '≥' => "$\\geq$",
            'µ' | 'μ' => "$\\mu$",
            '·' => "$\\cdot$",
            '–' => "--",
            '…' => "\\dots{}",
            '{' | '}' | '$' | '&' | '#' | '_' | '%' => {
                // Writing to a `String` cannot fail.
                let _ = write!(latex, "\\{c}");
                continue;
            }
            _ => {
                latex.push(c);
                continue;
            }
        };
        latex += written;
    }
    latex
}

#[cfg(test)]
mod tests {
    use super::escaped;

    #[test]
    fn words_stay_words() {
        assert_eq!(escaped("a_b & 5 % of {x}"), "a\\_b \\& 5 \\% of \\{x\\}");
        assert_eq!(
            escaped("\\input{x} ≥ 2^3 $y$"),
            "\\textbackslash{}input\\{x\\} $\\geq$ 2\\textasciicircum{}3 \\$y\\$"
        );
    }
}
