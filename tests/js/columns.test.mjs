import assert from "node:assert/strict"
import test from "node:test"

import { atStep, cellClasses, cellProbability, changedFrom, longest, moveTo, number, spoken, standing, start }
  from "../../ui/components/js/columns_cells.js"
import { closing } from "../../ui/components/js/columns_panel.js"

const part = (id, p, more = {}) => ({ id, label: `t${id}`, p, after: p, rank: 1, u: null, rule: "greedy", ...more })
const cell = (step, ...parts) => ({ label: "x", step, special: false, parts })
const a = { reference: true, first: null, cells: [cell(0, part(1, 0.5)), cell(1, part(2, 0.25), part(3, 0.5)), cell(3, part(4, 1))] }
const b = { reference: false, first: 2, cells: [cell(0, part(1, 0.5)), cell(1, part(2, 0.25)), cell(2, part(5, 0.1, { u: 0.75, rank: 7 }))] }
const s = { at_step: "step {n}", model_p: "model {p}", after_p: "after {p}", rank_n: "rank {n}", dice_u: "u = {u}",
  control: "control", forced: "forced", parts_n: "{n} tokens", differs: "differs" }

test("a cell of several tokens has the product of their probabilities", () => {
  assert.equal(cellProbability(a.cells[1]), 0.125)
  assert.equal(cellProbability(b.cells[2]), 0.1)
})

test("a step lies in the cell that covers it, and nowhere behind the end", () => {
  assert.equal(atStep(a, 2).part.id, 3)
  assert.equal(atStep(a, 3).part.id, 4)
  assert.equal(atStep(b, 3), null)
})

test("the first difference is one cell; before it the same, behind it other text", () => {
  assert.deepEqual(b.cells.map((c) => standing(b, c)), ["same", "same", "first"])
  assert.deepEqual(a.cells.map((c) => standing(a, c)), ["own", "own", "own"])
  const merged = { first: 2, cells: a.cells }
  assert.deepEqual(merged.cells.map((c) => standing(merged, c)), ["same", "first", "after"])
  assert.equal(cellClasses(b, b.cells[2]), "cell first")
})

test("what is read aloud", () => {
  assert.equal(spoken(b, b.cells[2], s), "x · step 3 · model 10.0 % · after 10.0 % · rank 7 · u = 0.750 · differs")
  assert.equal(spoken(a, a.cells[1], s), "x · step 2 · model 12.5 % · 2 tokens")
  const forced = { ...cell(0, part(1, 0.5, { rule: "forced" })), special: true }
  assert.equal(spoken(a, forced, s), "x · step 1 · control · model 50.0 % · after 50.0 % · rank 1 · forced")
})

test("the header is as long as the longest row", () => {
  assert.equal(longest([a, b]), 4)
  assert.equal(longest([]), 0)
})

test("arrows walk along a row, and to the cell of the same step in another", () => {
  const rows = [a, { cells: [] }, b]
  assert.deepEqual(moveTo("ArrowRight", { row: 0, step: 1 }, rows), { row: 0, step: 3 })
  assert.deepEqual(moveTo("ArrowLeft", { row: 0, step: 0 }, rows), { row: 0, step: 0 })
  assert.deepEqual(moveTo("End", { row: 0, step: 0 }, rows), { row: 0, step: 3 })
  assert.deepEqual(moveTo("Home", { row: 2, step: 2 }, rows), { row: 2, step: 0 })
  assert.deepEqual(moveTo("ArrowDown", { row: 0, step: 1 }, rows), { row: 2, step: 1 })
  assert.deepEqual(moveTo("ArrowDown", { row: 0, step: 3 }, rows), { row: 2, step: 2 })
  assert.deepEqual(moveTo("ArrowUp", { row: 2, step: 2 }, rows), { row: 0, step: 1 })
  assert.equal(moveTo("ArrowUp", { row: 0, step: 0 }, rows), null)
  assert.equal(moveTo("x", { row: 0, step: 0 }, rows), null)
})

test("only what changed is drawn anew", () => {
  assert.equal(changedFrom(["a", "b"], ["a", "b", "c"]), 2)
  assert.equal(changedFrom(["a", "b"], ["a", "x"]), 1)
  assert.equal(changedFrom([], ["a"]), 0)
})

test("a reader begins at the first difference", () => {
  assert.deepEqual(start([a, b]), { row: 1, step: 2 })
  assert.deepEqual(start([{ cells: [] }, a]), { row: 1, step: 0 })
  assert.deepEqual(start([]), { row: 0, step: 0 })
})

test("numbers that are not there are a dash", () => {
  assert.equal(number(null), "–")
  assert.equal(number(0.12345), "0.123")
})

test("the signs that close a token stay with it", () => {
  const parts = [["text", "落在"], ["token", "the"], ["text", "；A 取"], ["token", "a"], ["text", "。"], ["token", ","]]
  assert.deepEqual(parts.map((_, i) => closing(parts, i + 1)), ["", "；", "", "。", "", ""])
  assert.equal(closing([["text", " with it"]], 0), "")
})
