//! The page as the command serves it: without a simulator of its own, since the program that serves it has one.
//!
//! `web/build --parts crates/web/page` makes the script and the styles from `web/src`; a test compares them.

use anabranch_report::html::{DRAWING_SCRIPTS, LICENCES};
use std::borrow::Cow;

/// A file of the page.
#[derive(Clone, Debug)]
pub struct Part {
    /// Path, with its slash.
    pub path: &'static str,
    /// Media type.
    pub kind: &'static str,
    /// Contents.
    pub text: Cow<'static, str>,
}

/// Content-Security-Policy of the page: its own files, and requests to the program that serves it.
pub const POLICY: &str = "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'self' 'unsafe-inline'; \
                          img-src data: blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const HTML: &str = include_str!("../../../web/index.html");
const SCRIPT: &str = include_str!("../page/main.js");
const STYLES: &str = include_str!("../page/main.css");
/// Script tag of the sources, in whose place the built ones come.
const SOURCES: &str = "<script type=\"module\" src=\"/src/main.ts\"></script>\n";
/// Place of the licences.
const PLACE: &str = "</pre></details>\n</footer>";

/// Returns the files, the page first.
pub fn parts() -> Vec<Part> {
    let script = |path, text| Part { path, kind: "text/javascript; charset=utf-8", text: Cow::Borrowed(text) };
    let drawing = DRAWING_SCRIPTS.iter().map(|(path, text)| script(path, text));
    let styles = Part { path: "/main.css", kind: "text/css; charset=utf-8", text: Cow::Borrowed(STYLES) };
    let html = Part { path: "/index.html", kind: "text/html; charset=utf-8", text: Cow::Owned(html()) };
    [html, styles, script("/main.js", SCRIPT)].into_iter().chain(drawing).collect()
}

fn html() -> String {
    let tags: String = DRAWING_SCRIPTS.iter().map(|(path, _)| format!("<script src=\"{path}\"></script>\n")).collect();
    let tags = format!("{tags}<script type=\"module\" src=\"/main.js\"></script>\n");
    let licences = LICENCES.replace('&', "&amp;").replace('<', "&lt;");
    HTML.replace("</head>", "<link rel=\"stylesheet\" href=\"/main.css\">\n</head>")
        .replace(PLACE, &format!("{licences}{PLACE}"))
        .replace(SOURCES, &tags)
        .replace("Unpacking the simulator …", "Asking for the simulator …")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_asks_for_its_parts_and_nothing_else() {
        let parts = parts();
        let html = &parts[0].text;
        let named: Vec<&str> = html.split("=\"/").skip(1).filter_map(|rest| rest.split('"').next()).collect();
        let others: Vec<&str> = parts[1..].iter().map(|part| &part.path[1..]).collect();
        let mut sorted = [named, others];
        sorted.iter_mut().for_each(|names| names.sort_unstable());
        assert_eq!(sorted[0], sorted[1]);
        assert!(
            !html.contains("/src/") && html.contains("Redistribution") && html.contains("Asking for the simulator")
        );
    }
}
