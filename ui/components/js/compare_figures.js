// The figures of all columns as a table; what a figure means is one click away.
import { el, keepFocus, themeOf } from "./dom.js"
import { nameNode } from "./columns_panel.js"

const open = new WeakMap()

function rowNodes(data, row, shown, toggle) {
  const said = shown.has(row.id)
  const button = el("button", { type: "button", class: "term", "aria-expanded": String(said), "data-key": row.id,
    title: data.strings.what, onclick: () => toggle(row.id) }, row.name, el("span", { class: "ask", "aria-hidden": "true" }, "?"))
  const nodes = [el("tr", {}, el("th", { scope: "row" }, button), row.values.map((value) => el("td", {}, value)))]
  if (row.group) nodes.unshift(el("tr", { class: "group" }, el("th", { colspan: data.columns.length + 1, scope: "colgroup" }, el("span", {}, row.group))))
  if (said) nodes.push(el("tr", { class: "meaning" }, el("td", { colspan: data.columns.length + 1 }, el("p", {}, row.help))))
  return nodes
}

export default function ({ data, parentElement }) {
  const root = parentElement.querySelector(".root")
  root.dataset.theme = themeOf(parentElement)
  root.lang = data.lang
  if (!open.has(root)) open.set(root, new Set())
  const shown = open.get(root)
  const draw = () => keepFocus(root, () => root.replaceChildren(
    el("div", { class: "scroller" }, el("table", { class: "figures" },
      el("caption", { class: "sr-only" }, data.strings.table),
      el("thead", {}, el("tr", {}, el("th", { scope: "col" }, data.strings.figure),
        data.columns.map((column) => el("th", { scope: "col" }, nameNode(column))))),
      el("tbody", {}, data.rows.flatMap((row) => rowNodes(data, row, shown, (id) => {
        if (!shown.delete(id)) shown.add(id)
        draw()
      })))))))
  draw()
  root.style.setProperty("--room", `${Math.max(180, root.clientWidth - 40)}px`)
}
