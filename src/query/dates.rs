//! Formats and parses dates.

const SECONDS_A_DAY: i64 = 86_400;

/// Formats seconds since 1970, with an offset east of UTC in seconds, as `2024-02-29T13:05:00+02:00`.
pub fn timestamp(time: i64, utc_offset: i32) -> String {
    let local = time.saturating_add(i64::from(utc_offset));
    let (year, month, day) = civil_from_days(local.div_euclid(SECONDS_A_DAY));
    let second = local.rem_euclid(SECONDS_A_DAY);
    let (sign, offset) = if utc_offset < 0 {
        ('-', -i64::from(utc_offset))
    } else {
        ('+', i64::from(utc_offset))
    };
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}{sign}{:02}:{:02}",
        second / 3600,
        second / 60 % 60,
        second % 60,
        offset / 3600,
        offset / 60 % 60
    )
}

/// Formats the day only.
pub fn day(time: i64, utc_offset: i32) -> String {
    let text = timestamp(time, utc_offset);
    text.split_once('T').map_or(text.clone(), |(day, _)| day.to_owned())
}

/// Parses a point in time: `2024-02-29`; `2024-02-29T13:05`, optionally followed by `Z` or `+02:00`; `@1709208000`; or
/// a duration before `now` such as `12h`, `30d`, `2w`, `6m` (months of 30 days), `1y` (years of 365 days). The default
/// offset is UTC.
pub fn parse_moment(text: &str, now: i64) -> Option<i64> {
    let text = text.trim();
    if let Some(seconds) = text.strip_prefix('@') {
        return seconds.parse().ok();
    }
    if let Some(ago) = parse_ago(text) {
        return now.checked_sub(ago);
    }
    let (date, clock) = match text.split_once(['T', ' ']) {
        Some((date, clock)) => (date, Some(clock)),
        None => (text, None),
    };
    let mut numbers = date.splitn(3, '-').map(|number| number.parse::<i64>().ok());
    let (year, month, day) = (numbers.next()??, numbers.next()??, numbers.next()??);
    let is_date = (0..=9999).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    let midnight = is_date.then(|| days_from_civil(year, month, day) * SECONDS_A_DAY)?;
    match clock {
        None => Some(midnight),
        Some(clock) => Some(midnight + parse_clock(clock)?),
    }
}

fn parse_ago(text: &str) -> Option<i64> {
    let unit = text.chars().last()?;
    let seconds = match unit {
        'h' => 3600,
        'd' => SECONDS_A_DAY,
        'w' => 7 * SECONDS_A_DAY,
        'm' => 30 * SECONDS_A_DAY,
        'y' => 365 * SECONDS_A_DAY,
        _ => return None,
    };
    let count: u32 = text.strip_suffix(unit)?.trim().parse().ok()?;
    i64::from(count).checked_mul(seconds)
}

/// Seconds since midnight UTC.
fn parse_clock(text: &str) -> Option<i64> {
    let text = text.trim();
    let (clock, offset) = match text.find(['Z', 'z', '+', '-']) {
        Some(at) => (text[..at].trim(), parse_offset(&text[at..])?),
        None => (text, 0),
    };
    let numbers: Option<Vec<i64>> = clock.split(':').map(|number| number.parse().ok()).collect();
    let (hour, minute, second) = match numbers?.as_slice() {
        [hour, minute] => (*hour, *minute, 0),
        [hour, minute, second] => (*hour, *minute, *second),
        _ => return None,
    };
    let is_clock = (0..24).contains(&hour) && (0..60).contains(&minute) && (0..=60).contains(&second);
    is_clock.then_some(hour * 3600 + minute * 60 + second - offset)
}

fn parse_offset(text: &str) -> Option<i64> {
    let sign = match text.chars().next()? {
        'Z' | 'z' => return (text.len() == 1).then_some(0),
        '-' => -1,
        _ => 1,
    };
    let digits: String = text[1..].chars().filter(|c| *c != ':').collect();
    let number: i64 = digits.parse().ok()?;
    match digits.len() {
        2 => Some(sign * number * 3600),
        4 => Some(sign * (number / 100 * 3600 + number % 100 * 60)),
        _ => None,
    }
}

/// Days since 1970-01-01 in the proleptic Gregorian calendar.
/// Source: Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms", `days_from_civil`.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// The inverse of [`days_from_civil`]. Source: ibid., `civil_from_days`.
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_and_read() {
        assert_eq!(timestamp(0, 0), "1970-01-01T00:00:00+00:00");
        assert_eq!(timestamp(-1, 0), "1969-12-31T23:59:59+00:00");
        assert_eq!(timestamp(1_709_208_000, 7200), "2024-02-29T14:00:00+02:00");
        assert_eq!(timestamp(4_102_444_800, -5400), "2099-12-31T22:30:00-01:30");
        for text in [
            "2024-02-29T12:00:00Z",
            "2024-02-29T14:00+02:00",
            "2024-02-29 12:00",
            "@1709208000",
        ] {
            assert_eq!(parse_moment(text, 0), Some(1_709_208_000), "{text}");
        }
        assert_eq!(parse_moment("1969-12-31", 0), Some(-86_400));
        assert_eq!(parse_moment("2w", 1_209_600), Some(0));
        for bad in [
            "",
            "yesterday",
            "2024-13-01",
            "2024-1",
            "12:00",
            "5x",
            "2024-01-01T25:00",
        ] {
            assert_eq!(parse_moment(bad, 0), None, "{bad}");
        }
    }
}
