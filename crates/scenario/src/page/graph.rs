//! Dependency graphs as WProf records them and Epload plays them (X. S. Wang et al., NSDI 2013 and 2014).
//!
//! Objects have a download and computations one after the other. An entry of `deps` makes the activity `a2` wait for
//! `a1`: for its end if `time` is -1, or else until `time` milliseconds after its beginning. The computations of an
//! object begin with the first byte of its download if `when_comp_start` is 1, and else with its end. Sizes are not in
//! Epload's graphs, whose clients fetched the objects from servers that had them; WProf writes `len` to the download.
//! An object needs `len`, or `size` of its own.

use super::{MOST_BYTES_OF_ONE, MOST_OBJECTS, milliseconds, short};
use anabranch_sim::page::{Activity, After, Moment, Object, Page, Work};
use anabranch_units::{Bytes, Duration};
use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Deserialize)]
struct Graph {
    objs: Vec<ObjectRecord>,
    #[serde(default)]
    deps: Vec<Dependency>,
}

#[derive(Deserialize)]
struct ObjectRecord {
    id: String,
    #[serde(default)]
    when_comp_start: f64,
    /// Size in bytes.
    size: Option<f64>,
    download: Download,
    #[serde(default)]
    comps: Vec<Computation>,
}

#[derive(Deserialize)]
struct Download {
    id: String,
    /// Size in bytes.
    len: Option<f64>,
}

#[derive(Deserialize)]
struct Computation {
    id: String,
    /// Time in milliseconds.
    time: f64,
}

#[derive(Deserialize)]
struct Dependency {
    a1: String,
    a2: String,
    /// Time in milliseconds after the beginning of `a1`; below zero for its end.
    #[serde(default = "at_the_end")]
    time: f64,
}

fn at_the_end() -> f64 {
    -1.0
}

pub(super) fn parse(text: &str) -> Result<Page, String> {
    let graph: Graph = serde_json::from_str(text).map_err(|error| format!("it is not a dependency graph: {error}"))?;
    let count = graph.objs.iter().map(|object| 1 + object.comps.len()).sum::<usize>();
    if count > MOST_OBJECTS || graph.deps.len() > MOST_DEPENDENCIES {
        return Err(format!(
            "it has {count} activities and {} dependencies; accepted are up to {MOST_OBJECTS} and {MOST_DEPENDENCIES}",
            graph.deps.len()
        ));
    }
    let mut known = Known::default();
    for (number, object) in graph.objs.iter().enumerate() {
        known.add_object(object).map_err(|problem| format!("objs[{number}] (\"{}\"): {problem}", short(&object.id)))?;
    }
    let Known { mut activities, numbers } = known;
    for (number, dependency) in graph.deps.iter().enumerate() {
        let place = |problem: String| format!("deps[{number}]: {problem}");
        let find =
            |id: &str| numbers.get(id).copied().ok_or_else(|| place(format!("there is no activity \"{}\"", short(id))));
        let (activity, waits) = (find(&dependency.a1)?, find(&dependency.a2)?);
        let (moment, delay) = match dependency.time < 0.0 {
            true => (Moment::End, Duration::ZERO),
            false => {
                let delay = milliseconds(dependency.time).ok_or_else(|| {
                    place(format!("`time` is {}; accepted are -1 and milliseconds up to a day", dependency.time))
                })?;
                (Moment::Begin, delay)
            }
        };
        activities[waits].after.push(After { activity, moment, delay });
    }
    Ok(Page { activities })
}

/// Activities so far.
#[derive(Default)]
struct Known<'a> {
    activities: Vec<Activity>,
    /// Indices of the activities by name.
    numbers: BTreeMap<&'a str, usize>,
}

impl<'a> Known<'a> {
    /// Adds the object's download, and its computations one after the other.
    fn add_object(&mut self, object: &'a ObjectRecord) -> Result<(), String> {
        let mut before = self.add(&object.download.id, Activity::download(Object::of_size(size(object)?)))?;
        let mut moment = if object.when_comp_start > 0.0 { Moment::FirstByte } else { Moment::End };
        for comp in &object.comps {
            let time = milliseconds(comp.time).ok_or_else(|| {
                let Computation { id, time } = comp;
                format!("the time of \"{}\" is {time}; accepted are milliseconds up to a day", short(id))
            })?;
            let after = vec![After { activity: before, moment, delay: Duration::ZERO }];
            before = self.add(&comp.id, Activity { begin: Duration::ZERO, after, work: Work::Compute(time) })?;
            moment = Moment::End;
        }
        Ok(())
    }

