// Decides by a .shield file without fairshield: docs/format.md in JavaScript, for Node 18 or newer.
//
//     node reader.mjs loans.shield < requests.jsonl > decisions.jsonl
//
// Requests and decisions are those of `fairshield run`: one JSON object a line, with group,
// proposed, cost (1 unless given) and, where the property counts by outcome, outcome.
// Tables are read, of two groups or more.  Long and periodic policies are refused: they decide by
// prices and plans that are worked out as people come, which is more than a look-up.

import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const ARRAYS = {
  "|u1": Uint8Array, "<u2": Uint16Array, "|i1": Int8Array, "<i2": Int16Array, "<i4": Int32Array,
  "<i8": BigInt64Array, "<f4": Float32Array, "<f8": Float64Array,
};

/** The header, and each array with its shape and the bits of an element. */
export function read(file) {
  if (file.subarray(0, 8).toString("latin1") !== "FSHIELD\n") throw new Error("not a policy");
  if (file.length < 48) throw new Error("truncated");
  const version = file.readUInt32LE(8);
  if (version !== 1) throw new Error(`format version ${version}: this reader knows version 1`);
  const sum = createHash("sha256").update(file.subarray(0, 16)).update(file.subarray(48)).digest();
  if (!sum.equals(file.subarray(16, 48))) {
    throw new Error("truncated or corrupted: the digest differs");
  }
  const begin = 48 + file.readUInt32LE(12);
  const header = JSON.parse(file.subarray(48, begin).toString("utf8"));
  const arrays = {};
  for (const { name, type, shape, offset } of header.arrays) {
    const Kind = ARRAYS[type];
    if (!Kind) throw new Error(`array ${name} has the unknown type ${type}`);
    const size = shape.reduce((a, b) => a * b, 1) * Kind.BYTES_PER_ELEMENT;
    const from = file.byteOffset + begin + offset; // views must be aligned, a copy is
    const stored = new Kind(file.buffer.slice(from, from + size));
    const values = Kind === BigInt64Array ? Array.from(stored, Number) : stored;
    arrays[name] = { shape, bits: 8 * Kind.BYTES_PER_ELEMENT, values };
  }
  return { header, arrays };
}

/** Rows of all pairs n_a + n_b below n. */
const pairs = (n) => Math.floor(((n + 1) * (n + 3) * (2 * n + 1)) / 24);

/** A table of two groups; a state is t and [n_a, k_a, n_b, k_b]. */
class TwoGroups {
  constructor({ header, arrays }) {
    this.arrays = arrays;
    this.labelled = arrays.cuts.shape[0] !== pairs(header.horizon + 1);
    this.first = [0]; // rows of all earlier layers
    for (let t = 1; t <= header.horizon; t++) {
      this.first.push((this.labelled ? this.first[t - 1] : 0) + pairs(t));
    }
    this.dense = new Map(arrays.dense_rows.values.map((row, i) => [row, i]));
    this.salvages = "salvage_cuts" in arrays;
  }

  /** The codes of both groups, or null if the table has none for the state. */
  codes(t, [n_a, k_a, n_b, k_b], table = "") {
    const seen = n_a + n_b;
    let row = this.first[t] + (this.labelled ? pairs(seen) : 0);
    row += n_a <= n_b
      ? (n_a * (n_a + 1)) / 2 + k_a
      : Math.floor((seen + 2) ** 2 / 4) - ((n_b + 1) * (n_b + 2)) / 2 + k_b;
    const k = n_a <= n_b ? k_b : k_a;
    const { values, shape, bits } = this.arrays[table + "cuts"];
    const [lo, hi, s1, s2, l1, l2] = values.subarray(row * shape[1], (row + 1) * shape[1]);
    if (k < lo || k >= hi) return null;
    let short, long;
    if (s1 !== undefined && s1 !== 2 ** bits - 1) {
      short = k < s1 ? 1 : k >= s2 ? -1 : 0;
      long = k < l1 ? -1 : k >= l2 ? 1 : 0;
    } else {
      const number = s1 === undefined ? row : this.dense.get(row);
      const start = this.arrays[table + "dense_starts"].values[number];
      if (start < 0) return [0, 0];
      const dense = this.arrays[table + "dense_codes"];
      [short, long] = [dense.values[start + k - lo], dense.values[start + k - lo + hi - lo]];
      if (short === -(2 ** (dense.bits - 1))) return null;
    }
    return n_a <= n_b ? [short, long] : [long, short];
  }

  code(t, at, group) {
    const found = this.codes(t, at) ?? (this.salvages ? this.codes(t, at, "salvage_") : null);
    return found ? found[group] : 0;
  }

  feasible(t, at) {
    return this.codes(t, at) !== null;
  }
}

/** A table of three groups or more; a state is t and [n_1, k_1, n_2, k_2, …]. */
class ManyGroups {
  constructor({ header, arrays }) {
    const m = 2 * header.start.length;
    this.table = arrays.codes;
    this.labelled = this.table.shape[1] !== choose(header.horizon + m, m);
  }

