"use strict";
(() => {
  const font = getComputedStyle(document.body).fontFamily;
  const touch = matchMedia("(pointer: coarse)").matches;
  const grid = { gridcolor: "#e6e9ee", linecolor: "#aab3c0", zeroline: false, ticks: "outside", tickcolor: "#aab3c0",
                 title: { standoff: 10, font: { size: 13 } }, automargin: true };
  const base = {
    font: { family: font, size: 13, color: "#3a4553" },
    height: 320, margin: { l: 56, r: 16, t: 12, b: 48 },
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    legend: { orientation: "h", y: 1.02, yanchor: "bottom", x: 0 },
    hovermode: "closest", hoverlabel: { font: { family: font } },
    // a finger must scroll the page, not zoom the chart
    dragmode: touch ? false : "zoom",
  };
  const merge = (over, under) => {
    const result = { ...under, ...over };
    for (const key of Object.keys(under)) {
      if (over[key]?.constructor === Object && under[key]?.constructor === Object) result[key] = merge(over[key], under[key]);
    }
    return result;
  };
  const unpack = async (place) => {
    const bytes = Uint8Array.from(atob(place.textContent), (c) => c.charCodeAt(0));
    const plain = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    const script = document.createElement("script");
    script.text = await new Response(plain).text();
    document.head.append(script);
  };
  // a narrow screen has no room for every named tick
  const thin = (ticks) => ticks?.filter((_, i) => ticks.length < 6 || i % 2 === 0);
  const draw = async (place) => {
    const { data, layout } = JSON.parse(place.querySelector("script").textContent);
    const x = layout.xaxis;
    if (place.clientWidth < 500 && x.tickvals) [x.tickvals, x.ticktext] = [thin(x.tickvals), thin(x.ticktext)];
    const full = merge(layout, { ...base, xaxis: grid, yaxis: grid });
    await Plotly.newPlot(place, data, full, { responsive: true, displaylogo: false, displayModeBar: false });
  };
  const charts = [...document.querySelectorAll(".chart")];
  // one after another, so that the page can be read meanwhile
  charts.reduce((before, place) => before.then(() => draw(place)), unpack(document.getElementById("plotly"))).then(() => {
    document.body.dataset.charts = "drawn";
  });
  const resize = (size) => charts.forEach((place) => place.data && Plotly.relayout(place, size));
  addEventListener("beforeprint", () => resize({ width: 680 }));
  addEventListener("afterprint", () => resize({ width: null, autosize: true }));
})();
