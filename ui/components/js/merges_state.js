// One word between two merges: pure functions of the word and of how many merges are done.

// The symbols after `done` merges, as [{id, fresh, size}]: `fresh` is what the last merge made,
// `size` how many symbols of the start it holds.
export function symbolsAt(word, done) {
  let symbols = word.start.map((id) => ({ id, fresh: false, size: 1 }))
  for (const [index, merge] of word.merges.slice(0, done).entries()) {
    const [left, right] = symbols.slice(merge.at, merge.at + 2)
    const made = { id: merge.result, fresh: index === done - 1, size: left.size + right.size }
    symbols = [...symbols.slice(0, merge.at), made, ...symbols.slice(merge.at + 2)]
  }
  return symbols
}

// What stands between neighbours: [{rank, wins}], rank null where the table has no rule.
export function linksAt(word, done) {
  const merge = word.merges[done]
  const ranks = new Map(merge?.ranks ?? [])
  const count = symbolsAt(word, done).length - 1
  return Array.from({ length: Math.max(count, 0) }, (_, at) => ({
    rank: ranks.get(at) ?? null,
    wins: merge !== undefined && merge.at === at,
  }))
}

// The competing pairs before the next merge, best first: [{rank, left, right, result, wins}].
export function pairsAt(word, done) {
  const merge = word.merges[done]
  if (!merge) return { pairs: [], more: 0 }
  const pairs = merge.pairs.map(([at, rank, left, right, result]) => (
    { at, rank, left, right, result, wins: at === merge.at }))
  return { pairs, more: merge.more }
}

// Where `key` leads from `done` of `count` merges; null when it leads nowhere.
export function moveTo(what, done, count) {
  const to = { start: 0, back: done - 1, next: done + 1, end: count }[what]
  return to === undefined || to < 0 || to > count || to === done ? null : to
}
