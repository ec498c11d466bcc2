//! Reads TensorBoard's event files: records with checksums, each of them a protobuf message (TensorFlow's
//! `record_writer.h`, TensorBoard's `event.proto` and `summary.proto`).

use std::io::{self, BufRead, Seek, SeekFrom};

use crc::{CRC_32_ISCSI, Crc};
use prost::Message;
use spotsweep_protocol::metric::Source;

use crate::logged::Logged;
use crate::part::{PIECE_BYTES, Part};
use crate::step::is_name;

const CRC: Crc<u32> = Crc::<u32>::new(&CRC_32_ISCSI);
/// The constant that TensorFlow adds to a rotated checksum.
const MASK: u32 = 0xa282_ead8;
const HEADER_BYTES: usize = 12;
const CHECKSUM_BYTES: u64 = 4;
/// The most bytes of a record that is read. A record of scalars is short; longer ones are images, graphs and
/// histograms.
const MOST_BYTES: u64 = 64 * 1024;
/// The name of TensorBoard's plugin for scalars. `tf.summary.scalar` writes tensors with it.
const SCALARS: &str = "scalars";

#[derive(Clone, PartialEq, Message)]
struct Event {
    #[prost(double, tag = "1")]
    wall_time: f64,
    #[prost(int64, tag = "2")]
    step: i64,
    #[prost(message, optional, tag = "5")]
    summary: Option<Summary>,
}

#[derive(Clone, PartialEq, Message)]
struct Summary {
    #[prost(message, repeated, tag = "1")]
    value: Vec<SummaryValue>,
}

#[derive(Clone, PartialEq, Message)]
struct SummaryValue {
    #[prost(string, tag = "1")]
    tag: String,
    #[prost(float, optional, tag = "2")]
    simple_value: Option<f32>,
    #[prost(message, optional, tag = "8")]
    tensor: Option<Tensor>,
    #[prost(message, optional, tag = "9")]
    metadata: Option<Metadata>,
}

#[derive(Clone, PartialEq, Message)]
struct Metadata {
    #[prost(message, optional, tag = "1")]
    plugin_data: Option<PluginData>,
}

#[derive(Clone, PartialEq, Message)]
struct PluginData {
    #[prost(string, tag = "1")]
    plugin_name: String,
}

#[derive(Clone, PartialEq, Message)]
struct Tensor {
    #[prost(int32, tag = "1")]
    dtype: i32,
    #[prost(bytes = "vec", tag = "4")]
    tensor_content: Vec<u8>,
    #[prost(float, repeated, tag = "5")]
    float_val: Vec<f32>,
    #[prost(double, repeated, tag = "6")]
    double_val: Vec<f64>,
}

impl Tensor {
    /// Returns the value of a tensor with one element.
    fn scalar(&self) -> Option<f64> {
        // The numbers are `DataType` in TensorFlow's `types.proto`.
        match (self.dtype, &*self.float_val, &*self.double_val) {
            (1, [value], _) => Some(f64::from(*value)),
            (2, _, [value]) => Some(*value),
            (1, [], _) => Some(f32::from_le_bytes(self.tensor_content.as_slice().try_into().ok()?).into()),
            (2, _, []) => Some(f64::from_le_bytes(self.tensor_content.as_slice().try_into().ok()?)),
            _ => None,
        }
    }
}

/// Returns the scalars of the records from `offset` on whose time is after `since`, in seconds since 1970.
pub(crate) fn read(file: &mut (impl BufRead + Seek), mut offset: u64, since: f64) -> io::Result<Part> {
    let bytes = file.seek(SeekFrom::End(0))?;
    let (mut found, mut read) = (Vec::new(), 0);
    file.seek(SeekFrom::Start(offset))?;
    while bytes.saturating_sub(offset) >= HEADER_BYTES as u64 && read < PIECE_BYTES {
        let mut header = [0; HEADER_BYTES];
        file.read_exact(&mut header)?;
        let (length, checksum) = header.split_at(8);
        let (Ok(size), Ok(checksum)) = (length.try_into().map(u64::from_le_bytes), checksum.try_into()) else { break };
        if masked(length) != u32::from_le_bytes(checksum) {
            return Ok(broken(found, offset));
        }
        // A length beyond any file's counts as a wrong checksum.
        let Some(end) = size.checked_add(offset + HEADER_BYTES as u64 + CHECKSUM_BYTES) else {
            return Ok(broken(found, offset));
        };
        if end > bytes {
            break;
        }
        if size <= MOST_BYTES {
            let mut data = vec![0; usize::try_from(size + CHECKSUM_BYTES).unwrap_or_default()];
            file.read_exact(&mut data)?;
            let checksum = data.split_off(data.len() - CHECKSUM_BYTES as usize);
            if checksum != masked(&data).to_le_bytes() {
                return Ok(broken(found, offset));
            }
            read += HEADER_BYTES as u64 + size;
            found.extend(Event::decode(&*data).ok().and_then(|event| scalars(event, since)));
        } else {
            file.seek(SeekFrom::Start(end))?;
        }
        offset = end;
    }
    Ok(Part { found, offset, is_broken: false, has_more: read >= PIECE_BYTES })
}

fn broken(found: Vec<Logged>, offset: u64) -> Part {
    Part { found, offset, is_broken: true, has_more: false }
}

fn masked(data: &[u8]) -> u32 {
    CRC.checksum(data).rotate_right(15).wrapping_add(MASK)
}

fn scalars(event: Event, since: f64) -> Option<Logged> {
    let summary = event.summary.filter(|_| event.wall_time > since)?;
    let mut found =
        Logged { step: Some(event.step as f64), values: Vec::new(), time: Some(event.wall_time), origin: 0 };
    for value in summary.value {
        let plugin = value.metadata.and_then(|metadata| metadata.plugin_data).map(|data| data.plugin_name);
        let is_scalar = plugin.is_none_or(|plugin| plugin.is_empty() || plugin == SCALARS);
        let number = value.simple_value.map(f64::from).or_else(|| value.tensor.and_then(|tensor| tensor.scalar()));
        // Lightning logs its epochs as a scalar.
        if let Some(number) = number.filter(|_| is_scalar && !value.tag.is_empty() && !is_name(&value.tag)) {
            found.add(&value.tag, number, Source::Recorded);
        }
    }
    (!found.values.is_empty()).then_some(found)
}
