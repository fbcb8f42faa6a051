//! The records that host and device share, field by field as in `kernels.cu`.

/// Most blocks in an MCU.
pub(super) const MAX_SLOTS: usize = 10;

#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(super) struct Code {
    pub(super) limits: [u32; 17],
    pub(super) offsets: [i32; 17],
    pub(super) symbols: [u8; 256],
}

#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub(super) struct Component {
    pub(super) h: u32,
    pub(super) v: u32,
    pub(super) first: u32,
    pub(super) stride: u32,
    pub(super) width: u32,
    pub(super) height: u32,
    pub(super) method: u32,
    pub(super) expand_x: u32,
    pub(super) expand_y: u32,
    pub(super) quant: u32,
}

#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub(super) struct Image {
    pub(super) first_block: u32,
    pub(super) first_pixel: u32,
    pub(super) mcus_x: u32,
    pub(super) n_slots: u32,
    pub(super) period: u32,
    pub(super) dc: [u32; MAX_SLOTS],
    pub(super) ac: [u32; MAX_SLOTS],
    pub(super) component: [u32; MAX_SLOTS],
    pub(super) slot_x: [u32; MAX_SLOTS],
    pub(super) slot_y: [u32; MAX_SLOTS],
    pub(super) components: [Component; 3],
    pub(super) color: u32,
    pub(super) crop: [u32; 4],
    pub(super) resized: [u32; 2],
    pub(super) offset: [u32; 2],
    pub(super) is_mirrored: u32,
    pub(super) is_precise: u32,
    pub(super) out: [u32; 2],
}

#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub(super) struct Segment {
    pub(super) image: u32,
    pub(super) first_bytes: u32,
    pub(super) n_bits: u32,
    pub(super) first_chunk: u32,
    pub(super) n_chunks: u32,
    pub(super) first_run: u32,
    pub(super) n_runs: u32,
    pub(super) first_block: u32,
    pub(super) n_blocks: u32,
    pub(super) is_last: u32,
}

/// The argument of every kernel, with addresses in the memory of the device.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Arguments {
    pub(super) images: u64,
    pub(super) segments: u64,
    pub(super) codes: u64,
    pub(super) quant: u64,
    pub(super) bytes: u64,
    pub(super) faults: u64,
    pub(super) moved: u64,
    pub(super) coefficients: u64,
    pub(super) fast: u64,
    pub(super) entries: u64,
    pub(super) exits: u64,
    pub(super) counts: u64,
    pub(super) dc: u64,
    pub(super) sums: u64,
    pub(super) samples: u64,
    pub(super) out: u64,
    pub(super) n_images: u32,
    pub(super) n_segments: u32,
    pub(super) n_codes: u32,
    pub(super) n_chunks: u32,
    pub(super) n_runs: u32,
    pub(super) n_blocks: u32,
    pub(super) n_pixels: u32,
    pub(super) chunk_bits: u32,
    pub(super) n_rounds: u32,
    pub(super) mcus_per_run: u32,
    pub(super) dtype: u32,
    pub(super) is_planar: u32,
    pub(super) factors: [f32; 3],
    pub(super) summands: [f32; 3],
}

/// A record without padding, which the device reads as bytes.
///
/// # Safety
/// The type has a defined layout without gaps.
pub(super) unsafe trait Record: Copy {}
// SAFETY: `repr(C)`, and every field a multiple of four bytes.
unsafe impl Record for Code {}
// SAFETY: as above.
unsafe impl Record for Image {}
// SAFETY: as above.
unsafe impl Record for Segment {}
// SAFETY: a number.
unsafe impl Record for i16 {}
// SAFETY: a number.
unsafe impl Record for u8 {}

/// The bytes of records.
pub(super) fn bytes_of<T: Record>(records: &[T]) -> &[u8] {
    // SAFETY: a record has no gaps, so all its bytes are initialised.
    unsafe { std::slice::from_raw_parts(records.as_ptr().cast(), size_of_val(records)) }
}
