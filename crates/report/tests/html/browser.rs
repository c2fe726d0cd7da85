//! Pages in a real browser: Chromium without a window, led by playwright-core.
//!
//! Without Chromium, node or npm the test says on standard error that it was skipped; with `ANABRANCH_REQUIRE_BROWSER`
//! set, as in CI, it fails. `playwright-core` comes from npm after `browser/package-lock.json` and stays under
//! `target/`.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns the folder of pages, exports and screenshots, or `None` if there is no browser.
pub fn look(pages: &[(&str, String)]) -> Option<PathBuf> {
    let chromium = chromium()?;
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("browser");
    fs::create_dir_all(&folder).unwrap();
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/html/browser");
    for file in ["package.json", "package-lock.json", "check.mjs"] {
        fs::copy(sources.join(file), folder.join(file)).unwrap();
    }
    if let Err(problem) = install(&folder) {
        skip(&format!("npm cannot install playwright-core: {problem}"));
        return None;
    }
    for (name, text) in pages {
        fs::write(folder.join(name), text).unwrap();
    }
    let output = Command::new("node").current_dir(&folder).args(["check.mjs", &chromium, "."]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.ends_with("all checks hold\n"), "{said}");
    Some(folder)
}

/// Returns the path of Chromium, if node and npm are there, too.
pub fn chromium() -> Option<String> {
    let chromium = ["chromium", "chromium-browser", "google-chrome"].into_iter().find(|name| runs(name));
    let (Some(chromium), true, true) = (chromium, runs("node"), runs("npm")) else {
        skip("Chromium, node or npm is not installed");
        return None;
    };
    let path = String::from_utf8(Command::new("which").arg(chromium).output().unwrap().stdout).unwrap();
    Some(path.trim().to_owned())
}

/// Installs what `package-lock.json` in the folder names: once; again only if another version is asked for.
pub fn install(folder: &Path) -> Result<(), String> {
    let (lock, done) = (folder.join("package-lock.json"), folder.join("node_modules/.installed"));
    let wanted = fs::read(&lock).unwrap();
    if fs::read(&done).is_ok_and(|have| have == wanted) {
        return Ok(());
    }
    let output = Command::new("npm").current_dir(folder).args(["ci", "--no-audit", "--no-fund"]).output();
    let output = output.map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    fs::write(done, wanted).map_err(|error| error.to_string())
}

fn runs(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
}

pub fn skip(why: &str) {
    assert!(std::env::var_os("ANABRANCH_REQUIRE_BROWSER").is_none(), "a browser is required: {why}");
    // Past the test harness, which would swallow it.
    let _ = writeln!(std::io::stderr(), "SKIPPED: {why}, so nobody looks at the pages");
}
