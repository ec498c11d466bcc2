// What was paid, and what the same hours would have cost on demand.
const MAX_COST_BARS = 30;

const drawCost = () => {
  const made = section("cost", "Costs and savings");
  const { cost } = report;
  if (!cost) {
    made.append(make("p", { class: "muted" }, "Not priced: no price is known for this sweep's attempts."));
    return;
  }
  const priced = report.rows.filter((row) => row.cost);
  const dearest = [...priced]
    .sort((left, right) => right.cost.spot + right.cost.storage - left.cost.spot - left.cost.storage)
    .slice(0, MAX_COST_BARS);
  const parts = [
    ["Instances", cost.spot],
    ["EBS", cost.storage],
    ["Control plane, estimated", cost.control_plane],
    ["Paid in all", cost.paid],
    ["The same hours on demand", cost.on_demand],
  ];
  const saved = cost.on_demand - cost.paid;
  made.append(
    make(
      "p",
      {},
      cost.saving === null
        ? "There is no on-demand price to compare with."
        : saved >= 0
          ? `${usd(saved)} less than on demand: a saving of ${percent(cost.saving)}, with storage and control plane counted.`
          : `${usd(-saved)} more than on demand: interruptions and storage cost more than the spot price saved.`,
    ),
    cost.priced_trials < report.counts.trials
      ? make(
          "p",
          { class: "notice" },
          `${grouped(cost.priced_trials)} of ${plural(report.counts.trials, "trial")} are priced in full; hours without a known price are in none of these figures.`,
        )
      : "",
    table(
      "Costs",
      ["what", "USD"],
      parts.map(([name, value]) => [name, value === null ? "not priced" : usd(value)]),
      ["", "number"],
    ),
  );
  const option = (colours) => {
    const series = (name, part, color) => ({
      type: "bar",
      stack: "paid",
      name,
      barMaxWidth: 26,
      itemStyle: { color },
      data: dearest.map((row) => row.cost[part]),
    });
    return {
      grid: { left: 8, right: 24, top: 30, bottom: 30, containLabel: true },
      xAxis: axis(colours, {
        type: "category",
        data: dearest.map((row) => String(row.index)),
        name: "trial",
        nameLocation: "middle",
        nameGap: 26,
        splitLine: { show: false },
      }),
      yAxis: axis(colours, { type: "value", name: "USD", axisLabel: { formatter: number } }),
      tooltip: {
        formatter: ({ dataIndex }) => {
          const row = dearest[dataIndex];
          return tip(
            `Trial ${row.index}`,
            `instances ${usd(row.cost.spot)}`,
            `EBS ${usd(row.cost.storage)}`,
            `on demand ${usd(row.cost.on_demand)}`,
          );
        },
      },
      series: [
        series("spot", "spot", colours.zones[0]),
        series("storage", "storage", colours.zones[1]),
        {
          type: "custom",
          name: "on demand",
          encode: { x: 0, y: 1 },
          data: dearest.map((row, at) => [at, row.cost.on_demand]),
          renderItem: (_, api) => {
            const [x, y] = api.coord([api.value(0), api.value(1)]);
            const half = Math.min(17, api.size([1, 0])[0] * 0.45);
            return {
              type: "line",
              shape: { x1: x - half, y1: y, x2: x + half, y2: y },
              style: { stroke: colours.text, lineWidth: 2.5 },
            };
          },
        },
      ],
    };
  };
  const one = chart(
    "cost-chart",
    `Cost of ${plural(dearest.length, "trial")}, instances and EBS against on demand. The leaderboard and the table have the figures.`,
    () => 300,
    option,
  );
  made.append(
    make("h3", {}, dearest.length < priced.length ? `The ${dearest.length} dearest trials` : "By trial"),
    make(
      "ul",
      { class: "legend" },
      make("li", {}, swatch("var(--zone-0)"), "instances"),
      make("li", {}, swatch("var(--zone-1)"), "EBS"),
      make("li", {}, "━ on demand"),
    ),
    one.holder,
    alternative("Costs as a table", () =>
      table(
        "Costs by trial",
        ["trial", "instances", "EBS", "paid", "on demand", "saving"],
        priced.map(({ index, cost: own }) => [
          String(index),
          usd(own.spot),
          usd(own.storage),
          usd(own.spot + own.storage),
          usd(own.on_demand),
          own.on_demand > 0 ? percent(1 - (own.spot + own.storage) / own.on_demand) : "–",
        ]),
        ["number", "number", "number", "number", "number", "number"],
      ),
    ),
  );
  return () => one.draw();
};
