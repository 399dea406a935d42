// Predicts bags with a model of miplc in onnxruntime-web.
import * as ort from "../node_modules/onnxruntime-web/dist/ort.wasm.bundle.min.mjs";

ort.env.wasm.numThreads = 1; // more need a page that is isolated from other origins

export async function open(url) {
  const reply = await fetch(url);
  if (!reply.ok) throw new Error(`${url}: ${reply.status} ${reply.statusText}`);
  return ort.InferenceSession.create(await reply.arrayBuffer(), { executionProviders: ["wasm"] });
}

// instanceShape returns the shape of an instance: [features], or [channels, height, width].
export const instanceShape = (model) => model.inputMetadata[0].shape.slice(1);

const product = (list) => list.reduce((a, b) => a * b, 1);

// predict takes a bag: a list of instances, each a list of raw features or the numbers of an image in
// row-major order.
export async function predict(model, bag) {
  if (!Array.isArray(bag) || bag.length === 0) throw new Error("The bag has no instances.");
  const shape = instanceShape(model), size = product(shape);
  const values = new Float32Array(bag.length * size);
  bag.forEach((instance, i) => {
    if (instance.length !== size) throw new Error(`Instance ${i + 1} has ${instance.length} numbers; the model needs ${size}.`);
    values.set(instance, i * size);
  });
  const instances = new ort.Tensor("float32", values, [bag.length, ...shape]);
  const { probabilities, attention } = await model.run({ instances });
  const p = probabilities.data;
  return { label: p.indexOf(Math.max(...p)), probabilities: p, attention: attention.data };
}

// pixels returns an image file as an instance [3, height, width]: red, green and blue from 0 to 1. The
// browser resizes images of other sizes, with slightly other results than miplc.
export async function pixels(file, [, height, width]) {
  const image = await createImageBitmap(file, { resizeWidth: width, resizeHeight: height, resizeQuality: "high", colorSpaceConversion: "none" });
  const canvas = new OffscreenCanvas(width, height).getContext("2d");
  canvas.fillStyle = "white"; // behind transparent pixels, as in miplc
  canvas.fillRect(0, 0, width, height);
  canvas.drawImage(image, 0, 0);
  const { data } = canvas.getImageData(0, 0, width, height), plane = width * height;
  return Float32Array.from({ length: 3 * plane }, (_, i) => data[4 * (i % plane) + Math.floor(i / plane)] / 255);
}

export function difference(made, want) {
  let worst = 0;
  for (const name of ["probabilities", "attention"]) {
    if (made[name].length !== want[name].length) return Infinity;
    made[name].forEach((value, i) => { worst = Math.max(worst, Math.abs(value - want[name][i])); });
  }
  return worst;
}
