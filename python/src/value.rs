//! Values of Python as TOML.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple, PyType};
use toml::Value;

/// `value` as TOML; `place` names it in an error. A class is handed to `class`, which answers its name.
pub fn toml(
    value: &Bound<'_, PyAny>,
    place: &str,
    class: &mut dyn FnMut(&Bound<'_, PyType>) -> PyResult<String>,
) -> PyResult<Value> {
    if let Ok(flag) = value.cast::<PyBool>() {
        return Ok(Value::Boolean(flag.is_true()));
    }
    if let Ok(number) = value.cast::<PyInt>() {
        let number = number.extract::<i64>();
        return number
            .map(Value::Integer)
            .map_err(|_| PyValueError::new_err(format!("`{place}`: {value} does not fit into 64 bits")));
    }
    if let Ok(number) = value.cast::<PyFloat>() {
        return Ok(Value::Float(number.value()));
    }
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(Value::String(text.to_string()));
    }
    if let Ok(policy) = value.cast::<PyType>() {
        return class(policy).map(Value::String);
    }
    if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        let items = value.try_iter()?.enumerate();
        let each = items.map(|(n, item)| toml(&item?, &format!("{place}[{n}]"), class));
        return each.collect::<PyResult<Vec<_>>>().map(Value::Array);
    }
    if let Ok(table) = value.cast::<PyDict>() {
        let mut made = toml::Table::new();
        for (key, item) in table {
            let key = key.cast::<PyString>().map_err(|_| {
                PyTypeError::new_err(format!("`{place}` has the key {key}; the keys of a scenario are texts"))
            })?;
            let key = key.to_string();
            let inner = if place.is_empty() { key.clone() } else { format!("{place}.{key}") };
            made.insert(key, toml(&item, &inner, class)?);
        }
        return Ok(Value::Table(made));
    }
    let kind = value.get_type().name()?;
    Err(PyTypeError::new_err(format!(
        "`{place}` is a {kind}; accepted: str, int, float, bool, list, dict, or a class of a policy"
    )))
}
