// The best value so far, and simple regret: how far it is from the best value in the end.
const regretOf = ({ value }) => {
  const { best } = report.search;
  return Math.abs(value - best[best.length - 1].value);
};

const regretTip = (one) =>
  tip(
    report.sets ? `The set of trial ${one.index}` : `Trial ${one.index}`,
    `best ${report.metrics[0]} so far: ${number(one.value)}`,
    `simple regret ${number(regretOf(one))}`,
    `${time(one.at_ms)}, ${plural(one.ended, "trial")} ended`,
  );

/** The horizontal axis: the time, or how many trials have ended. */
const regretAxis = (state, area) => {
  const { best, ended } = report.search;
  if (state.by === "ended") {
    const scale = scaleAlong(area, (most) => fittedEven([0, Math.max(1, ended)], most));
    return { scale, title: "trials ended", place: (one) => one.ended, last: ended };
  }
  const last = report.partial ? report.generated_ms : Math.max(report.ended_ms, best[best.length - 1].at_ms);
  const span = [report.uploaded_ms, Math.max(last, report.uploaded_ms + 1000)];
  const scale = scaleAlong(area, (most) => timeScale(span, most));
  return { scale, title: `from ${time(span[0])}`, place: (one) => one.at_ms, last };
};

/** `state` says what is drawn, and against what. */
const regretChart = (state) => {
  const { best } = report.search;
  const paint = (layers, size) => {
    const isRegret = state.show === "regret";
    const value = isRegret ? regretOf : (one) => one.value;
    const extent = isRegret ? [0, extentOf(best.map(value))[1]] : extentOf(best.map(value));
    const vertical = fittedScale(extent, !isRegret && isWide(extent, 1000), 6);
    const left = 20 + labelsWidth(vertical.ticks, 120);
    const area = plotArea(size, { left, right: 24, top: 34, bottom: 50 });
    const { scale, title, place, last } = regretAxis(state, area);
    const metric = report.metrics[0];
    layers.below.append(
      horizontalAxis(area, scale, { title }),
      verticalAxis(area, vertical, { title: isRegret ? `simple regret of ${metric}` : `best ${metric} so far` }),
    );
    const places = best.map((one) => [area.x(scale.place(place(one))), area.y(vertical.place(value(one)))]);
    // Each value is the best until the next one is found.
    const steps = places.flatMap(([x, y], at) => [x, y, (places[at + 1] ?? [area.x(scale.place(last))])[0], y]);
    layers.below.append(svg("path", { class: "line unranked best", d: pathThrough(steps) }));
    layers.above.append(
      ...places.map(([x, y], at) => svg("circle", { "data-at": at, class: "found", cx: tenth(x), cy: tenth(y), r: 4 })),
    );
    explore(layers, box(area.left, area.top, area.width, area.height), "Improvements, from the first", {
      count: best.length,
      find: (_, x, y) => nearestPlace(places, x, y),
      anchor: (at) => places[at],
      describe: (at) => regretTip(best[at]),
    });
  };
  const name = `The best ${report.metrics[0]} so far, which was improved ${plural(best.length, "time")}. The table below has the figures.`;
  return chart("regret-chart", name, () => 320, paint);
};

const regretTable = () =>
  table(
    "Best value so far",
    ["trial", "time", "trials ended", `best ${report.metrics[0]} so far`, "simple regret"],
    report.search.best.map((one) => [
      String(one.index),
      time(one.at_ms),
      String(one.ended),
      number(one.value),
      number(regretOf(one)),
    ]),
    ["number", "", "number", "number", "number"],
  );

const regretControls = (state, draw) => {
  const set = (key) => (value) => {
    state[key] = value;
    draw();
  };
  const shows = [
    ["best", "best value so far"],
    ["regret", "simple regret"],
  ];
  const against = [
    ["time", "time"],
    ["ended", "trials ended"],
  ];
  return make(
    "div",
    { class: "controls" },
    choice("Show", shows, set("show")),
    choice("Against", against, set("by")),
  );
};
