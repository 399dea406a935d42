// Predicts bags with a model of miplc in onnxruntime-web.
import * as ort from "../node_modules/onnxruntime-web/dist/ort.wasm.bundle.min.mjs";

ort.env.wasm.numThreads = 1; // more need a page that is isolated from other origins

export async function open(url) {
  const reply = await fetch(url);
  if (!reply.ok) throw new Error(`${url}: ${reply.status} ${reply.statusText}`);
  return ort.InferenceSession.create(await reply.arrayBuffer(), { executionProviders: ["wasm"] });
}

// rows is a bag of signature "bag": a list of instances, lists of raw features.
export async function predict(model, rows) {
  if (!Array.isArray(rows) || rows.length === 0) throw new Error("the bag has no instances");
  const width = rows[0].length;
  if (rows.some((row) => row.length !== width)) throw new Error("the instances differ in length");
  const shape = [...model.inputMetadata[0].shape];
  shape[0] = rows.length;
  const instances = new ort.Tensor("float32", Float32Array.from(rows.flat()), shape);
  const { probabilities, attention } = await model.run({ instances });
  const p = probabilities.data;
  return { label: p.indexOf(Math.max(...p)), probabilities: p, attention: attention.data };
}

// tensors turns a list of bags with their predictions, as flat data, into rows.
export function tensors(list) {
  return list.map(({ instances, probabilities, attention }) => {
    const [n] = instances.shape;
    const width = instances.data.length / n;
    const rows = Array.from({ length: n }, (_, i) => instances.data.slice(i * width, (i + 1) * width));
    return { rows, probabilities: probabilities.data, attention: attention.data };
  });
}

export function difference(made, want) {
  let worst = 0;
  for (const name of ["probabilities", "attention"]) {
    if (made[name].length !== want[name].length) return Infinity;
    made[name].forEach((value, i) => { worst = Math.max(worst, Math.abs(value - want[name][i])); });
  }
  return worst;
}
