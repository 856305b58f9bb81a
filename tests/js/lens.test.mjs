// The layer × position map: where cells lie, what they say, where keys lead.
import assert from "node:assert/strict"
import { test } from "node:test"
import {
  MAP, agrees, cellText, fitted, mapGrid, movedCell, onScale, strength, valueText,
} from "../../ui/components/js/lens_layout.js"

const grid = mapGrid({ width: 600, columns: 5, layers: 3 })

test("layers go down and positions go across", () => {
  assert.equal(grid.left(1) - grid.left(0), grid.column)
  assert.equal(grid.top(1) - grid.top(0), grid.row)
  assert.equal(grid.top(0), MAP.head)
  assert.deepEqual(grid.at(grid.left(4) + 1, grid.top(2) + 1), { column: 4, layer: 2 })
  assert.deepEqual(grid.at(grid.left(2) + 1, grid.top(0) + 1), { column: 2, layer: 0 })
  assert.deepEqual(grid.at(1, 5), { column: 0, layer: null })
  assert.deepEqual(grid.at(1, grid.height - 1), { column: 0, layer: null })
  assert.equal(grid.at(-1, 40), null)
  assert.equal(grid.at(grid.width + 1, 40), null)
  assert.equal(grid.at(5, grid.height + 1), null)
})

test("every cell is found at its own middle, in any size", () => {
  for (const [columns, layers, width] of [[1, 1, 320], [24, 30, 900], [8, 64, 350]]) {
    const some = mapGrid({ width, columns, layers })
    for (let layer = 0; layer < layers; layer++) {
      for (let column = 0; column < columns; column++) {
        const found = some.at(some.left(column) + some.column / 2, some.top(layer) + some.row / 2)
        assert.deepEqual(found, { column, layer })
      }
    }
  }
})

test("columns are never narrower than a word needs", () => {
  assert.equal(mapGrid({ width: 320, columns: 24, layers: 30 }).column, MAP.narrow)
  assert.equal(mapGrid({ width: 3000, columns: 2, layers: 30 }).column, MAP.wide)
})

test("keys move one cell, jump, and stop at the edges", () => {
  const cell = { layer: 1, column: 2 }
  assert.deepEqual(movedCell("ArrowDown", cell, grid), { layer: 2, column: 2 })
  assert.deepEqual(movedCell("ArrowUp", cell, grid), { layer: 0, column: 2 })
  assert.deepEqual(movedCell("ArrowRight", cell, grid), { layer: 1, column: 3 })
  assert.deepEqual(movedCell("ArrowLeft", cell, grid), { layer: 1, column: 1 })
  assert.deepEqual(movedCell("PageDown", cell, grid), { layer: 2, column: 2 })
  assert.deepEqual(movedCell("PageUp", cell, grid), { layer: 0, column: 2 })
  assert.deepEqual(movedCell("Home", cell, grid), { layer: 1, column: 0 })
  assert.deepEqual(movedCell("End", cell, grid), { layer: 1, column: 4 })
  assert.equal(movedCell("x", cell, grid), null)
})

// Two layers, three positions: the swapped reading gives other words.
const data = {
  labels: ["␣a", "␣b", "␣c", "␣d"],
  best: [[[0, 1], [1, 2], null], [[2, 0], [3, 1], null]],
  shares: [[[0.1, 0.05], [0.2, 0.1], null], [[0.3, 0.2], [0.4, 0.3], null]],
  columns: [
    { next: "␣c", ways: [{ next: true, rank: [4, 1] }] },
    { next: "␣b", ways: [{ next: true, rank: [1, 2] }] },
    { next: "␣x", ways: [] },
  ],
  values: null,
  scale: null,
}

test("a cell says its own layer's word at its own position", () => {
  assert.equal(cellText(data, 0, 1), "␣b")
  assert.equal(cellText(data, 1, 0), "␣c")
  assert.equal(cellText(data, 1, 2), "·")
  assert.equal(strength(data, 0, 1), 0.2)
  assert.equal(strength(data, 1, 0), 0.3)
  assert.equal(strength(data, 0, 2), null)
})

test("the mark stands where a layer is right, by rank and not by label alone", () => {
  assert.equal(agrees(data, 1, 0), true)
  assert.equal(agrees(data, 0, 1), true)
  assert.equal(agrees(data, 0, 0), false)
  assert.equal(agrees(data, 0, 2), false)
  // Another token with the same label is not the one that follows.
  const other = { ...data, columns: [{ next: "␣c", ways: [{ next: true, rank: [4, 9] }] }] }
  assert.equal(agrees(other, 1, 0), false)
  assert.equal(agrees({ ...data, values: [[1], [2]] }, 1, 0), false)
})

test("scales: logarithm of lengths, root of shares, cosines as they are", () => {
  const log = { kind: "log", low: 1, high: 100 }
  assert.equal(onScale(1, log), 0)
  assert.equal(onScale(10, log), 0.5)
  assert.equal(onScale(100, log), 1)
  assert.equal(onScale(5, { kind: "log", low: 5, high: 5 }), 0)
  assert.equal(onScale(0.25, { kind: "share" }), 0.5)
  assert.equal(onScale(4, { kind: "share" }), 1)
  assert.equal(onScale(-0.3, { kind: "cosine" }), 0)
  assert.equal(onScale(0.3, { kind: "cosine" }), 0.3)
})

test("numbers in cells are short", () => {
  assert.equal(valueText(null, "log"), "–")
  assert.equal(valueText(22712, "log"), "22.7k")
  assert.equal(valueText(148.2, "log"), "148")
  assert.equal(valueText(3.456, "log"), "3.46")
  assert.equal(valueText(0.58, "share"), "58 %")
  assert.equal(valueText(0.051, "share"), "5.1 %")
  assert.equal(valueText(172, "share"), "× 172")
  assert.equal(valueText(-0.05, "cosine"), "−0.05")
  assert.equal(valueText(-0.001, "cosine"), "0.00")
})

test("labels are cut by whole characters", () => {
  const measure = (text) => [...text].length
  assert.equal(fitted("abc", 3, measure), "abc")
  assert.equal(fitted("abcdef", 4, measure), "abc…")
  assert.equal(fitted("😀😀😀😀", 3, measure), "😀😀…")
  assert.equal(fitted("abcdef", 0, measure), "…")
})
