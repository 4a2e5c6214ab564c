//! Answers queries about a view. The results are locations in files.
//!
//! This module never writes. A [`View`](crate::snapshot::View) is immutable, so the results of a query on it do not
//! change. Start at [`search`].

mod analyze;
mod blame;
mod candidates;
mod commits;
mod cursor;
mod dates;
mod defining;
mod definition;
mod deleted;
mod exact;
mod features;
mod filter;
mod grep;
mod history;
mod hit;
mod lexical_leg;
mod likely;
mod lines;
mod marks;
mod meaning;
mod messages;
mod near;
mod outline;
mod packages;
mod path_role;
mod pattern;
mod pickaxe;
mod placed;
mod places;
mod preview;
mod printed;
mod rank;
mod ranking;
mod read;
mod reading;
mod report;
mod request;
mod rerank;
mod scope;
mod search;
mod sought;
mod source;
mod sparse_leg;
mod spelling;
mod statistics;
mod symbols;
mod target;
mod verbatim;
mod weak;

pub use blame::{
    BlamedLine, Owner, SymbolBlame, by_symbol as blame_by_symbol, change_owners, file_owners, folder_owners,
    over_changes as blame_over_changes, owners as line_owners,
};
pub use candidates::withheld;
pub use commits::{CommitHit, CommitMode, CommitSearchError, CommitSearcher, CommitsOutcome};
pub use cursor::{CursorError, CursorKey, ScorersUsed};
pub use dates::{day, parse_moment, timestamp};
pub use definition::{FoundDefinition, is_named, kind_by_name, kind_name, kind_names, names_in_file};
pub use deleted::{
    DeletedSymbol, Removal, RenamedSymbol, deleted_symbols, is_called, latest_key, removals, renamed_symbols,
};
pub use exact::{ExactError, ExactText, unindexed_with};
pub use filter::{FileFilter, FilterError, Tests};
pub use grep::{FileMatches, GrepDetail, GrepLine, GrepOutcome, GrepPosition, GrepRequest, grep};
pub use history::{
    Cochange, FileChangeKind, FileLog, FileLogEntry, Gaps, LogFilter, cochange, deleted_files, file_commits, file_log,
    folder_log, near_paths, patch_of,
};
pub use hit::{FurtherPart, Hit, HitPlace, MatchedBy, Symbol};
pub use likely::{LikelyFiles, LikelyQuery, likely, n_not_indexed};
pub use lines::LineStarts;
pub use marks::Marks;
pub use messages::CommitMessages;
pub use near::{Near, nearest};
pub use outline::{
    FileHeadings, FileImports, FileSymbols, OutlineError, RepositoryMap, Share, Summary, TreeNode, files_below,
    headings_of, imports_of, map, summary, symbols_of, tree,
};
pub use packages::{Package, ancestors, go_directives, packages};
pub use path_role::is_test_path;
pub use pattern::{Pattern, PatternError, PatternOptions};
pub use pickaxe::{DiffHit, DiffSearch, DiffsOutcome};
pub use preview::Preview;
pub use rank::{FEATURES, Features, N_FEATURES, Weights};
pub use ranking::LEG_CANDIDATES;
pub use read::{
    Part, PartQuery, ReadError, ReadOutcome, ReadTarget, is_folder, parse_lines, paths_in_target, read, read_target,
    split_position, unknown_path,
};
pub use request::{Mode, Request, SearchError, SearchOutcome};
pub use rerank::{Rerank, RerankError, Reranker, Reranking};
pub use scope::CommitFilter;
pub use search::Searcher;
pub use sought::Sought;
pub use source::{Source, SourceError, SourceReader, Sources};
pub use statistics::{Count, Statistics, WholeStatistics, term_number};
pub use symbols::{
    FoundBy, SymbolError, SymbolOutcome, SymbolQuery, SymbolRequest, Usage, UsageKind, definition_names,
    definitions_at, definitions_in, symbols, usages,
};
pub use target::{
    MAX_MEANT, OTHER_SPELLING, PlaceError, TargetError, drop_minor, is_minor, meant, parse_place, parse_target,
};
