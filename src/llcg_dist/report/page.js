"use strict";
// Without this file everything on the page can be read; with it tables sort, curves tell their values, a click on a
// legend hides a line, and methods can be filtered.
const onPress = (element, action) => {
  element.addEventListener("click", action);
  element.addEventListener("keydown", event => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    action();
  });
};
for (const table of document.querySelectorAll("table")) {
  const heads = [...table.querySelectorAll("th")], body = table.tBodies[0];
  heads.forEach((head, column) => {
    head.dataset.sorts = "";
    head.tabIndex = 0;
    onPress(head, () => {
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
const hiddenMethods = new Set(), hiddenLines = new Map();
const methodsOf = element => JSON.parse(element.closest("section").dataset.methods);
const isHidden = (figure, series) =>
  hiddenMethods.has(methodsOf(figure)[series]) || Boolean(hiddenLines.get(figure)?.has(series));
function show() {
  for (const element of document.querySelectorAll("tr[data-method], li[data-method], figure[data-method]"))
    element.hidden = hiddenMethods.has(element.dataset.method);
  for (const figure of document.querySelectorAll("figure")) {
    const methods = methodsOf(figure);
    for (const drawn of figure.querySelectorAll("[data-series]"))
      drawn.style.display = isHidden(figure, +drawn.dataset.series) ? "none" : "";
    for (const entry of figure.querySelectorAll("[data-legend]")) {
      entry.style.display = hiddenMethods.has(methods[entry.dataset.legend]) ? "none" : "";
      entry.classList.toggle("off", Boolean(hiddenLines.get(figure)?.has(+entry.dataset.legend)));
    }
  }
}
for (const entry of document.querySelectorAll("[data-legend]")) {
  const toggle = () => {
    const figure = entry.closest("figure"), series = +entry.dataset.legend;
    if (!hiddenLines.has(figure)) hiddenLines.set(figure, new Set());
    const lines = hiddenLines.get(figure);
    if (!lines.delete(series)) lines.add(series);
    show();
  };
  onPress(entry, toggle);
  if (entry.querySelector("text")) {
    entry.setAttribute("tabindex", "0");
    entry.setAttribute("role", "button");
  }
}
const allMethods = [...new Set([...document.querySelectorAll("section")].flatMap(methodsOf))];
if (allMethods.length > 1) {
  const filter = document.createElement("fieldset"), title = document.createElement("legend");
  filter.className = "filter"; title.textContent = "methods"; filter.append(title);
  for (const method of allMethods) {
    const label = document.createElement("label"), box = document.createElement("input");
    box.type = "checkbox"; box.checked = true; box.value = method;
    box.addEventListener("change", () => { hiddenMethods[box.checked ? "delete" : "add"](method); show(); });
    label.append(box, method);
    filter.append(label);
  }
  document.querySelector("section").before(filter);
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
    const shown = plot ? plot.series.filter(line => !isHidden(figure, line.series)) : [];
    if (!shown.length) return hide();
    const [x0, y0, x1, y1] = plot.box, [low, high] = plot.xlim.map(x => scaled(x, plot.log[0]));
    const place = x => x0 + (scaled(x, plot.log[0]) - low) / (high - low) * (x1 - x0);
    const near = shown.map(line => {
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
