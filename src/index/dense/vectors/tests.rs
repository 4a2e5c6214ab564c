#![expect(clippy::unwrap_used, reason = "tests")]

use proptest::prelude::*;

use super::super::writer::{VectorWriter, WriteError};
use super::*;
use crate::sidecar::{FileError, FileErrorKind, SectionWriter};

const PROFILE: ProfileId = ProfileId([7; 16]);

fn unit(seed: u32, dim: usize) -> Vec<f32> {
    let raw: Vec<f32> = (0..dim as u32)
        .map(|i| ((seed * 31 + i * 17 + seed * i) % 23) as f32 - 11.0)
        .collect();
    let norm = raw.iter().map(|x| x * x).sum::<f32>().sqrt();
    raw.iter().map(|x| x / norm).collect()
}

fn sample(quantisation: Quantisation, n: u32, dim: usize) -> Vec<u8> {
    let mut writer = VectorWriter::new(dim, quantisation, PROFILE).unwrap();
    for seed in 0..n {
        writer.push(&unit(seed, dim), seed as f32).unwrap();
    }
    writer.finish()
}

fn open(bytes: Vec<u8>) -> Result<VectorFile, FileError> {
    VectorFile::from_bytes(Path::new("sample"), bytes)
}

/// A file with valid checksums and one section changed.
fn patched(sound: &VectorFile, section: &str, patch: impl Fn(&mut Vec<u8>)) -> Result<VectorFile, FileError> {
    let mut writer = SectionWriter::new(FORMAT);
    for name in ["codes", "factors", "weights", "meta"] {
        let mut bytes = sound.file.section(name).unwrap().to_vec();
        if name == section {
            patch(&mut bytes);
        }
        writer.add(name, bytes);
    }
    open(writer.finish())
}

#[test]
fn a_written_file_is_read_back() {
    for (quantisation, row_bytes, worst) in [(Quantisation::Int4, 17, 0.98), (Quantisation::Int8, 33, 0.9999)] {
        let file = open(sample(quantisation, 10, 33)).unwrap();
        assert_eq!(file.codes().len(), 10 * row_bytes);
        file.verify().unwrap();
        assert_eq!(
            (file.len(), file.dim(), file.quantisation(), file.profile()),
            (10, 33, quantisation, PROFILE)
        );
        for row in 0..10 {
            let cosine: f32 = file
                .vector(row)
                .unwrap()
                .iter()
                .zip(unit(row, 33))
                .map(|(a, b)| a * b)
                .sum();
            assert!(cosine > worst, "{quantisation:?} {row}: {cosine}");
            assert_eq!(file.weight(row), row as f32);
        }
        assert_eq!((file.vector(10), file.weight(10)), (None, 0.0));
    }
}

#[test]
fn the_zero_vector_is_read_back_as_zero() {
    for quantisation in [Quantisation::Int4, Quantisation::Int8] {
        let mut writer = VectorWriter::new(6, quantisation, PROFILE).unwrap();
        writer.push(&[0.0; 6], 0.0).unwrap();
        assert_eq!(open(writer.finish()).unwrap().vector(0), Some(vec![0.0; 6]));
    }
}

#[test]
fn an_empty_file_is_fine() {
    let file = open(sample(Quantisation::Int4, 0, 8)).unwrap();
    file.verify().unwrap();
    assert!(file.is_empty());
}

#[test]
fn rows_are_copied_byte_for_byte() {
    let bytes = sample(Quantisation::Int4, 5, 8);
    let file = open(bytes.clone()).unwrap();
    let mut copy = VectorWriter::new(8, Quantisation::Int4, PROFILE).unwrap();
    (0..5).for_each(|row| copy.copy_row(&file, row).unwrap());
    assert!(matches!(copy.copy_row(&file, 5), Err(WriteError::OtherKind)));
    assert_eq!(copy.finish(), bytes);
    let mut other = VectorWriter::new(8, Quantisation::Int8, PROFILE).unwrap();
    assert!(matches!(other.copy_row(&file, 0), Err(WriteError::OtherKind)));
}

