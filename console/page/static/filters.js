// What the table shows: a search, kinds, and three questions that operators ask.

import { byId, h, setAttr, setText } from './dom.js';
import { board, knows } from './store.js';
import { count } from './time.js';
import { kindWord, untold } from './tell.js';
import { t } from './words.js';

/** filters are what a row must have. An empty set of kinds is all of them. */
export const filters = {
  kinds: new Set(), waiting: false, late: false, retained: false,
  key: () => [...filters.kinds].join(',') + filters.waiting + filters.late + filters.retained,
};

const questions = ['waiting', 'late', 'retained'];
const order = ['mutex', 'rw', 'sem', 'election'];
let query = '';
let chips = null;
let changed = () => {};

/** searched are the words of the search, in lower case. */
export const searched = () => query.toLowerCase().split(/\s+/).filter(Boolean);

/** filterBar makes the bar; refilter is called when the reader has changed it. */
export function filterBar(refilter) {
  changed = refilter;
  const search = h('input', {
    type: 'search', id: 'search', placeholder: t('filter.search'), 'aria-label': t('filter.search'), 'aria-keyshortcuts': '/',
    autocomplete: 'off', spellcheck: 'false', on: { input: (e) => write(e.target.value) },
  });
  search.value = query;
  chips = {
    kinds: h('div', { class: 'chips', role: 'group', 'aria-label': t('filter.kinds') }),
    questions: h('div', { class: 'chips', role: 'group', 'aria-label': t('filter.questions') }, questions.map(question)),
  };
  return h('div', { class: 'filters', role: 'search' }, search, chips.kinds, chips.questions);
}

function write(text) {
  query = text;
  changed();
}

/** clearSearch empties the search, and reports whether there was one. */
export function clearSearch() {
  if (query === '') return false;
  byId('search').value = '';
  write('');
  return true;
}

function question(name) {
  return h('button', {
    type: 'button', class: 'chip', id: `only-${name}`, 'aria-pressed': String(filters[name]), title: t(`filter.${name}.long`),
    on: {
      click: (e) => {
        filters[name] = !filters[name];
        setAttr(e.currentTarget, 'aria-pressed', String(filters[name]));
        changed();
      },
    },
  }, t(`filter.${name}`));
}

/** updateFilters shows the kinds that there are, each with its number, and does away with questions that cannot be answered. */
export function updateFilters() {
  if (!chips) return;
  const byKind = board.counts.byKind ?? {};
  const kinds = [...new Set([...order, ...Object.keys(byKind)])].filter((k) => byKind[k] > 0 || filters.kinds.has(k));
  const had = [...chips.kinds.children].map((c) => c.dataset.kind);
  if (had.join() !== kinds.join()) chips.kinds.replaceChildren(...kinds.map(kindChip));
  for (const chip of chips.kinds.children) setText(chip.lastChild, count(byKind[chip.dataset.kind] ?? 0));
  cannot('only-waiting', 'waiters');
  cannot('only-late', 'until');
}

function cannot(id, what) {
  byId(id).disabled = !knows(what).ok;
  if (!knows(what).ok) setAttr(byId(id), 'title', untold(what));
}

function kindChip(kind) {
  return h('button', {
    type: 'button', class: 'chip', 'data-kind': kind, 'aria-pressed': String(filters.kinds.has(kind)),
    on: {
      click: (e) => {
        if (!filters.kinds.delete(kind)) filters.kinds.add(kind);
        setAttr(e.currentTarget, 'aria-pressed', String(filters.kinds.has(kind)));
        changed();
      },
    },
  }, kindWord(kind), ' ', h('span', { class: 'n' }));
}
