//! Transfers as files for xplot, in the commands and colours of tcptrace: a time-sequence graph for each subflow and
//! direction, and one of the data by path.
//!
//! Of a subflow: white data from first to last byte between arrows, a diamond at the end of a push; red with `R` what
//! was sent again; orange SYN and FIN; a green line for what is acknowledged with a tick for each acknowledgment that
//! repeats it; a yellow line for the end of the receiver's window; purple blocks of SACK with `S`. Sequence numbers
//! count from the SYN. Data at the data level has the colour of its path, `R` where it was sent again on its subflow
//! and `I` on another.

use anabranch_lab::timeline::Copied;
use anabranch_why::{Flags, Heard, Sent, Trace};
use std::fmt::Write;

/// File for xplot.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct XplotFile {
    /// Name, with its extension.
    pub name: String,
    /// Content.
    pub text: String,
}

/// Colours of tcptrace.
const DATA: &str = "white";
const AGAIN: &str = "red";
const ENDS: &str = "orange";
const ACK: &str = "green";
const WINDOW: &str = "yellow";
const SACK: &str = "purple";
/// Colours of paths at the data level: those of xplot that have no meaning yet.
const PATHS: [&str; 4] = ["white", "blue", "magenta", "pink"];

/// Returns the files of these traces of one connection, which are its directions. `sides` are the names of both sides.
pub fn xplot(traces: &[Trace], sides: &[String; 2]) -> Vec<XplotFile> {
    let mut files = Vec::new();
    for trace in traces {
        let way = format!("{}-to-{}", plain(&sides[trace.from]), plain(&sides[1 - trace.from]));
        files.push(XplotFile { name: format!("{way}-data.xpl"), text: data(trace, sides) });
        for subflow in 0..trace.subflows.len() {
            let name = format!("{way}-subflow-{}-tsg.xpl", subflow + 1);
            files.extend(of_subflow(trace, subflow).map(|text| XplotFile { name, text }));
        }
    }
    files
}

/// Lower-case letters and digits of a name.
fn plain(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase()
}

/// A graph in the making.
struct Graph {
    text: String,
    colour: &'static str,
}

impl Graph {
    fn new(title: &str, y: &str) -> Self {
        // A line more would be a command, and names of paths are those of a capture.
        let title = title.replace(char::is_control, "?");
        let text = format!("timeval unsigned\ntitle\n{title}\nxlabel\ntime\nylabel\n{y}\n");
        Graph { text, colour: "" }
    }

    fn colour(&mut self, colour: &'static str) {
        if self.colour != colour {
            writeln!(self.text, "{colour}").expect("writing to a String cannot fail");
            self.colour = colour;
        }
    }

    fn point(&mut self, command: &str, at: u64, y: u64) {
        writeln!(self.text, "{command} {} {y}", time(at)).expect("writing to a String cannot fail");
    }

    /// A letter above a point.
    fn letter(&mut self, at: u64, y: u64, letter: &str) {
        self.point("atext", at, y);
        writeln!(self.text, "{letter}").expect("writing to a String cannot fail");
    }

    fn line(&mut self, from: (u64, u64), to: (u64, u64)) {
        let (begin, end) = (time(from.0), time(to.0));
        writeln!(self.text, "line {begin} {} {end} {}", from.1, to.1).expect("writing to a String cannot fail");
    }

    /// Data from its first byte to its last: a line between two arrows.
    fn segment(&mut self, at: u64, from: u64, to: u64, pushes: bool) {
        self.point("darrow", at, from);
        self.point(if pushes { "diamond" } else { "uarrow" }, at, to);
        self.line((at, from), (at, to));
    }

    fn finish(mut self) -> String {
        self.text += "go\n";
        self.text
    }
}

/// Seconds since 1970 with six digits, as `timeval unsigned` has it.
fn time(nanos: u64) -> String {
    format!("{}.{:06}", nanos / 1_000_000_000, nanos / 1000 % 1_000_000)
}

/// A line of steps.
#[derive(Default)]
struct Steps {
    last: Option<(u64, u64)>,
}

impl Steps {
    /// The line goes on to `y`. Returns false if it stays where it is.
    fn to(&mut self, graph: &mut Graph, at: u64, y: u64) -> bool {
        let before = self.last.replace((at, y));
        let Some(last) = before else { return true };
        graph.line(last, (at, last.1));
        if last.1 != y {
            graph.line((at, last.1), (at, y));
        }
        last.1 != y
    }
}

