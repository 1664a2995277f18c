'use strict';
// The player of the lab's page. The page is complete without it: every act has its picture, its code and its steps. The
// player shows one pair of acts at a time, an exhibit and the sound lock in the same events, and of both only what has
// happened so far: a curtain hides the rest of the picture, and later steps are invisible.

const run = JSON.parse(document.getElementById('run').textContent);
const byId = (id) => document.getElementById(id);

// Where the player is. A row is a move of both sides; row 0 is before the first step.
const at = { story: 0, pair: 0, row: 0, playing: false, timer: 0 };

// The reader's answers by question: a name, '' for nobody, or null for one that was passed over.
const guesses = new Map();

const column = 26; // of one step in a picture, as picture.go has it
const begin = 104; // where time begins in a picture

// ---- words: all texts are in the page in both languages, and the style sheet shows one

const chinese = () => byId('zh').checked;
const word = (en, zh) => (chinese() ? zh : en);

/** make returns an element with attributes and content. */
function make(tag, attributes, ...content) {
  const el = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) el.setAttribute(name, value);
  el.append(...content.flat());
  return el;
}

/** both returns a text in both languages, as the rest of the page has it. */
const both = (en, zh) => (en === zh ? [en] : [make('span', { lang: 'en' }, en), make('span', { lang: 'zh-CN' }, zh)]);

const states = [
  ['holds', 'believing to hold it', '自认为持有'], ['still', 'stopped while holding it', '持有时停住'], ['halted', 'stopped', '停住'],
  ['waits', 'waiting', '排队'], ['woken', 'woken for nothing', '白白唤醒'], ['dead', 'dead', '已崩溃'],
];

/** standing tells in two languages how things stand after a step: what each client believes and each server says. */
function standing(act, step) {
  const en = [], zh = [];
  for (const [state, inEnglish, inChinese] of states) {
    const who = (act.cast ?? []).filter((name) => step.states?.[name] === state);
    if (who.length === 0) continue;
    en.push(`${inEnglish}: ${who.join(', ')}`);
    zh.push(`${inChinese}：${who.join('、')}`);
  }
  (act.keys ?? []).forEach((server, i) => {
    const [left, leftZh] = lease(step.left_ms?.[i] ?? 0);
    en.push(`${server}: ${step.held?.[i] || 'free'}${left}`);
    zh.push(`${story().servers[server] ?? server}：${step.held?.[i] || '空闲'}${leftZh}`);
  });
  return [en.join(' · '), zh.join(' · ')];
}

/** lease tells how much of a lease is left. */
function lease(ms) {
  if (ms < 0) return [', without an end', '，没有期限'];
  if (ms === 0) return ['', ''];
  const s = (ms / 1000).toFixed(1);
  return [` (${s} s left)`, `（还剩 ${s} 秒）`];
}

// ---- where things are

const story = () => run[at.story];
const pair = () => story().pairs[at.pair];
const rows = () => pair().rows;

/** panes are the acts on display, with the step of each that was shown last, or -1. */
function panes() {
  const row = at.row > 0 ? rows()[at.row - 1] : [-1, -1];
  return [[pair().exhibit, row[0]], [pair().sound, row[1]]].filter(([act]) => act >= 0).map(([act, step]) => ({
    number: act, step, act: story().acts[act], el: byId(`${story().id}-${act + 1}`), questions: story().questions[act] ?? [],
  }));
}

const keyOf = (pane, question) => `${story().id}.${pane.number}:${question.after}`;

/** open returns the panes with a question that waits for an answer. */
function open() {
  if (!byId('asks').checked) return [];
  return panes().flatMap((pane) => pane.questions
    .filter((q) => q.after === pane.step && !guesses.has(keyOf(pane, q))).map((q) => ({ pane, q })));
}

// ---- moves

/** go shows a row. */
function go(row) {
  at.row = Math.min(Math.max(row, 0), rows().length);
  show();
}

/** forward goes on by a row. A question that was not answered is passed over, so that no key ever seems dead. */
function forward() {
  for (const { pane, q } of open()) guesses.set(keyOf(pane, q), null);
  go(at.row + 1);
}

