"use strict";
(() => {
  const charts = JSON.parse(document.getElementById("report-charts").textContent);
  const plots = [...document.querySelectorAll(".plot")];
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const wide = matchMedia("(min-width: 68rem)");
  const touch = matchMedia("(pointer: coarse)");
  const LIGHT = { ink: "#1f2328", quiet: "#59636e", faint: "#a3acb5", grid: "#e3e7eb", ground: "#ffffff", band: "2e" };
  const DARK = { ink: "#e4e8ec", quiet: "#9da7b3", faint: "#6b7580", grid: "#2b3138", ground: "#1c2128", band: "40" };
  const PRINT_SIZE = { width: 660, height: 320 }; // pixels that fit a sheet of A4 or Letter

  // Plotly reads a little HTML in every text; ours is plain.
  const plain = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");

  function hover(series) {
    if (!series.low) return { hovertemplate: "%{y:,.5~g}" };
    return {
      customdata: series.low.map((low, i) => (low === null || series.high[i] === null ? null : [low, series.high[i]])),
      hovertemplate: series.low.map((low, i) =>
        low === null || series.high[i] === null
          ? "%{y:,.5~g}"
          : "%{y:,.5~g} [%{customdata[0]:,.5~g}, %{customdata[1]:,.5~g}]"),
    };
  }

  function band(series, chart, floor, theme) {
    const kept = series.x.map((_, i) => i).filter((i) =>
      series.low[i] !== null && series.high[i] !== null && !(chart.logX && series.x[i] <= 0));
    const back = [...kept].reverse();
    return {
      type: "scatter",
      mode: "lines",
      x: [...kept, ...back].map((i) => series.x[i]),
      // A band may reach below zero, where a logarithmic axis has no place: it is cut at the lowest curve.
      y: [...kept.map((i) => series.high[i]), ...back.map((i) => series.low[i])].map((y) => Math.max(y, floor)),
      fill: "toself",
      fillcolor: series.colour + theme.band,
      line: { width: 0 },
      hoverinfo: "skip",
      showlegend: false,
      legendgroup: plain(series.name),
    };
  }

  function curve(series) {
    return {
      type: "scatter",
      mode: series.x.length === 1 ? "markers" : series.symbol ? "lines+markers" : "lines",
      name: plain(series.name),
      legendgroup: plain(series.name),
      x: series.x,
      y: series.y,
      line: { color: series.colour, width: 2.2, dash: series.dash },
      marker: { color: series.colour, size: 8, symbol: series.symbol || "circle", maxdisplayed: 12 },
      ...hover(series),
    };
  }

  function bar(series, theme) {
    const away = (ends, sign) => ends.map((end, i) => (end === null ? 0 : Math.max(0, sign * (end - series.y[i]))));
    return {
      type: "bar",
      name: plain(series.name),
      legendgroup: plain(series.name),
      x: series.x.map((place) => (typeof place === "string" ? plain(place) : place)),
      y: series.y,
      marker: { color: series.colour, pattern: { shape: series.hatch, fgcolor: theme.ground, bgcolor: series.colour } },
      ...(series.low && {
        error_y: {
          type: "data",
          symmetric: false,
          array: away(series.high, 1),
          arrayminus: away(series.low, -1),
          color: theme.ink,
          thickness: 1.3,
          width: 4,
        },
      }),
      ...hover(series),
    };
  }

  function traces(chart, theme) {
    if (chart.bars) return chart.series.map((series) => bar(series, theme));
    const heights = chart.series.flatMap((series) => series.y).filter((y) => y > 0);
    const floor = chart.logY ? heights.reduce((a, b) => Math.min(a, b), Infinity) : -Infinity;
    // Bands first, so that no band covers a curve.
    return [
      ...chart.series.filter((series) => series.low).map((series) => band(series, chart, floor, theme)),
      ...chart.series.map(curve),
    ];
  }

  function layout(chart, theme, size) {
    const axis = (title, log) => ({
      title: { text: plain(title), standoff: 10, font: { size: 13 } },
      type: log ? "log" : "linear",
      gridcolor: theme.grid,
      linecolor: theme.quiet,
      zeroline: false,
      automargin: true,
      separatethousands: true,
      exponentformat: log ? "power" : "none",
      ...(log && { nticks: 6 }), // labels between powers of ten appear only where there is room
    });
    return {
      autosize: !size,
      ...size,
      uirevision: "kept", // a new theme or size keeps what the reader hid or zoomed
      font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: theme.ink },
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      margin: { l: 56, r: 12, t: 28, b: 48 },
      hovermode: "x unified",
      hoverlabel: { bgcolor: theme.ground, bordercolor: theme.grid, font: { color: theme.ink, size: 12 } },
      dragmode: touch.matches ? false : "zoom", // on a touch screen, dragging scrolls the page
      modebar: { bgcolor: "rgba(0,0,0,0)", color: theme.faint, activecolor: theme.ink },
      showlegend: !chart.bars || chart.bars.grouped, // else the names stand under their bars
      legend: { orientation: "h", x: 0, xanchor: "left", yref: "container", y: 0, yanchor: "bottom" },
      xaxis: {
        ...axis(chart.x, chart.logX && !chart.bars),
        unifiedhovertitle: { text: `${plain(chart.x)} %{x}` },
        ...(chart.bars?.categories && {
          type: "category",
          categoryarray: chart.bars.categories.map(plain),
          dtick: 1, // every category is named
          showgrid: false,
        }),
      },
      yaxis: axis(chart.y, chart.logY),
      barmode: chart.bars && !chart.bars.grouped ? "overlay" : "group",
      bargap: chart.bars?.categories ? 0.25 : 0.06,
      shapes: chart.level ? [level(chart.level, theme)] : [],
      annotations: chart.level ? [levelName(chart.level, chart, theme)] : [],
    };
  }

  const level = ({ height }, theme) => ({
    type: "line",
    xref: "paper",
    x0: 0,
    x1: 1,
    y0: height,
    y1: height,
    line: { color: theme.ink, width: 1.4, dash: "dash" },
  });

  // Not the label of the line, which is cut off where the line is at the top of the chart.
  const levelName = ({ name, height }, chart, theme) => ({
    text: plain(name),
    xref: "paper",
    x: 1,
    xanchor: "right",
    y: chart.logY ? Math.log10(height) : height,
    yanchor: "bottom",
    showarrow: false,
    font: { color: theme.ink, size: 12 },
  });

  const CONFIG = {
    responsive: true,
    displaylogo: false,
    modeBarButtons: [["toImage", "zoomIn2d", "zoomOut2d", "pan2d", "resetScale2d"]],
  };

  function draw(plot, printing) {
    const chart = charts[plot.dataset.chart];
    const theme = dark.matches && !printing ? DARK : LIGHT;
    return Plotly.react(plot, traces(chart, theme), layout(chart, theme, printing && PRINT_SIZE), CONFIG);
  }

  async function drawAll() {
    for (const plot of plots) {
      await draw(plot, false);
      await new Promise((rest) => setTimeout(rest)); // the page stays responsive between charts
    }
  }

  dark.addEventListener("change", () => plots.forEach((plot) => draw(plot, false)));
  addEventListener("beforeprint", () => plots.forEach((plot) => draw(plot, true)));
  addEventListener("afterprint", () => plots.forEach((plot) => draw(plot, false)));

  const contents = document.querySelector(".contents details");
  const fold = () => { contents.open = wide.matches; };
  wide.addEventListener("change", fold);
  fold();
  // After a jump on a small screen the open list would cover what was jumped to.
  contents.addEventListener("click", (event) => { if (event.target.closest("a") && !wide.matches) contents.open = false; });

  const links = new Map([...contents.querySelectorAll("ol > li > a")].map((link) => [link.hash.slice(1), link]));
  const watcher = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      links.get(target.id).setAttribute("aria-current", String(isIntersecting));
    }
  }, { rootMargin: "-20% 0px -70% 0px" });
  for (const section of document.querySelectorAll(".part")) watcher.observe(section);

  drawAll();
})();
