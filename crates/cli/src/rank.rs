//! `anabranch rank`: schedulers over drawn conditions, and the adversary.

use crate::args::{Overrides, PolicyOptions, Results, What};
use crate::completion::Names;
use crate::failure::Failure;
use crate::output;
use anabranch_lab::format::{ADVERSARY, LEADERBOARD};
use anabranch_lab::{VERSION, version_with_build};
use anabranch_policy::Catalogue;
use anabranch_recording::Drives;
use anabranch_report::html::{Page, page};
use anabranch_report::{LISTED, Sheet};
use anabranch_scenario::{ScenarioError, split_policies};
use anabranch_study::rank::{
    Condition, FROZEN, FROZEN_DRIVES, Field, Find, Hunt, Leaderboard, League, RankError, Standing, TCP, WINDOW,
};
use anabranch_study::sweep::Baselines;
use anabranch_why::{Alternatives, Inquiry, Others};
use clap::Args as ClapArgs;
use schemars::JsonSchema;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Options that only runs have a use for.
const RUNNING: [&str; 8] = ["schedulers", "sets", "out", "csv", "parquet", "report", "json", "worst"];

/// Arguments of `rank`.
#[derive(ClapArgs, Debug)]
#[command(after_help = "Examples:
  anabranch rank
  anabranch rank --count 40 --schedulers min-rtt,late,fps --report rank.html
  anabranch rank --frozen 2026 --out kept --csv runs.csv
  anabranch rank --count 40 --recordings drives
  anabranch rank --set 'host.reinjection=\"tail\"' --json
  anabranch rank --show 17
  anabranch rank --seed 5 --count 20 --write conditions
  anabranch rank --against late --schedulers min-rtt,fps,redundant --write found
  anabranch rank --against anabranch --schedulers tcp     where does it cost most to have MPTCP?

Condition N of seed S is the scenario drawn/S/N of every other command: anabranch run drawn/1/17; drive N is \
drive/S/N. The distributions and the measures are described in docs/leaderboard.md.")]
pub struct RankArgs {
    /// Seed of the conditions; 1 unless given.
    #[arg(long, value_name = "N", conflicts_with = "frozen")]
    pub seed: Option<u64>,
    /// Number of conditions; 100 unless given.
    #[arg(long, value_name = "N", conflicts_with = "frozen",
        value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub count: Option<u32>,
    /// Number of drives: further conditions whose paths follow models of today's networks, with a column of their own;
    /// a quarter of --count unless given.
    #[arg(long, value_name = "N", conflicts_with_all = ["frozen", "against"],
        value_parser = clap::value_parser!(u32).range(0..=100_000))]
    pub drives: Option<u32>,
    /// Draw further conditions over windows of the recordings in this folder, with a column of their own; as many as
    /// drives, or as a quarter of --count if there are none, and one at least.
    #[arg(long, value_name = "DIR", conflicts_with = "against")]
    pub recordings: Option<PathBuf>,
    /// Rank over a set of conditions that never changes, with 20 seeds each: 2026 has 1,000 conditions and 200 drives.
    #[arg(long, value_name = "SET", value_parser = clap::builder::PossibleValuesParser::new(["2026"]))]
    pub frozen: Option<String>,
    /// The schedulers to rank, with commas between, each with parameters behind a colon where they differ from the
    /// defaults; all unless given. With --against: the schedulers to compare it with, or `tcp` for plain TCP on the
    /// best single path.
    #[arg(long, value_name = "NAME[:PARAMETER=VALUE,…],…", add = Names::joined(What::Schedulers))]
    pub schedulers: Option<String>,
    /// Number of seeds for each condition in which the seed makes a difference; 4 unless given.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub repeat: Option<u32>,
    /// Values that lie over those of every condition.
    #[command(flatten)]
    pub overrides: Overrides,
    /// Threads to run on, at most 4 per processor; one per processor unless given. Results do not depend on it.
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub jobs: usize,
    /// Keep the runs in this directory and reuse those that are there. A process that is killed loses a few seconds of
    /// work.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    #[command(flatten)]
    pub results: Results,
    /// List the worst conditions of this scheduler; of the one that ranks first unless given.
    #[arg(long, value_name = "NAME", add = Names::one(What::Schedulers))]
    pub worst: Option<String>,
    /// Print condition N as a scenario and run nothing.
    #[arg(long, value_name = "N", conflicts_with_all = ["count", "drives", "recordings", "repeat", "against", "write"],
        conflicts_with_all = RUNNING, conflicts_with_all = PolicyOptions::IDS)]
    pub show: Option<u64>,
    /// Write the conditions, or what --against finds, to DIR as scenario files with their traces; the conditions are
    /// then not run.
    #[arg(long, value_name = "DIR")]
    pub write: Option<PathBuf>,
    /// Search for conditions in which this scheduler loses most against the best of the others.
    #[arg(long, value_name = "NAME", add = Names::one(What::Schedulers),
        conflicts_with_all = ["frozen", "count", "csv", "parquet", "report", "worst"])]
    pub against: Option<String>,
    /// Approximate number of conditions to try, a third of them drawn; 400 unless given. A search tries whole
    /// populations, at least one.
    #[arg(long, value_name = "N", requires = "against", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub tries: Option<u32>,
    /// Number of conditions to find, each by a search of its own; 3 unless given.
    #[arg(long, value_name = "N", requires = "against", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub find: Option<u32>,
}

