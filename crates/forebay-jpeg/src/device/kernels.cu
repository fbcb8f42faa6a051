// Batches of baseline JPEG files on a device that runs many threads: Huffman codes, coefficients, samples, training pixels.
//
// Compiled at run time for CUDA, and as plain C by the tests, which run the same code on the CPU; hence no C++. Every kernel
// handles independent items, one per thread, and none waits for another thread.
//
// A file's entropy-coded data is cut into chunks of bits that are decoded at the same time (Weissenberger and Schmidt,
// arXiv:2111.09219). A thread that begins in the middle of a code soon falls into step with the true sequence of codes, so
// after a few rounds, in each of which a chunk begins where its predecessor now ends, nothing changes any more. Then the
// number of blocks that end in each chunk gives every block its place, and a last pass stores the coefficients. Damage is what
// the decoder for CPUs calls damage: the file is marked, and the host decodes it again to name the error. Wrong states occur
// on the way even in valid files, so every index is bounded by the host's numbers, never by the data.

#ifdef __CUDACC__
#define KERNEL extern "C" __global__ void
#define UNROLL _Pragma("unroll")
#define SWAP(word) __byte_perm(word, 0, 0x0123)
#endif

typedef unsigned char u8;
typedef unsigned short u16;
typedef short i16;
typedef unsigned int u32;
typedef int i32;
typedef unsigned long long u64;

#define FAST_BITS 10
#define MAX_SLOTS 10
// Chunks that one thread decodes again, one after the other, when the rounds did not suffice; about 0.1 s.
#define MAX_REPAIRS 4096

// A Huffman code; see `CodeSpec::bounds`.
typedef struct {
    u32 limits[17];
    i32 offsets[17];
    u8 symbols[256];
} Code;

typedef struct {
    u32 h, v;
    // First sample, in units of 64.
    u32 first, stride, width, height;
    u32 method, expand_x, expand_y;
    // Number of its quantisation table.
    u32 quant;
} Component;

typedef struct {
    u32 first_block, first_pixel;
    u32 mcus_x, n_slots;
    // After so many blocks the same codes come again.
    u32 period;
    u32 dc[MAX_SLOTS], ac[MAX_SLOTS];
    u32 component[MAX_SLOTS], slot_x[MAX_SLOTS], slot_y[MAX_SLOTS];
    Component components[3];
    u32 color;
    // The part of the image that is resized, the size it is resized to, the window of that, and whether it is mirrored.
    u32 crop_x, crop_y, crop_width, crop_height;
    u32 resized_x, resized_y, offset_x, offset_y;
    u32 is_mirrored, is_precise;
    u32 out_width, out_height;
} Image;

// Data between two restart markers.
typedef struct {
    u32 image;
    // In units of 16 bytes.
    u32 first_bytes;
    u32 n_bits;
    u32 first_chunk, n_chunks;
    u32 first_run, n_runs;
    // Blocks, the first counted from the image's first.
    u32 first_block, n_blocks;
    u32 is_last;
} Segment;

typedef struct {
    const Image* images;
    const Segment* segments;
    const Code* codes;
    const i16* quant;
    const u8* bytes;
    u32* faults;
    u32* moved;
    i16* coefficients;
    u16* fast;
    u32* entries;
    u32* exits;
    u32* counts;
    i16* dc;
    u32* sums;
    u8* samples;
    u8* out;
    u32 n_images, n_segments, n_codes, n_chunks, n_runs, n_blocks, n_pixels;
    u32 chunk_bits, n_rounds, mcus_per_run;
    u32 dtype, is_planar;
    float factors[3], summands[3];
} Batch;

#define INDEX (blockIdx.x * blockDim.x + threadIdx.x)
#define STRIDE (gridDim.x * blockDim.x)
#define EACH(i, n) for (u32 i = INDEX; i < (n); i += STRIDE)

// The last of `n` records whose number at `first`, one every `step` words, is at most `wanted`.
__device__ u32 find(const u32* first, u32 step, u32 n, u32 wanted) {
    u32 low = 0, high = n;
    while (high - low > 1) {
        u32 middle = low + (high - low) / 2;
        if (first[(u64)middle * step] <= wanted) low = middle;
        else high = middle;
    }
    return low;
}
#define WORDS(type) ((u32)(sizeof(type) / 4))

