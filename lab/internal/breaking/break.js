'use strict';
// The page on which the audience breaks locks. It keeps the faults that were put behind the steps of each course, sends
// them, and shows the page that comes back, which has the player of the report.

const { courses, faults, most } = JSON.parse(document.getElementById('data').textContent);
const byId = (id) => document.getElementById(id);
const chosen = new Map(courses.map((c) => [c.id, []])); // the faults of each course, in the order in which they strike

const chinese = () => byId('zh').checked;
const word = (text) => (chinese() ? text.zh : text.en);
const say = (en, zh) => word({ en, zh });

/** make returns an element with attributes and content. */
function make(tag, attributes, ...content) {
  const el = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) el.setAttribute(name, value);
  el.append(...content);
  return el;
}

const course = () => courses.find((c) => c.id === byId('course').value);
const mine = () => chosen.get(course().id);
const nameOf = (action) => { const f = faults.find((x) => x.action === action); return `${f.sign} ${word(f.name)}`; };

/** add puts a fault behind a step. */
function add(step, action) {
  if (!step.strikes.includes(action)) return;
  if (mine().length >= most) return tell(say(`At most ${most} faults.`, `最多 ${most} 个故障。`), true);
  if (!mine().some((f) => f.who === step.who && f.nth === step.nth && f.action === action)) {
    mine().push({ who: step.who, nth: step.nth, action });
  }
  tell('');
  show(`step-${course().steps.indexOf(step)}`);
}

/** show brings the list in line with what was chosen. focus is the id of the element that keeps the focus. */
function show(focus) {
  const c = course();
  byId('title').textContent = word(c.title);
  document.querySelectorAll('#palette li').forEach((li) => { li.hidden = !c.strikes.includes(li.dataset.action); });
  byId('steps').replaceChildren(...c.steps.map(showStep));
  byId('clear').disabled = mine().length === 0;
  if (focus) byId(focus)?.focus();
}

function showStep(step, i) {
  const row = make('div', { class: 'step' }, make('code', {}, `${step.name}: ${word(step.text)}`));
  const li = make('li', {}, row);
  if (step.strikes.length === 0) return li;
  for (const fault of mine().filter((f) => f.who === step.who && f.nth === step.nth)) {
    const chip = make('button', { type: 'button', class: 'chip', 'aria-label': say('Remove: ', '去掉：') + nameOf(fault.action) }, `${nameOf(fault.action)} ×`);
    chip.addEventListener('click', () => { mine().splice(mine().indexOf(fault), 1); show(`step-${i}`); });
    row.append(chip);
  }
  const select = make('select', { id: `step-${i}`, 'aria-label': say(`Fault after step ${i + 1}`, `第 ${i + 1} 步之后的故障`) },
    make('option', { value: '' }, say('add a fault…', '加一个故障…')),
    ...step.strikes.map((action) => make('option', { value: action }, nameOf(action))));
  select.addEventListener('change', () => add(step, select.value));
  row.append(select);
  li.addEventListener('dragover', (e) => { e.preventDefault(); li.classList.add('over'); });
  li.addEventListener('dragleave', () => li.classList.remove('over'));
  li.addEventListener('drop', (e) => {
    e.preventDefault();
    li.classList.remove('over');
    add(step, e.dataTransfer.getData('text/plain'));
  });
  return li;
}

/** tell tells how things stand, to readers of the screen too. */
function tell(text, failed = false) {
  byId('status').textContent = text;
  byId('status').classList.toggle('failed', failed);
}

/** play has the course played, and shows what happened. */
async function play() {
  byId('run').disabled = true;
  tell(say('It runs; a course of interlock takes some seconds.', '正在运行；interlock 的过程要几秒钟。'));
  try {
    const answer = await fetch('break', {
      method: 'POST', headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ id: course().id, faults: mine(), lang: chinese() ? 'zh' : 'en' }),
    });
    if (!answer.ok) throw new Error((await answer.text()).trim());
    const { told } = await answer.json();
    byId('told').src = `told/${told}`;
    byId('told').hidden = false;
    tell(say('This is what happened.', '下面是发生的事。'));
  } catch (e) {
    tell(e.message, true);
  }
  byId('run').disabled = false;
}

function languageChanged() {
  document.documentElement.lang = say('en', 'zh-CN');
  document.title = say('interlock: break it yourself', 'interlock: 自己动手弄坏它');
  show();
}

byId('palette').addEventListener('dragstart', (e) => e.dataTransfer.setData('text/plain', e.target.dataset.action));
byId('course').addEventListener('change', () => { tell(''); show(); });
byId('clear').addEventListener('click', () => { mine().length = 0; show(); });
byId('run').addEventListener('click', play);
for (const id of ['en', 'zh']) byId(id).addEventListener('change', languageChanged);
languageChanged();
