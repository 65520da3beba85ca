// The front end of kit.explore: labelled inputs, a picture, a sentence. Loaded as text by anywidget; needs no network.
//
// Table mode: `spec.table` holds every picture as indices into a pool of shapes (see picture_base.py for the shapes), so a step costs no round
// trip. Otherwise the kernel computes a picture after each `change`.

const STROKED = { tick: "M-.8,.05 -.25,.7 .85,-.65", cross: "M-.75,-.75 .75,.75M-.75,.75 .75,-.75" };
const FILLED = {
  square: "M-.8,-.8 .8,-.8 .8,.8 -.8,.8z",
  diamond: "M0,-1 1,0 0,1 -1,0z",
  triangle: "M0,-1 .9,.75 -.9,.75z",
  down: "M-.9,-.8 .9,-.8 0,.9z",
  left: "M.8,-.9 .8,.9 -.9,0z",
  right: "M-.8,-.9 -.8,.9 .9,0z",
};
const ROUND = { circle: 1, dot: 0.5, ring: 0.85 };
const RADIO_AT_MOST = 5;

const escaped = (text) => String(text).replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);
const pairs = (points) => points.flatMap((x, i) => (i % 2 ? [] : [[x, points[i + 1]]]));

function marks([, kind, points, size, style]) {
  if (kind in ROUND) {
    const r = size * ROUND[kind];
    const look = kind === "ring" ? `class="stroke ${style}" stroke-width="${size * 0.55}"` : `class="fill ${style}"`;
    return pairs(points).map(([x, y]) => `<circle cx="${x}" cy="${y}" r="${r}" ${look}/>`).join("");
  }
  const look = kind in FILLED ? `class="fill ${style}"` : `class="stroke ${style}" style="stroke-width:${Math.max(1.4, size * 0.36) / size}"`;
  const d = FILLED[kind] ?? STROKED[kind];
  return pairs(points).map(([x, y]) => `<path d="${d}" transform="translate(${x} ${y}) scale(${size})" ${look}/>`).join("");
}

const MARKUP = {
  rect: ([, x, y, w, h, style]) => `<rect x="${x}" y="${y}" width="${w}" height="${h}" class="fill ${style}"/>`,
  line: ([, x1, y1, x2, y2, style]) => `<line x1="${x1}" y1="${y1}" x2="${x2}" y2="${y2}" class="stroke ${style}"/>`,
  path: ([, points, style]) => `<polyline points="${points.join(" ")}" class="stroke curve ${style}"/>`,
  text: ([, x, y, words, anchor, style]) => `<text x="${x}" y="${y}" text-anchor="${anchor}" class="${style}">${escaped(words)}</text>`,
  // One path for all squares of a state: a thousand cells cost what one does.
  squares: ([, points, size, style]) =>
    `<path class="fill ${style}" d="${pairs(points).map(([x, y]) => `M${x},${y}h${size}v${size}h-${size}z`).join("")}"/>`,
  marks,
};

function element(name, properties = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

// JupyterLab moves between cells by the arrow keys, and takes them first unless the focused element itself says no.
const KEYS = { "data-lm-suppress-shortcuts": "true" };

// A slider over the values of one axis. The label is tied to the input; what the value means is told by aria-valuetext.
function slider(axis, at, id) {
  const input = element("input", { type: "range", id, min: 0, max: axis.texts.length - 1, step: 1, ...KEYS });
  const output = element("output", { for: id, "aria-live": "off" });
  const show = (index) => {
    input.value = index;
    input.setAttribute("aria-valuetext", axis.texts[index]);
    output.textContent = axis.texts[index];
  };
  show(at);
  const row = element("div", { class: "kit-axis" }, element("label", { for: id }, axis.label), input, output);
  return { row, show, input, index: () => Number(input.value) };
}

function radios(axis, at, id) {
  const inputs = axis.texts.map((_, i) => element("input", { type: "radio", name: id, value: i, ...KEYS }));
  const show = (index) => (inputs[index].checked = true);
  show(at);
  const choices = axis.texts.map((text, i) => element("label", {}, inputs[i], ` ${text}`));
  const row = element("fieldset", { class: "kit-axis" }, element("legend", {}, axis.label), element("div", { class: "kit-choices" }, ...choices));
  return { row, show, input: row, index: () => inputs.findIndex((input) => input.checked) };
}

function menu(axis, at, id) {
  const input = element("select", { id, ...KEYS }, ...axis.texts.map((text, i) => element("option", { value: i }, text)));
  const show = (index) => (input.value = String(index));
  show(at);
  const row = element("div", { class: "kit-axis" }, element("label", { for: id }, axis.label), input);
  return { row, show, input, index: () => Number(input.value) };
}

function control(axis, at, id) {
  if (axis.kind === "range") return slider(axis, at, id);
  return axis.texts.length <= RADIO_AT_MOST ? radios(axis, at, id) : menu(axis, at, id);
}

function canvas(width, height) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("role", "img");
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  return svg;
}

