//! Reading array files.
