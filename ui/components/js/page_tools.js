import { el } from "./dom.js"

// The page's language for the browser (fonts, screen readers), and a button that copies the link.
export default function ({ data, parentElement }) {
  document.documentElement.lang = data.htmlLang
  const root = parentElement.querySelector(".root")
  root.lang = data.htmlLang
  let said = root.querySelector(".said")
  if (!said) {
    said = el("span", { class: "said", role: "status", "aria-live": "polite" })
    root.append(el("button", { type: "button", class: "copy" }), said)
  }
  const button = root.querySelector(".copy")
  button.textContent = data.strings.copy_link
  if (root.dataset.query !== data.query) {
    root.dataset.query = data.query
    said.replaceChildren()
  }
  button.onclick = () => {
    const url = new URL(window.location.href)
    url.search = data.query
    url.hash = ""
    const address = url.toString()
    // Without a secure context (a class on the local network) there is no clipboard.
    const copying = navigator.clipboard?.writeText(address) ?? Promise.reject(new Error("none"))
    copying.then(
      () => said.replaceChildren(data.strings.copied),
      () => {
        const field = el("input", { type: "text", readonly: true, "aria-label": data.strings.copy_yourself })
        field.value = address
        said.replaceChildren(data.strings.copy_yourself, field)
        field.select()
      },
    )
  }
}
