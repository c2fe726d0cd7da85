//! Manual pages, from the definition of the command line: one for the program and one for each command.

use crate::args::Args;
use crate::failure::Failure;
use crate::output;
use clap::{Args as ClapArgs, Command, CommandFactory};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};
use std::io;
use std::iter::once;
use std::path::PathBuf;

/// Arguments of `man`.
#[derive(ClapArgs, Debug)]
#[command(after_help = "Examples:
  anabranch man ~/.local/share/man/man1 && man anabranch-compare")]
pub struct ManArgs {
    /// Directory for the pages, made if it is not there.
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
}

/// Writes all pages.
pub fn man(args: &ManArgs) -> Result<(), Failure> {
    output::check_directory(&args.directory)?;
    let command = command();
    for command in with_commands(&command) {
        let text = page(command).map_err(|error| Failure::writing("a manual page", error))?;
        output::write(&args.directory.join(format!("{}.1", title(command))), &text)?;
    }
    Ok(())
}

fn command() -> Command {
    let mut command = Args::command().disable_help_subcommand(true);
    command.build();
    command
}

fn with_commands(command: &Command) -> impl Iterator<Item = &Command> {
    once(command).chain(command.get_subcommands())
}

/// Name of a command's page: `anabranch-run`.
fn title(command: &Command) -> &str {
    command.get_display_name().unwrap_or_else(|| command.get_name())
}

/// The page of a command, in roff.
fn page(command: &Command) -> io::Result<Vec<u8>> {
    let man = Man::new(command.clone()).source(concat!("anabranch ", env!("CARGO_PKG_VERSION"))).manual("Anabranch");
    let mut text = Vec::new();
    man.render_title(&mut text)?;
    man.render_name_section(&mut text)?;
    man.render_synopsis_section(&mut text)?;
    man.render_description_section(&mut text)?;
    man.render_options_section(&mut text)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut text)?;
    }
    let remarks = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let mut rest = Roff::new();
    remarks_in_sections(&mut rest, &remarks);
    see_also(&mut rest, command);
    rest.to_writer(&mut text)?;
    Ok(text)
}

/// Adds the text behind the options as sections: examples line by line, exit statuses, and what else there is.
fn remarks_in_sections(roff: &mut Roff, remarks: &str) {
    let (examples, rest) = match remarks.strip_prefix("Examples:\n") {
        Some(text) => text.split_once("\n\n").unwrap_or((text, "")),
        None => ("", remarks),
    };
    if !examples.is_empty() {
        roff.control("SH", ["EXAMPLES"]).control("nf", []);
        for line in examples.lines() {
            roff.text([roman(line.strip_prefix("  ").unwrap_or(line))]);
        }
        roff.control("fi", []);
    }
    const STATUS: &str = "Exit status";
    let (notes, status) = rest.split_at(rest.find(STATUS).unwrap_or(rest.len()));
    for (heading, text) in [("NOTES", notes), ("EXIT STATUS", status)] {
        let paragraphs = text.split("\n\n").map(str::trim).filter(|paragraph| !paragraph.is_empty());
        for (n, paragraph) in paragraphs.enumerate() {
            match n {
                0 => roff.control("SH", [heading]),
                _ => roff.control("PP", []),
            };
            for line in paragraph.lines() {
                roff.text([roman(line)]);
            }
        }
    }
}

/// Refers a command to the program, and the program to its commands.
fn see_also(roff: &mut Roff, command: &Command) {
    let others: Vec<&str> = match command.has_subcommands() {
        true => command.get_subcommands().map(title).collect(),
        false => vec!["anabranch"],
    };
    roff.control("SH", ["SEE ALSO"]);
    for (n, other) in others.iter().enumerate() {
        roff.text([bold(*other), roman(if n + 1 < others.len() { "(1)," } else { "(1)" })]);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Sections of a page: heading and text.
    fn sections(page: &str) -> Vec<(&str, &str)> {
        let sections = page.split(".SH ").skip(1).map(|section| section.split_once('\n').unwrap_or((section, "")));
        sections.map(|(heading, text)| (heading.trim_matches('"'), text.trim_end())).collect()
    }

    #[test]
    fn every_command_has_a_page_without_an_empty_section() {
        let command = command();
        assert!(command.get_subcommands().count() >= 16);
        for command in with_commands(&command) {
            let name = title(command);
            let page = String::from_utf8(page(command).unwrap()).unwrap();
            let sections = sections(&page);
            let text = |heading: &str| sections.iter().find(|(found, _)| *found == heading);
            for heading in ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXAMPLES", "SEE ALSO"] {
                assert!(text(heading).is_some(), "{name} has no section {heading}:\n{page}");
            }
            for (heading, text) in &sections {
                let words = text.lines().filter(|line| !line.starts_with('.') && !line.trim().is_empty());
                assert!(words.count() > 0, "{name}: section {heading} is empty");
            }
            assert!(text("NAME").unwrap().1.contains(&format!("{} \\- ", name.replace('-', "\\-"))), "{page}");
            let shown = command.get_arguments().filter(|arg| !arg.is_hide_set());
            for long in shown.filter_map(|arg| arg.get_long()) {
                let option = format!("\\-\\-{}", long.replace('-', "\\-"));
                assert!(page.contains(&option), "{name}: --{long} is missing");
            }
        }
    }

    #[test]
    fn remarks_become_sections() {
        let mut roff = Roff::new();
        remarks_in_sections(&mut roff, "Examples:\n  one\n  two\n\nA note.\n\nMore. Exit status 0: done.");
        let text = roff.to_roff();
        assert_eq!(
            sections(&text),
            [
                ("EXAMPLES", ".nf\none\ntwo\n.fi"),
                ("NOTES", "A note.\n.PP\nMore."),
                ("EXIT STATUS", "Exit status 0: done.")
            ]
        );
    }
}
