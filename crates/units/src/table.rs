//! Tables that are constants, put together from parts that stand elsewhere.

/// Returns the number of rows of all parts.
pub const fn count<T>(parts: &[&[T]]) -> usize {
    let (mut count, mut part) = (0, 0);
    while part < parts.len() {
        count += parts[part].len();
        part += 1;
    }
    count
}

/// Returns the rows of all parts in one array, one part after the other.
///
/// `N` is their number ([`count`]); `filler` is any row, which is written over.
///
/// # Panics
///
/// If there are more rows than `N`.
///
/// ```
/// use anabranch_units::table::{count, joined};
///
/// const PARTS: &[&[u8]] = &[&[1], &[], &[2, 3]];
/// const ALL: [u8; count(PARTS)] = joined(PARTS, 0);
/// assert_eq!(ALL, [1, 2, 3]);
/// ```
pub const fn joined<T: Copy, const N: usize>(parts: &[&[T]], filler: T) -> [T; N] {
    let mut all = [filler; N];
    // Iterators are not const.
    let (mut at, mut part) = (0, 0);
    while part < parts.len() {
        let mut row = 0;
        while row < parts[part].len() {
            all[at] = parts[part][row];
            at += 1;
            row += 1;
        }
        part += 1;
    }
    all
}
