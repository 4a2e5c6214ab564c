//! Names the commit that a release profile builds, with its date. Variables of the same names take precedence. A source
//! archive has no commit, and a development build would be repeated after each one.

use std::path::Path;
use std::process::Command;

const COMMIT: &str = "CODESCOUT_COMMIT";
const DATE: &str = "CODESCOUT_DATE";
const EPOCH: &str = "SOURCE_DATE_EPOCH";

fn main() {
    for variable in [COMMIT, DATE, EPOCH] {
        println!("cargo:rerun-if-env-changed={variable}");
    }
    println!("cargo:rerun-if-changed=build.rs");
    let is_release = std::env::var("PROFILE").is_ok_and(|profile| profile == "release");
    let is_given = std::env::var_os(COMMIT).is_some();
    if is_given || !is_release || !Path::new(".git").exists() {
        return;
    }
    for name in ["HEAD", "logs/HEAD", "packed-refs"] {
        let path = git(&["rev-parse", "--git-path", name]).filter(|path| Path::new(path).exists());
        if let Some(path) = path {
            println!("cargo:rerun-if-changed={path}");
        }
    }
    let commit = git(&["rev-parse", "--verify", "HEAD"]);
    let date = epoch_date().or_else(|| git(&["log", "-1", "--format=%cd", "--date=short-local"]));
    if let Some((commit, date)) = commit.zip(date) {
        println!("cargo:rustc-env={COMMIT}={commit}");
        println!("cargo:rustc-env={DATE}={date}");
    }
}

/// Returns what git prints; `None` if it fails or is not installed.
fn git(args: &[&str]) -> Option<String> {
    let called = Command::new("git").env("TZ", "UTC").args(args).output().ok()?;
    let text = String::from_utf8(called.stdout).ok()?;
    let text = text.trim();
    (called.status.success() && !text.is_empty()).then(|| text.to_owned())
}

/// Returns the day of `SOURCE_DATE_EPOCH`. Source: `civil_from_days`,
/// <https://howardhinnant.github.io/date_algorithms.html>.
fn epoch_date() -> Option<String> {
    let seconds: i64 = std::env::var(EPOCH).ok()?.parse().ok()?;
    let days = seconds.div_euclid(86_400) + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    Some(format!("{year:04}-{month:02}-{day:02}"))
}
