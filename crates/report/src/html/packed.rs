//! Scripts and licences of a page, compressed: a third of their size, base64 included. `assets/unpack.js` unpacks them.
//!
//! A page runs only scripts whose hashes its Content-Security-Policy names: those of the unpacked ones.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use sha2::{Digest, Sha256};
use std::io::Write;
use std::sync::LazyLock;

/// Scripts that run one after the other.
pub(super) struct Pack {
    /// JSON array of the scripts, compressed (RFC 1950) and in base64.
    pub block: String,
    /// Sources of a Content-Security-Policy that admit them.
    pub hashes: Vec<String>,
}

impl Pack {
    fn new(scripts: &[&str]) -> Pack {
        Pack { block: packed(scripts), hashes: scripts.iter().map(|script| hash(script)).collect() }
    }
}

/// Scripts that stand in the page as they are.
pub(super) struct Plain {
    pub scripts: Vec<String>,
    pub hashes: Vec<String>,
}

fn hash(script: &str) -> String {
    format!("'sha256-{}'", STANDARD.encode(Sha256::digest(script)))
}

fn packed(texts: &[&str]) -> String {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    serde_json::to_writer(&mut encoder, texts).expect("texts become JSON, and memory takes it");
    encoder.flush().expect("memory takes what is written");
    STANDARD.encode(encoder.finish().expect("memory takes what is written"))
}

/// The script that makes a Vega-Lite specification of a figure: it defines `anabranchChart`, and wants Vega for words.
pub const CHART_SCRIPT: &str = include_str!("../../assets/chart.js");

/// Scripts that draw figures and sort tables in a page that loads them from these paths, in this order.
pub static DRAWING_SCRIPTS: [(&str, &str); 4] =
    [("/vega.min.js", VEGA), ("/chart.js", CHART_SCRIPT), ("/drawing.js", DRAWING), ("/tables.js", TABLES)];
/// Licences of the parts that others wrote, as a text.
pub static LICENCES: &str = include_str!("../../assets/vendor/LICENSES");

const VEGA: &str = include_str!("../../assets/vendor/vega.min.js");
const DRAWING: &str = include_str!("../../assets/drawing.js");
const TABLES: &str = include_str!("../../assets/tables.js");

/// Those of figures.
pub(super) static FIGURES: LazyLock<Pack> = LazyLock::new(|| Pack::new(&[VEGA, CHART_SCRIPT, DRAWING]));
/// Those of transfers packet by packet.
pub(super) static TRACES: LazyLock<Pack> = LazyLock::new(|| {
    Pack::new(&[include_str!("../../assets/vendor/uPlot.iife.min.js"), include_str!("../../assets/trace.js")])
});
/// Those of all pages.
pub(super) static PAGE: LazyLock<Pack> = LazyLock::new(|| Pack::new(&[TABLES, include_str!("../../assets/page.js")]));
/// The licences.
pub(super) static LICENCES_PACK: LazyLock<Pack> = LazyLock::new(|| Pack::new(&[LICENCES]));
/// Unpacks the others.
pub(super) static UNPACKER: LazyLock<Plain> = LazyLock::new(|| {
    let scripts = [include_str!("../../assets/vendor/fflate.min.js"), include_str!("../../assets/unpack.js")];
    let scripts = scripts.map(|script| format!("\n{script}\n"));
    Plain { hashes: scripts.iter().map(|script| hash(script)).collect(), scripts: scripts.into() }
});
