// A row is a lock with what the table shows, sorts and searches by. It is made once for each change of its lock.

import { instant, now } from './time.js';

/**
 * Row is one lock. Most is found out when it is first asked for: of ten thousand rows the table shows some thirty, and only a
 * search or another order wants to know more of the others.
 */
export class Row {
  #lock;
  #at; // when it was told
  #was; // the holds of the row before, if they were ever looked at
  #holds = null;
  #waits;
  #text = null;

  constructor(lock, before) {
    this.#lock = lock;
    this.#at = now();
    this.#was = before ? (before.#holds ?? before.#was) : null;
    this.id = lock.id;
    this.kind = lock.kind;
    this.name = lock.name;
    this.limit = lock.limit ?? 0;
    this.unreadable = lock.unreadable ?? '';
    this.waiting = lock.waiters?.length ?? 0;
  }

  /** holds are the holders, with instants in milliseconds and what is known of their leases. */
  get holds() {
    if (this.#holds) return this.#holds;
    this.#holds = (this.#lock.holders ?? []).map((h) => {
      const key = `${h.client}|${h.owner}|${h.token}`;
      const hold = { ...h, key, since: instant(h.since), until: instant(h.until), full: 0, exact: false };
      measure(hold, this.#was?.find((o) => o.key === key), this.#at);
      return hold;
    });
    this.#was = null;
    return this.#holds;
  }

  /** waits are the waiters, or null if the engine does not tell. */
  get waits() {
    this.#waits ??= this.#lock.waiters?.map((w) => ({ ...w, since: instant(w.since) })) ?? null;
    return this.#waits;
  }

  /** first is the holder that stands for all: one that is not done, if there is any. */
  get first() {
    return this.holds.find((h) => !h.cooldown) ?? this.holds[0] ?? null;
  }

  /** since is when the lock came to be held, or null. */
  get since() {
    return least(this.#active().map((h) => h.since));
  }

  /** next is the hold whose lease ends first, or null if none has a known end. */
  get next() {
    const active = this.#active();
    const sooner = (a, b) => (b.until !== null && (a === null || b.until < a.until) ? b : a);
    return (active.length ? active : this.holds).reduce(sooner, null);
  }

  #active() {
    return this.holds.filter((h) => !h.cooldown);
  }

  get retained() {
    return this.holds.some((h) => h.retained);
  }

  /** text is what search looks in. */
  get text() {
    if (this.#text === null) {
      const parties = [...(this.#lock.holders ?? []), ...(this.#lock.waiters ?? [])];
      this.#text = [this.name, this.kind, this.unreadable, ...parties.map(whole)].join('\n').toLowerCase();
    }
    return this.#text;
  }
}

/**
 * measure finds how long a hold's lease is, which no engine tells. It is exact when the page has seen a renewal, and for a hold
 * that cannot have been renewed yet: the first renewal comes after a third of the lease, and then a quarter of the time from the
 * grant to the end has passed at least. Otherwise full is the longest time to go that was seen.
 */
function measure(hold, before, at) {
  if (hold.until === null) return;
  const left = hold.until - at;
  hold.exact = before?.exact ?? false;
  hold.full = Math.max(before?.full ?? 0, left);
  if (hold.exact || hold.cooldown) return;
  const whole = hold.since === null ? 0 : hold.until - hold.since;
  if (hold.since !== null && at - hold.since < whole / 4) {
    hold.exact = true;
    hold.full = whole;
  } else if (before && before.until !== null && hold.until - before.until > left / 10) {
    hold.exact = true;
    hold.full = left;
  }
}

/**
 * usual is how long leases are on this board: the middle one of those that are known exactly, or else the longest that was seen,
 * outliers aside. It is the scale of the bars of other holds.
 */
export let usual = 0;

const sample = 500; // rows

export function measureUsual(rows) {
  const exact = [];
  const seen = [];
  let left = sample;
  for (const row of rows.values()) {
    if (left-- === 0) break;
    for (const h of row.holds) (h.exact ? exact : seen).push(h.full);
  }
  usual = exact.length > 0 ? quantile(exact, 0.5) : quantile(seen, 0.9);
}

const quantile = (list, q) => list.sort((a, b) => a - b)[Math.floor(list.length * q)] ?? 0;

const least = (times) => times.reduce((a, b) => (a === null || (b !== null && b < a) ? b : a), null);

/**
 * late reports whether a hold is near its end: renewals come before half of the lease is over, so with less than half of it to go
 * one is overdue, or there is none. What rests only runs out, and is not late.
 */
export const late = (hold, at) => hold.until !== null && !hold.cooldown && hold.until - at < hold.full / 2;

/** mark is what a label may end with: the trace of the call (adapters/otellock). It is 67 characters wide and means nothing to people. */
const mark = /(?:^| )traceparent=[0-9a-f]{2}-([0-9a-f]{32})-\S*$/;

/** traceOf is the ID of the trace of the call that got the lock, if its label tells. */
export const traceOf = (label) => mark.exec(label ?? '')?.[1] ?? '';

/** who names a party: its owner and label, and its client. */
export function who(party) {
  if (!party) return { main: '', minor: '' };
  const main = [party.owner, party.label?.replace(mark, '')].filter(Boolean).join(' · ');
  return main ? { main, minor: party.client ?? '' } : { main: party.client ?? '', minor: '' };
}

/** idOf is the id of a lock, as the console makes it: Go's url.PathEscape escapes other characters than JavaScript does. */
export function idOf(kind, name) {
  const escaped = encodeURIComponent(name)
    .replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`)
    .replace(/%(24|26|2B|3A|3D|40)/g, (c) => decodeURIComponent(c));
  return `${kind}/${escaped}`;
}

const whole = (p) => `${p.client ?? ''} ${p.owner ?? ''} ${p.label ?? ''} ${p.token ?? ''}`;

/** matches reports whether a row has every word of the search, and passes the filters. */
function matches(row, words, filters, at) {
  if (filters.kinds.size > 0 && !filters.kinds.has(row.kind)) return false;
  if (filters.waiting && row.waiting === 0) return false;
  if (filters.late && !row.holds.some((h) => late(h, at))) return false;
  if (filters.retained && !row.retained) return false;
  return words.every((w) => row.text.includes(w));
}

const orders = {
  kind: (r) => r.kind,
  name: (r) => r.name,
  holder: (r) => who(r.first).main,
  held: (r) => (r.since === null ? -Infinity : -r.since), // held for longer is more
  lease: (r) => r.next?.until ?? Infinity,
  token: (r) => (r.first?.token ?? '').padStart(20, '0'), // JavaScript may not keep such numbers exact
  waiters: (r) => r.waiting,
};

const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0);

/** arranged are the rows that match, in the order asked for; names break ties. */
export function arranged(rows, words, filters, sort) {
  const at = now();
  const list = [];
  const key = orders[sort.by];
  for (const row of rows.values()) if (matches(row, words, filters, at)) list.push({ row, key: key(row) });
  const way = sort.down ? -1 : 1;
  list.sort((a, b) => way * compare(a.key, b.key) || compare(a.row.name, b.row.name) || compare(a.row.kind, b.row.kind));
  return list.map((x) => x.row);
}
