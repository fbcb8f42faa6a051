//! What is fuzzed: one line per decoder.

use forebay_checkpoint::format::{Bundle, Safetensors};
use forebay_format::example::{Example, ImageExample, KeyNames, Keys, find};
use forebay_format::image::{self, Dtype, ImageDecoder, ImageSpec, Layout};
use forebay_format::parquet::{self, Footer, GroupReader};
use forebay_format::tar::{Entries, SampleScanner, Samples, parse_sample};
use forebay_format::tensor::Shard;
use forebay_format::tfrecord::{Compression, FrameScanner, RecordStream, Records, decompress, parse_frame};
use forebay_format::{Error, Scanner, Span};
use forebay_jpeg::{Decoder, Limits, Scale};

use crate::{arrays, checkpoint, repair, seeds, workload};

/// A decoder, inputs to start from, and how to make their checksums fit again.
pub struct Target {
    pub name: &'static str,
    pub seeds: fn() -> Vec<Vec<u8>>,
    pub repair: fn(&mut [u8]),
    /// Decodes and says how it went. May panic only if there is a bug.
    pub run: fn(&[u8]) -> String,
}

pub const TARGETS: &[Target] = &[
    Target { name: "jpeg", seeds: seeds::jpeg, repair: repair::nothing, run: jpeg },
    Target { name: "png", seeds: seeds::png, repair: repair::png, run: picture },
    Target { name: "webp", seeds: seeds::webp, repair: repair::nothing, run: picture },
    Target { name: "gif", seeds: seeds::gif, repair: repair::nothing, run: picture },
    Target { name: "bmp", seeds: seeds::bmp, repair: repair::nothing, run: picture },
    Target { name: "tiff", seeds: seeds::tiff, repair: repair::nothing, run: picture },
    Target { name: "tfrecord", seeds: seeds::tfrecord, repair: repair::tfrecord, run: tfrecord },
    Target { name: "example", seeds: seeds::example, repair: repair::nothing, run: example },
    Target { name: "tar", seeds: seeds::tar, repair: repair::tar, run: tar },
    Target { name: "tensor", seeds: seeds::tensor, repair: repair::tensor, run: tensor },
    Target { name: "safetensors", seeds: seeds::safetensors, repair: repair::nothing, run: safetensors },
    Target { name: "parquet", seeds: seeds::parquet, repair: repair::nothing, run: parquet },
    Target {
        name: "npy",
        seeds: arrays::npy_seeds,
        repair: repair::nothing,
        run: |input| outcome(&arrays::npy(input)),
    },
    Target {
        name: "npz",
        seeds: arrays::npz_seeds,
        repair: repair::nothing,
        run: |input| outcome(&arrays::npz(input)),
    },
    Target {
        name: "csv",
        seeds: arrays::csv_seeds,
        repair: repair::nothing,
        run: |input| outcome(&arrays::csv(input)),
    },
    Target {
        name: "gzip",
        seeds: arrays::gzip_seeds,
        repair: repair::nothing,
        run: |input| outcome(&arrays::gzip(input)),
    },
    Target {
        name: "indexed",
        seeds: arrays::index_seeds,
        repair: repair::nothing,
        run: |input| outcome(&arrays::index(input)),
    },
    Target { name: "bundle", seeds: seeds::bundle, repair: repair::bundle, run: bundle },
    Target { name: "workload", seeds: workload::seeds, repair: repair::nothing, run: workload::read_text },
    Target { name: "dlio", seeds: workload::dlio_seeds, repair: repair::nothing, run: workload::dlio_text },
];

/// Images beyond this are valid but only cost time.
const PIXELS_MAX: u64 = 1 << 20;

fn jpeg(input: &[u8]) -> String {
    let info = outcome(&Decoder::info(input));
    let limits = Limits { max_pixels: PIXELS_MAX, ..Limits::default() };
    let mut decoder = Decoder::with_limits(limits);
    let mut rgb = Vec::new();
    let scaled = [Scale::Full, Scale::Half, Scale::Quarter, Scale::Eighth].map(|scale| {
        let result = decoder.decode_rgb(input, scale, &mut rgb);
        if let Ok(info) = result {
            assert_eq!(rgb.len(), info.output_width as usize * info.output_height as usize * 3);
        }
        outcome(&result)
    });
    format!("{info}, {}", scaled.join(", "))
}

