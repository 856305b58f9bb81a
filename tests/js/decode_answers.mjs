// Reads questions as JSON on stdin, answers them with decode.js: for the comparison with Python.
import { readFileSync } from "node:fs"
import { applyStages, draw, entropyAfter, prepare } from "../../ui/components/js/decode.js"
import { textIds, textPrepared, textSteps } from "../../ui/components/js/stages_text.js"

// What looks at the text comes first, where there is one: {text, forbidden} as a page sends them.
function entering(raw, settings, sent) {
  if (!sent) return raw
  const forbidden = Object.entries(sent.forbidden).map(([name, ids]) => [name, textIds(ids)])
  return textPrepared(raw, textSteps(raw, settings, sent.text, Object.fromEntries(forbidden)))
}

const answers = JSON.parse(readFileSync(0, "utf8")).map(({ logits, float32, settings, u, sent }) => {
  const row = logits.map((x) => x ?? -Infinity)
  const raw = prepare(float32 ? Float32Array.from(row) : Float64Array.from(row))
  const prepared = entering(raw, settings, sent)
  const result = applyStages(prepared, settings)
  return {
    order: [...raw.order],
    survivors: result.stages.map((stage) => stage.survivors),
    mass: result.stages.map((stage) => stage.mass),
    probabilities: [...result.probabilities],
    drawn: draw(result, u),
    highest: prepared.order[0],
    nats: entropyAfter(result.interval).nats,
  }
})
process.stdout.write(JSON.stringify(answers))
