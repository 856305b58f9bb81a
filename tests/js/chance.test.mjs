import assert from "node:assert/strict"
import { test } from "node:test"
import { isReroll, nextSeed, rollsText, seedOf } from "../../ui/components/js/candidates_dice.js"
import { columnsOf, linkOf, nameOf, partText } from "../../ui/components/js/branches_tree.js"
import { moved, namesOf, ticked } from "../../ui/components/js/branches_list.js"

const MOST = "9223372036854775807"

test("a D throws again, unless it is typed or meant for the browser", () => {
  const body = { tag: "body", role: null, editable: false }
  assert.ok(isReroll({ key: "d" }, body))
  assert.ok(isReroll({ key: "D" }, { ...body, tag: "button" }))
  for (const held of ["ctrl", "meta", "alt", "composing"]) assert.ok(!isReroll({ key: "d", [held]: true }, body))
  for (const tag of ["input", "textarea", "select"]) assert.ok(!isReroll({ key: "d" }, { ...body, tag }))
  for (const role of ["textbox", "combobox", "spinbutton", "listbox"]) assert.ok(!isReroll({ key: "d" }, { ...body, role }))
  assert.ok(!isReroll({ key: "d" }, { ...body, editable: true }))
  assert.ok(!isReroll({ key: "r" }, body))
})

test("seeds beyond what a browser counts with stay exact", () => {
  assert.equal(seedOf("9223372036854775807", MOST), MOST)
  assert.equal(seedOf("9007199254740993", MOST), "9007199254740993")
  assert.equal(seedOf(" 1,234 567 ", MOST), "1234567")
  assert.equal(seedOf("007", MOST), "7")
  for (const bad of ["", "-1", "1.5", "1e3", "0x10", "nine", "9223372036854775808", "9".repeat(40)]) {
    assert.equal(seedOf(bad, MOST), null)
  }
  assert.equal(nextSeed("9007199254740992", MOST), "9007199254740993")
  assert.equal(nextSeed(MOST, MOST), "0")
})

test("the way of the dice is told, the last throws of many", () => {
  const strings = { rolls_one: "once {before} → {u}", rolls_n: "{n} times {before} → {u}" }
  assert.equal(rollsText({ u: 0.5, roll: 0, before: [] }, strings), null)
  assert.equal(rollsText({ u: null, roll: 3, before: [] }, strings), null)
  assert.equal(rollsText({ u: 0.5, roll: 1, before: [0.25] }, strings), "once 0.250 → 0.500")
  assert.equal(rollsText({ u: 0.5, roll: 1200, before: [0.1, 0.2, 0.3, 0.4] }, strings),
    "1,200 times … → 0.200 → 0.300 → 0.400 → 0.500")
})

test("a path without a name is this run; a part says its steps and how it came", () => {
  const s = { branch_this: "this run", branch_forced: "forced", branch_rolled: "thrown again",
    branch_part: "“{name}”, {from}–{to}: {text}", branch_part_one: "“{name}”, {from}: {text}" }
  assert.equal(nameOf({ index: null, name: "A" }, s), "this run")
  assert.equal(nameOf({ index: 2, name: "A" }, s), "A")
  assert.equal(partText({ step: 1, stop: 4, first: "a", rest: "bc", how: "" }, "A", s), "“A”, 2–4: abc")
  assert.equal(partText({ step: 1, stop: 2, first: "{to}", rest: "", how: "forced" }, "A", s), "“A”, 2: {to} (forced)")
})

test("columns are as wide as their tokens, and a path hangs on the row of its parent", () => {
  assert.equal(columnsOf([{ weight: 1 }, { weight: 10 }]), "auto minmax(6.5rem, 1fr) minmax(6.5rem, 10fr)")
  assert.equal(linkOf({ parent: null }, 0), null)
  assert.deepEqual(linkOf({ parent: 1, column: 2 }, 3), { column: 4, from: 3, to: 5 })
})

test("ticks go when branches change their places", () => {
  assert.deepEqual(namesOf([{ index: null, name: "" }, { index: 0, name: "A" }]), ["A"])
  assert.ok(!moved([], ["A"]))
  assert.ok(!moved(["A", "B"], ["A", "B", "C"]))
  assert.ok(!moved(["A", "B"], ["A", "mine"]))
  assert.ok(moved(["A", "B"], ["B"]))
  assert.ok(moved(["A", "B", "C"], ["B", "C", "D"]))
})

test("at most five other branches are ticked", () => {
  const paths = [{ index: null, current: true, comparable: true },
    ...Array.from({ length: 8 }, (_, index) => ({ index, current: index === 1, comparable: index !== 2 }))]
  assert.deepEqual(ticked(paths, new Set([0, 1, 2, 3, 9])), [0, 3])
  assert.deepEqual(ticked(paths, new Set([0, 1, 2, 3, 4, 5, 6, 7])), [0, 3, 4, 5, 6])
})
