// A row is a lock with what the table shows, sorts and searches by. It is made once for each change of its lock.

import { instant, now } from './time.js';

/** derive makes the row of a lock; before is its last one. */
export function derive(lock, before) {
  const at = now();
  const holds = (lock.holders ?? []).map((h) => {
    const key = `${h.client}|${h.owner}|${h.token}`;
    const hold = { ...h, key, since: instant(h.since), until: instant(h.until), full: 0, exact: false };
    measure(hold, before?.holds.find((o) => o.key === key), at);
    return hold;
  });
  const waits = lock.waiters ? lock.waiters.map((w) => ({ ...w, since: instant(w.since) })) : null;
  const active = holds.filter((h) => !h.resting);
  return {
    id: lock.id,
    kind: lock.kind,
    name: lock.name,
    limit: lock.limit ?? 0,
    unreadable: lock.unreadable ?? '',
    holds,
    waits,
    first: active[0] ?? holds[0] ?? null,
    since: least(active.map((h) => h.since)),
    next: soonest(active.length ? active : holds),
    waiting: waits?.length ?? 0,
    retained: holds.some((h) => h.retained),
    resting: holds.some((h) => h.resting),
    words: null,
  };
}

/**
 * measure finds how long a hold's lease is, which no engine tells. It is exact when the page has seen a renewal, and for a hold
 * that cannot have been renewed yet: a renewal comes after a third of the lease, so until then less than a quarter of the time
 * from the grant to the end has passed. Otherwise full is the longest time to go that was seen.
 */
function measure(hold, before, at) {
  if (hold.until === null) return;
  const left = hold.until - at;
  hold.exact = before?.exact ?? false;
  hold.full = Math.max(before?.full ?? 0, left);
  if (hold.exact || hold.resting) return;
  const whole = hold.since === null ? 0 : hold.until - hold.since;
  if (hold.since !== null && at - hold.since < whole / 4) {
    hold.exact = true;
    hold.full = whole;
  } else if (before && before.until !== null && hold.until - before.until > left / 10) {
    hold.exact = true;
    hold.full = left;
  }
}

/** usual is how long leases are on this board, as far as it is known: the middle one. It is the scale of bars of other holds. */
export let usual = 0;

export function measureUsual(rows) {
  const known = [];
  for (const row of rows.values()) for (const h of row.holds) if (h.exact) known.push(h.full);
  known.sort((a, b) => a - b);
  usual = known[Math.floor(known.length / 2)] ?? 0;
}

const least = (times) => times.reduce((a, b) => (a === null || (b !== null && b < a) ? b : a), null);

/** soonest is the hold whose lease ends first, or null if none has a known end. */
function soonest(holds) {
  return holds.reduce((a, b) => (b.until !== null && (a === null || b.until < a.until) ? b : a), null);
}

/**
 * late reports whether a hold is near its end: renewals come after a third of the lease, so with less than half of it to go one is
 * overdue. What rests only runs out, and is not late; nor is a lease of which no renewal was seen called late before its half.
 */
export const late = (hold, at) => hold.until !== null && !hold.resting && hold.until - at < hold.full / 2;

/** who names a party: its owner and label, and its client. */
export function who(party) {
  if (!party) return { main: '', minor: '' };
  const main = [party.owner, party.label].filter(Boolean).join(' · ');
  return main ? { main, minor: party.client ?? '' } : { main: party.client ?? '', minor: '' };
}

/** idOf is the id of a lock, as the console makes it: Go's url.PathEscape escapes other characters than JavaScript does. */
export function idOf(kind, name) {
  const escaped = encodeURIComponent(name)
    .replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`)
    .replace(/%(24|26|2B|3A|3D|40)/g, (c) => decodeURIComponent(c));
  return `${kind}/${escaped}`;
}

/** text is what search looks in. It is made when it is first needed. */
function text(row) {
  row.words ??= [row.name, row.kind, row.unreadable, ...row.holds.map(whole), ...(row.waits ?? []).map(whole)]
    .join('\n').toLowerCase();
  return row.words;
}

const whole = (p) => `${p.client ?? ''} ${p.owner ?? ''} ${p.label ?? ''} ${p.token ?? ''}`;

/** matches reports whether a row has every word of the search, and passes the filters. */
export function matches(row, words, filters, at) {
  if (filters.kinds.size > 0 && !filters.kinds.has(row.kind)) return false;
  if (filters.waiting && row.waiting === 0) return false;
  if (filters.late && !row.holds.some((h) => late(h, at))) return false;
  if (filters.retained && !row.retained) return false;
  return words.every((w) => text(row).includes(w));
}

const byText = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
const byNumber = (a, b) => (a ?? -1) - (b ?? -1);
// Tokens are numbers that JavaScript may not keep exact, so they are texts: the longer one is the larger.
const byToken = (a = '', b = '') => a.length - b.length || byText(a, b);

const orders = {
  kind: (a, b) => byText(a.kind, b.kind),
  name: (a, b) => byText(a.name, b.name),
  holder: (a, b) => byText(who(a.first).main, who(b.first).main),
  held: (a, b) => byNumber(b.since ?? Infinity, a.since ?? Infinity), // held for longer is more
  lease: (a, b) => byNumber(a.next?.until ?? Infinity, b.next?.until ?? Infinity),
  token: (a, b) => byToken(a.first?.token, b.first?.token),
  waiters: (a, b) => byNumber(a.waiting, b.waiting),
};

/** arranged are the rows that match, in the order asked for; names break ties. */
export function arranged(rows, words, filters, sort) {
  const at = now();
  const list = [];
  for (const row of rows.values()) if (matches(row, words, filters, at)) list.push(row);
  const order = orders[sort.by];
  const way = sort.down ? -1 : 1;
  return list.sort((a, b) => way * order(a, b) || byText(a.name, b.name) || byText(a.kind, b.kind));
}
