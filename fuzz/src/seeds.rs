//! Small valid inputs to start from.

use forebay_checkpoint::format::{Bundle, Safetensors};
use forebay_checkpoint::{Dtype, Header};
use forebay_format::example::{ExampleWriter, ImageExample};
use forebay_format::image::ImageKind;
use forebay_format::parquet::{Codec, Column, Writer};
use forebay_format::tensor::{Shape, ShardWriter};
use forebay_format::{Element, tar, tfrecord};
use image::codecs::{bmp::BmpEncoder, gif::GifEncoder, tiff::TiffEncoder, webp::WebPEncoder};
use image::{ExtendedColorType as Colour, ImageEncoder};
use jpeg_encoder::{ColorType as JpegColor, Encoder as JpegEncoder, SamplingFactor};
use png::{BitDepth, ColorType};

use crate::checkpoint::{self, State};

pub fn jpeg() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for sampling in [SamplingFactor::R_4_4_4, SamplingFactor::R_4_2_0, SamplingFactor::R_4_2_2, SamplingFactor::R_4_4_0]
    {
        for progressive in [false, true] {
            for restart in [0, 3] {
                seeds.push(one_jpeg(JpegColor::Rgb, 3, sampling, progressive, restart));
            }
        }
    }
    seeds.push(one_jpeg(JpegColor::Luma, 1, SamplingFactor::R_4_4_4, false, 0));
    seeds.push(one_jpeg(JpegColor::Luma, 1, SamplingFactor::R_4_4_4, true, 0));
    seeds.push(one_jpeg(JpegColor::Cmyk, 4, SamplingFactor::R_4_2_0, false, 0));
    seeds.push(one_jpeg(JpegColor::CmykAsYcck, 4, SamplingFactor::R_4_4_4, true, 2));
    seeds
}

fn one_jpeg(color: JpegColor, channels: usize, sampling: SamplingFactor, progressive: bool, restart: u16) -> Vec<u8> {
    let (width, height) = (41, 35);
    let mut out = Vec::new();
    let mut encoder = JpegEncoder::new(&mut out, 80);
    encoder.set_sampling_factor(sampling);
    encoder.set_progressive(progressive);
    encoder.set_restart_interval(restart);
    encoder.encode(&texture(width * height * channels), width as u16, height as u16, color).expect("encodes to memory");
    out
}

pub fn png() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for (color, channels) in [
        (ColorType::Grayscale, 1_usize),
        (ColorType::GrayscaleAlpha, 2),
        (ColorType::Rgb, 3),
        (ColorType::Rgba, 4),
        (ColorType::Indexed, 1),
    ] {
        for (depth, bits) in [(BitDepth::One, 1), (BitDepth::Four, 4), (BitDepth::Eight, 8), (BitDepth::Sixteen, 16)] {
            let small_only = matches!(color, ColorType::Grayscale | ColorType::Indexed);
            if (bits < 8 && !small_only) || (bits == 16 && color == ColorType::Indexed) {
                continue;
            }
            seeds.push(one_png(color, depth, (13 * channels * bits).div_ceil(8)));
        }
    }
    seeds
}

fn one_png(color: ColorType, depth: BitDepth, row_bytes: usize) -> Vec<u8> {
    let mut out = Vec::new();
    let mut encoder = png::Encoder::new(&mut out, 13, 9);
    encoder.set_color(color);
    encoder.set_depth(depth);
    if color == ColorType::Indexed {
        encoder.set_palette(texture(768));
        encoder.set_trns(vec![0, 128]);
    }
    let mut writer = encoder.write_header().expect("writes to memory");
    writer.write_image_data(&texture(row_bytes * 9)).expect("writes to memory");
    drop(writer);
    out
}

