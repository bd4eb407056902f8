// Forms of relayers, from the description of their fields. A control has an element, is filled with
// a value, and collects one: undefined if it is empty. While it collects, it adds itself to found
// under its current JSON path, so that errors appear next to it. The path of a row changes when
// rows above it are removed.

import { digitsOf, humanAmount } from './amounts.js';
import { make, newID, write } from './dom.js';
import { networkTypes, policyFields, relayerFields, titleOf } from './fields.js';
import { isSame, numberOrText, patchBetween, readJSON, writeJSON } from './json.js';
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
  const isInline = classes.includes('inline');
  const title = titleOf(field) + (field.unit ? ' (' + field.unit + ')' : '') + (field.required && !isInline ? ' *' : '');
  if (field.required && !isInline) input.setAttribute('aria-required', 'true');
  input.setAttribute('aria-describedby', [...hint, wrong].map(({ id }) => id).join(' '));
  return { input, wrong, element: make('div', { class: 'field' }, [make('label', { for: input.id, class: classes.join(' ') }, title), input, ...hint, wrong]) };
}

// Returns the control of one input. read returns its value.
function single(shown, read, fill) {
  return { ...shown, fill, collect: (path, found) => (found.set(path, shown), read()) };
}

const plainInput = (more) => make('input', { type: 'text', autocomplete: 'off', autocapitalize: 'none', spellcheck: 'false', ...more });

// Returns the control of a select. Each option has a text and what it stands for.
function select(field, options) {
  const texts = [field.required ? 'Choose one' : 'Not set', ...options.map(([text]) => text)];
  const shown = labelled(field, make('select', {}, texts.map((text) => make('option', {}, text))));
  const read = () => options[shown.input.selectedIndex - 1]?.[1] ?? (field.required ? '' : undefined);
  return single(shown, read, (value) => { shown.input.selectedIndex = options.findIndex(([, stands]) => stands === value) + 1; });
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
        return value; // the API reports the problem
      }
    };
    return single(shown, read, (value) => { input.value = writeJSON(value, 2); });
  },

  flag(field) {
    const shown = labelled(field, make('input', { type: 'checkbox' }), 'inline');
    shown.element.prepend(shown.input);
    return single(shown, () => shown.input.checked, (value) => { shown.input.checked = value; });
  },

  choice: (field) => select(field, field.options.map((option) => [option, option])),

  yesNo: (field) => select(field, [['Yes', true], ['No', false]]),

  lines(field) {
    const shown = labelled(field, make('textarea', { rows: 3, autocapitalize: 'none', spellcheck: 'false' }));
    const { input } = shown;
    const below = (rest) => 'line ' + entriesOf(input.value)[parseInt(rest.slice(1), 10)]?.number + ' ';
    const read = () => {
      const entries = entriesOf(input.value).map(({ entry }) => entry);
      return entries.length > 0 ? entries : undefined;
    };
    return single({ ...shown, below }, read, (value) => { input.value = value.join('\n'); });
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
      const row = keeping(makeRow(field, networkOf, () => {
        present.splice(present.indexOf(row), 1);
        row.element.remove();
        renumber();
        add.focus();
      }));
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
      fill: (members) => list.fill(Object.entries(members).map(([key, value]) => ({ key, value }))),
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
    const { element } = section(titleOf(field), [current, choice.element, list.element]);
    element.open = list.element.open = true;
    list.element.hidden = true;
    choice.input.addEventListener('change', () => { list.element.hidden = !choice.input.checked; });
    return {
      element,
      fill: (value) => current.replaceChildren(valueOf(value, field)),
      collect: (path, found) => (choice.input.checked ? list.collect(path, found) ?? null : undefined),
    };
  },
};

// Returns a control whose value stays exactly as it is stored until the user changes it, even if
// the input cannot show all of it, such as an empty member.
function keeping(control) {
  let isFilled = false;
  let stored, shown;
  return {
    ...control,
    fill(value) {
      control.fill(value);
      [isFilled, stored, shown] = [true, value, control.collect('', new Map())];
    },
    collect(path, found) {
      const value = control.collect(path, found);
      return isFilled && isSame(value, shown) ? stored : value;
    },
  };
}

// Returns a group that is folded until it holds a value or an error.
function section(title, content) {
  const wrong = wrongLine();
  const summary = make('summary', { id: newID('summary') }, title);
  const group = make('div', { class: 'fields', role: 'group', tabindex: -1, 'aria-labelledby': summary.id, 'aria-describedby': wrong.id }, [wrong, ...content]);
  return { element: make('details', { class: 'section' }, [summary, group]), shown: { input: group, wrong } };
}

const partsOf = (fields, networkOf) => fields.map((field) => [field.name, keeping(controls[field.kind](field, networkOf))]);
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

