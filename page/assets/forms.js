// Forms of relayers. A control has an element, is filled with a value, and collects
// one: undefined if it is empty. While it collects, it adds itself to found under its
// current JSON path, so that errors appear next to it. The path of a row changes when
// rows above it are removed.

import { digitsOf, humanAmount } from './amounts.js';
import { make, newID, write } from './dom.js';
import { networkTypes, policyFields, relayerFields, titleOf } from './fields.js';
import { applyPatch, isSame, numberOrText, patchBetween, readJSON, removeEmptied, writeJSON } from './json.js';
import { valueOf } from './view.js';

function wrongLine() {
  const element = make('p', { class: 'wrong', id: newID('wrong') });
  element.hidden = true;
  return element;
}

// A label is above its input; the hint and the error are below.
function labelled(field, input, ...classes) {
  const wrong = wrongLine();
  const hint = field.hint ? [make('p', { class: 'hint', id: newID('hint') }, field.hint)] : [];
  input.id = newID('field');
  const title = titleOf(field) + (field.unit ? ' (' + field.unit + ')' : '') + (field.required && !classes.includes('inline') ? ' *' : '');
  if (field.required) input.setAttribute('aria-required', 'true');
  input.setAttribute('aria-describedby', [...hint, wrong].map(({ id }) => id).join(' '));
  return { title: titleOf(field), input, wrong, element: make('div', { class: 'field' }, [make('label', { for: input.id, class: classes.join(' ') }, title), input, ...hint, wrong]) };
}

// Returns the control of one input. read returns its value.
function single(shown, read, fill) {
  return { ...shown, fill, collect: (path, found) => (found.set(path, shown), read()) };
}

const plainInput = (more) => make('input', { type: 'text', autocomplete: 'off', autocapitalize: 'none', spellcheck: 'false', ...more });

// Returns the control of a select. Each option has a value, a text and what it stands for.
function select(field, options) {
  const shown = labelled(field, make('select', {}, [['', field.required ? 'Choose one' : 'Not set'], ...options].map(([value, label]) => make('option', { value }, label))));
  const read = () => options.find(([value]) => value === shown.input.value)?.[2] ?? (field.required ? '' : undefined);
  return single(shown, read, (value) => { shown.input.value = String(value); });
}

// Returns the entries of a list with the numbers of their lines. No address, account or strategy
// contains a comma or a space.
const entriesOf = (text) => text.split('\n').flatMap((line, index) => line.split(/[\s,]+/).filter((entry) => entry !== '').map((entry) => ({ entry, number: index + 1 })));

