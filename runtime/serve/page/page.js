"use strict";
const at = (id) => document.getElementById(id);
const few = 400; // instances that are drawn
let models = [], shown = null;

async function ask(path, body) {
  const headers = at("token").value ? { Authorization: "Bearer " + at("token").value } : {};
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const answer = await fetch(path, body === undefined ? { headers } : { method: "POST", headers, body });
  const said = await answer.json();
  if (answer.status === 401) {
    at("token-label").hidden = false;
    throw new Error(headers.Authorization ? "This is not the token of this server." : "This server asks for a token.");
  }
  if (!answer.ok) throw new Error(said.error);
  return said;
}

// telling runs what a person asked for and says what went wrong.
const telling = (f) => async (event) => {
  event?.preventDefault();
  at("error").textContent = "";
  try { await f(); } catch (e) { at("error").textContent = e.message; }
};

const model = () => models.find((m) => m.name === at("model").value) ?? models[0];

async function list() {
  const before = at("model").value;
  const told = await ask("models");
  models = told.models;
  at("model").replaceChildren(...models.map((m) => new Option(m.name + (m.versions.length > 1 ? ", version " + m.versions.at(-1) : ""), m.name)));
  if (models.some((m) => m.name === before)) at("model").value = before;
  at("examples").hidden = told.bags === 0;
  at("number").max = told.bags;
  describe();
}

// cuts reports whether a model cuts an image into the instances of a bag.
const cuts = (m) => Boolean(m.generator) && m.generator !== "images";

function describe() {
  const { input_shape: shape, encoder, classes } = model(), cut = cuts(model());
  at("images-label").hidden = !encoder && !cut;
  at("random").hidden = Boolean(encoder);
  at("shape").textContent = (cut ? "A bag is an image file, which is cut into instances, or JSON: " : encoder ? `A bag is a list of image files, which are resized to ${shape[2]} × ${shape[1]} pixels, or JSON: ` : "A bag is JSON: ")
    + `{"instances": [[…], …]}, each instance ${shape.length > 1 ? "an image of shape " + shape.join(" × ") : "a list of " + shape[0] + " numbers"}. `
    + `Classes: ${classes.join(", ")}.`;
  const { findings = [] } = model();
  at("found").hidden = findings.length === 0;
  at("found").querySelector("summary").textContent = `The training found ${findings.length === 1 ? "a weakness" : findings.length + " weaknesses"} of this model`;
  at("found").querySelector("ul").replaceChildren(...findings.map((text) => Object.assign(document.createElement("li"), { textContent: text })));
}

const size = (shape) => shape.reduce((a, b) => a * b, 1);
const fill = (bag) => { at("bag").value = JSON.stringify(bag); at("images").value = ""; };

function random() {
  const shape = model().input_shape, n = 3 + Math.floor(Math.random() * 8);
  const value = () => +(shape.length > 1 ? Math.random() : Math.random() * 4 - 2).toFixed(3);
  fill({ instances: Array.from({ length: n }, () => Array.from({ length: size(shape) }, value)) });
}

// parse reads the JSON of a bag.
function parse(text) {
  if (!text.trim()) throw new Error("There is no bag: enter one as JSON, or choose a file.");
  try { return JSON.parse(text) ?? {}; } catch (e) { throw new Error("The bag is not JSON: " + e.message); }
}

// load returns a file as a data URL.
const load = (file) => new Promise((resolve, reject) => {
  const reader = new FileReader();
  reader.onload = () => resolve(reader.result);
  reader.onerror = () => reject(reader.error);
  reader.readAsDataURL(file);
});

// open shows the first bag of the data, or a random one, and its prediction. It does not replace what a person entered.
async function open() {
  await list();
  if (at("bag").value) return;
  if (!at("examples").hidden) fill(await ask("bags/1"));
  else if (!model().encoder) random();
  else return;
  await predict(false);
}