/** play starts or stops; at the end it starts from the beginning. */
function play(on) {
  at.playing = on;
  if (on && at.row >= rows().length) at.row = 0;
  show();
}

/** schedule has the next row shown after a while. A question stops the time until it is answered. */
function schedule() {
  clearTimeout(at.timer);
  if (at.playing && at.row >= rows().length) at.playing = false;
  if (at.playing && open().length === 0) at.timer = setTimeout(forward, Number(byId('pace').value));
}

/** answer takes a guess for the first question that is open. */
function answer(who) {
  const [first] = open();
  if (!first || (who !== '' && !first.q.options.includes(who))) return;
  guesses.set(keyOf(first.pane, first.q), who);
  show();
}

/** scene shows another pair of acts, counted over all stories. */
function scene(storyIndex, pairIndex) {
  at.story = storyIndex;
  at.pair = pairIndex;
  at.row = 0;
  at.playing = false;
  history.replaceState(null, '', `#${story().id}.${pairIndex + 1}`);
  document.querySelectorAll('.story').forEach((el) => el.classList.toggle('on', el.id === story().id));
  const shown = panes().map((p) => p.el);
  document.querySelectorAll('.act').forEach((el) => el.classList.toggle('on', shown.includes(el)));
  document.querySelectorAll('nav a').forEach((a) => {
    if (a.hash === `#${story().id}`) a.setAttribute('aria-current', 'true');
    else a.removeAttribute('aria-current');
  });
  showScenes();
  show();
}

/** neighbour is the scene before or after this one, or undefined. */
function neighbour(by) {
  const all = run.flatMap((s, i) => s.pairs.map((_, j) => [i, j]));
  return all[all.findIndex(([i, j]) => i === at.story && j === at.pair) + by];
}

/** fromAddress shows what the address names: a story, or one of its scenes as in #D3.2. */
function fromAddress() {
  const [, id, n] = /^#([^.]*)\.?(\d*)$/.exec(location.hash) ?? [];
  const i = Math.max(run.findIndex((s) => s.id === id), 0);
  scene(i, Math.min(Math.max((Number(n) || 1) - 1, 0), run[i].pairs.length - 1));
}

// ---- showing

/** show brings everything in line with where the player is. */
function show() {
  panes().forEach(showPane);
  const last = rows().length;
  const scrub = byId('scrub');
  scrub.max = last;
  scrub.value = at.row;
  scrub.setAttribute('aria-valuetext', word(`${at.row} of ${last}`, `第 ${at.row} 步，共 ${last} 步`));
  byId('count').textContent = `${at.row} / ${last}`;
  byId('back').disabled = at.row === 0;
  byId('step').disabled = at.row === last;
  schedule();
  byId('controls').dataset.playing = at.playing;
  byId('live').textContent = spoken();
}

/** spoken is what a screen reader is told: what is new on each side, how things stand, and a question. */
function spoken() {
  const all = panes().filter((p) => p.step >= 0).map((p) => {
    const s = p.act.steps[p.step];
    const text = word(s.text.en, s.text.zh);
    return `${story().id}.${p.number + 1}: ${s.who ? `${s.who}: ` : ''}${text}. ${word(...standing(p.act, s))}.`;
  });
  const [first] = open();
  if (first) all.push(word('Who gets in next?', '下一个进来的是谁？') + choices(first.q).map(([n, en, zh]) => ` ${n}: ${word(en, zh)}`).join(','));
  return all.join(' ');
}

function showPane(pane) {
  showPicture(pane);
  showSteps(pane);
  showCode(pane);
  showQuestion(pane);
  showGuess(pane);
  const now = pane.step >= 0 ? both(...standing(pane.act, pane.act.steps[pane.step])) : [];
  pane.el.querySelector('.now').replaceChildren(...now);
}

