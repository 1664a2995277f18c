// The engine: what it can tell and what it cannot, what its doctor finds, and who broke what.

import { byId, fresh, h } from './dom.js';
import { board, knows } from './store.js';
import { get } from './stream.js';
import { because, kindWord } from './tell.js';
import { clock, date, instant } from './time.js';
import { t, tOr } from './words.js';

const abilities = ['list', 'waiters', 'since', 'until', 'token', 'latch', 'break'];

let parts = null;
let shown = '';

/** buildEngine makes the view. */
export function buildEngine() {
  const view = byId('view-engine');
  parts = {
    facts: h('dl', { class: 'facts wide' }),
    matrix: h('tbody'),
    doctor: h('div', { id: 'doctor', 'aria-live': 'polite' }),
    audit: h('div', { id: 'audit', 'aria-live': 'polite' }),
    examine: h('button', { type: 'button', class: 'button', id: 'examine', on: { click: examine } }, t('engine.examine')),
    auditButton: h('button', { type: 'button', class: 'button', id: 'audit-show', on: { click: showAudit } }, t('engine.audit.show')),
  };
  fresh(view);
  view.append(h('div', { class: 'page' },
    parts.facts,
    h('h2', null, t('engine.knows')),
    h('table', { class: 'matrix' },
      h('thead', null, h('tr', null, ['what', 'told', 'why'].map((c) => h('th', { scope: 'col' }, t(`engine.${c}`))))), parts.matrix),
    h('h2', null, t('engine.doctor')), h('p', { class: 'quiet' }, t('engine.doctor.note')), parts.examine, parts.doctor,
    h('h2', null, t('engine.audit')), h('p', { class: 'quiet' }, t('engine.audit.note')), parts.auditButton, parts.audit));
  shown = '';
  updateEngine();
}

export function updateEngine() {
  if (!parts || byId('view-engine').hidden) return;
  const state = JSON.stringify([board.knows, board.engine, board.url, board.lifetime, board.intervalMs, board.prefix, board.ready]);
  if (state === shown || !board.ready) return;
  shown = state;
  const facts = [
    ['engine', board.engine], ['url', board.url], ['lifetime', tOr(`lifetime.${board.lifetime}.long`, board.lifetime)],
    ['interval', t('engine.every', { s: Math.max(1, Math.round(board.intervalMs / 1000)) })], board.prefix && ['prefix', board.prefix],
  ].filter(Boolean);
  parts.facts.replaceChildren(...facts.map(([name, text]) => h('div', null, h('dt', null, t(`engine.${name}`)), h('dd', null, text))));
  parts.matrix.replaceChildren(...abilities.map((a) => {
    const { ok } = knows(a);
    return h('tr', { 'data-ok': String(ok) }, h('th', { scope: 'row' }, t(`ability.${a}`)),
      h('td', null, h('span', { class: 'yesno' },
        h('span', { 'aria-hidden': 'true' }, ok ? '✓ ' : '– '), t(ok ? 'engine.yes' : 'engine.no'))),
      h('td', { class: 'why' }, ok ? '' : because(a)));
  }));
}

async function examine() {
  parts.examine.disabled = true;
  parts.doctor.replaceChildren(h('p', { class: 'quiet' }, t('engine.examining')));
  try {
    const { findings } = await get('api/doctor');
    parts.doctor.replaceChildren(h('ul', { class: 'findings' }, (findings ?? []).map(finding)));
  } catch (e) {
    parts.doctor.replaceChildren(failure(e));
  }
  parts.examine.disabled = false;
}

const failure = (e) => h('p', { class: 'result', 'data-state': 'bad' }, t('failed', { error: e.message, hint: e.hint ?? '' }));

const finding = (f) => h('li', { 'data-level': f.level },
  h('span', { class: 'tag' }, tOr(`level.${f.level}`, f.level)), ' ', h('strong', null, f.check), ' ', h('span', null, f.detail),
  f.advice && h('p', { class: 'quiet' }, t('engine.advice', { advice: f.advice })),
  f.page && f.level !== 'ok' && h('p', { class: 'quiet' }, t('engine.page', { page: f.page })));

async function showAudit() {
  try {
    const { entries } = await get('api/audit');
    const list = entries ?? [];
    parts.audit.replaceChildren(list.length === 0 ? h('p', { class: 'quiet' }, t('engine.audit.none')) : auditTable(list));
  } catch (e) {
    parts.audit.replaceChildren(failure(e));
  }
}

function auditTable(list) {
  const heads = ['time', 'who', 'lock', 'token', 'result'].map((c) => h('th', { scope: 'col' }, t(`audit.${c}`)));
  return h('table', { class: 'matrix' }, h('thead', null, h('tr', null, heads)), h('tbody', null, list.map(auditRow)));
}

function auditRow(e) {
  const at = instant(e.time);
  return h('tr', null,
    h('td', { class: 'num', title: at === null ? null : date(at) }, at === null ? '' : clock(at)),
    h('td', null, e.who ?? ''),
    h('td', null, `${kindWord(e.kind)} ${e.name}`),
    h('td', { class: 'num' }, e.token ?? ''),
    h('td', null, tOr(`result.${e.result}`, e.result ?? ''), e.error && h('p', { class: 'quiet' }, e.error)));
}
