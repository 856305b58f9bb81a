import assert from "node:assert/strict"
import { test } from "node:test"

import { arcColumns, arcsFor, unseen } from "../../ui/components/js/attention_arcs.js"
import { flowGrid, headUnder, isClosed, listHeads, modelGrid, paintPicture, passes, pictureOf } from "../../ui/components/js/attention_grid.js"
import { sortHeads, spread, stepFlow, stepHead } from "../../ui/components/js/attention_grid.js"
import { bytesOf, columnAt, everyNth, numberText, placeIn, rangeOfMap, rowAt, unitOf, weightAt, weightFor, weightText, weightsOf } from "../../ui/components/js/attention_maps.js"
import { telling } from "../../ui/components/js/attribution.js"
import { pickRows } from "../../ui/components/js/cell_rows.js"
import { cellAt, lettersFor, mapBox, mapPixels, named, stepCell } from "../../ui/components/js/head_plot.js"

// Four positions; row i has i + 1 weights.
const rows = [[1], [0.25, 0.75], [0.5, 0, 0.5], [0.1, 0.2, 0.3, 0.4]]
const map = { values: Float32Array.from(rows.flat()), first: 0, total: 4 }
const near = (a, b) => assert.ok(Math.abs(a - b) < 1e-6, `${a} is not ${b}`)

test("row is the query, column the key, and nothing looks ahead", () => {
  rows.forEach((row, query) => row.forEach((weight, key) => near(weightAt(map, query, key), weight)))
  assert.equal(weightAt(map, 1, 3), 0)
  near(weightAt(map, 3, 1), 0.2)
  assert.equal(placeIn(0, 3, 1), 7)
  assert.equal(placeIn(0, 1, 3), -1)
  assert.equal(placeIn(2, 1, 0), -1)
  assert.equal(placeIn(0, 1, -1), -1)
})

test("a map that begins at a later row has no earlier ones", () => {
  const late = { values: Float32Array.from(rows.slice(2).flat()), first: 2, total: 4 }
  near(weightAt(late, 3, 1), 0.2)
  near(weightAt(late, 2, 0), 0.5)
  assert.ok(Number.isNaN(weightAt(late, 1, 0)))
  assert.deepEqual(rowAt(late, 1, false), [])
})

test("a row and a column of the map", () => {
  assert.deepEqual(rowAt(map, 2, true).map((x) => x.key), [1, 2])
  assert.deepEqual(columnAt(map, 1).map((x) => [x.key, Math.round(100 * x.weight)]), [[1, 75], [2, 0], [3, 20]])
})

test("the scale is that of the data shown, linear and logarithmic", () => {
  const all = rangeOfMap(map, false)
  near(all.high, 1)
  assert.equal(all.low, 0)
  near(rangeOfMap(map, true).high, 0.75)
  near(unitOf(0.5, all, false), 0.5)
  near(unitOf(0.1, all, true), 0)
  near(unitOf(weightFor(0.3, all, true), all, true), 0.3)
  assert.equal(unitOf(0, all, true), 0)
})

test("weights are never rounded to a false zero", () => {
  assert.deepEqual([0, 1e-8, 0.00042, 0.5, NaN].map(weightText), ["0", "< 0.000001", "0.000420", "0.5000", "–"])
  assert.equal(numberText(-19.69014), "−19.6901")
  assert.equal(numberText(-Infinity), "−∞")
  assert.equal(numberText(0.0000123), "1.23e−5")
})

test("base64 becomes bytes and floats", () => {
  assert.deepEqual([...bytesOf("AQL/")], [1, 2, 255])
  assert.deepEqual([...weightsOf("AACAPwAAAD8=")], [1, 0.5])
})

