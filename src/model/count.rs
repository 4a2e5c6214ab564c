//! Numbers of things in words.

/// Returns a number with its noun: `1 commit`, `2 commits`.
pub(crate) fn count(n: impl TryInto<u64>, noun: &str) -> String {
    let n = n.try_into().unwrap_or(u64::MAX);
    format!("{n} {}", plural(n, noun))
}

/// Returns a noun in the form that follows a number.
pub(crate) fn plural(n: u64, noun: &str) -> String {
    match noun.strip_suffix('y') {
        _ if n == 1 => noun.to_owned(),
        Some(stem) => format!("{stem}ies"),
        None => format!("{noun}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nouns_agree_with_their_number() {
        assert_eq!(count(0_u32, "file"), "0 files");
        assert_eq!(count(1_usize, "deleted file"), "1 deleted file");
        assert_eq!(count(2_u64, "entry"), "2 entries");
    }
}
