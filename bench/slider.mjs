// What one frame of dragging a slider costs in JavaScript, over the whole vocabulary of the
// default model (49,152 logits): the filters, the 20 highest after each stage, the draw.
// The browser's own painting comes on top; the goal for both together is 50 ms.
import * as decode from "../ui/components/js/decode.js"

const VOCABULARY = 49152
const SHOWN = 20
const FRAMES = 200

// Logits in the shape of a language model's: a wide hill and a few high tokens. Always the same.
let state = 1
const uniform = () => (state = (state * 48271) % 2147483647) / 2147483647
const normal = () => Math.sqrt(-2 * Math.log(uniform())) * Math.cos(2 * Math.PI * uniform())
const logits = Float32Array.from({ length: VOCABULARY }, (_, id) =>
  id % 4999 === 7 ? 14 + 3 * uniform() : 2.5 * normal())

const timed = (repeats, work) => {
  const times = []
  for (let i = 0; i < repeats; i++) {
    const began = performance.now()
    work(i / repeats)
    times.push(performance.now() - began)
  }
  times.sort((a, b) => a - b)
  const at = (share) => times[Math.min(times.length - 1, Math.floor(share * times.length))]
  return { median: at(0.5), p95: at(0.95), max: times[times.length - 1] }
}

const order = ["temperature", "top_k", "top_p", "min_p"]
const prepared = decode.prepare(logits)
const top = Array.from(prepared.order.subarray(0, SHOWN))
const frame = (settings) => {
  const result = decode.applyStages(prepared, { order, ...settings })
  decode.stageProbabilities(result, top)
  for (const id of top) decode.barOf(result, id)
  decode.othersAt(prepared, result.interval, top)
  return decode.draw(result, 0.412)
}
const still = { temperature: 1, top_k: null, top_p: null, min_p: null }
const rows = {
  "prepare (once a step)": timed(20, () => decode.prepare(logits)),
  "drag temperature": timed(FRAMES, (x) => frame({ ...still, temperature: 0.1 + 1.9 * x })),
  "drag top-k": timed(FRAMES, (x) => frame({ ...still, top_k: 1 + Math.floor(VOCABULARY * x) })),
  "drag top-p": timed(FRAMES, (x) => frame({ ...still, top_p: 0.01 + 0.99 * x })),
  "drag min-p": timed(FRAMES, (x) => frame({ ...still, min_p: x })),
}

console.log(`One slider frame, ${VOCABULARY} tokens, ${FRAMES} frames, ms (Node ${process.version})`)
console.log(`${"".padEnd(24)}${"median".padStart(8)}${"p95".padStart(8)}${"max".padStart(8)}`)
for (const [name, { median, p95, max }] of Object.entries(rows)) {
  const cells = [median, p95, max].map((ms) => ms.toFixed(2).padStart(8)).join("")
  console.log(name.padEnd(24) + cells)
}
