// The keyboard. Keys act where nobody types, and each is listed in the help.

import { byId, h } from './dom.js';
import { cancel } from './breaking.js';
import { clearSearch } from './filters.js';
import { choose, focusTable, move } from './table.js';
import { t } from './words.js';

const list = [['/', 'search'], ['j k ↓ ↑', 'move'], ['Enter', 'open'], ['b', 'break'], ['Esc', 'close'], ['1–5', 'view'], ['?', 'help']];
const views = ['locks', 'waits', 'kinds', 'events', 'engine'];

/** listen handles keys; app has go(view), view(), closeDetail() and hasDetail(). */
export function listen(app) {
  byId('help').addEventListener('click', toggleHelp);
  document.addEventListener('keydown', (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey || e.isComposing) return;
    if (byId('keys').open) {
      if (e.key === '?') toggleHelp();
      return; // the dialog closes by Escape itself
    }
    if (e.key === 'Escape') return escape(e, app);
    if (typing(e.target)) {
      if (e.target.id === 'search' && (e.key === 'ArrowDown' || e.key === 'Enter')) {
        e.preventDefault();
        move(0);
      }
      return;
    }
    if (act(e.key, e.target, app)) e.preventDefault();
  });
}

const typing = (el) => el.matches?.('input, textarea, select');

/** act does what a key means, and reports whether it means anything here. */
function act(key, target, app) {
  const view = views[Number(key) - 1];
  if (view) return app.go(view), true;
  const inTable = app.view() === 'locks' && !target.closest?.('#detail');
  switch (key) {
    case '?': return toggleHelp(), true;
    case '/': return app.go('locks'), byId('search').focus(), byId('search').select(), true;
    case 'j': return app.view() === 'locks' && (move(1), true);
    case 'k': return app.view() === 'locks' && (move(-1), true);
    case 'ArrowDown': return inTable && onTable(target) && (move(1), true);
    case 'ArrowUp': return inTable && onTable(target) && (move(-1), true);
    case 'Enter': return inTable && onTable(target) && (choose(), byId('detail').focus(), true);
    case 'b': return app.hasDetail() && firstBreak();
    default: return false;
  }
}

const onTable = (target) => target === document.body || target.id === 'grid';

function firstBreak() {
  const button = byId('detail').querySelector('[data-break]:not([hidden])');
  button?.focus();
  return Boolean(button);
}

// escape leaves what is innermost: a break, a search, the pane.
function escape(e, app) {
  if (cancel()) return e.preventDefault();
  if (e.target.id === 'search') {
    if (!clearSearch()) focusTable();
    return e.preventDefault();
  }
  if (app.hasDetail()) {
    app.closeDetail();
    focusTable();
    e.preventDefault();
  }
}

/** buildHelp writes the dialog. */
export function buildHelp() {
  byId('keys').replaceChildren(
    h('h2', { id: 'keys-title' }, t('help.title')),
    h('dl', null, list.map(([key, what]) => h('div', null,
      h('dt', null, key.split(' ').map((k) => h('kbd', null, k))), h('dd', null, t(`help.key.${what}`))))),
    h('p', { class: 'quiet' }, t('help.note')),
    h('p', null, h('button', { type: 'button', class: 'button', autofocus: true, on: { click: toggleHelp } }, t('help.close'))));
}

function toggleHelp() {
  const dialog = byId('keys');
  if (dialog.open) dialog.close();
  else dialog.showModal();
}