// predict shows the prediction of the bag, and moves to it if asked.
async function predict(move = true) {
  at("result").hidden = true;
  if (models.length === 0) await list();
  const m = model(), files = m.encoder || cuts(m) ? [...at("images").files] : [];
  const images = await Promise.all(files.map(load)), bag = files.length > 0 ? {} : parse(at("bag").value);
  const body = files.length > 0 ? { images: images.map((url) => url.slice(url.indexOf(",") + 1)) } : { instances: bag.instances };
  const p = await ask("predict?model=" + encodeURIComponent(m.name), JSON.stringify(body));
  shown = { shape: m.input_shape, instances: bag.instances, files, images, overall: p.attention, classes: p.class_attention, coords: bag.coords };
  at("class").replaceChildren(new Option("all classes", ""), ...m.classes.map((name, i) => new Option(name, i)));
  at("class").value = p.label;
  at("class-label").hidden = !shown.classes;
  at("result").hidden = false;
  const labels = p.labels ?? [p.label], names = labels.map((i) => m.classes[i]).join(", ") || "none";
  at("label").textContent = `Prediction: ${names}` + (bag.class === undefined ? "" : `; true: ${bag.class}`);
  at("probabilities").replaceChildren(...p.probabilities.map((v, i) => row(m.classes[i], v, labels.includes(i))));
  draw();
  if (!move) return;
  at("label").focus({ preventScroll: true });
  at("label").scrollIntoView({ block: "nearest" });
}

function element(name, text, properties) {
  const e = Object.assign(document.createElement(name), properties);
  if (text !== undefined) e.textContent = text;
  return e;
}

function row(name, v, best) {
  const tr = element("tr", undefined, { className: best ? "best" : "" }), bar = element("td");
  bar.append(element("meter", undefined, { value: v, ariaLabel: `probability of ${name}` }));
  tr.append(element("th", name, { scope: "row" }), bar, element("td", v.toFixed(4)));
  return tr;
}

// heat is the color of a share from 0 to 1, from dark violet to yellow.
const colors = [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]];
function heat(share) {
  const at = Math.max(0, Math.min(share, 1)) * (colors.length - 1), i = Math.min(Math.floor(at), colors.length - 2);
  return `rgb(${colors[i].map((c, k) => Math.round(c + (colors[i + 1][k] - c) * (at - i))).join(" ")})`;
}

// step is the smallest difference of two different values.
function step(values) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted.reduce((low, v, i) => (i > 0 && v > sorted[i - 1] ? Math.min(low, v - sorted[i - 1]) : low), Infinity);
}

// extent is the lowest and the highest value.
const extent = (v) => v.reduce(([low, high], x) => [Math.min(low, x), Math.max(high, x)], [Infinity, -Infinity]);

// shares are the positions of scores in their range, from 0 to 1; 1 if all are equal.
function shares(scores) {
  const [low, high] = extent(scores);
  return scores.map((v) => (low < high ? (v - low) / (high - low) : 1));
}

// range describes the range of scores, and says that they hardly differ.
function range(scores) {
  const [low, high] = extent(scores), most = Math.max(Math.abs(low), Math.abs(high));
  if (low === high) return `all ${low.toPrecision(4)}`;
  const flat = high - low <= 0.05 * most ? ` (flat: the scores differ by ${(100 * (high - low) / most).toPrecision(2)} % only)` : "";
  return `bars from ${low.toPrecision(4)} to ${high.toPrecision(4)}${flat}`;
}

