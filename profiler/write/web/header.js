// SPDX-License-Identifier: Apache-2.0
//
// What was profiled, and how far it can be trusted.
import {formatTime} from './text.js';

/** @typedef {import('./data.js').Profile} Profile */
/** @typedef {{text: string, hint?: string, warn?: boolean}} Fact */

/** @param {Profile} profile */
export function showHeader(profile) {
  const command = /** @type {HTMLElement} */ (document.getElementById('command'));
  command.textContent = profile.title;
  command.title = profile.title;
  showFacts(factsOf(profile));
  const quality = /** @type {HTMLElement} */ (document.getElementById('quality'));
  quality.textContent = profile.quality.sentence;
  quality.className = profile.quality.verdict;
}

/** @param {Fact[]} facts */
function showFacts(facts) {
  document.getElementById('facts')?.replaceChildren(...facts.flatMap((fact) => {
    const span = document.createElement('span');
    span.textContent = fact.text;
    if (fact.warn) span.className = 'bad';
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
    facts.push({text: `shown: ${formatTime(range.since)} to ${formatTime(range.until)}`, warn: true});
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