// Length and symbol of the code at the top of `window`, or 0.
__device__ u32 look_up(const Code* code, u32 window, u32 longest) {
    u32 top = window >> 16;
    for (u32 length = 1; length <= longest; length++) {
        if (top < code->limits[length]) {
            u32 index = (top >> (16 - length)) + (u32)code->offsets[length];
            return index < 256 ? length << 8 | code->symbols[index] : 0;
        }
    }
    return 0;
}

KERNEL build_codes(Batch b, u32 round) {
    EACH(i, b.n_codes << FAST_BITS) {
        u32 window = (i & ((1u << FAST_BITS) - 1)) << (32 - FAST_BITS);
        b.fast[i] = (u16)look_up(b.codes + (i >> FAST_BITS), window, FAST_BITS);
    }
}

// Where a decoder stands at the end of a chunk: bits beyond the end, block of the MCU, next coefficient.
#define STATE(over, slot, k) ((over) | (slot) << 8 | (k) << 16)

__device__ const u8 NATURAL[64] = {
    0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,  12, 19, 26, 33, 40, 48,
    41, 34, 27, 20, 13, 6,  7,  14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23,
    30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63,
};

// The value of `size` bits at the top of `bits`; those with a first bit of 0 are negative.
__device__ i32 signed_value(u32 bits, u32 size) {
    if (size == 0) return 0;
    i32 value = (i32)(bits >> (32 - size));
    return value < 1 << (size - 1) ? value + 1 - (1 << size) : value;
}

// Decodes a chunk from `state` on. Returns the state at its end, and the number of blocks that end in it and in the data.
//
// When writing, it begins with `block` of the segment, stores coefficients, and marks the image if anything is wrong with a
// block. When not, a state that turns out wrong is left for one that may be right.
__device__ u32 decode(const Batch* b, const Segment* segment, u32 chunk, u32 state, u32* n_ended, int writes, u32 block) {
    const Image* image = b->images + segment->image;
    u32 start = chunk * b->chunk_bits, limit = segment->n_bits;
    u32 end = start + b->chunk_bits < limit ? start + b->chunk_bits : limit;
    u32 at = start + (state & 255), slot = state >> 8 & 255, k = state >> 16, ended = 0;
    u64 base = (u64)image->first_block + segment->first_block;
    // The data is followed by 16 zero bytes, and at most 12 are read from the word that holds `at` on.
    const u32* words = (const u32*)(b->bytes + (u64)segment->first_bytes * 16) + (at >> 5);
    u64 buffer = ((u64)SWAP(words[0]) << 32 | SWAP(words[1])) << (at & 31);
    u32 n_valid = 64 - (at & 31);
    words += 2;
    u32 codes = image->dc[slot] | image->ac[slot] << 16;
    while (at < end) {
        if (n_valid < 32) {
            buffer |= (u64)SWAP(*words++) << (32 - n_valid);
            n_valid += 32;
        }
        u32 window = (u32)(buffer >> 32);
        u32 code = k == 0 ? codes & 0xffff : codes >> 16;
        u32 found = b->fast[code << FAST_BITS | window >> (32 - FAST_BITS)];
        if (found == 0) found = look_up(b->codes + code, window, 16);
        if (found == 0) {
            if (writes) {
                b->faults[segment->image] = 1;
                return 0;
            }
            buffer <<= 1, n_valid -= 1, at += 1, k = 0;
            continue;
        }
        u32 length = found >> 8, symbol = found & 255, size = symbol & 15, run = symbol >> 4;
        u32 n = length + size;
        int ends = 0;
        if (k == 0) {
            if (writes) b->dc[base + block] = (i16)signed_value(window << length, size);
            k = 1;
        } else if (size == 0 && run < 15) {
            ends = 1;
        } else if (k + run > 63) {
            if (writes) {
                b->faults[segment->image] = 1;
                return 0;
            }
            ends = 1;
        } else {
            k += run;
            if (writes) b->coefficients[(base + block) * 64 + NATURAL[k]] = (i16)signed_value(window << length, size);
            k += 1;
            ends = k == 64;
        }
        buffer <<= n, n_valid -= n, at += n;
        if (ends) {
            k = 0;
            slot = slot + 1 < image->period ? slot + 1 : 0;
            codes = image->dc[slot] | image->ac[slot] << 16;
            if (at <= limit) ended += 1;
            block += 1;
            if (writes && block >= segment->n_blocks) {
                // A whole byte left before a restart marker is damage; anything may follow the last block of the image.
                if (at > limit || (!segment->is_last && limit - at >= 8)) b->faults[segment->image] = 1;
                return 0;
            }
        }
    }
    *n_ended = ended;
    return STATE(at - end, slot, k);
}

