// Reads questions as JSON on stdin, answers them with decode.js: for the comparison with Python.
import { readFileSync } from "node:fs"
import { applyStages, draw, entropyAfter, prepare } from "../../ui/components/js/decode.js"

const answers = JSON.parse(readFileSync(0, "utf8")).map(({ logits, float32, settings, u }) => {
  const row = logits.map((x) => x ?? -Infinity)
  const prepared = prepare(float32 ? Float32Array.from(row) : Float64Array.from(row))
  const result = applyStages(prepared, settings)
  return {
    order: [...prepared.order],
    survivors: result.stages.map((stage) => stage.survivors),
    mass: result.stages.map((stage) => stage.mass),
    probabilities: [...result.probabilities],
    drawn: draw(result, u),
    nats: entropyAfter(result.interval).nats,
  }
})
process.stdout.write(JSON.stringify(answers))
