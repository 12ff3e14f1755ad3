// SPDX-License-Identifier: Apache-2.0
//
// Questions asked of a call tree: which lines, which functions, which modules, how much matches.

/** @typedef {import('./data.js').Tree} Tree */
/** @typedef {import('./data.js').Profile} Profile */

/**
 * Where a node's time is, by line: its own and that of the calls made there; heaviest first.
 * @param {Profile} profile @param {Tree} tree @param {number} i
 * @returns {{line: number, self: number, total: number}[]}
 */
export function linesOfNode(profile, tree, i) {
  const node = tree.skeletonNode[i];
  if (node <= 0) return [];
  const {skeleton, stackFrame, frameLine} = profile;
  const {stackSelf, stackTotal} = tree.groups[tree.group[i]];
  /** @type {Map<number, {line: number, self: number, total: number}>} */ const lines = new Map();
  for (let m = skeleton.memberStart[node]; m < skeleton.memberStart[node + 1]; m++) {
    const stack = skeleton.members[m];
    if (stackTotal[stack] === 0) continue;
    const line = frameLine[stackFrame[stack]];
    const row = lines.get(line) ?? {line, self: 0, total: 0};
    row.self += stackSelf[stack];
    row.total += stackTotal[stack];
    lines.set(line, row);
  }
  return [...lines.values()].sort((a, b) => b.total - a.total || a.line - b.line);
}

/**
 * The line of a node with most of its time, calls made there included; 0: not known.
 * @param {Profile} profile @param {Tree} tree @param {number} i
 */
export function hottestLine(profile, tree, i) {
  return linesOfNode(profile, tree, i).find((l) => l.line > 0)?.line ?? 0;
}

/**
 * What used the CPU time of a node and of all that it called; null where that was not recorded.
 * @param {Profile} profile @param {Tree} tree @param {number} i
 */
export function splitOfNode(profile, tree, i) {
  if (!profile.meta.native || tree.mode === 'gpu') return null;
  const split = {python: 0, native: 0, kernel: 0};
  const {skeleton, functions} = profile;
  for (let below = i; below < tree.end[i]; below++) {
    const node = tree.skeletonNode[below];
    if (node <= 0 || functions[skeleton.func[node]].note) continue;
    const who = functions[skeleton.func[node]].native ? 'native' : 'python';
    const {stackSelf, stackKernel} = tree.groups[tree.group[below]];
    for (let m = skeleton.memberStart[node]; m < skeleton.memberStart[node + 1]; m++) {
      const stack = skeleton.members[m];
      split.kernel += stackKernel[stack];
      split[who] += stackSelf[stack] - stackKernel[stack];
    }
  }
  return split;
}

/**
 * @typedef {object} FunctionRow
 * @property {number} func
 * @property {number} self
 * @property {number} total    recursion counted once
 * @property {number} calls    of a trace; of a GPU its works
 * @property {number} hotLine  the line with the most self time, else total time
 */

/**
 * Every function in the subtree of `top`.
 * @param {Profile} profile @param {Tree} tree @param {number} top
 * @returns {FunctionRow[]}
 */
export function functionRows(profile, tree, top) {
  /** @type {Map<number, FunctionRow & {until: number, hot: number}>} */ const rows = new Map();
  const {skeleton, stackFrame, frameFunction, frameLine} = profile;
  const lineSelf = new Float64Array(frameFunction.length);
  const lineTotal = new Float64Array(frameFunction.length);
  for (let i = top; i < tree.end[top]; i++) {
    const func = tree.func[i];
    if (func < 0) continue;
    let row = rows.get(func);
    if (!row) rows.set(func, row = {func, self: 0, total: 0, calls: 0, hotLine: 0, until: 0, hot: -1});
    row.self += tree.self[i];
    row.calls += tree.ownSamples[i];
    if (i >= row.until) {
      row.total += tree.total[i];
      row.until = tree.end[i];
    }
    const node = tree.skeletonNode[i];
    const {stackSelf, stackTotal} = tree.groups[tree.group[i]];
    for (let m = skeleton.memberStart[node]; m < skeleton.memberStart[node + 1]; m++) {
      const stack = skeleton.members[m];
      lineSelf[stackFrame[stack]] += stackSelf[stack];
      lineTotal[stackFrame[stack]] += stackTotal[stack];
    }
  }
  frameFunction.forEach((func, frame) => {
    const row = rows.get(func);
    if (!row || frameLine[frame] === 0) return;
    const heat = row.self > 0 ? lineSelf[frame] : lineTotal[frame];
    if (heat > row.hot) {
      row.hot = heat;
      row.hotLine = frameLine[frame];
    }
  });
  return [...rows.values()];
}

/**
 * The calls of marked functions in the whole tree, without those that a marked one made.
 * @param {Tree} tree @param {Uint8Array} marks  by function
 */
export function markedCalls(tree, marks) {
  const calls = [];
  for (let i = 0; i < tree.count;) {
    const marked = tree.func[i] >= 0 && marks[tree.func[i]];
    if (marked) calls.push(i);
    i = marked ? tree.end[i] : i + 1;
  }
  return calls;
}

/**
 * How much of the subtree of `top` lies in marked functions, nested ones counted once.
 * @param {Tree} tree @param {number} top @param {Uint8Array} marks  by function
 * @returns {{weight: number, nodes: number}}
 */
export function markedWeight(tree, top, marks) {
  let weight = 0, nodes = 0, until = 0;
  for (let i = top; i < tree.end[top]; i++) {
    if (tree.func[i] < 0 || !marks[tree.func[i]]) continue;
    nodes++;
    if (i < until) continue;
    weight += tree.total[i];
    until = tree.end[i];
  }
  return {weight, nodes};
}

/**
 * @typedef {object} ModuleRow
 * @property {string} module
 * @property {number} self
 * @property {number} total   calls of a module from itself counted once
 * @property {number} calls   of a trace, those from itself, too; of a GPU its works
 * @property {Set<number>} functions
 */

/**
 * Every module in the subtree of `top`.
 * @param {Tree} tree @param {number} top @param {{module: string}[]} origins  by function
 * @returns {ModuleRow[]}
 */
export function moduleRows(tree, top, origins) {
  /** @type {Map<string, ModuleRow & {until: number}>} */ const rows = new Map();
  for (let i = top; i < tree.end[top]; i++) {
    const func = tree.func[i];
    if (func < 0) continue;
    const {module} = origins[func];
    let row = rows.get(module);
    if (!row) rows.set(module, row = {module, self: 0, total: 0, calls: 0, functions: new Set(), until: 0});
    row.functions.add(func);
    row.self += tree.self[i];
    row.calls += tree.ownSamples[i];
    if (i < row.until) continue;
    row.total += tree.total[i];
    row.until = tree.end[i];
  }
  return [...rows.values()];
}
