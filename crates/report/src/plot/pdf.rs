//! Pictures as PDF 1.4: one page, with the font Helvetica that every reader has.

use super::picture::{Anchor, Item, Picture, Text, WIDTH, short, width};

pub(super) fn write(picture: &Picture) -> Vec<u8> {
    let mut opacities: Vec<String> = Vec::new();
    let mut content = Vec::new();
    for item in &picture.items {
        match item {
            Item::Path { points, fill, stroke } => {
                let mut path = String::from("q ");
                if let Some((colour, opacity)) = fill {
                    path += &format!("{} rg /G{} gs ", parts(*colour), number_of(short(*opacity), &mut opacities));
                }
                if let Some(pen) = stroke {
                    let dash = if pen.dash > 0.0 { short(pen.dash) } else { String::new() };
                    path += &format!("{} RG {} w [{dash}] 0 d ", parts(pen.colour), short(pen.width));
                }
                for (n, [x, y]) in points.iter().enumerate() {
                    let operator = if n == 0 { "m" } else { "l" };
                    path += &format!("{} {} {operator} ", short(*x), short(picture.height - y));
                }
                path += match (fill.is_some(), stroke.is_some()) {
                    (true, true) => "b Q\n",
                    (true, false) => "h f Q\n",
                    _ => "S Q\n",
                };
                content.extend(path.bytes());
            }
            Item::Text(text) => content.extend(words(text, picture.height)),
        }
    }
    // A fixed order and no date: the same picture gives the same bytes.
    let states: Vec<String> = opacities.iter().enumerate().map(|(n, it)| format!("/G{n} << /ca {it} >>")).collect();
    let page = format!(
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {} {}] /Contents 5 0 R /Resources << /Font << /F 4 0 R >> \
         /ExtGState << {} >> >> >>",
        short(WIDTH),
        short(picture.height),
        states.join(" ")
    );
    let font = "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>";
    let mut stream = format!("<< /Length {} >>\nstream\n", content.len()).into_bytes();
    stream.extend(content);
    stream.extend(b"\nendstream");
    let mut about = b"<< /Producer (Anabranch) /Title ".to_vec();
    about.extend(literal(&picture.title));
    about.extend(b" >>");
    let pages = "<< /Type /Pages /Kids [3 0 R] /Count 1 >>";
    let objects = ["<< /Type /Catalog /Pages 2 0 R >>", pages, &page, font].map(|object| object.as_bytes().to_vec());
    joined(&[&objects[..], &[stream, about]].concat())
}

/// Returns the number of an opacity in the list, where it is put if it is new: operators name it, not its value.
fn number_of(opacity: String, opacities: &mut Vec<String>) -> usize {
    let known = opacities.iter().position(|it| *it == opacity);
    known.unwrap_or_else(|| {
        opacities.push(opacity);
        opacities.len() - 1
    })
}

/// Joins objects, the first of which is the catalogue and the last the information, to a file.
fn joined(objects: &[Vec<u8>]) -> Vec<u8> {
    // Bytes above 127 tell programs that the file is not text.
    let mut file = b"%PDF-1.4\n%\xb5\xb5\xb5\xb5\n".to_vec();
    let mut table = format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1);
    for (n, object) in objects.iter().enumerate() {
        table += &format!("{:010} 00000 n \n", file.len());
        file.extend(format!("{} 0 obj\n", n + 1).bytes());
        file.extend(object);
        file.extend(b"\nendobj\n");
    }
    let (start, size, info) = (file.len(), objects.len() + 1, objects.len());
    table += &format!("trailer\n<< /Size {size} /Root 1 0 R /Info {info} 0 R >>\nstartxref\n{start}\n%%EOF\n");
    file.extend(table.bytes());
    file
}

fn parts(colour: [u8; 3]) -> String {
    colour.map(|part| short(f64::from(part) / 255.0)).join(" ")
}

fn words(text: &Text, height: f64) -> Vec<u8> {
    let words = encoded(&text.words);
    let long = width(&text.words, text.size);
    let back = match text.anchor {
        Anchor::Start => 0.0,
        Anchor::Middle => long / 2.0,
        Anchor::End => long,
    };
    let [x, y] = [text.at[0], height - text.at[1]];
    let place = match text.up {
        true => format!("0 1 -1 0 {} {}", short(x), short(y - back)),
        false => format!("1 0 0 1 {} {}", short(x - back), short(y)),
    };
    let mut operators = format!("BT /F {} Tf {place} Tm ", short(text.size)).into_bytes();
    operators.extend(in_brackets(&words));
    operators.extend(b" Tj ET\n");
    operators
}

fn literal(text: &str) -> Vec<u8> {
    in_brackets(&encoded(text))
}

fn in_brackets(bytes: &[u8]) -> Vec<u8> {
    let mut literal = vec![b'('];
    for byte in bytes {
        if b"()\\".contains(byte) {
            literal.push(b'\\');
        }
        literal.push(*byte);
    }
    literal.push(b')');
    literal
}

/// Returns a text in WinAnsiEncoding; letters that it lacks become question marks.
fn encoded(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for c in text.chars() {
        match c {
            '≤' => bytes.extend(b"<="),
            '≥' => bytes.extend(b">="),
            '…' => bytes.push(0x85),
            '–' => bytes.push(0x96),
            '—' => bytes.push(0x97),
            '‘' => bytes.push(0x91),
            '’' => bytes.push(0x92),
            '“' => bytes.push(0x93),
            '”' => bytes.push(0x94),
            'μ' => bytes.push(0xb5),
            ' '..='~' | '\u{a0}'..='\u{ff}' => bytes.push(c as u8),
            _ => bytes.push(b'?'),
        }
    }
    bytes
}
