//! Rows of typed columns, written and read as Apache Parquet.
//!
//! Files are not compressed and hold only rows and metadata, so that the same rows give the same bytes.

use crate::statistic::{Cell, Kind};
use parquet::basic::{ConvertedType, Repetition, Type as Physical};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::Type;
use std::fs::File;
use std::io::Write;
use std::sync::Arc;

/// Writes groups of rows.
pub struct Writer<W: Write + Send> {
    kinds: Vec<Kind>,
    file: SerializedFileWriter<W>,
}

impl<W: Write + Send> Writer<W> {
    /// Starts a file with these columns and this metadata by key.
    ///
    /// # Errors
    ///
    /// If `out` cannot be written.
    pub fn new(out: W, columns: &[(String, Kind)], metadata: &[(&str, String)]) -> Result<Self, ParquetError> {
        let field = |(name, kind): &(String, Kind)| {
            let field = match kind {
                Kind::Flag => Type::primitive_type_builder(name, Physical::BOOLEAN),
                Kind::Count => {
                    Type::primitive_type_builder(name, Physical::INT64).with_converted_type(ConvertedType::UINT_64)
                }
                Kind::Number => Type::primitive_type_builder(name, Physical::DOUBLE),
                Kind::Text => {
                    Type::primitive_type_builder(name, Physical::BYTE_ARRAY).with_converted_type(ConvertedType::UTF8)
                }
            };
            field.with_repetition(Repetition::OPTIONAL).build().map(Arc::new)
        };
        let fields = columns.iter().map(field).collect::<Result<Vec<_>, _>>()?;
        let schema = Arc::new(Type::group_type_builder("runs").with_fields(fields).build()?);
        let said = metadata.iter().map(|(key, value)| KeyValue::new((*key).to_owned(), value.clone()));
        let said = Some(said.collect::<Vec<_>>()).filter(|said| !said.is_empty());
        let properties = WriterProperties::builder().set_key_value_metadata(said).build();
        let file = SerializedFileWriter::new(out, schema, Arc::new(properties))?;
        Ok(Writer { kinds: columns.iter().map(|(_, kind)| *kind).collect(), file })
    }

    /// Writes these rows as one group.
    ///
    /// # Errors
    ///
    /// If they cannot be written.
    pub fn group(&mut self, rows: &[Vec<Cell>]) -> Result<(), ParquetError> {
        let mut group = self.file.next_row_group()?;
        for (number, kind) in self.kinds.iter().enumerate() {
            let Some(mut column) = group.next_column()? else { break };
            let cells = rows.iter().map(|row| &row[number]);
            match kind {
                Kind::Flag => write::<BoolType>(&mut column, cells, |cell| match cell {
                    Cell::Flag(flag) => Some(*flag),
                    _ => None,
                })?,
                // Parquet keeps the bits of an unsigned number as a signed one; the converted type tells.
                Kind::Count => write::<Int64Type>(&mut column, cells, |cell| match cell {
                    Cell::Count(count) => Some(count.cast_signed()),
                    _ => None,
                })?,
                Kind::Number => write::<DoubleType>(&mut column, cells, |cell| match cell {
                    Cell::Number(number) => Some(*number),
                    _ => None,
                })?,
                Kind::Text => write::<ByteArrayType>(&mut column, cells, |cell| match cell {
                    Cell::Text(text) => Some(ByteArray::from(text.clone().into_bytes())),
                    _ => None,
                })?,
            }
            column.close()?;
        }
        group.close()?;
        Ok(())
    }

    /// Ends the file and returns the writer.
    ///
    /// # Errors
    ///
    /// If the end cannot be written.
    pub fn finish(self) -> Result<W, ParquetError> {
        self.file.into_inner()
    }
}

fn write<'a, T: DataType>(
    column: &mut SerializedColumnWriter<'_>,
    cells: impl Iterator<Item = &'a Cell>,
    value: impl Fn(&Cell) -> Option<T::T>,
) -> Result<(), ParquetError> {
    let values: Vec<Option<T::T>> = cells.map(value).collect();
    let there: Vec<i16> = values.iter().map(|value| i16::from(value.is_some())).collect();
    let values: Vec<T::T> = values.into_iter().flatten().collect();
    column.typed::<T>().write_batch(&values, Some(&there), None).map(drop)
}

/// Reader for files of [`Writer`].
pub struct Reader {
    file: SerializedFileReader<File>,
}

