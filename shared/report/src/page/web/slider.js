// A slider for the window of a chart that is shown: its thumb is moved, its ends are resized, keys and the wheel do the same.
const SLIDER_PX = 14;
const THUMB_LEAST_PX = 16;

/** The thumb's pixels along a track, never too short to be hit. */
const thumbOf = ([from, to], [least, greatest], length) => {
  const pixel = (place) => ((place - least) / (greatest - least)) * length;
  const size = Math.max(THUMB_LEAST_PX, pixel(to) - pixel(from));
  const start = clamp((pixel(from) + pixel(to) - size) / 2, 0, length - size);
  return [start, start + size];
};

/** What the pointer takes hold of: an end of the thumb, or all of it. */
const partOfThumb = (place, [from, to]) => {
  const edge = Math.min(5, (to - from) / 4);
  if (Math.abs(place - from) <= edge) return "from";
  return Math.abs(place - to) <= edge ? "to" : "all";
};

/**
 * A slider along a track `{x, y, length, isVertical}`. `view` has what is shown, the limits, and the shortest and longest window;
 * `change` gets another window.
 */
const slider = (container, track, { id, name, text }, view, change) => {
  const { x, y, length, isVertical } = track;
  const oriented = (from, to, attributes) =>
    isVertical
      ? box(x, y + from, SLIDER_PX, to - from, attributes)
      : box(x + from, y, to - from, SLIDER_PX, attributes);
  const { shown, limits, sizes } = view;
  const thumb = thumbOf(shown, limits, length);
  const alongOf = (event) => placeIn(container, event)[isVertical ? 1 : 0] - (isVertical ? y : x);
  const valueOf = (along) => limits[0] + (along / length) * (limits[1] - limits[0]);
  const hit = oriented(0, length, {
    pointerdown: (event) => {
      if (event.button !== 0) return;
      hit.focus({ preventScroll: true });
      const from = alongOf(event);
      const part = partOfThumb(from, thumb);
      const isInside = from >= thumb[0] - 5 && from <= thumb[1] + 5;
      // A press next to the thumb moves the window there at once.
      const start = isInside ? shown : movedInterval(shown, valueOf(from) - (shown[0] + shown[1]) / 2, limits);
      if (!isInside) change(start);
      drag(container, event, (now) => {
        const by = valueOf(alongOf(now)) - valueOf(from);
        change(
          part === "all" || !isInside
            ? movedInterval(start, by, limits)
            : resizedInterval(start, part, start[part === "from" ? 0 : 1] + by, limits, sizes),
        );
      });
    },
    wheel: (event) => {
      const by = Math.sign(event.deltaY) * view.step(shown[1] - shown[0]);
      const next = movedInterval(shown, by, limits);
      // At an end, and over a slider that lies across the page, the wheel scrolls the page.
      if (!isVertical || next[0] === shown[0]) return;
      event.preventDefault();
      change(next);
    },
  });
  const values = {
    "aria-valuemin": limits[0],
    "aria-valuemax": limits[1],
    "aria-valuenow": shown[0],
    "aria-valuetext": text,
  };
  control(hit, id, name, { "aria-orientation": isVertical ? "vertical" : "horizontal", ...values }, (key) => {
    const next = windowAfterKey(shown, key, view);
    if (next) change(next);
    return next !== undefined;
  });
  const end = (place) =>
    oriented(clamp(place - 1.5, 0, length - 3), clamp(place + 1.5, 3, length), { class: "thumb-end" });
  return svg(
    "g",
    { class: `slider screen ${isVertical ? "vertical" : "horizontal"}` },
    oriented(0, length, { class: "track", rx: 3 }),
    oriented(...thumb, { class: "thumb", rx: 3 }),
    end(thumb[0]),
    end(thumb[1]),
    hit,
  );
};
