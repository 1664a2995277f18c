// Small pieces that several views show in the same way.

import { h } from './dom.js';
import { knows } from './store.js';
import { t, tOr } from './words.js';

/** kindWord is the word for a kind of lock; one that the page does not know is shown as the console names it. */
export const kindWord = (kind) => tOr(`kind.${kind}`, kind);

export const kindTag = (kind) => h('span', { class: 'kind' }, kindWord(kind));

/** said is what the console or an engine says of itself, in the reader's language if it is one of the sentences that are known. */
export const said = (sentence) => tOr(`said.${sentence}`, sentence);

/** because is why something is not known, in the engine's words. */
export const because = (what) => said(knows(what).why || t('untold.noreason'));

/** untold says that the engine does not tell something, and why. */
export const untold = (what) => t('untold.why', { why: because(what) });

const marks = ['cooldown', 'retained', 'shared'];

/** markTags are the words for what is special about a hold. Permits are always shared, so only readers are said to be. */
export function markTags(hold, kind) {
  if (!hold) return [];
  const has = marks.filter((m) => hold[m] && (m !== 'shared' || kind === 'rw'));
  return has.map((m) => h('span', { class: `mark-${m}`, title: t(`state.${m}.long`) }, t(`state.${m}`)));
}

/** partyTags are who somebody is: owner and label, and then the client. */
export function partyTags({ main, minor }) {
  const first = h('span', { class: 'main' }, main || t('untold.short'));
  return minor ? [first, ' ', h('span', { class: 'minor' }, minor)] : [first];
}
