//! The binary as a user and a script see it: exit status, stdout, stderr, files.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on has failed")]
#![allow(clippy::print_stderr, reason = "what cannot run on this machine says so")]

mod bad_files;
mod bad_shards;
mod checkpoint;
mod checkpoint_bench;
mod checkpoint_convert;
mod checkpoint_damage;
mod checkpoint_folders;
mod checkpoint_stop;
mod checkpoint_targets;
mod command_line;
mod decode;
mod dir;
mod disk;
mod flags;
mod ingest_cache;
mod ingest_io;
mod ingest_order;
mod ingest_output;
mod ingest_record;
mod ingest_rounds;
mod ingest_tier;
mod inspect;
mod interrupt;
mod make;
mod pack;
mod probe;
mod probe_ceiling;
mod probe_preflight;
mod probe_stop;
mod process;
mod record;
mod report;
mod report_page;
mod study;
mod study_checkpoint;
mod study_file;
mod study_resume;
mod study_train;
mod threads;
mod tier;
mod tier_ingest;
mod tier_kernel;
mod train;
mod train_checkpoint;
mod train_flags;
mod train_input;
mod train_resume;
mod unpack;
mod verify;
mod watch;
mod watch_command;
mod watch_gpu;
mod watch_unprivileged;