const drawShape = (shape) => MARKUP[shape[0]](shape);

function tableView(table, axes) {
  const svg = canvas(table.width, table.height);
  const markup = new Array(table.pool.length);
  const draw = (shape) => (markup[shape] ??= drawShape(table.pool[shape]));
  const show = (position) => {
    const frame = table.frames[position.reduce((sum, index, axis) => sum * axes[axis].texts.length + index, 0)];
    svg.innerHTML = frame.shapes.map(draw).join("");
    svg.setAttribute("aria-label", frame.alt);
    return { ...frame, title: table.titles[frame.title] };
  };
  return { node: svg, show };
}

// What the kernel drew last: shapes of a picture, or the PNG of a figure.
function kernelView(model) {
  const node = element("div", { class: "kit-drawn" });
  let url = null;
  const close = () => url && URL.revokeObjectURL(url);
  const show = () => {
    const drawn = model.get("drawn");
    close();
    if (drawn.shapes) {
      const svg = canvas(model.get("spec").width, drawn.height);
      svg.innerHTML = drawn.shapes.map(drawShape).join("");
      svg.setAttribute("aria-label", drawn.alt);
      node.replaceChildren(svg);
    } else {
      url = URL.createObjectURL(new Blob([model.get("image")], { type: "image/png" }));
      node.replaceChildren(element("img", { src: url, alt: drawn.alt }));
    }
    return drawn;
  };
  return { node, show, close };
}

function render({ model, el }) {
  const { axes, table } = model.get("spec");
  const panel = element("div", { class: "kit-panel", role: "group" });
  const title = element("span", { class: "kit-title" });
  const tag = element("span", { class: "kit-tag" });
  const sentence = element("p", { class: "kit-sentence", "aria-live": "polite" });
  const trouble = element("p", { class: "kit-trouble", role: "alert" });
  const name = `kit-${Math.random().toString(36).slice(2)}`; // a counter would start anew in each widget's copy of this module
  const controls = axes.map((axis, i) => control(axis, model.get("position")[i], `${name}-${i}`));
  const picture = table ? tableView(table, axes) : kernelView(model);
  const inputs = element("div", { class: "kit-inputs" }, ...controls.map((c) => c.row));
  panel.append(element("div", { class: "kit-head" }, title, tag), inputs, picture.node, trouble, sentence);
  el.append(panel);

  const here = () => controls.map((c) => c.index());
  const tell = (shown) => {
    title.textContent = shown.title;
    panel.setAttribute("aria-label", shown.title);
    tag.textContent = shown.tag;
    tag.title = model.get("spec").meaning[shown.evidence];
    if (sentence.textContent !== shown.sentence) sentence.textContent = shown.sentence;
  };
  const busy = (is) => panel.setAttribute("aria-busy", is);
  const redraw = () => {
    tell(picture.show(here()));
    busy(!table && String(here()) !== String(model.get("drawn").position));
  };
  const follow = () => {
    // Every step of the pointer: the values at once; the picture too, where it is at hand.
    controls.forEach((c) => c.show(c.index()));
    if (table) redraw();
  };
  const settle = () => {
    busy(!table && String(here()) !== String(model.get("drawn").position));
    model.set("position", here());
    model.save_changes();
  };
  const moved = () => {
    model.get("position").forEach((index, i) => controls[i].show(index));
    if (table) redraw();
  };
  const complain = () => {
    trouble.textContent = model.get("error");
    if (model.get("error")) busy(false);
  };

  inputs.addEventListener("input", follow);
  inputs.addEventListener("change", settle);
  model.on("change:position", moved);
  model.on("change:drawn", redraw);
  model.on("change:error", complain);
  redraw();
  complain();
  return () => {
    model.off("change:position", moved);
    model.off("change:drawn", redraw);
    model.off("change:error", complain);
    picture.close?.();
  };
}

export default { render };
