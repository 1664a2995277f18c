// The one connection to the console. It is closed while the tab is hidden, because a browser allows six of them for all tabs
// together, and opened again when somebody looks.

import { messages, take, takeBoard, takeChange } from './store.js';

/** link is the state of the connection: opening, open, lost or paused. */
export const link = { state: 'opening', since: performance.now() };

const firstPause = 500;
const longestPause = 5000;
const longestSilence = 20000;
let source = null;
let pause = firstPause;
let timer = 0;
let last = 0; // when the last message came
let turn = 0; // grows whenever the connection is opened or closed
let onLink = () => {};

/** start connects, and keeps connected. */
export function start(changed) {
  onLink = changed;
  document.addEventListener('visibilitychange', () => (document.hidden ? rest() : open()));
  if (document.hidden) setLink('paused');
  else open();
  setInterval(watch, 1000);
}

function setLink(state) {
  if (link.state === state) return;
  Object.assign(link, { state, since: performance.now() });
  onLink();
}

function open() {
  close();
  if (link.state !== 'lost') setLink('opening');
  last = performance.now();
  source = new EventSource('api/events');
  source.addEventListener('board', (e) => received(e, takeBoard));
  source.addEventListener('change', (e) => received(e, takeChange));
  source.addEventListener('alive', alive); // there is no board yet
  source.addEventListener('error', lost);
}

function alive() {
  last = performance.now();
  pause = firstPause;
  setLink('open');
}

function received(e, takeIn) {
  const message = JSON.parse(e.data);
  alive();
  takeIn(message);
}

// A browser tries again by itself, but not after every kind of failure, and at a pace of its own.
function lost() {
  close();
  setLink('lost');
  timer = setTimeout(retry, pause);
  pause = Math.min(2 * pause, longestPause);
}

// retry asks why the console refuses, which an EventSource does not tell. Only a console that wants a name is left. The tab may
// be hidden, or connected again, before the answer comes: then it is of no use any more.
async function retry() {
  const mine = turn;
  const answer = await fetch('api/board?limit=1', { redirect: 'manual' }).catch(() => null);
  if (turn !== mine || document.hidden) return;
  if (!answer) lost(); // nobody answers: wait on
  else if (answer.status === 401) location.assign('login');
  else open();
}

function close() {
  turn++;
  clearTimeout(timer);
  source?.close();
  source = null;
}

function rest() {
  close();
  setLink('paused');
}

// watch notices a connection that is open and dead: the console says something every ten seconds.
function watch() {
  if (source && performance.now() - last > longestSilence) lost();
}

/** get asks the console once; the error of a refusal has its hint. */
export async function get(path) {
  return answered(await fetch(path, { headers: { Accept: 'application/json' } }));
}

/** post sends JSON. */
export async function post(path, body) {
  return answered(await fetch(path, {
    method: 'POST', headers: { 'Content-Type': 'application/json', Accept: 'application/json' }, body: JSON.stringify(body),
  }));
}

async function answered(answer) {
  if (answer.status === 401) location.assign('login');
  let body = {};
  try {
    body = await answer.json();
  } catch {
    // What is not JSON has no more to say than its status.
  }
  if (answer.ok && !body.error) return body;
  const failure = new Error(body.error || `HTTP ${answer.status}`);
  failure.hint = body.hint ?? '';
  throw failure;
}

/** look has one lock looked at now. */
export async function look(kind, name) {
  const before = messages;
  const lock = await get(`api/lock?kind=${encodeURIComponent(kind)}&name=${encodeURIComponent(name)}`);
  if (lock.id) take(lock, before);
  return lock;
}
