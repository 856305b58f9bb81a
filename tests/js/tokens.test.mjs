// What the card of a token says.
import { test } from "node:test"
import assert from "node:assert/strict"
import { find, points, range } from "../../ui/components/js/tokens_card.js"

const part = (position) => ({ position, id: position })
const CHIPS = [{ label: "a", parts: [part(0)] }, { label: "国", parts: [part(1), part(2), part(3)] }]

test("a token is found in its character", () => {
  assert.equal(find(CHIPS, 0).chip.label, "a")
  assert.equal(find(CHIPS, 3).index, 2)
  assert.equal(find(CHIPS, 3).chip.label, "国")
  assert.equal(find(CHIPS, 4), null)
})

test("code points, not UTF-16 halves", () => {
  assert.deepEqual(points("a😀\n", { a: "LATIN SMALL LETTER A", "😀": "GRINNING FACE", "\n": "" }), [
    { char: "a", code: "U+0061", name: "LATIN SMALL LETTER A" },
    { char: "😀", code: "U+1F600", name: "GRINNING FACE" },
    { char: "\n", code: "U+000A", name: "" }])
})

test("spans name first and last", () => {
  assert.deepEqual([[3, 9], [3, 4], [3, 3]].map(range), ["3–8", "3", ""])
})