// One round: a chunk whose predecessor now ends in another state is decoded again.
KERNEL synchronise(Batch b, u32 round) {
    const u32* before = b.exits + (u64)((round + 1) & 1) * b.n_chunks;
    u32* after = b.exits + (u64)(round & 1) * b.n_chunks;
    EACH(i, b.n_chunks) {
        const Segment* segment = b.segments + find(&b.segments->first_chunk, WORDS(Segment), b.n_segments, i);
        u32 chunk = i - segment->first_chunk;
        u32 entry = 0;
        if (round > 0) {
            if (!b.moved[(round - 1) * b.n_images + segment->image]) continue;
            entry = chunk == 0 ? 0 : before[i - 1];
            if (entry == b.entries[i]) {
                after[i] = before[i];
                continue;
            }
        }
        u32 n_ended = 0;
        u32 exit = decode(&b, segment, chunk, entry, &n_ended, 0, 0);
        b.entries[i] = entry;
        b.counts[i] = n_ended;
        after[i] = exit;
        if (round == 0 || exit != before[i]) b.moved[round * b.n_images + segment->image] = 1;
    }
}

// Per segment: what the rounds left undone, then the number of blocks before each chunk.
KERNEL place_blocks(Batch b, u32 round) {
    EACH(i, b.n_segments) {
        const Segment* segment = b.segments + i;
        u32* exits = b.exits + (u64)((b.n_rounds - 1) & 1) * b.n_chunks + segment->first_chunk;
        u32* entries = b.entries + segment->first_chunk;
        u32* counts = b.counts + segment->first_chunk;
        u32 n_before = 0, n_repairs = 0;
        if (b.moved[(b.n_rounds - 1) * b.n_images + segment->image]) {
            for (u32 chunk = 1; chunk < segment->n_chunks; chunk++) {
                if (entries[chunk] == exits[chunk - 1]) continue;
                if (n_repairs++ == MAX_REPAIRS) {
                    b.faults[segment->image] = 1;
                    break;
                }
                entries[chunk] = exits[chunk - 1];
                exits[chunk] = decode(&b, segment, chunk, entries[chunk], counts + chunk, 0, 0);
            }
        }
        // Many loads before the first store, or each would wait for the one before.
        for (u32 chunk = 0; chunk < segment->n_chunks; chunk += 16) {
            u32 own[16];
            UNROLL
            for (u32 k = 0; k < 16; k++) own[k] = chunk + k < segment->n_chunks ? counts[chunk + k] : 0;
            UNROLL
            for (u32 k = 0; k < 16; k++) {
                if (chunk + k < segment->n_chunks) counts[chunk + k] = n_before;
                n_before += own[k];
            }
        }
        if (n_before < segment->n_blocks) b.faults[segment->image] = 1;
    }
}

KERNEL write_coefficients(Batch b, u32 round) {
    EACH(i, b.n_chunks) {
        const Segment* segment = b.segments + find(&b.segments->first_chunk, WORDS(Segment), b.n_segments, i);
        u32 n_ended = 0;
        if (!b.faults[segment->image] && b.counts[i] < segment->n_blocks)
            decode(&b, segment, i - segment->first_chunk, b.entries[i], &n_ended, 1, b.counts[i]);
    }
}

// The blocks of a run, counted from the image's first. A run is a number of MCUs, handled by one thread.
__device__ void blocks_of_run(const Batch* b, const Segment* segment, u32 run, u32* first, u32* end) {
    u32 n = b->mcus_per_run * b->images[segment->image].n_slots;
    u32 start = (run - segment->first_run) * n;
    *first = segment->first_block + start;
    *end = segment->first_block + (segment->n_blocks - start < n ? segment->n_blocks : start + n);
}

