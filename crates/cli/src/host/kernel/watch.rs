//! `anabranch kernel watch`: decisions of the kernel's MPTCP as they happen.

mod page;

use crate::args::{interval, span};
use crate::failure::Failure;
use crate::output;
use crate::result_file::ResultFile;
use anabranch_host::{Caught, sockets_of};
use anabranch_kernel::watch::{ConnectionReport, Course, Event, Picture, Report, SubflowReport, Wanted, Watch, groups};
use anabranch_lab::format::{KERNEL_WATCH, NoContents};
use anabranch_report::html;
use anabranch_report::{Align, Table, hang};
use anabranch_units::{Duration, quantity};
use clap::Args as ClapArgs;
use miette::miette;
use serde_json::json;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::time::Instant;

/// Arguments of `kernel watch`.
#[derive(ClapArgs, Debug)]
#[command(after_help = "Examples:
  sudo anabranch kernel watch                              all connections of this kernel, in all namespaces
  sudo anabranch kernel watch $(pidof curl)                those of a process, until it ends
  sudo anabranch kernel watch /sys/fs/cgroup/user.slice    those of a control group and of the groups in it
  sudo anabranch kernel watch --duration 10s --json > decisions.jsonl
  sudo anabranch kernel watch $(pidof curl) --report watch.html    the course of it as a page with figures

For each connection: how often the scheduler was asked for a subflow, how often no data left then or data went to \
another subflow than the rule of Linux gives, and what the other host acknowledged. For each subflow: how often the \
scheduler took it, the data given to it and those that arrived on it in Mbit/s, packets without a usable mapping \
(bad), and its state when the scheduler looked at it last. \"queue\" is the time that the bytes in its send buffer \
take at its pacing rate; the rule is to take the subflow with the least. Nothing in the kernel is changed. See \
docs/kernel.md.")]
pub struct WatchArgs {
    /// Connections: those of a process by its number, those of a control group by its directory (cgroup v2), or `all`.
    #[arg(value_name = "PID|CGROUP|all", default_value = "all", value_parser = target)]
    pub target: Target,
    /// End after this time.
    #[arg(long, value_name = "TIME", value_parser = span)]
    pub duration: Option<Duration>,
    /// Print a table this often.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = interval)]
    pub interval: Duration,
    /// Memory for events that are not read yet; what does not fit is lost, and counted.
    #[arg(long, value_name = "SIZE", default_value = "8MiB", value_parser = buffer)]
    pub buffer: usize,
    /// Print each event as a line of JSON, and totals at the end, instead of tables.
    #[arg(long)]
    pub json: bool,
    /// Write a page when the watch ends: data of each subflow over time, choices, and causes for which data waited.
    /// Figures are of the connection that moved most.
    #[arg(long, value_name = "FILE")]
    pub report: Option<ResultFile>,
}

/// Connections that are asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Target {
    /// All of this kernel.
    All,
    /// Those of a process.
    Process(u32),
    /// Those of a control group and of those in it.
    Group(PathBuf),
}

fn target(text: &str) -> Result<Target, String> {
    match text.parse() {
        Ok(process) => Ok(Target::Process(process)),
        Err(_) if text == "all" => Ok(Target::All),
        Err(_) if text.starts_with('/') => Ok(Target::Group(text.into())),
        Err(_) => Err("accepted: the number of a process, the directory of a control group such as \
                       /sys/fs/cgroup/user.slice, or `all`"
            .to_owned()),
    }
}

/// The ring buffer has a size that is a power of two.
fn buffer(text: &str) -> Result<usize, String> {
    let size = quantity::size(text).map_err(|refusal| format!("{}; {}", refusal.problem, refusal.accepted))?;
    let size = usize::try_from(size.get()).ok().filter(|size| (SMALLEST..=LARGEST).contains(size));
    size.map(usize::next_power_of_two).ok_or_else(|| "accepted: a size from 64KiB to 1GiB, such as 8MiB".to_owned())
}

const SMALLEST: usize = 64 << 10;
const LARGEST: usize = 1 << 30;

/// Time between two looks into the buffer.
const PAUSE: std::time::Duration = std::time::Duration::from_millis(20);

/// Connections that a table shows.
const MOST: usize = 5;

