// Parameter sets that a sweep trains several times: their ranks are the sweep's.
const PAGE_SETS = 50;

/** The mean of a set's results with its standard error. */
const meanText = (mean) => (mean ? `${number(mean.mean)}${uncertaintyText(mean.standard_error)}` : "–");

const bestSet = () => report.sets?.rows.find(({ rank }) => rank === 1);

const setsTable = (rows) => {
  const columns = report.columns
    .map((column, at) => ({ ...column, at }))
    .filter(({ name }) => name !== report.sets.parameter);
  const cells = (set) => [
    set.rank === null ? "–" : String(set.rank),
    set.trials.join(", "),
    meanText(set.mean),
    `${set.mean?.results ?? 0} of ${report.sets.repeats}`,
    make("span", { class: set.is_flagged ? "status failed" : "muted" }, set.lacks ?? ""),
    ...columns.map(({ at }) => shown(set.parameters[at])),
  ];
  return table(
    "Parameter sets",
    ["rank", "trials", `mean ${report.metrics[0] ?? ""}`, "results", "lacks", ...columns.map(({ name }) => name)],
    rows.map(cells),
    ["number", "", "number", "number", "", ...columns.map(({ kind }) => (kind === "category" ? "" : "number"))],
  );
};

const drawSets = () => {
  const { sets } = report;
  if (!sets) return;
  const waiting = sets.count - sets.rows.length;
  let shownTable = setsTable(sets.rows.slice(0, PAGE_SETS));
  const all = make(
    "button",
    {
      type: "button",
      click: () => {
        const whole = setsTable(sets.rows);
        shownTable.replaceWith(whole);
        shownTable = whole;
        all.hidden = true;
      },
    },
    "Show all",
  );
  all.hidden = sets.rows.length <= PAGE_SETS;
  section(
    "sets",
    "Parameter sets",
    make(
      "p",
      {},
      `Each set is trained ${plural(sets.repeats, "time")}, with one value of ${sets.parameter} each. Sets are ranked by the mean of their results; ± is its standard error. A set has a rank once each of its trials has a result, so that no set is ahead because its bad repeats failed, diverged or were stopped.`,
    ),
    waiting > 0 ? make("p", { class: "muted" }, `${plural(waiting, "set")} of ${grouped(sets.count)} not shown here: no trial of them has started, or others are better.`) : undefined,
    sets.rows.length > 0 ? shownTable : make("p", { class: "muted" }, "No trial has started yet."),
    make("div", { class: "controls" }, all),
  );
};
