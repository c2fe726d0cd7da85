//! Rows of a study as Apache Parquet: the columns of the CSV, numbers as 64-bit floats, no compression.

use crate::study::{Cell, study_columns};
use ::parquet::basic::{ConvertedType, Repetition, Type as Physical};
use ::parquet::data_type::{ByteArray, ByteArrayType, DoubleType};
use ::parquet::errors::ParquetError;
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::writer::SerializedFileWriter;
use ::parquet::schema::types::Type;
use anabranch_lab::study::{StudyResult, StudyRow};
use std::sync::Arc;

/// One row per run with everything measured, in basic units; axes are columns.
///
/// # Errors
/// If the writer refuses a column, which would be a bug of ours.
pub fn study_parquet(result: &StudyResult, rows: &[StudyRow]) -> Result<Vec<u8>, ParquetError> {
    let (columns, lines) = study_columns(result, rows);
    let is_text =
        |n: usize| lines.first().map_or(TEXTS.contains(&columns[n].as_str()), |line| matches!(line[n], Cell::Text(_)));
    let field = |(n, name): (usize, &String)| {
        let field = match is_text(n) {
            true => Type::primitive_type_builder(name, Physical::BYTE_ARRAY).with_converted_type(ConvertedType::UTF8),
            false => Type::primitive_type_builder(name, Physical::DOUBLE),
        };
        field.with_repetition(Repetition::OPTIONAL).build().map(Arc::new)
    };
    let fields = columns.iter().enumerate().map(field).collect::<Result<Vec<_>, _>>()?;
    let schema = Arc::new(Type::group_type_builder("runs").with_fields(fields).build()?);
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, Arc::new(WriterProperties::builder().build()))?;
    let mut group = writer.next_row_group()?;
    let mut number = 0;
    while let Some(mut column) = group.next_column()? {
        let cells = || lines.iter().map(|line| &line[number]);
        if is_text(number) {
            let texts: Vec<ByteArray> = cells().map(|cell| ByteArray::from(cell.to_string().into_bytes())).collect();
            let there = vec![1; texts.len()];
            column.typed::<ByteArrayType>().write_batch(&texts, Some(&there), None)?;
        } else {
            let values: Vec<Option<f64>> = cells().map(Cell::number).collect();
            let there: Vec<i16> = values.iter().map(|value| i16::from(value.is_some())).collect();
            let numbers: Vec<f64> = values.into_iter().flatten().collect();
            column.typed::<DoubleType>().write_batch(&numbers, Some(&there), None)?;
        }
        column.close()?;
        number += 1;
    }
    group.close()?;
    writer.into_inner()
}

/// The columns of text where no row shows it.
const TEXTS: [&str; 3] = ["version", "study", "system"];
