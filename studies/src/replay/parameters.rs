//! The model's parameters, each with its source. A parameter without a source is called an assumption.

use clap::Args;
use serde_json::{Value, json};

/// Sizes, times, throughputs and prices (us-east-1, 2026-11).
#[derive(Debug, Clone, PartialEq, Args)]
#[command(next_help_heading = "Model")]
pub struct Parameters {
    /// GiB of one checkpoint. A model on one V100 has up to about 10: GPT-2 large with Adam, 774 million parameters of 12
    /// bytes
    #[arg(long, value_name = "GIB", default_value_t = 10.0, value_parser = positive)]
    pub checkpoint_gib: f64,
    /// Minutes of training between two checkpoints: between Young's optimum for S3 (13) and for EBS (20) with ten GiB and
    /// an interruption every two and a half hours, as in us-east-1's record
    #[arg(long, value_name = "MINUTES", default_value_t = 15.0, value_parser = positive)]
    pub checkpoint_minutes: f64,
    /// GiB of the dataset. Assumption
    #[arg(long, value_name = "GIB", default_value_t = 10.0, value_parser = not_negative)]
    pub dataset_gib: f64,
    /// From the request for an instance until its ECS agent takes jobs. Assumption: no service level is published
    #[arg(long, value_name = "SECONDS", default_value_t = 90.0, value_parser = not_negative)]
    pub boot_seconds: f64,
    /// GiB of the container image: pytorch/pytorch's CUDA runtime images have 3 to 4 compressed, its development images 8
    #[arg(long, value_name = "GIB", default_value_t = 5.0, value_parser = not_negative)]
    pub image_gib: f64,
    /// Pulling and unpacking an image. Assumption: unpacking is single-threaded per layer
    #[arg(long, value_name = "MIB/S", default_value_t = 64.0, value_parser = positive)]
    pub image_mib: f64,
    /// Between the interruption notice and the end of the instance (EC2 user guide, "Spot Instance interruption notices")
    #[arg(long, value_name = "SECONDS", default_value_t = 120.0, value_parser = positive)]
    pub notice_seconds: f64,
    /// How long training may take to save when spotsweep's runner stops it: SPOTSWEEP_GRACE_SECONDS. The runner sets aside
    /// 12 seconds of what is left of the notice, or a quarter where that is less
    #[arg(long, value_name = "SECONDS", default_value_t = 108.0, value_parser = not_negative)]
    pub grace_seconds: f64,
    /// The training does not handle the stop signal: spotsweep's runner waits for its next checkpoint, as long as the grace
    /// is. Without this, all trainings save at the signal
    #[arg(long)]
    pub no_handler: bool,
    /// SHA-256 with which the runner seals and verifies checkpoints. Assumption: one core without SHA instructions
    #[arg(long, value_name = "MIB/S", default_value_t = 400.0, value_parser = positive)]
    pub hash_mib: f64,
    /// GiB of host memory that still hold what was just read: a p3.2xlarge has 61
    #[arg(long, value_name = "GIB", default_value_t = 50.0, value_parser = not_negative)]
    pub memory_gib: f64,
    /// How often the runner reports: four times SPOTSWEEP_REPORT_SECONDS, as it does in a training of over 20 minutes
    #[arg(long, value_name = "SECONDS", default_value_t = 60.0, value_parser = positive)]
    pub report_seconds: f64,
    /// Reading and writing a gp3 volume: its baseline (EBS user guide, "General Purpose SSD volumes")
    #[arg(long, value_name = "MIB/S", default_value_t = 125.0, value_parser = positive)]
    pub volume_mib: f64,
    /// A snapshot without changes, from request to completed. Assumption: none is published
    #[arg(long, value_name = "SECONDS", default_value_t = 45.0, value_parser = not_negative)]
    pub snapshot_seconds: f64,
    /// How fast changed bytes get into a snapshot. Assumption, half of gp3's baseline: none is published
    #[arg(long, value_name = "MIB/S", default_value_t = 60.0, value_parser = positive)]
    pub snapshot_mib: f64,
    /// How fast a volume from a snapshot loads where no rate is asked for (seed-script). Assumption: the EBS user guide
    /// calls it fluctuating; single readers report 5 to 10, training has several
    #[arg(long, value_name = "MIB/S", default_value_t = 20.0, value_parser = positive)]
    pub lazy_mib: f64,
    /// VolumeInitializationRate that spotsweep asks for: 100 to 300 (EBS user guide, "Initialize Amazon EBS volumes")
    #[arg(long, value_name = "MIB/S", default_value_t = 300.0, value_parser = positive)]
    pub initialization_mib: f64,
    /// S3 from one instance: 2.5 Gbit/s, the baseline of a p3.2xlarge (EC2 instance types, network specifications)
    #[arg(long, value_name = "MIB/S", default_value_t = 298.0, value_parser = positive)]
    pub s3_mib: f64,
    /// An on-demand p3.2xlarge in us-east-1 (EC2 on-demand pricing)
    #[arg(long, value_name = "USD/H", default_value_t = 3.06, value_parser = not_negative)]
    pub on_demand_usd: f64,
    /// gp3 (EBS pricing)
    #[arg(long, value_name = "USD/GIB-MONTH", default_value_t = 0.08, value_parser = not_negative)]
    pub volume_usd: f64,
    /// Snapshots, standard tier (EBS pricing)
    #[arg(long, value_name = "USD/GIB-MONTH", default_value_t = 0.05, value_parser = not_negative)]
    pub snapshot_usd: f64,
    /// A provisioned rate for volume initialization, of the snapshot's size (EBS pricing; to be checked before relying on it)
    #[arg(long, value_name = "USD/GIB", default_value_t = 0.0036, value_parser = not_negative)]
    pub initialization_usd: f64,
    /// S3 standard (S3 pricing)
    #[arg(long, value_name = "USD/GIB-MONTH", default_value_t = 0.023, value_parser = not_negative)]
    pub s3_usd: f64,
    /// S3 PUT, of parts of 8 MiB as the AWS CLI makes them (S3 pricing)
    #[arg(long, value_name = "USD/1000", default_value_t = 0.005, value_parser = not_negative)]
    pub s3_put_usd: f64,
    /// S3 GET, of ranges of 8 MiB (S3 pricing)
    #[arg(long, value_name = "USD/1000", default_value_t = 0.0004, value_parser = not_negative)]
    pub s3_get_usd: f64,
    /// Lambda on arm64 (Lambda pricing): 256 MB, as infra/control-plane.yaml has it
    #[arg(long, value_name = "USD/GB-S", default_value_t = 0.000_013_333_4, value_parser = not_negative)]
    pub lambda_usd: f64,
    /// Lambda requests (Lambda pricing)
    #[arg(long, value_name = "USD/MILLION", default_value_t = 0.20, value_parser = not_negative)]
    pub invocation_usd: f64,
    /// What a function waits for one AWS call. Assumption, on the slow side
    #[arg(long, value_name = "MS", default_value_t = 25.0, value_parser = not_negative)]
    pub call_ms: f64,
    /// DynamoDB on demand, write request units (DynamoDB pricing)
    #[arg(long, value_name = "USD/MILLION", default_value_t = 0.625, value_parser = not_negative)]
    pub write_usd: f64,
    /// DynamoDB on demand, read request units (DynamoDB pricing)
    #[arg(long, value_name = "USD/MILLION", default_value_t = 0.125, value_parser = not_negative)]
    pub read_usd: f64,
}

