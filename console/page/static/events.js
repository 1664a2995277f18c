// What happened: the latest events that the console has seen, with the reason where there is one.

import { byId, fresh, h, keyed, setAttr, setText } from './dom.js';
import { board } from './store.js';
import { idOf, who } from './rows.js';
import { kindTag, partyTags, said } from './tell.js';
import { clock, date, instant } from './time.js';
import { t, tOr } from './words.js';

const serious = new Set(['ended', 'broken', 'lost']);
// A mark of its own for each event, so that its colour is not the only difference.
const glyphs = { held: '●', released: '○', waiting: '…', left: '‹', ended: '◇', broken: '✕', lost: '!' };

let only = 'all';
let parts = null;
let hrefOf = () => '#';

/** buildEvents makes the view; href is the address of a lock. */
export function buildEvents(href) {
  hrefOf = href;
  const view = byId('view-events');
  const chip = (name) => h('button', {
    type: 'button', class: 'chip', 'data-only': name, on: { click: () => choose(name) },
  }, t(`events.${name}`));
  parts = {
    chips: h('div', { class: 'chips', role: 'group', 'aria-label': t('events.show') }, chip('all'), chip('serious')),
    list: h('ol', { class: 'events wide' }),
    none: h('p', { class: 'empty' }),
  };
  fresh(view);
  view.append(h('div', { class: 'filters' }, parts.chips), h('p', { class: 'note' }, t('events.note')), parts.none, parts.list);
  updateEvents();
}

function choose(name) {
  only = name;
  updateEvents();
}

export function updateEvents() {
  if (!parts || byId('view-events').hidden) return;
  for (const chip of parts.chips.children) setAttr(chip, 'aria-pressed', String(chip.dataset.only === only));
  const list = only === 'all' ? board.events : board.events.filter((e) => serious.has(e.event));
  setAttr(parts.none, 'hidden', list.length > 0);
  setText(parts.none, t('events.none'));
  keyed(parts.list, list, (e) => String(e.seq), (e) => eventItem(e, true), fillEvent);
}

/** eventItem makes an entry; named says that it shows which lock it is about. */
export function eventItem(e, named) {
  const at = instant(e.time);
  const word = tOr(`event.${e.event}`, e.event);
  return h('li', { class: 'event', 'data-event': e.event },
    h('time', { class: 'num', datetime: e.time, title: at === null ? null : date(at) }, at === null ? t('untold.short') : clock(at)),
    h('span', { class: 'what', title: tOr(`event.${e.event}.long`, '') },
      h('span', { class: 'glyph', 'aria-hidden': 'true' }, glyphs[e.event] ?? '·'), ' ', word),
    named && h('a', { class: 'name', href: hrefOf(idOf(e.kind, e.name)), title: e.name },
      kindTag(e.kind), ' ', h('span', { class: 'to' }, e.name)),
    h('span', { class: 'who' }, partyTags(who(e))),
    h('span', { class: 'num token', title: t('column.token') }, e.token ? `#${e.token}` : ''),
    h('span', { class: 'why' }, e.why ? said(e.why) : ''));
}

/** fillEvent has nothing to do: what has happened does not change. */
export function fillEvent() {}
