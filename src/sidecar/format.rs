//! The file `FORMAT`, which identifies the directory and its layout.
//!
//! ```text
//! codescout sidecar
//! layout 1
//! check <xxh3 of the two previous lines, 16 hexadecimal digits>
//! ```
//! The checksum in the third line distinguishes another layout number from a flipped bit. If the third line is missing,
//! the first two are trusted.

use xxhash_rust::xxh3::xxh3_64;

/// Content of `.gitignore` in the sidecar.
pub(super) const GITIGNORE: &str = "*\n";
const FIRST_LINE: &str = "codescout sidecar";

/// The result of parsing `FORMAT`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// The version of the directory's layout.
    Layout(u32),
    /// The file is not in the form that codescout writes.
    Damaged,
}

/// Returns the content of `FORMAT` for a layout version.
pub(super) fn text(layout: u32) -> String {
    let text = format!("{FIRST_LINE}\nlayout {layout}\n");
    let check = xxh3_64(text.as_bytes());
    format!("{text}check {check:016x}\n")
}

/// Parses the content of `FORMAT`.
pub(super) fn parse(bytes: &[u8]) -> Format {
    let layout = || {
        let text = std::str::from_utf8(bytes).ok()?;
        let mut lines = text.lines();
        (lines.next()? == FIRST_LINE).then_some(())?;
        let layout = lines.next()?.strip_prefix("layout ")?.parse().ok()?;
        let is_sound = lines.next().is_none() || text == self::text(layout);
        is_sound.then_some(layout)
    };
    layout().map_or(Format::Damaged, Format::Layout)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_layouts_differ_from_flipped_bits() {
        assert_eq!(parse(text(1).as_bytes()), Format::Layout(1));
        assert_eq!(parse(text(7).as_bytes()), Format::Layout(7));
        assert_eq!(parse(b"codescout sidecar\nlayout 99\n"), Format::Layout(99));
        assert_eq!(
            parse(text(1).replace("layout 1", "layout 3").as_bytes()),
            Format::Damaged
        );
        assert_eq!(parse(b""), Format::Damaged);
    }
}