// DC coefficients are sent as differences from the component's last: sums over runs, over segments, over the blocks of a run.
// They wrap at 16 bits, as all coefficients do.
KERNEL sum_runs(Batch b, u32 round) {
    EACH(i, b.n_runs) {
        const Segment* segment = b.segments + find(&b.segments->first_run, WORDS(Segment), b.n_segments, i);
        const Image* image = b.images + segment->image;
        u32 first, end, sums[3] = {0, 0, 0};
        blocks_of_run(&b, segment, i, &first, &end);
        for (u32 block = first, slot = 0; block < end; block++) {
            sums[image->component[slot]] += (u32)b.dc[(u64)image->first_block + block];
            slot = slot + 1 < image->n_slots ? slot + 1 : 0;
        }
        for (u32 c = 0; c < 3; c++) b.sums[(u64)i * 3 + c] = sums[c];
    }
}

KERNEL sum_segments(Batch b, u32 round) {
    EACH(i, b.n_segments * 3) {
        const Segment* segment = b.segments + i / 3;
        u32* sums = b.sums + (u64)segment->first_run * 3 + i % 3;
        u32 before = 0;
        for (u32 run = 0; run < segment->n_runs; run++) {
            u32 own = sums[run * 3];
            sums[run * 3] = before;
            before += own;
        }
    }
}

KERNEL add_sums(Batch b, u32 round) {
    EACH(i, b.n_runs) {
        const Segment* segment = b.segments + find(&b.segments->first_run, WORDS(Segment), b.n_segments, i);
        const Image* image = b.images + segment->image;
        u32 first, end, sums[3];
        blocks_of_run(&b, segment, i, &first, &end);
        for (u32 c = 0; c < 3; c++) sums[c] = b.sums[(u64)i * 3 + c];
        for (u32 block = first, slot = 0; block < end; block++) {
            i16* dc = b.dc + (u64)image->first_block + block;
            u32 c = image->component[slot];
            sums[c] += (u32)*dc;
            *dc = (i16)sums[c];
            slot = slot + 1 < image->n_slots ? slot + 1 : 0;
        }
    }
}

// The inverse transform in libjpeg's fixed point; see `idct.rs`, whose names these are. Sums wrap.
__device__ void rotate(i32 p0, i32 q0, i32 p1, i32 q1, i32 a, i32 b, u32* first, u32* second) {
    *first = (u32)(a * p0) + (u32)(b * q0);
    *second = (u32)(a * p1) + (u32)(b * q1);
}

__device__ void transform(const i16* c, i32* out) {
    u32 e2, e3, m3, m4, o0, o1, o2, o3;
    rotate(4433, 4433 - 15137, 4433 + 6270, 4433, c[2], c[6], &e2, &e3);
    u32 e0 = (u32)(i32)(i16)(c[0] + c[4]) << 13, e1 = (u32)(i32)(i16)(c[0] - c[4]) << 13;
    u32 even[4] = {e0 + e3, e1 + e2, e1 - e2, e0 - e3};
    rotate(9633 - 16069, 9633, 9633, 9633 - 3196, (i16)(c[7] + c[3]), (i16)(c[5] + c[1]), &m3, &m4);
    rotate(2446 - 7373, -7373, -7373, 12299 - 7373, c[7], c[1], &o0, &o3);
    rotate(16819 - 20995, -20995, -20995, 25172 - 20995, c[5], c[3], &o1, &o2);
    u32 odd[4] = {o3 + m4, o2 + m3, o1 + m4, o0 + m3};
    UNROLL
    for (u32 i = 0; i < 4; i++) {
        out[i] = (i32)(even[i] + odd[i]);
        out[7 - i] = (i32)(even[i] - odd[i]);
    }
}

__device__ i32 descale(i32 value, u32 n_bits) { return (i32)((u32)value + (1u << (n_bits - 1))) >> n_bits; }
__device__ i32 clamp(i32 value, i32 low, i32 high) { return value < low ? low : value > high ? high : value; }

