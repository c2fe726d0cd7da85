//! Field studies inside the program.

macro_rules! shipped {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../../../studies/", $name, ".toml")))),*]
    };
}

/// All field studies: name and text.
pub(super) const FIELDS: &[(&str, &str)] =
    shipped!["field/conext23", "field/simult-flows", "field/tutorial20", "field/net-next-381", "field/mptcp-278",];