    fn add(&mut self, id: &'a str, activity: Activity) -> Result<usize, String> {
        let number = self.activities.len();
        if self.numbers.insert(id, number).is_some() {
            return Err(format!("another activity is called \"{}\"", short(id)));
        }
        self.activities.push(activity);
        Ok(number)
    }
}

fn size(object: &ObjectRecord) -> Result<Bytes, String> {
    let given = object.size.or(object.download.len);
    let size = given.ok_or("it has no size; accepted: `size` or `download.len` in bytes")?;
    match (0.0..=MOST_BYTES_OF_ONE as f64).contains(&size) {
        true => Ok(Bytes::new(size.round() as u64)),
        false => Err(format!("its size is {size}; accepted are 0 to {MOST_BYTES_OF_ONE} bytes")),
    }
}

/// Maximum number of dependencies; activities usually wait for a few others each.
const MOST_DEPENDENCIES: usize = 100_000;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Two objects: a page with a script of 500 ms that runs from its first byte on, and another whose request follows
    /// 200 ms after the script began.
    const TWO: &str = r#"{"name": "two", "start_activity": "r1_d", "load_activity": "r2_c1", "objs": [
        {"id": "r1", "when_comp_start": 1, "download": {"id": "r1_d", "type": "text/html", "len": 100000},
         "comps": [{"id": "r1_c1", "type": "evalhtml", "time": 500}, {"id": "r1_c2", "time": 1.5}]},
        {"id": "r2", "when_comp_start": -1, "size": 10000, "download": {"id": "r2_d", "type": "text/javascript"},
         "comps": [{"id": "r2_c1", "type": "evaljs", "time": 1000}]}],
        "deps": [{"id": "dep1", "a1": "r1_c1", "a2": "r2_d", "time": 200}, {"id": "dep2", "a1": "r1_c2", "a2": "r2_c1", "time": -1}]}"#;

    #[test]
    fn downloads_computations_and_what_they_wait_for() {
        let page = parse(TWO).unwrap();
        page.check().unwrap();
        let (ms, object) = (Duration::from_millis, |size| Work::Download(Object::of_size(Bytes::new(size))));
        let works: Vec<Work> = page.activities.iter().map(|it| it.work).collect();
        let half = Work::Compute(Duration::from_micros(1500));
        assert_eq!(works, [object(100_000), Work::Compute(ms(500)), half, object(10_000), Work::Compute(ms(1000))]);
        let after = |index: usize| page.activities[index].after.clone();
        let wait = |activity, moment, delay| After { activity, moment, delay: ms(delay) };
        assert_eq!((after(0), after(1)), (vec![], vec![wait(0, Moment::FirstByte, 0)]));
        assert_eq!((after(2), after(3)), (vec![wait(1, Moment::End, 0)], vec![wait(1, Moment::Begin, 200)]));
        assert_eq!(after(4), [wait(3, Moment::End, 0), wait(2, Moment::End, 0)]);
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        let said = |from: &str, to: &str| {
            assert!(TWO.contains(from), "{from}");
            super::super::parse("x.json", &TWO.replace(from, to)).unwrap_err()
        };
        assert_eq!(said("\"a1\": \"r1_c1\"", "\"a1\": \"r9\""), "deps[0]: there is no activity \"r9\"");
        assert_eq!(
            said("\"size\": 10000, ", ""),
            "objs[1] (\"r2\"): it has no size; accepted: `size` or `download.len` in bytes"
        );
        assert_eq!(
            said("10000,", "1e12,"),
            "objs[1] (\"r2\"): its size is 1000000000000; accepted are 0 to 1073741824 bytes"
        );
        assert_eq!(
            said("\"time\": 500", "\"time\": -3"),
            "objs[0] (\"r1\"): the time of \"r1_c1\" is -3; accepted are milliseconds up to a day"
        );
        assert_eq!(
            said("\"time\": 200", "\"time\": 1e300"),
            format!("deps[0]: `time` is {}; accepted are -1 and milliseconds up to a day", 1e300)
        );
        assert_eq!(
            said("\"id\": \"r1_c2\"", "\"id\": \"r1_c1\""),
            "objs[0] (\"r1\"): another activity is called \"r1_c1\""
        );
        assert_eq!(
            said("\"id\": \"r2_c1\"", "\"id\": \"r1_c1\""),
            "objs[1] (\"r2\"): another activity is called \"r1_c1\""
        );
        let circle = said("\"a1\": \"r1_c1\", \"a2\": \"r2_d\", \"time\": 200", "\"a1\": \"r2_c1\", \"a2\": \"r1_d\"");
        assert_eq!(circle, "activity 0 waits for itself, by way of others");
    }
}
