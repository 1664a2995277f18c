// Time as the console's server sees it: leases count down on the page, by instants of the server and not by this machine's clock.

import { locale, t } from './words.js';

const samples = [];
const many = 30;
let offset = 0;

/**
 * heard takes in the instant of a look. What arrives is always late, never early, so the largest offset of the last looks is
 * nearest to the truth; old ones are forgotten, because clocks are set and machines sleep.
 */
export function heard(taken) {
  const at = instant(taken);
  if (at === null) return;
  samples.push(at - performance.now());
  if (samples.length > many) samples.shift();
  offset = Math.max(...samples);
}

/** now is the server's time, in milliseconds. */
export const now = () => performance.now() + offset;

/** instant is the milliseconds of an RFC 3339 time, or null if there is none. */
export function instant(text) {
  if (!text) return null;
  const ms = Date.parse(text);
  return Number.isNaN(ms) || ms < 0 ? null : ms; // Go's zero time lies before 1970
}

const two = (n) => String(n).padStart(2, '0');

/** span is a duration for people: two units at most, rounded down. */
export function span(ms) {
  const s = Math.max(0, Math.floor(ms / 1000));
  if (s < 60) return t('span.s', { s });
  if (s < 3600) return t('span.ms', { m: Math.floor(s / 60), s: two(s % 60) });
  if (s < 86400) return t('span.hm', { h: Math.floor(s / 3600), m: two(Math.floor(s / 60) % 60) });
  return t('span.dh', { d: Math.floor(s / 86400), h: two(Math.floor(s / 3600) % 24) });
}

const formats = new Map();

function format(options) {
  const key = locale() + JSON.stringify(options);
  if (!formats.has(key)) formats.set(key, new Intl.DateTimeFormat(locale(), options));
  return formats.get(key);
}

/** clock is the time of day, and date the whole instant, both in the reader's zone. */
export const clock = (ms) => format({ hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23' }).format(ms);
export const date = (ms) => format({ dateStyle: 'medium', timeStyle: 'long' }).format(ms);

/** count is a number with the reader's separators. */
export const count = (n) => n.toLocaleString(locale());
