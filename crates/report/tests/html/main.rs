//! Pages: what stands in them, and what a browser makes of them.
#![allow(clippy::unwrap_used)]

mod browser;
mod fixture;

use anabranch_report::Header;
use anabranch_report::html::{Page, page};

fn of(studies: &[anabranch_study::study::StudyResult]) -> String {
    page(&Page::of_studies(studies, "anabranch study late/fig10 --report page.html"))
}

#[test]
fn everything_that_a_study_says_is_on_the_page() {
    let text = of(&[fixture::study()]);
    for said in [
        "An Invented Paper for This Test",
        "LATE &lt; DPSAF &lt; BLEST &lt; minRTT",
        "-21.4 ± 3.0 %",
        "weaker",
        "its formulas are not public",
        "reproduced if “buffers of 1000 packets” and “CUBIC” (3 combinations tried)",
        "-29.0 ± 2.1 %",
        "initial cwnd",
        "cubic (beta=0.7, c=0.4)",
        "1 to 30 (30 repetitions)",
        &"0123456789abcdef".repeat(4),
        "anabranch study late&#x2f;fig10 --report late.html",
        "In 2 of 3000 runs",
        "rtt = &quot;60ms&quot;",
    ] {
        assert!(text.contains(said), "`{said}` is missing");
    }
    assert_eq!(text, of(&[fixture::study()]), "the same results give the same bytes");
}

#[test]
fn terminal_and_document_say_under_which_assumptions_it_is_reproduced() {
    let study = fixture::study();
    let found = "reproduced if “buffers of 1000 packets” and “CUBIC” (3 combinations tried)";
    let text = anabranch_report::study(&study, 200);
    assert!(text.contains(found) && text.contains("tried “CUBIC”: weaker, -25.0 ± 3.3 %"), "{text}");
    assert!(!text.contains("-36.0 ± 2.8 %"), "sets of several stand in the JSON and on the page");

    let text = anabranch_report::reproduction(std::slice::from_ref(&study), "anabranch study late/fig10", false);
    assert!(
        text.contains("| study | the paper states | paper | ours | verdict | under other assumptions |\n"),
        "{text}"
    );
    assert!(
        text.contains(&format!(" | *weaker* | {found} |\n")) && text.contains(&format!("- **{found}**\n")),
        "{text}"
    );
    assert!(text.contains("There is one for 1 of 1\nstatements"), "{text}");

    let mut study = study;
    study.statements.iter_mut().for_each(|judged| judged.search = None);
    let text = anabranch_report::reproduction(&[study], "anabranch study late/fig10", false);
    assert!(!text.contains("assumptions |"), "nothing was searched: {text}");
}

/// Hosts begin late with `run.spread`; the time axes begin with them, not with the links.
#[test]
fn figures_begin_when_the_hosts_do() {
    let (scenario, run) = fixture::late();
    let header = Header::new(&scenario, run.measured.seed, 1);
    let all = [run.measured.clone()];
    let page = Page::of_runs(&scenario, &header, &run, &all, "anabranch run late.toml --report late.html");
    let figures = &page.sections[0].figures;
    for id in ["sequence", "cwnd", "queue", "ofo", "waiting-data"] {
        let figure = figures.iter().find(|figure| figure.id == id).expect(id);
        let times = || figure.series.iter().flat_map(|series| &series.points).filter_map(|point| point.x);
        let (first, last) = (times().fold(f64::MAX, f64::min), times().fold(0.0, f64::max));
        assert!((0.0..0.5).contains(&first) && last < 10.0, "{id}: {first} to {last} s");
    }
    assert!(page.sections[0].facts.iter().any(|(name, what)| name == "hosts begin" && what.contains("run.spread")));
}

