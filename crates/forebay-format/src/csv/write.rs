//! Writing: Tables of numbers as text.
