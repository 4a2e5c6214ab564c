//! Formats and parses dates.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::Offset;

const SECONDS_PER_DAY: i64 = 86_400;

/// Formats a time in seconds since 1970, with an offset east of UTC in seconds, as `2024-02-29T13:05:00+02:00`.
///
/// A commit can have any number as its time or offset. Times outside the years -9999 to 9999 become the nearest time
/// inside; an impossible offset becomes 0.
pub fn timestamp(time: i64, utc_offset: i32) -> String {
    let time = time.clamp(Timestamp::MIN.as_second(), Timestamp::MAX.as_second());
    let time = Timestamp::from_second(time).expect("the time is in range");
    let offset = Offset::from_seconds(utc_offset).unwrap_or(Offset::UTC);
    time.display_with_offset(offset).to_string()
}

/// Returns the date of a timestamp.
pub fn day(timestamp: &str) -> &str {
    &timestamp[..timestamp.len().min(10)]
}

/// Parses a point in time. Accepts `2024-02-29`; `2024-02-29T13:05`, optionally followed by `Z` or `+02:00`;
/// `@1709208000`; or a duration before `now` such as `12h`, `30d`, `2w`, `6m` (months of 30 days) or `1y` (years of 365
/// days). The default offset is UTC.
pub fn parse_moment(text: &str, now: i64) -> Option<i64> {
    let text = text.trim();
    if let Some(seconds) = text.strip_prefix('@') {
        return seconds.parse().ok();
    }
    if let Some(ago) = parse_ago(text) {
        return now.checked_sub(ago);
    }
    let time = match text.parse::<Timestamp>() {
        Ok(time) => time,
        Err(_) => Offset::UTC.to_timestamp(text.parse::<DateTime>().ok()?).ok()?,
    };
    Some(time.as_second())
}

fn parse_ago(text: &str) -> Option<i64> {
    let unit = text.chars().last()?;
    let seconds = match unit {
        'h' => 3600,
        'd' => SECONDS_PER_DAY,
        'w' => 7 * SECONDS_PER_DAY,
        'm' => 30 * SECONDS_PER_DAY,
        'y' => 365 * SECONDS_PER_DAY,
        _ => return None,
    };
    let count: u32 = text.strip_suffix(unit)?.trim().parse().ok()?;
    i64::from(count).checked_mul(seconds)
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
        assert_eq!(timestamp(i64::MAX, i32::MAX), "9999-12-30T22:00:00+00:00");
        assert_eq!(timestamp(i64::MIN, 0), "-009999-01-02T01:59:59+00:00");
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
            "2023-02-29",
            "2024-1",
            "12:00",
            "5x",
            "2024-01-01T25:00",
        ] {
            assert_eq!(parse_moment(bad, 0), None, "{bad}");
        }
    }
}
