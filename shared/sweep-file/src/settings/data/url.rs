//! URLs of objects in S3, `s3://bucket/key`, and what people write in their place.

use std::net::Ipv4Addr;

use spotsweep_protocol::redact::credentials;

/// The most characters of bucket and key together, which are the value of a session tag
/// (<https://docs.aws.amazon.com/STS/latest/APIReference/API_Tag.html>).
const MOST_TAG_CHARS: usize = 256;

/// How no bucket's name begins. This and the other rules are those of
/// <https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html>.
const RESERVED_STARTS: [&str; 3] = ["xn--", "sthree-", "amzn-s3-demo-"];

/// How the names of other things than general purpose buckets end.
const RESERVED_ENDS: [(&str, &str); 5] = [
    ("-s3alias", "an access point"),
    ("--ol-s3", "an Object Lambda access point"),
    (".mrap", "a Multi-Region Access Point"),
    ("--x-s3", "a directory bucket"),
    ("--table-s3", "a table bucket"),
];

/// Why a text is no usable URL, and what to do.
type Refused = (String, String);

/// Returns bucket and key. `name` is that of the data set, for the help.
pub(super) fn parse(url: &str, name: &str) -> Result<(String, String), Refused> {
    if credentials(url).into_iter().any(|at| url[at.end..].starts_with('@')) {
        let help = "delete them, and write `s3://bucket/prefix/`: each trial has credentials of its own";
        return Err(("the URL has a user name or a password".to_owned(), help.to_owned()));
    }
    let Some(place) = url.strip_prefix("s3://").filter(|place| !place.starts_with("arn:")) else {
        return Err(foreign(url, name));
    };
    let (bucket, key) = place.split_once('/').unwrap_or((place, ""));
    match bucket_problem(bucket).or_else(|| key_problem(bucket, key)) {
        Some(refused) => Err(refused),
        None => Ok((bucket.to_owned(), key.to_owned())),
    }
}

/// Returns what is wrong with a text that is no `s3://` URL.
fn foreign(url: &str, name: &str) -> Refused {
    if let Some(arn) = url.strip_prefix("s3://").unwrap_or(url).strip_prefix("arn:") {
        return of_arn(arn, name);
    }
    match url.split_once("://") {
        None | Some(("file", _)) => (
            "this is a path, and data sets are objects of S3".to_owned(),
            format!(
                "send the folder with `aws s3 cp --recursive ./folder s3://<bucket>/data/{name}/`, and write that URL"
            ),
        ),
        // Hadoop's names of the scheme, and S3's own in capital letters.
        Some(("s3a" | "s3n" | "S3", place)) => only_s3(Some(place), name),
        Some(("http" | "https", rest)) if rest.contains(".s3-accesspoint.") => access_point(),
        Some(("http" | "https", rest)) => only_s3(of_host(rest).as_deref(), name),
        Some(_) => only_s3(None, name),
    }
}

/// Returns the problem of a text that has another form. `place` is the bucket and the key that are meant.
fn only_s3(place: Option<&str>, name: &str) -> Refused {
    let help = match place {
        Some(place) => format!("write `s3://{place}`"),
        None => format!("copy the objects to a bucket of S3, and write `s3://<bucket>/data/{name}/`"),
    };
    ("only `s3://` URLs can be read".to_owned(), help)
}

fn access_point() -> Refused {
    let help = "write `s3://`, the bucket that has the objects, and the key";
    ("this is an access point, and data sets are read from buckets".to_owned(), help.to_owned())
}

/// Returns what is wrong with an ARN, without its first part. Those of access points have a region and an account
/// (<https://docs.aws.amazon.com/AmazonS3/latest/userguide/access-points-naming.html>).
fn of_arn(arn: &str, name: &str) -> Refused {
    let parts: Vec<&str> = arn.splitn(5, ':').collect();
    match parts[..] {
        [_, "s3", "", "", place] => only_s3(Some(place.trim_end_matches('*')), name),
        [_, _, _, _, resource] if resource.contains("accesspoint") => access_point(),
        _ => only_s3(None, name),
    }
}

/// Returns bucket and key of a URL of S3's own hosts, without its scheme
/// (<https://docs.aws.amazon.com/AmazonS3/latest/userguide/VirtualHosting.html>).
fn of_host(rest: &str) -> Option<String> {
    let rest = rest.split(['?', '#']).next()?;
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let host = host.strip_suffix(".cn").unwrap_or(host).strip_suffix(".amazonaws.com")?;
    if host == "s3" || host.starts_with("s3.") || host.starts_with("s3-") {
        return Some(path.to_owned()).filter(|path| !path.is_empty());
    }
    let (bucket, _) = host.rsplit_once(".s3")?;
    Some(format!("{bucket}/{path}"))
}

fn bucket_problem(bucket: &str) -> Option<Refused> {
    if bucket.is_empty() {
        return Some(("the URL has no bucket".to_owned(), "write `s3://bucket/prefix/`".to_owned()));
    }
    if let Some((_, what)) = RESERVED_ENDS.iter().find(|(end, _)| bucket.ends_with(end)) {
        let help = "write the general purpose bucket that has the objects, or copy them to one";
        return Some((
            format!("`{bucket}` is {what}, and data sets are read from general purpose buckets"),
            help.into(),
        ));
    }
    let ends = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let is_name = (3..=63).contains(&bucket.len())
        && bucket.chars().all(|c| ends(c) || matches!(c, '.' | '-'))
        && bucket.starts_with(ends)
        && bucket.ends_with(ends)
        && !bucket.contains("..")
        && bucket.parse::<Ipv4Addr>().is_err()
        && !RESERVED_STARTS.iter().any(|start| bucket.starts_with(start));
    let help = "write the name of your bucket: 3 to 63 lower-case letters, digits, `-` and `.`, with a letter or a digit \
                at both ends, and none that S3 reserves";
    (!is_name).then(|| (format!("`{bucket}` is no name of a bucket"), help.to_owned()))
}

/// Returns what is wrong with a key.
///
/// STS takes letters and digits of all scripts in a tag. Here they are those of ASCII, because no page states how IAM
/// compares others with keys.
fn key_problem(bucket: &str, key: &str) -> Option<Refused> {
    if let Some(wildcard) = key.chars().find(|c| matches!(c, '*' | '?')) {
        let help = "write the prefix before it, up to a `/`: a prefix takes everything below it";
        return Some((format!("the key has `{wildcard}`, and wildcards have no meaning here"), help.to_owned()));
    }
    let is_allowed = |c: &char| c.is_ascii_alphanumeric() || " _.:/=+-@".contains(*c);
    if let Some(strange) = key.chars().find(|c| !is_allowed(c)) {
        let help = "use A-Z a-z 0-9, spaces and `_ . : / = + - @`: write %20 as a space, name a prefix above it, or copy \
                    the objects";
        return Some((
            format!("the key cannot have {strange:?}: it becomes a tag of the trial's session"),
            help.into(),
        ));
    }
    let length = bucket.len() + 1 + key.len();
    let help = format!("at most {MOST_TAG_CHARS} are possible: name a prefix above it, or copy the objects");
    (length > MOST_TAG_CHARS).then(|| (format!("bucket and key have {length} characters"), help))
}