  place(t, at) {
    let [found, seen] = [0, 0];
    for (let g = 0; g < at.length; g += 2) {
      found += choose(seen + at[g + 1] + g, g + 1);
      seen += at[g];
      found += choose(seen + g + 1, g + 2);
    }
    return this.labelled ? found + choose(t + at.length, at.length + 1) : found;
  }

  code(t, at, group) {
    if (!this.feasible(t, at)) return 0;
    return this.table.values[group * this.table.shape[1] + this.place(t, at)];
  }

  feasible(t, at) {
    return this.table.values[this.place(t, at)] !== -(2 ** (this.table.bits - 1));
  }
}

/** The binomial coefficient: every quotient on the way is a whole number. */
function choose(n, k) {
  let found = 1;
  for (let i = 1; i <= k; i++) found = (found * (n - k + i)) / i;
  return n < k ? 0 : found;
}

/** The outcome of people who count, or null if everybody does. */
function relevantOutcome(property, labelled) {
  if (!labelled) return null;
  const { kind, outcome } = property.of ?? property;
  const counted = { "equal-opportunity": true, "predictive-equality": false };
  const found = kind === "bounded-rates" ? outcome : counted[kind];
  if (typeof found !== "boolean") {
    throw new Error(`which outcome ${kind} counts is not in the file`);
  }
  return found;
}

/** Decides window after window by a policy. */
export class Shield {
  constructor(file) {
    const { header, arrays } = file;
    if (header.periodic) {
      const { kind } = header.periodic;
      throw new Error(`a periodic policy (${kind}): this reader reads tables of one window`);
    }
    if (header.method && header.method !== "many") {
      throw new Error(`a policy by the method ${header.method}: this reader reads tables`);
    }
    this.groups = (header.inputs.schedule?.[0][0] ?? header.inputs).groups;
    this.horizon = header.horizon;
    this.table = header.method ? new ManyGroups(file) : new TwoGroups(file);
    this.relevant = relevantOutcome(header.property, this.table.labelled);
    [this.edges, this.ranks] = [arrays.edges.values, arrays.ranks];
    this.begin(0);
  }

  begin(window) {
    [this.window, this.decided, this.at] = [window, 0, this.groups.flatMap(() => [0, 0])];
  }

  /** Whether to accept a person of the group with this number; nothing is counted. */
  verdict(group, proposed, cost) {
    const [t, at] = [this.decided, this.at];
    const canAccept = this.table.feasible(t + 1, after(at, group, true));
    const canReject = this.table.feasible(t + 1, after(at, group, false));
    if (canAccept !== canReject) return canAccept;
    const code = this.table.code(t, at, group);
    if (code === 0 || code > 0 !== proposed) return proposed;
    const [steps, groups, , levels] = this.ranks.shape;
    const level = this.edges.findIndex((edge) => edge >= cost);
    const place = (((steps > 1 ? t : 0) * groups + group) * 2 + Number(proposed)) * levels + level;
    const rank = level < 0 ? levels : this.ranks.values[place];
    return rank < Math.abs(code) ? !proposed : proposed;
  }

  /** Decides a request and counts it. */
  decide({ group, proposed, cost = 1, outcome }) {
    const number = this.groups.indexOf(group);
    if (number < 0) {
      const known = this.groups.join(", ");
      throw new Error(`unknown group ${JSON.stringify(group)}: the policy knows ${known}`);
    }
    const said = flag("proposed", proposed);
    if (!Number.isFinite(cost) || cost < 0) {
      throw new Error(`cost must be a finite number of at least 0, got ${JSON.stringify(cost)}`);
    }
    const counts = this.relevant === null || flag("outcome", outcome) === this.relevant;
    if (this.decided === this.horizon) this.begin(this.window + 1);
    const accepted = this.verdict(number, said, cost);
    const { window, decided: position } = this;
    if (counts) this.at = after(this.at, number, accepted);
    this.decided += 1;
    return { window, position, accepted, overruled: accepted !== said };
  }
}

function after(at, group, accepted) {
  const next = [...at];
  next[2 * group] += 1;
  next[2 * group + 1] += Number(accepted);
  return next;
}

function flag(name, value) {
  if (![true, false, 0, 1].includes(value)) {
    throw new Error(`${name} must be true or false, got ${JSON.stringify(value)}`);
  }
  return Boolean(value);
}

async function main(path) {
  const shield = new Shield(read(readFileSync(path)));
  let line = 0;
  for await (const text of createInterface({ input: process.stdin })) {
    line += 1;
    if (text.trim() === "") continue;
    try {
      const request = JSON.parse(text);
      process.stdout.write(JSON.stringify({ ...request, ...shield.decide(request) }) + "\n");
    } catch (error) {
      throw new Error(`line ${line}: ${error.message}`);
    }
  }
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const path = process.argv[2];
  try {
    if (path === undefined) throw new Error("usage: node reader.mjs POLICY < REQUESTS");
    await main(path);
  } catch (error) {
    process.stderr.write(`Error: ${path === undefined ? "" : `${path}: `}${error.message}\n`);
    process.exitCode = 2;
  }
}
