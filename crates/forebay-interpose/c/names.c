/* Calls on names and attributes: stat, folders, renaming. */
#define _GNU_SOURCE
#include "ring.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define ON_NAMES(op, result_type, call) \
    { \
        if (!forebay_on()) return call; \
        uint64_t start = forebay_now(); \
        result_type result = call; \
        int error = errno; \
        forebay_event(op, start, 0, RESULT(result), 0, 0); \
        errno = error; \
        return result; \
    }

#define STAT(name, type) \
    EXPORT int name(const char *path, struct type *to) ON_NAMES(FB_OP_STAT, int, REAL(name)(path, to))
#define FSTAT(name, type) EXPORT int name(int fd, struct type *to) ON_NAMES(FB_OP_FSTAT, int, REAL(name)(fd, to))
#define FSTATAT(name, type) \
    EXPORT int name(int dir, const char *path, struct type *to, int flags) \
        ON_NAMES(FB_OP_STAT, int, REAL(name)(dir, path, to, flags))
/* What programs call that were made for a glibc before 2.33. */
#define XSTAT(name, type) \
    extern int name(int version, const char *path, struct type *to); \
    EXPORT int name(int version, const char *path, struct type *to) ON_NAMES(FB_OP_STAT, int, REAL(name)(version, path, to))
#define FXSTAT(name, type) \
    extern int name(int version, int fd, struct type *to); \
    EXPORT int name(int version, int fd, struct type *to) ON_NAMES(FB_OP_FSTAT, int, REAL(name)(version, fd, to))
#define FXSTATAT(name, type) \
    extern int name(int version, int dir, const char *path, struct type *to, int flags); \
    EXPORT int name(int version, int dir, const char *path, struct type *to, int flags) \
        ON_NAMES(FB_OP_STAT, int, REAL(name)(version, dir, path, to, flags))

STAT(stat, stat)
STAT(stat64, stat64)
STAT(lstat, stat)
STAT(lstat64, stat64)
FSTAT(fstat, stat)
FSTAT(fstat64, stat64)
FSTATAT(fstatat, stat)
FSTATAT(fstatat64, stat64)
XSTAT(__xstat, stat)
XSTAT(__xstat64, stat64)
XSTAT(__lxstat, stat)
XSTAT(__lxstat64, stat64)
FXSTAT(__fxstat, stat)
FXSTAT(__fxstat64, stat64)
FXSTATAT(__fxstatat, stat)
FXSTATAT(__fxstatat64, stat64)

EXPORT int statx(int dir, const char *restrict path, int flags, unsigned mask, struct statx *restrict to)
    ON_NAMES(FB_OP_STAT, int, REAL(statx)(dir, path, flags, mask, to))
EXPORT int access(const char *path, int mode) ON_NAMES(FB_OP_ACCESS, int, REAL(access)(path, mode))
EXPORT int faccessat(int dir, const char *path, int mode, int flags)
    ON_NAMES(FB_OP_ACCESS, int, REAL(faccessat)(dir, path, mode, flags))
EXPORT int truncate(const char *path, off_t to) ON_NAMES(FB_OP_TRUNCATE, int, REAL(truncate)(path, to))
EXPORT int truncate64(const char *path, off64_t to) ON_NAMES(FB_OP_TRUNCATE, int, REAL(truncate64)(path, to))
EXPORT int rename(const char *from, const char *to) ON_NAMES(FB_OP_RENAME, int, REAL(rename)(from, to))
EXPORT int renameat(int dir, const char *from, int dir_to, const char *to)
    ON_NAMES(FB_OP_RENAME, int, REAL(renameat)(dir, from, dir_to, to))
EXPORT int renameat2(int dir, const char *from, int dir_to, const char *to, unsigned flags)
    ON_NAMES(FB_OP_RENAME, int, REAL(renameat2)(dir, from, dir_to, to, flags))
EXPORT int unlink(const char *path) ON_NAMES(FB_OP_UNLINK, int, REAL(unlink)(path))
EXPORT int unlinkat(int dir, const char *path, int flags) ON_NAMES(FB_OP_UNLINK, int, REAL(unlinkat)(dir, path, flags))
EXPORT int mkdir(const char *path, mode_t mode) ON_NAMES(FB_OP_MKDIR, int, REAL(mkdir)(path, mode))
EXPORT int mkdirat(int dir, const char *path, mode_t mode) ON_NAMES(FB_OP_MKDIR, int, REAL(mkdirat)(dir, path, mode))

EXPORT DIR *opendir(const char *path) {
    if (!forebay_on()) return REAL(opendir)(path);
    uint64_t start = forebay_now();
    DIR *folder = REAL(opendir)(path);
    int error = errno;
    forebay_opened(FB_OP_OPENDIR, start, AT_FDCWD, path, folder ? dirfd(folder) : -1, error, 0);
    errno = error;
    return folder;
}

EXPORT DIR *fdopendir(int fd) {
    uint32_t file = forebay_file(fd);
    if (file == NO_FILE) return REAL(fdopendir)(fd);
    uint64_t start = forebay_now();
    DIR *folder = REAL(fdopendir)(fd);
    int error = errno;
    forebay_event(FB_OP_OPENDIR, start, file, folder ? fd : -(int64_t)error, 0, 0);
    errno = error;
    return folder;
}

/* A folder with many entries takes one call per entry, few of which reach the kernel: one event holds their sum. */
struct listing {
    DIR *folder;
    uint64_t start_ns;
    uint64_t duration_ns;
    int64_t n_entries;
};

static __thread struct listing listings[4];

static struct listing *listing(DIR *folder) {
    struct listing *unused = NULL;
    for (unsigned i = 0; i < sizeof listings / sizeof *listings; i++) {
        if (listings[i].folder == folder) return &listings[i];
        if (!listings[i].folder && !unused) unused = &listings[i];
    }
    return unused;
}

static void finish(struct listing *listing) {
    uint32_t file = forebay_file(dirfd(listing->folder));
    forebay_span(FB_OP_READDIR, 0, listing->start_ns, listing->duration_ns, file == NO_FILE ? 0 : file, listing->n_entries, 0, 0);
    listing->folder = NULL;
}

/* Ends with the folder, so it is also complete if the folder is never closed. */
#define READDIR(name, type) \
    EXPORT struct type *name(DIR *folder) { \
        if (!forebay_on()) return REAL(name)(folder); \
        uint64_t start = forebay_now(); \
        struct type *entry = REAL(name)(folder); \
        int error = errno; \
        uint64_t end = forebay_now(); \
        struct listing *of = listing(folder); \
        if (of) { \
            if (!of->folder) *of = (struct listing){.folder = folder, .start_ns = start}; \
            of->duration_ns += end - start; \
            of->n_entries += entry != NULL; \
            if (!entry) finish(of); \
        } else { \
            forebay_span(FB_OP_READDIR, 0, start, end - start, 0, entry != NULL, 0, 0); \
        } \
        errno = error; \
        return entry; \
    }
READDIR(readdir, dirent)
READDIR(readdir64, dirent64)

EXPORT int closedir(DIR *folder) {
    if (!forebay_on()) return REAL(closedir)(folder);
    struct listing *of = listing(folder);
    if (of && of->folder) finish(of);
    int fd = dirfd(folder);
    uint32_t file = forebay_known(fd);
    forebay_forget(fd);
    uint64_t start = forebay_now();
    int result = REAL(closedir)(folder), error = errno;
    if (file != NO_FILE) forebay_event(FB_OP_CLOSE, start, file, RESULT(result), 0, 0);
    errno = error;
    return result;
}
