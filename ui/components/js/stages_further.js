// Buttons for the stages that have no card while they are off.
import { el, fmt } from "./dom.js"
import { STAGES_FURTHER, stagesFirst, stagesIsOff } from "./stages.js"
import { TEXT_STAGES } from "./stages_text.js"
import { cardAttribute, cardText } from "./stages_cards.js"

// `set(name, value)` switches a stage; without a text, those that look at one are left out.
export function furtherOf(words, size, hasText, set) {
  const names = STAGES_FURTHER.filter((name) => hasText || !TEXT_STAGES.includes(name))
  const buttons = Object.fromEntries(names.map((name) => {
    const sign = el("span", { "aria-hidden": "true" })
    const title = words[`${name}_help`]
    const button = el("button", { type: "button", class: "add", "data-add": name, title }, sign, " ", words[`${name}_term`])
    button.onclick = () => set(name, button.getAttribute("aria-pressed") === "true" ? null : stagesFirst(name, size))
    return [name, { button, sign }]
  }))
  function update(settings) {
    for (const name of names) {
      const off = stagesIsOff(name, settings[name])
      cardAttribute(buttons[name].button, "aria-pressed", String(!off))
      cardText(buttons[name].sign, off ? "+" : "✓")
    }
  }
  const all = Object.values(buttons).map(({ button }) => button)
  const node = el("div", { class: "further", role: "group", "aria-label": words.more }, el("span", { class: "group-name" }, words.more), all)
  return { node, update, focus: (name) => (buttons[name]?.button ?? all[0]).focus({ preventScroll: true }) }
}
