// What was paid, and what the same hours would have cost on demand.
const MAX_COST_BARS = 30;

const paidFor = ({ cost }) => cost.spot + cost.storage;

const costTip = ({ index, cost }) =>
  tip(`Trial ${index}`, `instances ${usd(cost.spot)}`, `EBS ${usd(cost.storage)}`, `on demand ${usd(cost.on_demand)}`);

/** A trial's stacked bar with the mark of what it would have cost on demand. */
const costBar = ({ cost }, at, x, width, area, dollars) => {
  const y = (value) => area.y(dollars.place(value));
  const part = (from, to, className) => box(x - width / 2, y(to), width, y(from) - y(to), { class: className });
  return svg(
    "g",
    { "data-at": at },
    part(0, cost.spot, "spot"),
    part(cost.spot, paidFor({ cost }), "storage"),
    segment(x - width * 0.65, y(cost.on_demand), x + width * 0.65, y(cost.on_demand), "on-demand"),
  );
};

const costChart = (rows) => {
  const greatest = Math.max(...rows.map((row) => Math.max(paidFor(row), row.cost.on_demand)));
  const dollars = fittedEven([0, greatest], 6);
  const trials = bandScale(rows.map((_, at) => at));
  trials.ticks = rows.map(({ index }, at) => ({ value: at, text: String(index) }));
  const paint = (layers, size) => {
    const area = plotArea(size, { left: 20 + labelsWidth(dollars.ticks, 120), right: 24, top: 34, bottom: 50 });
    const width = Math.min(26, trials.size * area.width * 0.7);
    const x = (at) => area.x(trials.place(at));
    layers.below.append(
      horizontalAxis(area, trials, { title: "trial", grid: false }),
      verticalAxis(area, dollars, { title: "USD" }),
    );
    layers.above.append(...rows.map((row, at) => costBar(row, at, x(at), width, area, dollars)));
    explore(layers, box(area.left, area.top, area.width, area.height), "Trials, from the most expensive", {
      count: rows.length,
      find: (_, place) =>
        place >= area.left && place <= area.right ? trials.value((place - area.left) / area.width) : undefined,
      anchor: (at) => [x(at), area.y(dollars.place(paidFor(rows[at])))],
      describe: (at) => costTip(rows[at]),
    });
  };
  const name = `Cost of ${plural(rows.length, "trial")}, instances and EBS against on demand. The leaderboard and the table have the figures.`;
  return chart("cost-chart", name, () => 320, paint);
};

const costTable = (rows) =>
  table(
    "Costs by trial",
    ["trial", "instances", "EBS", "paid", "on demand", "saving"],
    rows.map(({ index, cost }) => [
      String(index),
      usd(cost.spot),
      usd(cost.storage),
      usd(paidFor({ cost })),
      usd(cost.on_demand),
      cost.on_demand > 0 ? percent(1 - paidFor({ cost }) / cost.on_demand) : "–",
    ]),
    ["number", "number", "number", "number", "number", "number"],
  );

/** Which part of the bill makes it more than on demand. Both are for the same hours. */
const excess = (cost) =>
  cost.spot > cost.on_demand
    ? "the spot price was above the on-demand price."
    : cost.spot + cost.storage > cost.on_demand
      ? "EBS costs more than the spot price saved."
      : "the control plane costs more than the spot price saved, because the trainings were short.";

/** What the sweep cost in all, in words and as a table. */
const costSummary = (cost) => {
  const parts = [
    ["Instances", cost.spot],
    ["EBS", cost.storage],
    ["Control plane, estimated", cost.control_plane],
    ["Paid in all", cost.paid],
    ["The same hours on demand", cost.on_demand],
  ];
  const saved = cost.on_demand - cost.paid;
  return [
    make(
      "p",
      {},
      cost.saving === null
        ? "There is no on-demand price to compare with."
        : saved >= 0
          ? `${usd(saved)} less than on demand: a saving of ${percent(cost.saving)}, with storage and control plane counted.`
          : `${usd(-saved)} more than on demand: ${excess(cost)}`,
    ),
    cost.priced_trials < startedTrials()
      ? make(
          "p",
          { class: "notice" },
          `${grouped(cost.priced_trials)} of ${plural(startedTrials(), "trial")} that started are priced in full; hours without a known price are in none of these figures.`,
        )
      : "",
    table(
      "Costs",
      ["what", "USD"],
      parts.map(([name, value]) => [name, value === null ? "not priced" : usd(value)]),
      ["", "number"],
    ),
  ];
};

const drawCost = () => {
  const made = section("cost", "Costs and savings");
  const { cost } = report;
  if (!cost) {
    made.append(make("p", { class: "muted" }, "Not priced: no price is known for this sweep's attempts."));
    return;
  }
  const priced = report.rows.filter((row) => row.cost);
  made.append(...costSummary(cost));
  if (priced.length === 0) return;
  const expensive = [...priced].sort((left, right) => paidFor(right) - paidFor(left)).slice(0, MAX_COST_BARS);
  const one = costChart(expensive);
  made.append(
    make("h3", {}, expensive.length < priced.length ? `The ${expensive.length} most expensive trials` : "By trial"),
    make(
      "ul",
      { class: "legend" },
      make("li", {}, swatch("var(--zone-0)"), "instances"),
      make("li", {}, swatch("var(--zone-1)"), "EBS"),
      make("li", {}, "━ on demand"),
    ),
    one.container,
    alternative("Costs as a table", () => costTable(priced)),
  );
  return () => one.draw();
};
