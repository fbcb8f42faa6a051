// Kernels for what cuDNN and cuBLAS do not do, or not as fast: everything that treats values one by one, sums over rows,
// pooling, batch norm, the loss and the optimisers. Compiled at run time; BF16 says whether activations are bf16 or f32.
//
// Activations are NHWC. Kernels come in two widths: V values of 16 bytes at once where channels are a multiple of V, and
// single values ("_1") where not. Elementwise kernels need no second width: tensors are padded to whole vectors.
// Sums over rows have two stages and no atomics, so that the same input gives the same bits.

typedef unsigned short u16;
typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;

#if BF16
typedef u16 T;
#define V 8
__device__ __forceinline__ float to_float(T v) { return __uint_as_float((u32)v << 16); }
__device__ __forceinline__ u32 pair(float low, float high) {
    u32 out;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(out) : "f"(high), "f"(low));
    return out;
}
__device__ __forceinline__ T from_float(float f) { return (T)pair(f, 0.f); }
#else
typedef float T;
#define V 4
__device__ __forceinline__ float to_float(T v) { return v; }
__device__ __forceinline__ T from_float(float f) { return f; }
#endif

template <int W> __device__ __forceinline__ void load(const T* p, float* f) { f[0] = to_float(p[0]); }
template <int W> __device__ __forceinline__ void store(T* p, const float* f) { p[0] = from_float(f[0]); }
template <> __device__ __forceinline__ void load<V>(const T* p, float* f) {
    uint4 raw = *(const uint4*)p;
#if BF16
    u32 words[4] = {raw.x, raw.y, raw.z, raw.w};
#pragma unroll
    for (int i = 0; i < 4; i++) {
        f[2 * i] = __uint_as_float(words[i] << 16);
        f[2 * i + 1] = __uint_as_float(words[i] & 0xffff0000u);
    }
#else
    f[0] = __uint_as_float(raw.x); f[1] = __uint_as_float(raw.y); f[2] = __uint_as_float(raw.z); f[3] = __uint_as_float(raw.w);
#endif
}
template <> __device__ __forceinline__ void store<V>(T* p, const float* f) {
#if BF16
    *(uint4*)p = make_uint4(pair(f[0], f[1]), pair(f[2], f[3]), pair(f[4], f[5]), pair(f[6], f[7]));
#else
    *(float4*)p = make_float4(f[0], f[1], f[2], f[3]);
#endif
}

// W parameters of neighbouring channels; they begin at a multiple of W.
template <int W> __device__ __forceinline__ void parameters(const float* p, float* f) {
    if constexpr (W % 4 == 0) {
#pragma unroll
        for (int k = 0; k < W; k += 4) {
            float4 v = *(const float4*)(p + k);
            f[k] = v.x;
            f[k + 1] = v.y;
            f[k + 2] = v.z;
            f[k + 3] = v.w;
        }
    } else {
        f[0] = p[0];
    }
}

// ReLU and its gradient. NaN stays NaN: a run that has diverged must not look like one that learns nothing.
__device__ __forceinline__ float positive(float f) { return f < 0.f ? 0.f : f; }
__device__ __forceinline__ float passed(float y, float gradient) { return y <= 0.f ? 0.f : gradient; }

#define INDEX (blockIdx.x * (u64)blockDim.x + threadIdx.x)
#define STRIDE ((u64)gridDim.x * blockDim.x)

// Elementwise, by whole vectors.

extern "C" __global__ void cast_in(const float* x, T* y, u64 n) {
    for (u64 i = INDEX; i < n; i += STRIDE) y[i] = from_float(x[i]);
}
extern "C" __global__ void cast_out(const T* x, float* y, u64 n) {
    for (u64 i = INDEX; i < n; i += STRIDE) y[i] = to_float(x[i]);
}