const controls = {
  text(field) {
    const shown = labelled(field, plainInput());
    const { input } = shown;
    return single(shown, () => (input.value === '' && !field.required ? undefined : input.value), (value) => { input.value = value; });
  },

  number(field, networkOf) {
    const shown = labelled(field, plainInput({ inputmode: field.keys, class: 'exact' }));
    const { input } = shown;
    const human = make('p', { class: 'human', id: newID('human') });
    const digits = () => digitsOf(input.value.trim(), field.unit, networkOf());
    const showHuman = () => {
      const amount = digits() ? digits() + ' ' + field.unit : humanAmount(input.value.trim(), field.unit, networkOf());
      write(human, amount && '= ' + amount);
    };
    input.addEventListener('input', showHuman);
    input.after(human);
    input.setAttribute('aria-describedby', input.getAttribute('aria-describedby') + ' ' + human.id);
    const read = () => (input.value.trim() === '' ? undefined : numberOrText(digits() ?? input.value.trim()));
    return single(shown, read, (value) => {
      input.value = value.text;
      showHuman();
    });
  },

  json(field) {
    const shown = labelled({ ...field, unit: 'JSON' }, make('textarea', { rows: 3, class: 'exact', spellcheck: 'false' }));
    const { input } = shown;
    const read = () => {
      const value = input.value.trim();
      if (value === '') return undefined;
      try {
        return readJSON(value);
      } catch {
        return value;
      }
    };
    return single({ ...shown, below: (rest) => rest.replace(/^\./, '') + ' ' }, read, (value) => { input.value = writeJSON(value, 2); });
  },

  flag(field) {
    const shown = labelled(field, make('input', { type: 'checkbox' }), 'inline');
    shown.element.prepend(shown.input);
    shown.input.removeAttribute('aria-required');
    return single(shown, () => shown.input.checked, (value) => { shown.input.checked = value; });
  },

  choice: (field) => select(field, field.options.map((option) => [option, option, option])),

  yesNo: (field) => select(field, [['true', 'Yes', true], ['false', 'No', false]]),

  // A list that the user does not change stays exactly as it is.
  lines(field) {
    const shown = labelled(field, make('textarea', { rows: 3, autocapitalize: 'none', spellcheck: 'false' }));
    const { input } = shown;
    const below = (rest) => 'line ' + entriesOf(input.value)[parseInt(rest.slice(1), 10)]?.number + ' ';
    let [stored, filled] = [undefined, ''];
    const read = () => {
      if (input.value === filled) return stored;
      const entries = entriesOf(input.value).map(({ entry }) => entry);
      return entries.length > 0 ? entries : undefined;
    };
    return single({ ...shown, below }, read, (value) => {
      input.value = value.join('\n');
      [stored, filled] = [value, input.value];
    });
  },

  group(field, networkOf) {
    const parts = partsOf(field.fields, networkOf);
    const { element, shown } = section(titleOf(field), elementsOf(parts));
    return {
      element,
      fill(value) {
        element.open = Object.keys(value).length > 0;
        fillParts(parts, value);
      },
      collect: (path, found) => (found.set(path, shown), collectParts(parts, path + '.', found)),
    };
  },

  rows(field, networkOf) {
    const add = make('button', { type: 'button' }, 'Add ' + (/^[aeiou]/.test(field.noun) ? 'an ' : 'a ') + field.noun);
    const { element, shown } = section(titleOf(field), [add]);
    const present = [];
    const renumber = () => present.forEach((row, index) => row.setNumber(index + 1));
    const addRow = () => {
      const row = makeRow(field, networkOf, () => {
        present.splice(present.indexOf(row), 1);
        row.element.remove();
        renumber();
        add.focus();
      });
      present.push(row);
      renumber();
      add.before(row.element);
      return row;
    };
    add.addEventListener('click', () => addRow().element.querySelector('input').focus());
    return {
      element,
      fill(values) {
        element.open = values.length > 0;
        values.forEach((value) => addRow().fill(value));
      },
      collect(path, found) {
        found.set(path, shown);
        const values = present.map((row, index) => row.collect(path + '[' + index + ']', found));
        return values.length > 0 ? values : undefined;
      },
    };
  },

  // A label is a row with its key and its value.
  pairs(field, networkOf) {
    const list = controls.rows(field, networkOf);
    return {
      element: list.element,
      fill: (labels) => list.fill(Object.entries(labels).map(([key, value]) => ({ key, value }))),
      collect(path, found) {
        const rows = list.collect(path, found);
        const members = Object.create(null);
        rows?.forEach(({ key = '', value = '' }, index) => {
          const name = key in members ? key + ' (again)' : key; // is invalid, so that the API reports it
          members[name] = value;
          found.set(path + '.' + name, found.get(path + '[' + index + '].value'));
        });
        return rows && members;
      },
    };
  },

  // The API shows URLs masked and replaces all of them at once, so that the user must
  // ask for the replacement and enter each URL again.
  replacedRows(field, networkOf) {
    const list = controls.rows({ ...field, title: 'New ' + titleOf(field) }, networkOf);
    const current = make('div');
    const choice = controls.flag({ name: 'replace', title: 'Replace all URLs', hint: 'Enter every endpoint in full again, with the values of its headers: those above are masked. Without an endpoint, all are removed.' });
    const { element, shown } = section(titleOf(field), [current, choice.element, list.element]);
    element.open = list.element.open = true;
    list.element.hidden = true;
    choice.input.addEventListener('change', () => { list.element.hidden = !choice.input.checked; });
    return {
      element,
      fill(value) {
        const summary = make('summary', {}, 'Current URLs (' + value.length + ')');
        const details = make('details', {}, [summary, valueOf(value, field)]);
        details.open = value.length <= 5; // a long list would push the fields below out of sight
        current.replaceChildren(details);
      },
      collect(path, found) {
        if (!choice.input.checked) {
          found.set(path, shown);
          return undefined;
        }
        return list.collect(path, found) ?? null;
      },
    };
  },
};

