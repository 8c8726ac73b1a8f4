// Receives the states of all panels as server-sent events, and shows them.

import { duration, el } from "./dom.js";
import * as views from "./views.js";

const BADGES = { leases: ["leases"], apis: ["apiservices", "crds"], health: ["server"] };
const states = new Map();
const settings = await (await fetch("/settings")).json();

for (const section of document.querySelectorAll("[data-panel]")) {
  section.querySelector("h2").append(el("span", { class: "age" }));
  section.append(el("div", { class: "problem", role: "alert", hidden: true }), el("div", { class: "content" }, "…"));
}

function show(panel) {
  const { data, error } = states.get(panel);
  for (const section of document.querySelectorAll(`[data-panel="${panel}"]`)) {
    const problem = section.querySelector(".problem");
    problem.hidden = !error;
    if (error) problem.textContent = explain(error, data);
    const shown = data === null ? [] : [views[section.dataset.view](data, settings)];
    section.querySelector(".content").replaceChildren(...shown.flat(3).filter(Boolean));
  }
  if (panel === "server" && data !== null) document.getElementById("server").textContent = `${data.url} ${data.version}`;
  for (const [badge, panels] of Object.entries(BADGES)) {
    const known = panels.filter((name) => states.get(name)?.data);
    const count = known.reduce((sum, name) => sum + views.problems[name](states.get(name).data), 0);
    document.querySelector(`[data-badge="${badge}"]`).textContent = count || "";
  }
  tick();
}

function explain(error, data) {
  const old = data === null ? "" : " The last known state is shown.";
  if (error.status === 403) return `You have no permission to see this: ${error.message}.${old}`;
  if (error.status === 401) return `The server does not accept the credentials of the kubeconfig: ${error.message}.${old}`;
  if (error.status === 404) return `The server does not offer this: ${error.message}.${old}`;
  if (error.status === 0) {
    return `The server cannot be reached: ${error.message}. The console tries again every ${duration(settings.interval)}.${old}`;
  }
  return `The server answered ${error.status}: ${error.message}.${old}`;
}

/** Update the ages of all data. Data is stale if it is older than three intervals. */
function tick() {
  for (const section of document.querySelectorAll("[data-panel]")) {
    const at = states.get(section.dataset.panel)?.at;
    const age = at ? Math.max(0, Date.now() / 1000 - at) : null;
    section.querySelector(".age").textContent = age === null ? "" : `${age < 1 ? "now" : `${duration(Math.round(age))} ago`}`;
    section.classList.toggle("stale", age !== null && age > 3 * settings.interval + 2);
  }
}
setInterval(tick, 1000);

const connection = document.getElementById("connection");
function connected(text, kind) {
  connection.textContent = text;
  connection.className = kind;
}

const source = new EventSource("/events");
for (const panel of new Set([...document.querySelectorAll("[data-panel]")].map((section) => section.dataset.panel))) {
  source.addEventListener(panel, (event) => {
    states.set(panel, JSON.parse(event.data));
    const away = [...states.values()].some((state) => state.error?.status === 0);
    connected(away ? "the API server cannot be reached" : "live", away ? "bad" : "good");
    show(panel);
  });
}
source.addEventListener("error", () => {
  if (source.readyState === EventSource.CLOSED) connected("the console has ended or was started again: open its new address", "bad");
  else connected("the console does not answer; trying again", "bad");
});

function navigate() {
  const wanted = location.hash.slice(1);
  const pages = [...document.querySelectorAll("article")];
  const page = pages.find((candidate) => candidate.dataset.page === wanted) ?? pages[0];
  for (const candidate of pages) candidate.hidden = candidate !== page;
  for (const link of document.querySelectorAll("nav a")) {
    if (link.hash === `#${page.dataset.page}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  scrollTo(0, 0);
}
addEventListener("hashchange", navigate);
navigate();

const frame = document.getElementById("waterfall");
const resized = new ResizeObserver(() => {
  frame.style.height = `${frame.contentDocument.documentElement.scrollHeight + 4}px`;
});
frame.addEventListener("load", () => {
  resized.disconnect();
  if (frame.contentDocument?.body) resized.observe(frame.contentDocument.body);
});
document.getElementById("trace").addEventListener("submit", (event) => {
  event.preventDefault();
  frame.hidden = false;
  frame.style.height = "";
  frame.src = `/trace?path=${encodeURIComponent(document.getElementById("target").value)}`;
});