// Pixels scaled and shifted by channel, four at a time; there are at most four channels' worth of constants in registers.
extern "C" __global__ void normalize(const float4* x, T* y, u64 n4, u32 c, const float* scale, const float* shift) {
    for (u64 i = INDEX; i < n4; i += STRIDE) {
        float4 v = x[i];
        float f[4] = {v.x, v.y, v.z, v.w};
        u32 ch = (u32)((i * 4) % c);
#pragma unroll
        for (int k = 0; k < 4; k++) {
            f[k] = f[k] * scale[ch] + shift[ch];
            ch = ch + 1 == c ? 0 : ch + 1;
        }
#if BF16
        *(uint2*)(y + i * 4) = make_uint2(pair(f[0], f[1]), pair(f[2], f[3]));
#else
        *(float4*)(y + i * 4) = make_float4(f[0], f[1], f[2], f[3]);
#endif
    }
}

extern "C" __global__ void relu_forward(const T* x, T* y, u64 nv) {
    for (u64 i = INDEX; i < nv; i += STRIDE) {
        float f[V];
        load<V>(x + i * V, f);
#pragma unroll
        for (int k = 0; k < V; k++) f[k] = positive(f[k]);
        store<V>(y + i * V, f);
    }
}
extern "C" __global__ void relu_backward(const T* y, const T* dy, T* dx, u64 nv) {
    for (u64 i = INDEX; i < nv; i += STRIDE) {
        float f[V], g[V];
        load<V>(y + i * V, f);
        load<V>(dy + i * V, g);
#pragma unroll
        for (int k = 0; k < V; k++) g[k] = passed(f[k], g[k]);
        store<V>(dx + i * V, g);
    }
}
extern "C" __global__ void add(const T* a, const T* b, T* y, u64 nv, int relu) {
    for (u64 i = INDEX; i < nv; i += STRIDE) {
        float f[V], g[V];
        load<V>(a + i * V, f);
        load<V>(b + i * V, g);
#pragma unroll
        for (int k = 0; k < V; k++) {
            f[k] += g[k];
            if (relu) f[k] = positive(f[k]);
        }
        store<V>(y + i * V, f);
    }
}

__device__ __forceinline__ u64 mix(u64 z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
}
extern "C" __global__ void dropout(const T* x, T* y, u64 nv, u64 key, u32 limit, float factor) {
    for (u64 i = INDEX; i < nv; i += STRIDE) {
        float f[V];
        load<V>(x + i * V, f);
#pragma unroll
        for (int k = 0; k < V; k++) {
            u64 bits = mix(key + 0x9E3779B97F4A7C15ull * (i * V + k + 1));
            f[k] = (u32)(bits >> 32) >= limit ? f[k] * factor : 0.f;
        }
        store<V>(y + i * V, f);
    }
}

// By channel.

template <int W> __device__ void bias_act(T* y, const float* bias, u64 nw, u32 c, int relu) {
    for (u64 i = INDEX; i < nw; i += STRIDE) {
        float f[W], b[W];
        load<W>(y + i * W, f);
        parameters<W>(bias + (u32)((i * W) % c), b);
#pragma unroll
        for (int k = 0; k < W; k++) {
            f[k] += b[k];
            if (relu) f[k] = positive(f[k]);
        }
        store<W>(y + i * W, f);
    }
}
extern "C" __global__ void bias_act_v(T* y, const float* bias, u64 nw, u32 c, int relu) { bias_act<V>(y, bias, nw, c, relu); }
extern "C" __global__ void bias_act_1(T* y, const float* bias, u64 nw, u32 c, int relu) { bias_act<1>(y, bias, nw, c, relu); }

// Sums by channel. A block of 256 threads is `lanes` channel vectors wide; its rows stride over the input. Each block writes
// one partial sum a channel; `finish_*` add these in order.

template <int W> __device__ __forceinline__ void block_sum(float* sum, u32 lanes, u32 ch, u32 c, float* partial) {
    __shared__ float shared[W][256];
    u32 me = threadIdx.x;
#pragma unroll
    for (int k = 0; k < W; k++) shared[k][me] = sum[k];
    __syncthreads();
    for (u32 s = 128; s >= lanes; s >>= 1) {
        if (me < s)
#pragma unroll
            for (int k = 0; k < W; k++) shared[k][me] += shared[k][me + s];
        __syncthreads();
    }
    if (me < lanes && ch < c)
#pragma unroll
        for (int k = 0; k < W; k++) partial[ch + k] = shared[k][me];
    __syncthreads();
}