KERNEL reconstruct(Batch b, u32 round) {
    EACH(i, b.n_blocks) {
        const Image* image = b.images + find(&b.images->first_block, WORDS(Image), b.n_images, i);
        u32 block = i - image->first_block;
        u32 mcu = block / image->n_slots, slot = block % image->n_slots;
        const Component* component = image->components + image->component[slot];
        const i16* quant = b.quant + component->quant * 64;
        // Four coefficients at once.
        const u64* from = (const u64*)(b.coefficients + (u64)i * 64);
        u64 rows[16];
        UNROLL
        for (u32 k = 0; k < 16; k++) rows[k] = from[k];
        i16 columns[8][8];
        UNROLL
        for (u32 x = 0; x < 8; x++) {
            i16 input[8];
            i32 output[8];
            UNROLL
            for (u32 y = 0; y < 8; y++) {
                i16 coefficient = x + y == 0 ? b.dc[i] : (i16)(rows[2 * y + x / 4] >> (x % 4 * 16));
                input[y] = (i16)(coefficient * quant[8 * y + x]);
            }
            transform(input, output);
            UNROLL
            for (u32 y = 0; y < 8; y++) columns[y][x] = (i16)clamp(descale(output[y], 11), -32768, 32767);
        }
        u32 column = mcu % image->mcus_x * component->h + image->slot_x[slot];
        u32 row = mcu / image->mcus_x * component->v + image->slot_y[slot];
        u8* to = b.samples + (u64)component->first * 64 + (u64)row * 8 * component->stride + column * 8;
        UNROLL
        for (u32 y = 0; y < 8; y++) {
            i32 output[8];
            u64 line = 0;
            transform(columns[y], output);
            UNROLL
            for (u32 x = 0; x < 8; x++) line |= (u64)(clamp(descale(output[x], 18), -128, 127) + 128) << (8 * x);
            *(u64*)(to + (u64)y * component->stride) = line;
        }
    }
}

#define REPLICATE 0
#define FANCY_H2V1 1
#define FANCY_H1V2 2
#define FANCY_H2V2 3

// A component's value at a pixel; see `upsample.rs`.
__device__ i32 value_at(const Batch* b, const Component* c, u32 x, u32 y) {
    const u8* plane = b->samples + (u64)c->first * 64;
    if (c->method == REPLICATE) {
        u32 own_x = c->expand_x == 1 ? x : x / c->expand_x, own_y = c->expand_y == 1 ? y : y / c->expand_y;
        return plane[(u64)own_y * c->stride + own_x];
    }
    u32 row = c->method == FANCY_H2V1 ? y : y / 2;
    u32 far_row = y & 1 ? (row + 1 < c->height ? row + 1 : row) : (row > 0 ? row - 1 : 0);
    const u8* near = plane + (u64)row * c->stride;
    const u8* far = plane + (u64)far_row * c->stride;
    if (c->method == FANCY_H1V2) return (3 * near[x] + far[x] + 1 + (y & 1)) >> 2;
    u32 here = x / 2;
    u32 beside = x & 1 ? (here + 1 < c->width ? here + 1 : here) : (here > 0 ? here - 1 : 0);
    if (c->method == FANCY_H2V1) return (3 * near[here] + near[beside] + 1 + (x & 1)) >> 2;
    return (3 * (3 * near[here] + far[here]) + 3 * near[beside] + far[beside] + 8 - (x & 1)) >> 4;
}

#define GRAY 0
#define YCBCR 1
#define RGB 2

__device__ void pixel_at(const Batch* b, const Image* image, u32 x, u32 y, float* rgb) {
    i32 first = value_at(b, image->components, x, y);
    rgb[0] = rgb[1] = rgb[2] = (float)first;
    if (image->color == GRAY) return;
    i32 second = value_at(b, image->components + 1, x, y), third = value_at(b, image->components + 2, x, y);
    if (image->color == RGB) {
        rgb[1] = (float)second, rgb[2] = (float)third;
        return;
    }
    i32 cb = second - 128, cr = third - 128, half = 1 << 15;
    rgb[0] = (float)clamp(first + ((91881 * cr + half) >> 16), 0, 255);
    rgb[1] = (float)clamp(first + ((-22554 * cb - 46802 * cr + half) >> 16), 0, 255);
    rgb[2] = (float)clamp(first + ((116130 * cb + half) >> 16), 0, 255);
}

