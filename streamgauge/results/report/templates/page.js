"use strict";
(() => {
  const font = getComputedStyle(document.body).fontFamily;
  const touch = matchMedia("(pointer: coarse)").matches;
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  // the colours of a figure are those of the page, by day and by night
  const scheme = () => {
    const axis = (of) => ({ [`${of}.gridcolor`]: colour("--grid"), [`${of}.linecolor`]: colour("--axis"), [`${of}.tickcolor`]: colour("--axis") });
    return { "font.color": colour("--chart"), ...axis("xaxis"), ...axis("yaxis") };
  };
  const LINE = 30; // px of a legend of one line
  const INK = "#1b2430"; // the darkest of the traces' colours, which is not seen on a dark page
  const night = matchMedia("(prefers-color-scheme: dark)");
  const grid = { zeroline: false, ticks: "outside", title: { standoff: 10, font: { size: 13 } }, automargin: true };
  const base = {
    font: { family: font, size: 13 },
    height: 320, margin: { l: 56, r: 16, t: 12, b: 48 },
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    legend: { orientation: "h", y: 1.02, yanchor: "bottom", x: 0, maxheight: 4000, tracegroupgap: 0 },
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
    const traces = night.matches ? JSON.parse(JSON.stringify(data).replaceAll(INK, colour("--ink"))) : data;
    for (const [path, value] of Object.entries(scheme())) {
      const [part, name] = path.split(".");
      full[part] = { ...full[part], [name]: value };
    }
    const { height } = full; // relayout changes that of the figure
    await Plotly.newPlot(place, traces, full, { responsive: true, displaylogo: false, displayModeBar: false });
    await fit(place, height);
    place.on("plotly_afterplot", () => fit(place, height)); // at another width the legend has other lines
    const title = place.closest("figure").querySelector("strong").textContent;
    const name = title.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "");
    save(place, "CSV", title, () => offer(`${name}.csv`, csv(place.closest("figure").querySelector("table"))));
    save(place, "SVG", title, () => Plotly.downloadImage(place, { format: "svg", filename: name, width: 900, height: place.layout.height + 80 }));
  };
  // a legend of many lines makes the chart higher, not its plot lower
  const fit = async (place, height) => {
    const legend = place.querySelector(".legend .bg")?.getBBox().height ?? 0;
    const wanted = Math.round(height + Math.max(0, legend - LINE));
    if (place.layout.height !== wanted) await Plotly.relayout(place, { height: wanted });
  };
  const save = (place, kind, title, act) => {
    const button = document.createElement("button");
    [button.className, button.textContent, button.type] = ["save", kind, "button"];
    button.setAttribute("aria-label", `${title}: download as ${kind}`);
    button.addEventListener("click", act);
    place.closest("figure").querySelector("figcaption").prepend(button);
  };
  const csv = (table) => [...table.rows].map((row) => [...row.cells].map((cell) => {
    const text = cell.textContent.trim().replaceAll("\u2060", "");
    const plain = /^[-+\u2212]?\d[\d\u202f.]*$/.test(text) ? text.replaceAll("\u202f", "").replace("\u2212", "-") : text;
    return /[",\n]/.test(plain) ? `"${plain.replaceAll('"', '""')}"` : plain;
  }).join(",")).join("\n") + "\n";
  const offer = (name, text) => {
    const link = document.createElement("a");
    [link.href, link.download] = [URL.createObjectURL(new Blob([text], { type: "text/csv" })), name];
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  };
  for (const button of document.querySelectorAll(".copy")) {
    button.addEventListener("click", () => {
      getSelection().selectAllChildren(button.parentElement.querySelector("code"));
      document.execCommand("copy"); // unlike navigator.clipboard, this also works in a page from a file or in a frame
      button.textContent = "copied";
    });
  }
  const charts = [...document.querySelectorAll(".chart")];
  // a phone shows what folds closed, until it is asked for by a touch or a link; what is not good stays open
  const phone = matchMedia("(max-width: 40rem)").matches;
  for (const fold of document.querySelectorAll(".fold")) {
    fold.open = !phone || fold.matches(".verdict.bad > *, .verdict.open > *");
    fold.addEventListener("toggle", () => fold.querySelectorAll(".chart").forEach((place) => place.data && Plotly.Plots.resize(place)));
  }
  const unfold = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const folds = [target?.closest(".fold"), target?.querySelector(":scope > .fold")];
    for (const fold of folds) if (fold) fold.open = true;
  };
  addEventListener("hashchange", unfold);
  unfold();
  // one after another, so that the page can be read meanwhile
  const ready = charts.length ? unpack(document.getElementById("plotly")) : Promise.resolve();
  charts.reduce((before, place) => before.then(() => draw(place)), ready).then(() => {
    document.body.dataset.charts = "drawn";
  });
  const resize = (size) => charts.forEach((place) => place.data && Plotly.relayout(place, size));
  addEventListener("beforeprint", () => resize({ width: 680, ...scheme() }));
  addEventListener("afterprint", () => resize({ width: null, autosize: true, ...scheme() }));
  night.addEventListener("change", () => resize(scheme()));
})();
