// The windows of the timeline: rows that are scrolled, time that is zoomed.
const FEWEST_ROWS = 5;
const MOST_ROWS = 200;
const SPAN_LEAST_PX = 5;

/** The windows of rows and of time: what is shown, and within what. */
const timelineViews = (count, whole) => {
  const rows = [0, Math.min(VISIBLE_ROWS, count)];
  return {
    rows: { shown: rows, initial: rows, limits: [0, count], sizes: [FEWEST_ROWS, MOST_ROWS], step: () => 1 },
    time: { shown: whole, initial: whole, limits: whole, sizes: [SHORTEST_MS, Infinity], step: (size) => size / 10 },
  };
};

/** Dragging over a span of the plot zooms in on it; the wheel with Ctrl zooms where the pointer is; a double click goes back. */
const zoomByPointer = ({ container, above }, area, view, change) => {
  const timeAt = (x) => view.shown[0] + clamp((x - area.left) / area.width, 0, 1) * (view.shown[1] - view.shown[0]);
  const isInside = (event) => {
    const [x, y] = placeIn(container, event);
    return x >= area.left && x <= area.right && y >= area.top && y <= area.bottom;
  };
  above.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || event.pointerType === "touch" || !isInside(event)) return;
    // The keys of the slider then go on from here.
    container.querySelector('[data-control="time"]').focus({ preventScroll: true });
    const from = placeIn(container, event)[0];
    const span = box(from, area.top, 0, area.height, { class: "span" });
    above.append(span);
    const ends = (now) =>
      [from, clamp(placeIn(container, now)[0], area.left, area.right)].sort((left, right) => left - right);
    const move = (now) => {
      const [left, right] = ends(now);
      span.setAttribute("x", tenth(left));
      span.setAttribute("width", tenth(right - left));
    };
    drag(container, event, move, (now) => {
      span.remove();
      const [left, right] = ends(now);
      if (now.type !== "pointerup" || right - left < SPAN_LEAST_PX) return;
      const middle = (timeAt(left) + timeAt(right)) / 2;
      const near = movedInterval([timeAt(left), timeAt(right)], 0, view.limits);
      change(zoomedInterval(near, 1, middle, view.limits, view.sizes));
    });
  });
  // The container, because the pointer is captured there; a property, because the container stays.
  container.ondblclick = (event) => isInside(event) && change(view.initial);
  const zoom = (event) => {
    if (!event.ctrlKey || !isInside(event)) return;
    event.preventDefault();
    const around = timeAt(placeIn(container, event)[0]);
    change(zoomedInterval(view.shown, 1.25 ** Math.sign(event.deltaY), around, view.limits, view.sizes));
  };
  above.addEventListener("wheel", zoom, { passive: false });
};

/** The sliders: for the rows where there are more than fit, and for the time. */
const timelineSliders = (layers, size, area, views, change) => {
  const { rows, time: span } = views;
  if (rows.limits[1] > VISIBLE_ROWS) {
    const track = { x: size.width - SLIDER_PX - 8, y: area.top, length: area.height, isVertical: true };
    const text = `${grouped(rows.shown[0] + 1)} to ${grouped(rows.shown[1])} of ${plural(rows.limits[1], "row")}`;
    layers.above.append(
      slider(layers.container, track, { id: "rows", name: "Trials shown", text }, rows, change("rows")),
    );
  }
  const track = { x: area.left, y: size.height - SLIDER_PX - 2, length: area.width, isVertical: false };
  const text = `${time(span.shown[0])} to ${time(span.shown[1])}`;
  layers.above.append(slider(layers.container, track, { id: "time", name: "Time shown", text }, span, change("time")));
};