/// `chart.js` alone, in node: nothing of a page is needed for the looks of its series.
#[test]
fn no_two_series_look_alike() {
    const SCRIPT: &str = r#"
        const source = require("node:fs").readFileSync(process.argv[1], "utf8");
        const vega = { defaultLocale: () => ({ format: () => String }) };
        const { look } = new Function("vega", `${source}; return anabranchChart;`)(vega);
        for (const theme of ["light", "dark"]) {
            const seen = new Map();
            for (let n = 0; n < 56; n++) {
                const { colour, shape, dash } = look(n, "measured", theme);
                for (const what of [`${colour} ${shape}`, `${colour} ${dash}`]) {
                    if (seen.has(what)) throw new Error(`${n} and ${seen.get(what)} are both ${what}`);
                    seen.set(what, n);
                }
            }
        }
    "#;
    let chart = concat!(env!("CARGO_MANIFEST_DIR"), "/assets/chart.js");
    let node = std::process::Command::new("node").args(["-e", SCRIPT, chart]).output();
    let Ok(output) = node else { return browser::skip("node is not installed") };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn texts_stay_texts() {
    let text = of(&[fixture::hostile()]);
    assert!(!text.contains("<script>window.broken"), "a title has become a script");
    assert!(!text.contains("<img src=x"), "a title has become an element");
    assert!(text.contains("{{ 7 * 7 }}"), "a title was taken for a template");
}

#[test]
fn many_studies_have_an_index_and_names_of_their_own() {
    let mut second = fixture::study();
    second.statements.remove(1);
    let text = of(&[fixture::study(), second]);
    assert!(text.contains(r##"<a href="#s-late-fig10">"##) && text.contains(r##"<a href="#s-late-fig10-2">"##));
    // Of three and two, one of each is the same sentence.
    assert!(text.contains("4 statements, judged in 5 parts"), "verdicts are counted");
    assert!(text.contains("part of “minRTT is the worst of all”"));
}

/// The first of its sections has the paper's head: headlines, the stack they were measured on, what to believe.
#[test]
fn a_paper_begins_with_its_headlines() {
    let mut second = fixture::study();
    second.name = "late/fig11".to_owned();
    second.statements.truncate(1);
    let studies = [fixture::study(), second];
    let text = of(&studies);
    assert_eq!(text.matches(r#"<section class="paper""#).count(), 1);
    for said in [
        r##"<a href="#paper-s-late">LATE: headlines, and what to believe</a>"##,
        r##"<a href="#s-late-fig10">Fig. 10</a>, on the stack <code>linux-3.14</code>"##,
        "W. Yang, P. Dong",
        "What to believe.",
        r#"<p class="warning">From quick runs, with few points and repetitions.</p>"#,
    ] {
        assert!(text.contains(said), "`{said}` is missing");
    }
    assert!(!of(&studies[..1]).contains(r#"<section class="paper""#), "one study is not a paper");
    // Once, even where studies of another paper stand between its own.
    let mut other = fixture::study();
    (other.name, other.paper) = ("f2p/fig05".to_owned(), "F2P".to_owned());
    let mixed = [studies[0].clone(), other, studies[1].clone()];
    assert_eq!(of(&mixed).matches(r#"<section class="paper""#).count(), 2);
    let text = anabranch_report::reproduction(&mixed, "anabranch study", false);
    assert_eq!((text.matches("\n## LATE\n").count(), text.matches("\n| LATE | 2 | ").count()), (1, 1), "{text}");

    let text = anabranch_report::reproduction(&studies, "anabranch study --paper late", false);
    let head = text.find("\n## LATE\n").unwrap();
    assert!(head < text.find("\n## Every statement\n").unwrap(), "{text}");
    let row = "| Fig. 10 (`late/fig10`) | With 256 kB it needs 37 % less time. | -37.36 % \
               | -21.4 ± 3.0 % | *weaker* | `linux-3.14` |\n";
    assert!(text.contains(row) && text.contains("**What to believe.** LATE's orders come out as stated"), "{text}");
}

#[test]
fn a_run_is_drawn_by_what_happened_in_it() {
    let text = fixture::run();
    for said in ["Time and sequence of the data", "wlan, retransmitted", "did not arrive", "DATA_ACK at the sender"] {
        assert!(text.contains(said), "`{said}` is missing");
    }
    for said in
        ["Congestion windows", "Queues in front of the links", "Out-of-order queue", "What the sender waited for"]
    {
        assert!(text.contains(said), "`{said}` is missing");
    }
    assert!(text.contains("rate = &quot;25mbit&quot;"), "the scenario stands there as it is written");
}

#[test]
fn a_comparison_is_drawn_and_put_into_words() {
    let text = fixture::comparison();
    for said in ["Ranking", "Difference to min-rtt", "Where the data went first", "plain TCP on the best single path"] {
        assert!(text.contains(said), "`{said}` is missing");
    }
}

#[test]
fn a_leaderboard_has_its_tables_and_the_worst_conditions_of_each() {
    let text = fixture::leaderboard();
    for said in [
        "Time over that of the best of all others",
        "Regret",
        "To the best of all others, by RTT ratio",
        "The worst conditions of late",
        "anabranch compare drawn&#x2f;1&#x2f;",
    ] {
        assert!(text.contains(said), "`{said}` is missing");
    }
}

#[test]
fn slowness_is_drawn_packet_by_packet() {
    let [captures, scenario] = fixture::why();
    for said in ["Data from the server", "confidence high", "link [Mbit&#x2f;s]", "What this capture does not tell"] {
        assert!(captures.contains(said), "`{said}` is missing");
    }
    for said in
        ["Connection 0 of seed 1", "With one thing changed", "Not tried: ", "anabranch run one-file.toml --seed 1"]
    {
        assert!(scenario.contains(said), "`{said}` is missing");
    }
    assert!(captures.len() < 200_000, "uPlot draws it, and nothing else is on the page: {} bytes", captures.len());
    assert!(scenario.contains("What each change would have given"), "and a scenario has its changes");
    // Both draw the same packets: those of the capture.
    let data = |page: &str| {
        let begin = page.find("\"sent\":{").unwrap();
        page[begin..].split('}').next().unwrap().to_owned()
    };
    let column = |page: &str, name: &str| {
        let data = data(page);
        let begin = data.find(&format!("\"{name}\":")).unwrap();
        data[begin..].split(']').next().unwrap().to_owned()
    };
    for name in ["f", "n", "m"] {
        assert_eq!(column(&captures, name), column(&scenario, name), "column {name}");
    }
}

#[test]
fn the_page_is_small() {
    // Mostly Vega; data takes little of it.
    let one = of(&[fixture::study()]).len();
    let two = of(&[fixture::study(), fixture::study()]).len();
    assert!(one < 480_000 && two - one < 160_000, "{one} bytes, then {two}");
    for (name, page) in [("comparison", fixture::comparison()), ("leaderboard", fixture::leaderboard())] {
        assert!(page.len() < 400_000, "{name}: {} bytes", page.len());
    }
}

#[test]
fn a_browser_shows_what_is_meant() {
    let many: Vec<_> = (0..8)
        .map(|n| anabranch_study::study::StudyResult { name: format!("late/fig{n}"), ..fixture::study() })
        .collect();
    let [captures, scenario] = fixture::why();
    browser::look(&[
        ("why.html", captures),
        ("why-scenario.html", scenario),
        ("study.html", of(&[fixture::study()])),
        ("many.html", of(&many)),
        ("hostile.html", of(&[fixture::hostile()])),
        ("run.html", fixture::run()),
        ("comparison.html", fixture::comparison()),
        ("comparison-all.html", fixture::comparison_of_all()),
        ("leaderboard.html", fixture::leaderboard()),
    ]);
}