/// Five by six pixels, lossy, as libwebp writes them: there is no such encoder in Rust.
const LOSSY_WEBP: &[u8] = b"RIFFH\0\0\0WEBPVP8 \x3c\0\0\0\xb0\x01\0\x9d\x01\x2a\x05\0\x06\0\x01\x40\x26\x25\xa8\x02\x74\x01\
    \x0e\xbb\x04\x80\0\xfe\xfb\x27\x30\x63\x0e\x98\x11\x91\x84\x3d\x46\x40\xcb\x6a\xc2\x0e\x75\xdf\xf7\xe0\x85\x77\x4f\x1d\
    \x5f\xa8\x5c\x3f\xf6\x2f\xe5\x96\xef\x80\0\0";

pub fn webp() -> Vec<Vec<u8>> {
    let mut seeds = vec![LOSSY_WEBP.to_vec()];
    for (colour, channels) in [(Colour::Rgb8, 3), (Colour::Rgba8, 4), (Colour::L8, 1)] {
        let mut out = Vec::new();
        let written = WebPEncoder::new_lossless(&mut out).write_image(&texture(13 * 9 * channels), 13, 9, colour);
        written.expect("encodes to memory");
        seeds.push(out);
    }
    seeds
}

pub fn gif() -> Vec<Vec<u8>> {
    let one = |n_frames: usize| {
        let mut out = Vec::new();
        let mut encoder = GifEncoder::new(&mut out);
        (0..n_frames).for_each(|_| {
            encoder.encode(&texture(13 * 9 * 4), 13, 9, Colour::Rgba8).expect("encodes to memory");
        });
        drop(encoder);
        out
    };
    vec![one(1), one(3)]
}

pub fn bmp() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for (colour, channels) in [(Colour::Rgb8, 3), (Colour::Rgba8, 4), (Colour::L8, 1)] {
        let mut out = Vec::new();
        let written = BmpEncoder::new(&mut out).write_image(&texture(13 * 9 * channels), 13, 9, colour);
        written.expect("encodes to memory");
        seeds.push(out);
    }
    // The same pixels, said to be run-length encoded.
    let mut packed = seeds[2].clone();
    packed[30] = 1;
    seeds.push(packed);
    seeds
}

pub fn tiff() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for (colour, bytes) in [(Colour::Rgb8, 3), (Colour::Rgba8, 4), (Colour::L8, 1), (Colour::Rgb16, 6)] {
        let mut out = std::io::Cursor::new(Vec::new());
        let written = TiffEncoder::new(&mut out).write_image(&texture(13 * 9 * bytes), 13, 9, colour);
        written.expect("encodes to memory");
        seeds.push(out.into_inner());
    }
    seeds
}

pub fn example() -> Vec<Vec<u8>> {
    let image = ImageExample {
        encoded: b"encoded",
        format: Some(ImageKind::Jpeg),
        label: Some(-7),
        filename: Some(b"a/b.jpg"),
        height: Some(4),
        width: Some(5),
    };
    let mixed = ExampleWriter::new().bytes("b", &[b"x", b""]).floats("f", &[1.5, -2.0]).ints("i", &[i64::MIN, 300, 0]);
    // The same with unpacked numbers.
    let unpacked =
        b"\x0a\x18\x0a\x09\x0a\x01i\x12\x04\x1a\x02\x08\x07\x0a\x0b\x0a\x01f\x12\x06\x12\x05\x0d\0\0\x80\x3f";
    vec![image.to_bytes(), mixed.finish(), unpacked.to_vec(), Vec::new()]
}

pub fn tfrecord() -> Vec<Vec<u8>> {
    let mut plain = Vec::new();
    example().iter().for_each(|payload| tfrecord::append(&mut plain, payload));
    [tfrecord::Compression::None, tfrecord::Compression::Gzip, tfrecord::Compression::Zlib]
        .map(|kind| tfrecord::compress(&plain, kind).expect("compresses to memory"))
        .to_vec()
}

