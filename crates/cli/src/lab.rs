//! `anabranch lab`: serves the laboratory on loopback and opens it.
//!
//! ```text
//! a page from disk   brings its own simulator: that of a package, or of web/build
//! the page inside    asks this program: POST /ask ─▶ answerer ─▶ a process for each answer (answer)
//! ```

mod answer;
mod answerer;

use crate::failure::Failure;
use crate::output;
use anabranch_policy::Catalogue;
use anabranch_service::{LocalSite, Resource};
use anabranch_units::input;
use clap::Args as ClapArgs;
use std::borrow::Cow;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

/// Arguments of `lab`.
#[derive(ClapArgs, Debug)]
#[command(after_help = "Examples:
  anabranch lab                                       lessons, laboratory and judge of captures in the browser
  anabranch lab --no-open --port 8000                 on a machine of its own, behind `ssh -L 8000:127.0.0.1:8000`

The page asks this program. The page of packages, which web/build makes from the sources, brings a simulator of its own:
it also opens from disk or from any static host, and runs schedulers that are written in it. Ctrl-C ends the command.")]
pub struct LabArgs {
    /// Port on 127.0.0.1; 0 takes a free one.
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub port: u16,
    /// Print the address and open no browser.
    #[arg(long)]
    pub no_open: bool,
    /// Page to serve; unless given, that of the package or of web/build, or the one inside the program.
    #[arg(long, value_name = "FILE")]
    pub page: Option<PathBuf>,
    /// Answers the request on standard input, for the page inside.
    #[arg(long, hide = true)]
    pub answer: bool,
}

/// Serves the page until the process is ended.
pub fn lab(catalogue: &Arc<Catalogue>, args: &LabArgs) -> Result<(), Failure> {
    if args.answer {
        return answer::answer(catalogue);
    }
    let site = match read(args.page.as_deref())? {
        Some(page) => of_disk(page),
        None => inside(),
    };
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, args.port));
    let listener = listener.map_err(|error| {
        let help = "accepted: a free port above 1023, or none for any";
        Failure::Refused(miette::miette!(help = help, "cannot listen on 127.0.0.1:{}: {error}", args.port))
    })?;
    let address = listener.local_addr().map_err(|error| Failure::Failed(miette::miette!("no address: {error}")))?;
    let address = format!("http://{address}/");
    output::print(&format!("{address}\n"))?;
    if !args.no_open {
        open(&address);
    }
    site.serve(&listener);
    Ok(())
}

/// The page with its own simulator, which needs nothing more and names its policy itself.
fn of_disk(page: Vec<u8>) -> LocalSite {
    let page = Resource { path: "/index.html", kind: "text/html; charset=utf-8", body: page.into() };
    LocalSite { resources: vec![page], policy: None, answerer: None }
}

/// The page inside the program.
fn inside() -> LocalSite {
    let parts = anabranch_web::parts().into_iter().map(|part| {
        let body = match part.text {
            Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
            Cow::Owned(text) => Cow::Owned(text.into_bytes()),
        };
        Resource { path: part.path, kind: part.kind, body }
    });
    let (policy, answerer) = (Some(anabranch_web::POLICY), Some(answerer::answerer()));
    LocalSite { resources: parts.collect(), policy, answerer }
}

/// Reads the page that is named, or one of those that may be there; `None` if none of these is.
fn read(named: Option<&Path>) -> Result<Option<Vec<u8>>, Failure> {
    let places = named.map_or_else(places, |named| vec![named.to_owned()]);
    for place in &places {
        match page(place) {
            Ok(page) => return Ok(Some(page)),
            Err(error) if error.kind() == io::ErrorKind::NotFound && named.is_none() => {}
            Err(error) => {
                let help = "leave --page out: the program has a page inside";
                let place = place.display();
                return Err(Failure::Refused(miette::miette!(help = help, "cannot read the page {place}: {error}")));
            }
        }
    }
    Ok(None)
}

/// Reads a page: a file of HTML, of a bounded size.
fn page(place: &Path) -> io::Result<Vec<u8>> {
    let page = input::bytes(place, input::RECORDED)?;
    match page.trim_ascii_start().first() {
        Some(b'<') => Ok(page),
        _ => Err(io::Error::new(io::ErrorKind::InvalidData, "it is no page of HTML")),
    }
}

/// Places of the page: of a package, and of the sources that this program was built from.
fn places() -> Vec<PathBuf> {
    let program = std::env::current_exe().unwrap_or_default();
    let folder = program.parent().unwrap_or(Path::new("."));
    ["../share/anabranch/lab/index.html", "../../web/dist/index.html"].map(|place| folder.join(place)).into()
}

/// Opens the address in the reader's browser, or says what to do.
fn open(address: &str) {
    let mut opener = Command::new("xdg-open");
    opener.arg(address).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if opener.spawn().is_err() {
        output::remark("no browser could be opened (xdg-open is missing): open the address above");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_is_not_there_is_told_with_a_remedy() {
        let Err(Failure::Refused(report)) = read(Some(Path::new("no/such/page.html"))) else {
            panic!("it is not there")
        };
        assert!(report.to_string().starts_with("cannot read the page no/such/page.html: "), "{report}");
        assert!(report.help().is_some_and(|help| help.to_string().contains("--page")));
    }

    /// A device has no end, and a scenario is no page.
    #[test]
    fn what_is_no_page_is_not_served() {
        for (place, said) in [("/dev/zero", "it is a device"), ("Cargo.toml", "it is no page of HTML")] {
            let Err(Failure::Refused(report)) = read(Some(Path::new(place))) else { panic!("{place} is no page") };
            assert!(report.to_string().contains(said), "{report}");
        }
    }
}
