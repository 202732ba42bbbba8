// Draws the figures that the page describes as data; the descriptions are made in curves.py and plots.py.
(function () {
  "use strict";

  const HEIGHT = 250;
  const NEAR_PIXELS = 40;
  const figures = Object.fromEntries(
    JSON.parse(document.getElementById("figure-data").textContent).map((figure) => [figure.name, figure])
  );
  const number = new Intl.NumberFormat("en", { maximumSignificantDigits: 4 });

  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  // Learning rates are read as powers of ten, money never is.
  const tiny = (axis, value) => axis.before === "" && value !== 0 && Math.abs(value) < 1e-3;
  const digits = (axis, value) => (tiny(axis, value) ? Number(value.toPrecision(4)).toExponential() : number.format(value));
  const words = (axis, value) => (value == null ? "–" : axis.before + digits(axis, value) + axis.after);
  const tick = (axis, value) => (value == null ? "" : axis.before + digits(axis, value));
  const many = (series) => series.values.filter((value) => value != null).length > 40;
  const hasNames = (figure) => figure.names.length > 0;

  // Only the shape and the colour of a series; what they mean stands in its label.
  function look(series) {
    const dots = (name, size) => ({ stroke: color(name), paths: () => null, points: { show: true, size: size, fill: color(name) } });
    const looks = {
      line: () => ({ stroke: color("--one"), width: 2, points: { show: false } }),
      marked: () => ({ stroke: color("--two"), width: 2, points: { show: true, size: many(series) ? 4 : 8, fill: color("--two") } }),
      dashed: () => ({ stroke: color("--muted"), width: 1.5, dash: [6, 4], points: { show: false } }),
      faint: () => ({ stroke: color("--muted"), width: 1, dash: [1, 4], points: { show: false } }),
      limit: () => ({ stroke: color("--bad"), width: 1.5, dash: [10, 3], points: { show: false } }),
      other: () => dots("--muted", 5),
      front: () => dots("--one", 9),
      chosen: () => dots("--two", 14),
      bars: () => ({
        stroke: color("--one"), fill: color("--band"), width: 1, points: { show: false },
        paths: uPlot.paths.bars({ size: [0.9, 80] }),
      }),
    };
    return looks[series.look]();
  }

  // A single value, and the ends of a scale, do not sit on the frame.
  function range(axis, fromZero) {
    return (plot, low, high) => {
      if (low == null || high == null) return [0, 1];
      if (axis.logarithmic) return [low / 1.4, high * 1.4];
      const room = (high - low || Math.abs(high) || 1) * 0.06;
      return [fromZero ? 0 : low - room, high + room];
    };
  }

  function describe(figure, index) {
    const values = figure.series.map((series) => [series.label, series.values[index]]).filter(([, value]) => value != null);
    const parts = values.map(([label, value]) => (hasNames(figure) ? "" : label + " ") + words(figure.y_axis, value));
    const at = hasNames(figure) ? figure.names[index] + ": " : figure.x_axis.label + " ";
    const when = words(figure.x_axis, figure.x[index]);
    return hasNames(figure) ? at + parts.join(", ") + ", " + when : at + when + ": " + parts.join(", ");
  }

  function heightOf(figure, index) {
    const found = figure.series.find((series) => series.values[index] != null);
    return found ? found.values[index] : null;
  }

  function place(plot, figure, index) {
    const y = heightOf(figure, index);
    return y == null ? null : { left: plot.valToPos(figure.x[index], "x"), top: plot.valToPos(y, "y") };
  }

  function nearest(plot, figure) {
    let best = null;
    let least = NEAR_PIXELS;
    figure.x.forEach((x, index) => {
      const at = place(plot, figure, index);
      if (!at) return;
      const distance = Math.hypot(at.left - plot.cursor.left, at.top - plot.cursor.top);
      if (distance < least) [best, least] = [index, distance];
    });
    return best;
  }

  // The label of the point under the mouse, for figures whose points have names.
  function tips(figure) {
    const tip = document.createElement("div");
    tip.className = "tip";
    tip.hidden = true;
    return {
      hooks: {
        init: (plot) => plot.over.appendChild(tip),
        setCursor: (plot) => {
          const index = plot.cursor.left < 0 ? null : nearest(plot, figure);
          tip.hidden = index == null;
          if (index == null) return;
          const at = place(plot, figure, index);
          tip.textContent = describe(figure, index);
          const left = Math.min(at.left + 10, plot.over.clientWidth - tip.offsetWidth);
          tip.style.left = Math.max(0, left) + "px";
          const above = at.top - tip.offsetHeight - 10;
          tip.style.top = (above < 0 ? at.top + 12 : above) + "px";
        },
      },
    };
  }

  // The vertical axis has no label: title and legend say what it is, and a phone needs the width.
  function axisOf(axis, size, label) {
    const line = { stroke: color("--line"), width: 1 };
    return {
      label: label, stroke: color("--muted"), grid: line, ticks: line, size: size, labelSize: 20, labelFont: "13px system-ui",
      font: "12px system-ui", values: (plot, splits) => splits.map((value) => tick(axis, value)),
    };
  }

  function draw(box, figure) {
    const fromZero = figure.series.some((series) => series.look === "bars") || figure.name === "spend";
    const named = hasNames(figure);
    return new uPlot(
      {
        width: box.clientWidth,
        height: HEIGHT,
        scales: {
          x: { time: false, distr: figure.x_axis.logarithmic ? 3 : 1, range: range(figure.x_axis, false) },
          y: { distr: figure.y_axis.logarithmic ? 3 : 1, range: range(figure.y_axis, fromZero) },
        },
        axes: [axisOf(figure.x_axis, 36, figure.x_axis.label), axisOf(figure.y_axis, 58)],
        series: [
          { label: figure.x_axis.label, value: (plot, value) => words(figure.x_axis, value) },
          ...figure.series.map((series) => ({
            label: series.label, spanGaps: true, value: (plot, value) => words(figure.y_axis, value), ...look(series),
          })),
        ],
        legend: { live: !named },
        cursor: { points: { show: !named }, x: !named, y: false, drag: { x: !named, y: false } },
        plugins: named ? [tips(figure)] : [],
      },
      [figure.x, ...figure.series.map((series) => series.values)],
      box
    );
  }

  // Left and right move from value to value, and say it aloud.
  function readByKeys(box, figure, plotOf) {
    const reading = box.parentElement.querySelector(".reading");
    let index = -1;
    box.addEventListener("keydown", (event) => {
      const last = figure.x.length - 1;
      const next = { ArrowRight: index + 1, ArrowLeft: index - 1, Home: 0, End: last }[event.key];
      if (next === undefined) return;
      event.preventDefault();
      index = Math.max(0, Math.min(last, next));
      const plot = plotOf();
      plot.setCursor(place(plot, figure, index) || { left: -10, top: -10 });
      reading.textContent = describe(figure, index);
    });
    box.addEventListener("blur", () => {
      reading.textContent = "";
    });
  }

  const drawn = [];
  document.querySelectorAll(".plot").forEach((box) => {
    const figure = figures[box.dataset.figure];
    const entry = { box: box, figure: figure, plot: draw(box, figure) };
    drawn.push(entry);
    readByKeys(box, figure, () => entry.plot);
    new ResizeObserver(() => {
      if (box.clientWidth && box.clientWidth !== entry.plot.width) entry.plot.setSize({ width: box.clientWidth, height: HEIGHT });
    }).observe(box);
  });

  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    drawn.forEach((entry) => {
      entry.plot.destroy();
      entry.plot = draw(entry.box, entry.figure);
    });
  });
})();
