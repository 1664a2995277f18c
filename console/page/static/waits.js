// Who waits for whom: a picture, and the same as text. The picture is made of SVG elements, the text is a list, and each names the
// cycles.

import { byId, fresh, h, keyed, s, setText } from './dom.js';
import { layout } from './graph.js';
import { idOf, who } from './rows.js';
import { board, knows } from './store.js';
import { kindTag, kindWord, partyTags, untold } from './tell.js';
import { count } from './time.js';
import { t } from './words.js';

const mostDrawn = 60; // parties; a picture of more is a carpet
const mostListed = 500;

let parts = null;
let drawn = ''; // what the picture shows
let hrefOf = () => '#';

/** buildWaits makes the view; href is the address of a lock. */
export function buildWaits(href) {
  hrefOf = href;
  const view = byId('view-waits');
  parts = {
    note: h('p', { class: 'note' }),
    cycles: h('ul', { class: 'cycles' }),
    picture: h('div', { class: 'picture' }),
    omitted: h('p', { class: 'quiet' }),
    listTitle: h('h2', null, t('waits.list')),
    list: h('ul', { class: 'edges', id: 'edges' }),
  };
  fresh(view);
  view.append(h('div', { class: 'page' }, parts.note, parts.cycles, parts.picture, parts.omitted, parts.listTitle, parts.list));
  drawn = '';
  updateWaits();
}

export function updateWaits() {
  if (!parts || byId('view-waits').hidden) return;
  const state = JSON.stringify([board.edges, board.cycles, board.ready]);
  if (state === drawn) return;
  drawn = state;
  const can = knows('waiters');
  const { edges, cycles } = board;
  setText(parts.note, can.ok ? t(edges.length > 0 ? 'waits.note' : 'waits.none') : untold('waiters'));
  parts.note.classList.toggle('empty', edges.length === 0);
  keyed(parts.cycles, cycles, (c) => c.join('|'), cycleItem);
  parts.cycles.hidden = cycles.length === 0;
  draw(edges, cycles);
  parts.listTitle.hidden = edges.length === 0;
  keyed(parts.list, edges.slice(0, mostListed), edgeKey, edgeItem);
}

const edgeKey = (e) => JSON.stringify(e);

function cycleItem(cycle) {
  const owners = [...cycle, cycle[0]].join(' → ');
  return h('li', null, h('strong', null, t('waits.cycle', { n: count(cycle.length) })), ' ', h('span', { class: 'main' }, owners));
}

const partyText = (p) => who(p).main || who(p).minor || t('untold.short');

function edgeItem(e) {
  const lock = h('a', { class: 'name', href: hrefOf(idOf(e.kind, e.name)) }, e.name);
  return h('li', { 'data-cycle': String(Boolean(e.cycle)) },
    party(e.waiter), quiet(t('waits.for')), kindTag(e.kind), ' ', lock,
    quiet(t(e.cooldown ? 'waits.cooldownof' : 'waits.heldby')), party(e.holder),
    e.cycle && h('span', { class: 'tag alarm' }, t('waits.incycle')));
}

const quiet = (text) => h('span', { class: 'quiet' }, ` ${text} `);

const party = (p) => h('span', { class: 'who' }, partyTags(who(p)));

function draw(edges, cycles) {
  const g = layout(edges, cycles, mostDrawn);
  parts.omitted.hidden = g.omitted === 0 && edges.length <= mostListed && !board.edgesTruncated;
  setText(parts.omitted, t('waits.omitted', { n: count(g.omitted) }));
  if (edges.length === 0) {
    parts.picture.replaceChildren();
    return;
  }
  const size = { viewBox: `0 0 ${g.width} ${g.height}`, width: g.width, height: g.height };
  const svg = s('svg', { ...size, role: 'img', 'aria-labelledby': 'graph-title' },
    s('title', { id: 'graph-title' }, t('waits.picture', { n: count(edges.length), cycles: count(cycles.length) })),
    s('defs', null, marker('arrow'), marker('arrow-cycle')),
    g.parts.map(drawPart));
  parts.picture.replaceChildren(svg);
}

