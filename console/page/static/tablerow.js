// One row of the table: its elements, and what is written into them.

import { h, setAttr, setText } from './dom.js';
import { board, knows } from './store.js';
import { late, usual, who } from './rows.js';
import { kindWord, markTags, untold } from './tell.js';
import { count, date, now, span } from './time.js';
import { t } from './words.js';

/** makeRow makes the elements of a row. */
export function makeRow(columns) {
  const cells = Object.fromEntries(columns.map((c) => [c, h('td', { class: `c-${c}`, role: 'gridcell' })]));
  const parts = {
    kind: h('span', { class: 'kind' }),
    name: h('span', { class: 'name' }),
    holder: h('span', { class: 'main' }),
    client: h('span', { class: 'minor' }),
    marks: h('span', { class: 'marks' }),
    lease: leaseParts(),
  };
  cells.kind.append(parts.kind);
  cells.name.append(parts.name);
  cells.holder.append(parts.marks, parts.holder, parts.client);
  cells.lease.append(parts.lease.el);
  return { el: h('tr', null, Object.values(cells)), cells, parts, row: null, at: -1, lang: '' };
}

/** leaseParts makes a bar with its text. The text says all that the bar shows. */
export function leaseParts() {
  const bar = h('span', { class: 'fill' });
  const text = h('span', { class: 'left' });
  return { el: h('span', { class: 'lease' }, h('span', { class: 'bar', 'aria-hidden': 'true' }, bar), text), bar, text };
}

/** fill writes a row into its elements: what stands still once, what goes with time each time. */
export function fill(tr, row, at, { active, lang }) {
  setAttr(tr.el, 'aria-rowindex', at + 2);
  setAttr(tr.el, 'aria-selected', row.id === active ? 'true' : 'false');
  if (tr.row !== row || tr.lang !== lang) {
    Object.assign(tr, { row, lang });
    tr.el.id = `row-${row.id}`;
    tr.el.dataset.id = row.id;
    still(tr, row);
  }
  fillTime(tr, row);
}

function still({ cells, parts }, row) {
  setText(parts.kind, kindWord(row.kind));
  setText(parts.name, row.name);
  setAttr(cells.name, 'title', row.name);
  fillHolder(cells, parts, row);
  const token = row.first?.token ?? '';
  const tells = knows('token').ok;
  setText(cells.token, row.first ? (tells ? token || '–' : t('untold.short')) : '–');
  unknown(cells.token, row.first && !tells, 'token');
  const waiters = row.waits === null ? t('untold.short') : row.waiting === 0 ? '–' : count(row.waiting);
  setText(cells.waiters, waiters);
  unknown(cells.waiters, row.waits === null, 'waiters');
  cells.waiters.classList.toggle('some', row.waiting > 0);
}

function fillHolder(cells, parts, row) {
  const unreadable = row.unreadable && t('row.unreadable', { why: row.unreadable });
  const { main, minor } = unreadable ? { main: unreadable, minor: '' } : who(row.first);
  const more = row.holds.length > 1 ? ` +${count(row.holds.length - 1)}` : '';
  setText(parts.holder, row.first?.retained && !main ? row.first.client : main || (row.unreadable ? '' : t('row.free')));
  setText(parts.client, minor + more);
  setAttr(cells.holder, 'title', [parts.holder.textContent, minor].filter(Boolean).join('\n'));
  parts.holder.classList.toggle('quiet', !main || Boolean(row.unreadable));
  parts.marks.replaceChildren(...markTags(row.first, row.kind));
}

function unknown(cell, is, what) {
  cell.classList.toggle('untold', Boolean(is));
  setAttr(cell, 'title', is ? untold(what) : null);
}

function fillTime({ cells, parts }, row) {
  const at = now();
  const held = row.since !== null;
  setText(cells.held, held ? span(at - row.since) : row.first && !row.first.cooldown ? t('untold.short') : '–');
  cells.held.classList.toggle('untold', !held && Boolean(row.first) && !row.first.cooldown);
  setAttr(cells.held, 'title', held ? date(row.since) : row.first && !row.first.cooldown ? untold('since') : null);
  fillLease(parts.lease, row.next ?? row.first, at);
}

/** fillLease writes how much of a hold's lease is left, or why nobody can say. */
export function fillLease({ el, bar, text }, hold, at) {
  const known = hold && hold.until !== null;
  setAttr(el, 'data-state', known ? stateOf(hold, at) : 'none');
  bar.parentNode.hidden = !known;
  if (!hold) {
    setText(text, '–');
    setAttr(el, 'title', null);
    return;
  }
  if (!known) {
    setText(text, endless());
    setAttr(el, 'title', board.lifetime === 'lease' ? untold('until') : t(`lifetime.${board.lifetime}.long`));
    return;
  }
  const left = hold.until - at;
  bar.style.transform = `scaleX(${Math.min(1, Math.max(0, left / (fullOf(hold) || 1))).toFixed(3)})`;
  setText(text, left <= 0 ? t('lease.over') : late(hold, at) ? t('lease.late', { left: span(left) }) : span(left));
  setAttr(el, 'title', t(`lease.${stateOf(hold, at)}.long`));
}

const fullOf = (hold) => (hold.exact || hold.cooldown ? hold.full : Math.max(hold.full, usual));

function stateOf(hold, at) {
  if (hold.cooldown) return 'cooldown';
  if (hold.until <= at) return 'over';
  return late(hold, at) ? 'late' : 'good';
}

// A hold whose engine has sessions, or that is its process's, has no end of its own.
function endless() {
  if (board.lifetime === 'session' || board.lifetime === 'process') return t(`lifetime.${board.lifetime}`);
  return t('untold.short');
}