/// The leaderboard, the adversary, or conditions as files.
pub fn rank(catalogue: &Arc<Catalogue>, args: &RankArgs) -> Result<(), Failure> {
    if let Some(number) = args.show {
        return output::print(&Condition::drawn(args.size().0, number).toml());
    }
    if let Some(target) = &args.against {
        return against(catalogue, args, target);
    }
    if let Some(directory) = &args.write {
        return match args.runs_something() {
            None => write(&conditions(args)?, directory),
            Some(option) => {
                let help = "accepted: --write alone, or with --against, whose findings it then writes";
                Err(Failure::Refused(miette::miette!(
                    help = help,
                    "--write only writes conditions, and {option} needs runs"
                )))
            }
        };
    }
    board(catalogue, args)
}

impl RankArgs {
    /// Seed and number of the conditions, and seeds in each.
    fn size(&self) -> (u64, u32, usize) {
        let (seed, count, repeat) = match self.frozen {
            Some(_) => (FROZEN.0, FROZEN.1, 20),
            None => (self.seed.unwrap_or(1), self.count.unwrap_or(100), 4),
        };
        (seed, count, self.repeat.map_or(repeat, |repeat| repeat as usize))
    }

    /// Number of drives.
    fn number_of_drives(&self) -> u32 {
        match self.frozen {
            Some(_) => FROZEN_DRIVES,
            None => self.drives.unwrap_or(self.size().1 / 4),
        }
    }

    /// Number of recorded drives, where there are recordings.
    fn number_of_recorded(&self) -> u32 {
        match self.number_of_drives() {
            0 => (self.size().1 / 4).max(1),
            drives => drives,
        }
    }

    /// The first option given that only runs have a use for.
    fn runs_something(&self) -> Option<&'static str> {
        let given = [
            ("--schedulers", self.schedulers.is_some()),
            ("--repeat", self.repeat.is_some()),
            ("--set", !self.overrides.sets().is_empty()),
            ("--out", self.out.is_some()),
            ("--json", self.results.json),
            ("--csv", self.results.csv.is_some()),
            ("--parquet", self.results.parquet.is_some()),
            ("--report", self.results.report.is_some()),
            ("--worst", self.worst.is_some()),
        ];
        given.into_iter().find_map(|(option, given)| given.then_some(option))
    }

    fn schedulers(&self) -> Vec<String> {
        self.schedulers.as_deref().map(split_policies).unwrap_or_default()
    }
}

fn conditions(args: &RankArgs) -> Result<Vec<Condition>, Failure> {
    let (seed, count, _) = args.size();
    let drives = u64::from(args.number_of_drives());
    let drawn = (0..u64::from(count)).map(|number| Condition::drawn(seed, number));
    let mut all: Vec<Condition> = drawn.chain((0..drives).map(|number| Condition::drive(seed, number))).collect();
    if let Some(folder) = &args.recordings {
        let refused = |problem: String, help: Option<String>| ScenarioError::plain(problem, help);
        let held = Drives::read(folder, WINDOW).map_err(|error| refused(error.to_string(), error.help.clone()))?;
        for number in 0..u64::from(args.number_of_recorded()) {
            let condition = Condition::recorded(&held, seed, number).ok_or_else(|| {
                let problem = format!("in the recordings of {} one of two paths carries nothing", folder.display());
                refused(problem, Some("accepted: recordings in which two carry data in the same minute".to_owned()))
            })?;
            all.push(condition);
        }
    }
    Ok(all)
}

