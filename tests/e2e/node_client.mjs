// Node's HTTP/2 client: a watch and some writes on one session. It prints one line for each response and event.
//   node node_client.mjs URL CA CERTIFICATE KEY NAMESPACE
import { readFileSync } from "node:fs";
import { connect } from "node:http2";

const [url, ca, certificate, key, namespace] = process.argv.slice(2);
const session = connect(url, { ca: readFileSync(ca), cert: readFileSync(certificate), key: readFileSync(key) });
const path = `/api/v1/namespaces/${namespace}/configmaps`;

function open(method, target, body, type = "application/json") {
  const headers = { ":method": method, ":path": target };
  if (body !== undefined) headers["content-type"] = type;
  const stream = session.request(headers);
  stream.setEncoding("utf8");
  stream.end(body === undefined ? undefined : JSON.stringify(body));
  return stream;
}

function ask(method, target, body, type) {
  return new Promise((resolve, reject) => {
    const stream = open(method, target, body, type);
    let status, text = "";
    stream.on("response", (headers) => (status = headers[":status"]));
    stream.on("data", (data) => (text += data));
    stream.on("end", () => resolve([status, JSON.parse(text)]));
    stream.on("error", reject);
  });
}

const [, list] = await ask("GET", path);
const watch = open("GET", `${path}?watch=1&resourceVersion=${list.metadata.resourceVersion}`);
const events = new Promise((resolve, reject) => {
  const seen = [];
  let rest = "";
  watch.on("error", reject);
  watch.on("data", (data) => {
    const lines = (rest + data).split("\n");
    rest = lines.pop();
    for (const { type, object } of lines.map((line) => JSON.parse(line))) seen.push(`${type} ${object.metadata.name}`);
    if (seen.length >= 3) resolve(seen);
  });
});
await new Promise((resolve) => watch.once("response", resolve));
const [created] = await ask("POST", path, { metadata: { name: "from-node" }, data: { large: "x".repeat(300000) } });
const [patched] = await ask("PATCH", `${path}/from-node`, { data: { a: "b" } }, "application/merge-patch+json");
const [, got] = await ask("GET", `${path}/from-node`);
const [deleted] = await ask("DELETE", `${path}/from-node`);
console.log(created, patched, got.data.large.length, got.data.a, deleted);
for (const event of await events) console.log(event);
const [missing, status] = await ask("GET", `${path}/from-node`);
console.log(missing, status.reason, session.alpnProtocol);
watch.close();
session.close();