#[test]
fn rows_that_cannot_be_kept_are_refused() {
    assert!(matches!(
        VectorWriter::new(0, Quantisation::Int8, PROFILE),
        Err(WriteError::UnsupportedDimension { dim: 0 })
    ));
    let mut writer = VectorWriter::new(2, Quantisation::Int8, PROFILE).unwrap();
    assert!(matches!(
        writer.push(&[1.0], 1.0),
        Err(WriteError::Dimension { found: 1, expected: 2 })
    ));
    assert!(matches!(writer.push(&[1.0, f32::NAN], 1.0), Err(WriteError::NotFinite)));
    assert!(matches!(
        writer.push(&[1.0, 0.0], f32::INFINITY),
        Err(WriteError::NotFinite)
    ));
    assert!(writer.is_empty());
}

#[test]
fn every_truncation_and_extension_is_refused() {
    let file = sample(Quantisation::Int4, 3, 8);
    for len in 0..file.len() {
        assert!(open(file[..len].to_vec()).is_err(), "{len}");
    }
    assert!(open([file, vec![0]].concat()).unwrap().verify().is_err());
}

#[test]
fn every_single_bit_flip_is_noticed() {
    let sound = sample(Quantisation::Int4, 3, 8);
    for bit in 0..sound.len() * 8 {
        let mut file = sound.clone();
        file[bit / 8] ^= 1 << (bit % 8);
        assert!(open(file).and_then(|file| file.verify()).is_err(), "bit {bit}");
    }
}

#[test]
fn values_out_of_range_are_damage_whatever_the_checksum_says() {
    for quantisation in [Quantisation::Int4, Quantisation::Int8] {
        let sound = open(sample(quantisation, 3, 8)).unwrap();
        let verify = |section: &str, half: u16| {
            let patched = patched(&sound, section, |bytes| bytes[..2].copy_from_slice(&half.to_le_bytes()));
            patched.unwrap().verify()
        };
        let factor = sound.factors().get(0);
        verify("factors", factor).unwrap();
        let scaled = |by: f32| half::encode(half::decode(factor) * by);
        for half in [
            0x7c00,
            0x7e00,
            0xffff,
            factor | 0x8000,
            scaled(1000.0),
            scaled(2.0),
            scaled(0.5),
            1,
        ] {
            assert!(verify("factors", half).is_err(), "factor {half:#x}");
        }
        for half in [0x7c00, 0x7e00, 0x8001] {
            assert!(verify("weights", half).is_err(), "weight {half:#x}");
        }
    }
}

#[test]
fn a_row_is_compared_with_a_vector_bit_for_bit() {
    for quantisation in [Quantisation::Int4, Quantisation::Int8] {
        let file = open(sample(quantisation, 3, 8)).unwrap();
        assert!(file.has_row_of(1, &unit(1, 8), 1.0));
        assert!(!file.has_row_of(1, &unit(2, 8), 1.0));
        assert!(!file.has_row_of(1, &unit(1, 8), 2.0));
        assert!(!file.has_row_of(1, &unit(1, 7), 1.0));
        assert!(!file.has_row_of(3, &unit(3, 8), 3.0));
    }
}

#[test]
fn a_later_format_is_named_and_a_file_before_sections_is_not_read() {
    let mut file = sample(Quantisation::Int8, 1, 8);
    file[4] = 3;
    let format = FileErrorKind::Format { found: 3, supported: 2 };
    assert_eq!(format!("{:?}", open(file).unwrap_err().kind), format!("{format:?}"));
    let error = open([&b"CSVF\x01\0\0\0"[..], &[0; 200]].concat()).unwrap_err();
    assert!(error.is_invalid(), "{error}");
}

proptest! {
    #![proptest_config(crate::support::properties(256))]

    /// The values in `meta` may be forged together with its checksum; the sizes must still match.
    #[test]
    fn forged_sizes_never_panic(
        fields in prop::collection::vec((0usize..8, any::<u8>()), 0..4),
        bits in 0u32..9,
        section in prop::sample::select(vec!["codes", "factors", "weights", "meta"]),
        n_bytes in 0usize..40,
    ) {
        let sound = open(sample(Quantisation::Int4, 3, 8)).unwrap();
        let forged = patched(&sound, "meta", |meta| {
            fields.iter().for_each(|(at, byte)| meta[*at] = *byte);
            if bits > 0 {
                meta[4] = bits as u8;
            }
        });
        let cut = patched(&sound, section, |bytes| bytes.resize(n_bytes, 0));
        for file in [forged, cut].into_iter().flatten() {
            for row in 0..file.len() {
                prop_assert_eq!(file.vector(row).unwrap().len(), file.dim());
                prop_assert!(file.weight(row).is_finite());
            }
        }
    }
}
