// The tree of a beam search: where nodes stand, what belongs together, where keys lead.
import assert from "node:assert/strict"
import { test } from "node:test"
import {
  HEAD, ROOT_WIDTH, SIZES, asList, chainOf, countsOf, difference, edge, firstSize, labelsOf, layoutOf, moveTo, nodesOf,
  signed, surviving,
} from "../../ui/components/js/beam_layout.js"
import { fateSentences, tailOf } from "../../ui/components/js/beam_card.js"
import { greedySentence, summaryOf } from "../../ui/components/js/beam_parts.js"

const node = (label, parent, fate = "live", loss = null) => ({ label, parent, fate, loss, p: 0.5, sum: -1, score: -1, end: fate === "finished" })

// red, blue → (blue) sky, (red) rose, lost: (red) sky, (red) end → both end.
const data = {
  labels: ["red", "blue", "sky", "rose", "<end>"], ids: [0, 1, 2, 3, 4], special: [4], specials: new Set([4]),
  width: 2, places: 2, kind: "plain", limit: 3, alpha: 0, stop: "full", wanted: 2,
  steps: [
    { beams: 1, hypotheses: 0, hope: -0.6, bar: null, displaced: 0, candidates: [node(0, -1), node(1, -1)] },
    { beams: 2, hypotheses: 0, hope: -0.9, bar: null, displaced: 0, candidates: [
      node(2, 1), node(3, 0),
      node(2, 0, "lost", { reason: "outside_beam", to: [1, 1], by: 0.22314 }),
      node(4, 0, "lost", { reason: "end_outside_beam", to: [1, 1], by: 0 }),
    ] },
    { beams: 2, hypotheses: 2, hope: null, bar: -1.5, displaced: 0, candidates: [node(4, 0, "finished"), node(4, 1, "finished")] },
  ],
  ranking: [{ rank: 1, node: [2, 0], extra: false }, { rank: 2, node: [2, 1], extra: true }],
  displaced: [],
  greedy: { path: [[0, 0], [1, 1], [2, 1]], leaves: "whole", tokens: [0, 3, 4] },
  strings: {
    lost_outside_beam: "{to} took the last of {n}, by {by}", lost_end_outside_beam_tie: "tie with {to} of {n}",
    card_live: "live", card_died: "died", card_finished: "finished", card_rank: "rank {rank}", card_beyond: "beyond {n}",
    card_displaced: "out at {step} by {to}, {by}",
    greedy_same: "same as {rank}", greedy_whole: "whole", greedy_lost: "lost at {step}: {token}", greedy_unseen: "unseen after {step}",
    greedy_unseen_first: "never", greedy_ended: "ended {step}",
    summary_step: "{n} after {beams}: {live}/{finished}/{lost}", summary_held: "held {held}", summary_full: "bar {bar}",
    summary_hope: "hope {hope}", summary_displaced: "out {n}", stop_full: "full", stop_none: "open",
  },
}
const closed = { shown: 3, open: new Set(), always: new Set(), size: 2 }

test("steps go across, and what continues the upper beam stands above", () => {
  const layout = layoutOf(data, closed)
  const xs = layout.columns.map((column) => column.x)
  assert.ok(xs[0] > ROOT_WIDTH && xs[1] > xs[0] && xs[2] > xs[1])
  assert.equal(xs[1] - xs[0], SIZES[2].width + SIZES[2].across)
  // rose continues red, the upper one, so it stands above sky though sky is likelier.
  assert.deepEqual(layout.columns[1].nodes.map((n) => n.name), ["1:1", "1:0"])
  assert.deepEqual(layout.columns[2].nodes.map((n) => n.parent), ["1:1", "1:0"])
  assert.equal(layout.columns[0].nodes[0].y, HEAD)
})

test("no two lines cross, and no two nodes overlap", () => {
  const layout = layoutOf(data, { ...closed, open: new Set([1]) })
  const all = nodesOf(layout)
  for (const column of layout.columns) {
    const kept = column.nodes.filter((n) => n.candidate.fate !== "lost")
    const parents = kept.map((n) => all.get(n.parent)?.y ?? 0)
    assert.deepEqual(parents, [...parents].sort((a, b) => a - b))
    column.nodes.slice(1).forEach((n, i) => assert.ok(n.y >= column.nodes[i].y + layout.sizes.height))
    for (const n of column.nodes) {
      assert.ok(n.x + layout.sizes.width <= layout.width)
      assert.ok(n.y + layout.sizes.height <= layout.height)
    }
    assert.ok(column.y + 24 <= layout.height || column.lost === 0)
  }
})

