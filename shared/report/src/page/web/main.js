// The sections in order; charts one by one, so that the page can be read and scrolled meanwhile.
const drawFile = () => {
  const made = section("file", "Sweep file");
  made.append(
    report.source === null
      ? make("p", { class: "muted" }, `The file's text was not available; it lies at ${report.file}.`)
      : make("pre", { tabindex: 0, "aria-label": "Sweep file" }, report.source),
  );
};

const drawFooter = () =>
  document
    .querySelector("footer")
    .append(
      make(
        "p",
        {},
        `spotsweep ${report.version} · made ${time(report.generated_ms)} · everything of this sweep lies under ${report.results} · times are UTC`,
      ),
    );

drawHead();
drawSets();
drawLeaderboard();
const waiting = [
  drawParallel(),
  drawCurves(),
  drawImportance(),
  drawSearch(),
  drawTimeline(),
  drawCost(),
].filter(Boolean);
drawFailures();
drawFile();
drawFooter();
followThePage(() => waiting.splice(0).forEach((draw) => draw()));
const next = () => {
  const draw = waiting.shift();
  if (draw) {
    draw();
    setTimeout(next);
  } else {
    // A test waits for this, or a program that prints the page.
    document.documentElement.dataset.ready = String(Math.round(performance.now()));
  }
};
setTimeout(next);
