// Draws nothing: hands the labels of a vocabulary, or the logits of a step, to the page's store.
import { storeTake } from "./store.js"

export default function ({ data, parentElement }) {
  parentElement.querySelector(".root").style.display = "none"
  storeTake(data)
}
