/* Buffered streams of the C library. Their own reads and writes are invisible from outside, so these calls are a layer of
 * their own: bytes that went through a stream are counted here and nowhere else. */
#define _GNU_SOURCE
#include "ring.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#undef fread_unlocked
#undef fwrite_unlocked
#undef getline

static int flags_of(const char *mode) {
    int is_both = mode && strchr(mode, '+') != NULL;
    if (mode && mode[0] == 'r') return is_both ? O_RDWR : O_RDONLY;
    return (is_both ? O_RDWR : O_WRONLY) | O_CREAT | (mode && mode[0] == 'a' ? O_APPEND : O_TRUNC);
}

#define FOPEN(name) \
    EXPORT FILE *name(const char *restrict path, const char *restrict mode) { \
        if (!forebay_on()) return REAL(name)(path, mode); \
        uint64_t start = forebay_now(); \
        FILE *stream = REAL(name)(path, mode); \
        int error = errno; \
        forebay_opened(FB_OP_FOPEN, start, AT_FDCWD, path, stream ? fileno(stream) : -1, error, flags_of(mode)); \
        errno = error; \
        return stream; \
    }
FOPEN(fopen)
FOPEN(fopen64)

EXPORT int fclose(FILE *stream) {
    if (!forebay_on() || !stream) return REAL(fclose)(stream);
    int fd = fileno(stream);
    uint32_t file = forebay_known(fd);
    forebay_forget(fd);
    uint64_t start = forebay_now();
    int result = REAL(fclose)(stream), error = errno;
    if (file != NO_FILE) forebay_event(FB_OP_FCLOSE, start, file, RESULT(result), 0, 0);
    errno = error;
    return result;
}

#define FMOVES(op, other, call) \
    { \
        uint32_t file = forebay_on() ? forebay_file(fileno(stream)) : NO_FILE; \
        if (file == NO_FILE) { \
            size_t n = call; \
            other((ssize_t)(n * size)); \
            return n; \
        } \
        uint64_t start = forebay_now(); \
        size_t n = call; \
        int error = errno; \
        forebay_event(op, start, file, (int64_t)(n * size), (uint64_t)(size * count), 0); \
        errno = error; \
        return n; \
    }

EXPORT size_t fread(void *restrict to, size_t size, size_t count, FILE *restrict stream)
    FMOVES(FB_OP_FREAD, forebay_other_read, REAL(fread)(to, size, count, stream))
EXPORT size_t fread_unlocked(void *restrict to, size_t size, size_t count, FILE *restrict stream)
    FMOVES(FB_OP_FREAD, forebay_other_read, REAL(fread_unlocked)(to, size, count, stream))
extern size_t __fread_chk(void *to, size_t room, size_t size, size_t count, FILE *stream);
EXPORT size_t __fread_chk(void *to, size_t room, size_t size, size_t count, FILE *stream)
    FMOVES(FB_OP_FREAD, forebay_other_read, REAL(__fread_chk)(to, room, size, count, stream))
EXPORT size_t fwrite(const void *restrict from, size_t size, size_t count, FILE *restrict stream)
    FMOVES(FB_OP_FWRITE, forebay_other_write, REAL(fwrite)(from, size, count, stream))
EXPORT size_t fwrite_unlocked(const void *restrict from, size_t size, size_t count, FILE *restrict stream)
    FMOVES(FB_OP_FWRITE, forebay_other_write, REAL(fwrite_unlocked)(from, size, count, stream))

/* Lines: read whole, so that a text file costs one event per line rather than one per character. */
EXPORT char *fgets(char *restrict to, int room, FILE *restrict stream) {
    uint32_t file = forebay_on() ? forebay_file(fileno(stream)) : NO_FILE;
    if (file == NO_FILE) return REAL(fgets)(to, room, stream);
    uint64_t start = forebay_now();
    char *line = REAL(fgets)(to, room, stream);
    int error = errno;
    forebay_event(FB_OP_FREAD, start, file, line ? (int64_t)strlen(line) : 0, (uint64_t)room, 0);
    errno = error;
    return line;
}

EXPORT ssize_t getdelim(char **restrict to, size_t *restrict room, int end, FILE *restrict stream) {
    uint32_t file = forebay_on() ? forebay_file(fileno(stream)) : NO_FILE;
    if (file == NO_FILE) return REAL(getdelim)(to, room, end, stream);
    uint64_t start = forebay_now();
    ssize_t n = REAL(getdelim)(to, room, end, stream);
    int error = errno;
    forebay_event(FB_OP_FREAD, start, file, n < 0 ? 0 : n, 0, 0);
    errno = error;
    return n;
}

EXPORT ssize_t getline(char **restrict to, size_t *restrict room, FILE *restrict stream) {
    return getdelim(to, room, '\n', stream);
}

#define FSEEK(name, type) \
    EXPORT int name(FILE *stream, type by, int whence) { \
        uint32_t file = forebay_on() ? forebay_file(fileno(stream)) : NO_FILE; \
        if (file == NO_FILE) return REAL(name)(stream, by, whence); \
        uint64_t start = forebay_now(); \
        int result = REAL(name)(stream, by, whence), error = errno; \
        forebay_event(FB_OP_FSEEK, start, file, RESULT(result), (uint64_t)by, (uint32_t)whence); \
        errno = error; \
        return result; \
    }
FSEEK(fseek, long)
FSEEK(fseeko, off_t)
FSEEK(fseeko64, off64_t)

EXPORT int fflush(FILE *stream) {
    uint32_t file = stream && forebay_on() ? forebay_file(fileno(stream)) : NO_FILE;
    if (file == NO_FILE) return REAL(fflush)(stream);
    uint64_t start = forebay_now();
    int result = REAL(fflush)(stream), error = errno;
    forebay_event(FB_OP_FFLUSH, start, file, RESULT(result), 0, 0);
    errno = error;
    return result;
}
