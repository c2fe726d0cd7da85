//! Tables: a row for each moment.

use crate::clock;
use crate::error::RecordingError;
use crate::heading::{Meaning, meaning, words};
use crate::options::{Column, Options, RateUnit, TimeUnit};
use crate::rows::{Amount, Loss, Row, Rows};
use anabranch_units::{Bytes, Duration, Rate};

/// A record with its line.
struct Record {
    line: usize,
    fields: Vec<String>,
}

/// The columns that are read, by index.
#[derive(Default)]
struct Chosen {
    time: Option<usize>,
    rate: Option<usize>,
    delay: Option<usize>,
    loss: Option<usize>,
    /// Only rows that have this text in this column.
    only: Option<(usize, String)>,
}

/// A column with its rows. Without a header its name is its number, which has no meaning.
struct Series<'a> {
    records: &'a [Record],
    column: usize,
    name: String,
    meaning: Meaning,
    has_header: bool,
}

/// Reads a table.
pub(crate) fn read(text: &str, options: &Options) -> Result<Rows, RecordingError> {
    let mut records = records(text)?;
    let Some(first) = records.first() else { return Err(crate::error::unknown(text)) };
    let names = match first.fields.iter().any(|field| is_value(field)) {
        true => None,
        false => Some(records.remove(0).fields),
    };
    if records.is_empty() {
        return Err(RecordingError::plain("there is a header and no row"));
    }
    let chosen = choose(names.as_deref(), &records, options)?;
    let name = |index: usize| match &names {
        Some(names) if index < names.len() => names[index].clone(),
        _ => (index + 1).to_string(),
    };
    if let Some((column, of)) = &chosen.only {
        records.retain(|record| record.fields.get(*column) == Some(of));
    }
    let mut rows = Rows::default();
    times(&records, &chosen, options, &name, &mut rows)?;
    let series = |column: usize| {
        let name = name(column);
        Series { records: &records, column, meaning: meaning(&name), name, has_header: names.is_some() }
    };
    if let Some(column) = chosen.rate {
        rates(&series(column), options, &mut rows)?;
    }
    if let Some(column) = chosen.delay {
        delays(&series(column), options, &mut rows)?;
    }
    if let Some(column) = chosen.loss {
        losses(&series(column), &mut rows)?;
    }
    let says = |row: &Row| row.rate.is_some() || row.delay.is_some() || row.loss.is_some();
    if !rows.rows.iter().any(says) {
        return Err(RecordingError::plain("no row has a value"));
    }
    Ok(rows)
}

/// Splits a text into records, at the character that splits its first lines into most fields of equal number.
fn records(text: &str) -> Result<Vec<Record>, RecordingError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let is_content = |line: &&str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
    let first: Vec<&str> = text.lines().filter(is_content).take(20).collect();
    let fields = |delimiter: char| first.iter().map(|line| line.matches(delimiter).count()).min().unwrap_or(0);
    // In this order: a semicolon beats the decimal commas of its fields.
    let best = [';', '\t', '|', ','].into_iter().filter(|d| fields(*d) > 0).max_by_key(|d| (fields(*d), *d == ';'));
    let Some(delimiter) = best else {
        let split = |(line, content): (usize, &str)| Record {
            line,
            fields: content.split_whitespace().map(str::to_owned).collect(),
        };
        return Ok((1..).zip(text.lines()).filter(|(_, line)| is_content(line)).map(split).collect());
    };
    let mut reader = csv::ReaderBuilder::new();
    reader.has_headers(false).flexible(true).comment(Some(b'#')).trim(csv::Trim::All);
    reader.delimiter(u8::try_from(delimiter).unwrap_or(b','));
    let mut records = Vec::new();
    for record in reader.from_reader(text.as_bytes()).records() {
        let record = record.map_err(|error| {
            let line = error.position().map(|at| usize::try_from(at.line()).unwrap_or(usize::MAX));
            RecordingError { line, ..RecordingError::plain(error.to_string()) }
        })?;
        let line = record.position().map_or(0, |at| usize::try_from(at.line()).unwrap_or(usize::MAX));
        let decimal_commas = delimiter == ';';
        let field = |field: &str| match decimal_commas && field.matches(',').count() == 1 {
            true => field.replace(',', "."),
            false => field.to_owned(),
        };
        records.push(Record { line, fields: record.iter().map(field).collect() });
    }
    Ok(records)
}

