// Which parameters matter, as far as one at a time tells.
const MAX_BARS = 20;

const direction = ({ rho }) =>
  rho === null ? "–" : Math.abs(rho) < 0.2 ? "in no single direction" : rho > 0 ? "rises with it" : "falls with it";
const verdict = (weight) => (weight.is_clear ? "clear" : "may be chance");

const drawImportance = () => {
  const made = section("importance", "Parameter importance");
  const { importance } = report;
  if (!importance || importance.weights.length === 0) {
    made.append(
      make(
        "p",
        { class: "muted" },
        importance
          ? `Nothing to compare: ${plural(importance.trials, "trial")} succeeded with the metric, too few or too alike.`
          : "No metric ranks these trials.",
      ),
    );
    return;
  }
  const metric = report.ranking.metric;
  const bars = importance.weights.slice(0, MAX_BARS).reverse();
  const note = (weight) =>
    `${weight.share.toFixed(2)} · ${!weight.is_clear ? "may be chance" : weight.rho === null ? "by category" : direction(weight)}`;
  const option = (colours, width) => ({
    grid: { left: 8, right: 150, top: 6, bottom: 34, containLabel: true },
    xAxis: axis(colours, {
      type: "value",
      min: 0,
      max: 1,
      name: `share of the rank variance of ${metric}`,
      nameLocation: "middle",
      nameGap: 26,
    }),
    yAxis: axis(colours, {
      type: "category",
      data: bars.map(({ name }) => name),
      splitLine: { show: false },
      axisTick: { show: false },
      axisLabel: { width: Math.min(220, width / 4), overflow: "truncate", interval: 0 },
    }),
    tooltip: {
      formatter: ({ dataIndex }) => {
        const weight = bars[dataIndex];
        return tip(
          weight.name,
          `explains ${percent(weight.share)} of the ranks' variance (p = ${number(weight.p)})`,
          `${plural(weight.trials, "trial")} in ${weight.groups} groups, ${verdict(weight)}`,
          weight.rho === null ? undefined : `Spearman's ρ = ${weight.rho.toFixed(2)}: ${metric} ${direction(weight)}`,
        );
      },
    },
    series: [
      {
        type: "bar",
        barMaxWidth: 18,
        barMinHeight: 2,
        data: bars.map((weight) => ({
          value: weight.share,
          itemStyle: weight.is_clear
            ? { color: colours.accent }
            : { color: colours.worst, borderColor: colours.muted, borderType: "dashed", borderWidth: 1 },
        })),
        label: {
          show: true,
          position: "right",
          color: colours.text,
          textBorderColor: colours.surface,
          textBorderWidth: 2,
          formatter: ({ dataIndex }) => note(bars[dataIndex]),
        },
      },
    ],
  });
  const one = chart(
    "importance-chart",
    `Importance of ${plural(importance.weights.length, "parameter")} for ${metric}. The table below has the figures.`,
    () => 50 + 30 * bars.length,
    option,
  );
  made.append(
    make(
      "p",
      {},
      `How much of the order of the trials by ${metric} goes with each parameter, from ${plural(importance.trials, "trial")} that succeeded. Trials are grouped by the parameter's value (numbers with more than five values: by fifths); the figure is the Kruskal-Wallis test's η², 0 for nothing, 1 for everything, with what chance alone gives taken off. “May be chance”: p is not below 0.05 after correction for the number of parameters.`,
    ),
    importance.few
      ? make("p", { class: "notice" }, `Only ${plural(importance.trials, "trial")}: take this as a hint.`)
      : "",
    one.holder,
    alternative("Importance as a table", () =>
      table(
        "Parameter importance",
        ["parameter", "share", "p", "verdict", "ρ", "direction", "trials", "groups"],
        importance.weights.map((weight) => [
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
      ),
    ),
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
