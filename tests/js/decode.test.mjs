import assert from "node:assert/strict"
import { readFileSync } from "node:fs"
import test from "node:test"
import {
  applyStages,
  barOf,
  draw,
  entropy,
  entropyAfter,
  othersAt,
  prepare,
  probabilitiesAfter,
  probabilityAt,
  removedBy,
  stageProbabilities,
} from "../../ui/components/js/decode.js"

const ORDER = ["temperature", "top_k", "top_p", "min_p"]
const OFF = { temperature: 1, top_k: null, top_p: null, min_p: null, typical_p: null, order: ORDER }
const LAWS = JSON.parse(readFileSync(new URL("../laws/decoding.json", import.meta.url)))

function close(actual, expected, tolerance = 1e-4) {
  assert.equal(actual.length, expected.length)
  for (let i = 0; i < actual.length; i++) {
    assert.ok(Math.abs(actual[i] - expected[i]) <= tolerance, `[${i}] ${actual[i]} ≠ ${expected[i]}`)
  }
}

const kept = (p) => [...p.keys()].filter((id) => p[id] > 0)

// A fixed stream of numbers in [0, 1): mulberry32.
function stream(seed) {
  let a = seed
  return () => {
    a = (a + 0x6d2b79f5) | 0
    let t = Math.imul(a ^ (a >>> 15), 1 | a)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }
}

function randomLogits(size, seed) {
  const next = stream(seed)
  return Float32Array.from({ length: size }, () => 8 * (next() + next() + next() - 1.5))
}

for (const Row of [Float32Array, Float64Array]) {
  for (const law of LAWS.filters) {
    test(`${law.law} (${Row.name})`, () => {
      const logits = Row.from(law.logits ?? law.probs.map(Math.log))
      const named = law.order ?? []
      const usual = law.typical_p === undefined ? ORDER : [...ORDER, "typical_p"]
      const order = [...named, ...usual.filter((name) => !named.includes(name))]
      const result = applyStages(prepare(logits), { ...OFF, ...law, order })
      assert.deepEqual(result.stages.map((stage) => stage.name), order)
      assert.deepEqual(kept(result.probabilities), law.keeps)
      close(result.probabilities, law.after)
      assert.equal(result.kept, law.keeps.length)
    })
  }
}

for (const law of LAWS.entropy) {
  test(`entropy of ${law.probs}`, () => {
    const found = entropy(law.probs)
    close([found.nats, found.bits], [law.nats, law.bits])
    const { model } = prepare(law.probs.map(Math.log))
    close([entropyAfter(model).nats], [law.nats])
  })
}

test("the order is descending, equal logits by id, and -0 is 0", () => {
  const rows = [[1, 3, 3, -1, 3], [0, -0, 0, -0], [-Infinity, 2, -Infinity], [-2, -1, -3]]
  const orders = [[1, 2, 4, 0, 3], [0, 1, 2, 3], [1, 0, 2], [1, 0, 2]]
  rows.forEach((row, i) => {
    assert.deepEqual([...prepare(Float32Array.from(row)).order], orders[i])
    assert.deepEqual([...prepare(row).order], orders[i])
  })
  const many = randomLogits(5000, 3).map((x) => Math.round(x))
  assert.deepEqual(prepare(many).order, prepare([...many]).order)
})

test("temperature 0 keeps the lowest id among the highest", () => {
  const result = applyStages(prepare([1, 5, 5]), { ...OFF, temperature: 0 })
  assert.deepEqual([...result.probabilities], [0, 1, 0])
  assert.equal(result.stages[0].survivors, 1)
  close([result.stages[0].mass], [1 / (2 + Math.exp(-4))], 1e-12)
})

test("tiny temperatures do not overflow", () => {
  for (const temperature of [1e-3, 1e-30, 1e-300, 5e-324]) {
    const result = applyStages(prepare([900, 1000, 1000, -1e30]), { ...OFF, temperature })
    assert.deepEqual([...result.probabilities], [0, 0.5, 0.5, 0])
  }
})

test("top-k keeps exactly k, ties to the lower id", () => {
  const flat = prepare([2, 2, 2, 2])
  assert.deepEqual([...applyStages(flat, { ...OFF, top_k: 2 }).probabilities], [0.5, 0.5, 0, 0])
  assert.equal(applyStages(flat, { ...OFF, top_k: 99 }).kept, 4)
})

test("top-p 1 keeps everything, down to the least likely token", () => {
  const result = applyStages(prepare([0, -40]), { ...OFF, top_p: 1 })
  assert.equal(result.kept, 2)
  assert.equal(applyStages(prepare([0, -40]), { ...OFF, top_p: 0.9999999 }).kept, 1)
})

test("min-p is relative to the highest probability, the boundary is kept", () => {
  const result = applyStages(prepare([0.5, 0.25, 0.15, 0.1].map(Math.log)), { ...OFF, min_p: 0.5 })
  assert.deepEqual(kept(result.probabilities), [0, 1])
  assert.equal(applyStages(prepare([1, 1, 0]), { ...OFF, min_p: 1 }).kept, 2)
  assert.equal(applyStages(prepare([0, -50]), { ...OFF, min_p: 0 }).kept, 2)
})

