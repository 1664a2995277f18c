// The pane of one lock: who holds it, who waits in which order, what happened to it, and the way to break a hold.

import { byId, fresh, h, keyed, setAttr, setText } from './dom.js';
import { buildBreak, closeBreak, breakTarget, openBreak } from './breaking.js';
import { eventItem, fillEvent } from './events.js';
import { board, knows, rowOf, rows } from './store.js';
import { traceOf, who } from './rows.js';
import { link, look } from './stream.js';
import { fillLease, leaseParts } from './tablerow.js';
import { because, kindTag, markTags, untold } from './tell.js';
import { clock, count, date, now, span as lasting } from './time.js';
import { t } from './words.js';

const most = 100; // holders, and waiters, that the pane shows
let shown = null; // id of the lock that the pane shows
let parts = null;
let closed = () => {};
const beyondPause = 5000;
const asked = { id: '', at: 0 }; // the lock that the board has no room for, and when it was looked at for its own sake

/** detailOf is the id of the lock that is shown, or null. */
export const detailOf = () => shown;

/** showDetail shows a lock, or nothing for null; onClose is called when the reader closes the pane. */
export function showDetail(id, onClose) {
  closed = onClose;
  if (id === shown && parts) return;
  shown = id;
  const pane = byId('detail');
  closeBreak();
  setAttr(pane, 'hidden', id === null);
  document.body.classList.toggle('with-detail', id !== null);
  if (id === null) {
    parts = null;
    fresh(pane);
    return;
  }
  build(pane, id);
  updateDetail();
}

/** rebuildDetail writes the pane anew, in another language. */
export function rebuildDetail() {
  if (shown === null) return;
  build(byId('detail'), shown);
  updateDetail();
}

/** split takes an id apart: its kind and its name. */
function split(id) {
  const at = id.indexOf('/');
  const name = id.slice(at + 1);
  try {
    return { kind: id.slice(0, at), name: decodeURIComponent(name) };
  } catch {
    return { kind: id.slice(0, at), name };
  }
}

function build(pane, id) {
  const { kind, name } = split(id);
  parts = {
    state: h('p', { class: 'sum' }),
    holders: h('ul', { class: 'holders' }),
    noHolders: h('p', { class: 'quiet' }),
    queue: h('ol', { class: 'queue' }),
    noQueue: h('p', { class: 'quiet' }),
    moreHolders: h('p', { class: 'quiet' }),
    moreWaiters: h('p', { class: 'quiet' }),
    events: h('ol', { class: 'events' }),
    noEvents: h('p', { class: 'quiet' }),
    queueTitle: h('h3'),
    breakNote: h('p', { class: 'quiet', id: 'break-note' }),
    looked: h('span', { class: 'quiet', role: 'status' }),
    breaking: h('div', { id: 'breaking' }),
  };
  pane.replaceChildren(
    h('div', { class: 'pane-head' },
      kindTag(kind),
      h('h2', { id: 'detail-name', title: name }, name),
      closer()),
    parts.state,
    h('h3', null, t('detail.holders')), parts.noHolders, parts.breaking, parts.holders, parts.moreHolders, parts.breakNote,
    parts.queueTitle, parts.noQueue, parts.queue, parts.moreWaiters,
    h('h3', null, t('detail.events')), parts.noEvents, parts.events,
    h('p', { class: 'pane-foot' }, lookButton(), ' ', parts.looked),
  );
  buildBreak(parts.breaking);
}

const closer = () => h('button', {
  type: 'button', class: 'tool close', id: 'detail-close', 'aria-keyshortcuts': 'Escape', 'aria-label': t('detail.close'),
  on: { click: () => closed() },
}, '×');

const lookButton = () => h('button', { type: 'button', class: 'button', id: 'look-now', on: { click: () => lookAgain() } }, t('detail.look'));

// lookAgain says in the pane what came of it, but not each few seconds that all is well.
async function lookAgain(quiet = false) {
  const id = shown;
  const { kind, name } = split(id);
  const to = parts.looked;
  try {
    const lock = await look(kind, name);
    const used = (lock.holders?.length ?? 0) + (lock.waiters?.length ?? 0) > 0;
    const fine = quiet ? '' : t('detail.looked', { at: clock(now()) });
    setText(to, used ? fine : t('detail.free'));
  } catch (e) {
    setText(to, t('failed', { error: e.message, hint: e.hint ?? '' }));
  }
}

// lookBeyond looks at a lock that the board has no room for, as long as the pane shows it.
async function lookBeyond() {
  if (!board.ready || !board.truncated || rows.has(shown) || link.state !== 'open') return;
  if (asked.id === shown && performance.now() - asked.at < beyondPause) return;
  Object.assign(asked, { id: shown, at: Infinity }); // until the answer has come
  const { id } = asked;
  await lookAgain(true);
  if (asked.id === id) asked.at = performance.now();
}

/** updateDetail writes what has changed, and what goes with time. */
export function updateDetail() {
  if (shown === null || !parts) return;
  lookBeyond();
  const row = rowOf(shown);
  setText(parts.state, summary(row));
  const holds = row?.holds ?? [];
  keyed(parts.holders, holds.slice(0, most), (x) => x.key, makeHolder, (el, x) => fillHolder(el, x, row));
  say(parts.noHolders, holds.length === 0 && (row?.unreadable ? t('row.unreadable', { why: row.unreadable }) : t('detail.noholders')));
  updateQueue(row);
  const { kind, name } = split(shown);
  const events = board.events.filter((e) => e.kind === kind && e.name === name);
  keyed(parts.events, events, (e) => String(e.seq), (e) => eventItem(e, false), fillEvent);
  say(parts.noEvents, events.length === 0 && t('detail.noevents'));
  const may = knows('break');
  say(parts.breakNote, holds.length > 0 && (may.ok
    ? holds.some((x) => !x.token) && t('break.notoken') : t('break.cannot', { why: because('break') })));
  more(parts.moreHolders, holds.length);
}

