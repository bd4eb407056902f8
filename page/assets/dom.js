export const byId = (id) => document.getElementById(id);

// Embeddings, overrides and isolates of Unicode reorder the text around them.
const keepOrder = (text) => text.replace(/[\u202a-\u202e\u2066-\u2069]/g, '\ufffd');

// Returns a text that does not reorder the words around it, although it may be written from
// right to left.
export const isolated = (text) => '\u2068' + keepOrder(text) + '\u2069';

// Returns a text as the page shows it. Every text goes through it, because names, reasons and
// messages of the server are those of others.
const printable = (text) => text.split(/\u2068([^\u2066-\u2069]*)\u2069/).map((part, index) => (index % 2 === 1 ? isolated(part) : keepOrder(part))).join('');

// Shows a text in an element or in that with an id.
export function write(target, text) {
  const element = typeof target === 'string' ? byId(target) : target;
  element.textContent = printable(text);
}

// A string becomes text and never markup. A function becomes the handler of an event.
export function make(tag, attributes = {}, content = []) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === 'function') element[name] = value;
    else element.setAttribute(name, ['title', 'aria-label'].includes(name) ? printable(value) : value);
  }
  if (typeof content === 'string') write(element, content);
  else element.append(...content.map((part) => (typeof part === 'string' ? printable(part) : part)));
  return element;
}

let ids = 0;
export const newID = (prefix) => prefix + '-' + ++ids;

// Changes a node into another one and returns it. What is equal stays, and so do the nodes with
// the same key: a selection and a pressed button survive an update.
function morph(old, fresh) {
  if (old.nodeName !== fresh.nodeName) return fresh;
  if (old.nodeType === Node.TEXT_NODE) {
    if (old.data !== fresh.data) old.data = fresh.data;
    return old;
  }
  old.onclick = fresh.onclick;
  for (const { name } of [...old.attributes]) if (!fresh.hasAttribute(name) && name !== 'open') old.removeAttribute(name);
  for (const { name, value } of fresh.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  const before = [...old.childNodes];
  const byKey = new Map(before.map((node) => [node.dataset?.id, node]));
  const after = [...fresh.childNodes].map((node, index) => {
    const same = node.dataset?.id ? byKey.get(node.dataset.id) : before[index];
    return same ? morph(same, node) : node;
  });
  if (before.length !== after.length || before.some((node, index) => node !== after[index])) old.replaceChildren(...after);
  return old;
}

// Shows other content in the element with an id. An element that is moved loses the focus, and
// gets it back. If it is gone, the heading of the view has it.
export function update(id, content) {
  const focused = document.activeElement;
  const fresh = byId(id).cloneNode(false);
  fresh.replaceChildren(...content);
  morph(byId(id), fresh);
  if (focused !== document.activeElement) (focused.isConnected ? focused : document.querySelector('main > section:not([hidden]) h1')).focus();
}

let statusTimer;

// Screen readers announce the status. It is hidden after some seconds, or at once if
// the view shows the same text.
export function say(words, isUnseen = false) {
  const hide = () => byId('status').classList.add('unseen');
  clearTimeout(statusTimer);
  write('status', words);
  byId('status').classList.remove('unseen');
  if (isUnseen) hide();
  else statusTimer = setTimeout(hide, 8000);
}

export function onSubmit(form, act) {
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    act();
  });
}
