//! Base of a drawn scenario: paths, hosts and work without a fault.

use anabranch_units::Stream;
use std::fmt::Write;

/// Scenario in parts.
#[derive(Clone)]
pub struct Base {
    pub paths: Vec<Path>,
    pub links: Vec<String>,
    pub host: Vec<String>,
    pub client: Vec<String>,
    pub server: Vec<String>,
    /// The workload, and those of others.
    pub work: Vec<String>,
    pub changes: Vec<String>,
    pub run: Vec<String>,
    pub is_rhythm: bool,
    /// The scenario without the fault, where it is not what was drawn.
    pub clean: Option<Box<Base>>,
}

/// Path in parts.
#[derive(Clone)]
pub struct Path {
    pub name: &'static str,
    /// Rate \[Mbit/s\].
    pub rate: f64,
    /// Rate from client to server \[Mbit/s\].
    pub up: Option<f64>,
    /// Round trip \[ms\].
    pub rtt: u64,
    /// Packets.
    pub queue: u64,
    pub more: Vec<String>,
}

const NAMES: [[&str; 3]; 2] = [["wlan", "lte", "dsl"], ["fiber", "cell", "sat"]];

/// Draws from a list.
pub fn one<'a, T>(stream: &mut Stream, of: &'a [T]) -> &'a T {
    &of[stream.below(of.len() as u64) as usize]
}

/// Draws between two numbers, smaller ones more often.
pub fn log(stream: &mut Stream, low: f64, high: f64) -> f64 {
    let unit = stream.unit();
    low + (high - low) * unit * unit
}

impl Base {
    /// Draws a base: two or three paths, a scheduler, a congestion control and a workload.
    pub fn draw(stream: &mut Stream) -> Base {
        let count = if stream.chance(0.75) { 2 } else { 3 };
        let names = one(stream, &NAMES);
        let mut paths = Vec::new();
        for name in &names[..count] {
            let (rate, rtt) = (log(stream, 4.0, 50.0).round(), log(stream, 10.0, 100.0).round() as u64);
            let bdp = (rate * 1e6 * rtt as f64 / 1e3 / 12_000.0) as u64;
            paths.push(Path { name, rate, up: None, rtt, queue: (bdp + bdp / 2).max(25), more: Vec::new() });
        }
        let mut host = vec!["receive-buffer = \"4MiB\"".to_owned()];
        if stream.chance(0.6) {
            host.push("send-buffer = \"4MiB\"".to_owned());
        }
        if stream.chance(0.6) {
            host.push(format!("scheduler = \"{}\"", one(stream, &["min-rtt", "linux-burst", "blest", "late", "ecf"])));
        }
        if stream.chance(0.6) {
            host.push(format!("congestion = \"{}\"", one(stream, &["cubic", "lia", "olia", "balia"])));
        }
        let mut base = Base {
            paths,
            links: Vec::new(),
            host,
            client: Vec::new(),
            server: Vec::new(),
            work: Vec::new(),
            changes: Vec::new(),
            run: Vec::new(),
            is_rhythm: false,
            clean: None,
        };
        match stream.below(10) {
            0..5 => base.file(stream, 1.5, 4.0),
            5 | 6 => base.bulk(stream),
            7 => base.requests(stream),
            8 => base.stream(stream),
            _ => base.page(stream),
        }
        base
    }

    /// Sum of the rates \[Mbit/s\].
    pub fn sum(&self) -> f64 {
        self.paths.iter().map(|path| path.rate).sum()
    }

    /// Index of the fastest path.
    pub fn fastest(&self) -> usize {
        let paths = self.paths.iter().enumerate();
        paths.max_by(|a, b| a.1.rate.total_cmp(&b.1.rate)).map_or(0, |(index, _)| index)
    }

    /// One file that takes so many seconds at least.
    pub fn file(&mut self, stream: &mut Stream, low: f64, high: f64) {
        let megabytes = (self.sum() / 8.0 * log(stream, low, high)).clamp(0.3, 16.0);
        self.work = vec![format!("kind = \"files\"\nsize = \"{}kB\"\n", (megabytes * 1000.0) as u64)];
    }

    /// As much as goes in some seconds.
    pub fn bulk(&mut self, stream: &mut Stream) {
        self.work = vec![format!("kind = \"bulk\"\nduration = \"{}s\"\n", 2 + stream.below(3))];
    }

    /// Several files one after the other.
    pub fn requests(&mut self, stream: &mut Stream) {
        let (size, count) = (log(stream, 20.0, 400.0) as u64, 4 + stream.below(8));
        let warm = if stream.chance(0.5) { "warm = true\n" } else { "" };
        self.work = vec![format!("kind = \"files\"\nsize = \"{size}kB\"\ncount = {count}\n{warm}")];
    }

    /// Bursts that follow each other as fast as the paths carry half of them.
    pub fn stream(&mut self, stream: &mut Stream) {
        let interval = 20 + stream.below(80);
        let kilobytes = (self.sum() * 1e3 / 8.0 * interval as f64 / 1e3 * (0.3 + 0.4 * stream.unit())) as u64;
        let count = 2000 / interval;
        self.work = vec![format!(
            "kind = \"bursts\"\nsize = \"{}kB\"\ninterval = \"{interval}ms\"\ncount = {count}\n",
            kilobytes.max(2)
        )];
    }

    /// Writes of a few bytes in quick succession.
    pub fn small(&mut self, stream: &mut Stream) {
        let (size, interval) = (200 + 100 * stream.below(30), 4 + stream.below(40));
        self.work = vec![format!(
            "kind = \"bursts\"\nsize = \"{size}B\"\ninterval = \"{interval}ms\"\ncount = {}\n",
            20 + stream.below(20)
        )];
    }

    /// A page.
    fn page(&mut self, stream: &mut Stream) {
        let protocol = one(stream, &["http1", "http2"]);
        let total = log(stream, 500.0, 4000.0) as u64;
        self.work = vec![format!(
            "kind = \"web\"\nprotocol = \"{protocol}\"\npage = {{ objects = 30, total = \"{total}kB\" }}\n"
        )];
    }

    /// Takes what was made so far as the scenario without the fault.
    pub fn is_clean(&mut self) {
        self.clean = None;
        self.clean = Some(Box::new(self.clone()));
    }

    /// The scenario's text.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for path in &self.paths {
            let Path { name, rate, rtt, queue, up, more } = path;
            let _ = write!(text, "[path.{name}]\ndown = \"{rate}mbit\"\nup = \"{}mbit\"\n", up.unwrap_or(*rate));
            let _ = write!(text, "rtt = \"{rtt}ms\"\nqueue = \"{queue}p\"\n");
            more.iter().for_each(|line| text += &format!("{line}\n"));
        }
        self.links.iter().for_each(|link| text += link);
        for (table, lines) in [("host", &self.host), ("client", &self.client), ("server", &self.server)] {
            if !lines.is_empty() {
                text += &format!("[{table}]\n{}\n", lines.join("\n"));
            }
        }
        self.work.iter().for_each(|work| text += &format!("[[workload]]\n{work}"));
        self.changes.iter().for_each(|change| text += &format!("[[change]]\n{change}"));
        if !self.run.is_empty() {
            text += &format!("[run]\n{}\n", self.run.join("\n"));
        }
        text
    }
}
