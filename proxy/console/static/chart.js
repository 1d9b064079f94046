// Charts: Apache ECharts on a canvas, in the page's own colours, redrawn when the theme or the width changes. Tooltips
// are drawn (richText), since HTML ones would carry style attributes, which the page's policy forbids.
import * as echarts from "./vendor/echarts.esm.min.mjs";

export const colour = (name) => {
  const probe = document.createElement("span");
  probe.className = `probe-${name}`;
  probe.hidden = true;
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
};

// `options` is a function, as its colours change with the theme. `label` is what a screen reader says of the chart;
// have a table of the same beside it.
export function draw(holder, options, { label } = {}) {
  holder.setAttribute("role", "img");
  if (label) holder.setAttribute("aria-label", label);
  const chart = echarts.init(holder, null, { renderer: "canvas" });
  const show = () => {
    const ink = colour("ink"), line = colour("line");
    const base = {
      animation: false,
      textStyle: { color: ink, fontFamily: getComputedStyle(document.body).fontFamily },
      tooltip: { renderMode: "richText", confine: true, backgroundColor: colour("raised"), borderColor: line, textStyle: { color: ink } },
      aria: { enabled: false },
    };
    const own = options({ ink, line, accent: colour("accent"), soft: colour("soft"), raised: colour("raised"), quiet: colour("quiet"), good: colour("good"), warn: colour("warn"), bad: colour("bad") });
    chart.setOption({ ...base, ...own, tooltip: { ...base.tooltip, ...(own.tooltip ?? {}) } }, true);
  };
  show();
  new ResizeObserver(() => chart.resize()).observe(holder);
  document.addEventListener("keyhole-theme", show);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);
  return { chart, redraw: show };
}
