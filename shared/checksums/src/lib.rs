//! The part of the crate `crc-fast` that the S3 client uses, in its place (`[patch.crates-io]` in Cargo.toml).
//!
//! The original has tables for every CRC there is, 660 KB that do not compress, and no linker can tell that three of
//! them are wanted: they were a seventh of the zip of each function that reaches S3. It does 10 GB a second and more;
//! slices of 16 do 3 (crc's README), which is above what one connection to S3 takes.

use std::fmt;

use crc::{CRC_32_ISCSI, CRC_32_ISO_HDLC, CRC_64_NVME, Crc, Table};

static ISO_HDLC: Crc<u32, Table<16>> = Crc::<u32, Table<16>>::new(&CRC_32_ISO_HDLC);
static ISCSI: Crc<u32> = Crc::<u32>::new(&CRC_32_ISCSI);
static NVME: Crc<u64> = Crc::<u64>::new(&CRC_64_NVME);

/// Those that S3 knows
/// (<https://docs.aws.amazon.com/AmazonS3/latest/userguide/checking-object-integrity-upload.html>).
#[derive(Debug, Clone, Copy)]
pub enum CrcAlgorithm {
    /// CRC-32, which the SDK takes where nothing else is asked for.
    Crc32IsoHdlc,
    /// CRC-32C.
    Crc32Iscsi,
    /// CRC-64/NVME.
    Crc64Nvme,
}

/// A checksum of bytes that come one after another.
pub enum Digest {
    #[doc(hidden)]
    IsoHdlc(crc::Digest<'static, u32, Table<16>>),
    #[doc(hidden)]
    Iscsi(crc::Digest<'static, u32>),
    #[doc(hidden)]
    Nvme(crc::Digest<'static, u64>),
}

impl Digest {
    /// Of nothing yet.
    pub fn new(algorithm: CrcAlgorithm) -> Self {
        match algorithm {
            CrcAlgorithm::Crc32IsoHdlc => Self::IsoHdlc(ISO_HDLC.digest()),
            CrcAlgorithm::Crc32Iscsi => Self::Iscsi(ISCSI.digest()),
            CrcAlgorithm::Crc64Nvme => Self::Nvme(NVME.digest()),
        }
    }

    /// Of these bytes, too.
    pub fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::IsoHdlc(digest) => digest.update(bytes),
            Self::Iscsi(digest) => digest.update(bytes),
            Self::Nvme(digest) => digest.update(bytes),
        }
    }

    /// The checksum, in the lower bits where it is shorter.
    pub fn finalize(self) -> u64 {
        match self {
            Self::IsoHdlc(digest) => digest.finalize().into(),
            Self::Iscsi(digest) => digest.finalize().into(),
            Self::Nvme(digest) => digest.finalize(),
        }
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Digest")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The check values of the catalogue of parametrised CRC algorithms, of the digits 1 to 9 in two parts.
    #[test]
    fn the_three_are_what_s3_reckons() {
        for (algorithm, expected) in [
            (CrcAlgorithm::Crc32IsoHdlc, 0xcbf4_3926),
            (CrcAlgorithm::Crc32Iscsi, 0xe306_9283),
            (CrcAlgorithm::Crc64Nvme, 0xae8b_1486_0a79_9888),
        ] {
            let mut digest = Digest::new(algorithm);
            digest.update(b"1234");
            digest.update(b"56789");
            assert_eq!(digest.finalize(), expected, "{algorithm:?}");
        }
    }
}