// The pixels around the centre of output pixel `at` of `n`, and how far it is from the first towards the second: whole images
// as in `resize/taps.rs`, views of them as in `render/filter.rs`.
__device__ float tap(u32 at, u32 n, u32 n_source, u32 is_precise, u32* lower, u32* upper) {
    float weight;
    i32 below, above;
    if (is_precise) {
        double centre = ((double)at + 0.5) * ((double)n_source / (double)n) - 0.5;
        below = (i32)floor(centre);
        above = below + 1;
        weight = (float)(centre - (double)below);
    } else {
        float centre = ((float)at + 0.5f) * ((float)n_source / (float)n) - 0.5f;
        below = (i32)floorf(centre);
        above = (i32)ceilf(centre);
        weight = centre - (float)below;
    }
    *upper = (u32)clamp(above, 0, (i32)n_source - 1);
    *lower = (u32)clamp(below, 0, (i32)*upper);
    return *lower == *upper ? 0.0f : weight;
}

__device__ void row_at(const Batch* b, const Image* image, u32 left, u32 right, float weight, u32 y, float* rgb) {
    pixel_at(b, image, left, y, rgb);
    if (weight == 0.0f) return;
    float other[3];
    pixel_at(b, image, right, y, other);
    for (u32 c = 0; c < 3; c++) rgb[c] = rgb[c] + (other[c] - rgb[c]) * weight;
}

#define U8 0
#define F32 1
#define F16 2
#define BF16 3

// Rounded to nearest, ties to even; the values are finite.
__device__ u16 bf16_of(u32 bits) { return (u16)((bits + 0x7fff + (bits >> 16 & 1)) >> 16); }

__device__ u16 f16_of(u32 bits) {
    u32 sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
    if (magnitude >= 0x477ff000) return (u16)(sign | 0x7c00);
    if (magnitude < 0x38800000) {
        // Subnormal: a multiple of 2^-24.
        u32 exponent = magnitude >> 23, shift = 126 - exponent;
        if (exponent < 102) return (u16)sign;
        u32 mantissa = (magnitude & 0x7fffff) | 0x800000;
        u32 rest = mantissa & ((1u << shift) - 1), half = 1u << (shift - 1), value = mantissa >> shift;
        return (u16)(sign | (value + (rest > half || (rest == half && (value & 1)))));
    }
    u32 value = magnitude - 0x38000000;
    return (u16)(sign | (value + 0xfff + (value >> 13 & 1)) >> 13);
}

__device__ u32 bits_of(float value) {
    union {
        float value;
        u32 bits;
    } both;
    both.value = value;
    return both.bits;
}

__device__ void put(const Batch* b, u64 at, float value) {
    switch (b->dtype) {
    case U8: b->out[at] = (u8)bits_of(value + 8388608.0f); break;
    case F32: ((float*)b->out)[at] = value; break;
    case F16: ((u16*)b->out)[at] = f16_of(bits_of(value)); break;
    default: ((u16*)b->out)[at] = bf16_of(bits_of(value));
    }
}

KERNEL render(Batch b, u32 round) {
    EACH(i, b.n_pixels) {
        u32 number = find(&b.images->first_pixel, WORDS(Image), b.n_images, i);
        const Image* image = b.images + number;
        if (b.faults[number]) continue;
        u32 pixel = i - image->first_pixel, x = pixel % image->out_width, y = pixel / image->out_width;
        u32 column = image->is_mirrored ? image->out_width - 1 - x : x;
        u32 left, right, top, bottom;
        float across = tap(column + image->offset_x, image->resized_x, image->crop_width, image->is_precise, &left, &right);
        float down = tap(y + image->offset_y, image->resized_y, image->crop_height, image->is_precise, &top, &bottom);
        float rgb[3], below[3];
        left += image->crop_x, right += image->crop_x;
        row_at(&b, image, left, right, across, top + image->crop_y, rgb);
        if (down != 0.0f) {
            row_at(&b, image, left, right, across, bottom + image->crop_y, below);
            for (u32 c = 0; c < 3; c++) rgb[c] = rgb[c] + (below[c] - rgb[c]) * down;
        }
        u64 first = (u64)image->first_pixel * 3, n = (u64)image->out_width * image->out_height;
        for (u32 c = 0; c < 3; c++) {
            u64 at = first + (b.is_planar ? c * n + pixel : (u64)pixel * 3 + c);
            put(&b, at, rgb[c] * b.factors[c] + b.summands[c]);
        }
    }
}
