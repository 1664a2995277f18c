// Cards of what is more than held or free: permits, leaders, readers and counts.

import { byId, fresh, h, keyed, setAttr, setText } from './dom.js';
import { used } from './detail.js';
import { who } from './rows.js';
import { board, knows, rows } from './store.js';
import { get } from './stream.js';
import { untold } from './tell.js';
import { clock, count, now, span } from './time.js';
import { t } from './words.js';

const mostCards = 120; // of a kind; the table has the others
const kinds = ['sem', 'election', 'rw'];

let parts = null;
let hrefOf = () => '#';
const latches = new Map(); // name: what was said of it

/** buildKinds makes the view; href is the address of a lock. */
export function buildKinds(href) {
  hrefOf = href;
  const view = byId('view-kinds');
  parts = Object.fromEntries(kinds.map((kind) => [kind, section(kind)]));
  parts.latch = latchSection();
  fresh(view);
  view.append(h('div', { class: 'page' }, kinds.map((k) => parts[k].el), parts.latch.el));
  updateKinds();
}

function section(kind) {
  const cards = h('ul', { class: 'cards' });
  const note = h('p', { class: 'quiet' });
  return { el: h('section', { 'aria-label': t(`kinds.${kind}`) }, h('h2', null, t(`kinds.${kind}`)), note, cards), cards, note };
}

export function updateKinds() {
  if (!parts || byId('view-kinds').hidden) return;
  const of = Object.fromEntries(kinds.map((k) => [k, []]));
  for (const row of rows.values()) of[row.kind]?.push(row);
  for (const kind of kinds) {
    const list = of[kind].sort((a, b) => b.waiting - a.waiting || (a.name < b.name ? -1 : 1));
    const { cards, note } = parts[kind];
    const lacks = board.kinds && !board.kinds.includes(kind);
    const more = list.length - mostCards;
    const few = list.length === 0 ? t('kinds.none') : more > 0 ? t('kinds.more', { n: count(more) }) : '';
    setText(note, lacks ? t('kinds.lacks') : few);
    note.hidden = note.textContent === '';
    keyed(cards, list.slice(0, mostCards), (r) => r.id, makeCard, fillCard);
  }
  const can = knows('latch');
  parts.latch.form.hidden = !can.ok;
  setText(parts.latch.note, can.ok ? t('kinds.latch.note') : untold('latch'));
}

function makeCard(row) {
  return h('li', null, h('a', { class: 'card', href: hrefOf(row.id) },
    h('span', { class: 'name', title: row.name }, row.name),
    h('span', { class: 'big' }),
    row.kind === 'sem' && h('span', { class: 'bar', 'aria-hidden': 'true' }, h('span', { class: 'fill' })),
    h('span', { class: 'minor' }), h('span', { class: 'foot' })));
}

const fillers = { sem: fillSemaphore, election: fillElection, rw: fillReaders };

function fillCard(li, row) {
  const card = li.firstChild;
  fillers[row.kind](card, row);
  const some = row.kind === 'election' ? 'kinds.candidates' : 'kinds.waiting';
  const waits = row.waiting === 0 ? '' : t(some, { n: count(row.waiting) });
  setText(card.querySelector('.foot'), row.waits === null ? t('kinds.waiters.untold') : waits);
  card.classList.toggle('waiting', row.waiting > 0);
}

function write(card, big, minor) {
  setText(card.querySelector('.big'), big);
  setText(card.querySelector('.minor'), minor);
}

function fillSemaphore(card, row) {
  const n = used(row);
  const permits = { used: count(n), limit: count(row.limit) };
  write(card, row.limit ? t('kinds.permits', permits) : t('kinds.permits.nolimit', permits),
    t('kinds.holders', { n: count(row.holds.length) }));
  const part = row.limit ? Math.min(1, n / row.limit) : 0;
  card.querySelector('.fill').style.transform = `scaleX(${part})`;
  setAttr(card, 'data-state', row.limit && n >= row.limit ? 'full' : 'good');
}

function fillElection(card, row) {
  const leader = row.holds.find((x) => !x.cooldown);
  if (!leader) return write(card, t('detail.noleader'), '');
  const since = leader.since === null ? t('untold.short') : span(now() - leader.since);
  const term = { who: leader.client || t('untold.short'), since, token: leader.token || '–' };
  return write(card, leader.label || t('kinds.novalue'), t('kinds.leader', term));
}

function fillReaders(card, row) {
  const shared = row.holds.filter((x) => x.shared && !x.cooldown);
  const writer = row.holds.find((x) => !x.shared && !x.cooldown);
  const wants = (row.waits ?? []).filter((w) => !w.shared).length;
  const queue = row.waiting > 0 ? t('kinds.rwqueue', { writers: count(wants), readers: count(row.waiting - wants) }) : '';
  if (writer && shared.length > 0) return write(card, t('kinds.both', { n: count(shared.length) }), queue); // an upgradeable reader
  if (writer) return write(card, t('kinds.writer'), [who(writer).main, queue].filter(Boolean).join(' · '));
  return write(card, shared.length > 0 ? t('kinds.readers', { n: count(shared.length) }) : t('row.free'), queue);
}

function latchSection() {
  const name = h('input', { type: 'text', id: 'latch-name', autocomplete: 'off', spellcheck: 'false' });
  const form = h('form', { class: 'ask' }, h('label', { for: 'latch-name' }, t('kinds.latch.name')), name,
    h('button', { type: 'submit', class: 'button' }, t('kinds.latch.ask')));
  const note = h('p', { class: 'quiet' });
  const cards = h('ul', { class: 'cards', id: 'latches', 'aria-live': 'polite' });
  form.addEventListener('submit', (e) => {
    e.preventDefault();
    if (name.value !== '') askLatch(name.value, cards);
  });
  showLatches(cards);
  return { el: h('section', { 'aria-label': t('kinds.latch') }, h('h2', null, t('kinds.latch')), note, form, cards), form, note };
}

async function askLatch(name, cards) {
  try {
    const { count: n } = await get(`api/latch?name=${encodeURIComponent(name)}`);
    latches.set(name, { count: n, at: now() });
  } catch (e) {
    latches.set(name, { error: e.message, hint: e.hint ?? '', at: now() });
  }
  showLatches(cards);
}

function showLatches(cards) {
  const list = [...latches].sort(([, a], [, b]) => b.at - a.at);
  keyed(cards, list, ([name]) => name, latchCard, (li, [, said]) => {
    write(li.firstChild, latchText(said), t('detail.looked', { at: clock(said.at) }));
  });
}

const latchCard = ([name]) => h('li', null, h('div', { class: 'card' },
  h('span', { class: 'name', title: name }, name), h('span', { class: 'big' }), h('span', { class: 'minor' })));

function latchText(said) {
  if (said.error) return t('failed', said);
  return said.count === 0 ? t('kinds.latch.open') : t('kinds.latch.count', { n: count(said.count) });
}
