/* Calls that move bytes of files, and those that prepare it. */
#define _GNU_SOURCE
#include "ring.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define NEEDS_MODE(flags) (((flags) & O_CREAT) || ((flags) & O_TMPFILE) == O_TMPFILE)

#define OPEN(name) \
    EXPORT int name(const char *path, int flags, ...) { \
        mode_t mode = 0; \
        if (NEEDS_MODE(flags)) { \
            va_list rest; \
            va_start(rest, flags); \
            mode = va_arg(rest, mode_t); \
            va_end(rest); \
        } \
        if (!forebay_on()) return REAL(name)(path, flags, mode); \
        uint64_t start = forebay_now(); \
        int fd = REAL(name)(path, flags, mode), error = errno; \
        forebay_opened(FB_OP_OPEN, start, AT_FDCWD, path, fd, error, flags); \
        errno = error; \
        return fd; \
    }
OPEN(open)
OPEN(open64)

#define OPENAT(name) \
    EXPORT int name(int dir, const char *path, int flags, ...) { \
        mode_t mode = 0; \
        if (NEEDS_MODE(flags)) { \
            va_list rest; \
            va_start(rest, flags); \
            mode = va_arg(rest, mode_t); \
            va_end(rest); \
        } \
        if (!forebay_on()) return REAL(name)(dir, path, flags, mode); \
        uint64_t start = forebay_now(); \
        int fd = REAL(name)(dir, path, flags, mode), error = errno; \
        forebay_opened(FB_OP_OPEN, start, dir, path, fd, error, flags); \
        errno = error; \
        return fd; \
    }
OPENAT(openat)
OPENAT(openat64)

/* What a program compiled with checks calls. */
extern int __open_2(const char *path, int flags);
extern int __open64_2(const char *path, int flags);
extern int __openat_2(int dir, const char *path, int flags);
extern int __openat64_2(int dir, const char *path, int flags);
EXPORT int __open_2(const char *path, int flags) { return open(path, flags); }
EXPORT int __open64_2(const char *path, int flags) { return open64(path, flags); }
EXPORT int __openat_2(int dir, const char *path, int flags) { return openat(dir, path, flags); }
EXPORT int __openat64_2(int dir, const char *path, int flags) { return openat64(dir, path, flags); }

#define CREAT(name) \
    EXPORT int name(const char *path, mode_t mode) { \
        if (!forebay_on()) return REAL(name)(path, mode); \
        uint64_t start = forebay_now(); \
        int fd = REAL(name)(path, mode), error = errno; \
        forebay_opened(FB_OP_OPEN, start, AT_FDCWD, path, fd, error, O_CREAT | O_WRONLY | O_TRUNC); \
        errno = error; \
        return fd; \
    }
CREAT(creat)
CREAT(creat64)

EXPORT int close(int fd) {
    uint32_t file = forebay_known(fd);
    /* Before the call: another thread may get the number as soon as it is free. */
    forebay_forget(fd);
    if (file == NO_FILE) return REAL(close)(fd);
    uint64_t start = forebay_now();
    int result = REAL(close)(fd), error = errno;
    forebay_event(FB_OP_CLOSE, start, file, RESULT(result), 0, 0);
    errno = error;
    return result;
}

extern int close_range(unsigned first, unsigned last, int flags);
EXPORT int close_range(unsigned first, unsigned last, int flags) {
    if (!(flags & 4 /* CLOSE_RANGE_CLOEXEC */)) forebay_forget_range(first, last);
    return REAL(close_range)(first, last, flags);
}

extern void closefrom(int first);
EXPORT void closefrom(int first) {
    forebay_forget_range(first < 0 ? 0 : (unsigned)first, MAX_FDS);
    REAL(closefrom)(first);
}

EXPORT int dup2(int from, int to) {
    if (from != to) forebay_forget(to);
    return REAL(dup2)(from, to);
}

EXPORT int dup3(int from, int to, int flags) {
    forebay_forget(to);
    return REAL(dup3)(from, to, flags);
}

/* A call on a descriptor that returns a number of bytes. */
#define MOVES(op, other, call, offset, n_extra) \
    { \
        uint32_t file = forebay_file(fd); \
        if (file == NO_FILE) { \
            ssize_t n = call; \
            other(n); \
            return n; \
        } \
        uint64_t start = forebay_now(); \
        ssize_t n = call; \
        int error = errno; \
        forebay_event(op, start, file, RESULT(n), (uint64_t)(offset), (uint32_t)(n_extra)); \
        errno = error; \
        return n; \
    }

EXPORT ssize_t read(int fd, void *to, size_t count)
    MOVES(FB_OP_READ, forebay_other_read, REAL(read)(fd, to, count), count, 0)
EXPORT ssize_t pread(int fd, void *to, size_t count, off_t at)
    MOVES(FB_OP_PREAD, forebay_other_read, REAL(pread)(fd, to, count, at), at, 0)
