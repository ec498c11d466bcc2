// What a Bayesian search suggested, what was found, and how the best value improved.
const drawPredictions = (made) => {
  const { predictions, suggestions } = report.search;
  const points = predictions.filter((one) => one.is_result && ![one.mean, one.deviation, one.found].includes(null));
  const near = points.filter((one) => Math.abs(one.found - one.mean) <= 2 * one.deviation).length;
  const one = points.length > 0 ? predictionsChart(points) : undefined;
  const what = report.sets ? "parameter set" : "trial";
  made.append(
    one
      ? make(
          "p",
          {},
          `Each dot is a ${what} whose parameters a model of the results suggested. It shows the value that was found, and the predicted one with its standard deviation; on the dashed line both are equal. ${grouped(near)} of ${plural(points.length, "value")} lie within two standard deviations of the prediction.`,
        )
      : make(
          "p",
          { class: "muted" },
          "No suggestion of a model has a result yet: the first suggestions cover the space evenly.",
        ),
    one?.container ?? "",
    predictions.length < suggestions
      ? make("p", { class: "muted" }, `The first ${grouped(predictions.length)} of ${plural(suggestions, "suggestion")}.`)
      : "",
    predictions.length > 0 ? alternative("Suggestions as a table", () => predictionsTable(predictions)) : "",
  );
  return one;
};

const drawRegret = (made) => {
  const { best } = report.search;
  made.append(make("h3", {}, "Regret over time"));
  if (best.length === 0) {
    made.append(make("p", { class: "muted" }, "There is no best value yet."));
    return;
  }
  const state = { show: "best", by: "time" };
  const one = regretChart(state);
  made.append(
    make(
      "p",
      {},
      `The best ${report.sets ? "mean of a parameter set" : "value"} so far. Simple regret is its distance from the best value ${report.partial ? "found by now" : "of the whole sweep"}, because the true optimum is not known.`,
    ),
    regretControls(state, () => one.draw()),
    one.container,
    alternative("Improvements as a table", regretTable),
  );
  return one;
};

const drawSearch = () => {
  if (!report.search) return;
  const made = section("search", "Suggested and found");
  const drawn = [drawPredictions(made), drawRegret(made)].filter(Boolean);
  return () => drawn.forEach((one) => one.draw());
};