test("an impossible token never survives; NaN and infinity are refused", () => {
  const result = applyStages(prepare([-Infinity, 1, 0]), { ...OFF, temperature: 100, top_k: 3 })
  assert.equal(result.probabilities[0], 0)
  assert.equal(removedBy(result, 0), null)
  const nan = new Uint32Array([0x7fc00000, 0xffc00000])
  for (const sort of [[...new Float32Array(nan.buffer)], [NaN, 1], [1, NaN, 2], [Infinity, 1]]) {
    assert.throws(() => prepare(sort), RangeError)
    assert.throws(() => prepare(Float32Array.from(sort)), RangeError)
  }
  assert.throws(() => prepare(new Float32Array(new Uint32Array([0xffc00000, 0]).buffer)), RangeError)
  assert.throws(() => prepare([-Infinity, -Infinity]), RangeError)
  assert.throws(() => prepare([]), RangeError)
})

test("stages say what they kept, and of what mass", () => {
  const prepared = prepare([0.4, 0.3, 0.2, 0.1].map(Math.log))
  const result = applyStages(prepared, { ...OFF, top_k: 3, top_p: 0.7 })
  close(result.stages.map((stage) => stage.mass), [1, 0.9, 7 / 9, 1], 1e-12)
  assert.deepEqual(result.stages.map((stage) => stage.survivors), [4, 3, 2, 2])
  assert.deepEqual(result.stages.map((stage) => stage.parameter), [1, 3, 0.7, null])
  assert.deepEqual([0, 1, 2, 3].map((id) => removedBy(result, id)), [null, null, "top_p", "top_k"])
  const columns = stageProbabilities(result, [3, 0])
  close(columns.flatMap((column) => [...column]), [0.1, 0.4, 0, 4 / 9, 0, 4 / 7, 0, 4 / 7], 1e-12)
  close([probabilityAt(prepared, prepared.model, 2)], [0.2], 1e-12)
  close([othersAt(prepared, prepared.model, [0, 3]), othersAt(prepared, result.interval, [0])],
    [0.5, 3 / 7], 1e-12)
  assert.equal(othersAt(prepared, result.interval, [0, 1]), 0)
})

test("the bar lines survivors up from likely to unlikely, and the needle falls on it", () => {
  const result = applyStages(prepare([0.2, 0.5, 0.3].map(Math.log)), OFF)
  close(barOf(result, 1), [0, 0.5], 1e-12)
  close(barOf(result, 2), [0.5, 0.8], 1e-12)
  close(barOf(result, 0), [0.8, 1], 1e-12)
  assert.deepEqual([0, 0.49, 0.51, 0.79, 0.81, 1 - 2 ** -53].map((u) => draw(result, u)),
    [1, 1, 2, 2, 0, 0])
  const one = applyStages(prepare([3, 2, 1]), { ...OFF, top_k: 1 })
  assert.equal(draw(one, 1 - 2 ** -53), 0)
  assert.equal(barOf(one, 2), null)
})

test("a removed token is never drawn, and each is drawn as often as it should be", () => {
  const logits = randomLogits(50, 11)
  const result = applyStages(prepare(logits), { ...OFF, temperature: 1.5, top_k: 12, top_p: 0.9 })
  const counts = new Map()
  const next = stream(5)
  const draws = 20000
  for (let i = 0; i < draws; i++) {
    const id = draw(result, next())
    counts.set(id, (counts.get(id) ?? 0) + 1)
  }
  assert.ok(result.kept > 3)
  result.probabilities.forEach((p, id) => {
    const sigma = Math.sqrt(draws * p * (1 - p))
    const off = Math.abs((counts.get(id) ?? 0) - draws * p)
    assert.ok(p > 0 ? off <= 4 * sigma : off === 0, `token ${id}: ${counts.get(id)} for ${p}`)
  })
})

test("over the whole vocabulary each stage leaves a distribution", () => {
  const prepared = prepare(randomLogits(49152, 1))
  for (const order of [ORDER, [...ORDER].reverse(), ["top_p", "temperature", "min_p", "top_k"]]) {
    const settings = { temperature: 0.7, top_k: 4000, top_p: 0.95, min_p: 0.001, order }
    for (const stage of applyStages(prepared, settings).stages) {
      const all = probabilitiesAfter(prepared, stage.interval)
      assert.ok(Math.abs(all.reduce((a, b) => a + b) - 1) < 1e-9)
      assert.equal(all.reduce((count, p) => count + (p > 0), 0), stage.survivors)
    }
  }
})

test("no state is left behind: the same settings give the same numbers after others", () => {
  const prepared = prepare(randomLogits(1000, 2))
  const settings = { ...OFF, temperature: 0.8, top_p: 0.9 }
  const first = applyStages(prepared, settings).probabilities
  applyStages(prepared, { ...OFF, order: [...ORDER].reverse(), temperature: 0.8, top_k: 10 })
  applyStages(prepared, { ...OFF, temperature: 2, min_p: 0.2 })
  assert.deepEqual(applyStages(prepared, settings).probabilities, first)
})

for (const size of [49152, 262144]) {
  test(`a frame over ${size} tokens takes far less than 50 ms`, () => {
    const prepared = prepare(randomLogits(size, 4))
    const frames = []
    for (let i = 0; i < 15; i++) {
      const order = [...ORDER, "typical_p"]
      const settings = { temperature: 0.5 + 0.1 * i, top_k: size - 9, top_p: 0.99, min_p: 1e-9, typical_p: 0.9, order }
      const start = performance.now()
      const result = applyStages(prepared, settings)
      draw(result, 0.5)
      stageProbabilities(result, [1, 2, 3])
      entropyAfter(result.interval)
      frames.push(performance.now() - start)
    }
    // The best of 15: what the work takes, whatever else the machine is doing.
    assert.ok(Math.min(...frames) < 50, `${Math.min(...frames)} ms`)
  })
}