test("the lost ones are counted, opened step by step, and stand last", () => {
  const shut = layoutOf(data, closed)
  assert.deepEqual(shut.columns.map((c) => [c.lost, c.hidden, c.nodes.length]), [[0, 0, 2], [2, 2, 2], [0, 0, 2]])
  const open = layoutOf(data, { ...closed, open: new Set([1]) })
  assert.deepEqual(open.columns[1].nodes.map((n) => n.candidate.fate), ["live", "live", "lost", "lost"])
  assert.equal(open.columns[1].hidden, 0)
  const one = layoutOf(data, { ...closed, always: new Set(["1:3"]) })
  assert.deepEqual(one.columns[1].nodes.map((n) => n.name), ["1:1", "1:0", "1:3"])
  assert.equal(one.columns[1].hidden, 1)
})

test("step by step: later columns are not there, and what lives is judged at that step", () => {
  const two = layoutOf(data, { ...closed, shown: 2 })
  assert.equal(two.columns.length, 2)
  assert.deepEqual([...surviving(data, 1)].sort(), ["0:0", "0:1"])
  assert.deepEqual([...surviving(data, 2)].sort(), ["0:0", "0:1", "1:0", "1:1"])
  const narrow = { ...data, ranking: data.ranking.slice(0, 1) }
  assert.deepEqual([...surviving(narrow, 3)].sort(), ["0:1", "1:0", "2:0"])
  // A search that could go on: its beams are alive.
  const going = { ...data, stop: null, ranking: [], steps: data.steps.slice(0, 2) }
  assert.equal(surviving(going, 2).size, 4)
})

test("a chain follows the parents to the first token", () => {
  assert.deepEqual(chainOf(data, [2, 0]), ["0:1", "1:0", "2:0"])
  assert.deepEqual(labelsOf(data, [2, 1]), [0, 3, 4])
  assert.deepEqual(chainOf(data, [9, 0]), [])
  assert.deepEqual(chainOf(data, [0, 7]), [])
})

test("keys: left to the parent, right to the child on the best way, up and down in a step", () => {
  const layout = layoutOf(data, { ...closed, open: new Set([1]) })
  const best = new Set(chainOf(data, [2, 0]))
  assert.equal(moveTo("ArrowRight", "0:0", layout, best), "1:1")
  assert.equal(moveTo("ArrowRight", "0:1", layout, best), "1:0")
  assert.equal(moveTo("ArrowLeft", "1:2", layout, best), "0:0")
  assert.equal(moveTo("ArrowLeft", "0:0", layout, best), null)
  assert.equal(moveTo("ArrowRight", "1:2", layout, best), null)
  assert.equal(moveTo("ArrowDown", "0:0", layout, best), "0:1")
  assert.equal(moveTo("ArrowDown", "0:1", layout, best), null)
  assert.equal(moveTo("ArrowUp", "0:0", layout, best), null)
  assert.equal(moveTo("Home", "2:1", layout, best), "0:0")
  assert.equal(moveTo("End", "0:0", layout, best), "2:0")
  assert.equal(moveTo("ArrowDown", "gone", layout, best), "0:0")
  assert.equal(moveTo("a", "0:0", layout, best), null)
  assert.equal(moveTo("ArrowDown", "x", layoutOf({ ...data, steps: [] }, closed), best), null)
})

test("every node can be reached with arrows alone", () => {
  const layout = layoutOf(data, { ...closed, open: new Set([1]) })
  const best = new Set(chainOf(data, [2, 0]))
  const seen = new Set(["0:0"])
  const waiting = ["0:0"]
  while (waiting.length) {
    const here = waiting.pop()
    for (const key of ["ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight"]) {
      const next = moveTo(key, here, layout, best)
      if (next && !seen.has(next)) { seen.add(next); waiting.push(next) }
    }
  }
  assert.equal(seen.size, nodesOf(layout).size)
})