/** showPicture moves the curtain behind the step that was shown last, and the hand to its instant. */
function showPicture({ el, step }) {
  const heads = [...el.querySelectorAll('.step')];
  heads.forEach((head, i) => head.classList.toggle('current', i === step));
  const over = step === heads.length - 1;
  const x = step < 0 ? begin : over ? 1e5 : Number(heads[step].dataset.x) + column / 2;
  el.querySelector('.curtain').style.transform = `translateX(${x}px)`;
  const svg = el.querySelector('.act-picture'), box = svg.parentElement; // on a narrow screen it scrolls along
  const width = svg.viewBox.baseVal.width;
  box.scrollLeft = (Math.min(x, width) / width) * svg.clientWidth - box.clientWidth;
  const exact = step < 0 ? begin + column / 2 : heads[step].dataset.exact;
  el.querySelector('.hand').style.transform = `translateX(${exact}px)`;
}

/** showSteps marks the step, and scrolls the list to it: only the list, the page stays where the reader has it. */
function showSteps({ el, step }) {
  const list = el.querySelector('.steps');
  [...list.children].forEach((li, i) => {
    li.classList.toggle('current', i === step);
    li.classList.toggle('future', i > step);
    if (i === step) li.setAttribute('aria-current', 'step');
    else li.removeAttribute('aria-current');
  });
  reveal(list, list.children[step]);
}

function reveal(box, el) {
  if (!el) box.scrollTop = 0;
  else if (el.offsetTop < box.scrollTop) box.scrollTop = el.offsetTop;
  else if (el.offsetTop + el.offsetHeight > box.scrollTop + box.clientHeight) {
    box.scrollTop = el.offsetTop + el.offsetHeight - box.clientHeight;
  }
}

/** showCode lights the line whose command was just sent, and shows at which line each client is. */
function showCode({ el, step, act }) {
  el.querySelectorAll('.chip').forEach((chip) => chip.remove());
  el.querySelectorAll('.lit').forEach((line) => line.classList.remove('lit'));
  const now = act.steps?.[step];
  for (const [who, places] of Object.entries(now?.code ?? {})) {
    const stopped = ['still', 'halted'].includes(now.states?.[who]);
    for (const place of places) { // the callers come last: what they call shows beside them if there is room
      const line = el.querySelector(`[data-place="${CSS.escape(place)}"]`);
      if (!line) continue;
      line.append(make('span', { class: 'chip' }, stopped ? `${who} ❚❚` : who));
      if (now.who !== who) continue;
      line.classList.toggle('lit', now.kind === 'asks');
      reveal(line.parentElement, line);
    }
  }
}

/** choices are the answers to a question, with their keys. */
const choices = (q) => [...q.options.map((who, i) => [i + 1, who, who]), [0, 'nobody', '没有人']];

function showQuestion(pane) {
  const box = pane.el.querySelector('.ask');
  const mine = open().filter((o) => o.pane.number === pane.number);
  box.hidden = mine.length === 0;
  box.replaceChildren();
  for (const { q } of mine) {
    const id = `${pane.el.id}-question`;
    box.setAttribute('aria-labelledby', id);
    box.append(make('strong', { id }, both('Who gets in next?', '下一个进来的是谁？')));
    for (const [n, en, zh] of choices(q)) {
      const button = make('button', { type: 'button', 'data-answer': n ? en : '' }, n < 10 ? make('kbd', {}, n) : '', both(en, zh));
      button.addEventListener('click', () => {
        guesses.set(keyOf(pane, q), button.dataset.answer);
        show();
        byId('step').focus(); // the button is gone, and the focus would be with it
      });
      box.append(button);
    }
  }
}

/** showGuess tells what the reader has guessed, and after the step that gives the answer, whether that was right. */
function showGuess(pane) {
  const el = pane.el.querySelector('.guessed');
  const q = pane.questions.findLast((x) => x.after <= pane.step && guesses.has(keyOf(pane, x)));
  const guess = q && byId('asks').checked ? guesses.get(keyOf(pane, q)) : null;
  const over = q && pane.step >= q.reveal;
  el.className = 'guessed' + (guess !== null && over ? (guess === q.answer ? ' right' : ' wrong') : '');
  if (guess === null) return el.replaceChildren();
  const [en, zh] = [guess || 'nobody', guess || '没有人'];
  if (!over) return el.replaceChildren(...both(`Your guess: ${en}.`, `你猜的是：${zh}。`));
  const truth = both(`It is ${q.answer || 'nobody'}.`, `答案是：${q.answer || '没有人'}。`);
  return el.replaceChildren(...(guess === q.answer ? both('Right. ', '猜对了。') : both(`Not ${en}. `, `不是${zh}。`)), ...truth);
}

