//! Diagnostics as text: for people (plain, coloured, one line) and for programs (one JSON object a line).
