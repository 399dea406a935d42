// Trains steps of a miplc model in the browser with onnxruntime-web, on the GPU through WebGPU or
// on the CPU through WebAssembly.
import * as ort from "../node_modules/onnxruntime-web/dist/ort.webgpu.bundle.min.mjs";

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

// open loads the files that `miplc build SPEC -o DIR --sample-steps 10` wrote to the folder base.
export async function open(base) {
  const [{ name, train_step: layout }, sample, model] = await Promise.all([
    json(`${base}/manifest.json`), json(`${base}/sample_steps.json`), bytes(`${base}/train_step.onnx`)]);
  const [initial, values] = await Promise.all([bytes(`${base}/${layout.initial.file}`), bytes(`${base}/${sample.file}`)]);
  return { name, layout, steps: sample.steps, model, initial: new Float32Array(initial), values };
}

// providers lists the execution providers of this browser, the fastest for large models first.
export async function providers() {
  return await navigator.gpu?.requestAdapter() ? ["webgpu", "wasm"] : ["wasm"];
}

// train runs the sample steps and calls report with the number of each. It returns their losses, and where the
// parameters were stored. On WebGPU the
// parameters, the state of the optimizer and the losses stay in GPU buffers; only the batches are
// copied to the GPU, and at the end the losses back.
export async function train({ layout, steps, model, initial, values }, provider, report) {
  const kept = ["loss", ...layout.state.map((name) => `new_${name}`)];
  const onGPU = provider === "webgpu";
  const session = await ort.InferenceSession.create(model, {
    executionProviders: [provider],
    preferredOutputLocation: Object.fromEntries(kept.map((name) => [name, onGPU ? "gpu-buffer" : "cpu"])),
  });
  const tensor = ({ type, shape, offset }) => {
    const count = shape.reduce((a, b) => a * b, 1);
    return new ort.Tensor(type, new types[type](values, offset, count), shape);
  };
  const state = {}; // the vectors of the optimizer start as zeros
  for (const name of layout.state) {
    const { shape } = layout.inputs.find((input) => input.name === name);
    state[name] = new ort.Tensor("float32", name === "params" ? initial.slice() : new Float32Array(initial.length), shape);
  }
  const losses = [];
  for (const [i, { inputs }] of steps.entries()) {
    report(i + 1);
    const batch = Object.entries(inputs).map(([name, t]) => [name, tensor(t)]);
    const out = await session.run({ ...state, ...Object.fromEntries(batch) }, kept);
    for (const name of layout.state) {
      state[name].dispose();
      state[name] = out[`new_${name}`];
    }
    losses.push(out.loss);
  }
  const { location } = state.params;
  const read = await Promise.all(losses.map((loss) => loss.getData(true)));
  Object.values(state).forEach((t) => t.dispose());
  await session.release();
  return { losses: read.map(([loss]) => loss), location };
}
