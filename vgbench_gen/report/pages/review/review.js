// Keys only: everything on the pages works without this file.
"use strict";

const STORE = "vgbench-review-keys";
const button = document.getElementById("keys");

function stored() {
  try {
    return localStorage.getItem(STORE);
  } catch {
    return null; // storage switched off
  }
}

let on = stored() !== "off";

function say() {
  if (!button) return;
  button.hidden = false;
  button.textContent = on ? "Turn keys off" : "Turn keys on";
}

if (button) {
  button.addEventListener("click", () => {
    on = !on;
    try {
      localStorage.setItem(STORE, on ? "on" : "off");
    } catch {
      // holds for this page then
    }
    say();
  });
  say();
}

function typing(element) {
  return element.matches("textarea, input:not([type=radio]):not([type=checkbox])");
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || event.repeat) return;
  const at = document.activeElement;
  if (at && typing(at)) {
    if (event.key === "Escape") at.blur();
    return; // Enter in a line of text sends its form, as everywhere
  }
  if (!on) return;
  if (event.key === "Enter") {
    if (at && at.matches("a, button, summary")) return; // it does what it says
    const send = document.querySelector("[data-submit], [data-key=enter]");
    if (send) {
      event.preventDefault();
      send.click();
    }
    return;
  }
  for (const target of document.querySelectorAll("[data-key]")) {
    if (!target.dataset.key.split(" ").includes(event.key.toLowerCase())) continue;
    event.preventDefault();
    if (target.matches("textarea")) target.focus();
    else target.click();
    return;
  }
});

// A number typed means that one can tell, and the other way round.
const number = document.getElementById("number");
const cannot = document.querySelector("input[type=checkbox][name=answer]");
if (number && cannot) {
  number.addEventListener("input", () => {
    if (number.value) cannot.checked = false;
  });
  cannot.addEventListener("change", () => {
    if (cannot.checked) number.value = "";
  });
}
