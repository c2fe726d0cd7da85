//! Rows: one run of a campaign each, and the columns.

use anabranch_lab::Measured;
use anabranch_lab::statistic::{Cell, Kind};
use anabranch_scenario::Scenario;
use anabranch_scenario::file::MeasureName;
use sha2::{Digest, Sha256};

/// Run of a campaign.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Number of the condition.
    pub condition: u64,
    /// Scenario of the condition, by name.
    pub scenario: String,
    /// SHA-256 of the condition's content.
    pub digest: String,
    /// Value on each axis.
    pub axes: Vec<Cell>,
    /// Part that the run has in the comparison.
    pub role: Role,
    /// Name of the system or of the path.
    pub name: String,
    /// Seed of the run.
    pub seed: u64,
    /// Numbers of the run, or the reason why there are none.
    pub result: Result<Numbers, String>,
    /// Command that repeats the run.
    pub command: String,
}

/// Part that a run has in a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// System that is compared.
    System,
    /// Baseline: plain TCP on one path.
    SinglePath,
    /// Baseline: the scenario's own policies on one path, with the others as backups.
    Backups,
}

impl Role {
    const ALL: [Role; 3] = [Role::System, Role::SinglePath, Role::Backups];

    /// Returns its word in the column `kind`.
    fn word(self) -> &'static str {
        match self {
            Role::System => "system",
            Role::SinglePath => "single-path",
            Role::Backups => "backups",
        }
    }
}

/// Numbers of a completed run.
#[derive(Clone, Debug, PartialEq)]
pub struct Numbers {
    /// Numbers that rank.
    pub trial: Trial,
    /// Metrics that the campaign asks for, in its order.
    pub metrics: Vec<Option<f64>>,
}

/// Numbers of a run that rank it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trial {
    /// Seed of the run.
    pub seed: u64,
    /// Time \[s\]: completion time or page load time; for a run that did not finish the time at which it was stopped;
    /// for goodput the time that 10 MB would take.
    pub time_s: f64,
    /// True if all transfers completed.
    pub finished: bool,
    /// Payload bytes sent for the first time.
    pub bytes: u64,
    /// Bytes sent again on another subflow.
    pub repeated: u64,
    /// Bytes that the receiver got more than once.
    pub duplicates: u64,
}

/// Bits in the 10 MB whose time stands for goodput.
const GOODPUT_BITS: f64 = 80e6;
/// Minimum goodput \[bit/s\], so that the time is finite.
const LEAST_GOODPUT: f64 = 1e3;
/// Minimum time \[s\], so that its logarithm is finite.
const LEAST_TIME: f64 = 1e-6;

impl Trial {
    /// Columns of its numbers.
    pub const COLUMNS: [(&str, Kind); 5] = [
        ("time_s", Kind::Number),
        ("finished", Kind::Flag),
        ("bytes", Kind::Count),
        ("repeated_bytes", Kind::Count),
        ("duplicate_bytes", Kind::Count),
    ];

    /// Returns its cells in these columns.
    pub fn cells(&self) -> [Cell; 5] {
        let [bytes, repeated, duplicates] = [self.bytes, self.repeated, self.duplicates].map(Cell::Count);
        [Cell::Number(self.time_s), Cell::Flag(self.finished), bytes, repeated, duplicates]
    }

    /// Returns the numbers that rank a run of this scenario.
    pub(crate) fn of(scenario: &Scenario, measured: &Measured) -> Trial {
        let value = measured.value(scenario.measure);
        let time_s = match scenario.measure {
            MeasureName::Goodput => GOODPUT_BITS / value.max(LEAST_GOODPUT),
            // Without a time, no transfer was reported until the end of the run.
            _ if measured.finished && !value.is_nan() => value.max(LEAST_TIME),
            _ => scenario.stop().as_secs_f64(),
        };
        Trial {
            seed: measured.seed,
            time_s,
            finished: measured.finished,
            bytes: measured.path_bytes.iter().sum(),
            repeated: measured.counted.count("reinjected_bytes"),
            duplicates: measured.counted.count("duplicate_bytes"),
        }
    }
}

/// Columns of a campaign.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Layout {
    /// Version of the program that makes or made the runs.
    pub version: String,
    /// Build of that program.
    pub build: String,
    /// Name and kind of each axis.
    pub axes: Vec<(String, Kind)>,
    /// Metrics with their arguments.
    pub metrics: Vec<String>,
}

/// Columns in front of the axes.
const BEFORE: [(&str, Kind); 5] = [
    ("version", Kind::Text),
    ("build", Kind::Text),
    ("condition", Kind::Count),
    ("scenario", Kind::Text),
    ("digest", Kind::Text),
];
/// Columns between the axes and the numbers that rank.
const BETWEEN: [(&str, Kind); 4] =
    [("kind", Kind::Text), ("name", Kind::Text), ("seed", Kind::Count), ("problem", Kind::Text)];
