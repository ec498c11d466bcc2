// What the model of a search predicted, against what the trials found.
const NEAREST_PX = 12;

const predictedText = ({ mean, deviation }) => (mean === null ? "–" : `${number(mean)}${uncertaintyText(deviation)}`);

/** What a suggestion rests on, in words. */
const basisTexts = { model: "model", initial: "even cover of the space", random: "random" };

const predictionTip = (one) =>
  tip(
    report.sets ? `Set of trial ${one.index}` : `Trial ${one.index}`,
    `predicted ${report.metrics[0]} ${predictedText(one)}`,
    `found ${number(one.found)}`,
    one.deviation > 0 && `${(Math.abs(one.found - one.mean) / one.deviation).toFixed(1)} standard deviations apart`,
  );

/** The place of the datum nearest to the pointer. */
const nearestPlace = (places, x, y) => {
  let [nearest, found] = [NEAREST_PX, undefined];
  places.forEach(([left, top], at) => {
    const distance = Math.hypot(x - left, y - top);
    if (distance < nearest) [nearest, found] = [distance, at];
  });
  return found;
};

/** Found to the right, predicted upwards: both axes are the same, so that what was predicted right lies on the diagonal. */
const predictionsChart = (points) => {
  const metric = report.metrics[0];
  const paint = (layers, size) => {
    const extent = extentOf(points.flatMap((one) => [one.found, one.mean - one.deviation, one.mean + one.deviation]));
    const scale = fittedScale(extent, isWide(extent, 1000), 6);
    const left = 20 + labelsWidth(scale.ticks, 120);
    const area = plotArea(size, { left, right: 24, top: 34, bottom: 50 });
    const [x, y] = [(value) => area.x(scale.place(value)), (value) => area.y(scale.place(value))];
    layers.below.append(
      horizontalAxis(area, scale, { title: `found ${metric}` }),
      verticalAxis(area, scale, { title: `predicted ${metric}` }),
      segment(area.left, area.bottom, area.right, area.top, "equal"),
    );
    const places = points.map((one) => [x(one.found), y(one.mean)]);
    const shapes = points.map((one, at) =>
      svg(
        "g",
        { "data-at": at },
        segment(places[at][0], y(one.mean - one.deviation), places[at][0], y(one.mean + one.deviation), "deviation"),
        svg("circle", { class: "found", cx: tenth(places[at][0]), cy: tenth(places[at][1]), r: 4 }),
      ),
    );
    layers.above.append(...shapes);
    explore(layers, box(area.left, area.top, area.width, area.height), "Suggestions, in the order of the trials", {
      count: points.length,
      find: (_, px, py) => nearestPlace(places, px, py),
      anchor: (at) => places[at],
      describe: (at) => predictionTip(points[at]),
    });
  };
  const name = `Predicted against found ${metric} of ${plural(points.length, "suggestion")}. The table below has the figures.`;
  return chart("predictions-chart", name, () => 380, paint);
};

const predictionsTable = (predictions) =>
  table(
    "Suggested and found",
    ["trial", "status", "basis", "predicted", "found", "found − predicted"],
    predictions.map((one) => [
      String(one.index),
      one.status,
      basisTexts[one.basis],
      predictedText(one),
      `${number(one.found)}${one.found !== null && !one.is_result ? " (no result)" : ""}`,
      one.mean === null || one.found === null ? "–" : number(one.found - one.mean),
    ]),
    ["number", "", "", "number", "number", "number"],
  );
