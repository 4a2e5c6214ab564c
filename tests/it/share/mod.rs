//! Tests transferring the index of a repository to other clones.

mod audit;
mod ci;
mod commits;
mod exchange;
mod facts;
mod hostile;
mod hostile_remote;
mod poison;
mod raw;
mod sharing;
mod templates;
mod vectors;

use crate::support::TestRepo;

/// Creates three commits with files of several kinds.
fn project() -> TestRepo {
    let repo = TestRepo::new(
        "
        //- src/upload.rs
        /// Sends a file, and tries again when the connection is lost.
        pub fn retry_upload(path: &Path) -> Result<(), UploadError> {
            for attempt in 0..MAX_ATTEMPTS {
                if send(path, attempt).is_ok() { return Ok(()); }
            }
            Err(UploadError::GaveUp)
        }
        //- src/cache.py
        class Cache:
            def evict(self, key):
                '''Removes the oldest entry.'''
                self.entries.pop(key)
        //- docs/guide.md
        # Installing

        Copy the binary somewhere.
        ",
    );
    repo.write("logo.png", b"\x89PNG\0\0\0");
    repo.write("include/point.h", "struct Point { int x; };\n");
    repo.commit("more");
    repo.write(
        "web/render.ts",
        "export function renderTable(rows: Row[]) { return rows.map(renderRow); }\n",
    );
    repo.rename("src/cache.py", "src/store.py");
    repo.commit("most");
    repo
}

/// The example key of RFC 8410, section 10.
const PRIVATE_KEY: &str = "-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC
-----END PRIVATE KEY-----
";
const PUBLIC_KEY: &str = "19bf44096984cdfe8541bac167dc3b96c85086aa30b6b6cb0c5c38ad703166e1";

const QUERIES: [&str; 4] = [
    "retry_upload",
    "where is a failed upload retried",
    "evict",
    "renderTable rows",
];
