//! Test pages: invented studies with every kind of figure, and a real run and a real comparison.

use anabranch_lab::Keep;
use anabranch_lab::compare::Plan;
use anabranch_report::Header;
use anabranch_report::html::{Page, page};
use anabranch_scenario::{Origin, Scenario};
use anabranch_study::figure::{Axis, Figure, Mark, Point, Scale, Series, SeriesOrigin};
use anabranch_study::rank::{Condition, Leaderboard, League};
use anabranch_study::study::{Assumption, Judged, Search, StudyResult, SystemInfo, Tried, Verdict};
use anabranch_study::sweep::Baselines;
use anabranch_why::{Alternatives, CaptureInquiry, Inquiry, Others};
use std::path::Path;
use std::sync::Arc;

fn axis(label: &str, unit: &str, scale: Scale) -> Axis {
    Axis { label: label.to_owned(), unit: unit.to_owned(), scale }
}

fn series(name: &str, origin: SeriesOrigin, points: Vec<Point>) -> Series {
    Series { name: name.to_owned(), origin, points }
}

fn figure(id: &str, title: &str, mark: Mark, x: Axis, y: Axis, series: Vec<Series>) -> Figure {
    let (id, title) = (id.to_owned(), title.to_owned());
    Figure { id, title, mark, x, y, panels: None, columns: None, series, first: Vec::new(), notes: Vec::new() }
}

fn measured(x: f64, y: f64, half: f64) -> Point {
    Point { x: Some(x), y: Some(y), low: Some(y - half), high: Some(y + half), n: Some(30), ..Point::default() }
}

const SYSTEMS: [&str; 5] = ["minRTT", "BLEST", "ECF", "DPSAF", "LATE"];

/// Lines in panels, both axes logarithmic.
fn lines() -> Figure {
    let points = |k: f64| {
        let mut points = Vec::new();
        for (n, panel) in ["10 ms", "50 ms", "100 ms", "200 ms"].iter().enumerate() {
            for size in [16e3, 64e3, 256e3, 1024e3, 4096e3] {
                let y = (0.04 + size * 8.0 / 12e6) * (1.0 + 0.12 * k) * (1.0 + 0.3 * n as f64);
                points.push(Point { panel: Some((*panel).to_owned()), ..measured(size, y, 0.08 * y) });
            }
        }
        points
    };
    let all = SYSTEMS.iter().enumerate();
    let series = all.map(|(k, name)| series(name, SeriesOrigin::Measured, points(4.0 - k as f64))).collect();
    let (x, y) = (axis("file size", "B", Scale::Log), axis("completion time", "s", Scale::Log));
    Figure {
        panels: Some("RTT of path 2".to_owned()),
        notes: vec!["Means over 30 seeds; whiskers are 95 % intervals.".to_owned()],
        ..figure("late-fig10-a", "Completion time over file size", Mark::Line, x, y, series)
    }
}

/// Panels over two properties, whose sizes differ much.
fn grid() -> Figure {
    let mut points = Vec::new();
    for (n, rtt) in ["10 ms", "100 ms"].iter().enumerate() {
        for (k, loss) in ["0 %", "1 %", "5 %"].iter().enumerate() {
            for size in 1..=4 {
                let y = f64::from(size) * 10_f64.powi((n + k) as i32);
                points.push(Point { panel: Some(format!("{rtt}, {loss}")), ..measured(f64::from(size), y, 0.05 * y) });
            }
        }
    }
    let (x, y) = (axis("file size", "MB", Scale::Linear), axis("completion time", "s", Scale::Linear));
    let series = vec![series("minRTT", SeriesOrigin::Measured, points)];
    Figure {
        panels: Some("RTT, loss".to_owned()),
        columns: Some(3),
        ..figure("late-fig10-g", "Completion time by RTT and loss", Mark::Line, x, y, series)
    }
}

