//! Writes SCIP indexes.

/// Returns the bytes of a number in protobuf.
pub(crate) fn varint(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}

/// Returns a field of a message that is bytes.
pub(crate) fn field(number: u64, content: &[u8]) -> Vec<u8> {
    [varint(number << 3 | 2), varint(content.len() as u64), content.to_vec()].concat()
}

/// Returns an index with these documents.
pub(crate) fn index(tool: &str, documents: &[Vec<u8>]) -> Vec<u8> {
    let info = [field(1, tool.as_bytes()), field(2, b"1.0")].concat();
    let documents = documents.iter().flat_map(|document| field(2, document));
    field(1, &field(2, &info)).into_iter().chain(documents).collect()
}

/// Returns a document about a file. Each name is a word, which of its occurrences in the text is meant (from 0), and its
/// symbol; one that begins with `=` is defined there.
pub(crate) fn document(path: &str, text: &str, names: &[(&str, usize, &str)]) -> Vec<u8> {
    let occurrence = |&(word, nth, symbol): &(&str, usize, &str)| {
        let (at, _) = text.match_indices(word).nth(nth).unwrap();
        let before = &text[..at];
        let line = before.matches('\n').count() as u64;
        let column = (at - before.rfind('\n').map_or(0, |end| end + 1)) as u64;
        let range = [line, column, column + word.len() as u64].map(varint).concat();
        let mut bytes = field(1, &range);
        match symbol.strip_prefix('=') {
            Some(symbol) => bytes.extend([field(2, symbol.as_bytes()), vec![3 << 3, 1]].concat()),
            None => bytes.extend(field(2, symbol.as_bytes())),
        }
        field(2, &bytes)
    };
    let occurrences = names.iter().flat_map(occurrence);
    field(1, path.as_bytes()).into_iter().chain(occurrences).collect()
}
