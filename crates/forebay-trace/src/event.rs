//! One event of a job: a call on a file, a mark, a program that was started.

use forebay_interpose::layout::{Class, LONG_DURATION, MARKS, OPERATIONS, TYPES};

/// What happened, by its number in the ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Op(pub u8);

/// Declares constants for operations and finds their numbers in the layout when this is compiled.
macro_rules! numbers {
    ($type:ident in $table:ident: $($name:ident)*) => {
        impl $type {
            $(
                #[allow(missing_docs)]
                pub const $name: Self = Self($table[place!($table, stringify!($name))].0);
            )*
        }
    };
}

macro_rules! place {
    ($table:ident, $name:expr) => {{
        let (mut at, wanted) = (0, $name.as_bytes());
        while !is_same($table[at].1.as_bytes(), wanted) {
            at += 1;
        }
        at
    }};
}

const fn is_same(a: &[u8], b: &[u8]) -> bool {
    let mut at = 0;
    while at < a.len() && at < b.len() && a[at] == b[at] {
        at += 1;
    }
    at == a.len() && at == b.len()
}

numbers! { Op in OPERATIONS:
    TEXT MORE MARK EXEC EXEC_FAILED FOUND OPEN CLOSE READ PREAD READV PREADV WRITE PWRITE WRITEV PWRITEV LSEEK FSYNC FDATASYNC STAT
    ACCESS OPENDIR READDIR MMAP FOPEN FCLOSE FREAD FWRITE FSEEK URING SENDFILE COPY_FILE_RANGE
}

impl Op {
    /// `None` for a number that this version does not know.
    pub fn class(self) -> Option<Class> {
        self.row().map(|row| row.3)
    }

    /// As people write it.
    pub fn name(self) -> &'static str {
        self.row().map_or("unknown", |row| row.2)
    }

    /// Whether `arg` is the offset of the transfer.
    pub fn has_offset(self) -> bool {
        matches!(self, Self::PREAD | Self::PREADV | Self::PWRITE | Self::PWRITEV)
    }

    fn row(self) -> Option<&'static (u8, &'static str, &'static str, Class)> {
        OPERATIONS.iter().find(|row| row.0 == self.0)
    }
}

/// What a mark says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MarkKind(pub u16);

numbers! { MarkKind in MARKS: WAIT STEP EPOCH SAVE LOAD FETCH PHASE LOADER }

impl MarkKind {
    /// As people write it.
    pub fn name(self) -> &'static str {
        MARKS.iter().find(|row| row.0 == self.0).map_or("unknown", |row| row.2)
    }
}

/// The kind of file behind an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileType(pub u8);

numbers! { FileType in TYPES: REGULAR FOLDER BLOCK }

/// An event with all fields of a slot; those that an operation does not use are 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// What happened.
    pub op: Op,
    /// Kind of file, of events that open or find one.
    pub file_type: FileType,
    /// Of a mark.
    pub mark: MarkKind,
    /// Nanoseconds of the monotonic clock.
    pub start_ns: u64,
    /// Nanoseconds; calls of 2 s and more are rounded to microseconds.
    pub duration_ns: u64,
    /// The thread, as the kernel numbers it.
    pub thread: u32,
    /// Number of the open file within its process; 0 for none.
    pub file: u32,
    /// Flags of an open, parts of a vector, protection of a mapping, process of an exec.
    pub extra: u32,
    /// Bytes, descriptor or position; negative is an error number.
    pub result: i64,
    /// Offset or requested bytes; of an open, the size of the file.
    pub arg: u64,
}

impl Default for Event {
    fn default() -> Self {
        Self {
            op: Op::MARK,
            file_type: FileType(0),
            mark: MarkKind(0),
            start_ns: 0,
            duration_ns: 0,
            thread: 0,
            file: 0,
            extra: 0,
            result: 0,
            arg: 0,
        }
    }
}

impl Event {
    /// End on the monotonic clock.
    pub fn end_ns(&self) -> u64 {
        self.start_ns.saturating_add(self.duration_ns)
    }

    /// Bytes that the call moved; 0 if it failed.
    pub fn bytes(&self) -> u64 {
        u64::try_from(self.result).unwrap_or(0)
    }
}

/// Nanoseconds of a duration as slots hold it.
pub(crate) fn duration_ns(stored: u32) -> u64 {
    if stored < LONG_DURATION { u64::from(stored) } else { u64::from(stored - LONG_DURATION) << 10 }
}

/// An event, or a text that names a file, a program or a phase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// A call, a mark, a program.
    Event(Event),
    /// What a number stands for from here on.
    Text {
        /// Number of the file, as in later events.
        file: u32,
        /// A path, as bytes.
        text: Vec<u8>,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_layout() {
        assert_eq!((Op::PREAD.name(), Op::PREAD.class()), ("pread", Some(Class::Read)));
        assert_eq!((MarkKind::WAIT.name(), FileType::REGULAR.0), ("batch wait", 1));
        assert_eq!((Op(63).class(), Op(63).name()), (None, "unknown"));
    }

    #[test]
    fn long_durations_are_rounded_and_not_cut() {
        assert_eq!(duration_ns(17), 17);
        assert_eq!(duration_ns(LONG_DURATION + 3_000_000), 3_000_000 * 1024);
    }
}