/// Dots on both sides of zero.
fn bars() -> Figure {
    let categories = ["16 kB", "64 kB", "256 kB", "1 MB"];
    let points = |k: usize| {
        let point = |(n, name): (usize, &&str)| Point {
            category: Some((*name).to_owned()),
            x: None,
            values: (0..30).map(|seed| 6.0 - 9.0 * k as f64 + 3.0 * n as f64 + (seed * 7 % 11) as f64 - 5.0).collect(),
            ..measured(0.0, 6.0 - 9.0 * k as f64 + 3.0 * n as f64, 2.5)
        };
        categories.iter().enumerate().map(point).collect()
    };
    let all = SYSTEMS[1..].iter().enumerate();
    let series = all.map(|(k, name)| series(name, SeriesOrigin::Measured, points(k))).collect();
    let (x, y) =
        (axis("file size", "", Scale::Category), axis("completion time relative to minRTT", "%", Scale::Linear));
    figure("late-fig10-b", "Difference to minRTT", Mark::Bar, x, y, series)
}

/// A line with theory and the paper's numbers beside it, and a gap.
fn theory() -> Figure {
    let mut ours: Vec<Point> =
        (0..12).map(|n| measured(f64::from(n) * 10.0, 4e6 + 3e5 * f64::from(n), 2.5e5)).collect();
    ours[5] = Point { x: Some(50.0), ..Point::default() };
    let curve =
        (0..111).map(|n| Point { x: Some(f64::from(n)), y: Some(4.1e6 + 2.9e4 * f64::from(n)), ..Point::default() });
    let paper = [(20.0, 4.8e6), (60.0, 5.6e6), (100.0, 7.4e6)];
    let paper = paper.map(|(x, y)| Point { x: Some(x), y: Some(y), ..Point::default() });
    let series = vec![
        series("LATE", SeriesOrigin::Measured, ours),
        series("Eq. (5)", SeriesOrigin::Theory, curve.collect()),
        series("LATE, as the paper states", SeriesOrigin::Paper, paper.to_vec()),
    ];
    let (x, y) = (axis("difference of delays", "ms", Scale::Linear), axis("goodput", "bit/s", Scale::Linear));
    figure("late-fig10-c", "Goodput, and what theory expects", Mark::Line, x, y, series)
}

/// Many points in time, with bands.
fn time() -> Figure {
    let points = |k: f64| {
        let point = |n: i32| {
            let t = f64::from(n) / 10.0;
            let y = 20.0 + 10.0 * k + (f64::from(n % 17) + 0.3 * k * f64::from(n % 5)) * 0.7;
            measured(t, y, 3.0)
        };
        let panel = |name: &'static str| (0..150).map(move |n| Point { panel: Some(name.to_owned()), ..point(2 * n) });
        panel("0 %").chain(panel("1 %")).collect()
    };
    let all = SYSTEMS[..3].iter().enumerate();
    let series = all.map(|(k, name)| series(name, SeriesOrigin::Measured, points(k as f64))).collect();
    let (x, y) = (axis("time", "s", Scale::Linear), axis("out-of-order queue", "segments", Scale::Linear));
    Figure {
        panels: Some("loss".to_owned()),
        ..figure("late-fig10-d", "Out-of-order queue over time", Mark::Step, x, y, series)
    }
}

/// Stacked bars along time.
fn spans() -> Figure {
    let causes = ["full congestion window", "receive window", "scheduler", "application"];
    let row = |k: usize, n: usize| {
        let begin: f64 = (0..k).map(|k| 0.4 + 0.1 * ((n + k) % 3) as f64).sum();
        let end = begin + 0.4 + 0.1 * ((n + k) % 3) as f64;
        Point {
            x: Some(begin),
            x_end: Some(end),
            category: Some(SYSTEMS[n].to_owned()),
            n: Some(30),
            ..Point::default()
        }
    };
    let all = causes.iter().enumerate();
    let series =
        all.map(|(k, name)| series(name, SeriesOrigin::Measured, (0..SYSTEMS.len()).map(|n| row(k, n)).collect()));
    let (x, y) = (axis("time blocked", "s", Scale::Linear), axis("scheduler", "", Scale::Category));
    figure("late-fig10-e", "Who waited for what", Mark::Span, x, y, series.collect())
}

