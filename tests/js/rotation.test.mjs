import assert from "node:assert/strict"
import { test } from "node:test"

import {
  rotationAngle, rotationBands, rotationDot, rotationMembers, rotationMove, rotationPair, rotationPoint,
  rotationRanges, rotationTerms, rotationTicks, rotationTurn, rotationWave, rotationWhole,
} from "../../ui/components/js/rotation_math.js"

const near = (a, b, tolerance = 1e-9) => assert.ok(Math.abs(a - b) <= tolerance, `${a} is not ${b}`)
const rope = { dims: 4, layout: "halves", scaling: 1, frequencies: [Math.PI / 2, 0.25] }
const q = [1, 2, -3, 0.5, 7]
const k = [0.5, -1, 4, 2, 3]

test("pairs are halves or neighbours", () => {
  assert.deepEqual(rotationMembers(1, 6, "halves"), [1, 4])
  assert.deepEqual(rotationMembers(1, 6, "pairs"), [2, 3])
  assert.deepEqual(rotationPoint(q, 1, rope), [2, 0.5])
})

test("a quarter turn is counter-clockwise", () => {
  const [x, y] = rotationTurn([1, 0], Math.PI / 2)
  near(x, 0)
  near(y, 1)
})

test("the long way and the formula of the distance agree, wherever the two stand", () => {
  const terms = rotationTerms(q, k, rope)
  assert.equal(terms.fixed, 21)
  for (const [m, n] of [[0, 0], [5, 2], [105, 102], [9, 9], [3000, 1]]) {
    near(rotationDot(q, k, rope, m, n), rotationWhole(terms, rope, m - n))
  }
  near(rotationDot(q, k, rope, 5, 2), rotationDot(q, k, rope, 105, 102))
  near(rotationPair(terms, rope, 0, 1), 1 * 4 - -3 * 0.5)
})

test("a scaling counts for q and for k", () => {
  const scaled = { ...rope, scaling: 2 }
  near(rotationWhole(rotationTerms(q, k, scaled), scaled, 3) - 21,
    4 * (rotationWhole(rotationTerms(q, k, rope), rope, 3) - 21))
  near(rotationDot(q, k, scaled, 8, 5), rotationWhole(rotationTerms(q, k, scaled), scaled, 3))
})

test("a fast wave is a band, a short range is every value", () => {
  const wave = (d) => (d % 2 ? -1 : 1)
  assert.deepEqual(rotationBands(wave, 99, 10).map((b) => [b.from, b.low, b.high])[9], [90, -1, 1])
  assert.deepEqual(rotationBands((d) => d, 3, 100).map((b) => [b.from, b.to, b.low, b.high]),
    [[0, 0, 0, 0], [1, 1, 1, 1], [2, 2, 2, 2], [3, 3, 3, 3]])
})

test("turns and wavelengths", () => {
  near(rotationWave(Math.PI / 2), 4)
  assert.equal(rotationWave(0), Infinity)
  const { whole, degrees } = rotationAngle(9, Math.PI / 2)
  assert.equal(whole, 2)
  near(degrees, 90)
})

test("the key never stands after the query, and both move as one", () => {
  assert.deepEqual(rotationMove({ m: 5, n: 3 }, "m", 2, 63), { m: 2, n: 2 })
  assert.deepEqual(rotationMove({ m: 5, n: 3 }, "n", 9, 63), { m: 9, n: 9 })
  assert.deepEqual(rotationMove({ m: 5, n: 3 }, "both", 10, 63), { m: 12, n: 10 })
  assert.deepEqual(rotationMove({ m: 5, n: 3 }, "both", 90, 63), { m: 63, n: 61 })
  assert.deepEqual(rotationMove({ m: 5, n: 3 }, "both", -4, 63), { m: 2, n: 0 })
})

test("the ranges hold the text and end with the context", () => {
  assert.deepEqual(rotationRanges(5, 8192), [64, 1024, 8192])
  assert.deepEqual(rotationRanges(500, 512), [512])
  assert.deepEqual(rotationRanges(5, 32), [32])
  assert.deepEqual(rotationRanges(3000, 8192), [4096, 8192])
})

test("distances are named at round numbers, and at the end", () => {
  assert.deepEqual(rotationTicks(63), [0, 16, 32, 48, 63])
  assert.deepEqual(rotationTicks(8191), [0, 2048, 4096, 6144, 8191])
  assert.deepEqual(rotationTicks(1), [0, 1])
})