function fieldset(title, content) {
  const wrong = wrongLine();
  const element = make('fieldset', { class: 'fields', tabindex: -1, 'aria-describedby': wrong.id }, [make('legend', {}, title), wrong, ...content]);
  return { element, shown: { title, input: element, wrong } };
}

// Returns a group that is folded until it holds a value or an error.
function section(title, content) {
  const wrong = wrongLine();
  const summary = make('summary', { id: newID('summary') }, title);
  const group = make('div', { class: 'fields', role: 'group', tabindex: -1, 'aria-labelledby': summary.id, 'aria-describedby': wrong.id }, [wrong, ...content]);
  return { element: make('details', { class: 'section' }, [summary, group]), shown: { title, input: group, wrong } };
}

const partsOf = (fields, networkOf) => fields.map((field) => [field.name, controls[field.kind](field, networkOf)]);
const elementsOf = (parts) => parts.map(([, control]) => control.element);

function fillParts(parts, object) {
  for (const [name, control] of parts) if (object[name] !== undefined) control.fill(object[name]);
}

function collectParts(parts, prefix, found) {
  const object = {};
  for (const [name, control] of parts) {
    const value = control.collect(prefix + name, found);
    if (value !== undefined) object[name] = value;
  }
  return Object.keys(object).length > 0 ? object : undefined;
}

// A row keeps the members of its value that have no field, and those that the user did
// not change.
function makeRow(field, networkOf, remove) {
  const parts = partsOf(field.fields, networkOf);
  const read = (path, found) => collectParts(parts, path + '.', found) ?? {};
  let [stored, filled] = [{}, {}];
  const button = make('button', { type: 'button' });
  button.addEventListener('click', remove);
  const { element, shown } = fieldset('', [...elementsOf(parts), button]);
  return {
    element,
    setNumber(number) {
      shown.title = titleOf({ name: field.noun }) + ' ' + number;
      write(element.firstElementChild, shown.title);
      write(button, 'Remove ' + field.noun + ' ' + number);
    },
    fill(value) {
      fillParts(parts, value);
      [stored, filled] = [value, read('', new Map())];
    },
    collect(path, found) {
      found.set(path, shown);
      return applyPatch(stored, removeEmptied(stored, patchBetween(filled, read(path, found))));
    },
  };
}

// Errors next to their fields.

// Returns the control of an error: the one at its path or, if a list or JSON is a
// single control, the one above it.
function controlAt(path, found) {
  if (found.has(path)) return [found.get(path), ''];
  for (let end = path.length; end > 0; end = Math.max(path.lastIndexOf('.', end - 1), path.lastIndexOf('[', end - 1))) {
    const above = found.get(path.slice(0, end));
    if (above) return [above, above.below ? above.below(path.slice(end)) : path.slice(end).replace(/^\./, '') + ' '];
  }
  return [];
}

// Returns the groups around an element, the innermost first.
function groupsAround(element) {
  const group = element.parentElement.closest('fieldset, .section');
  return group ? [group, ...groupsAround(group)] : [];
}

// Returns the names of a control and of the groups around it, because two tokens
// have fields with the same names.
function fullTitle({ title, input }) {
  const names = groupsAround(input).map((group) => group.firstElementChild.textContent).reverse();
  return (names.at(-1) === title ? names : [...names, title]).join(', ');
}

const unfold = (element) => groupsAround(element).forEach((group) => { group.open = true; });

// Shows an error next to its field and returns its entry in the summary.
function placeError({ field, message }, found) {
  const [control, where] = field === undefined ? [] : controlAt(field, found);
  if (!control) return make('li', {}, field === undefined ? message : field + ' ' + message);
  write(control.wrong, control.wrong.textContent + (control.wrong.textContent ? '; ' : '') + where + message);
  control.wrong.hidden = false;
  if (control.input.matches('input, select, textarea')) control.input.setAttribute('aria-invalid', 'true');
  unfold(control.input);
  const jump = make('button', { type: 'button', class: 'plain' }, fullTitle(control) + ': ' + where + message);
  jump.addEventListener('click', () => {
    unfold(control.input);
    control.input.focus();
  });
  return make('li', {}, [jump]);
}