/// Returns true for a number or a date: what a header does not have.
fn is_value(field: &str) -> bool {
    number(field).is_some() || clock::date(field).is_some()
}

fn number(field: &str) -> Option<f64> {
    field.trim().parse::<f64>().ok().filter(|number| number.is_finite())
}

fn choose(names: Option<&[String]>, records: &[Record], options: &Options) -> Result<Chosen, RecordingError> {
    let width = records.iter().take(100).map(|record| record.fields.len()).max().unwrap_or(0);
    let given = |key: &str, column: &Option<Column>| -> Result<Option<usize>, RecordingError> {
        let Some(column) = column else { return Ok(None) };
        let index = match (column, names) {
            (Column::Number(number), _) => number.checked_sub(1).filter(|index| *index < width),
            (Column::Name(name), Some(names)) => names.iter().position(|known| known == name),
            (Column::Name(_), None) => None,
        };
        index.map(Some).ok_or_else(|| {
            let accepted = match names {
                Some(names) => format!("accepted: 1 to {width}, or one of {}", names.join(", ")),
                None => format!("accepted: 1 to {width}; the table has no header"),
            };
            RecordingError::plain(format!("`{key}`: there is no column `{column}`")).help(accepted)
        })
    };
    let mut chosen = Chosen {
        time: given("time", &options.time)?,
        rate: given("rate", &options.rate)?,
        delay: given("delay", &options.delay)?,
        loss: given("loss", &options.loss)?,
        only: None,
    };
    let is_chosen = chosen.rate.is_some() || chosen.delay.is_some() || chosen.loss.is_some();
    let Some(names) = names else {
        if options.of.is_some() {
            return Err(RecordingError::plain("`of` chooses by the header, and the table has none")
                .help("accepted: the numbers of columns, such as rate = 2"));
        }
        return without_header(chosen, width, is_chosen, options);
    };
    let mut candidates: Vec<usize> = (0..names.len()).collect();
    if let Some(of) = &options.of {
        (candidates, chosen.only) = belonging(of, names, records)?;
    }
    let of_kind = |columns: &[usize], is: fn(&Meaning) -> bool| -> Vec<usize> {
        columns.iter().copied().filter(|index| is(&meaning(&names[*index]))).collect()
    };
    if chosen.time.is_none() && options.interval.is_none() {
        let is_time: fn(&Meaning) -> bool = |meaning| matches!(meaning, Meaning::Time(_));
        let all: Vec<usize> = (0..names.len()).collect();
        let found = of_kind(&candidates, is_time).first().copied().or_else(|| of_kind(&all, is_time).first().copied());
        chosen.time = Some(found.ok_or_else(|| {
            RecordingError::plain(format!("no column of {} is a time by its name", names.join(", ")))
                .help("accepted: `time` with its name, or `interval` between rows")
        })?);
    }
    if is_chosen {
        return Ok(chosen);
    }
    let one = |key: &str, is: fn(&Meaning) -> bool| -> Result<Option<usize>, RecordingError> {
        let found = of_kind(&candidates, is);
        let with_values: Vec<usize> = found.into_iter().filter(|index| has_values(records, *index)).collect();
        match with_values.as_slice() {
            [] => Ok(None),
            [only] => Ok(Some(*only)),
            several => {
                let held: Vec<&str> = several.iter().map(|index| names[*index].as_str()).collect();
                let help = format!("accepted: {key} = \"{}\", or `of` with what its name begins with", held[0]);
                Err(RecordingError::plain(format!("several columns are a {key} by their names: {}", held.join(", ")))
                    .help(help))
            }
        }
    };
    chosen.rate = one("rate", |meaning| matches!(meaning, Meaning::Rate(_)))?;
    chosen.delay = one("delay", |meaning| matches!(meaning, Meaning::Delay { .. }))?;
    chosen.loss = one("loss", |meaning| matches!(meaning, Meaning::Loss { .. }))?;
    if chosen.rate.is_none() && chosen.delay.is_none() && chosen.loss.is_none() {
        return Err(RecordingError::plain(format!(
            "no column of {} is a rate, delay or loss by its name",
            names.join(", ")
        ))
        .help("accepted: `rate`, `delay` or `loss` with the name or number of a column"));
    }
    Ok(chosen)
}