// Rows that a thread fetches before it uses the first of them: fewer leave the memory idle.
#define AHEAD 4

// A vector as it lies in memory.
template <int W> struct Raw {
    T value;
};
template <> struct Raw<V> {
    uint4 value;
};

// Calls `use` with the place of each of the thread's rows and what K tensors have there.
template <int W, int K, class F>
__device__ __forceinline__ void by_row(const T* const (&inputs)[K], u64 rows, u32 c, u32 lanes, F use) {
    u32 ch = (blockIdx.x * lanes + threadIdx.x % lanes) * W, per_block = 256 / lanes;
    if (ch >= c) return;
    u64 step = (u64)gridDim.y * per_block, r = blockIdx.y * (u64)per_block + threadIdx.x / lanes;
    for (; r < rows; r += AHEAD * step) {
        Raw<W> raw[AHEAD][K];
#pragma unroll
        for (int j = 0; j < AHEAD; j++)
            if (r + j * step < rows)
#pragma unroll
                for (int k = 0; k < K; k++) raw[j][k] = *(const Raw<W>*)(inputs[k] + (r + j * step) * c + ch);
#pragma unroll
        for (int j = 0; j < AHEAD; j++)
            if (r + j * step < rows) {
                float f[K][W];
#pragma unroll
                for (int k = 0; k < K; k++) load<W>((const T*)&raw[j][k], f[k]);
                use((r + j * step) * c + ch, f);
            }
    }
}
// The first channel of the thread; where it has none, that of another.
#define CHANNEL min((blockIdx.x * lanes + threadIdx.x % lanes) * W, c - W)

template <int W> __device__ void mask_sum(const T* y, T* dy, u64 rows, u32 c, u32 lanes, int relu, int wants, float* partial) {
    float sum[W] = {};
    if (relu) {
        const T* inputs[2] = {dy, y};
        by_row<W>(inputs, rows, c, lanes, [&](u64 at, float (&f)[2][W]) {
#pragma unroll
            for (int k = 0; k < W; k++) {
                f[0][k] = passed(f[1][k], f[0][k]);
                sum[k] += f[0][k];
            }
            store<W>(dy + at, f[0]);
        });
    } else {
        const T* inputs[1] = {dy};
        by_row<W>(inputs, rows, c, lanes, [&](u64, float (&f)[1][W]) {
#pragma unroll
            for (int k = 0; k < W; k++) sum[k] += f[0][k];
        });
    }
    u32 ch = (blockIdx.x * lanes + threadIdx.x % lanes) * W;
    if (wants) block_sum<W>(sum, lanes, ch, c, partial + (u64)blockIdx.y * c);
}
extern "C" __global__ void mask_sum_v(const T* y, T* dy, u64 rows, u32 c, u32 lanes, int relu, int wants, float* partial) {
    mask_sum<V>(y, dy, rows, c, lanes, relu, wants, partial);
}
extern "C" __global__ void mask_sum_1(const T* y, T* dy, u64 rows, u32 c, u32 lanes, int relu, int wants, float* partial) {
    mask_sum<1>(y, dy, rows, c, lanes, relu, wants, partial);
}

// N sums of a channel's partial sums, by 32 channels × 32 threads a block; each sum's parts lie behind those of the one before.
template <int N> __device__ __forceinline__ void totals(const float* partial, u32 parts, u32 c, float* sum) {
    __shared__ float shared[N][32][32];
    u32 ch = blockIdx.x * 32 + threadIdx.x, row = threadIdx.y;
#pragma unroll
    for (int n = 0; n < N; n++) sum[n] = 0.f;
    if (ch < c)
#pragma unroll 4
        for (u32 p = row; p < parts; p += 32)
#pragma unroll
            for (int n = 0; n < N; n++) sum[n] += partial[(u64)(n * parts + p) * c + ch];
#pragma unroll
    for (int n = 0; n < N; n++) shared[n][row][threadIdx.x] = sum[n];
    __syncthreads();
    for (u32 s = 16; s > 0; s >>= 1) {
        if (row < s)
#pragma unroll
            for (int n = 0; n < N; n++) shared[n][row][threadIdx.x] += shared[n][row + s][threadIdx.x];
        __syncthreads();
    }
#pragma unroll
    for (int n = 0; n < N; n++) sum[n] = shared[n][0][threadIdx.x];
}
extern "C" __global__ void finish_sum(const float* partial, u32 parts, u32 c, float* out) {
    float sum[1];
    totals<1>(partial, parts, c, sum);
    u32 ch = blockIdx.x * 32 + threadIdx.x;
    if (threadIdx.y == 0 && ch < c) out[ch] = sum[0];
}