/// Figure with enough points to be drawn on a canvas.
fn cloud() -> Figure {
    let points = |k: u64| {
        let point = |n: u64| Point {
            x: Some(n as f64 * 0.002 + 0.02 * k as f64),
            y: Some((n * 2920 + k * 1460) as f64),
            ..Point::default()
        };
        (0..2000).map(point).collect()
    };
    let series =
        vec![series("wlan", SeriesOrigin::Measured, points(0)), series("lte", SeriesOrigin::Measured, points(1))];
    let (x, y) = (axis("time", "s", Scale::Linear), axis("data sequence number", "B", Scale::Linear));
    figure("late-fig10-f", "Time and sequence", Mark::Point, x, y, series)
}

fn judged(text: &str, claim: &str, ours: &str, verdict: Verdict) -> Judged {
    Judged {
        text: text.to_owned(),
        source: "LATE §V-B, Fig. 10a".to_owned(),
        sentence: None,
        claim: claim.to_owned(),
        ours: ours.to_owned(),
        verdict,
        unfinished_runs: 0,
        details: vec![
            "LATE to DPSAF: -21.4 ± 3.0 % (30 pairs)".to_owned(),
            "DPSAF to minRTT: -11.0 ± 4.1 %".to_owned(),
        ],
        own: false,
        headline: false,
        cause: None,
        search: None,
    }
}

fn tried(names: &[&str], ours: &str, verdict: Verdict) -> Tried {
    let names = names.iter().map(|name| (*name).to_owned()).collect();
    Tried { names, ours: ours.to_owned(), verdict, unfinished_runs: 0 }
}

/// A whole study.
pub fn study() -> StudyResult {
    let system = |name: &&str| SystemInfo {
        name: (*name).to_owned(),
        set: vec![format!("host.scheduler=\"{}\"", name.to_lowercase())],
        policies: vec![
            ("profile".to_owned(), "linux-3.14".to_owned()),
            ("scheduler".to_owned(), name.to_lowercase()),
            ("congestion".to_owned(), "cubic (beta=0.7, c=0.4)".to_owned()),
            ("reinjection".to_owned(), "opportunistic".to_owned()),
        ],
        unavailable: (*name == "DPSAF").then(|| "its formulas are not public".to_owned()),
    };
    StudyResult {
        version: "0.1.0".to_owned(),
        build: "0123456789abcdef".to_owned(),
        name: "late/fig10".to_owned(),
        title: "Completion time of files over two paths of different delay".to_owned(),
        paper: "LATE".to_owned(),
        citation: "A. Writer, B. Writer. An Invented Paper for This Test. Proc. ExampleNet 2031.".to_owned(),
        figure: "Fig. 10".to_owned(),
        about: "Files of 16 kB to 4 MB over WLAN and LTE, one after the other on a warm connection. \
                The second path's delay varies."
            .to_owned(),
        digest: "0123456789abcdef".repeat(4),
        command: "anabranch study late/fig10 --report late.html".to_owned(),
        quick: true,
        sets: Vec::new(),
        seeds: (1..=30).collect(),
        runs: 3000,
        unfinished_runs: 2,
        figures: vec![lines(), bars(), theory(), time(), spans(), cloud(), grid()],
        statements: vec![
            judged("LATE completes first.", ORDER, ORDER, Verdict::Reproduced),
            Judged {
                headline: true,
                cause: Some("The paper does not say how large the buffers of its links are.".to_owned()),
                search: Some(Search {
                    possible: 3,
                    tried: vec![
                        tried(&["buffers of 1000 packets"], "-29.0 ± 2.1 %", Verdict::Weaker),
                        tried(&["CUBIC"], "-25.0 ± 3.3 %", Verdict::Weaker),
                        tried(&["buffers of 1000 packets", "CUBIC"], "-36.0 ± 2.8 %", Verdict::Reproduced),
                    ],
                }),
                ..judged("With 256 kB it needs 37 % less time.", "-37.36 %", "-21.4 ± 3.0 %", Verdict::Weaker)
            },
            Judged {
                unfinished_runs: 4,
                sentence: Some("minRTT is the worst of all".to_owned()),
                ..judged("ECF is never slower than minRTT.", "ECF <= minRTT", "+4.1 ± 1.2 %", Verdict::Opposite)
            },
        ],
        assumptions: vec![Assumption {
            about: "initial cwnd".to_owned(),
            value: "10 segments".to_owned(),
            reason: "RFC 6928, the default of Linux at that time".to_owned(),
        }],
        systems: SYSTEMS.iter().map(system).collect(),
        scenario: "[path.wlan]\nrate = \"25mbit\"\nrtt = \"20ms\"\n\n\
                   [path.lte]\nrate = \"12mbit\"\nrtt = \"60ms\"\n\n[[workload]]\nkind = \"files\"\n"
            .to_owned(),
    }
}