impl Reader {
    /// Reads the index at the end of the file. A truncated file is an error.
    pub fn open(file: File) -> Result<Self, ParquetError> {
        Ok(Reader { file: SerializedFileReader::new(file)? })
    }

    /// Returns the value of `key` in the file's metadata.
    pub fn said(&self, key: &str) -> Option<&str> {
        let said = self.file.metadata().file_metadata().key_value_metadata()?;
        said.iter().find(|it| it.key == key)?.value.as_deref()
    }

    /// Returns the names of the columns, in order.
    pub fn columns(&self) -> Vec<String> {
        let schema = self.file.metadata().file_metadata().schema_descr();
        schema.columns().iter().map(|column| column.name().to_owned()).collect()
    }

    /// Reads all rows.
    pub fn rows(&self) -> Result<Vec<Vec<Cell>>, ParquetError> {
        let mut all = Vec::new();
        for number in 0..self.file.num_row_groups() {
            let group = self.file.get_row_group(number)?;
            let count = usize::try_from(group.metadata().num_rows()).unwrap_or_default();
            let before = all.len();
            all.resize_with(before + count, Vec::new);
            for column in 0..group.num_columns() {
                let cells = match group.get_column_reader(column)? {
                    ColumnReader::BoolColumnReader(reader) => read(reader, count, |flag| Cell::Flag(*flag))?,
                    ColumnReader::Int64ColumnReader(reader) => {
                        read(reader, count, |number| Cell::Count(number.cast_unsigned()))?
                    }
                    ColumnReader::DoubleColumnReader(reader) => read(reader, count, |number| Cell::Number(*number))?,
                    ColumnReader::ByteArrayColumnReader(reader) => {
                        read(reader, count, |text| Cell::Text(String::from_utf8_lossy(text.data()).into_owned()))?
                    }
                    _ => {
                        return Err(ParquetError::General(format!("column {column} has a type that rows do not have")));
                    }
                };
                all[before..].iter_mut().zip(cells).for_each(|(row, cell)| row.push(cell));
            }
        }
        Ok(all)
    }
}

fn read<T: DataType>(
    mut reader: ColumnReaderImpl<T>,
    count: usize,
    cell: impl Fn(&T::T) -> Cell,
) -> Result<Vec<Cell>, ParquetError> {
    let (mut values, mut there) = (Vec::new(), Vec::new());
    while there.len() < count {
        let (rows, _, _) = reader.read_records(count - there.len(), Some(&mut there), None, &mut values)?;
        if rows == 0 {
            return Err(ParquetError::EOF(format!("a column ends after {} of {count} rows", there.len())));
        }
    }
    let mut values = values.iter();
    let one = |there: i16| if there == 0 { Cell::Empty } else { values.next().map_or(Cell::Empty, &cell) };
    Ok(there.into_iter().map(one).collect())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::io::{Seek, SeekFrom};

    #[test]
    fn what_is_written_is_read_to_the_bit_and_a_cut_file_is_refused() {
        let columns = [("flag", Kind::Flag), ("count", Kind::Count), ("number", Kind::Number), ("text", Kind::Text)];
        let columns = columns.map(|(name, kind)| (name.to_owned(), kind));
        let rows = vec![
            vec![Cell::Flag(true), Cell::Count(u64::MAX), Cell::Number(0.1 + 0.2), Cell::Text("§ 1".to_owned())],
            vec![Cell::Empty, Cell::Empty, Cell::Empty, Cell::Empty],
            vec![Cell::Flag(false), Cell::Count(0), Cell::Number(-0.0), Cell::Text(String::new())],
        ];
        let mut writer = Writer::new(tempfile::tempfile().unwrap(), &columns, &[("key", "held".to_owned())]).unwrap();
        writer.group(&rows[..1]).unwrap();
        writer.group(&rows[1..]).unwrap();
        let mut file = writer.finish().unwrap();
        file.seek(SeekFrom::Start(0)).unwrap();
        let reader = Reader::open(file.try_clone().unwrap()).unwrap();
        assert_eq!((reader.said("key"), reader.said("other")), (Some("held"), None));
        assert_eq!(reader.columns(), ["flag", "count", "number", "text"]);
        assert_eq!(reader.rows().unwrap(), rows);
        file.set_len(file.metadata().unwrap().len() - 1).unwrap();
        assert!(Reader::open(file).is_err());
    }
}
