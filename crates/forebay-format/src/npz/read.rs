//! Reading: NumPy's zipped arrays: stored and deflated, zip64, with their CRC-32.