fn picture(input: &[u8]) -> String {
    match image::info(input) {
        Ok(info) if u64::from(info.width) * u64::from(info.height) > PIXELS_MAX => "large".to_owned(),
        Ok(_) => outcome(&decode_into(input)),
        // A header that cannot be read must not decode either.
        Err(error) => {
            assert!(decode_into(input).is_err(), "decoded in spite of: {error}");
            outcome::<(), _>(&Err(error))
        }
    }
}

fn decode_into(input: &[u8]) -> Result<(), Error> {
    let spec = ImageSpec { width: 10, height: 7, dtype: Dtype::U8, layout: Layout::Nchw, scaled_dct: false };
    let mut slot = vec![0; spec.sample_bytes()];
    ImageDecoder::new(spec).decode_into(input, &mut slot)
}

fn tfrecord(input: &[u8]) -> String {
    let kind = Compression::sniff(input);
    let (streamed, is_whole) = stream(input, kind);
    let plain = match decompress(input, kind, 1 << 22) {
        Ok(plain) => plain,
        Err(error) => {
            assert!(!is_whole, "streamed to the end in spite of: {error}");
            return outcome::<(), _>(&Err(error));
        }
    };
    let records: Vec<_> = Records::new(&plain).collect();
    let (spans, scanned) = scan(FrameScanner::new(plain.len() as u64), &plain);
    assert_eq!(streamed, spans, "a stream has the records that its expanded bytes have");
    // The scanner does not see payloads, so it may find more, never fewer.
    let n_good = records.iter().filter(|record| record.is_ok()).count();
    assert!(spans.len() >= n_good);
    for (record, span) in records.iter().flatten().zip(&spans) {
        assert_eq!(&parse_frame(slice(&plain, *span), span.offset).expect("was read before"), record);
    }
    let last = records.into_iter().last().transpose().map(|_| ());
    format!("{kind:?} {} {}", outcome(&last), outcome(&scanned))
}

/// The places of the records of a stream, every second one read, and whether it came to its end.
fn stream(input: &[u8], kind: Compression) -> (Vec<Span>, bool) {
    let mut stream = RecordStream::new(input, kind, 1 << 22);
    let (mut spans, mut frame) = (Vec::new(), Vec::new());
    loop {
        let Ok(next) = stream.next_span() else { return (spans, false) };
        let Some(span) = next else { return (spans, true) };
        let passed = if spans.len() % 2 == 0 { stream.read_frame(&mut frame) } else { stream.pass_over() };
        if passed.is_err() {
            return (spans, false);
        }
        spans.push(span);
    }
}

fn example(input: &[u8]) -> String {
    let parsed = Example::parse(input);
    if let Ok(example) = &parsed {
        for (name, feature) in example.features() {
            let view = find(input, name).expect("was read before").expect("is there");
            assert_eq!(format!("{:?}", view.to_feature().expect("was read before")), format!("{feature:?}"));
        }
    }
    let keys = Keys::decide(input, &KeyNames::default());
    if let Ok(keys) = &keys {
        keys.read(input).expect("a record that shows the features has them");
    }
    format!("{} {} {}", outcome(&parsed), outcome(&ImageExample::parse(input)), outcome(&keys))
}

fn tar(input: &[u8]) -> String {
    let entries = Entries::new(input).try_for_each(|entry| entry.map(|_| ()));
    let samples: Result<Vec<_>, _> = Samples::new(input).collect();
    let (spans, scanned) = scan(SampleScanner::new(input.len() as u64), input);
    assert_eq!(entries.is_ok(), scanned.is_ok());
    if let Ok(samples) = &samples {
        assert_eq!(samples.len(), spans.len());
        for (sample, span) in samples.iter().zip(spans) {
            let _ = (sample.label(), sample.image());
            assert_eq!(&parse_sample(slice(input, span), span.offset).expect("was read before"), sample);
        }
    }
    format!("{} {} {}", outcome(&entries), outcome(&samples), outcome(&scanned))
}

