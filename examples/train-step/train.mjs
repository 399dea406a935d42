// Trains steps of a miplc model in the browser with onnxruntime-web. base is
// the folder that `miplc build SPEC -o DIR --sample-steps 10` left; print gets
// one line a step.
import * as ort from "../node_modules/onnxruntime-web/dist/ort.wasm.bundle.min.mjs";

ort.env.wasm.numThreads = 1; // more need a page that is isolated from other origins

const types = { float32: Float32Array, int64: BigInt64Array };

async function bytes(url) {
  const reply = await fetch(url);
  if (!reply.ok) throw new Error(`${url}: ${reply.status} ${reply.statusText}`);
  return reply.arrayBuffer();
}

async function json(url) {
  return JSON.parse(new TextDecoder().decode(await bytes(url)));
}

export async function train(base, print) {
  const { train_step: layout } = await json(`${base}/manifest.json`);
  const sample = await json(`${base}/sample_steps.json`);
  const values = await bytes(`${base}/${sample.file}`);
  const step = await ort.InferenceSession.create(await bytes(`${base}/train_step.onnx`), { executionProviders: ["wasm"] });

  const tensor = ({ type, shape, offset }) => {
    const count = shape.reduce((a, b) => a * b, 1);
    return new ort.Tensor(type, new types[type](values, offset, count), shape);
  };
  const initial = new Float32Array(await bytes(`${base}/${layout.initial.file}`));
  const state = {}; // the parameters, and vectors of the optimizer, which start as zeros
  for (const name of layout.state) state[name] = new ort.Tensor("float32", name === "params" ? initial : new Float32Array(layout.size), [layout.size]);
  for (const [i, s] of sample.steps.entries()) {
    const feeds = { ...state };
    for (const [name, t] of Object.entries(s.inputs)) feeds[name] = tensor(t);
    const out = await step.run(feeds);
    for (const name of layout.state) state[name] = out[`new_${name}`];
    print(`step ${i + 1} loss ${out.loss.data[0].toFixed(8)}`);
  }
}
