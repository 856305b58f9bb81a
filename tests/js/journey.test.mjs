import assert from "node:assert/strict"
import { test } from "node:test"

import { GRID, laneGrid, reading } from "../../ui/components/js/journey_grid.js"
import * as j from "../../ui/components/js/journey_layout.js"

const near = (a, b, tolerance = 1e-9) => assert.ok(Math.abs(a - b) <= tolerance, `${a} ≠ ${b}`)

test("packed numbers come back as they were", () => {
  const sent = Float32Array.of(0, -1.5, 3.25, 1e-20)
  const text = Buffer.from(sent.buffer).toString("base64")
  assert.deepEqual(j.floats(text), sent)
  assert.equal(j.floats("").length, 0)
})

test("lanes share the room within limits", () => {
  assert.equal(j.laneHeight(6, 325), 48)
  assert.equal(j.laneHeight(13, 325), 25)
  assert.equal(j.laneHeight(40, 325), 25)
})

test("every k-th number is drawn so that bars stay visible", () => {
  assert.equal(j.striding(576, 2000), 1)
  assert.equal(j.striding(576, 144), 8)
  assert.equal(j.striding(1, 0), 1)
  for (const width of [30, 75, 144, 300]) {
    const every = j.striding(576, width)
    assert.ok(width / Math.ceil(576 / every) >= 2)
  }
})

test("colours saturate, keep their sign, and zero has none", () => {
  assert.equal(j.tone(-9, 0.3), -1)
  near(j.tone(0.15, 0.3), 0.5)
  assert.equal(j.tone(1, 0), 0)
  near(j.tint(0), 0.05)
  near(j.tint(1), 1)
  near(j.tint(172), 1)
  assert.ok(j.tint(0.01) < j.tint(0.1))
})

test("ribbons fill the reader's cell exactly, side by side", () => {
  const sources = [0.67, 0.03, 0.3].map((weight, key) => ({ key, weight, y: 10 + 40 * key }))
  const bands = j.ribbons(sources, { y: 90, height: 20 }, 0, 100)
  near(bands[0].end - bands[0].thick / 2, 80)
  near(bands[1].end - bands[1].thick / 2, bands[0].end + bands[0].thick / 2)
  near(bands[2].end + bands[2].thick / 2, 100)
  near(bands[0].thick, 13.4)
  assert.match(bands[0].path, /^M0 3\.3C.*Z$/)
})

test("the last layer is always quoted, and later ones more closely", () => {
  assert.deepEqual(j.quoted(30, 8), [5, 10, 15, 19, 23, 26, 28, 29])
  assert.deepEqual(j.quoted(2, 8), [0, 1])
  assert.deepEqual(j.quoted(1, 8), [0])
  assert.deepEqual(j.quoted(0, 8), [])
})

test("axis numbers do not touch", () => {
  assert.deepEqual(j.ticks(30, 480), [1, 5, 10, 15, 20, 25, 30])
  assert.deepEqual(j.ticks(1, 480), [1])
  assert.deepEqual(j.ticks(0, 480), [])
  for (const [layers, width] of [
    [18, 500],
    [30, 210],
    [80, 480],
    [126, 210],
  ]) {
    const at = j.ticks(layers, width).map((n) => ((n - 0.5) * width) / layers)
    at.slice(1).forEach((x, i) => assert.ok(x - at[i] >= 24, `${layers} in ${width}`))
  }
})

test("keys move the layer and stop at the ends", () => {
  assert.equal(j.moved("ArrowRight", 29, 30), 29)
  assert.equal(j.moved("ArrowLeft", 5, 30), 4)
  assert.equal(j.moved("PageDown", 2, 30), 0)
  assert.equal(j.moved("End", 2, 30), 29)
  assert.equal(j.moved("Home", 2, 30), 0)
  assert.equal(j.moved("a", 2, 30), null)
})

test("messages split at their holes", () => {
  assert.deepEqual(j.pieces("a {x} b{y}"), ["a ", { hole: "x" }, " b", { hole: "y" }])
  assert.deepEqual(j.pieces(""), [])
})

test("numbers for people", () => {
  assert.equal(j.bytes(46080), "46.1 kB")
  assert.equal(j.bytes(230400), "230 kB")
  assert.equal(j.bytes(999), "999 B")
  assert.equal(j.thousands(49152), "49,152")
  assert.equal(j.thousands(7), "7")
  assert.equal(j.signed(-0.25, 1), "−0.3")
  assert.equal(j.signed(-0.03, 1), "0.0")
  assert.equal(j.changed(0.284), "28 %")
  assert.equal(j.changed(0.004), "0.4 %")
  assert.equal(j.changed(172.24), "× 172")
  assert.equal(j.apart(0, 0.856), 3)
  assert.equal(j.apart(0.59689, 0.59692), 5)
  assert.equal(j.apart(0.5, 0.5), 8)
})

const grid = (more) =>
  laneGrid({ size: "wide", width: 700, layers: 30, rows: 5, hidden: 0, lens: true, ...more })

test("columns lie between the margins, and points find their cell", () => {
  const g = grid({})
  near(g.left(30), g.end)
  near(g.end, 700 - 58)
  assert.deepEqual(g.at(g.left(16.5), g.rowMiddle(3)), { layer: 16, row: 3 })
  assert.deepEqual(g.at(g.left(0) - 1, g.rowMiddle(0)), { layer: null, row: 0 })
  assert.deepEqual(g.at(g.left(2.5), 3), { layer: 2, row: -1 })
  assert.equal(g.at(g.left(2.5), g.middle(5)).row, -1) // the lane of the token that joins
})

test("the gap takes a lane between the first token and the others", () => {
  const g = grid({ hidden: 22 })
  near(g.rowMiddle(0), g.middle(0))
  near(g.rowMiddle(1), g.middle(2))
  assert.deepEqual(g.at(g.left(1.5), g.middle(1)), { layer: 1, row: -1 })
  assert.deepEqual(g.at(g.left(1.5), g.middle(2)), { layer: 1, row: 1 })
})

test("only a wide component draws lines into its neighbours, and a phone wastes no lane", () => {
  assert.deepEqual([grid({}).before, grid({}).after], [-17, 27])
  assert.equal(grid({ size: "middle" }).after, 0)
  const phone = grid({ size: "narrow", width: 260 })
  assert.deepEqual([phone.before, phone.after], [0, 0])
  assert.equal(phone.bottom, GRID.axis + 5 * phone.lane)
})

test("a reader's weights: rows attend, columns are attended to, the gap comes second", () => {
  const g = grid({ rows: 3, layers: 2, hidden: 9 })
  // [layer 2, row 3, column 3 + gap]
  const weights = Float32Array.from({ length: 24 }, (_, i) => i)
  assert.deepEqual(
    reading(weights, g, 1, 2).map(({ key, weight }) => [key, weight]),
    [
      [0, 20],
      ["gap", 23],
      [1, 21],
      [2, 22],
    ],
  )
  assert.deepEqual(
    reading(weights, g, 0, 0).map(({ key, weight }) => [key, weight]),
    [[0, 0]],
  )
})
