// What is said and shown of the cells of a comparison. Pure.
import { fmt, percent } from "./dom.js"

// The probability of a cell: by the chain rule, the product over its tokens.
export function cellProbability(cell) {
  return cell.parts.reduce((product, part) => product * part.p, 1)
}

// The cell that covers a step, with the token of that step; null after the end of the text.
export function atStep(row, step) {
  const cell = row.cells.find((c) => c.step <= step && step < c.step + c.parts.length)
  return cell ? { cell, part: cell.parts[step - cell.step] } : null
}

// How a cell stands to the first difference from the reference.
export function standing(row, cell) {
  if (row.first === null || row.first === undefined) return row.reference ? "own" : "same"
  if (cell.step + cell.parts.length <= row.first) return "same"
  return cell.step <= row.first ? "first" : "after"
}

export function cellClasses(row, cell) {
  return ["cell", standing(row, cell),
    cell.special && "control",
    cell.parts.some((part) => part.rule === "forced") && "forced"].filter(Boolean).join(" ")
}

export function number(value, digits = 3) {
  return value === null || value === undefined ? "–" : value.toFixed(digits)
}

// One line about a cell, for screen readers and as its title.
export function spoken(row, cell, s) {
  const out = [cell.label, fmt(s.at_step, { n: cell.step + 1 })]
  if (cell.special) out.push(s.control)
  out.push(fmt(s.model_p, { p: percent(cellProbability(cell)) }))
  if (cell.parts.length === 1) {
    const [part] = cell.parts
    out.push(fmt(s.after_p, { p: percent(part.after) }), fmt(s.rank_n, { n: part.rank }))
    if (part.u !== null) out.push(fmt(s.dice_u, { u: number(part.u) }))
    if (part.rule === "forced") out.push(s.forced)
  } else out.push(fmt(s.parts_n, { n: cell.parts.length }))
  if (standing(row, cell) === "first") out.push(s.differs)
  return out.join(" · ")
}

// Steps of the longest row: so many numbers stand above.
export function longest(rows) {
  return rows.reduce((most, row) => Math.max(most, row.cells.reduce((n, c) => n + c.parts.length, 0)), 0)
}

// Where an arrow leads: left and right along a row, up and down to what covers the same step.
export function moveTo(key, at, rows) {
  const row = rows[at.row]
  const here = row.cells.findIndex((cell) => cell.step === at.step)
  const ends = { Home: 0, End: row.cells.length - 1, ArrowLeft: here - 1, ArrowRight: here + 1 }
  if (key in ends) {
    const cell = row.cells[Math.min(row.cells.length - 1, Math.max(0, ends[key]))]
    return cell ? { row: at.row, step: cell.step } : null
  }
  const way = { ArrowUp: -1, ArrowDown: 1 }[key]
  if (!way) return null
  for (let next = at.row + way; next >= 0 && next < rows.length; next += way) {
    const { cells } = rows[next]
    if (!cells.length) continue
    const found = atStep(rows[next], at.step)
    return { row: next, step: (found ? found.cell : cells[cells.length - 1]).step }
  }
  return null
}

// Which cells of a row have to be drawn anew: everything from the first one that changed.
export function changedFrom(before, after) {
  let same = 0
  while (same < before.length && same < after.length && before[same] === after[same]) same += 1
  return same
}

// Where a reader begins: at the first difference of all, else at the first token.
export function start(rows) {
  let best = null
  rows.forEach((row, index) => {
    const cell = row.cells.find((c) => standing(row, c) === "first")
    if (cell && (best === null || cell.step < best.step)) best = { row: index, step: cell.step }
  })
  return best ?? { row: Math.max(0, rows.findIndex((row) => row.cells.length)), step: 0 }
}