test("sixteen beams of twenty-four steps stay small enough to draw, and many rows are drawn small", () => {
  const wide = { ...data, steps: Array.from({ length: 24 }, (_, s) => ({ ...data.steps[0], candidates:
    Array.from({ length: 32 }, (_, i) => node(0, s ? i % 16 : -1, i < 16 ? "live" : "lost", i < 16 ? null : { reason: "outside_beam", to: [s, 15], by: 1 })) })) }
  assert.equal(firstSize(16, 24, 900), 0)
  const layout = layoutOf(wide, { shown: 24, open: new Set(), always: new Set(), size: 0 })
  assert.equal(nodesOf(layout).size, 24 * 16)
  assert.ok(layout.height < 600)
  assert.equal(firstSize(4, 3, 1600), 2)
  assert.equal(firstSize(4, 3, 640), 1)
  assert.equal(firstSize(4, 24, 600), 1)
  assert.equal(asList(390), true)
  assert.equal(asList(900), false)
})

test("a line starts at the right of the parent and ends at the left of the child", () => {
  const layout = layoutOf(data, closed)
  const all = nodesOf(layout)
  const d = edge(all.get("0:0"), all.get("1:1"), layout.sizes)
  const numbers = d.match(/[\d.]+/g).map(Number)
  assert.equal(numbers[0], all.get("0:0").x + layout.sizes.width)
  assert.equal(numbers.at(-2), all.get("1:1").x)
  assert.equal(numbers[1], HEAD + layout.sizes.height / 2)
})

test("what became of a node is said in words", () => {
  const alive = surviving(data, 3)
  assert.deepEqual(fateSentences(data, [1, 2], alive), ["red rose took the last of 2, by 0.223"])
  assert.deepEqual(fateSentences(data, [1, 3], alive), ["tie with red rose of 2"])
  assert.deepEqual(fateSentences(data, [2, 0], alive), ["finished", "rank 1"])
  assert.deepEqual(fateSentences(data, [2, 1], alive), ["finished", "rank 2", "beyond 2"])
  assert.deepEqual(fateSentences(data, [0, 1], alive), ["live"])
  assert.deepEqual(fateSentences(data, [0, 1], new Set()), ["died"])
  const out = { ...data, ranking: data.ranking.slice(0, 1), displaced: [{ node: [2, 1], step: 2, to: [2, 0], by: 0.5 }] }
  assert.deepEqual(fateSentences(out, [2, 1], alive), ["finished", "out at 3 by blue sky <end>, 0.500"])
  assert.equal(tailOf({ ...data, labels: ["a"], steps: Array.from({ length: 6 }, (_, s) => ({ candidates: [node(0, s ? 0 : -1)] })) }, [5, 0]), "… a a a a")
})

test("greedy's way and the step in view are told in words", () => {
  assert.equal(greedySentence(data), "same as 2")
  const with_ = (leaves, path) => greedySentence({ ...data, greedy: { path, leaves, tokens: [] } })
  assert.equal(with_("lost", [[0, 0], [1, 2]]), "lost at 2: sky")
  assert.equal(with_("unseen", [[0, 0]]), "unseen after 1")
  assert.equal(with_("unseen", []), "never")
  assert.equal(with_("ended", [[0, 0]]), "ended 1")
  assert.deepEqual(summaryOf(data, 2), ["4 after 2: 2/0/2", "held 0", "hope −0.900"])
  assert.deepEqual(summaryOf(data, 3), ["2 after 2: 0/2/0", "held 2", "bar −1.500", "full"])
  assert.deepEqual(summaryOf({ ...data, steps: [] }, 0), [])
  assert.deepEqual(countsOf(data.steps[1]), { live: 2, finished: 0, cut: 0, lost: 2 })
})

test("numbers have real minus signs, and a small difference is still one", () => {
  assert.equal(signed(-1.23456), "−1.235")
  assert.equal(signed(0), "0.000")
  assert.equal(signed(-0.00001), "0.000")
  assert.equal(signed(null), "–")
  assert.equal(signed(-Infinity), "−∞")
  assert.equal(difference(0), "0")
  assert.equal(difference(0.25), "0.250")
  assert.equal(difference(0.000012), "0.000012")
})
