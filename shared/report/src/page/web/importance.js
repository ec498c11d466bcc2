// Which parameters matter, as far as one at a time tells.
const MAX_BARS = 20;
// The least share of the width for bars with notes beside them. With less, the notes are below the bars.
const LEAST_PLOT = 0.4;

const direction = ({ name, rho }) => {
  if (rho === null) return "–";
  if (Math.abs(rho) < 0.2) return "in no single direction";
  return `higher ${name}, ${rho > 0 ? "higher" : "lower"} ${report.ranking.metric}`;
};
const verdict = (weight) => (weight.is_clear ? "clear" : "may be chance");

const importanceNote = (weight) =>
  `${weight.share.toFixed(2)} · ${!weight.is_clear ? "may be chance" : weight.rho === null ? "by category" : direction(weight)}`;

const importanceTip = (weight) =>
  tip(
    weight.name,
    `explains ${percent(weight.share)} of the ranks' variance (p = ${number(weight.p)})`,
    `${comparedText(weight.trials)} in ${weight.groups} groups, ${verdict(weight)}`,
    weight.rho === null ? undefined : `Spearman's ρ = ${weight.rho.toFixed(2)}: ${direction(weight)}`,
  );

const importanceChart = (bars, metric) => {
  // The most important on top.
  const names = bandScale(bars.map((_, at) => bars.length - 1 - at));
  names.ticks = names.ticks.map(({ value }) => ({ value, text: bars[value].name }));
  const notes = 8 + Math.max(...bars.map((weight) => textWidth(importanceNote(weight))));
  const paint = (layers, size) => {
    const most = Math.min(240, size.width / 4);
    const left = 16 + labelsWidth(names.ticks, most);
    const isBeside = size.width - left - notes >= LEAST_PLOT * size.width;
    const area = plotArea(size, { left, right: isBeside ? Math.max(24, notes) : 24, top: 6, bottom: 50 });
    const shares = scaleAlong(area, (marks) => fittedEven([0, 1], Math.min(marks, 5)));
    const height = Math.min(isBeside ? 18 : 8, names.size * area.height * 0.7);
    layers.below.append(
      horizontalAxis(area, shares, { title: `share of the rank variance of ${metric}` }),
      verticalAxis(area, names, { grid: false, marks: false, most }),
    );
    const shapes = bars.map((weight, at) => {
      const [end, y] = [Math.max(area.x(weight.share), area.left + 2), area.y(names.place(at))];
      return svg(
        "g",
        { "data-at": at },
        box(area.left, isBeside ? y - height / 2 : y - height - 4, end - area.left, height, {
          class: weight.is_clear ? "bar clear" : "bar chance",
        }),
        isBeside
          ? label(importanceNote(weight), { class: "note", x: tenth(end + 6), y: tenth(y), dy: ".35em" })
          : label(importanceNote(weight), { class: "note", x: tenth(area.left + 4), y: tenth(y + 8) }, size.width - area.left - 8),
      );
    });
    layers.above.append(...shapes);
    explore(layers, box(area.left, area.top, area.width, area.height), "Parameters, from the most important", {
      count: bars.length,
      find: (_, x, y) => (y >= area.top && y <= area.bottom ? names.value((area.bottom - y) / area.height) : undefined),
      anchor: (at) => [area.x(bars[at].share), area.y(names.place(at))],
      describe: (at) => importanceTip(bars[at]),
    });
  };
  const name = `Importance of ${plural(report.importance.weights.length, "parameter")} for ${metric}. The table below has the figures.`;
  return chart("importance-chart", name, () => 60 + 30 * bars.length, paint);
};

const importanceTable = () =>
  table(
    "Parameter importance",
    ["parameter", "share", "p", "verdict", "ρ", "direction", "trials", "groups"],
    report.importance.weights.map((weight) => [
      weight.name,
      weight.share.toFixed(3),
      number(weight.p),
      verdict(weight),
      weight.rho === null ? "–" : weight.rho.toFixed(3),
      direction(weight),
      String(weight.trials),
      String(weight.groups),
    ]),
    ["wrap", "number", "number", "", "number", "", "number", "number"],
  );

/** What is compared: trials, or sets by their means. */
const comparedText = (count) => plural(count, report.sets ? "parameter set" : "trial");

const drawImportance = () => {
  const made = section("importance", "Parameter importance");
  const { importance } = report;
  if (!importance || importance.weights.length === 0) {
    made.append(
      make(
        "p",
        { class: "muted" },
        importance
          ? `Nothing to compare: ${comparedText(importance.trials)} succeeded with the metric, too few or too alike.`
          : "No metric ranks these trials.",
      ),
    );
    return;
  }
  const metric = report.ranking.metric;
  const one = importanceChart(importance.weights.slice(0, MAX_BARS), metric);
  made.append(
    make(
      "p",
      {},
      `How strongly each parameter relates to ${report.sets ? "the mean of " : ""}${metric}, from ${comparedText(importance.trials)} that succeeded. ` +
        `They are grouped by the parameter's value (numbers with more than five values: by fifths); ` +
        `the figure is the Kruskal-Wallis test's η², 0 for nothing, 1 for everything, with what chance alone gives taken off. “May be chance”: p is not below 0.05 after correction for the number of parameters.`,
    ),
    importance.few
      ? make("p", { class: "notice" }, `Only ${comparedText(importance.trials)}: take this as a hint.`)
      : "",
    one.container,
    alternative("Importance as a table", importanceTable),
    make(
      "p",
      { class: "muted" },
      "Each parameter is looked at alone: effects that only two together have are not seen, and parameters that always change together share them.",
      importance.unjudged.length > 0
        ? ` Not judged, because there are too few trials for each value: ${importance.unjudged.join(", ")}.`
        : "",
    ),
  );
  return () => one.draw();
};