/// Watches until a signal, the end of the process, or the end of the time.
pub(super) fn watch(args: &WatchArgs) -> Result<(), Failure> {
    let wanted = wanted(&args.target)?.ok_or_else(|| no_target(&args.target))?;
    let mut caught = Caught::new().map_err(|error| Failure::Failed(miette!("cannot catch signals: {error}")))?;
    let mut watch = Watch::start(args.buffer).map_err(super::failed)?;
    let mut picture = Picture::new(wanted);
    let mut course = args.report.as_ref().map(|_| Course::default());
    let mut screen = output::Screen::default();
    let shown = follow(args, &mut caught, &mut watch, &mut picture, &mut course, &mut screen);
    let report = picture.whole(lost(&watch)?);
    let shown = shown.and_then(|()| match args.json {
        true => output::print(&format!("{}\n", json!(Event::Summary { totals: report.clone() }))),
        false => screen.show(&table(&report, true)),
    });
    // Also when nobody reads the tables any more: `kernel watch --report FILE | head`.
    let written = match (&args.report, &course) {
        (Some(path), Some(course)) => {
            let page = page::page(&args.target, &report, course, &output::command_line());
            output::write(path, html::page(&page).as_bytes())
        }
        _ => Ok(()),
    };
    written.and(shown)
}

/// Shows what happens until the watch is over.
fn follow(
    args: &WatchArgs,
    caught: &mut Caught,
    watch: &mut Watch,
    picture: &mut Picture,
    course: &mut Option<Course>,
    screen: &mut output::Screen,
) -> Result<(), Failure> {
    if args.json {
        output::print(&format!("{}\n", json!(KERNEL_WATCH.document(NoContents {}))))?;
    }
    let (begin, mut next) = (Instant::now(), args.interval);
    let mut over = false;
    while !over {
        over = caught.wait(PAUSE).map_err(|error| Failure::Failed(miette!("cannot wait for signals: {error}")))?;
        // Sockets of a process, and groups in a group, come and go.
        match wanted(&args.target)? {
            Some(now) => picture.set_wanted(now),
            None => over = true,
        }
        let mut lines = String::new();
        watch.drain(|raw| {
            picture.take(raw, &mut |event| {
                if let Some(course) = course {
                    course.take(&event);
                }
                if args.json {
                    lines += &serde_json::to_string(&event).expect("an event has only texts as keys");
                    lines.push('\n');
                }
            });
        });
        output::print(&lines)?;
        let elapsed = Duration::from_nanos(u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX));
        over |= args.duration.is_some_and(|most| elapsed >= most);
        if elapsed >= next && !over && !args.json {
            screen.show(&table(&picture.interval(lost(watch)?), false))?;
            while elapsed >= next {
                next += args.interval;
            }
        }
    }
    Ok(())
}

fn lost(watch: &Watch) -> Result<u64, Failure> {
    watch.lost().map_err(|error| Failure::Failed(miette!("cannot read the count of lost events: {error}")))
}

/// Connections as they are now; `None` if the process has ended or the group is gone.
fn wanted(target: &Target) -> Result<Option<Wanted>, Failure> {
    let found = match target {
        Target::All => return Ok(Some(Wanted::All)),
        Target::Process(process) => sockets_of(*process).map(Wanted::Sockets),
        Target::Group(path) => groups(path).map(Wanted::Groups),
    };
    match (found, target) {
        (Ok(wanted), _) => Ok(Some(wanted)),
        (Err(error), _) if error.kind() == ErrorKind::NotFound => Ok(None),
        (Err(error), Target::Group(path)) => {
            let help = "accepted: a directory of cgroup v2, such as /sys/fs/cgroup/user.slice; `mount -t cgroup2` \
                        tells where it is";
            Err(Failure::Refused(miette!(help = help, "cannot read the control group {}: {error}", path.display())))
        }
        (Err(error), _) => {
            let help = "run it as the user of that process, or as root";
            Err(Failure::Failed(miette!(help = help, "cannot see the sockets of the process: {error}")))
        }
    }
}

fn no_target(target: &Target) -> Failure {
    match target {
        Target::Group(path) => Failure::Refused(miette!(
            help = "`systemd-cgls` lists those that there are",
            "there is no control group {}",
            path.display()
        )),
        Target::Process(process) => {
            Failure::Refused(miette!(help = "`ps` lists those that there are", "there is no process {process}"))
        }
        Target::All => Failure::Failed(miette!("there is no connection")),
    }
}

/// Counts of an interval, or of the whole watch, for a terminal.
fn table(report: &Report, whole: bool) -> String {
    let mut text = match whole {
        true => format!("All {:.1} s", report.seconds),
        false => format!("{:.1} s, the last {:.1} s", report.time, report.seconds),
    };
    if report.lost > 0 {
        text += &format!(
            "; {} events were lost, so that counts are too low: read faster, or take a larger --buffer",
            report.lost
        );
    }
    if report.forgotten > 0 {
        text += &format!("; {} connections were forgotten to make room for others", report.forgotten);
    }
    if report.connections.is_empty() {
        return text + ": no decision of the scheduler\n";
    }
    text += ":\n";
    let mut connections: Vec<&ConnectionReport> = report.connections.iter().collect();
    connections.sort_by_key(|it| std::cmp::Reverse(data(it)));
    connections.iter().take(MOST).for_each(|it| text += &of_connection(it, report.seconds));
    let more = connections.len().saturating_sub(MOST);
    if more > 0 {
        text += &format!("{more} more connections, with less data\n");
    }
    text
}