/// Packets and acknowledgments in the order of time.
enum Step<'a> {
    Sent(&'a Sent),
    Heard(&'a Heard),
}

fn in_order<'a>(sent: impl Iterator<Item = &'a Sent>, heard: impl Iterator<Item = &'a Heard>) -> Vec<Step<'a>> {
    let mut all: Vec<(u64, Step<'_>)> = sent.map(|it| (it.at, Step::Sent(it))).collect();
    all.extend(heard.map(|it| (it.at, Step::Heard(it))));
    all.sort_by_key(|(at, _)| *at);
    all.into_iter().map(|(_, step)| step).collect()
}

/// The time-sequence graph of a subflow; `None` if it carries nothing in this direction.
fn of_subflow(trace: &Trace, subflow: usize) -> Option<String> {
    let sent = || trace.sent.iter().filter(|it| it.subflow == subflow);
    sent().any(|it| it.length > 0).then_some(())?;
    let [from, to] = &trace.subflows[subflow].ends;
    let mut graph = Graph::new(&format!("{from}_==>_{to} (time sequence graph)"), "sequence number");
    let (mut acked, mut window) = (Steps::default(), Steps::default());
    for step in in_order(sent(), trace.heard.iter().filter(|it| it.subflow == subflow)) {
        match step {
            Step::Sent(it) => draw_sent(&mut graph, it),
            Step::Heard(it) => {
                graph.colour(ACK);
                let stays = !acked.to(&mut graph, it.at, it.ack);
                if stays {
                    graph.point("dtick", it.at, it.ack);
                }
                if let Some(size) = it.window {
                    graph.colour(WINDOW);
                    if !window.to(&mut graph, it.at, it.ack + size) {
                        graph.point("utick", it.at, it.ack + size);
                    }
                    if size == 0 {
                        graph.letter(it.at, it.ack, "Z");
                    }
                }
                if let Some((first, end)) = it.sack {
                    graph.colour(SACK);
                    graph.line((it.at, first), (it.at, end));
                    graph.letter(it.at, end, "S");
                }
            }
        }
    }
    Some(graph.finish())
}

/// A packet on its subflow.
fn draw_sent(graph: &mut Graph, it: &Sent) {
    let end = it.seq + it.length;
    let ends = |graph: &mut Graph, mark: &str, word: &str, at: u64| {
        graph.colour(ENDS);
        graph.point(mark, it.at, at);
        graph.letter(it.at, at + 1, word);
        graph.point("uarrow", it.at, at + 1);
        graph.line((it.at, at), (it.at, at + 1));
    };
    if it.flags.has(Flags::SYN) {
        ends(graph, "diamond", "SYN", it.seq);
    }
    if it.length > 0 {
        let again = it.copy == Copied::Retransmitted;
        graph.colour(if again { AGAIN } else { DATA });
        graph.segment(it.at, it.seq, end, it.flags.has(Flags::PSH));
        if again {
            graph.letter(it.at, end, "R");
        }
    }
    if it.flags.has(Flags::FIN) {
        ends(graph, "box", "FIN", end);
    }
    if it.flags.has(Flags::RST) {
        graph.colour(ENDS);
        graph.letter(it.at, end, "RST");
    }
}

/// The graph of the data by path.
fn data(trace: &Trace, sides: &[String; 2]) -> String {
    let [from, to] = [&sides[trace.from], &sides[1 - trace.from]];
    let named = trace.paths.iter().enumerate();
    let key: Vec<String> = named.map(|(path, name)| format!("{name} {}", PATHS[path % PATHS.len()])).collect();
    let title = format!("{from}_==>_{to} (data sequence graph: {})", key.join(", "));
    let mut graph = Graph::new(&title, "data sequence number");
    let (mut acked, mut window) = (Steps::default(), Steps::default());
    let mut highest = 0;
    let told = trace.heard.iter().filter(|it| it.data_ack.is_some());
    for step in in_order(trace.sent.iter().filter(|it| it.from.is_some()), told) {
        match step {
            Step::Sent(it) => {
                let begin = it.from.unwrap_or(0);
                let path = trace.subflows.get(it.subflow).map_or(0, |it| it.path);
                graph.colour(PATHS[path % PATHS.len()]);
                graph.segment(it.at, begin, begin + it.length, false);
                let letter = match it.copy {
                    Copied::New => continue,
                    Copied::Retransmitted => "R",
                    Copied::Reinjected => "I",
                };
                graph.colour(AGAIN);
                graph.letter(it.at, begin + it.length, letter);
            }
            Step::Heard(it) => {
                // One that another path overtook says nothing new.
                let Some(ack) = it.data_ack.filter(|ack| *ack >= highest) else { continue };
                highest = ack;
                graph.colour(ACK);
                acked.to(&mut graph, it.at, ack);
                if let Some(size) = it.window {
                    graph.colour(WINDOW);
                    window.to(&mut graph, it.at, ack + size);
                }
            }
        }
    }
    graph.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_why::TracedFlow;

    fn sent(micros: u64, subflow: usize, seq: u64, length: u64, from: Option<u64>, flags: u8) -> Sent {
        Sent {
            at: 7_000_000_000 + micros * 1000,
            arrived: None,
            lost: false,
            subflow,
            seq,
            length,
            from,
            copy: Copied::New,
            flags: Flags(flags),
            numbers: [0; 2],
        }
    }

    fn heard(micros: u64, subflow: usize, ack: u64, window: u64, data_ack: Option<u64>) -> Heard {
        let window = Some(window).filter(|_| ack > 1);
        Heard { at: 7_000_000_000 + micros * 1000, subflow, ack, window, sack: None, data_ack }
    }

    /// Two packets of 100 bytes on the first subflow, of which the second is pushed, lost and repeated there; then the
    /// first 100 bytes once more on the second.
    fn trace() -> Trace {
        let flow = |path: usize, n: u8| TracedFlow {
            path,
            ends: [format!("10.1.0.{n}:80"), format!("10.0.0.{n}:5000")],
            files: [None; 2],
        };
        let mut trace = Trace {
            from: 1,
            paths: vec!["wlan".to_owned(), "lte".to_owned()],
            subflows: vec![flow(0, 1), flow(1, 2)],
            sent: vec![
                sent(0, 0, 0, 0, None, 0x12),
                sent(10, 0, 1, 100, Some(0), 0x10),
                sent(20, 0, 101, 100, Some(100), 0x18),
                sent(50, 0, 101, 100, Some(100), 0x10),
                sent(60, 1, 1, 100, Some(0), 0x10),
                sent(70, 0, 201, 0, None, 0x11),
            ],
            heard: vec![
                heard(5, 0, 1, 0, None),
                heard(30, 0, 101, 1000, Some(100)),
                heard(40, 0, 101, 1000, Some(100)),
                heard(80, 0, 201, 0, Some(200)),
            ],
            ..Trace::default()
        };
        trace.sent[3].copy = Copied::Retransmitted;
        trace.sent[4].copy = Copied::Reinjected;
        trace.heard[2].sack = Some((201, 301));
        trace
    }

    /// By hand from the rules at the head, line by line.
    #[test]
    fn worked_example() {
        let sides = ["client".to_owned(), "server".to_owned()];
        let files = xplot(&[trace()], &sides);
        let names: Vec<&str> = files.iter().map(|file| file.name.as_str()).collect();
        let way = "server-to-client";
        let expected = ["data.xpl", "subflow-1-tsg.xpl", "subflow-2-tsg.xpl"].map(|name| format!("{way}-{name}"));
        assert_eq!(names, expected);
        let first = "timeval unsigned\ntitle\n10.1.0.1:80_==>_10.0.0.1:5000 (time sequence graph)\n\
                     xlabel\ntime\nylabel\nsequence number\n\
                     orange\ndiamond 7.000000 0\natext 7.000000 1\nSYN\nuarrow 7.000000 1\nline 7.000000 0 7.000000 1\n\
                     green\n\
                     white\ndarrow 7.000010 1\nuarrow 7.000010 101\nline 7.000010 1 7.000010 101\n\
                     darrow 7.000020 101\ndiamond 7.000020 201\nline 7.000020 101 7.000020 201\n\
                     green\nline 7.000005 1 7.000030 1\nline 7.000030 1 7.000030 101\n\
                     yellow\n\
                     green\nline 7.000030 101 7.000040 101\ndtick 7.000040 101\n\
                     yellow\nline 7.000030 1101 7.000040 1101\nutick 7.000040 1101\n\
                     purple\nline 7.000040 201 7.000040 301\natext 7.000040 301\nS\n\
                     red\ndarrow 7.000050 101\nuarrow 7.000050 201\nline 7.000050 101 7.000050 201\n\
                     atext 7.000050 201\nR\n\
                     orange\nbox 7.000070 201\natext 7.000070 202\nFIN\nuarrow 7.000070 202\n\
                     line 7.000070 201 7.000070 202\n\
                     green\nline 7.000040 101 7.000080 101\nline 7.000080 101 7.000080 201\n\
                     yellow\nline 7.000040 1101 7.000080 1101\nline 7.000080 1101 7.000080 201\natext 7.000080 201\nZ\n\
                     go\n";
        assert_eq!(files[1].text, first);
        let data = "timeval unsigned\ntitle\nserver_==>_client (data sequence graph: wlan white, lte blue)\n\
                    xlabel\ntime\nylabel\ndata sequence number\n\
                    white\ndarrow 7.000010 0\nuarrow 7.000010 100\nline 7.000010 0 7.000010 100\n\
                    darrow 7.000020 100\nuarrow 7.000020 200\nline 7.000020 100 7.000020 200\n\
                    green\nyellow\n\
                    green\nline 7.000030 100 7.000040 100\nyellow\nline 7.000030 1100 7.000040 1100\n\
                    white\ndarrow 7.000050 100\nuarrow 7.000050 200\nline 7.000050 100 7.000050 200\n\
                    red\natext 7.000050 200\nR\n\
                    blue\ndarrow 7.000060 0\nuarrow 7.000060 100\nline 7.000060 0 7.000060 100\n\
                    red\natext 7.000060 100\nI\n\
                    green\nline 7.000040 100 7.000080 100\nline 7.000080 100 7.000080 200\n\
                    yellow\nline 7.000040 1100 7.000080 1100\nline 7.000080 1100 7.000080 200\n\
                    go\n";
        assert_eq!(files[0].text, data);
    }
}
