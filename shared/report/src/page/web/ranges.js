// Ranges on the axes of the parallel coordinates, by pointer and by keyboard.
const RANGE_PX = 16;
const EDGE_PX = 6;
const CLICK_PX = 3;

/** What a drag that begins at this share of the axis does: it moves the range, an end of it, or makes another one. */
const dragKind = (chosen, share, edge) => {
  if (!chosen) return "new";
  if (Math.abs(share - chosen[0]) < edge) return "from";
  if (Math.abs(share - chosen[1]) < edge) return "to";
  return share > chosen[0] && share < chosen[1] ? "move" : "new";
};

const draggedRange = (kind, chosen, from, to) => {
  if (kind === "new") return [Math.min(from, to), Math.max(from, to)];
  if (kind === "move") return movedInterval(chosen, to - from, [0, 1]);
  return resizedInterval(chosen, kind, to, [0, 1], [0, 1]);
};

const isWithin = (share, [low, high]) => share >= low - 1e-9 && share <= high + 1e-9;

const rangeText = (axis, chosen) => {
  if (!chosen) return "all values";
  if (axis.kind !== "category")
    return `from ${shown(axis.scale.value(chosen[0]))} to ${shown(axis.scale.value(chosen[1]))}`;
  const names = axis.scale.ticks.map(({ value }) => value).filter((name) => isWithin(axis.scale.place(name), chosen));
  return names.join(", ") || "no value";
};

/**
 * The control of one axis. `ranges` has the chosen range of each axis by its number; `change` is called after each change of it,
 * and with true after the last one of a drag.
 */
const axisControl = (container, { area, x, width }, axis, at, ranges, change) => {
  const hit = box(x - width / 2, area.top - 4, width, area.height + 8);
  const bar = box(x - Math.min(RANGE_PX, width) / 2, 0, Math.min(RANGE_PX, width), 0, { class: "range" });
  const show = () => {
    const chosen = ranges.get(at);
    bar.setAttribute("y", chosen ? tenth(area.y(chosen[1])) : 0);
    bar.setAttribute("height", chosen ? tenth(Math.max(1, (chosen[1] - chosen[0]) * area.height)) : 0);
    hit.setAttribute("aria-valuenow", chosen ? Math.round(50 * (chosen[0] + chosen[1])) : 50);
    hit.setAttribute("aria-valuetext", rangeText(axis, chosen));
  };
  const set = (chosen, isLast) => {
    if (chosen) ranges.set(at, chosen);
    else ranges.delete(at);
    show();
    change(isLast);
  };
  const onKey = (key) => {
    const isMeant = RANGE_KEYS.includes(key);
    const steps =
      axis.kind === "category" ? { step: axis.scale.size, first: axis.scale.size } : { step: 0.05, first: 0.5 };
    if (isMeant) set(rangeAfterKey(ranges.get(at), key, steps), true);
    return isMeant;
  };
  const shareOf = (event) => clamp((area.bottom - placeIn(container, event)[1]) / area.height, 0, 1);
  hit.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    const [before, from] = [ranges.get(at), shareOf(event)];
    const kind = dragKind(before, from, EDGE_PX / area.height);
    const isClick = (now) => Math.abs(shareOf(now) - from) * area.height < CLICK_PX;
    hit.focus({ preventScroll: true });
    drag(
      container,
      event,
      (now) => isClick(now) || set(draggedRange(kind, before, from, shareOf(now)), false),
      (now) => set(isClick(now) ? undefined : ranges.get(at), true),
    );
  });
  control(
    hit,
    `axis-${at}`,
    `Range of ${axis.name}`,
    { "aria-orientation": "vertical", "aria-valuemin": 0, "aria-valuemax": 100 },
    onKey,
  );
  show();
  return svg("g", { class: "screen" }, bar, hit);
};
