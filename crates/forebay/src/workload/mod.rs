//! `forebay workload`: DLIO's workloads listed, checked, planned, made and run.
