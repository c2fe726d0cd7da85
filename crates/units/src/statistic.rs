//! Descriptions of statistics: every output that shows one is made from its description.
//!
//! Each field of a struct that holds values has its description beside it ([`statistics!`](crate::statistics)), and the
//! descriptions are a table. JSON, CSV, Parquet, tables, Prometheus, the checks of scripts and the metrics of studies
//! iterate over such tables; none of them names a statistic itself.

mod declare;

use crate::{Bytes, Duration, Instant, SubflowId};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// A statistic that `S` holds in one of its fields.
pub struct Statistic<S: 'static> {
    /// Name in kebab-case.
    pub name: &'static str,
    /// Meaning, in a few words that begin in lower case.
    pub about: &'static str,
    /// Unit of its numbers.
    pub unit: Unit,
    /// Kind, which says how values are merged.
    pub kind: Kind,
    /// End of a connection whose value describes a transfer.
    pub end: End,
    /// Heading of its column in text tables; a statistic without one is not in them.
    pub heading: Option<&'static str>,
    column: Option<&'static str>,
    metric: Option<&'static str>,
    access: Access<S>,
}

/// The unit of a statistic.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// A count of events, or no number at all.
    None,
    /// Bytes.
    Bytes,
    /// Segments of TCP.
    Segments,
    /// Packets.
    Packets,
    /// Seconds.
    Seconds,
}

impl Unit {
    /// Symbol of the unit in tables; empty for a count of events.
    pub const fn symbol(self) -> &'static str {
        match self {
            Unit::None => "",
            Unit::Bytes => "B",
            Unit::Segments => "segments",
            Unit::Packets => "packets",
            Unit::Seconds => "s",
        }
    }
}

/// The kind of a statistic.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Counts from 0 since its owner was made. Merged by adding.
    Counter,
    /// A position in a stream, counted from its first byte. Merged by adding.
    Position,
    /// A level that rises and falls. Merged by adding.
    Gauge,
    /// The highest level so far. Merged by taking the highest.
    Peak,
    /// A state of its owner alone. Not merged.
    State,
}

/// An end of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// The host that sends the data.
    Sender,
    /// The host that receives the data.
    Receiver,
}

impl End {
    /// Returns the one of two things that belongs to this end.
    pub fn of<T>(self, sender: T, receiver: T) -> T {
        match self {
            End::Sender => sender,
            End::Receiver => receiver,
        }
    }
}

/// The value of a statistic. As JSON: null, true or false, a number (of seconds for a span), a text, or an object of
/// counts.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// No value.
    Absent,
    /// True or false.
    Flag(bool),
    /// A whole number.
    Count(u64),
    /// A span of time.
    #[serde(with = "seconds")]
    Span(Duration),
    /// A name or an address.
    Word(Cow<'static, str>),
    /// Counts by name.
    Counts(BTreeMap<Cow<'static, str>, u64>),
}

/// Access to a field of `S`.
pub enum Access<S: 'static> {
    /// A whole number.
    Count(fn(&S) -> u64, fn(&mut S) -> &mut u64),
    /// A span of time.
    Span(fn(&S) -> Duration, fn(&mut S) -> &mut Duration),
    /// Counts by name.
    Counts {
        /// Name of one count in flat output, in front of its own: `fallback` for `fallback-syn-ack`.
        each: &'static str,
        /// Meaning of the names: `reason`.
        label: &'static str,
        /// Reads them.
        get: fn(&S) -> BTreeMap<Cow<'static, str>, u64>,
        /// Changes each count of the first by the same count of the second.
        change: fn(&mut S, &S, Change),
    },
    /// Anything else.
    State(fn(&S) -> Value),
}

/// A change of one count by another.
pub type Change = fn(&mut u64, u64);

/// A state as a [`Value`].
pub trait Shown {
    /// Returns the value that outputs show.
    fn shown(&self) -> Value;
}

impl<S> Statistic<S> {
    /// A row without a meaning, which [`joined`](crate::table::joined) writes over.
    #[doc(hidden)]
    pub const FILLER: Self = Statistic::new("", Kind::State, Unit::None, "", Access::State(|_| Value::Absent));

    /// A statistic of the sender, with names that follow from its own.
    pub const fn new(name: &'static str, kind: Kind, unit: Unit, about: &'static str, access: Access<S>) -> Self {
        Statistic { name, about, unit, kind, end: End::Sender, heading: None, column: None, metric: None, access }
    }

    /// The same of the receiver.
    pub const fn of_receiver(self) -> Self {
        Statistic { end: End::Receiver, ..self }
    }

    /// The same with a column under this heading in text tables.
    pub const fn headed(self, heading: &'static str) -> Self {
        Statistic { heading: Some(heading), ..self }
    }

    /// The same with this column in results of runs.
    pub const fn in_column(self, column: &'static str) -> Self {
        Statistic { column: Some(column), ..self }
    }

    /// The same with this name in Prometheus.
    pub const fn as_metric(self, metric: &'static str) -> Self {
        Statistic { metric: Some(metric), ..self }
    }

