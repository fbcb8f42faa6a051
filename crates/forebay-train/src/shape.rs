//! The shape of one sample between two layers.

use std::fmt;

/// Height, width and channels, with channels contiguous in memory (NHWC). A vector is 1 × 1 × its length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    pub height: usize,
    pub width: usize,
    pub channels: usize,
}

impl Shape {
    pub const fn new(height: usize, width: usize, channels: usize) -> Self {
        Self { height, width, channels }
    }

    /// A vector as an image of one pixel with `len` channels.
    pub const fn vector(len: usize) -> Self {
        Self::new(1, 1, len)
    }

    pub const fn pixels(&self) -> usize {
        self.height * self.width
    }

    pub const fn len(&self) -> usize {
        self.pixels() * self.channels
    }

    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}×{}×{}", self.height, self.width, self.channels)
    }
}
