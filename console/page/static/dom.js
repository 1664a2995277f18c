// Elements are made of text and attributes. Nothing that an engine told is ever parsed as HTML, and styles are set through the
// CSSOM, which is what the page's content security policy allows.

const svgSpace = 'http://www.w3.org/2000/svg';

/** h makes an HTML element. In props, `on` holds listeners; false, null and undefined leave an attribute out. */
export function h(tag, props, ...kids) {
  return dress(document.createElement(tag), props, kids);
}

/** s makes an SVG element. */
export function s(tag, props, ...kids) {
  return dress(document.createElementNS(svgSpace, tag), props, kids);
}

function dress(el, props, kids) {
  for (const [name, value] of Object.entries(props ?? {})) {
    if (name === 'on') {
      for (const [event, listener] of Object.entries(value)) el.addEventListener(event, listener);
    } else if (value !== false && value !== null && value !== undefined) {
      el.setAttribute(name, value === true ? '' : value);
    }
  }
  for (const kid of kids.flat()) {
    if (kid !== false && kid !== null && kid !== undefined) el.append(kid);
  }
  return el;
}

/** byId is the element of the page's shell with that id. */
export const byId = (id) => document.getElementById(id);

/** setText writes only what differs, because a write repaints. */
export function setText(el, text) {
  if (el.textContent !== text) el.textContent = text;
}

/** setAttr writes only what differs; null takes the attribute away. */
export function setAttr(el, name, value) {
  if (value === null || value === undefined || value === false) {
    if (el.hasAttribute(name)) el.removeAttribute(name);
  } else if (el.getAttribute(name) !== String(value)) {
    el.setAttribute(name, value);
  }
}

const kept = new WeakMap(); // of a container: its elements by key

/**
 * keyed shows items as the children of parent. An item that was there before keeps its element, and with it focus and selection;
 * make makes the others and update fills each.
 */
export function keyed(parent, items, keyOf, make, update) {
  const before = kept.get(parent) ?? new Map();
  const now = new Map();
  let at = parent.firstChild;
  for (const item of items) {
    let key = keyOf(item);
    while (now.has(key)) key += '+'; // two holds of one owner may look the same
    const el = before.get(key) ?? make(item);
    now.set(key, el);
    update?.(el, item);
    if (el === at) at = at.nextSibling;
    else parent.insertBefore(el, at);
  }
  for (const [key, el] of before) {
    if (now.get(key) !== el) el.remove();
  }
  kept.set(parent, now);
}

/** fresh empties a container that keyed has filled. */
export function fresh(parent) {
  kept.delete(parent);
  parent.replaceChildren();
}

/** announce tells a screen reader, politely. */
export function announce(text) {
  byId('live').textContent = text;
}
