/* The ring: a file in shared memory that this process fills and `forebay trace` empties.
 *
 * It outlives the process, so nothing is lost when a worker is killed. Threads reserve slots of a segment with one addition
 * and complete them with one store, so a signal handler or a vfork child may add events in between. Nothing here
 * allocates, locks in the usual case or needs an exit handler. Memory of the file is reserved before it is used: a full
 * disk drops events, which are counted, and never ends the process. */
#define _GNU_SOURCE
#include "ring.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <time.h>

/* The library must load where glibc is older than here. */
#if defined(__x86_64__)
__asm__(".symver dlsym, dlsym@GLIBC_2.2.5");
#elif defined(__aarch64__)
__asm__(".symver dlsym, dlsym@GLIBC_2.17");
#endif

#define FOLDER_BYTES 512
#define UNSEEN 0u
#define ON 1u
#define OFF 2u

/* All that a forked child must not inherit; the kernel clears it at a fork. */
struct own {
    uint32_t state;
    uint32_t lock;
    uint32_t next_file;
    uint32_t unused;
    struct header *header;
    struct segment *current;
    /* Segments begun so far. Not read from a segment: its reader may have freed even the current one. */
    uint64_t order;
    uint32_t files[MAX_FDS];
};

static struct own *own;
static char folder[FOLDER_BYTES];
static uint32_t wanted_segments = 256;
static uint32_t generation = 1;
static __thread uint32_t thread_id;
static __thread uint32_t thread_generation;

