// The table of locks. Only the rows that are seen, and a few around them, are elements, so ten thousand locks cost what fifty do.

import { byId, fresh, h, announce, setAttr, setText } from './dom.js';
import { board, knows, revision, rows } from './store.js';
import { arranged } from './rows.js';
import { fill, makeRow } from './tablerow.js';
import { count } from './time.js';
import { lang, t } from './words.js';
import { filterBar, filters, searched } from './filters.js';

const around = 8; // rows beyond the edges, so that scrolling shows no gaps
const columns = ['kind', 'name', 'holder', 'held', 'lease', 'token', 'waiters'];
const sort = { by: 'name', down: false };

let list = []; // the rows that match, in order
let active = null; // id of the row that the keyboard is on
let shown = ''; // what list was made for
let parts = null;
let openRow = () => {};

/** build makes the view; open is called with the id of a row that is chosen. */
export function build(open) {
  openRow = open;
  const view = byId('view-locks');
  fresh(view);
  const heads = columns.map(heading);
  const body = h('tbody');
  const above = h('tr', { class: 'pad', role: 'presentation' }, h('td'));
  const below = h('tr', { class: 'pad', role: 'presentation' }, h('td'));
  const table = h('table', { class: 'locks', id: 'grid', role: 'grid', tabindex: 0, 'aria-label': t('table.label') },
    h('thead', null, h('tr', { 'aria-rowindex': 1 }, heads)), body);
  const scroller = h('div', { class: 'scroller', id: 'scroller' }, table);
  const empty = h('p', { class: 'empty', id: 'empty', hidden: true });
  const note = h('p', { class: 'note slim', id: 'truncated', hidden: true }, t('table.truncated'));
  view.append(filterBar(refilter), note, scroller, empty);
  body.append(above, below);
  parts = { table, body, above, below, scroller, empty, note, heads, pool: [] };
  shown = '';
  scroller.addEventListener('scroll', paint, { passive: true });
  body.addEventListener('click', (e) => {
    const id = e.target.closest('tr')?.dataset.id;
    if (id) choose(id);
  });
  new ResizeObserver(paint).observe(scroller);
}

function heading(column) {
  const button = h('button', { type: 'button', on: { click: () => sortBy(column) } }, t(`column.${column}`));
  return h('th', { scope: 'col', class: `c-${column}`, 'data-column': column }, button);
}

function sortBy(column) {
  if (sort.by === column) sort.down = !sort.down;
  else Object.assign(sort, { by: column, down: column === 'held' || column === 'waiters' });
  refilter();
}

function refilter() {
  shown = '';
  update();
  announce(t('table.found', { n: count(list.length) }));
}

/** update sorts and filters again if anything has changed, and paints. */
export function update() {
  if (!parts) return;
  // What is near its end changes by itself.
  const state = [revision, searched().join(' '), filters.key(), sort.by, sort.down, filters.late ? Date.now() : 0].join('|');
  if (state !== shown) {
    shown = state;
    list = arranged(rows, searched(), filters, sort);
  }
  for (const th of parts.heads) {
    setAttr(th, 'aria-sort', th.dataset.column === sort.by ? (sort.down ? 'descending' : 'ascending') : null);
  }
  setAttr(parts.table, 'aria-rowcount', list.length + 1);
  setAttr(parts.note, 'hidden', !board.truncated);
  sayEmpty();
  paint();
}

function sayEmpty() {
  const none = board.ready && list.length === 0;
  setAttr(parts.empty, 'hidden', !none);
  setAttr(parts.scroller, 'hidden', none);
  if (!none) return;
  if (!knows('list').ok) setText(parts.empty, t('table.cannot', { why: knows('list').why }));
  else setText(parts.empty, rows.size > 0 ? t('table.nomatch') : t('table.none'));
}

// rowHeight is asked of the style, so that it is said in one place.
const rowHeight = () => parseFloat(getComputedStyle(document.documentElement).getPropertyValue('--row')) || 34;

function paint() {
  if (!parts || parts.scroller.hidden || byId('view-locks').hidden) return;
  const height = rowHeight();
  const { scroller, above, below, body, pool } = parts;
  const from = Math.max(0, Math.floor(scroller.scrollTop / height) - around);
  const to = Math.min(list.length, Math.ceil((scroller.scrollTop + scroller.clientHeight) / height) + around);
  // A row keeps its element while it stays in view, so that only what comes into view is written.
  const placed = new Map();
  const free = [];
  for (const tr of pool) {
    if (tr.at >= from && tr.at < to && !placed.has(tr.at)) placed.set(tr.at, tr);
    else free.push(tr);
  }
  pool.length = 0;
  let before = above;
  for (let i = from; i < to; i++) {
    const tr = placed.get(i) ?? free.pop() ?? makeRow(columns);
    tr.at = i;
    pool.push(tr);
    if (before.nextSibling !== tr.el) body.insertBefore(tr.el, before.nextSibling);
    before = tr.el;
    fill(tr, list[i], i, { active, lang: lang() });
  }
  for (const tr of free) tr.el.remove();
  above.firstChild.style.height = `${from * height}px`;
  below.firstChild.style.height = `${(list.length - to) * height}px`;
  setAttr(parts.table, 'aria-activedescendant', active && byId(`row-${active}`) ? `row-${active}` : null);
}

/** move puts the keyboard n rows further, and scrolls there. */
export function move(n) {
  if (list.length === 0) return;
  const at = list.findIndex((r) => r.id === active);
  const to = Math.min(list.length - 1, Math.max(0, at < 0 ? 0 : at + n));
  active = list[to].id;
  const height = rowHeight();
  const { scroller } = parts;
  const head = height; // the heading covers one row
  if (to * height < scroller.scrollTop) scroller.scrollTop = to * height;
  else if ((to + 1) * height + head > scroller.scrollTop + scroller.clientHeight) {
    scroller.scrollTop = (to + 1) * height + head - scroller.clientHeight;
  }
  focusTable();
  paint();
}

/** choose opens the row's lock. Without an id it is the row that the keyboard is on. */
export function choose(id = active) {
  if (!id) return;
  active = id;
  paint();
  openRow(id);
}

/** mark says which row is open, so that the keyboard goes on from there. */
export function mark(id) {
  if (id) active = id;
}

/** focusTable puts the keyboard back on the table. */
export const focusTable = () => parts?.table.focus({ preventScroll: true });
