//! Writing array files.