long forebay_syscall(long number, long a, long b, long c, long d, long e, long f) {
#if defined(__x86_64__)
    long result;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    __asm__ volatile("syscall" : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
#elif defined(__aarch64__)
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    register long x5 __asm__("x5") = f;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
    return x0;
#endif
}

#define CALL3(number, a, b, c) forebay_syscall(number, (long)(a), (long)(b), (long)(c), 0, 0, 0)
#define CALL6(number, a, b, c, d, e, f) \
    forebay_syscall(number, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

void *forebay_real(const char *name) {
    return dlsym(RTLD_NEXT, name);
}

EXPORT uint64_t forebay_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint32_t thread(void) {
    uint32_t now = __atomic_load_n(&generation, __ATOMIC_RELAXED);
    if (UNLIKELY(thread_generation != now)) {
        thread_id = (uint32_t)CALL3(SYS_gettid, 0, 0, 0);
        thread_generation = now;
    }
    return thread_id;
}

static char *put_number(char *to, uint64_t value) {
    char digits[20];
    int n = 0;
    do {
        digits[n++] = (char)('0' + value % 10);
        value /= 10;
    } while (value);
    while (n) *to++ = digits[--n];
    return to;
}

/* Opens the file "FOLDER/PID-START.ring" of a ring. */
static long ring_file(uint32_t pid, uint64_t start_ns, int flags) {
    char path[FOLDER_BYTES + 64];
    size_t n = strlen(folder);
    memcpy(path, folder, n);
    path[n++] = '/';
    char *end = put_number(path + n, pid);
    *end++ = '-';
    end = put_number(end, start_ns);
    memcpy(end, ".ring", 6);
    return CALL6(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC | flags, 0600, 0, 0);
}

static uint16_t read_text(const char *path, int is_link, char *to, size_t room) {
    long n;
    if (is_link) {
        n = CALL6(SYS_readlinkat, AT_FDCWD, path, to, room, 0, 0);
    } else {
        long fd = CALL6(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0, 0, 0);
        if (fd < 0) return 0;
        n = CALL3(SYS_read, fd, to, room);
        CALL3(SYS_close, fd, 0, 0);
    }
    return n > 0 ? (uint16_t)n : 0;
}

static uint64_t pid_namespace(void) {
    struct stat found;
    long failed = CALL6(SYS_newfstatat, AT_FDCWD, "/proc/self/ns/pid", &found, 0, 0, 0);
    return failed ? 0 : (uint64_t)found.st_ino;
}

/* As many segments as a file may have here: beyond the limit, the kernel would end the process. */
static uint32_t allowed_segments(void) {
    struct rlimit limit;
    if (CALL6(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, &limit, 0, 0)) return 0;
    if (limit.rlim_cur == RLIM_INFINITY) return wanted_segments;
    if (limit.rlim_cur < FB_HEADER_BYTES) return 0;
    uint64_t fit = (limit.rlim_cur - FB_HEADER_BYTES) / FB_SEGMENT_BYTES;
    return fit < wanted_segments ? (uint32_t)fit : wanted_segments;
}

static struct segment *segment(struct header *header, uint32_t index) {
    return (struct segment *)((char *)header + FB_HEADER_BYTES + (size_t)index * FB_SEGMENT_BYTES);
}

/* Mapping and file of a ring with one segment; NULL if there is no room for it. */
static struct header *new_ring(void) {
    uint32_t n = allowed_segments();
    if (!n) return NULL;
    uint32_t pid = (uint32_t)CALL3(SYS_getpid, 0, 0, 0);
    uint64_t start_ns = forebay_now();
    long fd = ring_file(pid, start_ns, O_CREAT | O_EXCL);
    if (fd < 0) return NULL;
    size_t bytes = FB_HEADER_BYTES + (size_t)n * FB_SEGMENT_BYTES;
    struct header *header = NULL;
    if (!CALL6(SYS_fallocate, fd, 0, 0, FB_HEADER_BYTES + FB_SEGMENT_BYTES, 0, 0) &&
        !CALL3(SYS_ftruncate, fd, bytes, 0)) {
        long at = CALL6(SYS_mmap, NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (at > -4096 && at < 0) at = 0;
        header = (struct header *)at;
    }
    CALL3(SYS_close, fd, 0, 0);
    if (!header) return NULL;
    CALL3(SYS_madvise, header, bytes, MADV_DONTDUMP);
    header->version = FB_VERSION;
    header->max_segments = n;
    header->n_segments = 1;
    header->pid = pid;
    header->parent = (uint32_t)CALL3(SYS_getppid, 0, 0, 0);
    header->start_ns = start_ns;
    header->pid_namespace = pid_namespace();
    header->exe_len = read_text("/proc/self/exe", 1, header->exe, FB_EXE_BYTES);
    header->command_len = read_text("/proc/self/cmdline", 0, header->command, FB_COMMAND_BYTES);
    segment(header, 0)->order = 1;
    /* From here on it is complete. */
    __atomic_store_n(&header->magic, FB_MAGIC, __ATOMIC_RELEASE);
    return header;
}

static void lock(void) {
    while (__atomic_exchange_n(&own->lock, 1, __ATOMIC_ACQUIRE)) CALL3(SYS_sched_yield, 0, 0, 0);
}

static void unlock(void) {
    __atomic_store_n(&own->lock, 0, __ATOMIC_RELEASE);
}

static int begin(void) {
    lock();
    if (own->state == UNSEEN) {
        __atomic_add_fetch(&generation, 1, __ATOMIC_RELAXED);
        struct header *header = new_ring();
        own->next_file = 1;
        own->order = 1;
        own->header = header;
        own->current = header ? segment(header, 0) : NULL;
        __atomic_store_n(&own->state, header ? ON : OFF, __ATOMIC_RELEASE);
    }
    unlock();
    return own->state == ON;
}

int forebay_on(void) {
    if (UNLIKELY(!own)) return 0;
    uint32_t state = __atomic_load_n(&own->state, __ATOMIC_ACQUIRE);
    if (LIKELY(state == ON)) return 1;
    return state == UNSEEN && begin();
}

/* Reserves the memory of one more segment, which may fail where touching it would end the process. */
static int grow(struct header *header) {
    long fd = ring_file(header->pid, header->start_ns, 0);
    if (fd < 0) return 0;
    size_t at = FB_HEADER_BYTES + (size_t)header->n_segments * FB_SEGMENT_BYTES;
    long failed = CALL6(SYS_fallocate, fd, 0, at, FB_SEGMENT_BYTES, 0, 0);
    CALL3(SYS_close, fd, 0, 0);
    return !failed;
}

/* The next segment: a free one, or one more of the file. NULL if all are full. `full` is the one that the caller saw. */
static struct segment *next_segment(struct segment *full) {
    /* A signal handler that interrupts the holder of the lock must not wait for it. */
    for (int tries = 0; __atomic_exchange_n(&own->lock, 1, __ATOMIC_ACQUIRE); tries++) {
        if (tries > 1000) return NULL;
        CALL3(SYS_sched_yield, 0, 0, 0);
    }
    struct header *header = own->header;
    struct segment *found = own->current;
    /* A segment that was emptied and taken again since the caller saw it full has room. */
    if (found == full && __atomic_load_n(&full->tail, __ATOMIC_RELAXED) >= FB_SLOTS) {
        found = NULL;
        for (uint32_t i = 0; i < header->n_segments && !found; i++) {
            if (!__atomic_load_n(&segment(header, i)->order, __ATOMIC_ACQUIRE)) found = segment(header, i);
        }
        if (!found && header->n_segments < header->max_segments) {
            if (grow(header)) {
                found = segment(header, header->n_segments);
                __atomic_store_n(&header->n_segments, header->n_segments + 1, __ATOMIC_RELEASE);
            }
        }
        if (found) {
            /* In this order: who gets a slot must find the new order. */
            __atomic_store_n(&found->order, ++own->order, __ATOMIC_RELEASE);
            __atomic_store_n(&found->tail, 0, __ATOMIC_RELEASE);
            __atomic_store_n(&own->current, found, __ATOMIC_RELEASE);
        }
    }
    unlock();
    return found;
}

/* Reserves slots that lie side by side; NULL, after counting, if there is no room. */
static struct slot *reserve(uint32_t n, uint32_t *order) {
    struct segment *to = __atomic_load_n(&own->current, __ATOMIC_ACQUIRE);
    for (;;) {
        uint64_t at = __atomic_fetch_add(&to->tail, n, __ATOMIC_ACQUIRE);
        if (LIKELY(at + n <= FB_SLOTS)) {
            *order = (uint32_t)__atomic_load_n(&to->order, __ATOMIC_RELAXED);
            return &to->slots[at];
        }
        /* The rest of the segment stays empty: its reader skips what lies behind the last event that fits. */
        if (at < FB_SLOTS) {
            uint32_t seq = (uint32_t)__atomic_load_n(&to->order, __ATOMIC_RELAXED);
            for (uint64_t i = at; i < FB_SLOTS; i++) {
                to->slots[i].op = FB_OP_MORE;
                __atomic_store_n(&to->slots[i].seq, seq, __ATOMIC_RELEASE);
            }
        }
        to = next_segment(to);
        if (!to) return NULL;
    }
}

static void dropped(uint8_t op, int64_t result) {
    struct header *header = own->header;
    __atomic_fetch_add(&header->n_dropped, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&header->dropped[op % FB_OPS][0], 1, __ATOMIC_RELAXED);
    if (result > 0) __atomic_fetch_add(&header->dropped[op % FB_OPS][1], (uint64_t)result, __ATOMIC_RELAXED);
}

static uint32_t short_of(uint64_t duration_ns) {
    if (duration_ns < FB_LONG_DURATION) return (uint32_t)duration_ns;
    uint64_t units = duration_ns >> 10;
    return units < FB_LONG_DURATION ? (uint32_t)units | FB_LONG_DURATION : UINT32_MAX;
}

static void fill(struct slot *slot, uint32_t order, const struct slot *event) {
    slot->op = event->op;
    slot->type = event->type;
    slot->kind = event->kind;
    slot->start_ns = event->start_ns;
    slot->duration = event->duration;
    slot->thread = thread();
    slot->file = event->file;
    slot->extra = event->extra;
    slot->result = event->result;
    slot->arg = event->arg;
    __atomic_store_n(&slot->seq, order, __ATOMIC_RELEASE);
}

static void add(const struct slot *event) {
    uint32_t order;
    struct slot *slot = reserve(1, &order);
    if (LIKELY(slot != NULL)) {
        fill(slot, order, event);
    } else {
        dropped(event->op, event->result);
    }
}

void forebay_event(uint8_t op, uint64_t start_ns, uint32_t file, int64_t result, uint64_t arg, uint32_t extra) {
    struct slot event = {.op = op, .start_ns = start_ns, .file = file, .extra = extra, .result = result, .arg = arg};
    event.duration = short_of(forebay_now() - start_ns);
    add(&event);
}

void forebay_span(uint8_t op, uint16_t kind, uint64_t start_ns, uint64_t duration_ns, uint32_t file, int64_t result,
                  uint64_t arg, uint32_t extra) {
    struct slot event = {.op = op, .kind = kind, .start_ns = start_ns, .file = file, .extra = extra, .result = result,
                         .arg = arg, .duration = short_of(duration_ns)};
    add(&event);
}

/* A text takes a slot for its length and some more for its bytes. */
static void add_text(uint32_t file, const char *text) {
    size_t n = strnlen(text, FB_MAX_TEXT);
    uint32_t n_more = (uint32_t)((n + FB_TEXT_BYTES - 1) / FB_TEXT_BYTES), order;
    struct slot *slot = reserve(1 + n_more, &order);
    if (!slot) {
        dropped(FB_OP_TEXT, 0);
        return;
    }
    for (uint32_t i = 0; i < n_more; i++) {
        size_t at = (size_t)i * FB_TEXT_BYTES, left = n - at;
        slot[1 + i].op = FB_OP_MORE;
        memcpy(&slot[1 + i].start_ns, text + at, left < FB_TEXT_BYTES ? left : FB_TEXT_BYTES);
        __atomic_store_n(&slot[1 + i].seq, order, __ATOMIC_RELEASE);
    }
    struct slot event = {.op = FB_OP_TEXT, .start_ns = forebay_now(), .file = file, .extra = (uint32_t)n};
    fill(slot, order, &event);
}

static uint32_t new_number(void) {
    return __atomic_fetch_add(&own->next_file, 1, __ATOMIC_RELAXED);
}

uint32_t forebay_name(const char *text) {
    uint32_t number = new_number();
    add_text(number, text);
    return number;
}

static void remember(int fd, uint32_t number) {
    if (fd >= 0 && (unsigned)fd < MAX_FDS) __atomic_store_n(&own->files[fd], number, __ATOMIC_RELAXED);
}

uint32_t forebay_known(int fd) {
    if (fd < 0 || (unsigned)fd >= MAX_FDS || !forebay_on()) return NO_FILE;
    uint32_t known = __atomic_load_n(&own->files[fd], __ATOMIC_RELAXED);
    return known ? known : NO_FILE;
}

void forebay_forget(int fd) {
    if (own) remember(fd, 0);
}

void forebay_forget_range(unsigned first, unsigned last) {
    if (!own) return;
    for (unsigned fd = first; fd <= last && fd < MAX_FDS; fd++) own->files[fd] = 0;
}

static uint8_t type_of(mode_t mode) {
    if (S_ISREG(mode)) return FB_TYPE_REGULAR;
    if (S_ISDIR(mode)) return FB_TYPE_FOLDER;
    return S_ISBLK(mode) ? FB_TYPE_BLOCK : FB_TYPE_OTHER;
}

/* The path of a descriptor, as the kernel gives it. */
static int path_of(int fd, char *to, size_t room) {
    char link[32] = "/proc/self/fd/";
    *put_number(link + 14, (uint64_t)fd) = 0;
    long n = CALL6(SYS_readlinkat, AT_FDCWD, link, to, room - 1, 0, 0);
    to[n > 0 ? n : 0] = 0;
    return n > 0;
}

uint32_t forebay_file(int fd) {
    if (UNLIKELY(fd < 0 || (unsigned)fd >= MAX_FDS) || !forebay_on()) return NO_FILE;
    uint32_t known = __atomic_load_n(&own->files[fd], __ATOMIC_RELAXED);
    if (LIKELY(known)) return known;
    struct stat found;
    if (CALL3(SYS_fstat, fd, &found, 0)) return NO_FILE;
    uint8_t type = type_of(found.st_mode);
    if (type == FB_TYPE_OTHER) {
        remember(fd, NO_FILE);
        return NO_FILE;
    }
    char path[FB_MAX_TEXT + 1];
    path_of(fd, path, sizeof path);
    uint32_t number = forebay_name(path);
    long at = CALL3(SYS_lseek, fd, 0, SEEK_CUR);
    struct slot event = {.op = FB_OP_FOUND, .type = type, .start_ns = forebay_now(), .file = number, .arg = (uint64_t)found.st_size,
                         .result = at};
    add(&event);
    remember(fd, number);
    return number;
}

void forebay_opened(uint8_t op, uint64_t start_ns, int dir, const char *path, int fd, int error, int flags) {
    uint64_t end_ns = forebay_now();
    (void)dir;
    struct slot event = {.op = op, .start_ns = start_ns, .duration = short_of(end_ns - start_ns), .extra = (uint32_t)flags,
                         .result = fd < 0 ? -error : fd};
    char absolute[FB_MAX_TEXT + 1];
    if (fd >= 0) {
        struct stat found;
        if (CALL3(SYS_fstat, fd, &found, 0)) return;
        event.type = type_of(found.st_mode);
        event.arg = (uint64_t)found.st_size;
        if (event.type == FB_TYPE_OTHER) {
            remember(fd, NO_FILE);
            return;
        }
        if (path && path[0] != '/' && path_of(fd, absolute, sizeof absolute)) path = absolute;
    }
    event.file = new_number();
    add_text(event.file, path ? path : "");
    add(&event);
    remember(fd, event.file);
}

void forebay_other_read(ssize_t n) {
    if (!own || own->state != ON) return;
    __atomic_fetch_add(&own->header->other_reads, 1, __ATOMIC_RELAXED);
    if (n > 0) __atomic_fetch_add(&own->header->other_read_bytes, (uint64_t)n, __ATOMIC_RELAXED);
}

void forebay_other_write(ssize_t n) {
    if (!own || own->state != ON) return;
    __atomic_fetch_add(&own->header->other_writes, 1, __ATOMIC_RELAXED);
    if (n > 0) __atomic_fetch_add(&own->header->other_written_bytes, (uint64_t)n, __ATOMIC_RELAXED);
}

__attribute__((constructor)) static void start(void) {
    const char *to = getenv("FOREBAY_TRACE_RINGS"), *n = getenv("FOREBAY_TRACE_SEGMENTS");
    if (!to || to[0] != '/' || strlen(to) >= FOLDER_BYTES) return;
    strcpy(folder, to);
    if (n) {
        uint32_t value = 0;
        while (*n >= '0' && *n <= '9' && value < 100000) value = value * 10 + (uint32_t)(*n++ - '0');
        if (value) wanted_segments = value;
    }
    long at = CALL6(SYS_mmap, NULL, sizeof(struct own), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at < 0 && at > -4096) return;
    /* Without it, a child would write into the ring of its parent. Kernels since 4.14 have it. */
    if (CALL3(SYS_madvise, at, sizeof(struct own), 18 /* MADV_WIPEONFORK */)) return;
    own = (struct own *)at;
    forebay_on();
}
