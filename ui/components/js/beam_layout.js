// The tree of a beam search as plain numbers: which nodes stand where, what belongs to which
// path, and where keys lead. Nodes are named "step:place"; the prompt is "root".

// Sizes of a node in pixels, from the smallest to the largest; how many lines of text it has.
export const SIZES = [
  { width: 84, height: 24, gap: 5, across: 26, lines: 1 },
  { width: 118, height: 42, gap: 8, across: 40, lines: 2 },
  { width: 150, height: 66, gap: 11, across: 48, lines: 3 },
]
export const HEAD = 34
export const ROOT_WIDTH = 74
const LIST_BELOW = 640

export const nameOf = (step, place) => `${step}:${place}`
export const nodeOf = (name) => name.split(":").map(Number)

// The size in which a tree of so many rows and steps is first shown: as large as fits the room,
// and never larger than its rows allow.
export function firstSize(rows, steps, room) {
  const most = rows <= 6 ? 2 : rows <= 10 ? 1 : 0
  for (let size = most; size > 0; size--) {
    const { width, across } = SIZES[size]
    if (ROOT_WIDTH + 12 + steps * (width + across) <= room) return size
  }
  return rows <= 6 ? 1 : 0
}

export const asList = (width) => width < LIST_BELOW

export function candidateAt(data, [step, place]) {
  return data.steps[step]?.candidates[place]
}

// The names from the first token to this one.
export function chainOf(data, node) {
  if (!candidateAt(data, node)) return []
  const names = []
  let place = node[1]
  for (let step = node[0]; step >= 0; step--) {
    names.unshift(nameOf(step, place))
    place = data.steps[step].candidates[place].parent
  }
  return names
}

// The places of their labels.
export function labelsOf(data, node) {
  return chainOf(data, node).map((name) => candidateAt(data, nodeOf(name)).label)
}

// What is alive or kept after the first `shown` steps, with everything on the way to it.
export function surviving(data, shown) {
  const kept = new Set()
  const keep = (node) => chainOf(data, node).forEach((name) => kept.add(name))
  if (shown >= data.steps.length) {
    data.ranking.forEach((row) => keep(row.node))
    // A search that has not ended: its beams are alive still.
    if (data.stop !== null) return kept
  }
  const gone = new Set(data.displaced.filter((d) => d.step < shown).map((d) => nameOf(...d.node)))
  data.steps.slice(0, shown).forEach((step, index) => step.candidates.forEach((candidate, place) => {
    const complete = ["finished", "cut"].includes(candidate.fate) && !gone.has(nameOf(index, place))
    if (complete || (candidate.fate === "live" && index === shown - 1)) keep([index, place])
  }))
  return kept
}

// Counts of a step's fates.
export function countsOf(step) {
  const counts = { live: 0, finished: 0, cut: 0, lost: 0 }
  for (const candidate of step.candidates) counts[candidate.fate] += 1
  return counts
}

// Where everything stands. `open` holds the steps whose lost candidates are shown; `always`
// holds names that are shown in any case. Children keep the order of their parents, so no two
// lines cross; the lost ones of a step stand below all others.
export function layoutOf(data, { shown, open, always, size }) {
  const sizes = SIZES[size]
  const pitch = sizes.height + sizes.gap
  const columns = []
  let rowOf = new Map([[-1, 0]])
  let tallest = 1
  data.steps.slice(0, shown).forEach((step, index) => {
    const left = ROOT_WIDTH + sizes.across + index * (sizes.width + sizes.across)
    const all = step.candidates.map((candidate, place) => ({ candidate, place }))
    const order = (a, b) => (rowOf.get(a.candidate.parent) ?? 0) - (rowOf.get(b.candidate.parent) ?? 0) || a.place - b.place
    const kept = all.filter(({ candidate }) => candidate.fate !== "lost").sort(order)
    const lost = all.filter(({ candidate }) => candidate.fate === "lost")
    const seen = lost.filter(({ place }) => open.has(index) || always.has(nameOf(index, place))).sort(order)
    const nodes = [...kept, ...seen].map(({ candidate, place }, row) => ({
      name: nameOf(index, place), step: index, place, candidate, row,
      parent: index === 0 ? "root" : nameOf(index - 1, candidate.parent),
      x: left, y: HEAD + row * pitch,
    }))
    rowOf = new Map(nodes.map((node) => [node.place, node.row]))
    const more = lost.length > 0
    columns.push({ index, x: left, nodes, lost: lost.length, hidden: lost.length - seen.length, y: HEAD + nodes.length * pitch, more })
    tallest = Math.max(tallest, nodes.length + (more ? Math.max(0.6, 28 / pitch) : 0))
  })
  const last = columns.at(-1)
  return {
    columns, sizes,
    root: { x: 0, y: HEAD, width: ROOT_WIDTH },
    width: (last ? last.x + sizes.width : ROOT_WIDTH) + 12,
    height: HEAD + tallest * pitch + 6,
  }
}

export function nodesOf(layout) {
  return new Map(layout.columns.flatMap((column) => column.nodes).map((node) => [node.name, node]))
}

// The line from the middle of one side to the middle of the other.
export function edge(from, to, sizes, shift = 0) {
  const x0 = from.x + (from.width ?? sizes.width)
  const y0 = from.y + sizes.height / 2 + shift
  const y1 = to.y + sizes.height / 2 + shift
  const bend = (to.x - x0) / 2
  return `M${x0} ${y0}C${x0 + bend} ${y0} ${to.x - bend} ${y1} ${to.x} ${y1}`
}

// Where a key leads from the node `name`; null: nowhere. `best` are the names on the way to the
// first in the ranking, which right prefers.
export function moveTo(key, name, layout, best) {
  const all = nodesOf(layout)
  const here = all.get(name)
  const first = layout.columns[0]?.nodes
  if (!first?.length) return null
  if (!here) return first[0].name
  const column = layout.columns[here.step].nodes
  if (key === "ArrowUp" || key === "ArrowDown") {
    const next = column[here.row + (key === "ArrowUp" ? -1 : 1)]
    return next?.name ?? null
  }
  if (key === "ArrowLeft") return all.has(here.parent) ? here.parent : null
  if (key === "ArrowRight") {
    const after = layout.columns[here.step + 1]?.nodes.filter((node) => node.parent === name) ?? []
    return (after.find((node) => best.has(node.name)) ?? after[0])?.name ?? null
  }
  if (key === "Home") return first[0].name
  if (key === "End") {
    const way = [...best].filter((found) => all.has(found))
    return way.at(-1) ?? layout.columns.at(-1).nodes[0]?.name ?? null
  }
  return null
}

// A score or a sum with a real minus sign.
export function signed(x, digits = 3) {
  if (x === null || x === undefined) return "–"
  if (!Number.isFinite(x)) return x < 0 ? "−∞" : "∞"
  const text = Math.abs(x).toFixed(digits)
  return x < 0 && Number(text) !== 0 ? `−${text}` : text
}

// A difference of scores with as many digits as it takes to tell it from 0.
export function difference(x) {
  if (!(x > 0)) return "0"
  return x >= 0.0005 ? x.toFixed(3) : x.toPrecision(2)
}
