// What each panel shows of its data. Each view is a function from the data of a panel to elements.

import { chart } from "./charts.js";
import { bytes, duration, el, mark, number, svg, table } from "./dom.js";

const perSecond = (value) => (value === null ? "–" : `${number(value)}/s`);
const failures = (value) => (value ? mark(perSecond(value), "bad") : perSecond(value));
const latencies = [
  { title: "mean", cell: (row) => duration(row.mean), kind: "n" },
  { title: "median", cell: (row) => duration(row.p50), kind: "n" },
  { title: "p99", cell: (row) => duration(row.p99), kind: "n" },
];

function meter(part, all) {
  if (!all) return "";
  const width = Math.min(100, (part / all) * 100);
  return svg("svg", { class: "meter", viewBox: "0 0 100 8", preserveAspectRatio: "none", "aria-hidden": "true" },
    svg("rect", { class: "all", width: 100, height: 8 }), svg("rect", { class: "part", width, height: 8 }));
}

function list(rows, columns, nothing, more = 0) {
  if (!rows.length) return el("p", { class: "empty" }, nothing);
  const rest = more ? el("p", { class: "empty" }, `${number(more)} more are not shown.`) : null;
  return [table(columns, rows), rest];
}

export function charts(data, settings) {
  const seconds = settings.interval;
  return el("div", { class: "charts" },
    chart(data.charts.rate, { title: "Requests a second", seconds, stacked: true }),
    chart(data.charts.p99, { title: "99th percentile of execution", seconds, format: duration }));
}

export function levels(data) {
  return list(data.levels, [
    { title: "priority level", cell: (row) => row.level },
    { title: "rate", cell: (row) => perSecond(row.rate), kind: "n" },
    ...latencies,
    { title: "queued", cell: (row) => (row.waiting ? mark(number(row.waiting), "warn") : "0"), kind: "n" },
    { title: "seats in use", cell: (row) => number(row.executing), kind: "n" },
    { title: "of", cell: (row) => (row.level === "exempt" ? "no limit" : number(row.seats)), kind: "n" },
    { title: "", cell: (row) => (row.level === "exempt" ? "" : meter(row.executing, row.seats)) },
  ], "The server has no priority levels: API priority and fairness is off.");
}

export function flows(data) {
  return list(data.flows, [
    { title: "flow schema", cell: (row) => row.schema },
    { title: "priority level", cell: (row) => row.level },
    { title: "rate", cell: (row) => perSecond(row.rate), kind: "n" },
    { title: "rejected", cell: (row) => failures(row.rejected), kind: "n" },
    { title: "queued", cell: (row) => number(row.waiting), kind: "n" },
    { title: "mean wait", cell: (row) => duration(row.wait), kind: "n" },
    ...latencies,
    { title: "requests so far", cell: (row) => number(row.total), kind: "n" },
  ], "No request has been classified yet.");
}

export function verbs(data) {
  return list(data.verbs, [
    { title: "verb", cell: (row) => row.verb },
    { title: "rate", cell: (row) => perSecond(row.rate), kind: "n" },
    { title: "4xx and 5xx", cell: (row) => failures(row.failed), kind: "n" },
    ...latencies,
    { title: "requests so far", cell: (row) => number(row.total), kind: "n" },
  ], "No request for a resource has been counted yet.");
}

export function processes(data) {
  return list(data.processes, [
    { title: "process", cell: (row) => row.name },
    { title: "URL", cell: (row) => row.url, kind: "wide" },
    { title: "CPU", cell: (row) => (row.cpu === null || row.cpu === undefined ? "–" : `${number(row.cpu * 100)} %`), kind: "n" },
    { title: "memory", cell: (row) => bytes(row.memory), kind: "n" },
    { title: "metrics", cell: (row) => (row.error ? mark(row.error.message, "bad") : mark("read", "good")), kind: "wide" },
  ], "No process is known.");
}