impl Parameters {
    /// Returns all parameters by name.
    pub fn json(&self) -> Value {
        json!({
            "checkpoint_gib": self.checkpoint_gib,
            "checkpoint_minutes": self.checkpoint_minutes,
            "dataset_gib": self.dataset_gib,
            "boot_seconds": self.boot_seconds,
            "image_gib": self.image_gib,
            "image_mib": self.image_mib,
            "notice_seconds": self.notice_seconds,
            "grace_seconds": self.grace_seconds,
            "no_handler": self.no_handler,
            "hash_mib": self.hash_mib,
            "memory_gib": self.memory_gib,
            "report_seconds": self.report_seconds,
            "volume_mib": self.volume_mib,
            "snapshot_seconds": self.snapshot_seconds,
            "snapshot_mib": self.snapshot_mib,
            "lazy_mib": self.lazy_mib,
            "initialization_mib": self.initialization_mib,
            "s3_mib": self.s3_mib,
            "on_demand_usd": self.on_demand_usd,
            "volume_usd": self.volume_usd,
            "snapshot_usd": self.snapshot_usd,
            "initialization_usd": self.initialization_usd,
            "s3_usd": self.s3_usd,
            "s3_put_usd": self.s3_put_usd,
            "s3_get_usd": self.s3_get_usd,
            "lambda_usd": self.lambda_usd,
            "invocation_usd": self.invocation_usd,
            "call_ms": self.call_ms,
            "write_usd": self.write_usd,
            "read_usd": self.read_usd,
        })
    }
}

/// The largest value of any parameter.
const LARGEST: f64 = 1e6;

fn number(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|value| *value <= LARGEST);
    number.ok_or_else(|| format!("it must be a number of at most {LARGEST}"))
}

fn positive(text: &str) -> Result<f64, String> {
    number(text).and_then(|value| if value > 0.0 { Ok(value) } else { Err("it must be above 0".into()) })
}

fn not_negative(text: &str) -> Result<f64, String> {
    number(text).and_then(|value| if value >= 0.0 { Ok(value) } else { Err("it must not be below 0".into()) })
}