const tip = { viewBox: '0 0 10 10', refX: 9, refY: 5, markerWidth: 7, markerHeight: 7, orient: 'auto-start-reverse' };
const marker = (id) => s('marker', { id, ...tip },
  s('path', { d: 'M0 0 10 5 0 10z', class: id }));

function drawPart(part) {
  const frame = part.cycles.length > 0 && [
    s('rect', { class: 'frame', x: 4, y: 4, width: part.width - 8, height: part.height - 8, rx: 8 }),
    s('text', { class: 'frame-title', x: 18, y: 27 }, t('waits.frame', { n: count(part.cycles[0].length) })),
  ];
  return s('g', { transform: `translate(0 ${part.y})` }, frame, part.edges.map((e) => drawEdge(e, part)), part.nodes.map(drawNode));
}

function drawNode(n) {
  const { main, minor } = who({ owner: n.party.owner, client: [...n.clients].join(', ') });
  const inCycle = board.cycles.some((c) => n.party.owner && c.includes(n.party.owner));
  return s('g', { class: inCycle ? 'node in-cycle' : 'node' },
    s('title', null, [main, minor].filter(Boolean).join('\n')),
    s('rect', { x: n.x, y: n.y, width: n.width, height: n.height, rx: 6 }),
    s('text', { class: 'main', x: n.x + 12, y: n.y + (minor ? 17 : 25) }, cut(main || t('untold.short'), 24)),
    minor && s('text', { class: 'minor', x: n.x + 12, y: n.y + 32 }, cut(minor, 28)));
}

// cut keeps both ends of a text, where names differ.
const cut = (text, most) => (text.length <= most ? text : `${text.slice(0, most / 2)}…${text.slice(text.length - most / 2 + 1)}`);

function drawEdge(e, part) {
  const { d, x, y } = way(e, part);
  const label = e.labelled && s('text', { class: 'lock', x, y, 'text-anchor': 'middle' }, cut(e.name, 18));
  const name = e.cycle ? 'edge in-cycle' : e.cooldown ? 'edge rests' : 'edge';
  const said = { waiter: partyText(e.waiter), kind: kindWord(e.kind), name: e.name, holder: partyText(e.holder) };
  return s('a', { href: hrefOf(idOf(e.kind, e.name)), class: name, tabindex: -1 },
    s('title', null, t('waits.edge', said)),
    s('path', { d, 'marker-end': `url(#${e.cycle ? 'arrow-cycle' : 'arrow'})` }), label);
}

// way is the path of an edge, and the place of its lock's name. What leads back runs below the others.
function way(e, part) {
  const from = { x: e.from.x + e.from.width, y: e.from.y + e.from.height / 2 };
  const to = { x: e.to.x, y: e.to.y + e.to.height / 2 };
  if (!e.back) {
    const bend = (to.x - from.x) / 2;
    const lift = e.nth * 22;
    return {
      d: `M${from.x} ${from.y}C${from.x + bend} ${from.y + lift} ${to.x - bend} ${to.y + lift} ${to.x - 2} ${to.y}`,
      x: (from.x + to.x) / 2, y: (from.y + to.y) / 2 + lift * 0.75 - 6,
    };
  }
  const floor = part.height - 18 - e.backNth * 22;
  const start = { x: e.from.x + e.from.width * 0.6, y: e.from.y + e.from.height };
  const end = { x: e.to.x + e.to.width * 0.4, y: e.to.y + e.to.height };
  const r = 8;
  const turn = start.x > end.x ? -1 : 1;
  return {
    d: `M${start.x} ${start.y}V${floor - r}Q${start.x} ${floor} ${start.x + turn * r} ${floor}`
      + `H${end.x - turn * r}Q${end.x} ${floor} ${end.x} ${floor - r}V${end.y + 2}`,
    x: (start.x + end.x) / 2, y: floor - 5,
  };
}