// Batch norm. Sums are taken of x minus the channel's first value, which keeps the variance exact where the mean is large.

template <int W> __device__ void norm_sums(const T* x, u64 rows, u32 c, u32 lanes, float* partial) {
    float sum[W] = {}, square[W] = {}, first[W];
    load<W>(x + CHANNEL, first);
    const T* inputs[1] = {x};
    by_row<W>(inputs, rows, c, lanes, [&](u64, float (&f)[1][W]) {
#pragma unroll
        for (int k = 0; k < W; k++) {
            float d = f[0][k] - first[k];
            sum[k] += d;
            square[k] += d * d;
        }
    });
    u32 ch = (blockIdx.x * lanes + threadIdx.x % lanes) * W;
    block_sum<W>(sum, lanes, ch, c, partial + (u64)blockIdx.y * c);
    block_sum<W>(square, lanes, ch, c, partial + (u64)(gridDim.y + blockIdx.y) * c);
}
extern "C" __global__ void norm_sums_v(const T* x, u64 rows, u32 c, u32 lanes, float* partial) { norm_sums<V>(x, rows, c, lanes, partial); }
extern "C" __global__ void norm_sums_1(const T* x, u64 rows, u32 c, u32 lanes, float* partial) { norm_sums<1>(x, rows, c, lanes, partial); }

// From the sums to mean, one over the deviation, and the running statistics.
extern "C" __global__ void norm_finish(const T* x, const float* partial, u32 parts, u32 c, float rows, float epsilon, float momentum,
                                       float* mean, float* inverse, float* running_mean, float* running_variance) {
    float sums[2];
    totals<2>(partial, parts, c, sums);
    u32 ch = blockIdx.x * 32 + threadIdx.x;
    if (threadIdx.y != 0 || ch >= c) return;
    float shift = sums[0] / rows;
    float variance = positive(sums[1] / rows - shift * shift);
    float m = to_float(x[ch]) + shift;
    mean[ch] = m;
    inverse[ch] = 1.f / sqrtf(variance + epsilon);
    running_mean[ch] += momentum * (m - running_mean[ch]);
    float unbiased = variance * rows / fmaxf(rows - 1.f, 1.f);
    running_variance[ch] += momentum * (unbiased - running_variance[ch]);
}
extern "C" __global__ void norm_recall(u32 c, float epsilon, const float* running_mean, const float* running_variance, float* mean,
                                       float* inverse) {
    u32 ch = INDEX;
    if (ch >= c) return;
    mean[ch] = running_mean[ch];
    inverse[ch] = 1.f / sqrtf(running_variance[ch] + epsilon);
}

// What a thread needs of a batch norm's parameters: it stays with its channels, so that it reads them once.
template <int W> struct Norm {
    float mean[W], scale[W], bias[W];
    __device__ __forceinline__ Norm(u32 ch, const float* means, const float* inverse, const float* weight, const float* biases) {
        float w[W];
        parameters<W>(means + ch, mean);
        parameters<W>(inverse + ch, scale);
        parameters<W>(weight + ch, w);
        parameters<W>(biases + ch, bias);
#pragma unroll
        for (int k = 0; k < W; k++) scale[k] *= w[k];
    }
};