fn write(conditions: &[Condition], directory: &Path) -> Result<(), Failure> {
    output::check_directory(directory)?;
    for condition in conditions {
        output::write(&directory.join(condition.file()), condition.toml().as_bytes())?;
        for (name, text) in condition.traces() {
            output::write(&directory.join(name), text.as_bytes())?;
        }
    }
    Ok(())
}

fn board(catalogue: &Arc<Catalogue>, args: &RankArgs) -> Result<(), Failure> {
    if args.schedulers().iter().any(|name| name == TCP) {
        let help = "plain TCP on each path runs anyway; `rank --against NAME --schedulers tcp` searches for conditions \
                    in which a scheduler loses to it";
        return Err(Failure::Refused(miette::miette!(help = help, "--schedulers tcp: plain TCP is no scheduler")));
    }
    let (seed, count, repeat) = args.size();
    let league = League::new(
        catalogue,
        conditions(args)?,
        &args.schedulers(),
        Baselines::All,
        (1, repeat),
        &args.overrides.sets_of_several("rank")?,
    )?
    .contested()?;
    if let Some(name) = args.worst.as_ref().filter(|name| league.schedulers().iter().all(|it| it.name != **name)) {
        let names: Vec<&str> = league.schedulers().iter().map(|it| it.name.as_str()).collect();
        let help = format!("accepted: {}", names.join(", "));
        return Err(Failure::Refused(miette::miette!(help = help, "--worst {name}: this scheduler is not ranked")));
    }
    // Before the runs rather than after them.
    let store = args.out.as_deref().map(|directory| output::keep(directory, &league.manifest(&output::command_line())));
    let store = store.transpose()?;
    let jobs = output::threads(args.jobs, league.len() * league.schedulers().len());
    let bar = output::progress_of(league.len(), "conditions");
    let fields = league.run(store.as_ref(), jobs, &|| bar.inc(1));
    bar.finish_and_clear();
    let fields = fields.map_err(Failure::rank)?;

    let sheet = Sheet::of_fields(&fields, league.schedulers());
    if let Some(path) = &args.results.csv {
        output::write(path, &sheet.csv().map_err(|error| Failure::writing("CSV", error))?)?;
    }
    if let Some(path) = &args.results.parquet {
        output::write(path, &sheet.parquet().map_err(|error| Failure::writing("Parquet", error))?)?;
    }
    // Without conditions there is nothing to say; clap asks for one at least.
    let Some(mut board) = Leaderboard::of(&league, &fields) else { return Ok(()) };
    let listed = |it: &&mut Standing| args.worst.as_ref().is_none_or(|name| it.scheduler.name == *name);
    if let Some(standing) = board.standings.iter_mut().find(listed) {
        explain(catalogue, &league, &fields, standing, jobs);
    }
    if let Some(path) = &args.results.report {
        let title = format!("Conditions 0 to {} of seed {seed}", count - 1);
        let made = Page::of_leaderboard(&board, &title, &version_with_build(), &output::command_line());
        output::write(path, page(&made).as_bytes())?;
    }
    if args.results.json {
        return output::print(&output::json(&LEADERBOARD, &Drawn { seed, count, board: &board })?);
    }
    let made = format!(
        "anabranch {}: {} schedulers over conditions 0 to {} of seed {seed}",
        version_with_build(),
        board.standings.len(),
        count - 1
    );
    output::print(&anabranch_report::leaderboard(&board, &made, args.worst.as_deref(), output::width()))
}

/// Says of the conditions that are listed as slower than plain TCP where the time of the first seed goes; a run that
/// breaks has no cause to tell.
fn explain(catalogue: &Arc<Catalogue>, league: &League, fields: &[Field], standing: &mut Standing, jobs: usize) {
    let bar = output::progress_of(standing.slower.len().min(LISTED), "causes");
    let scheduler = &standing.scheduler.name;
    for it in standing.slower.iter_mut().take(LISTED) {
        it.cause = cause(catalogue, league, fields, scheduler, &it.condition, jobs);
        bar.inc(1);
    }
    bar.finish_and_clear();
}