export function caches(data) {
  const watched = data.caches.reduce((sum, row) => sum + row.watches, 0);
  const used = data.caches.filter((row) => row.watches || row.objects || row.events);
  used.sort((a, b) => b.watches - a.watches || b.objects - a.objects);
  const idle = data.caches.length - used.length;
  return [
    el("p", {}, `${number(watched)} open watches. ${number(idle)} caches without watches and objects are not shown.`),
    list(used, [
      { title: "resource", cell: (row) => (row.group ? `${row.resource}.${row.group}` : row.resource), kind: "wide" },
      { title: "watches", cell: (row) => number(row.watches), kind: "n" },
      { title: "objects", cell: (row) => number(row.objects), kind: "n" },
      { title: "events", cell: (row) => perSecond(row.events), kind: "n" },
      { title: "capacity (changes)", cell: (row) => number(row.capacity), kind: "n" },
      { title: "resource version", cell: (row) => (row.version === null ? "–" : String(row.version)), kind: "n" },
    ], "No watch cache is in use."),
  ];
}

export function leases(data) {
  const kinds = { held: "good", expired: "bad", released: "warn" };
  return list(data.rows, [
    { title: "lease", cell: (row) => `${row.namespace}/${row.name}`, kind: "wide" },
    { title: "state", cell: (row) => mark(row.state, kinds[row.state]) },
    { title: "holder", cell: (row) => row.holder || "–", kind: "wide" },
    { title: "renewed", cell: (row) => (row.renewed === null ? "–" : `${duration(Math.max(0, row.renewed))} ago`), kind: "n" },
    { title: "valid for", cell: (row) => duration(row.duration), kind: "n" },
    { title: "transitions", cell: (row) => number(row.transitions), kind: "n" },
  ], "There are no leases.", data.more);
}

function condition(status, text, good = "True") {
  return mark(text ?? status, status === good ? "good" : status === "Unknown" ? "warn" : "bad");
}

export function apiservices(data) {
  const rows = [...data.rows].sort((a, b) => (a.available === "True") - (b.available === "True"));
  return list(rows, [
    { title: "APIService", cell: (row) => row.name, kind: "wide" },
    { title: "served by", cell: (row) => row.service },
    { title: "available", cell: (row) => condition(row.available) },
    { title: "reason", cell: (row) => row.reason },
    { title: "message", cell: (row) => row.message, kind: "wide" },
  ], "There are no APIServices.", data.more);
}

// The status of each condition that is good; others are good if they are False.
const GOOD = { Established: "True", NamesAccepted: "True", KubernetesAPIApprovalPolicyConformant: "True" };

export function crds(data) {
  return list(data.rows, [
    { title: "definition", cell: (row) => row.name, kind: "wide" },
    { title: "kind", cell: (row) => row.kind },
    { title: "scope", cell: (row) => row.scope },
    { title: "versions", cell: (row) => row.versions.map((version) =>
      `${version.name}${version.storage ? " (stored)" : ""}${version.served ? "" : " (not served)"}`).join(", ") },
    { title: "conditions", cell: (row) => el("ul", { class: "legend" }, row.conditions.map((each) => {
      const good = GOOD[each.type] ?? "False";
      const text = `${each.type}: ${each.status}${each.status === good ? "" : ` (${each.message || each.reason})`}`;
      return el("li", {}, condition(each.status, text, good));
    })) },
  ], "There are no custom resource definitions.", data.more);
}

export function server(data) {
  const error = data.error ? el("p", { class: "problem" }, data.error.message) : null;
  return [error, list(data.checks, [
    { title: "check", cell: (row) => row.name },
    { title: "result", cell: (row) => (row.ok ? mark("ok", "good") : mark("failed", "bad")) },
    { title: "", cell: (row) => (row.ok ? "" : row.text) },
  ], "The server shows no checks.")];
}

/** Return the number of problems for the badge of a page. */
export const problems = {
  leases: (data) => data.rows.filter((row) => row.state === "expired").length,
  apiservices: (data) => data.rows.filter((row) => row.available !== "True").length,
  crds: (data) => data.rows.filter((row) => row.conditions.some((each) => each.status !== (GOOD[each.type] ?? "False"))).length,
  server: (data) => data.checks.filter((row) => !row.ok).length,
};
