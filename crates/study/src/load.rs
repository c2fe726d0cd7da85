//! Scenarios by name, wherever they are.

#[cfg(not(target_arch = "wasm32"))]
use crate::evaluate::Case;
#[cfg(not(target_arch = "wasm32"))]
use crate::field::Field;
use crate::rank::Condition;
use crate::study::Study;
use crate::sweep;
use anabranch_policy::Catalogue;
use anabranch_scenario::{Scenario, ScenarioError, shipped};
use anabranch_units::input;
use std::path::Path;
use std::sync::Arc;

/// Loads the scenario called `name`, overridden by each `KEY=VALUE` of `sets`: one in the program, that of a study, a
/// field study, a case of an evaluation, a drawn condition (`drawn/1/17`), or a file with a scenario, a study, a field
/// study, or a sweep over a scenario of its own.
///
/// # Errors
///
/// If there is none, or if it has an error.
pub fn load(catalogue: &Arc<Catalogue>, name: &str, sets: &[String]) -> Result<Scenario, ScenarioError> {
    if shipped::find(name).is_some() {
        return Scenario::load(catalogue, name, sets);
    }
    if Study::is_one(name) {
        return Study::load(name)?.scenario(catalogue, sets);
    }
    #[cfg(not(target_arch = "wasm32"))]
    if Field::is_one(name) {
        return Field::load(name)?.scenario(catalogue, sets);
    }
    #[cfg(not(target_arch = "wasm32"))]
    if Case::is_one(name) {
        return Case::load(name)?.scenario(catalogue, sets);
    }
    if let Some(condition) = Condition::named(name) {
        return condition.scenario(catalogue, sets);
    }
    match input::written(Path::new(name)) {
        Ok(text) if sweep::has_scenario(&text) => sweep::inline(catalogue, name, &text, sets),
        Err(_) if Condition::is_like_a_name(name) => {
            let help = "accepted: drawn/SEED/NUMBER with two whole numbers, such as drawn/1/17, or a scenario file";
            let problem = format!("`{name}` is no drawn condition and no file");
            Err(ScenarioError::plain(problem, Some(help.to_owned())))
        }
        _ => Scenario::load(catalogue, name, sets),
    }
}
