// The picture of one word between two merges.

import { el, fmt } from "./dom.js"
import { linksAt, pairsAt, symbolsAt } from "./merges_state.js"

const entry = (word, id) => word.entries[String(id)] ?? { label: "?", piece: "?" }
const number = (n) => n.toLocaleString("en")

function symbolNode(word, symbol, winner, done, s) {
  const { label, piece } = entry(word, symbol.id)
  const classes = ["symbol", symbol.fresh && "fresh", winner && "winner", done && "token"].filter(Boolean)
  return el("span", { class: classes.join(" "), title: fmt(s.symbol_title, { piece, id: symbol.id }) },
    el("bdi", { class: "label" }, label),
    done ? el("small", { class: "id" }, symbol.id) : piece !== label && el("small", { class: "piece", "aria-hidden": "true" }, el("bdi", {}, piece)))
}

// The row of symbols; between neighbours the rank of their pair, if the table has one.
export function rowNode(word, done, s) {
  const symbols = symbolsAt(word, done)
  const links = linksAt(word, done)
  const over = done === word.merges.length
  const row = el("div", { class: "row", role: "list", "aria-label": s.symbols })
  symbols.forEach((symbol, i) => {
    const won = links[i]?.wins || links[i - 1]?.wins
    const item = symbolNode(word, symbol, won, over, s)
    item.setAttribute("role", "listitem")
    const link = links[i]
    row.append(link === undefined || over ? item : el("span", { class: "with" }, item,
      el("span", { class: link.wins ? "link wins" : link.rank === null ? "link none" : "link", title: link.rank === null ? s.no_rule : fmt(s.rank_title, { n: number(link.rank) }) },
        link.rank === null ? "·" : number(link.rank))))
  })
  return row
}

// One sentence about what comes next.
export function sentence(word, done, s) {
  const merge = word.merges[done]
  if (!merge) {
    if (word.whole) return s.taken_whole
    return word.merges.length ? fmt(s.finished, { n: symbolsAt(word, done).length, merges: done }) : s.no_pairs
  }
  const [, rank, left, right, result] = merge.pairs[0]
  const values = {
    left: entry(word, left).label, right: entry(word, right).label,
    result: entry(word, result).label, rank: number(rank), n: merge.ranks.length,
  }
  return fmt(merge.ranks.length === 1 ? s.next_alone : s.next, values)
}

export function pairsNode(word, done, s) {
  const { pairs, more } = pairsAt(word, done)
  if (!pairs.length) return el("p", { class: "dim" }, s.no_pairs_left)
  return el("table", { class: "pairs" },
    el("thead", {}, el("tr", {}, el("th", { scope: "col", class: "number" }, s.rank),
      el("th", { scope: "col" }, s.pair), el("th", { scope: "col" }, s.becomes))),
    el("tbody", {}, pairs.map((pair) => el("tr", { class: pair.wins ? "wins" : null },
      el("td", { class: "number" }, number(pair.rank)),
      el("td", {}, el("bdi", {}, entry(word, pair.left).label), el("i", {}, " + "), el("bdi", {}, entry(word, pair.right).label)),
      el("td", {}, el("bdi", {}, entry(word, pair.result).label), pair.wins && el("b", {}, ` ${s.wins}`)))),
    more > 0 && el("tr", {}, el("td", { colspan: 3, class: "dim" }, fmt(s.more_pairs, { n: more })))))
}

// The merges done so far; a click goes back to the moment before one.
export function logNode(word, done, s, go) {
  if (!done) return el("p", { class: "dim" }, s.nothing_yet)
  return el("ol", { class: "log" }, word.merges.slice(0, done).map((merge, i) => {
    const [, rank, left, right, result] = merge.pairs[0]
    return el("li", {}, el("button", { type: "button", onclick: () => go(i), title: s.go_before },
      el("bdi", {}, entry(word, left).label), el("i", {}, " + "), el("bdi", {}, entry(word, right).label),
      el("i", {}, " → "), el("bdi", { class: "made" }, entry(word, result).label),
      el("small", {}, fmt(s.rank_n, { n: number(rank) }))))
  }))
}

// The unigram model: every piece that fits, and the way with the highest sum.
export function latticeNode(word, s) {
  const taken = word.pieces.filter((piece) => piece.taken)
  const score = (x) => x.toFixed(2).replace("-", "−")
  return el("div", { class: "lattice" },
    el("p", {}, fmt(s.lattice, { n: word.pieces.length })),
    el("p", { class: "sum" }, taken.map((piece, i) => [i ? " + " : "", el("span", { class: "symbol token" },
      el("bdi", { class: "label" }, piece.label), el("small", {}, score(piece.score)))]), ` = ${score(word.score)}`),
    el("div", { class: "scroll" }, el("table", { class: "pairs" },
      el("thead", {}, el("tr", {}, el("th", { scope: "col", class: "number" }, s.from), el("th", { scope: "col" }, s.piece_short),
        el("th", { scope: "col", class: "number" }, s.score), el("th", { scope: "col", class: "number" }, s.best))),
      el("tbody", {}, word.pieces.map((piece) => el("tr", { class: piece.taken ? "wins" : null },
        el("td", { class: "number" }, piece.start),
        el("td", {}, el("bdi", {}, piece.label), piece.taken && el("b", {}, ` ${s.taken}`), !piece.known && el("i", {}, ` ${s.unknown}`)),
        el("td", { class: "number" }, score(piece.score)), el("td", { class: "number" }, score(piece.best))))))))
}
