//! Figures as files for papers, without a browser: one description, three writers.
//!
//! ```text
//! Figure ─ panels ─▶ Frame (axes, ticks) ─ marks ─▶ Picture (paths and texts) ─▶ SVG, PDF, PGF
//! ```
//!
//! Texts stay texts in all of them: they can be searched, copied, and in PGF are set in the document's own font.

mod frame;
mod marks;
mod pdf;
mod pgf;
mod picture;
mod svg;

use anabranch_study::figure::Figure;
use picture::Picture;
use std::path::Path;

/// Form of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Scalable Vector Graphics.
    Svg,
    /// Portable Document Format, a page as large as the figure.
    Pdf,
    /// A `pgfpicture` for LaTeX, with `\usepackage{pgf}`.
    Pgf,
}

impl Form {
    /// Returns the form that the ending of a file's name asks for.
    pub fn of(path: &Path) -> Option<Form> {
        match path.extension()?.to_str()? {
            "svg" => Some(Form::Svg),
            "pdf" => Some(Form::Pdf),
            "pgf" => Some(Form::Pgf),
            _ => None,
        }
    }
}

/// Draws figures, one below the other.
pub fn plot(figures: &[Figure], form: Form) -> Vec<u8> {
    let mut picture = Picture::new(figures.first().map_or("", |figure| &figure.title));
    figures.iter().for_each(|figure| marks::draw(&mut picture, figure));
    let text = match form {
        Form::Svg => svg::write(&picture),
        Form::Pdf => return pdf::write(&picture),
        Form::Pgf => pgf::write(&picture),
    };
    text.into_bytes()
}

#[cfg(test)]
mod tests;