// more says how many are left out.
function more(el, n) {
  say(el, n > most && t('detail.more', { n: count(n - most) }));
}

function say(el, text) {
  setAttr(el, 'hidden', !text);
  if (text) setText(el, text);
}

function summary(row) {
  if (!row) return t('detail.gone');
  if (row.kind === 'sem') return t('detail.sem', { used: count(used(row)), limit: row.limit ? count(row.limit) : '?' });
  if (row.kind === 'rw') {
    const shared = row.holds.filter((x) => x.shared && !x.cooldown).length;
    return shared > 0 ? t('detail.readers', { n: count(shared) }) : t('detail.writer');
  }
  if (!row.first) return t(row.kind === 'election' ? 'detail.noleader' : 'detail.noholders');
  if (row.first.cooldown) return t('state.cooldown.long');
  if (row.kind === 'election') return t('detail.leader', { value: row.first.label || t('kinds.novalue') });
  return t(row.retained ? 'state.retained.long' : 'detail.held');
}

/** used is how many permits of a semaphore are out. What rests is not back yet. */
export const used = (row) => row.holds.reduce((n, x) => n + (x.weight || 1), 0);

const span = (name) => h('span', { class: name });

function makeHolder() {
  const lease = leaseParts();
  const breaker = h('button', { type: 'button', class: 'button danger', 'data-break': true }, t('break.open'));
  const el = h('li', { class: 'holder' },
    h('div', { class: 'holder-head' }, h('div', { class: 'party' }, span('marks'), span('main'), span('minor')), breaker),
    h('dl', { class: 'facts' }));
  el.parts = { lease, breaker };
  breaker.addEventListener('click', () => openBreak(el.target));
  return el;
}

function fillHolder(el, hold, row) {
  const [head, facts] = el.children;
  const party = head.firstChild;
  const { main, minor } = who(hold);
  party.children[0].replaceChildren(...markTags(hold, row.kind));
  setText(party.children[1], main || t('untold.short'));
  setText(party.children[2], minor);
  const at = now();
  const list = [
    ['held', hold.since === null ? null : t('fact.heldsince', { span: lasting(at - hold.since), at: clock(hold.since) }), 'since'],
    ['lease', '', ''],
    ['token', hold.token || null, 'token'],
    hold.weight > 1 && ['weight', count(hold.weight), ''],
    hold.named && ['named', t('fact.isnamed'), ''],
    traceOf(hold.label) && ['trace', traceOf(hold.label), ''],
  ].filter(Boolean);
  const make = ([name]) => h('div', null, h('dt', null, t(`fact.${name}`)), h('dd', null, name === 'lease' ? el.parts.lease.el : ''));
  keyed(facts, list, ([name]) => name, make, (div, f) => {
    if (f[0] !== 'lease') fact(div.lastChild, f);
  });
  fillLease(el.parts.lease, hold, at);
  el.target = { id: row.id, kind: row.kind, name: row.name, token: hold.token ?? '', holder: hold };
  el.parts.breaker.hidden = !knows('break').ok || !hold.token;
  setAttr(el.parts.breaker, 'aria-expanded', String(breakTarget()?.token === hold.token));
}

function fact(dd, [name, text, what]) {
  setText(dd, text ?? untold(what));
  dd.classList.toggle('untold', text === null);
  if (name === 'token') dd.classList.add('num');
}

function updateQueue(row) {
  const waits = row?.waits ?? [];
  const ordered = waits.some((w) => w.position > 0);
  const n = count(waits.length);
  const title = ordered ? t('detail.queue.n', { n }) : t('detail.waiters.n', { n });
  setText(parts.queueTitle, waits.length > 0 ? title : t('detail.queue'));
  const none = !row || row.waits === null;
  say(parts.noQueue, waits.length === 0 && (none && !knows('waiters').ok ? untold('waiters') : t('detail.nowaiters')));
  const list = ordered ? [...waits].sort((a, b) => a.position - b.position) : waits;
  more(parts.moreWaiters, list.length);
  const key = (w) => `${w.client}|${w.owner}|${w.since}`;
  keyed(parts.queue, list.slice(0, most), key, makeWaiter, (li, w) => fillWaiter(li, w, row.kind));
}

function makeWaiter() {
  return h('li', null, span('pos num'), h('span', { class: 'who' }, span('main'), ' ', span('minor')), span('num age'));
}

function fillWaiter(li, w, kind) {
  const { main, minor } = who(w);
  const mode = w.shared && kind === 'rw' ? ` · ${t('state.shared')}` : w.weight > 1 ? ` · ×${count(w.weight)}` : '';
  setText(li.children[0], w.position > 0 ? count(w.position) : '•');
  setText(li.children[1].children[0], (main || t('untold.short')) + mode);
  setText(li.children[1].children[1], minor);
  setText(li.children[2], w.since === null ? t('untold.short') : lasting(now() - w.since));
  setAttr(li.children[2], 'title', w.since === null ? null : date(w.since));
}
