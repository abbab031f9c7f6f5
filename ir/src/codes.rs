//! Every rule of the language and its tools that a diagnostic can name: one table, ascending.
//!
//! 1xx syntax · 2xx names and items · 3xx types and shapes · 4xx regions, memory, modes · 5xx teams, uniformity,
//! threads · 6xx stages, rings, tokens · 7xx run time · 8xx targets and limits · 9xx command line and files.
//! A number, once published, keeps its meaning; pages with examples live in `explain/`.

use crate::diag::Code;

/// One rule: its code, a name for machines, a title for people.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    pub code: Code,
    pub name: &'static str,
    pub title: &'static str,
}

macro_rules! codes {
    ($($name:ident = $number:literal, $title:literal;)*) => {
        $(#[doc = $title] pub const $name: Code = Code($number);)*

        /// All rules in ascending order of their codes.
        pub const TABLE: &[Row] = &[$(Row { code: $name, name: stringify!($name), title: $title }),*];
    };
}

codes! {
    // 1xx syntax
    UNEXPECTED = 101, "text that cannot stand here";
    BAD_CHARACTER = 102, "a character that the language does not use";
    UNCLOSED = 103, "a bracket that is never closed";
    STRAY_CLOSER = 104, "a closing bracket without an opening one";
    UNTERMINATED_STRING = 105, "a string without its closing quote";
    BAD_ESCAPE = 106, "an escape that strings do not know";
    BAD_NUMBER = 107, "a number that cannot be read";
    TOO_DEEP = 108, "brackets or blocks nested too deeply";
    RESERVED_WORD = 109, "a reserved word used as a name";
    CHAINED_COMPARISON = 110, "comparisons in a chain";
    ASSIGN_IN_CONDITION = 111, "`=` where a comparison is meant";
    UNKNOWN_WORD = 112, "a word that starts no item or statement";
    MISSING_BLOCK = 113, "a body without its braces";
    EXTENT_COLON = 114, "`:` where `+:` or `..` is meant";
    FOREIGN_SYNTAX = 115, "a form of another language";
    MISSING_NEWLINE = 116, "two statements on one line";
    DUPLICATE_CLAUSE = 117, "a clause written twice";
    MISSING_CLAUSE = 118, "a clause that may not be left out";
    TOO_LARGE = 119, "a source file that is too large";

    // 2xx names and items

    // 3xx types and shapes

    // 4xx regions, memory, modes

    // 5xx teams, uniformity, threads

    // 6xx stages, rings, tokens

    // 7xx run time

    // 8xx targets and limits
    UNKNOWN_TARGET = 801, "a target that is not known";
    TARGET_FILE = 802, "a targets file that cannot be read";
    TARGET_KEY = 803, "a key that a targets file does not have";
    TARGET_VALUE = 804, "a value of a targets file that cannot be";
    TARGET_MISSING = 805, "a value that a targets file must state";
    TARGET_INHERITS = 806, "an architecture or chip that leans on another wrongly";
    TARGET_MAP = 807, "a lane map or template that does not fit its instruction";
    BAD_LAYOUT = 808, "layout text that cannot be read";

    // 9xx command line and files
}

/// The row of a code, if the code names a rule.
pub fn row(code: Code) -> Option<&'static Row> {
    TABLE.iter().find(|r| r.code == code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_ascend_and_titles_are_plain() {
        assert!(TABLE.windows(2).all(|w| w[0].code < w[1].code), "rows must ascend and be unique");
        for row in TABLE {
            assert!(!row.title.is_empty() && !row.title.ends_with('.'), "{}", row.name);
        }
    }
}