/// Texts that would break a page which does not escape.
pub fn hostile() -> StudyResult {
    const TEXT: &str =
        "</script><script>window.broken = 1</script><img src=x onerror='window.broken = 2'>{{ 7 * 7 }}\"&";
    let mut study = study();
    study.name = TEXT.to_owned();
    for text in [&mut study.title, &mut study.citation, &mut study.about, &mut study.command, &mut study.scenario] {
        *text = format!("{TEXT} {text}");
    }
    study.statements[0].text = TEXT.to_owned();
    study.statements[0].details = vec![TEXT.to_owned()];
    study.systems[0].set = vec![TEXT.to_owned()];
    for figure in &mut study.figures {
        figure.title = TEXT.to_owned();
        figure.x.label = TEXT.to_owned();
        figure.notes = vec![TEXT.to_owned()];
        figure.series[0].name = TEXT.to_owned();
        figure.series[0].points[0].note = Some(TEXT.to_owned());
    }
    study
}

/// Finding of an invented statement.
const ORDER: &str = "LATE < DPSAF < BLEST < minRTT";

const TWO_FILES: &str = "about = \"Two files over two paths\"\n\
                         [path.wlan]\nrate = \"25mbit\"\nrtt = \"20ms\"\nloss = \"1%\"\n\
                         [path.lte]\nrate = \"12mbit\"\nrtt = \"60ms\"\nloss = \"0.5%\"\n\
                         [[workload]]\nkind = \"files\"\nsize = \"2MB\"\ncount = 2\n";

/// Reads a scenario under a name.
fn scenario_of(name: &str, text: &str, sets: &[String]) -> Result<Scenario, anabranch_scenario::ScenarioError> {
    let none = |_: &str, _| Err(std::io::ErrorKind::NotFound.into());
    let origin = Origin { scenario: format!("{name}.toml"), sets: sets.to_vec() };
    let catalogue = Arc::new(anabranch_policy::Catalogue::default());
    Scenario::read(&catalogue, name, &format!("{name}.toml"), text, origin, &none)
}

fn scenario() -> Scenario {
    scenario_of("two-files", TWO_FILES, &[]).unwrap()
}

/// The page of a run and its repetitions.
pub fn run() -> String {
    let scenario = scenario();
    let run =
        |seed: u64| anabranch_lab::run(&scenario, seed, &Keep { timeline: seed == 1, ..Keep::default() }).unwrap();
    let runs: Vec<_> = (1..=8).map(run).collect();
    let header = Header::new(&scenario, 1, 8);
    let all: Vec<_> = runs.iter().map(|run| run.measured.clone()).collect();
    page(&Page::of_runs(&scenario, &header, &runs[0], &all, "anabranch run two-files.toml --report run.html"))
}

