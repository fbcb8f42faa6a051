/* Marks in a C or C++ job for `forebay trace`. Without it, the functions are absent: test them before calling. */
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif
__attribute__((weak)) void forebay_step(void);              /* a training step has ended */
__attribute__((weak)) void forebay_phase(const char *name); /* from now on, the job does this */
__attribute__((weak)) void forebay_mark(unsigned kind, uint64_t start_ns, uint64_t duration_ns, int64_t value, uint64_t index);
__attribute__((weak)) uint64_t forebay_now(void);
#ifdef __cplusplus
}
#endif
