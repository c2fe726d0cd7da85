//! Rows under typed columns, given away through Arrow's PyCapsule interface.

use crate::error::bug;
use anabranch_lab::statistic::{Cell, Kind};
use anabranch_report::Sheet;
use arrow_array::builder::StringBuilder;
use arrow_array::cast::AsArray;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{Float64Type, UInt64Type};
use arrow_array::{Array, ArrayRef, BooleanArray, Float64Array, RecordBatch, RecordBatchIterator, UInt64Array};
use arrow_schema::{DataType, Field, Schema};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyIterator, PyList};
use std::sync::Arc;

/// Rows under typed columns: `bool`, `uint64`, `float64` and `string`, all nullable.
///
/// pandas, polars, pyarrow and DuckDB take it as it is, through `__arrow_c_stream__`: `polars.DataFrame(table)`,
/// `pyarrow.table(table)`, `table.to_pandas()`. Iteration gives each row as a dict.
#[pyclass(frozen, module = "anabranch")]
pub struct Table {
    batch: RecordBatch,
}

impl Table {
    /// The columns of a sheet as arrays.
    pub fn of(sheet: &Sheet) -> PyResult<Table> {
        let mut fields = Vec::new();
        let mut arrays = Vec::new();
        for (number, (name, kind)) in sheet.columns().iter().enumerate() {
            let (kind, array) = array(*kind, sheet.rows().iter().map(|row| &row[number]));
            fields.push(Field::new(name, kind, true));
            arrays.push(array);
        }
        let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).map_err(bug)?;
        Ok(Table { batch })
    }
}

fn array<'a>(kind: Kind, cells: impl Iterator<Item = &'a Cell>) -> (DataType, ArrayRef) {
    match kind {
        Kind::Flag => {
            let flag = |cell: &Cell| if let Cell::Flag(flag) = cell { Some(*flag) } else { None };
            (DataType::Boolean, Arc::new(cells.map(flag).collect::<BooleanArray>()))
        }
        Kind::Count => {
            let count = |cell: &Cell| if let Cell::Count(count) = cell { Some(*count) } else { None };
            (DataType::UInt64, Arc::new(cells.map(count).collect::<UInt64Array>()))
        }
        Kind::Number => {
            let number = |cell: &Cell| if let Cell::Number(number) = cell { Some(*number) } else { None };
            (DataType::Float64, Arc::new(cells.map(number).collect::<Float64Array>()))
        }
        Kind::Text => {
            let mut texts = StringBuilder::new();
            cells.for_each(|cell| texts.append_option(if let Cell::Text(text) = cell { Some(text) } else { None }));
            (DataType::Utf8, Arc::new(texts.finish()))
        }
    }
}

/// Returns a cell as an object of Python.
fn object<'py>(py: Python<'py>, column: &ArrayRef, row: usize) -> PyResult<Bound<'py, PyAny>> {
    if column.is_null(row) {
        return Ok(py.None().into_bound(py));
    }
    Ok(match column.data_type() {
        DataType::Boolean => column.as_boolean().value(row).into_pyobject(py)?.to_owned().into_any(),
        DataType::UInt64 => column.as_primitive::<UInt64Type>().value(row).into_pyobject(py)?.into_any(),
        DataType::Float64 => column.as_primitive::<Float64Type>().value(row).into_pyobject(py)?.into_any(),
        _ => column.as_string::<i32>().value(row).into_pyobject(py)?.into_any(),
    })
}

#[pymethods]
impl Table {
    /// The names of the columns.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.batch.schema().fields().iter().map(|field| field.name().clone()).collect()
    }

    fn __len__(&self) -> usize {
        self.batch.num_rows()
    }

    fn __repr__(&self) -> String {
        format!("<anabranch.Table: {} rows, columns {}>", self.batch.num_rows(), self.columns().join(", "))
    }

    /// Each row as a dict, which `pandas.DataFrame(table)` takes.
    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        let names = self.columns();
        let rows = PyList::empty(py);
        for number in 0..self.batch.num_rows() {
            let row = PyDict::new(py);
            for (name, column) in names.iter().zip(self.batch.columns()) {
                row.set_item(name, object(py, column, number)?)?;
            }
            rows.append(row)?;
        }
        rows.try_iter()
    }

    /// A `pandas.DataFrame` with the types of the columns, by way of Arrow.
    fn to_pandas<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let frame = slf.py().import("pandas")?.getattr("DataFrame")?;
        match frame.getattr_opt("from_arrow")? {
            Some(from_arrow) => from_arrow.call1((slf,)),
            // pandas before 3.0.
            None => slf.py().import("pyarrow")?.call_method1("table", (slf,))?.call_method0("to_pandas"),
        }
    }

    /// An Arrow stream of one batch that shares our memory. The interface lets us pass over `requested_schema`, a wish.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        let reader = RecordBatchIterator::new([Ok(self.batch.clone())], self.batch.schema());
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(reader)), c"arrow_array_stream")
    }
}