EXPORT ssize_t pread64(int fd, void *to, size_t count, off64_t at)
    MOVES(FB_OP_PREAD, forebay_other_read, REAL(pread64)(fd, to, count, at), at, 0)
EXPORT ssize_t readv(int fd, const struct iovec *parts, int n_parts)
    MOVES(FB_OP_READV, forebay_other_read, REAL(readv)(fd, parts, n_parts), 0, n_parts)
EXPORT ssize_t preadv(int fd, const struct iovec *parts, int n_parts, off_t at)
    MOVES(FB_OP_PREADV, forebay_other_read, REAL(preadv)(fd, parts, n_parts, at), at, n_parts)
EXPORT ssize_t preadv64(int fd, const struct iovec *parts, int n_parts, off64_t at)
    MOVES(FB_OP_PREADV, forebay_other_read, REAL(preadv64)(fd, parts, n_parts, at), at, n_parts)
EXPORT ssize_t preadv2(int fd, const struct iovec *parts, int n_parts, off_t at, int flags)
    MOVES(FB_OP_PREADV, forebay_other_read, REAL(preadv2)(fd, parts, n_parts, at, flags), at, n_parts)
EXPORT ssize_t preadv64v2(int fd, const struct iovec *parts, int n_parts, off64_t at, int flags)
    MOVES(FB_OP_PREADV, forebay_other_read, REAL(preadv64v2)(fd, parts, n_parts, at, flags), at, n_parts)
EXPORT ssize_t write(int fd, const void *from, size_t count)
    MOVES(FB_OP_WRITE, forebay_other_write, REAL(write)(fd, from, count), count, 0)
EXPORT ssize_t pwrite(int fd, const void *from, size_t count, off_t at)
    MOVES(FB_OP_PWRITE, forebay_other_write, REAL(pwrite)(fd, from, count, at), at, 0)
EXPORT ssize_t pwrite64(int fd, const void *from, size_t count, off64_t at)
    MOVES(FB_OP_PWRITE, forebay_other_write, REAL(pwrite64)(fd, from, count, at), at, 0)
EXPORT ssize_t writev(int fd, const struct iovec *parts, int n_parts)
    MOVES(FB_OP_WRITEV, forebay_other_write, REAL(writev)(fd, parts, n_parts), 0, n_parts)
EXPORT ssize_t pwritev(int fd, const struct iovec *parts, int n_parts, off_t at)
    MOVES(FB_OP_PWRITEV, forebay_other_write, REAL(pwritev)(fd, parts, n_parts, at), at, n_parts)
EXPORT ssize_t pwritev64(int fd, const struct iovec *parts, int n_parts, off64_t at)
    MOVES(FB_OP_PWRITEV, forebay_other_write, REAL(pwritev64)(fd, parts, n_parts, at), at, n_parts)
EXPORT ssize_t pwritev2(int fd, const struct iovec *parts, int n_parts, off_t at, int flags)
    MOVES(FB_OP_PWRITEV, forebay_other_write, REAL(pwritev2)(fd, parts, n_parts, at, flags), at, n_parts)
EXPORT ssize_t pwritev64v2(int fd, const struct iovec *parts, int n_parts, off64_t at, int flags)
    MOVES(FB_OP_PWRITEV, forebay_other_write, REAL(pwritev64v2)(fd, parts, n_parts, at, flags), at, n_parts)

extern ssize_t __read_chk(int fd, void *to, size_t count, size_t room);
extern ssize_t __pread_chk(int fd, void *to, size_t count, off_t at, size_t room);
extern ssize_t __pread64_chk(int fd, void *to, size_t count, off64_t at, size_t room);
EXPORT ssize_t __read_chk(int fd, void *to, size_t count, size_t room)
    MOVES(FB_OP_READ, forebay_other_read, REAL(__read_chk)(fd, to, count, room), count, 0)
EXPORT ssize_t __pread_chk(int fd, void *to, size_t count, off_t at, size_t room)
    MOVES(FB_OP_PREAD, forebay_other_read, REAL(__pread_chk)(fd, to, count, at, room), at, 0)
EXPORT ssize_t __pread64_chk(int fd, void *to, size_t count, off64_t at, size_t room)
    MOVES(FB_OP_PREAD, forebay_other_read, REAL(__pread64_chk)(fd, to, count, at, room), at, 0)

/* A copy within the kernel reads one file and writes the other. */
static void copied(int out, uint64_t start, ssize_t n) {
    if (n <= 0) return;
    uint32_t file = forebay_file(out);
    if (file == NO_FILE) {
        forebay_other_write(n);
    } else {
        forebay_span(FB_OP_COPIED, 0, start, 0, file, n, 0, 0);
    }
}

#define COPIES(op, call) \
    { \
        if (!forebay_on()) return call; \
        uint64_t start = forebay_now(); \
        ssize_t n = call; \
        int error = errno; \
        uint32_t file = forebay_file(in); \
        if (file == NO_FILE) { \
            forebay_other_read(n); \
        } else { \
            forebay_event(op, start, file, n < 0 ? -(int64_t)error : n, count, 0); \
        } \
        copied(out, start, n); \
        errno = error; \
        return n; \
    }