template <int W>
__device__ void norm_apply(const T* x, T* y, u64 rows, u32 c, u32 lanes, const float* mean, const float* inverse,
                           const float* weight, const float* bias, int relu) {
    Norm<W> norm(CHANNEL, mean, inverse, weight, bias);
    const T* inputs[1] = {x};
    by_row<W>(inputs, rows, c, lanes, [&](u64 at, float (&f)[1][W]) {
#pragma unroll
        for (int k = 0; k < W; k++) {
            f[0][k] = (f[0][k] - norm.mean[k]) * norm.scale[k] + norm.bias[k];
            if (relu) f[0][k] = positive(f[0][k]);
        }
        store<W>(y + at, f[0]);
    });
}
extern "C" __global__ void norm_apply_v(const T* x, T* y, u64 rows, u32 c, u32 lanes, const float* mean, const float* inverse,
                                        const float* weight, const float* bias, int relu) {
    norm_apply<V>(x, y, rows, c, lanes, mean, inverse, weight, bias, relu);
}
extern "C" __global__ void norm_apply_1(const T* x, T* y, u64 rows, u32 c, u32 lanes, const float* mean, const float* inverse,
                                        const float* weight, const float* bias, int relu) {
    norm_apply<1>(x, y, rows, c, lanes, mean, inverse, weight, bias, relu);
}

// Whether the ReLU let the value through is computed anew from x, which is read anyway, so that y is not.
template <int W>
__device__ void norm_back_sums(const T* x, const T* dy, u64 rows, u32 c, u32 lanes, const float* mean, const float* inverse,
                               const float* weight, const float* bias, int relu, float* partial) {
    float sum[W] = {}, moved[W] = {};
    Norm<W> norm(CHANNEL, mean, inverse, weight, bias);
    const T* inputs[2] = {x, dy};
    by_row<W>(inputs, rows, c, lanes, [&](u64, float (&f)[2][W]) {
#pragma unroll
        for (int k = 0; k < W; k++) {
            float d = f[0][k] - norm.mean[k], g = f[1][k];
            if (relu) g = passed(d * norm.scale[k] + norm.bias[k], g);
            sum[k] += g;
            moved[k] += g * d;
        }
    });
    u32 ch = (blockIdx.x * lanes + threadIdx.x % lanes) * W;
    block_sum<W>(sum, lanes, ch, c, partial + (u64)blockIdx.y * c);
    block_sum<W>(moved, lanes, ch, c, partial + (u64)(gridDim.y + blockIdx.y) * c);
}
extern "C" __global__ void norm_back_sums_v(const T* x, const T* dy, u64 rows, u32 c, u32 lanes, const float* mean, const float* inverse,
                                            const float* weight, const float* bias, int relu, float* partial) {
    norm_back_sums<V>(x, dy, rows, c, lanes, mean, inverse, weight, bias, relu, partial);
}
extern "C" __global__ void norm_back_sums_1(const T* x, const T* dy, u64 rows, u32 c, u32 lanes, const float* mean, const float* inverse,
                                            const float* weight, const float* bias, int relu, float* partial) {
    norm_back_sums<1>(x, dy, rows, c, lanes, mean, inverse, weight, bias, relu, partial);
}
extern "C" __global__ void norm_back_finish(const float* partial, u32 parts, u32 c, const float* inverse, float* d_weight, float* d_bias) {
    float sums[2];
    totals<2>(partial, parts, c, sums);
    u32 ch = blockIdx.x * 32 + threadIdx.x;
    if (threadIdx.y != 0 || ch >= c) return;
    d_bias[ch] = sums[0];
    d_weight[ch] = sums[1] * inverse[ch];
}

