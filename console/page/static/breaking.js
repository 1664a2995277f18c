// Breaking a hold: what it means, the name once more, and what came of it. The form stays while locks change around it, and
// stays after the hold is gone, so that the result can be read.

import { announce, h, setText } from './dom.js';
import { who } from './rows.js';
import { post } from './stream.js';
import { t } from './words.js';

let place = null;
let target = null; // {id, kind, name, token, holder}
let opener = null; // who gets the focus back

/** breakTarget is what the form is about, or null. */
export const breakTarget = () => target;

/** buildBreak says where the form is. A form that is open is made again, with what was typed. */
export function buildBreak(el) {
  place = el;
  if (target) openBreak(target);
}

/** openBreak shows the form for one hold. */
export function openBreak(hold) {
  if (!place || !hold) return;
  opener = document.activeElement;
  target = hold;
  const { main, minor } = who(hold.holder);
  const holder = [main, minor].filter(Boolean).join(' · ') || t('untold.short');
  const solid = { type: 'submit', class: 'button danger solid', id: 'break-confirm', disabled: true };
  const confirm = h('button', solid, t('break.confirm'));
  const leave = h('button', { type: 'button', class: 'button', on: { click: () => cancel() } }, t('break.cancel'));
  const typed = h('input', {
    type: 'text', id: 'break-typed', autocomplete: 'off', autocapitalize: 'off', spellcheck: 'false',
    'aria-describedby': 'break-meaning',
    on: { input: (e) => { confirm.disabled = e.target.value !== hold.name; } },
  });
  const result = h('p', { class: 'result', id: 'break-result', role: 'status', tabindex: -1 });
  const form = h('form', { class: 'breaking', 'aria-labelledby': 'break-title' },
    h('h3', { id: 'break-title' }, t('break.title', { who: holder, token: hold.token })),
    h('div', { id: 'break-meaning' },
      h('p', null, t('break.means')),
      h('p', null, t('break.danger'))),
    h('label', { for: 'break-typed' }, t('break.type')), h('p', { class: 'num retype' }, hold.name), typed,
    h('div', { class: 'acts' }, confirm, ' ', leave),
    result);
  form.addEventListener('submit', (e) => {
    e.preventDefault();
    if (typed.value === hold.name) send(hold, typed, confirm, result);
  });
  place.replaceChildren(form);
  typed.focus();
  form.scrollIntoView({ block: 'nearest' });
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

async function send(hold, typed, confirm, result) {
  confirm.disabled = true;
  setText(result, t('break.asking'));
  try {
    await post('api/break', { kind: hold.kind, name: hold.name, token: hold.token, typed: typed.value });
    result.dataset.state = 'good';
    setText(result, t('break.done', { name: hold.name, token: hold.token }));
    typed.disabled = true;
  } catch (e) {
    result.dataset.state = 'bad';
    setText(result, t('break.failed', { error: e.message, hint: e.hint ?? '' }).trim());
    confirm.disabled = false;
  }
  result.focus();
  announce(result.textContent);
}
