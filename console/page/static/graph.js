// Where things are in the picture of who waits for whom: waiters on the left, those in front of them further right, one
// component below the other. Only numbers are made here; waits.js draws them.

const box = { width: 190, height: 40, across: 120, down: 18 };
const margin = 22;
const titleRoom = 26; // above a component that has a cycle

/** partyKey tells owners apart as the console does: a named owner is the same in every process. */
const partyKey = (p) => (p.owner ? `o:${p.owner}` : `c:${p.client ?? ''}`);

/**
 * layout places the edges' parties. It returns {width, height, parts}, a part being {nodes, edges, cycles, x, y, width, height}
 * in the picture's units. Parts with cycles come first, then the larger ones; more than most parties are not drawn.
 */
export function layout(edges, cycles, most) {
  const parts = components(edges).map((c) => place(c, cycles));
  parts.sort((a, b) => b.cycles.length - a.cycles.length || b.nodes.length - a.nodes.length);
  const drawn = [];
  let left = most;
  let y = 0;
  let width = 0;
  for (const part of parts) {
    if (drawn.length > 0 && part.nodes.length > left) continue; // a smaller one may fit
    left -= part.nodes.length;
    part.y = y;
    y += part.height + 12;
    width = Math.max(width, part.width);
    drawn.push(part);
  }
  return { width, height: Math.max(0, y - 12), parts: drawn, omitted: parts.length - drawn.length };
}

// components joins edges that share a party.
function components(edges) {
  const up = new Map();
  const root = (k) => {
    while (up.get(k) !== k) k = up.get(k);
    return k;
  };
  const nodes = new Map();
  for (const e of edges) {
    for (const p of [e.waiter, e.holder]) {
      const key = partyKey(p);
      if (!nodes.has(key)) {
        nodes.set(key, { key, party: p, clients: new Set(), layer: 0, next: [], before: [] });
        up.set(key, key);
      }
      if (p.client) nodes.get(key).clients.add(p.client);
    }
    up.set(root(partyKey(e.waiter)), root(partyKey(e.holder)));
  }
  const groups = new Map();
  const group = (key) => {
    const r = root(key);
    if (!groups.has(r)) groups.set(r, { nodes: [], edges: [] });
    return groups.get(r);
  };
  for (const node of nodes.values()) group(node.key).nodes.push(node);
  for (const e of edges) {
    const edge = { ...e, from: nodes.get(partyKey(e.waiter)), to: nodes.get(partyKey(e.holder)), back: false };
    group(edge.from.key).edges.push(edge);
  }
  return [...groups.values()];
}

function place({ nodes, edges }, cycles) {
  markBack(nodes, edges);
  layers(nodes, edges);
  const columns = [];
  for (const n of nodes) (columns[n.layer] ??= []).push(n);
  arrange(columns);
  const own = cycles.filter((c) => nodes.some((n) => n.party.owner && c.includes(n.party.owner)));
  const top = margin + (own.length > 0 ? titleRoom : 0);
  const tallest = Math.max(...columns.map((c) => c.length));
  columns.forEach((column, x) => {
    const room = (tallest - column.length) * (box.height + box.down) / 2; // in the middle of the part
    column.forEach((n, y) => {
      n.x = margin + x * (box.width + box.across);
      n.y = top + room + y * (box.height + box.down);
      Object.assign(n, { width: box.width, height: box.height });
    });
  });
  const backs = edges.filter((e) => e.back).length; // run below everything
  fan(edges);
  return {
    nodes, edges, cycles: own, x: 0, y: 0,
    width: 2 * margin + columns.length * box.width + (columns.length - 1) * box.across,
    height: top + tallest * (box.height + box.down) - box.down + margin + backs * 22,
  };
}

// markBack finds, by a search in depth without recursion, edges that lead back to where the search came from: the rest has no cycle.
function markBack(nodes, edges) {
  const out = new Map(nodes.map((n) => [n, []]));
  for (const e of edges) out.get(e.from).push(e);
  const state = new Map(); // 1 on the path, 2 done
  const incoming = new Set(edges.map((e) => e.to));
  const starts = [...nodes.filter((n) => !incoming.has(n)), ...nodes]; // who waits and is waited for by nobody, first
  for (const start of starts) {
    if (state.has(start)) continue;
    const path = [[start, 0]];
    state.set(start, 1);
    while (path.length > 0) {
      const top = path[path.length - 1];
      const e = out.get(top[0])[top[1]++];
      if (!e) {
        state.set(top[0], 2);
        path.pop();
      } else if (state.get(e.to) === 1) {
        e.back = true;
      } else if (!state.has(e.to)) {
        state.set(e.to, 1);
        path.push([e.to, 0]);
      }
    }
  }
}

// layers puts each party to the right of all that wait for it.
function layers(nodes, edges) {
  const forward = edges.filter((e) => !e.back);
  const missing = new Map(nodes.map((n) => [n, 0]));
  for (const e of forward) missing.set(e.to, missing.get(e.to) + 1);
  const ready = nodes.filter((n) => missing.get(n) === 0);
  const out = new Map(nodes.map((n) => [n, []]));
  for (const e of forward) out.get(e.from).push(e.to);
  while (ready.length > 0) {
    const n = ready.pop();
    for (const to of out.get(n)) {
      to.layer = Math.max(to.layer, n.layer + 1);
      to.before.push(n);
      n.next.push(to);
      missing.set(to, missing.get(to) - 1);
      if (missing.get(to) === 0) ready.push(to);
    }
  }
}

// arrange orders each column by the middle of its neighbours, which has few crossings and is quick.
function arrange(columns) {
  columns.forEach((c) => c.sort((a, b) => (a.key < b.key ? -1 : 1)).forEach((n, i) => { n.row = i; }));
  const sweep = (column, side) => {
    const middle = (n) => (n[side].length ? n[side].reduce((sum, m) => sum + m.row, 0) / n[side].length : n.row);
    const at = new Map(column.map((n) => [n, middle(n)]));
    column.sort((a, b) => at.get(a) - at.get(b)).forEach((n, i) => { n.row = i; });
  };
  for (let pass = 0; pass < 2; pass++) {
    for (let i = columns.length - 2; i >= 0; i--) sweep(columns[i], 'next');
    for (let i = 1; i < columns.length; i++) sweep(columns[i], 'before');
  }
}

// fan gives each edge between the same two a way of its own.
function fan(edges) {
  const seen = new Map();
  const named = new Set();
  let backs = 0;
  for (const e of edges) {
    const key = `${e.from.key}|${e.to.key}`;
    e.nth = seen.get(key) ?? 0;
    seen.set(key, e.nth + 1);
    const label = `${e.from.key}|${e.kind}|${e.name}|${e.back}`; // whoever waits for one lock of many holders has one label for it
    e.labelled = !named.has(label);
    named.add(label);
    e.backNth = e.back ? backs++ : 0;
  }
}
