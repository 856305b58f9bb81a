// The tree itself: lines in an SVG, and a real button for each node.

import { el, fmt, percent, svg } from "./dom.js"
import { edge, nodesOf, signed } from "./beam_layout.js"

export const MARKS = { live: "●", finished: "■", cut: "◧", lost: "✕" }

// Everything about a node in one sentence, for those who don't see the tree.
export function nodeSentence(data, node) {
  const { candidate } = node
  const s = data.strings
  return fmt(s.node_label, {
    token: data.labels[candidate.label], fate: s[`fate_${candidate.fate}`], p: percent(candidate.p),
    sum: signed(candidate.sum), score: signed(candidate.score), step: node.step + 1,
  })
}

function nodeButton(data, node, view, hooks) {
  const { candidate, name } = node
  const s = data.strings
  const { sizes } = view.layout
  const lines = [el("span", { class: "line first" },
    el("i", { class: "mark", "aria-hidden": "true" }, MARKS[candidate.fate]),
    el("bdi", { class: data.specials.has(candidate.label) ? "label control" : "label" }, data.labels[candidate.label]),
    view.greedy.has(name) && el("b", { class: "greedy-badge", title: s.legend_greedy, "aria-hidden": "true" }, "G"))]
  if (sizes.lines > 1) lines.push(el("span", { class: "line" }, el("span", {}, percent(candidate.p)), el("em", {}, typeof candidate.group === "number" && el("b", { class: "group-badge" }, candidate.group + 1), s[`fate_${candidate.fate}`])))
  if (sizes.lines > 2) {
    lines.push(el("span", { class: "line sums" }, el("span", {}, `Σ ${signed(candidate.sum, 2)}`),
      data.alpha !== 0 && el("span", {}, `s ${signed(candidate.score, 2)}`)))
  }
  const state = ["node", candidate.fate, !view.alive.has(name) && candidate.fate !== "lost" && "faded",
    view.path.has(name) && "on-path", view.selected === name && "selected", view.best.has(name) && "best"]
  const sentence = nodeSentence(data, node)
  return el("button", {
    type: "button", class: state.filter(Boolean).join(" "), "data-key": name, "aria-label": sentence, title: sentence,
    "aria-pressed": String(view.selected === name), tabindex: view.cursor === name ? 0 : -1,
    style: { left: `${node.x}px`, top: `${node.y}px`, width: `${sizes.width}px`, height: `${sizes.height}px` },
    onclick: () => hooks.select(name), onfocus: () => hooks.point(name, true),
    onmouseenter: () => hooks.point(name), onmouseleave: () => hooks.point(null),
  }, lines)
}

function lines(data, view) {
  const { layout } = view
  const all = nodesOf(layout)
  const drawn = { faint: [], alive: [], path: [], greedy: [] }
  for (const node of all.values()) {
    const from = node.parent === "root" ? layout.root : all.get(node.parent)
    if (!from) continue
    const d = edge(from, node, layout.sizes)
    const lost = node.candidate.fate === "lost"
    const kind = view.path.has(node.name) ? "path" : view.alive.has(node.name) ? "alive" : "faint"
    drawn[kind].push(svg("path", { d, class: lost ? `${kind} dashed` : kind }))
    if (view.greedy.has(node.name)) drawn.greedy.push(svg("path", { d: edge(from, node, layout.sizes, 4), class: "greedy" }))
  }
  return svg("svg", { width: layout.width, height: layout.height, "aria-hidden": "true" }, Object.values(drawn))
}

function columnHead(column, data, view, hooks) {
  const s = data.strings
  const { sizes } = view.layout
  const toggle = column.more && el("button", {
    type: "button", class: "more", "data-key": `more-${column.index}`, "aria-expanded": String(view.open.has(column.index)),
    style: { left: `${column.x}px`, top: `${column.y}px`, width: `${sizes.width}px` },
    onclick: () => hooks.toggle(column.index),
  }, view.open.has(column.index) ? s.lost_hide : fmt(s.lost_count, { n: column.hidden }))
  const hidden = toggle && !view.open.has(column.index) && column.hidden === 0
  return [el("span", { class: column.index === view.shown - 1 ? "head now" : "head", style: { left: `${column.x}px`, width: `${sizes.width}px` } },
    fmt(s.column, { n: column.index + 1 })), !hidden && toggle]
}

// `view` says what is shown and how: layout, shown, open, alive, path, greedy, best, selected, cursor.
export function treeNode(data, view, hooks) {
  const s = data.strings
  const { layout } = view
  const steps = layout.columns.map((column) => el("div", { role: "group", "aria-label": fmt(s.column, { n: column.index + 1 }) },
    columnHead(column, data, view, hooks), column.nodes.map((node) => nodeButton(data, node, view, hooks))))
  return el("div", {
    class: "tree", role: "group", "data-lines": layout.sizes.lines,
    "aria-label": fmt(s.tree_label, { steps: data.steps.length, width: data.width }),
    style: { width: `${layout.width}px`, height: `${layout.height}px` },
  }, lines(data, view),
  el("span", { class: "root-node", style: { top: `${layout.root.y}px`, width: `${layout.root.width}px`, height: `${layout.sizes.height}px` } }, s.prompt),
  steps)
}
