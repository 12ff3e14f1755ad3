// SPDX-License-Identifier: Apache-2.0
//
// What was profiled, and how far it can be trusted.
import {formatCount, formatPercent, formatTime, plural} from './text.js';

/** @typedef {import('./data.js').Profile} Profile */
/** @typedef {{text: string, kind?: 'good' | 'bad', hint?: string}} Fact */

/** @param {Profile} profile */
export function showHeader(profile) {
  const command = /** @type {HTMLElement} */ (document.getElementById('command'));
  command.textContent = profile.title;
  command.title = profile.title;
  showFacts('facts', factsOf(profile));
  showFacts('quality', qualityOf(profile.quality));
}

/** @param {string} id @param {Fact[]} facts */
function showFacts(id, facts) {
  document.getElementById(id)?.replaceChildren(...facts.flatMap((fact) => {
    const span = document.createElement('span');
    span.textContent = fact.text;
    if (fact.kind) span.className = fact.kind;
    if (fact.hint) span.title = fact.hint;
    return [span, document.createTextNode(' ')];
  }));
}

/** @param {Profile} profile @returns {Fact[]} */
function factsOf({meta, quality, range}) {
  /** @type {Fact[]} */ const facts = [];
  if (meta.pid) facts.push({text: `pid ${meta.pid}`, hint: meta.executable});
  if (meta.python) facts.push({text: `Python ${meta.python}`, hint: meta.executable});
  if (meta.host) facts.push({text: meta.host});
  if (meta.startMs) {
    const start = new Date(meta.startMs);
    facts.push({
      text: start.toLocaleString(undefined, {dateStyle: 'medium', timeStyle: 'medium'}),
      hint: start.toISOString(),
    });
  }
  facts.push({text: formatTime(quality.duration)});
  if (isPart(range, quality.duration)) {
    facts.push({text: `shown: ${formatTime(range.since)} to ${formatTime(range.until)}`, kind: 'bad'});
  }
  if (meta.pystrobe) facts.push({text: `pystrobe ${meta.pystrobe}`});
  return facts;
}

/**
 * Whether the profile was cut in time. A recording's last sample may end a little before it does.
 * @param {any} range @param {number} duration
 */
function isPart(range, duration) {
  return range.since > 0 || range.until < 0.95 * duration - 100_000;
}

/** @param {any} q @returns {Fact[]} */
function qualityOf(q) {
  const facts = [{text: plural(q.taken, 'sample')}, rateOf(q)];
  if (q.taken > 0) {
    facts.push({
      text: `${formatPercent(q.proved, q.taken)} proved exact`,
      kind: q.proved === q.taken ? 'good' : undefined,
      hint: 'Stacks proved to have been copied while the thread held still',
    });
  }
  const rare = [
    ['marked', 'kept without that proof: such a stack may be torn'],
    ['incomplete', 'stacks that did not reach the thread\'s first frame'],
    ['late', 'taken more than one period after its time'],
    ['lost', 'due, but not taken'],
    ['unresolved', 'frames whose code could not be read in time'],
  ];
  for (const [name, hint] of rare) {
    if (q[name] > 0) {
      const bad = name !== 'late' && q[name] > 0.01 * Math.max(q.taken, q.deadlines);
      facts.push({text: `${formatCount(q[name])} ${name}`, hint, kind: bad ? 'bad' : undefined});
    }
  }
  if (q.duration > 0) {
    facts.push({
      text: `target held ${formatTime(q.held)} (${formatPercent(q.held, q.duration)})`,
      hint: `Time the program waited because of the sampler. The kernel's run_delay, an upper bound: ${formatTime(q.runDelay)}`,
    });
    facts.push({
      text: `sampler used ${formatPercent(q.ownCpu, q.duration)} of a core`,
      hint: formatTime(q.ownCpu),
    });
  }
  if (q.cpuSource === 'stat') {
    facts.push({text: 'CPU time in 10 ms ticks', kind: 'bad', hint: 'The kernel has no schedstat here'});
  }
  if (!q.complete) {
    facts.push({text: 'cut off', kind: 'bad', hint: 'The sampler did not end in order; figures are as of the last block written'});
  }
  return facts;
}

/** @param {any} q @returns {Fact} */
function rateOf(q) {
  const achieved = formatCount(q.rate);
  const wanted = formatCount(q.wantedRate);
  const text = achieved === wanted ? `${wanted} Hz` : `${achieved} of ${wanted} Hz`;
  const lowered = q.finalRate > 0 && q.finalRate < 0.99 * q.wantedRate;
  return {
    text: lowered ? `${text} (lowered to stay within the allowed overhead)` : text,
    hint: 'Samples a second that were taken, and that were wanted',
  };
}
