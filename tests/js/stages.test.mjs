import assert from "node:assert/strict"
import { test } from "node:test"

import { prepare } from "../../ui/components/js/decode.js"
import * as s from "../../ui/components/js/stages.js"
import { TEXT_NUMBERS, textIds, textScore, textSteps } from "../../ui/components/js/stages_text.js"

const near = (a, b, tolerance = 1e-12) => assert.ok(Math.abs(a - b) <= tolerance, `${a} ≠ ${b}`)
const OFF = { ...s.STAGES_OFF, order: s.STAGES_ORDER.slice(0, 4) }
const logs = (...ps) => prepare(Float64Array.from(ps, Math.log))
const dice = (u) => ({ u, forced: null, strategy: "sample" })
const large = (size) => prepare(Float32Array.from({ length: size }, (_, i) => 12 * Math.sin(i * i) - i / size))

test("every press of an arrow key changes the value, and the ends are legal", () => {
  for (const name of [...s.STAGES_ORDER, ...TEXT_NUMBERS]) {
    for (const size of [2, 4, 50, 49152, 262144]) {
      const ticks = s.stagesTicks(name, size)
      ticks.forEach((value, i) => {
        assert.equal(s.stagesLegal(name, String(value)), value)
        assert.ok(i === 0 || value > ticks[i - 1])
      })
    }
  }
  assert.deepEqual(s.stagesTicks("top_k", 4), [1, 2, 3, 4])
  assert.equal(s.stagesTicks("top_k", 49152).at(-1), 49152)
  assert.ok(s.stagesTicks("top_p", 4).includes(0.9))
})

test("a value between two ticks finds its neighbour", () => {
  assert.equal(s.stagesNearest([0, 0.5, 1], 0.7), 1)
  assert.equal(s.stagesNearest([0, 0.5, 1], 99), 2)
})

test("typed parameters are legal exactly where core/settings.py says so", () => {
  const legal = { temperature: ["0", "100", "1e-3"], top_k: ["1", "7"], top_p: ["1", "0.001"], min_p: ["0", "1"],
    typical_p: ["1", "0.2"], repetition_penalty: ["0.01", "1", "10"], presence_penalty: ["-10", "0", "10"],
    frequency_penalty: ["-1.5", "10"], no_repeat_ngram: ["1", "100"] }
  const illegal = {
    temperature: ["-0.1", "101", "", "x", "Infinity", "NaN"],
    top_k: ["0", "2.5", "-1", "", "1e99"],
    top_p: ["0", "1.01", "-1"],
    min_p: ["-0.01", "1.1"],
    typical_p: ["0", "1.01"],
    repetition_penalty: ["0", "0.001", "10.1", "-1"],
    presence_penalty: ["-10.1", "11", ""],
    frequency_penalty: ["x", "-11"],
    no_repeat_ngram: ["0", "1.5", "101"],
  }
  for (const name of Object.keys(legal)) {
    for (const text of legal[name]) assert.equal(s.stagesLegal(name, text), Number(text))
    for (const text of illegal[name]) assert.equal(s.stagesLegal(name, text), null, `${name} ${text}`)
  }
})

test("moving a stage keeps every name, and stops at the ends", () => {
  const order = OFF.order
  assert.deepEqual(s.stagesMoved(order, "top_p", -1), ["temperature", "top_p", "top_k", "min_p"])
  assert.deepEqual(s.stagesMoved(s.stagesMoved(order, "top_p", -1), "top_p", 1), order)
  assert.equal(s.stagesMoved(order, "temperature", -1), order)
  assert.equal(s.stagesMoved(order, "min_p", 1), order)
})

test("an outcome by hand: 0.5, 0.3, 0.2 under top-p 0.51", () => {
  const p = logs(0.2, 0.5, 0.3)
  const outcome = s.stagesOutcome(p, { ...OFF, top_p: 0.51 }, dice(0.7))
  assert.equal(outcome.kept, 2)
  near(outcome.heldByModel, 0.8)
  assert.equal(outcome.chosen, 2)
  near(outcome.bar[0], 0.625)
  near(outcome.bar[1], 1)
  near(outcome.bitsModel, 1.4855, 1e-4)
  near(outcome.bitsAfter, 0.9544, 1e-4)
  const row = s.stagesRow(p, outcome, 0)
  assert.deepEqual([row.rank, row.by, row.after], [3, "top_p", 0])
  near(row.model, 0.2)
  near(s.stagesRow(p, outcome, 1).after, 0.625)
})