// map draws the attention over the coordinates of the instances, y downwards.
function map() {
  const { coords, attention } = shown, canvas = at("map");
  canvas.hidden = !Array.isArray(coords) || coords.length !== attention.length;
  if (canvas.hidden) return;
  const xs = coords.map((c) => c[0]), ys = coords.map((c) => c[1]);
  const [left, right] = extent(xs), [top, bottom] = extent(ys), colored = shares(attention), span = Math.max(right - left, bottom - top);
  const side = Math.max(Math.min(step(xs), step(ys), span || 1), span / 512) || 1, unit = 800 / (span + side);
  canvas.width = Math.max(1, Math.round((right - left + side) * unit));
  canvas.height = Math.max(1, Math.round((bottom - top + side) * unit));
  canvas.ariaLabel = `attention over the coordinates, x ${left} to ${right}, y ${top} to ${bottom}`;
  const g = canvas.getContext("2d");
  const order = attention.map((_, i) => i).sort((a, b) => attention[a] - attention[b]);
  for (const i of order) {
    g.fillStyle = heat(colored[i]);
    g.fillRect(Math.round((xs[i] - left) * unit), Math.round((ys[i] - top) * unit), Math.ceil(side * unit), Math.ceil(side * unit));
  }
}

function draw() {
  shown.attention = shown.classes?.[at("class").value] ?? shown.overall;
  map();
  const { shape, instances, files, images, attention } = shown, bars = shares(attention);
  let order = attention.map((_, i) => i);
  if (at("sorted").checked) order.sort((a, b) => attention[b] - attention[a]);
  at("attention-title").textContent = `Attention of ${attention.length} instances, ${range(attention)}` + (order.length > few ? `, ${few} shown` : "");
  at("instances").replaceChildren(...order.slice(0, few).map((i) => {
    const li = element("li"), said = element("p");
    const score = attention[i] < 0.0001 ? attention[i].toPrecision(2) : attention[i].toFixed(4);
    said.append(element("span", `${i + 1}`), element("strong", score));
    if (images.length === attention.length) li.append(element("img", undefined, { src: images[i], alt: files[i].name, title: files[i].name }));
    else if (instances) li.append(picture(instances[i].flat(Infinity), shape, i)); // not of an image that was cut
    li.append(said,
      element("meter", undefined, { value: bars[i], ariaLabel: `attention of instance ${i + 1}` }));
    return li;
  }));
}

// picture draws an image instance as what it is, and features as a strip of shades.
// Images lie as [channels, height, width] or [height, width].
function picture(values, shape, i) {
  const image = shape.length > 1;
  const [c, h, w] = image ? [...(shape.length === 2 ? [1] : []), ...shape] : [1, 1, values.length];
  const low = Math.min(...values), span = Math.max(...values) - low || 1;
  const canvas = element("canvas", undefined, { width: w, height: h, role: "img", ariaLabel: `instance ${i + 1}` + (image ? "" : `: ${values.length} features as shades, from ${low} to ${low + span}`) });
  if (!image) canvas.style.height = "2rem";
  const g = canvas.getContext("2d"), pixels = g.createImageData(w, h);
  for (let at = 0; at < h * w; at++) {
    for (let rgb = 0; rgb < 3; rgb++) pixels.data[4 * at + rgb] = 255 * (values[(c >= 3 ? rgb : 0) * h * w + at] - low) / span;
    pixels.data[4 * at + 3] = 255;
  }
  g.putImageData(pixels, 0, 0);
  return canvas;
}

at("form").addEventListener("submit", telling(predict));
at("bag").addEventListener("keydown", (e) => { if (e.key === "Enter" && (e.ctrlKey || e.metaKey)) at("form").requestSubmit(); });
at("model").addEventListener("change", () => { describe(); at("result").hidden = true; });
at("token").addEventListener("change", telling(open));
at("token").addEventListener("keydown", (e) => { if (e.key === "Enter") { e.preventDefault(); at("bag").focus(); } });
at("random").addEventListener("click", telling(async () => { if (models.length === 0) await list(); random(); }));
at("show").addEventListener("click", telling(async () => { fill(await ask("bags/" + at("number").value)); await predict(); }));
at("file").addEventListener("change", telling(async () => { if (at("file").files.length) fill(parse(await at("file").files[0].text())); }));
at("sorted").addEventListener("change", draw);
at("class").addEventListener("change", draw);
telling(open)();