fn tensor(input: &[u8]) -> String {
    let shard = Shard::parse(input);
    let verified = shard.as_ref().ok().map(|shard| {
        let verified = (0..shard.header().n_samples()).try_for_each(|n| shard.verify(n));
        outcome(&verified)
    });
    format!("{} {verified:?}", outcome(&shard))
}

/// Pages' checksums are left out, so that damage reaches the code behind them.
fn parquet(input: &[u8]) -> String {
    let read = || {
        let tail = &input[input.len().saturating_sub(parquet::TAIL_BYTES)..];
        let range = parquet::footer_range(tail, input.len() as u64)?;
        let footer = Footer::parse(&input[range.start as usize..range.end as usize], range.start, None)?;
        let mut fetch = |offset: u64, len: usize, into: &mut Vec<u8>| -> Result<(), Error> {
            into.extend_from_slice(&input[offset as usize..offset as usize + len]);
            Ok(())
        };
        for group in 0..footer.groups.len() {
            let mut reader = GroupReader::new(&footer, group, 100, false);
            reader.skip(reader.rows_left().min(1), &mut fetch)?;
            let mut rows = vec![0; reader.row_bytes().min(1 << 16) * 3];
            // A run of a few bytes may stand for as many rows as it likes.
            for _ in 0..1000 {
                if reader.read(&mut rows, &mut fetch)? == 0 {
                    break;
                }
            }
        }
        Ok(())
    };
    outcome::<(), Error>(&read())
}

fn safetensors(input: &[u8]) -> String {
    let read = checkpoint::read(&Safetensors, &checkpoint::one_file(input));
    // Of a header that is no JSON, what the parser says is what was found.
    let found = match &read {
        Err(forebay_checkpoint::format::Error::Invalid { what, found, .. }) if what == "header" => found.as_str(),
        _ => "",
    };
    let words = found
        .split(['"', '`'])
        .step_by(2)
        .flat_map(|said| said.split(' '))
        .filter(|word| word.chars().all(char::is_alphabetic))
        .take(4);
    format!("{} {}", outcome(&read), words.collect::<Vec<_>>().join(" "))
}

fn bundle(input: &[u8]) -> String {
    outcome(&checkpoint::read(&Bundle, &checkpoint::index_and_values(input)))
}

/// Drives a scanner over bytes in memory and checks the laws of its trait.
fn scan(mut scanner: impl Scanner, bytes: &[u8]) -> (Vec<Span>, Result<(), Error>) {
    let mut spans: Vec<Span> = Vec::new();
    while let Some(want) = scanner.want() {
        assert!(want.len <= 1 << 20);
        let piece = slice(bytes, Span { offset: want.offset, len: want.len as u64 });
        match scanner.feed(piece) {
            Ok(span) => spans.extend(span),
            Err(error) => {
                assert_eq!(scanner.want(), None);
                return (spans, Err(error));
            }
        }
    }
    assert!(spans.windows(2).all(|pair| pair[0].offset + pair[0].len <= pair[1].offset), "spans overlap");
    (spans, Ok(()))
}

fn slice(bytes: &[u8], span: Span) -> &[u8] {
    &bytes[span.offset as usize..][..span.len as usize]
}

/// "ok", or the first words of the error's message and of its causes, without numbers and without what was found: these
/// differ from input to input and make no outcome new.
fn outcome<T, E: std::error::Error + 'static>(result: &Result<T, E>) -> String {
    let Err(error) = result else { return "ok".to_owned() };
    let messages: Vec<String> = forebay_units::causes(error).map(ToString::to_string).collect();
    let words = messages.iter().flat_map(|message| {
        // Names are quoted.
        let message = &message.replace("\\\"", "").split('"').step_by(2).collect::<String>();
        // The png crate prints the type of a damaged chunk in full.
        let stable = message.split(", found").next().unwrap_or(message).split("ChunkType").next().unwrap_or(message);
        let words = stable.split(|c: char| !c.is_alphanumeric());
        let words = words.filter(|word| !word.is_empty() && word.chars().all(char::is_alphabetic)).take(6);
        words.map(str::to_owned).collect::<Vec<_>>()
    });
    words.collect::<Vec<_>>().join(" ")
}