template <int W>
__device__ void norm_back_apply(const T* x, const T* dy, T* dx, u64 rows, u32 c, u32 lanes,
                                const float* mean, const float* inverse, const float* weight, const float* bias, const float* d_weight,
                                const float* d_bias, float share, int relu) {
    u32 mine = CHANNEL;
    Norm<W> norm(mine, mean, inverse, weight, bias);
    // What every gradient loses, and what it loses for each step that its value is away from the mean.
    float all[W], slope[W], i[W];
    parameters<W>(d_bias + mine, all);
    parameters<W>(d_weight + mine, slope);
    parameters<W>(inverse + mine, i);
#pragma unroll
    for (int k = 0; k < W; k++) {
        all[k] *= share;
        slope[k] *= share * i[k];
    }
    const T* inputs[2] = {x, dy};
    by_row<W>(inputs, rows, c, lanes, [&](u64 at, float (&f)[2][W]) {
        float g[W];
#pragma unroll
        for (int k = 0; k < W; k++) {
            float d = f[0][k] - norm.mean[k];
            g[k] = relu ? passed(d * norm.scale[k] + norm.bias[k], f[1][k]) : f[1][k];
            g[k] = norm.scale[k] * (g[k] - (all[k] + d * slope[k]));
        }
        store<W>(dx + at, g);
    });
}
extern "C" __global__ void norm_back_apply_v(const T* x, const T* dy, T* dx, u64 rows, u32 c, u32 lanes, const float* mean,
                                             const float* inverse, const float* weight, const float* bias, const float* d_weight,
                                             const float* d_bias, float share, int relu) {
    norm_back_apply<V>(x, dy, dx, rows, c, lanes, mean, inverse, weight, bias, d_weight, d_bias, share, relu);
}
extern "C" __global__ void norm_back_apply_1(const T* x, const T* dy, T* dx, u64 rows, u32 c, u32 lanes, const float* mean,
                                             const float* inverse, const float* weight, const float* bias, const float* d_weight,
                                             const float* d_bias, float share, int relu) {
    norm_back_apply<1>(x, dy, dx, rows, c, lanes, mean, inverse, weight, bias, d_weight, d_bias, share, relu);
}

// Pooling. Backward gathers: each pixel looks at the windows it is in and takes the gradients it won, in order.

struct Pool {
    u32 n, h, w, c, oh, ow, kernel, stride, padding;
};

template <int W> __device__ void max_pool(const T* x, T* y, u8* winners, Pool p) {
    u32 vectors = p.c / W;
    u64 total = (u64)p.n * p.oh * p.ow * vectors;
    for (u64 i = INDEX; i < total; i += STRIDE) {
        u32 ch = (u32)(i % vectors) * W;
        u64 place = i / vectors;
        int ox = place % p.ow, oy = (place / p.ow) % p.oh;
        u64 image = place / ((u64)p.ow * p.oh) * p.h;
        float best[W];
        u8 winner[W];
        bool any = false;
        for (int ky = 0; ky < p.kernel; ky++) {
            int iy = oy * (int)p.stride - (int)p.padding + ky;
            if (iy < 0 || iy >= (int)p.h) continue;
            for (int kx = 0; kx < p.kernel; kx++) {
                int ix = ox * (int)p.stride - (int)p.padding + kx;
                if (ix < 0 || ix >= (int)p.w) continue;
                float f[W];
                load<W>(x + ((image + iy) * p.w + ix) * p.c + ch, f);
#pragma unroll
                for (int k = 0; k < W; k++)
                    if (!any || f[k] > best[k] || f[k] != f[k]) {
                        best[k] = f[k];
                        winner[k] = ky * p.kernel + kx;
                    }
                any = true;
            }
        }
        store<W>(y + place * p.c + ch, best);
#pragma unroll
        for (int k = 0; k < W; k++) winners[place * p.c + ch + k] = winner[k];
    }
}
extern "C" __global__ void max_pool_v(const T* x, T* y, u8* winners, Pool p) { max_pool<V>(x, y, winners, p); }
extern "C" __global__ void max_pool_1(const T* x, T* y, u8* winners, Pool p) { max_pool<1>(x, y, winners, p); }

