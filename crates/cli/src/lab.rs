//! `anabranch lab`: serves the laboratory, a page with the simulator in it, on loopback and opens it.

use crate::failure::Failure;
use crate::output;
use anabranch_service::Page;
use clap::Args as ClapArgs;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Arguments of `lab`.
#[derive(ClapArgs, Debug)]
#[command(after_help = "Examples:
  anabranch lab                                       lessons, laboratory and judge of captures in the browser
  anabranch lab --no-open --port 8000                 on a machine of its own, behind `ssh -L 8000:127.0.0.1:8000`

The page is one file that also opens from disk or from any static host. Packages have it; from the sources, web/build
makes it. Ctrl-C ends the command.")]
pub struct LabArgs {
    /// Port on 127.0.0.1; 0 takes a free one.
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub port: u16,
    /// Print the address and open no browser.
    #[arg(long)]
    pub no_open: bool,
    /// Page to serve; unless given, that of the package or of web/build.
    #[arg(long, value_name = "FILE")]
    pub page: Option<PathBuf>,
}

/// Serves the page until the process is ended.
pub fn lab(args: &LabArgs) -> Result<(), Failure> {
    let page = Page { kind: "text/html; charset=utf-8", body: read(args.page.as_deref())? };
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
    page.serve(&listener);
    Ok(())
}

/// Reads the page.
fn read(named: Option<&Path>) -> Result<Vec<u8>, Failure> {
    let places = named.map_or_else(places, |named| vec![named.to_owned()]);
    for place in &places {
        match std::fs::read(place) {
            Ok(page) => return Ok(page),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(Failure::Refused(miette::miette!("cannot read {}: {error}", place.display()))),
        }
    }
    let looked: Vec<String> = places.iter().map(|place| place.display().to_string()).collect();
    let help = "build it from the sources with `web/build` (needs node and npm), or name one with --page";
    Err(Failure::Refused(miette::miette!(help = help, "the laboratory's page is not at {}", looked.join(", "))))
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
        assert_eq!(report.to_string(), "the laboratory's page is not at no/such/page.html");
        assert!(report.help().is_some_and(|help| help.to_string().contains("web/build")));
    }
}
