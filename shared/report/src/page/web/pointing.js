// What the pointer and keys do in a chart: drags, controls, and a tooltip for one datum after another.
const EXPLORE_STEPS = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, PageDown: 10, PageUp: -10 };

/** Calls `move` while the pointer is held down, and `end` when it is let go. The container stays when a chart is drawn again. */
const drag = (container, event, move, end = () => {}) => {
  event.preventDefault();
  hideTooltip();
  const listening = new AbortController();
  const stop = (last) => {
    listening.abort();
    end(last);
  };
  container.setPointerCapture(event.pointerId);
  container.addEventListener("pointermove", move, { signal: listening.signal });
  for (const kind of ["pointerup", "pointercancel"])
    container.addEventListener(kind, stop, { signal: listening.signal });
};

/** The pointer's place in the chart. */
const placeIn = (container, event) => {
  const { left, top } = container.getBoundingClientRect();
  return [event.clientX - left, event.clientY - top];
};

/** Something of a chart that keys work on. `id` is its name while the chart is drawn again and again. */
const control = (shape, id, name, attributes, onKey) => {
  const all = { "data-control": id, class: "control", role: "slider", tabindex: 0, "aria-label": name, ...attributes };
  return filled(
    shape,
    {
      ...all,
      keydown: (event) => {
        if (event.ctrlKey || event.metaKey || event.altKey || !onKey(event.key)) return;
        event.preventDefault();
      },
    },
    [],
  );
};

/**
 * Shows a tooltip for one datum of a chart: under the pointer, or by arrow keys one after another. `find` gives the place
 * of the datum under the pointer, `anchor` where a datum lies, and `describe` its tooltip. The datum's shape is stressed: a
 * `copy` of it that is drawn on top, or the one that has its place as `data-at`. Keys pass over data that `isLeftOut`.
 */
const explore = ({ container, above }, plot, name, data) => {
  const { count, find, anchor, describe, copy, isLeftOut = () => false } = data;
  const hint = svg("g", { class: "stressed" });
  let current = 0;
  let isByKey = false;
  const stress = (at) => {
    hint.replaceChildren(...(copy && at !== undefined ? [copy(at)] : []));
    above.querySelector(".pointed")?.classList.remove("pointed");
    above.querySelector(`[data-at="${at}"]`)?.classList.add("pointed");
  };
  const leave = () => {
    isByKey = false;
    stress();
    hideTooltip();
  };
  const pointerLeaves = () => {
    if (!isByKey) stress();
    hidePointed();
  };
  const show = (at, place, byKey) => {
    isByKey = byKey;
    stress(at);
    const content = describe(at);
    showTooltip(content, place, byKey);
    return tipText(content);
  };
  const step = (by) => {
    let next = clamp(current + by, 0, count - 1);
    while (next >= 0 && next < count && isLeftOut(next)) next += by > 0 ? 1 : -1;
    if (next < 0 || next >= count) return;
    current = next;
    const place = () => {
      const { left, top } = container.getBoundingClientRect();
      const [x, y] = anchor(current);
      return [left + x, top + y];
    };
    plot.setAttribute("aria-valuetext", show(current, place, true));
    plot.setAttribute("aria-valuenow", current + 1);
  };
  const onKey = (key) => {
    const by = { ...EXPLORE_STEPS, Home: -count, End: count }[key];
    if (by !== undefined) step(by);
    if (key === "Escape") leave();
    return by !== undefined || key === "Escape";
  };
  control(plot, "plot", name, { "aria-valuemin": 1, "aria-valuemax": count, "aria-valuenow": 1 }, onKey);
  plot.classList.add("plot");
  plot.addEventListener("focus", () => plot.matches(":focus-visible") && step(0));
  plot.addEventListener("blur", leave);
  // A click: a finger does not hover.
  for (const kind of ["pointermove", "click"])
    above.addEventListener(kind, (event) => {
      const at = event.buttons === 0 ? find(event, ...placeIn(container, event)) : undefined;
      if (at === undefined) pointerLeaves();
      else show(at, () => [event.clientX, event.clientY], false);
    });
  above.addEventListener("pointerleave", pointerLeaves);
  above.prepend(plot);
  above.append(hint);
};

/** For `find`: the place that the shape under the pointer, or a group around it, has as `data-at`. */
const dataAt = (event) => {
  const marked = event.target.closest("[data-at]");
  return marked ? Number(marked.dataset.at) : undefined;
};