template <int W> __device__ void max_pool_back(const T* dy, const u8* winners, T* dx, Pool p) {
    u32 vectors = p.c / W;
    u64 total = (u64)p.n * p.h * p.w * vectors;
    for (u64 i = INDEX; i < total; i += STRIDE) {
        u32 ch = (u32)(i % vectors) * W;
        u64 pixel = i / vectors;
        int ix = pixel % p.w + p.padding, iy = (pixel / p.w) % p.h + p.padding;
        u64 image = pixel / ((u64)p.w * p.h) * p.oh;
        int last_y = min(iy / (int)p.stride, (int)p.oh - 1), last_x = min(ix / (int)p.stride, (int)p.ow - 1);
        int first_y = max(0, (iy - (int)p.kernel) / (int)p.stride + (iy >= (int)p.kernel ? 1 : 0));
        int first_x = max(0, (ix - (int)p.kernel) / (int)p.stride + (ix >= (int)p.kernel ? 1 : 0));
        float sum[W] = {};
        for (int oy = first_y; oy <= last_y; oy++)
            for (int ox = first_x; ox <= last_x; ox++) {
                u64 at = ((image + oy) * p.ow + ox) * p.c + ch;
                u8 me = (iy - oy * p.stride) * p.kernel + (ix - ox * p.stride);
                float g[W];
                load<W>(dy + at, g);
#pragma unroll
                for (int k = 0; k < W; k++)
                    if (winners[at + k] == me) sum[k] += g[k];
            }
        store<W>(dx + pixel * p.c + ch, sum);
    }
}
extern "C" __global__ void max_pool_back_v(const T* dy, const u8* winners, T* dx, Pool p) { max_pool_back<V>(dy, winners, dx, p); }
extern "C" __global__ void max_pool_back_1(const T* dy, const u8* winners, T* dx, Pool p) { max_pool_back<1>(dy, winners, dx, p); }

extern "C" __global__ void average_pool(const T* x, T* y, Pool p) {
    u64 total = (u64)p.n * p.oh * p.ow * p.c;
    for (u64 i = INDEX; i < total; i += STRIDE) {
        u32 ch = i % p.c, ox = (i / p.c) % p.ow, oy = (i / p.c / p.ow) % p.oh;
        u64 image = i / ((u64)p.c * p.ow * p.oh) * p.h;
        float sum = 0.f;
        for (u32 ky = 0; ky < p.kernel; ky++)
            for (u32 kx = 0; kx < p.kernel; kx++) sum += to_float(x[((image + oy * p.stride + ky) * p.w + ox * p.stride + kx) * p.c + ch]);
        y[i] = from_float(sum / (p.kernel * p.kernel));
    }
}
extern "C" __global__ void average_pool_back(const T* dy, T* dx, Pool p) {
    u64 total = (u64)p.n * p.h * p.w * p.c;
    for (u64 i = INDEX; i < total; i += STRIDE) {
        u32 ch = i % p.c, ix = (i / p.c) % p.w, iy = (i / p.c / p.w) % p.h;
        u64 image = i / ((u64)p.c * p.w * p.h) * p.oh;
        float sum = 0.f;
        for (u32 oy = iy >= p.kernel ? (iy - p.kernel) / p.stride + 1 : 0; oy < p.oh && oy * p.stride <= iy; oy++)
            for (u32 ox = ix >= p.kernel ? (ix - p.kernel) / p.stride + 1 : 0; ox < p.ow && ox * p.stride <= ix; ox++)
                sum += to_float(dy[((image + oy) * p.ow + ox) * p.c + ch]);
        dx[i] = from_float(sum / (p.kernel * p.kernel));
    }
}

// Softmax cross-entropy: a block a row; then one block adds the rows up.