    /// Name with underscores, for scripts.
    pub fn snake(&self) -> String {
        self.name.replace('-', "_")
    }

    /// Name in the JSON of a connection: seconds end in `_s`.
    pub fn key(&self) -> String {
        self.with_unit(&[(Unit::Seconds, "s")])
    }

    /// Name in results of runs: seconds end in `_s`, and bytes have the word in them.
    pub fn column(&self) -> String {
        let derived = || self.with_unit(&[(Unit::Seconds, "s"), (Unit::Bytes, "bytes")]);
        self.column.map_or_else(derived, str::to_owned)
    }

    /// Name in Prometheus, without prefix and `_total`: the unit is spelled out in it.
    pub fn metric(&self) -> String {
        let words = [
            (Unit::Seconds, "seconds"),
            (Unit::Bytes, "bytes"),
            (Unit::Segments, "segments"),
            (Unit::Packets, "packets"),
        ];
        self.metric.map_or_else(|| self.with_unit(&words), str::to_owned)
    }

    /// Name with underscores and, unless it stands in it already, the word of its unit.
    fn with_unit(&self, words: &[(Unit, &str)]) -> String {
        let name = self.snake();
        match words.iter().find(|(unit, _)| *unit == self.unit) {
            Some((_, word)) if !name.split('_').any(|part| part == *word) => format!("{name}_{word}"),
            _ => name,
        }
    }

    /// Label and prefix of its counts, if it is counts by name: `reason`, `fallback`.
    pub const fn counts(&self) -> Option<(&'static str, &'static str)> {
        match self.access {
            Access::Counts { each, label, .. } => Some((label, each)),
            _ => None,
        }
    }

    /// Its value in `owner`.
    pub fn value(&self, owner: &S) -> Value {
        match self.access {
            Access::Count(get, _) => Value::Count(get(owner)),
            Access::Span(get, _) => Value::Span(get(owner)),
            Access::Counts { get, .. } => Value::Counts(get(owner)),
            Access::State(get) => get(owner),
        }
    }

    /// Its value where there is nothing to merge.
    pub const fn zero(&self) -> Value {
        match self.access {
            Access::Count(..) => Value::Count(0),
            Access::Span(..) => Value::Span(Duration::ZERO),
            Access::Counts { .. } => Value::Counts(BTreeMap::new()),
            Access::State(_) => Value::Absent,
        }
    }

    /// Adds the counter of `other` to that of `sum`. Statistics of other kinds stay as they are.
    pub fn add(&self, sum: &mut S, other: &S) {
        self.change(sum, other, |count, other| *count += other, |span, other| *span += other);
    }

    /// Takes the counter of `before` from that of `now`. Statistics of other kinds stay as they are.
    pub fn subtract(&self, now: &mut S, before: &S) {
        let count = |count: &mut u64, before| *count = count.saturating_sub(before);
        let span = |span: &mut Duration, before| *span = span.saturating_sub(before);
        self.change(now, before, count, span);
    }

    fn change(&self, now: &mut S, other: &S, count: Change, span: fn(&mut Duration, Duration)) {
        match self.access {
            _ if self.kind != Kind::Counter => {}
            Access::Count(get, at) => count(at(now), get(other)),
            Access::Span(get, at) => span(at(now), get(other)),
            Access::Counts { change, .. } => change(now, other, count),
            Access::State(_) => {}
        }
    }
}

impl<S> Clone for Statistic<S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for Statistic<S> {}

impl<S> Clone for Access<S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for Access<S> {}

/// Implements [`Shown`] for a type, by a function from a reference.
macro_rules! shown {
    ($($type:ty: $value:expr;)+) => {$(
        impl Shown for $type {
            fn shown(&self) -> Value {
                let value: fn(&Self) -> Value = $value;
                value(self)
            }
        }
    )+};
}

shown! {
    bool: |flag| Value::Flag(*flag);
    u32: |count| Value::Count(u64::from(*count));
    u64: |count| Value::Count(*count);
    Bytes: |bytes| Value::Count(bytes.get());
    Duration: |span| Value::Span(*span);
    Instant: |at| Value::Span(at.since(Instant::ZERO));
    SubflowId: |id| Value::Count(u64::from(id.0));
    SocketAddr: |address| Value::Word(Cow::Owned(address.to_string()));
    &'static str: |word| Value::Word(Cow::Borrowed(word));
}

impl<T: Shown> Shown for Option<T> {
    fn shown(&self) -> Value {
        self.as_ref().map_or(Value::Absent, Shown::shown)
    }
}

impl Value {
    /// Merges another value of a statistic of this kind into it.
    fn merge(&mut self, kind: Kind, other: Value) {
        match (kind, self, other) {
            (Kind::State, ..) | (_, _, Value::Absent) => {}
            (_, all @ Value::Absent, other) => *all = other,
            (Kind::Peak, Value::Count(all), Value::Count(other)) => *all = (*all).max(other),
            (Kind::Peak, Value::Span(all), Value::Span(other)) => *all = (*all).max(other),
            (_, Value::Count(all), Value::Count(other)) => *all += other,
            (_, Value::Span(all), Value::Span(other)) => *all += other,
            (_, Value::Counts(all), Value::Counts(other)) => {
                other.into_iter().for_each(|(name, count)| *all.entry(name).or_default() += count);
            }
            (kind, all, other) => panic!("a {kind:?} merges values of one type, not {all:?} and {other:?}"),
        }
    }
}

