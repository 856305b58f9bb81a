import assert from "node:assert/strict"
import { test } from "node:test"

import { walkTo } from "../../ui/components/js/walk.js"

test("up, down, Home and End walk and stop at the ends", () => {
  assert.deepEqual(["ArrowDown", "ArrowUp", "Home", "End"].map((key) => walkTo(key, 2, 5)), [3, 1, 0, 4])
  assert.equal(walkTo("ArrowDown", 4, 5), 4)
  assert.equal(walkTo("ArrowUp", 0, 5), 0)
})

test("other keys, and keys from elsewhere, lead nowhere", () => {
  for (const key of ["ArrowLeft", "ArrowRight", " ", "Enter"]) assert.equal(walkTo(key, 2, 5), null)
  assert.equal(walkTo("ArrowDown", -1, 5), null)
})
