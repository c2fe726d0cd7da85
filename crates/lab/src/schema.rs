//! The JSON schema of scenario files, for editors.

use crate::file::File;

/// The schema as JSON text.
pub fn schema() -> String {
    let schema = schemars::schema_for!(File);
    serde_json::to_string_pretty(&schema).expect("a schema is plain JSON")
}