/// Returns the sentence of `why` about the run of a scheduler in a condition.
fn cause(
    catalogue: &Arc<Catalogue>,
    league: &League,
    fields: &[Field],
    scheduler: &str,
    condition: &str,
    jobs: usize,
) -> Option<String> {
    let field = fields.iter().find(|field| field.condition.name() == condition)?;
    let scenario = field.condition.scenario(catalogue, league.sets()).ok()?.with_scheduler(scheduler).ok()?;
    let load = |more: &[String]| {
        let sets: Vec<String> = scenario.origin.sets.iter().chain(more).cloned().collect();
        field.condition.scenario(catalogue, &sets)
    };
    let alternatives = Alternatives::of(&scenario, catalogue, &Others::default(), &load);
    let seed = field.trials.seeds.first().copied().unwrap_or(1);
    Some(Inquiry::brief(&scenario, alternatives, seed).run(jobs, &load, &|_, _| {}).ok()?.sentence)
}

/// A leaderboard with what its conditions are drawn from.
#[derive(Serialize, JsonSchema)]
pub struct Drawn<'a> {
    seed: u64,
    count: u32,
    #[serde(flatten)]
    board: &'a Leaderboard,
}

fn against(catalogue: &Arc<Catalogue>, args: &RankArgs, target: &str) -> Result<(), Failure> {
    let others = match args.schedulers() {
        named if named.is_empty() => {
            let all = catalogue.schedulers.names().map(str::to_owned);
            all.filter(|name| name != target && name != "single" && !anabranch_study::rank::ORACLES.contains(&&**name))
                .collect()
        }
        named => named,
    };
    let (seed, _, repeat) = args.size();
    let hunt = Hunt {
        target: target.to_owned(),
        others,
        seed,
        tries: args.tries.unwrap_or(400) as usize,
        wanted: args.find.unwrap_or(3) as usize,
        repeat,
        sets: args.overrides.sets_of_several("rank")?,
    };
    if let Some(directory) = &args.write {
        output::check_directory(directory)?;
    }
    let store = args.out.as_deref().map(|directory| output::keep(directory, &hunt.manifest(&output::command_line())));
    let store = store.transpose()?;
    let jobs = output::threads(args.jobs, hunt.tries * (1 + hunt.others.len()));
    let bar = output::progress_of(hunt.tries, "conditions");
    let finds = hunt.run(catalogue, store.as_ref(), jobs, &|| bar.inc(1));
    bar.finish_and_clear();
    let finds = finds.map_err(Failure::rank)?;
    if let Some(directory) = &args.write {
        write(&finds.iter().map(|find| find.condition.clone()).collect::<Vec<_>>(), directory)?;
    }
    if args.results.json {
        return output::print(&output::json(&ADVERSARY, &Found::of(&hunt, &finds))?);
    }
    let made = format!(
        "anabranch {VERSION}: {} conditions tried against {target}, a third of them drawn from seed {seed}",
        finds.iter().map(|find| find.tries - 1).sum::<usize>() + hunt.drawn()
    );
    let written = args.write.as_ref().map(|directory| directory.to_string_lossy());
    output::print(&anabranch_report::hunt(&hunt, &finds, &made, written.as_deref(), output::width()))
}

/// Result of a hunt.
#[derive(Serialize, JsonSchema)]
pub struct Found<'a> {
    against: &'a str,
    others: &'a [String],
    seed: u64,
    repeat: usize,
    found: Vec<FoundOne<'a>>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Find")]
struct FoundOne<'a> {
    from: String,
    tries: usize,
    about: String,
    drawn: f64,
    seen: f64,
    #[serde(flatten)]
    verified: &'a anabranch_study::rank::Verified,
    scenario: String,
    traces: Vec<String>,
}

impl<'a> Found<'a> {
    fn of(hunt: &'a Hunt, finds: &'a [Find]) -> Found<'a> {
        let one = |it: &'a Find| FoundOne {
            from: Condition::drawn(hunt.seed, it.from).name(),
            tries: it.tries,
            about: it.condition.about(),
            drawn: it.drawn,
            seen: it.seen,
            verified: &it.verified,
            scenario: it.condition.toml(),
            traces: it.condition.traces().into_iter().map(|(name, _)| name).collect(),
        };
        Found {
            against: &hunt.target,
            others: &hunt.others,
            seed: hunt.seed,
            repeat: hunt.repeat,
            found: finds.iter().map(one).collect(),
        }
    }
}

impl Failure {
    /// A leaderboard that could not be made.
    fn rank(error: RankError) -> Self {
        match error {
            RankError::Refused(error) => error.into(),
            RankError::Run(error) => error.into(),
            RankError::Store(error) => Failure::store(error),
        }
    }
}