test("pixels: the query is y, the key is x, the mask stays transparent", () => {
  const table = Uint8ClampedArray.from({ length: 768 }, (_, i) => Math.floor(i / 3))
  const model = { rows: 4, columns: 4, skip: 0, at: (r, c) => weightAt(map, r, c), hidden: (r, c) => c > r, range: { low: 0, high: 1, floor: 0.1 }, log: false }
  const pixels = mapPixels(model, table)
  const pixel = (row, column) => [...pixels.subarray(4 * (4 * row + column), 4 * (4 * row + column) + 4)]
  assert.deepEqual(pixel(1, 0), [64, 64, 64, 255])
  assert.equal(pixel(0, 1)[3], 0)
  assert.equal(mapPixels({ ...model, skip: 1 }, table)[3], 0)
  const pooled = mapPixels(model, table, 2)
  assert.deepEqual([...pooled].filter((_, i) => i % 4 === 0), [255, 0, 128, 128])
  assert.equal(pooled[7], 0)
  const picture = Uint8Array.from([255, 9, 16, 4])
  assert.deepEqual([...paintPicture(picture, 2, table)], [255, 255, 255, 255, 0, 0, 0, 0, 16, 16, 16, 255, 4, 4, 4, 255])
})

test("the cell under a point, and where keys lead", () => {
  const box = mapBox(600, { rows: 4, columns: 4, tall: 620, square: true })
  const at = (row, column) => cellAt(box, 4, 4, box.left + (column + 0.5) * box.cell.width, box.top + (row + 0.5) * box.cell.height)
  assert.deepEqual(at(3, 1), { row: 3, column: 1 })
  assert.equal(cellAt(box, 4, 4, box.left - 1, box.top + 1), null)
  const model = { rows: 4, columns: 4, skip: 0, own: true }
  assert.deepEqual(stepCell("ArrowRight", { row: 1, column: 1 }, model), { row: 1, column: 1 })
  assert.deepEqual(stepCell("ArrowUp", { row: 3, column: 3 }, model), { row: 2, column: 2 })
  assert.equal(stepCell("x", { row: 0, column: 0 }, model), null)
})

test("an axis names its last position, and no two names run into each other", () => {
  assert.deepEqual(named(5, 40, 19), [0, 1, 2, 3, 4])
  assert.deepEqual(named(1, 60, 19), [0])
  for (const [count, size] of [[541, 1.2], [541, 0.4], [60, 9], [100, 20]]) {
    const found = named(count, size, 19)
    assert.equal(found.at(-1), count - 1)
    assert.equal(found[0], 0)
    for (let i = 1; i < found.length; i++) assert.ok((found[i] - found[i - 1]) * size >= 19)
  }
  assert.equal(lettersFor(500, 500, 15), 0)
  assert.equal(lettersFor(456, 500, 15), 8)
  assert.equal(lettersFor(0, 500, 15), 15)
})

const data = {
  layers: 3, heads: 4, kv_heads: 2, known: [0, 2], closed: [], side: 1,
  statistics: { first: [[0.1, 0.4, 0.2, 0.3], null, [0.9, null, 0.5, 0.6]] },
}

test("heads are listed, sorted and filtered by a statistic", () => {
  const list = listHeads(data, "first")
  assert.equal(list.length, 12)
  assert.deepEqual(sortHeads(list, true).slice(0, 2).map((x) => [x.layer, x.head]), [[2, 0], [2, 3]])
  assert.deepEqual(sortHeads(list, false)[0].value, 0.1)
  assert.deepEqual(spread(list), [0.1, 0.9])
  assert.equal(list.filter((x) => passes(x, 0.5, true)).length, 3)
  assert.equal(list.filter((x) => passes(x, 0.2, false)).length, 2)
  assert.ok(passes(list[4], null, true))
  assert.deepEqual([...pictureOf(data, Uint8Array.from([1, 2, 3, 4, 5, 6, 7, 8]), 2, 1)], [6])
  assert.equal(pictureOf(data, new Uint8Array(8), 1, 0), null)
})

