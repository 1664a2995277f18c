// Breaking a hold: what it means, the name once more, and what came of it. The form stays while locks change around it, and
// stays after the hold is gone, so that the result can be read.

import { announce, h, setAttr, setText } from './dom.js';
import { who } from './rows.js';
import { post } from './stream.js';
import { t } from './words.js';

let place = null;
let target = null; // {id, kind, name, token, holder}
let opener = null; // who gets the focus back
let entry = null; // what was typed, and what came of it; a form that is made again takes it over
let form = null; // the elements that show it

/** breakTarget is what the form is about, or null. */
export const breakTarget = () => target;

/** buildBreak says where the form is. A form that is open is made again, with what was typed and what came of it. */
export function buildBreak(el) {
  place = el;
  if (target) build(target);
}

/** openBreak shows the form for one hold. */
export function openBreak(hold) {
  if (!place || !hold) return;
  opener = document.activeElement;
  target = hold;
  entry = { typed: '', state: '', says: () => '' }; // state: asking, good, bad
  const el = build(hold);
  form.typed.focus();
  el.scrollIntoView({ block: 'nearest' });
}

function build(hold) {
  const mine = entry;
  const { main, minor } = who(hold.holder);
  const holder = [main, minor].filter(Boolean).join(' · ') || t('untold.short');
  const solid = { type: 'submit', class: 'button danger solid', id: 'break-confirm', disabled: true };
  const confirm = h('button', solid, t('break.confirm'));
  const leave = h('button', { type: 'button', class: 'button', on: { click: () => cancel() } }, t('break.cancel'));
  const typed = h('input', {
    type: 'text', id: 'break-typed', autocomplete: 'off', autocapitalize: 'off', spellcheck: 'false',
    'aria-describedby': 'break-meaning',
    on: { input: () => { mine.typed = typed.value; fill(hold); } },
  });
  const result = h('p', { class: 'result', id: 'break-result', role: 'status', tabindex: -1 });
  const el = h('form', { class: 'breaking', 'aria-labelledby': 'break-title' },
    h('h3', { id: 'break-title' }, t('break.title', { who: holder, token: hold.token })),
    h('div', { id: 'break-meaning' },
      h('p', null, t('break.means')),
      h('p', null, t('break.danger'))),
    h('label', { for: 'break-typed' }, t('break.type')), h('p', { class: 'num retype' }, hold.name), typed,
    h('div', { class: 'acts' }, confirm, ' ', leave),
    result);
  el.addEventListener('submit', (e) => {
    e.preventDefault();
    if (mine.typed === hold.name && !settled(mine)) send(hold, mine);
  });
  typed.value = mine.typed;
  form = { typed, confirm, result };
  fill(hold);
  place.replaceChildren(el);
  return el;
}

const settled = ({ state }) => state === 'asking' || state === 'good';

// fill writes what follows from the entry.
function fill(hold) {
  form.confirm.disabled = entry.typed !== hold.name || settled(entry);
  form.typed.disabled = entry.state === 'good';
  setAttr(form.result, 'data-state', entry.state === 'good' || entry.state === 'bad' ? entry.state : null);
  setText(form.result, entry.says());
}

/** closeBreak takes the form away. */
export function closeBreak() {
  target = null;
  place?.replaceChildren();
}

/** cancel closes the form if it is open, puts the focus back, and reports whether it was open. */
export function cancel() {
  if (!target) return false;
  closeBreak();
  if (opener?.isConnected) opener.focus();
  return true;
}

async function send(hold, mine) {
  const say = (state, says) => {
    Object.assign(mine, { state, says });
    if (entry === mine && target) fill(hold);
  };
  say('asking', () => t('break.asking'));
  try {
    await post('api/break', { kind: hold.kind, name: hold.name, token: hold.token, typed: mine.typed });
    say('good', () => t('break.done', { name: hold.name, token: hold.token }));
  } catch (e) {
    say('bad', () => t('break.failed', { error: e.message, hint: e.hint ?? '' }).trim());
  }
  if (entry === mine && target) form.result.focus();
  announce(mine.says());
}
