import assert from "node:assert/strict"
import { readFileSync } from "node:fs"
import { test } from "node:test"

import { announced, chipProbability, collapse, cost, describe, target } from "../../ui/components/js/chips.js"
import { contrast, ramp, shade } from "../../ui/components/js/ramp.js"

const stringsOf = (lang) => {
  const toml = readFileSync(new URL(`../../locales/${lang}/strip.toml`, import.meta.url), "utf8")
  return Object.fromEntries([...toml.matchAll(/^(\w+) = "(.*)"$/gm)].map(([, key, text]) => [key, text]))
}
const strings = stringsOf("en")

const step = (index, p, more = {}) => ({ index, p, after: p, rank: 1, rule: "sample", ...more })
const chip = (label, steps, parts = [{ label, id: 7, position: 3 }]) => ({ label, parts, special: false, steps })

test("text on every shade can be read", () => {
  for (const theme of ["light", "dark"]) {
    for (let i = 0; i <= 1000; i++) {
      const { color } = ramp(i / 1000, theme)
      const ink = color === "#ffffff" ? [255, 255, 255] : [0, 0, 0]
      assert.ok(contrast(shade(i / 1000, theme), ink) >= 4.5, `${theme} ${i / 1000}`)
    }
  }
  assert.equal(contrast([0, 0, 0], [255, 255, 255]), 21)
})

test("a likelier token is stronger, and nothing falls off the ramp", () => {
  const blues = [0, 0.25, 0.5, 0.75, 1].map((p) => shade(p, "light")[0])
  assert.deepEqual([...blues].sort((a, b) => b - a), blues)
  assert.deepEqual(shade(-1, "dark"), shade(0, "dark"))
  assert.deepEqual(shade(2, "dark"), shade(1, "dark"))
})

test("a short prompt is shown whole, a long one by its ends", () => {
  const words = Array.from({ length: 300 }, (_, i) => `w${i}`)
  assert.equal(collapse(words.slice(0, 5), 80), null)
  const [head, tail] = collapse(words, 80)
  assert.ok(head >= 3 && tail > head && tail < 300)
  const shown = [...words.slice(0, head), ...words.slice(tail)]
  assert.ok(shown.reduce((sum, word) => sum + cost(word), 0) <= 80)
})

test("one enormous token or a narrow screen still shows the end of the prompt", () => {
  assert.equal(cost("x".repeat(300)), 40)
  assert.equal(cost("国"), 5)
  const [, tail] = collapse(Array.from({ length: 50 }, () => "x".repeat(300)), 30)
  assert.equal(tail, 49)
})

test("a character of several tokens has the product of their probabilities", () => {
  const two = chip("国", [step(0, 0.5), step(1, 0.4)],
    [{ label: "‹E5›", id: 1, position: 5 }, { label: "‹9B BD›", id: 2, position: 6 }])
  assert.equal(chipProbability(two), 0.2)
  assert.deepEqual(describe(two, strings), ["国", "2 tokens make this one together: ‹E5› (1) ‹9B BD› (2)",
    "position 5", "probability of all of it: 50.0 % × 40.0 % = 20.0 %"])
})

test("what is said of a token", () => {
  assert.deepEqual(describe(chip("␣a", []), strings), ["␣a", "id 7", "position 3", "part of the prompt"])
  assert.deepEqual(describe(chip("b", [step(2, 0.25, { after: 0, rank: 4, rule: "forced" })]), strings),
    ["b", "id 7", "position 3", "model 25.0 %", "after the filters 0 %", "rank 4", "chosen by you (forced), not drawn"])
})

test("a click goes to the chip's step, and on through its parts", () => {
  const two = chip("国", [step(4, 0.5), step(5, 0.4)])
  assert.equal(target(two, 0), 4)
  assert.equal(target(two, 4), 5)
  assert.equal(target(two, 5), 4)
  assert.equal(target(chip("a", [step(3, 1)]), 3), 3)
})

test("what a screen reader hears of the step in view is in the page's language", () => {
  const data = { view: 0, steps: ["␣Paris"], limit: 24, strings, chips: [chip("␣Paris", [step(0, 0.773)])] }
  assert.equal(announced(data), "step 1 of at most 24: ␣Paris, model 77.3 %")
  assert.equal(announced({ ...data, strings: stringsOf("zh") }), "第 1 步，最多 24 步：␣Paris，模型概率 77.3 %")
  assert.equal(announced({ ...data, chips: [] }), "step 1 of at most 24: ␣Paris")
  assert.equal(announced({ ...data, view: -1 }), "")
})
