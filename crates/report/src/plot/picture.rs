//! A picture: paths and texts at places that count in points from the upper left corner.

/// Paths and texts.
pub(super) struct Picture {
    pub title: String,
    pub height: f64,
    pub items: Vec<Item>,
}

/// Width of all pictures: that of a text in two columns \[pt\].
pub(super) const WIDTH: f64 = 480.0;

/// Part of a picture, drawn over those before it.
pub(super) enum Item {
    Path { points: Vec<[f64; 2]>, fill: Option<(Colour, f64)>, stroke: Option<Pen> },
    Text(Text),
}

/// Red, green and blue.
pub(super) type Colour = [u8; 3];

/// Line of a path.
#[derive(Clone, Copy)]
pub(super) struct Pen {
    pub colour: Colour,
    pub width: f64,
    /// Lengths of dashes and of the gaps between them; 0 for none.
    pub dash: f64,
}

/// A line of text.
pub(super) struct Text {
    pub at: [f64; 2],
    pub anchor: Anchor,
    /// True for text that runs upwards.
    pub up: bool,
    pub size: f64,
    pub words: String,
}

/// Place of a text that its position names, on the base line.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

pub(super) const BLACK: Colour = [0x20, 0x20, 0x20];
pub(super) const GREY: Colour = [0xd0, 0xd0, 0xd0];
/// Size of all texts but titles \[pt\].
pub(super) const SMALL: f64 = 8.0;

/// Colours that people with colour blindness can tell apart (Okabe and Ito).
const COLOURS: [Colour; 7] = [
    [0x00, 0x72, 0xb2],
    [0xd5, 0x5e, 0x00],
    [0x00, 0x9e, 0x73],
    [0xcc, 0x79, 0xa7],
    [0x56, 0xb4, 0xe9],
    [0xe6, 0x9f, 0x00],
    [0x60, 0x60, 0x60],
];

/// Returns the pen of a series: another colour for each, and with the same colour another dash.
pub(super) fn pen(series: usize) -> Pen {
    let dash = [0.0, 4.0, 1.5][series / COLOURS.len() % 3];
    Pen { colour: COLOURS[series % COLOURS.len()], width: 1.2, dash }
}

impl Picture {
    pub fn new(title: &str) -> Picture {
        Picture { title: clean(title), height: 0.0, items: Vec::new() }
    }

    pub fn line(&mut self, points: Vec<[f64; 2]>, pen: Pen) {
        if points.len() > 1 {
            self.items.push(Item::Path { points, fill: None, stroke: Some(pen) });
        }
    }

    pub fn area(&mut self, points: Vec<[f64; 2]>, colour: Colour, opacity: f64) {
        self.items.push(Item::Path { points, fill: Some((colour, opacity)), stroke: None });
    }

    /// Draws a point; one that is hollow is a bound.
    pub fn dot(&mut self, [x, y]: [f64; 2], pen: Pen, hollow: bool) {
        // A circle of 2.5 points in sixteen corners; constants, since a platform's own sine need not repeat elsewhere.
        const TURN: [[f64; 2]; 4] = [[1.0, 0.0], [0.924, 0.383], [0.707, 0.707], [0.383, 0.924]];
        let quarter = |k: usize, [a, b]: [f64; 2]| match k {
            0 => [a, b],
            1 => [-b, a],
            2 => [-a, -b],
            _ => [b, -a],
        };
        let corners = (0..4).flat_map(|k| TURN.map(|at| quarter(k, at)));
        let points = corners.map(|[dx, dy]| [x + 2.5 * dx, y + 2.5 * dy]).collect();
        let fill = if hollow { [0xff; 3] } else { pen.colour };
        let stroke = Some(Pen { dash: 0.0, ..pen });
        self.items.push(Item::Path { points, fill: Some((fill, 1.0)), stroke });
    }

    pub fn text(&mut self, at: [f64; 2], anchor: Anchor, words: &str) {
        self.push_text(Text { at, anchor, up: false, size: SMALL, words: words.to_owned() });
    }

    pub fn push_text(&mut self, text: Text) {
        self.items.push(Item::Text(Text { words: clean(&text.words), ..text }));
    }
}

/// Leaves out what has no place in a line of text, and what some forms forbid.
fn clean(words: &str) -> String {
    let turns = |c: char| matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    words.chars().filter(|c| !c.is_control() && !turns(*c) && !matches!(c, '\u{fffe}' | '\u{ffff}')).collect()
}

/// Returns the width of a text in Helvetica.
pub(super) fn width(words: &str, size: f64) -> f64 {
    let thousandths: u32 =
        words.chars().map(|c| HELVETICA.get((c as usize).wrapping_sub(32)).copied().unwrap_or(556)).sum();
    f64::from(thousandths) / 1000.0 * size
}

/// Advance widths from the space to the tilde \[1/1000 of the size\].
#[rustfmt::skip]
const HELVETICA: [u32; 95] = [
    278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278,
    556, 556, 556, 556, 556, 556, 556, 556, 556, 556, 278, 278, 584, 584, 584, 556,
    1015, 667, 667, 722, 722, 667, 611, 778, 722, 278, 500, 667, 556, 833, 722, 778,
    667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 278, 278, 278, 469, 556,
    333, 556, 556, 500, 556, 556, 278, 556, 556, 222, 222, 500, 222, 833, 556, 556,
    556, 556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334, 260, 334, 584,
];

/// Formats a coordinate: hundredths of a point, which nobody sees.
pub(super) fn short(x: f64) -> String {
    let text = format!("{x:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}