EXPORT ssize_t sendfile(int out, int in, off_t *at, size_t count)
    COPIES(FB_OP_SENDFILE, REAL(sendfile)(out, in, at, count))
EXPORT ssize_t sendfile64(int out, int in, off64_t *at, size_t count)
    COPIES(FB_OP_SENDFILE, REAL(sendfile64)(out, in, at, count))
EXPORT ssize_t copy_file_range(int in, off64_t *at, int out, off64_t *to, size_t count, unsigned flags)
    COPIES(FB_OP_COPY_FILE_RANGE, REAL(copy_file_range)(in, at, out, to, count, flags))

/* A call on a descriptor that moves no bytes. */
#define ACTS(type, op, call, argument, note) \
    { \
        uint32_t file = forebay_file(fd); \
        if (file == NO_FILE) return call; \
        uint64_t start = forebay_now(); \
        type result = call; \
        int error = errno; \
        forebay_event(op, start, file, RESULT(result), (uint64_t)(argument), (uint32_t)(note)); \
        errno = error; \
        return result; \
    }

EXPORT off_t lseek(int fd, off_t by, int whence) ACTS(off_t, FB_OP_LSEEK, REAL(lseek)(fd, by, whence), by, whence)
EXPORT off64_t lseek64(int fd, off64_t by, int whence) ACTS(off64_t, FB_OP_LSEEK, REAL(lseek64)(fd, by, whence), by, whence)
EXPORT int fsync(int fd) ACTS(int, FB_OP_FSYNC, REAL(fsync)(fd), 0, 0)
EXPORT int fdatasync(int fd) ACTS(int, FB_OP_FDATASYNC, REAL(fdatasync)(fd), 0, 0)
EXPORT int syncfs(int fd) ACTS(int, FB_OP_SYNC, REAL(syncfs)(fd), 0, 0)
EXPORT int ftruncate(int fd, off_t to) ACTS(int, FB_OP_TRUNCATE, REAL(ftruncate)(fd, to), to, 0)
EXPORT int ftruncate64(int fd, off64_t to) ACTS(int, FB_OP_TRUNCATE, REAL(ftruncate64)(fd, to), to, 0)
EXPORT int posix_fadvise(int fd, off_t at, off_t n, int advice)
    ACTS(int, FB_OP_FADVISE, REAL(posix_fadvise)(fd, at, n, advice), at, advice)
EXPORT int posix_fadvise64(int fd, off64_t at, off64_t n, int advice)
    ACTS(int, FB_OP_FADVISE, REAL(posix_fadvise64)(fd, at, n, advice), at, advice)

EXPORT void sync(void) {
    if (!forebay_on()) {
        REAL(sync)();
        return;
    }
    uint64_t start = forebay_now();
    REAL(sync)();
    forebay_event(FB_OP_SYNC, start, 0, 0, 0, 0);
}

#define MAPS(name, offset) \
    EXPORT void *name(void *at, size_t n, int protection, int flags, int fd, offset from) { \
        uint32_t file = fd >= 0 && !(flags & MAP_ANONYMOUS) ? forebay_file(fd) : NO_FILE; \
        if (file == NO_FILE) return REAL(name)(at, n, protection, flags, fd, from); \
        uint64_t start = forebay_now(); \
        void *result = REAL(name)(at, n, protection, flags, fd, from); \
        int error = errno; \
        int64_t mapped = result == MAP_FAILED ? -(int64_t)error : (int64_t)n; \
        forebay_event(FB_OP_MMAP, start, file, mapped, (uint64_t)from, (uint32_t)protection); \
        errno = error; \
        return result; \
    }
MAPS(mmap, off_t)
MAPS(mmap64, off64_t)

EXPORT int msync(void *at, size_t n, int flags) {
    if (!forebay_on()) return REAL(msync)(at, n, flags);
    uint64_t start = forebay_now();
    int result = REAL(msync)(at, n, flags), error = errno;
    forebay_event(FB_OP_MSYNC, start, 0, RESULT(result), n, (uint32_t)flags);
    errno = error;
    return result;
}

/* Programs that submit to io_uring through libc; liburing's own system calls are not seen. */
EXPORT long syscall(long number, ...) {
    va_list rest;
    long a[6];
    va_start(rest, number);
    for (int i = 0; i < 6; i++) a[i] = va_arg(rest, long);
    va_end(rest);
    if (LIKELY(number != SYS_io_uring_enter) || !forebay_on()) return REAL(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    uint64_t start = forebay_now();
    long result = REAL(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    int error = errno;
    forebay_event(FB_OP_URING, start, 0, RESULT(result), (uint64_t)a[1], (uint32_t)a[2]);
    errno = error;
    return result;
}
