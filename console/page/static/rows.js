// A row is a lock with what the table shows, sorts and searches by. It is made once for each change of its lock.

import { instant, now } from './time.js';

/**
 * derive makes the row of a lock; before is its last one. Nobody tells how long a lease was at its grant, so a bar is full at the
 * longest time to go that this page has seen for the hold.
 */
export function derive(lock, before) {
  const at = now();
  const holds = (lock.holders ?? []).map((h) => {
    const key = `${h.client}|${h.owner}|${h.token}`;
    const until = instant(h.until);
    const full = Math.max(before?.holds.find((o) => o.key === key)?.full ?? 0, until === null ? 0 : until - at);
    return { ...h, key, since: instant(h.since), until, full };
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

const least = (times) => times.reduce((a, b) => (a === null || (b !== null && b < a) ? b : a), null);

/** soonest is the hold whose lease ends first, or null if none has a known end. */
function soonest(holds) {
  return holds.reduce((a, b) => (b.until !== null && (a === null || b.until < a.until) ? b : a), null);
}

/**
 * late reports whether a hold is near its end: renewals come after a third of the lease, so with less than half of it to go one is
 * overdue. What rests only runs out, and is not late.
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
