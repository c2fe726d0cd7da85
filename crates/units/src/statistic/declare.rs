//! Declaration of statistics: a struct each of whose fields has its description beside it.

/// Declares a struct of statistics and its rows of a table of [`Statistic`](crate::statistic::Statistic)s.
///
/// ```
/// use anabranch_units::statistic::{Statistic, Unit};
/// use anabranch_units::{Duration, statistics};
///
/// statistics! {
///     /// Traffic of a device.
///     #[derive(Default)]
///     pub struct Traffic as |it: Traffic| it => {
///         /// Packets of all sizes.
///         #[statistic("sent", Counter, Packets, "packets sent", headed("packets"))]
///         pub sent: u64,
///         /// Since the device was made.
///         #[statistic("idle", Counter, Seconds, "time without a packet")]
///         pub idle: Duration,
///     }
/// }
///
/// const TABLE: &[Statistic<Traffic>] = Traffic::STATISTICS;
/// assert_eq!((TABLE[0].name, TABLE[1].unit), ("sent", Unit::Seconds));
/// ```
///
/// `#[statistic(…)]` has the name, the [`Kind`](crate::statistic::Kind), the [`Unit`](crate::statistic::Unit), the
/// meaning in a few words, and methods of [`Statistic`](crate::statistic::Statistic). A field that is neither `u64` nor
/// `Duration` is a state ([`Shown`](crate::statistic::Shown)), unless `from SOURCE` follows the meaning.
/// `#[statistic(all of ROWS)]` marks a field whose rows stand elsewhere: those of a struct within the owner, declared
/// `as |it: Owner| it.field`. A field without such an attribute does not compile.
#[macro_export]
macro_rules! statistics {
    (
        $(#[$about:meta])*
        pub struct $name:ident as |$it:ident: $owner:ty| $place:expr => {
            $(
                $(#[doc = $meaning:literal])+
                #[statistic($($row:tt)+)]
                pub $field:ident: $type:ident $(<$($inner:ty),+>)?,
            )+
        }
    ) => {
        $(#[$about])*
        pub struct $name {
            $(
                $(#[doc = $meaning])+
                pub $field: $type $(<$($inner),+>)?,
            )+
        }

        impl $name {
            /// Description of each field.
            pub const STATISTICS: &'static [$crate::statistic::Statistic<$owner>] = &{
                const ROWS: &[&[$crate::statistic::Statistic<$owner>]] = &[$(
                    $crate::statistic_rows!([$($row)+] $owner; $type, |$it| $place, $field),
                )+];
                $crate::table::joined::<_, { $crate::table::count(ROWS) }>(ROWS, $crate::statistic::Statistic::FILLER)
            };
        }
    };
}

/// The rows of one field.
#[doc(hidden)]
#[macro_export]
macro_rules! statistic_rows {
    ([all of $rows:expr] $($field:tt)+) => {
        $rows
    };
    (
        [$name:literal, $kind:ident, $unit:ident, $about:literal, from $source:expr
            $(, $with:ident $(($value:expr))?)* $(,)?]
        $owner:ty; $($field:tt)+
    ) => {
        &[$crate::statistic::Statistic::<$owner>::new(
            $name,
            $crate::statistic::Kind::$kind,
            $crate::statistic::Unit::$unit,
            $about,
            $source,
        )$(.$with($($value)?))*]
    };
    (
        [$name:literal, $kind:ident, $unit:ident, $about:literal $(, $with:ident $(($value:expr))?)* $(,)?]
        $owner:ty; $($field:tt)+
    ) => {
        &[$crate::statistic::Statistic::<$owner>::new(
            $name,
            $crate::statistic::Kind::$kind,
            $crate::statistic::Unit::$unit,
            $about,
            $crate::statistic_access!($($field)+),
        )$(.$with($($value)?))*]
    };
}

/// Access to a field with a whole number.
#[macro_export]
macro_rules! count {
    ($($field:ident).+) => {
        $crate::statistic::Access::Count(|it| it.$($field).+, |it| &mut it.$($field).+)
    };
}

/// Access to a field with a span of time.
#[macro_export]
macro_rules! span {
    ($($field:ident).+) => {
        $crate::statistic::Access::Span(|it| it.$($field).+, |it| &mut it.$($field).+)
    };
}

/// Access to one field, after its type.
#[doc(hidden)]
#[macro_export]
macro_rules! statistic_access {
    (u64, |$it:ident| $place:expr, $field:ident) => {
        $crate::statistic::Access::Count(|$it| $place.$field, |$it| &mut $place.$field)
    };
    (Duration, |$it:ident| $place:expr, $field:ident) => {
        $crate::statistic::Access::Span(|$it| $place.$field, |$it| &mut $place.$field)
    };
    ($type:ident, |$it:ident| $place:expr, $field:ident) => {
        $crate::statistic::Access::State(|$it| $crate::statistic::Shown::shown(&$place.$field))
    };
}
