// The kernels as plain C: each runs thread by thread, forwards or backwards, since no thread may depend on another.

#include <math.h>
#include <string.h>

#define KERNEL void
#define UNROLL
#define SWAP __builtin_bswap32
#define __device__ static

typedef struct {
    unsigned x;
} Place;
static __thread Place blockIdx, blockDim, gridDim, threadIdx;

#include "../../src/device/kernels.cu"

typedef void (*Kernel)(Batch, u32);
static const struct {
    const char* name;
    Kernel kernel;
} KERNELS[] = {
    {"build_codes", build_codes}, {"synchronise", synchronise},   {"place_blocks", place_blocks},
    {"sum_runs", sum_runs},       {"sum_segments", sum_segments}, {"write_coefficients", write_coefficients},
    {"add_sums", add_sums},       {"reconstruct", reconstruct},   {"render", render},
};

// Whether there is such a kernel; runs it on `n_blocks` blocks of `n_threads`.
int launch(const char* name, const Batch* batch, u32 round, u32 n_blocks, u32 n_threads, int backwards) {
    for (u32 k = 0; k < sizeof KERNELS / sizeof *KERNELS; k++) {
        if (strcmp(KERNELS[k].name, name) != 0) continue;
        gridDim.x = n_blocks, blockDim.x = n_threads;
        for (u32 i = 0; i < n_blocks * n_threads; i++) {
            u32 thread = backwards ? n_blocks * n_threads - 1 - i : i;
            blockIdx.x = thread / n_threads, threadIdx.x = thread % n_threads;
            KERNELS[k].kernel(*batch, round);
        }
        return 1;
    }
    return 0;
}

u32 size_of_batch(void) { return sizeof(Batch); }
u32 size_of_image(void) { return sizeof(Image); }
