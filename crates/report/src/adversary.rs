//! Results of the adversary on the terminal.

use crate::leaderboard::ratio;
use crate::table::{Align, Table};
use crate::wrap::wrap;
use anabranch_study::rank::{Find, Hunt};

/// Results of the adversary's search, each with its scenario unless that has been written to a file.
pub fn hunt(hunt: &Hunt, finds: &[Find], made: &str, written: Option<&str>, width: usize) -> String {
    let mut text = format!("{made}\n\n");
    let right = |name| (name, Align::Right);
    let columns = [
        right("#"),
        right("times the best"),
        right("as searched"),
        right("as drawn"),
        ("the best", Align::Left),
        ("condition", Align::Left),
    ];
    let mut table = Table::new(columns);
    for (n, it) in finds.iter().enumerate() {
        let number = (n + 1).to_string();
        let [verified, seen, drawn] = [it.verified.ratio, it.seen, it.drawn].map(ratio);
        table.row([number, verified, seen, drawn, it.verified.best.clone(), it.condition.about()]);
    }
    text += &format!("{table}\n");
    let (seeds, first) = (hunt.repeat, hunt.repeat + 1);
    let note = format!(
        "Times the best: the time of {} over that of the best of {}, on seeds from {first} on, which the search has \
         not seen; as searched: on seeds 1 to {seeds}; as drawn: the same where the search began.",
        hunt.target,
        if hunt.is_against_tcp() { "plain TCP, path by path".to_owned() } else { hunt.others.join(", ") }
    );
    text += &(wrap(&note, width).join("\n") + "\n");
    for it in finds {
        let file = it.condition.file();
        match written {
            Some(directory) => text += &format!("\n{}\n", it.command(hunt, directory)),
            None => {
                text += &format!("\n# {file}\n{}", it.condition.toml());
                if !it.condition.traces().is_empty() {
                    text += "# Its traces are files beside it: --write DIR\n";
                }
            }
        }
    }
    text
}
