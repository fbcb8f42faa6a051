//! Reading: Tables of numbers as text.
