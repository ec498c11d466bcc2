// Links from a trial to its log and its files: beside the page where it lies among the results, else in S3's console.
const CONSOLE = "https://console.aws.amazon.com/s3";

const isAmongResults = () => location.protocol === "file:" && location.pathname.endsWith("/report.html");

/** The address of an object of a trial, or of the trial's folder where no object is named. */
const addressOf = (row, object = "") => {
  const path = `trials/${row.index}/${object}`;
  if (isAmongResults()) return path;
  const [, bucket, prefix] = /^s3:\/\/([^/]+)\/(.*)$/.exec(report.results) ?? ["", "", ""];
  const key = encodeURIComponent(prefix + path);
  return `${CONSOLE}/${object === "" ? "buckets" : "object"}/${encodeURIComponent(bucket)}?prefix=${key}`;
};

const hasEnded = (row) => row.attempts.some(({ ending, stopped_ms }) => stopped_ms !== null && ending !== "running");

/** A trial has collected nothing before its first attempt has ended. */
const linksOf = (row) => {
  const link = (text, object) => make("a", { href: addressOf(row, object), rel: "noopener" }, text);
  if (!hasEnded(row)) return "–";
  return make(
    "span",
    { title: `spotsweep logs ${report.sweep} ${row.index}` },
    link("log", "train.log"),
    " ",
    link("files", ""),
  );
};