test("heads of a layer without attention are listed, and never counted", () => {
  const hybrid = { ...data, closed: [1] }
  const list = listHeads(hybrid, "")
  assert.deepEqual(list.filter((x) => x.closed).map((x) => x.layer), [1, 1, 1, 1])
  assert.equal(list.filter((x) => passes(x, null, true)).length, 8)
  assert.equal(isClosed(hybrid, 1), true)
  assert.equal(isClosed(hybrid, 0), false)
})

test("layers go from left to right where they have room, else from top to bottom", () => {
  for (const width of [900, 60]) {
    const grid = modelGrid(data, width, 22)
    assert.equal(grid.across, width === 900)
    for (const [layer, head] of [[0, 0], [2, 3], [1, 2]]) {
      const at = grid.place(layer, head)
      assert.deepEqual(headUnder(grid, data, at.x + 1, at.y + 1), { layer, head })
    }
    assert.equal(headUnder(grid, data, 2, 2), null)
  }
})

test("arrow keys walk over the grid and stop at its edge", () => {
  const here = { layer: 1, head: 3 }
  assert.deepEqual(stepHead("ArrowRight", here, data, true), { layer: 2, head: 3 })
  assert.deepEqual(stepHead("ArrowDown", here, data, true), { layer: 1, head: 3 })
  assert.deepEqual(stepHead("ArrowDown", here, data, false), { layer: 2, head: 3 })
  assert.deepEqual(stepHead("ArrowLeft", here, data, false), { layer: 1, head: 2 })
  assert.equal(stepHead("a", here, data, true), null)
  assert.equal(stepFlow("ArrowDown", 1, 10, 4), 5)
  assert.equal(stepFlow("End", 1, 10, 4), 9)
  const flow = flowGrid(10, 400)
  assert.equal(flow.place(flow.columns).x, 0)
})

test("arcs leave the query's row and are as thick as their weights", () => {
  const columns = arcColumns(4, 3, rowAt(map, 3, false), 26)
  const arcs = arcsFor(columns, 3, rowAt(map, 3, false), { pitch: 10, width: 100, thick: 10 })
  assert.deepEqual(arcs.map((arc) => Math.round(arc.thick)), [1, 2, 3, 4])
  assert.ok(arcs.every((arc) => arc.path.startsWith("M0 35C")))
  assert.ok(arcs[0].path.endsWith("100 5"))
  const into = arcsFor(columns, 1, columnAt(map, 1), { pitch: 10, width: 100, thick: 10, swap: true })
  assert.deepEqual(into.map((arc) => arc.key), [1, 3])
  assert.ok(into.every((arc) => arc.path.endsWith("100 15")))
})

test("of a long row the heaviest keys are listed, and what is left out is said", () => {
  const weights = Array.from({ length: 50 }, (_, key) => ({ key, weight: (key + 1) / 1275 }))
  const columns = arcColumns(50, 49, weights, 10)
  assert.deepEqual(columns.right, [40, 41, 42, 43, 44, 45, 46, 47, 48, 49])
  assert.ok(columns.left.includes(49))
  near(unseen(columns, weights), weights.slice(0, 40).reduce((sum, x) => sum + x.weight, 0))
})

test("the softmax's table keeps the key in view and the masked one, and sums up the rest", () => {
  const table = Array.from({ length: 20 }, (_, i) => [i, 1, 1, 0.5, i / 190, i / 190])
  table.push([20, 1, null, 0, 0, 0])
  const { shown, rest } = pickRows(table, 2, 5)
  assert.deepEqual(shown.map((row) => row[0]), [2, 15, 16, 17, 18, 19, 20])
  assert.equal(rest.count, 14)
  near(rest.weight + shown.reduce((sum, row) => sum + row[4], 0), 1)
})

test("of many tokens the telling ones are shown, in their order", () => {
  assert.deepEqual(telling([0.1, -3, 0.2, 2], 2), [1, 3])
  assert.deepEqual(telling([1, 2], 5), [0, 1])
})

test("marks of an axis have room", () => {
  assert.equal(everyNth(30, 900, 20), 1)
  assert.equal(everyNth(512, 500, 15), 20)
})
