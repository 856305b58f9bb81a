import assert from "node:assert/strict"
import { test } from "node:test"

import { decimals, zoomWindow } from "../../ui/components/js/candidates_bar.js"
import { activeStages, cellText, columnsFor, logitText, rowsFor, scaleOf, stagesOf } from "../../ui/components/js/candidates_table.js"

const row = (rank, model, after, more = {}) => ({ rank, model, after, removed: null, chosen: false, ...more })
const stages = [
  { name: "temperature", on: false }, { name: "top_k", on: true },
  { name: "top_p", on: true }, { name: "min_p", on: false },
]

test("a chosen token outside the table gets a row of its own", () => {
  const rows = [row(1, 0.5, [0.5]), row(2, 0.3, [0.3]), row(3, 0.1, [0.1]), row(61, 0, [0], { chosen: true })]
  assert.deepEqual(rowsFor(rows, 2).map((r) => r.rank), [1, 2, 61])
  assert.deepEqual(rowsFor(rows, 100).map((r) => r.rank), [1, 2, 3, 61])
})

test("only stages that change something have a column, in the order applied", () => {
  assert.deepEqual(activeStages(stages).map((s) => [s.name, s.place]), [["top_k", 1], ["top_p", 2]])
})

test("with more stages than there is room for, one that changes no number has no column", () => {
  const on = ["repetition_penalty", "no_repeat_ngram", "banned", "top_k", "top_p", "typical_p"]
    .map((name) => ({ name, on: true }))
  const rows = [row(1, 0.5, [0.4, 0.4, 0.4, 0.4, 0.6, 0.6]), row(2, 0.3, [0.3, 0.3, 0.3, 0.3, 0.4, 0.4])]
  const data = { stages: on, rows, others: { 10: row(null, 0.2, [0.3, 0.3, 0.3, 0.3, 0, 0]) } }
  const { shown, idle } = stagesOf(data, 10)
  assert.deepEqual(shown.map((s) => s.name), ["repetition_penalty", "top_p", "typical_p"])
  assert.deepEqual(idle.map((s) => s.name), ["no_repeat_ngram", "banned", "top_k"])
  const few = activeStages(on.slice(1))
  assert.deepEqual(columnsFor(few, rows), few)
})

test("removed tokens have a dash from the stage on that dropped them", () => {
  const gone = row(3, 0.15, [0.15, 0.2, 0, 0], { removed: "top_p" })
  assert.deepEqual(activeStages(stages).map((s) => cellText(gone, s)), ["20.0 %", "–"])
  assert.equal(cellText(row(1, 0, [0, 0, 0, 0]), activeStages(stages)[0]), "0 %")
})

test("bars share one scale, all others included", () => {
  const active = activeStages(stages)
  assert.equal(scaleOf([row(1, 0.2, [0.2, 0.2, 0.3, 0.3]), row(null, 0.6, [0.6, 0.6, 0.5, 0.5])], active), 0.6)
  assert.equal(scaleOf([row(1, 0.2, [0.2, 0.2, 0.3, 0.3]), null], active), 0.3)
})

test("logits have a real minus, and an impossible one is minus infinity", () => {
  assert.deepEqual([17.4, -3.456, null].map((logit) => logitText({ logit })), ["17.40", "−3.46", "−∞"])
})

const segments = [{ low: 0, high: 0.9 }, { low: 0.9, high: 0.901 }, { low: 0.901, high: 1 }]

test("the needle on a sliver is magnified around that sliver", () => {
  assert.equal(zoomWindow(segments, 0.5), null)
  assert.equal(zoomWindow(segments, null), null)
  const [low, high] = zoomWindow(segments, 0.9005)
  assert.ok(low < 0.9 && high > 0.901)
  assert.ok(Math.abs(high - low - 0.006) < 1e-9)
  const edge = zoomWindow([{ low: 0, high: 0.9999 }, { low: 0.9999, high: 1 }], 0.99995)
  assert.equal(edge[1], 1)
})

test("as many decimals as the stretch needs", () => {
  assert.equal(decimals(0, 0.9), 3)
  assert.equal(decimals(0.9, 0.901), 4)
  assert.equal(decimals(0.5, 0.5), 3)
})
