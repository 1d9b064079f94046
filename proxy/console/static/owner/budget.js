// The budget map and the burn-down of the owner's page. Both have a table beside them that says the same.
import { data } from "../api.js";
import { draw } from "../chart.js";

const NEVER = -1;
const told = data("drawn");
const burnt = data("burnt");

const words = (percent) => (percent === NEVER ? "never asked" : `${percent} % spent`);

// names of keys are anybody's text: what the chart would read as markup of its own is taken from them
const plain = (text) => text.replace(/[{}|]/g, " ");

function drawMap(holder) {
  const { rows, columns, percent, steps } = told;
  const cells = [];
  percent.forEach((line, down) => line.forEach((share, across) => {
    if (share !== NEVER) cells.push([across, down, share]);
  }));
  const height = Math.min(900, Math.max(220, 130 + 24 * rows.length));
  holder.style.height = `${height}px`;
  const few = rows.length * columns.length <= 600;
  const pieces = steps.map((step, place) => ({
    min: step.least, ...(place + 1 < steps.length ? { max: steps[place + 1].least - 1 } : {}), color: step.fill,
  }));
  const across = columns.length > 20, down = rows.length > 30;
  const short = (name) => (name.length > 22 ? `${name.slice(0, 20)}…` : name);
  const { chart } = draw(holder, ({ ink, line, quiet }) => { const narrow = holder.clientWidth < 560; return {
    grid: { left: 8, right: down ? 34 : 12, top: 12, bottom: across ? 44 : 12, containLabel: true },
    tooltip: { formatter: ({ value }) => `${plain(rows[value[1]])}, ${plain(columns[value[0]])}\n${words(value[2])}` },
    xAxis: { type: "category", data: columns, axisLabel: { color: ink, formatter: short, rotate: columns.length > 8 || narrow ? 60 : 0 }, axisLine: { lineStyle: { color: line } }, axisTick: { show: false } },
    yAxis: { type: "category", data: rows, inverse: true, axisLabel: { color: ink, formatter: short }, axisLine: { lineStyle: { color: line } }, axisTick: { show: false } },
    visualMap: { show: false, type: "piecewise", pieces, dimension: 2 },
    dataZoom: [
      ...(across ? [{ type: "inside", xAxisIndex: 0, zoomOnMouseWheel: "ctrl" }, { type: "slider", xAxisIndex: 0, height: 16, bottom: 8, textStyle: { color: quiet } }] : []),
      ...(down ? [{ type: "inside", yAxisIndex: 0, zoomOnMouseWheel: "ctrl", moveOnMouseWheel: false }, { type: "slider", yAxisIndex: 0, width: 16, right: 6, textStyle: { color: quiet } }] : []),
    ],
    series: [{
      type: "heatmap", data: cells, itemStyle: { borderColor: line, borderWidth: few ? 1 : 0 },
      label: { show: few && !narrow, formatter: ({ value }) => `${value[2]}` },
      progressive: 0,
    }],
  }; }, { label: `${told.title}: a map of percentages spent; the table below has the same` });
  chart.on("finished", () => performance.mark("map-drawn")); // for deploy/console/stopwatch.py
  const cell = document.getElementById("cell");
  chart.on("click", ({ value }) => {
    cell.textContent = `${rows[value[1]]}, ${columns[value[0]]}: ${words(value[2])}.`;
  });
}

function drawBurn(holder) {
  const chosen = () => document.querySelector('input[name="of"]:checked')?.value ?? "group";
  const { redraw } = draw(holder, ({ ink, line, accent, quiet }) => ({
    grid: { left: 8, right: 16, top: 64, bottom: 12, containLabel: true },
    legend: { type: "scroll", top: 0, textStyle: { color: ink }, formatter: plain },
    tooltip: { trigger: "axis", valueFormatter: (value) => Number(value).toFixed(4) },
    xAxis: { type: "time", axisLabel: { color: ink, hideOverlap: true }, axisLine: { lineStyle: { color: line } } },
    yAxis: { type: "value", min: 0, name: "epsilon left", nameTextStyle: { color: quiet, align: "left" }, axisLabel: { color: ink }, splitLine: { lineStyle: { color: line } } },
    series: burnt.lines.filter((one) => one[chosen()]).map((one, place) => ({
      name: one.name, type: "line", step: "end", showSymbol: one.at.length < 40, symbolSize: 5,
      lineStyle: place === 0 ? { width: 3 } : { type: ["solid", "dashed", "dotted"][place % 3], width: 2 },
      ...(place === 0 ? { color: accent } : {}),
      data: one.at.map((at, number) => [at, one[chosen()][number]]),
      ...(place === 0 && burnt.windows.length ? { markLine: { symbol: "none", label: { formatter: "window", color: quiet }, lineStyle: { color: quiet }, data: burnt.windows.map((at) => ({ xAxis: at })) } } : {}),
    })),
  }), { label: "What is left of each cap over time; the table below has the newest figures" });
  for (const button of document.querySelectorAll('input[name="of"]')) button.addEventListener("change", redraw);
}

const map = document.getElementById("map");
// behind the first paint: ten thousand groups take half a second to draw, and the page is there before
if (map && told.rows) requestAnimationFrame(() => setTimeout(() => drawMap(map)));
const burn = document.getElementById("burn");
if (burn) drawBurn(burn);
for (const select of document.querySelectorAll("#choose select")) {
  select.addEventListener("change", () => select.form.requestSubmit());
}