/// A run over three paths that begins most of a minute after its links: new, repeated and lost data on each.
pub fn late() -> (Scenario, anabranch_lab::Run) {
    const TEXT: &str = "[path.wlan]\nrate = \"25mbit\"\nrtt = \"20ms\"\nloss = \"2%\"\n\
                        [path.lte]\nrate = \"12mbit\"\nrtt = \"60ms\"\nloss = \"2%\"\n\
                        [path.dsl]\nrate = \"6mbit\"\nrtt = \"30ms\"\nloss = \"2%\"\n\
                        [[workload]]\nkind = \"files\"\nsize = \"3MB\"\n[run]\nspread = \"60s\"\n";
    let scenario = scenario_of("late", TEXT, &[]).unwrap();
    let seed = (1..).find(|seed| scenario.late(*seed).as_secs_f64() > 30.0).unwrap();
    let run = anabranch_lab::run(&scenario, seed, &Keep { timeline: true, ..Keep::default() }).unwrap();
    (scenario, run)
}

/// Pages about slowness: of captures at both ends of a run, and of its scenario.
pub fn why() -> [String; 2] {
    let text = TWO_FILES.replace("count = 2", "count = 1");
    let scenario = scenario_of("one-file", &text, &[]).unwrap();
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("why-{:?}", std::thread::current().id()));
    let keep = Keep { captures: Some(directory.clone()), ..Keep::default() };
    let run = anabranch_lab::run(&scenario, 1, &keep).unwrap();
    let files = ["client", "server"].map(|host| directory.join(format!("{host}.pcapng")));
    let inquiry = CaptureInquiry::read(&files);
    let command = "anabranch why client.pcapng server.pcapng --report why.html";
    let of_captures = Page::of_captures(&inquiry.answer(None), &inquiry.traces(None), command);
    let load = |sets: &[String]| scenario_of("one-file", &text, sets);
    let others = Others { schedulers: vec!["late".to_owned()], congestion: Vec::new() };
    let catalogue = Arc::new(anabranch_policy::Catalogue::default());
    let alternatives = Alternatives::of(&scenario, &catalogue, &others, &load);
    let answer = Inquiry::new(&scenario, alternatives, 1, 2).run(1, &load, &|_, _| ()).unwrap();
    let first = &run.outcome.connections[answer.longest().unwrap().connection].subflows[0].stats;
    let trace = inquiry.traces_between(first.local, first.remote);
    let of_scenario = Page::of_why(&scenario, &answer, trace.first(), "anabranch why one-file.toml --report run.html");
    std::fs::remove_dir_all(&directory).unwrap();
    [page(&of_captures), page(&of_scenario)]
}

/// The page of a comparison.
pub fn comparison() -> String {
    compared(&["min-rtt", "late", "ecf", "round-robin"].map(str::to_owned), 3)
}

/// The page of a comparison of all schedulers.
pub fn comparison_of_all() -> String {
    compared(&scenario().default_schedulers(), 10)
}

fn compared(schedulers: &[String], repeat: usize) -> String {
    let scenario = scenario();
    let plan = Plan::new(scenario.clone(), schedulers, 1, repeat).unwrap();
    let header = Header::new(&scenario, 1, repeat).comparing(plan.described());
    let comparison = plan.run(None, 1, &|| ()).unwrap();
    let summary = comparison.summary().unwrap();
    let command = "anabranch compare two-files.toml --report comparison.html";
    page(&Page::of_comparison(&scenario, &header, &comparison, &summary, command))
}

/// The page of a leaderboard.
pub fn leaderboard() -> String {
    let catalogue = Arc::new(anabranch_policy::Catalogue::default());
    let schedulers: Vec<String> = ["min-rtt", "late", "round-robin"].map(str::to_owned).into();
    let sets = ["workload=[{kind=\"files\",size=\"60kB\"}]".to_owned()];
    let conditions = (0..6).map(|number| Condition::drawn(1, number)).collect();
    let league = League::new(&catalogue, conditions, &schedulers, Baselines::All, (1, 2), &sets).unwrap();
    let board = Leaderboard::of(&league, &league.run(None, 1, &|| ()).unwrap()).unwrap();
    page(&Page::of_leaderboard(&board, "Conditions 0 to 5 of seed 1", "0.0.0", "anabranch rank --report rank.html"))
}
