/* The shared ring of one process, as `forebay trace` reads it. The numbers of operations, kinds and fields come from
 * layout.h, which build.rs writes from src/layout.rs: they are declared once, there. */
#ifndef FOREBAY_RING_H
#define FOREBAY_RING_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "layout.h"

#define EXPORT __attribute__((visibility("default")))
#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

/* One event. `seq` is written last: it holds the order of the segment when the slot is complete. */
struct slot {
    uint32_t seq;
    uint8_t op;
    uint8_t type;
    uint16_t kind;
    uint64_t start_ns;
    uint32_t duration;
    uint32_t thread;
    uint32_t file;
    uint32_t extra;
    int64_t result;
    uint64_t arg;
};

_Static_assert(sizeof(struct slot) == FB_SLOT_BYTES, "slot");
_Static_assert(offsetof(struct slot, start_ns) == 8 && offsetof(struct slot, result) == 32, "slot");

struct segment {
    /* 0 when free; otherwise the place of this segment among all that the process filled, from 1. */
    uint64_t order;
    uint64_t tail;
    uint64_t unused[6];
    struct slot slots[FB_SLOTS];
};

_Static_assert(sizeof(struct segment) <= FB_SEGMENT_BYTES, "segment");

struct header {
    uint64_t magic;
    uint32_t version;
    uint32_t max_segments;
    uint32_t pid;
    uint32_t parent;
    uint64_t start_ns;
    uint64_t pid_namespace;
    uint32_t n_segments;
    uint32_t unused;
    uint64_t n_dropped;
    uint64_t other_reads;
    uint64_t other_read_bytes;
    uint64_t other_writes;
    uint64_t other_written_bytes;
    uint64_t dropped[FB_OPS][2];
    uint16_t exe_len;
    char exe[FB_EXE_BYTES];
    uint16_t command_len;
    char command[FB_COMMAND_BYTES];
};

_Static_assert(sizeof(struct header) <= FB_HEADER_BYTES, "header");
_Static_assert(offsetof(struct header, dropped) == FB_DROPPED_AT, "header");
_Static_assert(offsetof(struct header, exe_len) == FB_EXE_AT, "header");
_Static_assert(offsetof(struct header, command_len) == FB_COMMAND_AT, "header");

/* The value of a descriptor that is no file: a pipe, a socket, a terminal. */
#define NO_FILE UINT32_MAX
#define MAX_FDS (1u << 20)

/* Whether events of this process are kept; opens the ring if this process has none yet. */
int forebay_on(void);

uint64_t forebay_now(void);

/* The number of the file behind a descriptor; asks the kernel if it is not known. NO_FILE if it is none, or if the
 * process is not traced. */
uint32_t forebay_file(int fd);
/* The same without asking: NO_FILE also if the process never used the descriptor. */
uint32_t forebay_known(int fd);
void forebay_forget(int fd);
void forebay_forget_range(unsigned first, unsigned last);

/* Adds an event that began at `start_ns` and ends now. */
void forebay_event(uint8_t op, uint64_t start_ns, uint32_t file, int64_t result, uint64_t arg, uint32_t extra);
/* The same with its duration, for sums and marks. */
void forebay_span(uint8_t op, uint16_t kind, uint64_t start_ns, uint64_t duration_ns, uint32_t file, int64_t result,
                  uint64_t arg, uint32_t extra);
/* Gives the file of a new descriptor a number, and adds its path and the event of its opening. */
void forebay_opened(uint8_t op, uint64_t start_ns, int dir, const char *path, int fd, int error, int flags);
/* A path without a file: what a process starts, what a mark is called. */
uint32_t forebay_name(const char *text);

void forebay_other_read(ssize_t n);
void forebay_other_write(ssize_t n);

long forebay_syscall(long number, long a, long b, long c, long d, long e, long f);

/* A result of a call that sets errno: the value, or minus the error. */
#define RESULT(value) ((value) < 0 ? -(int64_t)errno : (int64_t)(value))

void *forebay_real(const char *name);
#define REAL(name) \
    ({ \
        static __typeof__(&name) known; \
        __typeof__(&name) found = __atomic_load_n(&known, __ATOMIC_RELAXED); \
        if (UNLIKELY(!found)) { \
            found = (__typeof__(&name))forebay_real(#name); \
            __atomic_store_n(&known, found, __ATOMIC_RELAXED); \
        } \
        found; \
    })

#endif
