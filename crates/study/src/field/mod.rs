//! Field studies: results that others measured, beside what is predicted from their inputs.
//!
//! ```text
//! file::FieldFile   rows with measured numbers, quantities that were not recorded and their ranges
//!    │ Field::load, with_data         text of the file; directory of recordings that the user fetched
//! Trial             one scenario for each row and draw
//!    │ run                            missing runs, on any number of threads
//! FieldResult       predicted median and 90 % range of each row, and whether the measured number is inside
//! ```
//!
//! Ranges stand in the file with their reasons and are not fitted; a row that stays outside is shown as it is.

mod draw;
mod excerpt;
pub mod file;
mod load;
mod result;
mod run;
mod shipped;
#[cfg(test)]
mod tests;

pub use load::Field;
pub use result::{Data, FieldResult, FieldRow, FieldVerdict, Prediction, Range, Unrecorded};
pub use run::Trial;