/// Without names, time and rate are the two columns of a table that has two, and the rate the only one beside
/// `interval`.
fn without_header(
    mut chosen: Chosen,
    width: usize,
    is_chosen: bool,
    options: &Options,
) -> Result<Chosen, RecordingError> {
    let timeless = options.interval.is_some() && options.time.is_none();
    if chosen.time.is_none() && !timeless {
        chosen.time = Some(0);
    }
    if !is_chosen {
        chosen.rate = match (width, timeless) {
            (2, false) => Some(1),
            (1, true) => Some(0),
            _ => {
                let columns = if width == 1 { "column" } else { "columns" };
                let problem = format!("the table has no header and {width} {columns}");
                let help =
                    "accepted: numbers of columns: time = 1, rate = 2; or `interval` between rows without a time";
                return Err(RecordingError::plain(problem).help(help));
            }
        };
    }
    Ok(chosen)
}

/// Columns of one operator, and the rows to keep.
type Belonging = (Vec<usize>, Option<(usize, String)>);

/// Returns the columns of one operator of several: those behind a column that names it in its rows (`A` is starlink, so
/// `A_time` and `A_throughput_mbps` are its own), or those that have its name in theirs.
fn belonging(of: &str, names: &[String], records: &[Record]) -> Result<Belonging, RecordingError> {
    let behind = |column: usize| -> Vec<usize> {
        let prefix = format!("{}_", names[column]);
        (0..names.len()).filter(|other| names[*other].starts_with(&prefix)).collect()
    };
    for column in 0..names.len() {
        let names_it = records.iter().any(|record| record.fields.get(column).is_some_and(|field| field == of));
        let own = behind(column);
        if names_it && !own.is_empty() {
            return Ok((own, Some((column, of.to_owned()))));
        }
    }
    let wanted = words(of);
    let own: Vec<usize> = (0..names.len())
        .filter(|column| words(&names[*column]).windows(wanted.len()).any(|part| part == wanted))
        .collect();
    if own.is_empty() {
        let mut known: Vec<&str> = Vec::new();
        for column in (0..names.len()).filter(|column| !behind(*column).is_empty()) {
            known.extend(records.iter().take(1000).filter_map(|record| record.fields.get(column)).map(String::as_str));
        }
        known.sort_unstable();
        known.dedup();
        let accepted = if known.is_empty() { names.join(", ") } else { known.join(", ") };
        return Err(RecordingError::plain(format!("`of`: nothing in the file belongs to `{of}`"))
            .help(format!("accepted: {accepted}")));
    }
    Ok((own, None))
}

fn has_values(records: &[Record], column: usize) -> bool {
    records.iter().take(1000).any(|record| record.fields.get(column).is_some_and(|field| number(field).is_some()))
}

/// Reads the time of each record, or counts intervals.
fn times(
    records: &[Record],
    chosen: &Chosen,
    options: &Options,
    name: &dyn Fn(usize) -> String,
    rows: &mut Rows,
) -> Result<(), RecordingError> {
    let Some(column) = chosen.time else {
        let interval = i64::try_from(options.interval.unwrap_or(Duration::from_secs(1)).as_nanos()).unwrap_or(i64::MAX);
        rows.rows = (0..)
            .zip(records)
            .map(|(index, record)| Row { line: record.line, at: interval.saturating_mul(index), ..Row::default() })
            .collect();
        return Ok(());
    };
    let name = name(column);
    let field = |record: &Record| record.fields.get(column).cloned().unwrap_or_default();
    let first = records.iter().map(field).find(|field| !field.is_empty()).unwrap_or_default();
    if let Some(date) = clock::date(&first) {
        rows.is_clock = true;
        if !date.has_zone {
            rows.remarks.push(format!("the dates of column `{name}` have no zone and are taken as UTC"));
        }
        for record in records {
            let at = clock::date(&field(record)).ok_or_else(|| {
                RecordingError::at(record.line, format!("`{}` is no date", field(record)))
                    .within(&name)
                    .help("accepted: dates as in the rows before, such as 2023-04-12 10:40:20 CDT")
            })?;
            rows.rows.push(Row { line: record.line, at: at.nanos, ..Row::default() });
        }
        return Ok(());
    }
    let named = match meaning(&name) {
        Meaning::Time(unit) => unit,
        _ => None,
    };
    let (unit, is_clock) = unit_of_times(number(&first).unwrap_or(0.0), options.time_unit, named);
    rows.is_clock = is_clock;
    for record in records {
        let at = clock::decimal(&field(record), unit.nanos()).ok_or_else(|| {
            RecordingError::at(record.line, format!("`{}` is no time", field(record)))
                .within(&name)
                .help("accepted: numbers, or dates such as 2023-04-12 10:40:20 CDT, all of one kind")
        })?;
        rows.rows.push(Row { line: record.line, at, ..Row::default() });
    }
    let mut steps: Vec<i64> =
        rows.rows.windows(2).map(|two| two[1].at.saturating_sub(two[0].at).saturating_abs()).collect();
    steps.sort_unstable();
    let usual = steps.get(steps.len() / 2).copied().unwrap_or(0);
    if options.time_unit.is_none() && named.is_none() && !is_clock && usual > 60_000_000_000 {
        let problem = format!("the rows are {} s apart if column `{name}` is in seconds", usual / 1_000_000_000);
        return Err(RecordingError::plain(problem).help("accepted: time-unit = \"ms\" or another; \"s\" if it is so"));
    }
    Ok(())
}