__device__ __forceinline__ float block_reduce(float value, bool is_max) {
    __shared__ float shared[256];
    shared[threadIdx.x] = value;
    __syncthreads();
    for (u32 s = 128; s > 0; s >>= 1) {
        if (threadIdx.x < s) {
            float other = shared[threadIdx.x + s];
            shared[threadIdx.x] = is_max ? fmaxf(shared[threadIdx.x], other) : shared[threadIdx.x] + other;
        }
        __syncthreads();
    }
    float out = shared[0];
    __syncthreads();
    return out;
}
// The first place of the largest value.
__device__ __forceinline__ u32 block_first(u32 candidate) {
    __shared__ u32 first;
    if (threadIdx.x == 0) first = ~0u;
    __syncthreads();
    atomicMin(&first, candidate);
    __syncthreads();
    u32 out = first;
    __syncthreads();
    return out;
}
extern "C" __global__ void loss_rows(const T* logits, const float* targets, T* gradient, float2* rows, u32 c, float share) {
    logits += (u64)blockIdx.x * c;
    targets += (u64)blockIdx.x * c;
    float most = -3.4e38f, top = -3.4e38f, weight = 0.f;
    for (u32 i = threadIdx.x; i < c; i += 256) {
        most = fmaxf(most, to_float(logits[i]));
        top = fmaxf(top, targets[i]);
        weight += targets[i];
    }
    most = block_reduce(most, true);
    top = block_reduce(top, true);
    weight = block_reduce(weight, false);
    float sum = 0.f;
    u32 guess = ~0u, truth = ~0u;
    for (u32 i = threadIdx.x; i < c; i += 256) {
        float z = to_float(logits[i]);
        sum += expf(z - most);
        if (z == most) guess = min(guess, i);
        if (targets[i] == top) truth = min(truth, i);
    }
    float log = logf(block_reduce(sum, false)) + most;
    guess = block_first(guess);
    truth = block_first(truth);
    float loss = 0.f;
    for (u32 i = threadIdx.x; i < c; i += 256) {
        float z = to_float(logits[i]);
        // A class that the sample is not costs nothing, even where its output is infinitely far below.
        if (targets[i] != 0.f) loss += targets[i] * (log - z);
        if (gradient) gradient[(u64)blockIdx.x * c + i] = from_float((weight * expf(z - log) - targets[i]) * share);
    }
    loss = block_reduce(loss, false);
    if (log != log) loss = log;
    // Outputs that are no numbers tell no class.
    if (threadIdx.x == 0) rows[blockIdx.x] = make_float2(loss, loss == loss && guess == truth ? 1.f : 0.f);
}
extern "C" __global__ void loss_total(const float2* rows, u32 n, float2* out) {
    float loss = 0.f, right = 0.f;
    for (u32 i = threadIdx.x; i < n; i += 256) {
        loss += rows[i].x;
        right += rows[i].y;
    }
    loss = block_reduce(loss, false);
    right = block_reduce(right, false);
    if (threadIdx.x == 0) *out = make_float2(loss / n, right);
}

// Optimisers, four values at a time. Gradients are f32 or of the activations' type; `working` is the copy that layers read.

__device__ __forceinline__ float4 gradient4(const float* g, u64 i) { return ((const float4*)g)[i]; }
#if BF16
__device__ __forceinline__ float4 gradient4(const T* g, u64 i) {
    uint2 raw = ((const uint2*)g)[i];
    return make_float4(__uint_as_float(raw.x << 16), __uint_as_float(raw.x & 0xffff0000u), __uint_as_float(raw.y << 16),
                       __uint_as_float(raw.y & 0xffff0000u));
}
#endif
__device__ __forceinline__ void work4(T* working, u64 i, float4 w) {
#if BF16
    ((uint2*)working)[i] = make_uint2(pair(w.x, w.y), pair(w.z, w.w));
#endif
}
template <int MOMENTS, class G, class R>
__device__ void update(float4* values, const G* gradients, float4* first, float4* second, T* working, u64 n4, R rule) {
    for (u64 i = INDEX; i < n4; i += STRIDE) {
        float4 none = make_float4(0.f, 0.f, 0.f, 0.f);
        float4 w = values[i], g = gradient4(gradients, i), m = MOMENTS > 0 ? first[i] : none, v = MOMENTS > 1 ? second[i] : none;
        rule.step(w.x, g.x, m.x, v.x);
        rule.step(w.y, g.y, m.y, v.y);
        rule.step(w.z, g.z, m.z, v.z);
        rule.step(w.w, g.w, m.w, v.w);
        values[i] = w;
        if (MOMENTS > 0) first[i] = m;
        if (MOMENTS > 1) second[i] = v;
        work4(working, i, w);
    }
}
// What follows is made of the rules' declarations.
#define UPDATE(KERNEL, G, MOMENTS, RULE)                                                                                              \
    extern "C" __global__ void KERNEL(float4* values, const G* gradients, float4* first, float4* second, T* working, u64 n4, RULE rule) { \
        update<MOMENTS>(values, gradients, first, second, working, n4, rule);                                                         \
    }
