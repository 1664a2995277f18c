// The words of the page, from one catalogue per language. `{name}` stands for a value; `{n|lock|locks}` is one of two words by
// the number n, for languages that need it.

const languages = ['en', 'zh'];
let words = {};
let chosen = 'en';

export const lang = () => chosen;

/** locale is what Intl and the lang attribute want. */
export const locale = () => (chosen === 'zh' ? 'zh-CN' : 'en');

/** t is the text of a key, with its values put in. */
export function t(key, values = {}) {
  const text = words[key];
  if (text === undefined) {
    console.error(`no text for ${key}`); // tests fail on any line of the console
    return key;
  }
  return text.replace(/\{(\w+)(?:\|([^|}]*)\|([^}]*))?\}/g, (whole, name, one, many) => {
    const value = values[name];
    if (one === undefined) return value === undefined ? whole : String(value);
    return Number(value) === 1 ? one : many;
  });
}

/** tOr is the text of a key that is made at run time, or fallback if the catalogue does not have it. */
export const tOr = (key, fallback) => (key in words ? t(key) : fallback);

/** preferred is the language of the address, or of the last choice, or of the browser. */
export function preferred() {
  const asked = new URLSearchParams(location.search).get('lang');
  const all = [asked, remembered('lang'), ...(navigator.languages ?? []), 'en'];
  for (const tag of all) {
    const found = languages.find((l) => tag?.toLowerCase().startsWith(l));
    if (found) return found;
  }
  return 'en';
}

/** speak loads a language and writes it into the shell of the page. */
export async function speak(language) {
  const answer = await fetch(`static/${language}.json`);
  if (!answer.ok) throw new Error(`${language}.json: ${answer.status}`);
  words = await answer.json();
  chosen = language;
  document.documentElement.lang = locale();
  for (const el of document.querySelectorAll('[data-t]')) el.textContent = t(el.dataset.t);
  for (const el of document.querySelectorAll('[data-t-label]')) el.setAttribute('aria-label', t(el.dataset.tLabel));
}

/** remembered and remember keep a choice in this browser, where it allows that. */
export function remembered(name) {
  try {
    return localStorage.getItem(`interlock.${name}`);
  } catch {
    return null;
  }
}

export function remember(name, value) {
  try {
    localStorage.setItem(`interlock.${name}`, value);
  } catch {
    // Then the choice lasts as long as the page.
  }
}