class Form {
  constructor(parts, content) {
    this.parts = parts;
    this.found = new Map();
    const title = newID('summary');
    this.summary = make('div', { class: 'summary', tabindex: -1, role: 'group', 'aria-labelledby': title }, [make('h2', { id: title }), make('ul')]);
    this.summary.hidden = true;
    this.elements = [this.summary, ...content];
    this.before = this.collect();
  }

  isChanged() { return !isSame(this.before, this.collect(new Map())); }

  // Returns the changes of the user as a merge patch. A field that the user did not
  // change is not part of it, so that it keeps its current value.
  changes() { return patchBetween(this.before, this.collect()); }

  collect(found = this.found) {
    found.clear();
    return collectParts(this.parts(), '', found) ?? {};
  }

  clearErrors() {
    for (const { wrong, input } of this.found.values()) {
      wrong.hidden = true;
      write(wrong, '');
      input.removeAttribute('aria-invalid');
    }
    this.summary.hidden = true;
  }

  showErrors(title, problems) {
    const [heading, list] = this.summary.children;
    write(heading, title);
    list.replaceChildren(...problems.map((problem) => placeError(problem, this.found)));
    this.summary.hidden = false;
    this.summary.focus();
  }
}

// Returns the elements of a form. Those of lists come last, because they may be long.
function inOrder(parts, policies) {
  const isLong = ([name]) => ['custom_rpc_urls', 'labels', 'settings'].includes(name);
  return [...elementsOf(parts.filter((part) => !isLong(part))), ...policies.map(({ element }) => element), ...elementsOf(parts.filter(isLong))];
}

// What every relayer has comes first.
const first = ['name', 'network_type', 'network', 'signer_id', 'id', 'notification_id', 'paused'];
const rank = ({ name }) => (first.includes(name) ? first.indexOf(name) : first.length);

const policyOf = (type, networkOf) => controls.group({ name: 'policies', title: 'Policy', fields: policyFields(type) }, networkOf);

// Returns the form of a new relayer with some values. The network type selects the policy, which
// opens then.
export function newRelayerForm(values) {
  const parts = partsOf(relayerFields().toSorted((a, b) => rank(a) - rank(b)), () => valueIn('network'));
  const controlOf = (name) => parts.find(([part]) => part === name)[1];
  const valueIn = (name) => controlOf(name).input.value;
  const policies = Object.fromEntries(networkTypes().map((type) => [type, policyOf(type, () => valueIn('network'))]));
  const chosen = () => policies[valueIn('network_type')];
  const showPolicy = () => {
    for (const policy of Object.values(policies)) policy.element.hidden = policy !== chosen();
    if (chosen()) chosen().element.open = true;
  };
  controlOf('network_type').input.addEventListener('change', showPolicy);
  fillParts(parts, values);
  if (values.policies) chosen()?.fill(values.policies);
  showPolicy();
  return new Form(() => (chosen() ? [...parts, ['policies', chosen()]] : parts), inOrder(parts, Object.values(policies)));
}

// Returns the form of a stored relayer with the values of an earlier version as changes. RPC
// URLs stay.
export function restoreForm(current, version) {
  const form = editForm({ ...version, custom_rpc_urls: current.custom_rpc_urls });
  form.before = editForm(current).before;
  return form;
}

// Returns the form of a new relayer with the values of another one as entries.
export function copyForm(version) {
  const form = newRelayerForm({ ...version, custom_rpc_urls: undefined });
  form.before = newRelayerForm({}).before;
  return form;
}

// Returns the form of a stored relayer.
export function editForm(relayer) {
  const editable = relayerFields(relayer.network_type).flatMap((field) => {
    if (field.name === 'custom_rpc_urls') return [{ ...field, kind: relayer.custom_rpc_urls ? 'replacedRows' : 'rows' }];
    return ['name', 'notification_id', 'labels', 'settings'].includes(field.name) ? [field] : [];
  });
  const networkOf = () => relayer.network;
  const policy = policyOf(relayer.network_type, networkOf);
  const parts = partsOf(editable, networkOf);
  const all = [...parts, ['policies', policy]];
  fillParts(all, relayer);
  policy.element.open = true;
  return new Form(() => all, inOrder(parts, [policy]));
}