pub fn tar() -> Vec<Vec<u8>> {
    let mut plain = Vec::new();
    for path in ["a.jpg", "a.cls", "b.cls", "__meta__"] {
        tar::append_file(&mut plain, path, b"12").expect("a good path");
    }
    let mut long = Vec::new();
    for path in [format!("{}/n.jpg", "d".repeat(120)), format!("{}.cls", "é".repeat(150))] {
        tar::append_file(&mut long, &path, &[7; 600]).expect("a good path");
    }
    let mut gnu = Vec::new();
    tar::append_file(&mut gnu, "././@LongLink", b"long.jpg\0").expect("a good path");
    gnu[156] = b'L';
    tar::append_file(&mut gnu, "short", b"data").expect("a good path");
    let mut archives = vec![plain, long, gnu];
    archives.iter_mut().for_each(tar::finish);
    archives.iter_mut().for_each(|archive| crate::repair::tar(archive));
    archives
}

pub fn tensor() -> Vec<Vec<u8>> {
    let shard = |n_samples: u64| {
        let mut writer = ShardWriter::new(Shape { height: 3, width: 4, channels: 3 }).expect("a good shape");
        (0..n_samples).for_each(|n| writer.append(&texture(36), 5, n).expect("a whole sample"));
        writer.finish().expect("a small shard")
    };
    vec![shard(0), shard(1), shard(3)]
}

pub fn parquet() -> Vec<Vec<u8>> {
    let file = |codec: Codec, element: Element, width: u32| {
        let column = |name: &str, element, width| Column { name: name.to_owned(), element, width };
        let columns = vec![column("a", element, width), column("b", Element::U16, 1)];
        let mut out = Vec::new();
        let mut put = |bytes: &[u8]| -> Result<(), forebay_format::Error> {
            out.extend_from_slice(bytes);
            Ok(())
        };
        let mut writer = Writer::new(columns, codec).expect("good columns");
        let mut fill = |_: usize, _: u64, values: &mut [u8]| values.copy_from_slice(&texture(values.len()));
        writer.write_group(7, &mut fill, &mut put).expect("memory takes it");
        writer.write_group(2, &mut fill, &mut put).expect("memory takes it");
        writer.finish(&mut put).expect("memory takes it");
        out
    };
    vec![
        file(Codec::None, Element::F32, 1),
        file(Codec::None, Element::F64, 5),
        file(Codec::Snappy, Element::F16, 20),
        file(Codec::Gzip(1), Element::U8, 30),
    ]
}

pub fn safetensors() -> Vec<Vec<u8>> {
    states()
        .iter()
        .map(|state| checkpoint::write(&Safetensors, state).remove("m.safetensors").expect("was written"))
        .collect()
}

pub fn bundle() -> Vec<Vec<u8>> {
    let joined = |state: &State| {
        let files = checkpoint::write(&Bundle, state);
        [&files["m.index"][..], &files["m.data-00000-of-00001"]].concat()
    };
    states().iter().map(joined).collect()
}

fn states() -> Vec<State> {
    let tensor = |name: String, dtype, shape: &[u64]| {
        let header = Header { name, dtype, shape: shape.to_vec() };
        let bytes = texture(header.n_bytes().expect("is small") as usize);
        (header, bytes)
    };
    let note = |key: &str| (key.to_owned(), "{\"at\": 7}".to_owned());
    let few = vec![
        tensor("w".to_owned(), Dtype::F32, &[2, 3]),
        tensor("größe".to_owned(), Dtype::I64, &[]),
        tensor("none".to_owned(), Dtype::U8, &[4, 0]),
    ];
    let many = (0..40).map(|n| tensor(format!("layer_{n}/w"), Dtype::Bf16, &[n % 3, 2])).collect();
    let state = |tensors, notes: &[&str]| State { tensors, notes: notes.iter().map(|key| note(key)).collect() };
    vec![state(Vec::new(), &[]), state(few, &["step", "pipeline"]), state(many, &["step"])]
}

/// Bytes that vary slowly here and fast there.
fn texture(len: usize) -> Vec<u8> {
    (0..len).map(|n| (n / 5 + n * n / 97 * (n % 3)) as u8).collect()
}
