"use strict";
// Without this file everything on the page can be read; with it tables sort and curves tell their values.
for (const table of document.querySelectorAll("table")) {
  const heads = [...table.querySelectorAll("th")], body = table.tBodies[0];
  heads.forEach((head, column) => {
    head.dataset.sorts = "";
    head.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") !== "descending";
      const key = row => row.cells[column].dataset.value ?? "";
      const order = (a, b) => {
        const [x, y] = [key(a), key(b)], numbers = x !== "" && y !== "" && !isNaN(x) && !isNaN(y);
        return (numbers ? x - y : x.localeCompare(y)) * (down ? -1 : 1);
      };
      body.append(...[...body.rows].sort(order));
      heads.forEach(other => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
    });
  });
}
for (const figure of document.querySelectorAll("figure")) {
  const script = figure.querySelector("script");
  if (!script) continue;
  const plots = JSON.parse(script.textContent), svg = figure.querySelector("svg");
  const tip = document.createElement("div"), cross = document.createElementNS(svg.namespaceURI, "line");
  tip.className = "tip"; tip.hidden = true; figure.append(tip);
  cross.setAttribute("class", "cross"); svg.append(cross);
  const hide = () => { tip.hidden = true; cross.style.display = "none"; };
  const scaled = (value, log) => (log === "log" ? Math.log10(value) : value);
  hide();
  svg.addEventListener("pointerleave", hide);
  svg.addEventListener("pointermove", event => {
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    const plot = plots.find(({box: [x0, y0, x1, y1]}) => at.x >= x0 && at.x <= x1 && at.y >= y0 && at.y <= y1);
    if (!plot || !plot.series.length) return hide();
    const [x0, y0, x1, y1] = plot.box, [low, high] = plot.xlim.map(x => scaled(x, plot.log[0]));
    const place = x => x0 + (scaled(x, plot.log[0]) - low) / (high - low) * (x1 - x0);
    const near = plot.series.map(line => {
      let best = 0;
      line.x.forEach((x, i) => { if (Math.abs(place(x) - at.x) < Math.abs(place(line.x[best]) - at.x)) best = i; });
      return {...line, at: line.x[best], value: line.y[best]};
    });
    const nearest = near.reduce((a, b) => (Math.abs(place(b.at) - at.x) < Math.abs(place(a.at) - at.x) ? b : a));
    for (const [name, value] of Object.entries({x1: place(nearest.at), x2: place(nearest.at), y1: y0, y2: y1}))
      cross.setAttribute(name, value);
    cross.style.display = "";
    tip.replaceChildren(`${plot.unit}: ${+nearest.at.toPrecision(4)}`);
    for (const line of near.sort((a, b) => b.value - a.value)) {
      const entry = document.createElement("div"), dot = document.createElement("i");
      dot.style.background = line.color;
      entry.append(dot, `${line.label}: ${+line.value.toPrecision(4)}`);
      tip.append(entry);
    }
    tip.hidden = false;
    const inside = figure.getBoundingClientRect(), right = event.clientX - inside.left > inside.width / 2;
    tip.style.top = `${event.clientY - inside.top + 14}px`;
    tip.style.left = right ? "auto" : `${event.clientX - inside.left + 14}px`;
    tip.style.right = right ? `${inside.right - event.clientX + 14}px` : "auto";
  });
}
