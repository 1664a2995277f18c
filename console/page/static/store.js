// What the console has told so far. Only this file writes it; everything that shows it is called by changed.

import { Row, measureUsual } from './rows.js';
import { heard } from './time.js';

/** board is everything of a Board but its locks, which are rows below. */
export const board = {
  ready: false, // the first board has come
  taken: '', tookMs: 0, intervalMs: 1000, engine: '', url: '', lifetime: '', knows: {}, truncated: false, error: '', stale: false,
  counts: { held: 0, waiting: 0, retained: 0, cooldown: 0, unreadable: 0, oldestWaiterMs: 0, byKind: {} },
  edges: [], cycles: [], events: [],
};

/** rows are the locks by id, each with what the table sorts and searches by. */
export const rows = new Map();

/** revision grows whenever rows change, so that lists know whether to sort again. */
export let revision = 0;

/** messages counts what the stream has told, so that an answer knows whether the stream has told something since the question. */
export let messages = 0;

// looked is the lock that was looked at by itself, as long as it is newer than its row, or has none because the board is cut off.
// It is not among the rows: the console, which compares its own looks, would not take it out of them again.
let looked = null;

// replaced are the fields of a change that replace those of the board, where they are there.
const replaced = ['taken', 'tried', 'tookMs', 'counts', 'edges', 'cycles', 'truncated', 'edgesTruncated', 'knows'];
const maxEvents = 200;
const listeners = [];

/** onChange has f called after each message. */
export const onChange = (f) => listeners.push(f);

// beyond is whether a lock may be there although no row has it.
const beyond = (id) => board.truncated && !rows.has(id);

// told ends a message.
function told() {
  messages++;
  if (looked && !beyond(looked.id)) looked = null;
  tell();
}

function tell() {
  for (const f of listeners) f();
}

/** takeBoard replaces everything. */
export function takeBoard(b) {
  heard(b.tried ?? b.taken);
  const { locks, ...rest } = b;
  Object.assign(board, { error: '', stale: false, truncated: false }, rest, { ready: true });
  board.events = (b.events ?? []).slice(0, maxEvents);
  const before = new Map(rows);
  rows.clear();
  for (const lock of locks ?? []) rows.set(lock.id, new Row(lock, before.get(lock.id)));
  measureUsual(rows);
  revision++;
  told();
}

/** takeChange changes what differs since the message before. Without changed and gone the locks are as they were. */
export function takeChange(c) {
  heard(c.tried ?? c.taken);
  for (const name of replaced) {
    if (c[name] !== undefined && c[name] !== null) board[name] = c[name];
  }
  board.error = c.error ?? '';
  board.stale = c.stale ?? false;
  for (const id of c.gone ?? []) rows.delete(id);
  for (const lock of c.changed ?? []) rows.set(lock.id, new Row(lock, rows.get(lock.id)));
  if ((c.gone?.length ?? 0) + (c.changed?.length ?? 0) > 0) revision++;
  if (c.events?.length) {
    const known = new Set(board.events.map((e) => e.seq));
    const fresh = c.events.filter((e) => !known.has(e.seq));
    board.events = [...fresh, ...board.events].sort((a, b) => b.seq - a.seq).slice(0, maxEvents);
  }
  told();
}

/** take shows one lock that was looked at by itself. before is messages at the time of the question: what came since may be newer. */
export function take(lock, before) {
  if (messages !== before && !beyond(lock.id)) return;
  const used = (lock.holders?.length ?? 0) + (lock.waiters?.length ?? 0) > 0;
  looked = used ? new Row(lock, rowOf(lock.id)) : null;
  tell();
}

/** rowOf is what is known of one lock. */
export const rowOf = (id) => (looked?.id === id ? looked : rows.get(id));

/** knows is what the engine can tell: {ok, why}. What the console does not say is taken for known. */
export const knows = (what) => board.knows?.[what] ?? { ok: true, why: '' };