/// Columns behind the metrics.
const AFTER: [(&str, Kind); 1] = [("command", Kind::Text)];

impl Layout {
    /// Returns the names and kinds of all columns, in order.
    pub fn columns(&self) -> Vec<(String, Kind)> {
        let fixed =
            |all: &[(&str, Kind)]| all.iter().map(|(name, kind)| ((*name).to_owned(), *kind)).collect::<Vec<_>>();
        let metrics = self.metrics.iter().map(|name| (name.clone(), Kind::Number)).collect();
        [fixed(&BEFORE), self.axes.clone(), fixed(&BETWEEN), fixed(&Trial::COLUMNS), metrics, fixed(&AFTER)].concat()
    }

    /// Returns true if every campaign has a column of this name.
    pub(super) fn has(name: &str) -> bool {
        BEFORE.iter().chain(&BETWEEN).chain(&Trial::COLUMNS).chain(&AFTER).any(|(other, _)| *other == name)
    }
}

impl Row {
    /// Returns its cells, in the order of [`Layout::columns`].
    pub fn cells(&self, layout: &Layout) -> Vec<Cell> {
        let text = |text: &str| Cell::Text(text.to_owned());
        let mut cells = vec![text(&layout.version), text(&layout.build), Cell::Count(self.condition)];
        cells.extend([text(&self.scenario), text(&self.digest)]);
        cells.extend(self.axes.iter().cloned());
        cells.extend([text(self.role.word()), text(&self.name), Cell::Count(self.seed)]);
        match &self.result {
            Ok(Numbers { trial, metrics }) => {
                cells.push(Cell::Empty);
                cells.extend(trial.cells());
                cells.extend(metrics.iter().map(|metric| Cell::number(*metric)));
            }
            Err(problem) => {
                cells.push(text(problem));
                cells.extend(vec![Cell::Empty; Trial::COLUMNS.len() + layout.metrics.len()]);
            }
        }
        cells.push(text(&self.command));
        cells
    }

    /// Parses the row of these cells; `None` if they are not those of a row.
    pub(super) fn of_cells(cells: Vec<Cell>, axes: usize) -> Option<Row> {
        let mut cells = cells.into_iter().skip(2);
        let condition = count(cells.next())?;
        let (scenario, digest) = (text(cells.next())?, text(cells.next())?);
        let of_axes: Vec<Cell> = cells.by_ref().take(axes).collect();
        let kind = text(cells.next())?;
        let role = Role::ALL.into_iter().find(|role| role.word() == kind)?;
        let (name, seed, problem) = (text(cells.next())?, count(cells.next())?, text(cells.next()));
        let time_s = number(cells.next());
        let finished = matches!(cells.next(), Some(Cell::Flag(true)));
        let [bytes, repeated, duplicates] = [(); 3].map(|()| count(cells.next()));
        let mut rest: Vec<Cell> = cells.collect();
        let command = text(rest.pop())?;
        let result = match problem {
            Some(problem) => Err(problem),
            None => Ok(Numbers {
                trial: Trial {
                    seed,
                    time_s: time_s?,
                    finished,
                    bytes: bytes?,
                    repeated: repeated?,
                    duplicates: duplicates?,
                },
                metrics: rest.into_iter().map(|cell| number(Some(cell))).collect(),
            }),
        };
        Some(Row { condition, scenario, digest, axes: of_axes, role, name, seed, result, command })
    }
}

fn count(cell: Option<Cell>) -> Option<u64> {
    if let Some(Cell::Count(count)) = cell { Some(count) } else { None }
}

fn number(cell: Option<Cell>) -> Option<f64> {
    if let Some(Cell::Number(number)) = cell { Some(number) } else { None }
}

fn text(cell: Option<Cell>) -> Option<String> {
    if let Some(Cell::Text(text)) = cell { Some(text) } else { None }
}

/// SHA-256 over cells in the order in which they are added.
#[derive(Clone, Default)]
pub struct RowDigest(Sha256);

impl RowDigest {
    /// Adds a row.
    pub fn add(&mut self, cells: &[Cell]) {
        for cell in cells {
            // Exact to the bit, and with the kind in front: an empty text differs from a missing one.
            match cell {
                Cell::Empty => self.0.update([0]),
                Cell::Flag(flag) => self.0.update([1, u8::from(*flag)]),
                Cell::Count(count) => self.0.update([[2].as_slice(), &count.to_le_bytes()].concat()),
                Cell::Number(number) => self.0.update([[3].as_slice(), &number.to_bits().to_le_bytes()].concat()),
                Cell::Text(text) => {
                    self.0.update([[4].as_slice(), &(text.len() as u64).to_le_bytes(), text.as_bytes()].concat());
                }
            }
        }
    }

    /// Returns the digest of all cells added.
    pub fn finish(self) -> String {
        anabranch_units::hex(&self.0.finalize())
    }
}
