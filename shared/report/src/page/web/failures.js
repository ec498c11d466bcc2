// Why trials failed, and their last words.
const drawFailures = () => {
  const made = section("failures", "Failures");
  const { causes, trials } = report.failures;
  if (causes.length === 0) {
    made.append(make("p", { class: "muted" }, "No trial has failed."));
    return;
  }
  const named = ({ indices, count }) =>
    indices.join(", ") + (count > indices.length ? ` and ${grouped(count - indices.length)} more` : "");
  made.append(
    table(
      "Causes of failures",
      ["cause", "trials", "which", "what to do"],
      causes.map((cause) => [cause.cause, grouped(cause.count), named(cause), cause.advice ?? "–"]),
      ["wrap", "number", "wrap", "wrap"],
    ),
  );
  for (const trial of trials) {
    made.append(
      make(
        "details",
        { open: trials.length <= 3 },
        make("summary", {}, `Trial ${trial.index}: ${trial.cause}`),
        make(
          "p",
          { class: "muted" },
          `${plural(trial.attempts, "attempt")}${trial.exit_code === null ? "" : `, exit code ${trial.exit_code}`}`,
        ),
        trial.log_lines.length > 0
          ? make(
              "pre",
              { tabindex: 0, "aria-label": `Last log lines of trial ${trial.index}` },
              trial.log_lines.join("\n"),
            )
          : make("p", { class: "muted" }, "No log lines were collected."),
      ),
    );
  }
};