/// Returns the unit of times, and whether they count from 1970. Without a word, the size of the first one tells: a
/// second of this century has ten digits, a millisecond thirteen, and so on.
fn unit_of_times(first: f64, given: Option<TimeUnit>, named: Option<TimeUnit>) -> (TimeUnit, bool) {
    const LEAST: f64 = 3e8;
    let by_size = [
        (LEAST * 1e9, TimeUnit::Nanoseconds),
        (LEAST * 1e6, TimeUnit::Microseconds),
        (LEAST * 1e3, TimeUnit::Milliseconds),
        (LEAST, TimeUnit::Seconds),
    ];
    let of_epoch = by_size.into_iter().find(|(least, _)| first >= *least).map(|(_, unit)| unit);
    match given.or(named) {
        Some(unit) => (unit, of_epoch == Some(unit)),
        None => (of_epoch.unwrap_or(TimeUnit::Seconds), of_epoch.is_some()),
    }
}

/// Reads a value that may be missing: an empty field, or a word for none.
fn value(record: &Record, column: usize, name: &str) -> Result<Option<f64>, RecordingError> {
    let field = record.fields.get(column).map_or("", |field| field.trim());
    if is_missing(field) {
        return Ok(None);
    }
    number(field).map(Some).ok_or_else(|| {
        RecordingError::at(record.line, format!("`{field}` is no number"))
            .within(name)
            .help("accepted: a number, or an empty field for a missing one")
    })
}

fn is_missing(field: &str) -> bool {
    field.is_empty() || ["nan", "na", "n/a", "null", "none", "-"].contains(&field.to_ascii_lowercase().as_str())
}

/// Reads rates into the rows.
fn rates(it: &Series<'_>, options: &Options, rows: &mut Rows) -> Result<(), RecordingError> {
    let &Series { records, column, ref name, meaning, .. } = it;
    let mut values = Vec::with_capacity(records.len());
    for record in records {
        let value = value(record, column, name)?;
        if value.is_some_and(|value| value < 0.0) {
            let problem = format!("`{}` is less than nothing", record.fields[column]);
            return Err(RecordingError::at(record.line, problem).within(name).help("accepted: rates from zero on"));
        }
        values.push(value);
    }
    let named = match meaning {
        Meaning::Rate(unit) => unit,
        _ => None,
    };
    let unit = match options.rate_unit.or(named) {
        Some(unit) => unit,
        None => guessed(&values, name, it.has_header, &mut rows.remarks)?,
    };
    for (row, value) in rows.rows.iter_mut().zip(values) {
        row.rate = value.map(|value| match unit {
            RateUnit::PerSecond(bits) => Amount::Rate(Rate::from_bps((value * bits as f64).round() as u64)),
            RateUnit::BytesPerInterval => Amount::Bytes(Bytes::new(value.round() as u64)),
        });
    }
    Ok(())
}

