//! The shared ring in numbers: operations, kinds of marks, and where the fields of header, segment and slot lie.
//!
//! The interposer is C and its reader is Rust. Both take their numbers from here: `build.rs` includes this file and writes `layout.h`.

/// Begins every ring, in the order of this machine's bytes.
pub const MAGIC: u64 = 0x3130_474e_4952_4246;
/// Raised with every change of this file that changes a number.
pub const VERSION: u32 = 1;

pub const HEADER_BYTES: usize = 8_192;
pub const SEGMENT_BYTES: usize = 131_072;
pub const SEGMENT_HEAD_BYTES: usize = 64;
pub const SLOT_BYTES: usize = 48;
pub const SLOTS: usize = (SEGMENT_BYTES - SEGMENT_HEAD_BYTES) / SLOT_BYTES;
/// Bytes of text in a slot that continues a path.
pub const TEXT_BYTES: usize = 40;
/// Longer paths are cut.
pub const MAX_TEXT: usize = 4_000;

/// Operations a ring has room to count when they are dropped.
pub const OPS: usize = 64;
pub const DROPPED_AT: usize = 88;
pub const EXE_AT: usize = DROPPED_AT + OPS * 16;
pub const EXE_BYTES: usize = 1_022;
pub const COMMAND_AT: usize = EXE_AT + 2 + EXE_BYTES;
pub const COMMAND_BYTES: usize = 4_094;

/// A duration from here on counts units of 1,024 ns.
pub const LONG_DURATION: u32 = 1 << 31;

/// What an operation is to the verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Moves bytes from a file.
    Read,
    /// Moves bytes to a file.
    Write,
    /// Opens a file.
    Open,
    /// Names, attributes, positions, folders.
    Meta,
    /// Waits for durability.
    Sync,
    /// Maps a file into memory: the bytes that follow are not calls.
    Map,
    /// Not an operation on files: text, marks, processes.
    Event,
}

/// Number, name in the C source, name for people, class.
pub const OPERATIONS: &[(u8, &str, &str, Class)] = &[
    (1, "TEXT", "text", Class::Event),
    (2, "MORE", "more text", Class::Event),
    (3, "MARK", "mark", Class::Event),
    (4, "EXEC", "exec", Class::Event),
    (5, "EXEC_FAILED", "exec failed", Class::Event),
    (6, "FOUND", "descriptor found", Class::Event),
    (8, "OPEN", "open", Class::Open),
    (9, "CLOSE", "close", Class::Meta),
    (10, "READ", "read", Class::Read),
    (11, "PREAD", "pread", Class::Read),
    (12, "READV", "readv", Class::Read),
    (13, "PREADV", "preadv", Class::Read),
    (14, "WRITE", "write", Class::Write),
    (15, "PWRITE", "pwrite", Class::Write),
    (16, "WRITEV", "writev", Class::Write),
    (17, "PWRITEV", "pwritev", Class::Write),
    (18, "LSEEK", "lseek", Class::Meta),
    (19, "FSYNC", "fsync", Class::Sync),
    (20, "FDATASYNC", "fdatasync", Class::Sync),
    (21, "SYNC", "sync", Class::Sync),
    (22, "STAT", "stat", Class::Meta),
    (23, "FSTAT", "fstat", Class::Meta),
    (24, "ACCESS", "access", Class::Meta),
    (25, "OPENDIR", "opendir", Class::Open),
    (26, "READDIR", "readdir", Class::Meta),
    (27, "MMAP", "mmap", Class::Map),
    (28, "MSYNC", "msync", Class::Sync),
    (29, "TRUNCATE", "truncate", Class::Meta),
    (30, "RENAME", "rename", Class::Meta),
    (31, "UNLINK", "unlink", Class::Meta),
    (32, "MKDIR", "mkdir", Class::Meta),
    (33, "FADVISE", "fadvise", Class::Meta),
    (34, "SENDFILE", "sendfile", Class::Read),
    (35, "COPY_FILE_RANGE", "copy_file_range", Class::Read),
    (36, "URING", "io_uring_enter", Class::Event),
    (37, "FOPEN", "fopen", Class::Open),
    (38, "FCLOSE", "fclose", Class::Meta),
    (39, "FREAD", "fread", Class::Read),
    (40, "FWRITE", "fwrite", Class::Write),
    (41, "FSEEK", "fseek", Class::Meta),
    (42, "FFLUSH", "fflush", Class::Meta),
    // The other end of a copy within the kernel; its time is that of the reading end.
    (43, "COPIED", "copied into", Class::Write),
];

/// What a mark says, from the Python hook or from a program's own calls: number, name in the C source, name for people.
pub const MARKS: &[(u16, &str, &str)] = &[
    (1, "WAIT", "batch wait"),
    (2, "STEP", "step"),
    (3, "EPOCH", "epoch"),
    (4, "SAVE", "checkpoint"),
    (5, "LOAD", "restore"),
    (6, "FETCH", "fetch"),
    (7, "PHASE", "phase"),
    (8, "LOADER", "loader"),
];

/// Kinds of files, as an event names them.
pub const TYPES: &[(u8, &str)] = &[(1, "REGULAR"), (2, "FOLDER"), (3, "BLOCK"), (4, "OTHER")];
