import assert from "node:assert/strict"
import { test } from "node:test"

import { prepare } from "../../ui/components/js/decode.js"
import * as s from "../../ui/components/js/stages.js"

const near = (a, b, tolerance = 1e-12) => assert.ok(Math.abs(a - b) <= tolerance, `${a} ≠ ${b}`)
const OFF = { temperature: 1, top_k: null, top_p: null, min_p: null, order: s.STAGES_ORDER }
const logs = (...ps) => prepare(Float64Array.from(ps, Math.log))
const dice = (u) => ({ u, forced: null, strategy: "sample" })
const large = (size) => prepare(Float32Array.from({ length: size }, (_, i) => 12 * Math.sin(i * i) - i / size))

test("every press of an arrow key changes the value, and the ends are legal", () => {
  for (const name of s.STAGES_ORDER) {
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
  const legal = { temperature: ["0", "100", "1e-3"], top_k: ["1", "7"], top_p: ["1", "0.001"], min_p: ["0", "1"] }
  const illegal = {
    temperature: ["-0.1", "101", "", "x", "Infinity", "NaN"],
    top_k: ["0", "2.5", "-1", "", "1e99"],
    top_p: ["0", "1.01", "-1"],
    min_p: ["-0.01", "1.1"],
  }
  for (const name of s.STAGES_ORDER) {
    for (const text of legal[name]) assert.equal(s.stagesLegal(name, text), Number(text))
    for (const text of illegal[name]) assert.equal(s.stagesLegal(name, text), null, `${name} ${text}`)
  }
})

test("moving a stage keeps every name, and stops at the ends", () => {
  const order = s.STAGES_ORDER
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
