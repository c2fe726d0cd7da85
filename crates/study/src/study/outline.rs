//! Outline of a study: everything that a reader chooses from before it runs.

use super::load::Study;
use super::result::Assumption;
use anabranch_scenario::ScenarioError;
use serde::Serialize;

/// Outline of a study.
#[derive(Clone, Debug, Serialize)]
pub struct Outline {
    /// Name: `late/fig10`.
    pub name: String,
    /// Title, in one line.
    pub title: String,
    /// Name of the figure in the paper.
    pub figure: String,
    /// Description of the measurement, in a few sentences.
    pub about: String,
    /// Axes.
    pub axes: Vec<AxisOutline>,
    /// Systems.
    pub systems: Vec<SystemOutline>,
    /// Titles of the diagrams.
    pub plots: Vec<String>,
    /// Statements of the paper, each with its place.
    pub statements: Vec<(String, String)>,
    /// Assumptions where the paper leaves something open.
    pub assumptions: Vec<Assumption>,
    /// Alternative assumptions: name, and overrides as `--set` takes them.
    pub alternatives: Vec<(String, Vec<String>)>,
    /// Number of repetitions.
    pub repeat: usize,
    /// Number of repetitions of `--quick`.
    pub quick_repeat: usize,
}

/// Axis of a study.
#[derive(Clone, Debug, Serialize)]
pub struct AxisOutline {
    /// Label.
    pub label: String,
    /// Points with their unit, as in `20 ms`.
    pub points: Vec<String>,
    /// Indices of the points that `--quick` keeps.
    pub quick: Vec<usize>,
}

/// System of a study.
#[derive(Clone, Debug, Serialize)]
pub struct SystemOutline {
    /// Name in the legend.
    pub name: String,
    /// Reason why it is not the paper's system but a reconstruction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unavailable: Option<String>,
}

impl Study {
    /// Returns its outline.
    pub fn outline(&self) -> Outline {
        let axis = |axis: &super::load::Axis| AxisOutline {
            label: axis.label.clone(),
            points: (0..axis.points.len()).map(|n| axis.shown(n)).collect(),
            quick: (0..axis.points.len()).filter(|n| axis.is_quick(*n)).collect(),
        };
        let system = |system: &super::file::SystemTable| SystemOutline {
            name: system.name.clone(),
            unavailable: system.unavailable.clone(),
        };
        let alternatives = self.sensitivities.iter();
        Outline {
            name: self.name.clone(),
            title: self.title().to_owned(),
            figure: self.figure().to_owned(),
            about: self.file.about.clone(),
            axes: self.axes.iter().map(axis).collect(),
            systems: self.systems().map(system).collect(),
            plots: self.plots().map(|plot| plot.title.clone()).collect(),
            statements: self.claims().map(|claim| (claim.text.clone(), claim.source.clone())).collect(),
            assumptions: self.assumptions.clone(),
            alternatives: alternatives
                .map(|it| (it.name.clone(), it.set.iter().map(|at| at.value.clone()).collect()))
                .collect(),
            repeat: self.file.repeat.full,
            quick_repeat: self.file.repeat.quick,
        }
    }

    /// Returns the scenario of a system at a point as a text of its own, with all settings in it. `point` has an index
    /// for each axis.
    ///
    /// # Errors
    ///
    /// If there is no such system or point, or if an override cannot be applied.
    pub fn scenario_at(&self, system: usize, point: &[usize]) -> Result<String, ScenarioError> {
        let there = point.len() == self.axes.len() && self.axes.iter().zip(point).all(|(it, n)| *n < it.points.len());
        let (Some(table), true) = (self.systems().nth(system), there) else {
            let counts: Vec<String> = self.axes.iter().map(|axis| axis.points.len().to_string()).collect();
            let help = format!(
                "accepted: a system below {}, and an index for each axis, below {}",
                self.systems().count(),
                counts.join(", ")
            );
            let problem = format!("{} has no system {system} at {point:?}", self.name);
            return Err(ScenarioError::plain(problem, Some(help)));
        };
        let text = self.scenario_text(&self.sets(&point.to_vec(), table, &[]))?;
        let place = self.place(&point.to_vec());
        let at = if place.is_empty() { String::new() } else { format!(", {place}") };
        Ok(format!("# {}: {}{at}\n\n{text}", self.name, table.name))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::shipped::STUDIES;
    use super::*;
    use anabranch_policy::Catalogue;
    use anabranch_scenario::{Origin, Scenario};
    use std::sync::Arc;

    /// The text of each system at the last point is that scenario: the same digest gives the same runs.
    #[test]
    fn a_scenario_of_a_study_stands_by_itself() {
        let catalogue = Arc::new(Catalogue::default());
        let no_file = |name: &str, _: bool| -> std::io::Result<String> { panic!("{name} is a file") };
        for name in STUDIES.iter().map(|it| it.name) {
            let study = Study::load(name).unwrap().overridden(&["host.sack=false".to_owned()]);
            let point: Vec<usize> = study.axes.iter().map(|axis| axis.points.len() - 1).collect();
            for (number, system) in study.systems().enumerate() {
                let scenario = study.scenario(&catalogue, &study.sets(&point, system, &[])).unwrap();
                let text = study.scenario_at(number, &point).unwrap();
                let origin = Origin { scenario: name.to_owned(), sets: Vec::new() };
                let alone = Scenario::read(&catalogue, name, "alone.toml", &text, origin, &no_file).unwrap();
                assert_eq!(alone.digest, scenario.digest, "{name}: {text}");
            }
        }
    }

    #[test]
    fn a_point_that_is_not_there_is_refused() {
        let study = Study::load("late/fig10").unwrap();
        assert!(study.scenario_at(3, &[7]).is_ok());
        for (system, point) in [(4, vec![0]), (0, vec![8]), (0, vec![]), (0, vec![0, 0])] {
            let error = study.scenario_at(system, &point).unwrap_err();
            assert!(error.help().unwrap().contains("below 4, and an index for each axis, below 8"), "{error}");
        }
    }
}
