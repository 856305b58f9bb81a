// The tree of paths as a grid: a column begins wherever a path parts, a row is a path.

import { el, fmt } from "./dom.js"

const HEAD = 2 // the first row of the grid names the steps
const TRUNK = 2 // and the first column is the prompt

export function nameOf(path, strings) {
  return path.index === null || path.name === "" ? strings.branch_this : path.name
}

// Widths of the columns: as many tokens, as many shares, but never less than a short word.
export function columnsOf(columns) {
  return `auto ${columns.map((column) => `minmax(6.5rem, ${column.weight}fr)`).join(" ")}`
}

// What a part says when it is read aloud or hovered.
export function partText(cell, name, strings) {
  const values = { name, from: cell.step + 1, to: cell.stop, text: `${cell.first}${cell.rest}` }
  const how = cell.how ? ` (${cell.how === "forced" ? strings.branch_forced : strings.branch_rolled})` : ""
  return fmt(cell.stop - cell.step === 1 ? strings.branch_part_one : strings.branch_part, values) + how
}

// The line from the row of the parent down to this one; [column, first row, last row].
export function linkOf(lane, row) {
  if (lane.parent === null) return null
  return { column: lane.column + TRUNK, from: lane.parent + HEAD, to: row + HEAD }
}

function part(cell, lane, path, row, data, hands) {
  const s = data.strings
  const inView = lane.current && data.view >= cell.step && data.view < cell.stop
  const about = partText(cell, nameOf(path, s), s)
  return el("button", {
    type: "button", class: `part ${cell.how}`, title: about, "aria-label": about, tabindex: -1,
    "aria-current": inView ? "step" : null, onclick: () => hands.go(lane, cell.step),
    style: { gridRow: String(row + HEAD), gridColumn: `${cell.from + TRUNK} / ${cell.to + TRUNK}` },
  }, cell.how && el("span", { class: "how", "aria-hidden": "true" }, cell.how === "forced" ? "✎" : "⚄"),
  el("bdi", { class: "first" }, cell.first), el("bdi", { class: "rest" }, cell.rest))
}

function laneNodes(lane, row, path, data, hands) {
  const link = linkOf(lane, row)
  const nodes = lane.cells.map((cell) => part(cell, lane, path, row, data, hands))
  if (lane.cells.length === 0) {
    const text = path.fault ?? (lane.parent === null ? "" : data.strings.branch_stops)
    nodes.push(el("span", {
      class: "part none", title: path.fault, style: { gridRow: String(row + HEAD), gridColumn: String(lane.column + TRUNK) },
    }, text))
  }
  if (link) {
    nodes[0].classList.add("hung")
    nodes.push(el("i", { class: "link", "aria-hidden": "true", style: { gridRow: `${link.from} / ${link.to + 1}`, gridColumn: String(link.column) } }))
  }
  for (const node of nodes) if (lane.current) node.classList.add("now")
  return nodes
}

// `hands.go(lane, step)`; a lane's path is the one with its index.
export function treeNode(data, hands) {
  const s = data.strings
  const { columns, lanes, paths } = data
  const heads = columns.map((column, i) => el("span", {
    class: "head", "aria-hidden": "true", style: { gridRow: "1", gridColumn: String(i + TRUNK) },
  }, fmt(s.branch_step, { n: column.step })))
  const rows = lanes.map((lane, row) => {
    const path = paths.find((x) => x.index === lane.index)
    const name = el("span", { class: `lane-name ${lane.current ? "now" : ""}`, style: { gridRow: String(row + HEAD), gridColumn: String(columns.length + TRUNK) } },
      lane.current && el("span", { "aria-hidden": "true" }, "▶ "), el("bdi", {}, nameOf(path, s)))
    return [...laneNodes(lane, row, path, data, hands), name]
  })
  return el("div", { class: "tree", role: "group", "aria-label": s.branches_tree },
    el("div", { class: "grid", style: { gridTemplateColumns: `${columnsOf(columns)} auto` } },
      el("span", { class: "trunk", title: data.prompt, style: { gridRow: String(HEAD), gridColumn: "1" } }, s.prompt),
      heads, rows))
}
