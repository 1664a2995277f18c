// The top of the page: what engine, how old the look is, what is wrong, and the counts.

import { announce, byId, fresh, h, keyed, setAttr, setText } from './dom.js';
import { board, knows, rows } from './store.js';
import { link } from './stream.js';
import { clock, count, instant, now, span } from './time.js';
import { t } from './words.js';

const tiles = ['held', 'waiting', 'oldest', 'retained', 'cooldown', 'unreadable'];
const freshFor = 2000; // a look is as good as live until it is this much older than it should be
let told = ''; // the trouble that the banner shows

/** buildHeader forgets what was written in another language. */
export function buildHeader() {
  fresh(byId('counts'));
  told = '';
}

/** updateHeader is called after each message, and each second. */
export function updateHeader() {
  const engine = byId('engine');
  setText(engine, board.url || board.engine);
  setAttr(engine, 'title', board.prefix ? t('header.prefix', { prefix: board.prefix }) : null);
  keyed(byId('counts'), tiles, (n) => n, makeTile, fillTile);
  setText(byId('n-locks'), board.ready ? count(rows.size) : '');
  const cycles = board.cycles.length;
  setText(byId('n-waits'), cycles > 0 ? t('nav.cycles', { n: cycles }) : '');
  byId('n-waits').classList.toggle('alarm', cycles > 0);
  document.title = (cycles > 0 ? `(${cycles}) ` : '') + t('title', { engine: board.engine || '…' });
  updateLook();
}

function makeTile(name) {
  return h('div', { class: `tile t-${name}`, title: t(`counts.${name}.long`) }, h('dt', null, t(`counts.${name}`)), h('dd'));
}

function fillTile(el, name) {
  const { text, state } = tile(name);
  setText(el.lastChild, text);
  setAttr(el, 'data-state', state);
}

function tile(name) {
  if (!board.ready) return { text: '…', state: 'none' };
  if ((name === 'waiting' || name === 'oldest') && !knows('waiters').ok) return { text: t('untold.short'), state: 'untold' };
  if (name === 'oldest') {
    const ms = board.counts.oldestWaiterMs;
    if (!ms) return { text: board.counts.waiting > 0 ? t('untold.short') : '–', state: 'none' };
    return { text: span(ms + age()), state: 'some' };
  }
  const n = board.counts[name] ?? 0;
  return { text: count(n), state: n > 0 ? 'some' : 'none' };
}

/** age is how old the look is, in milliseconds. */
const age = () => Math.max(0, now() - (instant(board.taken) ?? now()));

// pause is how far apart looks are: the console looks less often at an engine that is slow.
const pause = () => Math.max(board.intervalMs, 4 * board.tookMs);

function updateLook() {
  const { state, title, text } = trouble();
  const look = byId('look');
  setAttr(look, 'data-state', state);
  setText(byId('look-text'), lookText(state));
  setAttr(look, 'title', board.ready ? t('look.took', { ms: board.tookMs, at: clock(instant(board.taken) ?? now()) }) : null);
  setAttr(byId('banner'), 'hidden', title === '');
  setAttr(byId('banner'), 'data-state', state);
  if (title !== '') {
    setText(byId('banner-title'), title);
    setText(byId('banner-text'), text);
  }
  if (told !== '' && title === '') announce(t('look.again'));
  told = title;
  document.body.classList.toggle('stale', state === 'lost' || state === 'stale');
}

function lookText(state) {
  if (!board.ready) return t('look.opening');
  if (state === 'good') return t('look.live', { s: Math.max(1, Math.round(pause() / 1000)) });
  return t('look.age', { age: span(age()) });
}

/** trouble says what stands between the reader and the truth: the console first, then the engine. */
function trouble() {
  if (link.state === 'lost') return { state: 'lost', title: t('banner.lost'), text: t('banner.lost.long') };
  if (board.error) {
    const last = instant(board.taken);
    const { error } = board;
    const text = last === null ? t('banner.never', { error }) : t('banner.stale.long', { at: clock(last), error });
    return { state: 'stale', title: t('banner.stale'), text };
  }
  if (!board.ready || link.state !== 'open') return { state: 'opening', title: '', text: '' };
  if (board.stale || age() > pause() + freshFor) return { state: 'old', title: '', text: '' };
  return { state: 'good', title: '', text: '' };
}
