//! HTTP's dates (RFC 9110 §5.6.7): written in the one form, read in all three.

/// Seconds since 1970 as `Sun, 06 Nov 1994 08:49:37 GMT`.
pub(crate) fn format(seconds: i64) -> String {
    let (days, rest) = (seconds.div_euclid(DAY), seconds.rem_euclid(DAY));
    let (year, month, day) = civil(days);
    let weekday = WEEKDAYS[(days + 4).rem_euclid(7) as usize];
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    let month = MONTHS[month as usize - 1];
    format!("{weekday}, {day:02} {month} {year:04} {hour:02}:{minute:02}:{second:02} GMT")
}

/// Seconds since 1970 of any of the three forms; `None` for what is no date. `now` settles the century of years with
/// two digits: one that seems more than 50 years ahead is past.
pub(crate) fn parse(text: &str, now: i64) -> Option<i64> {
    let words: Vec<&str> = text.split(' ').filter(|word| !word.is_empty()).collect();
    let (day, month, year, time) = match words[..] {
        // Sun, 06 Nov 1994 08:49:37 GMT
        [weekday, day, month, year, time, "GMT"] if weekday.ends_with(',') => (day, month, year, time),
        // Sunday, 06-Nov-94 08:49:37 GMT
        [weekday, date, time, "GMT"] if weekday.ends_with(',') => {
            let (day, rest) = date.split_once('-')?;
            let (month, year) = rest.split_once('-')?;
            (day, month, year, time)
        }
        // Sun Nov  6 08:49:37 1994
        [_, month, day, time, year] => (day, month, year, time),
        _ => return None,
    };
    let month = MONTHS.iter().position(|name| *name == month)? as i64 + 1;
    let mut year = (number(year)?, year.len());
    if year.1 == 2 {
        let this_year = civil(now.div_euclid(DAY)).0;
        year.0 += this_year / 100 * 100;
        if year.0 > this_year + 50 {
            year.0 -= 100;
        }
    } else if year.1 != 4 {
        return None;
    }
    let mut clock = time.split(':').map(number);
    let (hour, minute, second) = (clock.next()??, clock.next()??, clock.next()??);
    let day = number(day)?;
    // A leap second is written 60.
    let fits = clock.next().is_none() && hour < 24 && minute < 60 && second <= 60 && (1..=31).contains(&day);
    fits.then(|| days(year.0, month, day) * DAY + hour * 3600 + minute * 60 + second)
}

fn number(text: &str) -> Option<i64> {
    let digits = (1..=4).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    if digits { text.parse().ok() } else { None }
}

/// Days since 1970 of a date in the Gregorian calendar, which here begins on the first of March in year 0.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let years = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (years.div_euclid(400), years.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// Year, month and day of a number of days since 1970.
fn civil(days: i64) -> (i64, i64, i64) {
    let since = days + 719_468;
    let (era, of_era) = (since.div_euclid(146_097), since.rem_euclid(146_097));
    let years = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * years + years / 4 - years / 100);
    let shifted = (5 * of_year + 2) / 153;
    let (month, day) = ((shifted + 2) % 12 + 1, of_year - (153 * shifted + 2) / 5 + 1);
    (era * 400 + years + i64::from(month <= 2), month, day)
}

const DAY: i64 = 86_400;
const WEEKDAYS: [&str; 7] = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RFC 9110 §5.6.7; `date -d @784111777`.
    #[test]
    fn the_three_forms_of_the_rfc() {
        assert_eq!(format(784_111_777), "Sun, 06 Nov 1994 08:49:37 GMT");
        for text in ["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"] {
            assert_eq!(parse(text, 784_111_777), Some(784_111_777), "{text}");
        }
    }

    #[test]
    fn every_day_of_four_centuries_comes_back() {
        for day in -100_000..200_000 {
            let at = day * DAY + 3723;
            assert_eq!(parse(&format(at), 0), Some(at), "{}", format(at));
        }
    }

    #[test]
    fn what_is_no_date_is_none() {
        for text in [
            "",
            "yesterday",
            "Sun, 06 Nov 1994 08:49 GMT",
            "Sun, 32 Nov 1994 08:49:37 GMT",
            "Sun, 06 Non 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 08:49:37:1 GMT",
            "Sun, 06 Nov 1994 25:49:37 GMT",
            "Sun, -6 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 99999999999999999999 08:49:37 GMT",
        ] {
            assert_eq!(parse(text, 0), None, "{text}");
        }
    }
}