function makeRow(field, networkOf, remove) {
  const parts = partsOf(field.fields, networkOf);
  const [wrong, legend, button] = [wrongLine(), make('legend'), make('button', { type: 'button', onclick: remove })];
  const element = make('fieldset', { class: 'fields', tabindex: -1, 'aria-describedby': wrong.id }, [legend, wrong, ...elementsOf(parts), button]);
  return {
    element,
    setNumber(number) {
      write(legend, titleOf({ name: field.noun }) + ' ' + number);
      write(button, 'Remove ' + field.noun + ' ' + number);
    },
    fill: (value) => fillParts(parts, value),
    collect: (path, found) => (found.set(path, { input: element, wrong }), collectParts(parts, path + '.', found) ?? {}),
  };
}

// Errors next to their fields.

// Returns the control of an error: the one at its path or, if a list or JSON is a
// single control, the one above it.
function controlAt(path, found) {
  for (let end = path.length; end > 0; end = Math.max(path.lastIndexOf('.', end - 1), path.lastIndexOf('[', end - 1))) {
    const control = found.get(path.slice(0, end));
    const rest = path.slice(end);
    if (control) return [control, rest && (control.below?.(rest) ?? rest.replace(/^\./, '') + ' ')];
  }
  return [];
}

// Shows an error next to its field, in unfolded groups, and returns what can have the focus. An error
// may have no field in the form.
function placeError({ field, message }, found) {
  const [control, where] = field === undefined ? [] : controlAt(field, found);
  if (!control) return undefined;
  const { input, wrong } = control;
  write(wrong, wrong.textContent + (wrong.textContent ? '; ' : '') + where + message);
  wrong.hidden = false;
  if (input.matches('input, select, textarea')) input.ariaInvalid = 'true';
  for (let group = input.closest('.section'); group; group = group.parentElement.closest('.section')) group.open = true;
  return input;
}

class Form {
  constructor(parts, content) {
    this.parts = parts;
    this.elements = content;
    this.found = new Map();
  }

  isChanged() { return !isSame(this.before, this.collect(new Map())); }

  // Returns the changes of the user as a merge patch of the stored relayer. A field that the
  // user did not change is not part of it, so that it keeps its current value.
  changes(stored) { return patchBetween(this.before, this.collect(), stored); }

  collect(found = this.found) {
    found.clear();
    return collectParts(this.parts(), '', found) ?? {};
  }

  clearErrors() {
    for (const { wrong, input } of this.found.values()) {
      wrong.hidden = true;
      write(wrong, '');
      input.ariaInvalid = null;
    }
  }

  // Shows problems next to their fields, and returns those that have none in the form.
  showErrors(problems) {
    const placed = problems.map((problem) => placeError(problem, this.found));
    placed.find((input) => input)?.focus();
    return problems.filter((_, index) => !placed[index]);
  }
}

// What every relayer has comes first, and lists, which may be long, come last.
const first = ['name', 'network_type', 'network', 'signer_id', 'id', 'notification_id', 'paused'];
const long = ['custom_rpc_urls', 'labels', 'settings'];
const rank = ({ name }) => (first.includes(name) ? first.indexOf(name) : first.length);
const editable = ['name', 'notification_id', ...long];

// Returns the form with some values. The network type selects the policy, which opens then.
function build(values, stored) {
  const controlOf = (name) => parts.find(([part]) => part === name)[1];
  const enteredOf = (name) => stored?.[name] ?? controlOf(name).input.value;
  const typeOf = () => stored?.network_type ?? controlOf('network_type').collect('', new Map());
  const policyOf = (type) => keeping(controls.group({ name: 'policies', title: 'Policy', fields: policyFields(type) }, () => enteredOf('network')));
  const kindOf = ({ name, kind }) => (name === 'custom_rpc_urls' && stored?.[name] ? 'replacedRows' : kind);
  const fields = relayerFields(stored?.network_type).filter(({ name }) => !stored || editable.includes(name)).toSorted((a, b) => rank(a) - rank(b));
  const parts = partsOf(fields.map((field) => ({ ...field, kind: kindOf(field) })), () => enteredOf('network'));
  const policies = Object.fromEntries((stored ? [stored.network_type] : networkTypes()).map((type) => [type, policyOf(type)]));
  const showPolicy = () => {
    for (const [type, { element }] of Object.entries(policies)) {
      element.hidden = type !== typeOf();
      element.open ||= !element.hidden;
    }
  };
  fillParts(parts, values);
  if (values.policies) policies[typeOf()].fill(values.policies);
  if (!stored) controlOf('network_type').input.addEventListener('change', showPolicy);
  showPolicy();
  const [last, others] = [true, false].map((isLong) => elementsOf(parts.filter(([name]) => long.includes(name) === isLong)));
  return new Form(() => (policies[typeOf()] ? [...parts, ['policies', policies[typeOf()]]] : parts), [...others, ...Object.values(policies).map(({ element }) => element), ...last]);
}

// Returns the form of a stored relayer, or of a new one, with some values as entries of the user.
export function relayerForm(values, stored) {
  const form = build(values, stored);
  form.before = build(stored ?? {}, stored).collect();
  return form;
}
