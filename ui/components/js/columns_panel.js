// One step of all columns side by side, and the texts in full.
import { el, fmt, percent } from "./dom.js"
import { atStep, number } from "./columns_cells.js"

const token = (label) => el("bdi", { class: "tok", title: label }, label)

const CLOSES = /^[,.;:!?)，。；：、！？）]+/

// How much of the words after a token closes it: no line may begin with such a sign.
export function closing(parts, index) {
  const [kind, text] = parts[index] ?? []
  return kind === "token" || text === undefined ? "" : text.match(CLOSES)?.[0] ?? ""
}

// Words and tokens in turn, as ui.figures.compare_words makes them.
export function sentence(parts) {
  return parts.map(([kind, text], i) => {
    const before = i && parts[i - 1][0] === "token"
    if (kind !== "token") return before ? text.slice(closing(parts, i).length) : text
    const signs = closing(parts, i + 1)
    return signs ? el("span", { class: "tied" }, token(text), signs) : token(text)
  })
}

export function nameNode(row) {
  return el("span", { class: "name" },
    el("b", { class: "letter", "data-colour": row.colour }, row.letter),
    el("span", { class: "what" }, row.name))
}

// A table: what each column took at `step`, and with what odds.
export function stepNode(data, step, focus, open) {
  const s = data.strings
  const head = [s.column, s.token, s.col_model, s.col_after, s.col_rank, s.col_u]
  const rows = data.rows.map((row, index) => {
    const found = atStep(row, step)
    const cells = found
      ? [token(found.part.label), percent(found.part.p), percent(found.part.after), found.part.rank, number(found.part.u)]
      : [el("span", { class: "dim" }, row.cells.length ? s.ended : s.nothing), "–", "–", "–", "–"]
    return el("tr", { class: index === focus ? "on" : null },
      el("th", { scope: "row" }, nameNode(row)),
      cells.map((cell, i) => el("td", { class: i ? "num" : null }, cell)))
  })
  const chosen = data.rows[focus]
  return [
    el("p", { class: "head" }, fmt(s.step_title, { n: step + 1 })),
    el("div", { class: "wide", role: "region", tabindex: 0, "aria-label": fmt(s.step_title, { n: step + 1 }) }, el("table", { class: "step" },
      el("thead", {}, el("tr", {}, head.map((text, i) => el("th", { scope: "col", class: i > 1 ? "num" : null, title: s[`help_${i}`] }, text)))),
      el("tbody", {}, rows))),
    chosen?.open && atStep(chosen, step)
      ? el("button", { class: "open", type: "button", "data-key": "open", onclick: () => open(focus, step) }, fmt(s.open, { name: chosen.letter }))
      : null,
  ]
}

// The texts as a person reads them; with several samples, each can be chosen.
export function textsNode(data, choose) {
  return data.rows.map((row) => el("section", { class: "texts" },
    el("p", { class: "head" }, nameNode(row)),
    row.fault ? el("p", { class: "fault" }, row.fault) : null,
    el("ol", {}, row.texts.map((text) => {
      const on = text.sample === data.sample
      const many = data.samples > 1
      const body = el("span", { class: "plain", dir: "auto", lang: "" }, text.text || data.strings.empty)
      return el("li", { class: many && on ? "on" : null },
        many && row.texts.length > 1
          ? el("button", { class: "pick", type: "button", "aria-pressed": String(on), "data-key": `${row.letter}${text.sample}`,
            "aria-label": fmt(data.strings.show_sample, { n: text.sample + 1 }), onclick: () => choose(text.sample) }, text.sample + 1)
          : null,
        body, text.stop ? el("span", { class: "stop" }, text.stop) : null)
    }))))
}
