// Puts the page together: the address says which view and which lock, messages and each second bring what has changed.

import { byId, setAttr, setText } from './dom.js';
import { detailOf, rebuildDetail, showDetail, updateDetail } from './detail.js';
import { buildEngine, updateEngine } from './engine.js';
import { buildEvents, updateEvents } from './events.js';
import { updateFilters } from './filters.js';
import { buildHeader, updateHeader } from './header.js';
import { buildHelp, listen } from './keys.js';
import { buildKinds, updateKinds } from './kinds.js';
import { onChange } from './store.js';
import { start } from './stream.js';
import { build as buildTable, mark, update as updateTable } from './table.js';
import { lang, preferred, remember, remembered, speak, t } from './words.js';
import { buildWaits, updateWaits } from './waits.js';

const views = ['locks', 'waits', 'kinds', 'events', 'engine'];
const themes = ['auto', 'light', 'dark'];
let view = 'locks';
let due = false;

/** address is where a view, or a lock beside it, is found. */
const address = (v, id) => `#/${v}${id ? `/${id}` : ''}`;

/** href is the address of a lock beside the view that is shown. */
const href = (id) => address(view, id);

const go = (v, id = detailOf()) => { location.hash = address(v, id); };

function route() {
  const [, v, id] = /^#\/(\w+)(?:\/(.+))?$/.exec(location.hash) ?? [];
  const before = view;
  view = views.includes(v) ? v : 'locks';
  for (const name of views) setAttr(byId(`view-${name}`), 'hidden', name !== view);
  if (before !== view) buildLinks();
  for (const a of document.querySelectorAll('.tabs a')) {
    setAttr(a, 'aria-current', a.dataset.view === view ? 'page' : null);
    a.setAttribute('href', address(a.dataset.view, id));
  }
  mark(id);
  showDetail(id ?? null, () => go(view, null));
  updateAll();
}

// Links to locks name the view that they stand in.
function buildLinks() {
  if (view === 'waits') buildWaits(href);
  if (view === 'kinds') buildKinds(href);
  if (view === 'events') buildEvents(href);
}

function updateAll() {
  updateHeader();
  updateFilters();
  updateTable();
  updateWaits();
  updateKinds();
  updateEvents();
  updateEngine();
  updateDetail();
}

// soon writes at most once for each picture that the screen shows. A tab that shows none is brought up to date when it does.
function soon() {
  if (due) return;
  due = true;
  requestAnimationFrame(() => {
    due = false;
    updateAll();
  });
}

function buildAll() {
  buildHeader();
  buildTable((id) => go('locks', id));
  buildWaits(href);
  buildKinds(href);
  buildEvents(href);
  buildEngine();
  buildHelp();
  rebuildDetail();
  const other = lang() === 'zh' ? 'en' : 'zh';
  setText(byId('lang'), other === 'zh' ? '中文' : 'English');
  setAttr(byId('lang'), 'lang', other === 'zh' ? 'zh-CN' : 'en');
  setAttr(byId('lang'), 'aria-label', t('lang.switch'));
  showTheme();
}

async function switchLanguage() {
  const other = lang() === 'zh' ? 'en' : 'zh';
  try {
    await speak(other);
  } catch {
    return; // the console is away; the banner says so
  }
  remember('lang', other);
  if (new URLSearchParams(location.search).has('lang')) history.replaceState(null, '', location.pathname + location.hash);
  buildAll();
  updateAll();
}

const theme = () => document.documentElement.dataset.theme;

function showTheme() {
  setText(byId('theme-text'), t(`theme.${theme()}`));
  setAttr(byId('theme'), 'aria-label', t('theme.label', { theme: t(`theme.${theme()}`) }));
}

function switchTheme() {
  const next = themes[(themes.indexOf(theme()) + 1) % themes.length];
  document.documentElement.dataset.theme = next;
  remember('theme', next);
  showTheme();
}

await speak(preferred());
if (!themes.includes(remembered('theme') ?? 'auto')) remember('theme', 'auto');
buildAll();
byId('lang').addEventListener('click', switchLanguage);
byId('theme').addEventListener('click', switchTheme);
byId('skip').addEventListener('click', (e) => {
  e.preventDefault(); // the address says which view is shown
  byId('main').focus();
});
listen({ go, view: () => view, hasDetail: () => detailOf() !== null, closeDetail: () => go(view, null) });
window.addEventListener('hashchange', route);
onChange(soon);
route();
start(soon);
setInterval(soon, 1000);