/// Data of a connection, sent or received \[bytes\].
fn data(connection: &ConnectionReport) -> u64 {
    connection.data_acked.max(connection.subflows.iter().map(|subflow| subflow.mapped).sum())
}

fn of_connection(connection: &ConnectionReport, seconds: f64) -> String {
    hang("", &head(connection, seconds), output::width()) + &subflows(connection, seconds).to_string()
}

/// Formats a rate in Mbit/s.
fn rate(bytes: u64, seconds: f64) -> String {
    format!("{:.2}", bytes as f64 * 8e-6 / seconds.max(1e-9))
}

/// Counts of a connection in words.
fn head(connection: &ConnectionReport, seconds: f64) -> String {
    if connection.decisions + connection.data_acked == 0 {
        return format!("connection {}, data arrive", connection.connection);
    }
    format!(
        "connection {}: {} decisions, {} without data, {} against the rule; {} Mbit/s acknowledged, {} bytes \
         outstanding, {} sent again",
        connection.connection,
        connection.decisions,
        connection.without_data,
        connection.unexpected,
        rate(connection.data_acked, seconds),
        connection.outstanding,
        connection.sent_again,
    )
}

/// Choices and states of the subflows of a connection.
fn subflows(connection: &ConnectionReport, seconds: f64) -> Table {
    let right = ["chosen", "share", "Mbit/s", "pacing", "queue [ms]", "cwnd", "RTT [ms]", "arrived", "bad"];
    let columns = right.into_iter().map(|name| (name, Align::Right));
    let mut table = Table::new([("subflow", Align::Left)].into_iter().chain(columns).chain([("state", Align::Left)]));
    let all: u64 = connection.subflows.iter().map(|subflow| subflow.chosen).sum();
    for subflow in &connection.subflows {
        let latest = subflow.latest.as_ref();
        let of = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
        table.row([
            format!("{} > {}", subflow.local, subflow.remote),
            subflow.chosen.to_string(),
            if all > 0 { format!("{:.0} %", subflow.chosen as f64 / all as f64 * 100.0) } else { "-".to_owned() },
            format!("{:.2}", subflow.sent_mbit_s),
            of(latest.and_then(|it| it.pacing_mbit_s).map(|rate| format!("{rate:.2}"))),
            of(latest.and_then(|it| it.queued_ms).map(|time| format!("{time:.1}"))),
            of(latest.map(|it| it.cwnd.to_string())),
            of(latest.map(|it| format!("{:.1}", it.srtt_ms))),
            rate(subflow.mapped, seconds),
            subflow.mapping_errors.to_string(),
            state(subflow),
        ]);
    }
    table
}

/// State of a subflow in words.
fn state(subflow: &SubflowReport) -> String {
    let Some(latest) = &subflow.latest else { return "-".to_owned() };
    let words = [
        (latest.backup, "backup"),
        (latest.stale, "stale"),
        (!latest.active, "not active"),
        (latest.free, "free"),
        (!latest.free, "full"),
    ];
    words.into_iter().filter(|(is, _)| *is).map(|(_, word)| word).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn targets_and_sizes_are_read() {
        assert_eq!(target("all"), Ok(Target::All));
        assert_eq!(target("42"), Ok(Target::Process(42)));
        assert_eq!(target("/sys/fs/cgroup/a"), Ok(Target::Group("/sys/fs/cgroup/a".into())));
        for wrong in ["", "-1", "curl", "99999999999"] {
            assert!(target(wrong).unwrap_err().contains("accepted"), "{wrong}");
        }
        assert_eq!(buffer("8MiB"), Ok(anabranch_kernel::watch::RING));
        assert_eq!(buffer("100kB"), Ok(128 << 10));
        for wrong in ["1kB", "2GiB", "x"] {
            assert!(buffer(wrong).unwrap_err().contains("accepted"), "{wrong}");
        }
    }

    #[test]
    fn what_there_is_not_is_refused() {
        let own = wanted(&Target::Process(std::process::id())).unwrap();
        assert!(matches!(own, Some(Wanted::Sockets(_))));
        assert!(wanted(&Target::Process(u32::MAX)).unwrap().is_none());
        assert!(wanted(&Target::Group("/sys/fs/cgroup/there-is-none".into())).unwrap().is_none());
        assert!(wanted(&Target::Group("/proc".into())).is_err());
    }
}