/// The statistics of a table, merged over several owners.
pub struct Tally<'a, S: 'static> {
    table: &'a [Statistic<S>],
    values: Vec<Value>,
}

impl<S> Clone for Tally<'_, S> {
    fn clone(&self) -> Self {
        Tally { table: self.table, values: self.values.clone() }
    }
}

impl<'a, S> Tally<'a, S> {
    /// Over no owner yet.
    pub fn new(table: &'a [Statistic<S>]) -> Self {
        Tally { table, values: table.iter().map(Statistic::zero).collect() }
    }

    /// Merges the values of `owner` into it.
    pub fn add(&mut self, owner: &S) {
        for (statistic, value) in self.table.iter().zip(&mut self.values) {
            value.merge(statistic.kind, statistic.value(owner));
        }
    }

    /// Each statistic with its value so far.
    pub fn iter(&self) -> impl Iterator<Item = (&'a Statistic<S>, &Value)> {
        self.table.iter().zip(&self.values)
    }
}

/// Spans as JSON: numbers of seconds.
mod seconds {
    use crate::Duration;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(span: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(span.as_secs_f64())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        f64::deserialize(deserializer).map(|seconds| Duration::from_nanos((seconds * 1e9).round() as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    crate::statistics! {
        /// Owner of values.
        #[derive(Clone, Default)]
        pub struct Owner as |it: Owner| it => {
            /// Bytes sent.
            #[statistic("bytes-sent", Counter, Bytes, "bytes sent")]
            pub sent: u64,
            /// Values in a struct of their own.
            #[statistic(all of Levels::STATISTICS)]
            pub levels: Levels,
            /// Its name.
            #[statistic("name", State, None, "its name")]
            pub name: Option<&'static str>,
        }
    }

    crate::statistics! {
        /// Values within an owner.
        #[derive(Clone, Default)]
        pub struct Levels as |it: Owner| it.levels => {
            /// Time waited.
            #[statistic("wait", Counter, Seconds, "time waited")]
            pub waited: Duration,
            /// Most at once.
            #[statistic("most", Peak, Segments, "most at once", of_receiver, in_column("peak"))]
            pub most: u64,
        }
    }

    type Of = Statistic<Owner>;

    const TABLE: &[Of] = Owner::STATISTICS;

    #[test]
    fn names_follow_from_the_name_and_the_unit() {
        let names = |of: fn(&Of) -> String| TABLE.iter().map(of).collect::<Vec<_>>();
        assert_eq!(names(Of::snake), ["bytes_sent", "wait", "most", "name"]);
        assert_eq!(names(Of::key), ["bytes_sent", "wait_s", "most", "name"]);
        assert_eq!(names(Of::column), ["bytes_sent", "wait_s", "peak", "name"]);
        assert_eq!(names(Of::metric), ["bytes_sent", "wait_seconds", "most_segments", "name"]);
    }

    #[test]
    fn rows_stand_in_the_order_of_fields_with_what_their_attributes_say() {
        let rows: Vec<_> = TABLE.iter().map(|it| (it.name, it.kind, it.unit, it.end, it.heading)).collect();
        let expected = [
            ("bytes-sent", Kind::Counter, Unit::Bytes, End::Sender, None),
            ("wait", Kind::Counter, Unit::Seconds, End::Sender, None),
            ("most", Kind::Peak, Unit::Segments, End::Receiver, None),
            ("name", Kind::State, Unit::None, End::Sender, None),
        ];
        assert_eq!(rows, expected);
        let owner = Owner { name: Some("a"), ..Owner::default() };
        let name = |owner: &Owner| TABLE[3].value(owner);
        assert_eq!((name(&owner), name(&Owner::default())), (Value::Word(Cow::Borrowed("a")), Value::Absent));
    }

    #[test]
    fn counters_add_up_peaks_do_not_and_states_are_nobody_elses() {
        let owner = |sent, ms, most| {
            let levels = Levels { waited: Duration::from_millis(ms), most };
            Owner { sent, levels, name: Some("a") }
        };
        let mut tally = Tally::new(TABLE);
        [owner(1, 10, 5), owner(2, 20, 3)].iter().for_each(|owner| tally.add(owner));
        let values: Vec<Value> = tally.iter().map(|(_, value)| value.clone()).collect();
        let expected = [Value::Count(3), Value::Span(Duration::from_millis(30)), Value::Count(5), Value::Absent];
        assert_eq!(values, expected);

        let (mut now, before) = (owner(5, 50, 9), owner(2, 20, 4));
        TABLE.iter().for_each(|statistic| statistic.subtract(&mut now, &before));
        assert_eq!((now.sent, now.levels.waited, now.levels.most), (3, Duration::from_millis(30), 9));
    }
}