/** showScenes lists the pairs of the story. */
function showScenes() {
  const name = (act) => (act < 0 ? '–' : `${story().id}.${act + 1}`);
  byId('scenes').replaceChildren(...story().pairs.map((p, i) => {
    const button = make('button', { type: 'button', 'aria-pressed': i === at.pair },
      [p.exhibit, p.sound].filter((act) => act >= 0).map(name).join(' ↔ '));
    button.addEventListener('click', () => scene(at.story, i));
    return button;
  }));
}

// ---- input

const keys = {
  ArrowRight: forward, ArrowLeft: () => go(at.row - 1), Home: () => go(0), End: () => go(rows().length),
  ' ': () => play(!at.playing),
  n: () => { const next = neighbour(1); if (next) scene(...next); },
  p: () => { const previous = neighbour(-1); if (previous) scene(...previous); },
  g: () => { byId('asks').checked = !byId('asks').checked; show(); },
  '?': () => { byId('help').open = !byId('help').open; },
};

/** pressed acts on a key, unless it means something where the focus is. */
function pressed(e) {
  if (e.ctrlKey || e.metaKey || e.altKey) return;
  if (e.target.matches('select, input[type=radio]')) return;
  if (e.target.matches('input[type=range]') && e.key !== ' ') return; // it moves by itself
  if (e.key === ' ' && e.target.matches('button, summary, a, input[type=checkbox]')) return; // it is pressed by it
  if (/^[0-9]$/.test(e.key)) {
    const [first] = open();
    if (first) answer(e.key === '0' ? '' : first.q.options[Number(e.key) - 1] ?? null);
  } else if (keys[e.key]) {
    keys[e.key]();
  } else {
    return;
  }
  e.preventDefault();
}

/** clicked goes to the step of the picture that is nearest. */
function clicked(e) {
  const svg = e.target.closest('.act-picture');
  const pane = panes().find((p) => p.el.contains(svg));
  if (!svg || !pane) return;
  const x = ((e.clientX - svg.getBoundingClientRect().left) / svg.getBoundingClientRect().width) * svg.viewBox.baseVal.width;
  const far = (head) => Math.abs(Number(head.dataset.x) - x);
  const heads = [...svg.querySelectorAll('.step')];
  const step = heads.indexOf(heads.reduce((a, b) => (far(b) < far(a) ? b : a)));
  const side = pane.number === pair().exhibit ? 0 : 1;
  go(rows().findIndex((row) => row[side] >= step) + 1);
}

function languageChanged() {
  document.documentElement.lang = word('en', 'zh-CN');
  document.title = word('interlock: the lab', 'interlock: 实验室');
  document.querySelectorAll('[data-en]').forEach((el) => el.setAttribute('aria-label', word(el.dataset.en, el.dataset.zh)));
  show();
}

function start() {
  if (run.length === 0) return;
  document.body.classList.add('plays');
  byId('controls').hidden = false;
  byId('back').addEventListener('click', () => go(at.row - 1));
  byId('step').addEventListener('click', forward);
  byId('play').addEventListener('click', () => play(!at.playing));
  byId('scrub').addEventListener('input', (e) => go(Number(e.target.value)));
  byId('pace').addEventListener('change', schedule);
  byId('asks').addEventListener('change', show);
  for (const id of ['en', 'zh']) byId(id).addEventListener('change', languageChanged);
  document.querySelector('main').addEventListener('click', clicked);
  document.addEventListener('keydown', pressed);
  window.addEventListener('hashchange', fromAddress);
  fromAddress();
  languageChanged(); // a browser may restore the choice of an earlier visit
}

start();