test("greedy takes the highest and forced overrules the dice, which are still told", () => {
  const p = logs(0.2, 0.5, 0.3)
  const greedy = s.stagesOutcome(p, OFF, { u: null, forced: null, strategy: "greedy" })
  assert.deepEqual([greedy.chosen, greedy.rule], [1, "greedy"])
  const zero = s.stagesOutcome(p, { ...OFF, temperature: 0 }, dice(0.99))
  assert.deepEqual([zero.chosen, zero.rule, zero.kept], [1, "greedy", 1])
  const forced = s.stagesOutcome(p, OFF, { u: 0.99, forced: 1, strategy: "sample" })
  assert.deepEqual([forced.chosen, forced.drawn, forced.rule], [1, 0, "forced"])
})

test("the rows and all others sum to 1, before and after", () => {
  const p = large(5000)
  const ids = [...p.order.slice(0, 20), p.order[4321]]
  for (const settings of [OFF, { ...OFF, temperature: 3 }, { ...OFF, top_k: 700, top_p: 0.95 }]) {
    const outcome = s.stagesOutcome(p, settings, dice(0.5))
    const others = s.stagesOthers(p, outcome, ids)
    const rows = ids.map((id) => s.stagesRow(p, outcome, id))
    for (const column of ["model", "after"]) {
      near(rows.reduce((sum, row) => sum + row[column], others[column]), 1, 1e-9)
    }
    assert.equal(others.count, 5000 - 21)
    const left = rows.filter((row) => row.after > 0).length
    assert.equal(left + others.kept, outcome.kept)
  }
})

test("the axis of ranks runs from 0 to 1 and always forward", () => {
  for (const size of [2, 60, 61, 49152]) {
    const xs = [...s.stagesSamples(size), size].map((r) => s.stagesX(r, size))
    assert.equal(xs[0], 0)
    near(xs.at(-1), 1)
    xs.forEach((x, i) => assert.ok(i === 0 || x > xs[i - 1]))
  }
  assert.equal(s.stagesX(1, 4), 0.25)
})

test("bars: linear to the axis' end, logarithmic from a millionth", () => {
  assert.equal(s.stagesLength(0.25, 0.5, false), 0.5)
  assert.equal(s.stagesLength(0, 1, true), 0)
  assert.equal(s.stagesLength(1, 1, true), 1)
  near(s.stagesLength(1e-3, 1, true), 0.5)
  assert.equal(s.stagesLength(1e-9, 1, true), 0.004)
  assert.equal(s.stagesTop(0.15), 0.2)
  assert.equal(s.stagesTop(0.95), 1)
})

test("the draw bar has no gap, ends at 1 and gathers the tail", () => {
  const p = large(5000)
  for (const settings of [OFF, { ...OFF, top_k: 3 }, { ...OFF, temperature: 4 }]) {
    const parts = s.stagesBar(s.stagesOutcome(p, settings, dice(0.5)), 40, 0.002)
    let low = 0
    for (const part of parts) {
      assert.equal(part.low, low)
      low = part.high
    }
    near(low, 1)
    assert.equal(parts.reduce((sum, part) => sum + part.count, 0), settings.top_k ?? 5000)
  }
})

test("the histogram counts every possible token once", () => {
  const h = s.stagesHistogram(prepare([3, 1, 2, -Infinity, 3]), 2)
  assert.deepEqual(h, { low: 1, high: 3, counts: [1, 3], impossible: 1 })
  assert.deepEqual(s.stagesHistogram(prepare([1, 1]), 3).counts, [2, 0, 0])
})

