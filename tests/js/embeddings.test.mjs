import assert from "node:assert/strict"
import { test } from "node:test"

import {
  cloudFit, cloudFitSpace, cloudLabels, cloudRings, cloudShort, cloudTurn, cloudWidth,
} from "../../ui/components/js/cloud.js"
import {
  heatAt, heatColumns, heatFloats, heatGrid, heatNumber, heatTone,
} from "../../ui/components/js/heat.js"

const near = (a, b) => assert.ok(Math.abs(a - b) < 1e-9, `${a} is not ${b}`)

test("packed numbers are little-endian float32", () => {
  const bytes = Buffer.from(new Float32Array([1.5, -2]).buffer)
  assert.deepEqual([...heatFloats(bytes.toString("base64"))], [1.5, -2])
})

test("every number has a cell, in lines of a divisor where one fits", () => {
  assert.equal(heatColumns(576, 1000), 96)
  assert.equal(heatColumns(640, 1000), 80)
  assert.equal(heatColumns(576, 330), 36)
  assert.equal(heatColumns(577, 1000), 76)
  assert.equal(heatColumns(4, 1000), 4)
  for (const [count, pixels] of [[576, 1000], [577, 330], [4096, 1800], [3, 200]]) {
    const grid = heatGrid(count, pixels)
    assert.ok(grid.columns * grid.lines >= count && grid.columns * (grid.lines - 1) < count)
  }
})

test("the cell under the pointer: columns run along x, lines along y", () => {
  const grid = { count: 10, columns: 4, wide: 20, high: 10, lines: 3 }
  assert.equal(heatAt(grid, 25, 5), 1)
  assert.equal(heatAt(grid, 5, 15), 4)
  assert.equal(heatAt(grid, 25, 25), 9)
  assert.equal(heatAt(grid, 45, 25), -1)
  assert.equal(heatAt(grid, -1, 5), -1)
  assert.equal(heatAt(grid, 81, 5), -1)
})

test("colours saturate, numbers keep their sign and what tells them from 0", () => {
  assert.deepEqual([0.5, -3, 0].map((v) => heatTone(v, 1)), [0.5, -1, 0])
  assert.equal(heatTone(1, 0), 0)
  assert.deepEqual([0.04312, -1.5, 0, -0.0000123].map((v) => heatNumber(v)), ["0.0431", "−1.5000", "0", "−1.23e−5"])
})

test("turning keeps distances; a quarter turn brings depth to the front", () => {
  const turned = cloudTurn([1, 2, 3], 0.7, -0.4)
  near(Math.hypot(...turned), Math.hypot(1, 2, 3))
  const [x, y, depth] = cloudTurn([0, 0, 5], Math.PI / 2, 0)
  near(x, 5)
  near(y, 0)
  near(depth, 0)
  assert.deepEqual(cloudTurn([1, 2, 3], 0, 0), [1, 2, 3])
})

test("the same place is shared by rings, not merged", () => {
  assert.deepEqual(cloudRings([[1, 2], [0, 0], [1, 2], [1, 2.5], [1, 2]]), [0, 0, 1, 0, 2])
})

test("up is up, one scale for both axes, and everything is inside", () => {
  const margin = { left: 10, right: 10, top: 10, bottom: 10 }
  const place = cloudFit([[0, 0], [10, 5]], 220, 120, margin)
  assert.deepEqual(place([0, 0]), [10, 110])
  assert.deepEqual(place([10, 5]), [210, 10])
  assert.deepEqual(cloudFit([[3, 3]], 100, 100, margin)([3, 3]), [50, 50])
  const space = cloudFitSpace([[3, 4, 0], [0, 0, 1]], 100, 100, margin)
  assert.deepEqual(space([0, 5, 0]), [50, 10])
})

test("labels never lie on each other or on a point; the first come first", () => {
  const item = { r: 4, w: 40, h: 12 }
  const [a, b, c] = cloudLabels([{ ...item, x: 50, y: 50 }, { ...item, x: 60, y: 50 }, { ...item, x: 56, y: 53 }], 200, 100)
  assert.deepEqual(a, { x: 3, y: 50 })
  assert.deepEqual(b, { x: 67, y: 50 })
  assert.ok(c === null || Math.abs(c.y - 50) >= 12)
  // No name over the axis: there it stands to the right, or nowhere.
  assert.ok(cloudLabels([{ ...item, x: 190, y: 50 }], 200, 100)[0].x < 190)
  assert.equal(cloudLabels([{ ...item, x: 190, y: 50 }], 200, 100, 188)[0], null)
  assert.deepEqual(cloudLabels([{ ...item, x: 2, y: 2, w: 500 }], 200, 100), [null])
})

test("labels are measured and cut by characters", () => {
  assert.equal(cloudWidth("国a", 10), 15.8)
  assert.equal(cloudShort("x".repeat(300)).length, 18)
  assert.equal(cloudShort("short"), "short")
})