/// A rate without a unit: large whole numbers without a header are bytes until the next row, and small ones under a
/// header are Mbit/s. All else has to be said.
fn guessed(
    values: &[Option<f64>],
    name: &str,
    has_header: bool,
    remarks: &mut Vec<String>,
) -> Result<RateUnit, RecordingError> {
    let mut known: Vec<f64> = values.iter().flatten().copied().collect();
    known.sort_by(f64::total_cmp);
    let median = known.get(known.len() / 2).copied().unwrap_or(0.0);
    let is_whole = known.iter().all(|value| value.fract() == 0.0);
    let (unit, shown) = if !has_header && is_whole && median >= 10_000.0 {
        (RateUnit::BytesPerInterval, "bytes until the next row")
    } else if has_header && median < 10_000.0 {
        (RateUnit::PerSecond(1_000_000), "Mbit/s")
    } else {
        let accepted: Vec<&str> = RateUnit::names().collect();
        let problem = format!("the rate has no unit, and may be anything with a median of {median}");
        return Err(RecordingError::plain(problem).within(name).help(format!(
            "accepted: rate-unit = one of {} (bit to gbit are per second, B is bytes until the next row)",
            accepted.join(", ")
        )));
    };
    remarks.push(format!("column `{name}` has no unit and is taken as {shown}; `rate-unit` says otherwise"));
    Ok(unit)
}

/// Reads delays into the rows, and probes without an answer.
fn delays(it: &Series<'_>, options: &Options, rows: &mut Rows) -> Result<(), RecordingError> {
    let &Series { records, column, ref name, meaning, .. } = it;
    let (round_trip, named) = match meaning {
        Meaning::Delay { round_trip, unit } => (round_trip, unit),
        _ => (false, None),
    };
    let unit = options.delay_unit.or(named).unwrap_or_else(|| {
        rows.remarks.push(format!("column `{name}` has no unit and is taken as ms; `delay-unit` says otherwise"));
        TimeUnit::Milliseconds
    });
    rows.remarks.push(match round_trip {
        true => format!("column `{name}` is a round trip: each direction has half of it"),
        false => format!("column `{name}` is the delay of one direction"),
    });
    let is_lost = |field: &str| ["*", "timeout", "lost", "inf"].contains(&field.to_ascii_lowercase().as_str());
    let mut lost = vec![false; records.len()];
    for (index, (row, record)) in rows.rows.iter_mut().zip(records).enumerate() {
        let field = record.fields.get(column).map_or("", |field| field.trim());
        let value = if is_lost(field) { Some(-1.0) } else { value(record, column, name)? };
        match value {
            Some(value) if value <= 0.0 => lost[index] = true,
            Some(value) => {
                let one_way = if round_trip { value / 2.0 } else { value };
                row.delay = Some(Duration::from_secs_f64(one_way * f64::from(unit.nanos()) / 1e9));
            }
            None => {}
        }
    }
    let probes = lost.iter().filter(|lost| **lost).count();
    if probes > 0 {
        rows.remarks.push(format!("{probes} probes in column `{name}` have no answer and count as lost"));
        for (row, is_lost) in rows.rows.iter_mut().zip(lost) {
            row.loss = Some(Loss::Probe { is_lost });
        }
    }
    Ok(())
}

/// Reads losses into the rows.
fn losses(it: &Series<'_>, rows: &mut Rows) -> Result<(), RecordingError> {
    let &Series { records, column, ref name, meaning, .. } = it;
    let mut values = Vec::with_capacity(records.len());
    for record in records {
        values.push(value(record, column, name)?);
    }
    let most = values.iter().flatten().copied().fold(0.0, f64::max);
    let percent = matches!(meaning, Meaning::Loss { percent: true }) || most > 1.0;
    let whole = if percent { 100.0 } else { 1.0 };
    rows.remarks.push(format!("column `{name}` is {}", if percent { "a percentage" } else { "a share from 0 to 1" }));
    for (record, (row, value)) in records.iter().zip(rows.rows.iter_mut().zip(values)) {
        let Some(value) = value else { continue };
        if !(0.0..=whole).contains(&value) {
            return Err(RecordingError::at(record.line, format!("`{value}` is no loss"))
                .within(name)
                .help(format!("accepted: 0 to {whole}")));
        }
        row.loss = Some(Loss::Share(value / whole));
    }
    Ok(())
}
