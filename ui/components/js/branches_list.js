// The paths in a list: each can be named, opened, ticked for a comparison and deleted.

import { el, fmt } from "./dom.js"
import { nameOf } from "./branches_tree.js"

export const MOST_TICKED = 5

// The ticked branches that still exist, as places among the branches; at most five.
export function ticked(paths, marks) {
  const there = paths.filter((path) => path.index !== null && !path.current && path.comparable)
  return there.map((path) => path.index).filter((index) => marks.has(index)).slice(0, MOST_TICKED)
}

export function namesOf(paths) {
  return paths.filter((path) => path.index !== null).map((path) => path.name)
}

// Whether branches stand at other places than before, so that ticks would be on others: more
// than one name changed (one may have been given by hand), or one is gone.
export function moved(before, names) {
  return names.length < before.length || before.filter((name, i) => name !== names[i]).length > 1
}

function tick(path, name, data, marks, hands) {
  const s = data.strings
  if (path.index === null || path.current) {
    return el("span", { class: "mark", title: s.branch_in_view }, "▶")
  }
  const full = ticked(data.paths, marks).length >= MOST_TICKED && !marks.has(path.index)
  const box = el("input", {
    type: "checkbox", "data-key": `tick${path.index}`, "aria-label": fmt(s.branch_pick, { name }), title: fmt(s.branch_pick, { name }),
    disabled: !path.comparable || full, onchange: () => hands.tick(path.index),
  })
  box.checked = marks.has(path.index)
  return box
}

function title(path, name, data, hands) {
  if (path.index === null) return el("b", { class: "name" }, name)
  const field = el("input", {
    type: "text", class: "name", maxlength: 40, "data-key": `name${path.index}`, spellcheck: "false",
    "aria-label": fmt(data.strings.branch_rename, { name }),
  })
  field.value = path.name
  field.onchange = () => hands.rename(path.index, field.value)
  field.onkeydown = (event) => {
    if (event.key === "Escape") field.value = path.name
    if (event.key === "Enter" || event.key === "Escape") field.blur()
  }
  return field
}

function buttons(path, name, data, hands) {
  const s = data.strings
  if (path.index === null) {
    return el("button", { type: "button", class: "act", "data-key": "keep", onclick: () => hands.keep() }, s.branch_keep)
  }
  const about = fmt(s.branch_open_help, { name })
  return [
    path.current ? null : el("button", {
      type: "button", class: "act", "data-key": `open${path.index}`, title: about, "aria-label": about, onclick: () => hands.open(path),
    }, s.branch_open),
    el("button", {
      type: "button", class: "act drop", "data-key": `drop${path.index}`, title: fmt(s.branch_drop, { name }),
      "aria-label": fmt(s.branch_drop, { name }), onclick: () => hands.drop(path.index),
    }, "✕"),
  ]
}

function facts(path, s) {
  if (path.fault !== null) return el("span", { class: "dim" }, path.fault)
  const parting = path.current ? s.branch_in_view
    : path.parts === null ? s.branch_same : fmt(s.branch_parts_at, { n: path.parts })
  const all = [`Σ ln p ${path.logprob}`, fmt(path.count === 1 ? s.branch_count_one : s.branch_count, { n: path.count }), path.ended, parting]
  return el("span", { class: "facts" }, all.filter(Boolean).map((fact) => el("span", {}, fact)))
}

export function listNode(data, marks, hands) {
  const s = data.strings
  return el("ul", { class: "paths", "aria-label": s.branches_list }, data.paths.map((path) => {
    const name = nameOf(path, s)
    return el("li", { class: path.current ? "now" : null, "aria-current": path.current ? "true" : null },
      tick(path, name, data, marks, hands), title(path, name, data, hands),
      el("bdi", { class: "said", title: path.text }, path.text), facts(path, s),
      el("span", { class: "buttons" }, buttons(path, name, data, hands)))
  }))
}
