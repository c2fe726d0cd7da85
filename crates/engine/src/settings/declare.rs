//! Declaration of settings: a struct each of whose fields says what it means, accepts and defaults to.

/// Declares a struct of settings, its constructor with the defaults, and its rows of the table of settings.
///
/// ```text
/// settings! {
///     /// The knobs of one host's TCP.
///     pub struct Profile as |config| config.profile => {
///         /// Maximum delay of an ACK; or false.
///         #[setting("delayed-ack", TimeOrOff, in_kernel(Other("…")))]
///         /// Further remarks, for readers of the code alone.
///         pub delayed_ack: Option<Duration> = Some(Duration::from_millis(40)),
///         …
///     }
///     /// Linux 6.x.
///     pub fn linux() -> Self;
/// }
/// ```
///
/// The first comment of a field is the meaning that users read. `#[setting(…)]` has the name, the `Domain` with its
/// bounds or words, and methods of `Setting`. `#[setting(none)]` marks a field that is no setting, and
/// `#[setting(all of ROWS)]` one whose rows stand elsewhere. A field without any of them does not compile.
macro_rules! settings {
    (
        $(#[$about_struct:meta])*
        pub struct $name:ident as |$config:ident| $owner:expr => {
            $(
                $(#[doc = $about:literal])+
                #[setting($($row:tt)+)]
                $(#[doc = $remark:literal])*
                pub $field:ident: $type:ty = $default:expr,
            )+
        }

        $(#[$about_new:meta])*
        $visibility:vis fn $new:ident($($argument:ident: $argument_type:ty),*) -> Self;
    ) => {
        $(#[$about_struct])*
        pub struct $name {
            $(
                $(#[doc = $about])+
                #[doc = ""]
                $(#[doc = $remark])*
                pub $field: $type,
            )+
        }

        impl $name {
            $(#[$about_new])*
            $visibility fn $new($($argument: $argument_type),*) -> Self {
                $name { $($field: $default),+ }
            }

            /// Its rows of the table of settings.
            pub(crate) const SETTINGS: &'static [$crate::settings::Setting] = &{
                const ROWS: &[&[$crate::settings::Setting]] = &[$(
                    $crate::settings::declare::rows!(
                        [$($row)+] |$config| $owner, $field, concat!($($about),+)
                    ),
                )+];
                const FILLER: $crate::settings::Setting =
                    $crate::settings::Setting::new("", "", $crate::settings::Domain::Choice(&[]));
                anabranch_units::table::joined::<_, { anabranch_units::table::count(ROWS) }>(ROWS, FILLER)
            };
        }
    };
}

/// The rows of one field.
macro_rules! rows {
    ([none] $($field:tt)+) => {
        &[]
    };
    ([all of $rows:expr] $($field:tt)+) => {
        $rows
    };
    (
        [$name:literal, $domain:ident $(($($bound:expr),+))? $(, $with:ident $(($value:expr))?)* $(,)?]
        |$config:ident| $owner:expr, $field:ident, $about:expr
    ) => {
        &[$crate::settings::Setting::new(
            $name,
            // The lines of a comment begin with a space each.
            $about.trim_ascii_start(),
            $crate::settings::declare::domain!($domain($($($bound),+)?), |$config| $owner, $field),
        )$(.$with($($value)?))*]
    };
}

/// The domain of a field.
macro_rules! domain {
    // Words say themselves how to reach the field.
    (Choice($words:expr), |$config:ident| $owner:expr, $field:ident) => {
        $crate::settings::Domain::Choice($words)
    };
    ($domain:ident($($bound:expr),*), |$config:ident| $owner:expr, $field:ident) => {
        $crate::settings::Domain::$domain(|$config| &mut $owner.$field $(, $bound)*)
    };
}

pub(crate) use {domain, rows, settings};
