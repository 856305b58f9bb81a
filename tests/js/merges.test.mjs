// One word between two merges: the states that the picture is drawn from.
import { test } from "node:test"
import assert from "node:assert/strict"
import { linksAt, moveTo, pairsAt, symbolsAt } from "../../ui/components/js/merges_state.js"

// "Ġthe": t+h (rank 0), th+e (rank 1), Ġ+the (rank 3); at the start Ġ+t (rank 2) competes
const WORD = {
  start: [10, 1, 2, 3],
  merges: [
    { at: 1, rank: 0, result: 20, pairs: [[1, 0, 1, 2, 20], [0, 2, 10, 1, 40]], more: 0, ranks: [[1, 0], [0, 2]] },
    { at: 1, rank: 1, result: 21, pairs: [[1, 1, 20, 3, 21]], more: 0, ranks: [[1, 1]] },
    { at: 0, rank: 3, result: 22, pairs: [[0, 3, 10, 21, 22]], more: 0, ranks: [[0, 3]] },
  ],
}

test("symbols after each merge", () => {
  const ids = [0, 1, 2, 3].map((done) => symbolsAt(WORD, done).map((s) => s.id))
  assert.deepEqual(ids, [[10, 1, 2, 3], [10, 20, 3], [10, 21], [22]])
  assert.deepEqual(symbolsAt(WORD, 2), [{ id: 10, fresh: false, size: 1 }, { id: 21, fresh: true, size: 3 }])
  assert.equal(symbolsAt(WORD, 1)[1].fresh, true)
})

test("ranks stand between neighbours, and the winner is marked", () => {
  assert.deepEqual(linksAt(WORD, 0), [
    { rank: 2, wins: false }, { rank: 0, wins: true }, { rank: null, wins: false }])
  assert.deepEqual(linksAt(WORD, 2), [{ rank: 3, wins: true }])
  assert.deepEqual(linksAt(WORD, 3), [])
})

test("competing pairs, best first", () => {
  assert.deepEqual(pairsAt(WORD, 0).pairs.map((p) => [p.rank, p.left, p.right, p.wins]),
    [[0, 1, 2, true], [2, 10, 1, false]])
  assert.deepEqual(pairsAt(WORD, 3), { pairs: [], more: 0 })
})

test("a word that nothing merges", () => {
  const word = { start: [7], merges: [] }
  assert.deepEqual(symbolsAt(word, 0), [{ id: 7, fresh: false, size: 1 }])
  assert.deepEqual(linksAt(word, 0), [])
  assert.deepEqual(linksAt({ start: [7, 8], merges: [] }, 0), [{ rank: null, wins: false }])
})

test("moves stay within the merges", () => {
  assert.deepEqual(["start", "back", "next", "end"].map((what) => moveTo(what, 1, 3)), [0, 0, 2, 3])
  assert.deepEqual(["start", "back"].map((what) => moveTo(what, 0, 3)), [null, null])
  assert.deepEqual(["next", "end"].map((what) => moveTo(what, 3, 3)), [null, null])
  assert.equal(moveTo("sideways", 1, 3), null)
})
