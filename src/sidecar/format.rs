//! The text of `FORMAT`: who made the folder, and by which layout.
//!
//! ```text
//! codescout sidecar
//! layout 1
//! check <xxh3 of the two lines before, 16 hexadecimal digits>
//! ```
//! The third line tells a layout of another build from a flipped bit. Without it the first two are believed.

use xxhash_rust::xxh3::xxh3_64;

/// What the `.gitignore` beside it holds.
pub(super) const GITIGNORE: &str = "*\n";
const FIRST_LINE: &str = "codescout sidecar";

/// What a file of that name says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// The folder has this layout.
    Layout(u32),
    /// Nothing that this program wrote.
    Damaged,
}

/// The text for a layout.
pub(super) fn text(layout: u32) -> String {
    let told = format!("{FIRST_LINE}\nlayout {layout}\n");
    let check = xxh3_64(told.as_bytes());
    format!("{told}check {check:016x}\n")
}

/// Reads the text.
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
    fn another_layout_is_told_from_a_flipped_bit() {
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
