/* Programs that a process starts, so that those without a ring can be named; and the marks of a job. */
#define _GNU_SOURCE
#include "forebay.h"
#include "ring.h"

#include <errno.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <unistd.h>

static uint32_t pid(void) {
    return (uint32_t)forebay_syscall(SYS_getpid, 0, 0, 0, 0, 0, 0);
}

/* Before the call, which does not return if it succeeds. */
static void tell(const char *path) {
    if (forebay_on()) forebay_span(FB_OP_EXEC, 0, forebay_now(), 0, forebay_name(path), 0, 0, pid());
}

static void failed(void) {
    int error = errno;
    if (forebay_on()) forebay_span(FB_OP_EXEC_FAILED, 0, forebay_now(), 0, 0, -error, 0, pid());
    errno = error;
}

#define EXEC(call) \
    { \
        tell(path); \
        int result = call; \
        failed(); \
        return result; \
    }

EXPORT int execve(const char *path, char *const words[], char *const environment[])
    EXEC(REAL(execve)(path, words, environment))
EXPORT int execv(const char *path, char *const words[]) EXEC(REAL(execv)(path, words))
EXPORT int execvp(const char *path, char *const words[]) EXEC(REAL(execvp)(path, words))
EXPORT int execvpe(const char *path, char *const words[], char *const environment[])
    EXEC(REAL(execvpe)(path, words, environment))

#define SPAWN(name) \
    EXPORT int name(pid_t *restrict child, const char *restrict path, const posix_spawn_file_actions_t *restrict actions, \
                    const posix_spawnattr_t *restrict attributes, char *const words[restrict], \
                    char *const environment[restrict]) { \
        pid_t started = 0; \
        uint64_t start = forebay_now(); \
        int result = REAL(name)(&started, path, actions, attributes, words, environment); \
        if (!result && child) *child = started; \
        if (!result && forebay_on()) { \
            int error = errno; \
            forebay_span(FB_OP_EXEC, 0, start, 0, forebay_name(path), 0, 0, (uint32_t)started); \
            errno = error; \
        } \
        return result; \
    }
SPAWN(posix_spawn)
SPAWN(posix_spawnp)

EXPORT void forebay_mark(unsigned kind, uint64_t start_ns, uint64_t duration_ns, int64_t value, uint64_t index) {
    int error = errno;
    if (forebay_on()) forebay_span(FB_OP_MARK, (uint16_t)kind, start_ns, duration_ns, 0, value, index, 0);
    errno = error;
}

EXPORT void forebay_step(void) {
    forebay_mark(FB_MARK_STEP, forebay_now(), 0, 1, 0);
}

EXPORT void forebay_phase(const char *name) {
    int error = errno;
    if (forebay_on()) forebay_span(FB_OP_MARK, FB_MARK_PHASE, forebay_now(), 0, forebay_name(name), 0, 0, 0);
    errno = error;
}