test("a search finds ids, whole labels, beginnings and insides, likely ones first", () => {
  const labels = ["␣Paris", "paris", "␣Parisian", "comParison", "7", "␣the"]
  const folded = s.stagesFolded(labels)
  const p = prepare([1, 2, 5, 4, 3, 0])
  assert.deepEqual(s.stagesSearch(folded, p, "Paris", 9), { ids: [1, 0, 2, 3], total: 4 })
  assert.deepEqual(s.stagesSearch(folded, p, " paris", 9).ids, [0, 2])
  assert.deepEqual(s.stagesSearch(folded, p, "#5", 9).ids, [5])
  assert.deepEqual(s.stagesSearch(folded, p, "4", 9).ids, [4])
  assert.deepEqual(s.stagesSearch(folded, p, "Paris", 2), { ids: [1, 0], total: 4 })
  assert.deepEqual(s.stagesSearch(folded, p, "  ", 9), { ids: [], total: 0 })
  assert.deepEqual(s.stagesSearch(folded, p, "zz", 9), { ids: [], total: 0 })
})

test("numbers for people", () => {
  assert.equal(s.stagesNumber(-2.5), "−2.50")
  assert.equal(s.stagesNumber(-Infinity), "−∞")
  assert.equal(s.stagesParameter(0.30000000000000004), "0.3")
})

test("a row of cards is filled evenly, and every row is full", () => {
  assert.deepEqual(s.stagesSpans(5, 5), [12, 12, 12, 12, 12])
  assert.deepEqual(s.stagesSpans(5, 3), [30, 30, 20, 20, 20])
  assert.deepEqual(s.stagesSpans(7, 5), [20, 20, 20, 15, 15, 15, 15])
  for (let count = 1; count <= 7; count++) {
    for (const most of [3, 5, 6]) {
      const spans = s.stagesSpans(count, most)
      assert.equal(spans.length, count)
      near(spans.reduce((a, b) => a + b) % 60, 0)
    }
  }
})

test("typical-p stands in the order only while it is on, at its end when it comes", () => {
  const on = s.stagesWith(OFF, "typical_p", 0.5)
  assert.deepEqual(on.order, [...OFF.order, "typical_p"])
  assert.deepEqual(s.stagesWith(on, "typical_p", 0.6).order, on.order)
  assert.deepEqual(s.stagesWith(on, "typical_p", null), OFF)
  assert.deepEqual(s.stagesUsual(["typical_p", "top_p", "temperature"]), ["temperature", "top_p", "typical_p"])
})

test("each stage says whether it is off", () => {
  for (const [name, value] of Object.entries(s.STAGES_OFF)) assert.ok(s.stagesIsOff(name, value), name)
  assert.ok(s.stagesIsOff("banned", []))
  assert.ok(!s.stagesIsOff("banned", ["x"]))
  assert.ok(!s.stagesIsOff("pattern", "a"))
  assert.ok(!s.stagesIsOff("repetition_penalty", 1))
  assert.ok(s.stagesSame(["a", "b"], ["a", "b"]))
  assert.ok(!s.stagesSame(["a"], ["a", "b"]))
})

// --- the stages that look at the text

const wide = (...scores) => prepare(Float64Array.from(scores))
const SENT = { text: [[0, 0], [1, 2], [3, 1]], forbidden: {}, settings: s.STAGES_OFF }

test("penalties by hand: divided above 0, multiplied below, paid once or for each time", () => {
  assert.equal(textScore("repetition_penalty", 2, 3, 0), 1.5)
  assert.equal(textScore("repetition_penalty", 2, -3, 0), -6)
  assert.equal(textScore("presence_penalty", 0.5, 3, 0), 3)
  assert.equal(textScore("presence_penalty", 0.5, 3, 7), 2.5)
  assert.equal(textScore("frequency_penalty", 0.5, 3, 4), 1)
  assert.equal(textScore("frequency_penalty", -0.5, 3, 4), 5)
  // In the numbers of the model, 32 bits wide, as Python does it.
  assert.equal(textScore("repetition_penalty", 1.1, Math.fround(17.3), 0), Math.fround(Math.fround(17.3) / Math.fround(1.1)))
  assert.notEqual(textScore("repetition_penalty", 1.1, 17.3, 0), 17.3 / 1.1)
})

