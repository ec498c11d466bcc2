// Who, when, how it stands, what won, what it cost.
const tile = (title, figure, ...notes) =>
  make(
    "div",
    { class: "tile" },
    make("dt", {}, title),
    make(
      "dd",
      {},
      make("span", { class: "figure" }, figure),
      notes.filter(Boolean).map((note) => (note instanceof Node ? note : make("small", {}, note))),
    ),
  );

const pairs = (entries) =>
  make(
    "ul",
    { class: "pairs" },
    entries.map(([name, value]) => make("li", {}, name, " = ", make("b", {}, value))),
  );

const best = () => {
  const first = report.rows[0];
  return first?.rank === 1 ? { row: first, value: first.metrics[0] } : undefined;
};

const parametersOf = (row) =>
  report.columns
    .map((column, at) => [column.name, shown(row.parameters[at])])
    .filter((_, at) => row.parameters[at] !== null);

const trialsTile = () => {
  const { counts } = report;
  const parts = [
    ["succeeded", "--good"],
    ["failed", "--bad"],
    ["stopped", "--muted"],
    ["cancelled", "--muted"],
    ["running", "--accent"],
    ["waiting", "--line"],
  ].filter(([name]) => counts[name] > 0);
  const bar = make("div", { class: "share", "aria-hidden": "true" });
  for (const [name, colour] of parts) {
    const part = make("i");
    part.style.width = `${(100 * counts[name]) / counts.trials}%`;
    part.style.background = `var(${colour})`;
    bar.append(part);
  }
  return tile(
    "Trials",
    grouped(counts.trials),
    bar,
    parts.map(([name]) => `${grouped(counts[name])} ${name}`).join(", "),
  );
};

const leaderText = () =>
  report.leader ? `trial ${report.leader.index} leads so far: ${number(report.leader.value)}` : undefined;

const bestTile = (winner) => {
  const { ranking, sets } = report;
  const goal = ranking && `${ranking.maximize ? "largest" : "smallest"} ${sets ? "mean " : ""}${ranking.metric}`;
  const set = bestSet();
  if (winner && set)
    return tile(
      `Best: ${goal}`,
      number(set.mean.mean),
      `${uncertaintyText(set.mean.standard_error)}, trials ${set.trials.join(", ")}`.trim(),
      `the best of them: trial ${winner.row.index}, ${number(winner.value)}`,
    );
  if (winner) return tile(`Best: ${goal}`, number(winner.value), `trial ${winner.row.index}`, leaderText());
  if (!ranking) return tile("Best", "none yet", "no metric was named or reported");
  const why = sets ? "no parameter set has, of each repeat," : "no trial has succeeded with";
  return tile("Best", "none yet", `${why} a finite ${ranking.metric}`, leaderText());
};

/** Where trials are compared, and in which unit. */
const rungsText = ({ rule, unit, steps, count }) => {
  const metric = report.ranking?.metric;
  const list = `${steps.join(", ")}${count > steps.length ? ", …" : ""}`;
  const where =
    unit === "step" ? `at ${count === 1 ? "step" : "steps"} ${list} of ${metric}` : `after ${list} reports of ${metric}`;
  const who = rule === "interruption" ? "only trials that are interrupted are compared" : "trials are compared";
  return `Early stopping (${rule}): ${who} ${where}. Rungs count ${unit === "step" ? "the step that is reported with a value" : "reports: finite values of the metric"}.`;
};

/** Trials that have run: the others cost nothing. */
const startedTrials = () => report.rows.filter((row) => row.attempts.some((attempt) => attempt.started_ms)).length;

const costTile = () => {
  const { cost } = report;
  if (!cost) return tile("Cost", "not priced", "no prices were recorded for this sweep");
  const saving =
    cost.saving === null
      ? undefined
      : cost.saving >= 0
        ? `${percent(cost.saving)} below on demand (${usd(cost.on_demand)})`
        : `${percent(-cost.saving)} above on demand (${usd(cost.on_demand)})`;
  const missing = startedTrials() - cost.priced_trials;
  return tile("Cost", usd(cost.paid), saving, missing > 0 && `${plural(missing, "trial")} not priced`);
};

const drawHead = () => {
  const { counts, totals, ranking } = report;
  const wall =
    ((report.ended_ms && !report.partial ? report.ended_ms : report.generated_ms) - report.uploaded_ms) / 1000;
  const winner = best();
  const head = document.getElementById("head");
  head.replaceChildren(
    make("h1", {}, report.sweep),
    make(
      "p",
      { class: "muted" },
      `${report.file} · ${report.stage} · dropped ${time(report.uploaded_ms)} · this page ${time(report.generated_ms)}`,
    ),
  );
  if (report.partial) {
    const ended = counts.succeeded + counts.failed + counts.cancelled + counts.stopped;
    head.append(
      make(
        "p",
        { class: "notice", role: "status" },
        `Partial: ${grouped(ended)} of ${plural(counts.trials, "trial")} had ended when this page was made. Everything below is as of ${time(report.generated_ms)} and may change.`,
      ),
    );
  }
  report.warnings.forEach((text) => head.append(make("p", { class: "notice" }, `Warning: ${text}.`)));
  head.append(
    make(
      "dl",
      { class: "tiles" },
      bestTile(winner),
      trialsTile(),
      tile(
        "Interruptions",
        grouped(totals.interruptions),
        `${plural(totals.zone_moves, "move")} to another zone, ${plural(totals.attempts, "attempt")}`,
      ),
      tile(report.partial ? "Time so far" : "Time", duration(wall), `${duration(totals.run_seconds)} of containers`),
      costTile(),
    ),
  );
  if (winner) head.append(make("h3", {}, `Parameters of trial ${winner.row.index}`), pairs(parametersOf(winner.row)));
  if (report.constants.length > 0)
    head.append(
      make("h3", {}, "The same in all trials"),
      pairs(report.constants.map(({ name, value }) => [name, value])),
    );
  if (report.rungs) head.append(make("p", { class: "muted" }, rungsText(report.rungs)));
  report.omitted.forEach((text) => head.append(make("p", { class: "muted" }, text)));
  if (ranking && !ranking.stated) {
    head.append(
      make(
        "p",
        { class: "muted" },
        `The sweep file names no metric; ${ranking.metric} (${ranking.maximize ? "larger" : "smaller"} is better) was taken because trials report it.`,
      ),
    );
  }
};
