// Answers questions on stdin ([{q, k, rope, m, n}]) with the browser's arithmetic, as JSON.
import { rotationDot, rotationPair, rotationTerms, rotationWhole } from "../../ui/components/js/rotation_math.js"

let text = ""
for await (const chunk of process.stdin) text += chunk
const answers = JSON.parse(text).map(({ q, k, rope, m, n }) => {
  const terms = rotationTerms(q, k, rope)
  return {
    dot: rotationDot(q, k, rope, m, n),
    whole: rotationWhole(terms, rope, m - n),
    pairs: rope.frequencies.map((_, i) => rotationPair(terms, rope, i, m - n)),
  }
})
process.stdout.write(JSON.stringify(answers))