test("penalties add up in their order, change only what the text has, and reorder the tokens", () => {
  const raw = wide(4, 3, 2, -1)
  const settings = { ...OFF, repetition_penalty: 2, presence_penalty: 0.5, frequency_penalty: 0.25 }
  const text = s.stagesText(raw, settings, SENT)
  assert.deepEqual([...text.logits], [2, 0.5, 2, -2.75])
  assert.deepEqual(text.steps.map((step) => [step.name, step.changed, step.forbidden]), [
    ["repetition_penalty", 3, 0], ["presence_penalty", 2, 0], ["frequency_penalty", 2, 0],
  ])
  assert.deepEqual(text.steps[0].moved.map(({ id, before, after }) => [id, before, after]), [[0, 4, 2], [1, 3, 1.5], [3, -1, -2]])
  const outcome = s.stagesOutcome(raw, settings, dice(0.99), text)
  assert.deepEqual(Array.from(outcome.result.prepared.order), [0, 2, 1, 3])
  const row = s.stagesRow(raw, outcome, 1)
  assert.deepEqual([row.rank, row.logit, row.score, row.by], [2, 3, 0.5, null])
  const z = [2, 0.5, 2, -2.75].map(Math.exp)
  near(row.after, z[1] / z.reduce((a, b) => a + b))
  near(row.model, Math.exp(3) / [4, 3, 2, -1].map(Math.exp).reduce((a, b) => a + b))
})

test("a forbidden token names the stage that forbade it, and one of the model stays impossible", () => {
  const raw = wide(3, 2, 1, -Infinity)
  const settings = { ...OFF, no_repeat_ngram: 2, pattern: "x", top_k: 1 }
  const sent = { text: [], forbidden: { no_repeat_ngram: [0], pattern: [0, 1, 3] }, settings }
  const outcome = s.stagesOutcome(raw, settings, dice(0.5), s.stagesText(raw, settings, sent))
  const by = [0, 1, 2, 3].map((id) => s.stagesRow(raw, outcome, id).by)
  assert.deepEqual(by, ["no_repeat_ngram", "pattern", null, null])
  assert.deepEqual([outcome.chosen, outcome.kept], [2, 1])
  near(outcome.heldByModel, Math.exp(1) / (Math.exp(3) + Math.exp(2) + Math.exp(1)))
  const others = s.stagesOthers(raw, outcome, [0])
  assert.deepEqual([others.count, others.kept, others.after], [3, 1, 1])
})

test("a rule that was changed in the browser waits for Python, and forbids nothing meanwhile", () => {
  const raw = wide(3, 2, 1)
  const sent = { text: [], forbidden: { no_repeat_ngram: [0] }, settings: { ...OFF, no_repeat_ngram: 2 } }
  const text = s.stagesText(raw, { ...OFF, no_repeat_ngram: 3 }, sent)
  assert.deepEqual(text.steps.map((step) => [step.known, step.forbidden]), [[false, 0]])
  assert.equal(text.prepared, raw)
})

test("only the best-ranked of many touched tokens are told", () => {
  const raw = wide(1, 9, 3, 7, 5, 8)
  const text = [0, 1, 2, 3, 4, 5].map((id) => [id, 1])
  const [step] = textSteps(raw, { ...OFF, presence_penalty: 1 }, text, {}).steps
  assert.deepEqual(step.moved.map((move) => move.id), [1, 5, 3, 4])
  assert.equal(step.changed, 6)
})

test("ids come as a list or as bits", () => {
  assert.deepEqual(textIds([3, 5]), [3, 5])
  assert.deepEqual(textIds(btoa(String.fromCharCode(0b00000101, 0, 0b10000000))), [0, 2, 23])
})

test("typical-p may drop the favourite, and the draw bar and the others follow", () => {
  const raw = logs(0.6, 0.1, 0.1, 0.1, 0.1)
  const outcome = s.stagesOutcome(raw, { ...OFF, typical_p: 0.3, order: [...OFF.order, "typical_p"] }, dice(0.1))
  const rows = [0, 1, 2, 3, 4].map((id) => s.stagesRow(raw, outcome, id))
  const kept = rows.filter((row) => row.after > 0)
  near(kept.reduce((sum, row) => sum + row.after, 0), 1)
  near(outcome.heldByModel, kept.reduce((sum, row) => sum + row.model, 0))
  const parts = s.stagesBar(outcome, 48, 0.002)
  assert.deepEqual(parts.map((part) => part.id), kept.map((row) => row.id))
  near(parts.at(-1).high, 1)
})
